"""rhea, the AMQP client for Node, across two real routers. rhea_scenarios.js says what happens in each scenario."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mesh_config.generators import generate
from tests.helpers.processes import MeshProcesses

SCENARIOS = Path(__file__).with_name("rhea_scenarios.js")
TIMEOUT_S = 30


def has_rhea() -> bool:
    node = shutil.which("node")
    return node is not None and not subprocess.run([node, "-e", "require('rhea')"], capture_output=True).returncode


pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(
        "AMQP_MESH_TEST_INSTALLED" not in os.environ and not has_rhea(),
        reason="needs node, and rhea in NODE_PATH: `npm install --prefix D $(cat requirements/node.txt)`",
    ),
]


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshProcesses]:
    with MeshProcesses(generate("line", 2), tmp_path_factory.mktemp("mesh")) as mesh:
        mesh.start()
        mesh.wait_converged()
        yield mesh


def play(mesh: MeshProcesses, scenario: str) -> Any:
    """What rhea saw."""
    ports = [mesh.url(router).rpartition(":")[2] for router in mesh.running]
    command = ["node", str(SCENARIOS), scenario, *ports]
    played = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert played.returncode == 0, played.stderr
    return json.loads(played.stdout)


def test_every_outcome_comes_back_once(mesh: MeshProcesses) -> None:
    seen = play(mesh, "outcomes")
    assert seen["bodies"] == list(range(40))
    names = ["accepted", "rejected", "released", "modified"]
    assert seen["outcomes"] == {str(number): names[number % 4] for number in range(40)}
    assert sorted(seen["errors"]) == sorted(f"rhea:no: not {number}" for number in range(1, 40, 4))


def test_calls_are_answered_at_dynamic_addresses(mesh: MeshProcesses) -> None:
    seen = play(mesh, "rpc")
    assert seen["answers"] == {str(number): 2 * number for number in range(200)}
    assert seen["reply_to"].startswith(f"amqp:/_topo/0/{mesh.running[0]}/temp.")


def test_a_multicast_arrives_once_at_each_receiver(mesh: MeshProcesses) -> None:
    seen = play(mesh, "multicast")
    assert seen["bodies"] == [list(range(20))] * 4


def test_a_sender_has_no_credit_before_there_is_a_receiver(mesh: MeshProcesses) -> None:
    assert play(mesh, "late") == {"early_credit": 0, "bodies": ["waited"]}


def test_large_messages_cross_whole_in_their_order(mesh: MeshProcesses) -> None:
    assert play(mesh, "large") == {"sizes": [10, 20000, 1000000, 3000000]}


def test_more_settled_messages_than_one_window(mesh: MeshProcesses) -> None:
    assert play(mesh, "settled") == {"bodies": list(range(1000))}


def test_refused_links_say_why(mesh: MeshProcesses) -> None:
    assert sorted(play(mesh, "refused")["errors"]) == ["amqp:unauthorized-access", "qd:forbidden"]
