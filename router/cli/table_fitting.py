"""Tables in the width of a terminal: names are cut, then columns left out, and which ones is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from router.cli.stat_columns import Column, aligned

KEPT: Final = 2
"""Columns, the first ones, that are shown whatever they say."""
GAP: Final = 2
"""Blanks between columns."""
SHORTEST: Final = 12
"""Characters to which a name is cut where there is no room for more."""
WIDER: Final = "widen the terminal, or --json"
"""Remedy of a command that has no --wide."""


def fitted(
    columns: Sequence[Column], cells: Sequence[list[str]], width: int
) -> tuple[list[Column], list[list[str]], list[str]]:
    """Fit columns into a width: names are cut, then columns are left out, the spare ones first.

    Args:
        columns: of the table, the most telling ones first.
        cells: of each row.
        width: characters of a line.
    Returns: columns, cells, and titles of those that were left out.
    """
    kept, shown = list(columns), [list(row) for row in cells]
    left_out: list[str] = []
    while len(kept) > KEPT:
        sizes = [max(map(cell_len, (column.title, *(row[at] for row in shown)))) for at, column in enumerate(kept)]
        room = width - sum(sizes) - GAP * (len(sizes) - 1)
        if room >= 0:
            break
        texts = [
            0 if column.is_number else max((cell_len(row[at]) for row in shown), default=0)
            for at, column in enumerate(kept)
        ]
        longest = texts.index(max(texts))
        if texts[longest] > max(SHORTEST, cell_len(kept[longest].title)):
            most = max(SHORTEST, cell_len(kept[longest].title), texts[longest] + room)
            for row in shown:
                row[longest] = cut(row[longest], most)
            continue
        gone = max((at for at, column in enumerate(kept) if column.is_spare and at >= KEPT), default=len(kept) - 1)
        left_out.insert(0, kept.pop(gone).title)
        shown = [[*row[:gone], *row[gone + 1 :]] for row in shown]
    return kept, shown, left_out


def cut(text: str, most: int) -> str:
    """A text of at most so many characters: the end of it is left out where it is longer."""
    return text if cell_len(text) <= most else f"{set_cell_size(text, most - 1).rstrip()}\u2026"


def fitted_lines(columns: Sequence[Column], cells: Sequence[list[str]], width: int) -> tuple[list[str], list[str]]:
    """The lines of a table in a width, the titles first, and titles of columns that were left out.

    Args:
        columns: of the table, the most telling ones first.
        cells: of each row.
        width: characters of a line.
    """
    kept, shown, left_out = fitted(columns, cells, width)
    rows = [[column.title for column in kept], *shown]
    return aligned(rows, [column.is_number for column in kept]), left_out


def no_room(left_out: Sequence[str], remedy: str) -> Text:
    """The line below a table that has not all columns.

    Args:
        left_out: titles.
        remedy: how to see them.
    """
    return Text(f"no room for {', '.join(left_out)}: {remedy}", style="dim")
