"""What a mesh is, as far as what-if questions go: routers, links, subscribers, demands, groups. Plain data, no I/O.

A model has one form: everything is sorted, so equal meshes are equal models with equal digests, whatever file they came
from and in whatever order it was written. Functions at the end make changed models: other costs, links added, growth.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import attrs

from mesh_config.findings import SettingsError, nearest
from mesh_config.models import ID_PATTERN, TEXT_PATTERN, Treatment, setting
from mesh_config.yaml_text import Place
from router.simulation.whatif.demand_table import DEFAULT_CLASS, NOBODY, Demand, Demands
from router.simulation.whatif.validity import model_findings

__all__ = [
    "DEFAULT_CLASS",
    "NOBODY",
    "AddressNode",
    "Demand",
    "Demands",
    "Group",
    "GroupKind",
    "LinkCounter",
    "LinkEdge",
    "Model",
    "ModelError",
    "RouterNode",
    "SubscriberSite",
    "grown",
    "link_ids",
    "with_costs",
    "with_demands",
    "with_groups",
    "with_links",
    "with_subscribers",
    "without",
]

MAX_COST: Final = 65535
"""As in the settings of routers."""


class ModelError(SettingsError):
    """A model that can't be, or a change that can't be made to it; `findings` has all that is wrong."""


class GroupKind(enum.StrEnum):
    """What the members of a group have in common."""

    SRLG = "srlg"
    SITE = "site"
    MAINTENANCE = "maintenance"


def _failures() -> Any:
    return setting("How often it fails.", default=None, unit="failures/year", low=0, high=10**6)


def _repair() -> Any:
    return setting("Mean time until it works again.", default=None, unit="hours", low=0, high=10**6)


@attrs.frozen(kw_only=True)
class RouterNode:
    """A router."""

    id: str = setting("Its id in the mesh.", pattern=ID_PATTERN)
    site: str | None = setting("Where it stands; routers of one site may fail together.", default=None)
    latitude: float | None = setting("North of the equator.", default=None, unit="degrees", low=-90, high=90)
    longitude: float | None = setting("East of Greenwich.", default=None, unit="degrees", low=-180, high=180)
    failures_per_year: float | None = _failures()
    repair_hours: float | None = _repair()


@attrs.frozen(kw_only=True)
class LinkEdge:
    """A link between two routers. Of parallel ones the mesh uses the one with the least (cost, id)."""

    id: str = setting("`a--b`, of parallel links `a--b#2` and so on.", pattern=TEXT_PATTERN)
    a: str = setting("The end whose id is the smaller one.", pattern=ID_PATTERN)
    b: str = setting("The other end.", pattern=ID_PATTERN)
    cost: int = setting("Cost, the same in both directions.", default=1, low=1, high=MAX_COST)
    delay_ms: float | None = setting("One way.", default=None, unit="milliseconds", low=0, high=10**6)
    capacity_msgs: float | None = setting(
        "What it can carry in each direction.", default=None, unit="messages/s", low=1e-6, high=9 * 10**12
    )
    capacity_bytes: float | None = setting(
        "What it can carry in each direction.", default=None, unit="bytes/s", low=1e-6, high=9 * 10**12
    )
    failures_per_year: float | None = _failures()
    repair_hours: float | None = _repair()

    @property
    def has_capacity(self) -> bool:
        """Whether anything is known of what it can carry."""
        return bool(self.capacity_msgs or self.capacity_bytes)


@attrs.frozen(kw_only=True)
class AddressNode:
    """An address and what is done with its messages."""

    text: str = setting("The address, without scheme and host.", pattern=TEXT_PATTERN)
    treatment: Treatment = setting("How its messages are given to its subscribers.")


@attrs.frozen(kw_only=True)
class SubscriberSite:
    """The subscribers that an address has at one router."""

    address: str = setting("What they subscribe to.", pattern=TEXT_PATTERN)
    router: str = setting("Router to which they are attached.", pattern=ID_PATTERN)
    count: int = setting("How many they are.", default=1, unit="subscribers", low=1, high=1_000_000)
    credit: int | None = setting(
        "What all of them together grant.", default=None, unit="messages", low=0, high=2**31 - 1
    )
    service_ms: float | None = setting(
        "From the arrival of a message to its outcome.", default=None, unit="milliseconds", low=0, high=10**9
    )


@attrs.frozen(kw_only=True)
class Group:
    """Links and routers that fail together, or are taken down together."""

    name: str = setting("Its name.", pattern=TEXT_PATTERN)
    kind: GroupKind = setting("What its members share: a risk, a site, or a maintenance window.")
    links: tuple[str, ...] = setting("Ids of links.", default=())
    routers: tuple[str, ...] = setting("Ids of routers.", default=())
    failures_per_year: float | None = _failures()
    repair_hours: float | None = _repair()


@attrs.frozen(kw_only=True)
class LinkCounter:
    """What one router has sent over a link since the link came up."""

    link: str = setting("Id of the link.", pattern=TEXT_PATTERN)
    src: str = setting("The router that sent.", pattern=ID_PATTERN)
    messages: int = setting("Messages sent.", unit="messages", low=0, high=2**63 - 1)
    bytes: int | None = setting(
        "Bytes of these; none when the router does not count them.", default=None, unit="bytes", low=0, high=2**63 - 1
    )


def _routers(items: Iterable[RouterNode]) -> tuple[RouterNode, ...]:
    return tuple(sorted(items, key=lambda it: it.id))


def _links(items: Iterable[LinkEdge]) -> tuple[LinkEdge, ...]:
    return tuple(sorted(items, key=lambda it: it.id))


def _addresses(items: Iterable[AddressNode]) -> tuple[AddressNode, ...]:
    return tuple(sorted(items, key=lambda it: it.text))


def _subscribers(items: Iterable[SubscriberSite]) -> tuple[SubscriberSite, ...]:
    return tuple(sorted(items, key=lambda it: (it.address, it.router)))


def _groups(items: Iterable[Group]) -> tuple[Group, ...]:
    """Groups by name, their members sorted."""
    whole = (attrs.evolve(it, links=tuple(sorted(it.links)), routers=tuple(sorted(it.routers))) for it in items)
    return tuple(sorted(whole, key=lambda it: it.name))


def _demands(items: Iterable[Demand]) -> Demands:
    return Demands.of(items)


def _counters(items: Iterable[LinkCounter]) -> tuple[LinkCounter, ...]:
    return tuple(sorted(items, key=lambda it: (it.link, it.src)))


@attrs.frozen(kw_only=True)
class Model:
    """A mesh. Whoever makes one calls `check` before it is used."""

    name: str = "mesh"
    routers: tuple[RouterNode, ...] = attrs.field(default=(), converter=_routers)
    links: tuple[LinkEdge, ...] = attrs.field(default=(), converter=_links)
    addresses: tuple[AddressNode, ...] = attrs.field(default=(), converter=_addresses)
    subscribers: tuple[SubscriberSite, ...] = attrs.field(default=(), converter=_subscribers)
    demands: Demands = attrs.field(factory=lambda: Demands.of(()), converter=_demands)
    """Read as a sequence of Demand, or by column."""
    groups: tuple[Group, ...] = attrs.field(default=(), converter=_groups)
    counters: tuple[LinkCounter, ...] = attrs.field(default=(), converter=_counters)
    """Of a snapshot of a live mesh; empty in others."""
    origin: str = attrs.field(default="", eq=False)
    """Where it came from, for reports. Not part of what it is: equal models may have different origins."""

    @property
    def has_capacities(self) -> bool:
        """Whether it is known of any link what it can carry; else utilisation is relative to the busiest link."""
        return any(link.has_capacity for link in self.links)

    def check(self) -> None:
        """Nothing, when the model can be used.

        Raises: ModelError with everything that is wrong; its findings have key paths such as `links.a--b.cost`.
        """
        findings = tuple(model_findings(self))
        if findings:
            raise ModelError(findings)

    def canonical(self) -> str:
        """The one text of this model, JSON; of the demands it has the digest."""
        plain: dict[str, object] = {"name": self.name, "demands": self.demands.digest()}
        for field in ("routers", "links", "addresses", "subscribers", "groups", "counters"):
            plain[field] = [_canonical(item) for item in getattr(self, field)]
        return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)

    def digest(self) -> str:
        """SHA-256 of `canonical`, as hexadecimal text."""
        return hashlib.sha256(self.canonical().encode()).hexdigest()


def _canonical(item: attrs.AttrsInstance) -> dict[str, object]:
    """Fields by name; numbers that are not counted are floats, whatever the caller has written."""
    found: dict[str, object] = {}
    for field in attrs.fields(type(item)):
        value = getattr(item, field.name)
        is_amount = "float" in str(field.type) and value is not None
        found[field.name] = float(value) + 0.0 if is_amount else value
    return found


def link_ids(ends: Iterable[tuple[str, str]]) -> list[str]:
    """The usual ids of links between these routers, in the same order: `a--b`, then `a--b#2`, `a--b#3`...

    Args:
        ends: both routers of each link, in either order.
    """
    count: Counter[str] = Counter()
    ids = []
    for one, other in ends:
        text = f"{min(one, other)}--{max(one, other)}"
        count[text] += 1
        ids.append(text if count[text] == 1 else f"{text}#{count[text]}")
    return ids


# Changed models. Each is checked, so what can't be raises ModelError.


def with_costs(model: Model, costs: Mapping[str, int]) -> Model:
    """The model with other costs of some links, by link id."""
    _refuse_unknown("links", costs, (link.id for link in model.links))
    links = (attrs.evolve(link, cost=costs.get(link.id, link.cost)) for link in model.links)
    return _checked(attrs.evolve(model, links=links))


def with_links(model: Model, links: Iterable[LinkEdge]) -> Model:
    """The model with more links."""
    return _checked(attrs.evolve(model, links=(*model.links, *links)))


def without(model: Model, *, links: Iterable[str] = (), routers: Iterable[str] = ()) -> Model:
    """The model without some links and routers, and without all that belongs to them: a router's links, subscribers
    and demands from it and to it, counters, places in groups. Groups that are empty then go too.
    """
    gone_links, gone_routers = set(links), set(routers)
    _refuse_unknown("links", gone_links, (link.id for link in model.links))
    _refuse_unknown("routers", gone_routers, (router.id for router in model.routers))
    gone_links |= {link.id for link in model.links if {link.a, link.b} & gone_routers}
    groups = (
        attrs.evolve(
            group,
            links=tuple(link for link in group.links if link not in gone_links),
            routers=tuple(router for router in group.routers if router not in gone_routers),
        )
        for group in model.groups
    )
    demands = model.demands
    if gone_routers:
        is_kept = demands.places(sorted(gone_routers)) == NOBODY
        # NOBODY as a destination takes the last name, which says nothing about it.
        demands = demands.chosen(is_kept[demands.src] & (is_kept[demands.dst] | (demands.dst == NOBODY)))
    return _checked(
        attrs.evolve(
            model,
            routers=(router for router in model.routers if router.id not in gone_routers),
            links=(link for link in model.links if link.id not in gone_links),
            subscribers=(site for site in model.subscribers if site.router not in gone_routers),
            demands=demands,
            groups=(group for group in groups if group.links or group.routers),
            counters=(row for row in model.counters if row.link not in gone_links and row.src not in gone_routers),
        )
    )


def with_subscribers(
    model: Model, added: Iterable[SubscriberSite] = (), *, removed: Iterable[tuple[str, str]] = ()
) -> Model:
    """The model with subscribers moved or added.

    Args:
        added: each takes the place of what its address has at its router, if there is something.
        removed: (address, router) where there are none any more.
    """
    gone = set(removed)
    there = {(site.address, site.router): site for site in model.subscribers}
    _refuse_unknown("subscribers", map(" at ".join, gone), map(" at ".join, there))
    new = {(site.address, site.router): site for site in added}
    kept = {place: site for place, site in there.items() if place not in gone}
    return _checked(attrs.evolve(model, subscribers=({**kept, **new}).values()))


def with_demands(model: Model, demands: Iterable[Demand]) -> Model:
    """The model with these demands instead of its own."""
    return _checked(attrs.evolve(model, demands=demands))


def with_groups(model: Model, groups: Iterable[Group]) -> Model:
    """The model with these groups instead of its own."""
    return _checked(attrs.evolve(model, groups=groups))


def grown(model: Model, factor: float) -> Model:
    """The model with *factor* times the messages of every demand."""
    if not 0 <= factor <= 1e6:
        finding = _place("demands").finding(f"growth by {factor}", expected="a factor from 0 to 1000000")
        raise ModelError([finding])
    return _checked(attrs.evolve(model, demands=model.demands.grown(factor)))


def _checked(model: Model) -> Model:
    model.check()
    return model


def _place(*path: str) -> Place:
    return Place(file=None, line=None, path=path)


def _refuse_unknown(what: str, named: Iterable[str], known: Iterable[str]) -> None:
    """Raises: ModelError for each name that is not known."""
    there = list(known)
    missing = sorted(set(named).difference(there))
    if missing:
        word = what.removesuffix("s")
        raise ModelError(
            _place(what, name).finding(
                f"the model has no {word} `{name}`", expected=f"a {word} of the model", nearest=nearest(name, there)
            )
            for name in missing
        )
