"""Sockets that wait for connections."""

from __future__ import annotations

import errno
import socket
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from mesh_config.models import ListenerSettings
from router.core.errors import LocalError

BACKLOG: Final = 1024
PAUSE_WITHOUT_FILES_S: Final = 0.1
"""Pause when the process may open no more files: the connection waits in the kernel meanwhile."""

AT_ONCE: Final = 64
"""Connections accepted before other tasks have their turn, which in a busy process comes once in a millisecond."""

Serve = Callable[[socket.socket, ListenerSettings], Awaitable[None]]


class Listener:
    """One bound socket."""

    def __init__(self, settings: ListenerSettings) -> None:
        """Bind it.

        Raises:
            LocalError: the address cannot be bound; says which and why.
        """
        self.settings = settings
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        self._sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._sock.bind((settings.host, settings.port))
            self._sock.listen(BACKLOG)
        except OSError as error:
            self._sock.close()
            raise LocalError(f"cannot listen on {settings.host}:{settings.port}: {error.strerror or error}") from error
        self._sock.setblocking(False)
        self.count = 0
        """Connections that are open now."""
        self.refused = 0
        """Connections closed at once because there were as many as the settings allow."""
        self._is_full = False

    @property
    def host(self) -> str:
        """Address that it is bound to."""
        return str(self._sock.getsockname()[0])

    @property
    def port(self) -> int:
        """Port that it is bound to: the system's choice when the setting is 0."""
        return int(self._sock.getsockname()[1])

    @property
    def name(self) -> str:
        """Name for logs and management."""
        return self.settings.name or f"{self.host}:{self.port}"

    async def accept(self, nursery: trio.Nursery, serve: Serve, full: Callable[[Listener], None]) -> None:
        """Accept until cancelled; each connection is served by a task of its own in *nursery*.

        *full* is called when the listener begins to refuse connections, not for each of them.
        """
        while True:
            await trio.lowlevel.wait_readable(self._sock)
            for _ in range(AT_ONCE):
                try:
                    sock, _ = self._sock.accept()
                except BlockingIOError:
                    break
                except OSError as error:
                    if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                        await trio.sleep(PAUSE_WITHOUT_FILES_S)
                        break
                    continue  # the peer was gone before it was accepted
                if self.count < self.settings.max_connections:
                    self._is_full = False
                    sock.setblocking(False)
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self.count += 1
                    nursery.start_soon(self._serve, sock, serve)
                else:
                    sock.close()
                    self.refused += 1
                    if not self._is_full:
                        full(self)
                    self._is_full = True

    async def _serve(self, sock: socket.socket, serve: Serve) -> None:
        try:
            await serve(sock, self.settings)
        finally:
            self.count -= 1

    def close(self) -> None:
        """Accept no more."""
        self._sock.close()
