"""The relay fails as it is told, and otherwise passes on everything."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.helpers.relay import CONNECTOR, LISTENER, LOOPBACK, Relay

SILENCE_S = 0.2
WAIT_S = 10.0


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with closing(socket.create_server((LOOPBACK, 0))) as server:
        server.settimeout(WAIT_S)
        yield server


@pytest.fixture
def relay(server: socket.socket) -> Iterator[Relay]:
    with Relay(server.getsockname()[1]) as relay:
        yield relay


def pair(relay: Relay, server: socket.socket) -> tuple[socket.socket, socket.socket]:
    """A connection by way of the relay: the connector's socket and the listener's."""
    near = socket.create_connection((LOOPBACK, relay.port), WAIT_S)
    far, _ = server.accept()
    far.settimeout(WAIT_S)
    return near, far


def take(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (more := sock.recv(size - len(data))):
        data += more
    return data


def is_silent(sock: socket.socket) -> bool:
    sock.settimeout(SILENCE_S)
    try:
        return sock.recv(1) is None
    except TimeoutError:
        return True
    finally:
        sock.settimeout(WAIT_S)


def is_ended(sock: socket.socket) -> bool:
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


def is_refused(relay: Relay) -> bool:
    try:
        with socket.create_connection((LOOPBACK, relay.port), WAIT_S) as sock:
            return is_ended(sock)
    except ConnectionResetError:
        return True  # before the connect had returned


def test_everything_passes_both_ways_and_so_does_the_end(relay: Relay, server: socket.socket) -> None:
    data = bytes(range(256)) * 10_000
    with closing(server):
        near, far = pair(relay, server)
        with near, far:
            writer = threading.Thread(target=near.sendall, args=(data,))
            writer.start()
            assert take(far, len(data)) == data
            writer.join()
            near.shutdown(socket.SHUT_WR)
            assert far.recv(1) == b""
            far.sendall(b"still")
            assert take(near, 5) == b"still"
            far.close()
            assert near.recv(1) == b""


def test_a_cut_ends_what_there_is_and_refuses_what_comes_until_it_is_mended(
    relay: Relay, server: socket.socket
) -> None:
    near, far = pair(relay, server)
    with near, far:
        relay.cut()
        assert is_ended(near)
        assert is_ended(far)
    assert is_refused(relay)
    relay.mend()
    near, far = pair(relay, server)
    with near, far:
        near.sendall(b"again")
        assert take(far, 5) == b"again"


@pytest.mark.parametrize("side", [CONNECTOR, LISTENER])
def test_what_one_side_writes_is_held_and_comes_later(relay: Relay, server: socket.socket, side: int) -> None:
    ends = pair(relay, server)
    with ends[0], ends[1]:
        relay.hold(side)
        for end in ends:
            end.sendall(b"word")
        assert take(ends[side], 4) == b"word"
        assert is_silent(ends[1 - side])
        relay.mend()
        assert take(ends[1 - side], 4) == b"word"


def test_a_delay_is_that_of_each_way(relay: Relay, server: socket.socket) -> None:
    near, far = pair(relay, server)
    with near, far:
        relay.delay(0.1)
        began = time.monotonic()
        near.sendall(b"ping")
        assert take(far, 4) == b"ping"
        far.sendall(b"pong")
        assert take(near, 4) == b"pong"
        assert time.monotonic() - began >= 0.2


@pytest.mark.parametrize("gone", [CONNECTOR, LISTENER])
def test_a_half_open_connection_is_lost_on_one_side_and_silent_on_the_other(
    relay: Relay, server: socket.socket, gone: int
) -> None:
    ends = pair(relay, server)
    with ends[0], ends[1]:
        relay.half_open(gone)
        assert is_ended(ends[gone])
        assert is_silent(ends[1 - gone])
        relay.mend()
        assert is_ended(ends[1 - gone])


def test_no_more_than_the_limit_passes_toward_the_listener(server: socket.socket) -> None:
    with Relay(server.getsockname()[1], limit=1000) as relay:
        near, far = pair(relay, server)
        with near, far:
            near.sendall(bytes(1500))
            assert len(take(far, 1000)) == 1000
            assert relay.is_stalled.wait(WAIT_S)
            assert is_silent(far)
            far.sendall(b"back")
            assert take(near, 4) == b"back"
