"""The wiring between rings: what the engine reports goes to the core, what the core orders is carried out.

A *turn* is everything that follows from one piece of input: the relay forwards, the control plane handles its events,
its actions are done, and every connection with output is flushed. Nothing waits in a turn.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from mesh_config.models import LinkSettings, RouterSettings
from router import logs
from router.binding import memory
from router.core.addressing.patterns import TreatmentTable
from router.core.controlplane import ControlPlane
from router.core.errors import RemoteProtocolError
from router.core.events import (
    Action,
    CloseConnection,
    Event,
    InstallAddress,
    InstallRouter,
    Report,
    SendControl,
    SubscriptionRemoved,
    TopologyChanged,
    WithdrawAddress,
    WithdrawRouter,
)
from router.core.forwarding.fib import AddressEntry, Fib
from router.core.terms import Condition, ConnectionId, RouterId
from router.dataplane.broker import Broker
from router.dataplane.interface import IngressLink, Port
from router.dataplane.relay import Relay
from router.engine import codec
from router.engine.connection import Connection
from router.peers import Peers

TRIM_AFTER = 1000
"""Links freed before memory is given back; each took about 7 kB."""
TRIM_DELAY_S = 1.0
"""Links go in crowds: when none has gone for so long, the crowd is gone."""
CONNECTION_WEIGHT = 10
"""What a connection weighs, in links."""

REFUSED_LINES = 10
"""Addresses named in the log, those with the most messages first,"""
REFUSED_SILENCE_S = 10.0
"""and the time until they are named again."""


class Runtime:
    """One router without sockets: connections, data plane and control plane."""

    def __init__(
        self, settings: RouterSettings, *, clock: Callable[[], float], instance: int, rng: random.Random
    ) -> None:
        """*clock* is seconds, monotonic; *instance* must differ from that of every earlier run of this router."""
        self.settings = settings
        self.me = RouterId(settings.id)
        self.clock = clock
        self.instance = instance
        self.log = logs.get(router=settings.id)
        self.fib = Fib(self.me, TreatmentTable(settings.addresses, settings.default_treatment))
        self.relay = Relay(self.fib, settings.forwarding)
        self.control = ControlPlane(
            router_id=self.me, settings=settings.link_state, instance=instance, now=clock(), rng=rng
        )
        self.fib.tree_of = self.control.tree
        self.relay.brokerage.fault = self.address_fault
        self.connections: dict[ConnectionId, Connection] = {}
        self.flushers: dict[ConnectionId, Callable[[], None]] = {}
        """Writes what a connection has to write, as far as the kernel takes it."""
        self.deadline_changed: Callable[[], None] = lambda: None
        self.quieted: Callable[[], None] = lambda: None
        """Called after `stop_taking`, when every delivery has its outcome."""
        self.emptied: Callable[[], None] = lambda: None
        """Called when the last connection is gone."""
        self._events: list[Event] = []
        self._peers = Peers(settings, self.relay, self.log, emit=self._emit, freed=self._count_freed)
        self._dirty: list[Port] = []
        self._next_connection = 0
        self._scheduled = math.inf
        self._freed = 0
        self._trim_at = math.inf
        self._silent_until = 0.0

    # Connections

    def new_connection(self, settings: LinkSettings, *, is_server: bool) -> Connection:
        """An engine for a connection; *is_server*: the peer has dialled."""
        self._next_connection += 1
        port = Port(ConnectionId(self._next_connection), self._touched)
        return Connection(port.id, settings, self.relay, self._peers, port, is_server=is_server)

    def add_connection(self, connection: Connection, flush: Callable[[], None]) -> None:
        """A socket is there; its peer has said nothing yet."""
        self.connections[connection.id] = connection
        self.flushers[connection.id] = flush

    def _touched(self, port: Port) -> None:
        self._dirty.append(port)

    def _emit(self, event: Event) -> None:
        self._events.append(event)

    def remove_connection(self, connection: Connection) -> None:
        """Its pump has stopped."""
        if not connection.is_ending:
            connection.end()
            self._settle(self.clock())
        self.connections.pop(connection.id, None)
        self.flushers.pop(connection.id, None)
        connection.free()
        self._count_freed(CONNECTION_WEIGHT)
        if not self.connections:
            self.emptied()

    def _count_freed(self, weight: int) -> None:
        """Give memory back to the system once much of it has been freed."""
        self._freed += weight
        if self._freed >= TRIM_AFTER:
            self._trim_at = self.clock() + TRIM_DELAY_S

    # Turns

    def turn(self, connection: Connection) -> None:
        """Handle what a connection's bytes caused, and everything that follows."""
        now = self.relay.now = self.clock()
        self._dispatch(connection)
        connection.port.touch()  # the engine itself may have something to say: headers, SASL, heartbeats
        self._settle(now)

    def written(self, connection: Connection) -> None:
        """A connection has written after it was blocked."""
        now = self.relay.now = self.clock()
        self.relay.written(connection.port)
        self._settle(now)

    def next_deadline(self) -> float:
        """When `handle_deadline` must be called, seconds; infinity when never."""
        self._scheduled = self._earliest()
        return self._scheduled

    def _earliest(self) -> float:
        return min(self.control.next_deadline(), self.relay.next_deadline(), self._trim_at)

    def handle_deadline(self) -> None:
        """Time has passed: timers of the routing protocol and of waiting messages."""
        now = self.relay.now = self.clock()
        self._carry_out(self.control.handle_deadline(now=now))
        self.relay.handle_deadline(now)
        self._settle(now)
        if self._trim_at <= now:
            self._freed, self._trim_at = 0, math.inf
            memory.trim()

    def _dispatch(self, connection: Connection) -> None:
        try:
            connection.dispatch()
        except RemoteProtocolError as error:
            self._peers.close(connection, error.condition, str(error))
        except Exception:  # a fault of ours must end one connection and not the router
            self.log.exception("connection_fault", connection=connection.id)
            self._peers.close(connection, Condition.INTERNAL_ERROR, "internal error of the router")

    def _settle(self, now: float) -> None:
        """Let the control plane handle what has happened, then write everywhere, until nothing is left to do."""
        brokerage = self.relay.brokerage
        while self._events or self._dirty or self.relay.settlement.stranded or brokerage.is_due:
            if self._events:
                events, self._events = self._events, []
                self._carry_out(self.control.handle(events, now=now))
            if self.relay.settlement.stranded:
                self.relay.retry_stranded()
            if brokerage.is_due:
                brokerage.turn()
            dirty, self._dirty = self._dirty, []
            for port in dirty:
                self._flush(port)
        if self.relay.waiting.refused and now >= self._silent_until:
            self._report_refused(now)
        if self._earliest() < self._scheduled:
            self.deadline_changed()
        if self.relay.settlement.is_stopping and self.relay.is_quiet():
            self.quieted()

    def address_fault(self, broker: Broker, error: Exception) -> None:
        """A fault of ours with one address, which must not stop the others."""
        self.log.error("address_fault", address=broker.entry.text, exc_info=error)

    def _flush(self, port: Port) -> None:
        port.is_dirty = False
        connection = self.connections.get(port.id)
        if connection is None:
            return
        self._dispatch(connection)  # events that our own calls have caused
        self.flushers[port.id]()
        self._dispatch(connection)  # and that the writing has caused: a link whose transfers are out may take more
        if port.unwritten and connection.pending() == 0:
            port.forget_unwritten()
        if port.blocked or port.paused:
            self.relay.written(port)

    def _report_refused(self, now: float) -> None:
        """Tell of messages for which there was no room to wait: once a burst, however many they are."""
        refused = self.relay.waiting.refused
        for address, count in sorted(refused.items(), key=lambda item: -item[1])[:REFUSED_LINES]:
            self.log.warning("no_room_to_wait", address=address, messages=count)
        refused.clear()
        self._silent_until = now + REFUSED_SILENCE_S

    # Orders of the control plane

    def _carry_out(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case SendControl():
                    self._send_control(action)
                case InstallAddress():
                    self.relay.reconsider(self.fib.install_address(action.address, action.router, action.treatment))
                case WithdrawAddress():
                    self._reconsider(self.fib.withdraw_address(action.address, action.router))
                case InstallRouter():
                    self.relay.brokerage.rerouted.add(action.router)
                    for entry in self.fib.install_router(
                        action.router, action.connection, action.next_hop, action.cost, now=self.relay.now
                    ):
                        self.relay.reconsider(entry)
                case WithdrawRouter():
                    for entry in self.fib.withdraw_router(action.router):
                        self.relay.reconsider(entry)
                case TopologyChanged():
                    self.fib.topology_changed()
                    self.relay.brokerage.is_replanted = True
                case CloseConnection():
                    connection = self.connections.get(action.connection)
                    if connection is not None:
                        self._peers.close(connection, action.condition, action.description)
                case Report():
                    getattr(self.log, action.level)(action.what, **dict(action.fields))
                case _:
                    raise AssertionError(f"unknown action {action}")

    def _reconsider(self, entry: AddressEntry | None) -> None:
        if entry is not None:
            self.relay.reconsider(entry)
            self.fib.forget(entry)

    def _send_control(self, action: SendControl) -> None:
        neighbor = self._peers.neighbors.get(action.connection)
        if neighbor is None or not neighbor.is_up:
            return
        data = bytes(codec.encode_control(action.to, action.message, action.ingress, action.trace))
        try:
            neighbor.send_control(data)
        except RemoteProtocolError as error:
            self._peers.close(self.connections[action.connection], error.condition, str(error))

    # Stopping

    def stop_taking(self) -> None:
        """Take back all credit and withdraw all subscriptions, so that what is in flight can settle."""
        now = self.relay.now = self.clock()
        self.relay.settlement.is_stopping = True
        self.relay.brokerage.stop()
        self._events.extend(SubscriptionRemoved(address=address) for address in self.control.own_addresses())
        for connection in self.connections.values():
            for link in connection.links.values():
                if isinstance(link, IngressLink) and not connection.port.is_router:
                    self.relay.settlement.top_up(link)
        self._settle(now)

    @property
    def has_clients(self) -> bool:
        """Whether anybody but routers is connected."""
        return any(not connection.port.is_router for connection in self.connections.values())

    def close_all(self) -> None:
        """Close every connection."""
        for connection in list(self.connections.values()):
            connection.close(Condition.CONNECTION_FORCED, "the router is shutting down")
        self._settle(self.clock())
