"""Guard of the endpoints of one connection: the frames that begin and end it, its sessions and its links.

A peer names its sessions by channels and its links by handles; here is which of these there are, and which of this
side's they answer. An engine may take a name for what it is not, compare it with all others, or search long for a free
number: so names have bounds, and such frames count as much work.

It also keeps which endpoints were asked for their state by a flow with `echo`, which engines may not show, or by a
drain that has nothing to return; `answers` has the flows that answer.

Source: AMQP 1.0 part 2, 2.4 to 2.7.
"""

from __future__ import annotations

from typing import Final

import cython

from router.guard.endpoints import (
    OwnSession,
    PeerLink,
    PeerSession,
    ReceiversByName,
    Table,
    add_peer_link,
    pair,
    remove_peer_link,
)
from router.guard.flow_answers import state_of_link, state_of_session, write_flow
from router.guard.handshake import DECODE_ERROR, FRAMING_ERROR, MIN_FRAME_BYTES, NOT_ALLOWED, HandshakeGuard
from router.guard.sent_frame_tracker import SentFrameTracker

if not cython.compiled:  # else they come by the .pxd
    from router.guard.guard_constants import ATTACH, BEGIN, CLOSE, CLOSED, DETACH, HALF, MASK, OPEN, WRONG
    from router.guard.outcome_rewriting import default_outcome, is_text
    from router.guard.performatives import size_at
    from router.guard.value_check import end_of, nul_of_address

UNATTACHED_HANDLE: Final = "amqp:session:unattached-handle"
HANDLE_IN_USE: Final = "amqp:session:handle-in-use"
INVALID_FIELD: Final = "amqp:invalid-field"
RESOURCE_LIMIT_EXCEEDED: Final = "amqp:resource-limit-exceeded"
FRAME_SIZE_TOO_SMALL: Final = "amqp:frame-size-too-small"

STRING: Final = 0xA1
"""Constructor of a short string."""
NO_TEXT: Final = b"\xff"
"""Byte that is in no UTF-8."""
LARGEST_HANDLE_MAX: Final = 0xFFFF_FFFF
"""Value of handle-max in a Begin that names none."""
MAX_HANDLE: Final = 0x7FFF_FFFF
MAX_NAME_BYTES: Final = 4096
"""Maximum length of a link's name, bytes. An engine compares each new name with all of its session."""
REFUSAL_BYTES: Final = 128
"""Maximum size of the Attach that a refusal begins with, beside the link's name, bytes."""
NO_FRAME_BOUND: Final = 0xFFFF_FFFF
"""Value of max-frame-size in an Open that names none."""
PLAIN_BYTES: Final = 512
"""Size up to which an attach is not charged to its peer, bytes; few attaches and dispositions are larger."""
MOST_SND_MODE: Final = 2
MOST_RCV_MODE: Final = 1
"""Settle modes of a link that there are, beside lower ones."""
LINK_WORK: Final = 500
"""Cost of an Attach or Detach, counted in deliveries of a disposition: each some tenths of a microsecond."""
SESSION_WORK: Final = 100
"""Cost of a Begin or End, counted in deliveries of a disposition."""
SEARCHED_SESSIONS: Final = 8
"""Number of sessions for each of which a Begin costs one more: an engine looks for a free channel from the lowest
on."""


class EndpointGuard(HandshakeGuard):
    """The endpoints of one connection."""

    def __init__(self, *, is_server: bool, max_frame_bytes: int, channel_max: int, handle_max: int) -> None:
        """*max_frame_bytes*, *channel_max*, *handle_max*: as this side announces them."""
        super().__init__(is_server=is_server, max_frame_bytes=max_frame_bytes)
        self._channel_max = channel_max
        self._handle_max = handle_max
        self.peer_frame_bytes = NO_FRAME_BOUND
        """Maximum size of a frame that the peer takes, as its Open has it, bytes."""
        self._work = 0
        """Cost of the frames that were fed last."""
        self.has_endpoints = False
        """Whether sessions or links begin or end by what was fed last."""
        self._is_open = False
        self.corrections: list[tuple[int, bytes]] = []
        """Places in what was fed last at which an engine is to be given other bytes, and these: for a link-credit that
        is more than it can count, for a NUL in an address, which it would take for the end of another address, and for
        an outcome in a form that it can't read."""
        self.attach_bytes = 0
        """Bytes of the attaches of the peer's links, counting of each what is beyond `PLAIN_BYTES`."""
        self.asked_bytes = 0
        """Bytes of all attaches of the peer since this was last set to 0."""
        self.has_default_outcomes = False
        """Whether attaches of the peer had a source with a default-outcome."""
        self.has_questions = False
        """Whether flows with `echo`, or drains without credit, were not answered yet."""
        self._questions: list[tuple[PeerSession, PeerLink | None]] = []
        self.peer_sessions = Table()
        """Sessions by the peer's channels."""
        self.receivers = ReceiversByName()
        """Links by which the peer receives."""
        self.own = SentFrameTracker(self.peer_sessions)
        """Tracker that is shown what this side writes."""

    def _break_at(self, data: bytes | memoryview, at: int, condition: str, description: str) -> bool:
        """Note a violation that the frame with its header at *at* commits, and name its channel in the description."""
        return self._break(condition, f"channel {data[at + 6] << 8 | data[at + 7]}: {description}")

    def _check_rare(
        self, data: bytes | memoryview, at: int, end: int, code: int, channel: int, session: PeerSession | None
    ) -> bool:
        """Check frames that come seldom, or on a channel without a session."""
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
        self.has_endpoints = True
        if code == BEGIN:
            return self._check_begin(data, at, channel, session)
        if session is None:
            return self._break_at(data, at, NOT_ALLOWED, f"performative {code:#x} without a session")
        if code == ATTACH:
            return self._check_attach(data, at, channel, session)
        if code == DETACH:
            return self._check_detach(data, at, session)
        self.peer_sessions.pop(channel)  # End
        for link in session.links.values():
            self._forget(link)
        if session.own is not None:
            session.own.peer = None
            session.own = None
        return True

    def _check_open(self, data: bytes | memoryview, at: int) -> bool:
        self._is_open = True
        if self.has_nul(data) or self.has_nul(data):
            return self._break_at(data, at, INVALID_FIELD, "an Open with a NUL in its container-id or hostname")
        frame_bytes = self.read_uint(data)
        if frame_bytes > 0:
            self.peer_frame_bytes = max(MIN_FRAME_BYTES, frame_bytes)
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
        new = PeerSession(initial, handle_max if handle_max >= 0 else LARGEST_HANDLE_MAX)
        if remote >= 0:
            own: OwnSession | None = self.own.sessions.get(remote)
            if own is None or not own.is_first or own.was_answered:
                return self._break_at(data, at, NOT_ALLOWED, f"an answer to no Begin on channel {remote}")
            pair(own, new)
        self.peer_sessions.put(channel, new)
        return True

    def _check_attach(self, data: bytes | memoryview, at: int, channel: int, session: PeerSession) -> bool:
        name = self.read_name(data)
        handle = self.read_uint(data)
        role = self.read_bool(data)
        snd_mode, rcv_mode = self.read_ubyte(data), self.read_ubyte(data)
        outcome = default_outcome(bytes(data[self.at : self.stop])) if role == 1 and self.at < self.stop else None
        for _ in range(2):  # source, target
            nul = nul_of_address(data, self.at, self.stop)
            if nul != WRONG:
                self.corrections.append((nul, NO_TEXT))
            self.pass_field(data)
        for _ in range(2):  # unsettled, incomplete-unsettled
            self.pass_field(data)
        count = self.read_uint(data)
        if name is None or handle < 0 or role < 0 or count == WRONG:
            return self._break_at(data, at, DECODE_ERROR, "an attach without name, handle or role")
        if snd_mode > MOST_SND_MODE or rcv_mode > MOST_RCV_MODE:
            why = f"snd-settle-mode {snd_mode}" if snd_mode > MOST_SND_MODE else f"rcv-settle-mode {rcv_mode}"
            return self._break_at(data, at, INVALID_FIELD, f"an attach with {why}, which is none")
        if 0 in name or not is_text(name, STRING):
            return self._break_at(data, at, INVALID_FIELD, "an attach with a NUL in the name of its link, or no UTF-8")
        if len(name) > MAX_NAME_BYTES:
            why = f"a link with a name of {len(name)} bytes: at most {MAX_NAME_BYTES}"
            return self._break_at(data, at, RESOURCE_LIMIT_EXCEEDED, why)
        if len(name) + REFUSAL_BYTES > self.peer_frame_bytes:
            why = f"a link with a name of {len(name)} bytes: no answer fits into {self.peer_frame_bytes}"
            return self._break_at(data, at, FRAME_SIZE_TOO_SMALL, why)
        if handle > self._handle_max:
            return self._break_at(data, at, FRAMING_ERROR, f"handle {handle}: handle-max is {self._handle_max}")
        if session.links.count > session.handle_max:
            why = f"a link more than can be answered: the peer's own handle-max is {session.handle_max}"
            return self._break_at(data, at, NOT_ALLOWED, why)
        if session.links.get(handle) is not None:
            return self._break_at(data, at, HANDLE_IN_USE, f"an attach on handle {handle}")
        link = PeerLink(name, role == 1, channel, handle, max(count, 0))
        link.default_outcome = outcome
        self.has_default_outcomes |= outcome is not None
        link.large_bytes = max(0, size_at(data, at) - PLAIN_BYTES)
        self.attach_bytes += link.large_bytes
        self.asked_bytes += link.large_bytes
        add_peer_link(session, link)
        self.receivers.add(link)
        return True

    def _check_detach(self, data: bytes | memoryview, at: int, session: PeerSession) -> bool:
        handle = self.read_uint(data)
        closed = self.read_bool(data)
        if handle < 0 or closed == WRONG:
            return self._break_at(data, at, DECODE_ERROR, "a detach without a handle")
        link: PeerLink | None = session.links.get(handle)
        if link is None:
            return self._break_at(data, at, UNATTACHED_HANDLE, f"a detach of handle {handle}")
        self._forget(link)
        remove_peer_link(session, handle)
        return True

    def _forget(self, link: PeerLink) -> None:
        """Take a link that ends off what is counted and found."""
        self.attach_bytes -= link.large_bytes
        self.receivers.remove(link)

    # Flows with `echo`, and drains

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

    def _note_drain(self, session: PeerSession, link: PeerLink) -> None:
        """Take a drain for a question where the engine would not answer, since the peer's link has no credit left."""
        own = link.own
        credit = (link.count + link.credit - (own.count if own is not None else link.count)) & MASK
        if link.is_receiver and (credit == 0 or credit > HALF):
            self._ask(session, link)

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
