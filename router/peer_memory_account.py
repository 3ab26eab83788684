"""The account of bytes: what this process holds because of each peer, and who has to wait while that is too much.

Every connection has an account, and the process the sum of them. Counted is what is *held*, never what passes through:
`engine/memory_meter.py` says what, and when. Above a mark a connection has to wait, below three quarters of it all goes
on:

- who has *sent* too much: no further message of it is begun to be read, its publishers and circuits get no credit, and
  so the windows of its sessions close. Flows, outcomes, requests to the router and all that it receives go on, so that
  what is held can leave;
- who has sent far too much: nothing is read from its socket, and messages that are held until they are whole are
  REJECTED. After `stopped_s` of that it is closed, since what holds its messages may be a flow that it has written. A
  neighbor's socket is always read, control messages come on it; its messages are RELEASED instead;
- who *takes* too little: nothing more is sent to it. What is for it waits, on the account of who sent it.

The mark is `connection_bytes`. While the process is above `process_bytes`, half of that is shared out among clients and
half among neighbors: who has less than its share goes on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from mesh_config.models import MIB, ForwardingSettings
from router.address_space_headroom import most_held_bytes
from router.core.errors import PeerProtocolError
from router.core.ids_and_conditions import Condition, ConnectionId
from router.dataplane.connection_port import Port
from router.dataplane.router_data_plane import RouterDataPlane
from router.engine.connection import Connection

LOW: Final = 0.75
"""Part of a mark below which reading goes on again."""
FAR: Final = 1.25
"""Part of the process's mark above which no connection gets room beyond its share."""
LOOK_S: Final = 0.02
"""Time between two counts of the connections that have to wait, seconds."""
LOOK_AT_ALL_S: Final = 0.1
"""Time between two counts of all connections while the process is above its mark, seconds."""
LOOK_PART_S: Final = 2e-6
"""Time added to the pause between counts for each link and session that was looked at, seconds: counting takes a
fortieth of it."""
WINDOW_BYTES: Final = 8 * MIB
"""Bytes that an honest sender may have under way in a session that is no longer read."""
LEAST_SHARE_BYTES: Final = 64 * 1024
"""Minimum share of a connection, bytes, however many there are."""


class Log(Protocol):
    """Log in which the crossing of a mark is told."""

    def warning(self, event: str, **fields: object) -> None:
        """Tell of something that needs an operator."""

    def info(self, event: str, **fields: object) -> None:
        """Tell that it is over."""


class MemoryAccounts:
    """Account of what is held for all connections, and of who is above the marks.

    Args:
        data_plane: tells what it holds for each peer.
        settings: the bounds.
        connections: those of the router, which goes on changing them.
        log: gets a line for each crossing of a mark.
        look_at: told when `handle_deadline` is to be called, seconds.
    """

    def __init__(
        self,
        data_plane: RouterDataPlane,
        settings: ForwardingSettings,
        connections: Mapping[ConnectionId, Connection],
        log: Log,
        look_at: Callable[[float], None],
    ) -> None:
        self._data_plane = data_plane
        self._connections = connections
        self._log = log
        self._look_at = look_at
        self._most_bytes = most_held_bytes()
        self._take_marks(settings)
        self._deadline = math.inf
        self.is_over = False
        """Whether the process is above its mark."""
        self._charged = 0
        self._waiting: dict[ConnectionId, Connection] = {}
        """Connections that have to wait, or had to at the last look, by id."""
        self._looked = 0
        """Links and sessions that were looked at since the last look."""
        self._look_at_all_at = -math.inf

    def take_settings(self, settings: ForwardingSettings) -> None:
        """Go by other marks from now on."""
        self._take_marks(settings)
        self._look_at_all()

    def _take_marks(self, settings: ForwardingSettings) -> None:
        self.connection_mark = settings.connection_bytes
        self.process_mark = int(min(settings.process_bytes, self._most_bytes))
        self._stopped_s = settings.stopped_s
        if self.process_mark < settings.process_bytes:
            self._log.warning("address_space_short", process_bytes=settings.process_bytes, mark_bytes=self.process_mark)

    @property
    def total(self) -> int:
        """Bytes held because of peers, as last counted; what waits for credit is always up to date."""
        return self._charged + self._data_plane.waiting.total_bytes

    @property
    def connections_over(self) -> int:
        """Connections that are above their marks."""
        return len(self._waiting)

    @property
    def waiting(self) -> list[Connection]:
        """Connections that have to wait, or had to at the last look."""
        return list(self._waiting.values())

    def weigh(self, connection: Connection) -> None:
        """Count what is held for a connection, and let it wait or go on."""
        self._count(connection)
        charge = connection.port.charge
        # With a large message this is asked for some fifty times, mostly of one that has little.
        if self._waiting or self.is_over or charge.total_bytes > LOW * self._mark(connection.port):
            self._judge(connection)
        if not self.is_over and self.total > self.process_mark:
            if self._data_plane.clock.now >= self._look_at_all_at:
                self._look_at_all()
            else:
                self._look_by(self._look_at_all_at)

    def forget(self, connection: Connection) -> None:
        """The connection is gone."""
        self._charged -= connection.port.charge.summed_bytes
        connection.port.charge.summed_bytes = 0
        self._waiting.pop(connection.id, None)

    def handle_deadline(self, now: float) -> None:
        """See who can go on, since time has passed.

        Args:
            now: seconds, monotonic.
        """
        if self._deadline > now:
            return
        self._deadline = math.inf
        self._look_at(math.inf)
        if now >= self._look_at_all_at and (self.is_over or self.total > self.process_mark):
            self._look_at_all()
        else:
            for connection in list(self._waiting.values()):
                self.weigh(connection)
        for connection in list(self._waiting.values()):
            self._close_hopeless(connection, now)
        self._schedule()

    def _schedule(self) -> None:
        if self._waiting or self.is_over:
            self._look_by(self._data_plane.clock.now + LOOK_S + LOOK_PART_S * self._looked)
            self._looked = 0

    def _look_by(self, deadline: float) -> None:
        if deadline < self._deadline:
            self._deadline = deadline
            self._look_at(deadline)

    def _count(self, connection: Connection) -> None:
        charge = connection.port.charge
        connection.weigh()
        self._charged -= charge.summed_bytes
        charge.summed_bytes = charge.total_bytes - charge.backlog_bytes
        self._charged += charge.summed_bytes
        self._looked += connection.weight.parts

    def _look_at_all(self) -> None:
        """Count all, since some may have less than when they were last looked at, and judge by that."""
        connections = list(self._connections.values())
        for connection in connections:
            self._count(connection)
        self._look_at_all_at = self._data_plane.clock.now + LOOK_AT_ALL_S + LOOK_PART_S * self._looked
        total = self.total
        if not self.is_over and total > self.process_mark:
            self.is_over = True
            self._log.warning(
                "process_above_mark",
                charged_bytes=total,
                mark_bytes=self.process_mark,
                share_bytes=self._client_share(),
                connections=len(connections),
            )
        elif self.is_over and total <= LOW * self.process_mark:
            self.is_over = False
            self._log.info("process_below_mark", charged_bytes=total, mark_bytes=self.process_mark)
        self._data_plane.waiting.set_closed(self.is_over)
        for connection in connections:
            self._judge(connection)
        self._schedule()

    # Marks

    def _client_share(self) -> int:
        """Share of a client while the process is above its mark: all of them together half of that, bytes."""
        return max(LEAST_SHARE_BYTES, self.process_mark // (2 * max(1, len(self._connections))))

    def _mark(self, port: Port) -> int:
        if port.is_router:
            half = self.process_mark // 2
            return half // max(1, len(self._data_plane.ports)) if self.is_over else half
        return min(self.connection_mark, self._client_share()) if self.is_over else self.connection_mark

    def _judge(self, connection: Connection) -> None:
        """Let a connection wait, or go on, by what was last counted."""
        if connection.id not in self._connections:
            return
        port, charge = connection.port, connection.port.charge
        mark = self._mark(port)
        was_waiting = connection.id in self._waiting
        is_over = is_beyond(charge.taken_bytes, mark, port.is_over)
        is_laden = is_beyond(charge.given_bytes, mark, port.is_laden)
        far = mark if self.is_over and self.total > FAR * self.process_mark else mark + max(mark, WINDOW_BYTES)
        # Unwritten messages to a client are no reason to stop reading it: a flow may come that lets them go.
        is_stopped = is_beyond(charge.taken_bytes + charge.unread_bytes, far, port.is_stopped)
        is_stopped = is_stopped and not connection.is_ending
        # Once it may go on, what it left unread is read: that is counted at the next look, for nothing else may move.
        if is_over or is_laden or is_stopped or port.is_over:
            self._waiting[connection.id] = connection
        else:
            self._waiting.pop(connection.id, None)
        self._apply(connection, is_over, is_laden, is_stopped)
        if was_waiting != (connection.id in self._waiting) and not self.is_over:
            self._tell(connection, mark, is_above=not was_waiting)
        self._schedule()

    def _apply(self, connection: Connection, is_over: bool, is_laden: bool, is_stopped: bool) -> None:
        port, charge = connection.port, connection.port.charge
        was_over, port.is_over = port.is_over, is_over
        if is_stopped != port.is_stopped:
            port.is_stopped = is_stopped
            charge.stopped_at = self._data_plane.clock.now
            if not port.is_router:
                charge.stop_reading(is_stopped)
            elif is_stopped:
                self._data_plane.read_stopped(port)
            if is_stopped:
                self._data_plane.give_up_held(connection.links.values())
        if was_over and not is_over:
            self._data_plane.release(port, connection.links.values())
        was_laden, port.is_laden = port.is_laden, is_laden
        if was_laden and not is_laden:
            self._data_plane.written(port)

    def _tell(self, connection: Connection, mark: int, *, is_above: bool) -> None:
        charge = connection.port.charge
        if is_above:
            self._log.warning(
                "connection_above_mark",
                connection=connection.id,
                host=connection.host,
                held_bytes=charge.taken_bytes,
                unread_bytes=charge.unread_bytes,
                to_get_bytes=charge.given_bytes,
                mark_bytes=mark,
            )
        else:
            self._log.info(
                "connection_below_mark",
                connection=connection.id,
                host=connection.host,
                held_bytes=charge.taken_bytes,
                unread_bytes=charge.unread_bytes,
                to_get_bytes=charge.given_bytes,
                mark_bytes=mark,
            )

    def _close_hopeless(self, connection: Connection, now: float) -> None:
        port = connection.port
        if port.is_stopped and not port.is_router and now - port.charge.stopped_at >= self._stopped_s:
            what = f"too much was held for this connection for {self._stopped_s:g} s"
            connection.fail(PeerProtocolError(what, condition=Condition.RESOURCE_LIMIT_EXCEEDED))


def is_beyond(size: int, mark: int, was_beyond: bool) -> bool:
    """Whether *size* is above *mark*, or still not below three quarters of it; both in bytes."""
    return size > (LOW * mark if was_beyond else mark)
