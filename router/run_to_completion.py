"""Turns: what follows from one piece of input is carried to its end before the next one is looked at.

The data plane forwards, the control plane handles its events, its actions are done, and every connection with output is
flushed. Nothing waits in a turn. Input of several connections that is there at the same time may share one turn.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Final

from mesh_config.models import ForwardingSettings
from router.core.errors import PeerProtocolError
from router.core.events import Event
from router.core.ids_and_conditions import Condition, ConnectionId
from router.dataplane.connection_port import Port
from router.dataplane.links import forget_unwritten
from router.dataplane.router_data_plane import RouterDataPlane
from router.engine.connection import Connection
from router.net.poller import RoundHandler
from router.peer_memory_account import Log, MemoryAccounts

LOOK_S: Final = 1.0
"""Maximum time between two calls of the periodic look, seconds."""
EARLY_LOOK_S: Final = 0.2
"""Time by which the periodic look is made early when a turn happens anyway, seconds: HELLOs wake the router every 0.9
to 1 s."""
MOST_FAULTS: Final = 10
"""Maximum number of faults in one turn; what is left is for the next one, so that a fault that comes again and again
holds up nobody else."""
MOST_STEPS: Final = 10_000
"""Maximum number of steps of one turn. A large message takes one for each piece; a turn that would have no end must not
keep others from being served."""


class EndlessTurnError(Exception):
    """A turn in which one thing led to another for too long: a fault of ours."""

    def __init__(self, ports: list[Port]) -> None:
        names = ", ".join(str(port.id) for port in ports[:10])
        super().__init__(f"a turn had {MOST_STEPS} steps; connections that were still to be written: {names or 'none'}")


class ConnectionTurns(RoundHandler):
    """The connections of one router, and the order in which things happen to them."""

    def __init__(
        self, data_plane: RouterDataPlane, settings: ForwardingSettings, clock: Callable[[], float], log: Log
    ) -> None:
        super().__init__()
        self.data_plane = data_plane
        self.clock = clock
        """Seconds, monotonic."""
        self.connections: dict[ConnectionId, Connection] = {}
        self.flushers: dict[ConnectionId, Callable[[], None]] = {}
        """Functions that write what a connection has to write, as far as the kernel takes it."""
        self.events: list[Event] = []
        """Events for the control plane, in the order in which they happened."""
        self.runtime_deadline = inf
        """Next deadline of what the runtime adds: the control plane and messages that wait for it, the log of denials,
        and the memory of the mesh, seconds."""
        self.work_at = inf
        """Time at which work goes on that is done in pieces, seconds."""
        self.teardowns_at = inf
        """Time at which more links of a connection that has ended are to be taken away, seconds."""
        self.account_at = inf
        """Time at which the account is to be looked at again, seconds."""
        self.account = MemoryAccounts(data_plane, settings, self.connections, log, self.look_at_account)
        """Account of what is held for each peer, and of who is above the marks."""
        self.trim_at = inf
        """Time at which memory is to be given back, seconds."""
        self._deadline_changed: Callable[[], None] = lambda: None
        self._deadline_came: Callable[[], None] = lambda: None
        self._quieted: Callable[[], None] = lambda: None
        self.next_look = inf
        """Time of the next periodic look, seconds."""
        self._work: Callable[[], None] = lambda: None
        self._look: Callable[[], None] = lambda: None
        self._dirty: list[Port] = []
        self._is_round_due = False
        """Whether the poller goes on with what was left to read."""

    def tell_deadlines(self, changed: Callable[[], None], came: Callable[[], None]) -> None:
        """Tell of deadlines from now on.

        Args:
            changed: called when the next one is earlier than `scheduled`.
            came: called by a poller that keeps the time: the next one is there.
        """
        self._deadline_changed, self._deadline_came = changed, came

    def tell_quiet(self, quieted: Callable[[], None]) -> None:
        """Call *quieted* while stopping, when every delivery has its outcome."""
        self._quieted = quieted

    def tell_work(self, work: Callable[[], None]) -> None:
        """Call *work* when work that is done in pieces goes on: at `work_at`."""
        self._work = work

    def tell_look(self, look: Callable[[], None]) -> None:
        """Call *look* from now on each second or so, where there is a turn for something else, then."""
        self._look = look
        self.next_look = self.clock() + LOOK_S

    def touched(self, port: Port) -> None:
        """A connection has something to write."""
        self._dirty.append(port)

    def begin(self, now: float) -> None:
        """A turn begins; *now*: seconds."""
        self.data_plane.set_now(now)
        self.data_plane.go_on()

    def arrived(self, connection: Connection) -> None:
        """Handle what a connection's bytes caused; `settle` follows, perhaps after those of others."""
        self._dispatch(connection)
        if connection.weight.is_due(connection.moved_bytes):
            self.account.weigh(connection)
        connection.port.touch()  # the engine itself may have something to say: headers, SASL, heartbeats

    def turn(self, connection: Connection) -> None:
        """Handle what a connection's bytes caused, and everything that follows: a turn of its own."""
        self.begin(self.clock())
        self.arrived(connection)
        self.settle()

    def written(self, connection: Connection) -> None:
        """A connection has written after it was blocked; `settle` follows."""
        if connection.pending() == 0:
            forget_unwritten(connection.port)
        self.data_plane.written(connection.port)

    def _dispatch(self, connection: Connection) -> None:
        """Let a connection handle its events."""
        try:
            connection.dispatch()
        except PeerProtocolError as error:
            self.refuse(connection, error.condition, str(error))
        except Exception as error:  # a fault of ours must end one connection and not the router
            self.connection_fault(connection, error)

    def settle(self) -> None:
        """End a turn that the poller did not begin: repeat until no link has unread bytes, if no round is to follow."""
        self._settle()
        while self.data_plane.has_unread() and not self._is_round_due:
            self.data_plane.go_on()
            self._settle()

    def settle_round(self) -> bool:
        """End a round of the poller. Returns: whether the next one is due, though no socket may be ready."""
        self._settle()
        self._is_round_due = self.data_plane.has_unread()
        return self._is_round_due

    def handle_time(self) -> bool:
        """See `RoundHandler.handle_time`. What was put off meanwhile, as by each message, is no reason for a turn."""
        credit_manager = self.data_plane.credit_manager
        now = self.clock()
        credit_manager.look_at_timers(now)
        if credit_manager.is_due() or self.next_deadline() <= now:
            self._is_round_due = True  # a slice in each round, here too: `settle` leaves the rest to the next one
            self._deadline_came()
        self._is_round_due = self.data_plane.has_unread()
        return self._is_round_due

    def _settle(self) -> None:
        """Let the control plane handle what has happened, then write everywhere, until nothing is left to do."""
        data_plane = self.data_plane
        credit_manager = data_plane.credit_manager
        settlement = data_plane.settlement
        now = data_plane.clock.now
        faults = steps = 0
        while self.events or self._dirty or settlement.stranded or credit_manager.is_due():
            try:
                if self.events:
                    events, self.events = self.events, []
                    self.handle(events, now)
                if settlement.stranded:
                    data_plane.retry_stranded()
                if credit_manager.is_due():
                    credit_manager.turn()
            except Exception as error:  # a fault of ours must not end the router, nor keep others from being written
                self.turn_fault(error)
                faults += 1
            dirty, self._dirty = self._dirty, []
            for port in dirty:
                try:
                    self._flush(port)
                except Exception as error:  # as above
                    self._port_fault(port, error)
            steps += 1
            if steps >= MOST_STEPS:
                self._give_up_writing()
                break
            if faults >= MOST_FAULTS:
                break
        if data_plane.waiting.refused or credit_manager.exclusions:
            self.report_refused(now)
        if self.earliest() < self.scheduled:
            self._deadline_changed()
        if settlement.is_stopping and data_plane.is_quiet():
            self._quieted()

    def _give_up_writing(self) -> None:
        """Leave connections unwritten until something else happens to them."""
        self.turn_fault(EndlessTurnError(self._dirty))
        for port in self._dirty:
            port.is_dirty = False
        self._dirty = []

    def _port_fault(self, port: Port, error: Exception) -> None:
        connection = self.connections.get(port.id)
        if connection is None:
            self.turn_fault(error)
        else:
            self.connection_fault(connection, error)

    def _flush(self, port: Port) -> None:
        port.is_dirty = False
        connection = self.connections.get(port.id)
        if connection is None:
            return
        self.flushers[port.id]()
        self._dispatch(connection)  # what our own calls and the writing have caused: links may take more again
        if port.may_be_unwritten() and connection.pending() == 0:
            forget_unwritten(port)
        if connection.weight.is_due(connection.moved_bytes):
            self.account.weigh(connection)
        if port.blocked or port.paused:
            self.data_plane.written(port)

    def earliest(self) -> float:
        """Time of the next deadline, seconds; infinity when there is none."""
        return min(
            self.data_plane.next_deadline(),
            self.runtime_deadline,
            self.work_at,
            self.teardowns_at,
            self.account_at,
            self.trim_at,
            self.next_look,
        )

    def next_deadline(self, not_before: float = -inf) -> float:
        """Find the time at which deadlines must be handled, and note it as `scheduled`.

        Args:
            not_before: time before which no deadline is looked at, seconds.
        Returns: seconds; infinity for never.
        """
        self.scheduled = max(self.earliest(), not_before)
        return self.scheduled

    def look_at_work(self, at: float) -> None:
        """Go on at that time, seconds, with work that is done in pieces."""
        self.work_at = at

    def go_on_working(self, now: float) -> None:
        """Go on with work that is done in pieces, if it is due at *now* (seconds)."""
        if self.work_at <= now:
            self.work_at = inf
            self._work()

    def look_if_due(self, now: float) -> None:
        """Make the periodic look if it is due within `EARLY_LOOK_S` of *now* (seconds), to save a wake-up for it."""
        if self.next_look <= now + EARLY_LOOK_S:
            self.next_look = now + LOOK_S
            try:
                self._look()
            except Exception as error:  # a fault of ours must not keep messages waiting
                self.turn_fault(error)

    def look_at_account(self, at: float) -> None:
        """Call `MemoryAccounts.handle_deadline` at that time, seconds.

        It is asked for in each turn, so it stands here.
        """
        self.account_at = at

    def look_at_teardowns(self, at: float) -> None:
        """Call `EndedLinkReaper.go_on` at that time, seconds."""
        self.teardowns_at = at

    # What the runtime sees to

    def handle(self, events: list[Event], now: float) -> None:
        """Have the control plane handle *events*.

        Args:
            events: of one turn, in order.
            now: seconds, monotonic.
        """
        raise NotImplementedError

    def refuse(self, connection: Connection, condition: Condition, description: str) -> None:
        """Close a connection, since its peer broke the protocol. Must not raise."""
        raise NotImplementedError

    def connection_fault(self, connection: Connection, error: Exception) -> None:
        """Close a connection because of a fault of ours. Must not raise."""
        raise NotImplementedError

    def turn_fault(self, error: Exception) -> None:
        """Tell of a fault of ours that is no single connection's."""
        raise NotImplementedError

    def report_refused(self, now: float) -> None:
        """Tell of messages for which there was no room.

        Args:
            now: seconds, monotonic.
        """
        raise NotImplementedError
