"""Peers of `tests.helpers.peer` on real sockets, all moved by one loop without threads or sleeps."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from typing import Any

from tests.helpers.peer import Peer

WAIT_S = 60.0
PIECES = 16
"""Written to one socket before others have their turn."""


class Sockets:
    """Real connections of this process."""

    def __init__(self) -> None:
        self._ends: dict[socket.socket, Peer] = {}
        self._unwritten: dict[socket.socket, bytes] = {}
        self.on_tick: list[Callable[[], None]] = []
        """Called each second, as a router's HELLO wants it."""
        self.on_step: Callable[[], None] = lambda: None
        """Called before anything is written."""
        self._ticked = time.monotonic()

    def client(self, url: str, **options: Any) -> Peer:
        """Connect to `amqp://host:port`; its Open is exchanged when this returns."""
        peer = self.dial(url, **options)
        peer.connection.open()
        self.wait(lambda: bool(peer.connection.state & peer.connection.REMOTE_ACTIVE))
        return peer

    def dial(self, url: str, **options: Any) -> Peer:
        """Connect; nothing is written yet."""
        host, _, port = url.removeprefix("amqp://").partition(":")
        return self.adopt(socket.create_connection((host, int(port))), **options)

    def adopt(self, sock: socket.socket, **options: Any) -> Peer:
        """Make a peer of a socket that is there."""
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        peer = Peer(self.step, **options)
        self._ends[sock] = peer
        self._unwritten[sock] = b""
        return peer

    def step(self, timeout_s: float = 0.0) -> None:
        """Write what there is and read what comes, for at most *timeout_s*."""
        self.on_step()
        writing = []
        for sock, peer in list(self._ends.items()):
            self._write(sock, peer)
            if self._unwritten.get(sock):
                writing.append(sock)
        ready, _, _ = select.select(list(self._ends), writing, [], timeout_s)
        for sock in ready:
            self._read(sock)
        if time.monotonic() - self._ticked >= 1.0:
            self._ticked = time.monotonic()
            for act in self.on_tick:
                act()
            for peer in self._ends.values():
                peer.tick(time.monotonic())

    def wait(self, is_so: Callable[[], object], timeout_s: float = WAIT_S) -> None:
        """Step until *is_so*."""
        end = time.monotonic() + timeout_s
        while not is_so():
            assert time.monotonic() < end, "did not happen in time"
            self.step(0.02)

    def close(self) -> None:
        """Close every socket."""
        for sock in self._ends:
            sock.close()
        self._ends.clear()

    def _write(self, sock: socket.socket, peer: Peer) -> None:
        for _ in range(PIECES):
            data = self._unwritten[sock] or peer.take()  # no more than is written soon: all of it may be very much
            if not data:
                return
            try:
                count = sock.send(data)
            except BlockingIOError:
                count = 0
            except OSError:
                self._drop(sock)
                return
            self._unwritten[sock] = data[count:]
            if count < len(data):
                return

    def _read(self, sock: socket.socket) -> None:
        peer = self._ends[sock]
        try:
            data = sock.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            peer.give(data)
        else:
            peer.give_end()
            self._drop(sock)

    def _drop(self, sock: socket.socket) -> None:
        self._ends.pop(sock).close()
        self._unwritten.pop(sock)
        sock.close()
