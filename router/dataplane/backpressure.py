"""Backpressure: which links are not read for now, why, and when they are read again.

A link is read as long as its messages can go on, be held or wait within their bounds, and its connection keeps to its
rate. When not it is paused: its bytes stay in the session, whose window closes, until there is room again. By then
these may be megabytes, of which a turn takes a part: others are to have theirs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from math import inf
from typing import Final

import cython

from router.core.forwarding.timer_queue import TimerQueue
from router.dataplane.links import IngressCircuitLink, IngressLink, SubscriberLink, Transfer
from router.dataplane.message_sender import MessageSender
from router.dataplane.unfinished_deliveries import UnfinishedDeliveries
from router.dataplane.waiting_messages import WaitingMessages

if not cython.compiled:  # else they come by the .pxd
    from router.binding.proton_functions import Handle
    from router.dataplane.transfer_stages import DONE, STREAM_BUFFER_BYTES, STREAMING, WAITING

TURN_BYTES: Final = 262_144
"""Maximum number of bytes read in one turn of all links that were paused: a few parts."""
FULL_TURN_S: Final = 0.01
"""Time after which links that wait for a rate are looked at again when the turn had no room for them, seconds."""


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
        self.slowed: dict[IngressLink, Hashable] = {}
        """Links whose connection or user sends faster than it may, each with the bound that it waits for."""
        self._queues: dict[Hashable, OrderedDict[IngressLink, None]] = {}
        """Links in `slowed` by their bounds, in the order in which they are read again."""
        self._rates = TimerQueue()
        """Bounds by the time at which the first of their links may be read again: no other link is looked at."""
        self.slowed_due = inf
        """Time of the first bound in `_rates`, seconds; infinity when there is none."""
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
        if link in self.slowed:
            self._leave_rate(link)
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

    def postpone_if_turn_is_full(self, link: IngressLink) -> bool:
        """Leave a paused link to the next turn if no more is read in this one, or it was left to the next already.

        Returns: whether it is left to the next turn.
        """
        if self._left <= 0:
            self.unread[link] = None
        return link in self.unread

    def postpone(self, link: IngressLink, now: float) -> None:
        """Pause a link at *now* (seconds) until the next turn."""
        self.pause(link, now)
        self.unread[link] = None

    def count_read(self, link: IngressLink, count: int, now: float) -> bool:
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

    def pause_for_rate(self, link: IngressLink, now: float) -> bool:
        """Pause a link on which a message comes if the rate of its connection allows no more *now* (seconds).

        Returns: whether it is paused.
        """
        assert link.rate is not None
        wait_s = link.rate.wait(now)
        if wait_s == 0:
            return False
        self.pause(link, now)
        self._wait_for(link, link.rate.bottleneck(now), now + wait_s)
        return True

    def _wait_for(self, link: IngressLink, bound: Hashable, at: float) -> None:
        """Let a link be the last of those that wait for a bound, unless it waits there; the first may go on *at* then.

        The time does not count where others wait: theirs is known.
        """
        if self.slowed.get(link, bound) is not bound:
            self._leave_rate(link)
        self.slowed[link] = bound
        queue = self._queues.get(bound)
        if queue is None:
            queue = self._queues[bound] = OrderedDict()
            self._rates.set(bound, at)
            self.slowed_due = self._rates.next()
        queue[link] = None

    def _leave_rate(self, link: IngressLink) -> None:
        bound = self.slowed.pop(link)
        queue = self._queues[bound]
        del queue[link]
        if not queue:
            del self._queues[bound]
            self._rates.cancel(bound)
            self.slowed_due = self._rates.next()

    def take_slowed(self, now: float) -> IngressLink | None:
        """Take the next link whose connection may send more at *now* (seconds); None when there is no more of them.

        Links that wait for one bound take turns.
        """
        while self.slowed_due <= now:
            bound = self._rates.first()
            link = next(iter(self._queues[bound]))
            assert link.rate is not None
            wait_s = link.rate.wait(now)
            if self._left <= 0 and self.unread:
                wait_s = max(wait_s, FULL_TURN_S)
            elif wait_s == 0:
                self._leave_rate(link)
                return link
            elif link.rate.bottleneck(now) is not bound:
                self._wait_for(link, link.rate.bottleneck(now), now + wait_s)
                continue
            self._rates.set(bound, now + wait_s)
            self.slowed_due = self._rates.next()
        return None

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

    def pause_in_message(self, link: IngressLink, transfer: Transfer, now: float) -> bool:
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

    def pause_before_message(self, link: IngressLink) -> bool:
        """Pause a link if no message of it is to be begun: too much of it waits, or its connection is above its mark.

        Returns: whether it is paused.
        """
        port = link.port
        if port.is_router and port.is_stopped:
            return False  # it is read, and released
        if self._waiting.is_backlogged(link):
            if not port.is_over and self._unfinished.has_sibling(link):
                return False  # what it waits for may need the window, as in `pause_in_message`
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
