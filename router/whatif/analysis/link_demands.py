"""Demands by the links that carry them, and those that reach nobody, of one scenario: all of them, as tables.

Messages of a link add up to its load, and what reaches nobody to what the scenario loses, to the last millionth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mesh_config.models import Treatment
from router.whatif.analysis.paths_and_flows import RoutingState
from router.whatif.kernel.network_arrays import MICRO, TREATMENTS, Network
from router.whatif.pipeline.schema_types import Layout, TableError, directed, real, text

NO_ADDRESS: Final = -1
SEVERAL: Final = -1
"""Stands in place of a receiving router: of a multicast one copy is for all that are behind a link, and none are known
of an address that has no subscriber."""

ROUTER_DOWN: Final = "router down"
NO_SUBSCRIBER: Final = "no subscriber"
NO_PATH: Final = "no path"
NO_CREDIT: Final = "no credit"
CAUSES: Final = (ROUTER_DOWN, NO_SUBSCRIBER, NO_PATH, NO_CREDIT)
"""Causes for which messages reach nobody."""

LINK_DEMAND: Final = Layout(
    name="link_demand",
    doc="Demands by the directions of links that carry them in one scenario; those of a direction add up to its load.",
    key=("link", "src", "demand_src", "address", "demand_dst"),
    columns=(
        *directed(),
        text("demand_src", "The router at which messages enter."),
        text(
            "demand_dst",
            "The router that they are for, or whose subscribers take them; null of a multicast, of which one copy is "
            "for all routers behind the link.",
            is_nullable=True,
        ),
        text("address", "The address; null of a demand for a router.", is_nullable=True),
        real("msgs_per_s", "Messages of it on this link.", "msg/s"),
    ),
)

LOST_DEMAND: Final = Layout(
    name="lost_demand",
    doc="Demands that are lost in one scenario, in whole or in part; they add up to its `lost_msgs_per_s`.",
    key=("demand_src", "address", "demand_dst"),
    columns=(
        text("demand_src", "The router at which messages enter."),
        text(
            "demand_dst",
            "The router that they are for; of a multicast the one whose subscribers miss a copy; else null.",
            is_nullable=True,
        ),
        text("address", "The address; null of a demand for a router.", is_nullable=True),
        real("msgs_per_s", "Messages that don't arrive.", "msg/s"),
        text(
            "cause",
            "`router down`: that at which they enter, or the one that they are for. `no subscriber`: none lives, or "
            "there was none. `no path`: some live, and none is to be reached. `no credit`: what can be reached takes "
            "no more. `starved_publishers` counts those for an address with one of the last three, and multicasts of "
            "routers that live if no copy arrives.",
        ),
    ),
)

Ints = NDArray[np.int64]


def link_demands(routes: RoutingState, link: int | None = None) -> pa.Table:
    """Make the table LINK_DEMAND of a scenario.

    Args:
        routes: of the scenario.
        link: place of the only link that is wanted; None: all of them.
    Raises: TableError when traffic is split over paths: then no link carries the whole of a demand.
    """
    if routes.kernel.is_split:
        raise TableError("traffic is split over equal paths, so that no link has the whole of a demand")
    network = routes.network
    wanted = np.arange(2 * len(network.links))
    if link is not None:
        wanted = wanted[wanted >> 1 == link]
    hops = _Hops(routes)
    copies = np.array(list(_copies(routes, hops)), dtype=np.int64).reshape(-1, 5)
    rows = np.concatenate((hops.passed(_arriving(routes), wanted), copies[np.isin(copies[:, 0], wanted)]))
    rows = rows[rows[:, 4] > 0]
    rows = rows[np.lexsort((rows[:, 2], rows[:, 3], rows[:, 1], rows[:, 0]))]
    directions = [network.directed_link(number) for number in range(2 * len(network.links))]
    names = (pa.array([each[at] for each in directions], pa.string()).take(pa.array(rows[:, 0])) for at in range(3))
    columns = [*names, *_names(network, rows[:, 1:4]), pa.array(rows[:, 4] / MICRO)]
    return pa.table(columns, schema=LINK_DEMAND.schema)


def lost_demands(routes: RoutingState) -> pa.Table:
    """Make the table LOST_DEMAND of a scenario. *routes*: of it."""
    network = routes.network
    found = sorted(_lost(routes), key=lambda row: (row[0], row[2], row[1]))
    numbers = np.array([row[:3] for row in found], dtype=np.int64).reshape(-1, 3)
    rates = np.array([row[3] for row in found], dtype=np.int64)
    columns = [*_names(network, numbers), pa.array(rates / MICRO), pa.array([row[4] for row in found], pa.string())]
    return pa.table(columns, schema=LOST_DEMAND.schema)


def _names(network: Network, numbers: Ints) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Names of routers, of those that they send to, and of addresses."""
    routers, addresses = pa.array(network.routers, pa.string()), pa.array(network.addresses, pa.string())
    src, dst, address = numbers.T
    return (
        routers.take(pa.array(src)),
        routers.take(pa.array(dst, mask=dst < 0)),
        addresses.take(pa.array(address, mask=address < 0)),
    )


def _between_routers(network: Network) -> Ints:
    """Demands for routers: router, router that it is for, NO_ADDRESS, rate."""
    none = np.full(len(network.demand_src), NO_ADDRESS, dtype=np.int64)
    return np.column_stack((network.demand_src, network.demand_dst, none, network.demand_rate)).astype(np.int64)


def _is_multicast(network: Network, address: int) -> bool:
    return TREATMENTS[network.treatment[address]] is Treatment.MULTICAST


def _arriving(routes: RoutingState) -> Ints:
    """Select what goes from one router to another, but for multicasts, in the same columns."""
    network = routes.network
    own = _between_routers(network)
    is_arriving = ~_is_down(routes, own) & (routes.kernel.distances()[own[:, 0], own[:, 1]] >= 0)
    flows = [
        (flow.src, flow.dst, flow.address, flow.rate)
        for flow in routes.flows()
        if flow.dst is not None and not _is_multicast(network, flow.address)
    ]
    return np.concatenate((own[is_arriving], np.array(flows, dtype=np.int64).reshape(-1, 4)))


def _is_down(routes: RoutingState, sent: Ints) -> NDArray[np.bool_]:
    """Whether one of both routers has failed."""
    src, dst = (np.isin(sent[:, at], sorted(routes.failed_routers)) for at in range(2))
    return src | dst


class _Hops:
    """Ways from router to router, for all at once.

    Args:
        routes: of a scenario.
    """

    def __init__(self, routes: RoutingState) -> None:
        self._routes = routes
        size = len(routes.network.routers)
        self._directed = np.full((size, size), -1, dtype=np.int64)
        for (src, dst), link in routes.used_links.items():
            self._directed[src, dst] = 2 * link + int(src == routes.network.link_b[link])

    def directed(self, src: int, dst: int) -> int:
        """The directed link from one neighbor to another."""
        return int(self._directed[src, dst])

    def passed(self, sent: Ints, wanted: Ints) -> Ints:
        """List the links that something passes: directed link, and the columns of what is sent.

        Args:
            sent: router, router that it is for, which has a path, address, rate.
            wanted: directed links that are told.
        """
        kernel, size = self._routes.kernel, len(self._routes.network.routers)
        ahead = np.full((size, size), -1, dtype=np.int64)
        for dst in np.unique(sent[:, 1]).tolist():
            ahead[:, dst] = [kernel.next_hop(src, dst) for src in range(size)]
        found = [np.zeros((0, 5), dtype=np.int64)]
        at, under_way = sent[:, 0], sent
        while True:
            is_there = at == under_way[:, 1]
            at, under_way = at[~is_there], under_way[~is_there]
            if not len(at):
                return np.concatenate(found)
            following = ahead[at, under_way[:, 1]]
            directed = self._directed[at, following]
            is_wanted = np.isin(directed, wanted)
            found.append(np.column_stack((directed[is_wanted], under_way[is_wanted])))
            at = following


def _copies(routes: RoutingState, hops: _Hops) -> Iterator[tuple[int, int, int, int, int]]:
    """List what multicasts put on links, along the tree of the router at which they enter: one copy on each."""
    network = routes.network
    published: dict[tuple[int, int], tuple[int, set[int]]] = {}
    for flow in routes.flows({number for number in range(len(network.addresses)) if _is_multicast(network, number)}):
        if flow.dst is not None:
            published.setdefault((flow.address, flow.src), (flow.rate, set()))[1].add(flow.dst)
    incoming = _incoming(routes)
    for (address, src), (rate, wanted) in published.items():
        seen = {src}
        for dst in sorted(wanted):
            node = dst
            while node not in seen:
                seen.add(node)
                before = _predecessor(routes, incoming[node], src, node)
                yield hops.directed(before, node), src, SEVERAL, address, rate
                node = before


def _incoming(routes: RoutingState) -> dict[int, list[tuple[int, int]]]:
    """Living neighbors of each router, each with the cost of the link from there."""
    network = routes.network
    found: dict[int, list[tuple[int, int]]] = {}
    for (src, dst), link in routes.used_links.items():
        if src not in routes.failed_routers:
            costs = network.link_cost_back if src == network.link_b[link] else network.link_cost
            found.setdefault(dst, []).append((src, int(costs[link])))
    return found


def _predecessor(routes: RoutingState, incoming: Iterable[tuple[int, int]], root: int, node: int) -> int:
    """The router before *node* in the tree of *root*: of those on a shortest path the one with the least (cost, id).

    Args:
        routes: of a scenario.
        incoming: neighbors of *node*, each with the cost of the link from there.
        root: router at which the tree begins.
        node: router in the tree, another one.
    """
    kernel = routes.kernel
    whole = kernel.distance(root, node)
    found = []
    for src, cost in incoming:
        before = kernel.distance(root, src)
        if before >= 0 and before + cost == whole:
            found.append((before, src))
    return min(found)[1]


def _lost(routes: RoutingState) -> Iterator[tuple[int, int, int, int, str]]:
    """Router, router that it is for, address, rate and cause of what reaches nobody."""
    network = routes.network
    own = _between_routers(network)
    is_down = _is_down(routes, own)
    is_lost = (own[:, 3] > 0) & (is_down | (routes.kernel.distances()[own[:, 0], own[:, 1]] < 0))
    for row, is_dead in zip(own[is_lost].tolist(), is_down[is_lost].tolist(), strict=True):
        yield (*row, ROUTER_DOWN if is_dead else NO_PATH)
    arrived: dict[tuple[int, int], set[int]] = {}
    for flow in routes.flows():
        if flow.dst is not None:
            arrived.setdefault((flow.address, flow.src), set()).add(flow.dst)
        elif flow.rate and not _is_multicast(network, flow.address):
            yield flow.src, SEVERAL, flow.address, flow.rate, _cause(routes, flow.src, flow.address)
    columns = (network.publisher_src, network.publisher_address, network.publisher_rate)
    for src, address, rate in zip(*(column.tolist() for column in columns), strict=True):
        if rate and _is_multicast(network, address):
            yield from _missed_copies(routes, src, address, rate, arrived.get((address, src), set()))


def _missed_copies(
    routes: RoutingState, src: int, address: int, rate: int, arrived: set[int]
) -> Iterator[tuple[int, int, int, int, str]]:
    """Copies of a multicast that don't arrive, one for each router with subscribers, failed ones included."""
    network, failed = routes.network, routes.failed_routers
    first, last = network.subscriber_first[address], network.subscriber_first[address + 1]
    sites: list[int] = network.subscriber_router[first:last].tolist()
    if not sites:
        yield src, SEVERAL, address, rate, ROUTER_DOWN if src in failed else NO_SUBSCRIBER
    for dst in sites:
        if dst not in arrived:
            yield src, dst, address, rate, ROUTER_DOWN if {src, dst} & failed else NO_PATH


def _cause(routes: RoutingState, src: int, address: int) -> str:
    """Cause for which a router's messages for an address find no subscriber."""
    if src in routes.failed_routers:
        return ROUTER_DOWN
    living = [int(routes.network.subscriber_router[site]) for site in routes.sites(address)]
    if not living:
        return NO_SUBSCRIBER
    return NO_CREDIT if any(routes.distance(src, dst) is not None for dst in living) else NO_PATH
