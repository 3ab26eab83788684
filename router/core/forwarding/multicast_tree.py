"""Multicast tree of one ingress router, at one router of it.

Messages of a multicast that enter at the ingress router run along its shortest-path tree. Here they come from the local
publishers, when this router is the ingress, or by a circuit from the predecessor, and a copy of each goes out on every
*branch* (`tree_branch.py`), the circuit to each child below which there are subscribers, and to the local subscribers.
So what may come is the smallest of the branches' credit and of the tree's part of what the local subscribers can take.
That is dealt upstream, and lent to the publishers, as the credit toward an egress is: by a `CreditPoolScheduler`, whose
one pool has this capacity.

A branch that is wanted counts from the start, with no credit until it has been granted some, since live subscribers
below it must miss nothing. It ceases to count when its router tells that nobody below it is live (closed), and counts
again with its next credit. A neighbor that holds up the others for much longer than it should is excluded.

Source: docs/explanation/credit.md#multicast.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

import attrs

from router.core.forwarding.credit_actions import (
    KEPT,
    REFUSED,
    CreditAction,
    GrantCircuit,
    Key,
    ReturnCredit,
    Send,
    TellNeighborSubscribersWithdrew,
    TellWeight,
)
from router.core.forwarding.credit_pool_scheduler import CreditPoolScheduler
from router.core.forwarding.credit_scheduler import CreditTiming
from router.core.forwarding.credit_states import PoolEvent
from router.core.forwarding.multicast_subscribers import MulticastSubscribers
from router.core.forwarding.pool_toward_egress import IncomingCircuit
from router.core.forwarding.subscriber_credit_pool import BACKLOGGED_WEIGHT, SubscriberCreditPool
from router.core.forwarding.tree_branch import TreeBranch
from router.core.ids_and_conditions import RouterId

MOST_FORMER: Final = 100
"""Maximum number of former children of which it is remembered what they held up."""
MOST_CREDIT: Final = 1000
"""Maximum credit dealt in a tree: branches to routers that take no circuits have credit without limit."""


@attrs.frozen
class SendCopies(CreditAction):
    """Send copies of a message that waits here, for all of which there is credit.

    One goes on the circuit to each of *neighbors* and one to each of *subscribers*. The message waits no more: its
    sender gets its outcome.
    """

    message: Key
    ingress: RouterId
    neighbors: Sequence[RouterId]
    subscribers: Sequence[Key]
    missed: Sequence[Key]
    """Excluded subscribers, which get no copy."""
    passed_over: Sequence[RouterId] = ()
    """Excluded neighbors, which get no copy."""


@attrs.frozen
class BranchExcluded(CreditAction):
    """Tell operators that the branch to *neighbor* counts no more: it held up the others for *held_s* seconds."""

    neighbor: RouterId
    held_s: float


@attrs.frozen
class RepairReopenedBranch(CreditAction):
    """Look for messages that went past a branch while it was closed: somebody below it is live.

    Its router may not have known of all that is below it. Then those were live all the time.
    """


@attrs.frozen
class AnswerSubscriberDrain(CreditAction):
    """Give a local subscriber all its credit back."""

    subscriber: Key


class MulticastTree:
    """Tree of *ingress* at one router.

    Args:
        actions: where what is to be done is added.
        share: what the local subscribers can take together; the tree has a part of it, its local credit.
        number: how many trees were made before it here: it has its turns behind these.
    """

    def __init__(
        self,
        ingress: RouterId,
        actions: list[CreditAction],
        timing: CreditTiming,
        share: SubscriberCreditPool,
        number: int,
    ) -> None:
        self.ingress = ingress
        self._actions = actions
        self._share = share
        self._part = share.add(ingress)
        self._subscribers: MulticastSubscribers = share.local_subscribers
        self.number = number
        self._timing = timing
        self.machine = CreditPoolScheduler(timing)
        self.pool = self.machine.add_pool(ingress)
        """The branches together; its capacity is the least that one of them can take."""
        self.children: dict[RouterId, TreeBranch] = {}
        self._live: list[TreeBranch] = []
        """Children that count."""
        self._excluded: list[TreeBranch] = []
        """Children that held up the others for too long, and miss copies."""
        self._holding: list[TreeBranch] = []
        """Branches that hold up the others since the last turn."""
        self._former: dict[RouterId, TreeBranch] = {}
        """Branches to neighbors that are no children now but of note, the last one last."""
        self._seen = (0, True, False, False)
        """Facts of its part of the share after its last turn."""
        self.predecessor: RouterId | None = None
        self.weight = 0
        """Busy publishers upstream, as branches are told; each counts as `BACKLOGGED_WEIGHT` while they lack credit."""
        self._busy = 0
        self._backlogged_until = -inf
        self.is_due = False
        """Whether the last turn was reason for another."""

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to know of it: no circuit leads here, and no branch waits for a word."""
        if self.pool.circuits or self.pool.core or self.pool.coming:
            return False
        return not any(branch.told_weight or branch.credit for branch in self.children.values())

    @property
    def local_credit(self) -> int:
        """Messages that it can send to the local subscribers.

        That is less than its part when one has withdrawn: nobody is sent more than it granted.
        """
        return min(self._part.out, self._subscribers.capacity)

    @property
    def is_local_draining(self) -> bool:
        """Whether the local subscribers ask for its part."""
        return self._part.is_draining and self.local_credit > 0

    @property
    def has_other_part(self) -> bool:
        """Whether what it has of the share is another than after its last turn."""
        return self._seen != self._see()

    def _see(self) -> tuple[int, bool, bool, bool]:
        return self.local_credit, self._share.is_closed, self.is_local_draining, self._subscribers.has_live

    @property
    def _counting(self) -> int:
        """Number of branches that count, the local subscribers among them."""
        return len(self._live) + (not self._share.is_closed)

    def _count(self) -> None:
        """Find again which children count, since that may have changed."""
        branches = self.children.values()
        self._live = [branch for branch in branches if branch.is_counting]
        self._excluded = [branch for branch in branches if branch.is_excluded and not branch.is_closed]

    # What the pool wants done

    def _pass_on(self, actions: list[CreditAction], now: float) -> None:
        """Say of all branches what their pool says of them together; else pass its actions on."""
        for action in actions:
            if isinstance(action, Send):
                self._send(action.message, now)
            elif isinstance(action, TellWeight):
                self._busy = action.weight
            elif isinstance(action, ReturnCredit):  # nothing upstream holds what the branches ask for
                for branch in self.children.values():
                    if branch.is_draining:
                        self._return(branch)
                if self.is_local_draining:
                    self._share.give_back(self.ingress)
            else:
                if isinstance(action, GrantCircuit) and self.pool.circuits[action.circuit].was_told_closed:
                    self.pool.circuits[action.circuit].was_told_closed = False
                    self.is_due = True  # from now on it has the weight that it told
                elif isinstance(action, TellNeighborSubscribersWithdrew):
                    self.pool.circuits[action.circuit].was_told_closed = True
                self._actions.append(action)

    def _send(self, message: Key, now: float) -> None:
        for branch in self._live:
            assert branch.credit > 0, "sent without an outlet's credit"
            branch.credit -= 1
            branch.is_draining = branch.is_draining and branch.credit > 0
            branch.taken += 1
        subscribers: list[Key] = []
        if self._share.is_closed:
            missed = self._subscribers.miss()
        else:
            assert self.local_credit > 0, "sent without the local subscribers' credit"
            self._share.spend(self.ingress, now)
            subscribers, missed = self._subscribers.spend(now)
        for branch in self._excluded:
            branch.missed += 1
        neighbors, passed_over = _neighbors(self._live), _neighbors(self._excluded)
        self._actions.append(SendCopies(message, self.ingress, neighbors, subscribers, missed, passed_over))

    def _return(self, branch: TreeBranch) -> None:
        self._actions.append(ReturnCredit(self.ingress, branch.neighbor))
        branch.credit = 0
        branch.is_draining = False

    # Events

    def set_children(self, neighbors: Sequence[RouterId], predecessor: RouterId | None, reached: Sequence[int]) -> None:
        """See `MulticastScheduler.set_children`."""
        self.predecessor = predecessor
        before = self.children
        self.children = {neighbor: before.get(neighbor) or self._branch(neighbor) for neighbor in neighbors}
        for neighbor, routers in zip(neighbors, reached, strict=False):
            self.children[neighbor].routers = routers
        for neighbor, branch in before.items():
            if neighbor not in self.children and branch.is_of_note:
                self._former[neighbor] = branch
        while len(self._former) > MOST_FORMER:
            del self._former[next(iter(self._former))]
        self._count()

    def _branch(self, neighbor: RouterId) -> TreeBranch:
        former = self._former.pop(neighbor, None)
        if former is None:
            return TreeBranch(neighbor, self._subscribers.patience)
        former.lose_circuit()
        return former

    def set_outlet(self, neighbor: RouterId, credit: int, *, is_draining: bool) -> None:
        """Set the credit that is unspent on the own circuit to a child, messages."""
        branch = self.children[neighbor]
        branch.is_draining = is_draining and credit > 0
        if credit > branch.credit and branch.is_closed:
            branch.is_closed = False
            self._count()
            self._actions.append(RepairReopenedBranch())
        branch.credit = credit

    def outlet_lost(self, neighbor: RouterId) -> None:
        """Forget the credit of the own circuit to a child, which is gone."""
        self.children[neighbor].lose_circuit()
        self._count()

    def outlet_closed(self, neighbor: RouterId) -> None:
        """Note that nobody below a child is live, unless it has granted since: its word may have come later."""
        branch = self.children[neighbor]
        if branch.credit == 0:
            branch.is_closed = True
            self._count()

    def add_circuit(self, key: Key, neighbor: RouterId) -> None:
        """Take up a circuit of this tree that *neighbor* attached."""
        self.machine.add_circuit(self.ingress, key, neighbor)
        self._pass_on(self.machine.take_actions(), -inf)  # it may be told that nobody is live; nothing is sent

    def set_weight(self, key: Key, weight: int) -> None:
        """Set how many busy publishers are behind a circuit, as its neighbor tells."""
        self.pool.circuits[key].neighbor_weight = weight

    def published(self, key: Key, message: Key, now: float, *, is_ready: bool) -> None:
        """Take a message of a publisher that arrived at *now* (seconds)."""
        self._restate(now)  # it may be sent at once
        result = self.machine.published(key, message, now, is_ready=is_ready)
        if result >= 0:
            self._send(message, now)
        self._pass_on(self.machine.take_actions(), now)

    def arrived(self, key: Key, message: Key, now: float, *, is_ready: bool) -> int:
        """Take a message that came on a circuit at *now* (seconds): `KEPT`, or `REFUSED` if that is not upstream."""
        result = REFUSED
        if self.is_upstream(key):
            self._restate(now)
            result = self.machine.arrived(self.ingress, key, message, now, is_ready=is_ready)
            if result >= 0:
                self._send(message, now)
                result = KEPT
        else:
            self.pool.arrived(key, message, now, is_ready=False)
            self.pool.drop(message)
        self._pass_on(self.machine.take_actions(), now)
        return result

    def is_upstream(self, key: Key) -> bool:
        """Whether a circuit comes from the neighbor upstream."""
        return self.pool.circuits[key].neighbor == self.predecessor

    # The turn

    def turn(self, now: float) -> None:
        """Send, deal, lend and take back at *now* (seconds)."""
        self.is_due = False
        for circuit in self.pool.circuits.values():
            self._look_after(circuit, now)
        if self._holding or self._excluded:
            self._judge_branches(now)
        self._restate(now)
        self.pool.open_early(bool(self._live))
        if not self._counting:
            self._close(now)
        elif self._live and self.pool.is_closed:
            self.pool.enter(PoolEvent.RESUMED)
        self._pass_on(self.machine.turn(now), now)
        self._answer_drains()
        self._weigh(now)
        self._note_holds(now)
        for branch in self.children.values():
            weight = self.weight
            if weight == 0 and branch in self._excluded and (self.pool.circuits or self.machine.publishers.attached):
                weight = 1  # so that it grants as soon as it can, though nobody is busy now
            if branch.told_weight != weight:
                branch.told_weight = weight
                self._actions.append(TellWeight(self.ingress, weight, branch.neighbor))
        self._seen = self._see()

    def _note_holds(self, now: float) -> None:
        """Remember which branches hold up the others from now on: the only one that counts holds up nobody."""
        is_waited_for = (self.weight >= BACKLOGGED_WEIGHT or self.pool.core) and self._counting > 1
        holding = [branch for branch in self._live if branch.credit == 0] if is_waited_for else []
        for branch in holding:
            branch.note(now, is_holding=True)
        for branch in self._holding:
            if branch not in holding:
                branch.note(now, is_holding=False)
        self._holding = holding

    def _judge_branches(self, now: float) -> None:
        """Exclude branches that hold up the others for too long, and readmit those that grant."""
        for branch in self._excluded:
            if branch.returns_at <= now:
                branch.readmit(now, has_granted=True)
        self._count()
        for branch in self._holding:
            if branch in self._live and branch.credit == 0 and branch.due <= now:
                self._exclude(branch, now)
        if not self._counting:
            for branch in self._excluded:  # they hold up nobody now
                branch.readmit(now, has_granted=False)
            self._count()

    def _exclude(self, branch: TreeBranch, now: float) -> None:
        """Exclude a branch that is due, if others count and it did not take enough."""
        branch.note(now, is_holding=False)
        if branch.held_s > 0.0 and self._counting > 1:
            if branch.exclude(now):  # people need not be told each time
                self._actions.append(BranchExcluded(branch.neighbor, branch.held_s))
            self._count()

    def _holds_due(self) -> float:
        """Tell when `_judge_branches` has something to do, seconds."""
        due = [branch.due for branch in self._holding] + [branch.returns_at for branch in self._excluded]
        return min(due, default=inf)

    def _weigh(self, now: float) -> None:
        if self.machine.publishers.is_backlogged:
            self._backlogged_until = now + self._timing.busy_s
        self.weight = self._busy * BACKLOGGED_WEIGHT if now < self._backlogged_until else self._busy

    def _look_after(self, circuit: IncomingCircuit, now: float) -> None:
        weight = circuit.neighbor_weight
        if not self.is_upstream(circuit.key):
            weight = 0
            self._recall(circuit, now)
        elif circuit.was_told_closed:
            # Only credit tells the neighbor that somebody is live again; until then live subscribers miss its messages.
            weight = max(BACKLOGGED_WEIGHT, weight)
        if circuit.weight != weight:
            self.machine.set_weight(self.ingress, circuit.key, weight)

    def _recall(self, circuit: IncomingCircuit, now: float) -> None:
        if circuit.out > 0 and not circuit.is_draining:
            self.pool.recall(circuit, now)

    def _restate(self, now: float) -> None:
        capacity = MOST_CREDIT if self._counting else 0
        is_asked = False
        for branch in self._live:
            capacity = min(capacity, branch.credit)
            is_asked = is_asked or branch.is_draining
        if not self._share.is_closed:
            capacity = min(capacity, self.local_credit)
            is_asked = is_asked or self.is_local_draining
        self.machine.set_capacity(self.ingress, capacity, now, returning=capacity if is_asked else 0)

    def _close(self, now: float) -> None:
        """Close the tree, since nobody is live below: nothing may come, and what came is for nobody."""
        pool = self.pool
        # While local subscribers count, though all may have taken their credit back, what came for them stays.
        for message in [] if self._subscribers.has_live else list(pool.core):
            del pool.core[message]
            self._actions.append(SendCopies(message, self.ingress, [], [], self._subscribers.miss()))
        for circuit in pool.circuits.values():
            self._recall(circuit, now)
        if not pool.is_closed and not pool.out:
            pool.close()
            self._pass_on(self.machine.take_actions(), now)

    def _answer_drains(self) -> None:
        """Return what branches ask for where the pool has nothing to return.

        So it is where another one lets nothing through or the asking one does not count. The answer waits only for what
        is still lent.
        """
        pool = self.pool
        publishers = self.machine.publishers
        # Messages that wait here already are not sent on credit that is under way: they wait for any.
        is_lent = pool.out > 0 or publishers.lent > len(publishers.waiting) + len(publishers.coming)
        is_unused = pool.capacity == 0 and not is_lent
        for branch in self.children.values():
            if branch.is_draining and (is_unused or not branch.is_counting):
                self._return(branch)
        if self.is_local_draining and (is_unused or self._share.is_closed):
            self._share.give_back(self.ingress)

    def next_deadline(self) -> float:
        """Tell the time at which `turn` is due without an event, seconds."""
        due = self.machine.next_deadline()
        if self._holding or self._excluded:
            due = min(due, self._holds_due())
        return min(due, self._backlogged_until) if self.weight != self._busy else due

    def check_invariants(self) -> None:
        """Check that sums fit. Raises: AssertionError when not."""
        self.machine.check_invariants()
        assert len(self.machine.pools) == 1
        for branch in self.children.values():
            assert branch.credit >= 0
            assert not (branch.is_draining and branch.credit == 0)
        assert self._live == [branch for branch in self.children.values() if branch.is_counting]
        assert self._former.keys().isdisjoint(self.children)
        if self._counting:
            assert all(self.pool.capacity <= branch.credit for branch in self._live)
            assert self._share.is_closed or self.pool.capacity <= self.local_credit
        else:
            assert self.pool.capacity == 0


def _neighbors(branches: list[TreeBranch]) -> list[RouterId]:
    return [branch.neighbor for branch in branches]
