"""Measure what passes the driver when runs of what-if grow, on a cluster of Spark's own on this machine.

    python -m tests.measure.whatif.spark_runs                    10,000, 320,000 and 3,000,000 scenarios: some minutes
    python -m tests.measure.whatif.spark_runs 10000 320000       others

Sampled failures of five links of a mesh of 30 routers as those of `speed.py`, without lists of pairs and without a
report; a standalone master and two workers of one core. The driver is two processes, Python and Java: the most memory
that both had together at a time. Bytes that are shuffled, and the most of Java's heap that was in use with what is
garbage there, are those of Spark's event log.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from router.speed import describe
from router.whatif.formats.model_folder import write_model
from tests.helpers.processes import resident_bytes
from tests.helpers.tables import console, table
from tests.measure.whatif.speed import random_mesh
from tests.whatif.cluster import environment, standalone

LOOK_S = 0.2
"""Between two looks at the memory of the processes."""
SIZES = (10_000, 320_000, 3_000_000)
ROUTERS = 30


@attrs.frozen(kw_only=True)
class Cost:
    """Of one run; memory in bytes."""

    wall_s: float
    python: int
    """Of the driver's process of Python."""
    java: int
    """Of the driver's process of Java."""
    heap: int
    """Of Java's, what objects took, those that nobody needs any more included."""
    shuffled: int


def measure(url: str, scenarios: int, folder: Path) -> Cost:
    """Play so many scenarios."""
    out, events = folder / f"run-{scenarios}", folder / f"events-{scenarios}"
    events.mkdir()
    command = [sys.executable, "-m", "router", "whatif", "run", str(folder / "model"), "-o", str(out)]
    command += ["--fail", "links:5", "--sample", str(scenarios - 1), "--pairs", "none", "--no-report", "--master", url]
    for setting in (
        "spark.executor.memory=600m", "spark.eventLog.enabled=true", f"spark.eventLog.dir=file://{events}",
        "spark.eventLog.compress=false", "spark.eventLog.logStageExecutorMetrics=true",
        "spark.executor.heartbeatInterval=1s",
    ):  # fmt: skip
        command += ["--spark-conf", setting]
    python = java = 0
    began = time.monotonic()
    with subprocess.Popen(
        command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        while process.poll() is None:
            found = _driver(process.pid)
            if sum(found) > python + java:
                python, java = found
            try:
                process.wait(LOOK_S)
            except subprocess.TimeoutExpired:
                continue
        if process.returncode:
            assert process.stderr is not None
            raise RuntimeError(process.stderr.read().decode())
    wall_s = time.monotonic() - began
    heap, shuffled = _logged(events)
    return Cost(wall_s=wall_s, python=python, java=java, heap=heap, shuffled=shuffled)


def _driver(session: int) -> tuple[int, int]:
    """Resident memory of the driver's process of Python, and of the one of Java that it has started, bytes."""
    java = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, rest = (folder / "stat").read_text().rsplit(")", 1)
            if int(rest.split()[1]) == session and "(java" in name:
                java = max(java, resident_bytes(int(folder.name)))
        except (OSError, ValueError, IndexError):
            continue  # it has ended meanwhile
    try:
        return resident_bytes(session), java
    except (OSError, ValueError):
        return 0, java


def _logged(folder: Path) -> tuple[int, int]:
    """The most of the driver's heap that was in use; bytes that tasks wrote for other tasks."""
    heap = shuffled = 0
    for event in _events(folder):
        if event["Event"] == "SparkListenerTaskEnd":
            metrics = event.get("Task Metrics") or {}
            shuffled += metrics.get("Shuffle Write Metrics", {}).get("Shuffle Bytes Written", 0)
        elif event["Executor ID"] == "driver":
            heap = max(heap, event["Executor Metrics"]["JVMHeapMemory"])
    return heap, shuffled


def _events(folder: Path) -> Iterator[dict[str, Any]]:
    """Ends of tasks, and memory by stage and executor, of an event log."""
    for path in folder.rglob("*"):
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                if '"SparkListenerTaskEnd"' in line or '"SparkListenerStageExecutorMetrics"' in line:
                    yield json.loads(line)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="spark_runs", description="Measure what passes the driver of Spark.")
    parser.add_argument("sizes", nargs="*", type=int, help="scenarios")
    sizes = parser.parse_args(arguments).sizes or SIZES
    shown = table("time", "driver: Python", "Java", "of it heap", "shuffled", title=f"Runs on Spark, {describe()}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_model(random_mesh(ROUTERS), folder / "model")
        for scenarios in sizes:
            # A cluster for each, since what others left in its processes is none of its memory.
            with standalone(folder) as cluster:
                cost = measure(cluster.url, scenarios, folder)
            print(f"{scenarios:,}: {cost.wall_s:.1f} s", file=sys.stderr, flush=True)
            sizes_mb = (f"{each / 1e6:.0f} MB" for each in (cost.python, cost.java, cost.heap))
            shuffled = f"{cost.shuffled / 1e6:.1f} MB"
            shown.add_row(f"{scenarios:,} scenarios", f"{cost.wall_s:.1f} s", *sizes_mb, shuffled)
    console().print(shown)


if __name__ == "__main__":
    main()
