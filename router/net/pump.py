"""One pump for each connection: it moves bytes between a socket and an engine, and touches neither's meaning.

How it works. Two tasks share a connection. The reader asks the kernel for bytes, gives them to the engine and lets the
`Turns` owner handle what they cause: that may produce output on any connection of the process, so the owner flushes
every connection that has some, by `flush`, which writes what the kernel takes at once and never waits. Only when a
kernel buffer is full does the writer task wait for room. It also keeps the engine's clock, heartbeats and idle timeout,
whether there is room or not: a peer that neither reads nor writes is given up in time.

The engine is never half changed across an `await`: between two of them a turn is begun and ended. A failed read or
write ends the connection, since nobody knows how much the peer has seen.
"""

from __future__ import annotations

import math
import socket
from typing import Final, Protocol

import trio

from router.engine.connection import Connection

READS_IN_A_ROW: Final = 4
"""Reads of one connection before the others have their turn."""
CLOSE_TIMEOUT_S: Final = 5.0
"""How long the peer may take to answer our Close."""


class Turns(Protocol):
    """Who handles what the bytes of a connection cause."""

    def turn(self, connection: Connection) -> None:
        """Bytes were fed: handle their events and flush whatever has output."""

    def written(self, connection: Connection) -> None:
        """Output was written after the kernel had refused some."""


class Pump:
    """The two tasks of one connection."""

    def __init__(self, sock: socket.socket, connection: Connection, turns: Turns) -> None:
        self._sock = sock
        self._connection = connection
        self._turns = turns
        self._wake = trio.Event()
        self._is_blocked = False
        self._output_ended = trio.Event()
        self._patience = trio.CancelScope()

    async def run(self, *, handshake_timeout_s: float = math.inf) -> None:
        """Serve the connection until both directions have ended."""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._keep_time_and_write)
                if handshake_timeout_s < math.inf:
                    nursery.start_soon(self._await_open, handshake_timeout_s)
                await self._read()
                nursery.cancel_scope.cancel()
        finally:
            self._sock.close()

    async def _await_open(self, timeout_s: float) -> None:
        await trio.sleep(timeout_s)
        if self._connection.peer is None:
            self._connection.fault = f"no Open within {timeout_s:g} s"
            self._hang_up()

    async def _read(self) -> None:
        connection = self._connection
        reads = 0
        knows_peer = False
        with self._patience:
            while not connection.is_closed:
                size = connection.capacity()
                if size < 0:  # nothing more will be read: the writer has the rest
                    self._be_patient()
                    await self._output_ended.wait()
                    break
                try:
                    count = self._sock.recv_into(connection.tail(size))
                except BlockingIOError:
                    reads = 0
                    await trio.lowlevel.wait_readable(self._sock)
                    continue
                except OSError as error:
                    self._lose(str(error))
                    break
                if count:
                    connection.received(count)
                else:
                    connection.received_end()
                self._turns.turn(connection)
                if not knows_peer and connection.peer is not None:
                    knows_peer = True
                    self.wake()  # the peer's Open says how often it wants to hear from us
                reads += 1
                if reads >= READS_IN_A_ROW:
                    reads = 0
                    await trio.lowlevel.checkpoint()
        if not connection.is_closed:
            self._lose("the peer did not answer Close")

    def _be_patient(self) -> None:
        """From now on the connection has a bounded time to end."""
        if self._patience.deadline == math.inf:
            self._patience.deadline = trio.current_time() + CLOSE_TIMEOUT_S

    def _lose(self, why: str) -> None:
        connection = self._connection
        if connection.fault is None and not connection.is_ending:
            connection.fault = why
        connection.received_end()
        connection.sent_end()
        self._output_ended.set()
        self._turns.turn(connection)

    def _hang_up(self) -> None:
        """Let the reader see the end of the stream."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the peer was first

    # Writing

    def flush(self) -> None:
        """Write what the kernel takes now. Never waits, never raises for a peer that is gone."""
        connection = self._connection
        if connection.is_closing:
            self._be_patient()
        while not self._is_blocked and not self._output_ended.is_set():
            size = connection.pending()
            if size < 0:
                self._end_output()
                return
            if size == 0:
                return
            try:
                connection.sent(self._sock.send(connection.head(size)))
            except BlockingIOError:
                self._is_blocked = True
                self._wake.set()
            except OSError:
                connection.sent_end()
                self._output_ended.set()
                self._hang_up()

    def _end_output(self) -> None:
        self._output_ended.set()
        self._connection.sent_end()
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the peer was first

    def wake(self) -> None:
        """The engine's next deadline may have changed."""
        self._wake.set()

    async def _keep_time_and_write(self) -> None:
        connection = self._connection
        while True:
            deadline = connection.tick(trio.current_time())
            self._turns.turn(connection)
            if connection.capacity() < 0:
                self._be_patient()  # the peer was silent for too long, and may never take what is still to be written
            with trio.move_on_at(math.inf if deadline is None else deadline):
                await self._wait_for_work()

    async def _wait_for_work(self) -> None:
        """Until there is room to write, or the engine's deadline may have moved."""
        if not self._is_blocked:
            await self._wake.wait()
            self._wake = trio.Event()
            return
        await trio.lowlevel.wait_writable(self._sock)
        self._is_blocked = False
        self.flush()
        self._turns.written(self._connection)
