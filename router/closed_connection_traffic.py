"""Totals that outlive what they are of: the traffic of connections that are gone, and changes of routes."""

from __future__ import annotations

from typing import Final

import attrs

from router.core.forwarding.duration_histogram import DurationHistogram
from router.core.ids_and_conditions import RouterId
from router.dataplane.link_counters import LinkCounters
from router.net.tcp_counters import TcpCounters

MOST_NEIGHBORS: Final = 256
"""Maximum number of neighbors that are told apart; further ones are counted together, as OTHERS."""
OTHERS: Final = RouterId("(others)")


@attrs.define
class TrafficTotals:
    """Traffic of connections that are gone."""

    bytes_in: int = 0
    bytes_out: int = 0
    messages_in: int = 0
    messages_out: int = 0
    losses: int = 0
    """Times that the neighbor was lost."""


@attrs.define
class RouteChangeCounts:
    """Changes of the paths to other routers since the start."""

    reroutes: int = 0
    """Times that a router that could be reached got another path."""
    convergence: DurationHistogram = attrs.field(factory=DurationHistogram)
    """Times from the news of a change until the routes followed it."""


class ClosedConnectionTraffic:
    """The traffic of all connections that are gone."""

    def __init__(self) -> None:
        self.clients = TrafficTotals()
        """Bytes alone: their messages are counted for all links together."""
        self.neighbors: dict[RouterId, TrafficTotals] = {}

    def name_of(self, neighbor: RouterId) -> RouterId:
        """Name under which a neighbor is counted."""
        if neighbor in self.neighbors:
            return neighbor
        if len(self.neighbors) >= MOST_NEIGHBORS:
            neighbor = OTHERS
        self.neighbors.setdefault(neighbor, TrafficTotals())
        return neighbor

    def left(
        self,
        neighbor: RouterId | None,
        octets: TcpCounters | None,
        received: LinkCounters | None,
        sent: LinkCounters | None,
    ) -> None:
        """Count what a connection has carried that is gone.

        Args:
            neighbor: the router at its other end; None of a client.
            octets: bytes of its socket.
            received: messages that came on its links.
            sent: messages that left on them.
        """
        traffic = self.clients if neighbor is None else self.neighbors[self.name_of(neighbor)]
        if octets is not None:
            traffic.bytes_in += octets.received
            traffic.bytes_out += octets.sent
        if received is not None:
            traffic.messages_in += received.deliveries
        if sent is not None:
            traffic.messages_out += sent.deliveries

    def lost(self, neighbor: RouterId) -> None:
        """Count the loss of a neighbor."""
        self.neighbors[self.name_of(neighbor)].losses += 1
