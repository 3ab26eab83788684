"""Backpressure: which links are not read for now, why, and when they are read again.

A link is read as long as its messages can go on, be held or wait within their bounds, and its connection keeps to its
rate. When not it is paused: its bytes stay in the session, whose window closes, until there is room again. By then
these may be megabytes, of which a turn takes a part: others are to have theirs.
"""

from __future__ import annotations

from math import inf
from typing import Final

import cython

from router.dataplane.links import IngressCircuitLink, IngressLink, SubscriberLink, Transfer
from router.dataplane.message_sender import MessageSender
from router.dataplane.unfinished_deliveries import UnfinishedDeliveries
from router.dataplane.waiting_messages import WaitingMessages

if not cython.compiled:  # else they come by the .pxd
    from router.binding.proton_functions import Handle
    from router.dataplane.transfer_stages import DONE, STREAM_BUFFER_BYTES, STREAMING, WAITING

TURN_BYTES: Final = 262_144
"""Maximum number of bytes read in one turn of all links that were paused: a few parts."""


class IngressBackpressure:
    """Paused links of one router that wait for a turn, for a rate, or for a message on another link of their session.

    Links that wait for an egress connection are kept in `Port.paused`, those that wait for memory in `Port.stopped`.
    """

    def __init__(self, waiting: WaitingMessages, egress: MessageSender, unfinished: UnfinishedDeliveries) -> None:
        self._waiting = waiting
        self._egress = egress
        self._unfinished = unfinished
        self.unread: dict[IngressLink, None] = {}
        """Links that are to be read again in the next turn, in their order."""
        self.slowed: dict[IngressLink, float] = {}
        """Links whose connection sends faster than it may, each with the time at which it is read again, seconds."""
        self.slowed_due = inf
        """Time of the first link in `slowed`, seconds; infinity when there is none."""
        self._alone: dict[Handle, dict[IngressLink, None]] = {}
        """Links by session that were paused, and are to be read again when a message on another one of it begins."""
        self._left = TURN_BYTES
        """Rest of what may be read of links that were paused in this turn, bytes."""

    def pause(self, link: IngressLink, now: float) -> None:
        """Stop reading a link in the middle of a message, at *now* (seconds)."""
        link.is_paused = True
        if link.progress is not None:
            link.progress.pause(now)

    def forget(self, link: IngressLink) -> None:
        """Forget a link that is gone."""
        self.slowed.pop(link, None)
        self.unread.pop(link, None)
        alone = self._alone.get(link.session)
        if alone is not None:
            alone.pop(link, None)
            if not alone:
                del self._alone[link.session]

    # A part in each turn

    def begin_turn(self) -> None:
        """Begin a turn: as much as in each may be read of links that were paused."""
        self._left = TURN_BYTES

    def take_unread(self) -> dict[IngressLink, None]:
        """Take the links of which there was more in the last turn: they are to be read in this one."""
        unread, self.unread = self.unread, {}
        return unread

    def may_resume(self, link: IngressLink) -> bool:
        """Whether a link may be read again in this turn; else it is in the next."""
        if self._left <= 0:
            self.unread[link] = None
        return link not in self.unread

    def postpone(self, link: IngressLink, now: float) -> None:
        """Pause a link at *now* (seconds) until the next turn."""
        self.pause(link, now)
        self.unread[link] = None

    def has_read_enough(self, link: IngressLink, count: int, now: float) -> bool:
        """Count what was read of a link that had been paused; pause it if the rest is for the next turn.

        Args:
            link: it.
            count: bytes.
            now: seconds.
        Returns: whether it is paused.
        """
        self._left -= count
        if self._left > 0:
            return False
        self.postpone(link, now)
        return True

    # A rate

    def may_begin(self, link: IngressLink, now: float) -> bool:
        """See whether the rate of its connection allows a link one more message; else pause it until it does.

        Args:
            link: on which the message comes.
            now: seconds.
        Returns: whether the message may begin.
        """
        assert link.rate is not None
        wait_s = link.rate.wait(now)
        if wait_s == 0:
            return True
        self.pause(link, now)
        self.slowed[link] = now + wait_s
        self.slowed_due = min(self.slowed_due, now + wait_s)
        return False

    def take_slowed(self, now: float) -> list[IngressLink]:
        """Take the links whose connections may send more at *now* (seconds)."""
        due = [link for link, at in self.slowed.items() if at <= now]
        for link in due:
            del self.slowed[link]
        self.slowed_due = min(self.slowed.values(), default=inf)
        return due

    def keep_slowed(self, links: list[IngressLink], now: float) -> None:
        """Let links wait for their rates again, before those that had a message since: their turns come first.

        Args:
            links: paused links whose rates allow no message now.
            now: seconds, monotonic.
        """
        waits = {link: now + link.rate.wait(now) for link in links if link.rate is not None}
        self.slowed = {**waits, **self.slowed}
        self.slowed_due = min(self.slowed.values(), default=inf)

    # Room

    def watch(self, link: IngressLink, received: int, now: float) -> None:
        """Watch a message whose end has not come. Siblings must not keep its sender from going on.

        Args:
            link: on which it comes.
            received: bytes of it that were read.
            now: seconds.
        """
        self._unfinished.watch(link, received, now)
        if self._alone:
            for sibling in self._alone.pop(link.session, ()):
                if sibling.is_paused:
                    self.unread[sibling] = None

    def must_pause(self, link: IngressLink, transfer: Transfer, now: float) -> bool:
        """Pause a link if no more of its message should be read *now* (seconds): what was read cannot be sent on.

        Returns: whether it is paused.
        """
        if self._must_wait(link, transfer):
            assert transfer.egress is not None
            self.pause(link, now)
            transfer.egress.port.paused[link] = None
            self._resume_with_sibling(link)
            if link.port.is_over:
                link.port.stopped[link] = None
            return True
        if transfer.state != WAITING:
            return False
        is_over = link.port.is_over
        if transfer.size > STREAM_BUFFER_BYTES and self._is_large(transfer):
            # What it waits for may be the end of a message on another link of its session, whose window has to be open.
            if is_over or not self._unfinished.has_sibling(link):
                self.pause(link, now)  # until it is sent or settled (`Settlement.resume`), or such a message begins
                self._resume_with_sibling(link)
                return True
        elif is_over:
            self.pause(link, now)  # until it is sent, or that is over
            link.port.stopped[link] = None
            return True
        return False

    def _resume_with_sibling(self, link: IngressLink) -> None:
        """Have a paused link read again when another one of its session has a message that is unfinished."""
        self._alone.setdefault(link.session, {})[link] = None

    def has_to_wait(self, link: IngressLink) -> bool:
        """Whether a paused link would be paused again at once: where its message leaves there is no room yet.

        It must not be read then. That has something written to its peer, which may be what has to take the message:
        writing to it brings us here, so a turn would never end.
        """
        return link.current is not None and self._must_wait(link, link.current)

    def _must_wait(self, link: IngressLink, transfer: Transfer) -> bool:
        """Whether no more of a message should be read, since what was read of it is not written."""
        egress = transfer.egress
        if transfer.state != STREAMING or egress is None or not self._egress.is_full(egress):
            return False
        if link.port.is_over or egress.port.leaving_bytes > self._unfinished.ahead_bytes:
            return True
        # While it isn't read it closes its session's window, which others may need to begin, or to come to their ends.
        return not (link.shares_session() or self._unfinished.has_sibling(link))

    def must_stop(self, link: IngressLink) -> bool:
        """Pause a link if no message of it is to be begun: too much of it waits, or its connection is above its mark.

        Returns: whether it is paused.
        """
        port = link.port
        if port.is_router and port.is_stopped:
            return False  # it is read, and released
        if self._waiting.is_backlogged(link):
            if not port.is_over and self._unfinished.has_sibling(link):
                return False  # what it waits for may need the window, as in `must_pause`
            # Until enough has left (`WaitingMessages.relieved`), or such a message begins.
            link.is_paused = True
            self._resume_with_sibling(link)
            return True
        if link.entry is not None and link.entry.service is not None:
            return False  # whoever asks the router what is wrong gets an answer
        asking = port.asking
        if link.entry is None and not port.is_router and (asking is None or asking.state == DONE):
            return False  # it may be such a question: one message of the connection at a time is looked at
        link.is_paused = True
        port.stopped[link] = None  # until that is over (`RouterDataPlane.release`)
        return True

    def _is_large(self, transfer: Transfer) -> bool:
        egress, source = transfer.egress, transfer.ingress
        is_to_router = egress is not None and not isinstance(egress, SubscriberLink)
        return transfer.may_stream or is_to_router or isinstance(source, IngressCircuitLink)
