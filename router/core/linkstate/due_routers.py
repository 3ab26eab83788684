"""Routers that something is to be asked of, by time: those that are due are found without a look at the others."""

from __future__ import annotations

import heapq
import math

from router.core.ids_and_conditions import RouterId


class DueRouters:
    """Routers, each with the moment at which it is to be looked at again."""

    def __init__(self) -> None:
        self._times: dict[RouterId, float] = {}
        self._queue: list[tuple[float, RouterId]] = []

    @property
    def next(self) -> float:
        """Not later than the earliest moment, seconds; `math.inf` when there is none."""
        return self._queue[0][0] if self._queue else math.inf

    def set(self, router: RouterId, at: float) -> None:
        """Look at *router* at *at* (seconds), or before when that was said already."""
        if at < self._times.get(router, math.inf):
            self._times[router] = at
            heapq.heappush(self._queue, (at, router))

    def take(self, now: float) -> list[RouterId]:
        """The routers that are due at *now* (seconds), sorted; they are gone from here."""
        due: set[RouterId] = set()
        while self._queue and self._queue[0][0] <= now:
            at, router = heapq.heappop(self._queue)
            if self._times.get(router) == at:
                del self._times[router]
                due.add(router)
        return sorted(due)

    def __contains__(self, router: object) -> bool:
        return router in self._times
