"""Output of `stat problems`: what is wrong in the whole mesh, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.text import Text

from router.cli.stat_columns import Entity, moment, printable
from router.management.merged_problems import ProblemNearestCause, merged
from router.management.problem_kinds import NOTICES

SHOWN: Final = 4
"""Routers that are named."""


def problem_parts(
    found: Sequence[tuple[str, Sequence[Entity]]], suffix: str, *, silent: Sequence[str] = ()
) -> list[Text]:
    """Lines for a person.

    Args: found: routers asked, each with its problems. suffix: what commands need beside what the routers say, such as
    `--url`. silent: routers that could not be queried.
    """
    told = merged((router, row) for router, rows in found for row in rows)
    problems = [each for each in told if each.row["kind"] not in NOTICES]
    notices = [each for each in told if each.row["kind"] in NOTICES]
    count = _counted(len(problems), "problem") if problems else "no problems"
    also = f", {_counted(len(notices), 'notice')}" if notices else ""
    asked = f"; {_counted(len(found), 'router')} asked"
    if silent:
        there_are = _counted(len(found) + len(silent), "router")
        asked = f" at {len(found)} of {there_are}; {_listed(silent)} could not be queried"
    parts = [Text(count + also + asked)]
    for each in problems:
        parts += _lines(each, suffix, "red")
    for each in notices:
        parts += _lines(each, suffix, "yellow")
    return parts


def _lines(problem: ProblemNearestCause, suffix: str, style: str) -> list[Text]:
    row = problem.row
    since = moment(row["since"])
    begun = f", since {since}" if since else ""
    begun += f", last at {moment(row['last'])}" if row.get("last") else ""  # a router of an earlier version doesn't say
    command = problem.command
    reach = suffix if command.startswith("amqp-mesh ") else ""  # others, such as openssl, ask no router
    waiting = f"; publishers wait for it at {_listed(problem.also_at)} too" if problem.also_at else ""
    return [
        Text(f"{row['kind']} ({_listed(problem.seen_by)}{begun}{waiting})", style=style),
        Text(f"  {printable(str(row['sentence']))}"),
        *(Text(f"  {printable(each)}") for each in problem.told_beside()),
        *([Text(f"  > {command}{reach}", style="dim")] if command else []),
    ]


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count != 1 else ''}"


def _listed(routers: Sequence[object]) -> str:
    return printable(", ".join(map(str, routers[:SHOWN])) + (" ..." if len(routers) > SHOWN else ""))
