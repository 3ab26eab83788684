"""`manage` and `ping`, as an operator calls them, on real routers."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from mesh_config.generators import generate
from router.cli import main
from router.cli.manage_and_ping import OPERATIONS
from router.management.schema import NODE_OPERATIONS
from tests.helpers.processes import MeshProcesses, wait_until

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshProcesses]:
    """R1 - R2 of a line of three whose third never came."""
    with MeshProcesses(generate("line", 3), tmp_path_factory.mktemp("mesh")) as mesh:
        mesh.start("R1")
        mesh.start("R2")
        wait_until(lambda: mesh.reachable("R1") == {"R2"}, "R1 reaches R2", 30)
        yield mesh


def call(mesh: MeshProcesses, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "router", *words, "--url", mesh.url("R1")]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_ping_shows_every_router_and_those_that_are_absent(mesh: MeshProcesses) -> None:
    result = call(mesh, "ping")
    assert result.returncode == 1
    rows = [line.split() for line in result.stdout.splitlines()]
    assert [row[:2] for row in rows] == [["router", "answer"], ["R1", "version"], ["R2", "version"], ["R3", "ABSENT:"]]
    assert float(rows[2][3]) > 0


def test_manage_creates_reads_and_deletes(mesh: MeshProcesses) -> None:
    made = call(
        mesh, "manage", "create", "--type", "router.config.address", "--name", "n", "prefix=n", "distribution=multicast"
    )
    assert made.returncode == 0, made.stderr
    identity = json.loads(made.stdout)["identity"]
    assert json.loads(call(mesh, "manage", "read", "--id", identity).stdout)["distribution"] == "multicast"
    assert call(mesh, "manage", "delete", "--type", "router.config.address", "--name", "n").returncode == 0
    gone = call(mesh, "manage", "read", "--id", identity)
    assert gone.returncode == 1
    assert "no entity of any type" in gone.stderr


@pytest.mark.parametrize(
    ("operation", "said"),
    [
        ("create", "create needs --type"),
        ("query", "query needs --type"),
        *((each, f"{each} needs --name or --id") for each in ("read", "update", "delete")),
    ],
)
def test_manage_says_which_options_name_the_entity(operation: str, said: str) -> None:
    result = CliRunner().invoke(main, ["manage", operation])
    assert result.exit_code == 2
    assert said in result.output


def test_manage_queries_any_router(mesh: MeshProcesses) -> None:
    result = call(mesh, "manage", "query", "id", "--type", "router", "--router", "R2")
    assert json.loads(result.stdout) == [{"id": "R2"}]


def test_operations_of_the_node_take_what_they_know_and_nothing_else(mesh: MeshProcesses) -> None:
    assert len(json.loads(call(mesh, "manage", "get-log", "limit=2").stdout)) == 2
    (line,) = call(mesh, "manage", "get-log", "limit=1", "--text").stdout.splitlines()
    lines = json.loads(call(mesh, "manage", "get-log", "limit=20").stdout)  # two or so are of these commands
    said = [[*time.strftime("%F %T", time.localtime(at)).split(), level, text] for _, level, text, _, _, at in lines]
    assert line.split(None, 3) in said
    wrong = call(mesh, "manage", "reload", "--text")
    assert (wrong.returncode, "--text goes with get-log" in wrong.stderr) == (2, True)
    for operation, said in (("reload", "it takes none"), ("get-log", "it takes limit")):
        wrong = call(mesh, "manage", operation, "foo=1")
        assert wrong.returncode == 2
        assert f"{operation} has no attribute `foo`; {said}" in wrong.stderr


def test_every_operation_that_only_reads_the_node_can_be_asked_for(mesh: MeshProcesses) -> None:
    found = {name for name in NODE_OPERATIONS if name.startswith("GET-")}
    assert found == {name.upper() for name in OPERATIONS if name.startswith("get-")}
    for name in ("get-attributes", "get-operations"):
        result = call(mesh, "manage", name, "--type", "listener")
        assert result.returncode == 0, result.stderr
        assert "listener" in result.stdout


def test_another_number_is_no_hint_for_who_closes_a_connection(mesh: MeshProcesses) -> None:
    wrong = call(mesh, "manage", "update", "--type", "connection", "--id", "99", "adminStatus=deleted")
    assert wrong.returncode == 1
    assert "no connection `99` (404)" in wrong.stderr


def test_stat_problems_names_what_the_file_has_and_is_not_there(mesh: MeshProcesses) -> None:
    nearest = f"> amqp-mesh stat routers --router R2 --url {mesh.url('R1')}"
    # R1 has started first, and misses it before its neighbor does.
    wait_until(lambda: nearest in call(mesh, "stat", "problems").stdout, "R2 misses its neighbor", 20)
    result = call(mesh, "stat", "problems")
    assert result.returncode == 0
    assert "router R3 is absent: never seen since this router started" in result.stdout
    assert nearest in result.stdout
