# cython: cdivision=True
"""Delays of the paths between all pairs of routers, and their percentiles after failures.

A path changes for the routers at which the next hop changed, and for all behind them on the tree toward the
destination: a slice of that tree in pre-order. Their delays are worked out anew, each from its next hop's. The
percentiles are those of the base state's delays, kept sorted, less those that were taken out and with those that came
in.
"""

from __future__ import annotations

from array import array

import cython
import numpy as np

from router.simulation.whatif.network import Network
from router.simulation.whatif.trees import Trees

if not cython.compiled:  # else they come by the .pxd
    from router.simulation.whatif.arrays import FAR, NONE, bytes_of, ints, longs, shorts


class Delays:
    """Delays by pair of routers, microseconds, one way, in the base state; and what changes in a scenario."""

    def __init__(self, trees: Trees, network: Network) -> None:
        """For trees in their base state."""
        self.trees = trees
        n = trees.size
        self._link_delays = array("q", np.maximum(network.link_delay_us, 0).tobytes() + bytes(8))
        self.link_delays = longs(self._link_delays)
        # By destination, then router; the tree toward a destination in pre-order, and each router's slice of it.
        self._delays = array("q", bytes(8 * n * n))
        self.delays = longs(self._delays)
        self._orders = array("h", bytes(2 * n * n))
        self.orders = shorts(self._orders)
        self._places = array("h", bytes(2 * n * n))
        self.places = shorts(self._places)
        self._sizes = array("h", bytes(2 * n * n))
        self.sizes = shorts(self._sizes)
        self._counts = array("i", bytes(4 * n))
        self.counts = ints(self._counts)
        self._stack = array("i", bytes(4 * n))
        self.stack = ints(self._stack)
        for dst in range(n):
            self._number(dst)
        self._sort_delays()
        # Of a scenario.
        self._new_delays = array("q", bytes(8 * n * n))
        self.new_delays = longs(self._new_delays)
        self._stages = array("b", bytes(n * n))
        self.stages = bytes_of(self._stages)
        self._stale = array("i", bytes(4 * n * n))
        self.stale = ints(self._stale)
        self._removed = array("q", bytes(8 * n * n))
        self.removed = longs(self._removed)
        self._added = array("q", bytes(8 * n * n))
        self.added = longs(self._added)
        self.stale_count = self.removed_count = self.added_count = self.below = 0

    def _number(self, dst: int) -> None:
        """Put the routers of the tree toward *dst* in pre-order, and add up delays along it."""
        trees = self.trees
        n = trees.size
        row = dst * n
        children, order = self.counts, self.stack
        for node in range(n):
            children[node] = 0
        for node in range(n):
            if trees.base_slots[row + node] != NONE:
                children[self._next(row, node)] += 1
        # Leaves first; from the other end, every router comes after its next hop.
        first = n
        for node in range(n):
            if children[node] == 0 and node != dst and trees.base_slots[row + node] != NONE:
                first -= 1
                order[first] = node
        last = n
        while last > first:
            last -= 1
            node = order[last]
            self.sizes[row + node] += 1
            head = self._next(row, node)
            self.sizes[row + head] += self.sizes[row + node]
            children[head] -= 1
            if children[head] == 0 and head != dst:
                first -= 1
                order[first] = head
        self.sizes[row + dst] += 1
        self.orders[row] = dst
        free = self.counts
        free[dst] = 1
        for index in range(first, n):
            node = order[index]
            head = self._next(row, node)
            place = free[head]
            free[head] = place + self.sizes[row + node]
            self.places[row + node] = place
            free[node] = place + 1
            self.orders[row + place] = node
            arc = trees.firsts[node] + trees.base_slots[row + node]
            self.delays[row + node] = self.delays[row + head] + self._delay(arc)

    def _next(self, row: int, node: int) -> int:
        """The next hop of a router in the base state; *row* is that of the destination."""
        return self.trees.heads[self.trees.firsts[node] + self.trees.base_slots[row + node]]

    def _delay(self, arc: int) -> int:
        """Of the link that is used now."""
        return self.link_delays[self.trees.used_links[self.trees.pairs[arc]]]

    def _sort_delays(self) -> None:
        n = self.trees.size
        is_joined = np.frombuffer(self.trees.costs_now(), dtype=np.int32).reshape(n, n) < FAR
        np.fill_diagonal(is_joined, False)
        delays = np.sort(np.frombuffer(self._delays, dtype=np.int64).reshape(n, n)[is_joined])
        self.base_count = len(delays)
        self._sorted = array("q", delays.tobytes() + bytes(8))
        self.sorted = longs(self._sorted)

    # Scenarios.

    def update(self) -> None:
        """The trees were repaired: find out which delays have changed."""
        trees = self.trees
        self.stale_count = self.removed_count = self.added_count = 0
        for index in range(trees.log_size):
            if trees.log_new_slots[index] != trees.log_slots[index]:
                self._mark(trees.log_nodes[index], trees.log_roots[index])
        for index in range(trees.hit_count):
            pair = trees.hits[index]
            before = trees.parallel[trees.parallel_first[pair]]
            now = trees.used_links[pair]
            if now != NONE and self.link_delays[now] != self.link_delays[before]:
                self._mark_users(trees.forths[pair])
                self._mark_users(trees.backs[trees.forths[pair]])
        n = trees.size
        for index in range(self.stale_count):
            at = self.stale[index]
            self.removed[index] = self.delays[at]
            if trees.distances[at] < FAR:
                if self.stages[at] == 1:
                    self._work_out(at // n, at % n)
                self.added[self.added_count] = self.new_delays[at]
                self.added_count += 1
        self.removed_count = self.stale_count
        for index in range(self.stale_count):
            self.stages[self.stale[index]] = 0

    def _mark(self, dst: int, node: int) -> None:
        """The delay of a router toward *dst* has to be worked out anew, and those of all behind it."""
        row = dst * self.trees.size
        if self.stages[row + node]:
            return
        first = row + self.places[row + node]
        for place in range(first, first + self.sizes[row + node]):
            at = row + self.orders[place]
            if not self.stages[at]:
                self.stages[at] = 1
                self.stale[self.stale_count] = at
                self.stale_count += 1

    def _mark_users(self, arc: int) -> None:
        """The link of an arc is another one now: this concerns whoever used the arc."""
        trees = self.trees
        tail = trees.heads[trees.backs[arc]]
        slot = arc - trees.firsts[tail]
        for dst in range(trees.size):
            if trees.base_slots[dst * trees.size + tail] == slot:
                self._mark(dst, tail)

    def _work_out(self, dst: int, src: int) -> None:
        """The delay from *src* to *dst*, and of all on the way for which it is not known yet."""
        trees = self.trees
        n = trees.size
        row = dst * n
        depth = 0
        node = src
        while node != dst and self.stages[row + node] == 1:
            arc = trees.firsts[node] + trees.slots[node * n + dst]
            self.stack[depth] = arc
            depth += 1
            node = trees.heads[arc]
        total = self.new_delays[row + node] if self.stages[row + node] else self.delays[row + node]
        while depth > 0:
            depth -= 1
            arc = self.stack[depth]
            total += self._delay(arc)
            at = row + trees.heads[trees.backs[arc]]
            self.new_delays[at] = total
            self.stages[at] = 2

    def percentile(self, percent: int) -> int:
        """The delay that so many percent of the pairs with a path do not exceed, microseconds; NONE without pairs."""
        count = self.base_count - self.removed_count + self.added_count
        if count == 0:
            return NONE
        rank = (percent * count + 99) // 100
        # What came in and what was taken out moves a rank so far at most.
        first = rank - 1 - self.added_count
        low = self.sorted[first] if first >= 0 else 0
        last = rank - 1 + self.removed_count
        if last < self.base_count:
            high = self.sorted[last]
        else:
            high = self.sorted[self.base_count - 1]
            for index in range(self.added_count):
                high = max(high, self.added[index])
        self.below = 0
        added = self._bring_forward(self.added, self.added_count, low, high, 1)
        removed = self._bring_forward(self.removed, self.removed_count, low, high, -1)
        while low < high:
            middle = (low + high) // 2
            rest = self.below + self._count_to(middle)
            for index in range(added):
                rest += self.added[index] <= middle
            for index in range(removed):
                rest -= self.removed[index] <= middle
            if rest >= rank:
                high = middle
            else:
                low = middle + 1
        return low

    def _bring_forward(self, values: array[int], count: int, low: int, high: int, sign: int) -> int:
        """Put the values from *low* to below *high* before all others, and count the lower ones in `below`.

        Returns: how many were put there.
        """
        near = 0
        for index in range(count):
            value = values[index]
            if value < low:
                self.below += sign
            elif value < high:
                values[index] = values[near]
                values[near] = value
                near += 1
        return near

    def _count_to(self, value: int) -> int:
        """Pairs of the base state with no more delay than that."""
        first = 0
        last = self.base_count
        while first < last:
            middle = (first + last) // 2
            if self.sorted[middle] <= value:
                first = middle + 1
            else:
                last = middle
        return first
