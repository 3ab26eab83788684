"""Figure 1: credit that publishers hold beyond what the subscriber granted.

One process has a subscriber at R1 and ten publishers one to three hops away, so it sees both ends at the same instant:

    beyond = credit of all publishers + messages sent and not received - unspent credit of the subscriber

A router that lends each publisher at most one credit of its own keeps this at or below the number of publishers. It is
looked at after each turn of the loop: at rest, with one credit granted and nothing sent; and under load, while seven of
the ten send whatever they may and the subscriber tops up at half. The largest value counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.measure.credit.client import Loop
from tests.measure.credit.links import NEVER, Publisher, Subscriber, message
from tests.measure.credit.stand import HOPS, Line, Row, Stand, hops_text, new_address

TITLE = "credit held beyond what was granted"
PUBLISHERS = 10
BUSY = 7
LOADS = (5, 100)
"""Credit of the subscriber under load, messages."""
REST_S = 1.0
LOAD_S = 2.0
BODY = message(b"x" * 100)


def measure(stand: Stand) -> Iterator[Row]:
    """Two loads and a rest for each number of hops."""
    with stand.line() as line:
        for hops in HOPS:
            yield row(f"at rest, grant of 1, {hops_text(hops)}", _at_rest(line, hops))
            for credit in LOADS:
                yield row(f"under load, credit {credit}, {hops_text(hops)}", _under_load(line, hops, credit))


def row(what: str, worst: int) -> Row:
    """*worst* is the largest credit beyond what was granted, messages."""
    measured = f"{worst} beyond for {PUBLISHERS} publishers: {worst / PUBLISHERS:.1f} each"
    return Row(1, what, measured, "at most 1 for each publisher", worst <= PUBLISHERS)


def beyond(publishers: Sequence[Publisher], subscriber: Subscriber) -> int:
    """Credit and messages that no grant covers, at this instant."""
    # Less than none: sent without credit, and counted by `sent` already.
    held = sum(max(0, publisher.credit) for publisher in publishers)
    under_way = sum(publisher.sent for publisher in publishers) - subscriber.received
    return held + under_way - subscriber.credit


def _attach(loop: Loop, line: Line, hops: int, credit: int, top_up_at: int) -> tuple[list[Publisher], Subscriber]:
    address = new_address()
    subscriber = loop.connect(line.url()).subscriber(address, credit=credit, top_up_at=top_up_at)
    publishers = [loop.connect(line.url(hops)).publisher(address) for _ in range(PUBLISHERS)]
    return publishers, subscriber


def _at_rest(line: Line, hops: int) -> int:
    loop = Loop()
    publishers, subscriber = _attach(loop, line, hops, credit=1, top_up_at=NEVER)
    loop.run_until(lambda: any(publisher.credit for publisher in publishers), what="any credit")
    seen: list[int] = []
    loop.on_step = lambda: seen.append(beyond(publishers, subscriber))
    loop.run_for(REST_S)
    loop.close()
    return max(seen)


def _under_load(line: Line, hops: int, credit: int) -> int:
    loop = Loop()
    publishers, subscriber = _attach(loop, line, hops, credit, top_up_at=credit // 2)
    seen: list[int] = []
    loop.on_step = lambda: seen.append(beyond(publishers, subscriber))
    for publisher in publishers[:BUSY]:
        publisher.be_busy(BODY)
    loop.run_for(LOAD_S)
    assert subscriber.received > credit, f"only {subscriber.received} messages arrived"
    for publisher in publishers:
        publisher.be_idle()
    loop.on_step = None
    loop.close()
    return max(seen)
