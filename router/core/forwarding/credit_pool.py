"""Credit pool: unspent credit from downstream, and those who draw on it.

    free = capacity - what the claimants hold        free >= 0 whenever credit is dealt.

There are two kinds. A `PoolTowardEgress` has the credit toward one egress router; its claimants are neighbors'
circuits and the local publishers. A `SubscriberCreditPool` has what the local subscribers of a multicast can take
together; its claimants are the trees of the routers where messages enter. They differ in what a claimant may hold, and
in the order in which credit is dealt. The rest is here: the least served is next, what downstream asks back is asked of
the claimants, and what is out without being backed is called in after a while.

Times are seconds, monotonic; credit is messages.

Source: docs/explanation/credit.md#pools-and-claimants; Kung, Blackwell and Chapman (1994), credit-based flow control
for each hop.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heapreplace
from math import inf

from router.core.forwarding.credit_actions import Key
from router.core.forwarding.credit_scheduler import CreditTiming
from router.core.forwarding.doubling_window import DoublingWindow


class Claimant(DoublingWindow):
    """Claimant of a pool: a circuit, a tree, or the local publishers together.

    Args:
        key: name of it; None for the local publishers, to whom credit costs no frame.
        window: what it may hold at first, messages.
        look_s: as of `DoublingWindow`.
    """

    __slots__ = ("has_returned", "is_draining", "key", "out", "served", "weight")

    def __init__(self, key: Key | None, window: int, look_s: float) -> None:
        DoublingWindow.__init__(self, window, look_s)
        self.key = key
        self.out = 0
        """Credit dealt to it and not used."""
        self.weight = 0
        """Number of busy publishers behind the claimant."""
        self.served = 0.0
        """Credit that it was dealt, divided by its weight at the time: the least served is next."""
        self.is_draining = False
        """Whether the claimant was asked to return what it holds; it gets nothing until it has."""
        self.has_returned = False
        """Whether the claimant has returned credit since downstream asked for its own: nothing waits behind it."""

    def take(self, credit: int) -> None:
        """Have *credit* dealt to it."""
        self.out += credit
        self.served += credit / self.weight


class CreditPool:
    """Credit from downstream, dealt among claimants. Base of both kinds of pool."""

    def __init__(self, timing: CreditTiming) -> None:
        self.timing = timing
        self.capacity = 0
        """Unspent credit from downstream."""
        self.out = 0
        """Credit held by all claimants that can be asked for it."""
        self.returning = 0
        """Part of the capacity that downstream asks back."""
        self.returning_since = inf
        self.withdrawn_at = inf
        """Time since which all local subscribers have taken back what they granted, seconds; infinity while they have
        not."""
        self.debt_since = inf
        """Time since which less than nothing is free, seconds; infinity while something is."""

    # What the kinds differ in

    def free(self) -> int:
        """Credit that is dealt to nobody; below 0 when more is out than there is."""
        raise NotImplementedError

    def holders(self) -> Iterable[Claimant]:
        """Claimants that can be asked to return what they hold, in the order of joining."""
        raise NotImplementedError

    def claimants(self) -> list[Claimant]:
        """Claimants that may be dealt credit; of equals the first is served first."""
        raise NotImplementedError

    def target(self, claimant: Claimant, total: int) -> int:
        """Most that a claimant may hold, where all together have the weight *total*."""
        raise NotImplementedError

    def ask(self, claimant: Claimant, now: float) -> None:
        """Ask a claimant at *now* (seconds) to use what it holds or to return it."""
        raise NotImplementedError

    # What happens

    def set_returning(self, credit: int, now: float) -> None:
        """Note how much of its credit downstream asks back *now*."""
        if credit == 0:
            if self.returning:
                for claimant in self.holders():
                    claimant.has_returned = False
            self.returning_since = inf
        elif self.returning == 0:
            self.returning_since = now
        self.returning = credit

    def take_from(self, claimant: Claimant, credit: int) -> None:
        """Take *credit* of a claimant off what it holds: it was used, or given back."""
        claimant.out -= credit
        self.out -= credit
        if claimant.out == 0:
            # A drain that crosses the last use of the credit gets no answer.
            claimant.is_draining = False

    def returned(self, claimant: Claimant, credit: int) -> None:
        """Take back *credit*. A late answer, after all was used, finds nothing to return."""
        self.take_from(claimant, min(credit, claimant.out))
        claimant.has_returned = claimant.has_returned or self.returning > 0

    def note_debt(self, now: float) -> None:
        """Remember since when more is out than there is, *now* if that is new."""
        self.debt_since = inf if self.free() >= 0 else min(self.debt_since, now)

    def renew_debt(self, now: float) -> None:
        """Give a debt the same time again from *now* (seconds) on: it was asked for and may not come back."""
        self.debt_since = now

    # Dealing

    def share_out(self, claimants: list[Claimant], total: int, free: int, batches: int) -> float:
        """Deal *free* credit among *claimants*, the least served first, of equals the one that stands first.

        Args:
            claimants: those that may get some.
            total: weight of these and of those who get none this time.
            free: messages.
            batches: a claimant's target is dealt in so many batches; 0 for one by one.
        Returns: how well the last one was served when it was its turn; minus infinity when it was nobody's.
        """
        level = -inf
        able = [(claimant.served, at, self.target(claimant, total), claimant) for at, claimant in enumerate(claimants)]
        able = [item for item in able if item[3].out < item[2]]
        heapify(able)
        while free > 0 and able:
            level, at, target, claimant = able[0]
            claimant.goal = target
            credit = min(free, target - claimant.out, max(1, target // batches)) if batches else 1
            claimant.take(credit)
            free -= credit
            if claimant.out < target:
                heapreplace(able, (claimant.served, at, target, claimant))
            else:
                heappop(able)
        return level

    def limit_claims(self, claimants: list[Claimant], total: int, level: float) -> None:
        """Limit what *claimants* are owed to what they may hold: one that used little has no claim to the rest.

        Args:
            claimants: all that there are.
            total: weight of these.
            level: how well the last one was served that was dealt credit; minus infinity for nobody.
        """
        for claimant in claimants:
            claimant.served = max(claimant.served, level - self.target(claimant, total) / claimant.weight)

    def forget_claim(self, claimant: Claimant) -> None:
        """Leave a claimant that was away, silent or without need, no claim to what others were dealt meanwhile."""
        others = [other.served for other in self.claimants() if other is not claimant]
        claimant.served = max(claimant.served, min(others, default=0.0))

    def is_starving(self, claimants: list[Claimant]) -> bool:
        """Whether one of *claimants* has next to nothing. Of the local publishers their own queues tell."""
        total = total_weight(claimants)
        for claimant in claimants:
            if claimant.key is not None and 4 * claimant.out <= self.target(claimant, total):
                return True
        return False

    # Taking back

    def ask_for(self, credit: int, now: float) -> int:
        """Ask claimants until *credit* is on its way back, the least recently used first.

        Args:
            credit: messages.
            now: seconds.
        Returns: what is missing.
        """
        credit -= sum(claimant.out for claimant in self.holders() if claimant.is_draining)
        for claimant in sorted(self.holders(), key=lambda claimant: claimant.since):
            if credit <= 0:
                break
            if claimant.out > 0 and not claimant.is_draining:
                credit -= claimant.out
                self.ask(claimant, now)
        return max(0, credit)

    def ask_unused(self, holders: Iterable[Claimant], hold_s: float, now: float) -> float:
        """Ask those of *holders* that have not used what they hold for *hold_s* (seconds) at *now*.

        Returns: when the next will be due, seconds.
        """
        due = inf
        for claimant in holders:
            if claimant.is_draining:
                continue
            if claimant.since + hold_s <= now:
                self.ask(claimant, now)
            else:
                due = min(due, claimant.since + hold_s)
        return due

    def is_late(self, now: float) -> bool:
        """Whether a subscriber has waited until *now* for the credit that it asked back, and is to wait no longer."""
        return self.returning_since + self.timing.drain_bound_s <= now

    def check_invariants(self) -> None:
        """Check that counts are possible, and that a turn left a debt only with its time noted.

        Raises: AssertionError when not.
        """
        assert all(c.out >= 0 and c.weight >= 0 for c in self.holders())
        assert not any(c.is_draining and c.out == 0 for c in self.holders())
        assert self.out == sum(c.out for c in self.holders())
        assert self.free() >= 0 or self.debt_since < inf


def total_weight(claimants: list[Claimant]) -> int:
    """Busy publishers behind all of *claimants*."""
    total = 0
    for claimant in claimants:
        total += claimant.weight
    return total
