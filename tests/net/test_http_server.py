"""The HTTP listener: what it answers, and that whoever hangs, floods or lies by HTTP is bounded. Real sockets."""

from __future__ import annotations

import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import h11
import pytest
import trio
import trio.testing

from mesh_config.models import HttpSettings
from router.core.errors import LocalError
from router.management.http_app import http_app
from router.management.metrics import Measurements
from router.net.http_connection import PIECE_BYTES
from router.net.http_server import BACKLOG, OWN_FILES, HttpCounters, HttpServer
from router.net.listener import NO_BOUND

READY = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"
CLOSING = READY.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
PING = b"\x00\x00\x08\x06\x00\x00\x00\x00\x00abcdefgh"
CALM_RATE = 0.01
"""Of the clock while a good client asks: a stall of the machine is not to be its time without a move."""


class Source:
    """Metrics that are cheap; counts how often they are taken."""

    def __init__(self) -> None:
        self.takings = 0

    def measure(self, into: Measurements) -> Any:
        self.takings += 1
        into.set("ready", 1)
        yield


class Bench:
    """A server with its application."""

    def __init__(self, files: int = NO_BOUND, **settings: Any) -> None:
        self.settings = HttpSettings(port=0, **settings)
        self.source = Source()
        self.reasons: list[str] = []
        self.asked = 0
        """How often whether it is ready, which is asked for each request of `/readyz`."""
        self.faults: list[Exception] = []
        self.counters = HttpCounters()
        app = http_app(self.settings, readiness=self.readiness, metrics=self.source, fault=self.faults.append)
        self.server = HttpServer(self.settings, app, self.counters, self.faults.append, files=files)

    def readiness(self) -> list[str]:
        self.asked += 1
        return self.reasons

    async def connect(self) -> trio.SocketStream:
        return await trio.open_tcp_stream("127.0.0.1", self.server.port)

    async def get(self, path: str, *, host: str = "localhost") -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of one answer."""
        stream = await self.connect()
        async with stream:
            await stream.send_all(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            return await read_answer(stream)

    async def until(self, is_so: Callable[[], bool]) -> None:
        with trio.fail_after(20):
            while not is_so():
                await trio.lowlevel.checkpoint()


async def read_all(stream: trio.SocketStream) -> bytes:
    """What comes until the router ends the connection."""
    data = b""
    with trio.fail_after(20):
        while piece := await stream.receive_some(65536):
            data += piece
    return data


async def read_answer(stream: trio.SocketStream) -> tuple[int, dict[str, str], bytes]:
    client = h11.Connection(h11.CLIENT)
    client.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    client.send(h11.EndOfMessage())
    status, headers, body = 0, {}, b""
    with trio.fail_after(20):
        while True:
            event = client.next_event()
            if event is h11.NEED_DATA:
                client.receive_data(await stream.receive_some(65536))
            elif isinstance(event, h11.Response):
                status = event.status_code
                headers = {name.decode(): value.decode() for name, value in event.headers}
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, (h11.EndOfMessage, h11.ConnectionClosed)):
                return status, headers, body


@asynccontextmanager
async def serving(**settings: Any) -> AsyncIterator[Bench]:
    bench = Bench(**settings)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.server.run)
        yield bench
        nursery.cancel_scope.cancel()
    bench.server.close()
    assert bench.faults == []
    assert bench.counters.count == 0


async def test_health_readiness_and_metrics_are_answered_with_headers_for_browsers() -> None:
    async with serving() as bench:
        status, headers, body = await bench.get("/healthz")
        assert (status, body) == (200, b"ok\n")
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert headers["cache-control"] == "no-store"
        assert (await bench.get("/readyz"))[::2] == (200, b"ready\n")
        bench.reasons = ["no other router is reached (10.0.0.1:5672: refused)"]
        assert (await bench.get("/readyz"))[::2] == (503, f"{bench.reasons[0]}\n".encode())
        status, headers, body = await bench.get("/metrics")
        assert status == 200
        assert headers["content-type"].startswith("text/plain; version=")
        assert b"\namqp_mesh_ready 1.0\n" in body
        expected = (404, b"not found; there are /healthz, /readyz, /metrics\n")
        assert (await bench.get("/elsewhere"))[::2] == expected


async def test_a_page_is_made_once_for_all_who_ask_within_its_time() -> None:
    async with serving() as bench:
        answers = []

        async def ask() -> None:
            answers.append(await bench.get("/metrics"))

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(ask)
        assert [status for status, _, _ in answers] == [200] * 20
        assert bench.source.takings <= 3


@pytest.mark.parametrize(
    ("host", "is_let_in"),
    [
        ("localhost", True), ("localhost:9672", True), ("127.0.0.1:9672", True), ("[::1]:9672", True),
        ("10.1.2.3", True), ("router-a.example", True), ("ROUTER-A.example:9672", True),
        ("stranger.example", False), ("stranger.example:9672", False), ("127.0.0.1.stranger.example", False),
        ("localhost.stranger.example", False),
    ],
)  # fmt: skip
async def test_a_page_of_another_host_cannot_read_it_by_its_own_name(host: str, is_let_in: bool) -> None:
    async with serving(names=("router-a.example",)) as bench:
        assert (await bench.get("/readyz", host=host))[0] == (200 if is_let_in else 421)


async def test_a_crowd_that_says_nothing_gives_way_to_who_asks() -> None:
    async with serving(max_connections=8) as bench:
        crowd = [await bench.connect() for _ in range(30)]
        await bench.until(lambda: bench.counters.accepted == 30)
        assert bench.counters.count <= 9
        assert bench.counters.evicted >= 20
        assert (await bench.get("/healthz"))[0] == 200
        for stream in crowd:
            await stream.aclose()


async def test_a_health_check_is_answered_in_time_behind_a_crowd(autojump_clock: trio.testing.MockClock) -> None:
    bench = Bench()
    crowd = [socket.create_connection(("127.0.0.1", bench.server.port)) for _ in range(BACKLOG // 2)]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.server.run)
        assert (await bench.get("/healthz"))[0] == 200
        assert trio.current_time() < 4  # as long as examples/kubernetes.yaml waits
        assert bench.counters.evicted > 0
        nursery.cancel_scope.cancel()
    bench.server.close()
    for each in crowd:
        each.close()


async def test_where_files_are_short_a_few_are_served_and_older_ones_give_way() -> None:
    async with serving(files=0) as bench:
        crowd = [await bench.connect() for _ in range(30)]
        await bench.until(lambda: bench.counters.accepted == 30)
        assert bench.counters.count <= OWN_FILES + 1
        assert (await bench.get("/healthz"))[0] == 200
        for stream in crowd:
            await stream.aclose()


async def test_who_hangs_in_the_middle_of_a_request_is_closed_in_its_time() -> None:
    async with serving(timeout_s=0.1) as bench, await bench.connect() as stream:
        await stream.send_all(b"GET /healthz HTTP/1.1\r\nHost: local")
        with trio.fail_after(20):
            assert await stream.receive_some(100) == b""


async def test_who_does_not_take_an_answer_is_closed_in_its_time(mock_clock: trio.testing.MockClock) -> None:
    mock_clock.rate = 1
    async with serving(timeout_s=0.1) as bench:
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect(("127.0.0.1", bench.server.port))
            slow.setblocking(False)
            # Requests without end, one after the other on one connection, whose answers nobody reads.
            with trio.fail_after(60):
                try:
                    while True:
                        try:
                            slow.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
                        except BlockingIOError:
                            await trio.lowlevel.checkpoint()
                        if bench.counters.accepted and not bench.counters.count:
                            break
                        await trio.lowlevel.checkpoint()
                except OSError:
                    pass
        await bench.until(lambda: bench.counters.count == 0)
        mock_clock.rate = CALM_RATE
        assert (await bench.get("/healthz"))[0] == 200


@pytest.mark.parametrize("end", [b"", b"\r\n\r\n"], ids=["in pieces", "whole"])
async def test_a_head_that_is_too_large_is_refused(end: bytes) -> None:
    async with serving(header_bytes=2048) as bench, await bench.connect() as stream:
        await stream.send_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 4096 + end)
        assert (await read_answer(stream))[0] == 431
        assert not await stream.receive_some()


async def test_requests_beyond_the_pace_wait_and_are_all_answered() -> None:
    async with serving(max_requests_per_s=50.0) as bench:
        begin = trio.current_time()
        for _ in range(60):
            assert (await bench.get("/healthz"))[0] == 200
        assert trio.current_time() - begin > 0.1


@pytest.mark.parametrize(
    "data",
    [
        b"\x00" * 100, b"AMQP\x00\x01\x00\x00", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 200,
        b"GET / HTTP/9.9\r\n\r\n", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: nine\r\n\r\n",
        b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n" + b"x" * 500_000,
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nUpgrade: h2c\r\nHTTP2-Settings: !\r\n\r\n",
    ],
)  # fmt: skip
async def test_whatever_comes_ends_its_own_connection_at_most(data: bytes, mock_clock: trio.testing.MockClock) -> None:
    mock_clock.rate = 1
    async with serving(timeout_s=0.2) as bench:
        stream = await bench.connect()
        try:
            await stream.send_all(data)
            await stream.receive_some(65536)
        except trio.BrokenResourceError:
            pass
        await stream.aclose()
        await bench.until(lambda: bench.counters.accepted > 0 and bench.counters.count == 0)
        mock_clock.rate = CALM_RATE
        assert (await bench.get("/healthz"))[0] == 200


async def test_who_speaks_amqp_is_answered_by_http_at_once() -> None:
    async with serving() as bench, await bench.connect() as stream:
        await stream.send_all(b"AMQP\x03\x01\x00\x00")
        data = await read_all(stream)
        assert data.startswith(b"HTTP/1.1 400 ")
        assert data.endswith(b"connection: close\r\n\r\n")


@pytest.mark.parametrize("before", [b"", READY], ids=["first", "after a request"])
async def test_http_2_is_refused_without_reading_its_frames(before: bytes) -> None:
    async with serving() as bench, await bench.connect() as stream:
        await stream.send_all(before + HTTP2 + PING * 1000)
        data = await read_all(stream)
        assert data.count(b"HTTP/1.1 200 ") == bool(before)
        assert data.count(b"HTTP/1.1 505 ") == 1
        assert data.endswith(b"connection: close\r\n\r\n")


@pytest.mark.parametrize(
    "headers",
    [
        [b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABkAAQAAP__", b"Connection: Upgrade, HTTP2-Settings"],
        [
            b"Upgrade: websocket", b"Connection: Upgrade", b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
            b"Sec-WebSocket-Version: 13",
        ],
    ],
    ids=["h2c", "websocket"],
)  # fmt: skip
async def test_who_asks_for_another_protocol_is_answered_by_http_1(headers: list[bytes]) -> None:
    async with serving() as bench, await bench.connect() as stream:
        await stream.send_all(READY.replace(b"\r\n\r\n", b"\r\n" + b"\r\n".join(headers) + b"\r\n\r\n") + CLOSING)
        data = await read_all(stream)
        assert (data.count(b"HTTP/1.1 200 "), data.count(b"HTTP/"), bench.asked) == (2, 2, 2)


async def test_each_request_of_a_segment_waits_for_its_turn(mock_clock: trio.testing.MockClock) -> None:
    async with serving(max_requests_per_s=1) as bench, await bench.connect() as stream:
        await stream.send_all(READY * 2 + CLOSING)
        for turn in range(1, 4):
            await bench.until(lambda turn=turn: bench.asked >= turn)  # type: ignore[misc]
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert bench.asked == turn
            mock_clock.jump(1)
        assert (await read_all(stream)).count(b"HTTP/1.1 200 ") == 3


async def test_a_head_of_many_pieces_takes_as_many_turns(mock_clock: trio.testing.MockClock) -> None:
    async with serving(max_requests_per_s=1) as bench, await bench.connect() as stream:
        await stream.send_all(CLOSING.replace(b"\r\n\r\n", b"\r\n" + b"x:\r\n" * 1200 + b"\r\n"))
        for _ in range(2):
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert bench.asked == 0
            mock_clock.jump(1)
        assert (await read_all(stream)).count(b"HTTP/1.1 200 ") == 1


async def test_no_more_is_read_ahead_than_a_piece(mock_clock: trio.testing.MockClock) -> None:
    async with serving(max_requests_per_s=1) as bench, await bench.connect() as stream:
        await stream.send_all(READY * 1000)
        await bench.until(lambda: bench.asked == 1)
        await trio.testing.wait_all_tasks_blocked(0.01)
        unread = unread_bytes(bench.server.port, stream)
        assert unread >= len(READY) * 1000 - PIECE_BYTES


def unread_bytes(port: int, stream: trio.SocketStream) -> int:
    """Bytes of *stream* that the router's system holds, and that the router has not read."""
    client = stream.socket.getsockname()[1]
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, _, queues, *_ = line.split()
        if (int(local[-4:], 16), int(remote[-4:], 16)) == (port, client):
            return int(queues.partition(":")[2], 16)
    raise AssertionError("it is not connected")


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n",
        b"Content-Length: 3\r\nExpect: 100-continue\r\n",
    ],
)  # fmt: skip
async def test_a_body_is_refused_unread(head: bytes) -> None:
    async with serving() as bench, await bench.connect() as stream:
        await stream.send_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n" + b"1\r\nx\r\n" * 1000)
        data = await read_all(stream)
        assert data.startswith(b"HTTP/1.1 413 ")
        assert data.count(b"HTTP/") == 1
        assert bench.asked == 0


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("http://localhost/readyz", 200),
        ("HTTP://localhost:80/readyz?x", 200),
        ("http://localhost", 404),
        ("http://elsewhere.example/readyz", 421),
    ],
)
async def test_a_target_as_proxies_get_it_is_answered_for_its_host(target: str, status: int) -> None:
    async with serving() as bench, await bench.connect() as stream:
        await stream.send_all(f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        assert (await read_answer(stream))[0] == status


async def test_an_empty_body_is_none() -> None:
    async with serving() as bench, await bench.connect() as stream:
        await stream.send_all(b"POST /readyz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n" + CLOSING)
        data = await read_all(stream)
        assert [data.count(b"HTTP/1.1 405 "), data.count(b"HTTP/1.1 200 ")] == [1, 1]


async def test_an_answer_to_head_has_no_body_and_one_by_http_1_0_ends_the_connection() -> None:
    async with serving() as bench, await bench.connect() as stream:
        old = READY.replace(b"HTTP/1.1", b"HTTP/1.0")
        await stream.send_all(READY.replace(b"GET", b"HEAD") + old + READY)
        first, second = (await read_all(stream)).split(b"HTTP/1.1 ")[1:]
        assert first.lower().count(b"\r\ncontent-length: 6\r\n") == 1
        assert first.endswith(b"\r\n\r\n")
        assert second.endswith(b"\r\n\r\nready\n")


async def test_who_goes_before_its_answers_is_no_fault_of_ours() -> None:
    async with serving() as bench:
        stream = await bench.connect()
        await stream.send_all(READY * 20)
        await bench.until(lambda: bench.asked > 0)
        stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        stream.socket.close()
        await bench.until(lambda: bench.counters.count == 0)


async def test_a_server_that_has_ended_by_a_fault_serves_again() -> None:
    bench = Bench()
    for _ in range(2):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bench.server.run)
            assert (await bench.get("/healthz"))[0] == 200
            nursery.cancel_scope.cancel()
    bench.server.close()


def test_an_address_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LocalError, match=f"cannot listen for HTTP on 127.0.0.1:{port}: Address already in use"):
            HttpServer(HttpSettings(port=port), lambda *_: None, HttpCounters(), lambda _: None)  # type: ignore[arg-type,return-value]
    assert BACKLOG > 0


def test_a_host_that_was_looked_up_is_not_looked_up_again_where_messages_wait() -> None:
    settings = HttpSettings(host="nowhere.invalid", port=0)
    server = HttpServer(settings, lambda *_: None, HttpCounters(), lambda _: None, place="127.0.0.1")  # type: ignore[arg-type,return-value]
    assert server.host == "127.0.0.1"
    server.close()
