"""Base of both credit machines: how patient they are, and the events that a message or time brings."""

from __future__ import annotations

from math import inf

import attrs

from router.core.forwarding.credit_actions import CreditAction, Key
from router.core.forwarding.doubling_window import FIRST_WINDOW
from router.core.ids_and_conditions import RouterId


@attrs.frozen(kw_only=True)
class CreditTiming:
    """Times of the credit rule, seconds, and how much it does at once."""

    busy_s: float = 0.1
    """Time for which a publisher that sent, or that was kept from it, counts as busy."""
    idle_s: float = 0.02
    """Time after which unused credit is taken back while others are backlogged. Above a client's round trip, or it
    flaps."""
    look_s: float = 0.1
    """Time between two looks at how fast a holder uses its credit: above the round trip to any publisher."""
    debt_s: float = 0.03
    """Time after a withdrawal or a change of path at which credit that is not backed any more is taken back."""
    quarantine_s: float = 0.05
    """Time for which credit taken back from a client counts as held: its messages may be under way, and no client says
    when it has seen the lowering."""
    linger_s: float = 1.0
    """Time after which subscribers that have all withdrawn close the address."""
    drain_bound_s: float = 1.0
    """Time after which a subscriber's drain is answered, even when what was lent of its credit has not come back; and
    what a neighbor was asked for and has not returned by then is for others."""
    first_window: int = FIRST_WINDOW
    """Maximum credit that a circuit is dealt, and that a publisher keeps, before it shows that it uses more,
    messages."""
    slice_size: int = 64
    """Maximum number of publishers given their first credit in one turn: a thousand of them must not hold up all
    else."""


class CreditScheduler:
    """A credit machine: events are methods, what is to be done is returned, and nobody is called.

    `turn` is to be called once after each batch of events, and at `next_deadline`. Times are seconds, monotonic; credit
    is messages.

    Keys, such as those of publishers, circuits and messages, are what actions name them by; they are never looked into.
    What an event is told of a message, and returns, is the same for both machines and said here.

    Attributes:
        actions: what events want done apart from what they return, in order; `take_actions` empties it.
        egresses: where a message may be sent as it comes, by the numbers that `published` and `arrived` return; a
            number may be another egress's after the next event.
    """

    def __init__(self) -> None:
        self.actions: list[CreditAction] = []
        self.egresses: list[RouterId] = []
        self._deadline = inf

    def take_actions(self) -> list[CreditAction]:
        """Take what is to be done. Whoever owns the machine carries it out before it writes to any link."""
        taken = self.actions.copy()
        self.actions.clear()
        return taken

    def published(self, key: Key, message: Key, now: float, is_ready: bool = True) -> int:
        """Take a message of a publisher: it is sent on, or waits as the youngest.

        Args:
            key: the publisher.
            message: its key, not in use.
            now: seconds.
            is_ready: it may leave; else its first part arrived, and it may leave from `ready` on.
        Returns: the number of the egress that it is to be sent to, `KEPT`, or `REFUSED` when no subscriber can be
            reached any more.
        """
        raise NotImplementedError

    def arrived(self, root: RouterId, key: Key, message: Key, now: float, is_ready: bool = True) -> int:
        """Take a message that came on a circuit: it is sent on, or waits.

        Args:
            root: router in which the circuit's tree has its root: the egress of an anycast, the ingress of a multicast.
            key: the circuit.
            message: as of `published`.
            now: as of `published`.
            is_ready: as of `published`.
        Returns: as `published`; `REFUSED` too when the circuit comes from elsewhere than the path does.
        """
        raise NotImplementedError

    def set_stopping(self, is_stopping: bool) -> None:
        """Give publishers no credit any more, or give it again."""
        raise NotImplementedError

    def turn(self, now: float) -> list[CreditAction]:
        """Send, deal, lend and take back at *now* (seconds). Returns: all that is to be done, in order."""
        raise NotImplementedError

    def next_deadline(self) -> float:
        """Tell the time at which a turn is due without an event, seconds.

        It is in the past for at once, and `inf` for never.
        """
        return self._deadline
