"""Guard of one connection: checks what a peer writes, frame by frame, before an engine acts on it.

An engine that takes on trust what a peer says of its own channels and handles can be made to use memory that it has
given back. This state machine follows both streams: what the peer writes by `feed`, which tells how much of it may be
handed on, and what this side writes by `own`. It reads frame headers, the kind of a performative and the few fields
that it needs; payload is passed over by the size of its frame. The first violation of the protocol ends it.

It also sees flows with `echo`, which engines may not show; `answers` has the flows that answer them.

It sees plain bytes: where TLS is in use its place is behind decryption. It knows nothing of sockets, of the engine or
of what messages are for.

Source: AMQP 1.0 part 2, 2.2 to 2.8; part 5, 5.3.
"""

from __future__ import annotations

from typing import Final

import cython

from router.guard.endpoints import (
    OwnSession,
    PeerLink,
    PeerSession,
    Table,
    add_peer_link,
    pair,
    remove_peer_link,
)
from router.guard.flow_state import closed_window, state_of_link, state_of_session, write_flow
from router.guard.frame_watch import FrameWatch
from router.guard.handshake import DECODE_ERROR, FRAMING_ERROR, NOT_ALLOWED, HandshakeGuard

if not cython.compiled:  # else they come by the .pxd
    from router.guard.guard_constants import (
        ATTACH,
        BEGIN,
        CLOSE,
        CLOSED,
        DETACH,
        DISPOSITION,
        FLOW,
        FLOW_UINTS,
        FRAMES,
        MOST_REPEATED_BYTES,
        OPEN,
        REJECTED,
        SENDER,
        TRANSFER,
        WRONG,
    )
    from router.guard.outcome_forms import default_outcome, usual_form
    from router.guard.performatives import read_uints, size_at, width_of_uint
    from router.guard.value_check import end_of, nul_of_address

UNATTACHED_HANDLE: Final = "amqp:session:unattached-handle"
HANDLE_IN_USE: Final = "amqp:session:handle-in-use"
INVALID_FIELD: Final = "amqp:invalid-field"
RESOURCE_LIMIT_EXCEEDED: Final = "amqp:resource-limit-exceeded"

MASK: Final = 0xFFFF_FFFF
"""Of serial numbers. A number of C, as declared: a literal of this size would be an object."""
HALF: Final = 0x7FFF_FFFF
"""Distance of serial numbers from which on a number counts as behind."""
LARGEST_CREDIT: Final = b"\x7f\xff\xff\xff"
"""Of a link, as it is written. An engine may count by a signed number; nobody uses up so much."""
NO_TEXT: Final = b"\xff"
"""A byte that is in no UTF-8."""
PLAIN_HEAD: Final = 0x0200
"""Data offset and type of a frame of AMQP without an extended header."""
NO_HEAD: Final = -1
NO_SESSION: Final = PeerSession(0)
MAX_HANDLE: Final = 0x7FFF_FFFF
MAX_NAME_BYTES: Final = 4096
"""Of a link. An engine compares each new name with all of its session."""
PLAIN_BYTES: Final = 512
"""Few attaches and dispositions are larger; what an attach has beyond it is counted."""
LINK_WORK: Final = 500
"""Cost of an Attach or Detach, counted in deliveries of a disposition: each some tenths of a microsecond."""
SESSION_WORK: Final = 100
"""Cost of a Begin or End, in the same."""
SEARCHED_SESSIONS: Final = 8
"""For so many sessions that there are a Begin costs one more: an engine looks for a free channel from the lowest on."""
STATE_BYTES: Final = 64
"""So much of an outcome that is written in a rare form costs as much as a delivery."""
MOST_WORK: Final = 1000
"""Of that much, or a frame more, is what is handed on at once. A frame is small, and what it asks for may be not."""


class FrameGuard(HandshakeGuard):
    """The frames of one connection. Both directions begin with their protocol headers."""

    def __init__(
        self, *, is_server: bool, max_frame_bytes: int, channel_max: int, handle_max: int = MAX_HANDLE
    ) -> None:
        """*max_frame_bytes*, *channel_max*, *handle_max*: as this side announces them."""
        super().__init__(is_server=is_server, max_frame_bytes=max_frame_bytes)
        self._channel_max = channel_max
        self._handle_max = handle_max
        self._work = 0
        """Cost of the frames that were fed last."""
        self._is_open = False
        self._transfer_head = NO_HEAD
        """Second four bytes of the last transfer, its data offset, type and channel, until anything but messages, their
        outcomes and credit comes,"""
        self._transfer_handle = 0
        """its handle,"""
        self._transfer_session = NO_SESSION
        """and its session."""
        self._disposition_head = NO_HEAD
        """The same of the last disposition, whose channel is mostly another."""
        self.kept = 0
        """Bytes at the end of what was fed last that are no whole frame yet."""
        self.has_questions = False
        """Flows with `echo` were not answered yet."""
        self.corrections: list[tuple[int, bytes]] = []
        """Places in what was fed last at which an engine is to be given other bytes, and these: for a link-credit that
        is more than it can count, for a NUL in an address, which it would take for the end of another address, and for
        an outcome in a form that it can't read."""
        self.attach_bytes = 0
        """Bytes of the attaches of the peer's links beyond `PLAIN_BYTES` each,"""
        self.asked_bytes = 0
        """and all attaches since this was last set to 0."""
        self.has_default_outcomes = False
        """Attaches of the peer had a source with a default-outcome."""
        self._questions: list[tuple[PeerSession, PeerLink | None]] = []
        self.peer_sessions = Table()
        """By the peer's channels."""
        self.own = FrameWatch(self.peer_sessions)
        """Is to be shown what this side writes."""

    # What the peer writes

    def check(self, data: bytes) -> int:
        """As `feed`, for bytes."""
        return self.feed(data, len(data))

    def feed(self, data: bytes | memoryview, size: int) -> int:
        """See what the peer has written.

        Args:
            data: where it stands; the first `kept` bytes were fed before, and are fed again with what follows them.
            size: bytes.
        Returns: how many of them may be handed on. Less than all are those before the frame that violates the protocol,
            when `is_broken`: it may be less than what was kept, of which the engine must never get the rest. Else they
            are as much work as others should wait for: what follows them is to be fed later.
        """
        at = 0
        self._work = 0
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
                if length >= 16 and data[at + 10] == TRANSFER and self._is_plain_transfer(data, at, length):
                    at += length
                    continue
                is_right = False
                if length >= 16 and data[at + 10] == DISPOSITION:
                    is_right = self._is_plain_disposition(data, at, length)
                elif length >= 16 and data[at + 10] == FLOW:
                    is_right = self._is_plain_flow(data, at, length)
                if not is_right and not self._check_frame(data, at, at + length):
                    break
                if self._work >= MOST_WORK:
                    self.kept = 0
                    return at + length
            at += length
        if self.condition:
            self._questions.clear()
            self.has_questions = False
            return at
        self.kept = size - at
        return size

    def _break_at(self, data: bytes | memoryview, at: int, condition: str, description: str) -> bool:
        """As `_break`, for what a frame with its header at *at* says."""
        return self._break(condition, f"channel {data[at + 6] << 8 | data[at + 7]}: {description}")

    # Frames

    def _check_frame(self, data: bytes | memoryview, at: int, end: int) -> bool:
        """Check a whole frame. Returns: whether it may be handed on."""
        body = at + 4 * data[at + 4]
        if body < at + 8 or body > end or data[at + 5] != 0:
            return self._break(FRAMING_ERROR, f"type {data[at + 5]}, data offset {data[at + 4]}: no frame of AMQP")
        if body == end:
            return True  # keeps the connection alive
        code = self.begin_list(data, body, end)
        if code == WRONG:
            return self._break_at(data, at, DECODE_ERROR, "no performative that can be decoded")
        channel = data[at + 6] << 8 | data[at + 7]
        sessions = self.peer_sessions.dense
        session: PeerSession | None = sessions[channel] if channel < len(sessions) else None
        if session is None:
            session = self.peer_sessions.get(channel)
        if session is not None and self._is_open:
            if code == TRANSFER:
                return self._check_transfer(data, at, session)
            if code == DISPOSITION:
                return self._check_disposition(data, at)
            if code == FLOW:
                return self._check_flow(data, at, session)
        return self._check_rare(data, at, end, code, channel, session)

    def _is_plain_transfer(self, data: bytes | memoryview, at: int, length: int) -> bool:
        """Whether a frame is a transfer like most, and right; else see the long way."""
        if data[at + 8] or data[at + 9] != 0x53:
            return False
        if data[at + 11] == 0xC0:
            field = at + 14
            stop = at + 13 + data[at + 12]
            count = data[at + 13]
        elif data[at + 11] == 0xD0 and length >= 22:
            field = at + 20
            stop = at + 16 + size_at(data, at + 12)
            count = size_at(data, at + 16)
        else:
            return False
        if stop > at + length or field + 2 > stop or not 0 < count <= stop - field:
            return False
        handle = 0
        if data[field] == 0x52:
            handle = data[field + 1]
        elif data[field] != 0x43:
            return False
        head = size_at(data, at + 4)
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

    def _plain_session(self, head: int) -> PeerSession | None:
        """The session of a frame whose second four bytes are *head*; None when it isn't as most are."""
        channel = head & 0xFFFF
        sessions = self.peer_sessions.dense
        if head >> 16 != PLAIN_HEAD or channel >= len(sessions) or not self._is_open:
            return None
        session: PeerSession | None = sessions[channel]
        return session

    def _is_plain_disposition(self, data: bytes | memoryview, at: int, length: int) -> bool:
        """The same for a disposition, whose outcome is looked at where an engine may not read it."""
        head = size_at(data, at + 4)
        if head != self._disposition_head:
            if self._plain_session(head) is None:
                return False
            self._disposition_head = head
        if data[at + 8] or data[at + 9] != 0x53 or data[at + 11] != 0xC0:
            return False
        field = at + 14
        stop = at + 13 + data[at + 12]
        count = data[at + 13]
        if stop > at + length or stop - field < 9 or not 3 <= count <= stop - field:
            return False
        if data[field] != 0x41 and data[field] != 0x42:  # its role
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
        if span > HALF or (field < stop and data[field] == 0x56):
            return False
        if field + 3 < stop and not data[field + 1] and (data[field + 2] != 0x53 or data[field + 3] == REJECTED):
            self._look_at_state(data, field + 1, stop)
        self._work += span
        return True

    def _is_plain_flow(self, data: bytes | memoryview, at: int, length: int) -> bool:
        """The same for a flow of a link that asks for no answer, with a window and a credit that need no correction."""
        session = self._plain_session(size_at(data, at + 4))
        if session is None or data[at + 8] or data[at + 9] != 0x53 or data[at + 11] != 0xC0:
            return False
        stop = at + 13 + data[at + 12]
        left = data[at + 13] - FLOW_UINTS
        uints = self.uints
        if stop > at + length or not 0 <= left <= 2:
            return False
        at = read_uints(data, at + 14, stop, FLOW_UINTS, uints)
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
        return True

    def _check_transfer(self, data: bytes | memoryview, at: int, session: PeerSession) -> bool:
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
        session.next_incoming = (session.next_incoming + 1) & MASK
        return True

    def _check_disposition(self, data: bytes | memoryview, at: int) -> bool:
        role = self.read_bool(data)
        first = self.read_uint(data)
        last = self.read_uint(data)
        if role < 0 or first < 0 or last == WRONG:
            return self._break_at(data, at, DECODE_ERROR, "a disposition without role or delivery-id")
        size = size_at(data, at)
        span = (last - first) & MASK if last >= 0 else 0
        if span > HALF or (size > PLAIN_BYTES and span * size > MOST_REPEATED_BYTES):
            return self._break_at(data, at, NOT_ALLOWED, f"a disposition of {first} to {last}, in {size} bytes")
        self._work += span
        self.read_bool(data)  # settled
        if self.left and self.at < self.stop and data[self.at] == 0:
            self._look_at_state(data, self.at, self.stop)
        return True

    def _look_at_state(self, data: bytes | memoryview, at: int, stop: int) -> None:
        """Have an outcome read in the form that an engine knows."""
        end = end_of(data, at, stop)
        if end == WRONG:
            return
        self._work += (end - at) // STATE_BYTES
        right = usual_form(bytes(data[at:end]))
        if right is not None:
            self.corrections.append((at, right))

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

    def _check_rare(
        self, data: bytes | memoryview, at: int, end: int, code: int, channel: int, session: PeerSession | None
    ) -> bool:
        """Check frames that come seldom, or on a channel without a session."""
        self._transfer_head = self._disposition_head = NO_HEAD
        self._transfer_session = NO_SESSION
        if self._phase == CLOSED:
            return self._break_at(data, at, FRAMING_ERROR, "a frame behind Close")
        if code < OPEN or code > CLOSE:
            return self._break_at(data, at, DECODE_ERROR, f"performative {code:#x} is unknown")
        if self._is_open == (code == OPEN):
            return self._break_at(data, at, FRAMING_ERROR, "a second Open" if self._is_open else "a frame before Open")
        if end_of(data, at + 4 * data[at + 4], end) == WRONG:
            return self._break_at(data, at, DECODE_ERROR, f"performative {code:#x} cannot be decoded")
        if code == OPEN:
            return self._check_open(data, at)
        if code == CLOSE:
            self._phase = CLOSED
            self._is_open = False
            return True
        self._work += LINK_WORK if code in (ATTACH, DETACH) else SESSION_WORK
        if code == BEGIN:
            return self._check_begin(data, at, channel, session)
        if session is None:
            return self._break_at(data, at, NOT_ALLOWED, f"performative {code:#x} without a session")
        if code == ATTACH:
            return self._check_attach(data, at, session)
        if code == DETACH:
            return self._check_detach(data, at, session)
        self.peer_sessions.pop(channel)  # End
        self.attach_bytes -= sum([link.large_bytes for _, link in session.links.items()])
        if session.own is not None:
            session.own.peer = None
            session.own = None
        return True

    def _check_open(self, data: bytes | memoryview, at: int) -> bool:
        self._is_open = True
        if self.has_nul(data) or self.has_nul(data):
            return self._break_at(data, at, INVALID_FIELD, "an Open with a NUL in its container-id or hostname")
        return True

    def _check_begin(self, data: bytes | memoryview, at: int, channel: int, session: PeerSession | None) -> bool:
        self._work += self.peer_sessions.count // SEARCHED_SESSIONS
        if channel > self._channel_max:
            return self._break_at(data, at, FRAMING_ERROR, f"channel-max is {self._channel_max}")
        if session is not None:
            return self._break_at(data, at, NOT_ALLOWED, "a second Begin")
        remote = self.read_ushort(data)
        initial = self.read_uint(data)
        window = self.read_uint(data)
        outgoing_window = self.read_uint(data)
        handle_max = self.read_uint(data)
        if remote == WRONG or initial < 0 or window < 0 or outgoing_window < 0 or handle_max == WRONG:
            return self._break_at(data, at, DECODE_ERROR, "a Begin with fields that cannot be")
        new = PeerSession(initial, handle_max if handle_max >= 0 else MASK)
        if remote >= 0:
            own: OwnSession | None = self.own.sessions.get(remote)
            if own is None or not own.is_first or own.was_answered:
                return self._break_at(data, at, NOT_ALLOWED, f"an answer to no Begin on channel {remote}")
            pair(own, new)
        self.peer_sessions.put(channel, new)
        return True

    def _check_attach(self, data: bytes | memoryview, at: int, session: PeerSession) -> bool:
        name = self.read_name(data)
        handle = self.read_uint(data)
        role = self.read_bool(data)
        for _ in range(2):  # settle modes
            self.pass_field(data)
        outcome = default_outcome(bytes(data[self.at : self.stop])) if role == 1 and self.left else None
        for _ in range(2):  # source, target
            nul = nul_of_address(data, self.at, self.stop) if self.left else WRONG
            if nul != WRONG:
                self.corrections.append((nul, NO_TEXT))
            self.pass_field(data)
        for _ in range(2):  # unsettled, incomplete-unsettled
            self.pass_field(data)
        count = self.read_uint(data)
        if name is None or handle < 0 or role < 0 or count == WRONG:
            return self._break_at(data, at, DECODE_ERROR, "an attach without name, handle or role")
        if 0 in name:
            return self._break_at(data, at, INVALID_FIELD, "an attach with a NUL in the name of its link")
        if len(name) > MAX_NAME_BYTES:
            why = f"a link with a name of {len(name)} bytes: at most {MAX_NAME_BYTES}"
            return self._break_at(data, at, RESOURCE_LIMIT_EXCEEDED, why)
        if handle > self._handle_max:
            return self._break_at(data, at, FRAMING_ERROR, f"handle {handle}: handle-max is {self._handle_max}")
        if session.links.count > session.handle_max:
            why = f"a link more than can be answered: the peer's own handle-max is {session.handle_max}"
            return self._break_at(data, at, NOT_ALLOWED, why)
        if session.links.get(handle) is not None:
            return self._break_at(data, at, HANDLE_IN_USE, f"an attach on handle {handle}")
        link = PeerLink(name, role == 1, max(count, 0))
        link.default_outcome = outcome
        self.has_default_outcomes |= outcome is not None
        link.large_bytes = max(0, size_at(data, at) - PLAIN_BYTES)
        self.attach_bytes += link.large_bytes
        self.asked_bytes += link.large_bytes
        add_peer_link(session, handle, link)
        return True

    def _check_detach(self, data: bytes | memoryview, at: int, session: PeerSession) -> bool:
        handle = self.read_uint(data)
        closed = self.read_bool(data)
        if handle < 0 or closed == WRONG:
            return self._break_at(data, at, DECODE_ERROR, "a detach without a handle")
        link: PeerLink | None = session.links.get(handle)
        if link is None:
            return self._break_at(data, at, UNATTACHED_HANDLE, f"a detach of handle {handle}")
        self.attach_bytes -= link.large_bytes
        remove_peer_link(session, handle)
        return True

    # Flows with `echo`

    def _ask(self, session: PeerSession, link: PeerLink | None) -> None:
        """Note that the peer asks for a link's state, or a session's. Asked again before the answer, it gets one."""
        if link is None:
            if session.asks:
                return
            session.asks = True
        else:
            if link.asks:
                return
            link.asks = True
        self._questions.append((session, link))
        self.has_questions = True

    def answers(self) -> list[tuple[int, bytes]]:
        """Channels and bodies of flow frames that answer what was asked, for when all else is written.

        What a flow has said that was written since, and is so still, is not said again.
        """
        questions, self._questions = self._questions, []
        self.has_questions = False
        found: list[tuple[int, bytes]] = []
        for session, link in questions:
            own = session.own
            if link is None:
                session.asks = False
            else:
                link.asks = False
            if own is not None:
                said = own.said if link is None else link.own.said if link.own is not None else []
                fields = state_of_session(session, own)
                if link is not None and link.own is not None:
                    fields += state_of_link(link, link.own)
                    link.own.said = []
                else:
                    own.said = []
                if fields != said:
                    found.append((own.channel, write_flow(fields)))
        return found
