"""Output of `stat problems`: what is wrong in the whole mesh, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from router.cli.stat_columns import Entity, moment, printable
from router.management.snapshot import PROBLEM_KINDS, SEEN_BY_ALL


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
    return sorted(problems.values(), key=_urgency)


def _urgency(problem: Entity) -> int:
    kind = problem["kind"]
    return PROBLEM_KINDS.index(kind) if kind in PROBLEM_KINDS else len(PROBLEM_KINDS)


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
        seen = problem["seenBy"]
        by = ", ".join(map(str, seen[:4])) + (" ..." if len(seen) > 4 else "")
        parts.append(Text(f"{problem['kind']} ({printable(by)}{begun})", style="red"))
        parts.append(Text(f"  {printable(str(problem['sentence']))}"))
        parts.append(Text(f"  > {printable(str(problem['command']))}{suffix}", style="dim"))
    return parts
