"""A mesh as a picture: SVG by hand, one disc for each router, one line for each link with its cost."""

from __future__ import annotations

import math
from html import escape
from itertools import combinations

import networkx as nx

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
_MANY_LINKS = 24
"""With more links of one and the same cost, the title says it instead of each link."""


def svg(graph: nx.Graph[str]) -> str:
    """The graph of `topology` as SVG text, with the ids in the discs or beside them and costs on the links.

    Routers of one site have one colour. Sizes are pixels; the picture grows with the mesh.
    """
    points = _pixels(place(graph))
    width = max((x for x, _ in points.values()), default=0.0) + _MARGIN
    height = max((y for _, y in points.values()), default=0.0) + _MARGIN
    links = costs(graph)
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
        '<g stroke="#8d949b" stroke-width="1.6">',
        *(_line(points[one], points[other]) for one, other, _ in links),
        "</g>",
        *_cost_labels([] if is_uniform else links, points),
        *(_router(node, points[node], _color(site, names), site) for node, site in by_node.items()),
        *legend,
        "</svg>",
        "",
    ]
    return "\n".join(parts)


def _pixels(points: dict[str, Point]) -> dict[str, Point]:
    left = min((x for x, _ in points.values()), default=0.0)
    top = min((y for _, y in points.values()), default=0.0)
    nearest = min((math.dist(one, other) for one, other in combinations(points.values(), 2)), default=1.0)
    hop = min(max(_HOP, _NEAREST / max(nearest, 1e-9)), 2 * _HOP)
    return {node: ((x - left) * hop + _MARGIN, (y - top) * hop + _MARGIN + _TITLE) for node, (x, y) in points.items()}


def _line(one: Point, other: Point) -> str:
    return f'<line x1="{one[0]:.1f}" y1="{one[1]:.1f}" x2="{other[0]:.1f}" y2="{other[1]:.1f}"/>'


def _cost_labels(links: list[tuple[str, str, int]], points: dict[str, Point]) -> list[str]:
    """Costs at the middle of each link, or where another's cost is not in the way."""
    labels = []
    drawn: list[Point] = []
    for one, other, cost in links:
        (x1, y1), (x2, y2) = points[one], points[other]
        candidates = [(x1 + part * (x2 - x1), y1 + part * (y2 - y1)) for part in (0.5, 0.4, 0.6, 0.33, 0.67)]
        x, y = max(candidates, key=lambda point: min([math.dist(point, taken) for taken in drawn] + [24.0]))
        drawn.append((x, y))
        half = len(str(cost)) * _LETTER / 2 + 3
        labels.append(
            f'<rect x="{x - half:.1f}" y="{y - 8:.1f}" width="{2 * half:.1f}" height="16" rx="4" fill="#ffffff"/>'
            f'<text x="{x:.1f}" y="{y + 4.5:.1f}" text-anchor="middle" fill="#555b61">{cost}</text>'
        )
    return labels


def _router(node: str, point: Point, color: str, site: str | None) -> str:
    x, y = point
    half = len(node) * _LETTER / 2
    tip = f"<title>{_text(node if site is None else f'{node} at {site}')}</title>"
    if half <= 17:
        radius = max(15.0, half + 5)
        disc = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="{color}" stroke="#ffffff" stroke-width="2"/>'
    else:
        # A long id gets a capsule, which stays readable where a disc would swallow its neighbors.
        disc = (
            f'<rect x="{x - half - 8:.1f}" y="{y - 13:.1f}" width="{2 * half + 16:.1f}" height="26" rx="13"'
            f' fill="{color}" stroke="#ffffff" stroke-width="2"/>'
        )
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
