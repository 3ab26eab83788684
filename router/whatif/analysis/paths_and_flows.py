"""Paths and flows of a mesh as it is now, with failures or without: who sends how much to whom, and over which links.

The kernel keeps loads of links only, since that is all that a million scenarios need. Here the paths and flows behind
them are worked out for one scenario at a time, by the same rules and in the same whole numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from itertools import pairwise

import attrs
import numpy as np
from numpy.typing import NDArray

from mesh_config.models import Treatment
from router.whatif.analysis.ecmp_worst_delays import EcmpWorstDelays
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import TREATMENTS, Network


@attrs.frozen(kw_only=True)
class IngressEgressFlow:
    """Messages that the publishers of one router send to the subscribers of one router, of one address."""

    address: int
    src: int
    dst: int | None
    """None: to nobody. No path leads to a subscriber, or none of them has credit left."""
    rate: int
    """Millionths of messages/s."""
    cost: int
    """Cost of the path; 0 without one."""


class RoutingState:
    """The state in which a kernel is. Routers, links and addresses are places, as in `Network`."""

    def __init__(
        self, network: Network, kernel: Kernel, links: Iterable[int] = (), routers: Iterable[int] = ()
    ) -> None:
        """Read a kernel in which *links* and *routers* have failed, and which stays so as long as this is used."""
        self.network = network
        self.kernel = kernel
        self.failed_links = frozenset(links)
        self.failed_routers = frozenset(routers)
        self._delays: dict[tuple[int, int], tuple[int, bool]] = {}

    @cached_property
    def used_links(self) -> dict[tuple[int, int], int]:
        """Link that is used from one router to a neighbor, by both ends."""
        network = self.network
        found: dict[tuple[int, int], int] = {}
        for parallel, ends in (
            (network.parallel, (network.link_a, network.link_b)),
            (network.parallel_back, (network.link_b, network.link_a)),
        ):
            for link in parallel.tolist():  # the first of each pair of neighbors
                if link not in self.failed_links:
                    found.setdefault((int(ends[0][link]), int(ends[1][link])), link)
        return found

    # Paths.

    def distance(self, src: int, dst: int) -> int | None:
        """Cost of the path; None when there is none."""
        if src in self.failed_routers or dst in self.failed_routers:
            return None
        found = self.kernel.distance(src, dst)
        return None if found < 0 else found

    def path(self, src: int, dst: int) -> list[int]:
        """Routers that a message passes, both ends included; empty when there is no path."""
        return [] if self.distance(src, dst) is None else self.kernel.path(src, dst)

    def links(self, path: Iterable[int]) -> list[int]:
        """The links between the routers of a path."""
        return [self.used_links[ends] for ends in pairwise(path)]

    def delay_us(self, src: int, dst: int) -> tuple[int, bool]:
        """One-way delay of a path that there is, microseconds, and whether the delays of all its links are known.

        A delay that is not known counts as 0, as it does in the kernel.
        """
        pair = (src, dst)
        if pair not in self._delays:
            steps = [int(self.network.link_delay_us[link]) for link in self.links(self.path(src, dst))]
            self._delays[pair] = sum(max(0, step) for step in steps), all(step >= 0 for step in steps)
        return self._delays[pair]

    @cached_property
    def _split_delays(self) -> EcmpWorstDelays:
        return EcmpWorstDelays(self.network, self.kernel, self.failed_links)

    def longest_delay_us(self, src: int, dst: int) -> tuple[int, bool]:
        """Delay like `delay_us`, but of the slowest shortest path where traffic is split over all of them."""
        if not self.kernel.is_split:
            return self.delay_us(src, dst)
        delay, is_known = self._split_delays.toward(dst)
        return int(delay[src]), bool(is_known[src])

    def longest_delay_matrix(self) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
        """Compute `longest_delay_us` for all pairs, as `delay_matrix` does."""
        if not self.kernel.is_split:
            return self.delay_matrix()
        columns = [self._split_delays.toward(dst) for dst in range(len(self.network.routers))]
        delay = np.stack([column[0] for column in columns], axis=1)
        is_known = np.stack([column[1] for column in columns], axis=1)
        return delay, is_known, self.kernel.distances() >= 0

    def delay_matrix(self) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]]:
        """Compute `delay_us` for all pairs at once, and whether there is a path: row by source.

        Without a path: 0, and not known.
        """
        count = len(self.network.routers)
        places = range(count)
        # Of each pair the delay as far as some router on its path, and that router; both grow by doubling.
        ahead = np.array([[self.kernel.next_hop(src, dst) for dst in places] for src in places], dtype=np.int64)
        step = np.full((count, count), -1, dtype=np.int64)
        for (src, dst), link in self.used_links.items():
            step[src, dst] = self.network.link_delay_us[link]
        rows, columns = np.arange(count)[:, None], np.arange(count)[None, :]
        is_there = ahead >= 0
        np.fill_diagonal(is_there, val=True)
        np.fill_diagonal(ahead, np.arange(count))
        ahead[~is_there] = np.broadcast_to(columns, ahead.shape)[~is_there]
        first = np.where(ahead == rows, 0, step[rows, ahead])
        known = is_there & (first >= 0)
        delay = np.where(is_there, np.maximum(first, 0), 0)
        while (ahead != columns).any():
            delay = delay + np.where(ahead == columns, 0, delay[ahead, columns])
            known = known & known[ahead, columns]
            ahead = ahead[ahead, columns]
        return delay, known, is_there

    # Flows.

    def flows(self, addresses: Collection[int] | None = None) -> list[IngressEgressFlow]:
        """Every flow to an address, by (address, source, destination); what goes to nobody is the last of a source.

        Args:
            addresses: whose flows are told; None: of all.
        """
        network = self.network
        published: dict[int, list[tuple[int, int]]] = {}
        for src, address, rate in zip(
            network.publisher_src.tolist(),
            network.publisher_address.tolist(),
            network.publisher_rate.tolist(),
            strict=True,
        ):
            published.setdefault(address, []).append((src, rate))
        found: list[IngressEgressFlow] = []
        for address in sorted(published if addresses is None else published.keys() & addresses):
            treatment = TREATMENTS[network.treatment[address]]
            if treatment is Treatment.MULTICAST:
                made = self._multicast(address, published[address])
            elif treatment is Treatment.CLOSEST:
                made = self._closest(address, published[address])
            else:
                made = self._balanced(address, published[address])
            found += sorted(made, key=lambda it: (it.src, it.dst is None, it.dst or 0))
        return found

    def sites(self, address: int) -> list[int]:
        """Places of an address's subscriber sites whose routers live."""
        first, last = self.network.subscriber_first[address], self.network.subscriber_first[address + 1]
        return [site for site in range(first, last) if self._router(site) not in self.failed_routers]

    def _router(self, site: int) -> int:
        return int(self.network.subscriber_router[site])

    def _reachable(self, src: int, address: int) -> list[tuple[int, int]]:
        """(cost, site) of the subscribers that a router's publishers can reach, the nearest first."""
        there = ((self.distance(src, self._router(site)), site) for site in self.sites(address))
        return sorted((cost, site) for cost, site in there if cost is not None)

    def _multicast(self, address: int, published: Iterable[tuple[int, int]]) -> Iterator[IngressEgressFlow]:
        for src, rate in published:
            there = self._reachable(src, address)
            for cost, site in there:
                yield IngressEgressFlow(address=address, src=src, dst=self._router(site), rate=rate, cost=cost)
            if not there:
                yield IngressEgressFlow(address=address, src=src, dst=None, rate=rate, cost=0)

    def _closest(self, address: int, published: Iterable[tuple[int, int]]) -> Iterator[IngressEgressFlow]:
        for src, rate in published:
            there = self._reachable(src, address)
            nearest = [(cost, site) for cost, site in there if cost == there[0][0]]
            for turn, (cost, site) in enumerate(nearest):
                share = rate // len(nearest) + (turn < rate % len(nearest))
                yield IngressEgressFlow(address=address, src=src, dst=self._router(site), rate=share, cost=cost)
            if not nearest:
                yield IngressEgressFlow(address=address, src=src, dst=None, rate=rate, cost=0)

    def _balanced(self, address: int, published: Iterable[tuple[int, int]]) -> Iterator[IngressEgressFlow]:
        """The nearest first, as far as the credit of its subscribers allows; the rest to the next nearest."""
        left = dict(published)
        free = {site: int(self.network.subscriber_credit[site]) for site in self.sites(address)}
        offers = [(cost, src, site) for src in left for cost, site in self._reachable(src, address)]
        for cost, src, site in sorted(offers):  # sites are in the order of their routers
            taken = left[src]
            busy_us = self.busy_us(src, site)
            if free[site] >= 0 and busy_us:
                taken = min(taken, free[site] // busy_us)
                free[site] -= taken * busy_us
            left[src] -= taken
            if taken:
                yield IngressEgressFlow(address=address, src=src, dst=self._router(site), rate=taken, cost=cost)
        for src, rate in left.items():
            if rate:
                yield IngressEgressFlow(address=address, src=src, dst=None, rate=rate, cost=0)

    def busy_us(self, src: int, site: int) -> int:
        """Time for which a message from router *src* keeps a credit of a site, microseconds: there, service, back."""
        delay = self.kernel.delay_us(src, self._router(site))
        return 2 * delay + int(self.network.subscriber_service_us[site])
