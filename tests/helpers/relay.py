"""A TCP relay to a port of loopback that can be cut, held, delayed and left half open; a thread of its own.

with Relay(port_of_a_router) as relay:
    ...                        # a client connects to relay.port
    relay.hold(CONNECTOR)      # what the client writes goes no further
    relay.mend()
    relay.cut()                # both ends are told; who connects now is refused
    relay.mend()
"""

from __future__ import annotations

import contextlib
import queue
import select
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self

import attrs

LOOPBACK = "127.0.0.1"
CONNECTOR, LISTENER = 0, 1
"""Sides of a connection: the one that connected, and the one that it connected to."""

CHUNK_BYTES = 65_536
UNWRITTEN_BYTES = 262_144
"""Of one side: when so much of it could not be passed on yet, no more of it is read."""
CONNECT_S = 1.0
END_S = 10.0
_RESET = struct.pack("ii", 1, 0)

OnBytes = Callable[[int, int, bytes], None]
"""Called with the number of the connection, the side that wrote, and what it wrote."""


@attrs.define(eq=False)
class Passage:
    """One connection: its two sockets, and what is on its way between them."""

    number: int
    sockets: list[socket.socket | None]
    """By side; None: closed."""
    passed: list[int] = attrs.field(factory=lambda: [0, 0])
    """Bytes read of each side."""
    pending: list[deque[tuple[float, bytes]]] = attrs.field(factory=lambda: [deque(), deque()])
    """Of each side: what it wrote, with the time at which that is due at the other."""
    unwritten: list[int] = attrs.field(factory=lambda: [0, 0])
    """Bytes of that."""
    ended: list[bool] = attrs.field(factory=lambda: [False, False])
    """Which side has written all that it ever will."""
    is_half_open: bool = False

    def close(self, side: int, *, reset: bool = False) -> None:
        """Close the socket of one side, with RST if *reset*."""
        sock, self.sockets[side] = self.sockets[side], None
        if sock is not None:
            if reset:
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            sock.close()

    def end(self, *, reset: bool) -> None:
        """Close both."""
        for side in (CONNECTOR, LISTENER):
            self.close(side, reset=reset)

    @property
    def is_over(self) -> bool:
        """Whether both are closed."""
        return self.sockets == [None, None]


class Relay:
    """Listens on a free port of loopback and passes every connection on; a context manager that ends them all."""

    def __init__(self, target: int, *, on_bytes: OnBytes | None = None, limit: int | None = None) -> None:
        """Begin to listen.

        Args:
            target: port of loopback that connections are passed on to.
            on_bytes: called by the relay's thread with all that passes.
            limit: bytes that are passed on from one connector; after that it is held.
        """
        self.target = target
        self.is_stalled = threading.Event()
        """Set when a connection has come to the limit."""
        self._on_bytes = on_bytes
        self._limit = limit
        self._delay_s = 0.0
        self._held: set[int] = set()
        self._is_cut = False
        self._is_ending = False
        self._count = 0
        self._passages: list[Passage] = []
        self._orders: queue.SimpleQueue[tuple[Callable[[], None], threading.Event]] = queue.SimpleQueue()
        self._server = socket.create_server((LOOPBACK, 0))
        self._server.setblocking(False)
        self.port: int = self._server.getsockname()[1]
        self._woken, self._waker = socket.socketpair()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every connection and listen no more."""
        if self._thread.is_alive():
            self._order(self._end)
            self._thread.join(END_S)
        for sock in (self._server, self._woken, self._waker):
            sock.close()

    # Faults: each is in force when the call returns

    def cut(self, *, reset: bool = True) -> None:
        """End every connection, by RST or else by FIN, and refuse new ones until `mend`."""
        self._order(lambda: self._cut(reset))

    def hold(self, *sides: int) -> None:
        """Pass on nothing more that these sides write, until `mend`; their buffers fill."""
        self._order(lambda: self._held.update(sides))

    def delay(self, seconds: float) -> None:
        """Pass everything on that much later, until `mend`; each way."""
        self._order(lambda: setattr(self, "_delay_s", seconds))

    def half_open(self, gone: int) -> None:
        """Let the side *gone* lose every connection by RST, of which the other side hears nothing."""
        self._order(lambda: self._half_open(gone))

    def mend(self) -> None:
        """End all faults; what is half open is told so."""
        self._order(self._mend)

    def _cut(self, reset: bool) -> None:
        self._is_cut = True
        for passage in self._passages:
            passage.end(reset=reset)

    def _half_open(self, gone: int) -> None:
        for passage in self._passages:
            passage.close(gone, reset=True)
            passage.is_half_open = True

    def _mend(self) -> None:
        self._is_cut = False
        self._held.clear()
        self._delay_s = 0.0
        for passage in self._passages:
            if passage.is_half_open:
                passage.end(reset=True)

    def _end(self) -> None:
        self._is_ending = True
        for passage in self._passages:
            passage.end(reset=True)

    # The thread

    def _order(self, run: Callable[[], None]) -> None:
        done = threading.Event()
        self._orders.put((run, done))
        self._waker.send(b"!")
        if not done.wait(END_S):
            raise TimeoutError(f"the relay to port {self.target} did not obey within {END_S:g} s")

    def _run(self) -> None:
        while not self._is_ending:
            poll = select.poll()
            poll.register(self._server, select.POLLIN)
            poll.register(self._woken, select.POLLIN)
            found: dict[int, tuple[Passage, int]] = {}
            now = time.monotonic()
            due = self._interests(poll, found, now)
            ready = dict(poll.poll(None if due is None else max(0.0, due - now) * 1000 + 1))
            for fd, mask in ready.items():
                if fd in found and mask & ~select.POLLOUT:
                    self._read(*found[fd])
            now = time.monotonic()
            for passage in self._passages:
                for side in (CONNECTOR, LISTENER):
                    self._write(passage, side, now)
            if self._server.fileno() in ready:
                self._accept()
            if self._woken.fileno() in ready:
                self._obey()
            self._passages = [passage for passage in self._passages if not passage.is_over]

    def _interests(self, poll: select.poll, found: dict[int, tuple[Passage, int]], now: float) -> float | None:
        """Register what each socket waits for. Returns: when something held back is due; None: nothing is."""
        earliest: float | None = None
        for passage in self._passages:
            for side, sock in enumerate(passage.sockets):
                if sock is None:
                    continue
                mask = 0
                if self._may_read(passage, side):
                    mask |= select.POLLIN
                back = passage.pending[1 - side]
                if back and back[0][0] <= now:
                    mask |= select.POLLOUT
                elif back:
                    earliest = back[0][0] if earliest is None else min(earliest, back[0][0])
                if mask:
                    poll.register(sock, mask)
                    found[sock.fileno()] = (passage, side)
        return earliest

    def _may_read(self, passage: Passage, side: int) -> bool:
        if passage.is_half_open or passage.ended[side] or side in self._held:
            return False
        if side == CONNECTOR and self._limit is not None and passage.passed[side] >= self._limit:
            return False
        return passage.unwritten[side] < UNWRITTEN_BYTES

    def _read(self, passage: Passage, side: int) -> None:
        sock = passage.sockets[side]
        if sock is None or not self._may_read(passage, side):
            return
        size = CHUNK_BYTES
        if side == CONNECTOR and self._limit is not None:
            size = min(size, self._limit - passage.passed[side])
        try:
            data = sock.recv(size)
        except BlockingIOError:
            return
        except OSError:
            passage.end(reset=True)
            return
        if not data:
            passage.ended[side] = True
            return
        if self._on_bytes is not None:
            self._on_bytes(passage.number, side, data)
        passage.passed[side] += len(data)
        passage.unwritten[side] += len(data)
        passage.pending[side].append((time.monotonic() + self._delay_s, data))
        if side == CONNECTOR and passage.passed[side] == self._limit:
            self.is_stalled.set()

    def _write(self, passage: Passage, side: int, now: float) -> None:
        """Pass on what *side* wrote, as far as it is due and the other side takes it."""
        other = passage.sockets[1 - side]
        pending = passage.pending[side]
        if other is None:
            return
        try:
            while pending and pending[0][0] <= now:
                due, data = pending[0]
                count = other.send(data)
                passage.unwritten[side] -= count
                if count < len(data):
                    pending[0] = (due, data[count:])
                    return
                pending.popleft()
            if passage.ended[side] and not pending:
                if passage.ended[1 - side] and not passage.pending[1 - side]:
                    passage.end(reset=False)
                else:
                    other.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            return
        except OSError:
            passage.end(reset=True)

    def _accept(self) -> None:
        try:
            connector, _ = self._server.accept()
        except BlockingIOError:
            return
        passage = Passage(self._count, [connector, None])
        if self._is_cut:
            passage.end(reset=True)
            return
        try:
            passage.sockets[LISTENER] = socket.create_connection((LOOPBACK, self.target), CONNECT_S)
        except OSError:
            passage.end(reset=True)  # nobody listens there yet
            return
        for sock in passage.sockets:
            assert sock is not None
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._count += 1
        self._passages.append(passage)

    def _obey(self) -> None:
        self._woken.recv(4096)
        while True:
            try:
                run, done = self._orders.get_nowait()
            except queue.Empty:
                return
            run()
            done.set()
