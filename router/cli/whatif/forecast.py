"""`amqp-mesh whatif forecast`: from the history of counters to when links will be full, and how much they lack."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import click

from router.cli.did_you_mean import HintingChoice
from router.cli.options import WholeNumber
from router.cli.stat_columns import printable
from router.cli.whatif.command_helpers import answering, interruptions, need_capacities, read_model, say_json, say_table
from router.cli.whatif.options import (
    check_engine,
    folder_argument,
    json_option,
    master_option,
    output_option,
    remote_option,
    share_option,
    spark_conf_option,
    spark_settings,
)
from router.cli.whatif.progress_bar import progress
from router.whatif.pipeline.held_signals import import_whole
from router.whatif.wording import DEFAULT_FAMILIES

ROWS: Final = 40
"""Maximum rows of a table that is shown; the others are in the files."""
UNKNOWN: Final = 5
"""Routers that are named in warnings of one kind."""
LOG: Final = ".spark.log"


@click.command("forecast")
@folder_argument("history", "HISTORY", is_elsewhere=False)
@click.option(
    "--model",
    "folder",
    metavar="MODEL|RUN",
    required=True,
    type=click.Path(path_type=Path, readable=False),
    help="Model of the mesh, with capacities: a folder written by `import` or `snapshot`, or by `run`, "
    "whose model is used.",
)
@output_option("OUT")
@click.option(
    "--fail",
    "families",
    default=DEFAULT_FAMILIES,
    show_default=True,
    metavar="FAMILY,...",
    help="Failures to run, as `run --fail`.",
)
@click.option(
    "--period",
    type=HintingChoice(("week", "day", "hour")),
    default="week",
    show_default=True,
    help="Unit of the trend. Demands are taken by hour; with `hour`, by minute.",
)
@click.option(
    "--level",
    type=HintingChoice(("busy", "mean", "p50", "p95", "p99", "max")),
    default="busy",
    show_default=True,
    help="Value that represents a period: the busy hour of the mesh, or each demand's mean, percentile or maximum.",
)
@click.option(
    "--horizon",
    type=WholeNumber(1, 520),
    default=26,
    show_default=True,
    metavar="N",
    help="Number of periods to look ahead.",
)
@share_option("--limit", "Utilisation at which a link counts as full.", default="100%")
@share_option("--confidence", "Confidence level of the prediction band.", default="90%")
@master_option
@remote_option
@spark_conf_option
@json_option
def forecast(
    history: Path,
    folder: Path,
    output: str,
    master: str | None,
    remote: str | None,
    settings: tuple[str, ...],
    is_json: bool,
    **asked: Any,
) -> None:
    """Forecast when each link will be full, in the failure that fills it first.

    HISTORY is the folder that `watch --addresses -o` writes. The traffic that entered the mesh in each hour becomes
    demands, the demands of each period are run through all failures, and a straight line is fitted to the utilisation
    of each link in each failure. The column `range` shows between which periods a link
    may become full, by the prediction band of its line.

    The folder OUT gets the tables demand_rate, demand_period, demand_forecast and link_forecast, a run with all
    periods, and the models `expected` and `high` with the demands at the horizon, for `suggest`, `run` and `check`.

    Exit status: 2 for input that can't be used, 1 when it fails, else 0.
    """
    check_engine("spark", master, remote)
    if not 0 < asked["confidence"] < 1:
        raise click.UsageError("--confidence: expected more than 0 % and less than 100 %")
    if not asked["limit"] > 0:
        raise click.UsageError("--limit: expected more than 0 %")
    spark = import_whole("router.whatif.pipeline.spark_session")
    address = spark.SparkAddress(master=master, remote=remote, settings=spark_settings(settings))
    out = Path(output)
    with interruptions("interrupted; nothing of it is kept"), answering(output):
        model = read_model(folder)
        need_capacities(folder, model)
        rows = _forecast(spark, address, history, model, out, **asked)
    if is_json:
        say_json([_plain(row) for row in rows])
    else:
        _say(rows, out, **asked)


def _forecast(
    spark: Any,
    address: Any,
    history: Path,
    model: Any,
    out: Path,
    **asked: Any,
) -> list[dict[str, Any]]:
    making = import_whole("router.whatif.forecasting.capacity_forecast")
    wanted = making.choose(**asked)
    making.check(history, model, out, families=wanted.families)
    out.parent.mkdir(parents=True, exist_ok=True)
    log = out.parent / f".{out.name}{LOG}"
    try:
        with progress() as on_progress:
            on_progress("starting Spark", 0, 0)
            with spark.session(address, log) as session, spark.signals_end_jobs(session):
                making.forecast(session, history, model, out, wanted, address=address, on_progress=on_progress)
    finally:
        log.unlink(missing_ok=True)
    _warn(
        f"the model has no router `{router}`: what entered there is left out"
        for router in making.unknown_routers(out, model)
    )
    unwatched, periods = making.gaps(out, model)
    period = asked["period"]
    _warn(
        f"router `{router}` was watched in {count} of {periods} {period}s: "
        + ("links are forecast without the others" if count else "what entered there is left out")
        for router, count in unwatched.items()
    )
    rows: list[dict[str, Any]] = making.soonest_full(out)
    return rows


def _warn(messages: Iterable[str]) -> None:
    """Write warnings, one about each router; no more than UNKNOWN."""
    found = list(messages)
    for message in found[:UNKNOWN]:
        click.echo(printable(f"warning: {message}"), err=True)
    if len(found) > UNKNOWN:
        click.echo(f"warning: and {len(found) - UNKNOWN} more routers", err=True)


def _say(rows: list[dict[str, Any]], out: Path, *, period: str, horizon: int, limit: float, **_: Any) -> None:
    full = rows_to_tell(rows)
    calm, failing = ([row for row in full if row["is_failure"] is is_failure] for is_failure in (False, True))
    reach = f"{limit:.0%} within {horizon} {period}s"
    outlook = ("current", f"per {period}", f"full in ({period}s)", "range", "capacity")
    if calm:
        cells = [(row["link"], row["src"], row["dst"], *_outlook(row)) for row in calm]
        _say_some(f"Links that reach {reach} while nothing fails, the soonest first", outlook, cells)
    else:
        click.echo(f"no link reaches {reach} {'while nothing fails' if failing else 'in any failure of --fail'}")
    if failing:
        cells = [(row["link"], row["src"], row["dst"], _failed(row), *_outlook(row)) for row in failing]
        title = f"Links that reach {reach} in the failure that fills them first, the soonest first"
        _say_some(title, ("when it fails", *outlook), cells)
    elif calm:
        click.echo("\nno failure fills a link sooner")
    click.echo(
        f"\nmodels with the demands at the horizon: {out / 'expected'}; at the upper end of the band: {out / 'high'}"
    )


def _say_some(title: str, columns: tuple[str, ...], cells: list[tuple[str, ...]]) -> None:
    """Write a table of links, with *columns* after those that name them, no longer than ROWS."""
    say_table(title, ("link", "from", "to", *columns), cells[:ROWS])
    if len(cells) > ROWS:
        click.echo(f"and {len(cells) - ROWS:,} more")


def rows_to_tell(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of links that may be full within the horizon: while nothing fails, and in the failure that fills it first.

    Args:
        rows: of `link_forecast`.
    Returns: without those of failures that change nothing for their link.
    """
    calm = {(row["link"], row["src"]): _outlook(row) for row in rows if not row["is_failure"]}
    return [
        row
        for row in rows
        if row["earliest"] is not None
        and not (row["is_failure"] and calm.get((row["link"], row["src"])) == _outlook(row))
    ]


def _outlook(row: dict[str, Any]) -> tuple[str, ...]:
    """Cells that tell of a link in a failure, or while nothing fails."""
    return (
        f"{row['level']:.1%}",
        f"{row['growth']:+.2%}",
        _when(row["full_in"]),
        f"{_when(row['earliest'])} to {_when(row['latest'])}",
        "" if row["upgrade"] is None else f"x {row['upgrade']:.2f}",
    )


def _failed(row: dict[str, Any]) -> str:
    words: str = importlib.import_module("router.whatif.wording").failure(
        row["failed_links"], row["failed_routers"], row["group"]
    )
    return words


def _when(value: int | None) -> str:
    if value is None:
        return "later"
    return str(value) if value else "already"


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value.isoformat() if hasattr(value, "isoformat") else value for name, value in row.items()}
