"""Queue of the control messages of one neighbor, which passes on the news of many routers: a flow for each of these.

A new flow goes before those that are old, which have turns, by bytes: news of an honest router doesn't wait behind a
flood in the name of others. A flow that is emptied keeps its place among the old ones, and is forgotten when its turn
comes: nobody comes first more than once in a round, and a flood in many names doesn't keep the old ones from their
turns. Messages of one origin stay in their order.

Source: RFC 8290 for flows that are new and those that are old, and for dropping from the longest one; Goyal, Vin, Cheng
(1996), "Start-time fair queueing", for turns and accounts.
"""

from __future__ import annotations

import heapq
import re
from collections import deque
from typing import Final

import attrs

MESSAGE_BYTES: Final = 64
"""Memory that each message takes besides its own bytes."""
MOST_FLOWS: Final = 8192
"""Maximum number of origins with a flow of their own; those beyond share one."""
SEARCHED_BYTES: Final = 8192
"""Size of the beginning of a message, in which its origin is looked for, bytes."""
_ORIGIN: Final = re.compile(rb"\x02id[\xa0\xa1\xa3](.)", re.DOTALL)
"""The key `id` and the head of a binary, string or symbol, in a message as every router writes it."""
_NO_ORIGIN: Final = b""


@attrs.define(eq=False)
class OriginFlow:
    """Messages that wait of one origin."""

    start: int
    """Virtual time at which the origin's next message begins to be served."""
    messages: deque[bytes] = attrs.field(factory=deque)
    bytes: int = 0


class ControlMessageQueue:
    """Messages that wait, fairly by origin."""

    def __init__(self) -> None:
        self.bytes = 0
        """Bytes of all messages that wait, and of what each takes besides."""
        self._flows: dict[bytes, OriginFlow] = {}
        self._line: list[tuple[bool, int, int, bytes]] = []
        """Heap of all flows: whether it is old, virtual time, number of the place, origin."""
        self._time = 0
        """Virtual time at which the message taken last began to be served."""
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
            flow = self._flows[origin] = OriginFlow(self._time)
            self._line_up(origin, flow, is_old=False)
        flow.messages.append(message)
        self._account(flow, message, 1)

    def take(self) -> bytes:
        """Take out the next message. Raises: LookupError when there is none."""
        if not self._count:
            raise LookupError("no message waits")
        flow = None
        while flow is None:
            origin = heapq.heappop(self._line)[-1]
            flow = self._flows[origin]
            self._time = max(self._time, flow.start)
            if not flow.messages:
                del self._flows[origin]
                flow = None
        message = flow.messages.popleft()
        self._account(flow, message, -1)
        flow.start += _size(message)
        self._line_up(origin, flow, is_old=True)
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
        longest = [(-flow.bytes, number, flow) for number, flow in enumerate(self._flows.values())]
        heapq.heapify(longest)
        while self.bytes > most_bytes and self._count > 1:
            _, number, flow = longest[0]
            self._account(flow, flow.messages.popleft(), -1)
            heapq.heapreplace(longest, (-flow.bytes, number, flow))
        return before - self._count

    def _line_up(self, origin: bytes, flow: OriginFlow, *, is_old: bool) -> None:
        self._places += 1
        heapq.heappush(self._line, (is_old, flow.start, self._places, origin))

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
