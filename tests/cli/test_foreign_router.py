"""A router of another make, as every command finds it that asks one."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from proton import Event, Message
from proton.handlers import MessagingHandler
from proton.reactor import Container

pytestmark = pytest.mark.interop


class Foreign(MessagingHandler):
    """Answers whoever reads `router` without a name as a `qdrouterd` 1.19 does."""

    def __init__(self) -> None:
        super().__init__()
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

    def on_link_opening(self, event: Event) -> None:
        if event.link.remote_source.dynamic:
            event.link.source.address = "replies"
        else:
            event.link.target.address = event.link.remote_target.address

    def on_message(self, event: Event) -> None:
        request = event.message
        said = {"statusCode": 400, "statusDescription": "org.apache.qpid.dispatch.router: No name or identity provided"}
        replies = next(link for link in _links(event.connection) if link.is_sender)
        replies.send(Message(correlation_id=request.correlation_id, properties=said, body={}))


def _links(connection: Any) -> Iterator[Any]:
    link = connection.link_head(0)
    while link is not None:
        yield link
        link = link.next(0)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    foreign = Foreign()
    container = Container(foreign)
    thread = threading.Thread(target=container.run, daemon=True)
    thread.start()
    assert foreign.is_listening.wait(10)
    yield f"amqp://127.0.0.1:{foreign.port}"
    container.stop()
    thread.join(10)
    foreign.close()


@pytest.mark.parametrize(
    "words", ["stat", "stat routers", "stat problems", "ping", "drain B", "trace x", "top --looks 1"]
)
def test_a_command_says_that_it_is_no_router_of_ours(url: str, words: str) -> None:
    command = [sys.executable, "-m", "router", *words.split(), "--url", url]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 1
    assert result.stderr == (
        f"Error: {url} is no router of amqp-mesh: ask it with its own tools, a qdrouterd with qdstat and qdmanage\n"
    )
