"""A mesh as a picture: SVG by hand, one disc for each router, one line for each link with its cost.

A link that would pass behind another's router is drawn bent.
"""

from __future__ import annotations

import math
from html import escape
from itertools import combinations

import networkx as nx

from mesh_config.drawing_clearance import Capsule, Curve, clearance, cleared, curve
from mesh_config.drawing_positions import Point, place
from mesh_config.graph import costs, sites

_COLORS = ("#2f6f9f", "#a8572c", "#4b7f3a", "#7a4b94", "#8a6d1f", "#2e7f7b", "#9c3f5d", "#5a5f66")
_FONT = 13
_LETTER = 7.6
"""Width of a letter at that size, about, in pixels."""
_HOP = 120
"""Pixels between neighbors in a small mesh."""
_MARGIN = 50
_TITLE = 34
_NEAREST = 44
"""Pixels between the middles of any two discs, if the picture need not grow beyond twice its size for it."""
_SHARES = (0.5, 0.45, 0.55, 0.4, 0.6, 0.35, 0.65, 0.3, 0.7)
"""Positions along a link at which its cost may stand, as shares of its length."""
_MANY_LINKS = 24
"""Number of links of one and the same cost above which the title says it instead of each link."""


def svg(graph: nx.Graph[str]) -> str:
    """The graph of `topology` as SVG text, with the ids in the discs or beside them and costs on the links.

    Routers of one site have one colour. Sizes are pixels; the picture grows with the mesh.
    """
    links = costs(graph)
    shapes = {node: _shape(node) for node in graph}
    points = _shifted(cleared(_pixels(place(graph), shapes), shapes, [(one, other) for one, other, _ in links]), shapes)
    curves = [curve(one, other, points, shapes) for one, other, _ in links]
    width = max((x + shapes[node].half for node, (x, _) in points.items()), default=0.0) + _MARGIN
    height = max((y for _, y in points.values()), default=0.0) + _MARGIN
    is_uniform = len(links) > _MANY_LINKS and len({cost for _, _, cost in links}) == 1
    title = f"{graph.name or 'mesh'}: {_count(len(graph), 'router')}, {_count(len(links), 'link')}"
    title += f" of cost {links[0][2]}" if is_uniform else ""
    width = max(width, len(title) * _LETTER + 2 * 16)
    by_node = sites(graph)
    names = sorted({site for site in by_node.values() if site is not None})
    legend = _legend(names, height)
    height += 22 * len(names)
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="{_FONT}">',
        f"<title>{_text(title)}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="16" y="24" fill="#333333" font-weight="bold">{_text(title)}</text>',
        '<g stroke="#8d949b" stroke-width="1.6" fill="none">',
        *map(_link, curves),
        "</g>",
        *_cost_labels([] if is_uniform else [cost for _, _, cost in links], curves, points, shapes),
        *(_router(node, points[node], shapes[node], _color(site, names), site) for node, site in by_node.items()),
        *legend,
        "</svg>",
        "",
    ]
    return "\n".join(parts)


def _shape(node: str) -> Capsule:
    half = len(node) * _LETTER / 2
    # A long id gets a capsule, which stays readable where a disc would swallow its neighbors.
    return Capsule(0.0, max(15.0, half + 5)) if half <= 17 else Capsule(half - 5, 13.0)


def _pixels(points: dict[str, Point], shapes: dict[str, Capsule]) -> dict[str, Point]:
    nearest = min((math.dist(one, other) for one, other in combinations(points.values(), 2)), default=1.0)
    widest = max((2 * (shape.half + shape.radius) for shape in shapes.values()), default=0.0)
    hop = min(max(_HOP, 1.4 * widest, _NEAREST / max(nearest, 1e-9)), 2 * _HOP)
    return {node: (x * hop, y * hop) for node, (x, y) in points.items()}


def _shifted(points: dict[str, Point], shapes: dict[str, Capsule]) -> dict[str, Point]:
    """Move positions into the corner of the picture, below its title."""
    left = min((x - shapes[node].half for node, (x, _) in points.items()), default=0.0)
    top = min((y for _, y in points.values()), default=0.0)
    return {node: (x - left + _MARGIN, y - top + _MARGIN + _TITLE) for node, (x, y) in points.items()}


def _link(link: Curve) -> str:
    (x1, y1), (x2, y2) = link.begin, link.end
    if link.is_straight:
        return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
    x, y = link.control
    return f'<path d="M{x1:.1f} {y1:.1f}Q{x:.1f} {y:.1f} {x2:.1f} {y2:.1f}"/>'


def _cost_labels(
    all_costs: list[int], curves: list[Curve], points: dict[str, Point], shapes: dict[str, Capsule]
) -> list[str]:
    """Costs at the middle of each link, or where no router and no other's cost is in the way."""
    labels = []
    drawn: list[Point] = []
    for cost, link in zip(all_costs, curves, strict=False):
        half = len(str(cost)) * _LETTER / 2 + 3

        candidates = [link.point(share) for share in _SHARES]
        rooms = [_room(here, half, drawn, points, shapes) for here in candidates]
        x, y = candidates[rooms.index(max(rooms))]
        drawn.append((x, y))
        labels.append(
            f'<rect x="{x - half:.1f}" y="{y - 8:.1f}" width="{2 * half:.1f}" height="16" rx="4" fill="#ffffff"/>'
            f'<text x="{x:.1f}" y="{y + 4.5:.1f}" text-anchor="middle" fill="#555b61">{cost}</text>'
        )
    return labels


def _room(here: Point, half: float, drawn: list[Point], points: dict[str, Point], shapes: dict[str, Capsule]) -> float:
    """Pixels free of costs and of routers about a cost that is twice *half* wide; more than enough counts as enough."""
    free = min([math.dist(here, taken) for taken in drawn] + [24.0])
    box = (here[0], here[0], here[1], here[1])
    for node, shape in shapes.items():
        if not shape.is_away(points[node], box, half):
            free = min(free, 24.0 + clearance(points[node], shape, here) - half)
    return free


def _router(node: str, point: Point, shape: Capsule, color: str, site: str | None) -> str:
    x, y = point
    tip = f"<title>{_text(node if site is None else f'{node} at {site}')}</title>"
    look = f'fill="{color}" stroke="#ffffff" stroke-width="2"'
    radius, half = shape.radius, shape.half + shape.radius
    if shape.half:
        disc = (
            f'<rect x="{x - half:.1f}" y="{y - radius:.1f}" width="{2 * half:.1f}" height="{2 * radius:.0f}"'
            f' rx="{radius:.0f}" {look}/>'
        )
    else:
        disc = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" {look}/>'
    label = f'<text x="{x:.1f}" y="{y + 4.5:.1f}" text-anchor="middle" fill="#ffffff">{_text(node)}</text>'
    return f"<g>{tip}{disc}{label}</g>"


def _color(site: str | None, names: list[str]) -> str:
    return _COLORS[0] if site is None else _COLORS[names.index(site) % len(_COLORS)]


def _legend(names: list[str], top: float) -> list[str]:
    return [
        f'<circle cx="24" cy="{top + 22 * row:.0f}" r="7" fill="{_color(site, names)}"/>'
        f'<text x="38" y="{top + 22 * row + 4.5:.1f}" fill="#333333">{_text(site)}</text>'
        for row, site in enumerate(names)
    ]


def _text(text: str) -> str:
    """Text for XML, which has no place for most control characters, not even escaped."""
    return escape("".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text))


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"
