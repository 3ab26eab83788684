"""Standard output as tables are written to it: as wide as the terminal is, or of a given width in a file or pipe."""

from __future__ import annotations

import sys
from typing import Final

import click
from rich.console import Console, RenderableType
from rich.text import Text

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
    width = None if sys.stdout.isatty() else plain_width
    # No markup: names are what peers have chosen, and one in brackets would be taken for a style, or fail.
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)


def write_plain(part: RenderableType) -> None:
    """Write a part of an output where no terminal is: without styles, and without blanks at the ends of lines."""
    if isinstance(part, Text):
        click.echo(part.plain.rstrip())
        return
    out = console(UNBOUNDED_WIDTH)
    with out.capture() as capture:
        out.print(part)
    click.echo("\n".join(line.rstrip() for line in capture.get().splitlines()))
