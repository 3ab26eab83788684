"""Places of routers' names in a picture: where a name covers no other one, no mark of a router and few links.

All of it is computed the same way each time: the same mesh gives the same picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FONT: Final = 9.5
"""Pixels."""
CHARACTER: Final = 0.62 * FONT
"""Width of a letter, about; capitals are as wide in most fonts."""
LETTER_HEIGHT: Final = FONT
"""Height of a letter, descenders included."""
GAP: Final = 2.0
"""Pixels between a mark and its name."""
CROSS: Final = 4.0
"""Half of the width of a cross."""
SIDES: Final = ((1, 1), (1, -1), (-1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))
"""Sides of a mark on which its name may stand, right and up being 1; the first one where all are as good."""
ALIGNED: Final = {-1: "right", 0: "center", 1: "left"}
RAISED: Final = {-1: "top", 0: "center", 1: "bottom"}
SAMPLES: Final = 33
"""Points of a link that are looked at."""

COVERED_NAME: Final = 100.0
COVERED_MARK: Final = 100.0
OUTSIDE: Final = 100.0
CROSSED_LINK: Final = 1.0
"""Cost of covering each, or of leaving the picture; the place of the least is taken."""


@attrs.frozen
class NamePlace:
    """Place of a name beside the mark of its router."""

    offset: tuple[float, float]
    """Distance from the middle of the mark, pixels to the right and upward."""
    side: tuple[int, int]
    """One of SIDES."""

    @property
    def horizontal(self) -> str:
        """Side of the text that is at the offset, as matplotlib names it."""
        return ALIGNED[self.side[0]]

    @property
    def vertical(self) -> str:
        """Vertical alignment of the text, as matplotlib names it."""
        return RAISED[self.side[1]]

    def box(self, point: Floats, text: str) -> Floats:
        """Left, lower, right and upper edge of the text.

        Args:
            point: middle of the mark.
            text: the name.
        """
        size = np.array([CHARACTER * len(text), LETTER_HEIGHT])
        low = point + np.array(self.offset) + (np.array(self.side) - 1) / 2 * size
        return np.concatenate([low, low + size])


def name_places(
    names: Mapping[int, str],
    points: Floats,
    radii: Sequence[float],
    *,
    links: Floats,
    crosses: Floats,
    edges: Floats,
) -> dict[int, NamePlace]:
    """A place for each name, one after the other, each where it covers least of what is there.

    Args:
        names: by place of the router, the most important first.
        points: middles of the marks of all routers, in pixels upward.
        radii: of these marks.
        links: both ends of each, of shape (count, 2, 2).
        crosses: middles of what else no name may cover, such as the crosses of links that are down.
        edges: left, lower, right and upper edge of the picture.
    """
    reach = np.asarray(radii, dtype=np.float64)[:, None]
    marks = np.hstack([points - reach, points + reach])
    crossed = np.hstack([crosses - CROSS, crosses + CROSS])
    share = np.linspace(0, 1, SAMPLES)[:, None]
    along = links[:, None, 0] * (1 - share) + links[:, None, 1] * share
    placed: list[Floats] = []
    found = {}
    for at, text in names.items():
        others = np.concatenate([np.delete(marks, at, axis=0), crossed])
        best = np.inf
        for side in SIDES:
            away = radii[at] + GAP
            x, y = side[0] * away, side[1] * (away - GAP if side[0] else away)
            place = NamePlace((x, y), side)
            box = place.box(points[at], text)
            bad = COVERED_NAME * _covered(box, np.array(placed).reshape(-1, 4)) + COVERED_MARK * _covered(box, others)
            bad += OUTSIDE * int((box[:2] < edges[:2]).any() or (box[2:] > edges[2:]).any())
            bad += CROSSED_LINK * _crossing(along, box)
            if bad < best:
                best, found[at] = bad, place
        placed.append(found[at].box(points[at], text))
    return found


def _crossing(along: Floats, box: Floats) -> int:
    """Number of links that lead through a box, by points along each."""
    is_in = np.all((along > box[:2]) & (along < box[2:]), axis=2)
    return int(np.count_nonzero(np.any(is_in, axis=1)))


def _covered(box: Floats, others: Floats) -> int:
    """Number of the other boxes of which it covers a part."""
    return int(((others[:, :2] < box[2:]) & (others[:, 2:] > box[:2])).all(axis=1).sum())
