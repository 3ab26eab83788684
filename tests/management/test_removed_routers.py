"""A router that left the mesh and its file is forgotten, with all links to it, whatever its neighbors still say."""

from __future__ import annotations

import pytest

from router.core.ids_and_conditions import RouterId
from router.mesh_presence import ExpectedMesh, MeshPresence
from router.runtime import Runtime
from router.views.problem_snapshots import ProblemScanner
from tests.helpers.engine import Bench, Wire

PAIRS = (("A", "B"), ("A", "C"), ("B", "C"), ("B", "D"), ("C", "D"))


def expected(*left: str) -> ExpectedMesh:
    """Those of *left* alone."""
    pairs = [(RouterId(one), RouterId(other)) for one, other in PAIRS if one in left and other in left]
    return ExpectedMesh(name="mesh", routers={RouterId(each): None for each in left}, links=dict.fromkeys(pairs, 1))


def expect(runtime: Runtime, *left: str) -> None:
    runtime.mesh_presence.expect(expected(*left), runtime.clock())


@pytest.mark.parametrize("reloaded_after_s", [0.5, 5.0])
@pytest.mark.parametrize(("first", "gap_s"), [("B", 0.0), ("B", 0.3), ("C", 0.0), ("C", 4.0)])
def test_a_removed_router_leaves_no_absent_link(reloaded_after_s: float, first: str, gap_s: float) -> None:
    # Link state of the removed router is held for a minute, and names its neighbors.
    bench = Bench()
    routers = {each: bench.router(each) for each in "ABCD"}
    for runtime in routers.values():
        expect(runtime, *"ABCD")
    wires: dict[tuple[str, str], Wire] = {pair: bench.join(*(routers[each] for each in pair)) for pair in PAIRS}
    bench.advance(5.0)
    for pair in sorted((pair for pair in PAIRS if "D" in pair), key=lambda pair: first not in pair):
        wires[pair].cut()
        bench.run()
        bench.advance(gap_s if first in pair else 0.0)
    bench.advance(reloaded_after_s)
    for each in "ABC":
        expect(routers[each], *"ABC")
    for pair in (("A", "C"), ("B", "C")):
        wires[pair].cut()
    bench.run()
    bench.advance(2.0)
    routers["C"] = bench.router("C")
    expect(routers["C"], *"ABC")
    for pair in (("A", "C"), ("B", "C")):
        bench.join(*(routers[each] for each in pair))
    bench.advance(100.0)
    for each in "ABC":
        presence = routers[each].mesh_presence
        assert sorted(presence.links) == [("A", "B"), ("A", "C"), ("B", "C")], each
        assert not [found for found in ProblemScanner(routers[each], [], []).problems() if found.kind == "link-absent"]


@pytest.mark.parametrize("order", ["CAB", "ABC", "ACB"])
def test_a_link_that_was_taken_out_of_the_file_is_no_absent_one_in_any_order(order: str) -> None:
    bench = Bench()
    routers = {each: bench.router(each) for each in "ABC"}
    pairs = [pair for pair in PAIRS if "D" not in pair]
    for runtime in routers.values():
        expect(runtime, *"ABC")
    wires = {pair: bench.join(*(routers[each] for each in pair)) for pair in pairs}
    bench.advance(5.0)
    without = expected(*"ABC")
    del without.links[RouterId("A"), RouterId("C")]
    for each in order:
        routers[each].mesh_presence.expect(without, routers[each].clock())
        if each == "C":  # the one whose connector it was
            wires["A", "C"].cut()
            bench.run()
        bench.advance(1.0)
    for each in "ABC":
        assert sorted(routers[each].mesh_presence.links) == [("A", "B"), ("B", "C")], each
        assert not [found for found in ProblemScanner(routers[each], [], []).problems() if found.kind == "link-absent"]


def test_a_link_that_goes_after_its_router_was_forgotten_is_forgotten_too() -> None:
    a, b, c = map(RouterId, "ABC")
    presence = MeshPresence(a, expected(*"ABC"), 100.0)
    there = {a: {b: 1}, b: {a: 1, c: 1}, c: {b: 1}}
    presence.reached(b, 101.0)
    presence.reached(c, 101.0)
    presence.topology_changed(there, 101.0)
    presence.lost(c, 110.0)
    presence.expect(expected(*"AB"), 111.0)
    assert (b, c) in presence.links
    presence.topology_changed({a: {b: 1}, b: {a: 1}}, 112.0)
    assert (b, c) not in presence.links
    assert presence.neighbors(b) == [a]


def test_a_link_that_the_state_of_a_forgotten_router_names_is_no_absent_one_later() -> None:
    # While a neighbor that restarts has said nothing yet, what the forgotten router said of the link counts.
    a, b, c, d = map(RouterId, "ABCD")
    presence = MeshPresence(a, expected(*"ABC"), 100.0)
    there = {a: {b: 1}, b: {a: 1}}
    presence.reached(b, 101.0)
    presence.topology_changed(there, 101.0)
    presence.topology_changed({**there, c: {d: 1}, d: {c: 1}}, 120.0)
    presence.topology_changed(there, 121.0)
    assert sorted(presence.links) == [(a, b), (a, c), (b, c)]
    assert presence.neighbors(d) == []
