"""Routers that are stopped and started one after the other, under calls of oslo.messaging: how many of these fail.

    python -m tests.measure.rolling_restart [CALLS]

A full mesh of four. Two servers and two groups of callers are at a router each, and know all four; each goes on at
another one when its router stops. Routers are restarted in turn until so many calls were made (20,000 by default).
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path

from tests.helpers.oslo import FULL, OsloWorker, mesh_of, open_at, outcomes, wait_fanout
from tests.helpers.processes import MeshProcesses, wait_until

CALLS = 20_000
CALLERS = 10
"""Threads of each group that call one after the other."""
BETWEEN = 100
"""Calls of each group that are answered while a router is away, and after it is back."""


def main(calls: int) -> int:
    """Measure and print. Returns: calls that failed."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        mesh = stack.enter_context(MeshProcesses(mesh_of(FULL), folder))
        servers = stack.enter_context(OsloWorker(folder / "servers.log"))
        callers = stack.enter_context(OsloWorker(folder / "callers.log"))
        mesh.start()
        mesh.wait_converged()
        names = [f"server-{router}" for router in "AB"]
        for name in names:
            router = name[-1]
            transport = open_at(servers, mesh, router, "ABCD".replace(router, ""))
            servers.do("serve", transport=transport, topic="load", server=name)
        loads = []
        for router in "CD":
            transport = open_at(callers, mesh, router, "ABCD".replace(router, ""))
            wait_fanout(callers, transport, "load", servers, names)
            loads.append(f"callers-{router}")
            callers.do("load", name=loads[-1], transport=transport, topic="load", threads=CALLERS)
        stops: list[float] = []
        for router in cycle("ABCD"):
            if sum(_progress(callers, loads)) >= calls and router == "A":
                break
            began = time.monotonic()
            assert mesh.terminate(router) == {router: 0}
            stops.append(time.monotonic() - began)
            _wait_progress(callers, loads)
            mesh.start(router)
            mesh.wait_converged()
            _wait_progress(callers, loads)
        records = [record for load in loads for record in callers.do("stop_load", name=load)]
        counts = Counter(outcomes(records))
        failed = sum(counts.values()) - counts["ok"]
        took = sorted(record["ended"] - record["began"] for record in records)
        print(f"{len(stops)} restarts, {len(records):,} calls, {failed} failed: {dict(counts)}")
        print(f"call: median {took[len(took) // 2] * 1000:.0f} ms, longest {took[-1]:.2f} s", end="; ")
        print(f"stop of a router: longest {max(stops):.2f} s")
        return failed


def _progress(callers: OsloWorker, loads: list[str]) -> list[int]:
    return [callers.do("progress", name=load) for load in loads]


def _wait_progress(callers: OsloWorker, loads: list[str]) -> None:
    wanted = [count + BETWEEN for count in _progress(callers, loads)]
    wait_until(
        lambda: all(now >= count for now, count in zip(_progress(callers, loads), wanted, strict=True)),
        "both groups of callers go on",
        60,
    )


if __name__ == "__main__":
    sys.exit(1 if main(int(sys.argv[1]) if len(sys.argv) > 1 else CALLS) else 0)
