"""All chosen cases over all paths, in alternation, several times; and what comes out of it.

The machine is never quiet, so figures are compared only within one round: a round runs every path of a case right after
the other, with the yardsticks among them, and a ratio is the median of the ratios of all rounds.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as Folder
from typing import Final

import attrs

from router.bench.cases import DIRECT, MEMORY, SPILL, STREAM, Case, Path, hops_name, host_and_port, parse_target
from router.bench.echo import EchoServer
from router.bench.errors import BenchError
from router.bench.measuring import RunResult, measure
from router.bench.memory import Cost, measure_memory
from router.bench.routers import COMMAND, RouterLine
from router.bench.spill import OUTSTANDING, ROUTERS, Spill, measure_spill

INTERPRETED: Final = "1 hop, interpreted"
ECHO_SHARE: Final = 0.3
"""Time for the echo, as a share of that of a run."""


@attrs.frozen(kw_only=True)
class Plan:
    """Plan of what is to be measured."""

    cases: Sequence[Case]
    hops: Sequence[int] = (1, 2, 3)
    """Routers of our own in between, ascending."""
    rounds: int = 3
    seconds: float = 1.0
    """Of the measured part of each run."""
    warm_s: float = 0.15
    has_memory: bool = True
    has_spill: bool = True
    outstanding: Sequence[int] = OUTSTANDING
    """Calls at a time, for each run of `spill`."""
    spill_warm_s: float = 1.0
    connections: int = 300
    links: int = 2000
    """For the account of memory."""
    command: Sequence[str] = COMMAND
    is_interpreted: bool = False
    """Add a router that runs interpreted."""
    compare: Sequence[str] = ()
    """`[name=]url[,url...]`, see `cases.parse_target`."""
    compare_pids: Sequence[int] = ()


@attrs.frozen(kw_only=True)
class CaseRound:
    """The runs of one case in one round."""

    runs: Mapping[str, RunResult]
    """By name of the path, `direct` among them."""
    stream_per_s: float
    """Messages per second of the case `stream-100B` with no router between."""
    echo_us: float | None
    """Median round trip of the TCP echo; for calls only."""


@attrs.frozen(kw_only=True)
class Figures:
    """A case over a path: medians of its rounds."""

    case: str
    path: str
    is_rpc: bool
    hops: int
    """0: `direct`; of a router that is compared: 1."""
    per_s: float
    share: float
    """Of `direct` in the same round."""
    stream_share: float
    """Of what `direct` does in the case `stream-100B`, in the same round."""
    echo_multiple: float | None
    """The median latency of calls by the round trip of the TCP echo in the same round."""
    cpu_us: float | None
    p50_us: float | None
    p99_us: float | None
    resident_bytes: int | None
    refused: int
    runs: Sequence[RunResult]


@attrs.frozen(kw_only=True)
class Outcome:
    """Everything that was found."""

    figures: Sequence[Figures]
    echo_us: float | None
    memory: Sequence[Cost]
    spill: Sequence[Spill] = ()
    """For each number of calls and each ring of routers the run with the median share."""


Report = Callable[[str, int, int], None]
"""Told what begins, how many steps are done, and how many there are."""


def check(plan: Plan) -> None:
    """See that what is to be compared can be told apart.

    Raises: BenchError
    """
    names = [DIRECT.name, *map(hops_name, plan.hops), *([INTERPRETED] if plan.is_interpreted else [])]
    for text in plan.compare:
        name = parse_target(text)[0]
        if name in names:
            raise BenchError(f"two paths would be named {name!r}: write --compare NAME=URL with another name")
        names.append(name)


def run(plan: Plan, folder: Folder, report: Report) -> Outcome:
    """Carry out *plan*.

    Args:
        plan: what is to be measured, and how.
        folder: for mesh files and logs of the routers.
        report: told what begins, how many steps are done, and how many there are.
    Raises: BenchError
    """
    targets = [parse_target(text) for text in plan.compare]
    progress = _Progress(plan, len(targets), report)
    rounds: dict[str, list[CaseRound]] = {case.name: [] for case in plan.cases}
    paths: list[Path] = []
    memory: list[Cost] = []
    with contextlib.ExitStack() as stack:
        if plan.cases and (plan.hops or plan.is_interpreted):
            progress.begin("starting routers")
        lines = _start(plan, folder, stack) if plan.cases else []
        for line, hops, name in lines:
            paths.append(line.path(hops, name))
        for name, urls in targets:
            ends = {"send_to": host_and_port(urls[0]), "receive_from": host_and_port(urls[min(1, len(urls) - 1)])}
            paths.append(Path(name=name, hops=1, pids=tuple(plan.compare_pids), **ends))
        has_rpc = any(case.is_rpc for case in plan.cases)
        echo = stack.enter_context(EchoServer()) if has_rpc else None
        for number in range(plan.rounds):
            for case in plan.cases:
                done = _round(plan, case, paths, echo, lambda what, n=number: progress.step(f"{what}, round {n + 1}"))  # type: ignore[misc]
                rounds[case.name].append(done)
                for line, _, _ in lines:
                    line.check()
    if plan.has_memory:
        progress.step(MEMORY)
        with _line(plan, folder / MEMORY, 2) as line:
            memory = measure_memory(line, connections=plan.connections, links=plan.links)
    spill = _spill(plan, folder / SPILL, targets, progress) if plan.has_spill else []
    progress.end()
    echoes = [each.echo_us for done in rounds.values() for each in done if each.echo_us is not None]
    return Outcome(
        figures=[figures_of(case, path, rounds[case.name]) for case in plan.cases for path in (DIRECT, *paths)],
        echo_us=statistics.median(echoes) if echoes else None,
        memory=memory,
        spill=spill,
    )


def _spill(
    plan: Plan, folder: Folder, targets: Sequence[tuple[str, Sequence[str]]], progress: _Progress
) -> Sequence[Spill]:
    """Calls to slow servers, over a ring of our own and those that are compared and have URLs enough."""
    found: dict[tuple[int, str], list[Spill]] = {}
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
    plan: Plan, case: Case, paths: Sequence[Path], echo: EchoServer | None, begin: Callable[[str], None]
) -> CaseRound:
    runs = {}
    for path in (DIRECT, *paths):
        begin(f"{case.name}, {path.name}")
        runs[path.name] = measure(case, path, seconds=plan.seconds, warm_s=plan.warm_s)
    stream = runs[DIRECT.name]
    if case != STREAM:
        begin(f"{STREAM.name}, {DIRECT.name}")
        stream = measure(STREAM, DIRECT, seconds=plan.seconds / 2, warm_s=plan.warm_s)
    echo_us = None
    if case.is_rpc and echo is not None:
        echo_us = echo.round_trip_us(plan.seconds * ECHO_SHARE)
    return CaseRound(runs=runs, stream_per_s=stream.per_s, echo_us=echo_us)


def figures_of(case: Case, path: Path, rounds: Sequence[CaseRound]) -> Figures:
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
    return Figures(
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
        spills = rings * len(plan.outstanding) if plan.has_spill else 0
        self._steps = plan.rounds * (paths * len(plan.cases) + yardsticks + spills) + plan.has_memory
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
