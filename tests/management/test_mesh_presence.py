"""What a router remembers of its mesh: nothing that is expected is ever forgotten."""

from __future__ import annotations

import itertools
import math

import attrs
import pytest

from mesh_config.generators import generate
from mesh_config.models import ConnectorSettings
from router.core.ids_and_conditions import RouterId
from router.mesh_presence import (
    COMPARED,
    KEPT_S,
    MOST_REASON,
    MOST_REFUSED,
    TOLD_AGAIN_S,
    ExpectedMesh,
    MeshPresence,
)

R1, R2, R3, STRANGER = map(RouterId, ("R1", "R2", "R3", "X"))


@pytest.fixture
def presence() -> MeshPresence:
    """R1 of the line R1 - R2 - R3."""
    return MeshPresence(R1, ExpectedMesh.of(generate("line", 3)), 100.0)


def edges(*pairs: tuple[RouterId, RouterId], cost: int = 1) -> dict[RouterId, dict[RouterId, int]]:
    found: dict[RouterId, dict[RouterId, int]] = {}
    for one, other in pairs:
        found.setdefault(one, {})[other] = cost
        found.setdefault(other, {})[one] = cost
    return found


def test_routers_and_links_of_the_file_are_absent_from_the_start(presence: MeshPresence) -> None:
    assert {router: (it.is_expected, it.is_present, it.since) for router, it in presence.routers.items()} == {
        R2: (True, False, 100.0),
        R3: (True, False, 100.0),
    }
    assert list(presence.links) == [(R1, R2), (R2, R3)]
    assert presence.reason(R3) == "never seen since this router started"


def test_a_loss_is_a_flap_with_its_time(presence: MeshPresence) -> None:
    for at in (110.0, 120.0):
        presence.reached(R2, at)
        presence.lost(R2, at + 5)
        presence.lost(R2, at + 6)
    assert attrs.asdict(presence.routers[R2]) | {"flaps": 2, "last_flap": 125.0, "since": 125.0} == attrs.asdict(
        presence.routers[R2]
    )
    presence.reached(R2, 130.0)
    assert presence.routers[R2].is_present
    assert presence.routers[R2].last_flap == 125.0
    assert presence.reason(R2) == ""


def test_a_neighbor_that_starts_and_does_not_name_this_router_yet_is_not_lost(
    presence: MeshPresence,
) -> None:
    presence.reached(R2, 110.0)
    presence.topology_changed(edges((R1, R2)), 110.0, [R2])
    presence.topology_changed(edges((R2, R3)), 110.1, [R2])
    presence.lost(R2, 110.1, [R2])
    assert presence.is_present(R2)
    assert presence.link_reason((R1, R2)) == ""
    presence.reached(R2, 110.2)
    presence.topology_changed(edges((R1, R2), (R2, R3)), 110.2, [R2])
    assert (presence.routers[R2].flaps, presence.links[R1, R2].flaps) == (0, 0)


@pytest.mark.parametrize("has_path", [True, False])
def test_a_neighbor_that_never_names_this_router_is_lost_when_it_goes(presence: MeshPresence, has_path: bool) -> None:
    presence.reached(R2, 110.0)
    presence.topology_changed(edges((R1, R2)), 110.0, [R2])
    presence.topology_changed(edges((R2, R3)), 110.1, [R2])
    presence.lost(R2, 110.1, [R2])
    presence.neighbor_lost(R2, 120.0, [], has_path=has_path)
    assert (presence.routers[R2].last_flap, presence.links[R1, R2].last_flap) == (None if has_path else 120.0, 120.0)


def test_the_reason_of_a_loss_is_how_the_connection_ended(presence: MeshPresence) -> None:
    presence.reached(R2, 110.0)
    presence.connection_ended(R2, "Connection reset by peer", 120.0)
    presence.lost(R2, 120.01)
    assert presence.reason(R2) == "its connection ended: Connection reset by peer"


def test_the_reason_of_the_last_loss_is_kept_when_it_is_over(presence: MeshPresence) -> None:
    both = edges((R1, R2), (R2, R3))
    for router in (R2, R3):
        presence.reached(router, 110.0)
    presence.topology_changed(both, 110.0)
    presence.connection_ended(R2, "Connection reset by peer", 120.0)
    for router in (R3, R2):
        presence.lost(router, 120.0)
    presence.topology_changed({}, 120.0)
    presence.connection_ended(R2, "Connection refused", 140.0)  # an attempt to come back
    for router in (R2, R3):
        presence.reached(router, 150.0)
    presence.topology_changed(both, 150.0)
    ended = "its connection ended: Connection reset by peer"
    assert [(it.last_flap, it.last_reason, it.reason) for it in presence.routers.values()] == [
        (120.0, ended, ""),
        (120.0, "no path is left: its neighbors are absent too", ""),
    ]
    assert [(presence.links[pair].last_reason, presence.link_reason(pair)) for pair in ((R1, R2), (R2, R3))] == [
        (ended, ""),
        ("R2 and R3 were lost", ""),
    ]
    presence.topology_changed(edges((R1, R2)), 160.0)
    assert presence.link_reason((R2, R3)) == presence.links[R2, R3].last_reason == "its ends saw each other no more"


def test_of_an_own_link_that_cannot_be_made_anew_the_reason_says_why(presence: MeshPresence) -> None:
    ways = edges((R1, R2), (R1, R3), (R2, R3))
    for router in (R2, R3):
        presence.reached(router, 110.0)
    presence.topology_changed(ways, 110.0)
    presence.connection_ended(R2, "Connection reset by peer", 120.0)
    presence.topology_changed(edges((R1, R3), (R2, R3)), 120.0)
    ended = "its connection ended: Connection reset by peer"
    assert presence.link_reason((R1, R2)) == ended
    presence.dial_failed(R2, "Connection refused")
    assert presence.link_reason((R1, R2)) == f"{ended}; connecting to it fails: Connection refused"
    presence.topology_changed(ways, 130.0)
    assert presence.link_reason((R1, R2)) == ""
    presence.lost(R2, 140.0)
    assert "connecting" not in presence.reason(R2), "that was before"


def test_an_end_that_is_heard_of_after_the_silence_is_the_reason(presence: MeshPresence) -> None:
    presence.reached(R2, 110.0)
    presence.topology_changed(edges((R1, R2)), 110.0)
    presence.lost(R2, 120.0)
    presence.topology_changed({}, 120.0)
    silent = "it fell silent, or speaks to this router no more"
    assert (presence.reason(R2), presence.links[R1, R2].last_reason) == (silent, silent)
    presence.connection_ended(R2, "local-idle-timeout expired", 121.0)
    ended = "its connection ended: local-idle-timeout expired"
    assert (presence.reason(R2), presence.links[R1, R2].last_reason) == (ended, ended)


def test_a_connector_keeps_the_reason_of_its_last_loss(presence: MeshPresence) -> None:
    presence.connector_up("c", 110.0)
    presence.connector_down("c", "Connection reset by peer", 120.0)
    presence.connector_up("c", 121.0)
    known = presence.connectors["c"]
    assert (known.flaps, known.last_flap, known.last_reason, known.reason) == (1, 120.0, "Connection reset by peer", "")


def test_a_connector_whose_peer_is_not_understood_has_the_reason_until_it_is(presence: MeshPresence) -> None:
    presence.connector_not_understood("c", "no section has the descriptor 0x7")
    known = presence.connectors["c"]
    told = "what the other side says can't be read: no section has the descriptor 0x7"
    assert (known.is_present, known.reason) == (False, told)
    presence.connector_up("c", 110.0)
    presence.connector_not_understood("c", "one message of many")
    assert (known.is_present, known.reason) == (True, "")


def test_a_neighbor_that_never_came_has_the_last_refusal_in_its_reason(presence: MeshPresence) -> None:
    never = "never seen since this router started"
    presence.router_refused("", "10.0.0.9", "TLS: the peer shows no certificate", 110.0)
    assert presence.reason(R2) == (
        f"{never}; a router from 10.0.0.9 was refused here, which may be it: TLS: the peer shows no certificate"
    )
    assert presence.reason(R3) == never, "it is no neighbor"
    presence.router_refused(R2, "10.0.0.2", "router R2 is of mesh two, and this one of mesh one", 111.0)
    assert presence.reason(R2) == f"{never}; it was refused here: router R2 is of mesh two, and this one of mesh one"
    presence.dial_failed(R3, "timed out")
    assert presence.reason(R3) == f"{never}; connecting to it fails: timed out"
    for router in (R2, R3):
        presence.reached(router, 120.0)
        presence.lost(router, 130.0)
        assert ";" not in presence.reason(router)


def test_who_was_refused_without_a_name_is_forgotten_once_a_router_came_from_there(presence: MeshPresence) -> None:
    # a router that stood still is refused for being late, and is let in the next time
    presence.router_refused("", "10.0.0.2", "no Open within 10 s", 110.0)
    presence.router_refused("", "10.0.0.9", "no Open within 10 s", 110.0)
    presence.router_refused(R2, "10.0.0.2", "router R2 is of mesh two, and this one of mesh one", 111.0)
    presence.router_let_in("10.0.0.2")
    assert list(presence.refused_routers) == [("", "10.0.0.9"), (R2, "10.0.0.2")]


def test_refused_routers_are_bounded_in_number_and_words(presence: MeshPresence) -> None:
    for number in range(2 * MOST_REFUSED):
        presence.router_refused("", f"host-{number}", "x" * 10_000, 110.0)
    assert len(presence.refused_routers) == MOST_REFUSED
    assert {len(each.reason) for each in presence.refused_routers.values()} == {MOST_REASON}


def test_of_a_router_further_away_the_reason_names_who_lost_it(presence: MeshPresence) -> None:
    presence.reached(R2, 110.0)
    presence.reached(R3, 110.0)
    presence.lost(R3, 120.0)
    assert presence.reason(R3) == "lost by its neighbors: R2"
    presence.lost(R2, 121.0)
    assert presence.reason(R3) == "no path is left: its neighbors are absent too"


def test_links_come_and_go_with_the_topology(presence: MeshPresence) -> None:
    presence.topology_changed(edges((R1, R2), (R2, R3), cost=4), 110.0)
    assert all(link.is_present and link.cost == 4 for link in presence.links.values())
    presence.topology_changed(edges((R1, R2)), 120.0)
    lost = presence.links[R2, R3]
    assert (lost.is_present, lost.flaps, lost.last_flap, lost.cost) == (False, 1, 120.0, 4)
    assert not presence.is_known((R2, R3))
    presence.reached(R2, 121.0)
    assert presence.is_known((R2, R3))


def test_what_no_file_names_is_forgotten_a_day_after_it_is_gone(presence: MeshPresence) -> None:
    presence.reached(STRANGER, 110.0)
    presence.lost(STRANGER, 120.0)
    presence.forget_old(120.0 + KEPT_S - 1)
    assert STRANGER in presence.routers
    presence.forget_old(120.0 + 2 * KEPT_S)
    assert set(presence.routers) == {R2, R3}


def test_a_file_that_changes_takes_expectations_with_it(presence: MeshPresence) -> None:
    presence.reached(R3, 110.0)
    presence.expect(ExpectedMesh.of(generate("line", 2)), 120.0)
    assert not presence.routers[R3].is_expected
    assert presence.routers[R3].is_present
    assert presence.routers[R2].is_expected


def test_what_leaves_the_file_is_forgotten_once_it_is_absent(presence: MeshPresence) -> None:
    presence.reached(R3, 110.0)
    presence.lost(R3, 115.0)
    presence.expect(ExpectedMesh.of(generate("line", 2)), 120.0)
    assert set(presence.routers) == {R2}
    assert not [pair for pair in presence.links if R3 in pair]
    presence.reached(R3, 130.0)
    assert not presence.routers[R3].is_expected


def test_who_comes_to_the_wrong_listener_is_told_of_once_in_an_hour(presence: MeshPresence) -> None:
    assert presence.refused("R9", "10.0.0.9", "this listener is for clients", 110.0)
    assert not any(presence.refused("R9", "10.0.0.9", "this listener is for clients", 110.0 + at) for at in range(1, 9))
    found = presence.misdirected["R9", "this listener is for clients"]
    assert (found.first, found.last) == (110.0, 118.0)
    assert presence.refused("R9", "10.0.0.9", "this listener is for clients", 118.0 + TOLD_AGAIN_S)
    for number in range(1000):
        presence.refused(f"R{number}", "", "wrong", 200.0)
    assert len(presence.misdirected) <= 100


def test_links_of_a_large_dense_mesh_are_compared_a_few_at_a_time(presence: MeshPresence) -> None:
    routers = [RouterId(f"T{number:03}") for number in range(60)]
    links = list(itertools.combinations(routers, 2))
    told = [0]

    def settle(now: float) -> None:
        while presence.due < math.inf:
            before = sum(link.is_present for link in presence.links.values())
            now = presence.due
            presence.go_on(now)
            told.append(abs(sum(link.is_present for link in presence.links.values()) - before))

    for router in routers:
        presence.reached(router, 110.0)
    presence.topology_changed(edges(*links), 110.0)
    settle(110.0)
    assert sum(link.is_present for link in presence.links.values()) == len(links)
    for router in routers:
        presence.lost(router, 120.0)
    presence.topology_changed({}, 120.0)
    settle(120.0)
    assert not any(link.is_present for link in presence.links.values())
    assert {presence.routers[router].last_reason for router in routers} == {
        "no path is left: its neighbors are absent too"
    }
    assert max(told) <= COMPARED + len(routers)
    presence.topology_changed(edges((routers[0], routers[1])), 130.0)  # a small change is seen at once
    assert presence.links[routers[0], routers[1]].is_present
    assert presence.due == math.inf


def test_a_connector_that_was_taken_away_is_no_reason_for_an_absence(presence: MeshPresence) -> None:
    one, other = ConnectorSettings(to="R2", port=1), ConnectorSettings(to="R2", port=1, cost=2)
    presence.dial_failed(R2, "Connection refused")
    presence.connector_up(one.effective_name, 110.0)
    presence.connector_removed(one, [other])
    assert "Connection refused" in presence.reason(R2)
    assert one.effective_name in presence.connectors
    presence.connector_removed(other, [])
    assert "connecting" not in presence.reason(R2)
    assert not presence.connectors
