"""Screens that renew themselves: `top` and `stat --watch`. Without a terminal each look is written below the last."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final

import attrs
import click
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from router.cli.management_errors import ManagementError
from router.cli.options import MAX_SECONDS, BoundedNumber, WholeNumber
from router.cli.stat_columns import printable
from router.cli.table_output_width import console, write_plain


@attrs.frozen
class ScreenFrame:
    """Lines and tables seen at one look."""

    parts: list[RenderableType]
    is_whole: bool = True
    """Whether every router answered that was asked."""


Looking = Callable[[int], ScreenFrame]
"""Gives what is to be shown in so many lines (0 for all that there is)."""
REST: Final = 4.0
"""The next look waits at least so many times as long as one took, so that looking stays a small part of the work."""

interval_option: Final = click.option(
    "--interval",
    type=BoundedNumber(min=0.2, max=MAX_SECONDS),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="Refresh interval; longer when collecting the data takes longer.",
)
looks_option: Final = click.option(
    "--looks", type=WholeNumber(min=1), metavar="N", help="Stop after N refreshes.  [default: go on]"
)


def watch(
    look: Looking,
    *,
    interval_s: float,
    looks: int | None,
    in_plain: Callable[[ManagementError], RenderableType] | None = None,
) -> bool:
    """Look again and again, until Ctrl-C or enough looks.

    Args:
        look: gives what is to be shown in so many lines (0 for all that there is).
        interval_s: from one look to the next.
        looks: how many; None for no bound.
        in_plain: for programs: write each look below the last on a terminal too, without its time; it says how a look
            is written that could not be had.
    Returns: whether every router answered at the last look.
    Raises: ManagementError, of the first look; later ones are shown, and tried again.
    """
    watching = _Watching(look, in_plain)
    try:
        if sys.stdout.isatty() and in_plain is None:
            _on_terminal(watching, interval_s, looks)
        else:
            _below_each_other(watching, interval_s, looks, is_plain=in_plain is not None)
    except KeyboardInterrupt:
        pass  # how it is meant to end
    return watching.is_whole


@attrs.define
class _Watching:
    """Looks one behind the other."""

    _look: Looking
    _in_plain: Callable[[ManagementError], RenderableType] | None
    is_whole: bool = True
    """Whether every router answered at the last look."""
    _last: list[RenderableType] = attrs.field(factory=list)
    _seen_at: str = ""

    def first(self, height: int) -> list[RenderableType]:
        """The first look. Raises: ManagementError."""
        seen = self._look(height)
        self.is_whole, self._last, self._seen_at = seen.is_whole, seen.parts, time.strftime("%T")
        return seen.parts

    def next(self, height: int, *, is_kept: bool) -> list[RenderableType]:
        """The next look, or why there is none; with what was seen last, and when, if that *is_kept*."""
        try:
            return self.first(height)
        except ManagementError as error:
            self.is_whole = False
            if self._in_plain is not None:
                return [self._in_plain(error)]
            said: list[RenderableType] = [Text(f"Error: {printable(str(error))}", style="red")]
            return [*said, Text(f"Seen last at {self._seen_at}:"), *self._last][: height or None] if is_kept else said


def _on_terminal(watching: _Watching, interval_s: float, looks: int | None) -> None:
    """Renew a screen of its own, and leave the last look on the terminal: all that was on that screen goes with it."""
    out = console()
    seen = _each(watching, lambda: out.height - 1, interval_s, looks)
    last = Group(*next(seen))
    try:
        with Live(last, console=out, screen=True, auto_refresh=False) as live:
            live.refresh()
            for parts in seen:
                last = Group(*parts)
                live.update(last, refresh=True)
    finally:
        out.print(last)


def _below_each_other(watching: _Watching, interval_s: float, looks: int | None, *, is_plain: bool) -> None:
    for parts in _each(watching, None, interval_s, looks):
        if not is_plain:
            click.echo(time.strftime("-- %T"))
        for part in parts:
            write_plain(part)
        sys.stdout.flush()


def _each(
    watching: _Watching, height: Callable[[], int] | None, interval_s: float, looks: int | None
) -> Iterator[list[RenderableType]]:
    """Yield look by look, each when it is its time.

    Args:
        watching: has the looks.
        height: of the screen, as it is then; None where each look is written below the last.
        interval_s: from one look to the next.
        looks: how many; None for no bound.
    """
    began = time.monotonic()
    parts = watching.first(height() if height is not None else 0)
    for done in itertools.count(1):
        took = time.monotonic() - began
        yield parts
        if done == looks:
            return
        time.sleep(max(interval_s, REST * took))
        began = time.monotonic()
        parts = watching.next(height() if height is not None else 0, is_kept=height is not None)
