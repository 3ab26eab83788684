"""Clients die in every way, many each second, beside some that stay. tests/measure/stress has the long run."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from router.binding import proton_functions as pn
from tests.helpers.processes import MeshProcesses
from tests.measure.stress import watched
from tests.measure.stress.ends import Publisher, Subscriber, account
from tests.measure.stress.play import FORBIDDEN, WATCHED, look, look_when_quiet, play, remains, two_routers

pytestmark = pytest.mark.interop

SECONDS = 3.0
RATE = 100.0
GROWTH_BYTES = {"malloc": 8_000_000, "resident": 40_000_000}
"""Within this, allocators keep what they have for the next time; a leak of what dies in a round would be more."""


@pytest.mark.slow
def test_those_that_stay_lose_nothing_and_the_dead_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(watched.FOLDER, str(tmp_path))
    with MeshProcesses(two_routers(), tmp_path, command=WATCHED) as mesh:
        mesh.start()
        mesh.wait_converged()
        before = {router: look(mesh[router], tmp_path) for router in mesh.running}
        memory: list[dict[str, dict[str, int]]] = []
        for seed in range(2):
            played = play(mesh, seconds=SECONDS, rate=RATE, seed=seed)
            assert played.vandals > SECONDS * RATE / 2
            assert played.anycast["accepted"] > 100
            assert played.multicast["accepted"] > 10
            assert played.faults() == {}
            found = {router: look_when_quiet(mesh[router], tmp_path, before[router]) for router in mesh.running}
            assert {router: remains(kept, before[router]) for router, kept in found.items()} == {"R1": {}, "R2": {}}
            memory.append({router: kept["memory"] for router, kept in found.items()})
        for router, first in memory[0].items():
            for part, bound in GROWTH_BYTES.items():
                # AddressSanitizer keeps what is freed for some time, to see whether it is used.
                assert memory[1][router][part] - first[part] < bound or "ASAN_OPTIONS" in os.environ, (router, memory)
        assert set(mesh.terminate().values()) == {0}
        errors = [line for router in mesh.routers.values() for line in router.log_lines() if line.level == "error"]
        assert errors == []


@pytest.mark.parametrize(
    ("outcome", "received", "fault"),
    [
        (pn.ACCEPTED, 1, None),
        (pn.ACCEPTED, 0, "lost"),
        (pn.ACCEPTED, 2, "doubled"),
        (pn.RELEASED, 0, None),
        (pn.RELEASED, 1, "released, yet received"),
        (pn.REJECTED, 1, "released, yet received"),
        (pn.MODIFIED, 0, None),
        (pn.MODIFIED, 1, None),
        (0, 1, "unknown"),
    ],
)
def test_what_is_modified_may_have_been_received_and_what_is_released_may_not(
    outcome: int, received: int, fault: str | None
) -> None:
    publisher, subscriber = Publisher(1, "a", Random(1)), Subscriber("a")
    publisher.outcomes.append(outcome)
    subscriber.received[1] = bytearray([received])
    said = account(publisher, [subscriber])
    assert [name for name in FORBIDDEN if said[name]] == ([fault] if fault else [])
