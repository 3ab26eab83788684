"""`amqp-mesh bench`: routers under load, and what that costs."""

from __future__ import annotations

import datetime as dt
import importlib
import importlib.util
import json
import os
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

import router
from router.bench import cases, suite
from router.bench.errors import BenchError
from router.bench.json_report import document
from router.bench.routers import COMMAND
from router.cli.bench_tables import tables
from router.cli.errors import CommandError, unwritable
from router.cli.options import BoundedNumber, WholeNumber
from router.cli.table_output_width import console
from router.security.file_replacement import replace_file

QUICK: Mapping[str, Any] = {
    "rounds": 1,
    "seconds": 0.05,
    "warm_s": 0.0,
    "connections": 10,
    "links": 50,
    "outstanding": (8,),
    "spill_warm_s": 0.1,
    "idle_routers": 3,
    "idle_s": 0.1,
    "idle_settle_s": 0.0,
}
"""Changes that `--quick` makes to the plan."""
PICTURES = (".png", ".svg")


@click.command(short_help="Put routers under load, and show the costs.")
@click.argument("names", nargs=-1, metavar="[CASE]...")
@click.option(
    "--hops",
    default="1,2,3",
    show_default=True,
    help="Numbers of routers between sender and receiver; empty: only without routers.",
)
@click.option(
    "--rounds",
    type=WholeNumber(1, 1000),
    metavar="N",
    default=3,
    show_default=True,
    help="Number of rounds of each case.",
)
@click.option(
    "--seconds",
    type=BoundedNumber(0.01, 3600),
    metavar="SECONDS",
    default=1.0,
    show_default=True,
    help="Duration of the measured part of each run.",
)
@click.option("--quick", is_flag=True, help="Run one very short round: to see that it works, not for figures.")
@click.option(
    "--compare",
    multiple=True,
    metavar="[NAME=]URL[,URL...]",
    help="Also measure the router at URL; with two URLs, receivers attach to the second; with four, "
    "`spill` is run over them. Can be repeated.",
)
@click.option(
    "--compare-pid",
    "compare_pids",
    multiple=True,
    metavar="[NAME=]PID",
    help="Process id of the router compared as NAME (without NAME: of all), to measure its CPU time and "
    "memory. Can be repeated.",
)
@click.option("--interpreted", "is_interpreted", is_flag=True, help="Also measure a router that runs interpreted.")
@click.option(
    "--router-command", metavar="COMMAND", help="Command that starts a router instead of this program, as one word."
)
@click.option(
    "--json",
    "json_file",
    type=click.Path(dir_okay=False),
    help="Write all figures as JSON into a file; `-` is standard output.",
)
@click.option("--picture", type=click.Path(dir_okay=False), help="Draw the figures into a file: .png or .svg.")
@click.option("--list", "is_list", is_flag=True, help="List the cases and exit.")
def bench(
    names: tuple[str, ...],
    hops: str,
    rounds: int,
    seconds: float,
    quick: bool,
    compare: tuple[str, ...],
    compare_pids: tuple[str, ...],
    is_interpreted: bool,
    router_command: str | None,
    json_file: str | None,
    picture: str | None,
    is_list: bool,
) -> None:
    """Put routers under load, and show their throughput, latency and costs.

    CASE is a case or a group of cases, as listed by --list; by default all but `oslo` are run. Streams and calls are
    run with no router between their ends (`direct`, the yardstick), then over one, two and three routers in a line,
    which are started for them; `spill` is run over a ring of four, `idle` in a mesh of sixty. Compare only figures of
    the same run: no machine is equally busy twice.

    Exit status 1: something could not be measured; 2: the command is wrong.
    """
    if is_list:
        _list()
        return
    try:
        chosen, others = cases.choose(names)
        plan = suite.Plan(
            cases=chosen,
            hops=_hops(hops),
            others=others,
            command=_words(router_command) if router_command else COMMAND,
            is_interpreted=is_interpreted,
            compare=compare,
            compare_pids=compare_pids,
            **(QUICK if quick else {"rounds": rounds, "seconds": seconds}),
        )
        suite.check(plan)
        for file in (json_file, picture):
            _check_folder(file)
        if picture is not None:
            _check_picture(picture, chosen)
    except BenchError as error:
        raise click.UsageError(str(error)) from error
    _measure(plan, json_file, picture)


def _rounds(count: int) -> str:
    return f"{count} {'round' if count == 1 else 'rounds'}"


def _measure(plan: suite.Plan, json_file: str | None, picture: str | None) -> None:
    out = console(stderr=json_file == "-")
    began, start = dt.datetime.now(dt.UTC), time.monotonic()
    ending = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is not signal.SIG_IGN]
    previous = [signal.signal(number, _terminated) for number in ending]
    try:
        with tempfile.TemporaryDirectory(prefix="amqp-mesh-bench-") as folder:
            outcome = _run(plan, Path(folder))
    except BenchError as error:
        raise CommandError(str(error)) from error
    finally:
        for number, handler in zip(ending, previous, strict=True):
            signal.signal(number, handler)
    found = document(plan, outcome, began=began, seconds=time.monotonic() - start)
    out.print(f"amqp-mesh {router.__version__}, {router.SPEED}; {_rounds(plan.rounds)} of {plan.seconds:g} s each")
    for table in tables(outcome):
        out.print(table)
    if json_file == "-":
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
    elif json_file is not None:
        with _unwritable_told(json_file):
            replace_file(json_file, json.dumps(found, indent=2) + "\n", mode=0o666)
    if picture is not None:
        with _unwritable_told(picture):
            importlib.import_module("router.bench.picture").draw(found, picture)


@contextmanager
def _unwritable_told(file: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unwritable(error, file) from error


def _run(plan: suite.Plan, folder: Path) -> suite.SuiteResult:
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("starting", total=None)
        return suite.run(
            plan,
            folder,
            lambda what, done, total: progress.update(task, description=what, completed=done, total=total),
        )


def _check_folder(file: str | None) -> None:
    """Check that the folder of *file* is there and can be written to, before anything is measured for it."""
    if file not in (None, "-") and not os.access(Path(file).parent, os.W_OK):
        raise BenchError(f"{file}: its folder is not there, or can't be written to")


def _check_picture(file: str, chosen: Sequence[cases.Workload]) -> None:
    """Check that the picture *file* can be drawn, before anything is measured for it."""
    if not chosen:
        raise BenchError(f"{', '.join(cases.OTHERS)} can't be drawn without other cases")
    if Path(file).suffix not in PICTURES:
        raise BenchError(f"{file}: the name of a picture ends in {' or '.join(PICTURES)}")
    if importlib.util.find_spec("matplotlib") is None:
        raise BenchError("a picture needs matplotlib: pip install '.[bench]' in a clone of its repository")


def _terminated(number: int, frame: FrameType | None) -> None:
    """SIGTERM, and the end of the terminal, end the routers too."""
    sys.exit(128 + number)


def _hops(text: str) -> Sequence[int]:
    try:
        found = sorted({int(word) for word in text.split(",") if word.strip()})
    except ValueError:
        found = [0]
    if found and not 1 <= found[0] <= found[-1] <= cases.MAX_HOPS:
        raise BenchError(f"--hops {text}: expected numbers from 1 to {cases.MAX_HOPS}, such as 1,2,3")
    return found


def _words(command: str) -> Sequence[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise BenchError(f"--router-command {command}: {error}") from error


def _list() -> None:
    shown = Table(box=None, pad_edge=False, show_header=False)
    for case in cases.CASES:
        shown.add_row(case.name, case.group, cases.describe(case))
    for name, what in cases.OTHERS.items():
        shown.add_row(name, name, what)
    console().print(shown)
