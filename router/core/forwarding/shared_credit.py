"""What the local subscribers of a multicast address can take together, dealt among the trees at this router.

    free = what each live subscriber can still take - what the trees hold        free >= 0 whenever credit is dealt.

The rule is that of a pool (`credit_pool.py`) but for one thing. A message needs the credit of every router with
subscribers, so where there is little of it two trees can each hold what the other lacks. Hence all routers deal in one
order: one by one to the tree of which the fewest messages passed here, for its weight, of equals to the first by name.
The same messages pass everywhere, so the order is the same everywhere; who is first in it holds credit before others
hold two, and what others hold is asked back if they do not use it. Routers that were there for different lengths of
time may have different orders: when nothing passes for long though trees are backlogged, all forget what has passed;
and when nothing passes even so, the first in the order are held up elsewhere and let others by, twice as many each
time.

Source: docs/explanation/credit.md#multicast.
"""

from __future__ import annotations

import heapq
import math
from typing import Final

from router.core.forwarding.credit_actions import Key
from router.core.forwarding.credit_scheduler import CreditTiming
from router.core.forwarding.local_subscribers import LocalSubscribers
from router.core.ids_and_conditions import RouterId

HUNGRY: Final = 1000
"""What a busy publisher counts as while publishers of its router have to wait for credit, or had to a short time ago.
All routers are told this one weight, so all deal alike: little to a tree that needs little."""
QUIET: Final = 4
"""When trees are backlogged and nothing passes for so many times `idle_s`, the order is changed. Above the longest
round trip through the mesh, or it changes while credit is on its way."""


class TreeShare:
    """What one tree has of the share."""

    __slots__ = (
        "failed",
        "has_returned",
        "ingress",
        "is_draining",
        "out",
        "passed",
        "recent",
        "since",
        "used",
        "weight",
    )

    def __init__(self, ingress: RouterId) -> None:
        self.ingress = ingress
        self.out = 0
        """Credit dealt to it and not used."""
        self.weight = 0
        """Busy publishers behind it."""
        self.passed = 0.0
        """Messages of it that were sent here, each divided by its weight at the time: who has least is next."""
        self.failed = 0
        """How often it was next and did not use its credit, since it last used any."""
        self.used = 0
        """Credit that it used since the last count."""
        self.recent = 0
        """Credit that it used between the last two counts, `idle_s` or more apart."""
        self.since = -math.inf
        """When it last used credit, or was given some after having none, seconds."""
        self.is_draining = False
        """Asked to return what it holds; gets nothing until it has."""
        self.has_returned = False
        """Has returned credit since a subscriber asked for its own: nothing waits in this tree."""

    @property
    def served(self) -> float:
        """What it used and holds, divided by its weight."""
        return self.passed + self.out / max(1, self.weight)


def _is_starving(targets: dict[TreeShare, int]) -> bool:
    """Whether one of those with *targets* has next to nothing."""
    return any(4 * part.out <= target for part, target in targets.items())


class SharedCredit:
    """The credit of the local subscribers, and the trees that draw on it."""

    def __init__(self, local_subscribers: LocalSubscribers, timing: CreditTiming) -> None:
        self.local_subscribers = local_subscribers
        self._timing = timing
        self.parts: dict[RouterId, TreeShare] = {}
        """By ingress router, in the order of their names."""
        self.is_closed = True
        """Nobody is live, or all who are have taken their credit back for the linger."""
        self.is_touched = True
        """Something has happened since the last turn."""
        self.moved: dict[RouterId, None] = {}
        """Trees of which the part is another one than when this was last emptied."""
        self._capacity = 0
        self._out = 0
        """Credit that is dealt."""
        self._backlogged = 0
        """Trees in which publishers wait."""
        self._is_returning = False
        """A live subscriber asks for its credit back, and so all parts are asked for."""
        self._returning_since = math.inf
        self._withdrawn_at = math.inf
        self._debt_since = math.inf
        self._quiet_since = math.inf
        """Since when trees are backlogged and nothing was sent, or the order was last changed, seconds."""
        self._changes = 0
        """How often the order was changed since anything was sent."""
        self._counted_at = -math.inf
        self._deadline = math.inf

    @property
    def free(self) -> int:
        """Credit that is dealt to nobody."""
        return self._capacity - self._out

    @property
    def is_backlogged(self) -> bool:
        """Whether publishers of a tree wait for credit, or did so a short time ago."""
        return self._backlogged > 0

    # What happens

    def add(self, ingress: RouterId) -> None:
        """A tree begins."""
        self.parts[ingress] = TreeShare(ingress)
        self.moved[ingress] = None
        self.parts = dict(sorted(self.parts.items()))

    def remove(self, ingress: RouterId) -> None:
        """A tree ends."""
        part = self.parts.pop(ingress)
        self._out -= part.out
        self._backlogged -= part.weight >= HUNGRY
        self.moved.pop(ingress, None)

    def set_weight(self, ingress: RouterId, weight: int) -> None:
        """How many busy publishers are behind a tree now."""
        part = self.parts[ingress]
        if weight == part.weight:
            return
        self.is_touched = True
        self._backlogged += (weight >= HUNGRY) - (part.weight >= HUNGRY)
        if weight >= 4 * part.weight:
            # Who wanted little has no claim to what others were dealt meanwhile, and has forfeited none.
            part.passed = min((p.passed for p in self._drawing() if p is not part), default=part.passed)
        part.weight = weight

    def spend(self, ingress: RouterId, now: float) -> None:
        """A message of a tree is sent to all live subscribers."""
        part = self.parts[ingress]
        assert part.out > 0, "sent without a part"
        self.is_touched = True
        self.moved[ingress] = None
        part.out -= 1
        self._out -= 1
        self._capacity -= 1
        part.since = now
        part.used += 1
        part.passed += 1 / max(1, part.weight)
        part.failed = self._changes = 0
        part.is_draining = part.is_draining and part.out > 0
        self._quiet_since = math.inf

    def give_back(self, ingress: RouterId) -> None:
        """A tree returns its part."""
        self.is_touched = True
        self.moved[ingress] = None
        part = self.parts[ingress]
        self._out -= part.out
        part.out = 0
        part.is_draining = False
        part.has_returned = self._is_returning

    # The turn

    def turn(self, now: float) -> list[Key]:
        """Deal and take back. Returns: subscribers that drain and are to get back all that they have granted."""
        local_subscribers = self.local_subscribers
        self._capacity = local_subscribers.capacity
        self._note(now)
        if self._counted_at + self._timing.idle_s <= now:
            self._counted_at = now
            for part in self.parts.values():
                part.recent, part.used = part.used, 0
        if self._capacity == 0:
            for ingress in [ingress for ingress, part in self.parts.items() if part.is_draining]:
                self.give_back(ingress)  # nothing can be sent on it
        self._deal(now)
        self._deadline = self._take_back(now)
        answered = self._answer_drains(now) if local_subscribers.draining else []
        self.is_touched = False
        return answered

    def _answer_drains(self, now: float) -> list[Key]:
        # Who is held up by another has nothing to wait for, as little as who does not count.
        is_late = self._returning_since + self._timing.drain_bound_s <= now
        is_due = self._capacity == 0 or is_late or not self._out
        answered: list[Key] = []
        for subscriber in list(self.local_subscribers.draining.values()):
            if is_due or not subscriber.is_live:
                self.local_subscribers.drained(subscriber, now)
                answered.append(subscriber.key)
        self._capacity = self.local_subscribers.capacity
        self._note(now)
        return answered

    def _note(self, now: float) -> None:
        """Remember since when things are as they are."""
        local_subscribers = self.local_subscribers
        is_withdrawn = local_subscribers.is_withdrawn and self._capacity == 0
        self._withdrawn_at = min(self._withdrawn_at, now) if is_withdrawn else math.inf
        self.is_closed = not local_subscribers.has_live or self._withdrawn_at + self._timing.linger_s <= now
        was_returning = self._is_returning
        self._is_returning = local_subscribers.is_draining and self._capacity > 0
        self._returning_since = min(self._returning_since, now) if self._is_returning else math.inf
        if was_returning and not self._is_returning:
            for part in self.parts.values():
                part.has_returned = False
        self._debt_since = min(self._debt_since, now) if self.free < 0 else math.inf

    def _drawing(self) -> list[TreeShare]:
        return [part for part in self.parts.values() if part.weight > 0 and not part.is_draining]

    def _deal(self, now: float) -> None:
        free = self.free
        if free <= 0:
            return
        drawing = self._drawing()
        if self._is_returning:
            # Whether something waits in a tree only its answer tells: it is dealt credit and asked for it.
            drawing = [part for part in drawing if part.out == 0 and not part.has_returned]
        targets = self._targets(drawing)
        if not (4 * free >= self._capacity or _is_starving(targets)):
            return  # not worth the frames, not urgent
        queue = [(part.served, place, part) for place, part in enumerate(drawing) if part.out < targets[part]]
        heapq.heapify(queue)
        able: set[TreeShare] = set()
        level = -math.inf
        while free > 0 and queue:
            level, place, part = queue[0]
            if part.out == 0:
                part.since = now
            part.out += 1
            self._out += 1
            self.moved[part.ingress] = None
            free -= 1
            if part.out < targets[part]:
                heapq.heapreplace(queue, (part.served, place, part))
            else:
                heapq.heappop(queue)
            if free == 0 or not queue:
                able = {part, *(waiting for _, _, waiting in queue)}
        for part in drawing:
            # Who wants nothing has no claim later to what others are dealt meanwhile.
            if part not in able and level > part.served:
                part.passed += level - part.served

    def _targets(self, drawing: list[TreeShare]) -> dict[TreeShare, int]:
        """What each may hold: its part by weight, and twice that as far as it makes use of it, since who is farther
        away holds more for the same use."""
        total = sum(part.weight for part in drawing)
        targets: dict[TreeShare, int] = {}
        for part in drawing:
            by_weight = -(-self._capacity * part.weight // total)
            use = max(part.recent, part.used)
            target = max(by_weight, min(2 * by_weight, use // 2))
            # What lies idle at one is missing elsewhere; who streams uses much and must not wait for each.
            targets[part] = min(target, max(2 * part.weight, 2 * use))
        return targets

    # Taking back

    def _take_back(self, now: float) -> float:
        """Ask for what subscribers ask for, what they withdrew, and what others are backlogged for.

        Returns: when to look again without an event, seconds.
        """
        # While a subscriber asks for all of it, a debt needs no time of its own.
        since, patience_s = self._debt_since, self._timing.debt_s
        if self._is_returning:
            since, patience_s = self._returning_since, self._timing.drain_bound_s
        due = since + patience_s
        if not self.is_closed:
            due = min(due, self._withdrawn_at + self._timing.linger_s)
        if self._is_returning:
            self._ask_for(self._capacity)
        elif self.free < 0 and self._debt_since + self._timing.debt_s <= now:
            self._ask_for(-self.free)
            self._debt_since = now  # again after the same time, if it has not come back
            due = now + self._timing.debt_s
        if not (self.free <= 0 < self._capacity and _is_starving(self._targets(self._drawing()))):
            self._quiet_since = math.inf
            return due
        self._quiet_since = min(self._quiet_since, now)
        return min(due, self._change_order(now), self._ask_idle(now))

    @property
    def _first(self) -> list[TreeShare]:
        """Those that should have credit before anybody has more than one."""
        return sorted((p for p in self.parts.values() if p.weight > 0), key=lambda p: p.passed)[: self._capacity]

    def _change_order(self, now: float) -> float:
        """When nothing is sent for long, other routers have another order, or the first in it are held up there.

        Returns: when to look again without an event, seconds.
        """
        patience_s = QUIET * self._timing.idle_s * (1 + self._changes)
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
        self._changes += 1
        self._quiet_since = now
        return self._quiet_since + QUIET * self._timing.idle_s * (1 + self._changes)

    def _ask_idle(self, now: float) -> float:
        """Ask for credit that is not used and that others should have. Returns when more will be due, seconds."""
        first = self._first
        hold_s = self._timing.idle_s
        if any(part.out == 0 for part in first):
            hold_s /= 4
        due = math.inf
        small = self._capacity // (4 * len(self.parts))
        for part in self.parts.values():
            # A little is not worth the frames where there is enough.
            if part.out > max(part in first, min(small, 2 * part.weight)) and not part.is_draining:
                if part.since + hold_s <= now:
                    part.is_draining = True
                    self.moved[part.ingress] = None
                else:
                    due = min(due, part.since + hold_s)
        return due

    def _ask_for(self, credit: int) -> None:
        credit -= sum(part.out for part in self.parts.values() if part.is_draining)
        for part in sorted(self.parts.values(), key=lambda part: part.since):
            if credit > 0 and part.out > 0 and not part.is_draining:
                credit -= part.out
                part.is_draining = True
                self.moved[part.ingress] = None

    def next_deadline(self) -> float:
        """When `turn` is due without an event, seconds."""
        return self._deadline

    def check_invariants(self) -> None:
        """Raises: AssertionError when a count is impossible, or a turn left a debt without its time."""
        for part in self.parts.values():
            assert part.out >= 0
            assert not (part.is_draining and part.out == 0)
        assert list(self.parts) == sorted(self.parts)
        assert self._capacity == self.local_subscribers.capacity
        assert self._out == sum(part.out for part in self.parts.values())
        assert self._backlogged == sum(part.weight >= HUNGRY for part in self.parts.values())
        assert self.free >= 0 or self._debt_since < math.inf
