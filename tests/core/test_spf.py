"""Shortest paths: networkx's distances, one choice among equals at every router, trees that fit together."""

from __future__ import annotations

import random

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.core.ids_and_conditions import RouterId
from router.core.linkstate.spf import Edges, Paths, Topology
from tests.helpers.work import instructions

A, B, C, D, E, F = (RouterId(name) for name in "ABCDEF")


def symmetric(*wires: tuple[str, str, int]) -> dict[RouterId, dict[RouterId, int]]:
    edges: dict[RouterId, dict[RouterId, int]] = {}
    for near, far, cost in wires:
        edges.setdefault(RouterId(near), {})[RouterId(far)] = cost
        edges.setdefault(RouterId(far), {})[RouterId(near)] = cost
    return edges


def topology(edges: Edges) -> Topology:
    made = Topology()
    made.replace(edges)
    return made


def paths(edges: Edges, root: str) -> Paths:
    found = topology(edges).paths(RouterId(root))
    assert found is not None
    return found


@st.composite
def graphs(draw: st.DrawFn) -> dict[RouterId, dict[RouterId, int]]:
    count = draw(st.integers(2, 9))
    names = [f"r{number}" for number in range(count)]
    wires = draw(
        st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names), st.integers(1, 3)), min_size=1, max_size=20)
    )
    edges = symmetric(*(wire for wire in wires if wire[0] != wire[1]))
    for name in names:
        edges.setdefault(RouterId(name), {})
    return edges


# Each with next hops from A and, for some roots, what the neighbors of A find behind it.
GOLDEN = {
    "line": (symmetric(("A", "B", 1), ("B", "C", 1)), {B: B, C: B}, 2),
    "triangle": (symmetric(("A", "B", 1), ("B", "C", 1), ("A", "C", 1)), {B: B, C: C}, 1),
    "costly side": (symmetric(("A", "B", 1), ("B", "C", 1), ("A", "C", 3)), {B: B, C: B}, 2),
    "square": (symmetric(("A", "B", 1), ("A", "C", 1), ("B", "D", 1), ("C", "D", 1)), {B: B, C: C, D: B}, 2),
    # D is as near by C, which is nearer to A than B: the predecessor nearest to the root wins before the lowest id.
    "nearest predecessor": (
        symmetric(("A", "B", 2), ("A", "C", 1), ("B", "D", 1), ("C", "D", 2)),
        {B: B, C: C, D: C},
        2,
    ),
    "island": ({**symmetric(("A", "B", 1)), **symmetric(("C", "D", 1))}, {B: B}, 1),
    "ladder": (
        symmetric(
            ("A", "B", 1), ("C", "D", 1), ("E", "F", 1), ("A", "C", 1), ("C", "E", 1), ("B", "D", 1), ("D", "F", 1)
        ),
        {B: B, C: C, D: B, E: C, F: B},
        3,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GOLDEN)
def test_next_hops_and_radius(name: str) -> None:
    edges, next_hops, radius = GOLDEN[name]
    found = paths(edges, "A")
    assert found.next_hop == next_hops
    assert found.radius == radius


@given(graphs())
def test_distances_are_those_of_networkx(edges: dict[RouterId, dict[RouterId, int]]) -> None:
    graph = nx.DiGraph()
    graph.add_nodes_from(edges)
    for near, peers in edges.items():
        for far, cost in peers.items():
            graph.add_edge(near, far, weight=cost)
    made = topology(edges)
    for root in edges:
        found = made.paths(root)
        assert found is not None
        assert found.distance == nx.single_source_dijkstra_path_length(graph, root)
    made.check_invariants()


@given(graphs(), st.randoms(use_true_random=False))
def test_the_order_of_edges_changes_nothing(edges: dict[RouterId, dict[RouterId, int]], rng: random.Random) -> None:
    routers = list(edges)
    rng.shuffle(routers)
    shuffled: dict[RouterId, dict[RouterId, int]] = {}
    for router in routers:
        peers = list(edges[router].items())
        rng.shuffle(peers)
        shuffled[router] = dict(peers)
    for root in edges:
        assert paths(shuffled, root) == paths(edges, root)


@given(graphs(), st.randoms(use_true_random=False))
def test_other_ids_in_the_same_order_give_the_same_trees(
    edges: dict[RouterId, dict[RouterId, int]], rng: random.Random
) -> None:
    fresh = sorted(rng.sample([f"{x}{y}" for x in "pqrs" for y in "abcdefgh"], len(edges)))
    rename = dict(zip(sorted(edges), map(RouterId, fresh), strict=True))
    renamed = {rename[near]: {rename[far]: cost for far, cost in peers.items()} for near, peers in edges.items()}
    for root in edges:
        expected = {rename[router]: rename[before] for router, before in paths(edges, root).predecessor.items()}
        assert paths(renamed, rename[root]).predecessor == expected


@given(graphs())
def test_among_equal_predecessors_the_nearest_to_the_root_wins_then_the_lowest_id(
    edges: dict[RouterId, dict[RouterId, int]],
) -> None:
    for root in edges:
        found = paths(edges, root)
        for router, before in found.predecessor.items():
            candidates = [
                (found.distance[other], other)
                for other in found.distance
                if router in edges[other] and found.distance[other] + edges[other][router] == found.distance[router]
            ]
            assert (found.distance[before], before) == min(candidates)


@given(graphs())
def test_the_places_of_all_routers_in_a_tree_fit_together(edges: dict[RouterId, dict[RouterId, int]]) -> None:
    # As each router works it out for itself, from edges in another order.
    made = {router: topology(dict(sorted(edges.items(), reverse=True))) for router in edges}
    for root in edges:
        reached = {root}
        for router in edges:
            tree = made[router].tree(root, router)
            for child, below in tree.children.items():
                assert child in below
                assert router not in below
                assert made[child].tree(root, child).predecessor == router
                assert child not in reached
                reached.add(child)
            if router == root:
                everything = frozenset().union(*tree.children.values())
                assert everything | {root} == set(paths(edges, root).distance)
        assert reached == set(paths(edges, root).distance)


def test_a_root_that_is_unknown_or_unreachable_leads_nowhere() -> None:
    made = topology(GOLDEN["island"][0])
    for root in (RouterId("nobody"), C):
        tree = made.tree(root, A)
        assert tree.predecessor is None
        assert not tree.children


def test_paths_are_kept_until_the_graph_changes() -> None:
    made = topology(GOLDEN["square"][0])
    first = made.paths(A)
    assert made.replace(symmetric(("C", "D", 1), ("B", "D", 1), ("A", "C", 1), ("A", "B", 1))) is False
    assert made.paths(A) is first
    assert made.runs == 1
    assert made.replace(GOLDEN["line"][0]) is True
    assert made.paths(A) != first
    assert made.runs == 2


def test_directed_costs_are_taken_in_the_direction_of_travel() -> None:
    edges = {A: {B: 1, C: 5}, B: {A: 9, C: 1}, C: {B: 9, A: 5}}
    assert paths(edges, "A").distance == {A: 0, B: 1, C: 2}
    assert paths(edges, "C").distance == {C: 0, A: 5, B: 6}


@given(st.lists(graphs(), min_size=2, max_size=4))
def test_a_graph_that_has_changed_gives_the_same_paths_as_a_new_one(changes: list[Edges]) -> None:
    kept = Topology()
    for edges in changes:
        kept.replace(edges)
        assert all(kept.paths(root) == topology(edges).paths(root) for root in edges)
        kept.check_invariants()


def test_a_change_costs_a_small_part_of_the_whole_graph() -> None:
    count = 200
    names = [f"r{number}" for number in range(count)]
    wires = [(names[number], names[(number + step) % count], 1) for number in range(count) for step in (1, 7, 31)]
    made = Topology()
    edges = symmetric(*wires)
    whole = instructions(lambda: made.replace(edges))
    less = symmetric(*wires[1:])
    assert 3 * instructions(lambda: made.replace(less)) <= whole
