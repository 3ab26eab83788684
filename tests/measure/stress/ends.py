"""The ends that stay: publishers that remember each outcome, and subscribers that remember each message.

Both use the engine of the benchmark. A message is the number of its publisher, its own number and a filler that follows
from both, so that a message of another size, in other pieces or with bytes of another one is noticed.
"""

from __future__ import annotations

import random
import struct
from collections import Counter
from collections.abc import Sequence

from router.bench.load_connection import Connection, Endpoint
from router.binding import proton_functions as pn

SIZES = (*(60,) * 20, 100, 100, 300, 300, 3_000, 3_000, 20_000, 40_000)
"""Of fillers, bytes: most fit a frame, some don't, and some are more than routers write at once."""
CREDIT = 200
OUTGOING_BYTES = 65_536
VANDAL = 255
"""The number of those whose messages don't count."""

_HEAD = struct.Struct(">4sIBQ")
_PROPERTIES = b"\x00\x53\x73\xc0"
_DATA32 = b"\x00\x53\x75\xb0"


def encode(publisher: int, number: int, size: int) -> bytes:
    """One message, with a filler of *size* bytes."""
    filler = bytes([(publisher + number) % 251]) * size
    return _HEAD.pack(_DATA32, 9 + size, publisher, number) + filler


def decode(message: bytes) -> tuple[int, int]:
    """The numbers of a message's publisher and of itself. Raises: AssertionError when it is damaged"""
    if message.startswith(_PROPERTIES):  # from a link that names no address
        message = message[len(_PROPERTIES) + 1 + message[len(_PROPERTIES)] :]
    head, size, publisher, number = _HEAD.unpack_from(message)
    assert head == _DATA32, message[:40]
    assert size + 8 == len(message), (size, len(message))
    assert message[_HEAD.size :].count((publisher + number) % 251) == size - 9, "the filler is of another message"
    return publisher, number


class Publisher(Endpoint):
    """Sends as long as there is credit, and keeps what it was told of every message."""

    def __init__(self, number: int, address: str, rng: random.Random, *, is_presettled: bool = False) -> None:
        super().__init__()
        self.number = number
        self.address = address
        self.is_presettled = is_presettled
        self.is_on = False
        self.outcomes = bytearray()
        """Of each message, by its number: 0 when there is none yet."""
        self.under_way: dict[int, int] = {}
        """Numbers of messages by their deliveries' handles."""
        self.doubled = 0
        self._rng = rng

    def begin(self, connection: Connection) -> None:
        self._connection = connection
        self._session = connection.new_session()
        self._link = connection.new_sender(self._session, self.address, self.is_presettled)

    def attached(self, connection: Connection, link: int) -> None:
        self.is_attached = True

    def resume(self) -> None:
        self.is_on = True
        self._send()
        self._connection.turn()

    def flowed(self, link: int) -> None:
        self._send()

    def drained(self) -> None:
        self._send()

    def _send(self) -> None:
        link = self._link
        while self.is_on and pn.pn_link_credit(link) > 0:
            if pn.pn_session_outgoing_bytes(self._session) >= OUTGOING_BYTES:
                return
            self._send_next(SIZES)

    def _send_next(self, sizes: Sequence[int]) -> None:
        """Send the next message, of one of *sizes* in bytes; there is credit."""
        link, number = self._link, len(self.outcomes)
        delivery = pn.new_delivery(link, number)
        message = encode(self.number, number, self._rng.choice(sizes))
        assert pn.lib.pn_link_send(link, message, len(message)) == len(message)
        pn.pn_link_advance(link)
        self.outcomes.append(0)
        if self.is_presettled:
            pn.pn_delivery_settle(delivery)
        else:
            self.under_way[delivery] = number

    def delivered(self, link: int, delivery: int) -> None:
        if not pn.pn_delivery_updated(delivery):
            return
        state = pn.pn_delivery_remote_state(delivery)
        if state < pn.ACCEPTED and not pn.pn_delivery_settled(delivery):
            pn.pn_delivery_clear(delivery)
            return
        number = self.under_way.pop(delivery, None)
        if number is None or self.outcomes[number]:
            self.doubled += 1
        else:
            self.outcomes[number] = state or 1
        pn.pn_delivery_settle(delivery)


class Subscriber(Endpoint):
    """Accepts what it gets, and counts how often it got each message."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.address = address
        self.received: dict[int, bytearray] = {}
        """By publisher: how often each message arrived."""
        self.total = 0
        self.vandals = 0
        """Messages of those that don't count; whole ones, as all are."""
        self._parts: list[bytes] = []

    def begin(self, connection: Connection) -> None:
        connection.new_receiver(connection.new_session(), self.address, CREDIT)

    def attached(self, connection: Connection, link: int) -> None:
        self.is_attached = True

    def delivered(self, link: int, delivery: int) -> None:
        if pn.pn_link_current(link) != delivery:
            return
        if pn.pn_delivery_aborted(delivery):
            self._parts.clear()
            pn.pn_delivery_settle(delivery)
            self._renew(link)
            return
        pending = pn.pn_delivery_pending(delivery)
        if pending:
            self._parts.append(pn.receive(link, pending))
        if pn.pn_delivery_partial(delivery):
            return
        self._count(b"".join(self._parts))
        self._parts.clear()
        pn.pn_link_advance(link)
        pn.pn_delivery_update(delivery, pn.ACCEPTED)
        pn.pn_delivery_settle(delivery)
        self._renew(link)

    def _renew(self, link: int) -> None:
        credit = pn.pn_link_credit(link)
        if credit <= CREDIT // 2:
            pn.pn_link_flow(link, CREDIT - credit)

    def _count(self, message: bytes) -> None:
        self.total += 1
        publisher, number = decode(message)
        if publisher == VANDAL:
            self.vandals += 1
            return
        counts = self.received.setdefault(publisher, bytearray())
        if number >= len(counts):
            counts.extend(bytes(number + 1 - len(counts)))
        counts[number] = min(255, counts[number] + 1)


def account(publisher: Publisher, subscribers: Sequence[Subscriber], *, is_multicast: bool = False) -> Counter[str]:
    """What became of a publisher's messages, in words.

    `lost`, `doubled`, `unknown` and `released, yet received` are what must never be: accepted and not received,
    received or answered twice, without an outcome, and given back as if it had never been sent on. What is MODIFIED
    was sent on and may have been received: its path broke, or its subscriber died, before that was known.
    """
    said: Counter[str] = Counter(sent=len(publisher.outcomes), doubled=publisher.doubled)
    every = range(len(publisher.outcomes))
    counts = [each.received.get(publisher.number, bytearray()) for each in subscribers]
    for count in counts:
        count.extend(bytes(max(0, len(every) - len(count))))
    groups = [[count] for count in counts] if is_multicast else [counts]
    for group in groups:
        for number, outcome in enumerate(publisher.outcomes):
            got = sum(count[number] for count in group)
            said["received"] += got
            said["doubled"] += got > 1
            if not publisher.is_presettled:
                said["lost"] += outcome == pn.ACCEPTED and not got
                if got and not is_multicast and outcome not in (0, pn.ACCEPTED):
                    said["modified, yet received" if outcome == pn.MODIFIED else "released, yet received"] += 1
    if not publisher.is_presettled:
        said["accepted"] = publisher.outcomes.count(pn.ACCEPTED)
        said["unknown"] = publisher.outcomes.count(0)
        said["returned"] = said["sent"] - said["accepted"] - said["unknown"]
    return said
