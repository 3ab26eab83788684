"""What the demonstration makes of its clients' reports: paths, percentiles, and what it calls a fault."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest

from mesh_config.check import check_mesh
from router.cli.demo.blueprint import CALLERS, CUT, DESTINATIONS, ROUTERS, SERVERS, by_wire, settings
from router.cli.demo.display_state import DisplayState
from router.cli.demo.measures import Measures, percentile
from router.cli.demo.reported_routes import (
    RouteEntry,
    Routes,
    are_neighbors,
    from_json,
    is_full,
    path,
    path_text,
    to_json,
)
from router.cli.demo.summary import LINE, faults, shortened
from router.cli.demo.text_diagram import picture

CUT_AT = 100.0
LATER = CUT_AT + 5.0


def full_mesh(*without: str) -> Routes:
    """Routes of four routers; of neighbors *without* a link, as `AC`, each reaches the other through B."""

    def route(one: str, other: str) -> RouteEntry:
        is_cut = one + other in without or other + one in without
        return RouteEntry(next_hop="B", cost=2) if is_cut else RouteEntry(next_hop=other, cost=1)

    return {one: {other: route(one, other) for other in ROUTERS if other != one} for one in ROUTERS}


@pytest.fixture
def scene() -> DisplayState:
    """A run in which every call was answered, and one cast of each kind arrived."""
    scene = DisplayState(seconds=10, routes=full_mesh())
    measures = scene.measures
    measures.began_at = CUT_AT - 5
    scene.paths_before = scene.paths()
    for at in (CUT_AT - 2, LATER):
        if at == LATER:
            measures.cut_at = CUT_AT
        for router in CALLERS:
            for where in DESTINATIONS:
                measures.add_call(router, where, at, at + 0.01, where if where in SERVERS.values() else "server-D", "")
    scene.routes = full_mesh("AC")
    send(measures, "caller-B/1", LATER, casts=["server-A"], fanouts=SERVERS.values())
    return scene


def send(measures: Measures, ident: str, at: float, *, casts: Iterable[str], fanouts: Iterable[str]) -> None:
    measures.casts.sent[ident] = measures.fanouts.sent[ident] = at
    for server in casts:
        measures.casts.received[server][ident] += 1
    for server in fanouts:
        measures.fanouts.received[server][ident] += 1


def test_a_run_without_a_fault_has_none(scene: DisplayState) -> None:
    assert faults(scene) == []
    assert scene.measures.underway == []
    assert scene.resumed_s() == pytest.approx(LATER + 0.01 - CUT_AT)


def test_the_path_follows_the_next_hops() -> None:
    assert path(full_mesh(), "C", "A") == ("C", "A")
    assert path(full_mesh("AC"), "C", "A") == ("C", "B", "A")
    assert path(full_mesh(), "D", "D") == ("D",)
    assert path_text(path(full_mesh("AC"), "C", "A")) == "C -> B -> A"


def test_routers_that_disagree_give_no_path() -> None:
    routes = {"C": {"A": RouteEntry(next_hop="B", cost=2)}, "B": {"A": RouteEntry(next_hop="C", cost=2)}}
    assert path(routes, "C", "A") is None
    assert path({}, "C", "A") is None
    assert path_text(None) == "?"


def test_a_mesh_is_full_when_every_router_reaches_every_other_directly() -> None:
    assert is_full(full_mesh(), ROUTERS)
    assert not is_full(full_mesh("AC"), ROUTERS)
    assert not is_full({router: routes for router, routes in full_mesh().items() if router != "D"}, ROUTERS)
    assert not are_neighbors(full_mesh("AC"), "A", "C")
    assert from_json(to_json(full_mesh("AC"))) == full_mesh("AC")  # type: ignore[arg-type]


def test_a_percentile_is_one_of_the_values() -> None:
    values = [float(number) for number in range(1, 101)]
    assert (percentile(values, 0.5), percentile(values, 0.99), percentile(values, 1.0)) == (50.0, 99.0, 100.0)
    assert percentile([7.0], 0.99) == 7.0
    assert math.isnan(percentile([], 0.5))


@pytest.mark.parametrize(
    ("router", "where", "began", "ended", "is_fault"),
    [
        ("B", "server-A", CUT_AT - 1, CUT_AT + 1, True),
        ("C", "server-D", CUT_AT - 1, CUT_AT + 1, True),
        ("C", "server-A", CUT_AT - 1, CUT_AT - 0.5, True),
        ("C", "server-A", CUT_AT - 0.01, CUT_AT + 4, False),
        ("C", "any server", CUT_AT + 0.01, CUT_AT + 4, False),
        ("C", "server-A", CUT_AT + 1, CUT_AT + 2, True),
    ],
)
def test_only_a_call_that_was_on_the_link_may_fail(
    scene: DisplayState, router: str, where: str, began: float, ended: float, is_fault: bool
) -> None:
    scene.measures.add_call(router, where, began, ended, "", "MessagingTimeout: no reply")
    assert [f"call of {CALLERS[router]} to {where} failed" in fault for fault in faults(scene)] == [True] * is_fault
    assert len(scene.measures.underway) == (not is_fault)


def test_a_lost_fanout_is_a_fault(scene: DisplayState) -> None:
    send(scene.measures, "caller-C/7", LATER, casts=["server-D"], fanouts=["server-D"])
    assert scene.measures.is_missing()
    assert faults(scene) == ["fanout cast caller-C/7 did not reach server-A, sent 5000 ms after the cut"]


def test_a_fanout_that_was_on_the_link_comes_by_the_other_way(scene: DisplayState) -> None:
    send(scene.measures, "caller-C/7", CUT_AT - 0.01, casts=["server-D"], fanouts=["server-D"])
    assert faults(scene) == ["fanout cast caller-C/7 did not reach server-A, sent 10 ms before the cut"]
    assert scene.measures.underway == []


def test_a_fanout_that_comes_twice_is_a_fault(scene: DisplayState) -> None:
    scene.measures.fanouts.received["server-D"]["caller-B/1"] += 1
    assert faults(scene) == ["server-D got fanout cast caller-B/1 2 times"]


def test_a_cast_that_both_servers_get_is_a_fault(scene: DisplayState) -> None:
    scene.measures.casts.received["server-D"]["caller-B/1"] += 1
    assert faults(scene) == ["cast caller-B/1 came to several servers"]


def test_a_path_that_stays_as_it_was_is_a_fault(scene: DisplayState) -> None:
    scene.routes = full_mesh()
    assert faults(scene) == ["after the cut the path from C to A is C -> A, not another one"]


def test_the_mesh_file_is_without_findings() -> None:
    clients = {router: 21000 + number for number, router in enumerate(ROUTERS)}
    neighbors = {router: 22000 + number for number, router in enumerate(ROUTERS)}
    mesh = settings(clients, neighbors)
    assert check_mesh(mesh) == ()
    ports = {connector.to: connector.port for connector in by_wire(mesh.routers[CUT[1]], 23000).connectors}
    assert ports == {None: 23000, "B": neighbors["B"]}


def test_the_picture_shows_the_cut() -> None:
    whole = picture(ROUTERS, [("A", "C")], [("A", "C")], None).plain
    assert "server-A  A ───" in whole
    assert "cut" not in whole
    assert "cut" in picture(ROUTERS, [], [], CUT).plain


def test_a_long_line_ends_with_a_whole_word() -> None:
    words = "  MessageDeliveryFailure: " + "disposition " * LINE
    found = shortened(words)
    assert len(found) <= LINE
    assert found.startswith("  MessageDeliveryFailure: disposition ")
    assert found.endswith(" disposition ...")
    fitting = "  " + "x" * (LINE - 2)
    assert shortened(fitting) == fitting
    assert len(shortened(fitting + "x")) == LINE
