"""Timer queue: what is due next of many things, without looking at all of them."""

from __future__ import annotations

import heapq
from collections.abc import Hashable
from math import inf

SPARE = 64
"""Times that were put off or canceled, before these are thrown away."""


class TimerQueue:
    """Things, each with one time or none. What a call does grows with the logarithm of their number at most."""

    def __init__(self) -> None:
        self._times: dict[Hashable, float] = {}
        self._heap: list[tuple[float, int, Hashable]] = []
        """Every time that was set, with those that do not hold any more."""
        self._room = SPARE
        self._number = 0

    def time_of(self, thing: Hashable) -> float:
        """Find the time at which *thing* is due, seconds; infinity for never."""
        time: float = self._times.get(thing, inf)
        return time

    def set(self, thing: Hashable, time: float) -> None:
        """Make *thing* due at *time* (seconds) instead of when it was; infinity for never."""
        if time == inf:
            self._times.pop(thing, None)
            return
        self._times[thing] = time
        self._number += 1
        heapq.heappush(self._heap, (time, self._number, thing))
        if len(self._heap) > self._room:
            self._heap = [item for item in self._heap if self._times.get(item[2]) == item[0]]
            heapq.heapify(self._heap)
            self._room = 2 * len(self._heap) + SPARE

    def cancel(self, thing: Hashable) -> None:
        """Make *thing* due never."""
        self._times.pop(thing, None)

    def next(self) -> float:
        """Find the time at which the first one is due, seconds; infinity when none is."""
        while self._heap:
            time, _, thing = self._heap[0]
            if self._times.get(thing) == time:
                return time
            heapq.heappop(self._heap)
        return inf

    def first(self) -> Hashable | None:
        """Find the one that is due before all others, of equals the one set first; None when none is."""
        return None if self.next() == inf else self._heap[0][2]

    def take(self, now: float) -> list[Hashable]:
        """Take those that are due at *now* (seconds), in the order of their times. They have none any more."""
        due: list[Hashable] = []
        while self.next() <= now:
            thing = heapq.heappop(self._heap)[2]
            del self._times[thing]
            due.append(thing)
        return due

    def __len__(self) -> int:
        """Number of things that have a time."""
        return len(self._times)
