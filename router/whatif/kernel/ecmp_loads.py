# cython: cdivision=True
"""Loads where every router splits what it sends equally over all next hops on shortest paths (ECMP).

Not what the mesh does, but what others compute: for comparison with them. Of an amount that can't be split evenly the
next hops with the lowest ids carry one millionth more. A destination is worked out anew when a failed link was on a
shortest path toward it, or when other publishers choose it; its routers then hand on what they have, the farthest
first. Multicasts go along trees, as in the mesh.
"""

from __future__ import annotations

from array import array

import cython

from router.whatif.kernel.link_loads import LinkLoads
from router.whatif.kernel.spf_trees import SpfTrees

if not cython.compiled:  # else they come by the .pxd
    from router.whatif.kernel.c_arrays import FAR, bytes_of, ints, longs, shorts
    from router.whatif.kernel.link_loads import sort_keys


class EcmpLoads(LinkLoads):
    """Loads of all arcs, paths split."""

    def __init__(self, trees: SpfTrees) -> None:
        super().__init__(trees)
        n = trees.size
        self._entering = array("q", bytes(16 * n * n))
        self.entering = longs(self._entering)
        self._base_distances = array("i", trees.costs_now())
        self.base_distances = ints(self._base_distances)
        self._base_costs = array("i", trees.graph.arc_costs())
        self.base_costs = ints(self._base_costs)
        self._ranks = array("h", bytes(2 * n * n))
        self.ranks = shorts(self._ranks)
        self._arriving = array("q", bytes(16 * n))
        self.arriving = longs(self._arriving)
        self._is_stale = array("b", bytes(n))
        self.is_stale = bytes_of(self._is_stale)
        self._moves = array("q", bytes(32))
        self.moves = longs(self._moves)
        self.move_count = 0

    def expect(self, count: int) -> None:
        """Make room for so many moves in one scenario."""
        self._moves = array("q", bytes(32 * count + 32))
        self.moves = longs(self._moves)

    def demand(self, src: int, dst: int, rate: int, size: int) -> None:
        """Add to what *src* sends to *dst*. Only before `settle`."""
        at = 2 * (dst * self.trees.size + src)
        self.entering[at] += rate
        self.entering[at + 1] += size

    def _gather(self, dst: int) -> None:
        """Sum up what passes through each router on its way to *dst*, and the order of their distances."""
        trees = self.trees
        n = trees.size
        row = dst * n
        for node in range(n):
            distance = trees.distances[row + node]
            self.order[node] = (distance << 16) | node
        sort_keys(self.order, n)
        for index in range(n):
            self.ranks[row + index] = self.order[index] & 0xFFFF
        for place in range(2 * n):
            self.flows[2 * row + place] = self.entering[2 * row + place]
        for index in range(n - 1, 0, -1):
            node = self.ranks[row + index]
            rate, size = self.flows[2 * (row + node)], self.flows[2 * (row + node) + 1]
            if trees.distances[row + node] >= FAR:
                self.lost_rate += rate
                self.lost_bytes += size
                continue
            hops = self._count_hops(row, node)
            turn = 0
            for arc in range(trees.firsts[node], trees.firsts[node + 1]):
                if self._was_hop(row, node, arc):
                    self._carry(arc, _share(rate, hops, turn), _share(size, hops, turn))
                    head = 2 * (row + trees.heads[arc])
                    self.flows[head] += _share(rate, hops, turn)
                    self.flows[head + 1] += _share(size, hops, turn)
                    turn += 1

    def _was_hop(self, row: int, node: int, arc: int) -> bool:
        """Whether the arc of a router is on a shortest path in the base state."""
        near = self.base_distances[row + self.trees.heads[arc]]
        return near < FAR and near + self.base_costs[arc] == self.base_distances[row + node]

    def _is_hop(self, row: int, node: int, arc: int) -> bool:
        """Whether it is on one now."""
        # A link that is down costs as much as there is from the destination to who does not reach it.
        through = self.trees.distances[row + self.trees.heads[arc]] + self.trees.costs[arc]
        return through < FAR and through == self.trees.distances[row + node]

    def _count_hops(self, row: int, node: int) -> int:
        """Next hops in the base state."""
        count = 0
        for arc in range(self.trees.firsts[node], self.trees.firsts[node + 1]):
            count += self._was_hop(row, node, arc)
        return count

    # Failures.

    def shift(self) -> None:
        """The trees were repaired: find out which destinations that concerns."""
        trees = self.trees
        n = trees.size
        graph = trees.graph
        for index in range(graph.hit_count):
            arc = graph.forths[graph.hits[index]]
            if trees.costs[arc] != self.base_costs[arc]:
                back = trees.backs[arc]
                for dst in range(n):
                    if self._was_hop(dst * n, trees.heads[back], arc) or self._was_hop(dst * n, trees.heads[arc], back):
                        self.is_stale[dst] = 1

    def move(self, src: int, dst: int, rate: int, size: int) -> None:
        """Add to what *src* sends to *dst*; negative amounts take away. Loads follow with `finish`."""
        at = 2 * (dst * self.trees.size + src)
        self.entering[at] += rate
        self.entering[at + 1] += size
        self.is_stale[dst] = 1
        place = 3 * self.move_count
        self.moves[place] = at
        self.moves[place + 1] = rate
        self.moves[place + 2] = size
        self.move_count += 1

    def finish(self) -> None:
        """All is moved: work out the destinations that are concerned."""
        for dst in range(self.trees.size):
            if self.is_stale[dst]:
                self.is_stale[dst] = 0
                self._flow_anew(dst)

    def _flow_anew(self, dst: int) -> None:
        trees = self.trees
        n = trees.size
        row = dst * n
        for index in range(n):
            # Nearly in order, as it was in the base state.
            node = self.ranks[row + index]
            distance = trees.distances[row + node]
            self.order[index] = (distance << 16) | node
            self.arriving[2 * node] = self.entering[2 * (row + node)]
            self.arriving[2 * node + 1] = self.entering[2 * (row + node) + 1]
        sort_keys(self.order, n)
        for index in range(n - 1, 0, -1):
            node = self.order[index] & 0xFFFF
            if self.base_distances[row + node] < FAR:
                self._hand_on(row, node)

    def _hand_on(self, row: int, node: int) -> None:
        """Let what arrives at a router flow on, instead of what did in the base state."""
        trees = self.trees
        now, before = 2 * node, 2 * (row + node)
        rate, size = self.arriving[now], self.arriving[now + 1]
        old_rate, old_size = self.flows[before], self.flows[before + 1]
        old_hops = self._count_hops(row, node)
        hops = 0
        for arc in range(trees.firsts[node], trees.firsts[node + 1]):
            hops += self._is_hop(row, node, arc)
        if hops == 0:
            self.lost_rate += rate
            self.lost_bytes += size
        turn = old_turn = 0
        for arc in range(trees.firsts[node], trees.firsts[node + 1]):
            if self._was_hop(row, node, arc):
                self._carry(arc, -_share(old_rate, old_hops, old_turn), -_share(old_size, old_hops, old_turn))
                old_turn += 1
            if self._is_hop(row, node, arc):
                self._carry(arc, _share(rate, hops, turn), _share(size, hops, turn))
                head = trees.heads[arc]
                self.arriving[2 * head] += _share(rate, hops, turn)
                self.arriving[2 * head + 1] += _share(size, hops, turn)
                turn += 1

    def restore(self) -> None:
        """As if nothing had failed."""
        for index in range(self.move_count):
            at = self.moves[3 * index]
            self.entering[at] -= self.moves[3 * index + 1]
            self.entering[at + 1] -= self.moves[3 * index + 2]
        self.move_count = 0
        LinkLoads.restore(self)


def _share(amount: int, shares: int, turn: int) -> int:
    """The part of an amount that the *turn*-th of so many gets."""
    return amount // shares + (1 if turn < amount % shares else 0)
