"""Models for tests: small ones by hand, any by hypothesis."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from mesh_config.models import Treatment
from router.whatif.model.demands import Demand
from router.whatif.model.elements import (
    AddressNode,
    Group,
    GroupKind,
    LinkCounter,
    LinkEdge,
    RouterNode,
    SubscriberSite,
    link_ids,
)
from router.whatif.model.mesh_model import Model

DATA = Path(__file__).parent / "data"
ZOO = DATA / "topology-zoo"
TOPOHUB = DATA / "topohub"


def edges(*ends: str, cost: int = 1) -> list[LinkEdge]:
    """Links by their ends, `AB` from A to B."""
    pairs = [(pair[0], pair[1]) for pair in ends]
    return [
        LinkEdge(id=text, a=min(pair), b=max(pair), cost=cost)
        for text, pair in zip(link_ids(pairs), pairs, strict=True)
    ]


def square() -> Model:
    """A - B - C - D - A, with one of everything."""
    return Model(
        name="square",
        routers=[RouterNode(id=name, site="east" if name in "AB" else None) for name in "ABCD"],
        links=edges("AB", "BC", "CD", "AD"),
        addresses=[AddressNode(text="orders", treatment=Treatment.CLOSEST)],
        subscribers=[SubscriberSite(address="orders", router="C", count=2, credit=100, service_ms=0.5)],
        demands=[
            Demand(src="A", dst="C", msgs_per_s=10.0, msg_bytes=100.0),
            Demand(src="B", address="orders", msgs_per_s=2.5, msg_bytes=1000.0, klass="rpc"),
        ],
        groups=[Group(name="duct", kind=GroupKind.SRLG, links=("A--B", "B--C"), routers=("D",), failures_per_year=0.5)],
        counters=[LinkCounter(link="A--B", src="A", messages=7, bytes=None)],
    )


names = st.text("abcXYZ019-é", min_size=1, max_size=4)
amounts = st.floats(0, 1e6)
optional_amounts = st.none() | amounts


@st.composite
def models(draw: st.DrawFn) -> Model:
    """Any model that can be used."""
    ids = draw(st.lists(names, unique=True, min_size=2, max_size=6))
    one, other = st.sampled_from(ids), st.sampled_from(ids)
    pairs = [pair for pair in draw(st.lists(st.tuples(one, other), max_size=10)) if pair[0] != pair[1]]
    texts = draw(st.lists(names, unique=True, max_size=3))
    places = st.tuples(st.sampled_from(texts or [""]), one)
    links = [
        LinkEdge(
            id=f"{number}:{text}",
            a=min(pair),
            b=max(pair),
            cost=draw(st.integers(1, 65535)),
            delay_ms=draw(optional_amounts),
            failures_per_year=draw(optional_amounts),
        )
        for number, (text, pair) in enumerate(zip(link_ids(pairs), pairs, strict=True))
    ]
    demands = [
        Demand(src=src, dst=dst, msgs_per_s=draw(amounts), msg_bytes=draw(amounts), klass=draw(names))
        for src, dst in draw(st.lists(st.tuples(one, other), max_size=8))
        if src != dst
    ]
    if texts:
        demands += [
            Demand(src=src, address=text, msgs_per_s=draw(amounts), msg_bytes=draw(amounts))
            for text, src in draw(st.lists(places, max_size=4))
        ]
    return Model(
        name=draw(names),
        routers=[RouterNode(id=name, latitude=draw(st.none() | st.floats(-90, 90))) for name in ids],
        links=links,
        addresses=[AddressNode(text=text, treatment=draw(st.sampled_from(Treatment))) for text in texts],
        subscribers=[
            SubscriberSite(address=text, router=router, credit=draw(st.none() | st.integers(0, 1000)))
            for text, router in (draw(st.lists(places, unique=True, max_size=4)) if texts else [])
        ],
        demands=demands,
        groups=[
            Group(name=name, kind=draw(st.sampled_from(GroupKind)), routers=tuple(draw(st.sets(one, min_size=1))))
            for name in draw(st.lists(names, unique=True, max_size=3))
        ],
        counters=[LinkCounter(link=link.id, src=link.a, messages=draw(st.integers(0, 2**63 - 1))) for link in links],
    )
