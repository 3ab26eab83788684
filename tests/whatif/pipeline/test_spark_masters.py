"""Masters of Spark, told from what is none before Java is started."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from router.cli import main
from router.whatif.pipeline.run import Options
from router.whatif.pipeline.run_staging import RunError
from router.whatif.pipeline.spark_failures import start_error
from router.whatif.pipeline.spark_masters import SparkAddress, fault_of_master, fault_of_remote, reach_master
from router.whatif.pipeline.spark_session import start
from router.whatif.scenarios.scenario_plan import PlanError


@pytest.mark.parametrize(
    "master",
    [
        "local",
        "local[2]",
        "local[*]",
        "local[2,3]",
        "local[*, 4]",
        "local-cluster[2,1,1024]",
        "spark://head:7077",
        "spark://head:7077,other:7077",
        "spark://[::1]:7077",
        "yarn",
        "k8s://https://cluster:6443",
    ],
)
def test_what_spark_takes_is_a_master(master: str) -> None:
    assert fault_of_master(master) is None


@pytest.mark.parametrize(
    ("master", "fault", "near"),
    [
        ("foo", "`foo` is no master of Spark", None),
        ("", "`` is no master of Spark", None),
        ("local[many]", "`local[many]` is no master of Spark", "local[*]"),
        ("local[0]", "`local[0]` is no master of Spark", "local[2]"),
        ("Yarn", "`Yarn` is no master of Spark", "yarn"),
        ("spark://head", "`spark://head` has no port", "spark://head:7077"),
        ("head:7077", "`head:7077` is no master of Spark", None),
        ("spark://head:99999", "`spark://head:99999` has a port that can't be", None),
        ("spark://head:7077,other:0", "`spark://head:7077,other:0` has a port that can't be", None),
    ],
)
def test_what_is_none_is_told_with_the_nearest_that_is(master: str, fault: str, near: str | None) -> None:
    found = fault_of_master(master)
    assert found is not None
    assert found.message == fault
    assert near is None or found.nearest is not None


@pytest.mark.parametrize(
    "remote", ["sc://head:15oo2", "sc://head:150020", "sc://[::1", "sc://", "head:15002", "https://head:15002"]
)
def test_a_mistyped_address_of_spark_connect_is_told(remote: str, tmp_path: Path) -> None:
    told = f"remote: `{remote}` is no address of Spark Connect; expected sc://HOST, or sc://HOST:PORT"
    with pytest.raises(PlanError, match=re.escape(told)):
        Options(remote=remote)
    with pytest.raises(RunError, match=re.escape(told)):
        start(SparkAddress(remote=remote), tmp_path / "log")
    done = CliRunner().invoke(main, ["whatif", "run", "model", "-o", "out", "--remote", remote])
    assert done.exit_code == 2
    assert f"--{told}" in done.stderr


@pytest.mark.parametrize("remote", ["sc://head", "sc://head:15002", "sc://[::1]:15002/;token=x;use_ssl=true"])
def test_what_spark_connect_takes_is_an_address(remote: str) -> None:
    assert fault_of_remote(remote) is None


@pytest.mark.parametrize("fields", [{"master": "foo"}, {"master": "yarn", "remote": "sc://x"}, {"remote": "sc://x"}])
def test_the_command_and_the_library_refuse_it_in_the_same_words(fields: dict[str, str]) -> None:
    with pytest.raises(PlanError) as refused:
        Options(**fields, engine="local" if "master" not in fields else "spark")
    words = [word for name, value in fields.items() for word in (f"--{name}", value)]
    engine = [] if "master" in fields else ["--engine", "local"]
    done = CliRunner().invoke(main, ["whatif", "run", "model", "-o", "out", *words, *engine])
    told = done.stderr.splitlines()[-1].removeprefix("Error: ")
    assert told.replace("--", "") == str(refused.value).removeprefix("error: ")


@pytest.mark.parametrize("master", ["local[2]", "yarn", "k8s://https://nowhere.invalid:1"])
def test_at_other_masters_there_is_nobody_to_be_reached(master: str) -> None:
    reach_master(master)


def test_one_of_several_masters_that_answers_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as alive, socket.socket() as dead:
        dead.bind(("127.0.0.1", 0))  # and doesn't listen
        places = [f"127.0.0.1:{each.getsockname()[1]}" for each in (dead, alive)]
        reach_master(f"spark://{','.join(places)}")
        with pytest.raises(OSError, match=f"no master answers at spark://{places[0]}: Connection refused"):
            reach_master(f"spark://{places[0]}")


def test_a_master_that_is_not_there_is_named_before_spark_starts(tmp_path: Path) -> None:
    with socket.socket() as dead:
        dead.bind(("127.0.0.1", 0))
        master = f"spark://127.0.0.1:{dead.getsockname()[1]}"
        words = ["whatif", "explain", "viewfs://nowhere/run", "--scenario", "0"]
        command = [sys.executable, "-m", "router", *words]  # without the session of Spark that tests share
        environment = {**os.environ, "MASTER": master}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    told = f"Error: Spark can't be started: no master answers at {master}: Connection refused"
    assert done.stderr.splitlines()[-1] == told


def test_what_answers_as_no_master_does_is_named(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    log.write_text("26/11/29 ERROR Backend: Reason: All masters are unresponsive! Giving up.\n", encoding="utf-8")
    error = start_error(RuntimeError("a stopped SparkContext"), log, "spark://head:8080", is_remote=False)
    (finding,) = error.findings
    assert "what answers at spark://head:8080 doesn't take this program's work" in finding.message
    assert finding.expected.startswith("the address of a master of Spark 4")
    assert finding.file is not None
    assert Path(finding.file).read_text(encoding="utf-8") == log.read_text(encoding="utf-8")
    Path(finding.file).unlink()


@pytest.mark.parametrize("command", ["run", "converge", "forecast"])
def test_commands_refuse_it_before_anything_is_begun(tmp_path: Path, command: str) -> None:
    (tmp_path / "model").mkdir()
    model = str(tmp_path / "model")
    more = ["--model", model] if command == "forecast" else []
    done = CliRunner().invoke(main, ["whatif", command, model, *more, "-o", str(tmp_path / "out"), "--master", "foo"])
    assert done.exit_code == 2
    expected = "--master: `foo` is no master of Spark; expected local[N], spark://HOST:PORT, yarn or k8s://URL"
    assert expected in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
