"""Two ways to count the expected wait of a balanced call, beside each other in a model.

    messages   messages without an outcome per subscriber, and for each unit of cost so many messages more;
    time       the same messages, each as long as one took there lately (a moving average), and the path's delay.

A model of choices alone: no credit, no frames. Four routers in a ring with a server at each, unless a row says
otherwise; each server has two workers. Routers know at once what they have sent themselves, and of others what was
told every 10 ms. Run by `python -m tests.measure.credit.expected_wait`; the table stands in
docs/explanation/balanced.md.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from typing import Literal

import attrs

Way = Literal["messages", "time"]
WORKERS = 2
HOP_S = 0.0005
TELL_S = 0.01
WARM_S, RUN_S = 3.0, 10.0
KEPT = 0.9
"""Part of a moving average that is kept with each new value."""


@attrs.frozen(kw_only=True)
class Case:
    """What is played."""

    name: str
    outstanding: int
    homes: Sequence[int] = (0,)
    """Routers of callers, in turns."""
    service_s: Sequence[float] = (0.05, 0.05, 0.05, 0.05)
    """Time for one call at the server of each router."""
    hop_s: float = HOP_S
    accepts_when_done: bool = False


class Model:
    """One play."""

    def __init__(self, case: Case, way: Way, worth: float) -> None:
        """*worth* of a unit of cost: messages, or a part of the path's delay."""
        self._case, self._way, self._worth = case, way, worth
        self._routers = len(case.service_s)
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._numbers = itertools.count()
        own = range(self._routers)
        self._sent = [[0] * self._routers for _ in own]
        """By router of callers and server: calls without an outcome."""
        self._told = [[0] * self._routers for _ in own]
        self._settle_s = [[case.hop_s] * self._routers for _ in own]
        self._queues: list[deque[tuple[int, float]]] = [deque() for _ in own]
        self._busy = [0] * self._routers
        self._chosen = [[0] * self._routers for _ in own]
        self.done = [0] * self._routers
        self._is_counting = False

    def run(self) -> tuple[float, list[int]]:
        """Share of what all servers can do, and calls by server."""
        for number in range(self._case.outstanding):
            home = self._case.homes[number % len(self._case.homes)]
            self._at(number * 1e-4, lambda now, home=home: self._send(now, home))  # type: ignore[misc]
        self._at(TELL_S, self._tell)
        while self._events and self._events[0][0] <= WARM_S + RUN_S:
            now, _, call = heapq.heappop(self._events)
            self._is_counting = now > WARM_S
            call(now)
        ideal = sum(WORKERS / service for service in self._case.service_s) * RUN_S
        return sum(self.done) / ideal, self.done

    def _at(self, time: float, call: Callable[[float], None]) -> None:
        heapq.heappush(self._events, (time, next(self._numbers), call))

    def _cost(self, one: int, other: int) -> int:
        around = abs(one - other)
        return min(around, self._routers - around)

    def _wait(self, home: int, server: int) -> float:
        messages = self._sent[home][server] + self._told[home][server]
        cost = self._cost(home, server)
        if self._way == "messages":
            return messages + self._worth * cost
        return messages * self._settle_s[home][server] + self._worth * 2 * cost * self._case.hop_s

    def _send(self, now: float, home: int) -> None:
        order = self._chosen[home]
        server = min(range(self._routers), key=lambda one: (self._wait(home, one), order[one]))
        order[server] = max(order) + 1
        self._sent[home][server] += 1
        delay = self._case.hop_s * (1 + self._cost(home, server))
        self._at(now + delay, lambda now: self._arrive(now, server, home, now - delay))

    def _arrive(self, now: float, server: int, home: int, sent: float) -> None:
        self._queues[server].append((home, sent))
        self._work(now, server)

    def _work(self, now: float, server: int) -> None:
        while self._queues[server] and self._busy[server] < WORKERS:
            home, sent = self._queues[server].popleft()
            self._busy[server] += 1
            back = self._case.hop_s * (1 + self._cost(home, server))
            end = now + self._case.service_s[server]
            settled = (end if self._case.accepts_when_done else now) + back
            self._at(settled, lambda now, home=home, sent=sent: self._settle(now, server, home, sent))  # type: ignore[misc]
            self._at(end, lambda now, home=home, back=back: self._finish(now, server, home, back))  # type: ignore[misc]

    def _settle(self, now: float, server: int, home: int, sent: float) -> None:
        count = self._sent[home][server]
        self._sent[home][server] -= 1
        took = (now - sent) / max(1, count)
        self._settle_s[home][server] = KEPT * self._settle_s[home][server] + (1 - KEPT) * took

    def _finish(self, now: float, server: int, home: int, back: float) -> None:
        self._busy[server] -= 1
        self.done[server] += self._is_counting
        self._at(now + back, lambda now: self._send(now, home))
        self._work(now, server)

    def _tell(self, now: float) -> None:
        for home, server in itertools.product(range(self._routers), repeat=2):
            self._told[home][server] = sum(row[server] for row in self._sent) - self._sent[home][server]
        self._at(now + TELL_S, self._tell)


def jain_index(values: Sequence[float]) -> float:
    """Jain's index of fairness: 1 when all are equal."""
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


CASES = (
    *(Case(name=f"{n} calls, accepted when taken", outstanding=n) for n in (8, 12, 40, 120)),
    Case(name="8 calls, accepted when done", outstanding=8, accepts_when_done=True),
    Case(name="40 calls, callers at all routers", outstanding=40, homes=range(4)),
    Case(name="40 calls, one server ten times slower", outstanding=40, service_s=(0.05, 0.5, 0.05, 0.05)),
    Case(name="40 calls, the callers' server ten times slower", outstanding=40, service_s=(0.5, 0.05, 0.05, 0.05)),
    Case(name="4 calls of 5 ms, hops of 5 ms", outstanding=4, service_s=(0.005,) * 4, hop_s=0.005),
)
WAYS: Sequence[tuple[Way, float]] = (("messages", 1.0), ("messages", 0.1), ("time", 1.0))


def main() -> None:
    """Print the table."""
    print("| case | " + " | ".join(f"{way}, {worth:g}" for way, worth in WAYS) + " |")
    print("|---|" + "---|" * len(WAYS))
    for case in CASES:
        cells = []
        for way, worth in WAYS:
            share, done = Model(case, way, worth).run()
            cells.append(f"{share:.2f}, {jain_index(done):.2f}")
        print(f"| {case.name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
