# cython: cdivision=True
"""Loads of the arcs: demands sent hop by hop, every router by its own tree, and what failures change in that.

For each destination the first hops that all routers take toward it make a tree, and the base state knows what passes
through each router on that tree. A failure changes the next hop of few routers; at each of them what passed through is
taken off the old path, as far as the next router whose hop changed, and what of it still comes by is put on the new
path. All of it are sums of whole numbers, so nothing depends on the order.

Amounts are pairs, messages and bytes, next to each other. They are kept by lane, which is here an arc: all that goes
over it goes over the one link that is used. Source of the routing rule: `router/core/linkstate/spf.py`.
"""

from __future__ import annotations

from array import array

import cython

from router.whatif.kernel.spf_trees import SpfTrees

if not cython.compiled:  # else they come by the .pxd
    from router.whatif.kernel.c_arrays import FAR, NONE, bytes_of, ints, longs


class LinkLoads:
    """Loads of all arcs as they are now, in the base state or with failures; paths as the mesh takes them."""

    def __init__(self, trees: SpfTrees) -> None:
        self.trees = trees
        n = trees.size
        self._flows = array("q", bytes(16 * n * n))
        self.flows = longs(self._flows)
        self.lost_rate = self.lost_bytes = 0
        self.base_lost_rate = self.base_lost_bytes = 0
        self._make_lanes(trees.graph.arcs)
        self._make_scratch(n)

    def _make_lanes(self, lanes: int) -> None:
        """Make the arrays of lanes: directed link (NONE when down) and load of each; now and in the base state."""
        self.lanes = lanes
        self._numbers = array("i", bytes(4 * lanes + 4))
        self.numbers = ints(self._numbers)
        self._base_numbers = array("i", bytes(4 * lanes + 4))
        self.base_numbers = ints(self._base_numbers)
        self._carried = array("q", bytes(16 * lanes + 16))
        self.carried = longs(self._carried)
        self._base_carried = array("q", bytes(16 * lanes + 16))
        self.base_carried = longs(self._base_carried)
        for pair in range(self.trees.graph.adjacencies):
            self._number_lanes(pair)
        for lane in range(lanes):
            self.base_numbers[lane] = self.numbers[lane]

    def _number_lanes(self, pair: int) -> None:
        """Note the directed links of two neighbors that are up now."""
        graph = self.trees.graph
        arc = graph.forths[pair]
        back = graph.backs[arc]
        self.numbers[arc] = NONE if graph.used_links[arc] == NONE else 2 * graph.used_links[arc]
        self.numbers[back] = NONE if graph.used_links[back] == NONE else 2 * graph.used_links[back] + 1

    def _make_scratch(self, n: int) -> None:
        """Destinations of demands; for one of them: entries of the log, and what is to be moved at each router."""
        self._is_sought = array("b", bytes(n))
        self.is_sought = bytes_of(self._is_sought)
        self._changes = array("i", [NONE]) * n
        self.changes = ints(self._changes)
        self._next_changes = array("i", bytes(4 * n * n))
        self.next_changes = ints(self._next_changes)
        self._destinations = array("i", bytes(4 * n))
        self.destinations = ints(self._destinations)
        self._is_changed = array("b", bytes(n))
        self.is_changed = bytes_of(self._is_changed)
        self._moved = array("q", bytes(16 * n))
        self.moved = longs(self._moved)
        self._order = array("q", bytes(8 * n))
        self.order = longs(self._order)
        self._new_slots = array("i", bytes(4 * n))
        self.new_slots = ints(self._new_slots)

    def expect(self, count: int) -> None:
        """Make room for so many moves in one scenario."""

    # The base state.

    def demand(self, src: int, dst: int, rate: int, size: int) -> None:
        """Add to what *src* sends to *dst*. Only before `settle`."""
        at = 2 * (dst * self.trees.size + src)
        self.flows[at] += rate
        self.flows[at + 1] += size
        self.is_sought[dst] = 1

    def settle(self) -> None:
        """All demands are there: let them flow."""
        for dst in range(self.trees.size):
            if self.is_sought[dst]:
                self._gather(dst)
        for place in range(2 * self.lanes):
            self.base_carried[place] = self.carried[place]
        self.base_lost_rate = self.lost_rate
        self.base_lost_bytes = self.lost_bytes

    def _gather(self, dst: int) -> None:
        """Sum up what passes through each router on its way to *dst*, from the leaves of the tree inward."""
        trees = self.trees
        n = trees.size
        incoming, ready = self.changes, self.new_slots
        for node in range(n):
            incoming[node] = 0
        for node in range(n):
            slot = trees.base_slots[dst * n + node]
            if slot != NONE:
                incoming[trees.heads[trees.firsts[node] + slot]] += 1
        count = 0
        for node in range(n):
            if incoming[node] == 0 and node != dst:
                ready[count] = node
                count += 1
        while count > 0:
            count -= 1
            node = ready[count]
            at = 2 * (dst * n + node)
            slot = trees.base_slots[dst * n + node]
            if slot == NONE:
                self.lost_rate += self.flows[at]
                self.lost_bytes += self.flows[at + 1]
                continue
            arc = trees.firsts[node] + slot
            self._carry(arc, self.flows[at], self.flows[at + 1])
            head = trees.heads[arc]
            incoming[head] -= 1
            if head != dst:
                self.flows[2 * (dst * n + head)] += self.flows[at]
                self.flows[2 * (dst * n + head) + 1] += self.flows[at + 1]
                if incoming[head] == 0:
                    ready[count] = head
                    count += 1
        for node in range(n):
            incoming[node] = NONE

    def _carry(self, arc: int, rate: int, size: int) -> None:
        self.carried[2 * arc] += rate
        self.carried[2 * arc + 1] += size

    # Failures.

    def shift(self) -> None:
        """The trees were repaired: move what flows to where it flows now."""
        trees = self.trees
        count = 0
        for index in range(trees.graph.hit_count):
            self._number_lanes(trees.graph.hits[index])
        for index in range(trees.log_size):
            if trees.log_new_slots[index] != trees.log_slots[index]:
                dst = trees.log_nodes[index]
                if not self.is_sought[dst]:
                    continue
                if self.changes[dst] == NONE:
                    self.destinations[count] = dst
                    count += 1
                self.next_changes[index] = self.changes[dst]
                self.changes[dst] = index
        for index in range(count):
            self._shift_toward(self.destinations[index])

    def _shift_toward(self, dst: int) -> None:
        """Move what flows to *dst*."""
        trees = self.trees
        n = trees.size
        count = 0
        change = self.changes[dst]
        while change != NONE:
            node = trees.log_roots[change]
            at = 2 * (dst * n + node)
            self.is_changed[node] = 1
            self.moved[2 * node] = self.flows[at]
            self.moved[2 * node + 1] = self.flows[at + 1]
            self.new_slots[node] = trees.log_new_slots[change]
            # By distance now: who is farther hands on to who is nearer.
            distance = trees.distance_to(dst, node)
            self.order[count] = (distance << 16) | node
            count += 1
            change = self.next_changes[change]
        for index in range(count):
            self._take_away(dst, self.order[index] & 0xFFFF)
        sort_keys(self.order, count)
        for index in range(count - 1, -1, -1):
            self._put(dst, self.order[index] & 0xFFFF)
        for index in range(count):
            self.is_changed[self.order[index] & 0xFFFF] = 0
        self.changes[dst] = NONE

    def _take_away(self, dst: int, node: int) -> None:
        """Take what flowed through *node* off its old path, as far as the next router with another hop now."""
        trees = self.trees
        row = dst * trees.size
        rate = self.flows[2 * (row + node)]
        size = self.flows[2 * (row + node) + 1]
        if rate == 0 and size == 0:
            return
        while True:
            arc = trees.firsts[node] + trees.base_slots[row + node]
            self._carry(arc, -rate, -size)
            node = trees.heads[arc]
            if node == dst:
                return
            if self.is_changed[node]:
                self.moved[2 * node] -= rate
                self.moved[2 * node + 1] -= size
                return

    def _put(self, dst: int, node: int) -> None:
        """Put what still comes to *node* on its new path, as far as the next router with another hop now."""
        trees = self.trees
        row = dst * trees.size
        rate = self.moved[2 * node]
        size = self.moved[2 * node + 1]
        slot = self.new_slots[node]
        if slot == NONE:
            self.lost_rate += rate
            self.lost_bytes += size
            return
        if rate == 0 and size == 0:
            return
        while True:
            arc = trees.firsts[node] + slot
            self._carry(arc, rate, size)
            node = trees.heads[arc]
            if node == dst:
                return
            if self.is_changed[node]:
                self.moved[2 * node] += rate
                self.moved[2 * node + 1] += size
                return
            slot = trees.base_slots[row + node]

    def move(self, src: int, dst: int, rate: int, size: int) -> None:
        """Add to what *src* sends to *dst* on the path of now; negative amounts take away."""
        trees = self.trees
        n = trees.size
        node = src
        if trees.distances[src * n + dst] >= FAR:
            self.lost_rate += rate
            self.lost_bytes += size
            return
        while node != dst:
            arc = trees.firsts[node] + trees.slots[node * n + dst]
            self._carry(arc, rate, size)
            node = trees.heads[arc]

    def carry(self, arc: int, rate: int, size: int) -> None:
        """Add to what one arc carries, as a multicast does."""
        self._carry(arc, rate, size)

    def lose(self, rate: int, size: int) -> None:
        """Add to what reaches nobody."""
        self.lost_rate += rate
        self.lost_bytes += size

    def finish(self) -> None:
        """All is moved."""

    def restore(self) -> None:
        """Restore the base state, in which nothing has failed."""
        for place in range(2 * self.lanes):
            self.carried[place] = self.base_carried[place]
        self._restore_numbers()
        self.lost_rate = self.base_lost_rate
        self.lost_bytes = self.base_lost_bytes

    def _restore_numbers(self) -> None:
        """The directed links of the base state again."""
        graph = self.trees.graph
        for index in range(graph.hit_count):
            arc = graph.forths[graph.hits[index]]
            self.numbers[arc] = self.base_numbers[arc]
            self.numbers[graph.backs[arc]] = self.base_numbers[graph.backs[arc]]


def sort_keys(keys: array[int], count: int) -> None:
    """Put the first *count* keys in ascending order, in Shell's way: they are very few, or nearly in order."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for index in range(gap, count):
            key = keys[index]
            place = index
            while place >= gap and keys[place - gap] > key:
                keys[place] = keys[place - gap]
                place -= gap
            keys[place] = key
        gap //= 3
