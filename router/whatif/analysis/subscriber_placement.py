"""Routers at which the subscribers of an address had better be: every router is judged, none is tried out.

Two things are made better. The *load*: the sum of the costs of all links times the messages that they carry. And the
messages that find no subscriber when one link or one router fails, summed over all such failures.

Subscribers that are added at a router r take over the publishers that r is nearer to than any other: what is saved is
a sum over publishers. A multicast grows by the way from r to where its tree is already. Subscribers that are moved are
taken away, then added.

All of it holds if credit suffices: publishers of a balanced address reach the nearest subscribers, whatever these
grant, and what is lost is what has no path. A run shows how much more would go farther, or be lost.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from mesh_config.models import Treatment
from router.whatif.analysis.connectivity import Connectivity
from router.whatif.analysis.link_placement import Floats
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import MICRO, TREATMENTS, Network

Ints = NDArray[np.int64]


@attrs.frozen(kw_only=True)
class SubscriberPlacement:
    """One way to place the subscribers of an address."""

    address: int
    taken_from: int | None
    """The router at which they are now; None: they are added to those that there are."""
    router: int
    before: float
    after: float

    @property
    def gain(self) -> float:
        """Improvement; 0 or less when there is none."""
        return self.before - self.after


class AddressUse:
    """One address: its publishers and the routers of its subscribers."""

    def __init__(self, network: Network, kernel: Kernel, distance: Floats, address: int) -> None:
        """Read one address from a kernel in its base state, whose distances are *distance*, `inf` without a path."""
        self.address = address
        self.distance = distance
        here = network.publisher_address == address
        self.srcs = network.publisher_src[here].astype(np.int64)
        self.rates = network.publisher_rate[here] / MICRO
        first, last = network.subscriber_first[address], network.subscriber_first[address + 1]
        self.sites: tuple[int, ...] = tuple(network.subscriber_router[first:last].tolist())
        self._trees = None
        if TREATMENTS[network.treatment[address]] is Treatment.MULTICAST:
            self._trees = [np.array(kernel.tree(src), dtype=np.int64) for src in self.srcs.tolist()]

    # Load

    def loads_with(self, sites: Sequence[int]) -> Floats:
        """Load with subscribers at *sites* and at one more router, by that router; `inf` where publishers reach nobody.

        At a router of *sites* it is the load of these alone.
        """
        if self._trees is None:
            found: Floats = self._times_rates(np.minimum(self._nearest(sites)[:, None], self.distance[self.srcs]))
            return found
        total = np.zeros(len(self.distance))
        for src, rate, tree in zip(self.srcs.tolist(), self.rates.tolist(), self._trees, strict=True):
            if rate:
                total += rate * self._tree_cost(src, tree, sites)
        return total

    def _nearest(self, sites: Sequence[int]) -> Floats:
        """Distance to the nearest of some routers, by publisher."""
        if not sites:
            return np.full(len(self.srcs), np.inf)
        nearest: Floats = self.distance[np.ix_(self.srcs, list(sites))].min(axis=1)
        return nearest

    def _times_rates(self, distances: Floats) -> Floats:
        """Sum of rates times distances, by column; publishers that send nothing need no path."""
        sends = self.rates > 0
        total: Floats = (self.rates[sends, None] * distances[sends]).sum(axis=0)
        return total

    def _tree_cost(self, src: int, tree: Ints, sites: Sequence[int]) -> Floats:
        """Cost of a multicast to *sites* and to one more router, by that router."""
        far = self.distance[src]
        is_on = np.zeros(len(far), dtype=np.bool_)
        is_on[src] = True
        cost = 0.0
        for site in sites:
            node = site
            while not is_on[node]:
                if tree[node] < 0:
                    return np.full(len(far), np.inf)
                is_on[node] = True
                cost += far[node] - far[tree[node]]
                node = tree[node]
        # From each router toward the source, all at once, until all are on the tree.
        extra = np.zeros(len(far))
        reach = np.arange(len(far))
        is_lost = np.isinf(far)
        while True:
            moving = np.flatnonzero(~is_on[reach] & ~is_lost)
            if not moving.size:
                break
            before = tree[reach[moving]]
            extra[moving] += far[reach[moving]] - far[before]
            reach[moving] = before
        extra[is_lost] = np.inf
        whole: Floats = cost + extra
        return whole

    # Single failures

    def losses_with(self, sites: Sequence[int], failures: SingleFailures) -> Floats:
        """Messages/s lost with subscribers at *sites* and one more router, by that router, summed over single failures.

        Those of publishers whose own router has failed don't count.

        Args:
            sites: routers with subscribers, by place.
            failures: of the mesh and this address.
        """
        places = np.array(sites, dtype=np.int64)
        lost = np.zeros(len(self.distance))
        for _, traffic in failures.that_split:
            lost += traffic.lost_with(places)[0]
        # What is left splits nothing, so that all of these are alike but for the publishers that fail themselves, ...
        calm, without = failures.calm.lost_with(places)
        own: Floats = np.bincount(self.srcs, self.rates, len(lost)).astype(np.float64)
        own[list(failures.routers_that_split)] = 0.0
        own_traffic = PartedTraffic.of(failures.calm.part, np.arange(len(lost)), own)
        lost += failures.others * calm - own_traffic.lost_with(places)[0]
        # ... and for the router itself that is asked about.
        is_other = np.ones(len(lost), dtype=np.bool_)
        is_other[list(failures.routers_that_split)] = False
        is_missed = ~np.isin(failures.calm.part, failures.calm.part[places])
        whole: Floats = lost + np.where(is_other, without - calm - np.where(is_missed, own, 0.0), 0.0)
        return whole


@attrs.frozen(eq=False)
class PartedTraffic:
    """Messages/s that publishers of an address send in each part of a mesh that is in parts."""

    part: Ints
    """Part of each router; that of a failed one is the last, in which nobody sends."""
    sent: Floats
    """Messages/s, by part."""

    @classmethod
    def of(cls, labels: Ints, srcs: Ints, rates: Floats) -> PartedTraffic:
        """Sum up what is sent in each part.

        Args:
            labels: part of each router, -1 for one that has failed.
            srcs: routers of publishers, by place.
            rates: what each of these sends.
        """
        none = int(labels.max(initial=0)) + 1
        part = np.where(labels < 0, none, labels)
        sent: Floats = np.bincount(part[srcs], rates, none + 1).astype(np.float64)
        sent[none] = 0.0
        return cls(part, sent)

    def lost_with(self, sites: Ints) -> tuple[Floats, float]:
        """Messages/s lost with subscribers at *sites* and at one more router, by that router; and at *sites* alone."""
        left = self.sent.copy()
        left[self.part[sites]] = 0.0
        total = float(left[:-1].sum())
        return total - left[self.part], total


@attrs.frozen(kw_only=True, eq=False)
class SingleFailures:
    """Every single failure of a link or a router, as far as it matters to an address."""

    calm: PartedTraffic
    """Messages of the address while nothing fails."""
    that_split: tuple[tuple[int | None, PartedTraffic], ...]
    """Bridges, articulation points, and routers with subscribers: the router, None for a link; and the messages of the
    address then."""
    others: int
    """Number of links and routers beside these."""

    @property
    def routers_that_split(self) -> tuple[int, ...]:
        """Routers of `that_split`."""
        return tuple(router for router, _ in self.that_split if router is not None)

    @classmethod
    def of(cls, connectivity: Connectivity, links: int, audience: AddressUse) -> SingleFailures:
        """Find the failures of a mesh that split it.

        Args:
            connectivity: of the mesh.
            links: how many there are.
            audience: subscribers and publishers of the address.
        """
        routers = sorted({*connectivity.cuts, *audience.sites})
        # One by one, so that labels are not held beside the parts that are made of them.
        parted = itertools.chain(
            ((None, connectivity.labels_without_link(link)) for link in connectivity.bridges),
            ((router, connectivity.labels_without_node(router)) for router in routers),
        )
        return cls(
            calm=PartedTraffic.of(connectivity.component, audience.srcs, audience.rates),
            that_split=tuple(
                (router, PartedTraffic.of(labels, audience.srcs, audience.rates)) for router, labels in parted
            ),
            others=links + len(connectivity.component) - len(connectivity.bridges) - len(routers),
        )


def load_places(audience: AddressUse) -> Iterator[SubscriberPlacement]:
    """Every move and every addition that makes the load of an address less; none where publishers reach nobody."""
    sites = audience.sites
    if not sites or not audience.srcs.size:
        return
    before = float(audience.loads_with(sites)[sites[0]])
    yield from _better(audience, None, sites, before, audience.loads_with(sites))
    for site in sites:
        rest = [other for other in sites if other != site]
        yield from _better(audience, site, sites, before, audience.loads_with(rest))


def loss_places(audience: AddressUse, connectivity: Connectivity, links: int) -> Iterator[SubscriberPlacement]:
    """Every move and every addition after which less is lost in single failures.

    Args:
        audience: subscribers and publishers of an address.
        connectivity: of the mesh.
        links: how many the mesh has.
    """
    sites = audience.sites
    if not sites or not audience.srcs.size:
        return
    failures = SingleFailures.of(connectivity, links, audience)
    added = audience.losses_with(sites, failures)
    before = float(added[sites[0]])
    yield from _better(audience, None, sites, before, added)
    for site in sites:
        rest = [other for other in sites if other != site]
        yield from _better(audience, site, sites, before, audience.losses_with(rest, failures))


def _better(
    audience: AddressUse, taken_from: int | None, sites: Sequence[int], before: float, after: Floats
) -> Iterator[SubscriberPlacement]:
    """Places that are better than what is, by a millionth at least: sums of rates are rounded."""
    least = before * (1 - 1e-6) if np.isfinite(before) else 0.0
    for router in np.flatnonzero(after < least).tolist():
        if router not in sites:
            place = SubscriberPlacement(
                address=audience.address,
                taken_from=taken_from,
                router=router,
                before=before,
                after=float(after[router]),
            )
            yield place
