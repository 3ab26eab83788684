"""Figure 3: what is lost of a pre-settled stream that outruns its subscriber.

A process sends 300,000 numbered messages as fast as its credit allows, closes its connection right behind the last one,
waits for the router's close, as every client does, and exits. Another process grants 250, and 250 more each time when
these are used up. It reports what is missing, and whether the order was kept.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from typing import Any

from tests.measure.credit.client import Loop
from tests.measure.credit.links import Publisher, message
from tests.measure.credit.stand import HOPS, Line, Row, Stand, hops_text, new_address
from tests.measure.credit.tasks import Parent, Task

TITLE = "a pre-settled stream that outruns its subscriber"
COUNT = 300_000
BATCH = 250
DROPPED = "droppedPresettledDeliveries"
LIMIT_S = 120.0
QUIET_S = 5.0
"""What has not come so long after the publisher was gone, and after the message before it, is lost."""
NUMBER = struct.Struct(">I")
PADDING = b"x" * 96


def measure(stand: Stand) -> Iterator[Row]:
    """A row for each number of hops."""
    with stand.line() as line:
        for hops in HOPS:
            yield _stream(line, hops)


def _stream(line: Line, hops: int) -> Row:
    address = new_address()
    before = sum(line.ask(DROPPED).values())
    with Task(subscribe, line.url(), address) as subscriber, Task(publish, line.url(hops), address) as publisher:
        fault = publisher.hear(LIMIT_S)
        publisher.wait_ended()
        subscriber.tell("the publisher is gone")
        received, disordered, seconds = subscriber.hear(LIMIT_S)
    lost = COUNT - received
    measured = f"{lost:,} lost, {received / seconds:,.0f} messages/s"
    if lost:
        dropped = sum(line.ask(DROPPED).values()) - before
        measured += f"; {lost / COUNT:.1%}, the routers say that they dropped {dropped:,}"
    if disordered:
        measured += f", {disordered:,} out of order"
    if fault:
        measured += f", the publisher was told {fault}"
    return Row(3, f"{COUNT:,} pre-settled messages, {hops_text(hops)}", measured, "none lost", not (lost or disordered))


def publish(_parent: Parent, url: str, address: str) -> Any:
    """In a process: send all, close, and be gone. Returns: what the router held against it."""
    loop = Loop()
    client = loop.connect(url)

    def send(publisher: Publisher) -> None:
        while publisher.credit > 0 and publisher.sent < COUNT:
            publisher.send(message(NUMBER.pack(publisher.sent) + PADDING))
            if publisher.sent == COUNT:
                client.close()

    client.publisher(address, presettled=True).on_credit = send
    loop.run_until(lambda: client.is_closed, LIMIT_S, "the end of the stream")
    return client.fault


def subscribe(parent: Parent, url: str, address: str) -> tuple[int, int, float]:
    """In a process: take what comes. Returns: messages, how many were not the next one, seconds from first to last."""
    loop = Loop()
    subscriber = loop.connect(url).subscriber(address, credit=BATCH, top_up_at=0)
    began = ended = 0.0
    following, disordered = 0, 0

    def take(data: bytes) -> None:
        nonlocal began, ended, following, disordered
        ended = time.monotonic()
        began = began or ended
        (number,) = NUMBER.unpack_from(data, len(data) - NUMBER.size - len(PADDING))
        disordered += number < following
        following = number + 1

    subscriber.on_message = take
    parent.run_until_told(loop)
    gone = time.monotonic()
    loop.run_until(
        lambda: subscriber.received == COUNT or time.monotonic() - max(gone, ended) > QUIET_S, LIMIT_S, "the end"
    )
    loop.close()
    return subscriber.received, disordered, max(ended - began, 1e-9)
