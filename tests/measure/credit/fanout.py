"""Figure 9: a fanout to 20 servers, one of which is stopped.

Nineteen servers, each with a connection of its own, at R1 and R2, half and half, and one more in a process that gets
SIGSTOP after a part of the messages: its sockets stay open, and nobody reads them. It is at the publisher's router
R1, then at R2, beside healthy ones in both. All grant 100 and top up at half, as oslo.messaging's servers do; the
messages are pre-settled, as its fanout casts are, and numbered. Wanted: the nineteen get every one, and the
publisher, which sends whatever it may, is held up no longer than the grace of a second. Reported: what the stopped
one missed, and when it has messages again after SIGCONT.
"""

from __future__ import annotations

import struct
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from tests.measure.credit.client import Loop
from tests.measure.credit.links import Publisher, message
from tests.measure.credit.stand import Line, Row, Stand, ms, new_address
from tests.measure.credit.tasks import Parent, Task

TITLE = "fanout to 20 servers, one stopped"
HEALTHY = 19
CREDIT = 100
BEFORE, COUNT = 500, 3000
"""Messages before the stop, and in all."""
GRACE_S = 1.0
SLACK_S = 0.5
"""Beyond the grace: for the machine."""
LIMIT_S = 20.0
QUIET_S = 3.0
"""What has not come so long after the message before it is lost."""
EVERY_S = 0.05
"""Between two probes, before all subscribers are known and after the stopped one goes on; and between two looks."""
PROBE, COUNTED, AFTER = 0, 1, 2
"""What a message is for; its first number."""
HEAD = struct.Struct(">BI")
PADDING = b"x" * 95


def measure(stand: Stand) -> Iterator[Row]:
    """A row for each place of the stopped one."""
    with stand.line(2) as line:
        yield _fanout(line, "at the publisher's router", 0)
        yield _fanout(line, "at another, beside healthy ones", 1)


def _data(what: int, number: int) -> bytes:
    return message(HEAD.pack(what, number) + PADDING)


def _fanout(line: Line, where: str, hops: int) -> Row:
    address = new_address("multicast")
    places = [line.url(number % 2) for number in range(HEALTHY)]
    loop = Loop()
    publisher = loop.connect(line.url()).publisher(address, presettled=True)
    with Task(serve, places, address) as healthy, Task(serve, [line.url(hops)], address) as stopped:
        _probe_until(loop, publisher, PROBE, lambda: healthy.has_told and stopped.has_told)
        assert (healthy.hear(), stopped.hear()) == ("ready", "ready")
        pause_s, sent = _send_all(loop, publisher, stopped)
        got = _counts(healthy, sent)
        stopped.go_on()
        began = time.monotonic()
        # Its own count of what it got as long as it was stopped comes with the first answer.
        _probe_until(loop, publisher, AFTER, lambda: _ask(stopped)[0][AFTER] > 0)
        back_s = time.monotonic() - began
        missed = sent - _ask(stopped)[0][COUNTED]
    loop.close()
    complete = sum(count == COUNT for count in got)
    measured = (
        f"{complete} got all {COUNT:,}"
        + ("" if complete == HEALTHY else f", the others {min(got):,} or more")
        + ("" if sent == COUNT else f", only {sent:,} could be sent")
        + f"; longest pause {ms(pause_s)}; the stopped one missed {missed:,}, is served again after {ms(back_s)}"
    )  # fmt: skip
    is_met = complete == HEALTHY and pause_s <= GRACE_S + SLACK_S
    return Row(9, f"one stopped {where}", measured, f"{HEALTHY} get all, pauses up to {ms(GRACE_S + SLACK_S)}", is_met)


def _probe_until(loop: Loop, publisher: Publisher, what: int, is_so: Any) -> None:
    """Send a message now and then until *is_so*."""
    due = time.monotonic()

    def is_over() -> bool:
        nonlocal due
        if time.monotonic() >= due and publisher.credit > 0:
            due = time.monotonic() + EVERY_S
            publisher.send(_data(what, 0))
        return bool(is_so())

    loop.run_until(is_over, LIMIT_S, "a probe at each server")


def _send_all(loop: Loop, publisher: Publisher, stopped: Task) -> tuple[float, int]:
    """Send as fast as credit allows. Returns: the longest time between two messages, and how many were sent."""
    times: list[float] = []

    def send(publisher: Publisher) -> None:
        while publisher.credit > 0 and len(times) < COUNT:
            if len(times) == BEFORE:
                stopped.stop()
            publisher.send(_data(COUNTED, len(times)))
            times.append(time.monotonic())

    publisher.on_credit = send
    send(publisher)
    began = time.monotonic()
    loop.run_until(lambda: len(times) == COUNT or time.monotonic() - began > LIMIT_S, 2 * LIMIT_S)
    publisher.be_idle()
    ended = times[-1] if len(times) == COUNT else time.monotonic()
    return max(later - earlier for earlier, later in zip(times, [*times[1:], ended], strict=True)), len(times)


def _ask(task: Task) -> Sequence[Counter[int]]:
    """Messages by what they were for, of each server of a process."""
    task.tell("count")
    counts: Sequence[Counter[int]] = task.hear()
    return counts


def _counts(healthy: Task, sent: int) -> list[int]:
    """Messages that each healthy server has got, once they are all there or no more come."""
    found: list[int] = []
    changed = time.monotonic()
    while time.monotonic() - changed < QUIET_S and (not found or min(found) < sent):
        before, found = found, [counts[COUNTED] for counts in _ask(healthy)]
        if found != before:
            changed = time.monotonic()
        time.sleep(EVERY_S)
    return found


def serve(parent: Parent, urls: Sequence[str], address: str) -> None:
    """In a process: a server for each of *urls*; says "ready" when all have a probe, then its counts when asked."""
    loop = Loop()
    servers: list[Counter[int]] = [Counter() for _ in urls]
    is_ready = False

    def begin(counts: Counter[int], url: str) -> None:
        def take(data: bytes) -> None:
            nonlocal is_ready
            counts[data[len(data) - HEAD.size - len(PADDING)]] += 1
            if not is_ready and all(servers):
                is_ready = True
                parent.tell("ready")

        subscriber = loop.connect(url).subscriber(address, credit=CREDIT, top_up_at=CREDIT // 2)
        subscriber.on_message = take

    for counts, url in zip(servers, urls, strict=True):
        begin(counts, url)
    while True:
        parent.run_until_told(loop)
        parent.tell(servers)
