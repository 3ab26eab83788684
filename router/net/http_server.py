"""The HTTP listener: connections for Hypercorn, bounded so that whoever comes by HTTP holds up no messages.

Hypercorn speaks HTTP. Here is what it has no bound for: the number of connections, of which the oldest gives way; the
pace of what is read of them, for each piece costs time that messages want too; and the time in which a page is taken.
"""

from __future__ import annotations

import logging
import math
import socket
import ssl
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

import attrs
import trio
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext

from mesh_config.models import HttpSettings
from mesh_config.usable_hosts import encoded
from router.core.errors import LocalError

AsgiApp = Callable[[MutableMapping[str, Any], Callable[..., Any], Callable[..., Any]], Awaitable[None]]

BACKLOG: Final = 64
FULL_PAUSE_S: Final = 0.02
"""Between two connections that are taken in while there are too many."""
FAULT_PAUSE_S: Final = 0.1
"""After a connection that the system could not give."""
HANDSHAKE_PIECES: Final = 4
"""Pieces that a TLS handshake counts for."""
MOST_STREAMS: Final = 8
"""Requests at one time of a connection by HTTP/2."""
MOST_WEBSOCKET_BYTES: Final = 4096
"""There are no WebSockets; what a client sends before it is told is bounded all the same."""


class SharedReadThrottle:
    """The pace at which pieces of requests are read, of all connections together: a token bucket.

    Args:
        per_s: pieces of a second; as many may come at once after a calm second.
    """

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self._tokens = per_s
        self._updated = -math.inf
        self._turn = trio.Lock()

    async def wait(self) -> None:
        """Wait until the next piece may be read: whoever came first is first."""
        async with self._turn:
            now = trio.current_time()
            self._tokens = min(self._per_s, self._tokens + (now - self._updated) * self._per_s)
            self._updated = now
            if self._tokens < 1:
                await trio.sleep((1 - self._tokens) / self._per_s)
                self._updated = trio.current_time()
                self._tokens = 1.0
            self._tokens -= 1


class PacedStream(trio.abc.HalfCloseableStream):
    """A socket whose reads keep the pace, and whose connection ends when nothing has moved on it for some time.

    Hypercorn waits for some things without a bound: for the end of a stream that it has given up, for example.

    Args:
        stream: the socket's.
        pace: common to all.
        timeout_s: in which something must move, seconds.
        scope: of the whole connection.
    """

    def __init__(
        self, stream: trio.SocketStream, pace: SharedReadThrottle, timeout_s: float, scope: trio.CancelScope
    ) -> None:
        self._stream = stream
        self._pace = pace
        self._timeout_s = timeout_s
        self._scope = scope
        self.socket = stream.socket
        """For the names of both ends."""
        self._moved()

    def _moved(self) -> None:
        self._scope.deadline = trio.current_time() + self._timeout_s

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Read a piece, in its turn."""
        data = await self._stream.receive_some(max_bytes)
        if data:
            await self._pace.wait()
            self._moved()
        return bytes(data)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Write *data*.

        Raises:
            BrokenResourceError: the peer does not take it in time, or is gone.
        """
        with trio.move_on_after(self._timeout_s) as late:
            await self._stream.send_all(data)
        if not late.cancelled_caught:
            self._moved()
        else:
            self._scope.cancel()
            raise trio.BrokenResourceError("the peer takes nothing")

    async def wait_send_all_might_not_block(self) -> None:
        """As of any stream."""
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        """As of any stream."""
        await self._stream.send_eof()

    async def aclose(self) -> None:
        """As of any stream."""
        await self._stream.aclose()


@attrs.define
class HttpCounters:
    """Connections of the HTTP listener."""

    count: int = 0
    """Now."""
    accepted: int = 0
    """Taken in since the start,"""
    evicted: int = 0
    """and closed since there were too many."""


class HttpServer:
    """One bound socket for HTTP.

    Args:
        settings: host, port and bounds.
        app: the ASGI application.
        counters: kept by this object.
        fault: told of faults of ours with a connection.
        before: the one that it is to take the place of; its socket stays bound if it has the same address.
        tls: makes the context of a new connection; None for HTTP without TLS.
        place: address of the host; None: it is looked up, which may take a while.
    Raises:
        LocalError: the address cannot be bound; says which and why.
    """

    def __init__(
        self,
        settings: HttpSettings,
        app: AsgiApp,
        counters: HttpCounters,
        fault: Callable[[Exception], None],
        before: HttpServer | None = None,
        tls: Callable[[], Awaitable[ssl.SSLContext]] | None = None,
        place: str | None = None,
    ) -> None:
        self._settings = settings
        self._tls = tls
        self._app = ASGIWrapper(with_bounded_heads(app, settings.header_bytes))  # type: ignore[arg-type]
        shared = before._shared(settings) if before is not None else None
        self._sock = shared if shared is not None else _bound(settings, place or encoded(settings.host))
        self.host, self.port = self._sock.getsockname()[:2]
        self._pace = SharedReadThrottle(settings.max_requests_per_s)
        self._connections: dict[trio.CancelScope, trio.socket.SocketType] = {}
        """Those that are served, oldest first."""
        self.counters = counters
        self._fault = fault
        self._config = hypercorn_config(settings)
        self._context = WorkerContext(None)

    def _shared(self, settings: HttpSettings) -> socket.socket | None:
        """A descriptor of the same socket; None when *settings* have another address."""
        if (settings.host, settings.port) != (self._settings.host, self._settings.port):
            return None
        return self._sock.dup()

    def close(self) -> None:
        """Give up the socket: nobody serves it."""
        self._sock.close()

    async def run(self) -> None:
        """Serve until cancelled."""
        sock = trio.socket.from_stdlib_socket(self._sock)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            async with trio.open_nursery() as nursery:
                while True:
                    try:
                        peer, _ = await sock.accept()
                    except OSError:
                        await trio.sleep(FAULT_PAUSE_S)  # no descriptor is left, or the peer was gone before
                        continue
                    self.counters.accepted += 1
                    self.counters.count += 1
                    scope = trio.CancelScope()
                    self._connections[scope] = peer
                    nursery.start_soon(self._serve, peer, scope)
                    if len(self._connections) > self._settings.max_connections:
                        self.counters.evicted += 1
                        oldest = next(iter(self._connections))
                        self._connections.pop(oldest).close()  # whoever is writing to it notices that alone
                        oldest.cancel()
                        await trio.sleep(FULL_PAUSE_S)
        finally:
            self._sock.close()

    async def _with_tls(self, paced: PacedStream) -> trio.SSLStream[PacedStream]:
        """TLS on a connection. Its handshake takes as long as many pieces, so it waits for as many."""
        assert self._tls is not None
        for _ in range(HANDSHAKE_PIECES):
            await self._pace.wait()
        return trio.SSLStream(paced, await self._tls(), server_side=True, https_compatible=True)

    async def _serve(self, sock: trio.socket.SocketType, scope: trio.CancelScope) -> None:
        try:
            with scope:
                paced = PacedStream(trio.SocketStream(sock), self._pace, self._settings.timeout_s, scope)
                stream = await self._with_tls(paced) if self._tls is not None else paced
                server = TCPServer(self._app, self._config, self._context, {}, stream)  # type: ignore[arg-type]
                await server.run()
        except Exception as error:  # whatever a stranger has sent ends this connection and no other
            if not _is_of_the_peer(error):
                self._fault(error)
        finally:
            sock.close()
            self.counters.count -= 1
            self._connections.pop(scope, None)


def with_bounded_heads(app: AsgiApp, header_bytes: int) -> AsgiApp:
    """An application that answers 431 to a larger head: h11 has a bound only for one that it reads in pieces.

    Args:
        app: answers the others.
        header_bytes: of path, names and values.
    """

    async def answer(scope: MutableMapping[str, Any], receive: Callable[..., Any], send: Callable[..., Any]) -> None:
        size = len(scope.get("raw_path", b"")) + len(scope.get("query_string", b""))
        size += sum(len(name) + len(value) for name, value in scope.get("headers", ()))
        if scope["type"] != "http" or size <= header_bytes:
            await app(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 431, "headers": [(b"connection", b"close")]})
        await send({"type": "http.response.body", "body": b""})

    return answer


def _bound(settings: HttpSettings, place: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in place else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((place, settings.port or 0))
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        where = f"{settings.host}:{settings.port}"
        raise LocalError(f"cannot listen for HTTP on {where}: {error.strerror or error}") from error
    return sock


def _is_of_the_peer(error: BaseException) -> bool:
    """Whether an error says no more than that the peer is gone."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_of_the_peer, error.exceptions))
    return isinstance(error, (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError))


def hypercorn_config(settings: HttpSettings) -> Config:
    """Bounds for Hypercorn, which is to write no log of its own."""
    config = Config()
    config.errorlog = _silent_logger()
    config.accesslog = None
    config.include_server_header = False
    config.h11_max_incomplete_size = settings.header_bytes
    config.h2_max_concurrent_streams = MOST_STREAMS
    config.h2_max_header_list_size = settings.header_bytes
    config.keep_alive_timeout = settings.timeout_s
    config.websocket_max_message_size = MOST_WEBSOCKET_BYTES
    return config


def _silent_logger() -> logging.Logger:
    logger = logging.Logger("http")  # noqa: LOG001  its lines go nowhere
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger
