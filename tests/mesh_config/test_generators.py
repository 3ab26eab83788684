"""Meshes of well-known shapes."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh_config import generators
from mesh_config.check import check_mesh
from mesh_config.connector_matching import is_loopback
from mesh_config.generators import KINDS, generate
from mesh_config.graph import costs, topology

COUNTS = st.integers(1, 12)


@given(st.sampled_from(sorted(KINDS.keys() - {"fat-tree"})), COUNTS, st.integers(0, 5))
def test_every_mesh_is_whole_and_without_findings(kind: str, routers: int, seed: int) -> None:
    mesh = generate(kind, routers, seed=seed, base_port=3000)
    assert check_mesh(mesh) == ()
    assert len(mesh.routers) == routers
    assert nx.is_connected(topology(mesh))
    ports = [listener.port for router in mesh.routers.values() for listener in router.listeners]
    assert sorted(ports) == list(range(3000, 3000 + 2 * routers))
    assert all(
        is_loopback(end.host) for router in mesh.routers.values() for end in router.listeners + router.connectors
    )


@pytest.mark.parametrize(
    ("kind", "routers", "expected"),
    [
        ("line", 6, nx.path_graph(6)),
        ("ring", 6, nx.cycle_graph(6)),
        ("ring", 2, nx.path_graph(2)),
        ("ring", 1, nx.path_graph(1)),
        ("star", 6, nx.star_graph(5)),
        ("tree", 15, nx.balanced_tree(2, 3)),
        ("full", 6, nx.complete_graph(6)),
        ("chords", 4, nx.complete_graph(4)),
        ("chords", 2, nx.path_graph(2)),
        ("fat-tree", 5, nx.path_graph(5)),
    ],
)
def test_shapes_are_those_of_the_books(kind: str, routers: int, expected: nx.Graph[int]) -> None:
    assert nx.is_isomorphic(topology(generate(kind, routers)), expected)


def test_a_fat_tree_has_full_bandwidth_between_pods() -> None:
    graph = topology(generate("fat-tree", 45))
    degrees = sorted(graph.degree(node) for node in graph)
    assert degrees == [3] * 18 + [6] * 27, "k/2 at the edge; k in the core and above the edge"
    assert nx.diameter(graph) == 4


def test_chords_make_any_two_routers_near() -> None:
    graph = topology(generate("chords", 300, seed=1))
    assert len(graph.edges) == 600
    assert nx.diameter(graph) < 10
    assert set(graph.edges) == set(topology(generate("chords", 300, seed=1)).edges)
    assert set(graph.edges) != set(topology(generate("chords", 300, seed=2)).edges)


@pytest.mark.parametrize(
    ("routers", "nearest"), [(1, 5), (4, 5), (12, 5), (13, 20), (19, 20), (21, 20), (44, 45), (46, 45), (124, 125)]
)
def test_a_fat_tree_names_the_nearest_possible_size(routers: int, nearest: int) -> None:
    count = "1 router" if routers == 1 else f"{routers} routers"
    with pytest.raises(ValueError, match=rf"^no fat tree has {count}; the nearest has {nearest}$"):
        generators.fat_tree(routers)


def test_a_full_mesh_has_no_more_routers_than_a_file_has_room_for() -> None:
    with pytest.raises(ValueError, match=r"^a full mesh of 1001 routers has 500,500 links: 1000 routers at most$"):
        generators.full(1001)


def test_a_seed_gives_the_same_mesh_and_another_seed_another() -> None:
    assert generate("geometric", 20, seed=1) == generate("geometric", 20, seed=1)
    assert generate("geometric", 20, seed=1) != generate("geometric", 20, seed=2)


def test_costs_of_a_geometric_mesh_are_lengths() -> None:
    graph = topology(generators.geometric(60, seed=4))
    lengths = {cost for _, _, cost in costs(graph)}
    assert len(lengths) > 3
    assert all(1 <= cost <= 100 for cost in lengths)


@pytest.mark.parametrize(
    ("routers", "base_port", "message"),
    [(0, 2000, "routers must be at least 1"), (2, 0, "need ports"), (10, 65530, "need ports up to 65549")],
)
def test_meshes_whose_ports_do_not_fit_are_refused(routers: int, base_port: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        generate("line", routers, base_port=base_port)


def test_a_tree_has_branches() -> None:
    with pytest.raises(ValueError, match="branches"):
        generators.tree(3, branches=0)
    assert nx.is_isomorphic(topology(generators.tree(4, branches=3)), nx.star_graph(3))
