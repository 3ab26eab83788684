"""The demonstration on the screen while it runs: a live view in a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import time
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from router.cli.demo.blueprint import CALLERS, CUT
from router.cli.demo.display_state import DisplayState
from router.cli.demo.measures import CUT_STREAM, CallStream
from router.cli.demo.text_diagram import picture

LINE_S = 2.0
"""Seconds of load between two lines with figures in the plain view."""
EVENTS = 6
"""Events that are shown in the live view; half of them in a narrow terminal, where each takes two lines."""
WIDE = 110
"""Columns."""


def milliseconds(seconds: float, digits: int = 1) -> str:
    """Write a duration as a number of milliseconds; a dash for none.

    Args:
        seconds: a duration; NaN or infinite for none.
        digits: behind the point.
    """
    return f"{1000 * seconds:.{digits}f}" if math.isfinite(seconds) else "-"


def event_line(at: float, words: str) -> str:
    """Line of an event: the time, and what happened.

    Args:
        at: seconds since the begin.
        words: what happened.
    """
    return f"{at:6.1f} s  {words}"


class View(Protocol):
    """Shows a scene."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

    def say(self, words: str) -> None:
        """Show that something has happened."""

    def refresh(self) -> None:
        """Show the scene as it is now; called several times a second."""


class PlainView:
    """Lines one after the other."""

    def __init__(self, scene: DisplayState, console: Console) -> None:
        self._scene = scene
        self._console = console
        self._next_line_s = LINE_S

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass

    def say(self, words: str) -> None:
        """A line with the time."""
        at = time.monotonic() - self._scene.started_at
        self._scene.events.append((at, words))
        self._line(at, words)

    def refresh(self) -> None:
        """Now and then a line with the figures."""
        scene = self._scene
        if scene.load_s < self._next_line_s:
            return
        self._next_line_s += LINE_S
        streams = scene.measures.streams
        rate, p50, p99 = scene.now(list(streams.values()))
        failed = f"{len(scene.measures.failures)} failed"
        if scene.measures.underway:
            failed += f", {len(scene.measures.underway)} lost on the link as it was cut"
        self._line(
            time.monotonic() - scene.started_at,
            f"{rate:.0f} calls/s, p50 {milliseconds(p50)} ms, p99 {milliseconds(p99)} ms, {failed}; "
            f"{CALLERS[CUT_STREAM[0]]} to {CUT_STREAM[1]}: {scene.path_of_cut_stream()}",
        )

    def _line(self, at: float, words: str) -> None:
        self._console.print(event_line(at, words), highlight=False, soft_wrap=True)


class LiveView:
    """One screen that is drawn anew."""

    def __init__(self, scene: DisplayState, console: Console) -> None:
        self._scene = scene
        self._console = console
        # Drawn when told to: a thread of its own would compete with what it shows.
        self._live = Live(self._render(), console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.stop()
        for at, words in self._scene.events:  # the view is gone, what happened stays
            self._console.print(event_line(at, words), highlight=False, soft_wrap=True)

    def say(self, words: str) -> None:
        """One more of the events."""
        self._scene.events.append((time.monotonic() - self._scene.started_at, words))
        self.refresh()

    def refresh(self) -> None:
        """Draw it."""
        self._live.update(self._render(), refresh=True)

    def _render(self) -> RenderableType:
        scene = self._scene
        cut = CUT if scene.is_cut and CUT not in scene.up_links() else None
        mesh = picture(scene.known_routers(), scene.up_links(), scene.shown_links(), cut)
        top = Table.grid(expand=True)
        top.add_column(width=40)
        top.add_column(ratio=1)
        top.add_row(Panel(mesh, title="mesh", title_align="left"), Panel(self._story(), title_align="left", height=9))
        return Group(self._head(), top, self._table(), self._casts())

    def _head(self) -> Text:
        scene = self._scene
        text = Text("amqp-mesh demo", style="bold")
        text.append(f"   {scene.load_s:4.1f} of {scene.seconds:g} s under load   ", style="not bold")
        done = round(30 * scene.load_s / scene.seconds)
        text.append("━" * done, style="green").append("━" * (30 - done), style="dim")
        return text

    def _story(self) -> Text:
        text = Text("Yellow: the way of caller-C's calls to server-A", style="yellow")
        for at, words in self._scene.events[-(EVENTS if self._console.width >= WIDE else EVENTS // 2) :]:
            text.append(f"\n{at:5.1f} s ", style="dim").append(words, style="white")
        return text

    def _table(self) -> Table:
        scene = self._scene
        table = Table(expand=True, box=None, padding=(0, 1, 0, 0), header_style="bold")
        table.add_column("caller", min_width=8)
        table.add_column("calls", min_width=10)
        table.add_column("path now", no_wrap=True, ratio=1)  # gives way in a narrow terminal
        for title in ("calls/s", "p50 ms", "p99 ms", "made", "errors"):
            table.add_column(title, justify="right", min_width=6)
        last = ""
        for stream in scene.measures.streams.values():
            table.add_row(*self._row(stream, is_first=stream.router != last))
            last = stream.router
        return table

    def _row(self, stream: CallStream, *, is_first: bool) -> tuple[Text, ...]:
        scene = self._scene
        rate, p50, p99 = scene.now([stream])
        errors = sum(phase.errors for phase in stream.phases)
        is_cut_stream = (stream.router, stream.where) == CUT_STREAM
        return (
            Text(CALLERS[stream.router] if is_first else "", style="cyan"),
            Text(stream.where),
            Text(scene.path_now(stream), style="bold yellow" if is_cut_stream else "green"),
            Text(f"{rate:.0f}"),
            Text(milliseconds(p50)),
            Text(milliseconds(p99)),
            Text(f"{sum(phase.calls for phase in stream.phases)}"),
            Text(f"{errors}", style="red" if errors else ""),
        )

    def _casts(self) -> Text:
        casts, fanouts = self._scene.measures.casts, self._scene.measures.fanouts
        text = Text("casts", style="bold")
        text.append(f"  {len(casts.sent)} sent, {casts.count()} received by one server each", style="not bold")
        text.append("   fanout casts", style="bold")
        got = ", ".join(f"{counter.total()} by {server}" for server, counter in fanouts.received.items())
        text.append(f"  {len(fanouts.sent)} sent, received {got}", style="not bold")
        return text
