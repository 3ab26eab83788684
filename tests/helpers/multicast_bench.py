"""One multicast credit machine on the bench: events go in, what it wants done comes out as tuples."""

from __future__ import annotations

from router.core.forwarding.credit_actions import CreditAction, Key, ReturnCredit, TellWeight
from router.core.forwarding.credit_scheduler import CreditTiming
from router.core.forwarding.multicast_scheduler import MulticastScheduler
from router.core.forwarding.multicast_subscribers import ExclusionTiming
from router.core.forwarding.multicast_tree import (
    AnswerSubscriberDrain,
    BranchExcluded,
    MulticastTree,
    RepairReopenedBranch,
    SendCopies,
)
from router.core.ids_and_conditions import RouterId
from tests.helpers.credit_bench import Order, as_order

ME = RouterId("me")


def as_multicast_order(action: CreditAction) -> Order:
    """What is to be done, as a tuple."""
    match action:
        case SendCopies():
            return (
                "send",
                action.message,
                (*action.neighbors, *action.subscribers),
                (*action.passed_over, *action.missed),
            )
        case ReturnCredit():
            return ("drained_outlet", action.root, action.neighbor)
        case AnswerSubscriberDrain():
            return ("drained_subscriber", action.subscriber)
        case TellWeight():
            return ("weigh", action.root, action.neighbor, action.weight)
        case BranchExcluded():
            return ("excluded", action.neighbor)
        case RepairReopenedBranch():
            return ("reopened",)
    return as_order(action)


class MulticastBench:
    """A machine, its time, and what it wanted done since it was last asked."""

    def __init__(self, *, timing: CreditTiming | None = None, patience: ExclusionTiming | None = None) -> None:
        self.now = 100.0
        self.machine = MulticastScheduler(ME, timing=timing, patience=patience)
        self._count = 0

    # Events, each with its turn

    def turn(self) -> list[Order]:
        """Have a turn. Returns what is to be done since the last one."""
        orders = [as_multicast_order(action) for action in self.machine.turn(self.now)]
        self.machine.check_invariants()
        return orders

    def wait(self, duration_s: float) -> list[Order]:
        """Let time pass, with a turn at each deadline. Returns all that was to be done in that time."""
        end = self.now + duration_s
        orders: list[Order] = []
        turns = 0
        while (due := self.machine.next_deadline()) <= end:
            turns = turns + 1 if due <= self.now else 0
            assert turns < 100, "a livelock"
            self.now = max(self.now, due)
            orders += self.turn()
        self.now = end
        return orders

    def attach(self, *keys: Key) -> list[Order]:
        for key in keys:
            self.machine.add_publisher(key)
        return self.turn()

    def publish(self, key: Key, message: Key = None) -> list[Order]:
        self._count += 1
        self.machine.published(key, self._count if message is None else message, self.now)
        return self.turn()

    def subscribe(self, key: Key, credit: int = 0) -> list[Order]:
        self.machine.local_subscribers.add(key)
        return self.credit(key, credit)

    def unsubscribe(self, key: Key) -> list[Key]:
        lost = self.machine.remove_subscriber(key, self.now)
        self.turn()
        return lost

    def credit(self, key: Key, credit: int, *, is_draining: bool = False, is_withdrawn: bool = False) -> list[Order]:
        self.machine.local_subscribers.changed(
            key, credit, self.now, is_draining=is_draining, is_withdrawn=is_withdrawn
        )
        return self.turn()

    def tree(self, ingress: str, *children: str, predecessor: str | None = None) -> list[Order]:
        before = None if predecessor is None else RouterId(predecessor)
        self.machine.set_children(RouterId(ingress), [RouterId(child) for child in children], before)
        return self.turn()

    def branch(self, ingress: str, neighbor: str, credit: int, *, is_draining: bool = False) -> list[Order]:
        self.machine.set_outlet(RouterId(ingress), RouterId(neighbor), credit, is_draining=is_draining)
        return self.turn()

    def closed(self, ingress: str, neighbor: str) -> list[Order]:
        self.machine.outlet_closed(RouterId(ingress), RouterId(neighbor))
        return self.turn()

    def circuit(self, ingress: str, key: Key, neighbor: str, weight: int = 1) -> list[Order]:
        self.machine.add_circuit(RouterId(ingress), key, RouterId(neighbor))
        self.machine.set_weight(RouterId(ingress), key, weight)
        return self.turn()

    def upstream(self, ingress: str, key: Key, *children: str, weight: int = 1) -> list[Order]:
        """A circuit of the tree of *ingress* comes from that router itself."""
        self.machine.add_circuit(RouterId(ingress), key, RouterId(ingress))
        self.machine.set_weight(RouterId(ingress), key, weight)
        return self.tree(ingress, *children, predecessor=ingress)

    def arrive(self, ingress: str, key: Key, message: Key) -> list[Order]:
        self.machine.arrived(RouterId(ingress), key, message, self.now)
        return self.turn()

    def returned(self, ingress: str, key: Key, credit: int) -> list[Order]:
        self.machine.circuit_drained(RouterId(ingress), key, credit)
        return self.turn()

    # What stands

    def of(self, ingress: str) -> MulticastTree:
        return self.machine.trees[RouterId(ingress)]

    def held(self, key: Key) -> int:
        return self.machine.publishers.attached[key].held
