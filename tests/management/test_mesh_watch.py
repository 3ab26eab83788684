"""What a router remembers of its mesh: nothing that is expected is ever forgotten."""

from __future__ import annotations

import itertools
import math

import attrs
import pytest

from mesh_config.generators import generate
from router.core.ids_and_conditions import RouterId
from router.mesh_watch import COMPARED, KEPT_S, MOST_REASON, MOST_REFUSED, TOLD_AGAIN_S, ExpectedMesh, MeshWatch

R1, R2, R3, STRANGER = map(RouterId, ("R1", "R2", "R3", "X"))


@pytest.fixture
def watch() -> MeshWatch:
    """R1 of the line R1 - R2 - R3."""
    return MeshWatch(R1, ExpectedMesh.of(generate("line", 3)), 100.0)


def edges(*pairs: tuple[RouterId, RouterId], cost: int = 1) -> dict[RouterId, dict[RouterId, int]]:
    found: dict[RouterId, dict[RouterId, int]] = {}
    for one, other in pairs:
        found.setdefault(one, {})[other] = cost
        found.setdefault(other, {})[one] = cost
    return found


def test_routers_and_links_of_the_file_are_absent_from_the_start(watch: MeshWatch) -> None:
    assert {router: (it.is_expected, it.is_present, it.since) for router, it in watch.routers.items()} == {
        R2: (True, False, 100.0),
        R3: (True, False, 100.0),
    }
    assert list(watch.links) == [(R1, R2), (R2, R3)]
    assert watch.reason(R3) == "never seen since this router started"


def test_a_loss_is_a_flap_with_its_time(watch: MeshWatch) -> None:
    for at in (110.0, 120.0):
        watch.reached(R2, at)
        watch.lost(R2, at + 5)
        watch.lost(R2, at + 6)
    assert attrs.asdict(watch.routers[R2]) | {"flaps": 2, "last_flap": 125.0, "since": 125.0} == attrs.asdict(
        watch.routers[R2]
    )
    watch.reached(R2, 130.0)
    assert watch.routers[R2].is_present
    assert watch.routers[R2].last_flap == 125.0
    assert watch.reason(R2) == ""


def test_the_reason_of_a_loss_is_how_the_connection_ended(watch: MeshWatch) -> None:
    watch.reached(R2, 110.0)
    watch.connection_ended(R2, "Connection reset by peer", 120.0)
    watch.lost(R2, 120.01)
    assert watch.reason(R2) == "its connection ended: Connection reset by peer"


def test_the_reason_of_the_last_loss_is_kept_when_it_is_over(watch: MeshWatch) -> None:
    both = edges((R1, R2), (R2, R3))
    for router in (R2, R3):
        watch.reached(router, 110.0)
    watch.topology_changed(both, 110.0)
    watch.connection_ended(R2, "Connection reset by peer", 120.0)
    for router in (R3, R2):
        watch.lost(router, 120.0)
    watch.topology_changed({}, 120.0)
    watch.connection_ended(R2, "Connection refused", 140.0)  # an attempt to come back
    for router in (R2, R3):
        watch.reached(router, 150.0)
    watch.topology_changed(both, 150.0)
    ended = "its connection ended: Connection reset by peer"
    assert [(it.last_flap, it.last_reason, it.reason) for it in watch.routers.values()] == [
        (120.0, ended, ""),
        (120.0, "no path is left: its neighbors are absent too", ""),
    ]
    assert [(watch.links[pair].last_reason, watch.link_reason(pair)) for pair in ((R1, R2), (R2, R3))] == [
        (ended, ""),
        ("R2 and R3 were lost", ""),
    ]
    watch.topology_changed(edges((R1, R2)), 160.0)
    assert watch.link_reason((R2, R3)) == watch.links[R2, R3].last_reason == "its ends saw each other no more"


def test_of_an_own_link_that_cannot_be_made_anew_the_reason_says_why(watch: MeshWatch) -> None:
    ways = edges((R1, R2), (R1, R3), (R2, R3))
    for router in (R2, R3):
        watch.reached(router, 110.0)
    watch.topology_changed(ways, 110.0)
    watch.connection_ended(R2, "Connection reset by peer", 120.0)
    watch.topology_changed(edges((R1, R3), (R2, R3)), 120.0)
    ended = "its connection ended: Connection reset by peer"
    assert watch.link_reason((R1, R2)) == ended
    watch.dial_failed(R2, "Connection refused")
    assert watch.link_reason((R1, R2)) == f"{ended}; connecting to it fails: Connection refused"
    watch.topology_changed(ways, 130.0)
    assert watch.link_reason((R1, R2)) == ""
    watch.lost(R2, 140.0)
    assert "connecting" not in watch.reason(R2), "that was before"


def test_an_end_that_is_heard_of_after_the_silence_is_the_reason(watch: MeshWatch) -> None:
    watch.reached(R2, 110.0)
    watch.topology_changed(edges((R1, R2)), 110.0)
    watch.lost(R2, 120.0)
    watch.topology_changed({}, 120.0)
    silent = "it fell silent, or speaks to this router no more"
    assert (watch.reason(R2), watch.links[R1, R2].last_reason) == (silent, silent)
    watch.connection_ended(R2, "local-idle-timeout expired", 121.0)
    ended = "its connection ended: local-idle-timeout expired"
    assert (watch.reason(R2), watch.links[R1, R2].last_reason) == (ended, ended)


def test_a_connector_keeps_the_reason_of_its_last_loss(watch: MeshWatch) -> None:
    watch.connector_up("c", 110.0)
    watch.connector_down("c", "Connection reset by peer", 120.0)
    watch.connector_up("c", 121.0)
    known = watch.connectors["c"]
    assert (known.flaps, known.last_flap, known.last_reason, known.reason) == (1, 120.0, "Connection reset by peer", "")


def test_a_neighbor_that_never_came_has_the_last_refusal_in_its_reason(watch: MeshWatch) -> None:
    never = "never seen since this router started"
    watch.router_refused("", "10.0.0.9", "TLS: the peer shows no certificate", 110.0)
    assert watch.reason(R2) == (
        f"{never}; who was refused last at a listener for routers, from 10.0.0.9: TLS: the peer shows no certificate"
    )
    assert watch.reason(R3) == never, "it is no neighbor"
    watch.router_refused(R2, "10.0.0.2", "router R2 is of mesh two, and this one of mesh one", 111.0)
    assert watch.reason(R2) == f"{never}; it was refused here: router R2 is of mesh two, and this one of mesh one"
    watch.dial_failed(R3, "timed out")
    assert watch.reason(R3) == f"{never}; connecting to it fails: timed out"
    for router in (R2, R3):
        watch.reached(router, 120.0)
        watch.lost(router, 130.0)
        assert ";" not in watch.reason(router)


def test_who_was_refused_without_a_name_is_forgotten_once_a_router_came_from_there(watch: MeshWatch) -> None:
    # a router that stood still is refused for being late, and is let in the next time
    watch.router_refused("", "10.0.0.2", "no Open within 10 s", 110.0)
    watch.router_refused("", "10.0.0.9", "no Open within 10 s", 110.0)
    watch.router_refused(R2, "10.0.0.2", "router R2 is of mesh two, and this one of mesh one", 111.0)
    watch.router_let_in("10.0.0.2")
    assert list(watch.refused_routers) == [("", "10.0.0.9"), (R2, "10.0.0.2")]


def test_refused_routers_are_bounded_in_number_and_words(watch: MeshWatch) -> None:
    for number in range(2 * MOST_REFUSED):
        watch.router_refused("", f"host-{number}", "x" * 10_000, 110.0)
    assert len(watch.refused_routers) == MOST_REFUSED
    assert {len(each.reason) for each in watch.refused_routers.values()} == {MOST_REASON}


def test_of_a_router_further_away_the_reason_names_who_lost_it(watch: MeshWatch) -> None:
    watch.reached(R2, 110.0)
    watch.reached(R3, 110.0)
    watch.lost(R3, 120.0)
    assert watch.reason(R3) == "lost by its neighbors: R2"
    watch.lost(R2, 121.0)
    assert watch.reason(R3) == "no path is left: its neighbors are absent too"


def test_links_come_and_go_with_the_topology(watch: MeshWatch) -> None:
    watch.topology_changed(edges((R1, R2), (R2, R3), cost=4), 110.0)
    assert all(link.is_present and link.cost == 4 for link in watch.links.values())
    watch.topology_changed(edges((R1, R2)), 120.0)
    lost = watch.links[R2, R3]
    assert (lost.is_present, lost.flaps, lost.last_flap, lost.cost) == (False, 1, 120.0, 4)
    assert not watch.is_known((R2, R3))
    watch.reached(R2, 121.0)
    assert watch.is_known((R2, R3))


def test_what_no_file_names_is_forgotten_a_day_after_it_is_gone(watch: MeshWatch) -> None:
    watch.reached(STRANGER, 110.0)
    watch.lost(STRANGER, 120.0)
    watch.forget_old(120.0 + KEPT_S - 1)
    assert STRANGER in watch.routers
    watch.forget_old(120.0 + 2 * KEPT_S)
    assert set(watch.routers) == {R2, R3}


def test_a_file_that_changes_takes_expectations_with_it(watch: MeshWatch) -> None:
    watch.reached(R3, 110.0)
    watch.expect(ExpectedMesh.of(generate("line", 2)), 120.0)
    assert not watch.routers[R3].is_expected
    assert watch.routers[R3].is_present
    assert watch.routers[R2].is_expected


def test_who_comes_to_the_wrong_listener_is_told_of_once_in_an_hour(watch: MeshWatch) -> None:
    assert watch.refused("R9", "10.0.0.9", "this listener is for clients", 110.0)
    assert not any(watch.refused("R9", "10.0.0.9", "this listener is for clients", 110.0 + at) for at in range(1, 9))
    found = watch.misdirected["R9", "this listener is for clients"]
    assert (found.first, found.last) == (110.0, 118.0)
    assert watch.refused("R9", "10.0.0.9", "this listener is for clients", 118.0 + TOLD_AGAIN_S)
    for number in range(1000):
        watch.refused(f"R{number}", "", "wrong", 200.0)
    assert len(watch.misdirected) <= 100


def test_links_of_a_large_dense_mesh_are_compared_a_few_at_a_time(watch: MeshWatch) -> None:
    routers = [RouterId(f"T{number:03}") for number in range(60)]
    links = list(itertools.combinations(routers, 2))
    told = [0]

    def settle(now: float) -> None:
        while watch.due < math.inf:
            before = sum(link.is_present for link in watch.links.values())
            now = watch.due
            watch.go_on(now)
            told.append(abs(sum(link.is_present for link in watch.links.values()) - before))

    for router in routers:
        watch.reached(router, 110.0)
    watch.topology_changed(edges(*links), 110.0)
    settle(110.0)
    assert sum(link.is_present for link in watch.links.values()) == len(links)
    for router in routers:
        watch.lost(router, 120.0)
    watch.topology_changed({}, 120.0)
    settle(120.0)
    assert not any(link.is_present for link in watch.links.values())
    assert {watch.routers[router].last_reason for router in routers} == {
        "no path is left: its neighbors are absent too"
    }
    assert max(told) <= COMPARED + len(routers)
    watch.topology_changed(edges((routers[0], routers[1])), 130.0)  # a small change is seen at once
    assert watch.links[routers[0], routers[1]].is_present
    assert watch.due == math.inf
