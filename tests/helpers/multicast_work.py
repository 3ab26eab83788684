"""What a multicast credit machine does for one event, with few and with many subscribers or trees.

Run interpreted, since what is compiled carries out no instructions of the interpreter, and these are the same on every
machine. Prints the counts for few and for many, by the name of the event, as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from router.core.forwarding.multicast_tree import MulticastTree
from router.core.ids_and_conditions import RouterId
from tests.helpers.multicast_bench import MulticastBench
from tests.helpers.work import instructions

FEW, MANY = 20, 640
"""Subscribers."""
FEW_TREES, MANY_TREES = 20, 160
GRACE_S = 1.0
COMES_BACK, COPIES, DEALING = "one comes back of many", "copies of a message", "all trees are dealt credit"


def local_subscribers(count: int) -> MulticastBench:
    """A router with a publisher and so many subscribers."""
    bench = MulticastBench()
    bench.attach("p")
    for number in range(count):
        bench.machine.local_subscribers.add(number)
        bench.machine.local_subscribers.changed(number, 100 + number % 7, bench.now)
    bench.turn()
    bench.publish("p")
    return bench


def subscribes(bench: MulticastBench) -> None:
    bench.machine.local_subscribers.add("new")
    bench.machine.local_subscribers.changed("new", 50, bench.now)


def asks_back(bench: MulticastBench) -> None:
    bench.machine.local_subscribers.changed(3, 100, bench.now, is_draining=True)


def is_late(bench: MulticastBench) -> None:
    bench.machine.local_subscribers.changed(3, 0, bench.now)
    bench.now += GRACE_S


EVENTS: dict[str, Callable[[MulticastBench], object]] = {
    "one grants": lambda bench: bench.machine.local_subscribers.changed(3, 200, bench.now),
    "one has less": lambda bench: bench.machine.local_subscribers.changed(3, 2, bench.now),
    "one comes": subscribes,
    "one goes": lambda bench: bench.machine.remove_subscriber(3, bench.now),
    "one asks for its credit": asks_back,
    "one is excluded": is_late,
    "a message comes to others": lambda bench: bench.machine.add_publisher("q"),
}


def of_event(event: str, count: int) -> int:
    """Instructions of an event, with its turn, that concerns subscribers."""
    bench = local_subscribers(count)

    def act() -> None:
        EVENTS[event](bench)
        bench.machine.turn(bench.now)
        bench.machine.next_deadline()

    return instructions(act)


def of_one_that_comes_back(count: int) -> int:
    """Instructions where all but one have been excluded and come back, for the last of them."""
    bench = local_subscribers(count)
    for number in range(1, count):
        bench.machine.local_subscribers.changed(number, 0, bench.now)
    bench.turn()
    bench.wait(GRACE_S)
    for number in range(2, count):
        bench.machine.local_subscribers.changed(number, 100, bench.now)
    bench.turn()

    def act() -> None:
        bench.machine.local_subscribers.changed(1, 100, bench.now)
        bench.machine.turn(bench.now)
        bench.machine.next_deadline()

    return instructions(act)


def of_copies(count: int) -> int:
    """Instructions of one message to so many subscribers."""
    bench = local_subscribers(count)
    return instructions(lambda: bench.machine.published("p", "m", bench.now))


# Trees


def transit(count: int) -> MulticastBench:
    """A router with a subscriber and so many trees of other routers, each with credit."""
    bench = MulticastBench()
    bench.subscribe("s", 5 * count)
    for number in range(count):
        name = RouterId(f"in{number:03}")
        bench.machine.add_circuit(name, f"up{number}", name)
        bench.machine.set_weight(name, f"up{number}", 1)
        bench.machine.set_children(name, [], name)
    bench.turn()
    bench.turn()
    return bench


def arrives(bench: MulticastBench) -> None:
    bench.machine.arrived(RouterId("in003"), "up3", "m", bench.now)


TREE_EVENTS: dict[str, Callable[[MulticastBench], object]] = {
    "a message of a tree": arrives,
    "a weight": lambda bench: bench.machine.set_weight(RouterId("in003"), "up3", 2),
    "a circuit goes": lambda bench: bench.machine.remove_circuit(RouterId("in003"), "up3"),
    "a publisher comes": lambda bench: bench.machine.add_publisher("p"),
    "time passes": lambda bench: None,
}


def trees_looked_at(event: str, count: int) -> int:
    """How many of so many trees an event and its turn look at."""
    bench = transit(count)
    see, seen = MulticastTree._see, []
    MulticastTree._see = lambda tree: seen.append(tree) or see(tree)  # type: ignore[method-assign]
    try:
        TREE_EVENTS[event](bench)
        bench.machine.turn(bench.now + 0.001)
    finally:
        MulticastTree._see = see  # type: ignore[method-assign]
    return len(seen)


def of_dealing(count: int) -> int:
    """Instructions of a turn that deals to so many trees."""
    bench = transit(count)
    bench.machine.local_subscribers.changed("s", 20 * count, bench.now)
    return instructions(lambda: bench.machine.turn(bench.now))


if __name__ == "__main__":
    found = {event: [of_event(event, count) for count in (FEW, MANY)] for event in EVENTS}
    found[COMES_BACK] = [of_one_that_comes_back(count) for count in (FEW, MANY)]
    found[COPIES] = [of_copies(count) for count in (FEW, MANY)]
    found |= {event: [trees_looked_at(event, count) for count in (FEW_TREES, MANY_TREES)] for event in TREE_EVENTS}
    found[DEALING] = [of_dealing(count) for count in (FEW_TREES, MANY_TREES)]
    print(json.dumps(found))
