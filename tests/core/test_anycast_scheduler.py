"""The credit machine alone: each line of the rule, and each counter-example that shaped it."""

from __future__ import annotations

import gc
import math
import sys

import pytest

from router.core.forwarding.anycast_scheduler import AnycastScheduler, EgressPath
from router.core.forwarding.credit_actions import REFUSED, CreditAction, Key
from router.core.forwarding.credit_scheduler import CreditTiming
from router.core.ids_and_conditions import RouterId
from tests.helpers.credit_bench import HERE, Bench, Order, as_order, local

PAUSE_S = 0.001


def names(orders: list[Order]) -> list[object]:
    return [order[0] for order in orders]


# At one router


def test_without_a_subscriber_a_publisher_gets_nothing() -> None:
    bench = Bench()
    assert bench.attach("p") == []
    assert bench.path() == []
    assert bench.credit(1) == [("grant", "p", 1)]


@pytest.mark.parametrize("credit", [1, 5, 100])
def test_an_idle_publisher_holds_one_credit_whatever_was_granted(credit: int) -> None:
    bench = local(credit, "p")
    assert bench.held("p") == 1


@pytest.mark.parametrize(("credit", "publishers"), [(1, 1), (1, 3), (5, 2), (5, 10), (100, 3)])
def test_publishers_hold_no_more_than_was_granted_and_one_each(credit: int, publishers: int) -> None:
    keys = list(range(publishers))
    bench = local(credit, *keys)
    rest = credit
    for turn in range(2 * (credit + publishers) * publishers):
        key = keys[turn % publishers]
        if bench.held(key):
            rest -= names(bench.publish(key)).count("send")
            assert sum(p.standing() for p in bench.machine.publishers.attached.values()) <= rest + publishers
    assert rest == 0
    waiting = len(bench.machine.publishers.waiting)
    assert waiting == publishers, "each has one message waiting and no credit"


def publish_alone(bench: Bench, key: Key, count: int, nearest: RouterId = HERE) -> tuple[list[RouterId], int]:
    """*key* sends messages, each granted again by the nearest subscriber, with a turn only where one is asked for.

    Returns: where they go, and the turns.
    """
    machine, egresses, turns = bench.machine, [], 0
    credit = bench.pool(nearest).capacity
    for number in range(count):
        egresses.append(machine.egresses[machine.published(key, f"alone {number}", bench.now)])
        if machine.set_capacity(nearest, credit, bench.now) or machine.is_due:
            bench.turn()
            turns += 1
    return egresses, turns


def test_a_publisher_that_holds_enough_asks_for_no_turn() -> None:
    bench = local(300, "p")
    while bench.held("p") <= 290:
        bench.use("p", 1)
    held = bench.held("p")
    _, turns = publish_alone(bench, "p", held // 4)
    assert turns == 0
    _, turns = publish_alone(bench, "p", held // 2)
    assert turns == 1
    assert bench.held("p") > held // 2, "it was topped up when it had half"


def test_an_egress_with_little_credit_gets_its_half_without_turns() -> None:
    little, much = RouterId("little"), RouterId("much")
    bench = Bench()
    for egress, credit in ((little, 20), (much, 400)):
        bench.path(egress, cost=1, next_hop="next")
        bench.credit(credit, egress)
    bench.attach("p")
    for _ in range(200):
        bench.publish("p")
        bench.credit(20, little)
    egresses, _ = publish_alone(bench, "p", 100, little)
    assert egresses.count(little) >= 45


def test_messages_that_leave_at_once_put_the_next_turn_off() -> None:
    bench = local(100, "p")
    bench.publish("p")
    due = bench.machine.next_deadline()
    bench.now += 0.05
    assert bench.machine.egresses[bench.machine.published("p", "at once", bench.now)] == HERE
    assert bench.machine.next_deadline() == pytest.approx(due + 0.05)


def test_a_busy_publisher_gets_all_that_idle_ones_do_not_use() -> None:
    bench = local(100, "busy", "idle", "too")
    bench.use("busy", 200)
    assert 50 < bench.held("busy") <= 101
    assert bench.held("idle") == bench.held("too") == 1


def test_who_uses_little_holds_little() -> None:
    # What it held would be missing elsewhere, and come back only after a quarantine.
    bench = local(100, "a")
    held = []
    for _ in range(8):
        bench.use("a", 1)
        held.append(bench.held("a"))
    assert held[0] == 2
    assert held[-1] <= 16
    assert bench.wait(0.11) == [("grant", "a", 1 - held[-1])], "it is idle: nobody shall have to wait for it"
    bench.use("a", 1)
    assert bench.held("a") == 2


def test_a_circuit_that_uses_little_holds_little() -> None:
    bench = Bench()
    bench.path()
    bench.circuit("c", "far", 1)
    assert bench.credit(100) == [("grant_circuit", "c", 4)]
    for message in range(100):
        bench.arrive("c", message)
        bench.credit(100)
    assert 50 < bench.pool().circuits["c"].out <= 100
    bench.machine.set_weight(HERE, "c", 0)
    bench.turn()
    assert bench.wait(0.11) == [("drain_circuit", "c")]
    bench.returned("c", bench.pool().circuits["c"].out)
    bench.machine.set_weight(HERE, "c", 1)
    assert bench.turn() == [("grant_circuit", "c", 4)]


def test_two_busy_publishers_get_equal_shares() -> None:
    bench = local(100, "a", "b")
    for _ in range(200):
        bench.use("a", 1)
        bench.use("b", 1)
    assert 25 < bench.held("a") <= 51
    assert 25 < bench.held("b") <= 51


def test_one_credit_is_not_given_again_out_of_what_another_holds() -> None:
    # Finding 2: p0 holds all; p1 uses its one, and another would make more than the sum.
    bench = local(2, "p0")
    bench.publish("p0")
    assert bench.held("p0") == 2
    bench.attach("p1")
    assert bench.held("p1") == 1
    assert names(bench.publish("p1")) == ["send"]
    assert bench.held("p1") == 0


def test_an_idle_publisher_is_lowered_for_a_backlogged_one_lent_after_the_quarantine() -> None:
    # Findings 4 and 13.
    bench = local(100, "p0")
    bench.use("p0", 200)
    bench.attach("p1")
    while bench.held("p1"):
        bench.publish("p1")
    held = bench.held("p0")
    assert bench.held("p1") == 0
    assert bench.wait(0.0201) == [("grant", "p0", 1 - held)]
    assert bench.wait(0.0498) == []
    orders = bench.wait(0.0002)
    assert {order[1] for order in orders} == {"p1"}
    assert bench.held("p1") > 0


def test_transfers_that_cross_a_lowering_are_taken_and_met_by_one_credit_each() -> None:
    # Finding 5: a link-credit below zero is never written.
    bench = local(10, "p0")
    bench.use("p0", 20)
    held = bench.held("p0")
    bench.attach("p1")
    while bench.held("p1"):
        bench.publish("p1")
    bench.wait(0.021)
    assert bench.held("p0") == 1
    link_credit = 1
    for _ in range(held):
        orders = bench.publish("p0")
        link_credit += sum(int(str(order[2])) for order in orders if order[:2] == ("grant", "p0")) - 1
        assert link_credit == bench.held("p0") >= 0
        assert sum(p.standing() for p in bench.machine.publishers.attached.values()) <= bench.pool().capacity + 2


def lowered_bench(credit: int) -> tuple[Bench, int]:
    """A bench where a publisher, p0, has just been lowered to one for another, and what it held before."""
    bench = local(credit, "p0")
    bench.use("p0", 3 * credit)
    held = bench.held("p0")
    bench.attach("p1")
    while bench.held("p1"):
        bench.publish("p1")
    assert ("grant", "p0", 1 - held) in bench.wait(0.0201)
    return bench, held


def test_who_goes_on_is_given_again_what_was_taken_back_as_far_as_it_is_backed() -> None:
    bench, held = lowered_bench(100)
    publisher = bench.machine.publishers.attached["p0"]
    for sent in range(1, 21):
        bench.publish("p0")
        assert publisher.held > 0, "it never waits"
        assert publisher.standing() == held - sent, "it may send no more than before it was lowered"
    assert bench.held("p1") == 0
    bench.wait(0.05)
    assert bench.held("p1") > 0, "what it did not use is for the other"


def test_what_is_taken_back_twice_keeps_the_rest_from_nobody() -> None:
    bench, held = lowered_bench(100)
    bench.publish("p0")
    given = bench.held("p0")
    assert given > 0
    assert bench.wait(0.0201) != [], "it is idle again"
    publisher = bench.machine.publishers.attached["p0"]
    assert publisher.held == 1
    assert publisher.lowered == held - 2
    bench.wait(0.0300)
    assert publisher.lowered == given - 1, "the quarantine of the first is over"
    bench.wait(0.0202)
    assert publisher.lowered == 0


def test_nothing_is_given_again_of_what_a_subscriber_asks_back() -> None:
    bench, held = lowered_bench(100)
    bench.credit(bench.pool().capacity, returning=bench.pool().capacity)
    bench.publish("p0")
    assert bench.held("p0") == 0
    assert bench.machine.publishers.attached["p0"].lowered == held - 1


def test_what_came_beyond_the_credit_is_forgiven_when_there_is_more() -> None:
    bench = local(1, "p")
    for _ in range(200):
        bench.publish("p")
    publisher = bench.machine.publishers.attached["p"]
    assert publisher.excess > 100
    bench.credit(1000)
    bench.wait(1.0)
    for _ in range(3):
        bench.publish("p")
    assert publisher.held > 0
    assert publisher.excess == 0


def test_idle_publishers_cost_no_order_when_credit_is_used_up_and_granted_again() -> None:
    # Finding 8, promises 5 and 6.
    bench = Bench()
    bench.path()
    bench.attach("busy", *range(999))
    bench.credit(1)
    bench.wait(0.2)
    for _ in range(50):
        assert bench.publish("busy")[0][0] == "send"
        bench.wait(PAUSE_S)
        orders = bench.credit(1)
        assert [order for order in orders if order[1] != "busy"] == []
        bench.wait(PAUSE_S)
        assert bench.held("busy") >= 1
    bench.wait(5.0)
    assert all(bench.held(key) == 1 for key in range(999)), "used up is not withdrawn"


def as_orders(actions: list[CreditAction]) -> list[Order]:
    return [as_order(action) for action in actions]


def calls_for_a_hundred_messages(idle: int) -> int:
    bench = Bench()
    bench.path()
    bench.attach("busy", *range(idle))
    bench.credit(5)
    bench.wait(0.2)
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    gc.disable()  # else it calls, by chance, what others have hung on it
    sys.setprofile(count)
    try:
        for message in range(100):
            bench.machine.published("busy", ("message", message), bench.now)
            as_orders(bench.machine.turn(bench.now))
            bench.machine.set_capacity(HERE, 5, bench.now)
            as_orders(bench.machine.turn(bench.now))
            bench.now += PAUSE_S
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls


def test_the_work_for_a_message_does_not_grow_with_idle_publishers() -> None:
    # Compiled calls are not counted; those that are, for each action, are part of the work all the same.
    assert calls_for_a_hundred_messages(2000) == calls_for_a_hundred_messages(20) > 100


def test_the_first_credits_of_a_thousand_go_out_in_slices() -> None:
    bench = Bench()
    bench.path()
    bench.attach(*range(1000))
    assert len(bench.credit(1)) == 64
    assert bench.machine.next_deadline() <= bench.now
    assert len(bench.wait(0.0)) == 1000 - 64


def test_a_hungry_publisher_that_has_sent_comes_before_those_that_never_did() -> None:
    bench = local(10, "p")
    bench.machine.add_publisher("new")
    for key in range(200):
        bench.machine.add_publisher(key)
    orders = bench.publish("p")
    assert orders[1][:2] == ("grant", "p")


# Opening and closing


def test_lowering_to_zero_closes_the_address_after_the_linger() -> None:
    # Promise 6.
    bench = local(10, "p")
    bench.credit(0, is_withdrawn=True)
    assert bench.wait(0.5) == []
    bench.credit(0, is_withdrawn=True)
    assert bench.wait(0.49) == []
    assert bench.wait(0.02) == [("grant", "p", -1)]
    assert bench.wait(1.0) == []
    assert bench.credit(1) == [("grant", "p", 1)]


def test_credit_that_is_used_up_closes_nothing() -> None:
    bench = local(1, "p", "q")
    bench.publish("p")
    assert bench.pool().capacity == 0
    assert bench.wait(10.0) == []
    assert bench.held("q") == 1


def test_a_subscriber_that_leaves_beside_one_that_used_up_its_credit_closes_nothing() -> None:
    bench = local(5, "p")
    bench.credit(0)
    assert bench.wait(10.0) == []
    assert bench.held("p") == 1


def test_the_last_subscriber_gone_takes_back_all_at_once_and_returns_what_waits() -> None:
    bench = local(1, "p", "q")
    bench.publish("p", "sent")
    bench.publish("q", "waits")
    assert bench.lose_path() == ["waits"]
    assert all(order[0] == "grant" for order in bench.turn())
    assert bench.held("p") == bench.held("q") == 0
    assert bench.machine.published("q", "late", bench.now) == REFUSED, "nowhere to go"


def test_a_withdrawal_is_passed_on_and_closes_remote_routers_a_recall_closes_none() -> None:
    near = Bench()
    near.path()
    near.circuit("c", "far", 1)
    near.credit(5)
    near.credit(0, is_withdrawn=True)
    assert ("close_circuit", "c") in near.wait(1.1)
    far = Bench()
    far.path("egress", cost=1, next_hop="near")
    far.attach("p")
    far.credit(5, "egress")
    far.wait(0.2)
    assert ("drained", "egress") in far.credit(5, "egress", returning=5)
    assert ("grant", "p", -1) not in far.wait(5.0), "a recall"
    far.machine.closed(RouterId("egress"))
    assert far.turn()[0] == ("grant", "p", -1)


# Departures


def test_a_departed_publishers_settled_message_stays_and_counts_as_demand() -> None:
    # Finding 10.
    bench = Bench()
    bench.path("egress", cost=1, next_hop="near")
    bench.attach("p")
    bench.credit(1, "egress")
    bench.publish("p", "first")
    bench.publish("p", "second")
    bench.machine.remove_publisher("p")
    bench.wait(1.0)
    assert bench.pool("egress").told_weight == 1
    assert ("send", "second", "egress") in bench.credit(1, "egress")
    assert bench.pool("egress").told_weight == 0


def test_a_dropped_message_waits_no_more() -> None:
    bench = local(1, "p")
    bench.publish("p", 1)
    bench.publish("p", 2)
    assert bench.machine.drop(2)
    assert not bench.machine.drop(2)
    bench.turn()
    assert names(bench.credit(1)) == ["grant"]


# Circuits


def test_a_circuit_gets_backed_credit_only() -> None:
    # Findings 1 and 3: no unit beyond what the pool holds.
    bench = Bench()
    bench.path()
    bench.circuit("c", "far", 3)
    assert bench.credit(1) == [("grant_circuit", "c", 1)]
    assert bench.arrive("c", "m") == [("send", "m", HERE)]
    assert bench.wait(1.0) == []


@pytest.mark.parametrize(("weights", "expected"), [((1, 1), (50, 50)), ((1, 3), (25, 75)), ((9, 1), (90, 10))])
def test_shares_follow_the_busy_publishers_behind_each_circuit(
    weights: tuple[int, int], expected: tuple[int, int]
) -> None:
    # Finding 6.
    bench = Bench(timing=CreditTiming(first_window=100))
    bench.path()
    for key, weight in zip("ab", weights, strict=True):
        bench.circuit(key, f"far {key}", weight)
    bench.credit(100)
    got = [bench.pool().circuits[key].out for key in "ab"]
    assert sum(got) == 100
    assert got == pytest.approx(expected, abs=13)


def test_over_time_shares_are_exact() -> None:
    bench = Bench()
    bench.path()
    bench.circuit("a", "far a", 1)
    bench.circuit("b", "far b", 3)
    sent = {"a": 0, "b": 0}
    for message in range(2000):
        bench.credit(1)
        key = next(key for key in "ab" if bench.pool().circuits[key].out)
        bench.arrive(key, message)
        sent[key] += 1
    assert sent["b"] == pytest.approx(3 * sent["a"], abs=4)


def test_who_joins_has_no_claim_to_what_others_were_dealt_before() -> None:
    bench = Bench()
    bench.path()
    bench.circuit("old", "far", 1)
    for message in range(100):
        bench.credit(1)
        bench.arrive("old", message)
    bench.circuit("new", "other", 1)
    got = []
    for message in range(100, 110):
        bench.credit(1)
        got.append(next(key for key in ("old", "new") if bench.pool().circuits[key].out))
        bench.arrive(got[-1], message)
    assert got.count("old") == got.count("new")


def test_an_idle_circuit_is_drained_for_a_backlogged_one_and_dealt_when_it_answered() -> None:
    bench = Bench()
    bench.path()
    bench.circuit("idle", "far", 1)
    bench.credit(1)
    bench.circuit("hungry", "other", 1)
    assert bench.wait(0.0199) == []
    assert bench.wait(0.0002) == [("drain_circuit", "idle")]
    assert bench.wait(0.9) == []
    bench.machine.set_weight(HERE, "idle", 0)
    assert bench.returned("idle", 1) == [("grant_circuit", "hungry", 1)]


def with_silent_holder() -> Bench:
    """One circuit has the only credit, another one needs it."""
    bench = Bench()
    bench.path()
    bench.circuit("silent", "far", 1)
    bench.credit(1)
    bench.circuit("hungry", "other", 1)
    return bench


def test_credit_that_is_not_returned_in_time_is_for_others() -> None:
    bench = with_silent_holder()
    assert bench.wait(0.03) == [("drain_circuit", "silent")]
    assert bench.wait(1.1) == [("grant_circuit", "hungry", 1)]
    assert names(bench.arrive("hungry", 1)) == ["send"]
    assert bench.credit(5) == [("grant_circuit", "hungry", 4)], "who has returned nothing gets nothing"
    assert bench.returned("silent", 1) != []
    assert bench.pool().circuits["silent"].out > 0


def test_a_message_on_credit_that_was_not_returned_in_time_waits_for_other_credit() -> None:
    bench = with_silent_holder()
    bench.wait(1.2)
    bench.arrive("hungry", 1)
    assert bench.arrive("silent", 2) == [], "it is kept, and no credit is granted in place of that which it used"
    assert names(bench.credit(3))[0] == "send"
    assert bench.pool().circuits["silent"].out > 0, "it has nothing left to return"


def with_unfinished(credit: int) -> Bench:
    """One circuit has used all credit for messages whose ends have not come, another one needs some."""
    bench = Bench()
    bench.path()
    bench.circuit("slow", "far", 1)
    for number in range(credit):
        bench.credit(1)
        bench.machine.arrived(HERE, "slow", number, bench.now, is_ready=False)
    bench.machine.set_weight(HERE, "slow", 0)
    bench.circuit("hungry", "other", 1)
    bench.credit(credit)
    return bench


def test_credit_of_messages_whose_ends_do_not_come_in_time_is_for_others() -> None:
    bench = with_unfinished(3)
    assert bench.wait(0.9) == []
    assert bench.wait(0.2) == [("grant_circuit", "hungry", 3)]
    assert names(bench.arrive("hungry", "m")) == ["send"]


def test_messages_that_are_whole_late_wait_for_other_credit() -> None:
    bench = with_unfinished(3)
    bench.wait(1.1)
    for number in range(3):
        assert names([*map(as_order, bench.machine.take_actions())]) == []
        assert bench.machine.ready(number)
    assert names(bench.turn()) == ["send"] * 3, "whoever is whole goes first"
    assert bench.pool().free() < 0, "what the other circuit holds is not backed for now"
    assert names(bench.credit(3)) == []
    assert bench.pool().free() == 0


def test_messages_that_are_late_may_be_dropped() -> None:
    bench = with_unfinished(2)
    bench.wait(1.1)
    assert bench.machine.drop(0)
    assert bench.machine.ready(1)
    bench.turn()
    assert (bench.pool().late, dict(bench.pool().coming)) == (0, {})


def test_a_publisher_is_lowered_to_none_while_its_message_comes_in_parts() -> None:
    bench = local(2, "slow", "busy")
    bench.machine.published("slow", "m", bench.now, is_ready=False)
    bench.turn()
    assert bench.held("slow") == 1, "beside the message"
    while bench.held("busy"):
        bench.publish("busy")
    assert bench.wait(0.021) == [("grant", "slow", -1)]
    assert bench.wait(0.06) == [("grant", "busy", 1)]
    assert bench.held("slow") == 0
    assert bench.machine.ready("m")
    orders = bench.credit(5)
    assert ("send", "m", HERE) in orders
    assert bench.held("slow") > 0


def test_a_publisher_whose_message_comes_in_parts_is_no_demand_for_long() -> None:
    bench = local(10, "slow", "other")
    bench.machine.published("slow", "m", bench.now, is_ready=False)
    bench.turn()
    assert bench.machine.publishers.demand == 1
    bench.wait(0.2)
    assert bench.machine.publishers.demand == 0
    bench.machine.ready("m")
    assert names(bench.turn())[0] == "send"


def test_a_drain_that_crosses_the_last_use_ends_without_an_answer() -> None:
    # Finding 11a.
    bench = Bench()
    bench.path()
    bench.circuit("a", "far", 1)
    bench.credit(1)
    bench.circuit("b", "other", 1)
    bench.wait(0.021)
    assert bench.pool().circuits["a"].is_draining
    bench.arrive("a", "m")
    assert not bench.pool().circuits["a"].is_draining
    bench.machine.set_weight(HERE, "b", 0)
    assert bench.credit(1) == [("grant_circuit", "a", 1)]


def test_no_credit_for_a_circuit_that_comes_from_ones_own_next_hop() -> None:
    # Finding 18: two routers that take each other for the next hop.
    bench = Bench()
    bench.path("egress", cost=2, next_hop="other")
    bench.circuit("loop", "other", 5, "egress")
    assert bench.credit(5, "egress") == []
    assert bench.pool("egress").told_weight == 0
    bench.path("egress", cost=1, next_hop="right")
    assert ("grant_circuit", "loop", 5) in bench.credit(5, "egress")
    assert ("drain_circuit", "loop") in bench.path("egress", cost=2, next_hop="other")


def test_publishers_that_never_had_credit_count_as_demand() -> None:
    # Finding 12.
    bench = Bench()
    bench.path("egress", cost=1, next_hop="near")
    # Each may have its one before anything was heard of the subscribers; until then they count as one that is busy.
    assert bench.attach("p", "q") == [("grant", "p", 1), ("grant", "q", 1), ("weigh", "egress", 1)]
    assert bench.wait(10.0) == []
    assert bench.pool("egress").told_weight == 1
    assert ("weigh", "egress", 2) in [*bench.publish("p"), *bench.publish("q")]


def test_a_subscriber_elsewhere_that_has_withdrawn_takes_the_first_credit_back() -> None:
    bench = Bench()
    bench.path("egress", cost=1, next_hop="near")
    bench.attach("p")
    bench.machine.closed(RouterId("egress"))
    assert bench.turn() == [("grant", "p", -1)]
    assert bench.wait(10.0) == []
    assert ("grant", "p", 1) in bench.credit(5, "egress")


@pytest.mark.parametrize(
    ("weight", "is_told"), [(100, False), (120, False), (125, True), (75, True), (80, False), (0, True)]
)
def test_the_weight_is_told_at_once_when_all_or_nothing_else_by_a_quarter(weight: int, is_told: bool) -> None:
    bench = Bench()
    bench.path("egress", cost=1, next_hop="near")
    assert bench.circuit("c", "far", 100, "egress") == [("weigh", "egress", 100)]
    bench.machine.set_weight(RouterId("egress"), "c", weight)
    assert bench.turn() == ([("weigh", "egress", weight)] if is_told else [])


# Withdrawals, changes of path, drains


def test_withdrawn_credit_is_taken_back_from_circuits_after_the_debt_time() -> None:
    bench = Bench()
    bench.path()
    bench.circuit("c", "far", 1)
    bench.credit(10)
    assert bench.credit(0) == []
    assert bench.wait(0.0301) == [("drain_circuit", "c")]
    assert bench.returned("c", 10) == []
    assert bench.pool().debt_since == math.inf


def test_withdrawn_credit_is_taken_back_from_busy_publishers() -> None:
    bench = local(50, "p")
    bench.use("p", 100)
    held = bench.held("p")
    assert held > 25
    bench.credit(0)
    orders = bench.wait(0.0301)
    assert orders == [("grant", "p", 1 - held)]


def test_what_arrives_on_withdrawn_credit_waits_in_the_core_and_counts_as_demand() -> None:
    bench = Bench()
    bench.path("egress", cost=1, next_hop="near")
    bench.circuit("c", "far", 1, "egress")
    bench.credit(3, "egress")
    bench.path("egress", cost=1, next_hop="other")
    bench.machine.set_weight(RouterId("egress"), "c", 0)
    assert bench.arrive("c", "m", "egress") == []
    assert bench.pool("egress").told_weight == 1
    assert bench.credit(1, "egress")[0] == ("send", "m", "egress")


def test_a_drain_is_answered_when_what_is_returned_is_lent_to_nobody() -> None:
    bench = Bench()
    bench.path("egress", cost=1, next_hop="near")
    bench.circuit("c", "far", 1, "egress")
    bench.attach("p")
    bench.credit(10, "egress")
    bench.publish("p")
    lent = bench.held("p") - 1
    assert lent > 0
    rest = bench.pool("egress").capacity
    circuit = bench.pool("egress").circuits["c"].out
    orders = bench.credit(rest, "egress", returning=rest)
    assert ("drain_circuit", "c") in orders
    assert ("grant", "p", -lent) in orders
    assert "drained" not in names(bench.returned("c", circuit, "egress"))
    bench.machine.set_weight(RouterId("egress"), "c", 0)
    assert ("drained", "egress") in bench.wait(0.06)
    assert bench.pool("egress").capacity == 0


def test_a_drain_spends_credit_on_waiting_messages_first() -> None:
    # Finding 11b.
    bench = Bench()
    bench.path("egress", cost=1, next_hop="near")
    bench.attach("p")
    bench.credit(1, "egress")
    bench.publish("p", "first")
    bench.publish("p", "second")
    orders = bench.credit(3, "egress", returning=3)
    assert orders[0] == ("send", "second", "egress")
    assert ("drained", "egress") in orders
    assert bench.pool("egress").capacity == 0


def test_a_drain_asks_behind_a_circuit_before_it_is_answered() -> None:
    # A synchronous get of a subscriber with credit for one; the message waits one hop upstream.
    bench = Bench()
    bench.path()
    bench.circuit("c", "far", 1)
    assert bench.credit(1, returning=1) == [("grant_circuit", "c", 1), ("drain_circuit", "c")]
    assert bench.arrive("c", "m") == [("send", "m", HERE)]
    assert bench.credit(1, returning=1) == [("grant_circuit", "c", 1), ("drain_circuit", "c")]
    assert bench.returned("c", 1) == [("drained", HERE)]


def test_a_subscribers_drain_is_answered_after_a_bound() -> None:
    bench = Bench(timing=CreditTiming(drain_bound_s=0.5))
    bench.path()
    bench.circuit("deaf", "far", 1)
    bench.credit(4)
    bench.credit(4, returning=4)
    assert "drained" not in names(bench.wait(0.49))
    assert ("drained", HERE) in bench.wait(0.02)


def test_recalled_credit_is_not_lent_to_a_busy_publisher_while_a_drain_waits_for_it() -> None:
    bench = local(100, "p")
    bench.publish("p")
    bench.credit(99, returning=80)
    for _ in range(5):
        bench.publish("p")
        bench.wait(0.01)
    assert ("drained", HERE) in bench.wait(0.06) or bench.pool().returning == 0


# Several egresses


def two_egresses(*, is_closest: bool) -> Bench:
    bench = Bench(is_closest=is_closest)
    bench.path("near", cost=1, next_hop="n")
    bench.path("far", cost=2, next_hop="f")
    return bench


def test_balanced_goes_to_the_nearest_and_spills_when_it_has_no_credit() -> None:
    bench = two_egresses(is_closest=False)
    bench.attach("p")
    bench.credit(1, "near")
    bench.credit(1, "far")
    assert bench.publish("p", 1)[0] == ("send", 1, "near")
    assert bench.publish("p", 2)[0] == ("send", 2, "far")


def test_closest_waits_for_the_nearest_until_its_subscribers_are_gone() -> None:
    bench = two_egresses(is_closest=True)
    bench.attach("p")
    bench.credit(1, "near")
    bench.credit(5, "far")
    bench.publish("p", 1)
    assert "send" not in names(bench.publish("p", 2))
    assert bench.lose_path("near") == []
    assert ("send", 2, "far") in bench.turn()


def test_messages_wait_on_when_their_egress_is_replaced_by_another() -> None:
    bench = local(1, "p")
    bench.publish("p", "sent")
    bench.publish("p", "waits")
    there = RouterId("there")
    assert bench.machine.set_paths({there: EgressPath(1, there)}, bench.now) == []
    assert ("send", "waits", "there") in bench.credit(1, "there")


def test_closest_keeps_credit_of_all_nearest_egresses_when_all_come_nearer() -> None:
    bench = Bench(is_closest=True)
    for egress in ("a", "b"):
        bench.path(egress, cost=2, next_hop=egress)
    bench.attach("p")
    for egress in ("a", "b"):
        bench.credit(10, egress)
    for _ in range(4):
        bench.publish("p")
    before = [bench.pool(egress).local.out for egress in ("a", "b")]
    bench.machine.set_paths({RouterId(egress): EgressPath(1, RouterId(egress)) for egress in ("a", "b")}, bench.now)
    assert [bench.pool(egress).local.out for egress in ("a", "b")] == before
    assert min(before) > 0


class CountedId(str):
    """Id of a router whose comparisons are counted."""

    __slots__ = ()
    count = 0

    def __lt__(self, other: str) -> bool:
        CountedId.count += 1
        return str.__lt__(self, other)


@pytest.mark.parametrize("is_closest", [False, True])
def test_paths_to_many_egresses_are_put_in_order_once(is_closest: bool) -> None:
    machine = AnycastScheduler(is_closest=is_closest)
    count = 500
    paths = {RouterId(CountedId(f"{number:04}")): EgressPath(1, RouterId("hop")) for number in range(count)}
    for _ in range(2):
        CountedId.count = 0
        machine.set_paths(paths, 0.0)
        assert CountedId.count < 10 * count, "comparing all for each would take far more"
    assert len(machine.candidates) == count


def test_closest_takes_equally_near_egresses_by_turns() -> None:
    bench = Bench(is_closest=True)
    for egress in ("a", "b"):
        bench.path(egress, cost=1, next_hop=egress)
    bench.attach("p")
    for egress in ("a", "b"):
        bench.credit(10, egress)
    sent = [order[2] for _ in range(6) for order in bench.publish("p") if order[0] == "send"]
    assert sent == ["a", "b", "a", "b", "a", "b"]


def between_two(*turns: tuple[int, int]) -> list[object]:
    """Where messages go when a and b, equally near, have so much credit before each of them."""
    bench = Bench(is_closest=True)
    for egress in ("a", "b"):
        bench.path(egress, cost=1, next_hop=egress)
    bench.attach("p")
    sent: list[object] = []
    for credit in turns:
        for egress, amount in zip(("a", "b"), credit, strict=True):
            bench.credit(amount, egress)
        sent += [order[2] for order in bench.publish("p") if order[0] == "send"]
    return sent


def test_an_egress_without_credit_makes_up_for_the_turns_that_it_missed() -> None:
    # Else where credit was late once more often, less would go for ever: the turns would begin anew behind each gap.
    assert between_two((0, 9), (9, 9), (9, 9), (9, 9)) == ["b", "a", "a", "b"]
    gaps = [(9, 9), (9, 0), (9, 0), *[(9, 9)] * 7]
    assert "".join(map(str, between_two(*gaps))) == "aaabbbabab"


def test_what_was_missed_for_long_is_not_made_up() -> None:
    sent = between_two(*[(0, 9)] * 100, *[(9, 9)] * 40)
    assert sent[:100] == ["b"] * 100
    assert sent[100:] == [*["a"] * 16, *["a", "b"] * 12]


def test_turns_begin_anew_when_others_are_the_nearest() -> None:
    bench = Bench(is_closest=True)
    bench.path("a", cost=1, next_hop="a")
    bench.path("b", cost=1, next_hop="b")
    bench.attach("p")
    sent: list[object] = []
    for number in range(9):
        if number == 3:
            bench.path("c", cost=1, next_hop="c")
        for egress in bench.machine.pools:
            bench.credit(9, egress)
        sent += [order[2] for order in bench.publish("p") if order[0] == "send"]
    assert sent == ["a", "b", "a", "a", "b", "c", "a", "b", "c"]


@pytest.mark.parametrize("is_closest", [False, True])
def test_idle_credit_comes_back_for_an_egress_though_another_one_suffices(is_closest: bool) -> None:
    # The publisher is never backlogged: a farther egress, or one that is equally near, gives it all it needs.
    bench = Bench(is_closest=is_closest)
    for egress in ("a", "b"):
        bench.path(egress, cost=1, next_hop=egress)
    bench.circuit("c", "other", 1, "a")
    assert bench.credit(4, "a") == [("grant_circuit", "c", 4)]
    bench.machine.set_weight(RouterId("a"), "c", 0)
    bench.credit(100, "b")
    bench.attach("p")
    sent: list[object] = []
    for _ in range(40):
        orders = bench.publish("p") + bench.wait(0.01)
        sent += [order[2] for order in orders if order[0] == "send"]
        if ("drain_circuit", "c") in orders:
            bench.returned("c", 4, "a")
        bench.credit(4, "a")
        bench.credit(100, "b")
    assert sent[:2] == ["b", "b"]
    if is_closest:
        assert (sent.count("a"), sent.count("b")) == (20, 20)
    else:
        assert sent[4:].count("a") == sent[4:].count("b"), "of equals each in its turn"


def test_a_farther_egress_is_not_asked_while_the_nearer_suffices() -> None:
    bench = two_egresses(is_closest=False)
    bench.attach("p")
    bench.credit(100, "near")
    bench.publish("p")
    assert bench.pool("near").told_weight == 1
    assert bench.pool("far").told_weight == 0


def test_a_circuit_may_come_before_its_path_is_known() -> None:
    bench = Bench()
    assert bench.circuit("c", "far", 2, "egress") == []
    assert bench.path("egress", cost=1, next_hop="near") == [("weigh", "egress", 2)]
    assert bench.credit(2, "egress") == [("grant_circuit", "c", 2)]
    bench.lose_path("egress")
    bench.turn()
    assert bench.machine.arrived(RouterId("egress"), "c", "m", bench.now) == REFUSED, "nowhere to go"
    bench.machine.remove_circuit(RouterId("egress"), "c")
    assert not bench.machine.pools


# Ids that neighbors choose


def test_egresses_whose_circuits_are_gone_leave_nothing_behind() -> None:
    bench = local(5, "p")
    machine = bench.machine
    for number in range(100):
        egress = RouterId(f"R{number}")
        machine.add_circuit(egress, number, RouterId("N"))
        machine.remove_circuit(egress, number)
    assert len(machine.egresses) <= 2
    machine.check_invariants()


def test_each_egress_has_a_number_of_its_own_whatever_came_and_went_before() -> None:
    machine = local(5, "p").machine
    for step in range(30):
        machine.add_circuit(RouterId(f"R{step}"), step, RouterId("N"))
        if step % 3 == 2:
            machine.remove_circuit(RouterId(f"R{step - 1}"), step - 1)
        numbers = [pool.number for pool in machine.pools.values()]
        assert len(set(numbers)) == len(numbers)
        assert [machine.egresses[number] for number in numbers] == list(machine.pools)
