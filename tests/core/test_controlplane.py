"""One control plane, message by message: what it sends, to whom, when, and what it installs."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest

from mesh_config.models import LinkStateSettings, Treatment
from router.core.addressing.address_list_parts import PARTS
from router.core.controlplane import ControlPlane
from router.core.errors import LocalError
from router.core.events import (
    Action,
    CloseConnection,
    ControlLinkDown,
    ControlLinkUp,
    ControlReceived,
    Event,
    FirstSubscriberAttached,
    InstallAddress,
    InstallRouter,
    LastSubscriberLeft,
    Report,
    SendControl,
    TopologyChanged,
    TransitEnded,
    WithdrawAddress,
    WithdrawRouter,
)
from router.core.ids_and_conditions import Condition, ConnectionId, RouterId
from router.core.linkstate.control_message_sender import ControlMessageSender
from router.core.linkstate.due_routers import MOST_AT_ONCE
from router.core.linkstate.duplicate_ids import MOST_IDS, OLDER_PAUSE_S, DuplicateIds
from router.core.linkstate.lsdb import MOST_UNHEARD, Node
from router.core.linkstate.messages import (
    MAX_INT,
    ControlMessage,
    Hello,
    LinkStateRequest,
    LinkStateUpdate,
    MobileAddressRequest,
    MobileAddressUpdate,
    RouterAdvertisement,
    UnknownMessage,
)
from router.core.linkstate.neighbors import Neighbors
from tests.helpers.playbook import Playbook

A, B, C, D = (RouterId(name) for name in "ABCD")
TO_B, TO_C, TO_D = (ConnectionId(number) for number in (1, 2, 3))
BOOT = 100
TO_ALL = "amqp:/_topo/0/all/qdrouter"
TO_ALL_MA = "_topo/0/all/qdrouter.ma"
SETTINGS = LinkStateSettings()


def plane(settings: LinkStateSettings = SETTINGS) -> ControlPlane:
    return ControlPlane(router_id=A, settings=settings, instance=BOOT, now=0.0, rng=random.Random(0))


def up(connection: ConnectionId, peer: RouterId, *, cost: int = 1, pushes: bool = True) -> ControlLinkUp:
    return ControlLinkUp(
        connection=connection,
        peer=peer,
        cost=cost,
        local_conn_id=connection,
        remote_conn_id=1,
        is_dialer=True,
        connector=connection,
        pushes_lsu=pushes,
    )


def got(
    connection: ConnectionId, message: ControlMessage, *, to: str = TO_ALL, trace: tuple[RouterId, ...] | None = None
) -> ControlReceived:
    trace = (message.id,) if trace is None else trace
    return ControlReceived(connection=connection, to=to, message=message, ingress=message.id, trace=trace)


def sent(
    connection: ConnectionId, message: ControlMessage, *, to: str = TO_ALL, trace: tuple[RouterId, ...] = ()
) -> SendControl:
    return SendControl(connection=connection, to=to, message=message, ingress=message.id, trace=(*trace, A))


def hello(router: RouterId, *seen: RouterId, instance: int = BOOT) -> Hello:
    return Hello(id=router, instance=instance, seen=seen)


def update(router: RouterId, seq: int, peers: dict[RouterId, int], *, instance: int = BOOT) -> LinkStateUpdate:
    return LinkStateUpdate(id=router, instance=instance, ls_seq=seq, peers=peers)


def advertisement(router: RouterId, ls_seq: int, mobile_seq: int = 0, *, instance: int = BOOT) -> RouterAdvertisement:
    return RouterAdvertisement(id=router, instance=instance, ls_seq=ls_seq, mobile_seq=mobile_seq)


def met(play: Playbook, connection: ConnectionId, peer: RouterId, *, pushes: bool = True, cost: int = 1) -> Playbook:
    """Play until *peer*, who has this router for its only neighbor, is one itself."""
    play >> up(connection, peer, pushes=pushes, cost=cost)
    play >> got(connection, hello(peer, A), to="amqp:/_local/qdhello")
    play >> got(connection, update(peer, 1, {A: cost}))
    play.at(play.now + 0.01).rest()
    return play


def reports(play: Playbook, event: Event) -> list[Report]:
    """What is logged for an event."""
    play.ignore = ()
    found = [action for action in (play >> event).rest() if isinstance(action, Report)]
    play.ignore = (Report,)
    return found


def star(settings: LinkStateSettings = SETTINGS) -> Playbook:
    """This router in the middle of B, C and a plain D."""
    play = Playbook(plane(settings), ignore=(Report,))
    met(play, TO_B, B)
    met(play, TO_C, C)
    met(play, TO_D, D, pushes=False)
    play.at(play.now + 1.0).rest()
    return play


def live(play: Playbook, until: float) -> Playbook:
    """Let time pass while all neighbors of a star say HELLO."""
    while play.now < until:
        play.at(min(until, play.now + 1.0))
        for connection, router in ((TO_B, B), (TO_C, C), (TO_D, D)):
            play >> got(connection, hello(router, A), to="amqp:/_local/qdhello")
    return play


def sends(actions: list[Action], kind: type[ControlMessage]) -> list[tuple[ConnectionId, ControlMessage]]:
    return [(a.connection, a.message) for a in actions if isinstance(a, SendControl) and isinstance(a.message, kind)]


def others(actions: list[Action]) -> list[Action]:
    return [action for action in actions if not isinstance(action, SendControl)]


def test_first_contact() -> None:
    play = Playbook(plane(), ignore=(Report,))
    local = "amqp:/_local/qdhello"
    play >> up(TO_B, B, cost=3) << sent(TO_B, hello(A), to=local)
    play.end()
    play >> got(TO_B, hello(B), to=local) << sent(TO_B, hello(A, B), to=local)
    play.end()
    # Two-way: advertised and installed in the same turn.
    play >> got(TO_B, hello(B, A), to=local) << sent(TO_B, update(A, 1, {B: 3})) << sent(TO_B, advertisement(A, 1))
    play << InstallRouter(router=B, connection=TO_B, next_hop=B, cost=3) << TopologyChanged()
    play.end()
    play >> got(TO_B, update(B, 1, {A: 3, C: 1}))
    play.end()
    play.at(0.004).end()
    play.at(0.005)
    play << InstallRouter(router=C, connection=TO_B, next_hop=B, cost=4) << TopologyChanged()
    play.end()


def test_a_plain_neighbor_is_asked_and_told_by_advertisement() -> None:
    play = Playbook(plane(), ignore=(Report, InstallRouter, TopologyChanged))
    play >> up(TO_B, B, pushes=False) << SendControl
    play >> got(TO_B, hello(B, A), to="amqp:/_local/qdhello") << SendControl
    play << sent(TO_B, advertisement(A, 1))
    play << sent(TO_B, advertisement(A, 1)) << sent(TO_B, LinkStateRequest(id=A), to="amqp:/_topo/0/B/qdrouter")
    play.end()
    request = got(TO_B, LinkStateRequest(id=B), to="amqp:/_topo/0/A/qdrouter")
    play >> request << sent(TO_B, update(A, 1, {B: 1}), to="amqp:/_topo/0/B/qdrouter")
    play.end()


def test_news_is_pushed_on_to_our_kind_and_told_to_plain_neighbors() -> None:
    play = star()
    far = RouterId("E")
    play >> got(TO_B, update(far, 4, {B: 1}), trace=(far, B))
    play << sent(TO_C, update(far, 4, {B: 1}), trace=(far, B))
    play << sent(TO_D, advertisement(far, 4), trace=(far, B))
    play.end()


def test_news_is_not_sent_back_nor_is_what_is_known_sent_where_it_has_been() -> None:
    play = star()
    far = RouterId("E")
    # A trace may be a lie: C would have sent it here itself.
    play >> got(TO_B, update(far, 4, {B: 1}), trace=(far, C, B))
    assert sends(play.rest(), LinkStateUpdate) == [(TO_C, update(far, 4, {B: 1}))]
    play.at(play.now + 2)
    play.rest()
    play >> got(TO_D, advertisement(far, 4), trace=(far, A, D))
    assert sends(play.rest(), RouterAdvertisement) == []


def test_a_message_without_a_trace_does_not_return_to_its_origin() -> None:
    play = star()
    play >> got(TO_C, advertisement(D, 1, 7), trace=())
    written = [action for action in play.rest() if isinstance(action, SendControl)]
    assert [action.connection for action in written if action.to == TO_ALL] == [TO_B]


def test_what_others_say_of_a_neighbor_of_our_kind_is_only_a_reason_to_ask_it() -> None:
    play = star()
    play >> got(TO_B, MobileAddressUpdate(id=B, mobile_seq=1, add=("M0x",), hints=(2,)), to=TO_ALL_MA)
    play.rest()
    lies = [
        advertisement(B, 4, 3, instance=BOOT),
        advertisement(B, 1, 0, instance=BOOT + 1),
        update(B, 5, {C: 1}),
        MobileAddressUpdate(id=B, mobile_seq=7, exist=()),
    ]
    for message in lies:
        play >> got(TO_C, message, trace=(B, C))
        actions = play.rest()
        assert {action.connection for action in actions if isinstance(action, SendControl)} == {TO_B}
        assert others(actions) == []
    play.at(play.now + 0.3)
    asked = play.rest()
    assert sends(asked, LinkStateRequest) == [(TO_B, LinkStateRequest(id=A))]
    assert sends(asked, MobileAddressRequest) == [(TO_B, MobileAddressRequest(id=A, have_seq=1, parts=PARTS))]


IN_SECONDS, IN_MICROSECONDS = 1_700_000_000, 1_700_000_100_000_000
"""Boot numbers as a qdrouterd has them, and as routers of our kind have them."""


def test_a_distant_qdrouterd_that_our_kind_replaces_is_believed() -> None:
    play = star()
    far = RouterId("E")
    to_me = "amqp:/_topo/0/A/qdrouter"
    play >> got(TO_C, update(C, 2, {A: 1, far: 1}))
    play >> got(TO_C, advertisement(far, 3, 2, instance=IN_SECONDS), trace=(far, C))
    play >> got(TO_C, update(far, 3, {C: 1}, instance=IN_SECONDS), to=to_me, trace=(far, C))
    exist = MobileAddressUpdate(id=far, mobile_seq=2, exist=("M0old",), hints=(2,))
    play >> got(TO_C, exist, to=f"{to_me}.ma", trace=(far, C))
    live(play, play.now + 3.0).rest()
    assert play.control.addresses() == {"old": [far]}
    play >> got(TO_C, update(far, 1, {C: 1}, instance=IN_MICROSECONDS), trace=(far, C))
    change = MobileAddressUpdate(id=far, mobile_seq=1, add=("M0new",), hints=(2,))
    play >> got(TO_C, change, to=TO_ALL_MA, trace=(far, C))
    live(play, play.now + 1.0).rest()
    assert play.control.addresses() == {"new": [far]}
    assert {node.id: node.instance for node in play.control.nodes()}[far] == IN_MICROSECONDS


def test_a_router_that_is_too_far_ahead_is_believed_when_it_was_unheard_for_long() -> None:
    play = star()
    far = RouterId("E")
    play >> got(TO_C, update(C, 2, {A: 1, far: 1})) >> got(TO_C, update(far, 3, {C: 1}), trace=(far, C))
    live(play, play.now + 1.0).rest()
    ahead = update(far, 1, {C: 1}, instance=IN_MICROSECONDS)
    play >> got(TO_C, ahead, trace=(far, C))
    assert {node.id: node.instance for node in play.control.nodes()}[far] == BOOT
    begin = play.now
    for number in range(8):
        live(play, begin + 10.0 * number)
        play >> got(TO_C, advertisement(C, 2), trace=(C,))
        play >> got(TO_C, ahead, trace=(far, C))
    assert {node.id: node.instance for node in play.control.nodes()}[far] == IN_MICROSECONDS


def test_a_change_with_an_absurd_number_does_not_stop_those_that_follow() -> None:
    play = star()
    far = RouterId("E")
    play >> got(TO_C, update(C, 2, {A: 1, far: 1})) >> got(TO_C, update(far, 3, {C: 1}), trace=(far, C))
    live(play, play.now + 1.0).rest()
    lie = MobileAddressUpdate(id=far, mobile_seq=MAX_INT, add=("M0lie",), hints=(2,))
    play >> got(TO_B, lie, to=TO_ALL_MA, trace=(far, B))
    assert sends(play.rest(), MobileAddressUpdate) == [], "nobody else hears of it"
    true = MobileAddressUpdate(id=far, mobile_seq=1, add=("M0true",), hints=(2,))
    play >> got(TO_C, true, to=TO_ALL_MA, trace=(far, C))
    assert {to for to, _ in sends(play.rest(), MobileAddressUpdate)} == {TO_B, TO_D}


def test_of_thousands_of_routers_that_one_message_names_few_are_asked_at_once() -> None:
    play = star()
    named = {RouterId(f"q{number}"): 1 for number in range(3000)}
    play >> got(TO_B, update(B, 5, {A: 1, **named}))
    counts = []
    asked: set[str] = set()
    for _ in range(20):
        play.at(play.now + 0.1)
        written = [action for action in play.rest() if isinstance(action, SendControl)]
        requests = [action.to for action in written if isinstance(action.message, LinkStateRequest)]
        counts.append(len(requests))
        asked.update(requests)
    assert max(counts) == MOST_AT_ONCE
    assert len(asked) == MOST_UNHEARD
    far = RouterId("q2999")
    play >> got(TO_B, advertisement(far, 1), trace=(far, B))
    play.at(play.now + 1.0)
    play.rest()
    assert far in {node.id for node in play.control.nodes()}, "its own word is enough"


def test_of_a_neighbor_that_was_lost_the_word_of_others_counts_again() -> None:
    play = star()
    play >> got(TO_B, MobileAddressUpdate(id=B, mobile_seq=1, add=("M0x",), hints=(2,)), to=TO_ALL_MA)
    play >> got(TO_C, update(B, 5, {C: 1}), trace=(B, C)) >> got(TO_C, update(C, 2, {A: 1, B: 1}))
    play.rest()
    play >> ControlLinkDown(connection=TO_B)
    assert sends(play.rest(), LinkStateRequest) == [(TO_C, LinkStateRequest(id=A))]
    play >> got(TO_C, update(B, 5, {C: 1}), trace=(B, C))
    play.at(play.now + 0.1)
    found = play.rest()
    assert InstallRouter(router=B, connection=TO_C, next_hop=C, cost=2) in found
    assert InstallAddress(address="x", router=B, treatment=Treatment.CLOSEST) in found, "its addresses are kept"


def test_what_is_known_is_not_passed_on_again() -> None:
    play = star()
    far = RouterId("E")
    play >> got(TO_B, update(far, 4, {B: 1}), trace=(far, B))
    play.rest()
    play >> got(TO_C, update(far, 4, {B: 1}), trace=(far, C))
    play >> got(TO_C, update(far, 3, {}), trace=(far, C))
    play >> got(TO_D, advertisement(far, 4), trace=(far, D))
    play.end()


def test_of_the_copies_of_a_refresh_the_first_is_passed_on() -> None:
    play = star()
    live(play, 20.0).rest()
    far = RouterId("E")
    play >> got(TO_B, update(far, 1, {B: 1}), trace=(far, B))
    live(play, 40.0).rest()
    refresh = advertisement(far, 1)
    play >> got(TO_B, refresh, trace=(far, B))
    play << sent(TO_C, refresh, trace=(far, B)) << sent(TO_D, refresh, trace=(far, B))
    play >> got(TO_D, refresh, trace=(far, D)) >> got(TO_C, refresh, trace=(far, C))
    play.end()
    live(play, 44.0).rest()
    play >> got(TO_C, refresh, trace=(far, C)) << SendControl << SendControl
    play.end()


class CountedNodes(dict[RouterId, Node]):
    """Nodes by id that count how often they are looked up."""

    looks = 0

    def get(self, router: RouterId, default: object = None) -> Any:
        self.looks += 1
        return super().get(router, default)


def test_a_trace_that_names_a_router_again_and_again_costs_no_more() -> None:
    play = star()
    far = RouterId("E")
    play >> got(TO_B, update(far, 1, {B: 1}), trace=(far, B))
    live(play, 10.0).rest()
    nodes = play.control._link_state.database.nodes = CountedNodes(play.control._link_state.database.nodes)
    play >> got(TO_B, advertisement(far, 1), trace=(far, B) * 500)
    assert {to for to, _ in sends(play.rest(), RouterAdvertisement)} == {TO_C, TO_D}
    assert nodes.looks < 20


def test_an_advertisement_of_unknown_link_state_is_answered_by_one_request_at_a_time() -> None:
    play = star()
    far = RouterId("E")
    play >> got(TO_D, advertisement(far, 4), trace=(far, D))
    request = LinkStateRequest(id=A)
    # There is no route to it yet, so it goes to where the advertisement came from.
    assert sends(play.rest(), LinkStateRequest) == [(TO_D, request)]
    play >> got(TO_D, advertisement(far, 5), trace=(far, D))
    assert sends(play.rest(), LinkStateRequest) == []
    # Then each neighbor is asked in turn: what it said of its way may be as old.
    play.at(play.now + 0.3)
    assert sends(play.rest(), LinkStateRequest) == [(TO_B, request)]
    play >> got(TO_D, update(far, 5, {D: 1}), to="amqp:/_topo/0/A/qdrouter", trace=(far, D))
    play.at(play.now + 10.0)
    assert sends(play.rest(), LinkStateRequest) == []


def test_messages_to_other_routers_are_passed_along_the_route() -> None:
    play = star()
    request = MobileAddressRequest(id=C, have_seq=2)
    to = "amqp:/_topo/0/B/qdrouter.ma"
    play >> got(TO_C, request, to=to) << sent(TO_B, request, to=to, trace=(C,))
    # The same without a scheme.
    play >> got(TO_C, request, to=to[6:]) << sent(TO_B, request, to=to[6:], trace=(C,))
    play.end()


@pytest.mark.parametrize(
    ("to", "trace"),
    [
        ("amqp:/_topo/0/Z/qdrouter.ma", (C,)),
        ("amqp:/_topo/0/B/qdrouter.ma", (C, A)),
        ("amqp:/_topo/0/B/qdrouter.ma", (C, B)),
        ("amqp:/_topo/0/B/qdrouter.ma", tuple(RouterId(f"x{n}") for n in range(5))),
    ],
    ids=["no route", "was here", "leads back", "too many hops"],
)
def test_what_finds_no_way_is_given_up_after_a_moment(to: str, trace: tuple[RouterId, ...]) -> None:
    play = star()
    play >> got(TO_C, MobileAddressRequest(id=C, have_seq=0), to=to, trace=trace)
    play.end()
    play.at(play.now + 0.1).end()
    assert play.control.counters()["control_dropped"] == 1


def test_a_question_for_link_state_that_finds_no_way_is_answered_with_what_is_held() -> None:
    play = star()
    request = LinkStateRequest(id=C)
    # C sees its way to E through here, where it leads back to C.
    far = RouterId("E")
    play >> got(TO_B, update(far, 2, {C: 1}), trace=(far, B)) >> got(TO_C, update(C, 2, {A: 1, far: 1}))
    play.at(play.now + 0.01).rest()
    play >> got(TO_C, request, to="amqp:/_topo/0/E/qdrouter")
    play << sent(TO_C, update(far, 2, {C: 1}), to="amqp:/_topo/0/C/qdrouter", trace=(far,))
    play.end()


def test_a_neighbor_is_spoken_to_directly_even_where_the_route_is_another() -> None:
    play = Playbook(plane(), ignore=(Report,))
    met(play, TO_B, B, cost=9)
    met(play, TO_C, C)
    play >> got(TO_B, update(B, 2, {A: 9, C: 1})) >> got(TO_C, update(C, 2, {A: 1, B: 1}))
    play.at(play.now + 0.05).rest()
    assert {node.id: node.next_hop for node in play.control.nodes()} == {B: C, C: C}
    play >> got(TO_B, LinkStateRequest(id=B), to="amqp:/_topo/0/A/qdrouter")
    assert [connection for connection, _ in sends(play.rest(), LinkStateUpdate)] == [TO_B]
    request = MobileAddressRequest(id=C, have_seq=0)
    play >> got(TO_C, request, to="amqp:/_topo/0/B/qdrouter.ma")
    play << sent(TO_B, request, to="amqp:/_topo/0/B/qdrouter.ma", trace=(C,))
    play.end()


def test_what_finds_no_way_is_passed_on_when_there_is_one() -> None:
    play = star()
    far = RouterId("E")
    request = MobileAddressRequest(id=C, have_seq=0)
    play >> got(TO_C, request, to="amqp:/_topo/0/E/qdrouter.ma")
    play.end()
    play >> got(TO_B, update(far, 1, {B: 1}), trace=(far, B)) >> got(TO_B, update(B, 2, {A: 1, far: 1}))
    play.at(play.now + 0.02)
    assert (TO_B, request) in sends(play.rest(), MobileAddressRequest)
    assert play.control.counters()["control_dropped"] == 0


def test_a_message_to_nobody_or_by_an_unknown_connection_is_ignored() -> None:
    play = star()
    play >> got(TO_C, LinkStateRequest(id=C), to="queue")
    play >> got(ConnectionId(99), LinkStateRequest(id=C))
    play.end()
    assert play.control.counters()["control_ignored"] == 2


def test_newer_versions_are_reported_once_for_each_connection_and_ignored() -> None:
    play = star()
    play.ignore = ()
    play >> got(TO_D, UnknownMessage(id=D, pv=2, name="MAU")) << Report
    play >> got(TO_D, UnknownMessage(id=D, pv=2, name="RA")) >> got(TO_D, UnknownMessage(id=D, pv=1, name="WHAT"))
    play.end()
    for number in range(100):
        play >> got(TO_D, Hello(id=RouterId(f"made-up-{number}"), instance=BOOT, seen=(), pv=2))
    play.end()
    play >> got(TO_C, UnknownMessage(id=C, pv=2, name="RA")) << Report
    play.end()
    assert play.control.counters()["control_ignored"] == 104


def test_a_neighbor_that_comes_again_with_a_newer_version_is_reported_again() -> None:
    play = star()
    foreign = got(TO_D, UnknownMessage(id=D, pv=2, name="MAU"))
    assert [report.what for report in reports(play, foreign)] == ["foreign_message"]
    play >> ControlLinkDown(connection=TO_D) >> up(TO_D, D)
    assert [report.what for report in reports(play, foreign)] == ["foreign_message"]


def test_an_older_boot_number_is_told_once_while_it_goes_on_and_again_after_a_pause() -> None:
    ids = DuplicateIds(sender := ControlMessageSender(A, Neighbors(A, SETTINGS)))
    times = [0.9 * OLDER_PAUSE_S * number for number in range(5)]
    told = []
    for now in (*times, times[-1] + OLDER_PAUSE_S + 1):
        ids.report_older(C, BOOT, now)
        told.append(len(sender.take()))
    assert told == [1, 0, 0, 0, 0, 1]


def test_ids_counted_as_those_of_two_routers_are_few_at_a_time() -> None:
    ids = DuplicateIds(sender := ControlMessageSender(A, Neighbors(A, SETTINGS)))
    for second in range(10):
        for number in range(10 * MOST_IDS):
            ids.report_older(RouterId(f"r{number}"), 1, float(second))
    assert len(sender.take()) == MOST_IDS, "each once, and of more than that nothing"
    ids.report_older(RouterId("late"), 1, 10.0 + OLDER_PAUSE_S)
    assert len(sender.take()) == 1


# Losses


def test_a_lost_neighbor_is_told_and_withdrawn_in_the_same_turn() -> None:
    play = star()
    play >> got(TO_B, MobileAddressUpdate(id=B, mobile_seq=1, add=("M0x",), hints=(2,)), to=TO_ALL_MA)
    play.rest()
    play >> ControlLinkDown(connection=TO_B)
    actions = play.rest()
    assert sends(actions, LinkStateUpdate) == [(TO_C, update(A, 4, {C: 1, D: 1}))]
    assert sends(actions, RouterAdvertisement) == [(TO_D, advertisement(A, 4))]
    assert others(actions) == [WithdrawAddress(address="x", router=B), WithdrawRouter(router=B), TopologyChanged()]


BEYOND = RouterId("E")
AGAIN = ConnectionId(7)


def star_that_has_lost(absent_s: float) -> Playbook:
    """The same, which has lost B and E behind it, and hears B again *absent_s* seconds later; 24 s have gone by."""
    play = star()
    play >> got(TO_B, update(B, 2, {A: 1, BEYOND: 1})) >> got(TO_B, update(BEYOND, 1, {B: 1}), trace=(BEYOND, B))
    play >> got(
        TO_B, MobileAddressUpdate(id=BEYOND, mobile_seq=1, add=("M0x",), hints=()), to=TO_ALL_MA, trace=(BEYOND, B)
    )
    live(play, play.now + 24.0 - absent_s)
    play >> ControlLinkDown(connection=TO_B)
    play.at(play.now + absent_s).rest()
    play >> up(AGAIN, B) >> got(AGAIN, hello(B, A))
    return play


RETURNED = [
    InstallRouter(router=BEYOND, connection=AGAIN, next_hop=B, cost=2),
    TopologyChanged(),
    InstallAddress(address="x", router=BEYOND, treatment=None),
]
"""Of E."""


def test_a_router_behind_a_lost_one_goes_and_returns_with_it_without_any_question() -> None:
    play = star()
    far = BEYOND
    play >> got(TO_B, update(B, 2, {A: 1, far: 1})) >> got(TO_B, update(far, 1, {B: 1}), trace=(far, B))
    play >> got(TO_B, MobileAddressUpdate(id=far, mobile_seq=1, add=("M0x",), hints=()), to=TO_ALL_MA, trace=(far, B))
    play.at(play.now + 0.1)
    route = InstallRouter(router=far, connection=TO_B, next_hop=B, cost=2)
    address = InstallAddress(address="x", router=far, treatment=None)
    assert [action for action in others(play.rest()) if not isinstance(action, TopologyChanged)] == [route, address]
    play >> ControlLinkDown(connection=TO_B)
    withdrawn = others(play.rest())
    assert withdrawn == [
        WithdrawAddress(address="x", router=far),
        WithdrawRouter(router=B),
        WithdrawRouter(router=far),
        TopologyChanged(),
    ]
    play.at(play.now + 20.0).rest()
    play >> up(AGAIN, B) >> got(AGAIN, hello(B, A))
    actions = play.rest()
    assert others(actions) == [InstallRouter(router=B, connection=AGAIN, next_hop=B, cost=1), TopologyChanged()]
    play >> got(AGAIN, update(B, 4, {A: 1, far: 1})) >> got(AGAIN, update(far, 1, {B: 1}), trace=(far, B))
    actions += (returned := play.at(play.now + 0.01).rest())
    assert others(returned) == RETURNED
    assert sends(actions, LinkStateRequest) + sends(actions, MobileAddressRequest) == []


@pytest.mark.parametrize(
    "word", [update(B, 2, {A: 1, BEYOND: 1}), advertisement(B, 2)], ids=["its link state", "an advertisement of it"]
)
def test_what_a_router_said_before_it_was_lost_counts_when_it_says_it_again(
    word: LinkStateUpdate | RouterAdvertisement,
) -> None:
    play = star_that_has_lost(2.0)
    assert BEYOND not in {action.router for action in play.rest() if isinstance(action, InstallRouter)}
    play >> got(AGAIN, word)
    assert others(play.at(play.now + 0.01).rest()) == RETURNED


def test_a_router_that_a_lost_one_tells_of_no_more_is_not_back_for_a_moment() -> None:
    play = star_that_has_lost(2.0)
    actions = play.rest()
    assert BEYOND in play.control.edges()[B], "as last heard"
    play >> got(AGAIN, update(B, 4, {A: 1}))
    actions += play.at(play.now + 1.0).rest()
    assert BEYOND not in play.control.edges()[B]
    assert BEYOND not in {action.router for action in actions if isinstance(action, InstallRouter)}


def test_what_was_lost_for_a_moment_is_back_at_once() -> None:
    play = star_that_has_lost(0.2)
    assert RETURNED[0] in play.rest()


def test_who_does_not_say_its_link_state_again_is_asked_for_it() -> None:
    play = star_that_has_lost(2.0)
    play.rest()
    asked = sends(play.at(play.now + 0.3).rest(), LinkStateRequest)
    assert asked == [(AGAIN, LinkStateRequest(id=A))]
    play >> got(AGAIN, update(B, 2, {A: 1, BEYOND: 1}), to="amqp:/_topo/0/A/qdrouter")
    assert RETURNED[0] in play.at(play.now + 0.01).rest()


def test_doubtful_link_state_is_told_to_nobody() -> None:
    play = star_that_has_lost(2.0)
    play.rest()
    new = RouterId("F")
    play >> up(ConnectionId(8), new) >> got(ConnectionId(8), hello(new, A))
    actions = play.rest()
    actions += play.at(play.now + 0.01).rest()  # it is told nothing before it is named
    told = {message.id for connection, message in sends(actions, LinkStateUpdate) if connection == ConnectionId(8)}
    assert told == {A, C, D}


def test_link_state_that_came_by_request_alone_counts_until_something_else_is_heard() -> None:
    play = star()
    to = "amqp:/_topo/0/A/qdrouter"
    play >> got(TO_D, update(D, 2, {A: 1, BEYOND: 1}), to=to) >> got(TO_D, update(BEYOND, 1, {D: 1}), to=to)
    live(play, play.now + 20.0)
    play >> ControlLinkDown(connection=TO_D)
    play.at(play.now + 2.0).rest()
    play >> up(AGAIN, D, pushes=False) >> got(AGAIN, hello(D, A))
    assert InstallRouter(router=BEYOND, connection=AGAIN, next_hop=D, cost=2) in play.rest()


def test_a_restarted_router_loses_its_addresses_and_they_are_asked_for_anew() -> None:
    play = star()
    play >> got(TO_B, MobileAddressUpdate(id=B, mobile_seq=1, add=("M0x",), hints=(2,)), to=TO_ALL_MA)
    play.rest()
    play >> got(TO_B, advertisement(B, 1, 3, instance=BOOT + 1))
    actions = play.rest()
    assert others(actions) == [WithdrawAddress(address="x", router=B)]
    assert sends(actions, MobileAddressRequest) == [(TO_B, MobileAddressRequest(id=A, have_seq=0, parts=PARTS))]
    assert [message.id for _, message in sends(actions, LinkStateRequest)] == [A]


def test_own_news_in_quick_succession_waits_but_losses_do_not() -> None:
    play = Playbook(plane(), ignore=(Report,))
    for number in range(1, 9):
        play >> up(ConnectionId(number), RouterId(f"n{number}"))
        play >> got(ConnectionId(number), hello(RouterId(f"n{number}"), A))
    assert play.control.own_node().ls_seq == 1
    play.at(0.005)
    assert play.control.own_node().ls_seq == 2
    assert len(play.control.own_node().peers) == 8
    play >> ControlLinkDown(connection=ConnectionId(3)) >> ControlLinkDown(connection=ConnectionId(4))
    assert play.control.own_node().ls_seq == 4


def test_link_state_of_this_boot_that_is_not_of_this_process_raises_the_boot_number() -> None:
    play = star()
    play >> got(TO_B, update(A, 77, {B: 1}), trace=(A, B))
    actions = play.rest()
    assert play.control.instance == BOOT + 1
    assert {message.instance for _, message in sends(actions, Hello) if isinstance(message, Hello)} == {BOOT + 1}
    assert len(sends(actions, LinkStateUpdate)) == 2
    # Of an older boot it means nothing.
    play >> got(TO_B, update(A, 99, {B: 1}), trace=(A, B))
    play.end()


# Addresses


def test_subscriptions_of_one_turn_go_out_as_one_update_and_then_an_advertisement() -> None:
    play = star()
    play >> [
        FirstSubscriberAttached(address="x", treatment=Treatment.MULTICAST),
        FirstSubscriberAttached(address="gone", treatment=Treatment.BALANCED),
        FirstSubscriberAttached(address="y", treatment=Treatment.CLOSEST),
        LastSubscriberLeft(address="gone"),
    ]
    message = MobileAddressUpdate(id=A, mobile_seq=1, add=("M0x", "M0y"), hints=(1, 2))
    for connection in (TO_B, TO_C, TO_D):
        play << sent(connection, message, to=TO_ALL_MA)
    # Our own kind learns of a lost update by the next refresh.
    play << sent(TO_D, advertisement(A, 3, 1))
    play.end()
    play >> [LastSubscriberLeft(address="x"), FirstSubscriberAttached(address="x", treatment=Treatment.MULTICAST)]
    play.end()
    play >> [LastSubscriberLeft(address="x"), FirstSubscriberAttached(address="x", treatment=Treatment.BALANCED)]
    assert sends(play.rest(), MobileAddressUpdate)[0][1] == MobileAddressUpdate(
        id=A, mobile_seq=2, add=("M0x",), hints=(3,)
    )
    play >> LastSubscriberLeft(address="y")
    assert sends(play.rest(), MobileAddressUpdate)[0][1] == MobileAddressUpdate(id=A, mobile_seq=3, delete=("M0y",))


def test_who_asks_gets_everything_and_who_is_not_behind_nothing() -> None:
    play = star()
    play >> FirstSubscriberAttached(address="x", treatment=Treatment.CLOSEST)
    play.rest()
    request = got(TO_C, MobileAddressRequest(id=C, have_seq=0), to="amqp:/_topo/0/A/qdrouter.ma")
    # What changes in the turn is in the answer.
    play >> [request, FirstSubscriberAttached(address="y", treatment=Treatment.BALANCED)]
    answer = MobileAddressUpdate(id=A, mobile_seq=2, exist=("M0x", "M0y"), hints=(2, 3))
    assert play.rest()[3] == sent(TO_C, answer, to="amqp:/_topo/0/C/qdrouter.ma")
    for have_seq in (2, 3):
        play >> got(TO_C, MobileAddressRequest(id=C, have_seq=have_seq), to="amqp:/_topo/0/A/qdrouter.ma")
        play.end()


def mau(seq: int, *add: str, delete: tuple[str, ...] = (), hints: tuple[int, ...] = ()) -> ControlReceived:
    message = MobileAddressUpdate(id=B, mobile_seq=seq, add=add, delete=delete, hints=hints)
    return got(TO_B, message, to=TO_ALL_MA)


def everything(seq: int, *exist: str, hints: tuple[int, ...] = ()) -> ControlReceived:
    message = MobileAddressUpdate(id=B, mobile_seq=seq, exist=exist, hints=hints)
    return got(TO_B, message, to="amqp:/_topo/0/A/qdrouter.ma")


def installed(address: str, treatment: Treatment | None = None) -> InstallAddress:
    return InstallAddress(address=address, router=B, treatment=treatment)


def quiet(settings: LinkStateSettings = SETTINGS) -> Playbook:
    """A star that shows what is installed and what is asked for."""
    return star(settings)


def effects(play: Playbook) -> list[Action]:
    return [
        action
        for action in play.rest()
        if not isinstance(action, SendControl) or isinstance(action.message, MobileAddressRequest)
    ]


REQUEST_0 = sent(TO_B, MobileAddressRequest(id=A, have_seq=0, parts=PARTS), to="amqp:/_topo/0/B/qdrouter.ma")


def test_updates_add_and_delete_and_other_classes_count_only_in_the_sequence() -> None:
    play = quiet()
    assert effects(play >> mau(1, "M0x", "M0y", hints=(2, 1))) == [
        installed("x", Treatment.CLOSEST),
        installed("y", Treatment.MULTICAST),
    ]
    assert effects(play >> mau(2, "Clr", "M1wp", "HE1", delete=("MFz",))) == [installed("_edge/E1", None)]
    assert effects(play >> mau(3, "M0z", delete=("M0x", "M0unknown"), hints=(2, 2))) == [
        installed("z"),
        WithdrawAddress(address="x", router=B),
    ]
    assert play.control.addresses() == {"y": [B], "z": [B], "_edge/E1": [B]}


def test_an_update_is_passed_on_once_and_copies_are_dropped_without_a_word() -> None:
    play = star()
    play >> mau(1, "M0x")
    assert [connection for connection, _ in sends(play.rest(), MobileAddressUpdate)] == [TO_C, TO_D]
    copy = got(TO_C, mau(1, "M0x").message, to=TO_ALL_MA, trace=(B, C))
    play >> copy >> copy >> mau(1, "M0x")
    play.end()


def test_a_gap_leads_to_exactly_one_request() -> None:
    play = quiet()
    assert effects(play >> mau(2, "M0y")) == [REQUEST_0]
    assert effects(play >> mau(3, "M0z")) == []
    assert effects(play >> got(TO_B, advertisement(B, 1, 3))) == []
    assert effects(play >> everything(3, "M0x", "M0z", hints=(1, 2))) == [
        installed("x", Treatment.MULTICAST),
        installed("z", Treatment.CLOSEST),
    ]
    assert effects(play >> mau(4, delete=("M0z",))) == [WithdrawAddress(address="z", router=B)]
    assert effects(play.at(play.now + 0.5)) == []


def test_an_answer_overtaken_by_the_next_update_is_asked_for_again() -> None:
    play = quiet()
    assert effects(play >> mau(2)) == [REQUEST_0]
    assert effects(play >> mau(3)) == []
    assert effects(play >> everything(2, "M0x")) == [
        installed("x"),
        sent(TO_B, MobileAddressRequest(id=A, have_seq=2, parts=PARTS), to="amqp:/_topo/0/B/qdrouter.ma"),
    ]


def test_a_request_that_is_lost_is_repeated_in_growing_pauses() -> None:
    play = quiet()
    start = play.now
    assert effects(play >> mau(2)) == [REQUEST_0]
    times = []
    while play.now < start + 12.0:
        live(play, play.now + 0.01)
        if REQUEST_0 in play.rest():
            times.append(play.now - start)
    assert times == pytest.approx([0.25, 0.75, 1.75, 3.75, 7.75, 11.75], abs=0.05)


def test_a_late_gap_filler_ends_the_request() -> None:
    play = quiet()
    play >> mau(2, "M0y")
    play.rest()
    play >> mau(1, "M0x")
    assert effects(play) == [installed("x")]
    # 2 was not kept, so it is still missing.
    assert effects(play >> everything(2, "M0x", "M0y")) == [installed("y")]


def test_everything_replaces_what_was_there_and_old_answers_do_nothing() -> None:
    play = quiet()
    play >> mau(1, "M0x", "M0y", hints=(2, 2))
    play.rest()
    assert effects(play >> everything(5, "M0y", "M0z", "Clr", hints=(2, 3, 4))) == [
        installed("z", Treatment.BALANCED),
        WithdrawAddress(address="x", router=B),
    ]
    assert effects(play >> everything(5, "M0q")) == []
    assert effects(play >> everything(4, "M0q")) == []


def test_an_advertisement_that_is_ahead_is_asked_about_and_one_behind_is_not() -> None:
    play = quiet()
    assert effects(play >> got(TO_B, advertisement(B, 1, 2))) == [REQUEST_0]
    assert effects(play >> everything(2, "M0x")) == [installed("x")]
    assert effects(play >> got(TO_B, advertisement(B, 1, 1))) == []


def test_addresses_of_an_unreachable_router_wait_until_it_is_reachable() -> None:
    play = star()
    far = RouterId("E")
    play >> got(TO_B, advertisement(far, 1, 4), trace=(far, B))
    assert sends(play.rest(), MobileAddressRequest) == []
    play >> got(TO_B, update(far, 1, {B: 1}), trace=(far, B)) >> got(TO_B, update(B, 2, {A: 1, far: 1}))
    play.at(play.now + 0.02)
    assert sends(play.rest(), MobileAddressRequest) == [(TO_B, MobileAddressRequest(id=A, have_seq=0, parts=PARTS))]


def test_an_update_of_an_unknown_router_is_ignored() -> None:
    play = star()
    stranger = MobileAddressUpdate(id=RouterId("Z"), mobile_seq=1, add=("M0x",))
    play >> got(TO_B, stranger, to=TO_ALL_MA)
    play.end()


# Timers and the rest


def test_refreshes_come_more_often_after_a_change() -> None:
    play = Playbook(plane(), ignore=(Report, InstallRouter, TopologyChanged))
    met(play, TO_B, B)
    start = play.now
    times: list[float] = []
    while play.now < 130.0:
        play.at(play.control.next_deadline())
        if sends(play.rest(), RouterAdvertisement):
            times.append(play.now - start)
        play >> got(TO_B, hello(B, A), to="amqp:/_local/qdhello")
        play >> got(TO_B, advertisement(B, 1))
        play.rest()
    pauses = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert 2 <= sum(time < 10 for time in times) <= 4
    assert all(22.5 <= pause <= 30.0 for pause in pauses[3:])
    assert len(pauses) >= 4


def test_a_router_without_connections_has_no_deadline() -> None:
    control = plane()
    assert control.next_deadline() == math.inf
    assert control.handle_deadline(now=5.0) == []
    assert control.handle([FirstSubscriberAttached(address="x", treatment=Treatment.CLOSEST)], now=5.0) == []
    control.handle([up(TO_B, B)], now=6.0)
    assert 6.0 < control.next_deadline() <= 7.0


def test_hold_down_may_be_zero() -> None:
    play = Playbook(plane(LinkStateSettings(spf_hold_down_s=0.0)), ignore=(Report,))
    met(play, TO_B, B)
    play >> got(TO_B, update(B, 2, {A: 1, C: 1}))
    assert InstallRouter(router=C, connection=TO_B, next_hop=B, cost=2) in play.rest()


def large(play: Playbook) -> Playbook:
    """B, and behind it a hundred and fifty routers that are all neighbors of each other."""
    met(play, TO_B, B)
    for router in FAR:
        play >> got(TO_B, update(router, 1, {B: 1, **{other: 1 for other in FAR if other != router}}))
    play >> got(TO_B, update(B, 2, {A: 1, **dict.fromkeys(FAR, 1)}))
    return play.at(play.now + 1.0)


FAR = [RouterId(f"far{number:03}") for number in range(150)]
LARGE_SETTINGS = LinkStateSettings(max_neighbor_peers=2 * len(FAR) ** 2)


def test_a_neighbor_s_large_and_restless_graph_is_looked_through_now_and_then() -> None:
    play = large(Playbook(plane(LARGE_SETTINGS), ignore=(Report,)))
    control = play.control
    before = control.spf_runs
    for seq in range(2, 252):
        play.at(play.now + 0.02) >> got(TO_B, update(FAR[0], seq, {B: 1 + seq % 2}))
        if seq % 50 == 0:
            play >> got(TO_B, hello(B, A), to="amqp:/_local/qdhello")
    assert 5 <= control.spf_runs - before <= 10  # in 5 s


def test_a_loss_in_a_restless_large_graph_is_withdrawn_before_other_paths_are_found() -> None:
    play = large(Playbook(plane(LARGE_SETTINGS), ignore=(Report,)))
    play >> up(TO_C, C)
    play >> got(TO_C, hello(C, A), to="amqp:/_local/qdhello")
    play >> got(TO_C, update(C, 1, {A: 1, FAR[0]: 9}))
    play >> got(TO_B, update(FAR[0], 2, {B: 1, C: 9, FAR[1]: 1}))
    play.at(play.now + 1.0).rest()
    assert FAR[0] in play.control.hops()
    runs = play.control.spf_runs
    play >> ControlLinkDown(connection=TO_B)
    gone = {action.router for action in play.rest() if isinstance(action, WithdrawRouter)}
    assert gone == {B, *FAR}
    assert play.control.spf_runs == runs
    play.control.check_invariants()
    play.at(play.now + 2.0)
    found = {action.router for action in play.rest() if isinstance(action, InstallRouter)}
    assert found == {B, *FAR}, "by way of C"
    assert play.control.spf_runs > runs


def test_calls_before_the_deadline_do_nothing() -> None:
    play = star()
    assert play.control.handle_deadline(now=play.now) == []


def test_refused_connections_are_closed_with_a_reason() -> None:
    play = Playbook(plane())
    play >> up(TO_B, A) << Report << CloseConnection
    play.end()
    play >> ControlLinkDown(connection=TO_B)
    play.end()


HELLO_TO = "amqp:/_local/qdhello"


def reached(play: Playbook) -> set[RouterId]:
    return {node.id for node in play.control.nodes() if node.next_hop is not None}


def test_who_changes_its_id_by_a_hello_is_closed_and_leaves_others_alone() -> None:
    play = star()
    known, paths = play.control.known_routers, play.control.spf_runs
    play >> got(TO_C, hello(RouterId("X0"), A), to=HELLO_TO)
    assert [action for action in play.rest() if isinstance(action, CloseConnection)] == [
        CloseConnection(connection=TO_C, condition=Condition.NOT_ALLOWED, description="router C changed its id to X0")
    ]
    for number in range(1000):
        play >> got(TO_C, hello(RouterId(f"X{number}"), A), to=HELLO_TO)
        assert not play.rest()
    play.at(play.now + 1.0).rest()
    assert play.control.known_routers == known
    assert play.control.spf_runs <= paths + 2
    assert reached(play) >= {B, D}
    play.control.check_invariants()


def test_a_changed_id_is_logged_with_both_ids() -> None:
    assert reports(star(), got(TO_C, hello(D, A), to=HELLO_TO))[0] == Report.warning(
        "router_id_changed", id=C, new_id=D, connection=TO_C
    )


@pytest.mark.parametrize("is_advertised", [False, True], ids=["hello", "advertisement"])
def test_of_neighbors_that_come_by_ever_new_ids_no_more_than_fit_are_kept(is_advertised: bool) -> None:
    most = 20
    play = Playbook(plane(LinkStateSettings(max_routers=most)), ignore=(Report,))
    met(play, TO_B, B)
    for number in range(10 * most):
        name = RouterId(f"X{number}")
        play.at(play.now + 0.1) >> up(TO_C, name)
        play >> got(
            TO_C, advertisement(name, 1) if is_advertised else hello(name), to=TO_ALL if is_advertised else HELLO_TO
        )
        play >> ControlLinkDown(connection=TO_C)
        if number % 10 == 0:
            play >> got(TO_B, hello(B, A), to=HELLO_TO)
        play.rest()
        assert play.control.known_routers <= most
    met(play, TO_D, D)  # and an honest one finds room
    assert reached(play) == {B, D}
    play.control.check_invariants()


def test_neighbors_have_room_though_all_known_routers_are_reached() -> None:
    play = Playbook(plane(LinkStateSettings(max_routers=2)), ignore=(Report,))
    for connection, router in ((TO_B, B), (TO_C, C), (TO_D, D)):
        met(play, connection, router)
    assert reached(play) == {B, C, D}


def test_an_unknown_event_is_our_own_fault() -> None:
    with pytest.raises(LocalError):
        plane().handle([Event()], now=0.0)


def test_views() -> None:
    play = star()
    play >> FirstSubscriberAttached(address="x", treatment=Treatment.CLOSEST) >> mau(1, "M0x")
    control = play.control
    own = control.own_node()
    assert (own.id, own.instance, own.ls_seq, own.mobile_seq) == (A, BOOT, 3, 1)
    assert own.peers == {B: 1, C: 1, D: 1}
    nodes = {node.id: node for node in control.nodes()}
    assert (nodes[B].next_hop, nodes[B].cost, nodes[B].ls_seq, nodes[B].mobile_seq) == (B, 1, 1, 1)
    assert nodes[D].peers == {A: 1}
    assert control.addresses() == {"x": [A, B]}
    assert control.own_addresses() == {"x": Treatment.CLOSEST}
    assert [(v.router, v.state, v.is_standby) for v in control.neighbors()] == [
        (router, "two-way", False) for router in (B, C, D)
    ]
    tree = control.tree(B)
    assert (tree.predecessor, dict(tree.children)) == (B, {C: frozenset({C}), D: frozenset({D})})
    assert control.counters()["control_received_HELLO"] == 3


def test_the_end_of_transit_is_told_at_once_as_the_cost_of_every_edge_from_here() -> None:
    play = star()
    play >> TransitEnded()
    told = play.rest()
    (own,) = {action.message for action in told if isinstance(action, SendControl) and action.connection == TO_B} - {
        None
    }
    assert isinstance(own, LinkStateUpdate)
    assert own.peers == dict.fromkeys((B, C, D), 1_000_000)
    # To a plain router, which asks then: it is the cost that it knows, and no word of ours.
    (seq,) = {message.ls_seq for connection, message in sends(told, RouterAdvertisement) if connection == TO_D}
    assert seq == own.ls_seq


def test_paths_lead_round_a_router_without_transit_and_still_to_it() -> None:
    play = star()
    play >> got(TO_C, update(C, 2, {A: 1, B: 9})) >> got(TO_B, update(B, 2, {A: 1, C: 9}))
    far = RouterId("E")
    play >> got(TO_B, update(B, 3, {A: 1, C: 9, far: 1})) >> got(TO_B, update(far, 1, {B: 1, C: 9}), trace=(far, B))
    play >> got(TO_C, update(C, 3, {A: 1, B: 9, far: 9}))
    live(play, play.now + 1.0).rest()
    costs = {node.id: (node.next_hop, node.cost) for node in play.control.nodes()}
    assert costs[far] == (B, 2)
    play >> got(TO_B, update(B, 4, {A: 1_000_000, C: 1_000_000, far: 1_000_000}))
    live(play, play.now + 1.0).rest()
    costs = {node.id: (node.next_hop, node.cost) for node in play.control.nodes()}
    assert costs[far] == (C, 10)
    assert costs[B] == (B, 1)
