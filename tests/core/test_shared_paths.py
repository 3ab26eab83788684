"""Paths that planes share are the paths that each would have found, whatever has changed in between."""

from __future__ import annotations

import random

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.core.ids_and_conditions import RouterId
from router.core.linkstate.spf import Edges, Paths, Topology
from router.simulation import shared_paths
from router.simulation.mesh import Mesh
from router.simulation.mesh_invariants import differences, settled
from router.simulation.shared_paths import GraphStore, SharedTopology

Links = dict[tuple[int, int], int]


def edges_of(links: Links, routers: set[int]) -> dict[RouterId, dict[RouterId, int]]:
    """Both directions of each link; the way back may have a cost of its own."""
    edges: dict[RouterId, dict[RouterId, int]] = {RouterId(f"r{number}"): {} for number in sorted(routers)}
    for (near, far), cost in links.items():
        if near in routers and far in routers:
            edges[RouterId(f"r{near}")][RouterId(f"r{far}")] = cost
            edges[RouterId(f"r{far}")][RouterId(f"r{near}")] = cost if (near + far) % 5 else cost + 1
    return edges


def assert_same(found: Paths | None, wanted: Paths | None) -> None:
    assert found == wanted
    if found is not None and wanted is not None:
        assert found.order == wanted.order


@st.composite
def histories(draw: st.DrawFn) -> list[Edges]:
    """A graph, and what becomes of it."""
    count = draw(st.integers(1, 12))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda it: it[0] < it[1])
    links: Links = {}
    routers = set(range(count))
    if count > 1:
        links = draw(st.dictionaries(pairs, st.integers(1, 4), max_size=30))
    found = [edges_of(links, routers)]
    for _ in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(("add", "drop", "cost", "kill", "start", "nothing")))
        number = draw(st.integers(0, count - 1))
        if kind == "add" and count > 1:
            links = {**links, draw(pairs): draw(st.integers(1, 4))}
        elif kind in ("drop", "cost") and links:
            chosen = sorted(links)[number % len(links)]
            links = {**links, chosen: draw(st.integers(1, 6))}
            if kind == "drop":
                del links[chosen]
        elif kind == "kill":
            routers = routers - {number}
        elif kind == "start":
            routers = routers | {number}
        found.append(edges_of(links, routers))
    return found


@given(histories(), st.integers(0, 11))
def test_repaired_paths_are_those_that_a_search_finds(history: list[Edges], number: int) -> None:
    root = RouterId(f"r{number}")
    own, shared = Topology(), SharedTopology(GraphStore())
    for edges in history:
        assert own.replace(edges) == shared.replace(edges)
        assert_same(shared.paths(root), own.paths(root))
        shared.check_invariants()
        assert own.runs == shared.runs


@pytest.mark.parametrize("seed", range(4))
def test_repairs_add_up_to_no_error_in_a_mesh_of_a_hundred(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    graph = nx.random_regular_graph(4, 100, seed=seed)
    links = {(min(pair), max(pair)): rng.randint(1, 5) for pair in graph.edges}
    searched: list[RouterId] = []
    search = shared_paths.found_anew
    monkeypatch.setattr(shared_paths, "found_anew", lambda edges, root: searched.append(root) or search(edges, root))
    own, shared = Topology(), SharedTopology(GraphStore())
    routers = set(range(100))
    for step in range(60):
        edges = edges_of(links, routers)
        own.replace(edges)
        shared.replace(edges)
        for root in ("r0", "r50"):
            assert_same(shared.paths(RouterId(root)), own.paths(RouterId(root)))
        match step % 4:
            case 0:
                del links[rng.choice(sorted(links))]
            case 1:
                routers -= {rng.choice(sorted(routers - {0, 50}))}
            case 2:
                links[rng.choice(sorted(links))] = rng.randint(1, 9)
            case 3:
                links[rng.choice([(near, far) for near in range(40) for far in range(60, 99)])] = 1
    assert len(searched) == 2  # the first time; the rest was repaired


def test_planes_with_the_same_news_share_one_graph_and_its_paths() -> None:
    store = GraphStore()
    edges = edges_of({(0, 1): 1, (1, 2): 1}, {0, 1, 2})
    one, other = SharedTopology(store), SharedTopology(store)
    one.replace(edges)
    other.replace({router: dict(peers) for router, peers in edges.items()})
    assert one.edges is other.edges
    assert one.paths(RouterId("r1")) is other.paths(RouterId("r1"))
    # Each counts what a router that is alone would have done.
    assert (one.runs, other.runs) == (1, 1)


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_mesh_of_planes_that_share_runs_as_one_of_planes_that_do_not(is_shared: bool) -> None:
    def run(is_shared: bool) -> list[object]:
        graph = nx.random_regular_graph(3, 16, seed=2)
        mesh = Mesh.of_edges([(f"r{a:02}", f"r{b:02}", 1 + (a + b) % 3) for a, b in graph.edges], is_shared=is_shared)
        for act in (lambda: None, lambda: mesh.kill("r03"), lambda: mesh.disconnect(mesh.wires[7])):
            act()
            mesh.run_until_true(settled(mesh), limit_s=5.0)
            assert not differences(mesh)
        mesh.restart("r03")
        mesh.run_for(5.0)
        mesh.check_invariants()
        return [(router.id, router.forwarding.changed_at, router.plane.counters()) for router in mesh.living()]

    assert run(is_shared) == run(not is_shared)
