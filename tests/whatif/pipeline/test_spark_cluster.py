"""The same tables from a real cluster, also when it loses a worker in mid-run, and through Spark Connect."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from router.whatif.formats.model_folder import write_model
from router.whatif.model.mesh_model import Model
from router.whatif.pipeline.table_files import are_equal, read_table
from router.whatif.scenarios.run_request import Request
from tests.whatif.cluster import QUICK, connect, environment, standalone
from tests.whatif.forecasting.test_forecast import growing, triangle, write_history
from tests.whatif.runs import assert_equal, everything, made, nothing_beside

REQUEST = Request(families="links:1-2,srlg", growth="1:2:0.25")
"""Of four variants: each is a unit of work or more, of which two are played at a time."""
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]  # processes of Java, up to seven at once
OPTIONS = ("--fail", "links:1-2,srlg", "--growth", "1:2:0.25", "--no-report")


@pytest.fixture(scope="module")
def model() -> Model:
    return everything(24, 40)


@pytest.fixture(scope="module")
def local(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("local") / "run"
    made(model, REQUEST, folder, engine="local", workers=1)
    return folder


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    table = converged(tmp_path_factory.mktemp("grid") / "local", "--engine", "local", "--workers", "1")
    assert table.num_rows == 2 * 2 * (1 + 2 * 2)  # the start, and two failures and repairs
    return table


def converged(folder: Path, *options: str) -> pa.Table:
    """Of a grid of twins."""
    words = [sys.executable, "-m", "router", "whatif", "converge", "-o", str(folder), "--instant"]
    words += ["--generate", "ring", "--sizes", "5,8", "--seeds", "2", "--failures", "2", *options]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return read_table(folder, "convergence")


def command(model: Model, folder: Path, *more: str) -> subprocess.Popen[str]:
    write_model(model, folder / "model")
    words = [
        sys.executable,
        "-m",
        "router",
        "whatif",
        "run",
        str(folder / "model"),
        "-o",
        str(folder / "run"),
        *OPTIONS,
    ]
    return subprocess.Popen(
        [*words, *more], env=environment(), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def test_a_cluster_that_loses_a_worker_loses_no_scenario(model: Model, local: Path, tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(standalone(tmp_path))
        options = ["--master", cluster.url, "--spark-conf", "spark.executor.memory=600m"]
        options += ["--spark-conf", f"spark.executor.extraJavaOptions={QUICK}"]
        events = tmp_path / "events"
        events.mkdir()
        logged = (
            "spark.eventLog.enabled=true",
            f"spark.eventLog.dir={events.as_uri()}",
            "spark.eventLog.compress=false",
        )
        settings = [word for setting in logged for word in ("--spark-conf", setting)]
        process = stack.enter_context(command(model, tmp_path, *options, *settings))
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if re.search(r"running scenarios: [1-9]", line):
                break
        done = int(re.findall(r"\((\d+) %\)", lines[-1])[0])
        assert done < 80, "there is something left to do"
        # Those that are worked on go on with the other one.
        cluster.workers[0].kill()
        lines += process.stderr
    assert process.returncode == 0, "".join(lines)
    assert_equal(local, tmp_path / "run")
    assert nothing_beside(tmp_path / "run")
    (row,) = read_table(tmp_path / "run", "run").to_pylist()
    assert row["engine"] == f"spark {cluster.url}"
    # Who looks at the event log, or at Spark's pages, finds what each job was about.
    logged_text = text_of(events)
    assert re.search(r"what-if: play scenarios \d+ to \d+ of variant (base|growth)", logged_text)
    assert "what-if: make table link_worst of what was played" in logged_text


def test_spark_connect_makes_the_same_tables(model: Model, local: Path, grid: pa.Table, tmp_path: Path) -> None:
    with connect() as address, command(model, tmp_path, "--remote", address) as process:
        assert process.stderr is not None
        said = process.stderr.read()
        twins = converged(tmp_path / "twins", "--remote", address)
        words = history_of_the_triangle(tmp_path)
        outlook = subprocess.run(
            [*words, "--remote", address], env=environment(), capture_output=True, text=True, check=False
        )
    assert process.returncode == 0, said
    # Its run has to leave the session to it.
    assert outlook.returncode == 0, outlook.stderr
    rows = {(row["link"], row["src"], row["is_failure"]): row["full_in"] for row in full_links(tmp_path / "outlook")}
    assert (rows["A--B", "A", False], rows["B--C", "C", True]) == (2, 4)
    assert_equal(local, tmp_path / "run")
    assert are_equal(twins, grid, "convergence")
    (row,) = read_table(tmp_path / "run", "run").to_pylist()
    assert row["engine"] == f"spark {address}"


def history_of_the_triangle(folder: Path) -> list[str]:
    """Write a history. Returns: the command that forecasts."""
    write_history(folder / "rates", growing())
    write_model(triangle(), folder / "triangle")
    words = [sys.executable, "-m", "router", "whatif", "forecast", str(folder / "rates")]
    return [*words, "--model", str(folder / "triangle"), "-o", str(folder / "outlook")]


def full_links(outlook: Path) -> list[dict[str, Any]]:
    return list(read_table(outlook, "link_forecast").to_pylist())


def test_spark_on_this_machine_makes_the_same_tables(model: Model, local: Path, tmp_path: Path) -> None:
    with command(model, tmp_path, "--engine", "spark", "--workers", "2") as process:
        assert process.stderr is not None
        said = process.stderr.read()
    assert process.returncode == 0, said
    assert_equal(local, tmp_path / "run")
    assert nothing_beside(tmp_path / "run")
    assert not list((tmp_path / "run").glob("*.log"))
    (row,) = read_table(tmp_path / "run", "run").to_pylist()
    assert row["engine"] == "spark local[2,2]"


def text_of(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.rglob("*") if path.is_file())


def test_without_grpcio_spark_connect_names_the_extra(model: Model, tmp_path: Path) -> None:
    # What the interpreter finds where grpcio isn't installed.
    (tmp_path / "grpc.py").write_text("raise ModuleNotFoundError(\"No module named 'grpc'\", name='grpc')\n")
    path = os.pathsep.join([str(tmp_path), environment()["PYTHONPATH"]])
    write_model(model, tmp_path / "model")
    words = [sys.executable, "-m", "router", "whatif", "run", str(tmp_path / "model"), "-o", str(tmp_path / "run")]
    done = subprocess.run(
        [*words, "--remote", "sc://127.0.0.1:1"],
        env=environment() | {"PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "expected pip install '.[connect]' in a clone of its repository" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_server_of_spark_connect_that_does_not_answer_is_named(model: Model, tmp_path: Path) -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))  # and nobody listens
        address = f"sc://127.0.0.1:{unheard.getsockname()[1]}"
        with command(model, tmp_path, "--remote", address) as process:
            assert process.stderr is not None
            said = process.stderr.read()
    assert process.returncode == 2
    assert f"Spark can't be started: no answer from {address}: Connection refused" in said
    assert "Traceback" not in said


def test_spark_that_cannot_be_started_is_said_so(model: Model, tmp_path: Path) -> None:
    with command(model, tmp_path, "--master", "local", "--spark-conf", "spark.driver.memory=none") as process:
        assert process.stderr is not None
        said = process.stderr.read()
    assert process.returncode == 2
    line = said.splitlines()[-1]
    assert "Spark can't be started" in line
    assert "Invalid maximum heap size" in line
    assert "Traceback" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    log = Path(line.partition(": error: ")[0])
    assert "Invalid maximum heap size" in log.read_text(encoding="utf-8")
    log.unlink()
