"""Links between routers, and which of them are up.

A pair of neighbors is joined by one link or by several in parallel, of which the first that is up is used. Each pair
has two arcs, one for each direction; the arcs that leave a router are next to each other, by the place of their head.
"""

from __future__ import annotations

from array import array

import cython

from router.whatif.kernel.network_arrays import Network

if not cython.compiled:  # else they come by the .pxd
    from router.whatif.kernel.c_arrays import FAR, NONE, bytes_of, ints


class Graph:
    """The links of a mesh, and what has failed: for good, or in a scenario that is taken back later."""

    def __init__(self, network: Network) -> None:
        self.size = len(network.routers)
        self.arcs = len(network.head)
        self.links = len(network.links)
        self.adjacencies = len(network.parallel_first) - 1
        # With one cell more, since an array must not be empty.
        self._firsts = array("i", network.first.tobytes())
        self.firsts = ints(self._firsts)
        self._heads = array("i", network.head.tobytes() + bytes(4))
        self.heads = ints(self._heads)
        self._backs = array("i", network.back.tobytes() + bytes(4))
        self.backs = ints(self._backs)
        self._pairs = array("i", network.adjacency.tobytes() + bytes(4))
        self.pairs = ints(self._pairs)
        self._parallel_first = array("i", network.parallel_first.tobytes())
        self.parallel_first = ints(self._parallel_first)
        self._parallel = array("i", network.parallel.tobytes() + bytes(4))
        self.parallel = ints(self._parallel)
        self._link_costs = array("i", network.link_cost.tobytes() + bytes(4))
        self.link_costs = ints(self._link_costs)
        self._make_state()
        self._connect()

    def _make_state(self) -> None:
        self._link_pairs = array("i", bytes(4 * self.links + 4))
        self.link_pairs = ints(self._link_pairs)
        self._costs = array("i", bytes(4 * self.arcs + 4))
        self.costs = ints(self._costs)
        self._used_links = array("i", bytes(4 * self.adjacencies + 4))
        self.used_links = ints(self._used_links)
        self._base_links = array("i", bytes(4 * self.adjacencies + 4))
        self.base_links = ints(self._base_links)
        self._forths = array("i", bytes(4 * self.adjacencies + 4))
        self.forths = ints(self._forths)
        # What has failed; first in the base state, then in the scenario.
        self._dead = array("b", bytes(self.size))
        self.dead = bytes_of(self._dead)
        self._dead_routers = array("i", bytes(4 * self.size))
        self.dead_routers = ints(self._dead_routers)
        self.dead_count = self.base_dead_count = 0
        self._down = array("b", bytes(self.links + 1))
        self.down = bytes_of(self._down)
        self._down_links = array("i", bytes(4 * self.links + 4))
        self.down_links = ints(self._down_links)
        self.down_count = self.base_down_count = 0
        # Pairs of neighbors that have lost a link in the scenario.
        self._is_hit = array("b", bytes(self.adjacencies + 1))
        self.is_hit = bytes_of(self._is_hit)
        self._hits = array("i", bytes(4 * self.adjacencies + 4))
        self.hits = ints(self._hits)
        self.hit_count = 0

    def _connect(self) -> None:
        for pair in range(self.adjacencies):
            for place in range(self.parallel_first[pair], self.parallel_first[pair + 1]):
                self.link_pairs[self.parallel[place]] = pair
            self.used_links[pair] = self.base_links[pair] = self.parallel[self.parallel_first[pair]]
        for tail in range(self.size):
            for arc in range(self.firsts[tail], self.firsts[tail + 1]):
                pair = self.pairs[arc]
                self.costs[arc] = self.link_costs[self.used_links[pair]]
                if tail < self.heads[arc]:
                    self.forths[pair] = arc

    def arc_costs(self) -> array[int]:
        """By arc, type code `i`; FAR where it is down."""
        return self._costs

    def dead_now(self) -> array[int]:
        """By router, 1 when it has failed, type code `b`."""
        return self._dead

    def links_down(self) -> array[int]:
        """By link, 1 when it has failed, type code `b`."""
        return self._down

    def take_down(self, link: int) -> None:
        """A link fails; once is enough."""
        if not self.down[link]:
            self.down[link] = 1
            self.down_links[self.down_count] = link
            self.down_count += 1
            pair = self.link_pairs[link]
            if not self.is_hit[pair]:
                self.is_hit[pair] = 1
                self.hits[self.hit_count] = pair
                self.hit_count += 1

    def kill(self, router: int) -> None:
        """A router fails, and all its links with it."""
        if self.dead[router]:
            return
        self.dead[router] = 1
        self.dead_routers[self.dead_count] = router
        self.dead_count += 1
        for arc in range(self.firsts[router], self.firsts[router + 1]):
            pair = self.pairs[arc]
            for place in range(self.parallel_first[pair], self.parallel_first[pair + 1]):
                self.take_down(self.parallel[place])

    def choose_link(self, pair: int) -> bool:
        """Use the first link of a pair that was hit which is up. Returns: whether the cost of its arcs has changed."""
        link = NONE
        for place in range(self.parallel_first[pair], self.parallel_first[pair + 1]):
            if not self.down[self.parallel[place]]:
                link = self.parallel[place]
                break
        self.used_links[pair] = link
        return self._charge(pair)

    def _charge(self, pair: int) -> bool:
        """Let both arcs cost what the link costs that is used. Returns: whether they cost something else before."""
        link = self.used_links[pair]
        arc = self.forths[pair]
        cost = FAR if link == NONE else self.link_costs[link]
        if self.costs[arc] == cost:
            return False
        self.costs[arc] = cost
        self.costs[self.backs[arc]] = cost
        return True

    def keep_failures(self) -> None:
        """Make what has failed until now part of the base state: it is not taken back."""
        for index in range(self.hit_count):
            pair = self.hits[index]
            self.base_links[pair] = self.used_links[pair]
            self.is_hit[pair] = 0
        self.hit_count = 0
        self.base_dead_count = self.dead_count
        self.base_down_count = self.down_count

    def restore(self) -> None:
        """Take back what has failed in a scenario."""
        for index in range(self.hit_count):
            pair = self.hits[index]
            self.used_links[pair] = self.base_links[pair]
            self._charge(pair)
            self.is_hit[pair] = 0
        for index in range(self.base_down_count, self.down_count):
            self.down[self.down_links[index]] = 0
        for index in range(self.base_dead_count, self.dead_count):
            self.dead[self.dead_routers[index]] = 0
        self.hit_count = 0
        self.down_count = self.base_down_count
        self.dead_count = self.base_dead_count
