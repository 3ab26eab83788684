"""`amqp-mesh bench` on real routers: everything is measured, no figure is judged."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import router
from mesh_config.generators import generate
from router.bench import suite
from router.bench.cases import CASES
from router.bench.errors import BenchError
from router.bench.process_usage import cpu_seconds
from router.cli.bench import QUICK
from tests.bench.conftest import run
from tests.helpers.oslo import needs_oslo
from tests.helpers.processes import MeshProcesses, wait_until

SCHEMA = json.loads((Path(router.__file__).parent / "bench" / "results.schema.json").read_text(encoding="utf-8"))
PATHS = ["direct", "1 hop", "3 hops"]
pytestmark = pytest.mark.interop


def test_every_case_is_run_over_every_path(found: dict[str, Any]) -> None:
    measured = [(one["case"], one["path"]) for one in found["figures"]]
    assert measured == [(case.name, path) for case in CASES for path in PATHS]


@pytest.mark.slow
def test_by_default_every_case_is_run_over_one_to_three_routers(tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    assert run("--quick", "--json", str(file)).exit_code == 0
    found = json.loads(file.read_text(encoding="utf-8"))
    jsonschema.validate(found, SCHEMA, cls=jsonschema.Draft202012Validator)
    paths = ["direct", "1 hop", "2 hops", "3 hops"]
    assert [(one["case"], one["path"]) for one in found["figures"]] == [
        (case.name, path) for case in CASES for path in paths
    ]
    assert [one["refused"] for one in found["figures"] if one["refused"]] == []


def test_the_document_is_what_its_schema_says(found: dict[str, Any]) -> None:
    document = {key: value for key, value in found.items() if key != "output"}
    jsonschema.validate(document, SCHEMA, cls=jsonschema.Draft202012Validator)
    assert document["programs"]["speed"] == router.SPEED


def test_a_run_says_what_it_cost(found: dict[str, Any]) -> None:
    for one in found["figures"]:
        assert one["p50_us"] <= one["p99_us"]
        assert (one["cpu_us"] is not None, one["resident_bytes"] is not None) == (one["hops"] > 0,) * 2
        assert one["refused"] == 0
        assert (one["echo_multiple"] is not None) == one["is_rpc"]
        if one["hops"] == 0:
            assert one["share"] == 1


def test_memory_is_told_for_each_kind(found: dict[str, Any]) -> None:
    kinds = [one["what"] for one in found["memory"]]
    assert kinds == ["connection", "link", "link with an address of its own", "address of another router"]


def test_a_mesh_that_stands_still_is_told_of(found: dict[str, Any]) -> None:
    idle = found["idle"]
    assert idle["routers"] == 3
    assert 0 <= idle["core_share"] <= idle["most_core_share"]
    assert 0 < idle["resident_bytes"] <= idle["most_resident_bytes"]


def test_programs_that_start_are_told_of(found: dict[str, Any]) -> None:
    assert [one["what"] for one in found["start"]] == ["--version", "stat", "run"]
    assert all(one["cpu_s"] > 0 for one in found["start"])


def test_the_tables_have_a_row_for_each_figure(found: dict[str, Any]) -> None:
    for case in CASES:
        assert case.name in found["output"]
    assert found["output"].count("3 hops") == len(CASES)
    for words in ("address of another router", "3 routers that stand still", "--version"):
        assert words in found["output"]


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshProcesses]:
    with MeshProcesses(generate("line", 2), tmp_path_factory.mktemp("other")) as mesh:
        mesh.start()
        mesh.wait_converged()
        yield mesh


def test_other_routers_do_the_same_work_in_the_same_run(other: MeshProcesses, tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    result = run(
        *("--quick", "stream-100B", "rpc-1", "--hops", "", "--json", str(file)),
        *("--compare", f"one={other.url('R1')}", "--compare", f"two={other.url('R1')},{other.url('R2')}"),
        *("--compare-pid", f"one={other['R1'].pid}"),
        *("--compare-pid", f"two={other['R1'].pid}", "--compare-pid", f"two={other['R2'].pid}"),
    )
    assert result.exit_code == 0, result.output
    figures = json.loads(file.read_text(encoding="utf-8"))["figures"]
    paths = ("direct", "one", "two")
    assert [one["hops"] for one in figures] == [0, 1, 2] * 2
    assert [(one["case"], one["path"]) for one in figures] == [
        *itertools.product(("stream-100B",), paths),
        *itertools.product(("rpc-1",), paths),
    ]
    assert all(one["resident_bytes"] for one in figures if one["path"] != "direct")


def test_a_process_that_ends_meanwhile_is_an_error_and_no_figure(other: MeshProcesses, tmp_path: Path) -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:

        def end(what: str, done: int, of: int) -> None:
            process.kill()

        plan = suite.Plan(
            cases=CASES[:1],
            hops=(),
            compare=[f"one={other.url('R1')}"],
            compare_pids=[str(process.pid)],
            **QUICK,
        )
        suite.check(plan)
        with pytest.raises(BenchError, match=f"the process {process.pid} of one has ended meanwhile"):
            suite.run(plan, tmp_path / "routers", end)


@pytest.mark.slow
@needs_oslo
def test_calls_by_oslo_messaging_stand_beside_those_of_another_router(other: MeshProcesses, tmp_path: Path) -> None:
    file = tmp_path / "found.json"
    result = run(
        *("--quick", "oslo", "--hops", "1", "--json", str(file)),
        *("--compare", f"other={other.url('R1')}", "--compare-pid", f"other={other['R1'].pid}"),
    )
    assert result.exit_code == 0, result.output
    found = json.loads(file.read_text(encoding="utf-8"))
    jsonschema.validate(found, SCHEMA, cls=jsonschema.Draft202012Validator)
    assert [(one["over"], one["failed"]) for one in found["oslo"]] == [("1 hop", 0), ("other", 0)]
    ours, others = found["oslo"]
    (ratio,) = found["comparisons"]
    assert (ratio["case"], ratio["path"], ratio["other"], ratio["rounds"]) == ("oslo", "1 hop", "other", 1)
    assert ratio["per_s"] == pytest.approx(ours["per_s"] / others["per_s"])
    assert ratio["cpu_us"] == pytest.approx(ours["cpu_us"] / others["cpu_us"])
    assert "Ratios to what is compared" in result.output


def test_an_interpreted_router_can_be_added() -> None:
    result = run("--quick", "stream-100B", "--hops", "1", "--interpreted")
    assert result.exit_code == 0, result.output
    assert "1 hop, interpreted" in result.output


def test_the_document_can_go_to_standard_output() -> None:
    result = run("--quick", "stream-100B", "--hops", "", "--json", "-")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["schema"] == "amqp-mesh-bench"


EARLY_ENDS = [
    (number, moment)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL)
    for moment in ("forking", "starting", "measuring")
]
OFTEN = [(signal.SIGINT, "forking"), (signal.SIGTERM, "starting"), (signal.SIGKILL, "measuring")]
"""The others differ only in the part before and after; `tox -e slow` has them all."""


@pytest.mark.parametrize(
    ("number", "moment"),
    [pytest.param(*each, marks=[] if each in OFTEN else [pytest.mark.slow]) for each in EARLY_ENDS],
)
def test_a_benchmark_that_ends_early_leaves_no_router_behind(number: signal.Signals, moment: str) -> None:
    """Forking: when the router's process comes to be, in which moment signals have been lost."""
    command = [sys.executable, "-m", "router", "bench", "stream-100B", "--hops", "1", "--seconds", "600"]
    previous = {each: signal.signal(each, signal.SIG_DFL) for each in (signal.SIGHUP, signal.SIGINT)}
    try:  # else they are ignored there as they may be here
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    finally:
        for each, handler in previous.items():
            signal.signal(each, handler)
    try:
        while not (started := children(process.pid)):
            assert process.poll() is None
        if moment != "forking":
            wait_until(lambda: is_router(started[0]), "it is a router", 30)
        if moment == "measuring":
            before = cpu_seconds([process.pid])  # until the router has started it only waits
            wait_until(lambda: cpu_seconds([process.pid]) > before + 0.5, "it has worked for a while", 90)
        process.send_signal(number)
        status = 128 + number if number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT) else -number
        assert process.wait(30) == status
    finally:
        process.kill()
        process.wait()
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in started), "its routers end", 10)


def is_router(pid: str) -> bool:
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:4] == [b"-m", b"router", b"run"]


def children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        return []
