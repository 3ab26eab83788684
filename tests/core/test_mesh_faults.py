"""Meshes on a bad network: whatever happens, once it stops every control plane has the right routes and addresses."""

from __future__ import annotations

import math
import random

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.core.ids_and_conditions import RouterId
from router.simulation.mesh import Mesh
from router.simulation.mesh_invariants import differences, multicast_faults, settled
from router.simulation.network import NetworkConditions
from tests.helpers.examples import examples


def assert_settles(mesh: Mesh, limit_s: float) -> None:
    took = mesh.run_until_true(settled(mesh), limit_s=limit_s, step_s=0.25)
    assert took < math.inf, differences(mesh)
    mesh.run_for(7.0)
    assert not differences(mesh)
    mesh.check_invariants()
    for router in mesh.living():
        assert not multicast_faults(mesh, router.id)


@st.composite
def edges(draw: st.DrawFn) -> list[tuple[str, str, int]]:
    count = draw(st.integers(2, 7))
    # A tree, so that all are connected at first, and some more, parallel wires among them.
    tree = [(draw(st.integers(0, number - 1)), number) for number in range(1, count)]
    more = draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=6))
    wires = [*tree, *(wire for wire in more if wire[0] != wire[1])]
    return [(f"r{near}", f"r{far}", draw(st.integers(1, 3))) for near, far in wires]


FAULTS = ("kill", "restart", "cut", "join", "silence", "speak", "partition", "heal", "subscribe", "unsubscribe", "wait")
faults = st.lists(
    st.tuples(st.sampled_from(FAULTS), st.integers(0, 99), st.sampled_from([0.0, 0.0005, 0.003, 0.02, 0.5, 4.0])),
    max_size=20,
)


def strike(mesh: Mesh, what: str, number: int) -> None:
    """Make one fault happen, when it can."""
    names = sorted(mesh.routers)
    name = names[number % len(names)]
    router = mesh.routers[name]
    wire = mesh.wires[number % len(mesh.wires)]
    match what:
        case "kill" if router.is_alive and sum(1 for _ in mesh.living()) > 1:
            mesh.kill(name)
        case "restart" if not router.is_alive:
            mesh.restart(name)
        case "cut":
            mesh.disconnect(wire)
        case "join":
            mesh.reconnect(wire)
        case "silence" | "speak":
            mesh.silence(wire, is_silent=what == "silence")
        case "partition":
            mesh.partition(names[: 1 + number % len(names)])
        case "heal":
            mesh.heal(mesh.wires)
        case "subscribe" if router.is_alive:
            mesh.subscribe(name, f"a{number % 3}")
        case "unsubscribe" if router.is_alive and router.subscriptions:
            mesh.unsubscribe(name, min(router.subscriptions))


@settings(max_examples=examples(60))
@given(edges(), faults, st.integers(0, 2**32))
def test_after_any_faults_on_a_good_network_all_is_right_within_seconds(
    wires: list[tuple[str, str, int]], plan: list[tuple[str, int, float]], seed: int
) -> None:
    mesh = Mesh.of_edges(wires, seed=seed)
    for what, number, pause_s in plan:
        strike(mesh, what, number)
        mesh.run_for(pause_s)
        mesh.check_invariants()
    for wire in mesh.wires:
        mesh.silence(wire, is_silent=False)
    # A wire that was silent may need a HELLO; a copy lost on it is made good by the next advertisement.
    assert_settles(mesh, limit_s=12.0)


@settings(max_examples=examples(30))
@given(edges(), faults, st.integers(0, 2**32), st.sampled_from([0.05, 0.2]))
def test_after_any_faults_on_a_network_that_loses_and_doubles_all_is_right(
    wires: list[tuple[str, str, int]], plan: list[tuple[str, int, float]], seed: int, loss: float
) -> None:
    conditions = NetworkConditions(loss=loss, duplication=0.1, delay_s=0.002, jitter_s=0.02)
    mesh = Mesh.of_edges(wires, seed=seed, conditions=conditions)
    for what, number, pause_s in plan:
        strike(mesh, what, number)
        mesh.run_for(pause_s)
        mesh.check_invariants()
    for wire in mesh.wires:
        mesh.silence(wire, is_silent=False)
    mesh.network.conditions = NetworkConditions(delay_s=0.002, jitter_s=0.02)
    # In calm times only the next advertisement, half a minute away at most, shows that something was lost.
    assert_settles(mesh, limit_s=45.0)


def test_old_link_state_that_hides_the_way_to_its_origin_is_made_good() -> None:
    # r0 missed that r1 lists it, so it asks r1 by r4, which sees its own way to r1 through r0.
    text = "0-1 0-2 1-3 0-4 1-5 4-6 5-7 3-8 6-1 6-5 3-6 0-1"
    wires = [(f"r{near}", f"r{far}", 1) for near, _, far in text.split()]
    bad = NetworkConditions(loss=0.2, duplication=0.1, delay_s=0.002, jitter_s=0.02)
    mesh = Mesh.of_edges(wires, seed=23424, conditions=bad)
    mesh.run_for(0.5)
    mesh.network.conditions = NetworkConditions(delay_s=0.002, jitter_s=0.02)
    assert_settles(mesh, limit_s=10.0)


@pytest.mark.parametrize("loss", [0.02, 0.1])
def test_a_mesh_settles_while_messages_are_lost(loss: float) -> None:
    graph = nx.random_regular_graph(3, 16, seed=4)
    mesh = Mesh.of_edges(
        [(f"r{a}", f"r{b}", 1 + (a + b) % 3) for a, b in graph.edges], seed=5, conditions=NetworkConditions(loss=loss)
    )
    for number in range(16):
        mesh.subscribe(f"r{number}", f"a{number % 4}")
    # Of every thousand HELLOs one and its two successors are lost at 10 %, so neighbors come and go.
    assert mesh.run_until_true(settled(mesh), limit_s=90.0, step_s=0.1) < math.inf
    mesh.kill("r3")
    assert mesh.run_until_true(settled(mesh), limit_s=90.0, step_s=0.1) < math.inf


def test_a_storm_of_flapping_wires_ends_with_the_right_routes(rng: random.Random) -> None:
    graph = nx.random_regular_graph(4, 20, seed=6)
    mesh = Mesh.of_edges([(f"r{a:02}", f"r{b:02}", 1) for a, b in graph.edges], seed=7)
    for number in range(20):
        mesh.subscribe(f"r{number:02}", "all")
    mesh.run_for(0.2)
    for _ in range(300):
        wire = rng.choice(mesh.wires)
        if wire.is_up:
            mesh.disconnect(wire)
        else:
            mesh.reconnect(wire)
        mesh.run_for(0.005)
    mesh.heal(mesh.wires)
    took = mesh.run_until_true(settled(mesh), limit_s=10.0, step_s=0.01)
    assert took < 1.0, differences(mesh)
    assert not multicast_faults(mesh, RouterId("r00"))


@pytest.mark.parametrize("years", [0.1, 1, 8])
def test_a_router_that_starts_again_after_years_is_believed_at_once(years: float) -> None:
    mesh = Mesh.of_edges([("A", "B", 1), ("B", "C", 1)])
    mesh.subscribe("C", "old")
    mesh.run_for(20)
    mesh.kill("C")
    mesh.run_for(3)
    mesh.routers["C"].subscriptions.pop("old")
    mesh.routers["C"].boots += round(years * 365 * 86400 * 1e6)  # microseconds, as the daemon has it
    mesh.restart("C")
    mesh.subscribe("C", "new")
    mesh.run_for(10)
    assert set(mesh.routers["A"].plane.addresses()) == {"new"}
