# cython: cdivision=True
"""One mesh and its failures: apply a scenario, read what it does, take it back, millions of times.

    kernel = Kernel(network)
    kernel.fail(links, routers)
    kernel.unreachable_pairs, kernel.max_utilisation, ...
    kernel.restore()

Scenarios with failures in common take less time while these are held down (`hold`). Everything is a place in the arrays
of `Network`; rates are its millionths. Compiled and interpreted give the same numbers, bit for bit.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

import cython
import numpy as np
from numpy.typing import NDArray

from router.whatif.kernel.incremental_order_statistics import IncrementalOrderStatistics
from router.whatif.kernel.mesh_state import MeshState
from router.whatif.kernel.network_arrays import Network, utilisation

if not cython.compiled:  # else they come by the .pxd
    from router.whatif.kernel.c_arrays import FAR, NONE, doubles, ints, longs

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]


class Kernel:
    """A mesh as it is, or with one set of failures; the summary is that of what has failed now."""

    def __init__(self, network: Network, *, is_split: bool = False, has_percentiles: bool = True) -> None:
        """The mesh with nothing failed.

        Args:
            network: the mesh.
            is_split: every router splits what it sends equally over all next hops on shortest paths (ECMP), instead of
                sending it to the one of its tree as the mesh does.
            has_percentiles: whether there are percentiles of delays, which take their time; not with *is_split*.
        Raises: NetworkError when links have another cost in each direction and nothing is split.
        """
        if not is_split:
            network.refuse_asymmetric_costs()
        self.network = network
        self.is_split = is_split
        self.is_directed = network.has_asymmetric_costs
        self.has_percentiles = has_percentiles
        self.origin = MeshState(network, is_split=is_split, has_percentiles=has_percentiles)
        self.state = self.origin
        self.has_delays = network.has_delays and has_percentiles and not is_split
        """Whether there are percentiles of delays."""
        self._make_summary()
        self._make_room()
        self._take_base()

    def _make_summary(self) -> None:
        """Make the arrays of what is told of every scenario."""
        self.unreachable_pairs = 0
        """Ordered pairs of routers that had a path and have none, those with a failed router included."""
        self.dead_end_pairs = 0
        """Unreachable pairs with a failed router."""
        self.lost_rate = 0
        """Messages/s that reach nobody, millionths; of a multicast each copy. What reached nobody before counts too."""
        self.lost_bytes = 0
        """Bytes/s that reach nobody, counted as `lost_rate`."""
        self.dead_addresses = 0
        """Addresses that had subscribers and have none alive."""
        self.starved_publishers = 0
        """Pairs of a living router and an address to which it sends, some of which no subscriber takes."""
        self.max_utilisation = 0.0
        """Utilisation of the busiest directed link, as a share of what it can carry."""
        self.max_utilisation_link = NONE
        """Busiest directed link, the first of equally busy ones; -1 when nothing is sent."""
        self.stretch_p50 = self.stretch_p95 = self.stretch_p99 = 0
        """Cost of paths by their cost before, thousandths, which so many percent of the ordered pairs that had a path
        and have one do not exceed; 0 when there is no such pair."""
        self.delay_p50_us = self.delay_p95_us = self.delay_p99_us = NONE
        """Delay of paths, microseconds, of all ordered pairs that have one; -1 when there is none, or no delays."""
        self.components = 0
        """Parts into which the living routers fall."""
        self.base_summary: tuple[Any, ...] = ()

    def _make_room(self) -> None:
        n = self.origin.graph.size
        self._capacities = array("d", self._limits().tobytes() + bytes(8))
        self.capacities = doubles(self._capacities)
        self._queue = array("i", bytes(4 * n))
        self.queue = ints(self._queue)
        self._parts = array("i", bytes(4 * n))
        self.parts = ints(self._parts)
        count = self._count_components()
        self._base_parts = array("i", self._parts)
        self.base_parts = ints(self._base_parts)
        self._part_sizes = array("i", bytes(4 * count))
        self.part_sizes = ints(self._part_sizes)
        for router in range(n):
            self.part_sizes[self.base_parts[router]] += 1
        self.is_failing = False
        self.is_holding = False
        self.base_pairs = 0
        for part in range(count):
            self.base_pairs += self.part_sizes[part] * (self.part_sizes[part] - 1)
        # Of pairs whose path costs another amount, in thousandths: one for both directions where these cost the same.
        self.stretches = IncrementalOrderStatistics(array("q", [0]))

    def _limits(self) -> NDArray[np.float64]:
        """Capacity of each link in a direction, of messages and of bytes; see `Network.free_capacity`."""
        found = self.network.link_capacity.copy()
        is_free = np.isinf(found).all(axis=1)
        free = np.where(self.network.free_capacity == 0, self.busiest(), self.network.free_capacity)
        found[is_free] = np.where(free > 0, free, np.inf)
        return found

    def busiest(self) -> NDArray[np.float64]:
        """Most messages and bytes that a direction of a link has with nothing failed, millionths per second."""
        both = np.frombuffer(self._carried(True), dtype=np.int64).reshape(-1, 2)
        most: NDArray[np.float64] = both.max(axis=0, initial=0).astype(np.float64)
        return most

    def limits(self) -> NDArray[np.float64]:
        """Loads of utilisation 1 in each direction, by link: millionths of messages/s, bytes/s in their unit."""
        return np.frombuffer(self._capacities, dtype=np.float64)[:-1].reshape(-1, 2).copy()

    def utilisations(self) -> NDArray[np.float64]:
        """Utilisation by directed link, as a share: of messages or of bytes, the larger one."""
        rates, sizes = self.loads()
        return utilisation(rates, sizes, np.repeat(self.limits(), 2, axis=0).T)

    def _take_base(self) -> None:
        """The state is a base state, as it is or held: summarise it, and keep that."""
        self.base_lost_pairs = 0
        self.held_pairs = self.held_lost_pairs = np.zeros(0, dtype=np.int32)
        stretches = array("q", [0])
        if self.is_holding:
            stretches = self._compare_base()
        self.stretches.replace(stretches)
        self.base_components = self._count_components()
        self._summarise()
        self.base_summary = self.summary()

    def _compare_base(self) -> array[int]:
        """Find the pairs that a held state has changed. Returns: their stretches, ascending, and one more cell."""
        n = self.state.trees.size
        before, now = (np.frombuffer(state.trees.costs_now(), dtype=np.int32) for state in (self.origin, self.state))
        self.held_pairs = np.flatnonzero(before != now).astype(np.int32)
        old, new = before[self.held_pairs].astype(np.int64), now[self.held_pairs].astype(np.int64)
        self.held_lost_pairs = self.held_pairs[new >= FAR]
        self.base_lost_pairs = len(self.held_lost_pairs)
        is_told = (new < FAR) & (self.is_directed | (self.held_pairs // n < self.held_pairs % n))
        old, new = old[is_told], new[is_told]
        return array("q", np.sort((2000 * new + old) // (2 * old)).tobytes() + bytes(8))

    # Scenarios.

    def fail(self, links: Iterable[int], routers: Iterable[int]) -> None:
        """Let links and routers fail; a failed router takes its links with it.

        Raises: IndexError for a link or router that there is not. RuntimeError when something has failed already.
        """
        if self.is_failing:
            raise RuntimeError("something has failed already: `restore` comes first")
        wanted_links = self._checked(links, self.state.graph.links, "link")
        wanted_routers = self._checked(routers, self.state.graph.size, "router")
        self.is_failing = True
        self.state.fail(wanted_links, wanted_routers)
        self._summarise()

    def restore(self) -> None:
        """Take back what has failed, but not what is held down."""
        if self.is_failing:
            self.is_failing = False
            self.state.restore()
            self.stretches.reset()
            self._recall()

    def hold(self, links: Iterable[int], routers: Iterable[int]) -> None:
        """Hold links and routers down until `release`: whatever fails meanwhile fails on top of that.

        Everything is still compared with the mesh of which nothing has failed, so each scenario does what it would do
        if all had failed at once. It takes as long as some dozens of scenarios, and these take less time for it.

        Raises: as `fail`; RuntimeError when something is held down already.
        """
        if self.is_failing or self.is_holding:
            raise RuntimeError("something has failed already: `restore` and `release` come first")
        wanted_links = self._checked(links, self.state.graph.links, "link")
        wanted_routers = self._checked(routers, self.state.graph.size, "router")
        self.is_holding = True
        self.state = MeshState(
            self.network,
            is_split=self.is_split,
            has_percentiles=self.has_percentiles,
            origin=self.origin,
            links=wanted_links,
            routers=wanted_routers,
        )
        self._take_base()

    def release(self) -> None:
        """Take back what has failed and what is held down."""
        self.restore()
        if self.is_holding:
            self.is_holding = False
            self.state = self.origin
            self._take_base()

    def _checked(self, numbers: Iterable[int], count: int, what: str) -> list[int]:
        found = [int(number) for number in numbers]
        for number in found:
            if not 0 <= number < count:
                raise IndexError(f"no {what} {number}; there are {count}")
        return found

    # What a scenario does.

    def summary(self) -> tuple[int | float, ...]:
        """The whole summary, in the order in which its fields are set below."""
        return (
            self.unreachable_pairs,
            self.dead_end_pairs,
            self.lost_rate,
            self.lost_bytes,
            self.dead_addresses,
            self.starved_publishers,
            self.max_utilisation,
            self.max_utilisation_link,
            self.stretch_p50,
            self.stretch_p95,
            self.stretch_p99,
            self.delay_p50_us,
            self.delay_p95_us,
            self.delay_p99_us,
            self.components,
        )

    def _recall(self) -> None:
        """The summary of the base state again."""
        (
            self.unreachable_pairs,
            self.dead_end_pairs,
            self.lost_rate,
            self.lost_bytes,
            self.dead_addresses,
            self.starved_publishers,
            self.max_utilisation,
            self.max_utilisation_link,
            self.stretch_p50,
            self.stretch_p95,
            self.stretch_p99,
            self.delay_p50_us,
            self.delay_p95_us,
            self.delay_p99_us,
            self.components,
        ) = self.base_summary

    def _summarise(self) -> None:
        lost = self._compare_pairs()
        self.unreachable_pairs = self.base_lost_pairs + lost
        self.dead_end_pairs = self._count_dead_ends()
        self.lost_rate = self.state.traffic.lost_rate
        self.lost_bytes = self.state.traffic.lost_bytes
        self.dead_addresses = self._count_dead_addresses()
        self.starved_publishers = self.state.audience.starved_publishers
        self._find_busiest()
        self.stretch_p50 = self._stretch(50)
        self.stretch_p95 = self._stretch(95)
        self.stretch_p99 = self._stretch(99)
        self.delay_p50_us = self.delay_p95_us = self.delay_p99_us = NONE
        delays = self.state.delays
        if delays is not None and self.has_delays:
            self.delay_p50_us = delays.percentile(50)
            self.delay_p95_us = delays.percentile(95)
            self.delay_p99_us = delays.percentile(99)
        graph = self.state.graph
        is_whole = lost == 0 and graph.dead_count == graph.base_dead_count
        self.components = self.base_components if is_whole else self._count_components()

    def _compare_pairs(self) -> int:
        """Rank the stretches of pairs that the scenario has changed. Returns: how many ordered pairs it has cut off."""
        trees = self.state.trees
        origin = self.origin.trees
        lost = 0
        for index in range(trees.log_size):
            root = trees.log_roots[index]
            node = trees.log_nodes[index]
            at = root * trees.size + node
            before = trees.log_distances[index]
            now = trees.distances[at]
            if now >= FAR:
                lost += 1
            if now != before and (self.is_directed or root < node):
                old = origin.distances[at] if self.is_holding else before
                if before != old:
                    self.stretches.remove((2000 * before + old) // (2 * old))
                if now < FAR:
                    self.stretches.add((2000 * now + old) // (2 * old))
        return lost

    def _stretch(self, percent: int) -> int:
        """The stretch that so many percent of the pairs that are left do not exceed, thousandths; 0 without pairs."""
        pairs = self.base_pairs - self.unreachable_pairs
        if pairs == 0:
            return 0
        above = pairs - (percent * pairs + 99) // 100
        # Those that are not told of are as near as ever.
        times = 1 if self.is_directed else 2
        count = times * self.stretches.size()
        return 1000 if count <= above else self.stretches.at((count - above + times - 1) // times)

    def _count_dead_ends(self) -> int:
        """Ordered pairs that had a path and of which a router is dead."""
        graph = self.state.graph
        count = 0
        for index in range(graph.dead_count):
            part = self.base_parts[graph.dead_routers[index]]
            count += 2 * (self.part_sizes[part] - 1)
            for place in range(index):
                if self.base_parts[graph.dead_routers[place]] == part:
                    count -= 2  # counted with the other one
        return count

    def _find_busiest(self) -> None:
        """The directed link with the highest utilisation; of equal ones the first."""
        traffic = self.state.traffic
        carried = traffic.carried
        most = 0.0
        busiest = NONE
        for lane in range(traffic.lanes):
            number = traffic.numbers[lane]
            if number != NONE:
                share = self.share(carried[2 * lane], carried[2 * lane + 1], number >> 1)
                if share > most or (share == most and number < busiest):
                    most = share
                    busiest = number
        self.max_utilisation = most
        self.max_utilisation_link = busiest

    def share(self, rate: int, size: int, link: int) -> float:
        """The utilisation of a directed link that carries so much: of messages or of bytes, the larger one."""
        return max(rate / self.capacities[2 * link], size / self.capacities[2 * link + 1])

    def _count_components(self) -> int:
        """Parts into which the living routers fall; `parts` has the part of each."""
        graph = self.state.graph
        count = 0
        for router in range(graph.size):
            self.parts[router] = NONE
        for router in range(graph.size):
            if self.parts[router] != NONE or graph.dead[router]:
                continue
            self.parts[router] = count
            self.queue[0] = router
            size = 1
            while size > 0:
                size -= 1
                tail = self.queue[size]
                for arc in range(graph.firsts[tail], graph.firsts[tail + 1]):
                    head = graph.heads[arc]
                    if graph.costs[arc] < FAR and self.parts[head] == NONE:
                        self.parts[head] = count
                        self.queue[size] = head
                        size += 1
            count += 1
        return count

    def _count_dead_addresses(self) -> int:
        """Addresses that had subscribers and have none that lives."""
        if self.state.graph.dead_count == 0:
            return 0
        audience = self.state.audience
        count = 0
        for address in range(audience.addresses):
            count += audience.count_sites(address) > 0 and audience.living_sites(address) == 0
        return count

    # What can be read beside the summary.

    def loads(self) -> tuple[Longs, Longs]:
        """Millionths of messages/s and of bytes/s, by directed link."""
        both = np.frombuffer(self._carried(False), dtype=np.int64).reshape(-1, 2)
        return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])

    def base_loads(self) -> tuple[Longs, Longs]:
        """Loads in the base state."""
        both = np.frombuffer(self._carried(True), dtype=np.int64).reshape(-1, 2)
        return np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1])

    def changed_links(self) -> Ints:
        """Directed links whose load is another one than with nothing failed, ascending."""
        before, now = (
            np.frombuffer(self._carried(is_base), dtype=np.int64).reshape(-1, 2) for is_base in (True, False)
        )
        return np.flatnonzero((before != now).any(axis=1)).astype(np.int32)

    def _carried(self, is_base: bool) -> array[int]:
        """Loads by directed link, messages and bytes alternating, now or with nothing failed."""
        traffic = self.origin.traffic if is_base else self.state.traffic
        numbers = traffic.base_numbers if is_base else traffic.numbers
        carried = traffic.base_carried if is_base else traffic.carried
        cells = array("q", bytes(32 * len(self.network.links)))
        if not cells:
            return cells
        found = longs(cells)
        for lane in range(traffic.lanes):
            number = numbers[lane]
            if number != NONE:
                found[2 * number] = carried[2 * lane]
                found[2 * number + 1] = carried[2 * lane + 1]
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
        trees = self.state.trees
        n = trees.size
        roots, nodes = (np.frombuffer(cells, dtype=np.int16, count=trees.log_size) for cells in trees.log_pairs())
        pairs = roots.astype(np.int32)
        pairs *= n
        pairs += nodes
        now = np.frombuffer(trees.costs_now(), dtype=np.int32)
        before = np.frombuffer(trees.log_costs(), dtype=np.int32, count=trees.log_size)
        mask = now[pairs] >= FAR if only_lost else now[pairs] != before
        pairs, before = pairs[mask], before[mask]
        if self.is_holding:
            # What is lost by what is held down is not lost again.
            both = np.concatenate((pairs, self.held_lost_pairs if only_lost else self.held_pairs))
            pairs = np.sort(both) if only_lost else np.unique(both)
            before = np.frombuffer(self.origin.trees.costs_now(), dtype=np.int32)[pairs]
        else:
            order = np.argsort(pairs)
            pairs, before = pairs[order], before[order]
        src, dst = pairs // n, pairs % n
        if not with_dead_ends and self.state.graph.dead_count:
            is_dead = np.frombuffer(self.state.graph.dead_now(), dtype=np.int8).astype(bool)
            mask = ~(is_dead[src] | is_dead[dst])
            pairs, src, dst, before = pairs[mask], src[mask], dst[mask], before[mask]
        new = now[pairs]
        new[new >= FAR] = NONE
        return src, dst, before, new

    def address_impact(self) -> list[tuple[int, int, int, int, int]]:
        """Addresses that lose other messages or subscribers than with nothing failed, by address.

        With nothing failed it is those that lose messages, or have starved publishers, even so.

        Returns: (address, routers with living subscribers, failed routers with subscribers, starved publishers,
            millionths of messages/s that reach nobody).
        """
        audience, graph = self.state.audience, self.state.graph
        is_calm = graph.down_count == 0 and graph.dead_count == 0
        found = []
        for address in audience.losing() if is_calm else audience.impacted(self.origin.audience):
            living = audience.living_sites(address)
            sites = audience.count_sites(address)
            starved, missing = audience.misses(address)
            found.append((address, living, sites - living, starved, missing))
        return found

    def address_losses(self) -> list[int]:
        """Messages that reach nobody by address, millionths of messages/s."""
        return [self.state.audience.misses(address)[1] for address in range(len(self.network.addresses))]

    def delay_us(self, src: int, dst: int) -> int:
        """One way of the path that there is, microseconds; links whose delay is not known add nothing.

        Raises: IndexError for a router that there is not.
        """
        self._check_routers(src, dst)
        delays = self.state.delays
        return 0 if delays is None else delays.between(src, dst)

    def longest_delay_us(self) -> int:
        """Longest delay over all pairs with a path, microseconds; -1 without such pairs or without delays."""
        delays = self.state.delays
        return NONE if delays is None or not self.has_percentiles else delays.percentile(100)

    def _check_routers(self, src: int, dst: int) -> None:
        for number in (src, dst):
            if not 0 <= number < self.state.graph.size:
                raise IndexError(f"no router {number}; there are {self.state.graph.size}")

    def distances(self) -> Ints:
        """Costs of all paths, a row for each source; -1 where there is none."""
        n = self.state.trees.size
        costs = np.frombuffer(self.state.trees.costs_now(), dtype=np.int32).reshape(n, n).copy()
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
        trees = self.origin.trees
        arcs = [trees.arc_to(root, node) for node in range(trees.size)]
        return [NONE if arc == NONE else trees.heads[trees.backs[arc]] for arc in arcs]

    def next_hop(self, src: int, dst: int) -> int:
        """The router to which *src* sends what is for *dst*; -1 when there is none, or *src* is *dst*.

        Raises: IndexError for a router that there is not.
        """
        self._check_routers(src, dst)
        trees = self.state.trees
        slot = trees.slots[src * trees.size + dst]
        return NONE if slot == NONE else trees.heads[trees.firsts[src] + slot]

    def distance(self, src: int, dst: int) -> int:
        """Cost of the path; -1 when there is none.

        Raises: IndexError for a router that there is not.
        """
        self._check_routers(src, dst)
        distance = self.state.trees.distances[src * self.state.trees.size + dst]
        return distance if distance < FAR else -1
