"""Loads: how many messages are before the next one at the subscribers of one egress router.

A *balanced* message goes where its expected wait is the least: where the fewest messages per subscriber have no outcome
yet, what the distance is worth added. This router counts what it has sent itself; of what others have sent the egress
router tells, through the circuits that lead to it (`router.dataplane.anycast_controller`).
"""

from __future__ import annotations

from math import inf
from typing import Final

from router.core.forwarding.credit_actions import Key

HINT_S: Final = 1.0
"""Time for which others' messages are believed to be there after a router told of them, seconds; it tells again
before."""
TELL_S: Final = 0.01
"""Minimum time between two reports to a neighbor, seconds."""
RENEW_S: Final = 0.4
"""Time after which a load that is worth telling is told again, seconds."""


class EgressLoad:
    """Messages without an outcome at the subscribers of one egress router, as far as this router knows.

    Counted only for addresses with a choice of subscribers, so that one subscriber costs nothing.
    """

    __slots__ = ("believed_until", "chosen", "datagrams", "elsewhere", "idle", "subscribers", "unsettled")

    def __init__(self, *, is_local: bool = False) -> None:
        self.unsettled = 0
        """Messages sent from here that have no outcome; at the egress router itself to subscribers that can take
        another one."""
        self.datagrams = 0
        """Number of messages in `unsettled` that went as datagrams."""
        self.elsewhere = 0
        """Other messages there, as the egress router tells; below 0 when some of `unsettled` is at subscribers that can
        take no other message."""
        self.believed_until = -inf
        """Time from which on `elsewhere` and `subscribers` are too old, seconds."""
        self.subscribers = 1
        """Number of subscribers there that can take a message, as the egress router tells; at least 1."""
        self.chosen = 0
        """Number of the choice that was last for it, one more than all others had: of equals the lowest is next."""
        self.idle: dict[Key, None] | None = {} if is_local else None
        """Local subscribers that may be without any message, the one that has waited longest first; None for other
        routers."""

    def sent(self) -> None:
        """Count one more message that is on its way."""
        self.unsettled += 1

    def settled(self, subscriber: Key, is_idle: bool) -> None:
        """Count one of them less: it has an outcome, or never will have one.

        Args:
            subscriber: one that took it.
            is_idle: *subscriber* has no other one.
        """
        self.unsettled -= 1
        if is_idle and self.idle is not None:
            self.idle[subscriber] = None

    def forget(self, subscriber: Key) -> None:
        """Leave out a subscriber that takes no message now, or is gone."""
        if self.idle is not None:
            self.idle.pop(subscriber, None)

    def told(self, elsewhere: int, subscribers: int, now: float) -> None:
        """Note what the neighbor on the way there tells.

        Args:
            elsewhere: what others have sent, messages.
            subscribers: those that can take one.
            now: seconds.
        """
        self.elsewhere = elsewhere
        self.subscribers = max(1, subscribers)
        self.believed_until = now + HINT_S

    def messages(self, now: float) -> int:
        """Count all that is known to be there at *now* (seconds), messages."""
        elsewhere = self.elsewhere if now < self.believed_until else 0
        return max(0, self.unsettled + elsewhere)

    def wait(self, now: float) -> int:
        """Count messages before the next one at *now* (seconds), at the subscriber that has the fewest."""
        return self.messages(now) // self.subscribers


class LoadToldToNeighbor:
    """Load that one neighbor was told of, and whether to tell it again.

    It adds what it sends itself, so it is told only of the others' messages.
    """

    __slots__ = ("elsewhere", "subscribers", "told_at")

    def __init__(self) -> None:
        self.elsewhere = 0
        self.subscribers = 1
        self.told_at = -inf

    def next_time(self, load: EgressLoad, own: int, now: float) -> float:
        """Find the time at which the neighbor is to be told, seconds.

        That is *now* or before, if at once; infinity when it knows all that matters.

        Args:
            load: all that is known to be there.
            own: messages of the neighbor itself that have no outcome.
            now: seconds.
        """
        subscribers = load.subscribers
        wait = load.messages(now) / subscribers
        believed = max(0, self.elsewhere + own) / self.subscribers
        if abs(wait - believed) >= max(1.0, wait / 4) or (subscribers != self.subscribers and wait + believed > 0):
            return self.told_at + TELL_S
        return self.told_at + RENEW_S if self.elsewhere else inf

    def tell(self, load: EgressLoad, own: int, now: float) -> tuple[int, int]:
        """Tell the neighbor at *now* (seconds).

        Args:
            load: all that is known to be there.
            own: messages of the neighbor itself that have no outcome.
            now: seconds.
        Returns: messages of others, and subscribers, to be told.
        """
        self.elsewhere = load.messages(now) - own
        self.subscribers = load.subscribers
        self.told_at = now
        return self.elsewhere, self.subscribers
