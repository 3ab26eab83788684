"""Screens that renew themselves: `top` and `stat --watch`. Without a terminal each look is written below the last."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final

import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from router.cli.management_errors import ManagementError
from router.cli.options import MAX_SECONDS, BoundedNumber, WholeNumber
from router.cli.stat_columns import printable
from router.cli.table_output_width import console, write_plain

Look = Callable[[int], list[RenderableType]]
"""Gives what is to be shown in so many lines (0 for all that there is)."""
REST: Final = 4.0
"""The next look waits at least so many times as long as one took, so that looking stays a small part of the work."""

interval_option: Final = click.option(
    "--interval",
    type=BoundedNumber(min=0.2, max=MAX_SECONDS),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Between two looks; longer when a look takes long.",
)
looks_option: Final = click.option(
    "--looks", type=WholeNumber(min=1), metavar="N", help="End after so many.  [default: go on]"
)


def watch(look: Look, *, interval_s: float, looks: int | None, is_plain: bool = False) -> None:
    """Look again and again, until Ctrl-C or enough looks.

    Args:
        look: gives what is to be shown in so many lines (0 for all that there is).
        interval_s: from one look to the next.
        looks: how many; None for no bound.
        is_plain: write each look below the last on a terminal too, without its time: for programs.
    Raises: ManagementError, of the first look; later ones are shown, and tried again.
    """
    try:
        if sys.stdout.isatty() and not is_plain:
            _on_terminal(look, interval_s, looks)
        else:
            _below_each_other(look, interval_s, looks, is_plain=is_plain)
    except KeyboardInterrupt:
        pass  # how it is meant to end


def _on_terminal(look: Look, interval_s: float, looks: int | None) -> None:
    """Renew a screen of its own, and leave the last look on the terminal: all that was on that screen goes with it."""
    out = console()
    seen = _each(look, lambda: out.height - 1, interval_s, looks)
    last = Group(*next(seen))
    try:
        with Live(last, console=out, screen=True, auto_refresh=False) as live:
            live.refresh()
            for parts in seen:
                last = Group(*parts)
                live.update(last, refresh=True)
    finally:
        out.print(last)


def _below_each_other(look: Look, interval_s: float, looks: int | None, *, is_plain: bool) -> None:
    for parts in _each(look, lambda: 0, interval_s, looks):
        if not is_plain:
            click.echo(time.strftime("-- %T"))
        for part in parts:
            write_plain(part)
        sys.stdout.flush()


def _each(
    look: Look, height: Callable[[], int], interval_s: float, looks: int | None
) -> Iterator[list[RenderableType]]:
    """Yield look by look, each when it is its time; *height* as it is then."""
    began = time.monotonic()
    parts = look(height())
    for done in itertools.count(1):
        took = time.monotonic() - began
        yield parts
        if done == looks:
            return
        time.sleep(max(interval_s, REST * took))
        began = time.monotonic()
        parts = _tried(look, height(), parts)


def _tried(look: Look, height: int, last: list[RenderableType]) -> list[RenderableType]:
    """The next look; where nobody answers, that in red above what was seen last."""
    try:
        return look(height)
    except ManagementError as error:
        stale = [part for part in last if not (isinstance(part, Text) and part.plain.startswith("Error: "))]
        return [Text(f"Error: {printable(str(error))}", style="red"), *stale]
