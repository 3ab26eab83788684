"""`amqp-mesh whatif credit`: how much credit paths need, and what they have."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, Final

import click

from router.cli.options import BoundedNumber, WholeNumber
from router.cli.whatif.command_helpers import answering, is_run, read_model, say_json, say_table
from router.cli.whatif.options import down_option, folder_argument, json_option

SHOWN: Final = 30
"""Paths, unless it is said."""


def _batch(ctx: click.Context, param: click.Parameter, value: str) -> int | None:
    """Credits that are granted at a time; None for `half`.

    Raises: click.BadParameter
    """
    if value == "half":
        return None
    if not value.isascii() or not value.isdigit() or not 1 <= int(value) < 2**31:
        raise click.BadParameter(f"{value!r}; expected a number of messages from 1, or `half`", ctx, param)
    return int(value)


@click.command("credit")
@folder_argument("folder", "MODEL|RUN")
@click.option(
    "--batch",
    callback=_batch,
    default="1",
    show_default=True,
    metavar="N|half",
    help="Credit that subscribers grant at a time; half: refill to the full credit when half is used, as proton does.",
)
@click.option(
    "--client-ms",
    type=BoundedNumber(0, 1e6),
    default=0.0,
    show_default=True,
    metavar="MS",
    help="One-way delay between clients and their router.",
)
@down_option
@click.option("--address", metavar="TEXT", help="Show only this address.")
@click.option("--short", "is_short", is_flag=True, help="Show only paths that are short of credit.")
@click.option(
    "--limit", type=WholeNumber(min=1), default=SHOWN, show_default=True, help="Maximum number of paths to show."
)
@json_option
def credit(
    folder: Path,
    batch: int | None,
    client_ms: float,
    down: tuple[str, ...],
    address: str | None,
    is_short: bool,
    limit: int,
    is_json: bool,
) -> None:
    """Show the credit that the subscribers of each path must grant so that credit does not limit its rate.

    The maximum rate of a path is its credit divided by its round trip time, which includes the subscriber's time.
    Messages that find no credit count as offered to the nearest router with subscribers. Paths of an address that end
    at the same router share the credit of its subscribers. If RUN splits traffic over equal-cost paths, the round trip
    is the slowest one.

    Exit status: 2 for input that can't be used, else 0.
    """
    planning = importlib.import_module("router.whatif.analysis.credit_plan")
    subjects = importlib.import_module("router.whatif.analysis.explain").BaseAndScenario
    with answering(folder):
        has_run = is_run(folder)
        subject = subjects.of_run(folder, down=down) if has_run else subjects.of_model(read_model(folder), down=down)
        if address is not None and address not in subject.network.routers:
            subject.address(address)
        terms = planning.ClientCreditHabits(batch=batch, client_us=round(client_ms * 1000))
        model = subject.model
        rows = planning.credit_rows(subject.now, model, terms)
    rows = [
        row
        for row in rows
        if (address is None or row["address"] == address) and (not is_short or row["is_enough"] is False)
    ]
    rows.sort(
        key=lambda row: (row["is_enough"] is not False, -(row["needed"] or 0), row["address"], row["src"], row["dst"])
    )
    if is_json:
        say_json(rows)
        return
    if not rows:
        click.echo(_none(model, address, is_short=is_short))
        return
    _say_credit(rows, limit)


def _none(model: Any, address: str | None, *, is_short: bool) -> str:
    """Say why there is no row."""
    if not len(model.demands):
        return "no path: the model has no demands; `amqp-mesh whatif import --demands FILE` takes them from a table"
    if is_short:
        return "no path is known to be short of credit"
    return "no path: no demand finds a way to where it goes" if address is None else f"no path of {address}"


def _say_credit(rows: list[dict[str, Any]], limit: int) -> None:
    keys = {
        "address": "address",
        "src": "from",
        "dst": "to",
        "msgs_per_s": "msg/s offered",
        "rtt_ms": "round trip, ms",
        "service_ms": "service, ms",
        "needed": "needed",
        "shared_needed": "needed (shared)",
        "configured": "configured",
        "limit_msgs_per_s": "msg/s possible",
        "is_enough": "enough",
    }
    say_table("Credit", tuple(keys.values()), [[row[key] for key in keys] for row in rows[:limit]])
    short = sum(row["is_enough"] is False for row in rows)
    unknown = sum(row["is_enough"] is None for row in rows)
    left = f"; {len(rows) - limit:,} more: see --limit" if len(rows) > limit else ""
    paths = f"{len(rows):,} {'path' if len(rows) == 1 else 'paths'}"
    click.echo(f"\n{paths}, {short:,} short of credit, {unknown:,} of which that is not known{left}")
    if any(row["rtt_ms"] is None for row in rows):
        click.echo("Paths without a round trip have links whose delay the model does not say.")
