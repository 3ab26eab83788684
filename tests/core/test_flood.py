"""Multicasts in meshes of routers that keep to trees and routers that flood: each gets every message once.

`carry` is a model of both. What real qdrouterds did in the same meshes is in docs/explanation/deviations.md.
"""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from router.core.ids_and_conditions import RouterId
from router.core.linkstate.multicast_copy_predictor import MulticastCopyPredictor
from router.core.linkstate.spf import Topology

Copy = tuple[RouterId, RouterId, tuple[RouterId, ...]]
"""By whom it is sent, who gets it, its trace."""
RING_4 = ("01", "12", "23", "30")
RING_5 = ("01", "12", "23", "34", "40")
TRIANGLE = ("01", "12", "20")
TWO_RINGS = ("01", "12", "23", "30", "24", "45", "53")


def mesh(edges: tuple[str, ...], flooding: str) -> Topology:
    """Routers O and Q by number; those of *flooding* are Q."""

    def name(number: str) -> RouterId:
        return RouterId(("Q" if number in flooding else "O") + number)

    peers: dict[RouterId, dict[RouterId, int]] = {}
    for one, other in edges:
        peers.setdefault(name(one), {})[name(other)] = 1
        peers.setdefault(name(other), {})[name(one)] = 1
    topology = Topology()
    topology.replace({router: dict(sorted(peers[router].items())) for router in sorted(peers)})
    return topology


def is_flooding(router: RouterId) -> bool:
    return router.startswith("Q")


def carry(topology: Topology, ingress: RouterId, subscribers: set[RouterId]) -> Counter[RouterId]:
    """How often each router takes a message that enters at *ingress*, which takes it itself."""
    taken = Counter({ingress: 1})
    under_way = _onward(topology, ingress, subscribers, ingress, ())
    while under_way:
        sender, router, trace = under_way.pop(0)
        paths = topology.paths(router)
        assert paths is not None
        if is_flooding(router):
            if len(trace) > paths.radius + 1:
                continue
        elif router == ingress or topology.tree(ingress, router).predecessor != sender:
            continue
        taken[router] += 1
        under_way += _onward(topology, router, subscribers, ingress, trace)
    return taken


def _onward(
    topology: Topology, router: RouterId, subscribers: set[RouterId], ingress: RouterId, trace: tuple[RouterId, ...]
) -> list[Copy]:
    onward = (*trace, router)
    paths = topology.paths(router)
    assert paths is not None
    if is_flooding(router):
        hops = sorted({paths.next_hop[one] for one in subscribers if one != router})
        return [(router, hop, onward) for hop in hops if hop not in onward]
    copies: list[Copy] = []
    for child, below in topology.tree(ingress, router).children.items():
        if below & subscribers:
            found: tuple[RouterId, ...] | None = ()
            if is_flooding(child):
                found = MulticastCopyPredictor(topology, subscribers | {router}, is_flooding).trace(
                    ingress, router, child
                )
            if found is not None:
                copies.append((router, child, found or onward))
    return copies


@pytest.mark.parametrize("edges", [TRIANGLE, RING_4, RING_5, TWO_RINGS], ids=["triangle", "ring-4", "ring-5", "rings"])
def test_a_multicast_comes_once_wherever_flooding_routers_are(edges: tuple[str, ...]) -> None:
    numbers = sorted(set("".join(edges)))
    most = 3 if edges is TWO_RINGS else len(numbers)  # with more their traces get longer than they take
    for count in range(most):
        for flooding in itertools.combinations(numbers, count):
            topology = mesh(edges, "".join(flooding))
            everybody = set(topology.edges)
            for ingress in sorted(everybody):
                got = carry(topology, ingress, everybody)
                if is_flooding(ingress) and _has_cycle(topology):
                    assert set(got) == everybody  # what they send twice themselves, nobody can tell apart
                else:
                    assert got == Counter(everybody), (flooding, ingress)


@pytest.mark.parametrize("edges", [TRIANGLE, RING_4, RING_5, TWO_RINGS], ids=["triangle", "ring-4", "ring-5", "rings"])
def test_no_subscriber_is_left_out_whichever_routers_have_some(edges: tuple[str, ...]) -> None:
    numbers = sorted(set("".join(edges)))
    for flooding in itertools.combinations(numbers, 2):
        topology = mesh(edges, "".join(flooding))
        for size in (1, 2, 3):
            for chosen in itertools.combinations(sorted(topology.edges), size):
                for ingress in sorted(topology.edges):
                    got = carry(topology, ingress, set(chosen))
                    assert set(chosen) <= set(got), (flooding, chosen, ingress)


def test_where_a_trace_cannot_name_all_one_child_gets_the_copy_and_floods_it() -> None:
    topology = mesh(("01", "02", "03", "12", "13", "23"), "123")
    assert carry(topology, RouterId("O0"), set(topology.edges)) == Counter(topology.edges.keys())


def _has_cycle(topology: Topology) -> bool:
    """Whether flooding routers are joined in a circle."""
    flooding = {router for router in topology.edges if is_flooding(router)}
    joined = sum(peer in flooding for router in flooding for peer in topology.edges[router]) // 2
    return joined >= len(flooding) > 0
