"""Values of the metrics, from the live objects: each step looks at a few, between two events.

Nothing here is on the way of a message. Totals are kept where things happen, and those of what is gone where it goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Final, TypeVar

import attrs

from router import SPEED, __version__
from router.closed_connection_traffic import OTHERS, TrafficTotals
from router.core.controlplane import NeighborConnectionView
from router.core.forwarding.duration_histogram import BOUNDS_S
from router.core.forwarding.fib import BUILT_IN_GROUPS, AddressEntry, MessageTotalsOfAddresses
from router.core.ids_and_conditions import RouterId
from router.core.linkstate.messages import KINDS
from router.dataplane.links import (
    EgressCircuitLink,
    EgressLink,
    IngressCircuitLink,
    IngressLink,
    PublisherLink,
    SubscriberLink,
)
from router.dataplane.settlement import DROP_REASONS
from router.engine.connection import Connection
from router.management.metrics import Measurements
from router.management.problem_kinds import PROBLEM_KINDS
from router.net.connector import Connector
from router.net.http_server import HttpCounters
from router.net.listener import Listener
from router.runtime import Runtime
from router.views.credit import blocked_seconds
from router.views.link_address_rows import credit_of, total
from router.views.problem_inputs import Problem
from router.views.socket_rows import up_connectors

AT_ONCE: Final = 100
"""Number of links, addresses or connections looked at in one step: some 0.1 ms."""
MOST_PATTERNS: Final = 100
"""Maximum number of patterns that have labels of their own; those after them are counted together as `MORE`."""
MORE: Final = "(more)"
"""Label of all patterns after the first `MOST_PATTERNS`."""
MOST_HOPS: Final = 16
"""Number of hops that have labels of their own; the last one counts what is farther too."""

Thing = TypeVar("Thing")


@attrs.define
class AddressGroupTotals:
    """Addresses of one group now, and their messages since the start."""

    ingress: int = 0
    egress: int = 0
    transit: int = 0
    released: int = 0
    dropped: int = 0
    addresses: int = 0
    waiting: int = 0
    waiting_bytes: int = 0
    oldest_s: float = 0.0
    publishers: int = 0
    subscribers: int = 0
    without_credit: int = 0
    """Number of subscribers without credit."""
    blocked: int = 0
    """Number of publishers that wait for credit."""
    blocked_s: float = 0.0
    is_used: bool = False

    def add(self, other: AddressGroupTotals) -> None:
        """Add the counts of another group."""
        for field in attrs.fields(AddressGroupTotals):
            mine, its = getattr(self, field.name), getattr(other, field.name)
            setattr(self, field.name, max(mine, its) if field.name in WORST else mine + its)


WORST: Final = ("oldest_s", "blocked_s", "is_used")
"""Metrics of which the maximum counts; of all others the sum does."""


@attrs.define
class NeighborSums:
    """Sums over the links and connections of one neighbor."""

    traffic: TrafficTotals = attrs.field(factory=TrafficTotals)
    circuits_in: int = 0
    circuits_out: int = 0
    unsettled: int = 0
    waiting: int = 0
    round_trip_us: int | None = None


class RuntimeMetrics:
    """`management.metrics.MetricsSource` of a runtime.

    Args:
        runtime: the router.
        listeners: its AMQP listeners.
        connectors: its connectors.
        is_ready: whether it is ready now.
        http: counters of the HTTP listener.
        problems: finds out in pieces what is wrong now.
    """

    def __init__(
        self,
        runtime: Runtime,
        listeners: Sequence[Listener],
        connectors: Sequence[Connector],
        is_ready: Callable[[], bool],
        http: HttpCounters,
        problems: Callable[[], Generator[None, None, Sequence[Problem]]],
    ) -> None:
        self._runtime = runtime
        self._listeners = listeners
        self._connectors = connectors
        self._is_ready = is_ready
        self._http = http
        self._problems = problems
        self._shown: set[int] = set()
        """Groups of addresses that were ever shown: a series that has begun goes on."""

    def measure(self, into: Measurements) -> Generator[None, None, None]:
        """Take all values; each step takes a few, between two events."""
        taking = MetricsCollection(self._runtime, into, self._shown)
        yield from taking.addresses()
        yield from taking.links()
        yield from taking.connections()
        taking.router()
        taking.mesh()
        yield
        into.set("ready", self._is_ready())
        found = yield from self._problems()
        kinds = Counter(problem.kind for problem in found)
        for kind in PROBLEM_KINDS:
            into.set("problems", kinds[kind], kind)
        yield
        self._sockets(into)
        yield

    def _sockets(self, into: Measurements) -> None:
        for listener in self._listeners:
            name = "" if listener.is_closed else listener.name
            if not name:
                continue  # the router is stopping
            into.set("listener_connections", listener.count, name)
            into.set("listener_accepted", listener.accepted, name)
            for reason, count in listener.refusals.items():
                into.set("listener_refused", count, name, reason.name.lower())
        up = {connector.name for connector in up_connectors(self._runtime, self._connectors)}
        for name in dict.fromkeys(connector.name for connector in self._connectors):  # two may be called alike
            into.set("connector_up", name in up, name)
        into.set("http_connections", self._http.count)
        into.set("http_accepted", self._http.accepted)
        into.set("http_evicted", self._http.evicted)


class MetricsCollection:
    """One taking of all values."""

    def __init__(self, runtime: Runtime, into: Measurements, shown: set[int]) -> None:
        self._runtime = runtime
        self._into = into
        self._shown = shown
        data_plane, fib = runtime.data_plane, runtime.fib
        # Before anything is looked at: what goes meanwhile is counted where it stands, and what comes the next time.
        self._entries = fib.all_entries()
        self._links = list(data_plane.links)
        self._connections = list(runtime.connections.values())
        self._octets = dict(runtime.octets)  # of a connection that ends meanwhile they go on telling its last counts
        self._names = list(fib.groups)
        self._groups = [AddressGroupTotals() for _ in self._names]
        for group, gone in zip(self._groups, fib.gone, strict=True):
            _count(group, gone)
        self._gone_ingress = total((), data_plane.gone_ingress)
        self._neighbors = {
            name: NeighborSums(attrs.evolve(traffic)) for name, traffic in runtime.traffic.neighbors.items()
        }
        self._clients = attrs.evolve(runtime.traffic.clients)
        self._gone_of = {
            connection.id: (data_plane.gone_ingress_of.get(connection.id), data_plane.gone_egress_of.get(connection.id))
            for connection in self._connections
            if connection.port.neighbor is not None
        }

    # Addresses

    def addresses(self) -> Iterator[None]:
        """Look at all addresses."""
        now = self._runtime.clock()
        for part in _parts(self._entries):
            for entry in part:
                group = self._groups[entry.group]
                _count(group, entry)
                group.addresses += 1
                group.waiting += len(entry.waiting)
                group.waiting_bytes += entry.waiting_bytes
                oldest = next(iter(entry.waiting), None)
                if oldest is not None:
                    group.oldest_s = max(group.oldest_s, now - oldest.arrived)  # type: ignore[attr-defined]
            yield

    # Links

    def links(self) -> Iterator[None]:
        """Look at all links of messages."""
        taken = self._gone_ingress
        counts: Counter[str] = Counter()
        now = self._runtime.clock()
        for part in _parts(self._links):
            for link in part:
                if isinstance(link, IngressLink):
                    counts["in"] += 1
                    taken.add(link.counters)
                else:
                    counts["out"] += 1
                if link.port.neighbor is not None:
                    self._neighbor_link(link, link.port.neighbor)
                elif not link.is_gone:
                    self._client_link(link, now)
            yield
        into = self._into
        for outcome in ("accepted", "rejected", "released", "modified"):
            into.set("outcomes", getattr(taken, outcome), outcome)
        into.set("presettled_messages", taken.presettled)
        for direction in ("in", "out"):
            into.set("links", counts[direction], direction)
        yield from self._tell_groups()

    def _neighbor_link(self, link: IngressLink | EgressLink, neighbor: RouterId) -> None:
        state = self._state_of(neighbor)
        if isinstance(link, IngressLink):
            state.circuits_in += isinstance(link, IngressCircuitLink)
            state.traffic.messages_in += link.counters.deliveries
        else:
            state.circuits_out += isinstance(link, EgressCircuitLink)
            state.traffic.messages_out += link.counters.deliveries
            state.unsettled += link.outstanding
            state.waiting += len(link.waiting)

    def _client_link(self, link: IngressLink | EgressLink, now: float) -> None:
        if isinstance(link, PublisherLink) and link.entry is not None:
            group = self._group(link.entry)
            group.publishers += 1
            blocked_s = blocked_seconds(link, now) if link.entry.is_open else None
            if blocked_s is not None:
                group.blocked += 1
                group.blocked_s = max(group.blocked_s, blocked_s)
        elif isinstance(link, SubscriberLink):
            group = self._group(link.entry)
            group.subscribers += 1
            group.without_credit += credit_of(link) == 0

    def _group(self, entry: AddressEntry) -> AddressGroupTotals:
        """Find the totals that an address counts in, or some that are not shown for a group added meanwhile."""
        return self._groups[entry.group] if entry.group < len(self._groups) else AddressGroupTotals()

    def _tell_groups(self) -> Iterator[None]:
        times = self._runtime.fib.times
        more, more_counts, more_s = AddressGroupTotals(), [0] * (len(BOUNDS_S) + 1), 0.0
        for place, (name, group) in enumerate(zip(self._names, self._groups, strict=True)):
            histogram = times[place]
            counts = list(histogram.counts)
            if not group.is_used and place not in self._shown:
                continue
            self._shown.add(place)
            if place >= MOST_PATTERNS + len(BUILT_IN_GROUPS):
                more.add(group)
                more_counts = [mine + its for mine, its in zip(more_counts, counts, strict=True)]
                more_s += histogram.total_s
                continue
            self._tell_group(name, group)
            self._into.set_histogram("settle_seconds", BOUNDS_S, counts, histogram.total_s, name)
            if place % 10 == 0:
                yield
        if more.is_used:
            self._tell_group(MORE, more)
            self._into.set_histogram("settle_seconds", BOUNDS_S, more_counts, more_s, MORE)
        everything = AddressGroupTotals()
        for group in self._groups:
            everything.add(group)
        for direction in ("ingress", "egress", "transit"):
            self._into.set("messages", getattr(everything, direction), direction)

    def _tell_group(self, name: str, group: AddressGroupTotals) -> None:
        into = self._into
        into.set("addresses", group.addresses, name)
        for direction in ("ingress", "egress", "transit"):
            into.set("address_messages", getattr(group, direction), name, direction)
        into.set("address_released_messages", group.released, name)
        into.set("address_dropped_messages", group.dropped, name)
        into.set("address_publishers", group.publishers, name)
        into.set("address_subscribers", group.subscribers, name)
        into.set("address_blocked_publishers", group.blocked, name)
        into.set("address_blocked_seconds", group.blocked_s, name)
        into.set("address_subscribers_without_credit", group.without_credit, name)
        into.set("address_waiting_messages", group.waiting, name)
        into.set("address_waiting_bytes", group.waiting_bytes, name)
        into.set("address_oldest_wait_seconds", group.oldest_s, name)

    # Connections

    def connections(self) -> Iterator[None]:
        """Look at all connections."""
        roles: Counter[str] = Counter({"normal": 0, "inter-router": 0})
        for part in _parts(self._connections):
            for connection in part:
                roles[connection.settings.role.value] += 1
                self._connection(connection)
            yield
        into = self._into
        for role, count in roles.items():
            into.set("connections", count, role)
        into.set("client_bytes", self._clients.bytes_in, "in")
        into.set("client_bytes", self._clients.bytes_out, "out")
        views: dict[RouterId, list[NeighborConnectionView]] = {}
        for view in self._runtime.control.neighbors():
            if not view.is_standby:
                views.setdefault(self._runtime.traffic.name_of(view.router), []).append(view)
                self._state_of(view.router)
        for name, state in self._neighbors.items():
            self._tell_state(name, views.get(name, ()))
            self._tell_traffic(name, state)
        yield

    def _connection(self, connection: Connection) -> None:
        octets = self._octets[connection.id]()
        neighbor = connection.port.neighbor
        state = self._state_of(neighbor) if neighbor is not None else None
        traffic = state.traffic if state is not None else self._clients
        if octets is not None:
            traffic.bytes_in += octets.received
            traffic.bytes_out += octets.sent
            if state is not None and octets.round_trip_us is not None:
                state.round_trip_us = min(octets.round_trip_us, state.round_trip_us or octets.round_trip_us)
        received, sent = self._gone_of.get(connection.id, (None, None))
        if received is not None:
            traffic.messages_in += received.deliveries
        if sent is not None:
            traffic.messages_out += sent.deliveries

    def _state_of(self, neighbor: RouterId) -> NeighborSums:
        return self._neighbors.setdefault(self._runtime.traffic.name_of(neighbor), NeighborSums())

    def _tell_state(self, name: RouterId, views: Sequence[NeighborConnectionView]) -> None:
        """Tell whether a neighbor is up; nothing of one that is gone for good, of which only totals are left."""
        me, links = self._runtime.me, self._runtime.mesh_presence.links
        if views or (min(me, name), max(me, name)) in links:
            self._into.set("neighbor_up", any(view.state == "two-way" for view in views), name)
        if views and name != OTHERS:
            self._into.set("neighbor_link_cost", views[-1].cost, name)

    def _tell_traffic(self, name: RouterId, state: NeighborSums) -> None:
        into, traffic = self._into, state.traffic
        into.set("neighbor_losses", traffic.losses, name)
        for direction in ("in", "out"):
            into.set("neighbor_messages", getattr(traffic, f"messages_{direction}"), name, direction)
            into.set("neighbor_bytes", getattr(traffic, f"bytes_{direction}"), name, direction)
            into.set("circuits", getattr(state, f"circuits_{direction}"), name, direction)
        into.set("neighbor_unsettled_messages", state.unsettled, name)
        into.set("neighbor_waiting_messages", state.waiting, name)
        if state.round_trip_us is not None:
            into.set("neighbor_round_trip_seconds", state.round_trip_us / 1e6, name)

    # What is kept as a number

    def router(self) -> None:
        """Take what the router itself counts."""
        into, runtime = self._into, self._runtime
        data_plane, account = runtime.data_plane, runtime.account
        into.set("router_info", 1, runtime.me, __version__, SPEED, runtime.settings.site or "")
        for reason, count in zip(DROP_REASONS, data_plane.settlement.dropped, strict=True):
            into.set("dropped_messages", count, reason)
        for number, count in data_plane.waiting.given_up.items():
            into.set("waits_given_up", count, DROP_REASONS[number])
        into.set("unsettled_deliveries", data_plane.settlement.count)
        into.set("waiting_messages", data_plane.waiting.count)
        into.set("waiting_bytes", data_plane.waiting.total_bytes)
        into.set("held_bytes", account.total)
        into.set("held_mark_bytes", account.process_mark)
        into.set("above_mark", account.is_over)
        into.set("connections_above_mark", account.connections_over)

    def mesh(self) -> None:
        """Take what the control plane counts."""
        into, runtime, control = self._into, self._runtime, self._runtime.control
        reachable = len(runtime.fib.routes)
        into.set("routers_reachable", reachable)
        expected = runtime.mesh_presence.expected
        into.set("routers_expected", len(expected.routers.keys() - {runtime.me}) if expected is not None else 0)
        into.set("routers_unreachable", control.known_routers - reachable)
        for hops, count in sorted(Counter(min(hops, MOST_HOPS) for hops in control.hops().values()).items()):
            into.set("routers_at_hops", count, hops)
        into.set("reroutes", runtime.route_changes.reroutes)
        into.set("spf_runs", control.spf_runs)
        convergence = runtime.route_changes.convergence
        into.set_histogram("convergence_seconds", BOUNDS_S, list(convergence.counts), convergence.total_s)
        for direction, counts in (("in", control.received), ("out", control.sent)):
            known: Counter[str] = Counter()
            for opcode, count in counts.items():
                known[opcode if opcode in KINDS else "other"] += count
            for opcode, count in sorted(known.items()):
                into.set("control_messages", count, direction, opcode)
        into.set("control_messages_ignored", control.ignored)
        waited = runtime.pacer.counters()
        into.set("control_messages_dropped", control.excess, "too_many")
        into.set("control_messages_dropped", waited["control_unread"], "unread")
        for reason, count in runtime.control_writer.dropped.items():
            into.set("control_messages_dropped", count, reason)


def _count(group: AddressGroupTotals, counted: AddressEntry | MessageTotalsOfAddresses) -> None:
    group.ingress += counted.ingress
    group.egress += counted.egress
    group.transit += counted.transit
    group.released += counted.released
    group.dropped += counted.dropped
    group.is_used = group.is_used or isinstance(counted, AddressEntry) or counted.ingress + counted.egress > 0


def _parts(things: Sequence[Thing]) -> Iterator[Sequence[Thing]]:
    return (things[begin : begin + AT_ONCE] for begin in range(0, len(things), AT_ONCE))
