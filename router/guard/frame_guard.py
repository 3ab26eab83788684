"""Guard of one connection: checks what a peer writes, frame by frame, before an engine acts on it.

An engine that takes on trust what a peer says of its own channels and handles can be made to use memory that it has
given back. This state machine follows both streams: what the peer writes by `feed`, which tells how much of it may be
handed on, and what this side writes by `own`. It reads frame headers, the kind of a performative and the few fields
that it needs; payload is passed over by the size of its frame. The first violation of the protocol ends it. The frames
of each message are here; those that begin and end links, in `endpoint_guard.py`.

It sees plain bytes: where TLS is in use its place is behind decryption. It knows nothing of sockets, of the engine or
of what messages are for.

Source: AMQP 1.0 part 2, 2.2 to 2.8; part 5, 5.3.
"""

from __future__ import annotations

from typing import Final

import cython

from router.guard.endpoint_guard import INVALID_FIELD, MAX_HANDLE, PLAIN_BYTES, UNATTACHED_HANDLE, EndpointGuard
from router.guard.endpoints import DispositionRange, PeerLink, PeerSession
from router.guard.flow_answers import closed_window
from router.guard.handshake import DECODE_ERROR, FRAMING_ERROR, NOT_ALLOWED

if not cython.compiled:  # else they come by the .pxd
    from router.guard.guard_constants import (
        ACCEPTED,
        BODY_AT,
        CHANNEL_AT,
        CODE_AT,
        CODE_FORM_AT,
        COUNT8_AT,
        COUNT32_AT,
        DISPOSITION,
        FIELDS8_AT,
        FIELDS32_AT,
        FLOW,
        FLOW_UINTS,
        FRAMES,
        HALF,
        HEAD_AT,
        LIST_AT,
        MASK,
        MOST_REPEATED_BYTES,
        MOST_STATE_BYTES,
        MOST_TAG_BYTES,
        MOST_TRANSFER_BYTES,
        PLAIN_TRANSFER_BYTES,
        RELEASED,
        SENDER,
        SIZE_AT,
        TRANSFER,
        TYPE_AT,
        WRONG,
    )
    from router.guard.outcome_rewriting import code_of, readable_part, usual_form
    from router.guard.performatives import read_uints, size_at, width_of_uint
    from router.guard.value_check import end_of


LARGEST_CREDIT: Final = b"\x7f\xff\xff\xff"
"""Largest link-credit as it is written. An engine may count by a signed number; nobody uses up so much."""
PLAIN_HEAD: Final = 0x0200
"""Data offset and type of a frame of AMQP without an extended header."""
NO_HEAD: Final = -1
NO_SESSION: Final = PeerSession(0)
STATE_BYTES: Final = 64
"""Bytes of an outcome written in a rare form that cost as much as a delivery: each has to be rewritten."""
MOST_WORK: Final = 1000
"""Maximum work that is handed on at once, but for one more frame. A frame is small, and what it asks for may be not."""


class FrameGuard(EndpointGuard):
    """The frames of one connection. Both directions begin with their protocol headers."""

    def __init__(
        self, *, is_server: bool, max_frame_bytes: int, channel_max: int, handle_max: int = MAX_HANDLE
    ) -> None:
        """*max_frame_bytes*, *channel_max*, *handle_max*: as this side announces them."""
        super().__init__(
            is_server=is_server, max_frame_bytes=max_frame_bytes, channel_max=channel_max, handle_max=handle_max
        )
        self._transfer_head = NO_HEAD
        """Second four bytes of the last transfer, its data offset, type and channel, until anything but messages, their
        outcomes and credit comes; else NO_HEAD."""
        self._transfer_handle = 0
        """Handle of the last transfer."""
        self._transfer_session = NO_SESSION
        """Session of the last transfer."""
        self._disposition_head = NO_HEAD
        """Second four bytes of the last disposition, like `_transfer_head` of the last transfer; their channels mostly
        differ."""
        self._piece = 0
        """Number of the piece that is fed, from 1."""
        self._settled = DispositionRange()
        """Deliveries that the dispositions of this piece have settled in the session and the direction of the last
        disposition."""
        self._is_overlap = False
        """Whether the last disposition has deliveries that others in the piece are about."""
        self.kept = 0
        """Number of bytes at the end of what was fed last that are no whole frame yet."""

    # What the peer writes

    def check(self, data: bytes) -> int:
        """See bytes that the peer has written: `feed` for all of *data*."""
        return self.feed(data, len(data))

    def feed(self, data: bytes | memoryview, size: int) -> int:
        """See what the peer has written.

        Args:
            data: where it stands; the first `kept` bytes were fed before, and are fed again with what follows them.
            size: bytes.
        Returns: how many of them may be handed on. Less than all are those before the frame that violates the protocol,
            when `is_broken`: it may be less than what was kept, of which the engine must never get the rest. Else they
            are as much work as others should wait for, or what follows is about deliveries whose outcomes are among
            them: it is to be fed later.
        """
        at = 0
        self._work = 0
        self._piece += 1
        self._is_overlap = self.has_endpoints = False
        if self.corrections:
            self.corrections.clear()
        if self.is_broken:
            return 0
        while True:
            if self._phase < FRAMES:
                length = self._shake_hands(data, at, size)
                if length <= 0:
                    break
            else:
                if size - at < 8:
                    break
                length = size_at(data, at)
                if length < 8 or length > self._max_frame:
                    self._break(FRAMING_ERROR, f"a frame of {length} bytes: 8 to {self._max_frame} are allowed")
                    break
                if length > size - at:
                    break
                if length >= 16 and data[at + CODE_AT] == TRANSFER and self._is_plain_transfer(data, at, length):
                    at += length
                    continue
                is_right = False
                if length >= 16 and data[at + CODE_AT] == DISPOSITION:
                    is_right = self._is_plain_disposition(data, at, length)
                elif length >= 16 and data[at + CODE_AT] == FLOW:
                    is_right = self._is_plain_flow(data, at, length)
                if not is_right and not self._check_frame(data, at, at + length):
                    break
                if self._is_overlap or self._work >= MOST_WORK:
                    self.kept = 0
                    return at if self._is_overlap else at + length
            at += length
        if self.condition:
            self._questions.clear()
            self.has_questions = False
            return at
        self.kept = size - at
        return size

    # Frames

    def _check_frame(self, data: bytes | memoryview, at: int, end: int) -> bool:
        """Check a whole frame. Returns: whether it may be handed on."""
        body = at + 4 * data[at + HEAD_AT]
        if body < at + BODY_AT or body > end or data[at + TYPE_AT] != 0:
            return self._break(
                FRAMING_ERROR, f"type {data[at + TYPE_AT]}, data offset {data[at + HEAD_AT]}: no frame of AMQP"
            )
        if body == end:
            return True  # keeps the connection alive
        code = self.begin_list(data, body, end)
        if code == WRONG:
            return self._break_at(data, at, DECODE_ERROR, "no performative that can be decoded")
        channel = data[at + CHANNEL_AT] << 8 | data[at + CHANNEL_AT + 1]
        sessions = self.peer_sessions.dense
        session: PeerSession | None = sessions[channel] if channel < len(sessions) else None
        if session is None:
            session = self.peer_sessions.get(channel)
        if session is not None and self._is_open:
            if code == TRANSFER:
                return self._check_transfer(data, at, session)
            if code == DISPOSITION:
                return self._check_disposition(data, at, session)
            if code == FLOW:
                return self._check_flow(data, at, session)
        # Of the last transfer and disposition nothing is known to hold any more.
        self._transfer_head = self._disposition_head = NO_HEAD
        self._transfer_session = NO_SESSION
        return self._check_rare(data, at, end, code, channel, session)

    def _is_plain_transfer(self, data: bytes | memoryview, at: int, length: int) -> bool:
        """Whether a frame is a transfer like most (drawn in `guard_constants`), and right; else see the long way."""
        if data[at + BODY_AT] or data[at + CODE_FORM_AT] != 0x53:
            return False
        if data[at + LIST_AT] == 0xC0:
            field = at + FIELDS8_AT
            stop = at + COUNT8_AT + data[at + SIZE_AT]
            count = data[at + COUNT8_AT]
        elif data[at + LIST_AT] == 0xD0 and length >= FIELDS32_AT + 2:
            field = at + FIELDS32_AT
            stop = at + COUNT32_AT + size_at(data, at + SIZE_AT)
            count = size_at(data, at + COUNT32_AT)
        else:
            return False
        if stop > at + length or field + 2 > stop or not 0 < count <= stop - field:
            return False
        if stop - field > PLAIN_TRANSFER_BYTES:
            return False
        handle = 0
        if data[field] == 0x52:
            handle = data[field + 1]
        elif data[field] != 0x43:
            return False
        head = size_at(data, at + HEAD_AT)
        if (head != self._transfer_head or handle != self._transfer_handle) and not self._finds_sender(head, handle):
            return False
        self._transfer_session.next_incoming = (self._transfer_session.next_incoming + 1) & MASK
        return True

    def _finds_sender(self, head: int, handle: int) -> bool:
        """Note where a transfer belongs, if it is a sender's. Returns: whether it is."""
        session = self._plain_session(head)
        if session is None or handle >= len(session.roles) or session.roles[handle] != SENDER:
            return False
        self._transfer_head = head
        self._transfer_handle = handle
        self._transfer_session = session
        return True

    def _finds_receivers(self, head: int) -> bool:
        """Note where a disposition of receivers belongs. Returns: whether there is such a session."""
        session = self._plain_session(head)
        if session is None:
            return False
        self._disposition_head = head
        self._settled = session.settled_sent
        return True

    def _plain_session(self, head: int) -> PeerSession | None:
        """The session of a frame whose second four bytes are *head*; None when it isn't as most are."""
        channel = head & 0xFFFF
        sessions = self.peer_sessions.dense
        if head >> 16 != PLAIN_HEAD or channel >= len(sessions) or not self._is_open:
            return None
        session: PeerSession | None = sessions[channel]
        return session

    def _is_plain_disposition(self, data: bytes | memoryview, at: int, length: int) -> bool:
        """Whether a frame is a receiver's disposition like most, and right; else see the long way.

        The outcome of most says nothing but what it is.
        """
        head = size_at(data, at + HEAD_AT)
        if head != self._disposition_head and not self._finds_receivers(head):
            return False
        if data[at + BODY_AT] or data[at + CODE_FORM_AT] != 0x53 or data[at + LIST_AT] != 0xC0:
            return False
        field = at + FIELDS8_AT
        stop = at + COUNT8_AT + data[at + SIZE_AT]
        count = data[at + COUNT8_AT]
        if stop > at + length or stop - field < 9 or not 3 <= count <= stop - field:
            return False
        if data[field] != 0x41:  # its role
            return False
        field += 1
        if data[field] == 0x70:
            first = size_at(data, field + 1)
            field += 5
        elif data[field] == 0x52:
            first = data[field + 1]
            field += 2
        else:
            return False
        if data[field] == 0x70 and stop - field >= 5:
            span = (size_at(data, field + 1) - first) & MASK
        elif data[field] == 0x52:
            span = (data[field + 1] - first) & MASK
        elif data[field] == 0x40:
            span = 0
        else:
            return False
        field += width_of_uint(data, field)
        if span > HALF or (field < stop and not 0x40 <= data[field] <= 0x42):  # whether they are settled
            return False
        if field + 3 < stop and not data[field + 1]:
            code = data[field + 3]
            if data[field + 2] != 0x53 or code not in (ACCEPTED, RELEASED):
                return False  # there is more to it than its code
        if self._is_seen(first, span):
            return True
        self._work += span
        return True

    def _is_plain_flow(self, data: bytes | memoryview, at: int, length: int) -> bool:
        """Whether a frame is a flow of a link like most, and right; else see the long way.

        Most ask for no answer, and state a window and a credit that need no correction.
        """
        session = self._plain_session(size_at(data, at + HEAD_AT))
        if session is None or data[at + BODY_AT] or data[at + CODE_FORM_AT] != 0x53 or data[at + LIST_AT] != 0xC0:
            return False
        stop = at + COUNT8_AT + data[at + SIZE_AT]
        left = data[at + COUNT8_AT] - FLOW_UINTS
        uints = self.uints
        if stop > at + length or not 0 <= left <= 2:
            return False
        at = read_uints(data, at + FIELDS8_AT, stop, FLOW_UINTS, uints)
        if at == WRONG or at + left != stop or min(uints[1], uints[2], uints[3], uints[4], uints[5], uints[6]) < 0:
            return False
        if left and not 0x40 <= data[at] <= 0x42:  # its drain
            return False
        if left == 2 and data[at + 1] != 0x42 and data[at + 1] != 0x40:  # its echo
            return False
        links = session.links.dense
        if uints[6] > HALF or uints[4] >= len(links):
            return False
        link: PeerLink | None = links[uints[4]]
        if link is None:
            return False
        if uints[0] >= 0 and session.own is not None:
            coming = (session.own.next_outgoing - uints[0]) & MASK
            if uints[1] < coming <= HALF:
                return False
        session.stated_next = uints[0]
        session.stated_window = uints[1]
        session.stated_outgoing = uints[2]
        session.stated_outgoing_window = uints[3]
        link.count = uints[5]
        link.credit = uints[6]
        link.drains = left > 0 and data[at] == 0x41
        if link.drains:
            self._note_drain(session, link)
        return True

    def _check_transfer(self, data: bytes | memoryview, at: int, session: PeerSession) -> bool:
        begin = self.at
        handle = self.read_uint(data)
        if handle < 0:
            return self._break_at(data, at, DECODE_ERROR, "a transfer without a handle")
        links = session.links.dense
        link: PeerLink | None = links[handle] if handle < len(links) else None
        if link is None:
            link = session.links.get(handle)
            if link is None:
                return self._break_at(data, at, UNATTACHED_HANDLE, f"a transfer on handle {handle}")
        if link.is_receiver:
            return self._break_at(data, at, NOT_ALLOWED, f"a transfer on handle {handle}, which is of a receiver")
        if self.read_uint(data) == WRONG:
            return self._break_at(data, at, DECODE_ERROR, "a transfer with a delivery-id that is none")
        size = self.size_of_binary(data)
        if size > MOST_TAG_BYTES:
            return self._break_at(data, at, INVALID_FIELD, f"a delivery-tag of {size} bytes: at most {MOST_TAG_BYTES}")
        if self.stop - begin > MOST_TRANSFER_BYTES:
            why = f"a transfer with {self.stop - begin} bytes of fields: at most {MOST_TRANSFER_BYTES}"
            return self._break_at(data, at, INVALID_FIELD, why)
        session.next_incoming = (session.next_incoming + 1) & MASK
        return True

    def _check_disposition(self, data: bytes | memoryview, at: int, session: PeerSession) -> bool:
        role = self.read_bool(data)
        first = self.read_uint(data)
        last = self.read_uint(data)
        if role < 0 or first < 0 or last == WRONG:
            return self._break_at(data, at, DECODE_ERROR, "a disposition without role or delivery-id")
        size = size_at(data, at)
        span = (last - first) & MASK if last >= 0 else 0
        if span > HALF or (size > PLAIN_BYTES and span * size > MOST_REPEATED_BYTES):
            return self._break_at(data, at, NOT_ALLOWED, f"a disposition of {first} to {last}, in {size} bytes")
        self._settled = session.settled_sent if role else session.settled_received
        self._disposition_head = NO_HEAD
        if self._is_seen(first, span):
            return True
        self._work += span
        if self.read_bool(data) == WRONG:
            return self._break_at(data, at, DECODE_ERROR, "a disposition that says of no value whether it is settled")
        if self.at < self.stop and data[self.at] == 0:
            return self._check_state(data, at, self.at, self.stop, role == 1)
        return True

    def _is_seen(self, first: int, span: int) -> bool:
        """Whether deliveries of a disposition are among those of others in this piece: it has to wait for the next one.

        Others are those of its session and its direction, whose deliveries alone it can mean (`_settled`).

        An engine has the newer outcome of a delivery when it is asked, and the older one is what settled it.

        Args:
            first: delivery-id.
            span: further ones.
        """
        if self._settled.piece != self._piece:
            self._settled.piece = self._piece
            self._settled.first = first
            self._settled.span = span
            return False
        behind = (first - self._settled.first) & MASK
        before = (self._settled.first - first) & MASK
        if behind <= self._settled.span or before <= span:
            self._is_overlap = True
            return True
        if behind <= HALF:
            self._settled.span = behind + span
        else:
            self._settled.first = first
            self._settled.span += before
        return False

    def _check_state(self, data: bytes | memoryview, frame: int, at: int, stop: int, is_receiver: bool) -> bool:
        """Have the outcome at *at* read in the form that an engine knows, as far as anybody can read it."""
        end = end_of(data, at, stop)
        state = bytes(data[at : end if end != WRONG else stop])
        self._work += len(state) // STATE_BYTES
        right = usual_form(state) if end != WRONG else readable_part(state)
        if right is not None:
            self.corrections.append((at, right))
        elif end == WRONG:
            return self._break_at(data, frame, DECODE_ERROR, "an outcome whose end is not within its disposition")
        if len(state) > MOST_STATE_BYTES:
            code = code_of(state, end_of(state, 1, len(state))) if is_receiver else WRONG
            if code < ACCEPTED:
                return self._break_at(
                    data, frame, INVALID_FIELD, f"{len(state)} bytes of a state that ends no delivery"
                )
        return True

    def _check_flow(self, data: bytes | memoryview, at: int, session: PeerSession) -> bool:
        window_start = self.at
        next_incoming = self.read_uint(data)
        incoming_window = self.read_uint(data)
        window_end = self.at
        next_outgoing = self.read_uint(data)
        outgoing_window = self.read_uint(data)
        handle = self.read_uint(data)
        count = self.read_uint(data)
        credit = self.read_uint(data)
        credit_end = self.at
        available = self.read_uint(data)
        drains = self.read_bool(data)
        asks = self.read_bool(data)
        if (
            next_incoming == WRONG
            or incoming_window < 0
            or next_outgoing < 0
            or outgoing_window < 0
            or handle == WRONG
            or count == WRONG
            or credit == WRONG
            or available == WRONG
            or drains == WRONG
            or asks == WRONG
            or not self.is_list_over(data)
        ):
            return self._break_at(data, at, DECODE_ERROR, "a flow with fields that cannot be")
        session.stated_next = next_incoming
        session.stated_window = incoming_window
        session.stated_outgoing = next_outgoing
        session.stated_outgoing_window = outgoing_window
        if next_incoming >= 0 and session.own is not None:
            coming = (session.own.next_outgoing - next_incoming) & MASK
            if incoming_window < coming <= HALF:
                self._close_window(session, window_start, window_end - window_start, session.own.next_outgoing)
        link: PeerLink | None = None
        if handle >= 0:
            link = session.links.get(handle)
            if link is None:
                return self._break_at(data, at, UNATTACHED_HANDLE, f"a flow on handle {handle}")
            link.count = max(count, 0)
            link.credit = min(max(credit, 0), HALF)
            link.drains = drains == 1
            if credit > HALF:
                self.corrections.append((credit_end - 4, LARGEST_CREDIT))
            if link.drains:
                self._note_drain(session, link)
        if asks == 1:
            self._ask(session, link)
        return True

    def _close_window(self, session: PeerSession, start: int, size: int, next_outgoing: int) -> None:
        """Have a window read as closed that was taken back to below zero, while transfers were on their way.

        An engine may count by an unsigned number, and take it for a very large one.
        The two fields stand in *size* bytes from *start* on, and are written anew in as many.
        """
        session.stated_next, session.stated_window = -1, 0
        fields = closed_window(size, next_outgoing)
        if fields is not None:
            self.corrections.append((start, fields))
