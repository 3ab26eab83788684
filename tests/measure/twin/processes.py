"""How long meshes of real router processes take to agree, beside what the twin says of the same meshes.

A mesh of processes on loopback is started, all at once; then one router after the other is killed with SIGKILL, and
started again when the others are done. Times are taken from the routers' own logs: the last line of any router that one
has appeared (`router_reachable`) or is gone (`router_unreachable`). Over management it is made sure that all costs are
right in the end. The twin gets the mesh file, the moments at which the processes said that they had started, and who is
killed; since a router listens a little before it says so, each moment is drawn from the last hundredth of a second.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import attrs

from mesh_config.generators import generate
from mesh_config.models import MeshSettings
from router.simulation.mesh import Mesh
from router.simulation.mesh_invariants import differences, settled
from router.whatif.convergence.simulation_parameters import LOOPBACK
from tests.helpers.processes import MeshProcesses, RouterProcess

SHAPE: Final = "geometric"
KILLS: Final = 8
SEEDS: Final = 8
CALM_S: Final = 4.0
"""After a start: until connectors' pauses, refreshes and what else it has caused are over."""
NOTICE_S: Final = 1.0
START_S: Final = 120.0
LISTENS_S: Final = 0.01
AGREE: Final = 1.5
"""A prediction agrees when its median is within this factor of that of real processes."""


@attrs.frozen(kw_only=True)
class Times:
    """How long it took, seconds."""

    start_s: tuple[float, ...]
    """From the start of the last router until the last one knew of every other; for each start, or start and seed."""
    kill_s: tuple[float, ...]
    """From SIGKILL until the last of the others knew; for each victim, or each victim and seed."""


def measure(routers: int, folder: Path, *, starts: int) -> tuple[Times, Times]:
    """Times of one mesh of real processes, and the twin's. The routers are killed after the last of the *starts*."""
    settings = generate(SHAPE, routers, seed=1)
    victims = random.Random(routers).sample(sorted(settings.routers), min(KILLS, routers - 1))
    real_start: list[float] = []
    real_kill: list[float] = []
    twin_start: list[float] = []
    twin_kill: list[float] = []
    for number in range(starts):
        killed = victims if number == starts - 1 else []
        with MeshProcesses(settings, folder / f"{routers}-{number}") as mesh:
            moments, took_s = _start(mesh)
            real_start.append(took_s)
            for victim in killed:
                time.sleep(CALM_S)
                real_kill.append(_kill(mesh, victim))
        for seed in range(SEEDS):
            one = twin(settings, moments, killed, seed)
            twin_start += one.start_s
            twin_kill += one.kill_s
    real = Times(start_s=tuple(real_start), kill_s=tuple(real_kill))
    return real, Times(start_s=tuple(twin_start), kill_s=tuple(twin_kill))


def _start(mesh: MeshProcesses) -> tuple[dict[str, float], float]:
    """Start all routers. Returns: moments by router, the first one 0, and how long they took to know each other."""
    mesh.start(wait=False)
    for router in mesh.routers.values():
        router.wait_started(START_S)
    mesh.wait_converged(START_S)
    started = {key: _at(router, "started")[-1] for key, router in mesh.routers.items()}
    known = max(max(_at(router, "router_reachable")) for router in mesh.routers.values())
    first, last = min(started.values()), max(started.values())
    return {key: moment - first for key, moment in started.items()}, known - last


def _kill(mesh: MeshProcesses, victim: str) -> float:
    began = time.time()
    mesh.kill(victim)
    time.sleep(NOTICE_S)
    mesh.wait_converged()
    gone = [moment for key in mesh.running for moment in _at(mesh[key], "router_unreachable", victim) if moment > began]
    mesh.start(victim)
    mesh.wait_converged()
    return max(gone) - began


def _at(router: RouterProcess, event: str, remote: str | None = None) -> list[float]:
    lines = [line for line in router.log_lines(event) if remote is None or line.fields["remote"] == remote]
    return [datetime.fromisoformat(line.fields["timestamp"]).timestamp() for line in lines]


def twin(settings: MeshSettings, moments: Mapping[str, float], victims: Sequence[str], seed: int) -> Times:
    """The same for the twin of that mesh."""
    rng = random.Random(seed)
    starts = {key: moment + LISTENS_S * (1 - rng.random()) for key, moment in moments.items()}
    mesh = Mesh.of_settings(
        settings,
        starts=starts,
        seed=seed,
        conditions=LOOPBACK.network,
        cpu_costs=LOOPBACK.cpu_costs,
        detection_s=LOOPBACK.detection_s,
        detection_jitter_s=LOOPBACK.detection_jitter_s,
    )
    last = max(moments.values()) + LISTENS_S
    mesh.run_until(last)
    assert mesh.run_until_true(lambda: all(wire.is_up for wire in mesh.wires), limit_s=60.0) < math.inf
    start_s = _settle(mesh) - last
    kill_s = []
    for victim in victims:
        mesh.run_for(CALM_S)
        began = mesh.now
        mesh.kill(victim)
        kill_s.append(_settle(mesh) - began)
        mesh.restart(victim)
        _settle(mesh)
    return Times(start_s=(start_s,), kill_s=tuple(kill_s))


def _settle(mesh: Mesh) -> float:
    """Run until all is right. Returns: when the last router knew who is there, seconds."""
    assert mesh.run_until_true(settled(mesh), limit_s=60.0) < math.inf, differences(mesh)[:5]
    mesh.run_for(0.5)
    return max(router.forwarding.known_at for router in mesh.living())


def ratio(twin: Sequence[float], real: Sequence[float]) -> float:
    """Of the medians."""
    return statistics.median(twin) / statistics.median(real)
