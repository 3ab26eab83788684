# cython: cdivision=True
"""Delivery of what is sent to addresses, by treatment, repaired after each failure.

- closest: the nearest routers with subscribers; equally near ones share, by turns from the lowest id.
- balanced: the nearest router, of equally near ones the one with the lowest id. Where credit bounds what a router's
  subscribers take, `credit_bounded_balancing.py` does that.
- multicast: one copy to each router with subscribers, along the tree of the router at which it enters; one for all of
  them on an arc that leads to several.

A publisher is what one router sends to one address; it is looked at again when the tree of that router was repaired.
"""

from __future__ import annotations

from array import array

import cython

from router.whatif.kernel.link_loads import LinkLoads
from router.whatif.kernel.network_arrays import Network
from router.whatif.kernel.spf_trees import SpfTrees

if not cython.compiled:  # else they come by the .pxd
    from router.whatif.kernel.c_arrays import BALANCED, BOUNDED, CLOSEST, FAR, MULTICAST, NONE, bytes_of, ints, longs


class AddressDelivery:
    """State of delivery: what each publisher sends where as it is now, and who finds nobody."""

    def __init__(self, trees: SpfTrees, loads: LinkLoads, network: Network) -> None:
        self.trees = trees
        self.loads = loads
        self.publishers = len(network.publisher_src)
        self.addresses = len(network.addresses)
        self.sites = len(network.subscriber_router)
        self._make_sites(network)
        self._make_publishers(network)
        self._make_state()

    def _make_sites(self, network: Network) -> None:
        self._treatments = array("i", network.treatment.tobytes() + bytes(4))
        self.treatments = ints(self._treatments)
        self._site_firsts = array("i", network.subscriber_first.tobytes())
        self.site_firsts = ints(self._site_firsts)
        self._site_routers = array("i", network.subscriber_router.tobytes() + bytes(4))
        self.site_routers = ints(self._site_routers)
        self._site_addresses = array("i", bytes(4 * self.sites + 4))
        self.site_addresses = ints(self._site_addresses)
        kept = array("q", network.subscriber_credit.tobytes() + bytes(8))
        bounds = longs(kept)
        for address in range(self.addresses):
            for site in range(self.site_firsts[address], self.site_firsts[address + 1]):
                self.site_addresses[site] = address
                if self.treatments[address] == BALANCED and bounds[site] != NONE:
                    self.treatments[address] = BOUNDED

    def _make_publishers(self, network: Network) -> None:
        count = self.publishers
        self._srcs = array("i", network.publisher_src.tobytes() + bytes(4))
        self.srcs = ints(self._srcs)
        self._targets = array("i", network.publisher_address.tobytes() + bytes(4))
        self.targets = ints(self._targets)
        self._rates = array("q", network.publisher_rate.tobytes() + bytes(8))
        self.rates = longs(self._rates)
        self._volumes = array("q", network.publisher_bytes.tobytes() + bytes(8))
        self.volumes = longs(self._volumes)
        self._publisher_firsts = array("i", bytes(4 * self.trees.size + 4))
        self.publisher_firsts = ints(self._publisher_firsts)
        self._cell_firsts = array("q", bytes(8 * count + 8))
        self.cell_firsts = longs(self._cell_firsts)
        for publisher in range(count):
            self.publisher_firsts[self.srcs[publisher] + 1] += 1
            address = self.targets[publisher]
            cells = 0
            if self.treatments[address] != MULTICAST:
                cells = self.site_firsts[address + 1] - self.site_firsts[address]
            self.cell_firsts[publisher + 1] = self.cell_firsts[publisher] + cells
        for router in range(self.trees.size):
            self.publisher_firsts[router + 1] += self.publisher_firsts[router]
        # The same by address, each in the order of their routers.
        self._group_firsts = array("i", bytes(4 * self.addresses + 8))
        self.group_firsts = ints(self._group_firsts)
        self._group = array("i", bytes(4 * count + 4))
        self.group = ints(self._group)
        for publisher in range(count):
            self.group_firsts[self.targets[publisher] + 1] += 1
        for address in range(self.addresses):
            self.group_firsts[address + 1] += self.group_firsts[address]
        filled = array("i", self._group_firsts)
        free = ints(filled)
        for publisher in range(count):
            address = self.targets[publisher]
            self.group[free[address]] = publisher
            free[address] += 1

    def _make_state(self) -> None:
        """Allocate what is sent, by cell (publisher and site), and what finds nobody, by publisher."""
        cells = self.cells = self.cell_firsts[self.publishers]
        self._sent = array("q", bytes(16 * cells + 16))
        self.sent = longs(self._sent)
        self._shares = array("q", bytes(16 * self._most_sites() + 16))
        self.shares = longs(self._shares)
        self._is_chosen = array("b", bytes(cells + 1))
        self.is_chosen = bytes_of(self._is_chosen)
        self._nearest = array("i", [FAR]) * (self.publishers + 1)
        self.nearest = ints(self._nearest)
        self._visited = array("b", bytes(self.trees.size))
        self.visited = bytes_of(self._visited)
        self._visits = array("i", bytes(4 * self.trees.size))
        self.visits = ints(self._visits)
        self.visit_count = 0
        # Of publishers: now, and in the base state.
        self._missing = array("q", bytes(16 * self.publishers + 16))
        self.missing = longs(self._missing)
        self._base_missing = array("q", bytes(16 * self.publishers + 16))
        self.base_missing = longs(self._base_missing)
        self._is_starved = array("b", bytes(self.publishers + 1))
        self.is_starved = bytes_of(self._is_starved)
        self._was_starved = array("b", bytes(self.publishers + 1))
        self.was_starved = bytes_of(self._was_starved)
        self._reviewed = array("i", bytes(4 * self.publishers + 4))
        self.reviewed = ints(self._reviewed)
        self.reviewed_count = 0
        self.starved_publishers = self.base_starved_publishers = 0
        self.is_base = True

    def _most_sites(self) -> int:
        most = 0
        for address in range(self.addresses):
            most = max(most, self.site_firsts[address + 1] - self.site_firsts[address])
        return most

    # The base state.

    def begin(self) -> None:
        """Choose for every publisher, before loads are settled."""
        roots = array("i")
        last = NONE
        for publisher in range(self.publishers):  # by router
            src = self.srcs[publisher]
            if self.treatments[self.targets[publisher]] == MULTICAST and src != last:
                roots.append(src)
                last = src
        self.trees.keep(roots)
        for publisher in range(self.publishers):
            self._review(publisher)

    def settle(self) -> None:
        """Make the choice of everybody the base state."""
        for publisher in range(self.publishers):
            self.base_missing[2 * publisher] = self.missing[2 * publisher]
            self.base_missing[2 * publisher + 1] = self.missing[2 * publisher + 1]
            self.was_starved[publisher] = self.is_starved[publisher]
        self.base_starved_publishers = self.starved_publishers
        self.reviewed_count = 0
        self.is_base = False

    # Failures.

    def review(self) -> None:
        """The trees were repaired, and what flows was moved with them: choose again where that matters."""
        trees = self.trees
        for index in range(trees.touched_count):
            root = trees.touched_roots[index]
            if not trees.dead[root]:
                self._review_router(root)
        for index in range(trees.graph.base_dead_count, trees.graph.dead_count):
            self._review_router(trees.graph.dead_routers[index])

    def _review_router(self, router: int) -> None:
        for publisher in range(self.publisher_firsts[router], self.publisher_firsts[router + 1]):
            self._review(publisher)

    def _review(self, publisher: int) -> None:
        treatment = self.treatments[self.targets[publisher]]
        if treatment == MULTICAST:
            if self.is_base or self._is_spread_anew(publisher):
                self._spread(publisher)
        elif treatment != BOUNDED and (self.is_base or self._is_moved(publisher)):
            self._choose(publisher, treatment == CLOSEST)

    def _is_moved(self, publisher: int) -> bool:
        """Whether a router that was chosen is no longer as near, or the publisher's own router is dead."""
        src = self.srcs[publisher]
        if self.trees.dead[src]:
            return True
        row = src * self.trees.size
        site = self.site_firsts[self.targets[publisher]]
        for cell in range(self.cell_firsts[publisher], self.cell_firsts[publisher + 1]):
            if self.is_chosen[cell] and self.trees.distances[row + self.site_routers[site]] != self.nearest[publisher]:
                return True
            site += 1
        return False

    def _is_spread_anew(self, publisher: int) -> bool:
        """Whether the path to any subscriber has changed, or the publisher's own router is dead."""
        src = self.srcs[publisher]
        if self.trees.dead[src]:
            return True
        address = self.targets[publisher]
        for site in range(self.site_firsts[address], self.site_firsts[address + 1]):
            if self.trees.was_attached(src, self.site_routers[site]):
                return True
        return False

    def _choose(self, publisher: int, is_shared: bool) -> None:
        """Send to the nearest routers, in equal shares, or to the first of them."""
        src = self.srcs[publisher]
        first = self.site_firsts[self.targets[publisher]]
        count = self.site_firsts[self.targets[publisher] + 1] - first
        row = src * self.trees.size
        nearest = FAR
        sharers = 0
        if not self.trees.dead[src]:
            for index in range(count):
                distance = self.trees.distances[row + self.site_routers[first + index]]
                if distance < nearest:
                    nearest = distance
                    sharers = 0
                if distance == nearest and distance < FAR:
                    sharers += 1
        if not is_shared:
            sharers = min(sharers, 1)
        rate, volume = self.rates[publisher], self.volumes[publisher]
        turn = 0
        for index in range(count):
            self.shares[2 * index] = self.shares[2 * index + 1] = 0
            if turn < sharers and self.trees.distances[row + self.site_routers[first + index]] == nearest:
                self.shares[2 * index] = rate // sharers + (1 if turn < rate % sharers else 0)
                self.shares[2 * index + 1] = volume // sharers + (1 if turn < volume % sharers else 0)
                turn += 1
                if self.is_base:
                    self.is_chosen[self.cell_firsts[publisher] + index] = 1
        if self.is_base:
            self.nearest[publisher] = nearest
        self.send(publisher)
        if sharers > 0:
            rate = volume = 0
        self.note(publisher, rate, volume, sharers == 0 and not self.trees.dead[src])

    def send(self, publisher: int) -> None:
        """Let each site have its share instead of what it had."""
        src = self.srcs[publisher]
        site = self.site_firsts[self.targets[publisher]]
        first = self.cell_firsts[publisher]
        for index in range(self.cell_firsts[publisher + 1] - first):
            cell = first + index
            router = self.site_routers[site + index]
            rate, volume = self.shares[2 * index], self.shares[2 * index + 1]
            if self.is_base:
                self.sent[2 * cell] = rate
                self.sent[2 * cell + 1] = volume
                self.loads.demand(src, router, rate, volume)
            else:
                rate -= self.sent[2 * cell]
                volume -= self.sent[2 * cell + 1]
                if rate != 0 or volume != 0:
                    self.loads.move(src, router, rate, volume)

    def _spread(self, publisher: int) -> None:
        """Send one copy to each router with subscribers."""
        src = self.srcs[publisher]
        first = self.site_firsts[self.targets[publisher]]
        last = self.site_firsts[self.targets[publisher] + 1]
        rate, volume = self.rates[publisher], self.volumes[publisher]
        if not self.is_base:
            self._climb_all(publisher, -rate, -volume, True)
        lost = self._climb_all(publisher, rate, volume, False)
        is_starved = lost == max(1, last - first) and not self.trees.dead[src]
        self.note(publisher, rate * lost, volume * lost, is_starved)

    def _climb_all(self, publisher: int, rate: int, volume: int, is_base: bool) -> int:
        """Load the arcs over which a multicast goes, in the base state or now.

        Returns: to how many routers there is no way; 1 when nobody is subscribed.
        """
        src = self.srcs[publisher]
        first = self.site_firsts[self.targets[publisher]]
        last = self.site_firsts[self.targets[publisher] + 1]
        lost = max(1, last - first)
        if is_base or not self.trees.dead[src]:  # who is dead in the base state reaches nobody, but itself
            for site in range(first, last):
                lost -= self._climb(src, self.site_routers[site], rate, volume, is_base)
            for index in range(self.visit_count):
                self.visited[self.visits[index]] = 0
            self.visit_count = 0
        return lost

    def _climb(self, src: int, router: int, rate: int, volume: int, is_base: bool) -> bool:
        """Load the arcs from *src* to *router* that are not loaded yet. Returns: whether there is a way."""
        trees = self.trees
        node = router
        while node != src and not self.visited[node]:
            arc = trees.arc_to(src, node) if is_base else trees.kept_arc_to(src, node)
            if arc == NONE:
                return False
            self.visited[node] = 1
            self.visits[self.visit_count] = node
            self.visit_count += 1
            self.loads.carry(arc, rate, volume)
            node = trees.heads[trees.backs[arc]]
        return True

    def note(self, publisher: int, rate: int, volume: int, is_starved: bool) -> None:
        """Note what of a publisher's messages reaches nobody, and whether it finds no subscriber for some of it."""
        self.reviewed[self.reviewed_count] = publisher
        self.reviewed_count += 1
        self.loads.lose(rate - self.missing[2 * publisher], volume - self.missing[2 * publisher + 1])
        self.missing[2 * publisher] = rate
        self.missing[2 * publisher + 1] = volume
        self.starved_publishers += is_starved - self.is_starved[publisher]
        self.is_starved[publisher] = is_starved

    # What can be read.

    def count_sites(self, address: int) -> int:
        """Routers at which an address has subscribers."""
        return self.site_firsts[address + 1] - self.site_firsts[address]

    def living_sites(self, address: int) -> int:
        """Routers with subscribers that are up."""
        count = 0
        for site in range(self.site_firsts[address], self.site_firsts[address + 1]):
            count += not self.trees.dead[self.site_routers[site]]
        return count

    def impacted(self, origin: AddressDelivery) -> list[int]:
        """Addresses that have lost subscribers, or whose publishers miss what they did not before; ascending.

        Args:
            origin: what is compared with, in its base state or not.
        """
        found = set()
        is_same = origin is self
        for index in range(self.reviewed_count if is_same else self.publishers):
            publisher = self.reviewed[index] if is_same else index
            if (
                self.missing[2 * publisher] != origin.base_missing[2 * publisher]
                or self.is_starved[publisher] != origin.was_starved[publisher]
            ):
                found.add(self.targets[publisher])
        if self.trees.graph.dead_count > 0:
            for site in range(self.sites):
                if self.trees.dead[self.site_routers[site]]:
                    found.add(self.site_addresses[site])
        return sorted(found)

    def losing(self) -> list[int]:
        """Addresses of whose messages some reach nobody, or that have starved publishers; ascending."""
        found = set()
        for publisher in range(self.publishers):
            if self.missing[2 * publisher] > 0 or self.is_starved[publisher]:
                found.add(self.targets[publisher])
        return sorted(found)

    def misses(self, address: int) -> tuple[int, int]:
        """Starved publishers of an address, and what reaches nobody, millionths of messages/s."""
        starved = 0
        missing = 0
        for place in range(self.group_firsts[address], self.group_firsts[address + 1]):
            starved += self.is_starved[self.group[place]]
            missing += self.missing[2 * self.group[place]]
        return starved, missing

    def restore(self) -> None:
        """Restore the base state, in which nothing has failed."""
        for index in range(self.reviewed_count):
            publisher = self.reviewed[index]
            self.missing[2 * publisher] = self.base_missing[2 * publisher]
            self.missing[2 * publisher + 1] = self.base_missing[2 * publisher + 1]
            self.is_starved[publisher] = self.was_starved[publisher]
        self.reviewed_count = 0
        self.starved_publishers = self.base_starved_publishers
