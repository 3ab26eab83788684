"""One credit machine on the bench: events go in, the orders that it gave are read as tuples."""

from __future__ import annotations

from router.core.forwarding.anycast_scheduler import AnycastScheduler
from router.core.forwarding.credit_pool import CreditPool
from router.core.forwarding.credit_scheduler import CreditActions, CreditTiming, Key
from router.core.ids_and_conditions import RouterId

HERE = RouterId("here")
Order = tuple[object, ...]


class Bench(CreditActions):
    """A machine, its time, and what it ordered since it was last asked."""

    def __init__(self, *, is_closest: bool = False, timing: CreditTiming | None = None) -> None:
        self.now = 100.0
        self.orders: list[Order] = []
        self.machine = AnycastScheduler(self, timing=timing, is_closest=is_closest)
        self._count = 0

    def grant(self, publisher: Key, credit: int) -> None:
        self.orders.append(("grant", publisher, credit))

    def grant_circuit(self, circuit: Key, credit: int) -> None:
        self.orders.append(("grant_circuit", circuit, credit))

    def drain_circuit(self, circuit: Key) -> None:
        self.orders.append(("drain_circuit", circuit))

    def close_circuit(self, circuit: Key) -> None:
        self.orders.append(("close_circuit", circuit))

    def send(self, message: Key, egress: RouterId) -> None:
        self.orders.append(("send", message, egress))

    def drained(self, egress: RouterId, credit: int) -> None:
        self.orders.append(("drained", egress, credit))

    def weigh(self, egress: RouterId, weight: int) -> None:
        self.orders.append(("weigh", egress, weight))

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
        while (due := self.machine.next_deadline()) <= end:
            self.now = max(self.now, due)
            orders += self.turn()
        self.now = end
        return orders

    def path(self, egress: str = HERE, *, cost: int = 0, next_hop: str | None = None) -> list[Order]:
        hop = RouterId(next_hop) if next_hop is not None else None
        self.machine.set_path(RouterId(egress), cost=cost, next_hop=hop, now=self.now)
        return self.turn()

    def credit(self, credit: int, egress: str = HERE, *, returning: int = 0, is_withdrawn: bool = False) -> list[Order]:
        machine = self.machine
        machine.set_capacity(RouterId(egress), credit, self.now, returning=returning, is_withdrawn=is_withdrawn)
        return self.turn()

    def attach(self, *keys: Key) -> list[Order]:
        for key in keys:
            self.machine.add_publisher(key)
        return self.turn()

    def publish(self, key: Key, message: Key = None) -> list[Order]:
        self._count += 1
        self.machine.published(key, self._count if message is None else message, self.now)
        return self.turn()

    def use(self, key: Key, count: int) -> None:
        """*key* sends *count* messages, and the subscriber grants each again."""
        for _ in range(count):
            sent = [order for order in self.publish(key) if order[0] == "send"]
            self.credit(self.pool().capacity + len(sent))

    def circuit(self, key: Key, neighbor: str, weight: int, egress: str = HERE) -> list[Order]:
        self.machine.add_circuit(RouterId(egress), key, RouterId(neighbor))
        self.machine.set_weight(RouterId(egress), key, weight)
        return self.turn()

    def arrive(self, key: Key, message: Key, egress: str = HERE) -> list[Order]:
        self.machine.arrived(RouterId(egress), key, message, self.now)
        return self.turn()

    def returned(self, key: Key, credit: int, egress: str = HERE) -> list[Order]:
        self.machine.circuit_drained(RouterId(egress), key, credit)
        return self.turn()

    # What stands

    def pool(self, egress: str = HERE) -> CreditPool:
        return self.machine.pools[RouterId(egress)]

    def held(self, key: Key) -> int:
        return self.machine.publishers.attached[key].held


def local(credit: int, *publishers: Key) -> Bench:
    """A router with a subscriber that granted *credit*, and publishers."""
    bench = Bench()
    bench.path()
    bench.attach(*publishers)
    bench.credit(credit)
    return bench
