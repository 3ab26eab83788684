"""Figure 8: how evenly ten busy publishers share one subscriber's credit.

Three routers in a line, the subscriber at R1, ten publishers that send whatever they may, placed (4, 3, 3), (1, 1, 8)
and (0, 0, 10) at R1, R2 and R3. The subscriber tops up 100 or 5 at half, and counts whose messages it gets. Jain's
index of these counts is 1 when all are equal, and 1/10 when one publisher gets everything.

Source: R. Jain, D. Chiu, W. Hawe: A quantitative measure of fairness and discrimination, DEC TR-301, 1984.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Sequence

from tests.measure.credit.client import Loop
from tests.measure.credit.links import message
from tests.measure.credit.stand import Line, Row, Stand, new_address
from tests.measure.credit.tasks import Parent, Task

TITLE = "fair shares of one subscriber's credit"
PLACES = ((4, 3, 3), (1, 1, 8), (0, 0, 10))
CREDITS = (100, 5)
WARM_UP_S = 0.5
COUNT_S = 2.5
WANTED = 0.95
NUMBER = struct.Struct(">I")
PADDING = b"x" * 96


def measure(stand: Stand) -> Iterator[Row]:
    """A row for each placement and credit."""
    with stand.line(3) as line:
        for places in PLACES:
            for credit in CREDITS:
                yield _share(line, places, credit)


def jain(counts: Sequence[int]) -> float:
    """Jain's index of fairness, 1/n to 1; 0 when there is nothing to share."""
    squares = len(counts) * sum(count * count for count in counts)
    return sum(counts) ** 2 / squares if squares else 0.0


def _share(line: Line, places: Sequence[int], credit: int) -> Row:
    address = new_address()
    urls = [line.url(hops) for hops, count in enumerate(places) for _ in range(count)]
    with Task(subscribe, line.url(), address, credit) as subscriber, Task(publish, urls, address) as publisher:
        assert publisher.hear() == "all have sent"
        subscriber.tell("count")
        counts: Counter[int] = subscriber.hear()
    shares = [counts[number] for number in range(len(urls))]
    index = jain(shares)
    measured = f"{index:.3f} (from {min(shares):,} to {max(shares):,} messages, {sum(shares) / COUNT_S:,.0f}/s in all)"
    return Row(8, f"Jain's index, placed {places}, credit {credit}", measured, f"at least {WANTED}", index >= WANTED)


def publish(parent: Parent, urls: Sequence[str], address: str) -> None:
    """In a process: one busy publisher for each of *urls*."""
    loop = Loop()
    publishers = [loop.connect(url).publisher(address) for url in urls]
    for number, publisher in enumerate(publishers):
        publisher.be_busy(message(NUMBER.pack(number) + PADDING))
    loop.run_until(lambda: all(publisher.sent for publisher in publishers), what="a message of each publisher")
    parent.tell("all have sent")
    parent.run_until_told(loop)


def subscribe(parent: Parent, url: str, address: str, credit: int) -> Counter[int]:
    """In a process: messages by publisher, of a while that begins when the parent says so."""
    loop = Loop()
    counts: Counter[int] = Counter()

    def take(data: bytes) -> None:
        counts[NUMBER.unpack_from(data, len(data) - NUMBER.size - len(PADDING))[0]] += 1

    loop.connect(url).subscriber(address, credit=credit, top_up_at=credit // 2).on_message = take
    parent.run_until_told(loop)
    loop.run_for(WARM_UP_S)
    counts.clear()
    loop.run_for(COUNT_S)
    return counts
