"""Meshes as graphs and pictures."""

from __future__ import annotations

import math
from itertools import combinations
from xml.etree import ElementTree as ET

import attrs
import networkx as nx
import pytest

from mesh_config.drawing_positions import place
from mesh_config.generators import generate
from mesh_config.graph import costs, dot, topology
from mesh_config.models import ConnectorSettings, ListenerSettings, MeshSettings, Role, RouterSettings
from mesh_config.picture import svg

SVG = "{http://www.w3.org/2000/svg}"


def pair(*connectors: ConnectorSettings, listener_cost: int = 1) -> MeshSettings:
    listener = ListenerSettings(port=7, role=Role.INTER_ROUTER, cost=listener_cost)
    return MeshSettings(
        name="pair",
        routers={
            "A": RouterSettings(id="A", site="north", listeners=(listener, ListenerSettings(port=5))),
            "B": RouterSettings(id="B", connectors=connectors),
        },
    )


@pytest.mark.parametrize(("here", "there", "cost"), [(1, 1, 1), (5, 3, 5), (2, 9, 9)])
def test_the_larger_cost_of_both_ends_counts(here: int, there: int, cost: int) -> None:
    graph = topology(pair(ConnectorSettings(to="A", port=7, cost=here), listener_cost=there))
    assert costs(graph) == [("A", "B", cost)]


def test_of_parallel_connections_the_cheapest_counts() -> None:
    ends = [ConnectorSettings(port=7, cost=cost) for cost in (4, 2, 3)]
    assert costs(topology(pair(*ends))) == [("A", "B", 2)]


def test_only_links_between_routers_are_edges() -> None:
    ends = (ConnectorSettings(port=5), ConnectorSettings(port=7, role=Role.NORMAL), ConnectorSettings(port=9))
    graph = topology(pair(*ends))
    assert (list(graph), list(graph.edges)) == (["A", "B"], [])
    assert graph.nodes["A"]["site"] == "north"


def test_dot_has_sites_costs_and_quotes() -> None:
    mesh = pair(ConnectorSettings(port=7, cost=4))
    routers = {**mesh.routers, "A": attrs.evolve(mesh.routers["A"], site='no"r\\th')}
    assert dot(topology(attrs.evolve(mesh, routers=routers))) == (
        'graph "pair" {\n'
        "  node [shape=circle];\n"
        '  subgraph cluster_0 { label="no\\"r\\\\th"; "A"; }\n'
        '  "B";\n'
        '  "A" -- "B" [label="4"];\n'
        "}\n"
    )


@pytest.mark.parametrize(("kind", "routers"), [("line", 6), ("ring", 9), ("tree", 15), ("star", 7), ("full", 5)])
def test_neighbors_are_drawn_about_one_apart_and_nobody_on_another(kind: str, routers: int) -> None:
    graph = topology(generate(kind, routers))
    points = place(graph)
    assert all(0.5 < math.dist(points[one], points[other]) < 1.8 for one, other in graph.edges)
    assert min(math.dist(one, other) for one, other in combinations(points.values(), 2)) > 0.3


def test_a_line_is_drawn_flat() -> None:
    points = place(topology(generate("line", 6)))
    assert max(x for x, _ in points.values()) - min(x for x, _ in points.values()) > 4.5
    assert max(y for _, y in points.values()) - min(y for _, y in points.values()) < 0.5


@pytest.mark.slow
def test_places_do_not_depend_on_the_order_of_the_file() -> None:
    graph = topology(generate("geometric", 25, seed=1))
    turned: nx.Graph[str] = nx.Graph()
    turned.add_nodes_from(reversed(list(graph)))
    turned.add_edges_from(reversed(list(graph.edges)))
    for node, point in place(graph).items():
        assert place(turned)[node] == pytest.approx(point, abs=1e-6)


def test_a_large_mesh_is_placed_by_pivots() -> None:
    graph = topology(generate("ring", 100))
    points = place(graph)
    assert all(0.3 < math.dist(points[one], points[other]) < 3 for one, other in graph.edges)


@pytest.mark.parametrize(("kind", "routers"), [("star", 100), ("tree", 127)])
def test_no_router_of_a_large_mesh_is_drawn_on_another_that_is_like_it(kind: str, routers: int) -> None:
    points = place(topology(generate(kind, routers)))
    assert min(math.dist(one, other) for one, other in combinations(points.values(), 2)) > 0.03


def test_parts_stand_side_by_side() -> None:
    graph: nx.Graph[str] = nx.Graph([("A", "B"), ("C", "D")])
    graph.add_node("E")
    points = place(graph)
    assert max(points["A"][0], points["B"][0]) < min(points["C"][0], points["D"][0]) < points["E"][0]


@pytest.mark.parametrize(("kind", "routers"), [("full", 4), ("geometric", 30), ("line", 1)])
def test_the_picture_shows_every_router_link_and_cost(kind: str, routers: int) -> None:
    graph = topology(generate(kind, routers))
    root = ET.fromstring(svg(graph))
    texts = [element.text or "" for element in root.iter(f"{SVG}text")]
    assert set(graph) <= set(texts)
    assert len(list(root.iter(f"{SVG}line"))) == graph.number_of_edges()
    assert sorted(text for text in texts if text.isdecimal()) == sorted(str(cost) for _, _, cost in costs(graph))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for text in root.iter(f"{SVG}text"):
        assert 0 < float(text.attrib["x"]) < width
        assert 0 < float(text.attrib["y"]) < height


def test_one_cost_of_many_links_stands_in_the_title_alone() -> None:
    root = ET.fromstring(svg(topology(generate("full", 9))))
    texts = [element.text or "" for element in root.iter(f"{SVG}text")]
    assert "full-9: 9 routers, 36 links of cost 1" in texts
    assert "1" not in texts


def test_discs_of_a_picture_do_not_cover_each_other() -> None:
    root = ET.fromstring(svg(topology(generate("fat-tree", 45))))
    discs = [(float(disc.attrib["cx"]), float(disc.attrib["cy"])) for disc in root.iter(f"{SVG}circle")]
    assert len(discs) == 45
    assert min(math.dist(one, other) for one, other in combinations(discs, 2)) > 30


def test_a_picture_of_odd_names_is_still_xml() -> None:
    graph: nx.Graph[str] = nx.Graph(name="<a&b>\x00")
    graph.add_edge("a-very-long-router-name<&>", "\x01\ud7ff", cost=3)
    graph.nodes["\x01\ud7ff"]["site"] = '"north"'
    root = ET.fromstring(svg(graph))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert {"a-very-long-router-name<&>", '"north"', "3"} <= set(texts)


def test_a_mesh_without_routers_has_a_picture() -> None:
    assert "0 routers, 0 links" in svg(topology(MeshSettings()))
