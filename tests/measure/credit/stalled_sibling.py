"""Figure 4: what a link loses when another link of its connection is stalled.

A publisher and a subscriber, each a process with two connections, pass messages as fast as credit allows, in short
rounds on the one connection and the other in turns, so that whatever else the machine does meets both. One of the two
carries a second link, at both ends, to another address: its subscriber grants one credit and never settles, its
publisher sends whatever it may. What counts is the median of the ratios of two rounds in a row.
"""

from __future__ import annotations

import operator
import statistics
import time
from collections.abc import Iterator

from tests.measure.credit.client import Loop
from tests.measure.credit.links import Publisher, message
from tests.measure.credit.stand import HOPS, Line, Row, Stand, hops_text, new_address
from tests.measure.credit.tasks import Parent, Task

TITLE = "throughput beside a stalled sibling"
COUNT = 3_000
"""Messages of a round."""
ROUNDS = 40
"""Of each kind."""
CREDIT = 250
WANTED = 0.95
LIMIT_S = 60.0
BODY = message(b"x" * 100)


def measure(stand: Stand) -> Iterator[Row]:
    """A row for each number of hops."""
    with stand.line() as line:
        for hops in HOPS:
            yield _compare(line, hops)


def _compare(line: Line, hops: int) -> Row:
    rates: dict[bool, list[float]] = {False: [], True: []}
    addresses = (new_address(), new_address())
    with Task(subscribe, line.url(), addresses), Task(publish, line.url(hops), addresses) as publisher:
        for number in range(2 * ROUNDS + 2):
            is_beside = bool(number % 2)
            publisher.tell(is_beside)
            seconds = publisher.hear(LIMIT_S)
            if number >= 2:  # the first two warm up
                rates[is_beside].append(COUNT / seconds)
    without, beside = (statistics.median(rates[is_beside]) for is_beside in (False, True))
    ratio = statistics.median(map(operator.truediv, rates[True], rates[False]))
    measured = f"{ratio:.2f} ({beside:,.0f} messages/s beside one, {without:,.0f} without)"
    return Row(4, f"ratio of throughput, {hops_text(hops)}", measured, f"at least {WANTED}", ratio >= WANTED)


def stalled(address: str) -> str:
    """The address of the link that is stalled beside that one."""
    return f"{address}/stalled"


def publish(parent: Parent, url: str, addresses: tuple[str, str]) -> None:
    """In a process: rounds on the connection that it is told; tells the seconds to the last outcome of each."""
    loop = Loop()
    clients = [loop.connect(url) for _ in addresses]
    publishers = [client.publisher(address) for client, address in zip(clients, addresses, strict=True)]
    clients[1].publisher(stalled(addresses[1])).be_busy(BODY)
    loop.run_until(lambda: all(publisher.credit > 0 for publisher in publishers), LIMIT_S, "credit")
    while True:
        publisher = publishers[parent.run_until_told(loop)]
        parent.tell(_round(loop, publisher, publisher.sent + COUNT))


def _round(loop: Loop, publisher: Publisher, end: int) -> float:
    """Send until *end* messages have been sent on the link. Returns: seconds to the outcome of the last."""
    began = time.monotonic()
    publisher.be_busy(BODY, end)
    loop.run_until(lambda: publisher.outcomes.total() == end, LIMIT_S, "all outcomes")
    return time.monotonic() - began


def subscribe(parent: Parent, url: str, addresses: tuple[str, str]) -> None:
    """In a process: take what comes, but for the link that is stalled."""
    loop = Loop()
    clients = [loop.connect(url) for _ in addresses]
    for client, address in zip(clients, addresses, strict=True):
        client.subscriber(address, credit=CREDIT, top_up_at=CREDIT // 2)
    clients[1].subscriber(stalled(addresses[1]), credit=1, settles=False)
    parent.run_until_told(loop)
