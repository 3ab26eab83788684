"""The multicast credit machine alone: trees and branches, and what the local subscribers can take."""

from __future__ import annotations

import itertools

import pytest

from router.core.forwarding.credit_actions import KEPT, REFUSED
from router.core.forwarding.multicast_tree import BACKLOGGED_WEIGHT, MOST_CREDIT
from router.core.ids_and_conditions import RouterId
from tests.helpers.multicast_bench import MulticastBench, Order

GRACE_S = LINGER_S = 1.0
SHORTLY_S = 0.001


def local(credit: int, *publishers: str) -> MulticastBench:
    """A router with one subscriber, that granted *credit*, and publishers."""
    bench = MulticastBench()
    bench.attach(*publishers)
    bench.subscribe("s", credit)
    return bench


def transit(*children: str, weight: int = 1) -> MulticastBench:
    """A router in the tree of `in`, between it and *children*, with a circuit `up` from it."""
    bench = MulticastBench()
    bench.upstream("in", "up", *children, weight=weight)
    return bench


def sends(orders: list[Order]) -> list[Order]:
    return [order[1:] for order in orders if order[0] == "send"]


def names(orders: list[Order]) -> list[object]:
    return [order[0] for order in orders]


# At one router


def test_a_publisher_has_credit_when_a_subscriber_has_granted_some() -> None:
    bench = MulticastBench()
    assert bench.attach("p") == []
    assert bench.subscribe("s") == []
    assert bench.credit("s", 5) == [("grant", "p", 1)]


def test_a_subscriber_that_has_not_granted_yet_holds_up_nobody() -> None:
    bench = local(5, "p")
    bench.subscribe("new")
    assert sends(bench.publish("p", "m")) == [("m", ("s",), ())]


@pytest.mark.parametrize("publishers", [1, 3])
def test_publishers_hold_no_more_than_the_least_subscriber_granted_and_one_each(publishers: int) -> None:
    keys = [f"p{number}" for number in range(publishers)]
    bench = local(100, *keys)
    bench.subscribe("least", 7)
    rest = 7
    for turn in range(100):
        key = keys[turn % publishers]
        if bench.held(key):
            rest -= len(sends(bench.publish(key)))
        assert sum(p.standing() for p in bench.machine.publishers.attached.values()) <= rest + publishers
    assert rest == 0


def test_every_subscriber_gets_a_copy() -> None:
    bench = local(5, "p")
    bench.subscribe("t", 5)
    assert sends(bench.publish("p", "m")) == [("m", ("s", "t"), ())]


def test_without_any_subscriber_a_message_is_not_kept() -> None:
    bench = MulticastBench()
    bench.attach("p")
    assert bench.machine.published("p", "m", bench.now) == REFUSED
    bench.turn()
    bench.subscribe("s")
    assert bench.machine.published("p", "n", bench.now) == KEPT, "it may grant yet"


def test_the_last_subscriber_gone_takes_back_all_and_returns_what_waits() -> None:
    bench = local(1, "p", "q")
    bench.publish("p", "sent")
    bench.publish("q", "waits")
    assert bench.unsubscribe("s") == ["waits"]
    bench.wait(0.1)
    assert bench.held("p") == bench.held("q") == 0


def test_a_message_that_is_not_whole_waits_until_it_is_ready() -> None:
    bench = local(5, "p")
    bench.machine.published("p", "m", bench.now, is_ready=False)
    assert sends(bench.turn()) == []
    assert bench.machine.ready("m")
    assert sends(bench.turn()) == [("m", ("s",), ())]


def test_a_dropped_message_waits_no_more() -> None:
    bench = local(1, "p")
    bench.publish("p", 1)
    bench.publish("p", 2)
    assert bench.machine.drop(2)
    assert not bench.machine.drop(2)
    assert sends(bench.credit("s", 1)) == []


def test_a_stalled_subscriber_holds_up_publishers_for_the_grace_then_misses_copies() -> None:
    bench = local(100, "p")
    bench.subscribe("stalled", 1)
    bench.publish("p", 1)
    assert sends(bench.publish("p", 2)) == []
    assert sends(bench.wait(GRACE_S - SHORTLY_S)) == []
    assert sends(bench.wait(SHORTLY_S)) == [(2, ("s",), ("stalled",))]
    assert sends(bench.publish("p", 3)) == [(3, ("s",), ("stalled",))]


def test_lowering_to_zero_closes_the_address_after_the_linger_and_credit_opens_it() -> None:
    bench = local(10, "p")
    bench.credit("s", 0, is_withdrawn=True)
    assert bench.wait(LINGER_S - SHORTLY_S) == []
    assert bench.wait(SHORTLY_S) == [("grant", "p", -1)]
    bench.wait(1.0)
    assert bench.credit("s", 1) == [("grant", "p", 1)]


def test_credit_that_is_used_up_closes_nothing() -> None:
    bench = local(1, "p", "q")
    bench.publish("p")
    assert bench.wait(30.0) == []
    assert bench.held("q") == 1


# Branches


def test_all_children_are_told_the_weight_at_once_and_those_that_come_later_too() -> None:
    bench = MulticastBench()
    bench.tree("me", "a", "b")
    assert bench.attach("p") == [("grant", "p", 1), ("weigh", "me", "a", 1), ("weigh", "me", "b", 1)]
    assert bench.publish("p") == [("weigh", "me", "a", BACKLOGGED_WEIGHT), ("weigh", "me", "b", BACKLOGGED_WEIGHT)]
    assert ("weigh", "me", "c", BACKLOGGED_WEIGHT) in bench.tree("me", "a", "b", "c")


def test_the_smallest_outlet_decides_and_each_gets_one_copy() -> None:
    bench = local(50, "p")
    bench.tree("me", "a", "b")
    bench.branch("me", "a", 40)
    bench.branch("me", "b", 2)
    assert sends(bench.publish("p", 1)) == [(1, ("a", "b", "s"), ())]
    assert sends(bench.publish("p", 2)) == [(2, ("a", "b", "s"), ())]
    assert sends(bench.publish("p", 3)) == []
    assert sends(bench.branch("me", "b", 1)) == [(3, ("a", "b", "s"), ())]


def test_a_child_that_has_granted_nothing_yet_holds_up_the_tree() -> None:
    bench = local(5, "p")
    bench.tree("me", "a")
    assert sends(bench.publish("p", 1)) == []
    assert sends(bench.wait(3.0)) == []
    assert sends(bench.branch("me", "a", 3)) == [(1, ("a", "s"), ())]


def test_a_child_that_has_closed_does_not_count_until_it_grants_again() -> None:
    bench = local(9, "p")
    bench.tree("me", "a")
    bench.publish("p", 1)
    assert sends(bench.closed("me", "a")) == [(1, ("s",), ())]
    assert sends(bench.publish("p", 2)) == [(2, ("s",), ())]
    bench.branch("me", "a", 1)
    assert sends(bench.publish("p", 3)) == [(3, ("a", "s"), ())]


def test_it_counts_again_though_it_asks_at_once_for_what_it_granted() -> None:
    # A subscriber below that drains: what is granted says that somebody is live, what is asked back does not unsay it.
    bench = local(9, "p")
    bench.tree("me", "a")
    bench.closed("me", "a")
    orders = bench.branch("me", "a", 1, is_draining=True)
    assert ("drained_outlet", "me", "a") in orders + bench.wait(0.1)
    assert sends(bench.publish("p", 1)) == []


def test_a_child_that_is_not_in_the_tree_any_more_holds_up_nobody() -> None:
    bench = local(9, "p")
    bench.tree("me", "a")
    bench.publish("p", 1)
    assert sends(bench.tree("me")) == [(1, ("s",), ())]


def test_a_lost_circuit_is_made_anew_and_counts_meanwhile() -> None:
    bench = local(9, "p")
    bench.tree("me", "a")
    bench.branch("me", "a", 5)
    bench.publish("p", 1)
    bench.machine.outlet_lost(RouterId("me"), RouterId("a"))
    orders = bench.turn()
    assert [order[:3] for order in orders if order[0] == "weigh"] == [("weigh", "me", "a")]
    assert sends(bench.publish("p", 2)) == []


def test_a_child_without_circuits_has_credit_without_limit_and_publishers_have_not() -> None:
    bench = MulticastBench()
    bench.attach("p")
    bench.tree("me", "foreign")
    bench.branch("me", "foreign", 2**31)
    for message in range(5000):
        bench.publish("p", message)
        bench.branch("me", "foreign", 2**31)
        assert 1 <= bench.held("p") <= MOST_CREDIT + 1


def test_when_all_children_have_closed_publishers_lose_credit_and_what_waits_stays() -> None:
    bench = MulticastBench()
    bench.attach("p", "q")
    bench.tree("me", "a")
    bench.branch("me", "a", 1)
    bench.publish("p", 1)
    bench.publish("p", 2)
    assert bench.closed("me", "a") == [("grant", "q", -1)]
    bench.wait(1.0)
    assert sends(bench.branch("me", "a", 1)) == [(2, ("a",), ())]


def test_the_last_child_gone_returns_what_waits() -> None:
    bench = MulticastBench()
    bench.attach("p")
    bench.tree("me", "a")
    bench.publish("p", 1)
    assert bench.machine.set_children(RouterId("me"), []) == [1]


def test_a_lone_subscriber_is_excluded_only_when_there_are_subscribers_elsewhere() -> None:
    bench = local(1, "p")
    bench.publish("p", 1)
    bench.publish("p", 2)
    assert sends(bench.wait(10.0)) == []
    bench.tree("me", "a")
    assert sends(bench.branch("me", "a", 5)) == [(2, ("a",), ("s",))]


# Circuits


def test_a_circuit_from_upstream_gets_the_smallest_credit_of_the_outlets() -> None:
    bench = transit("a", "b")
    bench.branch("in", "a", 9)
    assert bench.branch("in", "b", 2) == [("grant_circuit", "up", 2)]
    assert sends(bench.arrive("in", "up", "m")) == [("m", ("a", "b"), ())]


def test_no_credit_beyond_what_the_outlets_hold() -> None:
    bench = transit("a")
    bench.branch("in", "a", 1)
    bench.arrive("in", "up", "m")
    assert bench.wait(10.0) == []


def test_its_weight_is_passed_on_to_every_outlet() -> None:
    bench = transit("a", "b", weight=7)
    assert bench.of("in").weight == 7
    bench.subscribe("s", 5)
    assert bench.machine.share.parts[RouterId("in")].weight == 7


def test_a_circuit_from_elsewhere_gets_nothing_and_what_comes_on_it_is_dropped() -> None:
    bench = transit("a")
    bench.branch("in", "a", 9)
    assert bench.circuit("in", "other", "elsewhere", 5) == []
    assert bench.machine.arrived(RouterId("in"), "other", "m", bench.now) == REFUSED
    assert sends(bench.turn()) == []


def test_when_the_tree_changes_the_credit_moves_to_the_circuit_from_upstream() -> None:
    bench = transit("a")
    bench.branch("in", "a", 4)
    bench.circuit("in", "new", "other", 1)
    orders = bench.tree("in", "a", predecessor="other")
    assert ("drain_circuit", "up") in orders
    assert bench.machine.arrived(RouterId("in"), "up", "m", bench.now) == REFUSED, "a duplicate"
    assert sends(bench.turn()) == []
    assert ("grant_circuit", "new", 3) in bench.returned("in", "up", 3) + bench.wait(0.1) or (
        bench.of("in").pool.circuits["new"].out == 4
    )


def test_a_circuit_may_come_before_the_tree_is_known_and_is_told_nothing_then() -> None:
    bench = MulticastBench()
    bench.subscribe("s", 5)
    assert bench.circuit("in", "up", "in", 1) == []
    assert bench.tree("in", predecessor="in") == [("grant_circuit", "up", 2)]


def test_a_circuit_is_told_at_once_that_nobody_below_is_live() -> None:
    bench = MulticastBench()
    bench.subscribe("s")
    assert bench.upstream("in", "up") == [("close_circuit", "up")]
    bench.machine.add_circuit(RouterId("in"), "second", RouterId("in"))
    assert bench.turn() == [("close_circuit", "second")]


def test_a_closed_circuit_gets_credit_when_somebody_is_live_though_it_sends_nothing() -> None:
    bench = MulticastBench()
    bench.subscribe("s")
    bench.upstream("in", "up", weight=0)
    assert "grant_circuit" in names(bench.credit("s", 5))
    assert bench.of("in").weight == 0, "once"


def test_a_router_whose_subscribers_are_all_excluded_closes_and_opens_again() -> None:
    bench = transit()
    bench.subscribe("s", 1)
    bench.tree("me", "elsewhere")
    bench.arrive("in", "up", "m")
    assert ("close_circuit", "up") in bench.wait(GRACE_S)
    bench.wait(1.0)
    assert ("grant_circuit", "up", 1) in bench.credit("s", 1)


def test_with_children_it_does_not_close_and_its_own_miss_copies() -> None:
    bench = transit("a")
    bench.subscribe("s", 1)
    bench.tree("me", "elsewhere")
    bench.branch("in", "a", 5)
    bench.arrive("in", "up", 1)
    assert "close_circuit" not in names(bench.wait(GRACE_S))
    assert sends(bench.arrive("in", "up", 2)) == [(2, ("a",), ("s",))]


def test_copies_that_come_on_withdrawn_credit_wait_for_more() -> None:
    bench = transit()
    bench.subscribe("s", 5)
    bench.credit("s", 0, is_withdrawn=True)
    assert sends(bench.arrive("in", "up", "m")) == []
    bench.wait(10.0)
    assert sends(bench.credit("s", 5)) == [("m", ("s",), ())]


def test_they_are_missed_when_their_subscribers_are_excluded() -> None:
    bench = transit()
    bench.subscribe("s", 5)
    bench.tree("me", "elsewhere")
    bench.credit("s", 0, is_withdrawn=True)
    bench.arrive("in", "up", "m")
    assert sends(bench.wait(GRACE_S)) == [("m", (), ("s",))]


def test_withdrawn_credit_is_taken_back_from_upstream_after_the_debt_time() -> None:
    bench = transit()
    bench.subscribe("s", 5)
    bench.credit("s", 0, is_withdrawn=True)
    assert bench.wait(0.0299) == []
    assert bench.wait(0.0002) == [("drain_circuit", "up")]


def test_a_child_that_has_granted_since_it_closed_is_live_when_its_word_comes() -> None:
    bench = transit("a")
    bench.branch("in", "a", 5)
    bench.closed("in", "a")
    assert sends(bench.arrive("in", "up", "m")) == [("m", ("a",), ())]
    bench.branch("in", "a", 0)
    bench.closed("in", "a")
    assert not [branch for branch in bench.of("in").children.values() if branch.is_counting]


def test_a_tree_is_forgotten_with_its_last_circuit() -> None:
    bench = transit("a")
    bench.machine.remove_circuit(RouterId("in"), "up")
    assert bench.turn() == [("weigh", "in", "a", 0)]
    bench.wait(0.0)
    assert list(bench.machine.trees) == ["me"]


def test_but_not_before_its_branches_have_no_credit_and_what_is_asked_for_comes() -> None:
    bench = transit("a")
    bench.branch("in", "a", 3)
    bench.machine.remove_circuit(RouterId("in"), "up")
    bench.turn()
    assert "in" in bench.machine.trees
    assert bench.branch("in", "a", 3, is_draining=True) == [("drained_outlet", "in", "a")]
    bench.wait(0.0)
    assert "in" not in bench.machine.trees
    assert bench.branch("in", "a", 1, is_draining=True) == [("drained_outlet", "in", "a")]


# Drains


def test_a_drain_asked_by_one_branch_asks_all_back_and_gives_it_back_all_it_holds() -> None:
    bench = transit("a", "b")
    bench.branch("in", "a", 9)
    bench.branch("in", "b", 4)
    out = bench.of("in").pool.circuits["up"].out
    assert bench.branch("in", "a", 9, is_draining=True) == [("drain_circuit", "up")]
    assert ("drained_outlet", "in", "a") in bench.returned("in", "up", out)
    assert bench.of("in").children[RouterId("a")].credit == 0
    assert bench.of("in").children[RouterId("b")].credit == 4


def test_it_first_sends_what_waits() -> None:
    bench = MulticastBench()
    bench.attach("p")
    bench.tree("me", "a")
    bench.publish("p", 1)
    orders = bench.branch("me", "a", 3, is_draining=True)
    assert names(orders)[0] == "send"
    assert ("drained_outlet", "me", "a") in orders + bench.wait(0.1)


def test_it_is_answered_at_once_where_another_outlet_lets_nothing_through() -> None:
    bench = transit("a", "b")
    assert ("drained_outlet", "in", "a") in bench.branch("in", "a", 9, is_draining=True)


def test_but_not_before_what_was_lent_on_it_has_come_back() -> None:
    bench = transit("a", "b")
    bench.branch("in", "a", 9)
    bench.branch("in", "b", 4)
    bench.branch("in", "b", 0)
    out = bench.of("in").pool.circuits["up"].out
    assert out > 0
    assert "drained_outlet" not in names(bench.branch("in", "a", 9, is_draining=True))
    bench.wait(0.04)
    assert ("drained_outlet", "in", "a") in bench.returned("in", "up", out)


def test_a_subscribers_drain_brings_what_waits_upstream_and_is_then_answered() -> None:
    bench = transit()
    bench.subscribe("s", 1)
    bench.arrive("in", "up", 1)
    orders = bench.credit("s", 1, is_draining=True)
    assert ("drain_circuit", "up") in orders
    assert sends(bench.arrive("in", "up", 2)) == [(2, ("s",), ())]
    assert ("drain_circuit", "up") in bench.credit("s", 1, is_draining=True)
    assert bench.returned("in", "up", 1) == [("drained_subscriber", "s")]


def test_a_subscribers_drain_is_answered_after_a_bound() -> None:
    bench = transit()
    bench.subscribe("s", 4)
    bench.credit("s", 4, is_draining=True)
    assert "drained_subscriber" not in names(bench.wait(0.99))
    assert ("drained_subscriber", "s") in bench.wait(0.02)


def test_a_subscriber_held_up_by_others_or_not_counted_gets_its_credit_back_at_once() -> None:
    bench = local(5)
    bench.subscribe("zero", 1)
    bench.attach("p")
    bench.publish("p")
    assert bench.credit("s", 4, is_draining=True) == [("drained_subscriber", "s")]
    bench.credit("s", 4)
    bench.wait(GRACE_S)
    assert bench.credit("zero", 1, is_draining=True) == [("drained_subscriber", "zero")]


def test_messages_that_wait_since_a_child_has_come_keep_no_credit_from_other_trees() -> None:
    # Or two routers that are joined wait for each other: each one's own tree holds what the other's needs.
    bench = local(5, "p")
    for message in range(2):
        bench.publish("p", message)
    bench.tree("me", "a")
    for message in range(2, 5):
        bench.publish("p", message)
    assert len(bench.machine.publishers.waiting) == 3
    bench.upstream("in", "up", weight=BACKLOGGED_WEIGHT)
    assert ("grant_circuit", "up", 1) in bench.wait(0.2) or bench.of("in").pool.circuits["up"].out


# Sharing among trees


def shared(*weights: int) -> MulticastBench:
    """A router with a circuit of the tree of each of `a`, `b`, ... and a subscriber that has used up its credit."""
    bench = local(1)
    bench.credit("s", 0)
    for name, weight in reversed([*zip("abcde", weights, strict=False)]):
        bench.upstream(name, name, weight=weight)
    return bench


def parts(bench: MulticastBench) -> list[int]:
    return [part.out for name, part in bench.machine.share.parts.items() if name != "me"]


@pytest.mark.parametrize(
    ("weights", "expected"), [((1000, 1000), [50, 50]), ((1000, 3000), [25, 75]), ((9000, 1000), [90, 10])]
)
def test_parts_follow_the_busy_publishers_behind_each_tree(weights: tuple[int, ...], expected: list[int]) -> None:
    bench = shared(*weights)
    bench.credit("s", 100)
    assert parts(bench) == pytest.approx(expected, abs=1)


def test_a_tree_that_is_not_hungry_gets_little() -> None:
    bench = shared(1, BACKLOGGED_WEIGHT)
    bench.credit("s", 100)
    assert parts(bench)[0] <= 2
    assert parts(bench)[1] >= 98


def test_one_that_is_not_hungry_and_streams_gets_more_as_it_uses_more() -> None:
    bench = shared(1)
    bench.credit("s", 100)
    assert parts(bench) == [2]
    for message in range(20):
        bench.arrive("a", "a", message)
        bench.credit("s", 100)
    assert parts(bench)[0] > 10


def test_a_closed_tree_is_opened_soon_though_others_are_hungry() -> None:
    bench = shared(BACKLOGGED_WEIGHT, 3)
    bench.tree("me", "elsewhere")
    bench.credit("s", 8)
    for message in range(2):
        bench.arrive("b", "b", message)
    bench.credit("s", 0)
    assert ("close_circuit", "b") in bench.wait(GRACE_S + 0.1) + bench.returned("a", "a", 8) + bench.wait(1.0)
    orders: list[Order] = []
    for message in range(2, 6):
        orders += bench.credit("s", 4 if message == 2 else 1)
        for _ in range(parts(bench)[0]):
            orders += bench.arrive("a", "a", (message, _))
    assert "b" in [order[1] for order in orders if order[0] == "grant_circuit"]


def test_credit_is_dealt_when_it_is_worth_a_frame() -> None:
    bench = shared(1000)
    bench.credit("s", 100)
    for message in range(24):
        bench.arrive("a", "a", message)
        bench.credit("s", 100)
    assert parts(bench) == [76]
    bench.arrive("a", "a", 24)
    bench.credit("s", 100)
    assert parts(bench) == [100]


def test_who_wants_no_more_has_no_claim_later_to_what_others_had() -> None:
    bench = shared(1000, 1000)
    bench.credit("s", 4)
    assert parts(bench) == [2, 2]
    for message in range(100):
        bench.arrive("b", "b", message)
        bench.credit("s", 4)
    bench.credit("s", 2)
    for message in range(100, 102):
        bench.arrive("a", "a", message)
    order = []
    for message in range(102, 120):
        bench.credit("s", 1)
        got = parts(bench)
        name = "ab"[got.index(max(got))]
        bench.arrive(name, name, message)
        order.append(name)
    assert abs(order.count("a") - order.count("b")) <= 6


def test_a_little_is_not_asked_back_where_there_is_enough() -> None:
    bench = shared(1000, 1000, 1000)
    bench.credit("s", 120)
    for message in range(78):
        name = "ab"[message >= 38]
        bench.arrive(name, name, message)
    assert parts(bench) == [2, 0, 40]
    assert bench.wait(0.03) == [("drain_circuit", "c")]


def test_no_more_is_sent_than_subscribers_have_left_though_trees_hold_more() -> None:
    bench = shared(1000)
    bench.attach("p")
    bench.publish("p", "first")
    bench.credit("s", 8)
    bench.credit("s", 1, is_withdrawn=True)
    assert bench.machine.arrived(RouterId("a"), "a", 1, bench.now) == KEPT
    assert bench.machine.published("p", 2, bench.now) == KEPT
    assert bench.machine.arrived(RouterId("a"), "a", 3, bench.now) == KEPT
    orders = bench.turn()
    assert sends(orders) == [(1, ("s",), ())]
    assert [order[0] for order in sends(bench.credit("s", 2))] in ([2, 3], [3, 2])


def test_equals_are_dealt_credit_by_name_however_they_came() -> None:
    bench = shared(1000, 1000, 1000)
    bench.credit("s", 2)
    assert parts(bench) == [1, 1, 0]


def test_the_tree_with_the_fewest_messages_passed_is_next() -> None:
    bench = shared(1000, 1000, 1000)
    order = []
    for message in range(9):
        bench.credit("s", 1)
        name = "abc"[parts(bench).index(1)]
        bench.arrive(name, name, message)
        order.append(name)
    assert order == [*"abcabcabc"]


def test_who_was_away_has_no_claim_to_what_others_had() -> None:
    bench = shared(1000, 0)
    for message in range(50):
        bench.credit("s", 1)
        bench.arrive("a", "a", message)
    bench.machine.set_weight(RouterId("b"), "b", 1000)
    bench.turn()
    order = []
    for message in range(50, 60):
        bench.credit("s", 1)
        name = "ab"[parts(bench).index(1)]
        bench.arrive(name, name, message)
        order.append(name)
    assert order.count("a") == order.count("b") == 5


def test_credit_that_lies_idle_is_asked_back_when_another_tree_is_hungry() -> None:
    bench = shared(1000, 0)
    bench.credit("s", 10)
    bench.machine.set_weight(RouterId("b"), "b", 1000)
    assert bench.turn() == []
    assert bench.wait(0.02) == [("drain_circuit", "a")]
    bench.returned("a", "a", 10)
    assert parts(bench) == [5, 5]


def test_one_that_holds_what_is_for_the_first_in_the_order_is_asked_sooner() -> None:
    # b was alone and got all; a is first. The other routers will give a theirs, so b's would lie idle.
    bench = shared(0, 1000)
    bench.credit("s", 1)
    bench.machine.set_weight(RouterId("a"), "a", 1000)
    bench.turn()
    assert bench.wait(0.005) == [("drain_circuit", "b")]
    assert bench.returned("b", "b", 1) == [("grant_circuit", "a", 1)]


def test_the_first_in_the_order_keeps_its_credit_for_longer() -> None:
    bench = shared(1000, 1000)
    bench.credit("s", 1)
    assert parts(bench) == [1, 0]
    assert bench.wait(0.2) == []


def test_when_nothing_passes_for_long_all_forget_what_has_passed() -> None:
    # b's message passed here while a was away elsewhere: only the order by name is the same everywhere.
    bench = shared(1000, 1000)
    for name in "abab":
        bench.credit("s", 1)
        bench.arrive(name, name, name)
    bench.credit("s", 1)
    bench.arrive("a", "a", "m")
    bench.credit("s", 1)
    assert parts(bench) == [0, 1], "b is next"
    assert bench.wait(0.0799) == []
    assert bench.wait(0.0101) == [("drain_circuit", "b")]
    bench.returned("b", "b", 1)
    assert parts(bench) == [1, 0]


def test_a_tree_that_is_held_up_elsewhere_lets_the_others_by_more_of_them_each_time() -> None:
    bench = shared(1000, 1000)
    passed = []
    for message in range(40):
        bench.credit("s", 1)
        count = 0
        while not parts(bench)[1]:
            count += 1
            assert count < 100
            if ("drain_circuit", "a") in bench.wait(0.1):
                bench.returned("a", "a", 1)
        passed.append(count)
        bench.arrive("b", "b", message)
    waits = [number for number, count in enumerate(passed) if count]
    between = [after - before for before, after in itertools.pairwise(waits)]
    assert between[:3] == sorted(between[:3])
    assert sum(count > 0 for count in passed) <= 6, "seldom enough"


def test_withdrawn_credit_is_taken_back_from_trees_after_the_debt_time() -> None:
    bench = shared(1000)
    bench.credit("s", 10)
    bench.credit("s", 0, is_withdrawn=True)
    orders = bench.wait(0.0301)
    assert orders == [("drain_circuit", "a")]
    bench.returned("a", "a", 10)
    assert parts(bench) == [0]


def test_most_debts_pass_and_nothing_is_asked_back_before() -> None:
    bench = shared(1000)
    bench.credit("s", 10)
    bench.credit("s", 6, is_withdrawn=True)
    assert not bench.machine.share.parts[RouterId("a")].is_draining
    assert bench.wait(0.0299) == []
    bench.credit("s", 10)
    assert bench.wait(1.0) == []


def test_a_tree_that_ends_leaves_its_part_to_the_others() -> None:
    bench = shared(1000, 1000)
    bench.credit("s", 2)
    bench.machine.remove_circuit(RouterId("a"), "a")
    bench.turn()
    bench.wait(0.0)
    assert bench.machine.share.parts[RouterId("b")].out == 2
