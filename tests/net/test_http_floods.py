"""Floods of the HTTP listener of a real router: each ends, and neither memory nor the log of the router shows it."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count

import attrs
import pytest

from mesh_config.generators import generate
from mesh_config.models import MIB, HttpSettings
from tests.helpers.processes import (
    MeshProcesses,
    ReservedPort,
    RouterProcess,
    peak_bytes,
    resident_bytes,
    wait_until,
)

pytestmark = pytest.mark.interop
CONNECTIONS = 8
FLOOD_BYTES = 4 * MIB
"""Of each connection, at most."""
ENOUGH_BYTES = MIB // 2
"""Of answers, after which a connection gives up."""
MOST_GROWTH = 24 * MIB
REQUEST = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
HEADERS_FRAME, RST_STREAM_FRAME, SETTINGS_FRAME, PING_FRAME = 1, 3, 4, 6
END_STREAM_AND_HEADERS = 5
HEADERS = b"\x82\x86\x04\x08/metrics\x01\x09127.0.0.1"
"""GET of `/metrics` by HTTP, as HPACK writes it without Huffman's code."""


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame of HTTP/2."""
    return struct.pack("!I", len(payload))[1:] + bytes([kind, flags]) + struct.pack("!I", stream) + payload


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS_FRAME, 0, 0)


def resets() -> Iterator[bytes]:
    """Requests by HTTP/2, each given up at once."""
    yield PREFACE
    for stream in count(1, 2):
        yield frame(HEADERS_FRAME, END_STREAM_AND_HEADERS, stream, HEADERS)
        yield frame(RST_STREAM_FRAME, 0, stream, struct.pack("!I", 8))


def pings() -> Iterator[bytes]:
    """A connection by HTTP/2 that is only tried."""
    yield PREFACE
    while True:
        yield frame(PING_FRAME, 0, 0, b"abcdefgh")


def pipeline() -> Iterator[bytes]:
    """Requests by HTTP/1.1, none of which waits for its answer."""
    while True:
        yield REQUEST


def chunks() -> Iterator[bytes]:
    """A body of tiny chunks."""
    yield REQUEST.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        yield b"1\r\nx\r\n"


def written(flood: Iterator[bytes]) -> bytes:
    """The first bytes of *flood*."""
    data = bytearray()
    while len(data) < FLOOD_BYTES:
        data += next(flood)
    return bytes(data)


class Flooder:
    """A connection that writes whatever is taken of *data*."""

    def __init__(self, port: int, data: bytes) -> None:
        self._rest = data
        self._received = 0
        self._sock = socket.create_connection(("127.0.0.1", port))
        self._sock.setblocking(False)

    def has_ended(self) -> bool:
        """Go on; whether the router has ended the connection, or answered for long enough."""
        if self._sock.fileno() < 0:
            return True
        try:
            with suppress(BlockingIOError):
                self._rest = self._rest[self._sock.send(self._rest) :]
            data = self._sock.recv(FLOOD_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        self._received += len(data)
        if not data or self._received > ENOUGH_BYTES:
            self._sock.close()
        return self._sock.fileno() < 0


@attrs.frozen
class Flooded:
    """A router with an HTTP listener, and the memory it had at rest, in bytes."""

    router: RouterProcess
    port: int
    at_rest_bytes: int


@pytest.fixture(scope="module")
def flooded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flooded]:
    """A router for all floods, which has no fault after them."""
    port = ReservedPort()
    mesh = generate("line", 1)
    router = attrs.evolve(mesh.routers["R1"], http=HttpSettings(port=port.number))
    with MeshProcesses(attrs.evolve(mesh, routers={"R1": router}), tmp_path_factory.mktemp("flooded")) as processes:
        processes.start()
        assert answer(port.number).startswith(b"HTTP/1.1 200 ")
        yield Flooded(processes["R1"], port.number, resident_bytes(processes["R1"].pid))
        assert processes["R1"].log_lines("turn_fault") == []
        assert set(processes.terminate().values()) == {0}
    port.close()


@pytest.mark.parametrize("flood", [resets, pings, pipeline, chunks])
def test_a_flood_takes_no_memory_and_is_no_fault(flood: Callable[[], Iterator[bytes]], flooded: Flooded) -> None:
    data = written(flood())
    crowd = [Flooder(flooded.port, data) for _ in range(CONNECTIONS)]
    wait_until(lambda: all([flooder.has_ended() for flooder in crowd]), "each connection of the flood ends", 120)
    assert answer(flooded.port).startswith(b"HTTP/1.1 200 ")
    assert peak_bytes(flooded.router.pid) - flooded.at_rest_bytes < MOST_GROWTH
    assert flooded.router.log_lines("turn_fault") == []


def answer(port: int) -> bytes:
    """What an honest client gets."""
    with socket.create_connection(("127.0.0.1", port), 30) as client:
        client.sendall(REQUEST)
        return client.recv(65536)
