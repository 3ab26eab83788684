"""Attempts of somebody without credentials at real routers, and what became of them, in words for the docs.

Three places: a router as it is out of the box; one with virtual hosts, of which the stranger knows none; and the
virtual host there that lets guests in.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import proton
from proton import Message, symbol
from proton.handlers import MessagingHandler
from proton.reactor import Container, LinkOption, ReceiverOption

from tests.helpers import frames

WAIT_S = 20.0

SETTINGS = """\
routers:
  OPEN:
    listeners: [{port: 0, handshake_timeout_s: 0.5}]
  CLOSED:
    listeners: [{port: 0, handshake_timeout_s: 0.5, max_connections_of_host: 20}]
    vhosts:
    - name: shop
      groups: [{name: workers, users: [worker], sources: ['#'], targets: ['#']}]
    - name: guests
      groups:
      - name: all
        users: [anonymous]
        sources: [inbox]
        targets: [inbox]
        anonymous_senders: true
        max_senders: 2
        max_message_bytes: 100000
"""


@attrs.frozen
class Place:
    """Where a stranger tries."""

    port: int
    hostname: str
    """In its Open."""


class _Attempt(MessagingHandler):
    """One connection, what it does when it is open, and the first answer that says something."""

    def __init__(self, place: Place, act: Callable[[_Attempt, Any], None]) -> None:
        super().__init__(auto_settle=False)
        self._place = place
        self._act = act
        self.answer = "nothing"
        self.connection: Any = None
        self.body: Any = "x"
        self.to: str | None = None
        self.reply_to: str | None = None
        self._timer: Any = None
        self.user_id: bytes | None = None
        self.is_sent = False

    def on_start(self, event: Any) -> None:
        url = f"amqp://127.0.0.1:{self._place.port}"
        self.connection = event.container.connect(url, virtual_host=self._place.hostname, reconnect=False)
        self._timer = event.container.schedule(WAIT_S, self)

    def on_timer_task(self, event: Any) -> None:
        self._end(f"nothing in {WAIT_S} s")

    def on_connection_opened(self, event: Any) -> None:
        if self.connection.state & proton.Endpoint.REMOTE_ACTIVE:
            self._act(self, event)

    def on_link_opened(self, event: Any) -> None:
        link = event.link
        is_refused = (
            link.remote_source if link.is_receiver else link.remote_target
        ).type == proton.Terminus.UNSPECIFIED
        if is_refused:
            return  # a detach with the reason follows
        if link.is_receiver or (self.to is None and self.reply_to is None):
            self._end("attached")

    def on_sendable(self, event: Any) -> None:
        if not self.is_sent and (self.to is not None or self.reply_to is not None):
            self.is_sent = True
            properties = {"operation": "QUERY", "entityType": "connection"} if self.reply_to else None
            message = Message(self.body, address=self.to, reply_to=self.reply_to, properties=properties)
            if self.user_id is not None:
                message.user_id = self.user_id
            event.sender.send(message)

    def on_accepted(self, event: Any) -> None:
        self._end("accepted")

    def on_released(self, event: Any) -> None:
        self._end("released: nobody is there")

    def on_rejected(self, event: Any) -> None:
        self._end(f"rejected, `{event.delivery.remote.condition.name}`")

    def on_link_error(self, event: Any) -> None:
        self._end(f"link refused, `{event.link.remote_condition.name}`")

    def on_connection_error(self, event: Any) -> None:
        self._end(f"closed, `{event.connection.remote_condition.name}`")

    def on_transport_error(self, event: Any) -> None:
        self._end("closed")

    def _end(self, answer: str) -> None:
        if self.answer == "nothing":
            self.answer = answer
            self._timer.cancel()
            self.connection.close()


def _tried(place: Place, act: Callable[[_Attempt, Any], None], **fields: Any) -> str:
    attempt = _Attempt(place, act)
    for name, value in fields.items():
        setattr(attempt, name, value)
    Container(attempt).run()
    return attempt.answer


def come_in(place: Place) -> str:
    return _tried(place, lambda attempt, event: attempt._end("let in"))


def receive(address: str) -> Callable[[Place], str]:
    return lambda place: _tried(
        place, lambda attempt, event: event.container.create_receiver(attempt.connection, address)
    )


def send(address: str, **fields: Any) -> Callable[[Place], str]:
    def act(attempt: _Attempt, event: Any) -> None:
        event.container.create_sender(attempt.connection, address)

    return lambda place: _tried(place, act, to=address, **fields)


def send_anonymously(to: str) -> Callable[[Place], str]:
    def act(attempt: _Attempt, event: Any) -> None:
        event.container.create_sender(attempt.connection, None)

    return lambda place: _tried(place, act, to=to)


def ask_management(place: Place) -> str:
    def act(attempt: _Attempt, event: Any) -> None:
        event.container.create_sender(attempt.connection, "$management")

    return _tried(place, act, reply_to="inbox")


class _AsRouter(LinkOption):
    def apply(self, link: Any) -> None:
        link.source.capabilities.put_symbol(symbol("qd.router"))


class _Dynamic(ReceiverOption):
    def apply(self, receiver: Any) -> None:
        receiver.source.dynamic = True


def pose_as_router(place: Place) -> str:
    def act(attempt: _Attempt, event: Any) -> None:
        event.container.create_receiver(attempt.connection, "qdhello", options=[_AsRouter()])

    return _tried(place, act)


def get_reply_address(place: Place) -> str:
    def act(attempt: _Attempt, event: Any) -> None:
        event.container.create_receiver(attempt.connection, None, options=[_Dynamic()])

    return _tried(place, act)


class _Many(_Attempt):
    """Attaches three senders; the answer to the last."""

    opened = 0

    def on_link_opened(self, event: Any) -> None:
        self.opened += event.link.remote_target.type != proton.Terminus.UNSPECIFIED
        if self.opened == 3:
            self._end("attached")

    def on_sendable(self, event: Any) -> None:
        """Nothing is sent."""


def attach_three_senders(place: Place) -> str:
    def act(attempt: _Attempt, event: Any) -> None:
        for number in range(3):
            event.container.create_sender(attempt.connection, "inbox", name=f"sender-{number}")

    attempt = _Many(place, act)
    Container(attempt).run()
    return attempt.answer


@contextlib.contextmanager
def _socket(place: Place) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", place.port), WAIT_S) as sock:
        sock.settimeout(WAIT_S)
        yield sock


def _read_to_end(sock: socket.socket) -> bytes:
    data = b""
    with contextlib.suppress(ConnectionError):
        while piece := sock.recv(65536):
            data += piece
    return data


def say_nothing(place: Place) -> str:
    with _socket(place) as sock:
        assert _read_to_end(sock) == b""
    return "closed after `handshake_timeout_s`"


def speak_http(place: Place) -> str:
    with _socket(place) as sock:
        sock.sendall(b"GET / HTTP/1.1\r\n\r\n")
        sock.shutdown(socket.SHUT_WR)
        return "closed" if _read_to_end(sock).startswith(b"AMQP") else "closed without a word"


def skip_the_open(place: Place) -> str:
    with _socket(place) as sock:
        sock.sendall(frames.AMQP_HEADER + frames.write(0x11, [None, 0, 100, 100]))
        _read_to_end(sock)
    return "closed"


def open_many(place: Place) -> str:
    """Keep thirty connections; say how many were let in."""
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(_socket(place)) for _ in range(30)]
        taken = 0
        for sock in socks:
            sock.sendall(frames.AMQP_HEADER + frames.write(0x10, ["many", place.hostname]))
        for sock in socks:
            with contextlib.suppress(ConnectionError):
                data = sock.recv(65536)
                while data and len(data) < 20:
                    data += sock.recv(65536)
                names = [frame.name for frame in frames.read(data)] if data else []
                taken += "open" in names and "close" not in names
    if taken == len(socks):
        return "all are taken, up to `max_connections`"
    return "20 at most are taken" if 0 < taken <= 20 else f"{taken or 'none'} are taken"


ATTEMPTS: tuple[tuple[str, Callable[[Place], str]], ...] = (
    ("connects and says nothing", say_nothing),
    ("speaks HTTP", speak_http),
    ("begins a session before it says who it is", skip_the_open),
    ("opens a connection", come_in),
    ("opens 30 connections from one host", open_many),
    ("receives from `orders`", receive("orders")),
    ("sends to `orders`", send("orders")),
    ("sends to `inbox`", send("inbox")),
    ("sends to `inbox` as another user (`user-id`)", send("inbox", user_id=b"worker")),
    ("sends 200,000 bytes to `inbox`", send("inbox", body="x" * 200_000)),
    ("attaches three senders", attach_three_senders),
    ("names `orders` in a message", send_anonymously("orders")),
    ("names `shop/orders` in a message, an address of another virtual host", send_anonymously("shop/orders")),
    ("names `_topo/0/CLOSED/$management` in a message", send_anonymously("_topo/0/CLOSED/$management")),
    ("asks the router itself (`$management`)", ask_management),
    ("receives from `$management`", receive("$management")),
    ("wants an address for replies", get_reply_address),
    ("poses as a router", pose_as_router),
)
"""What a stranger tries, and how."""
