"""Shared credit: what the local subscribers of a multicast can take together, dealt among the trees at this router.

    free = what each live subscriber can still take - what the trees hold        free >= 0 whenever credit is dealt.

A pool (`credit_pool.py`) with an order of its own. A message needs the credit of every router with subscribers, so
where there is little of it two trees can each hold what the other lacks. Hence all routers deal in one order: one by
one to the tree of which the fewest messages passed here, for its weight, of equals to the first by name. The same
messages pass everywhere, so the order is the same everywhere; who is first in it holds credit before others hold two,
and what others hold is asked back if they do not use it. Routers that were there for different lengths of time may have
different orders: when nothing passes for long though trees are backlogged, all forget what has passed; and when nothing
passes even so, the first in the order are held up elsewhere and let others by, twice as many each time.

Source: docs/explanation/credit.md#multicast.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Final

from router.core.forwarding.credit_actions import Key
from router.core.forwarding.credit_pool import Claimant, CreditPool, total_weight
from router.core.forwarding.credit_scheduler import CreditTiming
from router.core.forwarding.multicast_subscribers import MulticastSubscribers
from router.core.ids_and_conditions import RouterId

BACKLOGGED_WEIGHT: Final = 1000
"""Weight of a busy publisher while publishers of its router have to wait for credit, or had to a short time ago.
All routers are told this one weight, so all deal alike: little to a tree that needs little."""
QUIET: Final = 4
"""Time for which nothing passes while trees are backlogged after which their order is changed, in `idle_s`. Above the
longest round trip through the mesh, or it changes while credit is on its way."""


def busy_publishers(weight: int) -> int:
    """Return the number of busy publishers that the *weight* of a multicast's circuit stands for."""
    return sum(divmod(weight, BACKLOGGED_WEIGHT))


class TreeShare(Claimant):
    """Part that one tree has of the shared credit."""

    key: RouterId

    __slots__ = ("failed", "passed", "recent", "uses")

    def __init__(self, ingress: RouterId) -> None:
        super().__init__(ingress, 0, inf)
        self.passed = 0.0
        """Messages of the tree that were sent here, each divided by its weight at the time: the tree with least is
        next."""
        self.failed = 0
        """Number of times that it was next and did not use its credit, since it last used any."""
        self.uses = 0
        """Credit that it used since the last count."""
        self.recent = 0
        """Credit that it used between the last two counts, `idle_s` or more apart."""

    def reckon(self) -> None:
        """Count it as served with what it used and holds, divided by its weight."""
        self.served = self.passed + self.out / max(1, self.weight)

    def take(self, credit: int) -> None:
        """Have *credit* dealt to it."""
        self.out += credit
        self.reckon()


class SubscriberCreditPool(CreditPool):
    """Credit of the local subscribers, and the trees that draw on it."""

    def __init__(self, local_subscribers: MulticastSubscribers, timing: CreditTiming) -> None:
        super().__init__(timing)
        self.local_subscribers = local_subscribers
        self.parts: dict[RouterId, TreeShare] = {}
        """Shares of the trees by ingress router, in the order of their names."""
        self.is_closed = True
        """Whether nobody is live, or all that are have taken their credit back for the linger."""
        self.is_touched = True
        """Whether something has happened since the last turn."""
        self.moved: dict[RouterId, None] = {}
        """Trees of which the part is another one than when this was last emptied."""
        self._backlogged = 0
        """Number of trees in which publishers wait."""
        self._quiet_since = inf
        """Time since which trees are backlogged and nothing was sent, or the order was last changed, seconds."""
        self._changes = 0
        """Number of times that the order was changed since anything was sent."""
        self._counted_at = -inf
        self._deadline = inf

    @property
    def is_backlogged(self) -> bool:
        """Whether publishers of a tree wait for credit, or did so a short time ago."""
        return self._backlogged > 0

    # The rule of a pool

    def free(self) -> int:
        """Credit that is dealt to no tree; below 0 when they hold more than there is."""
        return self.capacity - self.out

    def holders(self) -> Iterable[TreeShare]:
        """All trees, in the order of their names."""
        return self.parts.values()

    def claimants(self) -> list[Claimant]:
        """Trees with busy publishers, but for those that are asked to return what they hold."""
        return [part for part in self.parts.values() if part.weight > 0 and not part.is_draining]

    def target(self, claimant: Claimant, total: int) -> int:
        """Most that a tree may hold, messages.

        That is its part by weight, and twice that as far as it makes use of it, since who is farther away holds more
        for the same use.
        """
        part = claimant
        assert isinstance(part, TreeShare)
        by_weight = -(-self.capacity * part.weight // total)
        use = max(part.recent, part.uses)
        target = max(by_weight, min(2 * by_weight, use // 2))
        # Credit that lies idle in one tree is missing in others; a stream uses much and must not wait for each.
        return min(target, max(2 * part.weight, 2 * use))

    def ask(self, claimant: Claimant, now: float) -> None:
        """Ask a tree at *now* (seconds) for all that it holds."""
        assert isinstance(claimant, TreeShare)
        claimant.is_draining = True
        self.moved[claimant.key] = None

    # What happens

    def add(self, ingress: RouterId) -> TreeShare:
        """Begin the part of a new tree. Returns: the part."""
        part = self.parts[ingress] = TreeShare(ingress)
        self.moved[ingress] = None
        self.parts = dict(sorted(self.parts.items()))
        return part

    def remove(self, ingress: RouterId) -> None:
        """Forget a tree, and free what it holds."""
        part = self.parts.pop(ingress)
        self.out -= part.out
        self._backlogged -= part.weight >= BACKLOGGED_WEIGHT
        self.moved.pop(ingress, None)

    def set_weight(self, ingress: RouterId, weight: int) -> None:
        """Note how many busy publishers are behind a tree now."""
        part = self.parts[ingress]
        if weight == part.weight:
            return
        self.is_touched = True
        self._backlogged += (weight >= BACKLOGGED_WEIGHT) - (part.weight >= BACKLOGGED_WEIGHT)
        if weight >= 4 * part.weight:
            # A tree that wanted little has no claim to what others were dealt meanwhile, and has forfeited none.
            others = [p.passed for p in self.holders() if p.weight > 0 and not p.is_draining and p is not part]
            part.passed = min(others, default=part.passed)
        part.weight = weight
        part.reckon()

    def spend(self, ingress: RouterId, now: float) -> None:
        """Note that a message of a tree is sent *now* to all live subscribers."""
        part = self.parts[ingress]
        assert part.out > 0, "sent without a part"
        self._touch(part)
        self.take_from(part, 1)
        self.capacity -= 1
        part.since = now
        part.uses += 1
        part.passed += 1 / max(1, part.weight)
        part.reckon()
        part.failed = self._changes = 0
        self._quiet_since = inf

    def give_back(self, ingress: RouterId) -> None:
        """Free the part of a tree that returns it."""
        part = self.parts[ingress]
        self._touch(part)
        self.returned(part, part.out)
        part.reckon()

    def _touch(self, part: TreeShare) -> None:
        self.is_touched = True
        self.moved[part.key] = None

    # The turn

    def turn(self, now: float) -> list[Key]:
        """Deal and take back. Returns: subscribers that drain and are to get back all that they have granted.

        Args:
            now: seconds.
        """
        self._look(now)
        if self._counted_at + self.timing.idle_s <= now:
            self._counted_at = now
            for part in self.parts.values():
                part.recent, part.uses = part.uses, 0
        if self.capacity == 0:
            for ingress in [ingress for ingress, part in self.parts.items() if part.is_draining]:
                self.give_back(ingress)  # nothing can be sent on it
        self._deal(now)
        self._deadline = self._take_back(now)
        answered = self._answer_drains(now) if self.local_subscribers.draining else []
        self.is_touched = False
        return answered

    def _look(self, now: float) -> None:
        """See what the subscribers can take, and since when things are as they are."""
        local_subscribers = self.local_subscribers
        self.capacity = local_subscribers.capacity
        is_withdrawn = local_subscribers.is_withdrawn and self.capacity == 0
        self.withdrawn_at = min(self.withdrawn_at, now) if is_withdrawn else inf
        self.is_closed = not local_subscribers.has_live or self.withdrawn_at + self.timing.linger_s <= now
        self.set_returning(self.capacity if local_subscribers.is_draining else 0, now)
        self.note_debt(now)

    def _deal(self, now: float) -> None:
        free = self.free()
        if free <= 0:
            return
        drawing = self.claimants()
        if self.returning:
            # Whether something waits in a tree only its answer tells: it is dealt credit and asked for it.
            drawing = [part for part in drawing if part.out == 0 and not part.has_returned]
        if not (4 * free >= self.capacity or self.is_starving(drawing)):
            return  # not worth the frames, not urgent
        before = [part.out for part in drawing]
        level = self.share_out(drawing, total_weight(drawing), free, batches=0)
        for part, held in zip(drawing, before, strict=True):
            assert isinstance(part, TreeShare)
            if part.out > held:
                self.out += part.out - held
                self.moved[part.key] = None
                if held == 0:
                    part.since = now
            # An idle tree must not accumulate a claim: raise its virtual time to the level served now.
            if level > part.served:
                part.passed += level - part.served
                part.reckon()

    def _answer_drains(self, now: float) -> list[Key]:
        # A subscriber that another one holds up has nothing to wait for, nor has one that does not count.
        is_due = self.capacity == 0 or not self.out or self.is_late(now)
        answered: list[Key] = []
        for subscriber in list(self.local_subscribers.draining.values()):
            if is_due or not subscriber.is_live:
                self.local_subscribers.drained(subscriber, now)
                answered.append(subscriber.key)
        self._look(now)
        return answered

    # Taking back

    def _take_back(self, now: float) -> float:
        """Ask for what subscribers ask for, what they withdrew, and what others are backlogged for.

        Returns: when to look again without an event, seconds.
        """
        # While a subscriber asks for all of it, a debt needs no time of its own.
        due = self.debt_since + self.timing.debt_s
        if self.returning:
            due = self.returning_since + self.timing.drain_bound_s
        if not self.is_closed:
            due = min(due, self.withdrawn_at + self.timing.linger_s)
        if self.returning:
            self.ask_for(self.capacity, now)
        elif self.free() < 0 and self.debt_since + self.timing.debt_s <= now:
            self.ask_for(-self.free(), now)
            self.renew_debt(now)
            due = now + self.timing.debt_s
        if not (self.free() <= 0 < self.capacity and self.is_starving(self.claimants())):
            self._quiet_since = inf
            return due
        self._quiet_since = min(self._quiet_since, now)
        return min(due, self._change_order(now), self._ask_idle(now))

    @property
    def _first(self) -> list[TreeShare]:
        """Trees that should have credit before any tree has more than one."""
        return sorted((p for p in self.parts.values() if p.weight > 0), key=lambda p: p.passed)[: self.capacity]

    def _change_order(self, now: float) -> float:
        """Change the order when nothing is sent for long.

        Other routers have another one then, or the first in it are held up there.

        Returns: when to look again without an event, seconds.
        """
        patience_s = QUIET * self.timing.idle_s * (1 + self._changes)
        if self._quiet_since + patience_s > now:
            return self._quiet_since + patience_s
        if self._changes == 0:
            for part in self.parts.values():
                part.passed = 0.0
        else:
            for part in self._first:
                if part.out > 0:
                    part.passed += 2**part.failed / part.weight
                    part.failed += 1
        for part in self.parts.values():
            part.reckon()
        self._changes += 1
        self._quiet_since = now
        return self._quiet_since + QUIET * self.timing.idle_s * (1 + self._changes)

    def _ask_idle(self, now: float) -> float:
        """Ask for credit that is not used and that others should have. Returns: when more will be due, seconds."""
        first = self._first
        hold_s = self.timing.idle_s
        if any(part.out == 0 for part in first):
            hold_s /= 4
        # A little is not worth the frames where there is enough.
        small = self.capacity // (4 * len(self.parts))
        holders = [p for p in self.parts.values() if p.out > max(p in first, min(small, 2 * p.weight))]
        return self.ask_unused(holders, hold_s, now)

    def next_deadline(self) -> float:
        """Tell the time at which `turn` is due without an event, seconds."""
        return self._deadline

    def check_invariants(self) -> None:
        """Check that counts are possible, and that a turn left a debt only with its time noted.

        Raises: AssertionError when not.
        """
        super().check_invariants()
        assert list(self.parts) == sorted(self.parts)
        assert self.capacity == self.local_subscribers.capacity
        assert self._backlogged == sum(part.weight >= BACKLOGGED_WEIGHT for part in self.parts.values())
