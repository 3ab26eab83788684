"""Rows that management shows of a runtime.

Rows are made from the live objects when they are asked for, between two events. What costs a pass over all messages
under way is done once for each request, and nothing is counted for management alone on the way of a message.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, TypeVar, cast

import attrs

from mesh_config.models import Role
from router.core.controlplane import NeighborConnectionView
from router.core.forwarding.fib import AddressEntry
from router.dataplane.links import PublisherLink
from router.engine.connection import Connection
from router.engine.neighbor_links import ControlLinkView
from router.management.config_log_and_memory_rows import (
    AddressConfigRow,
    AllocatorRow,
    AutoLinkRow,
    BindingRow,
    ExchangeRow,
    LinkRouteRow,
    PolicyRow,
    RouterLogRow,
    RouterLogStatsRow,
    VhostConfigRow,
)
from router.management.snapshot import (
    AddressRow,
    ConnectionRow,
    ConnectorRow,
    CreditRow,
    LazyRows,
    LinkRow,
    ListenerRow,
    LogLine,
    MeshLinkRow,
    NodeRow,
    PartyRow,
    ProblemRow,
    RouterRow,
    Row,
    VhostRow,
)
from router.net.connector import Connector
from router.net.listener import Listener
from router.net.tcp_counters import TcpCounters
from router.runtime import Runtime
from router.views.config_log_and_memory_rows import (
    address_config_rows,
    allocator_rows,
    log_lines,
    log_row,
    log_stats_row,
    policy_row,
    vhost_config_rows,
)
from router.views.credit import (
    CircuitlessNeighborCredit,
    Party,
    PartyRows,
    blocked_seconds,
    credit_row,
    entry_of,
    has_credit,
    oldest_wait_s,
    parties_in_pieces,
    parties_of,
)
from router.views.link_address_rows import (
    AnyLink,
    ConnectionMessageCounts,
    address_row,
    control_link_row,
    key_of,
    link_row,
    passed,
)
from router.views.link_rates import LinkRates
from router.views.mesh_rows import mesh_link_rows, node_rows
from router.views.paged_lists import ConcatenatedLists, PagedLinks, PageOrder, at_once, sorted_in_pieces
from router.views.problem_snapshots import ProblemScanner
from router.views.router_row import take_router_row
from router.views.socket_rows import connector_rows, listener_row
from router.views.vhosts import VhostMembership, vhost_rows

SHOWN_PROPERTIES: Final = 20
"""Maximum number of properties of a peer that are shown."""
SHOWN_CHARS: Final = 200
"""Maximum number of characters shown of each property of a peer, and of other texts that a peer chooses."""

T = TypeVar("T")


class RuntimeView:
    """`management.snapshot.View` of a runtime."""

    def __init__(
        self,
        runtime: Runtime,
        listeners: Sequence[Listener],
        connectors: Sequence[Connector],
        *,
        own: VhostMembership | None = None,
        rates: LinkRates | None = None,
    ) -> None:
        """*own* picks what belongs to one virtual host, None for everything; *rates* are shared with another view."""
        self._runtime = runtime
        self._own = own
        self.rates = LinkRates(runtime) if rates is None else rates
        self.problem_scan = ProblemScanner(runtime, listeners, connectors, self.rates)
        self._listeners = listeners
        self._connectors = connectors
        self._started = runtime.clock()
        self._by_key = PageOrder(lambda: self._in_order(lambda _: True))
        self._with_credit = PageOrder(lambda: self._in_order(has_credit))
        self._prepared: dict[type[Row], object] = {}
        """Rows collected in pieces for the next call of `rows`, by their kind."""
        self._makers: Mapping[type[Row], Callable[[bool], LazyRows]] = {
            RouterRow: lambda _: self._router() if own is None else LazyRows(),
            ConnectionRow: lambda _: self._connections(),
            LinkRow: lambda _: self._links(),
            AddressRow: self._addresses,
            NodeRow: lambda _: node_rows(runtime, self._offset()) if own is None else LazyRows(),
            MeshLinkRow: lambda _: mesh_link_rows(runtime, self._offset()) if own is None else LazyRows(),
            ProblemRow: lambda _: self.problem_scan.rows() if own is None else LazyRows(),
            CreditRow: lambda goes_on: self._credit(self._with_credit.get(runtime.clock(), goes_on=goes_on)),
            PartyRow: lambda _: self._all_parties(),
            ListenerRow: lambda _: LazyRows(self._listeners, lambda found: listener_row(found, runtime.settings)),
            ConnectorRow: lambda _: connector_rows(runtime, self._connectors, self._offset()),
            AddressConfigRow: lambda _: address_config_rows(runtime) if own is None else LazyRows(),
            RouterLogRow: lambda _: LazyRows([log_row()] if own is None else ()),
            RouterLogStatsRow: lambda _: LazyRows([log_stats_row()] if own is None else ()),
            AllocatorRow: lambda _: allocator_rows(runtime) if own is None else LazyRows(),
            PolicyRow: lambda _: LazyRows([policy_row(runtime)] if own is None else ()),
            VhostConfigRow: lambda _: vhost_config_rows(runtime) if own is None else LazyRows(),
            LinkRouteRow: lambda _: LazyRows(),
            AutoLinkRow: lambda _: LazyRows(),
            ExchangeRow: lambda _: LazyRows(),
            BindingRow: lambda _: LazyRows(),
            VhostRow: lambda _: LazyRows(vhost_rows(runtime.policy, own)),
        }

    @property
    def router_id(self) -> str:
        """Name of the router."""
        return self._runtime.me

    def rows(self, kind: type[Row], *, goes_on: bool = False) -> LazyRows:
        """All entities of one kind: in the order in which they came, addresses by key."""
        return self._makers[kind](goes_on)

    def prepare(self, kind: type[Row], *, goes_on: bool = False) -> Generator[None, None, None]:
        """Do in pieces, for the next call of `rows`, what looks at all there is of something."""
        now = self._runtime.clock()
        if kind is ProblemRow and self._own is None:
            yield from self.problem_scan.prepare()
        elif kind is AddressRow:
            yield from self._by_key.prepare(now, goes_on=goes_on)
        elif kind is CreditRow:
            yield from self._with_credit.prepare(now, goes_on=goes_on)
        elif kind is RouterRow and self._own is None:
            self._prepared[kind] = yield from take_router_row(self._runtime, self._started)
        elif kind is PartyRow:
            self._prepared[kind] = yield from self._take_parties()

    def rows_of_address(self, kind: type[Row], key: str) -> LazyRows:
        """The entities that belong to one address."""
        entry = entry_of(self._runtime.fib, key)
        if entry is None or not (self._own is None or self._own.has_entry(entry)):
            return LazyRows()
        if kind is CreditRow:
            return self._credit([entry])
        found = parties_of(entry)
        return self._parties(found if self._own is None else filter(self._own.has_party, found))

    def of_vhost(self, vhost: str) -> RuntimeView:
        """The part of it that belongs to one virtual host."""
        return RuntimeView(self._runtime, (), (), own=VhostMembership(self._runtime, vhost), rates=self.rates)

    def _in_order(self, is_shown: Callable[[AddressEntry], bool]) -> Generator[None, None, list[AddressEntry]]:
        """Addresses by key."""
        own = self._own
        if own is None:
            return sorted_in_pieces(self._runtime.fib.entries(), key_of, is_shown)
        return sorted_in_pieces(
            self._runtime.fib.entries(), key_of, lambda entry: own.has_entry(entry) and is_shown(entry)
        )

    def _taken(self, kind: type[Row], take: Callable[[], Generator[None, None, T]]) -> T:
        """Give what `prepare` has taken, else take all at once."""
        found = self._prepared.pop(kind, None)
        return cast("T", found) if found is not None else at_once(take())

    def _shown(self) -> list[Connection]:
        """The connections that are shown."""
        found = self._runtime.connections.values()
        return list(found) if self._own is None else [each for each in found if self._own.has_connection(each)]

    def reachable_routers(self) -> Iterable[str]:
        """Ids of this router and of those that it can reach, sorted; not of such as are only named by others."""
        return sorted([self._runtime.me, *filter(self._runtime.control.was_heard, self._runtime.fib.routes)])

    def log_lines(self, most: int) -> Sequence[LogLine]:
        """The last *most* lines of the log, the oldest first."""
        return log_lines(most)

    def look(self) -> Iterator[None]:
        """Look for trouble, and at the counters of links, in pieces: to be called each second or so."""
        yield from self.problem_scan.look()
        yield from self.rates.look()

    def _offset(self) -> float:
        """Seconds to add to the control plane's monotonic clock to get the time since 1970 that an operator knows."""
        return time.time() - self._runtime.clock()

    def _all_links(self) -> PagedLinks:
        return PagedLinks(self._shown())

    def _router(self) -> LazyRows:
        return LazyRows([self._taken(RouterRow, lambda: take_router_row(self._runtime, self._started))])

    # Connections and links

    def _connections(self) -> LazyRows:
        neighbors = {view.connection: view for view in self._runtime.control.neighbors()}
        now = self._runtime.clock()
        return LazyRows(
            self._shown(),
            lambda connection: self._connection(connection, neighbors.get(connection.id), now),
        )

    def _connection(
        self, connection: Connection, neighbor: NeighborConnectionView | None, now: float
    ) -> ConnectionRow | None:
        if connection.id not in self._runtime.connections:
            return None
        messages = passed(connection, self._runtime.data_plane)
        octets = self._runtime.octets[connection.id]()
        last = self.rates.last_of(list(connection.links.values()))
        row = _connection_row(connection, neighbor, messages, octets, now)
        return attrs.evolve(row, last_dlv_seconds=int(now - last) if last is not None else None)

    def _links(self) -> LazyRows:
        now = self._runtime.clock()
        data_plane = self._runtime.data_plane
        known = data_plane.links
        # Rows are made later, when a link may be freed.
        rates = self.rates
        control = [
            (connection, end)
            for connection in self._shown()
            if (neighbor := self._runtime.neighbor(connection.id)) is not None
            for end in neighbor.control_ends()
        ]

        def make(found: tuple[Connection, AnyLink | ControlLinkView]) -> LinkRow | None:
            connection, link = found
            if isinstance(link, ControlLinkView):
                return control_link_row(connection, link) if connection.id in self._runtime.connections else None
            if link not in known:
                return None
            row = link_row(connection, link, data_plane.transfers_on(link), rates, now)
            if isinstance(link, PublisherLink) and link.controller is not None and link.entry is not None:
                blocked_s = blocked_seconds(link, now)
                if blocked_s is None and not row.credit_available and row.undelivered_count:
                    # It holds credit that it has no window for, or has begun a message: what it has sent waits.
                    blocked_s = oldest_wait_s(link.entry, now)
                return attrs.evolve(row, zero_credit_seconds=int(blocked_s or 0))
            return row

        return LazyRows(ConcatenatedLists(control, self._all_links()), make)

    # Addresses

    def _addresses(self, goes_on: bool) -> LazyRows:
        now = self._runtime.clock()
        return LazyRows(self._by_key.get(now, goes_on=goes_on), lambda entry: address_row(entry, now))

    def _credit(self, entries: Sequence[AddressEntry]) -> LazyRows:
        now = self._runtime.clock()
        return LazyRows(entries, lambda entry: credit_row(entry, now))

    def _take_parties(self) -> Generator[None, None, list[Party]]:
        links = (link for _, link in self._all_links())
        controllers = list(self._runtime.data_plane.credit_manager) if self._own is None else ()
        return parties_in_pieces(links, controllers)

    def _all_parties(self) -> LazyRows:
        return self._parties(self._taken(PartyRow, self._take_parties))

    def _parties(self, found: Iterable[Party]) -> LazyRows:
        view = PartyRows(self._runtime.connections, self._runtime.clock(), self.rates)
        known = self._runtime.data_plane.links
        return LazyRows(
            list(found),
            lambda party: view.row(party) if isinstance(party, CircuitlessNeighborCredit) or party in known else None,
        )


def _connection_row(
    connection: Connection,
    neighbor: NeighborConnectionView | None,
    messages: ConnectionMessageCounts,
    octets: TcpCounters | None,
    now: float,
) -> ConnectionRow:
    peer, identity = connection.peer, connection.identity
    is_standby = neighbor is not None and neighbor.is_standby
    is_between = connection.settings.role is Role.INTER_ROUTER
    return ConnectionRow(
        name=f"connection/{connection.host}",
        identity=str(connection.id),
        container=peer.container[:SHOWN_CHARS] if peer is not None else "",
        host=connection.host,
        role=connection.settings.role.value,
        dir="in" if connection.is_server else "out",
        protocol="amqp",
        opened=peer is not None,
        active=not is_standby,
        admin_status="deleted" if connection.is_ending else "enabled",
        oper_status="closing" if connection.is_ending else "up",
        uptime_seconds=int(now - connection.since),
        is_authenticated=connection.is_authenticated,
        user=connection.user,
        sasl=connection.sasl_mechanism,
        is_encrypted=connection.is_encrypted,
        ssl=connection.is_encrypted,
        ssl_proto=identity.tls_version if identity is not None else None,
        ssl_cipher=identity.tls_cipher if identity is not None else None,
        ssl_ssf=identity.tls_bits if identity is not None else 0,
        tenant=connection.port.vhost if connection.rights is None else connection.rights.vhost,
        address_prefix=(connection.port.vhost if connection.rights is None else connection.rights.prefix) or "",
        properties=_properties(peer.properties) if peer is not None else {},
        link_count=len(connection.links),
        unanswered_count=0 if is_between else connection.count_unanswered_requests(),
        held_bytes=connection.port.held_bytes,
        charged_bytes=connection.port.charge.total_bytes,
        reading=_reading(connection),
        sending="nothing" if connection.port.is_laden else "all",
        deliveries_in=messages.received,
        deliveries_out=messages.sent,
        bytes_in=octets.received if octets is not None else None,
        bytes_out=octets.sent if octets is not None else None,
        round_trip_micros=octets.round_trip_us if octets is not None else None,
        neighbor_state=neighbor.state if neighbor is not None else None,
        cost=neighbor.cost if neighbor is not None else connection.settings.cost if is_between else None,
        is_standby=is_standby,
        last_dlv_seconds=None,
        enable_protocol_trace=False,
    )


def _properties(values: Mapping[str, object]) -> dict[str, object]:
    """Properties that a peer gives itself, as much of them as is shown."""
    return {key[:SHOWN_CHARS]: _plain(value) for key, value in islice(values.items(), SHOWN_PROPERTIES)}


def _reading(connection: Connection) -> str:
    if connection.port.is_stopped:
        return "nothing"
    return "no messages" if connection.port.is_over else "all"


def _plain(value: object) -> object:
    """Value that a peer sent, as far as it can surely be written back; anything else as text, and no text at length."""
    if value is None or isinstance(value, bool) or (isinstance(value, int) and -(2**63) <= value < 2**63):
        return value
    if isinstance(value, (str, float, bytes)):
        return str(value[:SHOWN_CHARS] if isinstance(value, (str, bytes)) else value)[:SHOWN_CHARS]
    # To write out what it holds takes longer than it is worth.
    return type(value).__name__
