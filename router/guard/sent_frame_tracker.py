"""Watch of what this side writes next on a connection: sessions and links, as judging the peer's frames needs them.

One kind of frame must not be written as it is. When a link is gone on this side and bytes of its messages are taken or
settled, proton may open the session's window anew by a flow of that link, with -2 for the handle that it has no longer;
for its peer that is a violation of the protocol, which ends the connection. Such a flow is made one of the session
alone (`without_link`).

Source: AMQP 1.0 part 2, 2.5 to 2.7.
"""

from __future__ import annotations

from typing import Final

import cython

from router.guard.endpoints import (
    OwnLink,
    OwnSession,
    PeerSession,
    Table,
    add_own_link,
    pair,
    remove_own_link,
)
from router.guard.performatives import PerformativeReader

if not cython.compiled:  # else they come by the .pxd
    from router.guard.guard_constants import (
        AMQP,
        ATTACH,
        BEGIN,
        BODY_AT,
        CHANNEL_AT,
        CODE_AT,
        COUNT8_AT,
        COUNT32_AT,
        DETACH,
        DISPOSITION,
        END,
        FIELDS8_AT,
        FIELDS32_AT,
        FLOW,
        FLOW_UINTS,
        LIST_AT,
        MASK,
        SIZE_AT,
        TRANSFER,
        TYPE_AT,
        WRONG,
    )
    from router.guard.performatives import read_uints, size_at, width_of_uint

KEPT_HEAD_BYTES: Final = 128
"""Number of bytes kept of a transfer, enough to read what is counted; more than that is never looked at."""


HANDLE_MAX: Final = 0x7FFF_FFFF
"""Highest handle that proton gives a link."""
NOTHING: Final = OwnSession(0, is_first=False, next_outgoing=0, window=0, outgoing_window=0)


def without_link(flow: bytes, fields_at: int, handle_at: int) -> bytes:
    """Make the flow of a link one of its session alone, in as many bytes.

    The link's fields go; in their place the frame has more extended header, which nobody looks into, and up to three
    fields that are null.

    Args:
        flow: the frame.
        fields_at: where its first field begins, those of the session are four,
        handle_at: and where the first of the link's fields begins.

    Source: AMQP 1.0 part 2, 2.3.1.
    """
    fields = flow[fields_at:handle_at]
    words, nulls = divmod(len(flow) - 8 - 6 - len(fields), 4)  # beside the header, and the begin of the list
    body = bytes((0, 0x53, FLOW, 0xC0, 1 + len(fields) + nulls, 4 + nulls)) + fields + nulls * b"\x40"
    return flow[:4] + bytes((2 + words,)) + flow[5:8] + bytes(4 * words) + body


class SentFrameTracker(PerformativeReader):
    """The frames that this side is about to write. They are taken to be right, but for flows of links that are gone."""

    def __init__(self, peer_sessions: Table) -> None:
        """*peer_sessions*: by the peer's channels."""
        super().__init__()
        self.sessions = Table()
        """Sessions by the channels of this side."""
        self._peer_sessions = peer_sessions
        self._session = NOTHING
        """Session of the last transfer."""
        self._channel = 0
        """Channel of the last transfer."""
        self._link: OwnLink | None = None
        """Link of the last transfer, while it lasts."""
        self.frames = 0
        """Number of frames seen so far, but for one whose head is not there."""
        self.corrections: list[tuple[int, bytes]] = []
        """Bytes to be written otherwise, by their offset in what was seen last; those below 0 were `unfinished`."""
        self._skip = 0
        """Rest of a frame that was seen in part, bytes."""
        self._head = b""
        """Bytes seen of the frame of which `_skip` are to come, if there is more to know of it."""
        self._base = 0
        """Offset of what is looked at within what was seen last."""
        self._frame_at = 0
        """Begin of the frame that is looked at."""

    def unfinished(self) -> int:
        """Bytes at the end that must not be written yet: the rest of their frame may change them."""
        return len(self._head)

    def show(self, data: bytes) -> None:
        """See bytes that this side writes next: `watch` for all of *data*."""
        self.watch(data, len(data))

    def watch(self, data: bytes | memoryview, size: int) -> None:
        """See what this side writes next, in the order in which it does, in pieces of any size; mind `corrections`."""
        self._watch_from(data, self._watch_on(data, size) if self._head else 0, size)

    def _watch_from(self, data: bytes | memoryview, at: int, size: int) -> None:
        """See what this side writes next, from the byte *at* of *data* on."""
        at += self._skip
        while size - at >= 8:
            length = size_at(data, at)
            if length == AMQP:
                at += 8
                continue
            if length > size - at and (size - at < KEPT_HEAD_BYTES or not self._watch_frame(data, at, size, False)):
                break
            if length <= size - at:
                code = data[at + CODE_AT] if length >= 16 else BEGIN
                if not (
                    code == DISPOSITION
                    or (code == TRANSFER and self._counts(data, at))
                    or (code == FLOW and self._is_plain_flow(data, at, length))
                ):
                    self._watch_frame(data, at, at + length, True)
            at += length
            self.frames += 1
        self._skip = max(at - size, 0)
        if at < size:
            self._head = bytes(data[at:size])

    def _watch_on(self, data: bytes | memoryview, size: int) -> int:
        """Watch what is behind a part of a frame, joined with it. Returns: how much of it, bytes.

        For a transfer that is a little, whatever has been written of its payload.
        """
        taken = min(size, KEPT_HEAD_BYTES)
        joined = self._head + bytes(data[0:taken])
        self._base = -len(self._head)
        self._head = b""
        self._watch_from(joined, 0, len(joined))
        if self._head and taken < size:
            joined = self._head + bytes(data[taken:size])
            self._base = taken - len(self._head)
            self._head = b""
            self._watch_from(joined, 0, len(joined))
            taken = size
        self._base = 0
        return taken

    def _watch_frame(self, data: bytes | memoryview, at: int, end: int, is_whole: bool) -> bool:
        """Note a frame, or the head of one. Returns: whether that was enough of it."""
        if end - at < 12 or data[at + TYPE_AT] != 0:
            return True
        code = data[at + CODE_AT]
        if code == TRANSFER:
            pass
        elif code < BEGIN or code > END or code == DISPOSITION:
            return True
        elif not is_whole:
            return False
        channel = data[at + CHANNEL_AT] << 8 | data[at + CHANNEL_AT + 1]
        if code == BEGIN:
            self._watch_begin(data, at, end, channel)
            return True
        sessions = self.sessions.dense
        session: OwnSession | None = sessions[channel] if channel < len(sessions) else None
        if session is None:
            session = self.sessions.get(channel)
        if session is not None:
            if code == TRANSFER:
                self._channel = channel
                self._session = session
                self._watch_transfer(data, at, end, session)
            else:
                self._frame_at = at
                self.begin_list(data, at + BODY_AT, end)
                self._watch_rare(data, code, channel, session)
        return True

    def _counts(self, data: bytes | memoryview, at: int) -> bool:
        """Count a transfer of the link of the last one, if it is one; the frame is whole. Returns: whether it was."""
        if (
            (data[at + CHANNEL_AT] << 8 | data[at + CHANNEL_AT + 1]) != self._channel
            or self._link is None
            or data[at + TYPE_AT]
        ):
            return False
        if data[at + LIST_AT] == 0xC0:
            field = at + FIELDS8_AT
            stop = at + COUNT8_AT + data[at + SIZE_AT]
        else:
            field = at + FIELDS32_AT
            stop = at + COUNT32_AT + size_at(data, at + SIZE_AT)
        handle = 0
        if data[field] == 0x52:
            handle = data[field + 1]
        elif data[field] != 0x43:
            return False
        if handle != self._link.handle:
            return False
        field += width_of_uint(data, field)
        field += width_of_uint(data, field)
        if data[field] != 0xA0:
            return False
        field += 2 + data[field + 1]
        field += width_of_uint(data, field) + 1  # message-format, settled
        if field >= stop or data[field] != 0x41:
            self._link.count = (self._link.count + 1) & MASK
        self._session.next_outgoing = (self._session.next_outgoing + 1) & MASK
        return True

    def _is_plain_flow(self, data: bytes | memoryview, at: int, length: int) -> bool:
        """Note a flow of a link, if the peer has asked for none. Returns: whether it was one."""
        channel = data[at + CHANNEL_AT] << 8 | data[at + CHANNEL_AT + 1]
        sessions = self.sessions.dense
        if (
            channel >= len(sessions)
            or data[at + TYPE_AT]
            or data[at + LIST_AT] != 0xC0
            or data[at + COUNT8_AT] < FLOW_UINTS
        ):
            return False
        session: OwnSession | None = sessions[channel]
        if session is None or session.peer is None or session.peer.asks:
            return False
        uints = self.uints
        end = at + length
        at = read_uints(data, at + FIELDS8_AT, end, FLOW_UINTS, uints)
        if at == WRONG or uints[4] < 0 or uints[4] >= len(session.links.dense):
            return False
        link: OwnLink | None = session.links.dense[uints[4]]
        if link is None or link.peer is None or link.peer.asks:
            return False
        session.window_from = uints[0]
        session.window = uints[1]
        session.outgoing_window = uints[3]
        link.count = max(uints[5], 0)
        link.credit = max(uints[6], 0)
        link.drains = at < end and data[at] == 0x41
        return True

    def _watch_transfer(self, data: bytes | memoryview, at: int, end: int, session: OwnSession) -> None:
        session.next_outgoing = (session.next_outgoing + 1) & MASK
        if data[at + LIST_AT] == 0xC0:
            self.at = at + FIELDS8_AT
            self.stop = at + COUNT8_AT + data[at + SIZE_AT]
        else:
            self.at = at + FIELDS32_AT
            self.stop = at + COUNT32_AT + size_at(data, at + SIZE_AT)
        handle = self.read_uint(data)
        for _ in range(4):  # delivery-id, delivery-tag, message-format, settled
            self.pass_field(data)
        is_last = self.read_bool(data) != 1
        link: OwnLink | None = session.links.get(handle) if handle >= 0 else None
        self._link = link
        if link is not None and is_last:
            link.count = (link.count + 1) & MASK

    def _watch_begin(self, data: bytes | memoryview, at: int, end: int, channel: int) -> None:
        self.begin_list(data, at + BODY_AT, end)
        remote = self.read_ushort(data)
        next_outgoing = self.read_uint(data)
        window = self.read_uint(data)
        outgoing_window = self.read_uint(data)
        own = OwnSession(
            channel,
            is_first=remote < 0,
            next_outgoing=next_outgoing,
            window=window,
            outgoing_window=outgoing_window,
        )
        self.sessions.put(channel, own)
        if remote >= 0:
            session: PeerSession | None = self._peer_sessions.get(remote)
            if session is not None and session.own is None:
                pair(own, session)

    def _watch_rare(self, data: bytes | memoryview, code: int, channel: int, session: OwnSession) -> None:
        if code == FLOW:
            self._watch_flow(data, session)
        elif code == ATTACH:
            name = self.read_name(data)
            handle = self.read_uint(data)
            role = self.read_bool(data)
            for _ in range(6):
                self.pass_field(data)
            count = self.read_uint(data)
            if name is not None:
                add_own_link(session, OwnLink(name, role == 1, handle, max(count, 0)))
        elif code == DETACH:
            self._link = None
            remove_own_link(session, self.read_uint(data))
        elif code == END:
            self._link = None
            self.sessions.pop(channel)
            if session.peer is not None:
                session.peer.own = None
                session.peer = None

    def _watch_flow(self, data: bytes | memoryview, session: OwnSession) -> None:
        fields_at = self.at
        session.window_from = self.read_uint(data)
        session.window = self.read_uint(data)
        next_outgoing = self.read_uint(data)
        session.outgoing_window = self.read_uint(data)
        if session.peer is not None and session.peer.asks:
            session.said = [session.window_from, session.window, next_outgoing, session.outgoing_window]
        handle_at = self.at
        handle = self.read_uint(data)
        if handle < 0:
            return
        if handle > HANDLE_MAX:
            begin = self._frame_at
            right = without_link(bytes(data[begin : self.stop]), fields_at - begin, handle_at - begin)
            self.corrections.append((self._base + begin, right))
            return
        link: OwnLink | None = session.links.get(handle)
        if link is not None:
            link.count = max(self.read_uint(data), 0)
            link.credit = max(self.read_uint(data), 0)
            self.pass_field(data)
            link.drains = self.read_bool(data) == 1
            if link.peer is not None and link.peer.asks:
                of_session = [session.window_from, session.window, next_outgoing, session.outgoing_window]
                link.said = [*of_session, handle, link.count, link.credit, None, link.drains]
