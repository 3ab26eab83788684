"""Routers of our kind among ones that act like a qdrouterd: all learn all, floods end, and no state swings."""

from __future__ import annotations

import math

import networkx as nx
import pytest

from router.core.ids_and_conditions import RouterId
from router.simulation.mesh import Mesh
from router.simulation.mesh_invariants import differences, settled
from tests.helpers.plain_router import PlainRouter


def mixed(edges: list[tuple[str, str, int]], *, seed: int = 1) -> Mesh:
    """Routers whose name begins with q are plain."""
    mesh = Mesh(seed=seed, bodies=True)
    for name in sorted({name for near, far, _ in edges for name in (near, far)}):
        if name.startswith("q"):
            mesh.add_router(name, make=lambda boot, name=name: PlainRouter(name, boot), pushes_lsu=False)
        else:
            mesh.add_router(name)
    for near, far, cost in edges:
        mesh.connect(near, far, cost)
    return mesh


def plain(mesh: Mesh, name: str) -> PlainRouter:
    router = mesh.routers[RouterId(name)].participant
    assert isinstance(router, PlainRouter)
    return router


def settle(mesh: Mesh, limit_s: float = 30.0) -> float:
    took = mesh.run_until_true(settled(mesh), limit_s=limit_s, step_s=0.05)
    assert took < math.inf, differences(mesh)
    mesh.check_invariants()
    return took


def assert_plain_knows(mesh: Mesh, name: str) -> None:
    distances = nx.single_source_dijkstra_path_length(mesh.graph(), RouterId(name), weight="cost")
    router = plain(mesh, name)
    assert set(router.next_hops) >= distances.keys() - {name}
    expected = {(a, r.id) for r in mesh.living() for a in r.subscriptions if r.id in distances and r.id != name}
    assert router.addresses() == expected


REFRESH_S = 30.5
"""In so many seconds each router has told all others that it lives."""
MESHES = {
    "pair": [("a", "qb", 1)],
    "plain in the middle": [("a", "qb", 1), ("qb", "c", 1)],
    "plain at the ends": [("qa", "b", 1), ("b", "c", 1), ("c", "qd", 2)],
    "triangle": [("a", "qb", 1), ("qb", "c", 1), ("c", "a", 1)],
    "plain triangle with one of ours": [
        ("qa", "qb", 1), ("qb", "qc", 1), ("qc", "qa", 1), ("qc", "d", 1), ("d", "qa", 1)
    ],
    "ladder": [
        ("a", "qb", 1), ("qb", "qc", 2), ("d", "e", 1), ("e", "qf", 1), ("a", "d", 1), ("qb", "e", 3), ("qc", "qf", 1)
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", MESHES)
def test_all_learn_all(name: str) -> None:
    mesh = mixed(MESHES[name])
    for router in mesh.routers:
        mesh.subscribe(router, f"of/{router}")
        mesh.subscribe(router, "shared")
    assert settle(mesh) < 12.0
    mesh.run_for(12.0)
    assert not differences(mesh)
    for router in mesh.routers:
        if router.startswith("q"):
            assert_plain_knows(mesh, router)
            # Link state is only sent to a plain router that asked.
            assert plain(mesh, router).updates_unasked == 0


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))])
@pytest.mark.parametrize("share", [0, 3, 2])
def test_refreshes_of_all_reach_all(seed: int, share: int) -> None:
    graph = nx.powerlaw_cluster_graph(16, 3, 0.7, seed=seed)
    names = {each: f"q{each:02}" if share and (each + seed) % share == 0 else f"r{each:02}" for each in graph}
    mesh = mixed([(names[a], names[b], 1 + (a * b + seed) % 3) for a, b in graph.edges], seed=seed)
    settle(mesh)
    for _ in range(10):
        mesh.run_for(33.0)
        for router in mesh.living():
            if router.id.startswith("r"):
                known = router.plane._link_state.database.nodes.values()
                late = {node.id: mesh.now - node.heard_at for node in known if mesh.now - node.heard_at > REFRESH_S}
                assert not late, f"{router.id} has not heard of them for so many seconds"


def test_changes_of_addresses_reach_across_a_plain_router() -> None:
    mesh = mixed(MESHES["plain in the middle"])
    settle(mesh)
    mesh.run_for(10.0)
    mesh.subscribe("a", "x")
    assert settle(mesh) < 0.1
    mesh.subscribe("qb", "y")
    assert settle(mesh) < 1.5
    mesh.unsubscribe("a", "x")
    mesh.unsubscribe("qb", "y")
    assert settle(mesh) < 1.5
    assert_plain_knows(mesh, "qb")


def test_copies_that_plain_routers_flood_are_dropped_without_a_request() -> None:
    mesh = mixed(MESHES["plain triangle with one of ours"])
    settle(mesh)
    mesh.run_for(20.0)
    ours = mesh.routers[RouterId("d")].plane
    before = ours.counters().get("control_sent_MAR", 0)
    received = ours.counters().get("control_received_MAU", 0)
    for number in range(5):
        mesh.subscribe("qb", f"n/{number}")
        mesh.run_for(2.0)
    assert not differences(mesh)
    # Copies came by both neighbors.
    assert ours.counters()["control_received_MAU"] - received >= 10
    assert ours.counters().get("control_sent_MAR", 0) == before


def test_a_plain_router_that_returns_is_known_again() -> None:
    mesh = mixed(MESHES["plain at the ends"])
    mesh.subscribe("qa", "old")
    settle(mesh)
    mesh.run_for(10.0)
    mesh.kill("qa")
    assert settle(mesh) < 0.1
    assert "old" not in mesh.routers[RouterId("c")].forwarding.addresses
    mesh.run_for(5.0)
    mesh.routers[RouterId("qa")].subscriptions.clear()
    mesh.restart("qa")
    mesh.subscribe("qa", "new")
    settle(mesh)
    assert list(mesh.routers[RouterId("c")].forwarding.addresses) == ["new"]


def test_parallel_wires_to_a_plain_router_do_not_make_it_swing() -> None:
    mesh = mixed([("a", "qb", 1), ("a", "qb", 1), ("a", "c", 1)])
    settle(mesh)
    mesh.run_for(20.0)
    router = plain(mesh, "qb")
    # The better wire may have come up last.
    bindings = router.bindings
    assert bindings <= 2
    sequence = mesh.routers[RouterId("a")].plane.own_node().ls_seq
    mesh.run_for(60.0)
    assert router.bindings == bindings
    assert mesh.routers[RouterId("a")].plane.own_node().ls_seq == sequence
    view = {v.connection: v for v in mesh.routers[RouterId("a")].plane.neighbors() if v.router == "qb"}
    active = next(connection for connection, v in view.items() if not v.is_standby)
    mesh.disconnect(mesh.routers[RouterId("a")].ends[active][0])
    mesh.run_for(0.1)
    assert not differences(mesh)
    mesh.run_for(20.0)
    assert router.bindings == bindings + 1
    assert not differences(mesh)


def test_floods_among_plain_routers_end() -> None:
    names = [f"q{number}" for number in range(4)] + ["a"]
    mesh = mixed([(near, far, 1) for i, near in enumerate(names) for far in names[i + 1 :]])
    settle(mesh)
    mesh.run_for(30.0)
    before = mesh.turns
    mesh.run_for(60.0)
    assert mesh.turns - before < 20_000
