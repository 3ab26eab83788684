"""Small models for tests: built by hand, and by hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from hypothesis import strategies as st

from mesh_config.models import Treatment
from router.whatif.model.demands import Demand
from router.whatif.model.elements import AddressNode, LinkEdge, RouterNode, SubscriberSite, link_ids
from router.whatif.model.mesh_model import Model


def mesh(text: str, **parts: Any) -> Model:
    """Links as words: `A-B B-C:3 C-D~5`, with a cost of 3 and a delay of 5 ms; a router alone: `E`."""
    routers: set[str] = set()
    made: list[tuple[str, str, int, float | None]] = []
    for word in text.split():
        word, _, delay = word.partition("~")  # noqa: PLW2901
        word, _, cost = word.partition(":")  # noqa: PLW2901
        a, *rest = word.split("-")
        routers.update((a, *rest))
        if rest:
            made.append((min(a, rest[0]), max(a, rest[0]), int(cost or 1), float(delay) if delay else None))
    ids = link_ids((a, b) for a, b, _, _ in made)
    capacity = parts.pop("capacity_msgs", None)
    links = [
        LinkEdge(id=name, a=a, b=b, cost=cost, delay_ms=delay, capacity_msgs=capacity)
        for name, (a, b, cost, delay) in zip(ids, made, strict=True)
    ]
    model = Model(routers=[RouterNode(id=router) for router in routers], links=links, **parts)
    model.check()
    return model


def demand(src: str, to: str, rate: float, *, is_address: bool = True, size: float = 100.0) -> Demand:
    """Messages from a router to an address, or to a router."""
    where = {"address": to} if is_address else {"dst": to}
    return Demand(src=src, msgs_per_s=rate, msg_bytes=size, **where)


def address(text: str, treatment: Treatment = Treatment.CLOSEST) -> AddressNode:
    return AddressNode(text=text, treatment=treatment)


def site(text: str, router: str, *, credit: int | None = None, service_ms: float | None = None) -> SubscriberSite:
    return SubscriberSite(address=text, router=router, credit=credit, service_ms=service_ms)


@st.composite
def models(draw: st.DrawFn, *, most: int = 7, treatments: Sequence[Treatment] = tuple(Treatment)) -> Model:
    """Any small mesh, connected or not, with addresses, subscribers and demands."""
    names = [f"r{at}" for at in range(draw(st.integers(2, most)))]
    pairs = st.sampled_from(list(combinations(names, 2)))
    ends = draw(st.lists(pairs, max_size=2 * len(names)))
    delays = st.none() | st.sampled_from([0.0, 0.5, 2.0, 10.0])
    links = [
        LinkEdge(id=name, a=a, b=b, cost=draw(st.integers(1, 3)), delay_ms=draw(delays))
        for name, (a, b) in zip(link_ids(ends), ends, strict=True)
    ]
    addresses = [address(f"q{at}", draw(st.sampled_from(treatments))) for at in range(draw(st.integers(0, 3)))]
    sites = [
        SubscriberSite(
            address=each.text,
            router=router,
            credit=draw(st.none() | st.integers(0, 50)),
            service_ms=draw(st.none() | st.sampled_from([0.0, 1.0, 20.0])),
        )
        for each in addresses
        for router in sorted(draw(st.sets(st.sampled_from(names), max_size=3)))
    ]
    rates = st.sampled_from([0.0, 0.000001, 1.0, 33.3, 1000.0, 12345.678])
    demands = [
        demand(src, each.text, draw(rates)) for each in addresses for src in draw(st.lists(st.sampled_from(names)))
    ]
    demands += [demand(src, dst, draw(rates), is_address=False) for src, dst in draw(st.lists(pairs, max_size=6))]
    made = Model(
        routers=[RouterNode(id=name) for name in names],
        links=links,
        addresses=addresses,
        subscribers=sites,
        demands=demands,
    )
    made.check()
    return made
