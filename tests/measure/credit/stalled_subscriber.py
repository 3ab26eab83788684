"""Figure 2: messages that the mesh holds for a subscriber that has stopped granting.

The subscriber at R1 tops up ten credits until every publisher has got a message through, then takes what it has
granted and grants no more. Seven publishers three hops away (R4) and three one hop away (R2) send whatever they may
until nothing moves. Held is what was sent and has not arrived; where it is held each router says over management.
Nobody publishes at R1 and R3, so these two must hold nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from tests.measure.credit.client import WAIT_S, Loop
from tests.measure.credit.links import NEVER, Publisher, message
from tests.measure.credit.stand import Row, Stand, new_address

TITLE = "messages held for a stalled subscriber"
CREDIT = 10
PLACES = {3: 7, 1: 3}
"""Publishers by the hops from the subscriber."""
QUIET_S = 0.5
"""Nothing moves any more when nothing was sent or received for so long."""
BODY = message(b"x" * 100)


def measure(stand: Stand) -> Iterator[Row]:
    """One row for how many, one for where."""
    with stand.line() as line:
        loop = Loop()
        address = new_address()
        subscriber = loop.connect(line.url()).subscriber(address, credit=CREDIT, top_up_at=CREDIT // 2)
        publishers: list[Publisher] = []
        for hops, count in PLACES.items():
            publishers += [loop.connect(line.url(hops)).publisher(address) for _ in range(count)]
        for publisher in publishers:
            publisher.be_busy(BODY)
        loop.run_until(lambda: all(publisher.outcomes for publisher in publishers), what="an outcome for each")
        subscriber.top_up_at = NEVER
        changed = time.monotonic()
        before = (-1, -1)

        def is_quiet() -> bool:
            nonlocal before, changed
            now = (sum(publisher.sent for publisher in publishers), subscriber.received)
            if now != before:
                before, changed = now, time.monotonic()
            return subscriber.credit == 0 and time.monotonic() - changed > QUIET_S

        loop.run_until(is_quiet, WAIT_S, "what was granted is used, and rest")
        held = sum(publisher.sent for publisher in publishers) - subscriber.received
        waiting = line.ask("waitingCount")
        loop.close()
    yield Row(
        2,
        "held, 7 publishers at R4, 3 at R2, subscriber at R1",
        f"{held} for {len(publishers)} publishers",
        "at most 1 for each publisher",
        held <= len(publishers),
    )
    bounds = {f"R{hops + 1}": count for hops, count in PLACES.items()}
    places = ", ".join(f"{router}: {count}" for router, count in waiting.items())
    elsewhere = held - sum(waiting.values())
    yield Row(
        2,
        "... where",
        places + (f", {elsewhere} unknown" if elsewhere else ""),
        "at R2 and R4 only, 1 for each publisher",
        not elsewhere and all(count <= bounds.get(router, 0) for router, count in waiting.items()),
    )
