"""Scheduler of a multicast address at one router: deals credit among the routers where its messages enter.

There is a tree for each ingress router (`multicast_tree.py`). What the local subscribers can take together
(`multicast_subscribers.py`) is shared by all trees (`subscriber_credit_pool.py`), and what a tree is dealt of it is the
credit of one of its branches.

So over any number of routers, for each live subscriber

    credit held by publishers + messages not yet sent to it <= credit that it granted + publishers attached

as long as nobody withdraws credit, leaves, joins or is excluded; afterwards again once what was lent on it has come
back.

Source: docs/explanation/credit.md#multicast.
"""

from __future__ import annotations

from collections.abc import Sequence

from router.core.forwarding.credit_actions import KEPT, REFUSED, CreditAction, Key, ReturnCredit
from router.core.forwarding.credit_scheduler import CreditScheduler, CreditTiming
from router.core.forwarding.multicast_subscribers import ExclusionTiming, MulticastSubscribers
from router.core.forwarding.multicast_tree import AnswerSubscriberDrain, MulticastTree
from router.core.forwarding.publisher_credit import LocalPublishers
from router.core.forwarding.subscriber_credit_pool import SubscriberCreditPool
from router.core.forwarding.timer_queue import TimerQueue
from router.core.ids_and_conditions import RouterId


class MulticastScheduler(CreditScheduler):
    """Scheduler of the credit of one multicast address at one router.

    Args:
        me: this router.
    """

    def __init__(
        self, me: RouterId, *, timing: CreditTiming | None = None, patience: ExclusionTiming | None = None
    ) -> None:
        super().__init__()
        self._me = me
        self._timing = timing or CreditTiming()
        self.local_subscribers = MulticastSubscribers(patience or ExclusionTiming())
        self.share = SubscriberCreditPool(self.local_subscribers, self._timing)
        self.trees: dict[RouterId, MulticastTree] = {}
        """Trees by ingress router; this router's own is always there, another while circuits of it lead here."""
        self._number = 0
        """Number of trees that were made, ever."""
        self._stirred: dict[RouterId, None] = {}
        """Trees with which something has happened since they were last looked at."""
        self._coming: dict[Key, MulticastTree] = {}
        """Trees of the messages that come by circuits and are not there as a whole."""
        self._timers = TimerQueue()
        """Trees by when they need a turn without an event, or are forgotten."""
        self._seen = (True, False, -1)
        """Facts that concern every tree, as they were when all were last looked at."""
        self._add_tree(me)

    @property
    def own(self) -> MulticastTree:
        """The tree of the messages that enter here."""
        return self.trees[self._me]

    @property
    def publishers(self) -> LocalPublishers:
        """Publishers of this router, and what of theirs waits."""
        return self.own.machine.publishers

    @property
    def has_subscribers(self) -> bool:
        """Whether a message that enters here has somewhere to go."""
        return bool(self.own.children or self.local_subscribers.subscribers)

    # Publishers

    def add_publisher(self, key: Key, client: Key | None = None) -> None:
        """Take up a publisher that attached, of a client (None: of its own)."""
        self._touched(self._me).machine.add_publisher(key, client=client)

    def remove_publisher(self, key: Key) -> None:
        """Forget a publisher that is gone.

        Complete pre-settled messages of it are the mesh's and stay; the others that wait must be dropped with `drop`.
        """
        self._touched(self._me).machine.remove_publisher(key)

    def published(self, key: Key, message: Key, now: float, is_ready: bool = True) -> int:
        """See `CreditScheduler.published`: kept until its copies are sent, or refused."""
        self._touched(self._me).published(key, message, now, is_ready=is_ready)
        return KEPT if self._keep_published(message) else REFUSED

    def add_uncredited(self, message: Key, client: Key) -> bool:
        """Let a message wait that enters here on no credit of this address, as those of anonymous senders do.

        Args:
            message: what actions name it by, not in use.
            client: whose it is: they have turns.
        Returns: whether it is kept; False when there is no subscriber anywhere.
        """
        self._touched(self._me).machine.publishers.add_uncredited(message, client)
        return self._keep_published(message)

    def ready(self, message: Key) -> bool:
        """Let a message leave of which the first part had arrived. Returns: whether it is kept."""
        tree = self._coming.pop(message, self.own)
        self._stirred[tree.ingress] = None
        return tree.machine.ready(message) and (tree is not self.own or self._keep_published(message))

    def _keep_published(self, message: Key) -> bool:
        if not self.has_subscribers:
            self.own.machine.drop(message)
        return self.has_subscribers

    def drop(self, message: Key) -> bool:
        """Forget a message that may wait here. Returns: whether it did wait."""
        coming = self._coming.pop(message, None)
        for tree in self.trees.values() if coming is None else (coming,):
            if tree.machine.drop(message):
                self._stirred[tree.ingress] = None
                return True
        return False

    def _lost(self) -> list[Key]:
        """Forget messages that have nowhere to go now. Returns: these."""
        if self.has_subscribers:
            return []
        publishers = self.publishers
        lost = [*publishers.waiting, *publishers.coming]
        for message in lost:
            self.drop(message)
        return lost

    # Local subscribers

    def remove_subscriber(self, key: Key, now: float) -> list[Key]:
        """Forget a local subscriber that is gone.

        Args:
            key: the subscriber.
            now: seconds.
        Returns: messages that have nowhere to go now, forgotten here.
        """
        self.local_subscribers.remove(key, now)
        return self._lost()

    # Paths

    def set_children(
        self,
        ingress: RouterId,
        neighbors: Sequence[RouterId],
        predecessor: RouterId | None = None,
        reached: Sequence[int] = (),
    ) -> list[Key]:
        """Set this router's place in the tree of *ingress*.

        To be told after the first `add_circuit` of a tree, and for this router's own tree always, since that tells
        whether there are subscribers elsewhere.

        Args:
            ingress: router whose tree it is.
            neighbors: children below which there are subscribers, in the order in which they are to get their copies.
            predecessor: the neighbor upstream; None at the ingress itself, and when the ingress cannot be reached.
            reached: how many routers are reached by each child, itself included; one if it is not told.
        Returns: messages that have nowhere to go now, forgotten here.
        """
        if ingress in self.trees:
            self._touched(ingress).set_children(neighbors, predecessor, reached)
        self.local_subscribers.set_elsewhere(bool(self.own.children))
        return self._lost()

    def set_outlet(self, ingress: RouterId, neighbor: RouterId, credit: int, *, is_draining: bool = False) -> None:
        """Set the credit that is unspent on the own circuit to a child.

        Args:
            ingress: router whose tree it is.
            neighbor: the child.
            credit: as it is now, messages; much, of a child that takes no circuits.
            is_draining: the child asks for it back; `ReturnCredit` will follow, unless all is used before.
        """
        if self._has_child(ingress, neighbor):
            self._touched(ingress).set_outlet(neighbor, credit, is_draining=is_draining)
        elif ingress not in self.trees and is_draining and credit > 0:
            self.actions.append(ReturnCredit(ingress, neighbor))  # of a tree that is forgotten

    def outlet_lost(self, ingress: RouterId, neighbor: RouterId) -> None:
        """Forget the credit of the own circuit to a child: it is gone, or can be made again after it could not.

        The weight will be told anew.
        """
        if self._has_child(ingress, neighbor):
            self._touched(ingress).outlet_lost(neighbor)

    def outlet_closed(self, ingress: RouterId, neighbor: RouterId) -> None:
        """Note that nobody below a child is live, as it tells."""
        if self._has_child(ingress, neighbor):
            self._touched(ingress).outlet_closed(neighbor)

    def _has_child(self, ingress: RouterId, neighbor: RouterId) -> bool:
        return ingress in self.trees and neighbor in self.trees[ingress].children

    # Circuits

    def add_circuit(self, ingress: RouterId, key: Key, neighbor: RouterId) -> None:
        """Take up a circuit that *neighbor* attached, perhaps before this router knows its place in the tree."""
        if ingress not in self.trees:
            self._add_tree(ingress)
        self._touched(ingress).add_circuit(key, neighbor)

    def remove_circuit(self, ingress: RouterId, key: Key) -> None:
        """Forget a circuit that is gone, with the credit that it held."""
        self._touched(ingress).machine.remove_circuit(ingress, key)

    def set_weight(self, ingress: RouterId, key: Key, weight: int) -> None:
        """Set how many busy publishers are behind a circuit, as its neighbor tells."""
        self._touched(ingress).set_weight(key, weight)

    def arrived(self, root: RouterId, key: Key, message: Key, now: float, is_ready: bool = True) -> int:
        """See `CreditScheduler.arrived`: kept until its copies are sent, or refused."""
        tree = self._touched(root)
        result = tree.arrived(key, message, now, is_ready=is_ready)
        if not is_ready and result != REFUSED:
            self._coming[message] = tree
        return result

    def is_upstream(self, ingress: RouterId, key: Key) -> bool:
        """Whether messages of *ingress* are to come on that circuit, from the neighbor upstream."""
        return self.trees[ingress].is_upstream(key)

    def circuit_drained(self, ingress: RouterId, key: Key, credit: int) -> None:
        """Take back *credit* (messages) that a neighbor returned on a circuit."""
        self._touched(ingress).machine.circuit_drained(ingress, key, credit)

    def _add_tree(self, ingress: RouterId) -> None:
        self.trees[ingress] = MulticastTree(ingress, self.actions, self._timing, self.share, self._number)
        self._number += 1
        self._stirred[ingress] = None

    def _touched(self, ingress: RouterId) -> MulticastTree:
        """Find a tree with which something happens, so that it needs a turn."""
        self._stirred[ingress] = None
        return self.trees[ingress]

    def _forget_idle(self) -> None:
        for ingress in list(self._stirred):
            if ingress != self._me and self.trees[ingress].is_idle:
                del self.trees[ingress], self._stirred[ingress]
                self._timers.cancel(ingress)
                self.share.remove(ingress)

    # The turn

    def set_stopping(self, is_stopping: bool) -> None:
        """See `CreditScheduler.set_stopping`."""
        self._touched(self._me).machine.set_stopping(is_stopping)

    def turn(self, now: float) -> list[CreditAction]:
        """Send, deal, lend and take back at *now* (seconds). Returns: all that is to be done, in order."""
        for ingress in self._timers.take(now):
            self._stirred[RouterId(str(ingress))] = None
        self._forget_idle()
        self.local_subscribers.update(now)
        self._turn_share(now)
        while turned := self._needy():
            for tree in turned:
                self._turn_tree(tree, now)
            if self.share.is_touched:
                # What a tree did may free credit for another, or show its demand; each time less is left to deal.
                self._turn_share(now)
        self.local_subscribers.press(now, is_wanted=self.share.is_backlogged)
        self._deadline = min(self.share.next_deadline(), self.local_subscribers.next_deadline(), self._timers.next())
        return self.take_actions()

    def _turn_share(self, now: float) -> None:
        self.actions += [AnswerSubscriberDrain(subscriber) for subscriber in self.share.turn(now)]

    def _needy(self) -> list[MulticastTree]:
        """Find the trees that need a turn, in the order in which they were made. The others are not even looked at."""
        share, stirred = self.share, self._stirred.copy()
        # While the trees hold more than there is, each may use less than its part.
        seen = (
            share.is_closed,
            self.local_subscribers.has_live,
            self.local_subscribers.capacity if share.free() < 0 else -1,
        )
        if seen != self._seen:
            self._seen = seen
            candidates = list(self.trees)
        else:
            candidates = list({self._me: None, **stirred, **share.moved})
            candidates.sort(key=lambda ingress: self.trees[ingress].number)
        self._stirred.clear()
        share.moved.clear()
        trees = [self.trees[ingress] for ingress in candidates]
        return [tree for tree in trees if tree.ingress in stirred or tree.has_other_part]

    def _turn_tree(self, tree: MulticastTree, now: float) -> None:
        tree.turn(now)
        self.share.set_weight(tree.ingress, tree.weight)
        is_forgotten_next = tree is not self.own and tree.is_idle
        self._timers.set(tree.ingress, now if is_forgotten_next else tree.next_deadline())
        if tree.is_due:
            self._stirred[tree.ingress] = None

    def check_invariants(self) -> None:
        """Check that sums fit and that a turn left nothing undone. Raises: AssertionError."""
        self.local_subscribers.check_invariants()
        self.share.check_invariants()
        coming = {message: tree for tree in self.trees.values() for message in tree.pool.coming}
        assert self._coming == coming
        assert self.share.parts.keys() == self.trees.keys()
        for tree in self.trees.values():
            tree.check_invariants()
