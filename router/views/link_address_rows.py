"""Rows of links and addresses, from the objects of the data plane."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from router.binding.proton_functions import pn_link_credit, pn_link_queued
from router.core.addressing.address import AddressKind, masked, parse_address
from router.core.forwarding.fib import AddressEntry
from router.core.ids_and_conditions import RouterId
from router.dataplane.link_counters import LinkCounters
from router.dataplane.links import (
    EgressCircuitLink,
    EgressLink,
    IngressLink,
    SubscriberLink,
    Transfer,
    local_subscribers,
)
from router.dataplane.router_data_plane import RouterDataPlane
from router.dataplane.transfer_stages import SENT
from router.engine.connection import Connection
from router.engine.neighbor_links import ControlLinkView
from router.management.snapshot import AddressRow, LinkRow
from router.views.link_rates import LinkRates, capacity

AnyLink = IngressLink | EgressLink

DELAYED_S: Final = (1.0, 10.0)
"""Ages from which on a message under way counts as delayed, and as stuck."""


@attrs.define
class UnsettledCountsByAge:
    """Ages of the messages under way, on one link or in a router."""

    sent: int = 0
    """Number of messages sent on that have no outcome."""
    late: int = 0
    """Number of messages without outcome that are older than 1 s."""
    stuck: int = 0
    """Number of messages without outcome that are older than 10 s."""

    def add(self, transfer: Transfer, now: float) -> None:
        """Count one message.

        Args:
            transfer: that is held for the address.
            now: seconds, monotonic.
        """
        age = now - transfer.arrived
        self.sent += transfer.state == SENT
        self.late += age > DELAYED_S[0]
        self.stuck += age > DELAYED_S[1]


def ages_under_way(transfers: Iterable[Transfer], now: float) -> UnsettledCountsByAge:
    """Count messages without outcome by their age at *now*, seconds, monotonic."""
    ages = UnsettledCountsByAge()
    for transfer in transfers:
        ages.add(transfer, now)
    return ages


def key_of(entry: AddressEntry) -> str:
    """The key of an address as Qpid Dispatch writes it, class and phase first; names that routers made are masked."""
    return _key(entry.kind, entry.text, entry.owner)


def _key(kind: AddressKind, text: str, owner: RouterId | None) -> str:
    if kind is AddressKind.MOBILE:
        return f"M0{masked(text)}"
    if kind is AddressKind.ROUTER:
        return f"R{owner}/{masked(text)}"
    return f"L{masked(text)}"


def credit_of(link: AnyLink) -> int:
    """Messages that the sending side of a link may still send."""
    credit = int(pn_link_credit(link.handle))
    if isinstance(link, IngressLink):
        credit -= int(pn_link_queued(link.handle))
    return max(0, credit)


def is_blocked(link: EgressLink) -> bool:
    """Whether messages wait because it has no credit."""
    return _waiting_for(link) > 0 and credit_of(link) == 0


def total(links: Iterable[AnyLink], gone: LinkCounters) -> LinkCounters:
    """Counters of these links and of those that are gone, together."""
    # Written out: of all that is asked of a router again and again, this alone looks at each link.
    deliveries, presettled, dropped = gone.deliveries, gone.presettled, gone.dropped
    accepted, rejected, released, modified = gone.accepted, gone.rejected, gone.released, gone.modified
    for link in links:
        one = link.counters
        deliveries += one.deliveries
        presettled += one.presettled
        dropped += one.dropped
        accepted += one.accepted
        rejected += one.rejected
        released += one.released
        modified += one.modified
    counters = LinkCounters()
    counters.deliveries, counters.presettled, counters.dropped = deliveries, presettled, dropped
    counters.accepted, counters.rejected = accepted, rejected
    counters.released, counters.modified = released, modified
    return counters


@attrs.frozen
class ConnectionMessageCounts:
    """Messages that have passed over one connection, in each direction."""

    received: int
    sent: int


def passed(connection: Connection, data_plane: RouterDataPlane) -> ConnectionMessageCounts:
    """Totals of all message links of a neighbor, closed links included."""
    gone_ingress = data_plane.gone_ingress_of.get(connection.id)
    gone_egress = data_plane.gone_egress_of.get(connection.id)
    received = gone_ingress.deliveries if gone_ingress is not None else 0
    sent = gone_egress.deliveries if gone_egress is not None else 0
    for link in connection.links.values():
        if isinstance(link, IngressLink):
            received += link.counters.deliveries
        else:
            sent += link.counters.deliveries
    return ConnectionMessageCounts(received, sent)


def link_row(
    connection: Connection, link: AnyLink, transfers: Iterable[Transfer], rates: LinkRates, now: float
) -> LinkRow:
    """One link of messages.

    Args:
        connection: that it belongs to.
        link: of which the row is.
        transfers: its messages without outcome.
        rates: of all links.
        now: seconds, monotonic.
    """
    sample = rates.of(link)
    delays = ages_under_way(transfers, now)
    credit = credit_of(link)
    if isinstance(link, IngressLink):
        unsettled, zero_credit_s, priority = delays.sent, 0.0, 0
        undelivered = max(0, link.in_flight - delays.sent)
    else:
        unsettled, undelivered = link.outstanding, _waiting_for(link)
        zero_credit_s = _oldest_for(link, now) if credit == 0 else 0.0
        links = connection.port.data_links
        priority = links.index(link) if link in links else 0
    counters = link.counters
    return LinkRow(
        name=link.name,
        identity=str(link.id),
        link_name=link.name,
        link_type="inter-router" if connection.port.is_router else "endpoint",
        link_dir="in" if isinstance(link, IngressLink) else "out",
        connection_id=str(connection.id),
        container=connection.peer.container if connection.peer is not None else "",
        user=connection.user,
        host=connection.host,
        owning_addr=_owning_key(link),
        peer=None,
        admin_status="enabled",
        oper_status="up",
        capacity=capacity(link),
        priority=priority,
        credit_available=credit,
        zero_credit_seconds=int(zero_credit_s),
        is_blocked=isinstance(link, EgressLink) and is_blocked(link),
        is_flooding=rates.is_flooding(link),
        undelivered_count=undelivered,
        unsettled_count=unsettled,
        delivery_count=counters.deliveries,
        presettled_count=counters.presettled,
        dropped_presettled_count=counters.dropped,
        accepted_count=counters.accepted,
        rejected_count=counters.rejected,
        released_count=counters.released,
        modified_count=counters.modified,
        deliveries_delayed1_sec=delays.late,
        deliveries_delayed10_sec=delays.stuck,
        deliveries_stuck=delays.stuck,
        rate=round(sample.rate) if sample is not None else 0,
        settle_rate=round(sample.settle_rate) if sample is not None else 0,
    )


def control_link_row(connection: Connection, end: ControlLinkView) -> LinkRow:
    """One of the two links of a neighbor on which routers speak of the mesh."""
    credit = max(0, int(pn_link_credit(end.handle)))
    return LinkRow(
        name=end.name,
        identity=str(end.id),
        link_name=end.name,
        link_type="router-control",
        link_dir=end.direction,
        connection_id=str(connection.id),
        container=connection.peer.container if connection.peer is not None else "",
        user=connection.user,
        host=connection.host,
        owning_addr="Lqdhello" if end.direction == "out" else None,
        peer=None,
        admin_status="enabled",
        oper_status="up",
        capacity=credit,
        priority=0,
        credit_available=credit,
        zero_credit_seconds=0,
        is_blocked=False,
        is_flooding=False,
        undelivered_count=int(pn_link_queued(end.handle)),
        unsettled_count=0,
        delivery_count=end.count,
        presettled_count=end.count,
        dropped_presettled_count=0,
        accepted_count=0,
        rejected_count=0,
        released_count=0,
        modified_count=0,
        deliveries_delayed1_sec=0,
        deliveries_delayed10_sec=0,
        deliveries_stuck=0,
        rate=0,
        settle_rate=0,
    )


def address_row(entry: AddressEntry, now: float) -> AddressRow:
    """Make the row of one address, at *now* (seconds, monotonic)."""
    key = key_of(entry)
    subscribers = local_subscribers(entry)
    remotes = sorted(entry.remotes)
    return AddressRow(
        name=key,
        identity=key,
        key=key,
        distribution=entry.treatment.value,
        is_open=entry.is_open,
        in_process=int(entry.service is not None),
        subscriber_count=len(subscribers),
        publisher_count=len(entry.publishers),
        remote_count=len(remotes),
        container_count=0,
        remote_host_routers=remotes,
        transit_outstanding=[entry.remotes[router].datagrams for router in remotes],
        credit_available=sum(map(credit_of, subscribers)),
        waiting_count=len(entry.waiting),
        waiting_bytes=entry.waiting_bytes,
        oldest_wait_seconds=int(_oldest(entry.waiting, now)),
        tracked_deliveries=sum(link.outstanding for link in subscribers),
        deliveries_ingress=entry.ingress,
        deliveries_egress=entry.egress,
        deliveries_transit=entry.transit,
        released_count=entry.released,
        dropped_count=entry.dropped,
        deliveries_to_container=0,
        deliveries_from_container=0,
        deliveries_ingress_route_container=0,
        deliveries_egress_route_container=0,
        deliveries_redirected_to_fallback=0,
        priority=-1,
    )


def _entry_of(link: AnyLink) -> AddressEntry | None:
    """The address of a publisher, a subscriber or a neighbor's circuit."""
    return link.entry if isinstance(link, IngressLink | SubscriberLink) else None


def _owning_key(link: AnyLink) -> str | None:
    """Key of a link's address; None where each message names its own."""
    entry = _entry_of(link)
    if entry is not None:
        return key_of(entry)
    if not isinstance(link, EgressCircuitLink) or link.address is None:
        return None
    # A mobile address, or a reply address of another router: no router is called "".
    parsed = parse_address(link.address, me=RouterId(""))
    return _key(parsed.kind, parsed.text, parsed.router)


def _waiting_for(link: EgressLink) -> int:
    """Messages that this link's credit would let go."""
    entry = _entry_of(link)
    return len(link.waiting) + (len(entry.waiting) if entry is not None else 0)


def _oldest_for(link: EgressLink, now: float) -> float:
    """Seconds that the oldest of them has waited; 0 when there is none."""
    entry = _entry_of(link)
    return max(_oldest(link.waiting, now), _oldest(entry.waiting, now) if entry is not None else 0.0)


def _oldest(queue: Iterable[object], now: float) -> float:
    transfer = next(iter(queue), None)
    assert transfer is None or isinstance(transfer, Transfer)
    return max(0.0, now - transfer.arrived) if transfer is not None else 0.0
