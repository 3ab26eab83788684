"""Multicast tree of one ingress router, at one router of it.

Messages of a multicast that enter at the ingress router run along its shortest-path tree. Here they come from the local
publishers, when this router is the ingress, or by a circuit from the predecessor, and a copy of each goes out on every
*branch*: the circuit to each child below which there are subscribers, and the local share. So what may come is the
smallest of the branches' credit. That is dealt upstream, and lent to the publishers, as the credit toward an egress is:
by a `PoolScheduler`, whose one pool has this capacity.

A branch that is wanted counts from the start, with no credit until it has been granted some, since live subscribers
below it must miss nothing. It ceases to count when its router tells that nobody below it is live (closed), and counts
again with its next credit.

Source: docs/explanation/credit.md#multicast.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import attrs

from router.core.forwarding.credit_actions import (
    KEPT,
    REFUSED,
    CloseCircuit,
    CreditAction,
    DrainCircuit,
    GrantCircuit,
    Key,
    ReturnCredit,
    Send,
    TellWeight,
)
from router.core.forwarding.credit_scheduler import CreditTiming
from router.core.forwarding.credit_states import PoolEvent
from router.core.forwarding.egress_pool import IncomingCircuit
from router.core.forwarding.local_subscribers import LocalSubscribers
from router.core.forwarding.pool_scheduler import PoolScheduler
from router.core.forwarding.shared_credit import HUNGRY, SharedCredit
from router.core.ids_and_conditions import RouterId

MOST_CREDIT: Final = 1000
"""More is never dealt in a tree: branches to routers that take no circuits have credit without limit."""


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
    """Excluded subscribers, which get none."""


@attrs.frozen
class ReturnBranchCredit(CreditAction):
    """Give all credit back on the circuit to *neighbor*."""

    ingress: RouterId
    neighbor: RouterId


@attrs.frozen
class ReturnSubscriberCredit(CreditAction):
    """Give a local subscriber all its credit back."""

    subscriber: Key


@attrs.frozen
class TellBranchWeight(CreditAction):
    """Tell a child how many busy publishers are upstream. The first is reason to make the circuit."""

    ingress: RouterId
    neighbor: RouterId
    weight: int


class TreeBranch:
    """Branch of a tree: a child that a copy of each message goes to, or the local subscribers."""

    __slots__ = ("credit", "is_closed", "is_draining", "told_weight")

    def __init__(self) -> None:
        self.credit = 0
        """Unspent, messages."""
        self.is_draining = False
        """It asks for its credit back."""
        self.is_closed = False
        """Nobody below it is live."""
        self.told_weight = 0


class MulticastTree:
    """Tree of *ingress* at one router.

    Args:
        actions: where what is to be done is added.
        share: what the local subscribers can take together; the tree has a part of it.
        stirred: trees with which something has happened that needs a turn; this one adds itself.
    """

    def __init__(
        self,
        ingress: RouterId,
        actions: list[CreditAction],
        timing: CreditTiming,
        share: SharedCredit,
        stirred: dict[RouterId, None],
    ) -> None:
        self.ingress = ingress
        self._actions = actions
        self._share = share
        self._subscribers: LocalSubscribers = share.local_subscribers
        self._stirred = stirred
        self._timing = timing
        self.machine = PoolScheduler(timing)
        self.pool = self.machine.add_pool(ingress)
        """The branches together; its capacity is the least that one of them can take."""
        self.local = TreeBranch()
        self.local.is_closed = True
        self.is_awaited = False
        """Local subscribers count, though all may have taken their credit back: what came for them stays."""
        self.children: dict[RouterId, TreeBranch] = {}
        self.predecessor: RouterId | None = None
        self.weight = 0
        """Busy publishers upstream, as the branches are told; each counts as `HUNGRY` while they lack credit."""
        self._busy = 0
        self._hungry_until = -math.inf
        self.is_touched = False
        """Something has happened since the last turn."""
        self._told: dict[Key, int] = {}
        """Weights of circuits as their neighbors told them."""
        self._closed: dict[Key, None] = {}
        """Circuits that were told that nobody is live, and have not been granted any credit since."""
        self.touch()

    def touch(self) -> None:
        """Note that something happened: `turn` is needed."""
        self.is_touched = True
        self._stirred[self.ingress] = None

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to know of it: no circuit leads here, and no branch waits for a word."""
        if self.pool.circuits or self.pool.core or self.pool.coming:
            return False
        return not any(branch.told_weight or branch.credit for branch in self.children.values())

    def _counting(self) -> list[tuple[RouterId | None, TreeBranch]]:
        """Branches that count, the local share as None."""
        found: list[tuple[RouterId | None, TreeBranch]] = [
            (neighbor, branch) for neighbor, branch in self.children.items() if not branch.is_closed
        ]
        if not self.local.is_closed:
            found.append((None, self.local))
        return found

    # What the pool wants done

    def _pass_on(self, actions: list[CreditAction], now: float) -> None:
        """Say of all branches what their pool says of them together; else pass its actions on."""
        for action in actions:
            if isinstance(action, Send):
                self._send(action.message, now)
            elif isinstance(action, TellWeight):
                self._busy = action.weight
            elif isinstance(action, ReturnCredit):  # nothing upstream holds what the branches ask for
                for neighbor, branch in self._asking():
                    self._return(neighbor, branch)
            else:
                if isinstance(action, GrantCircuit) and action.circuit in self._closed:
                    del self._closed[action.circuit]
                    self.touch()  # from now on it has the weight that it told
                elif isinstance(action, CloseCircuit):
                    self._closed[action.circuit] = None
                self._actions.append(action)

    def _send(self, message: Key, now: float) -> None:
        neighbors: list[RouterId] = []
        for neighbor, branch in self._counting():
            assert branch.credit > 0, "sent without an outlet's credit"
            branch.credit -= 1
            branch.is_draining = branch.is_draining and branch.credit > 0
            if neighbor is not None:
                neighbors.append(neighbor)
        subscribers: list[Key] = []
        if self.local.is_closed:
            missed = self._subscribers.miss()
        else:
            self._share.spend(self.ingress, now)
            subscribers, missed = self._subscribers.spend(now)
        self._actions.append(SendCopies(message, self.ingress, neighbors, subscribers, missed))

    def _return(self, neighbor: RouterId | None, branch: TreeBranch) -> None:
        branch.credit = 0
        branch.is_draining = False
        if neighbor is None:
            self._share.give_back(self.ingress)
        else:
            self._actions.append(ReturnBranchCredit(self.ingress, neighbor))

    # Events

    def set_children(self, neighbors: Sequence[RouterId], predecessor: RouterId | None) -> None:
        """Set the place in the tree: neighbors below which there are subscribers, and the one upstream."""
        self.touch()
        self.predecessor = predecessor
        self.children = {neighbor: self.children.get(neighbor) or TreeBranch() for neighbor in neighbors}

    def set_outlet(self, neighbor: RouterId, credit: int, *, is_draining: bool) -> None:
        """Set the credit that is unspent on the own circuit to *neighbor*, messages."""
        branch = self.children.get(neighbor)
        if branch is not None:
            self.touch()
            branch.is_draining = is_draining and credit > 0
            if credit > branch.credit:
                branch.is_closed = False
            branch.credit = credit

    def outlet_lost(self, neighbor: RouterId) -> None:
        """Forget the credit of the own circuit to *neighbor*, which is gone."""
        if neighbor in self.children:
            self.touch()
            self.children[neighbor] = TreeBranch()

    def outlet_closed(self, neighbor: RouterId) -> None:
        """Note that nobody below *neighbor* is live."""
        if neighbor in self.children:
            self.touch()
            self.children[neighbor].is_closed = True

    def add_circuit(self, key: Key, neighbor: RouterId) -> None:
        """Take up a circuit of this tree that *neighbor* attached."""
        self.touch()
        self._told[key] = 0
        self.machine.add_circuit(self.ingress, key, neighbor)
        self._pass_on(self.machine.take_actions(), -math.inf)  # it may be told that nobody is live; nothing is sent

    def remove_circuit(self, key: Key) -> None:
        """Forget a circuit that is gone."""
        self.touch()
        del self._told[key]
        self._closed.pop(key, None)
        self.machine.remove_circuit(self.ingress, key)

    def set_weight(self, key: Key, weight: int) -> None:
        """Set how many busy publishers are behind a circuit, as its neighbor tells."""
        self.touch()
        self._told[key] = weight

    def published(self, key: Key, message: Key, now: float, *, is_ready: bool = True) -> None:
        """Take a message of a publisher that arrived at *now* (seconds)."""
        self.touch()
        self._restate(now)  # it may be sent at once
        result = self.machine.published(key, message, now, is_ready=is_ready)
        if result >= 0:
            self._send(message, now)
        self._pass_on(self.machine.take_actions(), now)

    def arrived(self, key: Key, message: Key, now: float, *, is_ready: bool = True) -> int:
        """Take a message that came on a circuit at *now* (seconds).

        Returns: `KEPT`, or `REFUSED` when its neighbor is not upstream.
        """
        self.touch()
        result = REFUSED
        if self._is_upstream(self.pool.circuits[key]):
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

    def circuit_drained(self, key: Key, credit: int) -> None:
        """Take back *credit* (messages) that a neighbor returned on a circuit."""
        self.touch()
        self.machine.circuit_drained(self.ingress, key, credit)

    def is_upstream(self, key: Key) -> bool:
        """Whether a circuit comes from the neighbor upstream."""
        return self._is_upstream(self.pool.circuits[key])

    def _is_upstream(self, circuit: IncomingCircuit) -> bool:
        return circuit.neighbor == self.predecessor

    # The turn

    def turn(self, now: float) -> None:
        """Send, deal, lend and take back at *now* (seconds)."""
        self.is_touched = False
        for circuit in self.pool.circuits.values():
            self._look_after(circuit)
        self._restate(now)
        self.pool.opens_early = any(not branch.is_closed for branch in self.children.values())
        if not self._counting():
            self._close(now)
        elif self.pool.opens_early and self.pool.is_closed:
            self.pool.enter(PoolEvent.RESUMED)
        self._pass_on(self.machine.turn(now), now)
        self._answer_drains()
        self._weigh(now)
        for neighbor, branch in self.children.items():
            if branch.told_weight != self.weight:
                branch.told_weight = self.weight
                self._actions.append(TellBranchWeight(self.ingress, neighbor, self.weight))

    def _weigh(self, now: float) -> None:
        if self.machine.publishers.is_backlogged:
            self._hungry_until = now + self._timing.busy_s
        self.weight = self._busy * HUNGRY if now < self._hungry_until else self._busy

    def _look_after(self, circuit: IncomingCircuit) -> None:
        weight = self._told[circuit.key]
        if not self._is_upstream(circuit):
            weight = 0
            if circuit.out > 0 and not circuit.is_draining:
                self._recall(circuit)
        elif circuit.key in self._closed:
            # Only credit tells it that somebody is live again, and until then live subscribers miss its messages.
            weight = max(HUNGRY, weight)
        if circuit.weight != weight:
            self.machine.set_weight(self.ingress, circuit.key, weight)

    def _recall(self, circuit: IncomingCircuit) -> None:
        circuit.is_draining = True
        self._actions.append(DrainCircuit(circuit.key))

    def _restate(self, now: float) -> None:
        counting = self._counting()
        capacity = min((branch.credit for _, branch in counting), default=0)
        capacity = min(capacity, MOST_CREDIT)
        is_asked = any(branch.is_draining for _, branch in counting)
        self.machine.set_capacity(self.ingress, capacity, now, returning=capacity if is_asked else 0)

    def _close(self, now: float) -> None:
        """Close the tree, since nobody is live below: nothing may come, and what came is for nobody."""
        pool = self.pool
        for message in [] if self.is_awaited else list(pool.core):
            del pool.core[message]
            self._actions.append(SendCopies(message, self.ingress, [], [], self._subscribers.miss()))
        for circuit in pool.circuits.values():
            if circuit.out > 0 and not circuit.is_draining:
                self._recall(circuit)
        if not pool.is_closed and not any(circuit.out for circuit in pool.circuits.values()):
            pool.close()
            self._pass_on(self.machine.take_actions(), now)

    def _asking(self) -> list[tuple[RouterId | None, TreeBranch]]:
        found: list[tuple[RouterId | None, TreeBranch]] = [(n, o) for n, o in self.children.items() if o.is_draining]
        if self.local.is_draining:
            found.append((None, self.local))
        return found

    def _answer_drains(self) -> None:
        """Return what branches ask for where the pool has nothing to return.

        So it is where another one lets nothing through or the asking one does not count. The answer waits only for what
        is still lent.
        """
        pool = self.pool
        publishers = self.machine.publishers
        # Messages that wait here already are not sent on credit that is under way: they wait for any.
        is_lent = publishers.lent > len(publishers.waiting) + len(publishers.coming)
        is_lent = is_lent or any(circuit.out for circuit in pool.circuits.values())
        for neighbor, branch in self._asking():
            if branch.is_closed or (pool.capacity == 0 and not is_lent):
                self._return(neighbor, branch)

    def next_deadline(self) -> float:
        """Tell the time at which `turn` is due without an event, seconds."""
        due = self.machine.next_deadline()
        return min(due, self._hungry_until) if self.weight != self._busy else due

    def check_invariants(self) -> None:
        """Check that sums fit. Raises: AssertionError when not."""
        self.machine.check_invariants()
        assert len(self.machine.pools) == 1
        assert self._closed.keys() <= self.pool.circuits.keys() == self._told.keys()
        for branch in (self.local, *self.children.values()):
            assert branch.credit >= 0
            assert not (branch.is_draining and branch.credit == 0)
        if self._counting():
            assert self.pool.capacity <= min(branch.credit for _, branch in self._counting())
        else:
            assert self.pool.capacity == 0
