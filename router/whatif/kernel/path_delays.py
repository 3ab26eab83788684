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

from router.whatif.kernel.graph import Graph
from router.whatif.kernel.incremental_order_statistics import IncrementalOrderStatistics
from router.whatif.kernel.network_arrays import Network
from router.whatif.kernel.spf_trees import SpfTrees

if not cython.compiled:  # else they come by the .pxd
    from router.whatif.kernel.c_arrays import FAR, NONE, bytes_of, ints, longs, shorts
    from router.whatif.kernel.preorder import number_tree


class PathDelays:
    """Delays by pair of routers, microseconds, one way, in the base state; and what changes in a scenario."""

    def __init__(self, trees: SpfTrees, network: Network, *, is_ranked: bool = True) -> None:
        """Work out the delays of trees in their base state.

        Args:
            trees: trees that have been grown.
            network: network with the delays of links.
            is_ranked: whether there are percentiles; else nothing is kept, and a delay that is asked for is added up.
        """
        self.trees = trees
        self.is_ranked = is_ranked
        self._link_delays = array("q", np.maximum(network.link_delay_us, 0).tobytes() + bytes(8))
        self.link_delays = longs(self._link_delays)
        self.stale_count = 0
        if is_ranked:
            self._make_state(trees.size)

    def _make_state(self, n: int) -> None:
        """Keep the delays of all pairs, and make room for what changes."""
        # By destination, then router; the tree toward a destination in pre-order, by place there how many are in the
        # slice that begins there, and each router's place.
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
        self._spare = array("i", bytes(4 * n))
        self.spare = ints(self._spare)
        for dst in range(n):
            self._number(dst)
        self.ranking = IncrementalOrderStatistics(self._sorted_delays())
        # Of a scenario.
        self._new_delays = array("q", bytes(8 * n * n))
        self.new_delays = longs(self._new_delays)
        self._stages = array("b", bytes(n * n))
        self.stages = bytes_of(self._stages)
        self._stale = array("i", bytes(4 * n * n))
        self.stale = ints(self._stale)

    def _number(self, dst: int) -> None:
        """Put the routers of the tree toward *dst* in pre-order, and add up delays along it."""
        trees = self.trees
        n = trees.size
        row = dst * n
        parents = self.stack
        for node in range(n):
            slot = trees.base_slots[row + node]
            parents[node] = NONE if slot == NONE else trees.heads[trees.firsts[node] + slot]
        order = self.counts
        first = number_tree(parents, dst, n, order, self.spare, row, self.orders, self.sizes, self.places, row)
        for index in range(first, n):
            node = order[index]
            arc = trees.firsts[node] + trees.base_slots[row + node]
            self.delays[row + node] = self.delays[row + trees.heads[arc]] + self._delay(arc)

    def _delay(self, arc: int) -> int:
        """Delay of the link in use."""
        return self.link_delays[self.trees.used_links[arc]]

    def _sorted_delays(self) -> array[int]:
        """Delays of all pairs with a path, ascending, and one more cell."""
        n = self.trees.size
        is_joined = np.frombuffer(self.trees.costs_now(), dtype=np.int32).reshape(n, n) < FAR
        np.fill_diagonal(is_joined, False)
        delays = np.sort(np.frombuffer(self._delays, dtype=np.int64).reshape(n, n)[is_joined])
        return array("q", delays.tobytes() + bytes(8))

    # Scenarios.

    def update(self) -> None:
        """The trees were repaired: find out which delays have changed. `restore` comes before the next time."""
        if not self.is_ranked:
            return
        trees = self.trees
        graph = trees.graph
        for index in range(trees.log_size):
            if trees.log_new_slots[index] != trees.log_slots[index]:
                self._mark(trees.log_nodes[index], trees.log_roots[index])
        for index in range(graph.hit_count):
            arc = graph.forths[graph.hits[index]]
            self._compare(graph, arc)
            self._compare(graph, graph.backs[arc])
        n = trees.size
        for index in range(self.stale_count):
            at = self.stale[index]
            self.ranking.remove(self.delays[at])
            if trees.distances[at] < FAR:
                if self.stages[at] == 1:
                    self._work_out(at // n, at % n)
                self.ranking.add(self.new_delays[at])

    def _compare(self, graph: Graph, arc: int) -> None:
        """An arc has lost a link: see whether the one that it uses now takes as long."""
        before, now = graph.base_links[arc], graph.used_links[arc]
        if now != NONE and before != NONE and self.link_delays[now] != self.link_delays[before]:
            self._mark_users(arc)

    def between(self, src: int, dst: int) -> int:
        """One-way delay of the current path, microseconds; a path must exist."""
        if not self.is_ranked:
            return self._added_up(src, dst)
        at = dst * self.trees.size + src
        if self.stages[at] == 1:
            self._work_out(dst, src)
        return self.new_delays[at] if self.stages[at] else self.delays[at]

    def _added_up(self, src: int, dst: int) -> int:
        """The delay from *src* to *dst*, link by link."""
        trees = self.trees
        total = 0
        node = src
        while node != dst:
            arc = trees.firsts[node] + trees.slots[node * trees.size + dst]
            total += self._delay(arc)
            node = trees.heads[arc]
        return total

    def _mark(self, dst: int, node: int) -> None:
        """The delay of a router toward *dst* has to be worked out anew, and those of all behind it."""
        row = dst * self.trees.size
        if self.stages[row + node]:
            return
        first = row + self.places[row + node]
        for place in range(first, first + self.sizes[first]):
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

    def restore(self) -> None:
        """The delays of the base state again."""
        for index in range(self.stale_count):
            self.stages[self.stale[index]] = 0
        self.stale_count = 0
        if self.is_ranked:
            self.ranking.reset()

    def percentile(self, percent: int) -> int:
        """The delay that so many percent of the pairs with a path do not exceed, microseconds; NONE without pairs."""
        return self.ranking.percentile(percent) if self.ranking.size() > 0 else NONE
