"""The tables that `amqp-mesh bench` shows."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from router.bench.mesh_at_rest_usage import MeshAtRestUsage
from router.bench.suite import CaseMedians, SuiteResult

MIB = 1024 * 1024


def tables(outcome: SuiteResult) -> Iterator[Table]:
    """One of streams, one of calls, and one of each other thing that was measured."""
    streams = [one for one in outcome.figures if not one.is_rpc]
    calls = [one for one in outcome.figures if one.is_rpc]
    if streams:
        yield _figures("Streams", "messages/s", streams)
    if calls:
        yield _figures(f"Calls; a TCP echo takes {outcome.echo_us:.0f} us", "calls/s", calls)
    if outcome.spill:
        yield _spill(outcome)
    if outcome.oslo:
        yield _oslo(outcome)
    if outcome.comparisons:
        yield _comparisons(outcome)
    if outcome.memory:
        yield _memory(outcome)
    if outcome.idle:
        yield _idle(outcome.idle)
    if outcome.start:
        yield _start(outcome)


def _table(title: str, text: tuple[str, ...], numbers: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, header_style="dim")
    for name in text:
        table.add_column(name, no_wrap=True)
    for name in numbers:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _figures(title: str, unit: str, figures: list[CaseMedians]) -> Table:
    is_rpc = figures[0].is_rpc
    table = _table(
        title,
        ("case", "over"),
        (unit, "share", *(("of stream", "x echo") if is_rpc else ()), "CPU us", "p50 us", "p99 us", "MiB", "refused"),
    )
    case = None
    for one in figures:
        calls = (f"{one.stream_share:.3f}", number(one.echo_multiple, 1)) if is_rpc else ()
        table.add_row(
            one.case if one.case != case else "",
            one.path,
            f"{one.per_s:,.0f}",
            f"{one.share:.2f}" if one.hops else "",
            *calls,
            number(one.cpu_us, 2),
            number(one.p50_us, 0),
            number(one.p99_us, 0),
            number(one.resident_bytes / MIB if one.resident_bytes else None, 0),
            str(one.refused or ""),
        )
        case = one.case
    return table


def _spill(outcome: SuiteResult) -> Table:
    title = "Calls to four slow servers: share of what they can do"
    table = _table(title, ("over",), ("calls at a time", "calls/s", "share", "by server, that of the callers first"))
    for one in outcome.spill:
        shares = "  ".join(str(count) for count in one.calls)
        table.add_row(one.over, str(one.outstanding), f"{one.per_s:.0f}", f"{one.share:.2f}", shares)
    return table


def _memory(outcome: SuiteResult) -> Table:
    table = _table("Memory of a router", ("for each",), ("bytes", "us to attach", "measured with"))
    for one in outcome.memory:
        table.add_row(one.what, f"{one.bytes_each:,.0f}", f"{one.us_each:,.0f}", f"{one.count:,}")
    return table


def _oslo(outcome: SuiteResult) -> Table:
    table = _table(
        "Calls by oslo.messaging, 1 KiB, 20 callers, 750 a second", ("over",), ("calls/s", "CPU us", "MiB", "failed")
    )
    for one in outcome.oslo:
        table.add_row(
            one.over,
            f"{one.per_s:,.0f}",
            number(one.cpu_us, 2),
            number(one.resident_bytes / MIB if one.resident_bytes else None, 0),
            str(one.failed or ""),
        )
    return table


def _comparisons(outcome: SuiteResult) -> Table:
    title = "Ratios to what is compared, medians of the rounds"
    table = _table(title, ("case", "over", "by"), ("rate", "CPU", "p50", "memory", "rounds"))
    for one in outcome.comparisons:
        ratios = (number(value, 2) for value in (one.per_s, one.cpu_us, one.p50_us, one.resident_bytes))
        table.add_row(one.case, one.path, one.other, *ratios, str(one.rounds))
    return table


def _idle(found: MeshAtRestUsage) -> Table:
    title = f"{found.routers} routers that stand still, for {found.seconds:.0f} s"
    table = _table(title, ("a router takes",), ("% of a core", "MiB"))
    for what, share, resident in (
        ("median", found.core_share, found.resident_bytes),
        ("the most of any", found.most_core_share, found.most_resident_bytes),
    ):
        table.add_row(what, f"{share * 100:.2f}", number(resident / MIB, 0))
    return table


def _start(outcome: SuiteResult) -> Table:
    table = _table("Start until the first answer", ("of",), ("CPU s", "s"))
    for one in outcome.start:
        table.add_row(one.what, f"{one.cpu_s:.2f}", f"{one.seconds:.2f}")
    return table


def number(value: float | None, digits: int) -> str:
    """Write a number as a table shows it; nothing for None.

    Args:
        value: in the unit of its column.
        digits: behind the point.
    """
    return "" if value is None else f"{value:,.{digits}f}"
