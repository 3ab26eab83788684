"""Row of the router itself: sums over all of its addresses, links and messages, taken a few at a time."""

from __future__ import annotations

import os
import socket
from collections.abc import Generator
from pathlib import Path

import attrs

from mesh_config.models import Role
from router import SPEED, __version__
from router.core.forwarding.fib import MessageTotalsOfAddresses
from router.core.ids_and_conditions import AREA
from router.dataplane.link_counters import LinkCounters
from router.dataplane.links import IngressLink, Transfer
from router.management.snapshot import RouterRow
from router.runtime import Runtime
from router.views.link_address_rows import AnyLink, UnsettledCountsByAge, is_blocked, total
from router.views.neighbor_traffic_totals import neighbor_traffic
from router.views.paged_lists import AT_ONCE


@attrs.define
class WaitingSums:
    """Messages that wait in a router, and links on which they do."""

    count: int = 0
    size: int = 0
    """Bytes of the messages that wait at addresses."""
    blocked: int = 0
    """Links out."""


@attrs.define
class LinkSums:
    """All links of messages of a router together."""

    taken: LinkCounters
    """Messages that came, on links that are gone too."""
    count: int = 0


def take_router_row(runtime: Runtime, started: float) -> Generator[None, None, RouterRow]:
    """Make the row; pauses after each few things that it has looked at.

    Args:
        runtime: the router.
        started: when it did, seconds on its clock.
    """
    data_plane = runtime.data_plane
    # Before anything is looked at: what goes meanwhile is counted where it stands.
    links = list(data_plane.links)
    sums = LinkSums(total((), data_plane.gone_ingress))
    counts = yield from runtime.fib.count_in_pieces(AT_ONCE)
    waiting = WaitingSums()
    yield from _addresses(runtime, waiting)
    yield from _links(runtime, links, sums, waiting)
    under_way = yield from _under_way(runtime, links)
    return _row(runtime, started, sums, waiting, counts, under_way)


def _row(
    runtime: Runtime,
    started: float,
    sums: LinkSums,
    waiting: WaitingSums,
    counts: MessageTotalsOfAddresses,
    under_way: UnsettledCountsByAge,
) -> RouterRow:
    settings, account, taken = runtime.settings, runtime.account, sums.taken
    between = any(each.role is Role.INTER_ROUTER for each in (*settings.listeners, *settings.connectors))
    return RouterRow(
        name=runtime.me,
        identity="1",
        id=runtime.me,
        mode="interior" if between else "standalone",
        area=AREA,
        version=__version__,
        speed=SPEED,
        site=settings.site,
        metadata=settings.site,
        host_name=socket.gethostname(),
        process_id=os.getpid(),
        uptime_seconds=int(runtime.clock() - started),
        drain_state=str(runtime.drain_state),
        memory_usage=resident_bytes(),
        charged_bytes=account.total,
        charged_mark_bytes=account.process_mark,
        is_above_mark=account.is_over,
        connections_above_mark=account.connections_over,
        worker_threads=1,
        connection_count=len(runtime.connections),
        link_count=sums.count,
        addr_count=runtime.fib.entry_count(),
        node_count=len(runtime.fib.routes),
        unreachable_node_count=sum(not each.is_present for each in runtime.mesh_presence.routers.values()),
        link_route_count=0,
        auto_link_count=0,
        links_blocked=waiting.blocked,
        waiting_count=waiting.count,
        waiting_bytes=waiting.size,
        unsettled_count=under_way.sent,
        presettled_deliveries=taken.presettled,
        dropped_presettled_deliveries=sum(runtime.data_plane.settlement.dropped),
        accepted_deliveries=taken.accepted,
        rejected_deliveries=taken.rejected,
        released_deliveries=taken.released,
        modified_deliveries=taken.modified,
        deliveries_delayed1_sec=under_way.late,
        deliveries_delayed10_sec=under_way.stuck,
        deliveries_stuck=under_way.stuck,
        deliveries_ingress=counts.ingress,
        deliveries_egress=counts.egress,
        deliveries_transit=counts.transit,
        deliveries_ingress_route_container=0,
        deliveries_egress_route_container=0,
        deliveries_redirected_to_fallback=0,
        neighbor_traffic=neighbor_traffic(runtime),
        control_counters=_control_counters(runtime),
    )


def _control_counters(runtime: Runtime) -> dict[str, int]:
    unsent = {f"control_{reason}": count for reason, count in runtime.control_writer.dropped.items()}
    return {**runtime.control.counters(), **runtime.pacer.counters(), **unsent}


def _addresses(runtime: Runtime, waiting: WaitingSums) -> Generator[None, None, None]:
    for number, entry in enumerate(list(runtime.fib.entries())):
        waiting.count += len(entry.waiting)
        waiting.size += entry.waiting_bytes
        if number % AT_ONCE == AT_ONCE - 1:
            yield


def _under_way(runtime: Runtime, links: list[AnyLink]) -> Generator[None, None, UnsettledCountsByAge]:
    ages, now = UnsettledCountsByAge(), runtime.clock()
    seen: set[Transfer] = set()
    """Messages counted already: each stands there once for the link on which it came and once for that on which it
    left."""
    looked = 0
    for link in links:
        looked += 1
        if link in runtime.data_plane.links:  # else its handle may be freed
            for transfer in runtime.data_plane.transfers_on(link):
                looked += 1
                if transfer not in seen:
                    seen.add(transfer)
                    ages.add(transfer, now)
        if looked >= AT_ONCE:
            looked = 0
            yield
    return ages


def _links(runtime: Runtime, links: list[AnyLink], sums: LinkSums, waiting: WaitingSums) -> Generator[None, None, None]:
    known = runtime.data_plane.links
    for number, link in enumerate(links):
        if isinstance(link, IngressLink):
            sums.taken.add(link.counters)
        elif link in known:  # else its handle may be freed
            waiting.count += len(link.waiting)
            waiting.blocked += is_blocked(link)
        sums.count += link in known
        if number % AT_ONCE == AT_ONCE - 1:
            yield


def resident_bytes() -> int:
    """Memory of this process that is in RAM; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
