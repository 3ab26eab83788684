"""Write the stages of a message into `explanation/walk-of-a-message.md`, from the table of the program.

python docs/stages.py
"""

from __future__ import annotations

import ast
import importlib
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import router

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "explanation" / "walk-of-a-message.md"
SOURCE = Path(router.__file__).parent / "dataplane" / "transfer_stages.py"
BEGIN = "<!-- Made from router/dataplane/transfer_lifecycle.py by docs/stages.py. -->\n"
END = "<!-- The end of what is made. -->\n"


def meanings() -> dict[str, str]:
    """What is said of each stage and each event, by its name."""
    body = ast.parse(SOURCE.read_text(encoding="utf-8")).body
    found = {}
    for node, following in pairwise(body):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(following, ast.Expr):
            found[node.target.id] = " ".join(ast.literal_eval(following.value).split())
    return found


def rows(lifecycle: Any) -> list[str]:
    """A row for each stage: what it means, and what leads where; what ends every stage is said once."""
    said = meanings()
    found = []
    for stage, name in lifecycle.STAGES.items():
        leads = [
            f"{lifecycle.EVENTS[event].lower()} → {lifecycle.STAGES[to]}"
            for (at, event), to in lifecycle.TABLE.items()
            if at == stage and lifecycle.EVENTS[event] != "FINISHED"
        ]
        found.append(f"| `{name}` | {said[name]} | {'<br>'.join(leads) or '—'} |\n")
    return found


def events(lifecycle: Any) -> list[str]:
    """A row for each event."""
    said = meanings()
    return [f"| {name.lower()} | {said[name]} |\n" for name in lifecycle.EVENTS.values()]


def text() -> str:
    """What is made: two tables in Markdown."""
    lifecycle = importlib.import_module("router.dataplane.transfer_lifecycle")
    stages = "| stage | the message | event → next stage |\n|---|---|---|\n" + "".join(rows(lifecycle))
    return f"{stages}\n| event | what has happened |\n|---|---|\n{''.join(events(lifecycle))}"


def page() -> str:
    """The page as it should be."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{text()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    PAGE.write_text(page(), encoding="utf-8")
