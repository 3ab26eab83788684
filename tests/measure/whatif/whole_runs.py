"""Measure whole runs of what-if, as an operator would start them, and print a table.

    python -m tests.measure.whatif.whole_runs                 all of them, with both engines: eight minutes
    python -m tests.measure.whatif.whole_runs 300             only the case whose name begins so

The meshes are those of `speed.py`. Each run is `amqp-mesh whatif run` in processes of its own: the start of Python, and
of Spark, all tables and the report are in its time. Processor time is that of all processes of the machine while the
run went on, so nothing else should go on; memory is that of the largest of them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

from router.speed import describe
from router.whatif.formats.model_folder import write_model
from tests.helpers.processes import resident_bytes
from tests.helpers.tables import console, table
from tests.measure.whatif.speed import random_mesh

LOOK_S = 0.2
"""Between two looks at the memory of the processes."""
ENGINES = ("local", "spark")


@attrs.frozen
class Case:
    """What is played."""

    routers: int
    fail: str

    @property
    def name(self) -> str:
        """As it is chosen."""
        return f"{self.routers} routers, {self.fail}"


CASES = (Case(100, "links:1,routers:1"), Case(300, "links:2"), Case(400, "links:2"), Case(1000, "links:1,routers:1"))


@attrs.frozen
class Cost:
    """Of one run."""

    wall_s: float
    cpu_s: float
    largest: int
    """Resident memory of the largest process but Spark's own, which is Java's, bytes."""


def measure(case: Case, engine: str, folder: Path) -> Cost:
    """Play a case."""
    model = folder / f"model-{case.routers}"
    if not model.exists():
        write_model(random_mesh(case.routers), model)
    command = [sys.executable, "-m", "router", "whatif", "run", str(model), "--fail", case.fail]
    command += ["--engine", engine, "-o", str(folder / f"{case.routers}-{engine}")]
    largest = 0
    before = _cpu()
    began = time.monotonic()
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        while process.poll() is None:
            largest = max(largest, _largest(process.pid))
            try:
                process.wait(LOOK_S)
            except subprocess.TimeoutExpired:
                continue
        wall_s = time.monotonic() - began
        if process.returncode:
            assert process.stderr is not None
            raise RuntimeError(f"{case.name} with {engine}: {process.stderr.read()}")
    return Cost(wall_s, _cpu() - before, largest)


def _cpu() -> float:
    """Of all processes since the machine was started, seconds."""
    user, nice, system = (int(number) for number in Path("/proc/stat").read_text().split()[1:4])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


def _largest(session: int) -> int:
    """Resident memory of the largest process of a session but Java's, bytes."""
    found = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, rest = (folder / "stat").read_text().rsplit(")", 1)
            if int(rest.split()[3]) == session and "(java" not in name:
                found = max(found, resident_bytes(int(folder.name)))
        except (OSError, ValueError, IndexError):
            continue  # it has ended meanwhile
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="whole_runs", description="Measure whole runs of what-if.")
    parser.add_argument("cases", nargs="*", help="with what their names begin; all when there is none")
    wanted = tuple(parser.parse_args(arguments).cases) or ("",)
    shown = table("engine", "time", "processor time", "largest process", title=f"Whole runs, {describe()}")
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            if not case.name.startswith(wanted):
                continue
            for engine in ENGINES:
                cost = measure(case, engine, Path(folder))
                print(f"{case.name}, {engine}: {cost.wall_s:.1f} s", file=sys.stderr, flush=True)
                figures = (f"{cost.wall_s:.1f} s", f"{cost.cpu_s:.1f} s", f"{cost.largest / 1e6:.0f} MB")
                shown.add_row(case.name, engine, *figures)
    console().print(shown)


if __name__ == "__main__":
    main()
