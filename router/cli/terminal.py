"""Standard output as tables are written to it: as wide as the terminal is, or of a given width in a file or pipe."""

from __future__ import annotations

import sys
from typing import Final

from rich.console import Console

TABLE_WIDTH: Final = 160
"""Columns of a table with sentences, where no terminal shows it."""
UNBOUNDED_WIDTH: Final = 10000
"""Columns where no line is to be broken: programs read them."""


def console(plain_width: int = TABLE_WIDTH, *, stderr: bool = False) -> Console:
    """Make what tables are written to.

    Args:
        plain_width: columns where standard output is no terminal.
        stderr: write to standard error instead.
    """
    return Console(stderr=stderr, highlight=False, width=None if sys.stdout.isatty() else plain_width)
