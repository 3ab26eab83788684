"""The HTTP listener: connections by HTTP/1.1, bounded so that whoever comes by HTTP holds up no messages.

Bounded are the number of connections, of which the oldest gives way; the pace of what is read of them and answered,
for each piece and each request costs time that messages want too; and the time in which a request must come, and its
answer be taken.
"""

from __future__ import annotations

import math
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Final

import attrs
import trio

from mesh_config.models import HttpSettings
from mesh_config.usable_hosts import failure_words
from router.core.errors import LocalError
from router.core.policy.message_rate import TokenBucket
from router.net.handshake_socket import HandshakeFailed
from router.net.http_connection import AsgiApp, ConnectionEndpoints, HttpConnection
from router.net.listener import NO_BOUND, address_of, bound_socket, share_port

BACKLOG: Final = 1024
"""Maximum number of connections that wait to be taken in. One that finds no room is tried again by its client's system
after a second: so late a health check is given up, and its router restarted."""
OWN_FILES: Final = 4
"""Number of connections that are served also while clients have all the files that they may: an operator who looks why
must come in."""
FULL_PAUSE_S: Final = 0.002
"""Pause between two connections that are taken in while there are too many, seconds: a tenth of a core, and no health
check waits for longer than supervisors do."""
FAULT_PAUSE_S: Final = 0.1
"""Pause after a connection that the system could not give, seconds."""
HANDSHAKE_PIECES: Final = 4
"""Number of pieces that a TLS handshake counts for."""
LINGER_S: Final = 1.0
"""Time in which a client must end a connection that the router has ended, seconds."""
LINGER_PIECES: Final = 16
"""Maximum number of pieces read of what such a client still sends; they are thrown away."""
LINGER_PIECE_BYTES: Final = 65536
WRITTEN_PIECE_BYTES: Final = 65536
NO_FAULTS: Final = (
    OSError,
    trio.BrokenResourceError,
    trio.ClosedResourceError,
    trio.BusyResourceError,
    HandshakeFailed,
)
"""Errors by which a connection ends without a fault of ours: a reload takes away the files of one that still begins."""


class SharedThrottle:
    """The pace of pieces and requests of all connections together.

    Args:
        per_s: turns of a second; as many may come at once after a calm second.
    """

    def __init__(self, per_s: float) -> None:
        self._bucket = TokenBucket(per_s, -math.inf)  # it was calm until now
        self._turn = trio.Lock()

    async def wait(self) -> None:
        """Wait for the next turn; turns are given in the order of the calls."""
        async with self._turn:
            if wait_s := self._bucket.wait(trio.current_time()):
                await trio.sleep(wait_s)
            self._bucket.take()


class ThrottledStream(trio.abc.Stream):
    """A socket that is read at the pace, and whose connection ends when what is awaited of its client is late.

    Args:
        stream: the socket's.
        pace: common to all.
        timeout_s: in which a request must come, and in which each piece of an answer must be taken, seconds.
        scope: of the whole connection.
    """

    def __init__(
        self, stream: trio.SocketStream, pace: SharedThrottle, timeout_s: float, scope: trio.CancelScope
    ) -> None:
        self._stream = stream
        self._pace = pace
        self._timeout_s = timeout_s
        self._scope = scope
        self._pieces = 0
        """Number of pieces read, and waited for, since the last request that was answered."""
        self.begin()

    def begin(self) -> None:
        """Let the time of what comes next begin."""
        self._scope.deadline = trio.current_time() + self._timeout_s

    async def take_turn(self, pieces: int) -> None:
        """Wait until a request of *pieces* may be answered; the pieces in which it came have been waited for."""
        for _ in range(pieces - self._pieces):
            await self._pace.wait()
        self._pieces = 0

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Read a piece, in its turn."""
        data = await self._stream.receive_some(max_bytes)
        if data:
            await self._pace.wait()
            self._pieces += 1
        return bytes(data)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Write *data*, of which each piece must be taken in time."""
        with memoryview(data) as view:
            for start in range(0, len(view), WRITTEN_PIECE_BYTES):
                self.begin()
                await self._stream.send_all(view[start : start + WRITTEN_PIECE_BYTES])

    async def end(self) -> None:
        """End what is written, and throw away some of what still comes: a reset could overtake the last answer."""
        await self._stream.send_eof()
        with trio.move_on_after(LINGER_S):
            for _ in range(LINGER_PIECES):
                if not await self.receive_some(LINGER_PIECE_BYTES):
                    break

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until the stream may take more, as trio's `SendStream` says."""
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        """Close the stream, as trio's `AsyncResource` says."""
        await self._stream.aclose()


@attrs.define
class HttpCounters:
    """Connections of the HTTP listener."""

    count: int = 0
    """Number of connections now."""
    accepted: int = 0
    """Number of connections taken in since the start."""
    evicted: int = 0
    """Number of connections closed since the start, because there were too many."""


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
        files: descriptors of the process that connections may take, but for `OWN_FILES` of them; one with a number not
            below has the oldest one closed.
        shares_port: bind it also where a listener that shares its port has this one.
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
        files: int = NO_BOUND,
        shares_port: bool = False,
    ) -> None:
        self._settings = settings
        self._files = files
        self._tls = tls
        self._app = app
        shared = before._shared(settings) if before is not None else None
        if shared is None:
            shared = _bound(settings, place or address_of(settings), shares_port=shares_port)
        self._sock = shared
        self.host, self.port = self._sock.getsockname()[:2]
        self._pace = SharedThrottle(settings.max_requests_per_s)
        self._connections: dict[trio.CancelScope, trio.socket.SocketType] = {}
        """Connections that are served, oldest first."""
        self.counters = counters
        self._fault = fault

    def _shared(self, settings: HttpSettings) -> socket.socket | None:
        """A descriptor of the same socket; None when *settings* have another address."""
        if (settings.host, settings.port) != (self._settings.host, self._settings.port):
            return None
        return self._sock.dup()

    def share_port(self, is_shared: bool) -> None:
        """Let another one be bound at its port, as it is to be closed, or no more."""
        share_port(self._sock, is_shared)

    def close(self) -> None:
        """Give up the socket, which nobody serves any more."""
        self._sock.close()

    async def run(self) -> None:
        """Serve until cancelled. The socket stays open: whoever has made the server closes it."""
        sock = trio.socket.from_stdlib_socket(self._sock)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
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
                is_short = peer.fileno() >= self._files and len(self._connections) > OWN_FILES
                if is_short or len(self._connections) > self._settings.max_connections:
                    self.counters.evicted += 1
                    oldest = next(iter(self._connections))
                    self._connections.pop(oldest).close()  # whoever is writing to it notices that alone
                    oldest.cancel()
                    await trio.sleep(FULL_PAUSE_S)

    async def _with_tls(self, paced: ThrottledStream) -> trio.SSLStream[ThrottledStream]:
        """TLS on a connection. Its handshake takes as long as many pieces, so it waits for as many."""
        assert self._tls is not None
        for _ in range(HANDSHAKE_PIECES):
            await self._pace.wait()
        stream = trio.SSLStream(paced, await self._tls(), server_side=True, https_compatible=True)
        await stream.do_handshake()
        return stream

    async def _serve(self, sock: trio.socket.SocketType, scope: trio.CancelScope) -> None:
        try:
            with scope:
                endpoints = ConnectionEndpoints(
                    "http" if self._tls is None else "https", sock.getpeername()[:2], sock.getsockname()[:2]
                )
                paced = ThrottledStream(trio.SocketStream(sock), self._pace, self._settings.timeout_s, scope)
                stream = await self._with_tls(paced) if self._tls is not None else paced
                limit = self._settings.header_bytes
                await HttpConnection(stream, endpoints, self._app, limit, paced.begin, paced.take_turn).serve()
                await paced.end()
        except Exception as error:  # whatever a stranger has sent ends this connection and no other
            if not _is_no_fault(error):
                self._fault(error)
        finally:
            sock.close()
            self.counters.count -= 1
            self._connections.pop(scope, None)


def _bound(settings: HttpSettings, place: str, *, shares_port: bool) -> socket.socket:
    try:
        return bound_socket(place, settings.port or 0, BACKLOG, shares_port=shares_port)
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        raise LocalError(f"cannot listen for HTTP on {where}: {failure_words(error, settings.host)}") from error


def _is_no_fault(error: BaseException) -> bool:
    """Whether an error says no more than that the peer is gone, or that a reload has taken the TLS profile away."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_no_fault, error.exceptions))
    return isinstance(error, NO_FAULTS)
