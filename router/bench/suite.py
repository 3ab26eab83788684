"""All chosen cases over all paths, in alternation, several times; and what comes out of it.

The machine is never quiet, so figures are compared only within one round: a round runs every path of a case right after
the other, with the yardsticks among them, and a ratio is the median of the ratios of all rounds.
"""

from __future__ import annotations

import contextlib
import resource
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as Folder
from typing import Any, Final

import attrs

from router.bench.call_spread import OUTSTANDING, ROUTERS, CallSpread, measure_spill
from router.bench.cases import (
    DIRECT,
    IDLE,
    MEMORY,
    OSLO,
    SPILL,
    START,
    STREAM,
    Path,
    Workload,
    hops_name,
    host_and_port,
    parse_pid,
    parse_target,
)
from router.bench.echo import EchoServer
from router.bench.errors import BenchError
from router.bench.measuring import RunResult, measure
from router.bench.memory import MemoryCost, measure_memory
from router.bench.mesh_at_rest_usage import MeshAtRestUsage, measure_idle
from router.bench.oslo import OsloRun, check_oslo, measure_oslo
from router.bench.process_usage import is_there
from router.bench.program_startup_cost import ProgramStartupCost, measure_start
from router.bench.ratios_to_other_routers import RatioToOtherRouter, compare, pairs_of
from router.bench.routers import COMMAND, RouterLine

INTERPRETED: Final = "1 hop, interpreted"
OPEN_FILES: Final = 1024
"""Number of open files that a process is allowed on most systems: enough for every case."""
ECHO_SHARE: Final = 0.3
"""Time for the echo, as a share of that of a run."""


@attrs.frozen(kw_only=True)
class Plan:
    """Plan of what is to be measured."""

    cases: Sequence[Workload]
    hops: Sequence[int] = (1, 2, 3)
    """Numbers of routers of our own in between, ascending."""
    rounds: int = 3
    seconds: float = 1.0
    """Length of the measured part of each run."""
    warm_s: float = 0.15
    others: frozenset[str] = frozenset()
    """Cases of `cases.OTHERS` that are measured."""
    outstanding: Sequence[int] = OUTSTANDING
    """Numbers of calls at a time, for each run of `spill`."""
    spill_warm_s: float = 1.0
    connections: int = 300
    links: int = 2000
    """Number of links for the account of memory."""
    idle_routers: int = 60
    idle_s: float = 30.0
    """Time for which idle routers are looked at."""
    idle_settle_s: float = 60.0
    """Time before idle routers are looked at, from when all know each other."""
    command: Sequence[str] = COMMAND
    is_interpreted: bool = False
    """Whether to add a router that runs interpreted."""
    compare: Sequence[str] = ()
    """Routers to compare with, as `[name=]url[,url...]`, see `cases.parse_target`."""
    compare_pids: Sequence[str] = ()
    """Processes of these routers, as `[name=]pid`, see `cases.parse_pid`."""


@attrs.frozen(kw_only=True)
class CaseRound:
    """The runs of one case in one round."""

    runs: Mapping[str, RunResult]
    """Results by name of the path, `direct` among them."""
    stream_per_s: float
    """Messages per second of the case `stream-100B` with no router between."""
    echo_us: float | None
    """Median round trip of the TCP echo; for calls only."""


@attrs.frozen(kw_only=True)
class CaseMedians:
    """A case over a path: medians of its rounds."""

    case: str
    path: str
    is_rpc: bool
    hops: int
    """Number of routers in between; 0 for `direct`, 1 for a router that is compared."""
    per_s: float
    share: float
    """Part of the rate of `direct` in the same round."""
    stream_share: float
    """Part of the rate of `direct` in the case `stream-100B`, in the same round."""
    echo_multiple: float | None
    """Median latency of calls, divided by the round trip of the TCP echo in the same round."""
    cpu_us: float | None
    p50_us: float | None
    p99_us: float | None
    resident_bytes: int | None
    refused: int
    runs: Sequence[RunResult]


@attrs.frozen(kw_only=True)
class SuiteResult:
    """Everything that was found."""

    figures: Sequence[CaseMedians]
    echo_us: float | None
    memory: Sequence[MemoryCost]
    spill: Sequence[CallSpread] = ()
    """Run with the median share for each number of calls and each ring of routers."""
    oslo: Sequence[OsloRun] = ()
    """Run with the median rate for each path."""
    comparisons: Sequence[RatioToOtherRouter] = ()
    idle: MeshAtRestUsage | None = None
    start: Sequence[ProgramStartupCost] = ()


Report = Callable[[str, int, int], None]
"""Function told what begins, how many steps are done, and how many there are."""


def check(plan: Plan) -> None:
    """See that what is to be compared can be told apart, and that what is to be measured can be.

    Raises: BenchError
    """
    names = [DIRECT.name, *map(hops_name, plan.hops), *([INTERPRETED] if plan.is_interpreted else [])]
    targets = []
    for text in plan.compare:
        name = parse_target(text)[0]
        if name in names:
            raise BenchError(f"two paths would be named {name!r}: write --compare NAME=URL with another name")
        names.append(name)
        targets.append(name)
    for text in plan.compare_pids:
        named, pid = parse_pid(text)
        if named is None and not targets:
            raise BenchError(f"--compare-pid {text}: there is no --compare whose process it could be")
        if named is not None and named not in targets:
            known = f"; expected one of {', '.join(targets)}" if targets else ", nor any other"
            raise BenchError(f"--compare-pid {text}: there is no --compare {named}=URL{known}")
        if not is_there(pid):
            raise BenchError(f"--compare-pid {text}: no process {pid} runs here")
    if OSLO in plan.others:
        check_oslo()
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed < OPEN_FILES:
        raise BenchError(f"{OPEN_FILES} open files are needed, and `ulimit -n` allows {allowed}")


def run(plan: Plan, folder: Folder, report: Report) -> SuiteResult:
    """Carry out *plan*.

    Args:
        plan: what is to be measured, and how.
        folder: for mesh files and logs of the routers.
        report: told what begins, how many steps are done, and how many there are.
    Raises: BenchError
    """
    targets = [parse_target(text) for text in plan.compare]
    progress = _Progress(plan, len(targets), report)
    compared = [_compared(plan, name, urls) for name, urls in targets]
    ours, rounds, oslo = _over_paths(plan, folder, compared, progress)
    memory: list[MemoryCost] = []
    if MEMORY in plan.others:
        progress.step(MEMORY)
        with _line(plan, folder / MEMORY, 2) as line:
            memory = measure_memory(line, connections=plan.connections, links=plan.links)
    spill = _spill(plan, folder / SPILL, targets, progress) if SPILL in plan.others else []
    idle = _idle(plan, folder / IDLE, progress) if IDLE in plan.others else None
    start = _first_answers(plan, folder / START, progress) if START in plan.others else []
    progress.end()
    echoes = [each.echo_us for done in rounds.values() for each in done if each.echo_us is not None]
    runs: dict[str, Sequence[Mapping[str, Any]]] = {name: [one.runs for one in done] for name, done in rounds.items()}
    if oslo:
        runs[OSLO] = oslo
    paths = [*ours, *compared]
    return SuiteResult(
        figures=[figures_of(case, path, rounds[case.name]) for case in plan.cases for path in (DIRECT, *paths)],
        echo_us=statistics.median(echoes) if echoes else None,
        memory=memory,
        spill=spill,
        oslo=[sorted((one[path.name] for one in oslo), key=_rate)[len(oslo) // 2] for path in paths if oslo],
        comparisons=[
            compare(case, one, other, [(done[one.name], done[other.name]) for done in found])
            for case, found in runs.items()
            for one, other in pairs_of(ours, compared)
        ],
        idle=idle,
        start=start,
    )


def _over_paths(
    plan: Plan, folder: Folder, compared: Sequence[Path], progress: _Progress
) -> tuple[Sequence[Path], dict[str, list[CaseRound]], list[dict[str, OsloRun]]]:
    """Run what is run over paths: the paths over our routers, the rounds of each case, and those of OSLO by path."""
    rounds: dict[str, list[CaseRound]] = {case.name: [] for case in plan.cases}
    oslo: list[dict[str, OsloRun]] = []
    has_oslo = OSLO in plan.others
    if not plan.cases and not has_oslo:
        return [], rounds, oslo
    with contextlib.ExitStack() as stack:
        if plan.hops or plan.is_interpreted:
            progress.begin("starting routers")
        lines = _start(plan, folder, stack)
        ours = [line.path(hops, name) for line, hops, name in lines]
        has_rpc = any(case.is_rpc for case in plan.cases)
        echo = stack.enter_context(EchoServer()) if has_rpc else None
        for number in range(plan.rounds):
            for case in plan.cases:
                done = _round(plan, case, [*ours, *compared], echo, progress, number + 1)
                rounds[case.name].append(done)
                for line, _, _ in lines:
                    line.check()
            if has_oslo:
                oslo.append({})
            for path in [*ours, *compared] if has_oslo else []:
                progress.step(f"{OSLO}, {path.name}, round {number + 1}")
                oslo[-1][path.name] = measure_oslo(path, seconds=plan.seconds, warm_s=plan.warm_s)
            _check_processes(compared)
    return ours, rounds, oslo


def _rate(run: OsloRun) -> float:
    return run.per_s


def _compared(plan: Plan, name: str, urls: Sequence[str]) -> Path:
    """The path over routers of others: one hop, or two when the ends attach to different ones."""
    send_to, receive_from = host_and_port(urls[0]), host_and_port(urls[min(1, len(urls) - 1)])
    pids = [pid for named, pid in map(parse_pid, plan.compare_pids) if named in (None, name)]
    hops = 1 if send_to == receive_from else 2
    return Path(name=name, hops=hops, send_to=send_to, receive_from=receive_from, pids=tuple(pids), has_sasl=True)


def _check_processes(compared: Sequence[Path]) -> None:
    """See that what routers of others used was read to the end.

    Raises: BenchError
    """
    for path in compared:
        for pid in path.pids:
            if not is_there(pid):
                raise BenchError(f"the process {pid} of {path.name} has ended meanwhile: what it used can't be told")


def _first_answers(plan: Plan, folder: Folder, progress: _Progress) -> Sequence[ProgramStartupCost]:
    progress.step(START)
    folder.mkdir(parents=True)
    return measure_start(plan.command, folder, plan.rounds)


def _idle(plan: Plan, folder: Folder, progress: _Progress) -> MeshAtRestUsage:
    """A mesh of its own that is left alone."""
    progress.step(f"{IDLE}, {plan.idle_routers} routers")
    with _line(plan, folder, plan.idle_routers, kind="geometric") as mesh:
        return measure_idle(mesh, seconds=plan.idle_s, settle_s=plan.idle_settle_s)


def _spill(
    plan: Plan, folder: Folder, targets: Sequence[tuple[str, Sequence[str]]], progress: _Progress
) -> Sequence[CallSpread]:
    """Calls to slow servers, over a ring of our own and those that are compared and have URLs enough."""
    found: dict[tuple[int, str], list[CallSpread]] = {}
    with _line(plan, folder, ROUTERS, kind="ring") as ring:
        rings = {"ring": [ring.address(number) for number in range(ROUTERS)]}
        for name, urls in targets:
            if len(urls) == ROUTERS:
                rings[name] = [host_and_port(url) for url in urls]
        for number in range(plan.rounds):
            for outstanding in plan.outstanding:
                for name, addresses in rings.items():
                    progress.step(f"{SPILL}, {outstanding} calls, {name}, round {number + 1}")
                    done = measure_spill(name, addresses, outstanding, plan.seconds, plan.spill_warm_s)
                    found.setdefault((outstanding, name), []).append(done)
            ring.check()
    return [sorted(runs, key=lambda one: one.share)[len(runs) // 2] for runs in found.values()]


def _line(
    plan: Plan, folder: Folder, count: int, environment: Mapping[str, str] | None = None, kind: str = "line"
) -> RouterLine:
    folder.mkdir(parents=True, exist_ok=True)
    return RouterLine(count, folder, command=plan.command, environment=environment, kind=kind)


def _start(plan: Plan, folder: Folder, stack: contextlib.ExitStack) -> list[tuple[RouterLine, int, str | None]]:
    """The routers of our own: which line, how far on it, and a name if it is not that of the hops."""
    found: list[tuple[RouterLine, int, str | None]] = []
    if plan.hops:
        line = stack.enter_context(_line(plan, folder / "line", max(plan.hops)))
        found += [(line, hops, None) for hops in plan.hops]
    if plan.is_interpreted:
        slow = _line(plan, folder / "interpreted", 1, {"AMQP_MESH_SPEED": "interpreted"})
        found.append((stack.enter_context(slow), 1, INTERPRETED))
    return found


def _round(
    plan: Plan, case: Workload, paths: Sequence[Path], echo: EchoServer | None, progress: _Progress, number: int
) -> CaseRound:
    """One round of a case, the one of this *number*."""
    runs = {}
    for path in (DIRECT, *paths):
        progress.step(f"{case.name}, {path.name}, round {number}")
        runs[path.name] = measure(case, path, seconds=plan.seconds, warm_s=plan.warm_s)
    stream = runs[DIRECT.name]
    if case != STREAM:
        progress.step(f"{STREAM.name}, {DIRECT.name}, round {number}")
        stream = measure(STREAM, DIRECT, seconds=plan.seconds / 2, warm_s=plan.warm_s)
    echo_us = None
    if case.is_rpc and echo is not None:
        echo_us = echo.round_trip_us(plan.seconds * ECHO_SHARE)
    return CaseRound(runs=runs, stream_per_s=stream.per_s, echo_us=echo_us)


def figures_of(case: Workload, path: Path, rounds: Sequence[CaseRound]) -> CaseMedians:
    """Sum up what these rounds tell of a case over a path."""
    runs = [one.runs[path.name] for one in rounds]
    p50s = [one.p50_us for one in runs if one.p50_us is not None]
    multiples = [
        one.runs[path.name].p50_us / one.echo_us  # type: ignore[operator]
        for one in rounds
        if one.echo_us is not None and one.runs[path.name].p50_us is not None
    ]
    p99s = [one.p99_us for one in runs if one.p99_us is not None]
    cpus = [one.cpu_us for one in runs if one.cpu_us is not None]
    return CaseMedians(
        case=case.name,
        path=path.name,
        is_rpc=case.is_rpc,
        hops=path.hops,
        per_s=statistics.median(one.per_s for one in runs),
        share=statistics.median(one.runs[path.name].per_s / one.runs[DIRECT.name].per_s for one in rounds),
        stream_share=statistics.median(one.runs[path.name].per_s / one.stream_per_s for one in rounds),
        echo_multiple=_median(multiples),
        cpu_us=_median(cpus),
        p50_us=_median(p50s),
        p99_us=_median(p99s),
        resident_bytes=max((one.resident_bytes or 0 for one in runs), default=0) or None,
        refused=sum(one.refused for one in runs),
        runs=runs,
    )


def _median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


class _Progress:
    """Counts steps."""

    def __init__(self, plan: Plan, targets: int, report: Report) -> None:
        paths = 1 + len(plan.hops) + plan.is_interpreted + targets
        yardsticks = sum(case != STREAM for case in plan.cases)
        rings = 1 + sum(len(parse_target(text)[1]) == ROUTERS for text in plan.compare)
        spills = rings * len(plan.outstanding) if SPILL in plan.others else 0
        oslos = paths - 1 if OSLO in plan.others else 0
        self._steps = plan.rounds * (paths * len(plan.cases) + yardsticks + spills + oslos)
        self._steps += len({MEMORY, IDLE, START} & plan.others)
        self._begun = 0
        self._report = report

    def begin(self, what: str) -> None:
        """Report something that is no step."""
        self._report(what, self._begun, self._steps)

    def step(self, what: str) -> None:
        """Report that the next step begins."""
        self._report(what, self._begun, self._steps)
        self._begun += 1

    def end(self) -> None:
        """Report that all is done."""
        self._report("done", self._steps, self._steps)
