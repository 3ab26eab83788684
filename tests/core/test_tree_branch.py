"""Neighbors that hold up a multicast for longer than they should: who is excluded, when, for how long, what it misses.

The rules are in docs/explanation/credit.md#multicast.
"""

from __future__ import annotations

import itertools

import pytest

from router.core.forwarding.multicast_subscribers import ExclusionTiming
from router.core.forwarding.multicast_tree import MOST_FORMER
from router.core.forwarding.tree_branch import TreeBranch
from router.core.ids_and_conditions import RouterId
from router.testing.clients import GrantHabit, SimSubscriber
from router.testing.multicast_mesh import MulticastMesh
from tests.core.test_multicast_credit import GRACE_S, local, sends
from tests.helpers.multicast_bench import MulticastBench, Order

# At one router

SERVICE_S = 0.04
"""A subscriber's time for a message where much time passes, so that not too many do."""
LIMIT_S = 4 * GRACE_S + 1.0 + 0.25


def held_up(*children: str) -> MulticastBench:
    """A router with a subscriber and a waiting message, and *children* that grant nothing."""
    bench = local(1000, "p")
    bench.tree("me", *children)
    bench.publish("p", 1)
    return bench


def exclusions(orders: list[Order]) -> list[Order]:
    return [order for order in orders if order[0] == "excluded"]


def hold_of(bench: MulticastBench, neighbor: str) -> TreeBranch:
    return bench.of("me").children[RouterId(neighbor)]


def test_a_neighbor_that_never_grants_holds_up_the_others_for_a_limited_time_alone() -> None:
    bench = held_up("a")
    assert sends(bench.wait(LIMIT_S - 0.01)) == []
    assert sends(bench.wait(0.02)) == [(1, ("s",), ("a",))]
    assert sends(bench.publish("p", 2)) == [(2, ("s",), ("a",))]
    assert hold_of(bench, "a").missed == 2


def test_a_neighbor_that_reaches_more_routers_may_hold_up_the_others_for_longer() -> None:
    bench = local(1000, "p")
    bench.machine.set_children(RouterId("me"), [RouterId("a")], None, [5])
    bench.publish("p", 1)
    assert sends(bench.wait(LIMIT_S + 4 * 0.25 - 0.01)) == []
    assert sends(bench.wait(0.02)) == [(1, ("s",), ("a",))]


def test_each_message_is_sent_to_a_neighbor_or_counted_as_missed_and_never_both() -> None:
    bench = held_up("a")
    orders = bench.wait(LIMIT_S + 0.01)
    for number in range(2, 6):
        orders += bench.publish("p", number)
    orders += bench.branch("me", "a", 2)
    for number in range(6, 8):
        orders += bench.publish("p", number)
    assert sends(orders) == [
        *((number, ("s",), ("a",)) for number in range(1, 6)),
        *((number, ("a", "s"), ()) for number in (6, 7)),
    ]
    assert hold_of(bench, "a").missed == 5
    assert sends(bench.publish("p", 8)) == [], "it has been sent what it granted"


def test_a_neighbor_that_was_excluded_comes_back_when_it_grants() -> None:
    bench = held_up("a")
    bench.wait(LIMIT_S + 0.01)
    bench.branch("me", "a", 5)
    assert sends(bench.publish("p", 2)) == [(2, ("a", "s"), ())]


def test_a_neighbor_that_is_excluded_is_asked_for_credit_while_there_are_publishers() -> None:
    bench = held_up("a")
    bench.wait(LIMIT_S + 0.01)
    bench.wait(10.0)
    assert bench.of("me").weight == 0
    assert bench.of("me").children[RouterId("a")].told_weight == 1
    bench.machine.remove_publisher("p")
    bench.turn()
    assert bench.of("me").children[RouterId("a")].told_weight == 0


def test_credit_that_publishers_hold_is_taken_back_when_a_neighbor_with_less_returns() -> None:
    bench = held_up("a")
    bench.wait(LIMIT_S + 0.01)
    for number in range(2, 30):
        bench.publish("p", number)
    assert bench.held("p") > 4
    bench.branch("me", "a", 3)
    bench.wait(0.2)
    assert bench.held("p") <= 3 + 1
    sent = [bench.publish("p", number) for number in range(30, 36)]
    assert [len(sends(orders)) for orders in sent] == [1, 1, 1, 0, 0, 0]


def test_a_neighbor_that_relapses_pauses_for_longer_each_time_and_is_told_of_once() -> None:
    bench = held_up("a")
    orders = bench.wait(LIMIT_S + 0.01)
    pauses = []
    for _ in range(9):
        since = bench.now
        bench.branch("me", "a", 1)
        while hold_of(bench, "a").is_excluded:
            bench.wait(0.1)
        pauses.append(bench.now - since)
        orders += bench.publish("p") + bench.publish("p")
        orders += bench.wait(LIMIT_S + 0.01)
        assert hold_of(bench, "a").is_excluded
    assert pauses == pytest.approx([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0], abs=0.11)
    assert exclusions(orders) == [("excluded", "a")]


def test_a_neighbor_that_behaved_for_long_is_told_of_again_and_need_not_pause() -> None:
    bench = held_up("a")
    bench.wait(LIMIT_S + 0.01)
    bench.branch("me", "a", 1)
    bench.wait(LIMIT_S + 60.1)
    bench.publish("p")
    bench.publish("p")
    assert exclusions(bench.wait(LIMIT_S + 0.01)) == [("excluded", "a")]
    bench.branch("me", "a", 1)
    assert not hold_of(bench, "a").is_excluded


def test_a_neighbor_that_grants_late_but_within_the_time_is_never_excluded() -> None:
    bench = local(1000, "p")
    bench.tree("me", "a")
    for _ in range(10):
        bench.publish("p")
        bench.publish("p")
        assert exclusions(bench.wait(LIMIT_S - 0.1)) == []
        assert [to for _, to, _ in sends(bench.branch("me", "a", 2))] == [("a", "s")] * 2


def test_a_neighbor_that_took_one_message_and_rested_has_its_whole_time_again() -> None:
    bench = held_up("a")
    bench.wait(LIMIT_S - 0.1)
    bench.branch("me", "a", 1)
    bench.wait(LIMIT_S + 0.1)
    bench.publish("p", 2)
    assert exclusions(bench.wait(LIMIT_S - 0.1)) == []
    assert [to for _, to, _ in sends(bench.branch("me", "a", 1))] == [("a", "s")]


def test_one_that_grants_one_credit_each_time_just_before_the_end_gains_nothing() -> None:
    bench = held_up("a")
    for number in range(2, 100):
        bench.publish("p", number)
    bench.wait(LIMIT_S - 0.5)
    assert len(sends(bench.branch("me", "a", 1))) == 1
    assert exclusions(bench.wait(0.51)) == [("excluded", "a")]


def test_a_neighbor_that_withdraws_and_comes_back_gains_nothing() -> None:
    bench = held_up("a")
    bench.wait(LIMIT_S - 0.5)
    bench.tree("me")
    bench.publish("p", 2)
    bench.wait(1.0)
    bench.publish("p", 3)
    bench.tree("me", "a")
    bench.publish("p", 4)
    assert exclusions(bench.wait(0.51)) == [("excluded", "a")]
    bench.tree("me")
    bench.tree("me", "a")
    assert hold_of(bench, "a").is_excluded


def test_former_neighbors_are_remembered_up_to_a_number() -> None:
    bench = held_up()
    for number in range(3 * MOST_FORMER):
        bench.tree("me", f"a{number}")
        bench.publish("p")
        bench.wait(0.1)
        bench.tree("me")
    assert len(bench.of("me")._former) == MOST_FORMER


def test_when_nobody_else_counts_an_excluded_neighbor_does_and_only_so_long() -> None:
    bench = held_up("a")
    bench.wait(LIMIT_S + 0.01)
    bench.credit("s", 0, is_withdrawn=True)
    bench.wait(2.0)
    bench.publish("p", 2)
    assert sends(bench.wait(60.0)) == [], "it is waited for"
    assert not hold_of(bench, "a").is_excluded
    assert sends(bench.credit("s", 10)) + sends(bench.wait(0.0)) == [(2, ("s",), ("a",))], "its time was over before"


@pytest.mark.parametrize("children", [("a", "b"), ("a", "b", "c")])
def test_several_neighbors_that_never_grant_hold_up_others_no_longer_than_one(children: tuple[str, ...]) -> None:
    bench = held_up(*children)
    orders = bench.wait(LIMIT_S + 0.01)
    assert sends(orders) == [(1, ("s",), children)]
    assert len(exclusions(orders)) == len(children)


def test_a_tree_that_passes_here_excludes_a_child_and_grants_upstream() -> None:
    bench = local(1000)
    bench.upstream("b", "c1", "a", weight=1000)
    orders = bench.wait(LIMIT_S + 0.01)
    assert exclusions(orders) == [("excluded", "a")]
    assert [order for order in orders if order[0] == "grant_circuit"]
    assert sends(bench.arrive("b", "c1", 1)) == [(1, ("s",), ("a",))]


def test_two_neighbors_that_grant_in_turns_hold_up_the_others_no_longer() -> None:
    bench = held_up("a", "b")
    sent = []
    for turn in range(24):
        first, second = ("a", "b") if turn % 2 else ("b", "a")
        sent += sends(bench.branch("me", first, 0)) + sends(bench.branch("me", second, 1)) + sends(bench.wait(0.5))
        if turn == 19:
            assert sent == []
    assert sent in ([(1, ("a", "s"), ("b",))], [(1, ("b", "s"), ("a",))])


def test_the_only_branch_that_counts_is_never_excluded() -> None:
    bench = MulticastBench()
    bench.attach("p")
    bench.tree("me", "a")
    bench.publish("p", 1)
    assert sends(bench.wait(60.0)) == []
    assert sends(bench.branch("me", "a", 1)) == [(1, ("a",), ())]


def test_a_neighbor_is_not_excluded_while_no_publisher_waits() -> None:
    bench = local(1000, "p")
    bench.tree("me", "a")
    bench.wait(60.0)
    assert not bench.of("me").children[RouterId("a")].is_excluded


# In a line of routers


def line_with_a_liar(routers: int, liar: int) -> tuple[MulticastMesh, list[SimSubscriber], SimSubscriber]:
    """A line with a subscriber at each router; number *liar*, from 1, never excludes the one of its own that stalls."""
    names = [f"R{number}" for number in range(1, routers + 1)]
    mesh = MulticastMesh(list(itertools.pairwise(names)))
    mesh.routers[RouterId(f"R{liar}")].machine.local_subscribers.patience = ExclusionTiming(grace_s=3600.0)
    before = [
        mesh.add_subscriber(name, credit=50, top_up=GrantHabit.EACH, service_s=SERVICE_S) for name in names[: liar - 1]
    ]
    stalled = mesh.add_subscriber(f"R{liar}", credit=5)
    mesh.run_for(0.1)
    stalled.is_paused = True
    mesh.add_publisher("R1").offer(10**9)
    return mesh, before, stalled


@pytest.mark.parametrize(("routers", "liar"), [(2, 2), (3, 3), (5, 5), (6, 4), (6, 6)])
def test_the_router_next_to_the_fault_excludes_its_neighbor_and_no_other_does(routers: int, liar: int) -> None:
    mesh, before, stalled = line_with_a_liar(routers, liar)
    mesh.run_for(LIMIT_S + 0.25 * (routers - liar) - 0.1)
    assert mesh.exclusions == []
    assert all(subscriber.received == [1, 2, 3, 4, 5] for subscriber in before)
    mesh.run_for(20.0)
    assert mesh.exclusions == [(f"R{liar - 1}", f"R{liar}")]
    for subscriber in before:
        assert subscriber.received == list(range(1, len(subscriber.received) + 1)), "nobody else misses any"
        assert len(subscriber.received) > 10.0 / SERVICE_S
    assert stalled.received == [1, 2, 3, 4, 5]
    mesh.check_invariants()


def test_routers_upstream_exclude_nobody_however_often_the_last_one_relapses() -> None:
    mesh, before, stalled = line_with_a_liar(4, 4)
    for _ in range(20):
        mesh.run_for(LIMIT_S + 2.0)
        if stalled.link.granted == 0:
            stalled.resume()
            stalled.is_paused = True
    assert set(mesh.exclusions) == {("R3", "R4")}
    for subscriber in before:
        assert subscriber.received == list(range(1, len(subscriber.received) + 1))


def test_a_neighbor_that_is_slow_and_honest_is_waited_for_and_misses_nothing() -> None:
    mesh = MulticastMesh([("R1", "R2"), ("R2", "R3")])
    subscribers = [mesh.add_subscriber(name, credit=50, service_s=SERVICE_S) for name in ("R1", "R2")]
    slow = mesh.add_subscriber("R3", credit=2)
    mesh.run_for(0.1)
    mesh.add_publisher("R1").offer(10**9)
    slow.is_paused = True
    for _ in range(40):
        mesh.run_for(0.9 * GRACE_S)
        slow.resume()
        slow.is_paused = True
    assert mesh.exclusions == []
    assert not mesh.missed.get(slow.link)
    assert len(slow.received) > 70
    assert all(subscriber.received == list(range(1, len(subscriber.received) + 1)) for subscriber in subscribers)
    assert slow.received == list(range(1, len(slow.received) + 1))


def test_who_was_excluded_gets_each_later_message_once_and_in_order() -> None:
    mesh, before, stalled = line_with_a_liar(3, 3)
    mesh.run_for(LIMIT_S + 1.0)
    stalled.resume()
    mesh.run_for(0.1)
    again = len(stalled.received)
    mesh.run_for(2.0)
    assert stalled.received[:5] == [1, 2, 3, 4, 5]
    later = stalled.received[5:]
    assert len(later) > again > 5
    assert later == list(range(later[0], later[0] + len(later)))
    assert later[-1] >= before[0].received[-1] - 50
    mesh.check_invariants()
