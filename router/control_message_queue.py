"""Queue of the control messages of one neighbor, which passes on the news of many routers: a flow for each of these.

A message whose flow is empty goes before flows with a backlog: news of an honest router doesn't wait behind a flood in
the name of others. A flow that is emptied is remembered with what it has used, so that nobody comes first again and
again: it may be ahead of a flow that always has a backlog by `CREDIT_BYTES`, and is then served in turn as all are, by
bytes. Messages of one origin stay in their order.

Source: RFC 8290 for flows that are new and those that are old, and for dropping from the longest one; Goyal, Vin, Cheng
(1996), "Start-time fair queueing", for turns and accounts.
"""

from __future__ import annotations

import heapq
import re
from collections import deque
from typing import Final

import attrs

CREDIT_BYTES: Final = 8192
"""By so much a flow may have been served less than those with a backlog, and catch up."""
MESSAGE_BYTES: Final = 64
"""Taken by each message besides its own."""
MOST_FLOWS: Final = 8192
"""Origins beyond these share a flow."""
MOST_STALE: Final = 100
"""Places in line that flows have given up, beside as many as there are flows."""
SEARCHED_BYTES: Final = 8192
"""Beginning of a message, in which its origin is looked for."""
_ORIGIN: Final = re.compile(rb"\x02id[\xa0\xa1\xa3](.)", re.DOTALL)
"""The key `id` and the head of a binary, string or symbol, in a message as every router writes it."""
_NO_ORIGIN: Final = b""


@attrs.define(eq=False)
class OriginFlow:
    """Messages that wait of one origin."""

    start: int
    """Virtual time at which its next message begins to be served."""
    place: int = 0
    """Number of its present place in line."""
    messages: deque[bytes] = attrs.field(factory=deque)
    bytes: int = 0


class ControlMessageQueue:
    """Messages that wait, fairly by origin."""

    def __init__(self) -> None:
        self.bytes = 0
        """Of all messages, and what each takes besides."""
        self._flows: dict[bytes, OriginFlow] = {}
        self._line: list[tuple[bool, int, int, bytes]] = []
        """Heap of flows: whether it is old, virtual time, number of the place, origin. One with nothing that waits is
        forgotten when it is first."""
        self._time = 0
        """Virtual time: at which the message taken last began to be served."""
        self._places = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, message: bytes) -> None:
        """Have *message* wait, as the last of its origin."""
        origin = origin_of(message)
        if origin not in self._flows and len(self._flows) >= MOST_FLOWS:
            origin = _NO_ORIGIN
        flow = self._flows.get(origin)
        if flow is None:
            flow = self._flows[origin] = OriginFlow(self._time - CREDIT_BYTES)
        if not flow.messages:
            flow.start = max(flow.start, self._time - CREDIT_BYTES)
            self._line_up(origin, flow, flow.start, is_old=flow.start >= self._time)
        flow.messages.append(message)
        self._account(flow, message, 1)

    def take(self) -> bytes:
        """Take out the next message. Raises: LookupError when there is none."""
        if not self._count:
            raise LookupError("no message waits")
        origin, flow = self._next_flow()
        while not flow.messages:  # its credit is whole again, or all of it was dropped
            del self._flows[origin]
            origin, flow = self._next_flow()
        message = flow.messages.popleft()
        self._account(flow, message, -1)
        self._time = max(self._time, flow.start)
        flow.start += _size(message)
        self._line_up(origin, flow, flow.start if flow.messages else flow.start + CREDIT_BYTES, is_old=True)
        if not self._count:
            self._flows.clear()
            self._line.clear()
        return message

    def shorten(self, most_bytes: int) -> int:
        """Drop the oldest messages of the longest flows: what is newer says more.

        Args:
            most_bytes: that may be left; one message stays in any case.
        Returns: messages dropped.
        """
        before = self._count
        longest = [(-flow.bytes, flow.place, flow) for flow in self._flows.values()]
        heapq.heapify(longest)
        while self.bytes > most_bytes and self._count > 1:
            _, place, flow = longest[0]
            self._account(flow, flow.messages.popleft(), -1)
            heapq.heapreplace(longest, (-flow.bytes, place, flow))
        return before - self._count

    def _next_flow(self) -> tuple[bytes, OriginFlow]:
        while True:
            _, _, place, origin = heapq.heappop(self._line)
            flow = self._flows.get(origin)
            if flow is not None and flow.place == place:
                return origin, flow

    def _line_up(self, origin: bytes, flow: OriginFlow, at: int, *, is_old: bool) -> None:
        self._places += 1
        flow.place = self._places
        heapq.heappush(self._line, (is_old, at, self._places, origin))
        if len(self._line) > 2 * len(self._flows) + MOST_STALE:
            places = {each.place for each in self._flows.values()}
            self._line = [entry for entry in self._line if entry[2] in places]
            heapq.heapify(self._line)

    def _account(self, flow: OriginFlow, message: bytes, sign: int) -> None:
        size = sign * _size(message)
        self._count += sign
        self.bytes += size
        flow.bytes += size


def _size(message: bytes) -> int:
    return len(message) + MESSAGE_BYTES


def origin_of(message: bytes) -> bytes:
    """The id of the router that a control message comes from, as it stands there; empty where it isn't found."""
    found = _ORIGIN.search(message, 0, SEARCHED_BYTES)
    if found is None:
        return _NO_ORIGIN
    return message[found.end() : found.end() + found[1][0]]
