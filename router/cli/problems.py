"""Output of `stat problems`: what is wrong in the whole mesh, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rich.text import Text

from router.cli.stat_columns import Entity, moment, printable
from router.management.problem_causes import by_urgency
from router.management.snapshot import SEEN_BY_ALL

SHOWN: Final = 4
"""Routers that are named."""


def merged(found: Sequence[tuple[str, Sequence[Entity]]]) -> list[dict[str, Any]]:
    """The problems that several routers tell of, what concerns the whole mesh once.

    Args:
        found: routers asked, each with its problems.
    """
    problems: dict[tuple[str, ...], dict[str, Any]] = {}
    for router, rows in found:
        for row in rows:
            key = (row["kind"], row["subject"], *(() if row["kind"] in SEEN_BY_ALL else (router,)))
            known = problems.get(key)
            if known is None:
                problems[key] = {**row, "seenBy": [router]}
            else:
                known["seenBy"].append(router)
    return [
        {**problem, "alsoAt": [router for each in also for router in each["seenBy"]]} if also else problem
        for problem, also in by_urgency(list(problems.values()))
    ]


def problem_parts(found: Sequence[tuple[str, Sequence[Entity]]], suffix: str) -> list[Text]:
    """Lines for a person.

    Args:
        found: routers asked, each with its problems.
        suffix: what commands need beside what the routers say, such as `--url`.
    """
    problems = merged(found)
    asked = f"{len(found)} router{'s' if len(found) != 1 else ''} asked"
    if not problems:
        return [Text(f"no problems; {asked}")]
    parts = [Text(f"{len(problems)} problem{'s' if len(problems) != 1 else ''}; {asked}")]
    for problem in problems:
        since = moment(problem["since"])
        begun = f", since {since}" if since else ""
        also = problem.get("alsoAt")
        waiting = f"; publishers wait for it at {_listed(also)} too" if also else ""
        parts.append(Text(f"{problem['kind']} ({_listed(problem['seenBy'])}{begun}{waiting})", style="red"))
        parts.append(Text(f"  {printable(str(problem['sentence']))}"))
        parts.append(Text(f"  > {printable(str(problem['command']))}{suffix}", style="dim"))
    return parts


def _listed(routers: Sequence[object]) -> str:
    return printable(", ".join(map(str, routers[:SHOWN])) + (" ..." if len(routers) > SHOWN else ""))
