"""Credit that each path needs for what is offered to it, against what is configured.

The law (docs/explanation/credit.md): a credit is away from the moment in which a subscriber grants it until the message
that used it is done with, so a path carries at most credit / (round trip + service). Turned around:

    needed = ceil(rate * (round trip + service)) + batch - 1

since a subscriber that grants *batch* credits at a time keeps up to batch - 1 of them back. The credit of a router's
subscribers is a pool: paths that end at the same router share it, so that what they need is added up before it is
rounded. What finds no credit is lost, so that a path carries less than it is offered; it is counted at the nearest
router, where credit would let it go. Where traffic is split over equally short paths the round trip is that of the
slowest of them: credit for it is enough whichever path a message takes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa

from router.whatif.analysis.paths_and_flows import IngressEgressFlow, RoutingState
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import CREDIT_UNIT, MICRO, Network
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline.table_files import from_rows

MOST_PAIRS: Final = 10_000
"""Demands for routers that have rows of their own: those that need the most."""


@attrs.frozen(kw_only=True)
class ClientCreditHabits:
    """Habits of clients with credit, as far as a model does not say them."""

    batch: int | None = 1
    """Credits that a subscriber grants at a time; None: half of its credit when half is used, as proton does."""
    client_us: int = 0
    """One way between a client and its router, microseconds."""

    def needed(self, work: int) -> int:
        """Credit for *work*: the sum of rates times the times for which a message keeps its credit, CREDIT_UNITs."""
        least = max(1, -(-work // CREDIT_UNIT))
        # The least c with c >= least + ceil(c / 2) - 1.
        return least + self.batch - 1 if self.batch is not None else max(1, least, 2 * (least - 1))

    def usable(self, credit: int) -> int:
        """Part of a subscriber's credit that is usable although it grants in batches: inverse of `needed`."""
        if self.batch is None:
            return credit // 2 + 1 if credit > 1 else credit
        return max(0, credit - self.batch + 1)


@attrs.frozen(kw_only=True)
class OfferedMessages:
    """The messages of one row of the plan, as they are offered."""

    address: str
    src: int
    dst: int
    rate: int
    """Millionths of messages/s."""
    busy_us: int | None
    """Time for which each message keeps its credit, microseconds; None when a delay is not known."""
    service_us: int | None
    configured: int | None


@attrs.frozen(kw_only=True)
class PathCountsByCredit:
    """Numbers of paths to addresses. Demands for routers don't count: nobody says what credit there is."""

    known: int
    """Paths of which it is known whether their credit is enough."""
    short: int
    """Paths whose credit is known and not enough."""
    unknown: int
    """Paths of which the credit or the delay is not known."""

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]], model: Model) -> PathCountsByCredit:
        """Count rows of `credit_plan`, which are of *model*."""
        addresses = {address.text for address in model.addresses}
        found = [row["is_enough"] for row in rows if row["is_enough"] is not None or row["address"] in addresses]
        return cls(
            known=len(found) - found.count(None), short=sum(it is False for it in found), unknown=found.count(None)
        )


def credit_table(network: Network, kernel: Kernel, model: Model, terms: ClientCreditHabits | None = None) -> pa.Table:
    """The table `credit_plan` of a mesh as it is.

    Args:
        network: the mesh.
        kernel: in its base state.
        model: of which *network* was made.
        terms: habits of clients; those of `ClientCreditHabits()` when absent.
    """
    return from_rows("credit_plan", credit_rows(RoutingState(network, kernel), model, terms or ClientCreditHabits()))


def credit_rows(routes: RoutingState, model: Model, terms: ClientCreditHabits) -> list[dict[str, object]]:
    """The rows of `credit_plan`, for the state of *routes*: paths to addresses, then demands for routers."""
    rows = address_rows(routes, model, terms)
    there = {(row["address"], row["src"], row["dst"]) for row in rows}
    for path in _router_paths(routes, terms):
        row = next(iter(_pool_rows(routes.network, [path], terms)))
        if (row["address"], row["src"], row["dst"]) not in there:  # an address may be called like a router
            rows.append(row)
    return rows


def address_rows(
    routes: RoutingState, model: Model, terms: ClientCreditHabits, addresses: Collection[int] | None = None
) -> list[dict[str, Any]]:
    """Rows of paths to addresses, all or some: only for these the credit is known."""
    pools: dict[tuple[str, int], list[OfferedMessages]] = {}
    for path in _address_paths(routes, model, terms, addresses):
        pools.setdefault((path.address, path.dst), []).append(path)
    return [row for paths in pools.values() for row in _pool_rows(routes.network, paths, terms)]


def _pool_rows(
    network: Network, paths: list[OfferedMessages], terms: ClientCreditHabits
) -> Iterator[dict[str, object]]:
    """Rows of paths that share the credit of one router's subscribers."""
    configured = paths[0].configured
    work = _sum(None if path.busy_us is None else path.rate * path.busy_us for path in paths)
    together = None if work is None else terms.needed(work)
    for path in paths:
        rate = path.rate / MICRO
        limit = None
        if configured is not None and work:
            # All that share it grow alike.
            limit = rate * (terms.usable(configured) * CREDIT_UNIT / work)
        service_us = path.service_us or 0
        yield {
            "address": path.address,
            "src": network.routers[path.src],
            "dst": network.routers[path.dst],
            "msgs_per_s": rate,
            "rtt_ms": None if path.busy_us is None else (path.busy_us - service_us) / 1000,
            "service_ms": None if path.service_us is None else path.service_us / 1000,
            "needed": None if path.busy_us is None else terms.needed(path.rate * path.busy_us),
            "shared_needed": together,
            "configured": configured,
            "limit_msgs_per_s": limit,
            "is_enough": None if together is None or configured is None else configured >= together,
        }


def _sum(numbers: Iterable[int | None]) -> int | None:
    """The sum; None when one of them is not known."""
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total


# Paths to addresses


def _address_paths(
    routes: RoutingState, model: Model, terms: ClientCreditHabits, addresses: Collection[int] | None
) -> Iterator[OfferedMessages]:
    """Every flow to an address. What finds no credit is wanted at the nearest router, and counts as a need there."""
    sites = {(site.address, site.router): site for site in model.subscribers}
    wanted: dict[tuple[int, int, int], int] = {}
    for flow in routes.flows(addresses):
        dst = flow.dst if flow.dst is not None else _nearest(routes, flow)
        if dst is not None and flow.rate:
            key = flow.address, flow.src, dst
            wanted[key] = wanted.get(key, 0) + flow.rate
    for (address, src, dst), rate in sorted(wanted.items()):
        text = routes.network.addresses[address]
        site = sites[text, routes.network.routers[dst]]
        delay, is_known = routes.longest_delay_us(src, dst)
        service_us = None if site.service_ms is None else round(site.service_ms * 1000)
        trip = 2 * delay + 4 * terms.client_us
        yield OfferedMessages(
            address=text,
            src=src,
            dst=dst,
            rate=rate,
            busy_us=trip + (service_us or 0) if is_known else None,
            service_us=service_us,
            configured=site.credit,
        )


def _nearest(routes: RoutingState, flow: IngressEgressFlow) -> int | None:
    """The nearest router with subscribers, of equally near ones the first; None without a path to any."""
    there = []
    for site in routes.sites(flow.address):
        router = int(routes.network.subscriber_router[site])
        cost = routes.distance(flow.src, router)
        if cost is not None:
            there.append((cost, router))
    return min(there)[1] if there else None


# Demands for routers


def _router_paths(routes: RoutingState, terms: ClientCreditHabits) -> Iterator[OfferedMessages]:
    """Demands for routers, whose receivers' credit and time nobody says: the MOST_PAIRS with most work."""
    network = routes.network
    count = len(network.demand_src)
    if not count:
        return
    srcs, dsts = network.demand_src.tolist(), network.demand_dst.tolist()
    if count > MOST_PAIRS:
        cells = network.demand_src, network.demand_dst
        delay, is_known, is_there = (matrix[cells] for matrix in routes.longest_delay_matrix())
    else:
        is_there = np.array([routes.distance(src, dst) is not None for src, dst in zip(srcs, dsts, strict=True)])
        pairs = zip(srcs, dsts, is_there.tolist(), strict=True)
        found = [routes.longest_delay_us(src, dst) if there else (0, False) for src, dst, there in pairs]
        delay, is_known = np.array([each[0] for each in found]), np.array([each[1] for each in found])
    busy = 2 * delay + 4 * terms.client_us
    work = network.demand_rate * busy.astype(np.float64)
    chosen = np.flatnonzero(is_there & (network.demand_rate > 0))
    if len(chosen) > MOST_PAIRS:
        chosen = chosen[np.lexsort((chosen, -network.demand_rate[chosen], -work[chosen]))][:MOST_PAIRS]
    for at in chosen.tolist():
        yield OfferedMessages(
            address=network.routers[dsts[at]],
            src=srcs[at],
            dst=dsts[at],
            rate=int(network.demand_rate[at]),
            busy_us=int(busy[at]) if is_known[at] else None,
            service_us=None,
            configured=None,
        )
