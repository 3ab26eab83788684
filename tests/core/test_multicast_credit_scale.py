"""What a multicast credit machine does for one event, however many subscribers and trees it has.

Counted in instructions of the interpreter, which are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from router.core.forwarding.multicast_tree import MulticastTree
from router.core.ids_and_conditions import RouterId
from tests.helpers.multicast_bench import MulticastBench
from tests.helpers.work import instructions

FEW, MANY = 20, 640
GRACE_S = 1.0


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
    "one goes": lambda bench: bench.machine.remove_subscriber(3),
    "one asks for its credit": asks_back,
    "one is excluded": is_late,
    "a message comes to others": lambda bench: bench.machine.add_publisher("q"),
}


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_costs_the_same_however_many_subscribers_there_are(event: str) -> None:
    def work(count: int) -> int:
        bench = local_subscribers(count)

        def act() -> None:
            EVENTS[event](bench)
            bench.machine.turn(bench.now)
            bench.machine.next_deadline()

        return instructions(act)

    assert work(MANY) <= 2 * work(FEW)


def test_those_who_come_back_cost_the_same_however_many_have_been_excluded() -> None:
    def work(count: int) -> int:
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

    assert work(MANY) <= 2 * work(FEW)


def test_a_copy_costs_the_same_however_many_subscribers_there_are() -> None:
    def work(count: int) -> int:
        bench = local_subscribers(count)
        return instructions(lambda: bench.machine.published("p", "m", bench.now))

    assert work(MANY) / MANY <= 2 * work(FEW) / FEW


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
    "a message": arrives,
    "a weight": lambda bench: bench.machine.set_weight(RouterId("in003"), "up3", 2),
    "a circuit goes": lambda bench: bench.machine.remove_circuit(RouterId("in003"), "up3"),
    "a publisher comes": lambda bench: bench.machine.add_publisher("p"),
    "time passes": lambda bench: None,
}


@pytest.mark.parametrize("event", TREE_EVENTS)
def test_an_event_looks_at_no_tree_that_it_does_not_concern(event: str, monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = 20, 160
    see, seen = MulticastTree._see, []
    monkeypatch.setattr(MulticastTree, "_see", lambda tree: seen.append(tree) or see(tree))

    def turned(count: int) -> int:
        bench = transit(count)
        seen.clear()
        TREE_EVENTS[event](bench)
        bench.machine.turn(bench.now + 0.001)
        return len(seen)

    assert turned(many) <= turned(few) + 4


def test_what_is_dealt_costs_the_same_however_many_trees_there_are() -> None:
    """But for looking once at each."""

    def work(count: int) -> int:
        bench = transit(count)
        bench.machine.local_subscribers.changed("s", 20 * count, bench.now)
        return instructions(lambda: bench.machine.turn(bench.now)) // count

    assert work(160) <= 2 * work(20)
