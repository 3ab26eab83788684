"""Routers that something is to be asked of, by time: those that are due are found without a look at the others.

Recordings hold the state of a control plane as plain values, so it can't use `TimerQueue`, whose fields are compiled.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Final

from router.core.ids_and_conditions import RouterId

MOST_AT_ONCE: Final = 100
"""Maximum number of routers asked in one turn. One message may name thousands that there are not, and a neighbor that
passes questions on has credit for some hundreds of control messages."""
PAUSE_S: Final = 0.1
"""Pause until the next routers are asked, seconds."""


class DueRouters:
    """Routers, each with the moment at which it is to be looked at again."""

    def __init__(self) -> None:
        self._times: dict[RouterId, float] = {}
        self._queue: list[tuple[float, RouterId]] = []
        self._paused_until = -math.inf

    @property
    def next(self) -> float:
        """Lower bound of the earliest moment, seconds; `math.inf` when there is none."""
        return max(self._queue[0][0], self._paused_until) if self._queue else math.inf

    def set(self, router: RouterId, at: float) -> None:
        """Look at *router* at *at* (seconds), or before when that was said already."""
        if at < self._times.get(router, math.inf):
            self._times[router] = at
            heapq.heappush(self._queue, (at, router))

    def ask(self, now: float, ask: Callable[[RouterId], bool]) -> None:
        """Have routers asked that are due, `MOST_AT_ONCE` of them at most: they are gone from here, unless set again.

        Args:
            now: seconds, monotonic.
            ask: asks one, if that is still wanted; returns whether it was.
        """
        left = MOST_AT_ONCE
        while left and (due := self._take(now, left)):
            for router in due:
                left -= ask(router)
        if not left:
            self._paused_until = now + PAUSE_S

    def _take(self, now: float, most: int) -> list[RouterId]:
        """Take those first that are due first. Returns: them, sorted; none during a pause."""
        due: set[RouterId] = set()
        while len(due) < most and self.next <= now:
            at, router = heapq.heappop(self._queue)
            if self._times.get(router) == at:
                del self._times[router]
                due.add(router)
        return sorted(due)

    def __contains__(self, router: object) -> bool:
        return router in self._times
