"""Processor time of programs until their first answer: `--version`, `stat`, and `run` until it listens."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

from router.bench.errors import BenchError
from router.bench.process_usage import cpu_seconds
from router.bench.routers import ROOT, RouterLine


@attrs.frozen(kw_only=True)
class ProgramStartupCost:
    """Cost of a program's first answer: medians."""

    what: str
    cpu_s: float
    """Processor time of the process, user and system."""
    seconds: float
    """Real time."""


def measure_start(command: Sequence[str], folder: Path, rounds: int) -> list[ProgramStartupCost]:
    """Start each program *rounds* times.

    Args:
        command: `amqp-mesh` by another name, words.
        folder: for the mesh file and the log of the router that is started and asked; it exists.
        rounds: how often.
    Raises: BenchError
    """
    found: dict[str, list[ProgramStartupCost]] = {"--version": [], "stat": [], "run": []}
    for _ in range(rounds):
        found["--version"].append(_program("--version", command, ["--version"]))
        began = time.monotonic()
        with RouterLine(1, folder, command=command) as line:
            (pid,) = line.pids()
            took = time.monotonic() - began
            found["run"].append(ProgramStartupCost(what="run", cpu_s=cpu_seconds([pid]), seconds=took))
            host, port = line.address(0)
            found["stat"].append(_program("stat", command, ["stat", "--url", f"amqp://{host}:{port}"]))
    return [_median(runs) for runs in found.values()]


def _median(runs: Sequence[ProgramStartupCost]) -> ProgramStartupCost:
    return ProgramStartupCost(
        what=runs[0].what,
        cpu_s=statistics.median(one.cpu_s for one in runs),
        seconds=statistics.median(one.seconds for one in runs),
    )


def _program(what: str, command: Sequence[str], words: Sequence[str]) -> ProgramStartupCost:
    """Run it to its end, which `wait4` tells the cost of."""
    began = time.monotonic()
    with subprocess.Popen(
        [*command, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        said = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        tail = said.decode(errors="replace")[-2000:]
        raise BenchError(f"{what} ended with status {process.returncode}: {tail}")
    return ProgramStartupCost(what=what, cpu_s=usage.ru_utime + usage.ru_stime, seconds=time.monotonic() - began)
