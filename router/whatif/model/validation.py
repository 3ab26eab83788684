"""Validation of a model: each value by itself, then how they fit each other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from mesh_config.findings import Finding
from mesh_config.value_rules import fault_of, fields_of
from mesh_config.yaml_text import Place
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
from router.whatif.model.value_kinds import kind_findings

SHOWN: Final = 20
"""Faults of one kind that are told one by one; more would bury the others."""

MICRO: Final = 1e6
"""Rates are added up as whole millionths, exactly, in 64 bits; so many bytes that this would not do, as whole bytes."""
MAX_MSGS_PER_S: Final = 2**62 / MICRO
MAX_BYTES_PER_S: Final = 2**82 / MICRO
"""The kernel's own bounds, `MAX_RATE` and `MAX_BYTE_SHIFT`."""

KEYS: Final[Mapping[str, Callable[[Any], tuple[str, ...]]]] = {
    "routers": lambda it: (it.id,),
    "links": lambda it: (it.id,),
    "addresses": lambda it: (it.text,),
    "subscribers": lambda it: (it.address, it.router),
    "groups": lambda it: (it.name,),
    "counters": lambda it: (it.link, it.src),
}
"""Fields by which an item of each part of a model is known."""


class Parts(Protocol):
    """Parts of a model."""

    @property
    def routers(self) -> tuple[RouterNode, ...]:
        """Routers in the order of ids."""

    @property
    def links(self) -> tuple[LinkEdge, ...]:
        """Links between routers, in the order of ids."""

    @property
    def addresses(self) -> tuple[AddressNode, ...]:
        """Addresses to which messages are sent."""

    @property
    def subscribers(self) -> tuple[SubscriberSite, ...]:
        """Subscribers of addresses at routers."""

    @property
    def demands(self) -> Demands:
        """Demands of publishers."""

    @property
    def groups(self) -> tuple[Group, ...]:
        """Groups of links and routers."""

    @property
    def counters(self) -> tuple[LinkCounter, ...]:
        """Counters of links, by link and sender."""


def model_findings(model: Parts) -> Iterator[Finding]:
    """All that is wrong with *model*, by part of it."""
    for part in KEYS:
        yield from _values(part, getattr(model, part))
    routers = dict.fromkeys(router.id for router in model.routers)
    links = {link.id: link for link in model.links}
    addresses = dict.fromkeys(address.text for address in model.addresses)
    if not routers:
        yield _place("routers").finding("no router", expected="at least one")
    for link in model.links:
        yield from _link(link, routers)
    for site in model.subscribers:
        at = _place("subscribers", site.address, site.router)
        yield from _unknown(at, "router", site.router, routers)
        yield from _unknown(at, "address", site.address, addresses)
    for group in model.groups:
        at = _place("groups", group.name)
        for link_id in group.links:
            yield from _unknown(at, "link", link_id, links, field="links")
        for router in group.routers:
            yield from _unknown(at, "router", router, routers, field="routers")
        if len(set(group.links)) != len(group.links) or len(set(group.routers)) != len(group.routers):
            yield at.finding("a member is given twice", expected="each member once")
        if not group.links and not group.routers:
            yield at.finding("nothing belongs to it", expected="`links` or `routers`")
    for row in model.counters:
        at = _place("counters", row.link)
        yield from _unknown(at, "link", row.link, links)
        if row.link in links and row.src not in (links[row.link].a, links[row.link].b):
            yield at.finding(f"router `{row.src}` is no end of it", expected="one of its ends", at=("src",))
    yield from demand_findings(model.demands, routers, addresses)


def demand_findings(demands: Demands, routers: Collection[str], addresses: Collection[str]) -> Iterator[Finding]:
    """Find what is wrong with demands between these routers and to these addresses."""
    is_router = demands.places(list(routers)) != NOBODY
    is_address = demands.places(list(addresses)) != NOBODY
    has_dst, has_address = demands.dst != NOBODY, demands.address != NOBODY
    # NOBODY takes the last name: the second half of each condition puts that right.
    for field, wrong, known in (
        ("src", ~is_router[demands.src] if len(demands) else has_dst, routers),
        ("dst", has_dst & ~is_router[demands.dst] if len(demands) else has_dst, routers),
        ("address", has_address & ~is_address[demands.address] if len(demands) else has_dst, addresses),
    ):
        word = "address" if field == "address" else "router"
        for number in _some(wrong):
            name = str(getattr(demands[number], field))
            yield from _unknown(_place("demands", number), word, name, known, field=field)
        yield from _more(wrong, f"demands have a {field} that is not in the model")
    wrong = has_dst == has_address
    for number in _some(wrong):
        said = "both `dst` and `address`" if has_dst[number] else "neither `dst` nor `address`"
        yield _place("demands", number).finding(said, expected="one of them")
    yield from _more(wrong, "demands have both or none of `dst` and `address`")
    wrong = has_dst & (demands.src == demands.dst)
    for number in _some(wrong):
        yield _place("demands", number, "dst").finding(
            f"`{demands[number].dst}` is where the messages come from", expected="another router"
        )
    yield from _more(wrong, "demands lead to where they come from")
    yield from _amounts(demands)


def _amounts(demands: Demands) -> Iterator[Finding]:
    is_sound = True
    for field in fields_of(Demand):
        values = getattr(demands, field.name)
        if values.dtype != np.float64:
            continue
        low, high = field.metadata["low"], field.metadata["high"]
        wrong = ~((values >= low) & (values <= high))  # NaN, which compares with nothing, is wrong too
        is_sound = is_sound and not wrong.any()
        for number in _some(wrong):
            fault = fault_of(field, float(values[number]))
            assert fault is not None, "the same range"
            at = _place("demands", number, field.name)
            yield at.finding(fault.message, expected=fault.expected, nearest=fault.nearest)
        yield from _more(wrong, f"demands have a {field.name} out of range")
    if is_sound:
        for unit, amounts, most in (
            ("msg/s", demands.msgs_per_s, MAX_MSGS_PER_S),
            ("bytes/s", demands.msgs_per_s * demands.msg_bytes, MAX_BYTES_PER_S),
        ):
            if amounts.sum() > most:
                message = f"all demands together come to {amounts.sum():.3g} {unit}"
                yield _place("demands").finding(message, expected=f"at most {most:.3g}")


def _values(part: str, items: tuple[Any, ...]) -> Iterator[Finding]:
    """Values of another kind or out of their range, and keys that occur twice."""
    seen: set[object] = set()
    for item in items:
        key = KEYS[part](item)
        at = _place(part, *key)
        if key in seen:
            yield at.finding("it occurs twice", expected="each once")
        seen.add(key)
        others = list(kind_findings(item, at))
        yield from others
        if others:
            continue
        for field in fields_of(type(item)):
            fault = fault_of(field, getattr(item, field.name))
            if fault is not None:
                yield at.finding(fault.message, expected=fault.expected, nearest=fault.nearest, at=(field.name,))


def _link(link: LinkEdge, routers: Collection[str]) -> Iterator[Finding]:
    at = _place("links", link.id)
    if link.a == link.b:
        yield at.finding(f"router `{link.a}` is both ends of it", expected="two routers")
    elif link.a > link.b:
        yield at.finding(f"`a` is `{link.a}` and `b` is `{link.b}`", expected="the smaller id as `a`", nearest=link.b)
    for field, router in (("a", link.a), ("b", link.b)):
        yield from _unknown(at, "router", router, routers, field=field)


def _unknown(at: Place, what: str, name: str, known: Collection[str], *, field: str | None = None) -> Iterator[Finding]:
    if name not in known:
        yield at.finding(
            f"no {what} `{name}`",
            expected=f"{'an' if what == 'address' else 'a'} {what} of the model",
            nearest=nearest_name(name, known),
            at=(field or what,),
        )


def _some(wrong: NDArray[np.bool_]) -> list[int]:
    return [int(number) for number in np.flatnonzero(wrong)[:SHOWN]]


def _more(wrong: NDArray[np.bool_], what: str) -> Iterator[Finding]:
    count = int(np.count_nonzero(wrong))
    if count > SHOWN:
        yield _place("demands").finding(f"{count} {what}, the first {SHOWN} are shown")


def _place(*path: str | int) -> Place:
    return Place(file=None, line=None, path=path)
