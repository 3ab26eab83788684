"""Millions of messages while tens of thousands of connections die. Run by `tox -e stress`, which shows the figures."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

import pytest

from router import speed
from tests.helpers.processes import MeshProcesses
from tests.measure.stress import watched
from tests.measure.stress.play import WATCHED, Round, look, look_when_quiet, play, remains, two_routers

SECONDS = float(os.environ.get("AMQP_MESH_STRESS_S", "600"))
ROUND_S = 20.0
RATE = 150.0
GROWTH_BYTES = 4_000_000
"""From the third round on; what the first two need, allocators keep."""

pytestmark = pytest.mark.timeout(2 * SECONDS + 300)


def test_those_that_stay_lose_nothing_and_the_dead_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(watched.FOLDER, str(tmp_path))
    rounds: list[Round] = []
    memory: dict[str, list[dict[str, int]]] = {}
    with MeshProcesses(two_routers(), tmp_path, command=WATCHED) as mesh:
        mesh.start()
        mesh.wait_converged()
        before = {router: look(mesh[router], tmp_path) for router in mesh.running}
        end = time.monotonic() + SECONDS
        while time.monotonic() < end or len(rounds) < 4:
            rounds.append(play(mesh, seconds=ROUND_S, rate=RATE, seed=len(rounds)))
            found = {router: look_when_quiet(mesh[router], tmp_path, before[router]) for router in mesh.running}
            for router, kept in found.items():
                memory.setdefault(router, []).append(kept["memory"])
            with capsys.disabled():
                print(line(rounds, memory), flush=True)
            assert rounds[-1].faults() == {}
            assert {router: remains(kept, before[router]) for router, kept in found.items()} == {"R1": {}, "R2": {}}
        assert set(mesh.terminate().values()) == {0}
        errors = [line for router in mesh.routers.values() for line in router.log_lines() if line.level == "error"]
        assert errors == []
    for router, each in memory.items():
        for part in ("resident", "malloc"):
            assert each[-1][part] - each[2][part] < GROWTH_BYTES, (router, part, [one[part] for one in each])


def line(rounds: list[Round], memory: dict[str, list[dict[str, int]]]) -> str:
    """What has happened so far."""
    said: Counter[str] = Counter()
    for each in rounds:
        said += each.anycast + each.multicast + each.settled
    kept = ", ".join(
        f"{router} {each[-1]['resident'] / 1e6:.1f} MB resident, {each[-1]['malloc'] / 1e6:.2f} MB of C"
        for router, each in memory.items()
    )
    return (
        f"\n{speed.SPEED}, round {len(rounds)}: {said['sent']} messages, {said['accepted']} accepted, "
        f"{said['returned']} returned, {sum(each.vandals for each in rounds)} connections died; {kept}"
    )
