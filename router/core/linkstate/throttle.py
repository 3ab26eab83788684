"""Throttle of repeated work: done at once in calm times, in growing pauses while reasons for it keep coming."""

from __future__ import annotations

import math
from typing import Final

ROUTERS_A_PAUSE: Final = 32
"""Routers for which the longest pause grows by a shortest one: the work costs in proportion to them."""

FREE_EDGES: Final = 5_000
"""Edges of the graph that cost no pause: seventy routers that all know each other have fewer."""
EDGE_PAUSE_S: Final = 40e-6
"""Pause for each further one, whatever changes: paths take a fortieth of it, so that few calls meet them."""


class Throttle:
    """Pauses between runs: none after a calm time, else *pause_s*, doubled with each run.

    Args:
        pause_s: the shortest pause, seconds; 0 holds nothing back unless the graph is large.
    """

    def __init__(self, pause_s: float) -> None:
        self._shortest_s = pause_s
        self._pause_s = pause_s
        self._last = -math.inf

    def due(self, now: float) -> float:
        """Time from which the next run is allowed, seconds; *now* after a calm time."""
        return now if self._is_calm(now) else max(now, self._last + self._pause_s)

    def is_worth_a_pause(self, edges: int) -> bool:
        """Whether a run takes so long that even what is urgent waits for it, unless it comes after a calm time.

        Args:
            edges: of the graph, both directions counted.
        """
        return edges > FREE_EDGES

    def ran(self, now: float, routers: int, edges: int = 0) -> None:
        """Note a run.

        Args:
            routers: in the mesh, known here.
            now: seconds, monotonic.
            edges: of the graph, both directions counted.
        """
        longest_s = self._shortest_s * (2 + routers // ROUTERS_A_PAUSE)
        self._pause_s = self._shortest_s if self._is_calm(now) else min(2 * self._pause_s, longest_s)
        self._pause_s = max(self._pause_s, max(0, edges - FREE_EDGES) * EDGE_PAUSE_S)
        self._last = now

    def _is_calm(self, now: float) -> bool:
        return now - self._last >= 2 * self._pause_s
