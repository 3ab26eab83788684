"""Publishers and subscribers of the simulated mesh: what clients do with credit, as it is seen in the field."""

from __future__ import annotations

import enum
import heapq
import math
import operator
from collections.abc import Callable

from mesh_config.findings import nearest
from router.simulation.network import Network
from router.testing.links import AmqpLink


class GrantHabit(enum.Enum):
    """Habit of a subscriber in granting again."""

    EACH = "one for each message that it has worked off"
    HALF = "up to the full credit when half of it is used (proton)"
    BATCH = "a batch when the one before is worked off"
    FULL = "up to the full credit with each message (oslo.messaging)"


class SettlementHabit(enum.Enum):
    """Habit of a subscriber in settling messages."""

    NEVER = "outcomes are not simulated"
    WHEN_TAKEN = "when a worker takes it (oslo.messaging)"
    WHEN_DONE = "when it is worked off"


def check_at_least(name: str, value: float, least: float) -> None:
    """Refuse a number that is too small or without end, and what is none.

    Args:
        name: of the argument.
        value: that it has.
        least: what it may be.
    Raises: ValueError, TypeError
    """
    expected = f"expected {least} at least"
    try:
        is_right = least <= value < math.inf
    except TypeError:
        raise TypeError(f"{name} is {value!r}; {expected}") from None
    if not is_right:
        raise ValueError(f"{name} is {value}; {expected}")


def check_count(name: str, value: int, least: int) -> None:
    """Refuse what is no whole number, as `check_at_least` does what is no number."""
    check_at_least(name, value, least)
    try:
        operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value}; expected a whole number, {least} at least") from None


def check_habit(name: str, value: object, habits: type[enum.Enum]) -> None:
    """Refuse what is no habit of a subscriber, such as its name as text.

    Raises: TypeError
    """
    if not isinstance(value, habits):
        near = nearest(str(value), [habit.name for habit in habits])
        hint = f"; did you mean {habits.__name__}.{near}?" if near else ""
        raise TypeError(f"{name} is {value!r}; expected a {habits.__name__}{hint}")


class SimPublisher:
    """A client that sends as soon as it has both a message and credit.

    Args:
        is_settled: its messages are pre-settled.
    """

    def __init__(self, key: int, link: AmqpLink, publish: Callable[[int], int], *, is_settled: bool) -> None:
        self.key = key
        self.link = link
        self.is_settled = is_settled
        self.is_attached = True
        self.backlog = 0
        """Messages that it would like to send."""
        self.sent = 0
        self._publish = publish
        self.settled: list[int] = []
        """Messages of this publisher that have an outcome, where outcomes are simulated."""
        link.on_flow = lambda _: self.pump()
        link.on_settled = self.settled.append

    def offer(self, count: int) -> None:
        """Give it more messages to send.

        Args:
            count: messages.
        Raises: ValueError when it is below 0, TypeError when it is no whole number.
        """
        check_count("count", count, 0)
        self.backlog += count
        self.pump()

    def pump(self) -> None:
        """Send what can be sent."""
        while self.backlog and self.link.credit > 0:
            self.backlog -= 1
            self.sent += 1
            self.link.send(self._publish(self.key))


class SimSubscriber:
    """A client that works on a few messages at a time.

    Args:
        credit: what it grants at most, messages.
        top_up: when it grants again; None: when `grant` is called.
        service_s: time for one message, seconds.
        workers: messages that it works on at a time.
        accepts: when it settles messages.
    """

    def __init__(
        self,
        network: Network,
        link: AmqpLink,
        *,
        credit: int,
        top_up: GrantHabit | None,
        service_s: float,
        workers: int = 1,
        accepts: SettlementHabit = SettlementHabit.NEVER,
    ) -> None:
        self.link = link
        self.credit = credit
        self.received: list[int] = []
        self.is_paused = False
        self.is_attached = True
        self.granted = 0
        """Credit granted since the start, messages."""
        self.drained_s: list[float] = []
        """Duration of each of its drains, seconds."""
        self._network = network
        self._top_up = top_up
        self.service_s = service_s
        self.accepts = accepts
        self.on_served: Callable[[int], None] = lambda _: None
        """Function called with each message that the client has worked off."""
        self._free_at = [0.0] * workers
        """Times at which the workers will be free, seconds: a heap."""
        self._unserved = 0
        self._drain_since = 0.0
        link.on_transfer = self._arrived
        link.on_returned = self._returned
        self.grant(credit)

    def grant(self, credit: int) -> None:
        """Grant more credit now; nothing while it is paused, detached or draining.

        Args:
            credit: how much more, messages, 0 or more; `pause(is_lowering=True)` takes credit back.
        Raises: ValueError when it is below 0, TypeError when it is no whole number.
        """
        check_count("credit", credit, 0)
        self._grant_missing(credit)

    def _grant_missing(self, credit: int) -> None:
        """Grant what is missing, which is below 0 where it has more than it needs: then nothing."""
        if credit > 0 and self.is_attached and not self.is_paused and not self.link.is_draining:
            self.granted += credit
            self.link.grant(credit)
            self.link.flush()

    def _arrived(self, message: int) -> None:
        self.received.append(message)
        assert len(self.received) <= self.granted, "a subscriber was sent more than it ever granted"
        if self.link.granted < 0:
            self.link.grant(1)  # crossed a lowering
            self.link.flush()
        if self.link.is_draining and self.link.granted == 0:
            self._end_drain()
        self._unserved += 1
        begin = max(self._free_at[0], self._network.now)
        end = begin + self.service_s
        heapq.heapreplace(self._free_at, end)
        if self.accepts is SettlementHabit.WHEN_TAKEN:
            self._network.call_at(begin, lambda: self.link.settle(message))
        self._network.call_at(end, lambda: self._served(message))

    def _served(self, message: int) -> None:
        self._unserved -= 1
        if self.accepts is SettlementHabit.WHEN_DONE:
            self.link.settle(message)
        self.on_served(message)
        missing = self.credit - self.link.granted
        match self._top_up:
            case GrantHabit.EACH:
                self._grant_missing(min(1, missing))
            case GrantHabit.HALF:
                self._grant_missing(missing if 2 * self.link.granted <= self.credit else 0)
            case GrantHabit.BATCH:
                self._grant_missing(missing if self.link.granted == 0 and self._unserved == 0 else 0)
            case GrantHabit.FULL:
                self._grant_missing(missing)

    def pause(self, *, is_lowering: bool) -> None:
        """Grant no more; *is_lowering* takes back what is unspent too."""
        self.is_paused = True
        if is_lowering and self.link.granted > 0:
            self.link.grant(-self.link.granted)
            self.link.flush()
            if self.link.is_draining:
                self._end_drain()

    def resume(self) -> None:
        """Grant again."""
        self.is_paused = False
        self._grant_missing(self.credit - self.link.granted)

    def drain(self) -> None:
        """Ask for the rest and for the credit back, as a synchronous get with a time-out does."""
        if self.link.granted > 0 and not self.link.is_draining:
            self._drain_since = self._network.now
            self.link.drain()
            self.link.flush()

    def _returned(self, credit: int) -> None:
        if not self.link.is_draining:
            # A late answer, after it lowered its credit itself and granted anew: the new credit is gone too.
            self._grant_missing(self.credit - self.link.granted)
        elif self.link.granted <= 0:
            self._end_drain()

    def _end_drain(self) -> None:
        self.drained_s.append(self._network.now - self._drain_since)
        self.link.drain(is_draining=False)
        self.link.flush()
        self._grant_missing(self.credit - self.link.granted)
