"""Meshes as graphs and pictures."""

from __future__ import annotations

import math
import re
from itertools import combinations
from xml.etree import ElementTree as ET

import attrs
import networkx as nx
import pytest

from mesh_config.drawing_clearance import Capsule, curve
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
    assert len(drawn_links(root)) == graph.number_of_edges()
    assert sorted(text for text in texts if text.isdecimal()) == sorted(str(cost) for _, _, cost in costs(graph))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for text in root.iter(f"{SVG}text"):
        assert 0 < float(text.attrib["x"]) < width
        assert 0 < float(text.attrib["y"]) < height


def drawn_links(root: ET.Element) -> list[list[tuple[float, float]]]:
    """Points along each link of a picture, straight or bent."""
    curves = [[float(line.attrib[name]) for name in ("x1", "y1", "x2", "y2")] for line in root.iter(f"{SVG}line")]
    controls = [[(x1 + x2) / 2, (y1 + y2) / 2] for x1, y1, x2, y2 in curves]
    bent = [[float(each) for each in re.findall(r"[-\d.]+", path.attrib["d"])] for path in root.iter(f"{SVG}path")]
    curves = [[*line[:2], *control, *line[2:]] for line, control in zip(curves, controls, strict=True)] + bent
    return [
        [
            tuple(
                (1 - share) ** 2 * curve[axis] + 2 * (1 - share) * share * curve[axis + 2] + share**2 * curve[axis + 4]
                for axis in (0, 1)
            )
            for share in (at / 60 for at in range(61))
        ]
        for curve in curves
    ]  # type: ignore[misc]


def drawn_routers(root: ET.Element) -> list[tuple[float, float, float, float]]:
    """Left, right, top and bottom of each router of a picture."""
    groups = [group for group in root.iter(f"{SVG}g") if group.find(f"{SVG}title") is not None]
    found = []
    for shape in (group[1].attrib for group in groups):
        if "r" in shape:
            x, y, radius = (float(shape[name]) for name in ("cx", "cy", "r"))
            found.append((x - radius, x + radius, y - radius, y + radius))
        else:
            x, y, width, height = (float(shape[name]) for name in ("x", "y", "width", "height"))
            found.append((x, x + width, y, y + height))
    return found


CITIES = """
    hamburg-1 dresden-2, hamburg-2 hamburg-1, berlin-1 hamburg-2, berlin-2 berlin-1, munich-1 berlin-2,
    munich-1 hamburg-2, munich-2 munich-1, koeln-1 munich-2, koeln-1 hamburg-1, koeln-2 koeln-1, frankfurt-1 koeln-2,
    frankfurt-1 berlin-1, frankfurt-2 frankfurt-1, frankfurt-2 berlin-2, dresden-1 frankfurt-2, dresden-2 dresden-1
"""


@pytest.mark.parametrize("kind", ["cities", "geometric", "chords", "full"])
def test_no_link_and_no_cost_is_behind_a_router_that_is_not_an_end_of_it(kind: str) -> None:
    graph: nx.Graph[str] = nx.Graph()
    if kind == "cities":
        graph.add_edges_from((tuple(pair.split()) for pair in CITIES.split(",")), cost=2)
    else:
        graph = topology(generate(kind, {"geometric": 30, "chords": 20, "full": 6}[kind]))
    root = ET.fromstring(svg(graph))
    boxes = drawn_routers(root)
    assert len(boxes) == len(graph)
    for points in drawn_links(root):
        for left, right, top, bottom in boxes:
            is_end = any(left < x < right and top < y < bottom for x, y in (points[0], points[-1]))
            assert is_end or not any(left < x < right and top + 2 < y < bottom - 2 for x, y in points)
    for text in root.iter(f"{SVG}text"):
        x, y = float(text.attrib["x"]), float(text.attrib["y"]) - 4.5
        if text.attrib["fill"] == "#555b61":
            assert not any(left < x < right and top < y < bottom for left, right, top, bottom in boxes)


def test_a_link_with_a_router_in_the_way_is_bent_as_little_as_will_do() -> None:
    points = {"A": (0.0, 0.0), "B": (100.0, 0.0), "C": (200.0, 0.0)}
    shapes = dict.fromkeys("ABC", Capsule(20.0, 13.0))
    bent = curve("A", "C", points, shapes)
    assert 13 < abs(bent.point(0.5)[1]) < 40
    assert curve("A", "B", points, shapes).is_straight


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
