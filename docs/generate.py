"""Write the pages that are made from the program: `reference/cli.md` from the click commands,
`reference/whatif-tables.md` from the layouts of tables; and in `explanation/credit.md` the tables of states.

Run by scripts/build-docs. The pages that it writes are not kept in the repository, so they can't be out of date; a test
compares the tables.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path

import click

REFERENCE = Path(__file__).parent / "reference"
sys.path.insert(0, str(REFERENCE.parent.parent))

CREDIT = REFERENCE.parent / "explanation" / "credit.md"
BEGIN_STATES = "<!-- From here on made by docs/generate.py from router/core/forwarding/credit_states.py. -->\n"
END_STATES = "<!-- The tables of states end here. -->\n"

HEAD = """# Commands

Made from the program: `amqp-mesh COMMAND --help` says the same.
"""


def cli_page(contexts: Iterable[click.Context]) -> str:
    """The page as Markdown: a section for the command of each context with its help in full."""
    parts = [HEAD]
    for context in contexts:
        words = context.command_path
        level = min(2 + max(words.count(" ") - 1, 0), 4)
        parts.append(f"{'#' * level} {words}\n\n```text\n{context.command.get_help(context)}\n```\n")
    return "\n".join(parts)


def state_table(transitions: Mapping[tuple[Enum, Enum], Enum]) -> str:
    """What leads where, as a table of Markdown."""
    rows = [
        f"| {before.name.lower()} | {event.value} | {after.name.lower()} |"
        for (before, event), after in transitions.items()
    ]
    return "\n".join(("| state | what happens | next state |", "|---|---|---|", *rows)) + "\n"


def credit_states() -> str:
    """The tables of `explanation/credit.md`."""
    states = importlib.import_module("router.core.forwarding.credit_states")
    pool, subscriber = state_table(states.POOL_TRANSITIONS), state_table(states.SUBSCRIBER_TRANSITIONS)
    return f"A pool:\n\n{pool}\nA local subscriber of a multicast:\n\n{subscriber}"


def main() -> None:
    head, _, rest = CREDIT.read_text(encoding="utf-8").partition(BEGIN_STATES)
    tail = rest.partition(END_STATES)[2]
    CREDIT.write_text(f"{head}{BEGIN_STATES}\n{credit_states()}\n{END_STATES}{tail}", encoding="utf-8")
    program = importlib.import_module("router.cli").main  # it is found once the root is on the path
    contexts = importlib.import_module("router.cli.completion_and_man").contexts
    page = cli_page(contexts(program, "amqp-mesh", terminal_width=100, max_content_width=100))
    (REFERENCE / "cli.md").write_text(page, encoding="utf-8")
    tables = importlib.import_module("router.whatif.pipeline.table_layouts")
    (REFERENCE / "whatif-tables.md").write_text(tables.page(), encoding="utf-8")


if __name__ == "__main__":
    main()
