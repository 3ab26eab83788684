"""Calls of one client beside a flood on other connections: what the busy do to those who want little.

One client calls a server that answers at once, both on connections of their own in this process. A process of its own
floods the same router meanwhile; the size is the number of connections that publish what they may. As a control the
same flood goes through another router, which takes as much of the processors: what calls take longer then isn't the
router's doing.

Two floods, a router and a client want more than two processors have. Where the system allows it the client comes first,
else its times would tell how long it waited for a processor.

Times are the median of several turns, each of an idle router, a flood beside, and one elsewhere; so are their ratios.
"""

from __future__ import annotations

import os
import pathlib
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import attrs

from router.bench.cases import Path, Workload, host_and_port
from router.bench.measuring import LoadConnections, RunResult
from router.bench.measuring import measure as measure_load
from tests.measure.credit.tasks import Parent, Task
from tests.measure.scale.stand import Bench, Stand, Table, new_address

THROTTLE = pathlib.Path("/proc/sys/kernel/sched_rt_runtime_us")
SIZES = (1, 4)
TURNS = 3
CALLS_S = 0.6
WARM_S = 0.2
FLOOD_S = WARM_S + CALLS_S + 0.3
"""From its first messages on: it outlasts the calls."""
SUBSCRIBERS = 200
"""Of a fan-out."""
CALLS = Workload(name="calls", group="", size=200, is_rpc=True)
FLOODS = {
    "100 B": Workload(name="100 B", group="", size=100, is_paired=True),
    "100 B, pre-settled": Workload(name="100 B, pre-settled", group="", size=100, is_presettled=True, is_paired=True),
    "1 MB": Workload(name="1 MB", group="", size=1_000_000, is_paired=True),
    "fan-out": Workload(name="fan-out", group="", size=100, receivers=SUBSCRIBERS),
}


def measure(stand: Stand, sizes: Sequence[int]) -> Table:
    """How long calls take."""
    table = Table(f"calls of one client beside so many that publish all they may; a fan-out has {SUBSCRIBERS} copies")
    with stand.line() as here, stand.line() as elsewhere, client_first():
        for size in sizes:
            idle: list[RunResult] = []
            for name, case in FLOODS.items():
                turns = [_turn(here, elsewhere, case, size) for _ in range(TURNS)]
                idle += [turn.idle for turn in turns]
                _show(table, size, name, turns)
            _add(table, size, "idle", idle)
    return table


@contextmanager
def client_first() -> Iterator[None]:
    """This process, and none that it starts, comes before others that want a processor."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(2))
    except PermissionError:
        yield  # figures are then higher than they should be, and there are some
        return
    try:
        with _unthrottled():
            yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@contextmanager
def _unthrottled() -> Iterator[None]:
    """Processes that come first may use a processor all the time.

    Linux stops them for the last 50 ms of each second of which they have used the rest, and routers beside a flood use
    it: that would be the longest wait of all, and nobody's who deploys one. Does nothing for who has no right to.
    """
    try:
        before = THROTTLE.read_text()
        THROTTLE.write_text("-1")
    except OSError:
        yield
        return
    try:
        yield
    finally:
        THROTTLE.write_text(before)


def routers_first(bench: Bench) -> None:
    """Let routers come before all processes but `client_first`, so that nobody waits for the system's scheduler.

    Does nothing for who has no right to.
    """
    for router in bench.mesh.running:
        for thread in os.listdir(f"/proc/{bench.mesh[router].pid}/task"):
            try:
                os.sched_setscheduler(int(thread), os.SCHED_RR, os.sched_param(1))
            except PermissionError:
                return


@attrs.frozen
class Turn:
    """Calls in three surroundings."""

    idle: RunResult
    beside: RunResult
    elsewhere: RunResult
    """With the flood at another router."""
    flood: RunResult


def _turn(here: Bench, elsewhere: Bench, case: Workload, size: int) -> Turn:
    idle = _calls(here)
    beside, flood = _calls_during(here, here, case, size)
    control, _ = _calls_during(here, elsewhere, case, size)
    return Turn(idle, beside, control, flood)


def _calls(bench: Bench) -> RunResult:
    return measure_load(CALLS, path(bench.url()), seconds=CALLS_S, warm_s=WARM_S)


def _calls_during(bench: Bench, flooded: Bench, case: Workload, size: int) -> tuple[RunResult, RunResult]:
    """The calls, and the flood."""
    with Task(flood, flooded.url(), new_address("multicast" if case.receivers > 1 else "anycast"), case, size) as task:
        assert task.hear() == "flooding"
        calls = _calls(bench)
        return calls, task.hear()


def path(url: str) -> Path:
    """Both ends at one router."""
    return Path(name="1 hop", hops=1, send_to=host_and_port(url), receive_from=host_and_port(url))


def flood(parent: Parent, url: str, address: str, case: Workload, size: int) -> RunResult:
    """In a process: *size* connections publish. Returns: what they did."""
    receivers = size if case.is_paired else case.receivers
    load = LoadConnections(attrs.evolve(case, senders=size, receivers=receivers), path(url), address)
    try:
        load.attach()
        load.warm(WARM_S)
        parent.tell("flooding")
        return load.measure(FLOOD_S)
    finally:
        load.close()


def _show(table: Table, size: int, name: str, turns: Sequence[Turn]) -> None:
    table.add(size, f"{name}: messages", statistics.median(turn.flood.per_s for turn in turns), "/s")
    for where in ("beside", "elsewhere"):
        of = f"{name}, {where}" if where == "elsewhere" else name
        _add(table, size, of, [getattr(turn, where) for turn in turns])
        ratios = [p99(getattr(turn, where)) / p99(turn.idle) for turn in turns]
        table.add(size, f"{of}: p99, of that of an idle router", statistics.median(ratios), "x")


def _add(table: Table, size: int, name: str, runs: Sequence[RunResult]) -> None:
    table.add(size, f"{name}: p50", statistics.median(run.p50_us or 0.0 for run in runs) / 1e6)
    table.add(size, f"{name}: p99", statistics.median(map(p99, runs)) / 1e6)


def p99(run: RunResult) -> float:
    """Of a run of calls, microseconds."""
    assert run.p99_us is not None
    return run.p99_us
