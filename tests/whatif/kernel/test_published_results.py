"""The kernel agrees with what others have published and with networkx, on real topologies."""

from __future__ import annotations

import json
from collections import defaultdict
from fractions import Fraction

import attrs
import networkx as nx
import pytest

from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import MICRO, Network
from router.whatif.model.demands import Demand
from router.whatif.model.elements import LinkEdge, RouterNode
from router.whatif.model.mesh_model import Model
from tests.whatif.models import TOPOHUB, ZOO
from tests.whatif.topohub_loads import LOADS_WITHIN, largest_difference, published_kinds, router_id, topohub_model

TOPOHUB_NAMES = sorted(path.stem for path in TOPOHUB.glob("*.json"))
# Interpreted, the largest takes a minute.
ZOO_NAMES = [
    pytest.param(path.stem, marks=[pytest.mark.timeout(900)] if path.stem == "Kdl" else [])
    for path in sorted(ZOO.glob("*.graphml"))
]


@pytest.mark.parametrize("name", TOPOHUB_NAMES)
def test_loads_with_equal_splitting_are_those_of_topohub(name: str) -> None:
    found = json.loads((TOPOHUB / f"{name}.json").read_text())
    worst = {kind: largest_difference(found, kind) for kind in published_kinds(found)}
    assert "uni" in worst
    assert max(worst.values()) <= LOADS_WITHIN, f"percentage points: {worst}"


def test_single_paths_are_not_what_topohub_has() -> None:
    # Or the test above would tell nothing about splitting.
    found = json.loads((TOPOHUB / "sndlib_germany50.json").read_text())
    rates, _ = Kernel(Network.of(topohub_model(found, "uni"))).loads()
    percent = 100 * rates / rates.max()
    assert max(abs(percent[2 * number] - edge["ecmp_fwd"]["uni"]) for number, edge in enumerate(found["edges"])) > 1


def shares_by_networkx(graph: nx.MultiGraph[str], rate: int) -> dict[tuple[str, str], Fraction]:
    """Loads by link and router that sends, of the same rate between all pairs, split evenly over links: exactly."""
    loads: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for dst in graph:
        hops = nx.single_source_shortest_path_length(graph, dst)
        passing = dict.fromkeys(hops, Fraction(rate))
        for node in sorted(hops, key=hops.__getitem__, reverse=True):
            ways = [(peer, key) for _, peer, key in graph.edges(node, keys=True) if hops[peer] == hops[node] - 1]
            for peer, key in ways:
                loads[key, node] += passing[node] / len(ways)
                if peer != dst:
                    passing[peer] += passing[node] / len(ways)
    return loads


@pytest.mark.parametrize("name", ["AttMpls", "TataNld"])
@pytest.mark.parametrize("gone", [0, 2])
def test_parallel_links_share_as_a_multigraph_of_networkx_says(name: str, gone: int) -> None:
    model, graph = zoo_model(name)
    routers = [router.id for router in model.routers]
    rate = 1000
    model = attrs.evolve(
        model,
        demands=[
            Demand(src=src, dst=dst, msgs_per_s=float(rate), msg_bytes=1.0)
            for src in routers for dst in routers if src != dst
        ],
    )  # fmt: skip
    kernel = Kernel(Network.of(model), is_split=True)
    twins = [keys for one, other in graph.edges() if len(keys := sorted(graph[one][other])) > 1]
    assert twins, "a network with parallel links"
    # One of two that share, and one more.
    down = sorted({twins[0][0], twins[-1][-1]})[:gone]
    kernel.fail([kernel.network.links.index(link) for link in down], [])
    graph.remove_edges_from([(one, other, key) for one, other, key in [*graph.edges(keys=True)] if key in down])
    expected = shares_by_networkx(graph, rate)
    rates, _ = kernel.loads()
    # What can't be split evenly: a millionth for each router that splits, on the way to each destination.
    within = len(routers) ** 2
    for number, found in enumerate(rates.tolist()):
        link, src, _ = kernel.network.directed_link(number)
        assert abs(found - MICRO * expected[link, src]) <= within
    assert rates.sum() == MICRO * sum(expected.values())


def zoo_model(name: str) -> tuple[Model, nx.MultiGraph[str]]:
    """The network, without links from a router to itself, and the same for networkx."""
    read = nx.read_graphml(ZOO / f"{name}.graphml", node_type=int, force_multigraph=True)
    graph: nx.MultiGraph[str] = nx.MultiGraph()
    graph.add_nodes_from(router_id(node) for node in read)
    links = []
    for number, (one, other, *_) in enumerate(read.edges):
        a, b = sorted((router_id(one), router_id(other)))
        if a != b:
            links.append(LinkEdge(id=f"{number:05}", a=a, b=b))
            graph.add_edge(a, b, key=f"{number:05}")
    return Model(routers=[RouterNode(id=router) for router in graph], links=links), graph


@pytest.mark.parametrize("name", ZOO_NAMES)
def test_links_that_cut_the_mesh_are_the_bridges_that_networkx_finds(name: str) -> None:
    model, graph = zoo_model(name)
    kernel = Kernel(Network.of(model))
    bridges = set()
    for number, link in enumerate(kernel.network.links):
        kernel.fail([number], [])
        assert (kernel.unreachable_pairs > 0) == (kernel.components > kernel.base_components)
        assert kernel.dead_end_pairs == 0
        if kernel.unreachable_pairs:
            bridges.add(link)
        kernel.restore()
    # networkx knows no bridges of multigraphs: parallel links are none.
    simple = nx.Graph(graph)
    expected = set()
    for one, other in nx.bridges(simple):
        if graph.number_of_edges(one, other) == 1:
            expected |= set(graph[one][other])
    assert bridges == expected


@pytest.mark.parametrize("name", ZOO_NAMES)
def test_routers_that_cut_the_mesh_are_the_articulation_points_that_networkx_finds(name: str) -> None:
    model, graph = zoo_model(name)
    kernel = Kernel(Network.of(model))
    points = set()
    for number, router in enumerate(kernel.network.routers):
        kernel.fail([], [number])
        if kernel.unreachable_pairs > kernel.dead_end_pairs:
            points.add(router)
        assert kernel.components == nx.number_connected_components(nx.restricted_view(graph, [router], []))
        kernel.restore()
    assert points == set(nx.articulation_points(nx.Graph(graph)))


@pytest.mark.parametrize("name", ["Geant2012", "TataNld"])
def test_distances_are_those_of_networkx(name: str) -> None:
    model, graph = zoo_model(name)
    kernel = Kernel(Network.of(model))
    kernel.fail([3, 7], [5])
    dead = {kernel.network.routers[5]}
    ids = [link for number, link in enumerate(kernel.network.links) if number in (3, 7)]
    gone = [(a, b, key) for a, b, key in graph.edges(keys=True) if key in ids]
    lengths = dict(nx.all_pairs_shortest_path_length(nx.restricted_view(graph, dead, gone)))
    routers = kernel.network.routers
    for src, one in enumerate(routers):
        for dst, other in enumerate(routers):
            if not {one, other} & dead:
                assert kernel.distance(src, dst) == lengths[one].get(other, -1)
