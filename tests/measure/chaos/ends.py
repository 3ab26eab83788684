"""Publishers and subscribers that tell the ledger of every message, outcome and arrival."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from typing import Any

from cproton_ffi import ffi, lib

from tests.measure.chaos.ledger import ACCEPTED, MODIFIED, REJECTED, RELEASED, Ledger, Sink, Source
from tests.measure.credit.client import Client
from tests.measure.credit.links import Publisher, Subscriber

CREDIT = 100
SIZES = (*(60,) * 28, 500, 2_000, 20_000, 70_000)
"""Of fillers, bytes, in this order again and again: one in sixteen needs more than one frame or nearly so."""
HEAD = struct.Struct(">4sIII")
_DATA32 = b"\x00\x53\x75\xb0"
_TAG = struct.Struct(">Q")

SAYS = (*(ACCEPTED,) * 96, RELEASED, RELEASED, MODIFIED, REJECTED)
"""What subscribers say, by turns."""
_STATES = {
    ACCEPTED: lib.PN_ACCEPTED,
    REJECTED: lib.PN_REJECTED,
    RELEASED: lib.PN_RELEASED,
    MODIFIED: lib.PN_MODIFIED,
}
_OUTCOMES = {state: outcome for outcome, state in _STATES.items()}


def encode(source: int, number: int, size: int) -> bytes:
    """A message of one data section, whose filler of *size* bytes follows from its numbers."""
    return HEAD.pack(_DATA32, 8 + size, source, number) + bytes([(source + number) % 251]) * size


def decode(message: bytes) -> tuple[int, int]:
    """The numbers of a message's source and of itself.

    Raises: ValueError when it is damaged.
    """
    if len(message) < HEAD.size:
        raise ValueError(f"{len(message)} bytes")
    head, size, source, number = HEAD.unpack_from(message)
    if head != _DATA32 or size + 8 != len(message):
        raise ValueError(f"{len(message)} bytes that begin with {message[:20].hex()}")
    if message.count((source + number) % 251, HEAD.size) != len(message) - HEAD.size:
        raise ValueError(f"the filler of message {number} of {source} is of another one")
    return source, number


class Sender(Publisher):
    """A sending link; `fill` sends as long as there is credit."""

    ledger: Ledger
    source: Source
    size: int | None = None
    """Of each filler, bytes; None: they differ."""

    def begin(self, ledger: Ledger, source: Source) -> None:
        """Say where it keeps its account."""
        self.ledger = ledger
        self.source = source

    def fill(self, most: int) -> int:
        """Send at most so many. Returns: how many."""
        count = min(most, self.credit)
        for _ in range(count):
            number = self.ledger.sent(self.source)
            size = SIZES[number % len(SIZES)] if self.size is None else self.size
            self.send(encode(self.source.key, number, size))
        return count

    def hear_delivery(self, delivery: Any) -> None:
        """Called by the connection."""
        if not lib.pn_delivery_updated(delivery) or not lib.pn_delivery_settled(delivery):
            return  # a router refuses early what has not all been sent, and settles it then
        if lib.pn_delivery_local_state(delivery):
            return  # two dispositions that were read at once: this is the event of the other one
        state = _OUTCOMES.get(lib.pn_delivery_remote_state(delivery))
        lib.pn_delivery_update(delivery, lib.PN_ACCEPTED)  # so that it shows that it was seen
        tag = lib.pn_delivery_tag(delivery)
        (number,) = _TAG.unpack(ffi.buffer(tag.start, tag.size))
        lib.pn_delivery_settle(delivery)
        if state is not None:
            self.ledger.answered(self.source, number - 1, state)


class Receiver(Subscriber):
    """A receiving link that says its outcomes some time later, when `answer` is called."""

    ledger: Ledger
    sink: Sink
    says: tuple[int, ...] = SAYS
    on_arrival: Callable[[int, int], None] | None = None
    """Called with the numbers of each message that arrives and of its source."""

    def begin(self, ledger: Ledger, sink: Sink) -> None:
        """Say where it keeps its account."""
        self.ledger = ledger
        self.sink = sink
        self._held: deque[tuple[Any, int, int]] = deque()

    def hear_delivery(self, delivery: Any) -> None:
        """Called by the connection."""
        if lib.pn_delivery_aborted(delivery):
            lib.pn_delivery_settle(delivery)
            self._top_up()
            return
        if lib.pn_delivery_partial(delivery) or not lib.pn_delivery_readable(delivery):
            return
        size = lib.pn_delivery_pending(delivery)
        room = ffi.new("char[]", max(1, size))
        lib.pn_link_recv(self._link, room, size)
        self.received += 1
        is_settled = lib.pn_delivery_settled(delivery)
        lib.pn_link_advance(self._link)
        try:
            source, number = decode(ffi.buffer(room, size)[:])
        except ValueError as error:
            self.ledger.damaged(f"at sink {self.sink.key} of {self.sink.address}: {error}")
            lib.pn_delivery_settle(delivery)
        else:
            self.ledger.arrived(self.sink, source, number)
            if self.on_arrival is not None:
                self.on_arrival(source, number)
            if is_settled:
                lib.pn_delivery_settle(delivery)
            else:
                self._held.append((delivery, source, number))
        self._top_up()

    def _top_up(self) -> None:
        credit = lib.pn_link_credit(self._link)
        if credit <= self.top_up_at:
            self.grant(self.top_up_to - credit)

    def answer(self) -> None:
        """Give all that has arrived its outcome."""
        while self._held:
            delivery, source, number = self._held.popleft()
            outcome = self.says[number % len(self.says)]
            self.ledger.said(source, number, outcome)
            lib.pn_delivery_update(delivery, _STATES[outcome])
            lib.pn_delivery_settle(delivery)
            self.client.touch()


def attach_sender(client: Client, ledger: Ledger, source: Source) -> Sender:
    """A sending link for *source*."""
    sender = client.attach_publisher(Sender, source.address, presettled=source.is_presettled)
    sender.begin(ledger, source)
    return sender


def attach_receiver(client: Client, ledger: Ledger, sink: Sink, *, credit: int = CREDIT) -> Receiver:
    """A receiving link for *sink*, which grants *credit* and tops it up at half."""
    receiver = client.attach_subscriber(Receiver, sink.address, credit=credit, top_up_at=credit // 2)
    receiver.begin(ledger, sink)
    return receiver
