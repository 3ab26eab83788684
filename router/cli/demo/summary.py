"""The end of the demonstration: what was measured before and after the cut, and whether all went as it should."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from router.cli.demo.blueprint import CALLERS, CUT
from router.cli.demo.display_state import SERVER_ROUTERS, DisplayState, shares
from router.cli.demo.measures import CUT_STREAM, CallStream, PhaseCalls, percentile
from router.cli.demo.reported_routes import path_text
from router.cli.demo.view import milliseconds

SHOWN = 5
"""Faults of one kind that are told one by one."""
LINE = 200
"""Longest line of those, characters: the driver says much about a failed call."""


def faults(scene: DisplayState) -> list[str]:
    """List what went wrong and shouldn't have."""
    measures = scene.measures
    found = [*measures.failures, *measures.cast_faults()]
    if math.isinf(measures.resumed_at):
        found.append(f"no call of {CALLERS[CUT_STREAM[0]]} to {CUT_STREAM[1]} was answered after the cut")
    before, after = scene.paths_before.get(CUT_STREAM), scene.paths()[CUT_STREAM]
    if before != (CUT[1], CUT[0]):
        found.append(f"before the cut the path from {CUT[1]} to {CUT[0]} was {path_text(before)}, not the link")
    if after is None or len(after) < 3:
        found.append(f"after the cut the path from {CUT[1]} to {CUT[0]} is {path_text(after)}, not another one")
    for stream in measures.streams.values():
        for phase, when in zip(stream.phases, ("before", "after"), strict=True):
            if not phase.latencies:
                found.append(f"no call of {CALLERS[stream.router]} to {stream.where} was answered {when} the cut")
    return found


def print_summary(scene: DisplayState, found: Sequence[str], console: Console) -> None:
    """Print tables and verdict."""
    console.print(_table(scene))
    measures = scene.measures
    fanouts = ", ".join(f"{counter.total()} by {server}" for server, counter in measures.fanouts.received.items())
    by = path_text(scene.paths()[CUT_STREAM])
    resumed = scene.resumed_s()
    lines = [
        f"casts:        {len(measures.casts.sent)} sent, {measures.casts.count()} received",
        f"fanout casts: {len(measures.fanouts.sent)} sent, received {fanouts}",
    ]
    if math.isfinite(resumed):
        lines.append(f"from the cut to the answer of the first call by {by}: {milliseconds(resumed)} ms")
    if measures.underway:
        lines.append(f"lost on the link as it was cut, which nothing could prevent: {len(measures.underway)}")
        lines += [f"  {text}" for text in measures.underway[:SHOWN]]
    if found:
        lines.append(f"NOT AS IT SHOULD BE: {len(found)}")
        lines += [f"  {text}" for text in found[:SHOWN]]
        if len(found) > SHOWN:
            lines.append(f"  and {len(found) - SHOWN} more")
    else:
        which = "other " if measures.underway else ""
        lines.append(
            f"All {which}calls were answered, "
            f"every {which}cast came once, every {which}fanout cast once to each server."
        )
    for line in lines:
        console.print(shortened(line), highlight=False, soft_wrap=True)


def shortened(line: str) -> str:
    """A line of LINE characters at most: of a longer one the first whole words."""
    if len(line) <= LINE:
        return line
    words = line[: LINE - 3].rpartition(" ")[0]
    return f"{words} ..." if words.strip() else f"{line[: LINE - 3]}..."  # one word alone


def _table(scene: DisplayState) -> Table:
    table = Table(
        title=f"Calls before and after the link {CUT[0]}-{CUT[1]} was cut",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    table.add_column("from")
    table.add_column("to", no_wrap=True)
    for title in ("made", "errors"):
        table.add_column(title, justify="right")
    for title in ("path before", "path after"):
        table.add_column(title, no_wrap=True)
    for title in ("p50 ms", "p99 ms"):
        table.add_column(title, justify="right", no_wrap=True)
    last = ""
    for stream in scene.measures.streams.values():
        before, after = stream.phases
        table.add_row(
            stream.router if stream.router != last else "",
            stream.where,
            str(before.calls + after.calls),
            str(before.errors + after.errors),
            _path(stream, before, scene.paths_before),
            _path(stream, after, scene.paths()),
            " -> ".join(milliseconds(percentile(phase.latencies, 0.5)) for phase in stream.phases),
            " -> ".join(milliseconds(percentile(phase.latencies, 0.99), digits=0) for phase in stream.phases),
        )
        last = stream.router
    return table


def _path(stream: CallStream, phase: PhaseCalls, paths: dict[tuple[str, str], tuple[str, ...] | None]) -> str:
    if stream.where in SERVER_ROUTERS:
        return path_text(paths.get((stream.router, stream.where)))
    return shares(phase.servers, stream.router, paths).replace(", ", "\n")
