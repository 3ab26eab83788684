"""The highest utilisations of each directed link over many scenarios, and the scenarios that cause them.

Scenarios may be offered in any order, in parts and by several processes: the result is that of sorting all by
(-utilisation, number), so parts merge exactly. Only what is above the base state's counts, since a failure causes no
other.
"""

from __future__ import annotations

from array import array

import cython
import numpy as np
from numpy.typing import NDArray

from router.whatif.kernel.mesh_kernel import Kernel

if not cython.compiled:  # else they come by the .pxd
    from router.whatif.kernel.c_arrays import CAUSES, NONE, doubles, ints, longs

Longs = NDArray[np.int64]


class WorstUtilisations:
    """Scenarios with the highest utilisations above the base's, up to CAUSES for each directed link."""

    def __init__(self, kernel: Kernel) -> None:
        """Make room for the scenarios of one kernel.

        Args:
            kernel: kernel in which the scenarios that are offered have failed.
        """
        self.kernel = kernel
        self.links = 2 * len(kernel.network.links)
        self._counts = array("i", bytes(4 * self.links + 4))
        self.counts = ints(self._counts)
        # Of each link: messages and bytes of the base, and what a scenario has to be above.
        self._bases = array("q", bytes(16 * self.links + 8))
        self.bases = longs(self._bases)
        self._floors = array("d", bytes(8 * self.links + 8))
        self.floors = doubles(self._floors)
        # Of each cause: its utilisation; messages, bytes, scenario.
        self._shares = array("d", bytes(8 * CAUSES * self.links + 8))
        self.shares = doubles(self._shares)
        self._causes = array("q", bytes(24 * CAUSES * self.links + 8))
        self.causes = longs(self._causes)
        self.clear()

    def clear(self) -> None:
        """Forget every scenario."""
        self._bases = array("q", np.column_stack(self.kernel.base_loads()).tobytes() + bytes(8))
        self.bases = longs(self._bases)
        for number in range(self.links):
            self.floors[number] = self.kernel.share(self.bases[2 * number], self.bases[2 * number + 1], number // 2)
            self.counts[number] = 0

    def offer(self, scenario: int) -> None:
        """Take the loads as they are now for those of a scenario, whose number is not offered twice."""
        traffic = self.kernel.state.traffic
        carried = traffic.carried
        for lane in range(traffic.lanes):
            number = traffic.numbers[lane]
            if number == NONE:
                continue
            rate = carried[2 * lane]
            size = carried[2 * lane + 1]
            if rate > self.bases[2 * number] or size > self.bases[2 * number + 1]:
                share = self.kernel.share(rate, size, number >> 1)
                if share > self.floors[number] or (share == self.floors[number] and self.counts[number] == CAUSES):
                    self._insert(number, share, rate, size, scenario)

    def _insert(self, number: int, share: float, rate: int, size: int, scenario: int) -> None:
        first = CAUSES * number
        place = self.counts[number]
        if place == CAUSES:
            place -= 1
            if not self._is_before(share, scenario, first + place):
                return
        else:
            self.counts[number] = place + 1
        while place > 0 and self._is_before(share, scenario, first + place - 1):
            at = first + place
            self.shares[at] = self.shares[at - 1]
            for index in range(3 * at, 3 * at + 3):
                self.causes[index] = self.causes[index - 3]
            place -= 1
        at = first + place
        self.shares[at] = share
        self.causes[3 * at] = rate
        self.causes[3 * at + 1] = size
        self.causes[3 * at + 2] = scenario
        if self.counts[number] == CAUSES:
            self.floors[number] = self.shares[first + CAUSES - 1]

    def _is_before(self, share: float, scenario: int, at: int) -> bool:
        """Whether a scenario is worse than the one at a place."""
        return share > self.shares[at] or (share == self.shares[at] and scenario < self.causes[3 * at + 2])

    def rows(self) -> tuple[NDArray[np.int32], Longs, NDArray[np.float64], Longs, Longs]:
        """Directed links, scenarios, utilisations, millionths of messages/s and of bytes/s; link, then worst first."""
        counts = np.frombuffer(self._counts, dtype=np.int32, count=self.links)
        is_there = np.arange(CAUSES) < counts[:, np.newaxis]
        causes = np.frombuffer(self._causes, dtype=np.int64, count=3 * CAUSES * self.links).reshape(-1, CAUSES, 3)
        shares = np.frombuffer(self._shares, dtype=np.float64, count=CAUSES * self.links).reshape(-1, CAUSES)
        there = causes[is_there]
        numbers = np.repeat(np.arange(self.links, dtype=np.int32), counts)
        return numbers, there[:, 2].copy(), shares[is_there], there[:, 0].copy(), there[:, 1].copy()
