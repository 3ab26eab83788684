"""Many runs of the twin: meshes by timers by seeds, one task each, on this machine or on Spark. Table `convergence`.

A case that is done is kept beside the place of the result, so that an interrupted run can go on; the table appears when
all of them are there. What comes out does not depend on the engine.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa

from mesh_config.findings import Finding, SettingsError, Severity, nearest
from mesh_config.generators import KINDS, MAX_ROUTERS, generate
from mesh_config.models import LinkStateSettings
from mesh_config.value_rules import expectation, fault_of, fields_of
from router import __version__
from router.whatif.convergence.twin import Row, TwinCase, TwinTopology, run_case
from router.whatif.formats.folder_replacement import put_aside, replace_folder
from router.whatif.pipeline.atomic_files import write_atomically
from router.whatif.pipeline.held_signals import import_whole
from router.whatif.pipeline.output_place import check_output_place
from router.whatif.pipeline.run import Progress, silent
from router.whatif.pipeline.run_staging import begin_or_resume, lock_folder
from router.whatif.pipeline.spark_masters import SparkAddress
from router.whatif.pipeline.table_files import from_rows, write_table
from router.whatif.pipeline.table_layouts import CONVERGENCE, RUN
from router.whatif.pipeline.worker_pool import work_off

Done = Callable[[int, list[Row]], None]
"""Told the place of a case, and its rows."""

LABEL: Final = "running meshes"
FORMAT: Final = 1
"""Format of what is kept of cases that are done: those of another one are not resumed."""


class TwinGridError(SettingsError):
    """A grid of twins that can't be; `findings` has what is wrong."""


def _error(key: str, message: str, expected: str = "", near: str | None = None) -> TwinGridError:
    return TwinGridError([Finding(severity=Severity.ERROR, key=key, message=message, expected=expected, nearest=near)])


# What is asked for


def shapes(texts: Iterable[str], sizes: Sequence[int]) -> list[TwinTopology]:
    """Meshes of well-known shapes: `geometric:30`, or `geometric` in every one of *sizes*.

    Raises: TwinGridError for a shape or a size that there is not.
    """
    found = []
    for text in texts:
        name, colon, number = text.partition(":")
        if name not in KINDS:
            expected = f"one of {', '.join(KINDS)}, and perhaps a number of routers: geometric:30"
            raise _error("--generate", f"there is no shape `{name}`", expected, nearest(name, KINDS))
        if colon and not (number.isascii() and number.isdigit() and 1 <= int(number) <= MAX_ROUTERS):
            raise _error("--generate", f"`{text}` has no number of routers", f"{name}:N, N from 1 to {MAX_ROUTERS}")
        if not colon and not sizes:
            raise _error("--generate", f"`{text}` has no number of routers", f"{name}:N, or --sizes")
        for size in [int(number)] if colon else sizes:
            try:
                generate(name, size)
            except ValueError as error:
                raise _error("--generate", f"{name}:{size}: {error}") from error
            found.append(TwinTopology(name=name, routers=size))
    return found


def timers(text: str) -> LinkStateSettings:
    """Settings of the routing protocol: `hello_interval_s=0.5,hello_max_age_s=1.5`; the others have their defaults.

    Raises: TwinGridError for one that there is not, or a value that it can't have.
    """
    fields = _timer_fields()
    values: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        key, sign, number = (word.strip() for word in part.partition("="))
        if key not in fields:
            raise _error("--timers", f"there is no timer `{key}`", f"one of {', '.join(fields)}", nearest(key, fields))
        try:
            value = float(number)
        except ValueError:
            expected = f"{key}={expectation(fields[key])}" if sign else f"{key}=SECONDS"
            raise _error("--timers", f"`{part}` has no number", expected) from None
        fault = fault_of(fields[key], value)
        if fault is not None:
            raise _error("--timers", f"{key}: {fault.message}", fault.expected, fault.nearest)
        values[key] = value
    made = LinkStateSettings(**values)
    if made.hello_max_age_s <= made.hello_interval_s:
        raise _error(
            "--timers",
            f"hello_max_age_s is {made.hello_max_age_s:g}, so that neighbors are lost between two HELLOs",
            f"more than hello_interval_s, {made.hello_interval_s:g}",
        )
    return made


def grid(
    grounds: Iterable[TwinTopology],
    settings: Iterable[LinkStateSettings],
    seeds: Iterable[int],
    case: Callable[..., TwinCase],
) -> list[TwinCase]:
    """A case for each mesh, each choice of timers and each seed.

    Args:
        grounds: the meshes.
        settings: choices of timers.
        seeds: one run for each.
        case: makes one of `ground`, `timers` and `seed`.
    Raises: TwinGridError for a model without links, whose routers have nothing to agree on.
    """
    grounds, settings, seeds = list(grounds), list(settings), list(seeds)
    for ground in grounds:
        if ground.ids is not None and not ground.links:
            raise _error("links", f"the model `{ground.name}` has no links", "one at least: else nothing has to agree")
    cases = [
        case(ground=ground, timers=chosen, seed=seed) for ground in grounds for chosen in settings for seed in seeds
    ]
    return list({digest(one): one for one in cases}.values())


def digest(case: TwinCase) -> str:
    """Digest that tells a case from any other one, as hexadecimal text."""
    plain = json.dumps(attrs.asdict(case), sort_keys=True)
    return hashlib.sha256(plain.encode()).hexdigest()[:32]


# Running


def run(
    cases: Sequence[TwinCase],
    out: str | os.PathLike[str],
    *,
    spark: SparkAddress | None = None,
    workers: int | None = None,
    is_resumed: bool = False,
    on_progress: Progress = silent,
) -> pa.Table:
    """Run cases and write the table `convergence` into the folder *out*.

    Args:
        cases: each a task of its own.
        out: a new folder, or one that has such a table, which is replaced, or a run, which gets one.
        spark: its address; None: they run in processes of this machine.
        workers: processes at most; None: as many as there are processors.
        is_resumed: cases that an interrupted run has left are not run again.
        on_progress: told what is being done, how much of it is done, and how much there is.
    Returns: the table.
    Raises: TwinGridError, RunError, OSError.
    """
    target = Path(out)
    _check_place(target)
    stage = target.parent / f".{target.name}.twins"
    with lock_folder(stage, target):
        begin_or_resume(stage, {"format": FORMAT, "version": __version__}, is_resumed=is_resumed)
        table = _run_cases(cases, spark, workers, stage, on_progress)
        _put(table, stage, target)
    return table


def _run_cases(
    cases: Sequence[TwinCase], spark: SparkAddress | None, workers: int | None, stage: Path, on_progress: Progress
) -> pa.Table:
    """Run the cases of which nothing is in the folder *stage* yet. Returns: the table of all."""
    # The largest ones first: nobody waits for one that was begun last.
    order = sorted(cases, key=lambda case: -max(case.ground.routers, len(case.ground.links)))
    files = [stage / f"{digest(case)}.json" for case in order]
    left = [place for place, file in enumerate(files) if not file.exists()]
    done = len(order) - len(left)
    on_progress(LABEL, done, len(order))

    def on_done(place: int, rows: list[Row]) -> None:
        nonlocal done
        write_atomically(files[left[place]], json.dumps(rows).encode())
        done += 1
        on_progress(LABEL, done, len(order))

    if left and spark is not None:
        on_progress("starting Spark", done, len(order))
        _play_on_spark([order[place] for place in left], spark, stage, on_done)
    elif left:
        _play_here([order[place] for place in left], workers or len(os.sched_getaffinity(0)), stage, on_done)
    rows = [row for file in files for row in json.loads(file.read_text(encoding="utf-8"))]
    return from_rows(CONVERGENCE.name, rows)


def _play_on_spark(cases: Sequence[TwinCase], address: SparkAddress, stage: Path, on_done: Done) -> None:
    sessions = import_whole("router.whatif.pipeline.spark_session")
    tasks = import_whole("router.whatif.pipeline.spark_parallel_map")
    with sessions.session(address, stage / sessions.LOG) as session:
        for place, data in tasks.map_tasks(session, _as_json, cases, stage / sessions.LOG):
            on_done(place, json.loads(data))


def _play_here(cases: Sequence[TwinCase], workers: int, stage: Path, on_done: Done) -> None:
    workers = min(workers, len(cases))
    if workers == 1:
        for place, case in enumerate(cases):
            on_done(place, run_case(case))
        return
    work_off(
        range(len(cases)),
        run_case,
        lambda place: (cases[place],),
        workers=workers,
        place=stage,
        on_done=on_done,
    )


def _as_json(case: TwinCase) -> bytes:
    return json.dumps(run_case(case)).encode()


def _check_place(target: Path) -> None:
    expected = "a new folder, or one with a run or such a table"
    if target.exists() and not target.is_dir():
        raise _error("--output", f"{target} is a file", expected)
    is_ours = any((target / name).is_dir() for name in (CONVERGENCE.name, RUN.name))
    if target.is_dir() and any(target.iterdir()) and not is_ours:
        raise _error("--output", f"something else is in {target}", expected)
    check_output_place(target)


def _put(table: pa.Table, stage: Path, target: Path) -> None:
    """Write the table and give it its place; the one that is there is replaced."""
    fresh = stage / "table"
    shutil.rmtree(fresh, ignore_errors=True)
    write_table(fresh, table, CONVERGENCE.name)
    target.mkdir(parents=True, exist_ok=True)
    replace_folder(fresh / CONVERGENCE.name, target / CONVERGENCE.name)
    shutil.rmtree(put_aside(stage, target), ignore_errors=True)


# What came out


def summary(table: pa.Table) -> list[dict[str, Any]]:
    """A row for each mesh, choice of timers and kind of event, in the order of the table.

    Each has `mesh`, `routers`, `links`, `timers` (those that differ from the defaults), `kind`, `events`, median and
    most of `converge_s`, the messages and kB that a router has written on average, computations of one router, and the
    number of events after which not all was right (`wrong`).
    """
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        key = (row["mesh"], row["routers"], row["links"], _timers_of(row), row["kind"])
        groups.setdefault(key, []).append(row)
    found = []
    for (mesh, routers, links, chosen, kind), rows in groups.items():
        times = [row["converge_s"] for row in rows if row["converge_s"] is not None]
        found.append(
            {
                "mesh": mesh,
                "routers": routers,
                "links": links,
                "timers": chosen,
                "kind": kind,
                "events": len(rows),
                "median_s": statistics.median(times) if times else None,
                "most_s": max(times, default=None),
                "messages": sum(row["messages"] for row in rows) / len(rows) / routers,
                "kilobytes": sum(row["bytes"] for row in rows) / len(rows) / routers / 1000,
                "spf_runs": sum(row["spf_runs"] for row in rows) / len(rows) / routers,
                "period_s": sum(row["period_s"] for row in rows) / len(rows),
                "wrong": sum(1 for row in rows if row["wrong"]),
            }
        )
    return found


def _timers_of(row: Mapping[str, Any]) -> str:
    usual = LinkStateSettings()
    return ", ".join(f"{name}={row[name]:g}" for name in _timer_fields() if row[name] != getattr(usual, name))


def _timer_fields() -> dict[str, Any]:
    """The settings of link state that are times; its bounds change no convergence."""
    return {field.name: field for field in fields_of(LinkStateSettings) if field.metadata["unit"] == "seconds"}
