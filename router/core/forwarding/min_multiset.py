"""Multiset with minimum: the lowest of many numbers that come and go."""

from __future__ import annotations

import heapq

SPARE = 64
"""Numbers that may have gone without being looked for."""


class MinMultiset:
    """Numbers, each as often as it was added. What each call does grows with the logarithm of their count at most."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        """Count of each number; those in `_heap`, also when it has gone."""
        self._heap: list[int] = []
        self._room = SPARE

    def add(self, number: int) -> None:
        """Add one occurrence of *number*."""
        count = self._counts.get(number)
        if count is None:
            self._counts[number] = 1
            heapq.heappush(self._heap, number)
            if len(self._heap) > self._room:
                self._clear_out()
        else:
            self._counts[number] = count + 1

    def remove(self, number: int) -> None:
        """Remove one occurrence of *number*."""
        self._counts[number] -= 1

    def value(self, otherwise: int) -> int:
        """Find the lowest number; *otherwise* when there is none."""
        while self._heap:
            number = self._heap[0]
            if self._counts[number]:
                return number
            heapq.heappop(self._heap)
            del self._counts[number]
        return otherwise

    def _clear_out(self) -> None:
        self._counts = {number: count for number, count in self._counts.items() if count}
        self._heap = sorted(self._counts)
        self._room = 2 * len(self._heap) + SPARE
