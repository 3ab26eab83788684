"""Tables that measuring programs print."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

FILE_COLUMNS = 160
"""Width where the output is no terminal."""


def table(*numbers: str, first: str = "", title: str | None = None) -> Table:
    """A table of a column of words, and *numbers* to its right."""
    made = Table(title=title, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    made.add_column(first, no_wrap=True)
    for name in numbers:
        made.add_column(name, justify="right")
    return made


def console() -> Console:
    """Standard output: as wide as the terminal is, or wide in a file."""
    made = Console(highlight=False)
    return made if made.is_terminal else Console(highlight=False, width=FILE_COLUMNS)
