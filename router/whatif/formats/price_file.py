"""Prices of what could be built or upgraded in a mesh. YAML.

new_links: [{a: Oslo, b: Bergen, cost: 2, capacity_bytes: 1.25e9, price: 400}]
upgrades:
  - {link: Oslo--Bergen, capacity_bytes: 2.5e9, price: 90}
  - {link: "*", times: 2, price: 120}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from mesh_config import yaml_text
from mesh_config.models import setting
from mesh_config.structuring import structure
from mesh_config.yaml_text import ListNode, MapNode, Node, Place
from router.whatif.formats.details_file import NewLink, planned_links, unknown_names
from router.whatif.formats.input_file import FileFindings, FilePath, read_text
from router.whatif.model.elements import LinkEdge
from router.whatif.model.mesh_model import Model
from router.whatif.wording import exact

EVERY: Final = "*"
"""Every link that the model has."""
CAPACITIES: Final = ("capacity_msgs", "capacity_bytes")
MOST_PRICE: Final = 1e15


def _price() -> Any:
    return setting("What it costs, in any currency.", low=0, high=MOST_PRICE)


@attrs.frozen(kw_only=True)
class PricedNewLink(NewLink):
    """A link that could be built."""

    price: float = _price()


@attrs.frozen(kw_only=True)
class PricedUpgrade:
    """A link that could carry more."""

    link: str = setting("Id of the link, or `*` for every one.")
    capacity_msgs: float | None = setting("What it can carry then.", default=None, unit="messages/s", low=1e-6)
    capacity_bytes: float | None = setting("What it can carry then.", default=None, unit="bytes/s", low=1e-6)
    times: float | None = setting(
        "So many times what it can carry now, instead of a capacity.", default=None, low=1, high=1e6
    )
    price: float = _price()


@attrs.frozen(kw_only=True)
class PriceFileContent:
    """Content of the file."""

    new_links: tuple[PricedNewLink, ...] = setting("Links that could be built.", default=())
    upgrades: tuple[PricedUpgrade, ...] = setting("Links that could carry more.", default=())


@attrs.frozen(kw_only=True)
class PricedChange:
    """A link as it could be, whether it is there already or not, and what that costs."""

    link: LinkEdge
    price: float


@attrs.frozen(kw_only=True)
class PricedOptions:
    """All that could be done to a model."""

    builds: tuple[PricedChange, ...]
    """Links that could be built."""
    upgrades: tuple[PricedChange, ...]
    """Links that could carry more."""


def read_prices(path: FilePath, model: Model) -> PricedOptions:
    """Read the prices of what could be done to a model.

    Args:
        path: of a YAML file.
        model: to which it is done.
    Raises: SettingsError with all that is wrong with the file.
    """
    faults = FileFindings(path)
    root, findings = yaml_text.read(read_text(path), faults.file, expected="`new_links` or `upgrades`")
    faults.extend(findings)
    faults.check()
    assert root is not None
    listed, findings = structure(root, PriceFileContent)
    faults.extend(findings)
    routers, links = {router.id for router in model.routers}, {link.id: link for link in model.links}
    if isinstance(root, MapNode):
        places = (
            ("new_links", "a", "router", routers),
            ("new_links", "b", "router", routers),
            ("upgrades", "link", "link", {*links, EVERY}),
        )
        faults.extend(unknown_names(root, places))
    if listed is None:
        faults.check()
        raise AssertionError("without a list there are findings")
    new = zip(_places(root, "new_links"), listed.new_links, strict=True)
    found = PricedOptions(
        builds=tuple(PricedChange(link=link, price=each.price) for link, each in planned_links(model, new, faults)),
        upgrades=tuple(_upgrades(listed, links, _places(root, "upgrades"), faults)),
    )
    faults.check()
    return found


def _places(root: Node, key: str) -> list[Place]:
    """Places of the items of a list."""
    node = root.items.get(key) if isinstance(root, MapNode) else None
    return [item.place for item in node.items] if isinstance(node, ListNode) else []


def _upgrades(
    listed: PriceFileContent, links: Mapping[str, LinkEdge], places: Sequence[Place], faults: FileFindings
) -> Iterator[PricedChange]:
    """Links that could carry more. Of every link those are left out that can carry as much already."""
    for upgrade, place in zip(listed.upgrades, places, strict=True):
        if upgrade.link != EVERY and upgrade.link not in links:
            continue  # told already
        said = [name for name in CAPACITIES if getattr(upgrade, name) is not None]
        if bool(said) == (upgrade.times is not None):
            what = "`times` and a capacity" if said else "nothing is more"
            faults.extend([place.finding(what, expected="`times`, or a capacity")])
            continue
        if upgrade.link == EVERY:
            chosen = [
                link for link in links.values() if not said or any(_is_more(link, upgrade, name) for name in said)
            ]
        else:
            chosen = [links[upgrade.link]]
            for name in said:
                now, then = getattr(chosen[0], name), getattr(upgrade, name)
                if now is not None and then < now:
                    message = f"{exact(then)} is less than `{upgrade.link}` can carry now"
                    faults.extend([place.finding(message, expected=f"at least {exact(now)}", at=(name,))])
        for link in chosen:
            yield PricedChange(link=_upgraded(link, upgrade), price=upgrade.price)


def _is_more(link: LinkEdge, upgrade: PricedUpgrade, name: str) -> bool:
    now: float | None = getattr(link, name)
    return now is None or getattr(upgrade, name) > now


def _upgraded(link: LinkEdge, upgrade: PricedUpgrade) -> LinkEdge:
    found = {}
    for name in CAPACITIES:
        value, said = getattr(link, name), getattr(upgrade, name)
        if said is not None:
            value = max(said, value or 0.0)  # of every link there may be some that can carry more already
        elif upgrade.times is not None and value is not None:
            value *= upgrade.times
        found[name] = value
    return attrs.evolve(link, **found)
