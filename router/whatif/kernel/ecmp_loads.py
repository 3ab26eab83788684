# cython: cdivision=True
"""Loads where every router splits what it sends equally over all links on shortest paths (ECMP).

Not what the mesh does, but what others compute: for comparison with them. Of parallel links those that cost the least
have a share each. Of an amount that can't be split evenly the first ones, by (id of the next hop, id of the link),
carry one millionth more. A destination is worked out anew when a failed link was on a shortest path toward it, or when
other publishers choose it; its routers then hand on what they have, the farthest first. Multicasts go along trees, as
in the mesh.

A lane is a directed link here.
"""

from __future__ import annotations

from array import array

import cython

from router.whatif.kernel.link_loads import LinkLoads
from router.whatif.kernel.spf_trees import SpfTrees

if not cython.compiled:  # else they come by the .pxd
    from router.whatif.kernel.c_arrays import FAR, NONE, bytes_of, ints, longs, shorts
    from router.whatif.kernel.link_loads import sort_keys


class EcmpLoads(LinkLoads):
    """Loads of all arcs, paths split."""

    def __init__(self, trees: SpfTrees) -> None:
        super().__init__(trees)
        n = trees.size
        for dst in range(n):  # what is sent to addresses goes by the ranks toward each
            self.is_sought[dst] = 1
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
        # Links that are down in the base state; what multicasts let each arc carry there.
        self._was_down = array("b", trees.graph.links_down())
        self.was_down = bytes_of(self._was_down)
        self._spread = array("q", bytes(16 * trees.graph.arcs + 16))
        self.spread = longs(self._spread)
        self.is_base = True

    def _make_lanes(self, lanes: int) -> None:
        LinkLoads._make_lanes(self, 2 * self.trees.graph.links)

    def _number_lanes(self, pair: int) -> None:
        graph = self.trees.graph
        for place in range(graph.parallel_first[pair], graph.parallel_first[pair + 1]):
            link = graph.parallel[place]
            self.numbers[2 * link] = NONE if graph.down[link] else 2 * link
            self.numbers[2 * link + 1] = NONE if graph.down[link] else 2 * link + 1

    def _restore_numbers(self) -> None:
        graph = self.trees.graph
        for index in range(graph.base_down_count, graph.down_count):
            link = graph.down_links[index]
            self.numbers[2 * link] = self.base_numbers[2 * link]
            self.numbers[2 * link + 1] = self.base_numbers[2 * link + 1]

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
            distance = trees.distance_to(dst, node)
            self.order[node] = (distance << 16) | node
        sort_keys(self.order, n)
        for index in range(n):
            self.ranks[row + index] = self.order[index] & 0xFFFF
        for place in range(2 * n):
            self.flows[2 * row + place] = self.entering[2 * row + place]
        for index in range(n - 1, 0, -1):
            node = self.ranks[row + index]
            rate, size = self.flows[2 * (row + node)], self.flows[2 * (row + node) + 1]
            if trees.distance_to(dst, node) >= FAR:
                self.lost_rate += rate
                self.lost_bytes += size
                continue
            ways = self._count_ways(dst, node)
            turn = 0
            for arc in range(trees.firsts[node], trees.firsts[node + 1]):
                if self._was_hop(dst, node, arc):
                    width = self._width(arc, True)
                    head = 2 * (row + trees.heads[arc])
                    self.flows[head] += _shares(rate, ways, turn, width)
                    self.flows[head + 1] += _shares(size, ways, turn, width)
                    self._put_on_links(arc, True, rate, size, ways, turn)
                    turn += width

    def settle(self) -> None:
        """All demands are there: let them flow."""
        LinkLoads.settle(self)
        self.is_base = False

    def carry(self, arc: int, rate: int, size: int) -> None:
        """Add to what one arc carries, as a multicast does: its first link that is up, or was in the base state."""
        if self.is_base:
            self.spread[2 * arc] += rate
            self.spread[2 * arc + 1] += size
        link = self.trees.used_links[arc]
        if link == NONE:
            link = self.trees.graph.base_links[arc]
        self._carry(self._lane(arc, link), rate, size)

    def _lane(self, arc: int, link: int) -> int:
        """The directed link that leads where an arc of its routers does."""
        return 2 * link + self.trees.graph.directions[arc]

    # Parallel links.

    def _is_shared(self, arc: int, link: int, is_base: bool) -> bool:
        """Whether a link is one of those that share what goes over an arc: it is up, and costs the least.

        Args:
            arc: of the link's routers, in the direction that is asked about.
            link: one of the arc's parallel links.
            is_base: in the base state, else now.
        """
        cost = self.trees.graph.link_costs[self._lane(arc, link)]
        if is_base:
            return not self.was_down[link] and cost == self.base_costs[arc]
        return not self.trees.graph.down[link] and cost == self.trees.costs[arc]

    def _width(self, arc: int, is_base: bool) -> int:
        """Links of an arc that share what goes over it, in the base state or now."""
        graph = self.trees.graph
        width = 0
        for place in range(graph.first_parallel(arc), graph.end_of_parallel(arc)):
            width += self._is_shared(arc, graph.parallel[place], is_base)
        return width

    def _put_on_links(self, arc: int, is_base: bool, rate: int, size: int, ways: int, turn: int) -> None:
        """Let the links of an arc carry their shares, in the base state or now.

        Args:
            arc: one on a shortest path.
            is_base: which of its links are up, and what they cost: that of the base state.
            rate: of what its router splits; *size* likewise. Negative amounts take shares away.
            size: see *rate*.
            ways: links over which the router splits.
            turn: place among them of the first link of this arc.
        """
        graph = self.trees.graph
        for place in range(graph.first_parallel(arc), graph.end_of_parallel(arc)):
            link = graph.parallel[place]
            if self._is_shared(arc, link, is_base):
                self._carry(self._lane(arc, link), _shares(rate, ways, turn, 1), _shares(size, ways, turn, 1))
                turn += 1

    def _base_distance_to(self, dst: int, node: int) -> int:
        """Distance in the base state, like `distance_to` of trees."""
        trees = self.trees
        if trees.graph.has_asymmetric_costs:
            return self.base_distances[node * trees.size + dst]
        return self.base_distances[dst * trees.size + node]

    def _was_hop(self, dst: int, node: int, arc: int) -> bool:
        """Whether the arc of a router is on a shortest path in the base state."""
        near = self._base_distance_to(dst, self.trees.heads[arc])
        return near < FAR and near + self.base_costs[arc] == self._base_distance_to(dst, node)

    def _is_hop(self, dst: int, node: int, arc: int) -> bool:
        """Whether it is on one now."""
        # A link that is down costs as much as there is from the destination to who does not reach it.
        through = self.trees.distance_to(dst, self.trees.heads[arc]) + self.trees.costs[arc]
        return through < FAR and through == self.trees.distance_to(dst, node)

    def _count_ways(self, dst: int, node: int) -> int:
        """Links over which a router splits in the base state."""
        count = 0
        for arc in range(self.trees.firsts[node], self.trees.firsts[node + 1]):
            if self._was_hop(dst, node, arc):
                count += self._width(arc, True)
        return count

    # Failures.

    def shift(self) -> None:
        """The trees were repaired: find out which destinations that concerns."""
        trees = self.trees
        n = trees.size
        graph = trees.graph
        for index in range(graph.hit_count):
            pair = graph.hits[index]
            arc = graph.forths[pair]
            back = trees.backs[arc]
            self._number_lanes(pair)
            self._shift_multicasts(arc)
            self._shift_multicasts(back)
            if self._has_changed(arc) or self._has_changed(back):
                for dst in range(n):
                    if self._was_hop(dst, trees.heads[back], arc) or self._was_hop(dst, trees.heads[arc], back):
                        self.is_stale[dst] = 1

    def _has_changed(self, arc: int) -> bool:
        """Whether an arc costs another amount than in the base state, or has other links to share."""
        return self.trees.costs[arc] != self.base_costs[arc] or self._width(arc, False) != self._width(arc, True)

    def _shift_multicasts(self, arc: int) -> None:
        """Move multicasts to the parallel link that is now the first one up: it carries what goes along trees."""
        before, now = self.trees.graph.base_links[arc], self.trees.used_links[arc]
        if now != NONE and now != before:
            rate, size = self.spread[2 * arc], self.spread[2 * arc + 1]
            self._carry(self._lane(arc, before), -rate, -size)
            self._carry(self._lane(arc, now), rate, size)

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
            distance = trees.distance_to(dst, node)
            self.order[index] = (distance << 16) | node
            self.arriving[2 * node] = self.entering[2 * (row + node)]
            self.arriving[2 * node + 1] = self.entering[2 * (row + node) + 1]
        sort_keys(self.order, n)
        for index in range(n - 1, 0, -1):
            node = self.order[index] & 0xFFFF
            if self._base_distance_to(dst, node) < FAR:
                self._hand_on(dst, node)

    def _hand_on(self, dst: int, node: int) -> None:
        """Let what arrives at a router flow on, instead of what did in the base state."""
        trees = self.trees
        now, before = 2 * node, 2 * (dst * trees.size + node)
        rate, size = self.arriving[now], self.arriving[now + 1]
        old_rate, old_size = self.flows[before], self.flows[before + 1]
        old_ways = self._count_ways(dst, node)
        ways = 0
        for arc in range(trees.firsts[node], trees.firsts[node + 1]):
            if self._is_hop(dst, node, arc):
                ways += self._width(arc, False)
        if ways == 0:
            self.lost_rate += rate
            self.lost_bytes += size
        turn = old_turn = 0
        for arc in range(trees.firsts[node], trees.firsts[node + 1]):
            if self._was_hop(dst, node, arc):
                self._put_on_links(arc, True, -old_rate, -old_size, old_ways, old_turn)
                old_turn += self._width(arc, True)
            if self._is_hop(dst, node, arc):
                self._put_on_links(arc, False, rate, size, ways, turn)
                width = self._width(arc, False)
                head = trees.heads[arc]
                self.arriving[2 * head] += _shares(rate, ways, turn, width)
                self.arriving[2 * head + 1] += _shares(size, ways, turn, width)
                turn += width

    def restore(self) -> None:
        """Restore the base state, in which nothing has failed."""
        for index in range(self.move_count):
            at = self.moves[3 * index]
            self.entering[at] -= self.moves[3 * index + 1]
            self.entering[at + 1] -= self.moves[3 * index + 2]
        self.move_count = 0
        LinkLoads.restore(self)


def _shares(amount: int, parts: int, turn: int, count: int) -> int:
    """Shares of *count* consecutive parts of an amount that is split into equal parts, from the *turn*-th part on.

    What can't be split evenly goes to the first, one each. A negative amount is split as if it weren't.
    """
    if amount < 0:
        return -_shares(-amount, parts, turn, count)
    return count * (amount // parts) + max(0, min(count, amount % parts - turn))
