"""States of sessions and links as the fields of a flow, which answer one with `echo`, and a window that is closed.

Source: AMQP 1.0 part 2, 2.5.6, 2.6.7 and 2.7.4.
"""

from __future__ import annotations

from typing import Final

from router.guard.endpoints import OwnLink, OwnSession, PeerLink, PeerSession, ReceiversByName, Table
from router.guard.guard_constants import HALF, MASK

CLOSED_WINDOWS: Final = {2: b"\x40\x43", 3: b"\x40\x52\0", 6: b"\x40\x70\0\0\0\0"}
"""A session's window of nothing from no transfer-id on, by the bytes of these two fields."""


def state_of_session(session: PeerSession, own: OwnSession) -> list[int | bool | None]:
    """The fields of a flow that state how a session is."""
    start = session.initial if own.window_from < 0 else own.window_from
    window = (start + own.window - session.next_incoming) & MASK
    if window > own.window:
        window = 0
    return [session.next_incoming, window, own.next_outgoing, own.outgoing_window]


def state_of_link(link: PeerLink, own: OwnLink) -> list[int | bool | None]:
    """Fields of a flow that state how a link is; they follow those of the session."""
    giver = own if own.is_receiver else link  # of credit: it has said what it has seen, and how much may follow
    count = link.count if own.is_receiver else own.count
    credit = (giver.count + giver.credit - count) & MASK
    if credit > HALF:
        credit = 0
    return [own.handle, count, credit, None, giver.drains]


def closed_window(size: int, next_outgoing: int) -> bytes | None:
    """A session's window of nothing from *next_outgoing* on, in two fields of *size* bytes; None when that can't be."""
    fields = CLOSED_WINDOWS.get(size)
    if fields is not None:
        return fields
    if size > 4:
        zero = b"\x52\0" if size == 7 else b"\x70\0\0\0\0"
        return b"\x70" + next_outgoing.to_bytes(4, "big") + zero
    if next_outgoing <= 510:  # else a receiver that takes 255 at most has more than that on their way to it
        first = min(next_outgoing, 255)
        return bytes((0x52, first, 0x52, next_outgoing - first))
    return None


def write_flow(fields: list[int | bool | None]) -> bytes:
    """The body of a flow frame, of the fields up to the last one that is not None."""
    while fields[-1] is None:
        fields.pop()
    values = b"".join(
        b"\x40" if field is None else b"\x41" if field is True else b"\x42" if field is False else _uint(field)
        for field in fields
    )
    return b"\x00\x53\x13\xc0" + bytes((len(values) + 1, len(fields))) + values


def _uint(value: int) -> bytes:
    return b"\x70" + value.to_bytes(4, "big")


def flow_without_credit(sessions: Table, receivers: ReceiversByName, name: bytes, excess: int) -> bytes | None:
    """A flow frame as the peer could have written it in place of its last one for a link of ours that sends.

    An engine may count credit below zero, which a flow that crosses transfers can state, by an unsigned number, and
    take it for very much. Given this frame, at the end of a frame of the peer, it has none.

    Args:
        sessions: of the peer, by its channels.
        receivers: links by which the peer receives.
        name: of the link.
        excess: by how much the credit is below zero.
    Returns: None when there is no such link.
    Raises:
        ValueError: the peer has given several links this name, which is to be unique (AMQP 1.0 part 2, 2.6.1).
    """
    found = receivers.named(name)
    if not found:
        return None
    if len(found) > 1:
        raise ValueError(f"{len(found)} links have this name")
    link = found[0]
    session: PeerSession = sessions.get(link.channel)
    fields = [
        session.stated_next if session.stated_next >= 0 else None,
        session.stated_window,
        session.stated_outgoing,
        session.stated_outgoing_window,
        link.handle,
        (link.count + link.credit + excess) & MASK,
        0,
        None,
        bool(link.drains),
    ]
    body = write_flow(fields)
    return (len(body) + 8).to_bytes(4, "big") + b"\x02\x00" + link.channel.to_bytes(2, "big") + body
