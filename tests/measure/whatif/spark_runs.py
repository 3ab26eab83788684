"""Measure what passes the driver when runs of what-if grow, on a cluster of Spark's own on this machine.

    python -m tests.measure.whatif.spark_runs                    10,000, 320,000 and 3,000,000 scenarios: some minutes
    python -m tests.measure.whatif.spark_runs 10000 320000       others

Sampled failures of five links of a mesh of 30 routers as those of `speed.py`, without lists of pairs and without a
report; a standalone master and two workers of one core. The driver is two processes, Python and Java: the most memory
that both had together at a time. Bytes that are shuffled are those of Spark's event log.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

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


def measure(url: str, scenarios: int, folder: Path) -> tuple[float, int, int, int]:
    """Play so many scenarios. Returns: seconds; memory of Python and of Java, bytes; bytes that were shuffled."""
    out, events = folder / f"run-{scenarios}", folder / f"events-{scenarios}"
    events.mkdir()
    command = [sys.executable, "-m", "router", "whatif", "run", str(folder / "model"), "-o", str(out)]
    command += ["--fail", "links:5", "--sample", str(scenarios - 1), "--pairs", "none", "--no-report", "--master", url]
    for setting in (
        "spark.executor.memory=600m", "spark.eventLog.enabled=true", f"spark.eventLog.dir=file://{events}",
        "spark.eventLog.compress=false",
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
    return time.monotonic() - began, python, java, _shuffled(events)


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


def _shuffled(folder: Path) -> int:
    """Bytes that tasks wrote for other tasks."""
    total = 0
    for path in folder.rglob("*"):
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                if '"SparkListenerTaskEnd"' in line:
                    metrics = json.loads(line).get("Task Metrics") or {}
                    total += metrics.get("Shuffle Write Metrics", {}).get("Shuffle Bytes Written", 0)
    return total


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="spark_runs", description="Measure what passes the driver of Spark.")
    parser.add_argument("sizes", nargs="*", type=int, help="scenarios")
    sizes = parser.parse_args(arguments).sizes or SIZES
    shown = table("time", "driver: Python", "Java", "shuffled", title=f"Runs on Spark, {describe()}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_model(random_mesh(ROUTERS), folder / "model")
        for scenarios in sizes:
            # A cluster for each, since what others left in its processes is none of its memory.
            with standalone(folder) as cluster:
                wall_s, python, java, shuffled = measure(cluster.url, scenarios, folder)
            print(f"{scenarios:,}: {wall_s:.1f} s", file=sys.stderr, flush=True)
            figures = (f"{wall_s:.1f} s", f"{python / 1e6:.0f} MB", f"{java / 1e6:.0f} MB", f"{shuffled / 1e6:.1f} MB")
            shown.add_row(f"{scenarios:,} scenarios", *figures)
    console().print(shown)


if __name__ == "__main__":
    main()
