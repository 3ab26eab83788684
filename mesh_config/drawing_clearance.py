"""Room in a picture of a mesh: routers moved off each other and off links that aren't theirs, other links bent.

A router is drawn as a capsule: all points no further than its radius from a flat line, which a disc has no length of.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Final

import attrs

from mesh_config.drawing_positions import Point

_GAP: Final = 9.0
"""Pixels between a capsule and what isn't to touch it."""
_MOST_ROUNDS, _STEPS = 200, 1_000_000
"""Small meshes are gone over more often, as long as it takes no longer than the eye notices."""
_MOST_MOVE: Final = 20.0
"""Pixels in one round."""
_BENDS: Final = (0.0, *(sign * size for size in (0.6, 1.2, 1.8, 2.4) for sign in (1, -1)))
"""Ways by which a link may be bent aside, in heights of a capsule, the least first."""
_SAMPLES: Final = 24


@attrs.frozen
class Capsule:
    """The shape of a router, about its place."""

    half: float
    """Half the length of the flat line, pixels."""
    radius: float

    def is_away(self, point: Point, box: tuple[float, float, float, float], room: float) -> bool:
        """Whether a capsule at *point* has more than *room* to a box, given as left, right, top, bottom; pixels."""
        left, right, top, bottom = box
        aside, above = self.half + self.radius + room, self.radius + room
        x, y = point
        return x + aside < left or x - aside > right or y + above < top or y - above > bottom

    def line(self, x: float) -> Iterator[float]:
        """Points of the flat line about *x* that are no further from each other than the radius."""
        count = math.ceil(2 * self.half / self.radius) if self.half else 0
        for at in range(count + 1):
            yield x + (2 * at / count - 1) * self.half if count else x


@attrs.frozen
class Curve:
    """A link: a quadratic Bezier curve."""

    begin: Point
    control: Point
    end: Point

    @property
    def is_straight(self) -> bool:
        """Whether it is not bent."""
        return math.dist(self.control, _middle(self.begin, self.end)) < 1e-6

    def point(self, share: float) -> Point:
        """The point at *share* of it, 0 to 1."""
        rest = 1 - share
        parts = (rest * rest, 2 * rest * share, share * share)
        x, y = (sum(map(float.__mul__, parts, axis)) for axis in zip(self.begin, self.control, self.end, strict=True))
        return x, y


def cleared(
    points: Mapping[str, Point], shapes: Mapping[str, Capsule], links: Sequence[tuple[str, str]]
) -> dict[str, Point]:
    """Move routers until none lies on another or on a link that isn't its own; not every mesh has room for that.

    Args:
        points: places, pixels.
        shapes: of the same routers.
        links: pairs of neighbors.
    Returns: the best places found.
    """
    best, least = dict(points), math.inf
    now = dict(points)
    cost = 1 + len(points) * (len(points) + 2 * len(links))
    for _ in range(min(_MOST_ROUNDS, _STEPS // cost)):
        moves = {node: [0.0, 0.0] for node in now}
        lack = _push_apart(now, shapes, moves) + _push_off_links(now, shapes, links, moves)
        if lack < least:
            best, least = dict(now), lack
        if lack == 0:
            break
        for node, move in moves.items():
            x, y = (place + max(-_MOST_MOVE, min(_MOST_MOVE, by)) for place, by in zip(now[node], move, strict=True))
            now[node] = (x, y)
    return best


def _push_apart(points: Mapping[str, Point], shapes: Mapping[str, Capsule], moves: dict[str, list[float]]) -> float:
    """Add to *moves* what brings routers off each other. Returns: the pixels that are lacking."""
    lack = 0.0
    for one, other in combinations(points, 2):
        (x, y), (other_x, other_y) = points[one], points[other]
        beside = max(0.0, abs(x - other_x) - shapes[one].half - shapes[other].half)
        want = shapes[one].radius + shapes[other].radius + 2 * _GAP
        near = math.hypot(beside, y - other_y)
        if near >= want:
            continue
        lack += want - near
        # Sideways where they are beside each other, else up and down, which takes less.
        dx, dy = (math.copysign(beside, x - other_x), y - other_y) if near > 1 else (0.0, 1.0)
        step = 0.4 * (want - near) / max(near, 1.0)
        for node, sign in ((one, step), (other, -step)):
            moves[node][0] += sign * dx
            moves[node][1] += sign * dy
    return lack


def _push_off_links(
    points: Mapping[str, Point],
    shapes: Mapping[str, Capsule],
    links: Sequence[tuple[str, str]],
    moves: dict[str, list[float]],
) -> float:
    """Add to *moves* what brings routers off links of others. Returns: the pixels that are lacking."""
    lack = 0.0
    for one, other in links:
        begin, end = points[one], points[other]
        box = _box([begin, end])
        for node, shape in shapes.items():
            if shape.is_away(points[node], box, _GAP) or node in (one, other):
                continue
            want = shape.radius + _GAP
            share, dx, dy = _from_line(points[node], shape, begin, end)
            near = math.hypot(dx, dy)
            if near >= want:
                continue
            lack += 3 * (want - near)
            if near < 0.5:
                long = math.dist(begin, end) or 1.0
                dx, dy, near = (begin[1] - end[1]) / long, (end[0] - begin[0]) / long, 1.0
            step = 0.5 * max(want - near, 1.0) / near
            for moved, part in ((node, step), (one, step * (share - 1)), (other, -step * share)):
                moves[moved][0] += part * dx
                moves[moved][1] += part * dy
    return lack


def _from_line(point: Point, shape: Capsule, begin: Point, end: Point) -> tuple[float, float, float]:
    """Find where a straight link is nearest to a capsule: its share up to there, and the way on to the capsule."""
    along_x, along_y = end[0] - begin[0], end[1] - begin[1]
    long2 = along_x * along_x + along_y * along_y or 1.0

    def way(x: float) -> tuple[float, float, float]:
        share = min(1.0, max(0.0, ((x - begin[0]) * along_x + (point[1] - begin[1]) * along_y) / long2))
        return share, x - begin[0] - share * along_x, point[1] - begin[1] - share * along_y

    return min(map(way, shape.line(point[0])), key=lambda found: found[1] ** 2 + found[2] ** 2)


def curve(one: str, other: str, points: Mapping[str, Point], shapes: Mapping[str, Capsule]) -> Curve:
    """A link, bent as little as keeps it clear of routers that are not its ends."""
    begin, end = points[one], points[other]
    long = math.dist(begin, end) or 1.0
    x, y = _middle(begin, end)
    across = ((begin[1] - end[1]) / long, (end[0] - begin[0]) / long)
    others = [(points[node], shape) for node, shape in shapes.items() if node not in (one, other)]
    best, least = Curve(begin, (x, y), end), math.inf
    for bend in _BENDS:
        by = bend * 4 * max(shapes[one].radius, shapes[other].radius)
        made = Curve(begin, (x + across[0] * by, y + across[1] * by), end)
        lack = _lack(made, others)
        if lack < least:
            best, least = made, lack
        if lack == 0:
            break
    return best


def _lack(link: Curve, others: Sequence[tuple[Point, Capsule]]) -> float:
    """Pixels by which a link comes too near to capsules."""
    room = _GAP / 3
    points = [link.begin, link.end] if link.is_straight else [link.point(at / _SAMPLES) for at in range(_SAMPLES + 1)]
    box = _box(points)
    lack = 0.0
    for point, shape in others:
        if shape.is_away(point, box, room):
            continue
        if link.is_straight:
            _, dx, dy = _from_line(point, shape, link.begin, link.end)
            near = math.hypot(dx, dy) - shape.radius
        else:
            near = min(clearance(point, shape, each) for each in points)
        lack += max(0.0, room - near)
    return lack


def _box(points: Sequence[Point]) -> tuple[float, float, float, float]:
    """Left, right, top and bottom of some points."""
    x, y = [x for x, _ in points], [y for _, y in points]
    return min(x), max(x), min(y), max(y)


def clearance(point: Point, shape: Capsule, other: Point) -> float:
    """Pixels from a capsule at *point* to the point *other*; less than 0 inside."""
    beside = max(0.0, abs(other[0] - point[0]) - shape.half)
    return math.hypot(beside, other[1] - point[1]) - shape.radius


def _middle(one: Point, other: Point) -> Point:
    return (one[0] + other[0]) / 2, (one[1] + other[1]) / 2
