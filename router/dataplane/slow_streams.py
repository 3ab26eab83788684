"""Messages that are passed on in parts while others wait for the link: they must come fast, or are given up.

A link carries one message at a time, so whoever streams one slowly keeps everybody else from its subscriber. As long as
nobody waits, any pace will do (`unfinished_deliveries.py`). While others do, time beyond what its bytes take at
`STREAM_BYTES_S` is counted for its address. An address has a debt of such time, which passes slowly: its streams are
given up above `MOST_DEBT_S`. While others wait, none is begun above that, and above half of it only those that have
come fast so far: who sends slowly uses up the first half, and leaves the second to the others.
"""

from __future__ import annotations

from math import inf
from typing import Final

from router.core.forwarding.fib import AddressEntry
from router.dataplane.links import EgressLargeMessagesLink, EgressLink, Transfer
from router.dataplane.turn_clock import TurnClock

STREAM_BYTES_S: Final = 8 * 1024 * 1024
"""Rate from which on a stream is not slow, bytes per second."""
MOST_DEBT_S: Final = 0.25
"""Time that slow streams to an address may keep others waiting, seconds; more only as the debt passes."""
DEBT_SHARE: Final = 0.01
"""Part of all time by which the debt of an address passes."""
LOOK_S: Final = 0.05
"""Time between two looks at a message that streams, seconds."""


class Stream:
    """One message that is passed on before its end has come."""

    __slots__ = ("looked_at", "received", "transfer")

    def __init__(self, transfer: Transfer, now: float) -> None:
        self.transfer = transfer
        self.looked_at = now
        """Time of the last look, seconds."""
        self.received = 0
        """Number of bytes that have come since the last look."""


class SlowStreams:
    """The streams of one router, and the debts of their addresses."""

    def __init__(self, clock: TurnClock) -> None:
        self.due = inf
        """Time at which `given_up` is to be called, seconds; infinity when nothing streams."""
        self._clock = clock
        self._streams: dict[EgressLink, Stream] = {}

    def begin(self, transfer: Transfer, link: EgressLink) -> None:
        """Watch a message that begins to leave before its end has come; not on a link that holds up nobody."""
        if not isinstance(link, EgressLargeMessagesLink):
            self._streams[link] = Stream(transfer, self._clock.now)
            self.due = min(self.due, self._clock.now + LOOK_S)

    def receive(self, link: EgressLink, count: int) -> None:
        """Count *count* bytes more of the message that streams on a link."""
        stream = self._streams.get(link)
        if stream is not None:
            stream.received += count

    def may_begin(self, transfer: Transfer, entry: AddressEntry) -> bool:
        """Whether a message may be passed on before its end has come to an address for which others wait."""
        debt_s = self._debt(entry)
        is_fast = transfer.size >= STREAM_BYTES_S * (self._clock.now - transfer.arrived)
        return debt_s <= (MOST_DEBT_S if is_fast else MOST_DEBT_S / 2)

    def given_up(self) -> list[Transfer]:
        """Look at all streams. Returns: the messages to be given up, which are watched no more."""
        now = self._clock.now
        found = []
        for link, stream in list(self._streams.items()):
            transfer = stream.transfer
            if link.current is not transfer or transfer.is_complete:
                del self._streams[link]
                continue
            late_s = now - stream.looked_at - stream.received / STREAM_BYTES_S
            stream.looked_at, stream.received = now, 0
            entry = transfer.entry
            is_slow = late_s > 0 and not transfer.leaving_bytes  # else its receiver is the slower one
            if is_slow and entry is not None and self._is_contended(link):
                entry.stream_debt_s = self._debt(entry) + late_s
                entry.stream_debt_at = now
                if entry.stream_debt_s > MOST_DEBT_S:
                    del self._streams[link]
                    found.append(transfer)
        self.due = now + LOOK_S if self._streams else inf
        return found

    def _debt(self, entry: AddressEntry) -> float:
        return max(0.0, entry.stream_debt_s - DEBT_SHARE * (self._clock.now - entry.stream_debt_at))

    def _is_contended(self, link: EgressLink) -> bool:
        """Whether others wait for the end of the message on a link."""
        controller = link.controller
        return bool(link.waiting) or (controller is not None and controller.keeps_waiting())
