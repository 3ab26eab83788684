# cython: cdivision=True
"""Balanced addresses whose subscribers' credit bounds what they take.

Credit is lent for a round trip: messages of rate r keep r x (2 x delay of the path + time of the subscriber) of it.
So publishers are served in the order of (distance, id of the publisher's router, id of the subscribers' router): each
gets what it wants and what credit is left there lets pass, and goes on to the next with the rest. What nobody can take
is starved. Where neither delays nor the time of the subscribers are known, credit bounds nothing.

An address is looked at again, as a whole, in every scenario: who is nearer may take another's credit.
"""

from __future__ import annotations

from array import array

import cython

from router.whatif.kernel.address_delivery import AddressDelivery
from router.whatif.kernel.network_arrays import Network
from router.whatif.kernel.path_delays import PathDelays
from router.whatif.kernel.spf_trees import SpfTrees

if not cython.compiled:  # else they come by the .pxd
    from router.whatif.kernel.c_arrays import BOUNDED, FAR, NONE, bytes_of, ints, longs
    from router.whatif.kernel.link_loads import sort_keys


class BalancedAddresses:
    """Chooses for the publishers of bounded addresses."""

    def __init__(self, trees: SpfTrees, audience: AddressDelivery, delays: PathDelays | None, network: Network) -> None:
        """Prepare the balancing of one base state.

        Args:
            trees: shortest paths.
            audience: subscribers of all addresses.
            delays: of paths; None when none are known.
            network: the mesh.
        """
        self.trees = trees
        self.audience = audience
        self.delays = delays
        self._credits = array("q", network.subscriber_credit.tobytes() + bytes(8))
        self.credits = longs(self._credits)
        self._services = array("q", network.subscriber_service_us.tobytes() + bytes(8))
        self.services = longs(self._services)
        self._make_room()

    def _make_room(self) -> None:
        """Allocate arrays in which the publishers of one address at a time are served."""
        audience = self.audience
        most = publishers = offers = 0
        self._firsts = array("q", bytes(8 * audience.addresses + 8))
        self.firsts = longs(self._firsts)
        for address in range(audience.addresses):
            self.firsts[address] = offers
            if audience.treatments[address] == BOUNDED:
                count = audience.group_firsts[address + 1] - audience.group_firsts[address]
                publishers = max(publishers, count)
                most = max(most, count * audience.count_sites(address))
                offers += count * audience.count_sites(address)
        # Which publisher to which site, by address, in the order of the base state, and their distances then.
        self._ranks = array("i", bytes(4 * offers + 4))
        self.ranks = ints(self._ranks)
        self._distances = array("i", bytes(4 * offers + 4))
        self.distances = ints(self._distances)
        self._offers = array("q", bytes(8 * most + 8))
        self.offers = longs(self._offers)
        self._moved = array("q", bytes(8 * most + 8))
        self.moved = longs(self._moved)
        self._given = array("q", bytes(16 * most + 16))
        self.given = longs(self._given)
        self._left = array("q", bytes(16 * publishers + 16))
        self.left = longs(self._left)
        self._room = array("q", bytes(8 * audience.sites + 8))
        self.room = longs(self._room)
        self._is_found = array("b", bytes(publishers + 1))
        self.is_found = bytes_of(self._is_found)

    def review(self) -> None:
        """Choose again, or at first."""
        graph = self.trees.graph
        if self.audience.is_base or graph.hit_count > 0 or graph.dead_count > graph.base_dead_count:
            for address in range(self.audience.addresses):
                if self.audience.treatments[address] == BOUNDED:
                    self._share_out(address)

    def _share_out(self, address: int) -> None:
        audience = self.audience
        group = audience.group_firsts[address]
        size = audience.group_firsts[address + 1] - group
        first = audience.site_firsts[address]
        sites = audience.site_firsts[address + 1] - first
        for index in range(size):
            publisher = audience.group[group + index]
            self.left[2 * index] = audience.rates[publisher]
            self.left[2 * index + 1] = audience.volumes[publisher]
            self.is_found[index] = 0
        for site in range(sites):
            self.room[site] = self.credits[first + site]
        for place in range(2 * size * sites):
            self.given[place] = 0
        for place in range(self._list_offers(address)):
            offer = self.offers[place]
            index = (offer >> 15) & 0x7FFF
            self.is_found[index] = 1
            if self.left[2 * index] > 0 or self.left[2 * index + 1] > 0:
                self._serve(address, index, offer & 0x7FFF, sites)
        for index in range(size):
            publisher = audience.group[group + index]
            for site in range(2 * sites):
                audience.shares[site] = self.given[2 * index * sites + site]
            audience.send(publisher)
            is_starved = not self.trees.dead[audience.srcs[publisher]] and (
                self.left[2 * index] > 0 or not self.is_found[index]
            )
            audience.note(publisher, self.left[2 * index], self.left[2 * index + 1], is_starved)

    def _list_offers(self, address: int) -> int:
        """List which publisher reaches which site, by (distance, publisher, site) in one number. Returns: how many."""
        audience = self.audience
        trees = self.trees
        group = audience.group_firsts[address]
        size = audience.group_firsts[address + 1] - group
        first = audience.site_firsts[address]
        sites = audience.site_firsts[address + 1] - first
        ranks = self.firsts[address]
        if audience.is_base:
            for index in range(size * sites):
                self.ranks[ranks + index] = ((index // sites) << 15) | (index % sites)
                self.distances[ranks + index] = 0
        count = moved = 0
        for place in range(ranks, ranks + size * sites):
            index = self.ranks[place] >> 15
            site = self.ranks[place] & 0x7FFF
            src = audience.srcs[audience.group[group + index]]
            key = trees.distances[src * trees.size + audience.site_routers[first + site]]
            if key < FAR and not trees.dead[src]:
                if key == self.distances[place]:  # as far as before: in order
                    self.offers[count] = (key << 30) | self.ranks[place]
                    count += 1
                else:
                    self.moved[moved] = (key << 30) | self.ranks[place]
                    moved += 1
        sort_keys(self.moved, moved)
        self._merge(count, moved)
        count += moved
        if audience.is_base and count == size * sites:  # from now on few are out of their order
            for index in range(count):
                self.ranks[ranks + index] = self.offers[index] & 0x3FFFFFFF
                self.distances[ranks + index] = self.offers[index] >> 30
        return count

    def _merge(self, count: int, moved: int) -> None:
        """Put so many of `moved` among so many of `offers`; both are in order."""
        at, other = count - 1, moved - 1
        while other >= 0:
            if at >= 0 and self.offers[at] > self.moved[other]:
                self.offers[at + other + 1] = self.offers[at]
                at -= 1
            else:
                self.offers[at + other + 1] = self.moved[other]
                other -= 1

    def _serve(self, address: int, index: int, site: int, sites: int) -> None:
        """Give a publisher what it still wants, as far as credit goes."""
        audience = self.audience
        publisher = audience.group[audience.group_firsts[address] + index]
        at = audience.site_firsts[address] + site
        rate, volume = self.left[2 * index], self.left[2 * index + 1]
        if self.room[site] != NONE:
            busy = self.services[at]
            if self.delays is not None:
                busy += 2 * self.delays.between(audience.srcs[publisher], audience.site_routers[at])
            if busy > 0:
                rate = min(rate, self.room[site] // busy)
                self.room[site] -= rate * busy
        if rate < self.left[2 * index]:
            share = float(rate) / float(audience.rates[publisher])
            volume = min(volume, cython.cast(cython.longlong, float(audience.volumes[publisher]) * share))
        self.left[2 * index] -= rate
        self.left[2 * index + 1] -= volume
        self.given[2 * (index * sites + site)] = rate
        self.given[2 * (index * sites + site) + 1] = volume
