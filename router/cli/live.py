"""Screens that renew themselves: `top` and `stat --watch`. Without a terminal each look is written below the last."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final

import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from router.cli.management import ManagementError
from router.cli.stat_columns import printable
from router.cli.terminal import console, write_plain

REST: Final = 4.0
"""The next look waits at least so many times as long as one took, so that looking stays a small part of the work."""

interval_option: Final = click.option(
    "--interval",
    type=click.FloatRange(min=0.2),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Between two looks; longer when a look takes long.",
)
looks_option: Final = click.option("--looks", type=click.IntRange(min=1), help="End after so many.  [default: go on]")


def watch(
    look: Callable[[int], list[RenderableType]], *, interval_s: float, looks: int | None, is_plain: bool = False
) -> None:
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


def _on_terminal(look: Callable[[int], list[RenderableType]], interval_s: float, looks: int | None) -> None:
    out = console()
    parts = look(out.height - 1)
    with Live(Group(*parts), console=out, screen=True, auto_refresh=False) as live:
        live.refresh()
        done = 1
        while looks is None or done < looks:
            began = time.monotonic()
            parts = _tried(look, out.height - 1, parts)
            live.update(Group(*parts), refresh=True)
            done += 1
            time.sleep(max(interval_s, REST * (time.monotonic() - began)))


def _below_each_other(
    look: Callable[[int], list[RenderableType]], interval_s: float, looks: int | None, *, is_plain: bool
) -> None:
    done = 0
    parts: list[RenderableType] = []
    while looks is None or done < looks:
        began = time.monotonic()
        parts = _tried(look, 0, parts) if done else look(0)
        if not is_plain:
            click.echo(time.strftime("-- %T"))
        for part in parts:
            write_plain(part)
        sys.stdout.flush()
        done += 1
        if looks is None or done < looks:
            time.sleep(max(interval_s, REST * (time.monotonic() - began)))


def _tried(
    look: Callable[[int], list[RenderableType]], height: int, last: list[RenderableType]
) -> list[RenderableType]:
    """The next look; where nobody answers, that in red above what was seen last."""
    try:
        return look(height)
    except ManagementError as error:
        stale = [part for part in last if not (isinstance(part, Text) and part.plain.startswith("Error: "))]
        return [Text(f"Error: {printable(str(error))}", style="red"), *stale]
