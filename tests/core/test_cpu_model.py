"""Control planes whose work takes time: what a turn costs, who waits for a core, and that all still ends well."""

from __future__ import annotations

import math

import attrs
import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mesh_config.generators import generate
from router.core.ids_and_conditions import RouterId
from router.simulation.cpu_model import CpuCosts
from router.simulation.mesh import Mesh
from router.simulation.mesh_invariants import differences, settled
from router.simulation.network import NetworkConditions

CALM = NetworkConditions(delay_s=0.0001, jitter_s=0.0)
NOTHING = CpuCosts(**dict.fromkeys((field.name for field in attrs.fields(CpuCosts) if field.name != "cores"), 0.0))
LINE = [("A", "B", 1), ("B", "C", 1), ("C", "D", 1)]


def settle(mesh: Mesh, limit_s: float = 20.0) -> float:
    took = mesh.run_until_true(settled(mesh), limit_s=limit_s, step_s=0.001)
    assert took < math.inf, differences(mesh)[:10]
    mesh.check_invariants()
    return took


def after_kill(cpu_costs: CpuCosts | None, *, count: int = 12) -> float:
    graph = nx.random_regular_graph(3, count, seed=1)
    edges = [(f"r{a:02}", f"r{b:02}", 1) for a, b in graph.edges]
    mesh = Mesh.of_edges(edges, seed=1, conditions=CALM, cpu_costs=cpu_costs)
    mesh.run_for(3.0)
    assert not differences(mesh)
    mesh.kill("r05")
    return settle(mesh)


def test_work_that_costs_nothing_takes_no_time() -> None:
    assert after_kill(NOTHING) == pytest.approx(after_kill(None), abs=0.002)


@pytest.mark.parametrize("what", ["turn_s", "cold_s", "received_s", "sent_s", "spf_s", "path_s", "installed_s"])
def test_dear_work_takes_longer(what: str) -> None:
    dear = attrs.evolve(NOTHING, **{what: 0.002})
    assert after_kill(dear) > after_kill(NOTHING) + 0.003


def test_one_that_has_rested_takes_longer_than_one_that_was_just_at_it() -> None:
    work = attrs.evolve(NOTHING, cold_s=0.01)
    mesh = Mesh.of_edges([("A", "B", 1)], conditions=CALM, cpu_costs=work)
    mesh.run_for(10.0)
    assert mesh.machine is not None
    before = mesh.machine.busy_s
    mesh.subscribe("A", "first")
    mesh.run_for(0.005)
    assert mesh.machine.busy_s - before == pytest.approx(0.01)  # A, and it is not told of B yet
    mesh.run_for(0.015)
    spent = mesh.machine.busy_s - before
    mesh.subscribe("A", "second")
    mesh.run_for(0.005)
    assert mesh.machine.busy_s - before == spent


def test_routers_that_share_a_core_wait_for_each_other() -> None:
    work = attrs.evolve(NOTHING, path_s=0.001)
    alone = after_kill(work)
    # Eleven planes compute once or twice, 12 ms each; one after the other instead of all at once.
    assert after_kill(attrs.evolve(work, cores=1)) > alone + 8 * 0.012
    assert alone < after_kill(attrs.evolve(work, cores=4)) < after_kill(attrs.evolve(work, cores=1))


def test_a_connection_costs_both_its_ends() -> None:
    mesh = Mesh.of_edges([("A", "B", 1)], conditions=CALM, cpu_costs=attrs.evolve(NOTHING, connected_s=0.5))
    assert 0.5 < settle(mesh) < 0.6
    assert mesh.machine is not None
    assert mesh.machine.busy_s == pytest.approx(1.0)


def test_a_router_killed_at_work_says_no_more() -> None:
    mesh = Mesh.of_edges(LINE, conditions=CALM, cpu_costs=attrs.evolve(NOTHING, received_s=0.01))
    mesh.run_for(3.0)
    before = dict(mesh.routers[RouterId("C")].sent)
    mesh.disconnect(mesh.wires[0])
    # B has told C, which is at it.
    mesh.run_for(0.005)
    mesh.kill("C")
    settle(mesh)
    assert mesh.routers[RouterId("C")].sent == before
    mesh.restart("C")
    mesh.reconnect(mesh.wires[0])
    settle(mesh)


def test_a_router_that_is_busy_for_long_takes_all_that_waits_in_one_turn() -> None:
    mesh = Mesh.of_edges(LINE, conditions=CALM, cpu_costs=attrs.evolve(NOTHING, turn_s=0.05))
    for number in range(40):
        mesh.subscribe("A", f"a{number}")
    settle(mesh)
    assert mesh.machine is not None
    assert mesh.machine.busy_s < 40 * 0.05 * 2


@settings(max_examples=15)
@given(
    st.builds(
        CpuCosts,
        turn_s=st.floats(0, 0.002),
        cold_s=st.floats(0, 0.002),
        received_s=st.floats(0, 0.0005),
        sent_s=st.floats(0, 0.0005),
        connected_s=st.floats(0, 0.05),
        spf_s=st.floats(0, 0.001),
        path_s=st.floats(0, 0.0002),
        installed_s=st.floats(0, 0.0002),
        cores=st.one_of(st.none(), st.integers(1, 3)),
    ),
    st.integers(0, 2**32),
    st.lists(st.sampled_from(["r1", "r4", "r6"]), unique=True),
)
def test_whatever_work_costs_all_is_right_in_the_end(cpu_costs: CpuCosts, seed: int, killed: list[str]) -> None:
    graph = nx.random_regular_graph(3, 8, seed=3)
    mesh = Mesh.of_edges([(f"r{a}", f"r{b}", 1 + (a + b) % 3) for a, b in graph.edges], seed=seed, cpu_costs=cpu_costs)
    settle(mesh)
    for name in killed:
        mesh.kill(name)
        mesh.run_for(0.01)
    settle(mesh)
    for name in killed:
        mesh.restart(name)
    settle(mesh)


def test_routers_that_start_one_by_one_dial_until_the_other_is_there() -> None:
    starts = {"R1": 2.0, "R2": 0.5, "R3": 0.6}  # the later ones dial the earlier
    mesh = Mesh.of_settings(generate("line", 3), starts=starts, conditions=CALM)
    assert not list(mesh.living())
    mesh.run_until(1.0)
    assert [router.id for router in mesh.living()] == ["R2", "R3"]
    assert not differences(mesh)
    mesh.run_until(2.0)
    assert not mesh.wires[0].is_up
    took = mesh.run_until_true(lambda: mesh.wires[0].is_up, limit_s=5.0, step_s=0.001)
    # R2 has dialled for 1.5 s, with pauses of 50 ms, 100 ms ... less up to half of each.
    assert 0.001 < took < 1.6
    settle(mesh)
    assert len(mesh.graph().edges) == 2
