"""One multicast credit machine on the bench: events go in, the orders that it gave are read as tuples."""

from __future__ import annotations

from collections.abc import Sequence

from router.core.forwarding.credit_scheduler import CreditTiming, Key
from router.core.forwarding.local_subscribers import Patience
from router.core.forwarding.multicast_ingress_scheduler import MulticastIngressScheduler
from router.core.forwarding.multicast_tree import MulticastTree
from router.core.ids_and_conditions import RouterId

ME = RouterId("me")
Order = tuple[object, ...]


class MulticastBench:
    """A machine, its time, and what it ordered since it was last asked."""

    def __init__(self, *, timing: CreditTiming | None = None, patience: Patience | None = None) -> None:
        self.now = 100.0
        self.orders: list[Order] = []
        self.machine = MulticastIngressScheduler(self, ME, timing=timing, patience=patience)
        self._count = 0

    def grant(self, publisher: Key, credit: int) -> None:
        self.orders.append(("grant", publisher, credit))

    def grant_circuit(self, circuit: Key, credit: int) -> None:
        self.orders.append(("grant_circuit", circuit, credit))

    def drain_circuit(self, circuit: Key) -> None:
        self.orders.append(("drain_circuit", circuit))

    def close_circuit(self, circuit: Key) -> None:
        self.orders.append(("close_circuit", circuit))

    def send_copies(
        self,
        message: Key,
        ingress: RouterId,
        neighbors: Sequence[RouterId],
        subscribers: Sequence[Key],
        missed: Sequence[Key],
    ) -> None:
        self.orders.append(("send", message, (*neighbors, *subscribers), tuple(missed)))

    def drained_outlet(self, ingress: RouterId, neighbor: RouterId) -> None:
        self.orders.append(("drained_outlet", ingress, neighbor))

    def drained_subscriber(self, subscriber: Key) -> None:
        self.orders.append(("drained_subscriber", subscriber))

    def weigh_outlet(self, ingress: RouterId, neighbor: RouterId, weight: int) -> None:
        self.orders.append(("weigh", ingress, neighbor, weight))

    # Events, each with its turn

    def turn(self) -> list[Order]:
        """Have a turn. Returns the orders since the last one."""
        self.machine.turn(self.now)
        self.machine.check_invariants()
        orders, self.orders = self.orders, []
        return orders

    def wait(self, duration_s: float) -> list[Order]:
        """Let time pass, with a turn at each deadline. Returns all orders of that time."""
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
        self.machine.add_subscriber(key)
        return self.credit(key, credit)

    def unsubscribe(self, key: Key) -> list[Key]:
        lost = self.machine.remove_subscriber(key)
        self.turn()
        return lost

    def credit(self, key: Key, credit: int, *, is_draining: bool = False, is_withdrawn: bool = False) -> list[Order]:
        self.machine.subscriber_changed(key, credit, self.now, is_draining=is_draining, is_withdrawn=is_withdrawn)
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
        return self.machine.own.machine.publishers.attached[key].held
