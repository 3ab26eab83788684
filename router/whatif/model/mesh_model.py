"""Model of a mesh, as far as what-if questions go: routers, links, subscribers, demands, groups. Plain data, no I/O.

A model has one form: everything is sorted, so equal meshes are equal models with equal digests, whatever file they came
from and in whatever order it was written. Functions at the end make changed models: other costs, links added, growth.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import attrs

from mesh_config.findings import Finding, SettingsError
from mesh_config.yaml_text import Place
from router.whatif.model.added_link_forms import AddedLinkError, added_links
from router.whatif.model.demands import NOBODY, Demand, Demands
from router.whatif.model.elements import (
    AddressNode,
    Group,
    LinkCounter,
    LinkEdge,
    RouterNode,
    SubscriberSite,
    nearest_name,
)
from router.whatif.model.validation import KEYS, model_findings
from router.whatif.model.value_kinds import amount_of, kind_findings, names_of, shown, with_plain_values

_T = TypeVar("_T", bound=attrs.AttrsInstance)


class ModelError(SettingsError):
    """A model that can't be, or a change that can't be made to it; `findings` has all that is wrong."""


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
    plain = map(with_plain_values, items)
    whole = (attrs.evolve(it, links=tuple(sorted(it.links)), routers=tuple(sorted(it.routers))) for it in plain)
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
    """Counters of a snapshot of a live mesh; empty in other models."""
    origin: str = attrs.field(default="", eq=False)
    """Origin of the model, for reports. Not part of what it is: equal models may have different origins."""

    @property
    def has_capacities(self) -> bool:
        """Whether it is known of any link what it can carry; else utilisation is relative to the busiest link."""
        return any(link.has_capacity for link in self.links)

    @property
    def unknown_capacities(self) -> int:
        """Number of links of which it is not known what they can carry: they count as never busy."""
        return sum(not link.has_capacity for link in self.links)

    def check(self) -> None:
        """Check whether the model can be used.

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
        if field.name == "cost_back" and value is None:
            continue  # so that models whose costs have no direction are known by what they always were
        found[field.name] = float(value) + 0.0 if is_amount else value
    return found


# Changed models. Each is checked, so what can't be raises ModelError.


def with_costs(model: Model, costs: Mapping[str, int]) -> Model:
    """The model with other costs of some links, in both directions.

    Args:
        model: has the links.
        costs: whole numbers from 1, by link id.
    Raises: ModelError for a link that isn't there, and for what is no cost.
    """
    if not isinstance(costs, Mapping):
        raise _refused("links", shown(costs), "a dict of costs by link id, such as {'A--B': 5}")
    _refuse_unknown("links", costs, (link.id for link in model.links))
    changed = {
        link.id: attrs.evolve(link, cost=costs[link.id], cost_back=None) for link in model.links if link.id in costs
    }
    sound = {link.id: link for link in _sound("links", changed.values())}
    return _checked(attrs.evolve(model, links=(sound.get(link.id, link) for link in model.links)))


def with_links(model: Model, links: object) -> Model:
    """The model with more links.

    Args:
        model: has the routers.
        links: each a `LinkEdge`, a text as `A,B,2,delay_ms=5`, `(a, b)`, `(a, b, cost)` or a dict of fields of
            LinkEdge; one of them alone is one link. What comes without an id gets the next usual one that is free; a
            cost is 1 unless it is said.
    Raises: ModelError for what is none of these, and when a link can't be added.
    """
    try:
        added = added_links(links, (router.id for router in model.routers), (link.id for link in model.links))
    except AddedLinkError as error:
        raise ModelError([attrs.evolve(error.finding, key="links")]) from None
    return _checked(attrs.evolve(model, links=(*model.links, *_sound("links", added))))


def without(model: Model, *, links: str | Iterable[str] = (), routers: str | Iterable[str] = ()) -> Model:
    """The model without some links and routers, and without all that belongs to them.

    That is a router's links, subscribers and demands from it and to it, counters, places in groups. Groups that are
    empty then go too.

    Args:
        model: has all of them.
        links: ids of links; one alone may be given as it is.
        routers: ids of routers, likewise.
    Raises: ModelError for what the model hasn't.
    """
    gone_links, gone_routers = _names("links", links), _names("routers", routers)
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
        model: has the routers and addresses.
        added: each takes the place of what its address has at its router, if there is something.
        removed: (address, router) where there are none any more.
    """
    gone = set(removed)
    there = {(site.address, site.router): site for site in model.subscribers}
    _refuse_unknown("subscribers", map(" at ".join, gone), map(" at ".join, there))
    new = {(site.address, site.router): site for site in _all_are(SubscriberSite, "subscribers", added)}
    kept = {place: site for place, site in there.items() if place not in gone}
    return _checked(attrs.evolve(model, subscribers=({**kept, **new}).values()))


def with_demands(model: Model, demands: Iterable[Demand]) -> Model:
    """The model with these demands instead of its own."""
    demands = demands if isinstance(demands, Demands) else _all_are(Demand, "demands", demands)
    return _checked(attrs.evolve(model, demands=demands))


def with_groups(model: Model, groups: Iterable[Group]) -> Model:
    """The model with these groups instead of its own."""
    return _checked(attrs.evolve(model, groups=_all_are(Group, "groups", groups)))


def grown(model: Model, factor: float) -> Model:
    """Make the model of grown traffic.

    Args:
        model: with the traffic of now.
        factor: of the messages of every demand, 0 to 1000000.
    Raises: ModelError when the factor, or what it leads to, is out of range.
    """
    amount = amount_of(factor)
    if amount is None or not 0 <= amount <= 1e6:
        said = f"growth by {shown(factor) if amount is None else factor}"
        raise _refused("demands", said, "a factor from 0 to 1000000")
    return _checked(attrs.evolve(model, demands=model.demands.grown(amount)))


def _checked(model: Model) -> Model:
    model.check()
    return model


def _place(*path: str | int) -> Place:
    return Place(file=None, line=None, path=path)


def _refused(what: str, message: str, expected: str) -> ModelError:
    return ModelError([_place(what).finding(message, expected=expected)])


def _names(what: str, given: object) -> set[str]:
    """Raises: ModelError for what are no names."""
    found = names_of(given)
    if found is None:
        raise _refused(what, shown(given), f"ids of {what}: a list of texts, or one text")
    return set(found)


def _sound(part: str, items: Iterable[_T]) -> list[_T]:
    """Elements as they can be put among others, which are sorted by their texts.

    Raises: ModelError for values of another kind than those of their field.
    """
    found = [with_plain_values(item) for item in items]
    findings: list[Finding] = []
    for number, item in enumerate(found):
        key = map(str, KEYS[part](item)) if part in KEYS else (number,)
        findings += kind_findings(item, _place(part, *key))
    if findings:
        raise ModelError(findings)
    return found


def _all_are(kind: type[_T], what: str, items: object) -> list[_T]:
    """Refuse what is no list of elements: texts and dicts, which callers without a type checker may give.

    Raises: ModelError that shows the first one, and has the names of the fields; or each value of another kind.
    """
    if isinstance(items, kind):
        items = [items]
    if isinstance(items, Iterable) and not isinstance(items, str | Mapping):
        found: list[Any] = list(items)
        others = [each for each in found if not isinstance(each, kind)]
    else:
        found, others = [], [items]
    if others:
        fields = ", ".join(kind.__annotations__)
        raise _refused(what, shown(others[0]), f"a list of {kind.__name__}, made of {fields}")
    return _sound(what, found)


def _refuse_unknown(what: str, named: Iterable[str], known: Iterable[str]) -> None:
    """Raises: ModelError for each name that is not known."""
    there = list(known)
    missing = sorted(set(map(str, named)).difference(there))
    if missing:
        word = what.removesuffix("s")
        raise ModelError(
            _place(what, name).finding(
                f"the model has no {word} `{name}`",
                expected=f"a {word} of the model",
                nearest=nearest_name(name, there),
            )
            for name in missing
        )
