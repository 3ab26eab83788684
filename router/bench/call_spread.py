"""Calls to slow servers: whether all of them work, and how near that comes to the ideal.

Four routers in a ring, a server at each, all callers at one of them. A server works on a few calls at a time, each for
a fixed time, and accepts a call when it begins to work on it, as oslo.messaging does. So the ideal rate is known, and
does not depend on the machine.
"""

from __future__ import annotations

import heapq
import itertools
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import attrs

from router.bench.cases import ATTACH_S
from router.bench.errors import BenchError
from router.bench.load_connection import Connection, Endpoint, Loop
from router.bench.load_endpoints import Caller, parts_of_request
from router.bench.messages import reply_head
from router.bench.tally import Tally
from router.binding import proton_functions as pn
from router.binding.proton_functions import Handle

ROUTERS: Final = 4
OUTSTANDING: Final = (8, 12, 40, 120)
"""Callers, each with one call at a time: more and more than there are workers, of which there are eight."""
CREDIT: Final = 100
WORKERS: Final = 2
SERVICE_S: Final = 0.05
CALL_BYTES: Final = 200
LONGEST_STEP_S: Final = 0.01
_NUMBERS: Final = itertools.count(1)


@attrs.frozen(kw_only=True)
class CallSpread:
    """Spread of calls over the servers."""

    over: str
    """Name of the routers."""
    outstanding: int
    """Number of calls at a time."""
    calls: Sequence[int]
    """Number of calls answered by each server, that of the callers' router first."""
    per_s: float
    share: float
    """Part of the ideal rate, at which every worker works all the time."""


class Server(Endpoint):
    """Answers each call when it has worked on it for `SERVICE_S`.

    `tick` is to be called when `next_time` has come.
    """

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address
        self._replies: Handle = 0
        self._link: Handle = 0
        self._connection: Connection | None = None
        self._queue: deque[tuple[Handle, bytes]] = deque()
        self._working: list[tuple[float, int, bytes]] = []
        self._number = 0
        self.answered = 0

    def begin(self, connection: Connection) -> None:
        """Attach."""
        self._connection = connection
        self._replies = connection.new_sender(connection.new_session(), None, False)
        self._link = connection.new_receiver(connection.new_session(), self._address, CREDIT)

    def attached(self, connection: Connection, link: Handle) -> None:
        """Note that a link was answered."""
        self.is_attached = self.is_attached or link == self._link

    def delivered(self, link: Handle, delivery: Handle) -> None:
        """A call, or the outcome of a reply."""
        if link == self._replies:
            if pn.pn_delivery_updated(delivery):
                pn.pn_delivery_settle(delivery)
            return
        if pn.pn_link_current(link) != delivery or pn.pn_delivery_partial(delivery):
            return
        message = pn.receive(link, pn.pn_delivery_pending(delivery))
        pn.pn_link_advance(link)
        self._queue.append((delivery, message))
        self._take(time.monotonic())

    def _take(self, now: float) -> None:
        while self._queue and len(self._working) < WORKERS:
            delivery, message = self._queue.popleft()
            pn.pn_delivery_update(delivery, pn.ACCEPTED)
            pn.pn_delivery_settle(delivery)
            left = pn.pn_link_credit(self._link)
            pn.pn_link_flow(self._link, max(0, CREDIT - left - len(self._queue)))
            self._number += 1
            heapq.heappush(self._working, (now + SERVICE_S, self._number, message))

    def next_time(self) -> float:
        """Time at which the next call is done, seconds; infinity when there is none."""
        return self._working[0][0] if self._working else float("inf")

    def tick(self, now: float) -> None:
        """Answer what is done, and take what waits.

        Args:
            now: seconds, monotonic.
        """
        while self._working and self._working[0][0] <= now:
            self._answer(heapq.heappop(self._working)[2])
            self._take(now)
        if self._connection is not None:
            self._connection.turn()

    def _answer(self, message: bytes) -> None:
        number, reply_to, rest = parts_of_request(message)
        reply = reply_head(reply_to) + number + rest
        self.answered += 1
        pn.new_delivery(self._replies, self.answered)
        pn.pn_link_send(self._replies, reply, len(reply))
        pn.pn_link_advance(self._replies)


def measure_spill(
    over: str, addresses: Sequence[tuple[str, int]], outstanding: int, seconds: float, warm_s: float
) -> CallSpread:
    """Run *outstanding* callers at the first of *addresses*, with a server at each.

    Args:
        over: name of the routers.
        addresses: host and port of each router.
        outstanding: calls that have no answer yet, at any time.
        seconds: of the measured part.
        warm_s: how long it runs before: the first calls find out where there is credit.
    Raises: BenchError
    """
    loop, tally = Loop(), Tally()
    topic = f"bench/spill/{os.getpid()}/{next(_NUMBERS)}"
    servers = [Server(topic) for _ in addresses]
    callers = [Caller(tally, topic, CALL_BYTES) for _ in range(outstanding)]
    try:
        for number, (place, server) in enumerate(zip(addresses, servers, strict=True)):
            loop.connect(*place, server, f"{topic}/server{number}")
        _wait(loop, over, lambda: all(one.is_attached for one in servers))
        for number, caller in enumerate(callers):
            loop.connect(*addresses[0], caller, f"{topic}/caller{number}")
        _wait(loop, over, lambda: all(one.is_attached for one in callers))
        tally.is_on = True
        for caller in callers:
            caller.resume()
        _run(loop, servers, warm_s)
        before = [server.answered for server in servers]
        began = time.monotonic()
        _run(loop, servers, seconds)
        took = time.monotonic() - began
        calls = [server.answered - count for server, count in zip(servers, before, strict=True)]
        tally.is_on = False
        _run(loop, servers, SERVICE_S)
    finally:
        loop.close()
    per_s = sum(calls) / took
    ideal = len(addresses) * WORKERS / SERVICE_S
    return CallSpread(over=over, outstanding=outstanding, calls=calls, per_s=per_s, share=per_s / ideal)


def _wait(loop: Loop, over: str, is_attached: Callable[[], bool]) -> None:
    if not loop.run_until(is_attached, ATTACH_S):
        raise BenchError(f"spill, {over}: not everything was attached within {ATTACH_S:g} s")


def _run(loop: Loop, servers: Sequence[Server], seconds: float) -> None:
    end = time.monotonic() + seconds
    while (now := time.monotonic()) < end:
        for server in servers:
            server.tick(now)
        due = min(end, *(server.next_time() for server in servers))
        loop.step(max(0.0, min(due - now, LONGEST_STEP_S)))
