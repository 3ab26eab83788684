"""The ends of the load: senders and receivers of a stream, callers and responders of calls.

Every message carries the time of its sending in its last eight bytes, so whoever gets it, or the reply, knows how long
that took. The receiving ends accept each message as soon as it is there and renew credit when half of it is used.

Compiled by Cython where that is possible (see `router/speed.py`): `load_endpoints.pxd` has the types.
"""

from __future__ import annotations

from typing import Final

import cython

from router.bench.errors import BenchError
from router.bench.load_connection import Connection, Endpoint
from router.bench.messages import MAX_REPLY_TO_BYTES, body, reply_head, request
from router.bench.tally import Tally
from router.binding import proton_functions as pn

if not cython.compiled:
    from router.bench.c_helpers_in_python import now_ns, receive_number, send_number
    from router.binding.proton_functions import (
        ACCEPTED,
        Handle,
        new_delivery,
        pn_delivery_aborted,
        pn_delivery_clear,
        pn_delivery_partial,
        pn_delivery_pending,
        pn_delivery_remote_state,
        pn_delivery_settle,
        pn_delivery_settled,
        pn_delivery_update,
        pn_delivery_updated,
        pn_link_advance,
        pn_link_credit,
        pn_link_current,
        pn_link_flow,
        pn_link_send,
        pn_session_outgoing_bytes,
        receive,
    )

OUTGOING_BYTES: Final = 65_536
"""Bytes that a sender hands to the engine before they are written, however much credit it has."""
ANONYMOUS_CREDIT: Final = 1
KNOWN_REPLY_HEADS: Final = 10_000
_ID: Final = 8
"""Offset of the id in the properties of a request, see `messages.request`."""
_REPLY_TO: Final = 20
"""Offset of the size of the reply-to in the properties of a request, see `messages.request`."""


def outcome_of(delivery: Handle) -> int:
    """Outcome that the peer gave a delivery of ours, which is settled then; 0: there is none yet, 1: no outcome."""
    if not pn_delivery_updated(delivery):
        return 0
    state = pn_delivery_remote_state(delivery)
    if state < ACCEPTED and not pn_delivery_settled(delivery):
        pn_delivery_clear(delivery)
        return 0
    pn_delivery_settle(delivery)
    return state or 1


def accept(link: Handle, delivery: Handle, credit: int) -> None:
    """Accept what was read, and keep the sender in credit."""
    pn_delivery_update(delivery, ACCEPTED)
    pn_delivery_settle(delivery)
    left = pn_link_credit(link)
    if left < (credit + 1) // 2:
        pn_link_flow(link, credit - left)


class Sender(Endpoint):
    """Sends as long as there is credit."""

    def __init__(self, tally: Tally, address: str, size: int, is_presettled: bool) -> None:
        """*size* of a body, bytes, from 8."""
        super().__init__()
        self._tally = tally
        self._address = address
        self._is_presettled = is_presettled
        self._head = body(size)
        self._head_bytes = len(self._head)
        self._session: Handle = 0
        self._link: Handle = 0
        self._connection: Connection | None = None
        self._number = 0
        self.accepted = 0
        """Number of messages with the outcome ACCEPTED."""

    def begin(self, connection: Connection) -> None:
        """Attach."""
        self._connection = connection
        self._session = connection.new_session()
        self._link = connection.new_sender(self._session, self._address, self._is_presettled)

    def attached(self, connection: Connection, link: Handle) -> None:
        """Note that the receiving side has answered."""
        self.is_attached = True

    def resume(self) -> None:
        """Use the credit that has come meanwhile."""
        self._send()
        if self._connection is not None:
            self._connection.turn()

    def flowed(self, link: Handle) -> None:
        """Use the credit that has come."""
        self._send()

    def drained(self) -> None:
        """Send more: there is room."""
        self._send()

    def _send(self) -> None:
        tally = self._tally
        if self._connection is None or self._connection.is_full or not tally.is_on:
            return
        link = self._link
        while pn_link_credit(link) > 0 and pn_session_outgoing_bytes(self._session) < OUTGOING_BYTES:
            if tally.sent >= tally.allowed:
                return
            self._number += 1
            delivery = new_delivery(link, self._number)
            pn_link_send(link, self._head, self._head_bytes)
            send_number(link, now_ns())
            pn_link_advance(link)
            if self._is_presettled:
                pn_delivery_settle(delivery)
            tally.sent += 1

    def delivered(self, link: Handle, delivery: Handle) -> None:
        """An outcome."""
        outcome = outcome_of(delivery)
        if outcome == ACCEPTED:
            self.accepted += 1
            self._tally.accepted += 1
        elif outcome:
            self._tally.refused += 1


class Receiver(Endpoint):
    """Accepts what it gets. With no address it waits for a peer that attaches a sender to it."""

    def __init__(self, tally: Tally, address: str | None, credit: int) -> None:
        """*credit* that it keeps its sender in, messages."""
        super().__init__()
        self._tally = tally
        self._address = address
        self._credit = credit
        self._number = 0

    def begin(self, connection: Connection) -> None:
        """Attach."""
        if self._address is not None:
            connection.new_receiver(connection.new_session(), self._address, self._credit)

    def attached(self, connection: Connection, link: Handle) -> None:
        """Note that the sending side has answered, or attached."""
        if pn.pn_link_state(link) & pn.LOCAL_UNINIT:
            answer(link, self._credit)
        self.is_attached = True

    def delivered(self, link: Handle, delivery: Handle) -> None:
        """A message, or a part of one."""
        if pn_link_current(link) != delivery:
            return
        pending = pn_delivery_pending(delivery)
        if pending:
            self._number = receive_number(link, pending, self._number)
        if pn_delivery_partial(delivery):
            return
        accept(link, delivery, self._credit)
        tally = self._tally
        tally.received += 1
        if tally.is_measuring:
            tally.record(now_ns() - self._number)


class Caller(Endpoint):
    """Makes one call after the other; replies come to an address that its peer has made for it."""

    def __init__(self, tally: Tally, address: str, size: int) -> None:
        """*size* of a request's body, bytes, from 8."""
        super().__init__()
        self._tally = tally
        self._address = address
        self._size = size
        self._head = b""
        self._rest = b""
        self._requests: Handle = 0
        self._replies: Handle = 0
        self._connection: Connection | None = None
        self._called = 0
        """Time at which the call in flight was made, ns; 0: none is."""
        self._number = 0
        self._calls = 0
        self.accepted = 0
        """Number of replies."""

    def begin(self, connection: Connection) -> None:
        """Attach, in sessions of their own as oslo.messaging's driver does."""
        self._connection = connection
        self._requests = connection.new_sender(connection.new_session(), self._address, False)
        self._replies = connection.new_receiver(connection.new_session(), None, ANONYMOUS_CREDIT + 1)

    def attached(self, connection: Connection, link: Handle) -> None:
        """Note that a link was answered; that of replies tells where they are to be sent.

        Raises: BenchError when the address for replies is too long.
        """
        if link == self._replies:
            reply_to = pn.text(pn.pn_terminus_get_address(pn.pn_link_remote_source(link)))
            if reply_to is None:
                return  # it is refused: the reason follows
            if len(reply_to.encode()) > MAX_REPLY_TO_BYTES:
                raise BenchError(f"a reply address of more than {MAX_REPLY_TO_BYTES} bytes: {reply_to}")
            self._head, self._rest = request(reply_to, self._size)
            self.is_attached = True

    def resume(self) -> None:
        """Make the first call."""
        self._call()
        if self._connection is not None:
            self._connection.turn()

    def flowed(self, link: Handle) -> None:
        """Call, if there is credit for it."""
        self._call()

    def _call(self) -> None:
        link = self._requests
        tally = self._tally
        if self._called or not tally.is_on or pn_link_credit(link) <= 0 or tally.sent >= tally.allowed:
            return
        self._called = now_ns()
        self._calls += 1
        new_delivery(link, self._calls)
        pn_link_send(link, self._head, len(self._head))
        send_number(link, self._called)
        pn_link_send(link, self._rest, len(self._rest))
        send_number(link, self._called)
        pn_link_advance(link)
        tally.sent += 1

    def delivered(self, link: Handle, delivery: Handle) -> None:
        """The outcome of a request, or a reply."""
        if link == self._replies:
            self._heard(link, delivery)
            return
        outcome = outcome_of(delivery)
        if outcome == ACCEPTED:
            self._tally.accepted += 1
        elif outcome:
            self._tally.refused += 1
            self._called = 0
            self._call()

    def _heard(self, link: Handle, delivery: Handle) -> None:
        if pn_link_current(link) != delivery:
            return
        pending = pn_delivery_pending(delivery)
        if pending:
            self._number = receive_number(link, pending, self._number)
        if pn_delivery_partial(delivery):
            return
        accept(link, delivery, ANONYMOUS_CREDIT + 1)
        if self._number != self._called:
            raise BenchError("a reply to another request than the one that was made")
        self.accepted += 1
        tally = self._tally
        tally.received += 1
        if tally.is_measuring:
            tally.record(now_ns() - self._called)
        self._called = 0
        self._call()


class Responder(Endpoint):
    """Answers requests with their own bodies, on one anonymous link or, without an address, to the peer's own one."""

    def __init__(self, address: str | None, credit: int) -> None:
        """*credit* for requests, messages."""
        super().__init__()
        self._address = address
        self._credit = credit
        self._replies: Handle = 0
        self._heads: dict[bytes, bytes] = {}
        self._number = 0

    def begin(self, connection: Connection) -> None:
        """Attach."""
        if self._address is not None:
            self._replies = connection.new_sender(connection.new_session(), None, False)
            connection.new_receiver(connection.new_session(), self._address, self._credit)

    def attached(self, connection: Connection, link: Handle) -> None:
        """Handle a link that was answered, or is the peer's: the one for its requests or the one for its replies."""
        if not pn.pn_link_is_sender(link):
            if pn.pn_link_state(link) & pn.LOCAL_UNINIT:
                answer(link, self._credit)
            self.is_attached = True
        elif pn.pn_link_state(link) & pn.LOCAL_UNINIT:
            pn.pn_terminus_set_address(pn.pn_link_source(link), b"replies")
            pn.pn_link_open(link)
            self._replies = link

    def delivered(self, link: Handle, delivery: Handle) -> None:
        """A request, or the outcome of a reply."""
        if link == self._replies:
            outcome_of(delivery)
            return
        if pn_link_current(link) != delivery or pn_delivery_partial(delivery):
            return
        if pn_delivery_aborted(delivery):  # its sender was given up
            accept(link, delivery, self._credit)
            return
        message = receive(link, pn_delivery_pending(delivery))
        accept(link, delivery, self._credit)
        self._answer(message)

    def _answer(self, message: bytes) -> None:
        number, reply_to, rest = parts_of_request(message)
        head = self._heads.get(reply_to)
        if head is None:
            if len(self._heads) >= KNOWN_REPLY_HEADS:
                self._heads.clear()
            head = self._heads[reply_to] = reply_head(reply_to)
        link = self._replies
        self._number += 1
        new_delivery(link, self._number)
        pn_link_send(link, head, len(head))
        pn_link_send(link, number, len(number))
        pn_link_send(link, rest, len(rest))
        pn_link_advance(link)


def answer(link: Handle, credit: int) -> None:
    """Attach this side of a peer's sending link, and grant *credit*, messages."""
    pn.pn_terminus_copy(pn.pn_link_target(link), pn.pn_link_remote_target(link))
    pn.pn_link_open(link)
    pn.pn_link_flow(link, credit)


def parts_of_request(message: bytes) -> tuple[bytes, bytes, bytes]:
    """Id, reply-to, and all that follows, of a request behind the header and the annotations that routers add."""
    at = 0
    while message[at + 2] < 0x73:
        kind = message[at + 3]
        if kind == 0x45:
            at += 4  # an empty list
        elif kind in (0xC0, 0xC1):
            at += 5 + message[at + 4]
        else:
            at += 8 + int.from_bytes(message[at + 4 : at + 8], "big")
    end = at + _REPLY_TO + 1 + message[at + _REPLY_TO]
    return message[at + _ID : at + _ID + 8], message[at + _REPLY_TO + 1 : end], message[end:]
