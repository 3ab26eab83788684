"""A server of `$management` in this process, which answers what a test wants it to."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from proton import Event, Message
from proton.handlers import MessagingHandler
from proton.reactor import Container

Answer = Callable[[Message], Message | bytes]
"""The reply to a request, or the bytes that are written in place of one."""


class FakeRouter(MessagingHandler):
    """A listener in this process, whose links a test makes what it wants of."""

    def __init__(self, *, prefetch: int = 10, auto_accept: bool = True) -> None:
        super().__init__(prefetch=prefetch, auto_accept=auto_accept)
        self.port = 0
        self.is_listening = threading.Event()
        self._acceptor: Any = None

    def on_start(self, event: Event) -> None:
        self._acceptor = event.container.listen("127.0.0.1:0")
        with socket.socket(fileno=socket.dup(self._acceptor._selectable.fileno())) as listening:
            self.port = listening.getsockname()[1]
        self.is_listening.set()

    def close(self) -> None:
        """Close the listener, once nothing runs."""
        self._acceptor._selectable._delegate.close()


class _FakeManagement(FakeRouter):
    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self._answer = answer

    def on_link_opening(self, event: Event) -> None:
        if event.link.remote_source.dynamic:
            event.link.source.address = event.link.name
        else:
            event.link.target.address = event.link.remote_target.address

    def on_message(self, event: Event) -> None:
        address = event.message.reply_to
        replies = next(it for it in _links(event.connection) if it.is_sender and it.source.address == address)
        reply = self._answer(event.message)
        if isinstance(reply, Message):
            reply.correlation_id = event.message.correlation_id
            replies.send(reply)
        else:
            replies.delivery("raw")
            replies.stream(reply)
            replies.advance()


def _links(connection: Any) -> Iterator[Any]:
    link = connection.link_head(0)
    while link is not None:
        yield link
        link = link.next(0)


@contextmanager
def fake_management(answer: Answer) -> Iterator[str]:
    """Run it. Returns: its URL."""
    with running(_FakeManagement(answer)) as url:
        yield url


@contextmanager
def running(handler: FakeRouter) -> Iterator[str]:
    """Have a container run it. Returns: its URL."""
    container = Container(handler)
    thread = threading.Thread(target=container.run, daemon=True)
    thread.start()
    assert handler.is_listening.wait(10)
    yield f"amqp://127.0.0.1:{handler.port}"
    container.stop()
    thread.join(10)
    handler.close()
