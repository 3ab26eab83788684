# cython: cdivision=True
"""One mesh and its failures: apply a scenario, read what it does, take it back, millions of times.

    kernel = Kernel(network)
    kernel.fail(links, routers)
    kernel.unreachable_pairs, kernel.max_utilisation, ...
    kernel.restore()

Everything is a place in the arrays of `Network`; rates are its millionths. Compiled and interpreted give the same
numbers, bit for bit.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import cython
import numpy as np
from numpy.typing import NDArray

from router.simulation.whatif.audience import Audience
from router.simulation.whatif.balance import Balance
from router.simulation.whatif.delays import Delays
from router.simulation.whatif.loads import Loads
from router.simulation.whatif.network import Network
from router.simulation.whatif.split import SplitLoads
from router.simulation.whatif.trees import Trees

if not cython.compiled:  # else they come by the .pxd
    from router.simulation.whatif.arrays import FAR, NONE, bytes_of, doubles, ints, longs

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


class Kernel:
    """A mesh in its base state, or with one set of failures."""

    def __init__(self, network: Network, *, is_split: bool = False) -> None:
        """Work out the base state.

        Args:
            is_split: every router splits what it sends equally over all next hops on shortest paths (ECMP), instead of
                sending it to the one of its tree as the mesh does.
        """
        self.network = network
        self.trees = Trees(network)
        self.traffic = SplitLoads(self.trees) if is_split else Loads(self.trees)
        self.audience = Audience(self.trees, self.traffic, network)
        self.traffic.expect(self.audience.cells)
        self.balance = Balance(self.trees, self.audience, network)
        self._add_demands(network)
        self.audience.begin()
        self.balance.review()
        self.audience.settle()
        self.traffic.settle()
        self.has_delays = network.has_delays and not is_split
        self.delays = Delays(self.trees, network) if self.has_delays else None
        self._make_state()
        self._summarise()
        self._remember()

    def _add_demands(self, network: Network) -> None:
        kept = (
            array("i", network.demand_src.tobytes() + bytes(4)),
            array("i", network.demand_dst.tobytes() + bytes(4)),
            array("q", network.demand_rate.tobytes() + bytes(8)),
            array("q", network.demand_bytes.tobytes() + bytes(8)),
        )
        srcs, dsts = ints(kept[0]), ints(kept[1])
        rates, volumes = longs(kept[2]), longs(kept[3])
        for index in range(len(network.demand_src)):
            self.traffic.demand(srcs[index], dsts[index], rates[index], volumes[index])

    def _make_state(self) -> None:
        trees = self.trees
        n = trees.size
        capacities = self.network.link_capacity.copy()
        is_free = np.isinf(capacities).all(axis=1)
        busiest = np.frombuffer(self._carried(True), dtype=np.int64).reshape(-1, 2).max(axis=0, initial=0)
        capacities[is_free] = np.where(busiest > 0, busiest, np.inf)
        self._capacities = array("d", capacities.tobytes() + bytes(8))
        self.capacities = doubles(self._capacities)
        self._stretches = array("q", bytes(8 * (n * n // 2 + 1)))
        self.stretches = longs(self._stretches)
        self._queue = array("i", bytes(4 * n))
        self.queue = ints(self._queue)
        self._seen = array("b", bytes(n))
        self.seen = bytes_of(self._seen)
        self.base_pairs = 0
        for at in range(n * n):
            self.base_pairs += trees.distances[at] < FAR
        self.base_pairs -= n
        self.is_failing = False
        self.max_utilisation = 0.0
        self.max_utilisation_link = NONE
        self.delay_p50_us = self.delay_p95_us = self.delay_p99_us = NONE
        self.base_components = self._count_components()

    # Scenarios.

    def fail(self, links: Iterable[int], routers: Iterable[int]) -> None:
        """Let links and routers fail, in the base state; a failed router takes its links with it.

        Raises: IndexError for a link or router that there is not. RuntimeError when something has failed already.
        """
        if self.is_failing:
            raise RuntimeError("something has failed already: `restore` comes first")
        trees = self.trees
        wanted_links = [int(link) for link in links]
        wanted_routers = [int(router) for router in routers]
        for number in wanted_links:
            if not 0 <= number < trees.links:
                raise IndexError(f"no link {number}; there are {trees.links}")
        for number in wanted_routers:
            if not 0 <= number < trees.size:
                raise IndexError(f"no router {number}; there are {trees.size}")
        self.is_failing = True
        for number in wanted_links:
            trees.take_down(number)
        for number in wanted_routers:
            trees.kill(number)
        self._play()

    def _play(self) -> None:
        self.trees.repair()
        self.traffic.shift()
        self.audience.review()
        self.balance.review()
        self.traffic.finish()
        self._summarise()

    def restore(self) -> None:
        """Take back what has failed."""
        if self.is_failing:
            self.is_failing = False
            self.audience.restore()
            self.traffic.restore()
            self.trees.restore()
            self._recall()

    # What a scenario does.

    def _summarise(self) -> None:
        trees = self.trees
        self.lost_rate = self.traffic.lost_rate
        self.lost_bytes = self.traffic.lost_bytes
        self.starved_publishers = self.audience.starved_publishers
        self.dead_addresses = self._count_dead_addresses()
        self.unreachable_pairs = 0
        self.dead_end_pairs = 0
        count = 0
        for index in range(trees.log_size):
            root = trees.log_roots[index]
            node = trees.log_nodes[index]
            old = trees.log_distances[index]
            new = trees.distances[root * trees.size + node]
            if new >= FAR:
                self.unreachable_pairs += 1
                self.dead_end_pairs += trees.dead[root] or trees.dead[node]
            elif root < node and new != old:
                self.stretches[count] = (2000 * new + old) // (2 * old)
                count += 1
        self.stretch_p50 = self._stretch(50, count)
        self.stretch_p95 = self._stretch(95, count)
        self.stretch_p99 = self._stretch(99, count)
        self._find_delays()
        self._find_busiest()
        if trees.dead_count > 0 or self.unreachable_pairs > 0:
            self.components = self._count_components()
        else:
            self.components = self.base_components

    def _remember(self) -> None:
        """Keep the summary of the base state, which has just been made."""
        self.base_stretch = self.stretch_p50
        self.base_delays = (self.delay_p50_us, self.delay_p95_us, self.delay_p99_us)
        self.base_utilisation = self.max_utilisation
        self.base_utilisation_link = self.max_utilisation_link

    def _recall(self) -> None:
        """The summary of the base state again."""
        self.unreachable_pairs = self.dead_end_pairs = self.dead_addresses = 0
        self.lost_rate = self.traffic.lost_rate
        self.lost_bytes = self.traffic.lost_bytes
        self.starved_publishers = self.audience.starved_publishers
        self.stretch_p50 = self.stretch_p95 = self.stretch_p99 = self.base_stretch
        self.delay_p50_us, self.delay_p95_us, self.delay_p99_us = self.base_delays
        self.max_utilisation = self.base_utilisation
        self.max_utilisation_link = self.base_utilisation_link
        self.components = self.base_components

    def _stretch(self, percent: int, count: int) -> int:
        """The stretch that so many percent of the pairs that are left do not exceed, thousandths; 0 without pairs.

        Args:
            count: pairs of another cost, one for both directions; their stretches are there.
        """
        pairs = self.base_pairs - self.unreachable_pairs
        if pairs == 0:
            return 0
        rank = (percent * pairs + 99) // 100
        above = pairs - rank
        if 2 * count <= above:
            return 1000
        return self._select(count, (2 * count - above - 1) // 2)

    def _select(self, count: int, place: int) -> int:
        """The stretch that has *place* others before it in ascending order (Hoare's selection)."""
        values = self.stretches
        low = 0
        high = count - 1
        while low < high:
            pivot = values[(low + high) // 2]
            left = low
            right = high
            while left <= right:
                while values[left] < pivot:
                    left += 1
                while values[right] > pivot:
                    right -= 1
                if left <= right:
                    values[left], values[right] = values[right], values[left]
                    left += 1
                    right -= 1
            if place <= right:
                high = right
            elif place >= left:
                low = left
            else:
                break
        return values[place]

    def _find_delays(self) -> None:
        """Percentiles of the delays of all pairs that have a path, microseconds; -1 where no delays are known."""
        self.delay_p50_us = self.delay_p95_us = self.delay_p99_us = NONE
        if self.delays is not None:
            self.delays.update()
            self.delay_p50_us = self.delays.percentile(50)
            self.delay_p95_us = self.delays.percentile(95)
            self.delay_p99_us = self.delays.percentile(99)

    def _find_busiest(self) -> None:
        """The directed link with the highest utilisation; of equal ones the first."""
        trees = self.trees
        most = 0.0
        busiest = NONE
        for tail in range(trees.size):
            for arc in range(trees.firsts[tail], trees.firsts[tail + 1]):
                link = trees.used_links[trees.pairs[arc]]
                if link == NONE:
                    continue
                share = self._utilisation(arc, link)
                number = 2 * link + (tail > trees.heads[arc])
                if share > most or (share == most and number < busiest):
                    most = share
                    busiest = number
        self.max_utilisation = most
        self.max_utilisation_link = busiest

    def _utilisation(self, arc: int, link: int) -> float:
        """Load by capacity, of messages or of bytes, the larger one."""
        by_rate = self.traffic.carried[2 * arc] / self.capacities[2 * link]
        by_bytes = self.traffic.carried[2 * arc + 1] / self.capacities[2 * link + 1]
        return max(by_rate, by_bytes)

    def _count_components(self) -> int:
        """Parts into which the living routers fall."""
        trees = self.trees
        count = 0
        for router in range(trees.size):
            self.seen[router] = trees.dead[router]
        for router in range(trees.size):
            if self.seen[router]:
                continue
            count += 1
            self.seen[router] = 1
            self.queue[0] = router
            size = 1
            while size > 0:
                size -= 1
                tail = self.queue[size]
                for arc in range(trees.firsts[tail], trees.firsts[tail + 1]):
                    head = trees.heads[arc]
                    if trees.costs[arc] < FAR and not self.seen[head]:
                        self.seen[head] = 1
                        self.queue[size] = head
                        size += 1
        return count

    def _count_dead_addresses(self) -> int:
        """Addresses that had subscribers and have none that lives."""
        if self.trees.dead_count == 0:
            return 0
        count = 0
        for address in range(self.audience.addresses):
            first = self.audience.site_firsts[address]
            count += first < self.audience.site_firsts[address + 1] and self.audience.living_sites(address) == 0
        return count

    # What can be read beside the summary.

    def loads(self) -> tuple[Longs, Longs]:
        """Millionths of messages/s and of bytes/s, by directed link."""
        both = np.frombuffer(self._carried(False), dtype=np.int64).reshape(-1, 2)
        return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])

    def base_loads(self) -> tuple[Longs, Longs]:
        """The same of the base state."""
        both = np.frombuffer(self._carried(True), dtype=np.int64).reshape(-1, 2)
        return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])

    def changed_links(self) -> Ints:
        """Directed links whose load is another one than in the base state, ascending."""
        before, now = (
            np.frombuffer(self._carried(is_base), dtype=np.int64).reshape(-1, 2) for is_base in (True, False)
        )
        return np.flatnonzero((before != now).any(axis=1)).astype(np.int32)

    def _carried(self, is_base: bool) -> array[int]:
        """Loads by directed link, messages and bytes alternating, now or in the base state."""
        trees = self.trees
        cells = array("q", bytes(32 * trees.links))
        if trees.links == 0:
            return cells
        found = longs(cells)
        for tail in range(trees.size):
            for arc in range(trees.firsts[tail], trees.firsts[tail + 1]):
                pair = trees.pairs[arc]
                link = trees.parallel[trees.parallel_first[pair]] if is_base else trees.used_links[pair]
                if link != NONE:
                    number = 2 * link + (tail > trees.heads[arc])
                    found[2 * number] = self.traffic.base_carried[2 * arc] if is_base else self.traffic.carried[2 * arc]
                    found[2 * number + 1] = (
                        self.traffic.base_carried[2 * arc + 1] if is_base else self.traffic.carried[2 * arc + 1]
                    )
        return cells

    def lost_pairs(self, *, with_dead_ends: bool = False) -> tuple[Ints, Ints]:
        """Ordered pairs of routers that had a path and have none: sources and destinations, sorted by both.

        Args:
            with_dead_ends: also pairs of which one router itself has failed.
        """
        src, dst, _, _ = self.changed_pairs(with_dead_ends=with_dead_ends, only_lost=True)
        return src, dst

    def changed_pairs(self, *, with_dead_ends: bool = False, only_lost: bool = False) -> tuple[Ints, Ints, Ints, Ints]:
        """Ordered pairs whose path has another cost: sources, destinations, cost before, cost now, -1 without a path.

        Args:
            with_dead_ends: also pairs of which one router itself has failed.
            only_lost: those that have none.
        """
        n = self.trees.size
        size = self.trees.log_size
        src, dst = (np.frombuffer(cells, dtype=np.int16, count=size) for cells in self.trees.log_pairs())
        old = np.frombuffer(self.trees.log_costs(), dtype=np.int32, count=size)
        place = src.astype(np.int32)
        place *= n
        place += dst
        new = np.frombuffer(self.trees.costs_now(), dtype=np.int32)[place]
        mask = new >= FAR if only_lost else old != new
        if not with_dead_ends and self.trees.dead_count:
            is_dead = np.frombuffer(self.trees.dead_now(), dtype=np.int8).astype(bool)
            mask &= ~(is_dead[src] | is_dead[dst])
        chosen = np.flatnonzero(mask)
        # Places are in the order of both routers.
        chosen = chosen[np.argsort(place[chosen])]
        new = new[chosen]
        new[new >= FAR] = NONE
        # What the log has, with a copy: the next scenario writes over it.
        return src[chosen].astype(np.int32), dst[chosen].astype(np.int32), old[chosen], new

    def address_impact(self) -> list[tuple[int, int, int, int, int]]:
        """Addresses that lose something: (address, routers with living subscribers, failed routers with subscribers,
        starved publishers, millionths of messages/s that reach nobody), by address.
        """
        audience = self.audience
        found = []
        for address in audience.impacted():
            living = audience.living_sites(address)
            sites = audience.count_sites(address)
            starved, missing = audience.misses(address)
            found.append((address, living, sites - living, starved, missing))
        return found

    def _check_routers(self, src: int, dst: int) -> None:
        for number in (src, dst):
            if not 0 <= number < self.trees.size:
                raise IndexError(f"no router {number}; there are {self.trees.size}")

    def distances(self) -> Ints:
        """Costs of all paths, a row for each source; -1 where there is none."""
        n = self.trees.size
        costs = np.frombuffer(self.trees.costs_now(), dtype=np.int32).reshape(n, n).copy()
        costs[costs >= FAR] = NONE
        return costs

    def path(self, src: int, dst: int) -> list[int]:
        """Routers that a message from *src* to *dst* passes, both included; empty when it has no path."""
        found = [src]
        while found[-1] != dst:
            hop = self.next_hop(found[-1], dst)
            if hop < 0:
                return []
            found.append(hop)
        return found

    def tree(self, root: int) -> list[int]:
        """The predecessor of each router in the base tree of *root*, by which multicasts go; -1 where there is none."""
        trees = self.trees
        arcs = [trees.arc_to(root, node) for node in range(trees.size)]
        return [NONE if arc == NONE else trees.heads[trees.backs[arc]] for arc in arcs]

    def next_hop(self, src: int, dst: int) -> int:
        """The router to which *src* sends what is for *dst*; -1 when there is none, or *src* is *dst*.

        Raises: IndexError for a router that there is not.
        """
        self._check_routers(src, dst)
        slot = self.trees.slots[src * self.trees.size + dst]
        return NONE if slot == NONE else self.trees.heads[self.trees.firsts[src] + slot]

    def distance(self, src: int, dst: int) -> int:
        """Cost of the path; -1 when there is none.

        Raises: IndexError for a router that there is not.
        """
        self._check_routers(src, dst)
        distance = self.trees.distances[src * self.trees.size + dst]
        return distance if distance < FAR else -1
