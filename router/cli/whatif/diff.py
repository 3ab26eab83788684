"""`amqp-mesh whatif diff`: what differs between two models or two runs."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import click

from router.cli.errors import BAD_INPUT, CommandError
from router.cli.stat_columns import printable
from router.cli.stdout_errors import failing_with
from router.cli.whatif.command_helpers import answering, is_run, say_json, say_table
from router.cli.whatif.options import folder_argument, json_option

DIFFERENT = 1
CHANGES_SHOWN = 40
BOTH = ("before", "after")


@click.command("diff")
@folder_argument("before", "OLD")
@folder_argument("after", "NEW")
@click.option("--exit-code", "is_strict", is_flag=True, help="Exit with status 1 when anything differs.")
@click.option("--no-worse", "is_gate", is_flag=True, help="Exit with status 1 when NEW is worse in anything.")
@json_option
def diff(before: Path, after: Path, is_strict: bool, is_gate: bool, is_json: bool) -> None:
    """Show the differences between OLD and NEW: two models, such as snapshots of a live mesh, or two runs.

    Shown are what was added, removed or changed, and its effects while nothing fails; for two runs also the effects in
    the scenarios that both have: utilisation only where both have capacities of links. A run and a model are compared
    as two models, without scenarios, and --no-worse refuses them; it also refuses two runs without a failure in common.

    Exit status: 1 as --exit-code and --no-worse say, 2 for input that can't be used, or files and
    output that can't be read or written, else 0.
    """
    comparing = importlib.import_module("router.whatif.analysis.diff")
    are_runs = is_run(before), is_run(after)
    if is_gate and any(are_runs) and not all(are_runs):
        run, model = (before, after) if are_runs[0] else (after, before)
        raise CommandError(
            f"--no-worse: {run} is a run and {model} a model; expected two runs, or two models", BAD_INPUT
        )
    with failing_with(BAD_INPUT), answering(f"{before} or {after}"):
        found = comparing.compare(before, after)
    if is_gate and found.run is not None and found.run.is_apart:
        raise CommandError("--no-worse: the runs have no failure in common, so nothing can be compared", BAD_INPUT)
    worse = list(found.worsenings())
    with failing_with(BAD_INPUT):
        if is_json:
            say_json({**attrs.asdict(found, value_serializer=_plain), "is_none": found.is_none, "worse": worse})
        else:
            _say(found, worse)
            if any(are_runs) and not all(are_runs):
                click.echo("\nOne is a run and the other a model: no scenario is compared.")
    if (is_strict and not found.is_none) or (is_gate and worse):
        raise SystemExit(DIFFERENT)


def _plain(_: object, __: object, value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _say(found: Any, worse: list[str]) -> None:
    if found.is_none and not worse:
        click.echo("no difference")
    if found.changes:
        rows = [(it.part, it.key, it.what, _short(it.before), _short(it.after)) for it in found.changes]
        left = len(rows) - CHANGES_SHOWN
        say_table("Changes", ("part", "name", "what", *BOTH), rows[:CHANGES_SHOWN], apart=BOTH)
        if left > 0:
            click.echo(f"and {left:,} more: see --json")
    impact = list(_impact(found.impact))
    if impact:
        click.secho("\nWhile nothing fails", bold=True)
        for sentence in impact:
            click.echo(printable(sentence))
    if found.impact.links:
        rows = [(it.link, it.src, it.before, it.after, it.after - it.before) for it in found.impact.links]
        rates = ("msg/s before", "msg/s")
        say_table("Loads that change most", ("link", "from", *rates, "more"), rows, apart=rates)
    for title, rows in (("New", found.new_spof), ("No longer", found.gone_spof)):
        if rows:
            shown = [(row["kind"], row["element"], row["unreachable_pairs"], row["lost_msgs_per_s"]) for row in rows]
            columns = ("kind", "name", "pairs losing connectivity", "msg/s lost")
            say_table(f"{title} single points of failure", columns, shown)
    if found.counters:
        rows = sorted(found.counters, key=lambda each: (-each[2], each[0], each[1]))[:CHANGES_SHOWN]
        say_table("Messages between the snapshots", ("link", "from", "messages"), rows)
    if found.run is not None:
        _say_run(found.run)
    if worse:
        click.secho("\nWorse", bold=True, fg="red")
        for sentence in worse:
            click.echo(printable(sentence))


def _short(value: object) -> object:
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def _impact(impact: Any) -> Iterator[str]:
    words = importlib.import_module("router.whatif.wording")
    for count, said in (
        (impact.lost_count, "lost the path"),
        (impact.gained_count, "got a path that they did not have"),
        (impact.longer, "have a path that costs more"),
        (impact.shorter, "have a path that costs less"),
        (impact.moved, "have another next hop"),
    ):
        if count:
            yield f"{words.counted(count, 'ordered pair')} of routers {said}."
    if impact.lost_before != impact.lost_after:
        now, then = words.told_apart(words.rate, impact.lost_after, impact.lost_before)
        yield f"{now} reach nobody, {then} before."


def _say_run(run: Any) -> None:
    comparing = importlib.import_module("router.whatif.analysis.diff")
    click.secho("\nScenarios", bold=True)
    click.echo(f"{run.common:,} in both are compared; {run.only_before:,} only before, {run.only_after:,} only after.")
    rows = [
        (comparing.MEASURES[measure], run.worse[measure], run.better[measure], *run.highest[measure])
        for measure in run.highest
    ]
    columns = ("measure", "scenarios worse", "better", "highest before", "highest")
    say_table("Comparison of the scenarios in both runs", columns, rows, apart=columns[3:])
    if unknown := run.without_capacities():
        click.echo(f"Utilisation is {unknown}.")
    if run.changes:
        rows = [(comparing.MEASURES[it.measure], it.fails, it.before, it.after) for it in run.changes]
        say_table("Scenarios that get worse most", ("measure", "what is down", *BOTH), rows, apart=BOTH)
