"""One connection by HTTP/1.1: its requests one after the other, each in its turn, and nothing else.

h11 reads and writes what goes over the wire; the answers are an ASGI application's. Neither HTTP/2 nor WebSockets are
spoken, so that nothing a client sends comes in other pieces than requests, which are counted. No path takes a body.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, MutableMapping
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Final, Protocol
from urllib.parse import unquote

import attrs
import h11
import trio

AsgiApp = Callable[[MutableMapping[str, Any], Callable[..., Any], Callable[..., Any]], Awaitable[None]]

VERSIONS: Final = frozenset({b"1.0", b"1.1"})
PIECE_BYTES: Final = 2048
"""Number of bytes read at once: no more of what a client sends ahead is held. Thousands of headers are many pieces."""
AMQP: Final = b"AMQP"
"""Beginning of what a client of AMQP sends first; no method of HTTP that is served has it."""
HEADER_MARKS: Final = len(b": \r\n")


class Stream(Protocol):
    """Bytes from a client and to it."""

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        """Read what is there; nothing at the end."""

    async def send_all(self, data: bytes) -> None:
        """Write *data*."""


@attrs.frozen
class ConnectionEndpoints:
    """Both ends of a connection, for the application: the scheme, and host and port of each."""

    scheme: str
    client: tuple[str, int]
    server: tuple[str, int]


class HttpConnection:
    """One connection by HTTP/1.1.

    Args:
        stream: the client's.
        endpoints: for the application.
        app: the ASGI application that answers.
        header_bytes: of the largest head: its target, names and values.
        begin: called as a request is awaited, and as its answer is begun: each must be done in time.
        take_turn: waits until a request of so many pieces may be answered.
    """

    def __init__(
        self,
        stream: Stream,
        endpoints: ConnectionEndpoints,
        app: AsgiApp,
        header_bytes: int,
        begin: Callable[[], None],
        take_turn: Callable[[int], Awaitable[None]],
    ) -> None:
        self._stream = stream
        self._endpoints = endpoints
        self._app = app
        self._header_bytes = header_bytes
        self._begin = begin
        self._take_turn = take_turn
        self._h11 = h11.Connection(h11.SERVER, max_incomplete_event_size=header_bytes)
        self._is_gone = False
        """Whether the client takes no more."""

    async def serve(self) -> None:
        """Answer one request after the other, until the client or an answer ends the connection."""
        try:
            while not self._is_gone:
                self._begin()
                request = await self._next_request()
                if request is None:
                    return
                size = head_bytes(request)
                await self._take_turn(-(-size // PIECE_BYTES))
                self._begin()
                refusal = self._refusal(request, size)
                if refusal is not None:
                    await self._refuse(refusal)
                    return
                self._h11.next_event()  # its end: it has no body
                await self._answer(request)
                if self._h11.our_state is not h11.DONE or self._h11.their_state is not h11.DONE:
                    return
                self._h11.start_next_cycle()
        except h11.RemoteProtocolError as error:
            await self._refuse(HTTPStatus(error.error_status_hint))

    async def _next_request(self) -> h11.Request | None:
        """The head of the next request; None when the client has ended the connection.

        Raises:
            h11.RemoteProtocolError: it is none.
        """
        while True:
            event = self._h11.next_event()
            if isinstance(event, h11.Request):
                return event
            if event is not h11.NEED_DATA:
                return None
            data = bytes(await self._stream.receive_some(PIECE_BYTES))
            if data.startswith(AMQP) and not self._h11.trailing_data[0]:
                # It would wait for an answer, as h11 for the end of a line.
                raise h11.RemoteProtocolError("AMQP in place of HTTP")
            self._h11.receive_data(data)

    def _refusal(self, request: h11.Request, size: int) -> HTTPStatus | None:
        """Why a request is not answered, and the connection ends."""
        if request.http_version not in VERSIONS:
            return HTTPStatus.HTTP_VERSION_NOT_SUPPORTED
        if size > self._header_bytes:
            return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
        if has_body(request):
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE
        return None

    async def _refuse(self, status: HTTPStatus) -> None:
        if self._h11.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers = [*_own_headers(), (b"content-length", b"0"), (b"connection", b"close")]
            await self._write(h11.Response(status_code=status, headers=headers), h11.EndOfMessage())

    async def _write(self, *events: h11.Event) -> None:
        """Write *events*; a client that is gone is no fault of the application."""
        data = b"".join(self._h11.send(event) or b"" for event in events)
        try:
            if data and not self._is_gone:
                await self._stream.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self._is_gone = True

    async def _answer(self, request: h11.Request) -> None:
        has_come = False
        response: h11.Response | None = None

        async def receive() -> dict[str, Any]:
            nonlocal has_come
            if has_come:
                await trio.sleep_forever()
            has_come = True
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            nonlocal response
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", ()), *_own_headers()]
                response = h11.Response(status_code=message["status"], headers=headers)
                return
            events: list[h11.Event] = [] if response is None else [response]
            response = None
            if message.get("body") and request.method != b"HEAD":
                events.append(h11.Data(data=message["body"]))
            if not message.get("more_body", False):
                events.append(h11.EndOfMessage())
            await self._write(*events)

        await self._app(self._scope(request), receive, send)

    def _scope(self, request: h11.Request) -> dict[str, Any]:
        target, headers = request.target, list(request.headers)
        if absolute := _ABSOLUTE.match(target):
            target = b"/" + target[absolute.end() :]
            headers = [(name, absolute["host"] if name == b"host" else value) for name, value in headers]
        path, _, query = target.partition(b"?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.1"},
            "http_version": request.http_version.decode(),
            "method": request.method.decode("ascii").upper(),
            "scheme": self._endpoints.scheme,
            "path": unquote(path.decode("ascii")),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": headers,
            "client": self._endpoints.client,
            "server": self._endpoints.server,
            "extensions": {},
        }


_ABSOLUTE: Final = re.compile(rb"https?://(?P<host>[^/?]*)/?", re.IGNORECASE)
"""Beginning of a target as proxies are given it, which a server takes too: its host counts. Source: RFC 9112, 3.2.2."""


def head_bytes(request: h11.Request) -> int:
    """Bytes of the target and the headers of a request as they are written."""
    return len(request.target) + sum(len(name) + len(value) + HEADER_MARKS for name, value in request.headers)


def has_body(request: h11.Request) -> bool:
    """Whether a request has a body, or may have one."""
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0"))
        for name, value in request.headers
    )


def _own_headers() -> list[tuple[bytes, bytes]]:
    return [(b"date", formatdate(usegmt=True).encode())]
