"""Progress of a long command: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

import click

LINE_S: Final = 5.0
"""Minimum time between two lines about the same tenth of a step, seconds."""
TENTH_S: Final = 1.0
"""Minimum time between two lines about different tenths of a step, seconds."""

ADDRESS: Final = "://"
"""Mark of a step whose description holds a URL: it stays on the terminal, since its reader may want to look there."""

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is done, and how much there is; the last is 0 where that isn't known."""


def progress() -> AbstractContextManager[Progress]:
    """Shows how far a command is: a bar on a terminal, else a line now and then."""
    return _bar() if sys.stderr.isatty() else _lines()


@contextmanager
def _bar() -> Iterator[Progress]:
    bars = importlib.import_module("rich.progress")
    console = importlib.import_module("rich.console").Console(stderr=True)
    columns = (
        bars.TextColumn("{task.description}", markup=False),
        bars.BarColumn(),
        bars.TaskProgressColumn(),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
        bars.TimeRemainingColumn(),
    )
    with bars.Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task("", total=None)

        def on_progress(what: str, done: int, total: int) -> None:
            if ADDRESS in what:  # it is to stay there when something else begins
                console.print(what, highlight=False, markup=False)
            shown.update(task, description=what, completed=done, total=total or None)

        yield on_progress


@contextmanager
def _lines() -> Iterator[Progress]:
    """A line when something else begins, for each tenth, and every few seconds."""
    began = time.monotonic()
    shown, tenths, at = "", 0, began

    def on_progress(what: str, done: int, total: int) -> None:
        nonlocal shown, tenths, at
        now = time.monotonic()
        tenth = 10 * done // total if total else 0
        if what == shown and now - at < (LINE_S if tenth == tenths else TENTH_S):
            return
        shown, tenths, at = what, tenth, now
        share = f": {done:,} of {total:,} ({100 * done // total} %)" if total else ""
        click.echo(f"{now - began:6.1f} s  {what}{share}", err=True)

    yield on_progress
