"""All addresses of a router, told in parts to one that asks for them."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from itertools import pairwise

import pytest

from mesh_config.models import LinkStateSettings, Treatment
from router.core.addressing.address import MAX_ADDRESS_BYTES
from router.core.addressing.address_list_parts import (
    MOST_CHANGED_BYTES,
    MOST_CHANGED_BYTES_OF_ALL,
    MOST_CHANGES,
    MOST_LIST_AGE_S,
    MOST_LISTS,
    PART,
    PART_BYTES,
    PARTS,
    OutgoingAddressList,
    cut,
    pieces,
    size_of,
)
from router.core.addressing.fib_update_queue import MOST_CHANGES as MOST_WAITING
from router.core.addressing.fib_update_queue import PAUSE_S, ROUTINE
from router.core.events import (
    Action,
    ControlReceived,
    FirstSubscriberAttached,
    InstallAddress,
    LastSubscriberLeft,
    SendControl,
    WithdrawAddress,
)
from router.core.ids_and_conditions import RouterId
from router.core.linkstate.messages import (
    ControlMessage,
    MobileAddressRequest,
    MobileAddressUpdate,
    RouterAdvertisement,
)
from router.simulation.mesh import Mesh
from tests.core.test_controlplane import (
    BOOT,
    REQUEST_0,
    TO_ALL,
    TO_ALL_MA,
    TO_B,
    TO_C,
    A,
    B,
    C,
    effects,
    got,
    live,
    mau,
    quiet,
    sends,
)
from tests.helpers.playbook import Playbook

TO_ME = "amqp:/_topo/0/A/qdrouter.ma"


def parts_of(count: int, mobile_seq: int) -> list[MobileAddressUpdate]:
    """The answer of B with so many addresses `a0`, `a1`, ..."""
    addresses = {f"a{number}": Treatment.CLOSEST for number in range(count)}
    answer = OutgoingAddressList(B, mobile_seq, addresses, in_parts=True)
    return [answer.part(number) for number in range(answer.count)]


def asked(mobile_seq: int) -> Playbook:
    """A has seen that it lacks addresses of B, and asks for them."""
    play = quiet()
    assert effects(play >> mau(mobile_seq)) == [REQUEST_0]
    return play


def hear(play: Playbook, message: ControlMessage, to: str = TO_ME) -> list[Action]:
    return effects(play >> got(TO_B, message, to=to))


def waited(play: Playbook) -> list[Action]:
    """Effects of the changes that wait, a few milliseconds later."""
    play.at(play.now + PAUSE_S * (1 + MOST_WAITING / ROUTINE))
    return effects(play)


def installed(actions: Sequence[Action]) -> set[str]:
    return {action.address for action in actions if isinstance(action, InstallAddress)}


def withdrawn(actions: Sequence[Action]) -> set[str]:
    return {action.address for action in actions if isinstance(action, WithdrawAddress)}


def test_each_part_is_there_at_once_and_what_is_in_none_goes_with_the_last() -> None:
    play = quiet()
    hear(play, mau(1, "M0gone", "M0a0").message, TO_ALL_MA)
    hear(play, mau(3).message, TO_ALL_MA)
    first, second, third = parts_of(2 * PART + 1, 3)
    found = hear(play, first) + waited(play)
    assert installed(found) == {f"a{number}" for number in range(PART)}
    assert not withdrawn(found)
    assert len(installed(hear(play, second) + waited(play))) == PART
    last = hear(play, third)
    assert (installed(last), withdrawn(last)) == ({f"a{2 * PART}"}, {"gone"})
    assert not any(isinstance(action, SendControl) for action in last), "nothing is missing"
    assert "gone" not in play.control.addresses()


def test_changes_that_come_between_the_parts_follow_the_last() -> None:
    play = asked(3)
    first, second = parts_of(PART + 1, 3)
    hear(play, first)
    waited(play)
    assert hear(play, mau(4, "M0new", delete=("M0a0",)).message, TO_ALL_MA) == []
    assert hear(play, mau(5, "M0newer").message, TO_ALL_MA) == []
    last = hear(play, second) + waited(play)
    assert installed(last) == {f"a{PART}", "new", "newer"}
    assert withdrawn(last) == {"a0"}
    assert not sends(last, MobileAddressRequest)


def test_more_changes_than_are_kept_lead_to_another_question() -> None:
    play = asked(3)
    first, second = parts_of(PART + 1, 3)
    hear(play, first)
    for number in range(MOST_CHANGES + 1):
        hear(play, mau(4 + number).message, TO_ALL_MA)
    assert sends(hear(play, second), MobileAddressRequest) == [
        (TO_B, MobileAddressRequest(id=A, have_seq=3 + MOST_CHANGES, parts=PARTS))
    ]


def asked_for(actions: Sequence[Action]) -> list[int]:
    """The first parts that were asked for."""
    requests = [message for _, message in sends(list(actions), MobileAddressRequest)]
    return [request.part for request in requests if isinstance(request, MobileAddressRequest)]


@pytest.mark.parametrize("lost", [0, 1, PARTS - 1, PARTS, PARTS + 1])
def test_a_part_that_is_lost_is_asked_for_again_with_all_behind_it(lost: int) -> None:
    play = asked(3)
    parts = parts_of((PARTS + 1) * PART + 1, 3)
    for number, part in enumerate(parts):
        if number != lost:
            hear(play, part)
    assert not play.control.nodes()[0].mobile_seq
    live(play, play.now + 0.6)
    assert asked_for(effects(play))[-1:] == [lost]
    for part in parts[lost:]:
        hear(play, part)
    assert len(play.control.addresses()) == (PARTS + 1) * PART + 1


def test_more_is_asked_for_when_some_have_come() -> None:
    play = asked(3)
    found = [asked_for(hear(play, part)) for part in parts_of(3 * PARTS * PART, 3)]
    assert [number for number, asking in enumerate(found, 1) if asking] == [PARTS, 2 * PARTS]
    assert [asking for asking in found if asking] == [[PARTS], [2 * PARTS]]


def test_nobody_asks_again_while_parts_arrive() -> None:
    play = asked(3)
    for part in parts_of(10 * PART, 3):
        live(play, play.now + 0.2)
        assert not asked_for(effects(play))
        hear(play, part)
    assert len(play.control.addresses()) == 10 * PART


def test_an_unreachable_router_begins_anew() -> None:
    play = asked(3)
    first, second = parts_of(PART + 1, 3)
    hear(play, first)
    play.control.check_invariants()
    addresses = play.control._addresses
    addresses.lose(B)
    addresses.reach(B, play.now)
    assert len(withdrawn(found := hear(play, second))) == len(installed(found)) == PART
    assert f"a{PART}" not in play.control.addresses()


def asks(part: int = 0, part_seq: int = 0, *, parts: int = PARTS, router: RouterId = C) -> ControlReceived:
    """C, or what claims to be *router*, asks A for all of its addresses."""
    return got(TO_C, MobileAddressRequest(id=router, have_seq=0, parts=parts, part=part, part_seq=part_seq), to=TO_ME)


def answers(play: Playbook) -> list[MobileAddressUpdate]:
    found = [message for _, message in sends(play.rest(), MobileAddressUpdate)]
    return [message for message in found if isinstance(message, MobileAddressUpdate) and message.is_absolute]


def subscribed(count: int) -> Playbook:
    """A with so many addresses."""
    play = quiet()
    play >> [FirstSubscriberAttached(address=f"a{number}", treatment=Treatment.CLOSEST) for number in range(count)]
    play.rest()
    return play


def test_who_takes_no_parts_is_answered_in_one_message() -> None:
    play = subscribed(2 * PART + 1)
    [answer] = answers(play >> asks(parts=0))
    assert (len(answer.exist or ()), answer.part, answer.parts) == (2 * PART + 1, 0, 1)
    assert not {"part", "parts"} & set(answer.to_body())


def test_nobody_is_sent_more_parts_than_it_asked_for() -> None:
    play = subscribed(2 * PARTS * PART + 1)
    found: list[MobileAddressUpdate] = []
    for part in (0, PARTS, 2 * PARTS):
        more = answers(play >> asks(part, 2 * PARTS + 1))
        assert len(more) == (PARTS if part < 2 * PARTS else 1)
        found += more
    assert [answer.part for answer in found] == list(range(2 * PARTS + 1))
    assert {(answer.parts, answer.mobile_seq) for answer in found} == {(2 * PARTS + 1, 2 * PARTS + 1)}
    assert len({key for answer in found for key in answer.exist or ()}) == 2 * PARTS * PART + 1


def test_all_parts_show_one_state() -> None:
    play = subscribed((PARTS + 1) * PART)
    answers(play >> asks())
    play >> LastSubscriberLeft(address="a0") >> FirstSubscriberAttached(address="late", treatment=Treatment.CLOSEST)
    [last] = answers(play >> asks(PARTS, PARTS + 1))
    assert (last.mobile_seq, last.exist) == (
        PARTS + 1,
        tuple(f"M0a{n}" for n in range(PARTS * PART, PARTS * PART + PART)),
    )


def test_who_asks_for_more_of_a_forgotten_state_is_told_the_present_from_the_start() -> None:
    play = subscribed((PARTS + 1) * PART)
    assert [answer.part for answer in answers(play >> asks(PARTS, PARTS + 1))] == [PARTS], "the same again"
    play >> LastSubscriberLeft(address="a0")
    live(play, play.now + MOST_LIST_AGE_S).rest()
    found = answers(play >> asks(PARTS, PARTS + 1))
    assert [(answer.part, answer.mobile_seq) for answer in found] == [(n, PARTS + 2) for n in range(PARTS)]


def test_who_reads_a_list_to_its_end_takes_it_from_nobody() -> None:
    play = subscribed((PARTS + 1) * PART)
    for router in (C, RouterId("x")):
        answers(play >> asks(router=router))
    play >> LastSubscriberLeft(address="a0")
    for router in (C, RouterId("x")):
        found = answers(play >> asks(PARTS, PARTS + 1, router=router))
        assert [(answer.part, answer.mobile_seq) for answer in found] == [(PARTS, PARTS + 1)]
    live(play, play.now + MOST_LIST_AGE_S).rest()
    assert not play.control._addresses._lists, "it is dropped when nobody reads it"


def test_a_list_whose_state_is_reached_by_a_change_is_read_no_further() -> None:
    play = quiet()
    hear(play, RouterAdvertisement(id=B, instance=BOOT, ls_seq=1, mobile_seq=1), TO_ALL)
    first, second = parts_of(PART + 1, 1)
    hear(play, first)
    hear(play, mau(3).message, TO_ALL_MA)
    hear(play, mau(1, "M0mine").message, TO_ALL_MA)
    hear(play, second)
    live(play, play.now + 2.0)
    assert set(asked_for(effects(play))) == {0}, "the list of a later state, from its beginning"


def keys(count: int, key: str = "X") -> tuple[str, ...]:
    return tuple(f"{key}{number}" for number in range(count))


def test_of_a_list_only_what_there_is_room_for_is_kept() -> None:
    settings = LinkStateSettings(max_router_addresses=100)
    play = quiet(settings)
    hear(play, mau(9).message, TO_ALL_MA)
    long = ("M0" + "x" * (MAX_ADDRESS_BYTES + 1), "M0$reserved")
    for part in range(3):
        texts = (*long, *(f"M0p{part}/{number}" for number in range(500)))
        hear(play, MobileAddressUpdate(id=B, mobile_seq=9, exist=texts, part=part, parts=2**62))
    arriving = play.control._addresses.routers[B].arriving
    assert arriving is not None
    assert len(arriving.addresses) == 100


def test_changes_that_wait_for_the_end_of_a_list_have_a_bound_in_bytes() -> None:
    play = asked(3)
    first, second = parts_of(PART + 1, 3)
    hear(play, first)
    change = keys(5000)
    for number in range(100):
        hear(play, mau(4 + number, *change).message, TO_ALL_MA)
    held = play.control._addresses.routers[B]
    assert held.arriving is not None
    assert sum(map(size_of, held.arriving.changes.values())) <= MOST_CHANGED_BYTES
    asking = sends(hear(play, second), MobileAddressRequest)
    assert asking, "what was not kept is asked for"
    assert play.control._addresses._changed_bytes == 0


def test_changes_that_wait_have_a_bound_for_all_routers_together() -> None:
    play = quiet()
    change = keys(9000)
    for number in range(100):
        forged = RouterId(f"forged{number}")
        hear(play, RouterAdvertisement(id=forged, instance=1, ls_seq=1, mobile_seq=9), TO_ALL)
        hear(play, MobileAddressUpdate(id=forged, mobile_seq=9, exist=(), part=0, parts=2))
        hear(play, MobileAddressUpdate(id=forged, mobile_seq=10, add=change, hints=()), TO_ALL_MA)
    lists = [held.arriving for held in play.control._addresses.routers.values() if held.arriving is not None]
    sizes = [size_of(kept) for each in lists for kept in each.changes.values()]
    assert len(lists) == 100
    assert 0 < sum(sizes) <= MOST_CHANGED_BYTES_OF_ALL


def lists() -> int:
    """Lists of all addresses of a router that there are."""
    return sum(isinstance(each, OutgoingAddressList) for each in gc.get_objects())


def test_all_that_ask_at_one_time_share_one_list_whatever_they_call_themselves() -> None:
    play = subscribed(PART + 1)
    before = lists()
    for number in range(100):
        found = answers(play >> asks(parts=1, router=RouterId(f"x{number}")))
        assert [(answer.part, answer.parts) for answer in found] == [(0, 2)]
    assert lists() - before <= 1


def test_lists_of_old_states_are_few_and_the_one_last_asked_for_stays() -> None:
    play = subscribed((PARTS + 1) * PART)
    before = lists()
    for number in range(3 * MOST_LISTS):
        answers(play >> asks())
        assert [answer.mobile_seq for answer in answers(play >> asks(1, PARTS + 1, parts=1))] == [PARTS + 1]
        play >> LastSubscriberLeft(address=f"a{number}")
    assert lists() - before <= MOST_LISTS


def test_one_that_takes_no_parts_disturbs_nobody_that_does() -> None:
    play = subscribed((PARTS + 1) * PART)
    answers(play >> asks())
    answers(play >> asks(parts=0))
    play >> LastSubscriberLeft(address="a0")
    assert [answer.mobile_seq for answer in answers(play >> asks(PARTS, PARTS + 1))] == [PARTS + 1]


def test_a_part_beyond_the_last_is_no_reason_to_say_anything() -> None:
    play = subscribed(1)
    assert answers(play >> asks(7, 1)) == []


def test_many_changes_of_one_turn_go_out_in_several_messages() -> None:
    play = quiet()
    count = 2 * PART + 1
    play >> [FirstSubscriberAttached(address=f"a{number}", treatment=Treatment.CLOSEST) for number in range(count)]
    told = [message for to, message in sends(play.rest(), MobileAddressUpdate) if to == TO_B]
    assert [(update.mobile_seq, len(update.add)) for update in told] == [(1, PART), (2, PART), (3, 1)]
    play >> [LastSubscriberLeft(address=f"a{number}") for number in range(count)]
    told = [message for to, message in sends(play.rest(), MobileAddressUpdate) if to == TO_B]
    assert [(update.mobile_seq, len(update.delete)) for update in told] == [(4, PART), (5, PART), (6, 1)]


def test_a_router_started_anew_learns_thousands_of_addresses_that_change_meanwhile() -> None:
    mesh = Mesh.of_edges([("A", "B", 1), ("B", "C", 1), ("C", "D", 1), ("D", "A", 1)], seed=3, bodies=True)
    for number in range(5 * PART):
        mesh.subscribe("A", f"a{number}")
    mesh.run_for(5.0)
    mesh.kill("C")
    mesh.run_for(1.0)
    mesh.restart("C")
    for number in range(40):
        mesh.run_for(0.001)
        mesh.subscribe("A", f"b{number}")
        mesh.unsubscribe("A", f"a{number}")
    mesh.run_for(10.0)
    known = mesh.routers[RouterId("C")].plane.addresses()
    assert set(known) == {f"a{n}" for n in range(40, 5 * PART)} | {f"b{n}" for n in range(40)}
    mesh.check_invariants()


@pytest.mark.parametrize("long", ["x" * 16_000, "é" * 8_000, "x" * 600])
def test_parts_are_cut_by_bytes_and_all_alike(long: str) -> None:
    addresses = [f"a{number}" if number % 3 else f"{number}{long}" for number in range(2000)]
    ends = cut(addresses)
    assert ends == cut(list(addresses))
    parts = list(pieces(addresses))
    assert [address for part in parts for address in part] == addresses
    for part in parts:
        assert 1 <= len(part) <= PART
        assert sum(len(address.encode()) for address in part) <= PART_BYTES
    for part, following in pairwise(parts):
        assert len(part) == PART or sum(len(one.encode()) for one in (*part, following[0])) > PART_BYTES


def test_no_addresses_are_told_in_one_part() -> None:
    assert list(pieces([])) == []
    answer = OutgoingAddressList(B, 1, {}, in_parts=True)
    assert answer.count == 1
    assert answer.part(0).exist == ()
