"""Measure the digital twin, and print tables.

    python -m tests.measure.twin                        everything
    python -m tests.measure.twin cpu_costs                  what the work of real routers costs
    python -m tests.measure.twin processes --sizes 10   real router processes beside their twin
    python -m tests.measure.twin thousand               a thousand control planes and twenty failures

The exit status is 1 when a twin does not agree with its processes, or some plane is not right in the end.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

from router.whatif.convergence.simulation_parameters import LOOPBACK
from tests.helpers.tables import console, table
from tests.measure.twin import cpu_costs, processes, thousand

SUBJECTS = ("cpu_costs", "processes", "thousand")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="twin", description="Measure the digital twin.")
    parser.add_argument("what", nargs="*", metavar="what", help=f"some of {', '.join(SUBJECTS)}; all by default")
    parser.add_argument("--sizes", nargs="+", type=int, default=[10, 20, 30], help="of meshes of processes")
    parser.add_argument("--starts", type=int, default=5, help="of each mesh of processes")
    options = parser.parse_args()
    unknown = sorted(set(options.what) - set(SUBJECTS))
    if unknown:
        parser.error(f"no {unknown[0]}; there are {', '.join(SUBJECTS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # by way of all that ends the processes
    is_well = True
    with tempfile.TemporaryDirectory(prefix="amqp-mesh-twin-") as folder:
        for what in options.what or SUBJECTS:
            began = time.monotonic()
            match what:
                case "cpu_costs":
                    _cpu_costs(Path(folder))
                case "processes":
                    is_well &= _processes(Path(folder), options.sizes, options.starts)
                case "thousand":
                    is_well &= _thousand()
            print(f"{what}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    sys.exit(0 if is_well else 1)


def _cpu_costs(folder: Path) -> None:
    found = cpu_costs.measure(folder)
    shown = table("measured", "the twin has", title="what the work of a router costs, and a mesh on loopback")
    assert LOOPBACK.cpu_costs is not None
    for field in attrs.fields(type(found.cpu_costs)):
        if field.name != "cores":
            shown.add_row(field.name, *(_us(getattr(one, field.name)) for one in (found.cpu_costs, LOOPBACK.cpu_costs)))
    for name in ("delay_s", "jitter_s"):
        shown.add_row(name, *(_us(getattr(one, name)) for one in (found.network, LOOPBACK.network)))
    shown.add_row("detection_s", _us(found.detection_s), _us(LOOPBACK.detection_s))
    for routers, seconds in found.paths_s.items():
        shown.add_row(f"paths of {routers:,} routers", _us(seconds), "")
    console().print(shown)


def _processes(folder: Path, sizes: Sequence[int], starts: int) -> bool:
    is_well = True
    title = "from an event until the last router knew: median, least and most"
    shown = table("processes", "twin", "ratio", "", title=title)
    for size in sizes:
        real, twin = processes.measure(size, folder, starts=starts)
        for what, times, predicted in (("start", real.start_s, twin.start_s), ("SIGKILL", real.kill_s, twin.kill_s)):
            ratio = processes.ratio(predicted, times)
            # A start is decided by who dials whom when; only its range is predicted.
            agrees = 1 / processes.AGREE <= ratio <= processes.AGREE if what == "SIGKILL" else True
            is_well &= agrees
            verdict = "" if what == "start" else "agrees" if agrees else "DOES NOT AGREE"
            shown.add_row(f"{size} routers, {what}", _range(times), _range(predicted), f"{ratio:.2f}", verdict)
    console().print(shown)
    return is_well


def _thousand() -> bool:
    shown = table("agree", "messages", "MB", "computations", "wrong", title="a thousand control planes")

    def told(row: thousand.Row) -> None:
        print(row["event"], row["kind"], row["what"], row["converge_s"], file=sys.stderr, flush=True)

    rows, processor_s, memory = thousand.measure(told)
    for row in rows:
        took = row["converge_s"]
        shown.add_row(
            f"{row['event']} {row['kind']} {row['what']}",
            f"{took:.3f} s" if isinstance(took, float) else "-",
            f"{row['messages']:,}",
            f"{int(str(row['bytes'])) / 1e6:,.1f}",
            f"{row['spf_runs']:,}",
            str(row["wrong"]),
        )
    console().print(shown)
    print(f"{processor_s:.0f} s of CPU, {memory:,.0f} MB")
    return not any(row["wrong"] for row in rows)


def _us(seconds: float) -> str:
    return f"{1e6 * seconds:,.1f} us"


def _range(times: Sequence[float]) -> str:
    low, middle, high = (1000 * seconds for seconds in (min(times), statistics.median(times), max(times)))
    return f"{middle:.0f} ms, {low:.0f} to {high:.0f}, of {len(times)}"


if __name__ == "__main__":
    main()
