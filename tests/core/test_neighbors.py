"""Adjacencies: the table, silence, several connections to one neighbor, two neighbors of one id."""

from __future__ import annotations

import itertools
import math
import random

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesh_config.models import LinkStateSettings
from router.core.events import UNPLACED, CloseConnection, ControlLinkUp, SendControl
from router.core.ids_and_conditions import Condition, ConnectionId, RouterId
from router.core.linkstate.control_message_sender import ControlMessageSender
from router.core.linkstate.hello_sender import HelloSender
from router.core.linkstate.messages import Hello
from router.core.linkstate.neighbors import ADJACENCY, MOST_PARALLEL, AdjacencyEvent, AdjacencyState, Neighbors

ME, X, Y = RouterId("M"), RouterId("X"), RouterId("Y")
SETTINGS = LinkStateSettings(hello_interval_s=1.0, hello_max_age_s=3.0)
C1, C2, C3 = (ConnectionId(number) for number in (1, 2, 3))


def up(
    connection: ConnectionId,
    peer: RouterId = X,
    *,
    cost: int = 1,
    local: int = 0,
    remote: int = 0,
    is_dialer: bool = False,
    connector: int = UNPLACED,
) -> ControlLinkUp:
    return ControlLinkUp(
        connection=connection,
        peer=peer,
        cost=cost,
        local_conn_id=local or connection,
        remote_conn_id=remote or connection,
        is_dialer=is_dialer,
        connector=connector,
        pushes_lsu=True,
    )


def hello(router: RouterId = X, *, instance: int = 1, seen: tuple[RouterId, ...] = (ME,)) -> Hello:
    return Hello(id=router, instance=instance, seen=seen)


def attached(*events: ControlLinkUp, me: RouterId = ME) -> Neighbors:
    machine = Neighbors(me, SETTINGS)
    for event in events:
        machine.attach(event, 0.0)
    machine.greetings.clear()
    return machine


def active(machine: Neighbors, router: RouterId = X) -> ConnectionId | None:
    machine.check_invariants()
    found = machine.active.get(router)
    return found.connection if found is not None else None


# The table


ABSENT = {(AdjacencyState.ONE_WAY, AdjacencyEvent.TAKEOVER), (AdjacencyState.TWO_WAY, AdjacencyEvent.TAKEOVER)}


@pytest.mark.parametrize(("state", "heard"), list(itertools.product(AdjacencyState, AdjacencyEvent)))
def test_every_pair_has_a_row_or_is_known_to_be_absent(state: AdjacencyState, heard: AdjacencyEvent) -> None:
    assert ((state, heard) in ADJACENCY) != ((state, heard) in ABSENT)


def test_a_neighbor_that_comes_and_goes_is_taken_up_again_later_each_time() -> None:
    machine = attached(up(C1))
    now, came = 0.0, []
    while now < 100.0:
        machine.hear(C1, hello(), now)
        if active(machine) == C1:
            came.append(now)
            machine.hear(C1, hello(seen=()), now)
        now += 0.25
    pauses = [later - earlier for earlier, later in itertools.pairwise(came)]
    assert pauses == [0.25, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


def test_one_that_was_calm_for_a_minute_is_taken_up_again_at_once() -> None:
    machine = attached(up(C1))
    for now in (0.0, 0.5, 61.0):
        machine.hear(C1, hello(), now)
        machine.hear(C1, hello(seen=()), now)
        machine.hear(C1, hello(), now + 0.1)
    assert active(machine) == C1


def test_a_hello_with_this_routers_name_makes_a_neighbor_and_one_without_it_ends_it() -> None:
    machine = attached(up(C1))
    machine.hear(C1, hello(seen=()), 0.1)
    assert active(machine) is None
    assert machine.seen() == (X,)
    machine.hear(C1, hello(seen=(Y, ME)), 0.2)
    assert active(machine) == C1
    assert machine.costs() == {X: 1}
    machine.hear(C1, hello(seen=(Y,)), 0.3)
    assert active(machine) is None
    assert machine.seen() == (X,)


def test_silence_ends_it_and_the_next_hello_makes_it_again() -> None:
    machine = attached(up(C1))
    machine.hear(C1, hello(), 1.0)
    assert machine.next_silence <= 4.0
    machine.elapse(3.9)
    assert active(machine) == C1
    machine.elapse(4.0)
    assert active(machine) is None
    assert machine.seen() == ()
    assert machine.next_silence == math.inf
    # It is still spoken to: the peer may only have been slow.
    assert machine.speakers(4.0) == [C1]
    machine.hear(C1, hello(), 5.0)
    assert active(machine) == C1


def test_time_in_which_this_router_itself_was_held_up_is_no_silence() -> None:
    machine = attached(up(C1))
    machine.hear(C1, hello(), 1.0)
    machine.elapse(6.0, late_s=4.0)
    assert active(machine) == C1
    machine.elapse(8.0)
    assert active(machine) is None


def test_who_was_unheard_while_this_router_was_held_up_has_another_interval_to_speak() -> None:
    machine = attached(up(C1))
    machine.hear(C1, hello(), 1.0)
    machine.elapse(4.5, late_s=0.6)
    assert machine.next_silence == 5.5
    machine.elapse(5.4)
    assert active(machine) == C1
    machine.elapse(5.5)
    assert active(machine) is None


def test_a_router_that_is_late_again_and_again_still_loses_a_dead_neighbor() -> None:
    machine = attached(up(C1))
    machine.hear(C1, hello(), 1.0)
    for tenths in range(15, 100, 15):
        machine.elapse(1.0 + tenths / 10, late_s=0.6)
    assert active(machine) is None


def test_the_first_hello_is_answered_at_once_and_later_ones_are_not() -> None:
    machine = Neighbors(ME, SETTINGS)
    machine.attach(up(C1), 0.0)
    assert list(machine.greetings) == [C1]
    machine.greetings.clear()
    machine.hear(C1, hello(seen=()), 0.1)
    assert list(machine.greetings) == [C1]
    machine.greetings.clear()
    machine.hear(C1, hello(seen=()), 1.1)
    assert not machine.greetings


def test_all_connections_are_said_the_very_same_hello_which_is_encoded_once() -> None:
    machine = attached(up(C1, X), up(C2, Y))
    sender = ControlMessageSender(ME, machine)
    greeter = HelloSender(sender=sender, neighbors=machine, settings=SETTINGS, instance=1, rng=random.Random(1))
    greeter.hello(0.5)
    first, second = sender.take()
    assert isinstance(first, SendControl)
    assert isinstance(second, SendControl)
    assert (first.connection, second.connection) == (C1, C2)
    assert first.message is second.message


def test_a_router_is_what_its_hello_says_not_what_its_open_said() -> None:
    machine = attached(up(C1, RouterId("container-7")))
    machine.hear(C1, hello(X), 0.1)
    assert active(machine, X) == C1
    assert machine.seen() == (X,)


def test_a_router_that_changes_its_id_on_one_connection_is_refused() -> None:
    machine = attached(up(C1, RouterId("container-7")), up(C2, Y))
    machine.hear(C1, hello(X), 0.1)
    machine.hear(C2, hello(Y), 0.1)
    assert not machine.hear(C1, hello(RouterId("X2")), 0.2)
    (refusal,) = machine.refusals
    assert (refusal.connection, refusal.router, refusal.new_id) == (C1, X, "X2")
    assert refusal.description == "router X changed its id to X2"
    assert active(machine, X) is None
    assert active(machine, RouterId("X2")) is None
    assert active(machine, Y) == C2


def test_a_standby_that_took_over_unheard_may_have_another_id_than_its_open_said() -> None:
    machine = attached(up(C1), up(C2))
    machine.hear(C1, hello(X), 0.1)
    machine.detach(C1, 0.2)
    assert active(machine, X) == C2
    assert machine.hear(C2, hello(Y), 0.3)
    assert (active(machine, X), active(machine, Y)) == (None, C2)


# Several connections to one neighbor


def test_of_parallel_connections_the_cheapest_is_active_and_the_others_are_silent() -> None:
    machine = attached(up(C1, cost=5), up(C2, cost=2), up(C3, cost=5))
    assert machine.speakers(0.0) == [C2]
    machine.hear(C2, hello(), 0.1)
    assert active(machine) == C2
    assert machine.costs() == {X: 2}
    assert machine.speakers(0.1) == [C2]
    # A qdrouterd says HELLO on each of them.
    machine.hear(C1, hello(), 0.2)
    machine.hear(C3, hello(), 0.3)
    assert active(machine) == C2
    assert machine.speakers(0.3) == [C2]


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=5),
    st.booleans(),
)
def test_both_ends_prefer_the_same_connection(wires: list[tuple[int, int, int]], is_lower: bool) -> None:
    # Numbers of one end are unique among its own connections.
    near = [(cost, 10 * index + a, 10 * (len(wires) - index) + b) for index, (cost, a, b) in enumerate(wires)]
    left, right = (RouterId("L"), RouterId("R")) if is_lower else (RouterId("R"), RouterId("L"))
    chosen = set()
    for me, peer, mine, its in ((left, right, 1, 2), (right, left, 2, 1)):
        machine = Neighbors(me, SETTINGS)
        for index, wire in enumerate(near):
            machine.attach(up(ConnectionId(index), peer, cost=wire[0], local=wire[mine], remote=wire[its]), 0.0)
        chosen.add(tuple(machine.speakers(0.0)))
    assert len(chosen) == 1
    assert len(chosen.pop()) == 1


WIRES = ((1, "R", 0), (1, "L", 1), (1, "L", 0), (1, "R", 1), (2, "L", 2))
"""Cost, router that dials, place of its connector; in no order."""


def test_whichever_parallel_connection_came_first_both_ends_choose_the_same() -> None:
    ends = (RouterId("L"), RouterId("R"))
    for order in itertools.permutations(range(len(WIRES))):
        chosen = []
        for me, peer in (ends, ends[::-1]):
            machine = Neighbors(me, SETTINGS)
            for number, index in enumerate(order):
                cost, dialer, place = WIRES[index]
                is_dialer = dialer == me
                machine.attach(
                    up(ConnectionId(number), peer, cost=cost, is_dialer=is_dialer, connector=place), number / 10
                )
                machine.hear(ConnectionId(number), hello(peer, seen=(me,)), number / 10)
            found = active(machine, peer)
            assert found is not None
            chosen.append(order[found])
        assert chosen == [2, 2]


def test_the_number_of_the_end_with_the_lower_id_decides_where_no_place_is_told() -> None:
    machine = attached(up(C1, RouterId("Z"), local=9, remote=1), up(C2, RouterId("Z"), local=8, remote=2), me=ME)
    assert machine.speakers(0.0) == [C2]
    machine = attached(up(C1, RouterId("A"), local=9, remote=1), up(C2, RouterId("A"), local=8, remote=2), me=ME)
    assert machine.speakers(0.0) == [C1]


def test_a_standby_takes_over_in_the_same_turn() -> None:
    machine = attached(up(C1), up(C2, cost=3))
    machine.hear(C1, hello(instance=7), 1.0)
    revision = machine.revision
    machine.detach(C1, 2.0)
    assert active(machine) == C2
    assert machine.costs() == {X: 3}
    assert machine.seen() == (X,)
    assert machine.revision > revision
    assert list(machine.greetings) == [C2]
    # It has to be heard like any other from now on.
    machine.elapse(4.9)
    assert active(machine) == C2
    machine.elapse(5.0)
    assert active(machine) is None


def test_a_standby_takes_over_from_a_connection_that_fell_silent() -> None:
    machine = attached(up(C1), up(C2))
    machine.hear(C1, hello(), 1.0)
    machine.elapse(4.0)
    assert active(machine) == C2
    # The better one may come back.
    assert machine.speakers(4.0) == [C1, C2]
    machine.hear(C2, hello(), 4.5)
    machine.hear(C1, hello(), 5.0)
    assert active(machine) == C1


def test_the_death_of_a_standby_changes_nothing() -> None:
    machine = attached(up(C1), up(C2))
    machine.hear(C1, hello(), 1.0)
    revision = machine.revision
    machine.detach(C2, 2.0)
    assert active(machine) == C1
    assert machine.revision == revision


def test_a_peer_that_no_longer_hears_this_router_is_lost_by_all_connections() -> None:
    machine = attached(up(C1), up(C2))
    machine.hear(C1, hello(), 1.0)
    machine.hear(C1, hello(seen=()), 2.0)
    assert active(machine) is None


def test_a_better_connection_is_taken_when_it_is_two_way_and_not_before() -> None:
    machine = attached(up(C1, cost=5))
    machine.hear(C1, hello(), 1.0)
    machine.attach(up(C2, cost=1), 1.5)
    assert active(machine) == C1
    assert machine.speakers(1.5) == [C1, C2]
    machine.hear(C2, hello(), 1.6)
    assert active(machine) == C2
    assert machine.speakers(1.6) == [C2]


def test_a_preferred_connection_that_stays_mute_is_given_up_for_the_next() -> None:
    machine = attached(up(C1), up(C2))
    assert machine.speakers(0.0) == [C1]
    machine.elapse(3.0)
    assert machine.speakers(3.0) == [C2]
    machine.hear(C2, hello(), 3.5)
    assert active(machine) == C2
    assert machine.speakers(3.5) == [C1, C2]
    machine.elapse(6.4)
    assert active(machine) == C2


def test_when_all_are_mute_each_is_spoken_to() -> None:
    machine = attached(up(C1), up(C2))
    machine.elapse(3.0)
    machine.elapse(6.0)
    assert machine.speakers(6.0) == [C1, C2]
    assert machine.next_silence == math.inf


def test_a_standby_is_answered_when_the_active_one_is_stale() -> None:
    machine = attached(up(C1), up(C2))
    machine.hear(C1, hello(), 1.0)
    machine.hear(C2, hello(), 2.4)
    assert machine.speakers(2.4) == [C1]
    # The peer lost C1 already and speaks on C2; it must hear us there before it gives us up.
    assert machine.speakers(2.6) == [C1, C2]


# Two routers of one id


def test_a_connection_to_a_router_of_the_same_id_is_refused() -> None:
    machine = Neighbors(ME, SETTINGS)
    machine.attach(up(C1, ME), 0.0)
    (refusal,) = machine.refusals
    assert (refusal.connection, refusal.router) == (C1, ME)
    assert "router id M is in use" in refusal.description
    assert not machine.connections
    machine.check_invariants()


def test_a_neighbor_that_says_hello_by_this_routers_id_is_refused_as_that() -> None:
    machine = attached(up(C1))
    machine.hear(C1, attrs.evolve(hello(), id=ME), 1.0)
    (refusal,) = machine.refusals
    assert (refusal.connection, refusal.description) == (C1, "router id M is in use: this router has the same id")
    machine.check_invariants()


def test_a_neighbor_in_use_that_says_hello_by_this_routers_id_is_lost_at_once() -> None:
    machine = attached(up(C1))
    machine.hear(C1, hello(), 0.1)
    assert active(machine) == C1
    assert not machine.hear(C1, hello(ME), 0.2)
    assert active(machine) is None


def test_a_hello_with_our_own_id_is_refused() -> None:
    machine = attached(up(C1, RouterId("other")))
    assert not machine.hear(C1, hello(ME, instance=99), 0.1)
    assert [refusal.connection for refusal in machine.refusals] == [C1]
    assert not machine.connections
    machine.detach(C1, 0.2)
    machine.check_invariants()


def test_of_two_neighbors_of_one_id_the_second_is_refused_when_the_first_speaks_on() -> None:
    machine = attached(up(C1))
    machine.hear(C1, hello(instance=1), 1.0)
    machine.attach(up(C2), 1.1)
    assert not machine.hear(C2, hello(instance=2), 1.2)
    assert active(machine) == C1
    assert not machine.refusals
    assert machine.hear(C1, hello(instance=1), 2.0)
    assert [refusal.connection for refusal in machine.refusals] == [C2]
    assert active(machine) == C1


def test_a_restarted_neighbor_is_accepted_when_its_old_connection_is_gone() -> None:
    machine = attached(up(C1))
    machine.hear(C1, hello(instance=1), 1.0)
    machine.attach(up(C2), 1.1)
    machine.hear(C2, hello(instance=2), 1.2)
    machine.detach(C1, 1.3)
    assert active(machine) == C2
    assert not machine.refusals
    assert machine.hear(C2, hello(instance=2), 2.2)


def test_a_restarted_neighbor_is_accepted_when_its_old_connection_is_silent() -> None:
    machine = attached(up(C1))
    machine.hear(C1, hello(instance=1), 1.0)
    machine.attach(up(C2), 1.1)
    machine.hear(C2, hello(instance=2), 1.2)
    machine.hear(C2, hello(instance=2), 3.2)
    machine.elapse(4.0)
    assert active(machine) == C2
    assert not machine.refusals


def test_a_neighbor_that_takes_a_higher_boot_number_while_it_lives_is_no_duplicate() -> None:
    machine = attached(up(C1))
    machine.hear(C1, hello(instance=1), 1.0)
    machine.attach(up(C2), 1.1)
    machine.hear(C2, hello(instance=2), 1.2)
    assert machine.hear(C1, hello(instance=2), 1.3)
    assert not machine.refusals
    assert machine.hear(C2, hello(instance=2), 1.4)


connections = st.sampled_from([C1, C2, C3])
steps = st.one_of(
    st.tuples(st.just("attach"), connections, st.integers(1, 2)),
    st.tuples(st.just("detach"), connections, st.just(0)),
    st.tuples(st.just("hear"), connections, st.integers(0, 3)),
    st.tuples(st.just("elapse"), st.just(C1), st.integers(0, 4)),
)


@given(st.lists(steps, max_size=40))
def test_whatever_happens_it_stays_consistent(plan: list[tuple[str, ConnectionId, int]]) -> None:
    machine = Neighbors(ME, SETTINGS)
    now = 0.0
    for what, connection, number in plan:
        if what == "attach" and connection not in machine.connections:
            machine.attach(up(connection, X if number == 1 else Y, cost=number), now)
        elif what == "detach":
            machine.detach(connection, now)
        elif what == "hear" and connection in machine.connections:
            router, instance = (X if number % 2 else Y), 1 + number // 2
            machine.hear(connection, hello(router, instance=instance, seen=(ME,) if number else ()), now)
        elif what == "elapse":
            now += number / 2
            machine.elapse(now)
            assert machine.next_silence > now
        machine.check_invariants()
        for router in (X, Y):
            group = [c for c in machine.connections.values() if c.router == router]
            if group and not all(c.is_challenger for c in group):
                assert any(c.connection in machine.speakers(now) for c in group)


def test_a_plain_router_is_spoken_to_on_one_connection_even_if_the_better_is_silent() -> None:
    machine = Neighbors(ME, SETTINGS)
    for connection in (C1, C2):
        machine.attach(attrs.evolve(up(connection), pushes_lsu=False), 0.0)
    machine.hear(C1, hello(), 1.0)
    machine.elapse(4.0)
    assert active(machine) == C2
    assert machine.speakers(4.0) == [C2]


# How many


@pytest.mark.parametrize("is_named_late", [False, True])
def test_more_connections_to_one_neighbor_than_may_be_are_refused(is_named_late: bool) -> None:
    machine = attached(*(up(ConnectionId(number)) for number in range(MOST_PARALLEL)))
    for number in range(MOST_PARALLEL):
        machine.hear(ConnectionId(number), hello(), 0.0)
    more = ConnectionId(MOST_PARALLEL)
    machine.attach(up(more, Y if is_named_late else X), 0.0)
    if is_named_late:
        assert not machine.hear(more, hello(), 0.0)
    assert more not in machine.connections
    sender = ControlMessageSender(ME, machine)
    greeter = HelloSender(sender=sender, neighbors=machine, settings=SETTINGS, instance=1, rng=random.Random(0))
    greeter.settle(0.0)
    closed = [each for each in sender.take() if isinstance(each, CloseConnection)]
    assert [(each.connection, each.condition) for each in closed] == [(more, Condition.RESOURCE_LIMIT_EXCEEDED)]
    assert active(machine) == ConnectionId(0)
    assert machine.speakers(0.0) == [ConnectionId(0)]


@pytest.mark.parametrize("is_named_late", [False, True])
def test_connections_that_say_nothing_keep_none_out_that_speaks(is_named_late: bool) -> None:
    machine = attached(*(up(ConnectionId(number)) for number in range(1, MOST_PARALLEL + 1)))
    machine.hear(ConnectionId(1), hello(), 0.0)
    true = ConnectionId(MOST_PARALLEL + 1)
    machine.attach(up(true, Y if is_named_late else X), 0.0)
    machine.hear(true, hello(), 0.0)
    machine.check_invariants()
    assert true in machine.connections
    assert [each.connection for each in machine.take_refusals()] == [ConnectionId(2)], "the oldest that said nothing"
    assert active(machine) == ConnectionId(1)


def test_a_standby_that_took_over_is_kept_though_it_said_nothing() -> None:
    machine = attached(*(up(ConnectionId(number)) for number in range(MOST_PARALLEL)))
    machine.hear(ConnectionId(0), hello(), 0.0)
    machine.detach(ConnectionId(0), 1.0)
    assert active(machine) == ConnectionId(1)
    for number in range(MOST_PARALLEL, MOST_PARALLEL + 2):
        machine.attach(up(ConnectionId(number)), 1.0)
    assert active(machine) == ConnectionId(1)
