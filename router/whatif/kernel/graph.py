"""Links between routers, and which of them are up.

A pair of neighbors is joined by one link or by several in parallel, of which the first that is up is used. Each pair
has two arcs, one for each direction; the arcs that leave a router are next to each other, by the place of their head.
A link may cost another amount in each direction, so each direction has its own order of parallel links.
"""

from __future__ import annotations

from array import array

import cython
import numpy as np

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
        # First in direction 0, then in direction 1; costs by directed link.
        self._parallel = array("i", network.parallel.tobytes() + network.parallel_back.tobytes() + bytes(4))
        self.parallel = ints(self._parallel)
        costs = np.column_stack((network.link_cost, network.link_cost_back))
        self._link_costs = array("i", costs.astype(np.int32).tobytes() + bytes(4))
        self.link_costs = ints(self._link_costs)
        self.has_asymmetric_costs = network.has_asymmetric_costs
        self._make_state()
        self._connect()

    def _make_state(self) -> None:
        self._link_pairs = array("i", bytes(4 * self.links + 4))
        self.link_pairs = ints(self._link_pairs)
        self._costs = array("i", bytes(4 * self.arcs + 4))
        self.costs = ints(self._costs)
        # By arc.
        self._used_links = array("i", bytes(4 * self.arcs + 4))
        self.used_links = ints(self._used_links)
        self._base_links = array("i", bytes(4 * self.arcs + 4))
        self.base_links = ints(self._base_links)
        self._directions = array("b", bytes(self.arcs + 1))
        self.directions = bytes_of(self._directions)
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
        for tail in range(self.size):
            for arc in range(self.firsts[tail], self.firsts[tail + 1]):
                if tail < self.heads[arc]:
                    self.forths[self.pairs[arc]] = arc
                else:
                    self.directions[arc] = 1
                link = self.parallel[self.first_parallel(arc)]
                self.used_links[arc] = self.base_links[arc] = link
                self.costs[arc] = self.link_costs[2 * link + self.directions[arc]]

    def first_parallel(self, arc: int) -> int:
        """The place of an arc's first link in `parallel`: by (cost, id) in its direction."""
        return self.directions[arc] * self.links + self.parallel_first[self.pairs[arc]]

    def end_of_parallel(self, arc: int) -> int:
        """The place after the last link of an arc in `parallel`."""
        return self.directions[arc] * self.links + self.parallel_first[self.pairs[arc] + 1]

    def arc_costs(self) -> array[int]:
        """Costs of arcs, by arc, type code `i`; FAR where an arc is down."""
        return self._costs

    def dead_now(self) -> array[int]:
        """Flags of failed routers, by router: 1 when it has failed, type code `b`."""
        return self._dead

    def links_down(self) -> array[int]:
        """Flags of failed links, by link: 1 when it has failed, type code `b`."""
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

    def choose_links(self, pair: int) -> bool:
        """Use the first links of a pair that was hit which are up. Returns: whether the cost of an arc has changed."""
        arc = self.forths[pair]
        back = self.backs[arc]
        self.used_links[arc] = self._first_up(arc)
        self.used_links[back] = self._first_up(back)
        is_changed = self._charge(arc)
        return self._charge(back) or is_changed

    def _first_up(self, arc: int) -> int:
        for place in range(self.first_parallel(arc), self.end_of_parallel(arc)):
            if not self.down[self.parallel[place]]:
                return self.parallel[place]
        return NONE

    def _charge(self, arc: int) -> bool:
        """Let an arc cost what the link costs that is used. Returns: whether it cost something else before."""
        link = self.used_links[arc]
        cost = FAR if link == NONE else self.link_costs[2 * link + self.directions[arc]]
        if self.costs[arc] == cost:
            return False
        self.costs[arc] = cost
        return True

    def keep_failures(self) -> None:
        """Make what has failed until now part of the base state: it is not taken back."""
        for index in range(self.hit_count):
            pair = self.hits[index]
            arc = self.forths[pair]
            back = self.backs[arc]
            self.base_links[arc] = self.used_links[arc]
            self.base_links[back] = self.used_links[back]
            self.is_hit[pair] = 0
        self.hit_count = 0
        self.base_dead_count = self.dead_count
        self.base_down_count = self.down_count

    def restore(self) -> None:
        """Take back what has failed in a scenario."""
        for index in range(self.hit_count):
            pair = self.hits[index]
            arc = self.forths[pair]
            back = self.backs[arc]
            self.used_links[arc] = self.base_links[arc]
            self.used_links[back] = self.base_links[back]
            self._charge(arc)
            self._charge(back)
            self.is_hit[pair] = 0
        for index in range(self.base_down_count, self.down_count):
            self.down[self.down_links[index]] = 0
        for index in range(self.base_dead_count, self.dead_count):
            self.dead[self.dead_routers[index]] = 0
        self.hit_count = 0
        self.down_count = self.base_down_count
        self.dead_count = self.base_dead_count
