"""Places at which to draw the routers of a mesh: distances on paper like the hops between them, by stress majorisation.

networkx has the like, but needs numpy for it, which a router does not.

Source: Gansner, Koren and North, Graph Drawing by Stress Majorization, 2004; the sparse form after Ortmann, Klimenta
and Brandes, A Sparse Stress Model, 2017.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import networkx as nx

Point = tuple[float, float]

_FEWEST_SWEEPS, _MOST_SWEEPS, _STEPS = 80, 400, 400_000
"""Small meshes are swept more often, as long as it takes no longer than the eye notices."""
_ALL_PAIRS = 80
"""Maximum number of routers of which every pair is looked at; of more, neighbors and a choice of pivots."""
_PIVOTS = 40
_SIBLINGS = 40
"""Number of neighbors of one router that repel each other: else those that are alike would lie on each other."""


def place(graph: nx.Graph[str]) -> dict[str, Point]:
    """A point for each node; neighbors are about 1 apart. The same graph is always drawn the same."""
    points: dict[str, Point] = {}
    left = 0.0
    # Parts without a path between them stand side by side, the largest first.
    for part in sorted(nx.connected_components(graph), key=lambda nodes: (-len(nodes), min(nodes))):
        placed = _place_part(nx.Graph(graph.subgraph(part)))
        shift = left - min(x for x, _ in placed.values())
        points |= {node: (x + shift, y) for node, (x, y) in placed.items()}
        left = max(points[node][0] for node in placed) + 1.0
    return {node: points[node] for node in graph}


def _place_part(graph: nx.Graph[str]) -> dict[str, Point]:
    order = list(nx.dfs_preorder_nodes(graph, _start(graph), sort_neighbors=sorted))
    radius = len(order) / (2 * math.pi)
    points = {
        # A circle that is not quite one: in perfect symmetry a line would never unfold.
        node: (
            (1 + 0.01 * place) * radius * math.cos(2 * math.pi * place / len(order)),
            radius * math.sin(2 * math.pi * place / len(order)),
        )
        for place, node in enumerate(order)
    }
    hops = _hops(graph, order)
    pairs = sum(len(others) for others in hops.values())
    for _ in range(min(_MOST_SWEEPS, max(_FEWEST_SWEEPS, _STEPS // pairs))):
        for node in order:
            points[node] = _moved(node, points, hops[node])
    return _upright(points)


def _start(graph: nx.Graph[str]) -> str:
    """An end of the graph: lines and trees are walked from there in one go."""
    return min(graph, key=lambda node: (graph.degree(node), node))


def _hops(graph: nx.Graph[str], order: list[str]) -> dict[str, dict[str, int]]:
    """Return the wanted distance of each node to every node that it minds."""
    if len(order) <= _ALL_PAIRS:
        return {node: nx.single_source_shortest_path_length(graph, node) for node in order}
    hops: dict[str, dict[str, int]] = {node: dict.fromkeys(sorted(graph[node]), 1) for node in order}
    for pivot in _pivots(graph, order[0]):
        for node, count in nx.single_source_shortest_path_length(graph, pivot).items():
            hops[node].setdefault(pivot, count)
    for hub in order:
        around = sorted(graph[hub])
        for at, one in enumerate(around):
            for other in around[at + 1 : at + 1 + _SIBLINGS]:
                hops[one].setdefault(other, 2)
                hops[other].setdefault(one, 2)
    return hops


def _pivots(graph: nx.Graph[str], first: str) -> list[str]:
    """Nodes spread over the graph: each the farthest from those before."""
    pivots = [first]
    nearest = dict(nx.single_source_shortest_path_length(graph, first))
    while len(pivots) < _PIVOTS:
        pivots.append(max(sorted(nearest), key=nearest.__getitem__))
        for node, count in nx.single_source_shortest_path_length(graph, pivots[-1]).items():
            nearest[node] = min(nearest[node], count)
    return pivots


def _moved(node: str, points: Mapping[str, Point], hops: Mapping[str, int]) -> Point:
    """The place where the others want the node, each at its distance, near ones more than far ones."""
    x, y = points[node]
    sum_x = sum_y = weights = 0.0
    for other, count in hops.items():
        if other == node:
            continue
        other_x, other_y = points[other]
        apart = math.hypot(x - other_x, y - other_y) or 1e-9
        weight = 1.0 / (count * count)
        sum_x += weight * (other_x + count * (x - other_x) / apart)
        sum_y += weight * (other_y + count * (y - other_y) / apart)
        weights += weight
    return (sum_x / weights, sum_y / weights) if weights else (x, y)


def _upright(points: Mapping[str, Point]) -> dict[str, Point]:
    """Turned about their middle: the longer axis lies flat, as screens are wide, the first id is on the left."""
    middle_x = sum(x for x, _ in points.values()) / len(points)
    middle_y = sum(y for _, y in points.values()) / len(points)
    moved = {node: (x - middle_x, y - middle_y) for node, (x, y) in points.items()}
    xx, yy, xy = (
        sum(x * x for x, _ in moved.values()),
        sum(y * y for _, y in moved.values()),
        sum(x * y for x, y in moved.values()),
    )
    angle = -0.5 * math.atan2(2 * xy, xx - yy)
    cos, sin = math.cos(angle), math.sin(angle)
    first_x, first_y = moved[min(moved)]
    if first_x * cos - first_y * sin > 0:
        cos, sin = -cos, -sin
    return {node: (x * cos - y * sin, x * sin + y * cos) for node, (x, y) in moved.items()}
