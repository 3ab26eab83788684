"""Figure 6: calls and replies with oslo.messaging's own credit, and what credit and distance let a stream do.

Calls: the server at R1 grants 100 and tops up at half as it accepts, which it does before it answers; each process that
calls has one reply address with a credit of 200, and one publishing link for all its callers; messages go to the client
library whether there is credit or not. All as oslo.messaging's driver has it, but on proton's bare engine: the driver
itself takes 250 us of CPU for each call, and would hide what the routers take. Callers call again as soon as they are
answered. The CPU that all routers took for a call stands beside: unlike the rate it hardly depends on what else the
machine does. Given routers to compare with (`--against`), both are measured in turns, and the rate must be 97 % of
theirs.

Streams: one publisher that sends whatever it may, a subscriber that tops up at half. Beside each rate stands the bound,
credit / round trip; the round trip is the median time from a grant of one credit to the arrival of the message that was
waiting for it.
"""

from __future__ import annotations

import statistics
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack

import attrs

from tests.measure.credit.client import Client, Loop
from tests.measure.credit.links import Publisher, message
from tests.measure.credit.stand import HOPS, Line, Row, Stand, hops_text, ms, new_address, percentile
from tests.measure.credit.tasks import Parent, Task

TITLE = "calls with oslo.messaging's credit; streams"
CALLERS = {1: 1, 50: 5, 500: 10}
"""Callers, and the connections that they share."""
SERVER_CREDIT, REPLY_CREDIT = 100, 200
CALL_BYTES = 1024
WARM_UP_S = 0.5
CALL_S = 2.0
TURNS = 3
"""With each kind of routers, when there are two."""
WANTED = 0.97

STREAM_CREDITS = (1, 10, 100, 1000)
STREAM_S = 1.0
ROUND_TRIPS = 200
SETTLE_S = 0.002
"""For the next message to wait in its place before the next grant."""
BODY = message(b"x" * 100)
TTL_HEADER = b"\x00\x53\x70\xc0\x08\x03\x40\x40\x70" + struct.pack(">I", 60_000)
"""durable and priority left out, ttl of a minute: what the driver sends with a call without a timeout of its own."""
FIELDS = struct.Struct(">IdH")
"""At the head of a payload: number of the caller, time of the call, length of the reply address behind it."""


def measure(stand: Stand) -> Iterator[Row]:
    """A row for each number of callers and hops, then the streams."""
    with ExitStack() as stack:
        line = stack.enter_context(stand.line())
        other = stack.enter_context(stand.line(is_other=True)) if stand.against is not None else None
        for callers in CALLERS:
            for hops in (0, *HOPS):
                yield _compare(line, other, hops, callers)
    with stand.line() as line:
        for hops in (0, *HOPS):
            yield _streams(line, hops)


# Calls


@attrs.frozen
class Calls:
    """What one turn came to."""

    rate: float
    """Calls in a second."""
    median_s: float
    p99_s: float
    cpu_s: float
    """Of all routers together, for each call."""

    def __str__(self) -> str:
        return f"{self.rate:,.0f} calls/s, p50 {ms(self.median_s)}, p99 {ms(self.p99_s)}, {self.cpu_s * 1e6:.0f} us"


def _compare(line: Line, other: Line | None, hops: int, callers: int) -> Row:
    what = f"{callers} caller{'s' if callers > 1 else ''}, {hops_text(hops)}"
    if other is None:
        return Row(6, what, str(_calls(line, hops, callers)), "reported: rate, latencies, CPU for a call")
    ours, theirs = [], []
    for _ in range(TURNS):
        theirs.append(_calls(other, hops, callers))
        ours.append(_calls(line, hops, callers))
    mine, its = (sorted(turns, key=lambda calls: calls.rate)[TURNS // 2] for turns in (ours, theirs))
    ratio = mine.rate / its.rate
    return Row(6, what, f"{mine}; the others {its}; ratio {ratio:.3f}", f"at least {WANTED}", ratio >= WANTED)


def _calls(line: Line, hops: int, callers: int) -> Calls:
    address = new_address()
    with Task(serve, line.url(), address), Task(call, line.url(hops), address, callers, CALLERS[callers]) as caller:
        assert caller.hear() == "counting"
        cpu_s = -line.cpu_seconds()
        latencies = caller.hear()
        cpu_s += line.cpu_seconds()
    count = len(latencies)
    return Calls(count / CALL_S, statistics.median(latencies), percentile(latencies, 0.99), cpu_s / count)


def request(address: str, reply_to: str, payload: bytes) -> bytes:
    """A call as the driver encodes it, but for the body."""
    # message-id, user-id, to, subject, reply-to
    fields = [b"\xa1\x04call", b"\x40", _text(address), b"\x40", _text(reply_to)]
    body = b"".join(fields)
    properties = b"\x00\x53\x73\xd0" + struct.pack(">II", len(body) + 4, len(fields)) + body
    return message(payload, header=TTL_HEADER + properties)


def _text(value: str) -> bytes:
    return b"\xa1" + bytes([len(value)]) + value.encode()


def serve(parent: Parent, url: str, address: str) -> None:
    """In a process: answer each call by a link to its caller's reply address."""
    loop = Loop()
    client = loop.connect(url)
    repliers: dict[str, Publisher] = {}

    def answer(data: bytes) -> None:
        payload = data[-CALL_BYTES:]
        _, _, size = FIELDS.unpack_from(payload)
        reply_to = payload[FIELDS.size : FIELDS.size + size].decode()
        if reply_to not in repliers:
            repliers[reply_to] = client.publisher(reply_to, presettled=True)
        repliers[reply_to].send(message(payload))

    client.subscriber(address, credit=SERVER_CREDIT, top_up_at=SERVER_CREDIT // 2).on_message = answer
    parent.run_until_told(loop)


class Caller:
    """A connection with callers that call again as soon as they are answered."""

    def __init__(self, client: Client, address: str, callers: int, latencies: list[float]) -> None:
        self.answered = 0
        self._callers = callers
        self._address = address
        self._latencies = latencies
        self._requests = client.publisher(address)
        self._replies = client.subscriber(None, credit=REPLY_CREDIT, top_up_at=REPLY_CREDIT // 2)
        self._replies.on_message = self._hear

    @property
    def is_ready(self) -> bool:
        """Whether it has a reply address."""
        return self._replies.is_attached

    def begin(self) -> None:
        """Let all callers call."""
        for number in range(self._callers):
            self._call(number)

    def _call(self, number: int) -> None:
        reply_to = self._replies.address
        head = FIELDS.pack(number, time.monotonic(), len(reply_to)) + reply_to.encode()
        self._requests.send(request(self._address, reply_to, head.ljust(CALL_BYTES, b"x")))

    def _hear(self, data: bytes) -> None:
        number, began, _ = FIELDS.unpack_from(data, len(data) - CALL_BYTES)
        self._latencies.append(time.monotonic() - began)
        self.answered += 1
        self._call(number)


def call(parent: Parent, url: str, address: str, callers: int, connections: int) -> list[float]:
    """In a process: *callers* on so many connections. Returns: seconds that each call of the counted time took."""
    loop = Loop()
    latencies: list[float] = []
    clients = [Caller(loop.connect(url), address, callers // connections, latencies) for _ in range(connections)]
    loop.run_until(lambda: all(client.is_ready for client in clients), what="reply addresses")
    for client in clients:
        client.begin()
    loop.run_until(lambda: all(client.answered for client in clients), what="the first answers")
    loop.run_for(WARM_UP_S)
    latencies.clear()
    parent.tell("counting")
    loop.run_for(CALL_S)
    return list(latencies)


# Streams


def _streams(line: Line, hops: int) -> Row:
    round_trip = _round_trip(line, hops)
    rates = []
    for credit in STREAM_CREDITS:
        address = new_address()
        with Task(subscribe, line.url(), address, credit) as subscriber, Task(publish, line.url(hops), address):
            rate = subscriber.hear()
        rates.append(f"credit {credit}: {rate:,.0f} of {credit / round_trip:,.0f}")
    what = f"stream, {hops_text(hops)}, round trip {round_trip * 1000:.2f} ms"
    return Row(6, what, " · ".join(rates), "reported: messages/s of credit / round trip")


def _round_trip(line: Line, hops: int) -> float:
    """Seconds from a grant to the arrival of the message that waited for it, the median of many."""
    loop = Loop()
    address = new_address()
    subscriber = loop.connect(line.url()).subscriber(address, credit=1)
    loop.connect(line.url(hops)).publisher(address).be_busy(BODY)
    took: list[float] = []
    loop.run_until(lambda: subscriber.credit == 0, what="a message")
    for _ in range(ROUND_TRIPS):
        _spin(loop, SETTLE_S)
        began = time.monotonic()
        subscriber.grant(1)
        loop.run_until(lambda: subscriber.credit == 0, what="a message")
        took.append(time.monotonic() - began)
    loop.close()
    return statistics.median(took)


def _spin(loop: Loop, seconds: float) -> None:
    """Let time pass without sleeping: under load nobody sleeps either."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        loop.step(0)


def publish(parent: Parent, url: str, address: str) -> None:
    """In a process: send whatever credit allows."""
    loop = Loop()
    loop.connect(url).publisher(address).be_busy(BODY)
    parent.run_until_told(loop)


def subscribe(_parent: Parent, url: str, address: str, credit: int) -> float:
    """In a process: messages in a second, once it has begun."""
    loop = Loop()
    subscriber = loop.connect(url).subscriber(address, credit=credit, top_up_at=credit // 2)
    loop.run_until(lambda: subscriber.received >= credit, what="the first messages")
    loop.run_for(STREAM_S / 4)
    before = subscriber.received
    loop.run_for(STREAM_S)
    return (subscriber.received - before) / STREAM_S
