"""One pump for each connection: it moves bytes between a socket and an engine, and touches neither's meaning.

How it works. The poller tells when the socket has something to read: a bounded piece is read straight into the
engine's buffer, and the owner, an `ArrivedBytesHandler`, handles what that causes. This may produce output on any
connection of the process, so the owner flushes every connection that has some, by `flush`, which writes what the kernel
takes at once and never waits. Only when a kernel buffer is full does the poller tell of room. A task for each
connection keeps the engine's clock, heartbeats and idle timeout, whether there is room or not: a peer that neither
reads nor writes is given up in time.

The engine is never half changed across an `await`: between two of them a turn is begun and ended. A failed read or
write ends the connection, since nobody knows how much the peer has seen.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from math import inf
from typing import Final, Protocol

import trio

from router.engine.connection import Connection
from router.net.poller import PolledSocket, Poller
from router.net.tcp_counters import TcpCounters, octets

CLOSE_TIMEOUT_S: Final = 5.0
"""Time that the peer has to answer our Close."""
CLOSED: Final = -1
"""Descriptor of a socket that was closed."""
MOST_WRITTEN_BYTES: Final = 131_072
"""Maximum number of bytes written to one connection in a round, and at most a piece more: less than a tenth of a
millisecond, so that others have their turn between the pieces of a large message. With half of it messages of 1 MB cost
two thirds more."""


class ArrivedBytesHandler(Protocol):
    """Handler of what the bytes of a connection cause."""

    def arrived(self, connection: Connection) -> None:
        """Handle the events of bytes that were fed; `settle` follows."""

    def written(self, connection: Connection) -> None:
        """Note that output was written after the kernel had refused some; `settle` follows."""

    def turn(self, connection: Connection) -> None:
        """Handle what the bytes, or the time, of a connection have caused, and everything that follows."""

    def connection_fault(self, connection: Connection, error: Exception) -> None:
        """End a connection that a fault of ours concerns. Never raises."""


class Pump(PolledSocket):
    """The bytes and the time of one connection."""

    def __init__(self, sock: socket.socket, connection: Connection, turns: ArrivedBytesHandler, poller: Poller) -> None:
        # Heavy also until its peer has authenticated: connections that are served come before those that connect.
        super().__init__(True)
        self._sock = sock
        self._fd = sock.fileno()
        self._connection = connection
        self._turns = turns
        self._poller = poller
        self._wake = trio.Event()
        self._is_blocked = False
        """Whether the kernel takes no more for now, or the connection has written enough for one round."""
        self._round = 0
        self._written = 0
        """Number of bytes written in the round `_round`."""
        self._is_reading = True
        self._is_stopped = False
        """Whether nothing more is read for now, since the peer has so much here."""
        self._was_told = False
        """Whether the poller has told of the socket even so: the peer is gone, if it does so again."""
        connection.port.charge.stop_reading = self.stop
        self._output_ended = False
        self._knows_peer = False
        self._is_aborted = False
        self._opened: Callable[[], None] = lambda: None
        self._done = trio.Event()
        self._patience = trio.CancelScope()
        self._is_leaving = False
        self._last_octets: TcpCounters | None = None

    async def run(
        self,
        *,
        handshake_timeout_s: float = inf,
        opened: Callable[[], None] = lambda: None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        """Serve the connection until both directions have ended.

        Args:
            handshake_timeout_s: time until the peer's Open must be there.
            opened: called when it is.
            ended: called when both have ended, before it leaves.
        """
        self._opened = opened
        try:
            self._poller.add(self._fd, self)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._keep_time)
                if self._connection.has_rest():
                    nursery.start_soon(self._take_rest)
                if handshake_timeout_s < inf:
                    nursery.start_soon(self._await_open, handshake_timeout_s)
                with self._patience:
                    await self._done.wait()
                if not self._is_aborted and not self._connection.is_closed:
                    self._lose("the peer did not answer Close")
                    self._turns.turn(self._connection)
                self._close_socket()  # many may have to wait, and their descriptors are others' meanwhile
                ended()
                await self._poller.leaving.acquire()
                self._is_leaving = True
                nursery.cancel_scope.cancel()
        finally:
            self._close_socket()
            if self._is_leaving:
                self._poller.leaving.release()

    async def _await_open(self, timeout_s: float) -> None:
        await trio.sleep(timeout_s)
        self.give_up(f"no Open within {timeout_s:.3g} s")

    def give_up(self, reason: str) -> None:
        """Close a connection whose peer has not authenticated."""
        if self._connection.peer is None:
            self._connection.end_because(reason)
            self._hang_up()

    def abort(self) -> None:
        """End at once, without a word to the engine or the peer: one of them has failed in a way that isn't known."""
        self._is_aborted = True
        self._is_blocked = True  # nothing is written any more
        self._output_ended = True
        self._leave_poller()
        self._done.set()

    def _be_patient(self) -> None:
        """Bound the time that the connection has from now on to end."""
        if self._patience.deadline == inf:
            self._patience.deadline = trio.current_time() + CLOSE_TIMEOUT_S

    def _lose(self, why: str) -> None:
        connection = self._connection
        if not connection.is_ending:
            connection.end_because(why)
        connection.received_end()
        connection.sent_end()
        self._output_ended = True
        self._end_if_done()

    def _hang_up(self) -> None:
        """Let the reader see the end of the stream."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the peer was first

    def _end_if_done(self) -> None:
        if self._output_ended and (self._connection.is_closed or not self._is_reading):
            self._done.set()
            self._leave_poller()  # else the kernel names it again and again until the task is at its end

    def _leave_poller(self) -> None:
        if self._fd != CLOSED:
            self._poller.remove(self._fd)

    def _close_socket(self) -> None:
        """Give the descriptor back: from now on its number may be another connection's."""
        self._leave_poller()
        self._last_octets = self.octets()
        self._fd = CLOSED
        self._sock.close()

    def _wait_for(self, *, reads: bool, writes: bool) -> None:
        self._is_reading = reads
        self._is_blocked = writes
        if not self._done.is_set():  # else the poller has forgotten it, and its number may be another's
            self._poller.change(self._fd, reads=reads and not self._is_stopped, writes=writes)

    def stop(self, is_stopped: bool) -> None:
        """Read nothing more from the socket, or go on with it."""
        self._is_stopped = is_stopped
        self._was_told = False
        if not self._done.is_set():
            self._wait_for(reads=self._is_reading, writes=self._is_blocked)
            if not is_stopped and self._connection.has_rest():
                self._poller.go_on(self._fd)

    def octets(self) -> TcpCounters | None:
        """Counters of its socket, the last ones once it is closed; None where the system does not tell."""
        return octets(self._sock) or self._last_octets

    # Told by the poller

    def read(self) -> None:
        """Take what the kernel has, or a good part of it."""
        connection = self._connection
        if not self._is_reading:  # the peer is gone altogether
            self._lose("the connection was reset")
        elif self._is_stopped:
            if self._was_told:  # by then it is no longer what was there before the socket was stopped
                self._lose("the connection was reset")
            else:
                self._was_told = True
                return
        elif connection.capacity() <= 0:  # nothing more will be read: what is left is to be written
            self._be_patient()
            self._wait_for(reads=False, writes=self._is_blocked)
            self._end_if_done()
            return
        else:
            count = connection.fill(self._fd, self._poller.is_shared)
            if count == -1:
                return
            if count == 0:
                connection.received_end()
            elif count < 0:
                self._lose(os.strerror(-1 - count))
        self._turns.arrived(connection)
        self.is_heavy = connection.peer is None or connection.is_heavy()
        self.is_attaching = self.is_heavy and connection.is_attaching()
        if connection.has_single_messages():
            self._poller.share()
        if connection.has_rest() and not self._is_stopped:
            self._poller.go_on(self._fd)
        if not self._knows_peer and connection.peer is not None:
            self._knows_peer = True
            self._opened()
            self.wake()  # the peer's Open says how often it wants to hear from us

    def go_on(self) -> None:
        """Take more of what was read before."""
        if self._is_reading and not self._is_stopped:
            self.read()

    def write(self) -> None:
        """Write on: the kernel takes more."""
        if self._is_blocked:
            self._wait_for(reads=self._is_reading, writes=False)
            self.flush()
            self._turns.written(self._connection)

    def fail(self, error: Exception) -> None:
        """End the connection, and no other, after a fault of ours while it was served."""
        self._turns.connection_fault(self._connection, error)

    # Writing

    def flush(self) -> None:
        """Write what the kernel takes now. Never waits, never raises for a peer that is gone."""
        connection = self._connection
        if connection.is_closing:
            self._be_patient()  # one that reads nothing may send heartbeats for ever
        if self._is_blocked:
            return
        if not self._output_ended:
            if self._round != self._poller.rounds:
                self._round = self._poller.rounds
                self._written = 0
            count = connection.empty(self._fd, MOST_WRITTEN_BYTES - self._written)
            if count >= 0:
                self._written += count
                if self._written < MOST_WRITTEN_BYTES:
                    return
            if count >= -1:
                self._wait_for(reads=self._is_reading, writes=True)
                return
            self._output_ended = True
            connection.sent_end()
            if count == -2:
                self._end_output()
            else:
                self._hang_up()
        self._end_if_done()

    def _end_output(self) -> None:
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the peer was first

    # Time

    def wake(self) -> None:
        """Look at the engine's next deadline, which may have changed."""
        self._wake.set()

    def _taste(self) -> None:
        """Read a little all the same when the engine's clock is due, or a peer that has to wait would seem silent."""
        connection = self._connection
        if not self._is_reading or connection.capacity() <= 0:
            return
        count = connection.fill(self._fd, True)
        if count == 0:
            connection.received_end()
        elif count < -1:
            self._lose(os.strerror(-1 - count))

    async def _take_rest(self) -> None:
        """Take what was read before the socket was the poller's, which does not know of it."""
        connection = self._connection
        while connection.has_rest() and not self._is_stopped and not self._done.is_set():
            self._turns.turn(connection)
            self.read()
            self._turns.turn(connection)
            await trio.lowlevel.checkpoint()

    async def _keep_time(self) -> None:
        connection = self._connection
        while True:
            if self._is_stopped:
                self._taste()
            deadline = connection.tick(trio.current_time())
            self._turns.turn(connection)
            if connection.capacity() < 0:
                self._be_patient()  # the peer was silent for too long, and may never take what is still to be written
            with trio.move_on_at(inf if deadline is None else deadline):
                await self._wake.wait()
                self._wake = trio.Event()
