"""One credit machine on the bench: events go in, what it wants done comes out as tuples."""

from __future__ import annotations

from router.core.forwarding.anycast_scheduler import AnycastScheduler, EgressPath
from router.core.forwarding.credit_actions import (
    CreditAction,
    DrainCircuit,
    Grant,
    GrantCircuit,
    Key,
    ReturnCredit,
    Send,
    TellNeighborSubscribersWithdrew,
    TellWeight,
)
from router.core.forwarding.credit_scheduler import CreditTiming
from router.core.forwarding.pool_toward_egress import PoolTowardEgress
from router.core.ids_and_conditions import RouterId

HERE = RouterId("here")
Order = tuple[object, ...]


def as_order(action: CreditAction) -> Order:
    """What is to be done, as a tuple."""
    match action:
        case Grant():
            return ("grant", action.publisher, action.credit)
        case GrantCircuit():
            return ("grant_circuit", action.circuit, action.credit)
        case DrainCircuit():
            return ("drain_circuit", action.circuit)
        case TellNeighborSubscribersWithdrew():
            return ("close_circuit", action.circuit)
        case Send():
            return ("send", action.message, action.egress)
        case ReturnCredit():
            return ("drained", action.root)
        case TellWeight():
            return ("weigh", action.root, action.weight)
    raise AssertionError(action)


class Bench:
    """A machine, its time, and what it wanted done since it was last asked."""

    def __init__(self, *, is_closest: bool = False, timing: CreditTiming | None = None) -> None:
        self.now = 100.0
        self.machine = AnycastScheduler(timing=timing, is_closest=is_closest)
        self.paths: dict[RouterId, EgressPath] = {}
        self._orders: list[Order] = []
        self._count = 0

    # Events, each with its turn

    def turn(self) -> list[Order]:
        """Have a turn. Returns what is to be done since the last one."""
        orders, self._orders = self._orders, []
        orders += [as_order(action) for action in self.machine.turn(self.now)]
        self.machine.check_invariants()
        return orders

    def _take(self, message: Key, result: int) -> list[Order]:
        """Have a turn after a message came that is sent, or not, by its result."""
        if result >= 0:
            self._orders.append(("send", message, self.machine.egresses[result]))
        return self.turn()

    def wait(self, duration_s: float) -> list[Order]:
        """Let time pass, with a turn at each deadline. Returns all that was to be done in that time."""
        end = self.now + duration_s
        orders: list[Order] = []
        while (due := self.machine.next_deadline()) <= end:
            self.now = max(self.now, due)
            orders += self.turn()
        self.now = end
        return orders

    def path(self, egress: str = HERE, *, cost: int = 0, next_hop: str | None = None) -> list[Order]:
        hop = RouterId(next_hop) if next_hop is not None else None
        self.paths[RouterId(egress)] = EgressPath(cost, hop)
        self.machine.set_paths(self.paths, self.now)
        return self.turn()

    def lose_path(self, egress: str = HERE) -> list[Key]:
        """Returns the messages that have nowhere to go then."""
        del self.paths[RouterId(egress)]
        return self.machine.set_paths(self.paths, self.now)

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
        message = self._count if message is None else message
        return self._take(message, self.machine.published(key, message, self.now))

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
        return self._take(message, self.machine.arrived(RouterId(egress), key, message, self.now))

    def returned(self, key: Key, credit: int, egress: str = HERE) -> list[Order]:
        self.machine.circuit_drained(RouterId(egress), key, credit)
        return self.turn()

    # What stands

    def pool(self, egress: str = HERE) -> PoolTowardEgress:
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
