"""Prices of what could be built or upgraded in a mesh. YAML.

new_links: [{a: Oslo, b: Bergen, cost: 2, capacity_bytes: 1.25e9, price: 400}]
upgrades:
  - {link: Oslo--Bergen, capacity_bytes: 2.5e9, price: 90}
  - {link: "*", times: 2, price: 120}
"""

from __future__ import annotations

from typing import Any, Final

import attrs

from mesh_config import yaml_text
from mesh_config.findings import nearest
from mesh_config.models import setting
from mesh_config.structuring import structure
from router.whatif.formats.details_file import NewLink
from router.whatif.formats.input_file import FileFindings, FilePath, read_text
from router.whatif.model.elements import LinkEdge, link_ids
from router.whatif.model.mesh_model import Model

EVERY: Final = "*"
"""Every link that the model has."""
MOST_PRICE: Final = 1e15


def _price() -> Any:
    return setting("What it costs, in any currency.", low=0, high=MOST_PRICE)


@attrs.frozen(kw_only=True)
class PricedLink(NewLink):
    """A link that could be built."""

    price: float = _price()


@attrs.frozen(kw_only=True)
class PricedUpgrade:
    """A link that could carry more."""

    link: str = setting("Id of the link, or `*` for every one.")
    capacity_msgs: float | None = setting("What it can carry then.", default=None, unit="messages/s", low=1e-6)
    capacity_bytes: float | None = setting("What it can carry then.", default=None, unit="bytes/s", low=1e-6)
    times: float | None = setting("So many times what it can carry now.", default=None, low=1, high=1e6)
    price: float = _price()


@attrs.frozen(kw_only=True)
class PriceList:
    """Content of the file."""

    new_links: tuple[PricedLink, ...] = setting("Links that could be built.", default=())
    upgrades: tuple[PricedUpgrade, ...] = setting("Links that could carry more.", default=())


@attrs.frozen(kw_only=True)
class PricedChange:
    """A link as it could be, whether it is there already or not, and what that costs."""

    link: LinkEdge
    price: float


@attrs.frozen(kw_only=True)
class Prices:
    """All that could be done to a model."""

    builds: tuple[PricedChange, ...]
    """Links that could be built."""
    upgrades: tuple[PricedChange, ...]
    """Links that could carry more."""


def read_prices(path: FilePath, model: Model) -> Prices:
    """Read the prices of what could be done to a model.

    Args:
        path: of a YAML file.
        model: to which it is done.
    Raises: SettingsError with all that is wrong with the file.
    """
    faults = FileFindings(path)
    root, findings = yaml_text.read(read_text(path), faults.file)
    faults.extend(findings)
    faults.check()
    assert root is not None
    listed, findings = structure(root, PriceList)
    faults.extend(findings)
    faults.check()
    assert listed is not None
    routers, links = {router.id for router in model.routers}, {link.id: link for link in model.links}
    taken = set(links)
    builds = []
    for number, new in enumerate(listed.new_links):
        for key, end in (("a", new.a), ("b", new.b)):
            if end not in routers:
                near = nearest(end, routers)
                faults.add(f"no router `{end}`", key=("new_links", number, key), nearest=near)
        a, b = sorted((new.a, new.b))
        if a == b:
            faults.add(f"a link from `{a}` to itself", key=("new_links", number), expected="two routers")
        name = next(text for text in link_ids([(a, b)] * (len(taken) + 1)) if text not in taken)
        taken.add(name)
        values = {each: value for each, value in attrs.asdict(new).items() if each not in ("a", "b", "price")}
        builds.append(PricedChange(link=LinkEdge(id=name, a=a, b=b, **values), price=new.price))
    upgrades = []
    for number, upgrade in enumerate(listed.upgrades):
        if upgrade.link != EVERY and upgrade.link not in links:
            near = nearest(upgrade.link, links)
            faults.add(f"no link `{upgrade.link}`", key=("upgrades", number, "link"), nearest=near)
            continue
        if upgrade.capacity_msgs is upgrade.capacity_bytes is upgrade.times is None:
            faults.add("nothing is more", key=("upgrades", number), expected="`times`, or a capacity")
        chosen = links.values() if upgrade.link == EVERY else [links[upgrade.link]]
        upgrades += [PricedChange(link=_upgraded(link, upgrade), price=upgrade.price) for link in chosen]
    faults.check()
    return Prices(builds=tuple(builds), upgrades=tuple(upgrades))


def _upgraded(link: LinkEdge, upgrade: PricedUpgrade) -> LinkEdge:
    found = {}
    for name in ("capacity_msgs", "capacity_bytes"):
        value, said = getattr(link, name), getattr(upgrade, name)
        if said is not None:
            value = said
        elif upgrade.times is not None and value is not None:
            value *= upgrade.times
        found[name] = value
    return attrs.evolve(link, **found)
