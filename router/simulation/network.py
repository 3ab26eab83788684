"""A network under virtual time: what is in flight, and what happens to it, chosen by a seeded generator.

It moves opaque parcels between pairs of places and calls at given times; it knows nothing of routers.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Hashable

import attrs


@attrs.frozen(kw_only=True)
class NetworkConditions:
    """Delays and losses with which a network treats parcels."""

    delay_s: float = 0.0005
    """Time on the way, seconds."""
    jitter_s: float = 0.0005
    """Maximum random time that is added to the delay of a parcel, seconds."""
    loss: float = 0.0
    """Share of parcels that vanish, 0 to 1."""
    duplication: float = 0.0
    """Share of parcels that arrive twice, 0 to 1."""


class Network:
    """A clock that jumps from one thing to the next, and streams on which parcels keep their order.

    Args:
        rng: decides every delay and loss, so the same seed gives the same run.
    """

    def __init__(self, rng: random.Random, conditions: NetworkConditions) -> None:
        self.now = 0.0
        """Virtual time, seconds."""
        self.conditions = conditions
        self.carried = 0
        """Parcels that arrived."""
        self._rng = rng
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._last: dict[Hashable, float] = {}

    def call_at(self, time: float, call: Callable[[], None]) -> None:
        """Call *call* at a time, or now when that is past; calls of one time in the order of being asked for.

        Args:
            time: virtual time, seconds.
            call: must not block.
        """
        self._count += 1
        heapq.heappush(self._queue, (max(time, self.now), self._count, call))

    def send(self, stream: Hashable, arrive: Callable[[], None], delay_s: float | None = None) -> None:
        """Send a parcel on *stream*: *arrive* is called when it arrives, after all sent on the stream before.

        Args:
            stream: parcels of one stream don't overtake each other.
            arrive: called on arrival.
            delay_s: time on the way, seconds, instead of the network's own.
        """
        conditions = self.conditions
        if conditions.loss and self._rng.random() < conditions.loss:
            return
        copies = 2 if conditions.duplication and self._rng.random() < conditions.duplication else 1
        for _ in range(copies):
            delay = conditions.delay_s if delay_s is None else delay_s
            time = self.now + delay + conditions.jitter_s * self._rng.random()
            last = self._last.get(stream, 0.0)
            if last > time:
                time = last
            self._last[stream] = time
            self.carried += 1
            self._count += 1
            heapq.heappush(self._queue, (time, self._count, arrive))

    def close(self, stream: Hashable) -> None:
        """Forget *stream*, on which nothing will be sent any more."""
        self._last.pop(stream, None)

    def next_time(self) -> float:
        """Time of the next call, seconds; `math.inf` when there is none."""
        return self._queue[0][0] if self._queue else math.inf

    def step(self) -> None:
        """Jump to the next call and make it."""
        self.now, _, call = heapq.heappop(self._queue)
        call()

    def run_until(self, time: float) -> None:
        """Make every call that is due up to *time*, seconds, which it is then."""
        queue = self._queue
        while queue and queue[0][0] <= time:
            self.now, _, call = heapq.heappop(queue)
            call()
        self.now = time
