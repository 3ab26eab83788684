"""The wiring between rings: what the engine reports goes to the core, what the core orders is carried out.

A *turn* is everything that follows from one piece of input: the data plane forwards, the control plane handles its
events, its actions are done, and every connection with output is flushed. Nothing waits in a turn.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from mesh_config.models import AddressSettings, ConnectionSettings, RouterSettings
from router import logs
from router.binding import heap_trim
from router.closed_connection_traffic import ClosedConnectionTraffic, RouteChangeCounts
from router.control_pacer import ControlPacer
from router.core.addressing.treatment_table import TreatmentTable
from router.core.controlplane import ControlPlane
from router.core.errors import PeerProtocolError
from router.core.events import (
    Action,
    CloseConnection,
    Event,
    InstallAddress,
    InstallRouter,
    Report,
    SendControl,
    TopologyChanged,
    WithdrawAddress,
    WithdrawRouter,
)
from router.core.forwarding.fib import AddressEntry, Fib
from router.core.ids_and_conditions import Condition, ConnectionId, RouterId
from router.core.policy.denial import Denied
from router.core.policy.policy import Policy
from router.dataplane.internal_error_handlers import InternalErrorHandlers
from router.dataplane.links import EgressLink, IngressLink, Transfer
from router.dataplane.router_data_plane import RouterDataPlane
from router.denial_log import DenialLog
from router.drain_state import DrainState
from router.ended_connection_reaper import EndedLinkReaper
from router.engine.amqps_connection import AmqpsConnection
from router.engine.connection import Connection
from router.engine.control_writer import ControlWriter
from router.engine.neighbor_links import NeighborLinks
from router.engine.peer_identity import PeerIdentity
from router.fib_resync import FibResync
from router.flight_recorder import FlightRecorder
from router.mesh_presence import MeshPresence
from router.net.tcp_counters import TcpCounters
from router.peer_event_handler import PeerEventHandler, remote_address
from router.run_to_completion import ConnectionTurns

TRIM_AFTER = 1000
"""Links freed before memory is given back; each took about 7 kB."""
TRIM_DELAY_S = 1.0
"""Links go in crowds: when none has gone for so long, the crowd is gone."""
CONNECTION_WEIGHT = 10
"""Weight of a connection, in links."""


REFUSED_LINES = 10
"""Maximum number of addresses named in the log, those with the most messages first."""
REFUSED_SILENCE_S = 10.0
"""Time until addresses are named in the log again, seconds."""


def _nothing() -> None:
    """Do nothing: for a connection that has no socket."""


def treatment_table(settings: RouterSettings) -> TreatmentTable:
    """The treatments of a router's addresses."""
    return TreatmentTable(settings.addresses, settings.default_treatment, settings.forwarding.distance_messages)


class Runtime(ConnectionTurns):
    """One router without sockets: connections, data plane and control plane."""

    def __init__(
        self, settings: RouterSettings, *, clock: Callable[[], float], instance: int, rng: random.Random
    ) -> None:
        """*clock* is seconds, monotonic; *instance* must differ from that of every earlier run of this router."""
        self.settings = settings
        self.me = RouterId(settings.id)
        self.address_names: dict[AddressSettings, str] = {}
        """Names of entries that management has created."""
        self.instance = instance
        self.log = logs.get(router=settings.id)
        self.control = ControlPlane(
            router_id=self.me, settings=settings.link_state, instance=instance, now=clock(), rng=rng
        )
        self.fib = Fib(self.me, treatment_table(settings), self.control.tree, self.control.flood_trace)
        faults = InternalErrorHandlers(self._address_fault, self._port_fault, self._message_fault)
        data_plane = RouterDataPlane(self.fib, settings.forwarding, faults, instance=instance)
        super().__init__(data_plane, settings.forwarding, clock, self.log)
        self.recorder = FlightRecorder(self.control, settings.recorder, clock=clock, log=self.log)
        self.aborters: dict[ConnectionId, Callable[[], None]] = {}
        """Functions that end a connection without a word to its engine or its peer."""
        self._faulty: set[ConnectionId] = set()
        """Connections that a fault of ours has ended."""
        self._resync = FibResync(self.control, self.fib)
        self.octets: dict[ConnectionId, Callable[[], TcpCounters | None]] = {}
        self.drain_state = DrainState.SERVING
        self._removed: Callable[[], None] = lambda: None
        self.teardowns = EndedLinkReaper(self._take_away, self._lose_messages, self.look_at_teardowns, clock)
        self.pacer = self._new_pacer()
        self.denials = DenialLog(self.log)
        self.policy = Policy(settings.vhosts, self.me, self._denied)
        self.mesh_presence = MeshPresence(self.me, None, clock())
        """Memory of the mesh."""
        self._peers = PeerEventHandler(
            settings,
            self.data_plane,
            self.log,
            self.mesh_presence,
            emit=self._emit,
            freed=self._count_freed,
            teardowns=self.teardowns,
            pacer=self.pacer,
            policy=self.policy,
            drain_state=lambda: self.drain_state,
        )
        self.pairs = self._peers.pairs
        self._next_connection = 0
        self.runtime_deadline = self.control.next_deadline()
        self.traffic = ClosedConnectionTraffic()
        self.route_changes = RouteChangeCounts()
        self._freed = 0
        self.control_writer = ControlWriter()
        self._silent_until = 0.0

    def _new_pacer(self) -> ControlPacer:
        settings = self.settings
        return ControlPacer(
            share=settings.forwarding.control_percent / 100,
            most_bytes=settings.forwarding.control_message_bytes,
            hello_pause_s=settings.link_state.hello_interval_s / 4,
            measure=self.clock,
            look_at=self._advance_runtime_deadline,
        )

    # Connections

    def new_connection(
        self,
        settings: ConnectionSettings,
        *,
        is_server: bool,
        identity: PeerIdentity | None = None,
        host: str = "",
        connector: int = 0,
        is_tls: bool = False,
    ) -> Connection:
        """Make an engine for a connection.

        Args:
            settings: of its listener or connector.
            is_server: the peer has dialled.
            identity: who the peer is, as far as that was found out.
            host: host and port of the peer.
            connector: its number among those of this router; 0 where the peer has dialled.
            is_tls: its bytes are those of TLS; `start_tls` follows.
        """
        return (AmqpsConnection if is_tls else Connection)(
            self.next_connection_id(),
            settings,
            self.data_plane,
            self._peers,
            self.touched,
            is_server=is_server,
            identity=identity,
            host=host,
            since=self.clock(),
            connector=connector,
            most_silence_s=self.settings.most_silence_s(settings),
        )

    def next_connection_id(self) -> ConnectionId:
        """Number of a connection that was not there before."""
        self._next_connection += 1
        return ConnectionId(self._next_connection)

    def add_connection(
        self,
        connection: Connection,
        flush: Callable[[], None],
        octets: Callable[[], TcpCounters | None] = lambda: None,
        abort: Callable[[], None] = lambda: None,
    ) -> None:
        """A socket is there; its peer has said nothing yet.

        Args:
            connection: the engine's end of it.
            flush: writes what there is, as far as the kernel takes it.
            octets: what the socket has carried.
            abort: ends it without a word to the engine or the peer.
        """
        self.connections[connection.id] = connection
        self.flushers[connection.id] = flush
        self.octets[connection.id] = octets
        self.aborters[connection.id] = abort

    def _denied(self, denied: Denied, vhost: str, user: str, what: str) -> None:
        self.denials.note(
            denied, vhost, user, what, self.data_plane.clock.now, lambda: self._asker(denied, vhost, user)
        )
        self._advance_runtime_deadline(self.denials.due)

    def _asker(self, denied: Denied, vhost: str, user: str) -> tuple[ConnectionId, str] | None:
        """The client that is denied something; None where it isn't known and its user has several connections."""
        asking = self._peers.asking
        if asking is None and denied.connection is not None:
            asking = self.connections.get(denied.connection)
        if asking is None:
            shared = [
                it
                for it in self.connections.values()
                if it.rights is not None and (it.rights.vhost, it.rights.user) == (vhost, user)
            ]
            if len(shared) != 1:
                return None
            (asking,) = shared
        return asking.id, asking.host

    def neighbor(self, connection: ConnectionId) -> NeighborLinks | None:
        """The links to the router at the other end of a connection; None when there is a client."""
        return self._peers.neighbors.get(connection)

    def _emit(self, event: Event) -> None:
        self.events.append(event)

    def remove_connection(self, connection: Connection) -> None:
        """Forget a connection whose pump has stopped. Never raises."""
        try:
            if not connection.is_ending:
                connection.end()
                self.data_plane.set_now(self.clock())
                self.settle()
        except Exception as error:  # a fault of ours must not keep the rest from being forgotten
            self._tell_of(connection, error)
        self.teardowns.finish(connection)
        self._count_traffic(connection)
        is_torn = connection.id in self._peers.torn
        self._faulty.discard(connection.id)
        self._peers.torn.discard(connection.id)
        self.aborters.pop(connection.id, None)
        self.connections.pop(connection.id, None)
        self.flushers.pop(connection.id, None)
        self.octets.pop(connection.id, None)
        self.data_plane.gone_ingress_of.pop(connection.id, None)
        self.data_plane.gone_egress_of.pop(connection.id, None)
        self.account.forget(connection)
        if not is_torn:  # else to keep its memory is the lesser evil
            self.teardowns.free(connection, self.clock())
        self._count_freed(CONNECTION_WEIGHT)
        self._removed()

    def _count_traffic(self, connection: Connection) -> None:
        octets = self.octets.get(connection.id)
        self.traffic.left(
            connection.port.neighbor,
            octets() if octets is not None else None,
            self.data_plane.gone_ingress_of.get(connection.id),
            self.data_plane.gone_egress_of.get(connection.id),
        )

    def _take_away(self, connection: Connection, links: list[IngressLink | EgressLink]) -> None:
        fault = self._peers.take_away(connection, links)
        if fault is not None:
            self.connection_fault(connection, fault)

    def _lose_messages(self, connection: Connection, link: IngressLink | EgressLink, most: int) -> int:
        try:
            return self.data_plane.lose_messages(link, most)
        except Exception as error:  # `_take_away` sees to the rest of the link
            self._tell_of(connection, error)
            return 0

    def _count_freed(self, weight: int) -> None:
        """Give memory back to the system once much of it has been freed."""
        self._freed += weight
        if self._freed >= TRIM_AFTER:
            self.trim_at = self.clock() + TRIM_DELAY_S

    def take_settings(self, settings: RouterSettings) -> None:
        """Go by other settings from now on: treatments of addresses, bounds, and which neighbors may join.

        Args:
            settings: of the same router; those that are looked at when it starts have no effect.
        Raises: LocalError, and nothing has changed.
        """
        treatments = treatment_table(settings)
        self.settings = settings
        self.address_names = {
            each: self.address_names[each] for each in settings.addresses if each in self.address_names
        }
        self.fib.take_treatments(treatments)
        forwarding = settings.forwarding
        self.data_plane.take_settings(forwarding)
        self.account.take_settings(forwarding)
        self.pacer.take_settings(share=forwarding.control_percent / 100, most_bytes=forwarding.control_message_bytes)
        self._peers.take_settings(settings)

    def tell_removed(self, removed: Callable[[], None]) -> None:
        """Call *removed* when a connection is gone."""
        self._removed = removed

    def enter(self, state: DrainState) -> None:
        """Be in another state toward clients and paths."""
        self.drain_state = state

    # Turns

    def handle_deadline(self) -> None:
        """Time has passed: timers of the routing protocol and of waiting messages."""
        now = self.clock()
        self.data_plane.set_now(now)
        if self.runtime_deadline <= now:
            try:
                self._carry_out(self.recorder.plane.handle_deadline(now=now))
            except Exception as error:  # a fault of ours there must not keep messages waiting
                self._control_fault(error, now)
            if self._resync.at <= now:
                self._install_anew(now)
            if self.denials.due <= now:
                self.denials.report(now)
            if self.mesh_presence.due <= now:
                self.mesh_presence.go_on(now)
            self._set_runtime_deadline(now)
        try:
            self.account.handle_deadline(now)
            self.data_plane.handle_deadline(now)
            if self.teardowns_at <= now:
                self.teardowns.go_on(now)
            self.go_on_working(now)
            self.look_if_due(now)
        finally:
            self.settle()
        if self.pacer.at <= now:
            self._take_waiting(now)
        if self.trim_at <= now:
            self._freed, self.trim_at = 0, math.inf
            heap_trim.trim()

    def handle(self, events: list[Event], now: float) -> None:
        """Have the control plane handle *events*, each of them, whatever becomes of the others.

        Args:
            events: in the order in which they came.
            now: seconds, monotonic.
        """
        rest = events
        begin = self.pacer.measure()
        while True:
            try:
                self._carry_out(self.recorder.plane.handle(rest, now=now))
                break
            except Exception as error:  # a fault of ours with one event must not undo the others
                failing = self.control.failing
                if failing is None:
                    self._control_fault(error, now)
                    break
                rest = rest[next(at for at, event in enumerate(rest) if event is failing) + 1 :]
                self._event_fault(failing, error, now)
        if self._resync.at <= now:
            self._install_anew(now)
        self.pacer.add(self.pacer.measure() - begin)
        self.pacer.charge(now)
        self._set_runtime_deadline(now)

    def _set_runtime_deadline(self, now: float) -> None:
        # What waits stands here too, so that the message path looks at one deadline less.
        self.runtime_deadline = min(self._resync.deadline(now), self.pacer.at, self.denials.due, self.mesh_presence.due)

    def _advance_runtime_deadline(self, at: float) -> None:
        self.runtime_deadline = min(self.runtime_deadline, at)

    def _take_waiting(self, now: float) -> None:
        """Handle control messages that had to wait: one, and more while they take little."""
        is_first = True
        while (is_first or self.pacer.is_piece_left()) and (waiting := self.pacer.take(now)) is not None:
            begin = self.pacer.measure()
            is_first = False
            connection = self.connections.get(waiting[0])
            neighbor = self._peers.neighbors.get(waiting[0])
            if connection is not None and neighbor is not None:
                try:
                    self._peers.take_control(connection, neighbor, waiting[1])
                except Exception as error:  # a fault of ours must end one connection and not the router
                    self.connection_fault(connection, error)
                self.settle()
            self.pacer.rest(self.pacer.measure() - begin, now)
        self._set_runtime_deadline(now)

    def _control_fault(self, error: Exception, now: float) -> None:
        self.turn_fault(error)
        self._resync.rest(now)

    def _event_fault(self, event: Event, error: Exception, now: float) -> None:
        connection = self.connections.get(getattr(event, "connection", None))  # type: ignore[arg-type]
        if connection is not None:
            self.connection_fault(connection, error)
            return
        self.turn_fault(error)
        self._resync.want(now)

    def refuse(self, connection: Connection, condition: Condition, description: str) -> None:
        """Close a connection, since its peer broke the protocol."""
        try:
            self._peers.close(connection, condition, description)
        except Exception as error:  # a fault of ours must end this connection and not the router
            self.connection_fault(connection, error)

    def connection_fault(self, connection: Connection, error: Exception) -> None:
        """Close a connection because of a fault of ours."""
        is_first = connection.id not in self._faulty
        self._tell_of(connection, error)
        try:
            if is_first and not connection.is_ending:
                self._peers.close(connection, Condition.INTERNAL_ERROR, "internal error of the router")
                return
        except Exception:  # what fails twice is not asked to end in order
            self.log.exception("connection_fault", connection=connection.id, host=connection.host)
        self.aborters.get(connection.id, _nothing)()

    def _tell_of(self, connection: Connection, error: Exception) -> None:
        """Log the first fault with a connection; it is over then, and others may follow from that."""
        if connection.id not in self._faulty:
            self._faulty.add(connection.id)
            self.log.error("connection_fault", connection=connection.id, host=connection.host, exc_info=error)
            self.recorder.fault("connection_fault", connection.id)

    def turn_fault(self, error: Exception) -> None:
        """Tell of a fault of ours that is no single connection's."""
        self.log.error("turn_fault", exc_info=error)
        self.recorder.fault("turn_fault")

    def _address_fault(self, entry: AddressEntry, error: Exception) -> None:
        """A fault of ours with one address, which must not stop the others."""
        self.log.error("address_fault", address=entry.text, exc_info=error)
        self.recorder.fault("address_fault", entry.text)

    def _message_fault(self, transfer: Transfer, error: Exception) -> None:
        """A fault of ours with one message: it gets an outcome, and nothing else ends."""
        address = transfer.entry.text if transfer.entry is not None else ""
        source = transfer.ingress
        connection = source.port.id if source is not None else ""
        self.log.error("message_fault", connection=connection, address=address, exc_info=error)
        self.recorder.fault("message_fault", address)

    def report_refused(self, now: float) -> None:
        """Tell of messages for which there was no room to wait, and of neighbors excluded from multicasts.

        It is said once a burst, however many they are.

        Args:
            now: seconds, monotonic.
        """
        if now < self._silent_until:
            return
        refused = self.data_plane.waiting.refused
        for address, count in sorted(refused.items(), key=lambda item: -item[1])[:REFUSED_LINES]:
            self.log.warning("no_room_to_wait", address=address, messages=count)
        refused.clear()
        exclusions = self.data_plane.credit_manager.exclusions
        for (address, neighbor), held_s in list(exclusions.items())[:REFUSED_LINES]:
            self.log.warning("neighbor_excluded", address=address, neighbor=neighbor, held_s=round(held_s, 3))
        exclusions.clear()
        self._silent_until = now + REFUSED_SILENCE_S

    # Orders of the control plane

    def _carry_out(self, actions: list[Action]) -> None:
        """Carry out each of *actions*, whatever becomes of the others; after a fault all is installed anew."""
        for action in actions:
            try:
                self._do(action)
            except Exception as error:  # a fault of ours with one action must not undo the others
                self._action_fault(action, error, self.data_plane.clock.now)

    def _action_fault(self, action: Action, error: Exception, now: float) -> None:
        if isinstance(action, SendControl | CloseConnection) and action.connection in self.connections:
            self.connection_fault(self.connections[action.connection], error)
            return
        self.log.error("action_fault", action=type(action).__name__, exc_info=error)
        self.recorder.fault("action_fault", type(action).__name__)
        self._resync.want(now)

    def _install_anew(self, now: float) -> None:
        """Make the FIB what the control plane holds, and tell the control plane what is subscribed to here."""
        actions = self._resync.actions(now)
        self._carry_out(actions)
        if not self.data_plane.settlement.is_stopping:
            self.events.extend(self._resync.events())
        self.log.warning("installed_anew", actions=len(actions), is_complete=self._resync.at > now)
        self._resync.finish(now)

    def _do(self, action: Action) -> None:
        match action:
            case SendControl():
                self._send_control(action)
            case InstallAddress():
                self.data_plane.reconsider(self.fib.install_address(action.address, action.router, action.treatment))
            case WithdrawAddress():
                self._reconsider(self.fib.withdraw_address(action.address, action.router))
            case InstallRouter():
                self.mesh_presence.reached(action.router, self.data_plane.clock.now)
                self.data_plane.credit_manager.rerouted.add(action.router)
                self.route_changes.reroutes += action.router in self.fib.routes
                for entry in self.fib.install_router(
                    action.router, action.connection, action.next_hop, action.cost, now=self.data_plane.clock.now
                ):
                    self.data_plane.reconsider(entry)
            case WithdrawRouter():
                self.mesh_presence.lost(action.router, self.data_plane.clock.now, self.control.adjacent())
                self.data_plane.credit_manager.rerouted.add(action.router)  # some of its addresses are withdrawn later
                for entry in self.fib.withdraw_router(action.router):
                    self.data_plane.reconsider(entry)
            case TopologyChanged():
                adjacent = self.control.adjacent()
                self.mesh_presence.topology_changed(self.control.edges(), self.data_plane.clock.now, adjacent)
                self.route_changes.convergence.add(self.control.convergence_s)
                self.fib.topology_changed()
                self.data_plane.credit_manager.replanted()
            case CloseConnection():
                if (connection := self.connections.get(action.connection)) is not None:
                    self._refuse_neighbor(connection, action)
            case Report():
                if action.what == "neighbor_down":
                    router, now = RouterId(str(dict(action.fields)["neighbor"])), self.data_plane.clock.now
                    self.traffic.lost(router)
                    adjacent = self.control.adjacent()
                    self.mesh_presence.neighbor_lost(router, now, adjacent, has_path=router in self.fib.routes)
                # A router that stops loses everybody as it should.
                level = Report.INFO if self.data_plane.settlement.is_stopping else action.level
                getattr(self.log, level)(action.what, **dict(action.fields))
            case _:
                raise AssertionError(f"unknown action {action}")

    def _refuse_neighbor(self, connection: Connection, action: CloseConnection) -> None:
        if connection.is_server and connection.peer is not None:
            now, host = self.data_plane.clock.now, remote_address(connection.host)
            self.mesh_presence.router_refused(connection.peer.container, host, action.description, now)
        self._peers.close(connection, action.condition, action.description)

    def _reconsider(self, entry: AddressEntry | None) -> None:
        if entry is not None:
            self.data_plane.reconsider(entry)
            self.fib.forget(entry)

    def _send_control(self, action: SendControl) -> None:
        neighbor = self._peers.neighbors.get(action.connection)
        if neighbor is None or not neighbor.is_up:
            return
        try:
            self.control_writer.write(neighbor.control, action)
        except PeerProtocolError as error:
            self._peers.close(self.connections[action.connection], error.condition, str(error))

    # Stopping

    def stop_taking(self) -> None:
        """Take back all credit and withdraw all subscriptions but multicasts', so that what is in flight can settle."""
        self.data_plane.set_now(self.clock())
        self.data_plane.settlement.set_stopping(True)
        self.data_plane.credit_manager.stop()
        self.events.extend(self._resync.withdrawals())
        self._top_up_clients()
        self.settle()

    def take_again(self) -> None:
        """Undo `stop_taking` and `hand_back`, for what came meanwhile and what is still to come; `settle` follows."""
        self.data_plane.set_now(self.clock())
        self.data_plane.take_again()
        self.events.extend(self._resync.events())
        self._top_up_clients()

    def _top_up_clients(self) -> None:
        for connection in self.connections.values():
            for link in connection.links.values():
                if isinstance(link, IngressLink) and not connection.port.is_router:
                    self.data_plane.settlement.top_up(link)

    def hand_back(self) -> None:
        """Let clients send what they have not got rid of, and release it: they may send it elsewhere.

        Without credit they would keep it until the connection closes. To the driver of oslo.messaging it is in doubt
        then, and its calls fail.
        """
        self.data_plane.set_now(self.clock())
        self.data_plane.hand_back()
        self.settle()
