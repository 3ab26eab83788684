"""Sessions and links of one connection, as the frames of both sides have made them.

Each side numbers its own: a `PeerSession` stands at a channel of the peer and has a `PeerLink` for each handle that the
peer attached; an `OwnSession` and its `OwnLink`s stand at channels and handles of this side. Those that belong to each
other are joined once the frames of both sides were seen.

Source: AMQP 1.0 part 2, 2.5 and 2.6.
"""

from __future__ import annotations

from typing import Any, Final

import cython

if not cython.compiled:  # else they come by the .pxd
    from router.guard.guard_constants import NOBODY, RECEIVER, SENDER

DENSE: Final = 64
"""Bound below which numbers always have their place in a list."""
MOST_ALIKE: Final = 1000
"""Maximum number of links of one name that are looked at. A name is to be unique (2.6.1)."""


class Table:
    """Table of objects by numbers that a peer chooses: its memory depends on how many they are, not on how large."""

    def __init__(self) -> None:
        self.dense: list[Any] = []
        """Objects by number, None where there is nothing."""
        self.far: dict[int, Any] = {}
        """Objects at numbers that would leave most of a list empty."""
        self.count = 0

    def get(self, number: int) -> Any:
        """Object at a number; None for nothing."""
        found = self.dense[number] if number < len(self.dense) else None
        return found if found is not None or not self.far else self.far.get(number)

    def values(self) -> list[Any]:
        """All of them."""
        return [value for value in self.dense if value is not None] + list(self.far.values())

    def put(self, number: int, value: Any) -> None:
        """Put *value* where nothing is."""
        dense = self.dense
        self.count += 1
        if number >= DENSE and number > 2 * self.count:
            self.far[number] = value
            return
        while len(dense) <= number:
            dense.append(None)
        dense[number] = value

    def pop(self, number: int) -> Any:
        """Take what is there away; None for nothing."""
        found = self.get(number)
        if found is None:
            return None
        self.count -= 1
        if self.far.pop(number, None) is None:
            self.dense[number] = None
            if not self.count:
                self.dense.clear()
        return found


class DispositionRange:
    """Delivery-ids of one session and one direction that the dispositions of one piece of input are about."""

    def __init__(self) -> None:
        self.piece = 0
        """Number of that piece, from 1; of an older one nothing counts."""
        self.first = 0
        self.span = 0
        """Further ids behind the first."""


class PeerLink:
    """A link at a handle of the peer."""

    def __init__(self, name: bytes, is_receiver: bool, channel: int, handle: int, count: int) -> None:
        self.name = name
        self.is_receiver = is_receiver
        """Whether the peer receives: it may send no transfers."""
        self.channel = channel
        """Channel of its session."""
        self.handle = handle
        self.place = 0
        """Place among the links of its name in `ReceiversByName`."""
        self.count = count
        """Delivery-count of the peer, as it last stated it."""
        self.credit = 0
        """Link-credit that a peer which receives stated together with `count`."""
        self.drains = False
        self.asks = False
        """Whether the peer has asked for a flow that was not written yet."""
        self.large_bytes = 0
        """Bytes of the attach beyond `PLAIN_BYTES`."""
        self.default_outcome: tuple[int, bool, bool] | None = None
        """Outcome that the link's source has for what is settled without one, as `outcome_rewriting.default_outcome`
        returns it."""
        self.own: OwnLink | None = None


class ReceiversByName:
    """Links of all sessions by which the peer receives, by name: each is found without a look at the others."""

    def __init__(self) -> None:
        self._links: dict[bytes, list[PeerLink]] = {}
        """Links of each name: one, unless the peer gives a name in several sessions."""

    def named(self, name: bytes) -> list[PeerLink]:
        """Links that have a name, not to be changed."""
        return self._links.get(name, [])

    def add(self, link: PeerLink) -> None:
        """Note a link that the peer has attached, if it receives."""
        if link.is_receiver:
            alike = self._links.setdefault(link.name, [])
            link.place = len(alike)
            alike.append(link)

    def remove(self, link: PeerLink) -> None:
        """Forget a link that was added."""
        if not link.is_receiver:
            return
        alike = self._links[link.name]
        last = alike.pop()
        if last is not link:
            alike[link.place] = last
            last.place = link.place
        elif not alike:
            del self._links[link.name]


class OwnLink:
    """A link at a handle of this side."""

    def __init__(self, name: bytes, is_receiver: bool, handle: int, count: int) -> None:
        self.name = name
        self.is_receiver = is_receiver
        self.handle = handle
        self.count = count
        """Delivery-count: a sender's own, or, as a receiver last stated it, that of its peer."""
        self.credit = 0
        """Link-credit that a receiver stated together with `count`."""
        self.drains = False
        self.said: list[int | bool | None] = []
        """Fields of the last flow that was written for the link since the peer has asked for one."""
        self.peer: PeerLink | None = None


class PeerSession:
    """A session at a channel of the peer."""

    def __init__(self, initial: int, handle_max: int = 0xFFFF_FFFF) -> None:
        self.initial = initial
        """Transfer-id of the peer's first transfer frame."""
        self.handle_max = handle_max
        """Highest handle that this side may attach."""
        self.next_incoming = initial
        """Transfer-id of the peer's next transfer frame."""
        self.links = Table()
        """Links by handle."""
        self.roles = bytearray()
        """Role of the link by handle, for handles looked up for each message: NOBODY, SENDER or RECEIVER."""
        self.unpaired: dict[tuple[bytes, bool], PeerLink] = {}
        """Links that this side has not attached, by name and role."""
        self.asks = False
        """Whether the peer has asked for a flow of the session that was not written yet."""
        self.stated_next = -1
        """Next transfer-id that the peer's last flow expects; -1 for nothing."""
        self.stated_window = 0
        """Incoming window that the peer's last flow states, frames."""
        self.stated_outgoing = 0
        """Next transfer-id of the peer that its last flow states."""
        self.stated_outgoing_window = 0
        """Outgoing window that the peer's last flow states, frames."""
        self.settled_sent = DispositionRange()
        """Deliveries of this side of which the peer has told the outcome."""
        self.settled_received = DispositionRange()
        """Deliveries of the peer: both sides number their own."""
        self.own: OwnSession | None = None


class OwnSession:
    """A session at a channel of this side."""

    def __init__(self, channel: int, *, is_first: bool, next_outgoing: int, window: int, outgoing_window: int) -> None:
        self.channel = channel
        self.is_first = is_first
        """Whether this side has begun the session: the peer may answer, once."""
        self.next_outgoing = next_outgoing
        """Transfer-id of the next transfer frame."""
        self.window = window
        """Incoming window that this side last stated, frames."""
        self.window_from = -1
        """Transfer-id at which that window began; -1 for the peer's first."""
        self.outgoing_window = outgoing_window
        self.said: list[int | bool | None] = []
        """Fields of the last flow that was written for the session since the peer has asked for one."""
        self.links = Table()
        self.unpaired: dict[tuple[bytes, bool], OwnLink] = {}
        self.peer: PeerSession | None = None
        self.was_answered = False


def pair(own: OwnSession, peer: PeerSession) -> None:
    """Join the halves of a session."""
    own.peer = peer
    peer.own = own
    own.was_answered = True


def add_peer_link(session: PeerSession, link: PeerLink) -> None:
    """Note a link that the peer has attached."""
    handle = link.handle
    session.links.put(handle, link)
    roles = session.roles
    size = len(session.links.dense)
    if size > len(roles):
        roles.extend(bytes(size - len(roles)))
    if handle < size:
        roles[handle] = RECEIVER if link.is_receiver else SENDER
    own = session.own
    match = own.unpaired.pop((link.name, not link.is_receiver), None) if own is not None else None
    if match is not None:
        match.peer = link
        link.own = match
    else:
        session.unpaired[link.name, link.is_receiver] = link


def add_own_link(session: OwnSession, link: OwnLink) -> None:
    """This side has attached a link."""
    session.links.put(link.handle, link)
    peer = session.peer
    match = peer.unpaired.pop((link.name, not link.is_receiver), None) if peer is not None else None
    if match is not None:
        match.own = link
        link.peer = match
    else:
        session.unpaired[link.name, link.is_receiver] = link


def remove_peer_link(session: PeerSession, handle: int) -> None:
    """Forget a link that the peer has detached; its handle is free.

    What this side has attached may yet belong to another one.
    """
    link: PeerLink = session.links.pop(handle)
    if handle < len(session.roles):
        session.roles[handle] = NOBODY
    own = link.own
    if own is not None:
        link.own = None
        own.peer = None
        if session.own is not None:
            session.own.unpaired[own.name, own.is_receiver] = own
    elif session.unpaired.get((link.name, link.is_receiver)) is link:
        del session.unpaired[link.name, link.is_receiver]


def remove_own_link(session: OwnSession, handle: int) -> None:
    """Remove a link of this side. What the peer has attached may yet belong to another one."""
    link: OwnLink | None = session.links.pop(handle)
    if link is None:
        return
    peer = link.peer
    if peer is not None:
        link.peer = None
        peer.own = None
        if session.peer is not None:
            session.peer.unpaired[peer.name, peer.is_receiver] = peer
    elif session.unpaired.get((link.name, link.is_receiver)) is link:
        del session.unpaired[link.name, link.is_receiver]


def default_outcome_of(receivers: ReceiversByName, name: bytes) -> tuple[int, bool, bool] | None:
    """The default outcome of a receiver's link that this side has not attached yet.

    Args:
        receivers: links by which the peer receives.
        name: of the link; where several sessions have one of it, and they don't agree, there is none.
    Returns: as `outcome_rewriting.default_outcome`.
    """
    links = receivers.named(name)
    if len(links) > MOST_ALIKE:
        return None
    outcomes = {link.default_outcome for link in links if link.own is None}
    return outcomes.pop() if len(outcomes) == 1 else None
