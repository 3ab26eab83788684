"""The highest loads of each directed link over many scenarios, and the scenarios that cause them.

Scenarios may be offered in any order, in parts and by several processes: the result is that of sorting all by (-load,
number), so parts merge exactly. Only loads above the base state's count, since a failure causes no other.
"""

from __future__ import annotations

from array import array

import cython
import numpy as np
from numpy.typing import NDArray

from router.simulation.whatif.kernel import Kernel

if not cython.compiled:  # else they come by the .pxd
    from router.simulation.whatif.arrays import CAUSES, NONE, ints, longs


class Worst:
    """Up to CAUSES scenarios for each directed link, those with the highest loads in messages/s above the base's."""

    def __init__(self, kernel: Kernel) -> None:
        """For scenarios of one kernel.

        Args:
            kernel: offers what it has failed.
        """
        self.kernel = kernel
        self.links = 2 * len(kernel.network.links)
        self._counts = array("i", bytes(4 * self.links + 4))
        self.counts = ints(self._counts)
        self._floors = array("q", bytes(8 * self.links + 8))
        self.floors = longs(self._floors)
        # Of each: messages, bytes, scenario.
        self._causes = array("q", bytes(24 * CAUSES * self.links + 8))
        self.causes = longs(self._causes)
        self.clear()

    def clear(self) -> None:
        """Forget every scenario."""
        rates, _ = self.kernel.base_loads()
        self._floors = array("q", (rates + 1).tobytes() + bytes(8))
        self.floors = longs(self._floors)
        for number in range(self.links):
            self.counts[number] = 0

    def offer(self, scenario: int) -> None:
        """Take the loads as they are now for those of a scenario, whose number is not offered twice."""
        trees = self.kernel.state.trees
        carried = self.kernel.state.traffic.carried
        for tail in range(trees.size):
            for arc in range(trees.firsts[tail], trees.firsts[tail + 1]):
                link = trees.used_links[trees.pairs[arc]]
                if link != NONE:
                    number = 2 * link + (tail > trees.heads[arc])
                    if carried[2 * arc] >= self.floors[number]:
                        self._insert(number, carried[2 * arc], carried[2 * arc + 1], scenario)

    def _insert(self, number: int, rate: int, size: int, scenario: int) -> None:
        first = CAUSES * number
        place = self.counts[number]
        if place == CAUSES:
            place -= 1
            at = 3 * (first + place)
            if self.causes[at] == rate and self.causes[at + 2] < scenario:
                return
        else:
            self.counts[number] = place + 1
        while place > 0:
            at = 3 * (first + place - 1)
            if self.causes[at] > rate or (self.causes[at] == rate and self.causes[at + 2] < scenario):
                break
            for index in range(3):
                self.causes[at + 3 + index] = self.causes[at + index]
            place -= 1
        at = 3 * (first + place)
        self.causes[at] = rate
        self.causes[at + 1] = size
        self.causes[at + 2] = scenario
        if self.counts[number] == CAUSES:
            self.floors[number] = self.causes[3 * (first + CAUSES - 1)]

    def rows(self) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Directed links, scenarios, millionths of messages/s and of bytes/s, by (link, -messages, scenario)."""
        counts = np.frombuffer(self._counts, dtype=np.int32, count=self.links)
        causes = np.frombuffer(self._causes, dtype=np.int64, count=3 * CAUSES * self.links).reshape(-1, CAUSES, 3)
        there = causes[np.arange(CAUSES) < counts[:, np.newaxis]]
        numbers = np.repeat(np.arange(self.links, dtype=np.int32), counts)
        return numbers, there[:, 2].copy(), there[:, 0].copy(), there[:, 1].copy()
