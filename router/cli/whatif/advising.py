"""`amqp-mesh whatif credit` and `suggest`: how much credit paths need, and what would help."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from router.cli.choice import Choice
from router.cli.whatif.asking import (
    AnswerError,
    answering,
    folder_argument,
    is_run,
    json_option,
    read_model,
    say_json,
    say_table,
)
from router.cli.whatif.progress import progress

SHOWN: Final = 30
"""Paths, unless it is said."""
GOALS: Final = ("distance", "traffic", "resilience", "utilisation")


def _batch(ctx: click.Context, param: click.Parameter, value: str) -> int | None:
    """Credits that are granted at a time; None for `half`. Raises: click.BadParameter"""
    if value == "half":
        return None
    if not value.isascii() or not value.isdigit() or not 1 <= int(value) < 2**31:
        raise click.BadParameter(f"{value!r}; expected a number of messages from 1, or `half`", ctx, param)
    return int(value)


def _kernel(model: Any, *, is_split: bool) -> tuple[Any, Any]:
    """Network and kernel of a model."""
    network = importlib.import_module("router.simulation.whatif.network").Network.of(model)
    return network, importlib.import_module("router.simulation.whatif.kernel").Kernel(network, is_split=is_split)


def _is_split(folder: Path) -> bool:
    """Whether it is a run whose messages are split over equal paths. Raises: TableError"""
    return is_run(folder) and bool(importlib.import_module("router.simulation.whatif.run_folder").is_split(folder))


@click.command("credit", short_help="Tell the credit that paths need, and what they have.")
@folder_argument("folder", "MODEL|RUN")
@click.option(
    "--batch",
    callback=_batch,
    default="1",
    show_default=True,
    metavar="N|half",
    help="Credits that subscribers grant at a time; half: up to the full credit when half is used, as proton does.",
)
@click.option(
    "--client-ms",
    type=click.FloatRange(0, 1e6),
    default=0.0,
    show_default=True,
    metavar="MS",
    help="One way between a client and its router.",
)
@click.option("--down", metavar="NAME", multiple=True, help="Let this router, link or group be down. Can be repeated.")
@click.option("--address", metavar="TEXT", help="Show this address alone.")
@click.option("--short", "is_short", is_flag=True, help="Show paths whose credit is not enough alone.")
@click.option("--limit", type=click.IntRange(min=1), default=SHOWN, show_default=True, help="Paths shown.")
@json_option()
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
    """Tell how much credit the subscribers of each path must grant so that credit is not what limits it.

    A path carries at most its credit divided by its round trip, the time of the subscriber included. Paths of an
    address that end at the same router share what its subscribers grant.

    Exit status: 2 for input that can't be used, else 0.
    """
    planning = importlib.import_module("router.simulation.whatif.credit_plan")
    subjects = importlib.import_module("router.simulation.whatif.explain").Subject
    with answering():
        subject = subjects.of_model(read_model(folder), down=down)
        if address is not None and address not in subject.network.routers:
            subject.address(address)
        terms = planning.Terms(batch=batch, client_us=round(client_ms * 1000))
        rows = planning.credit_rows(subject.now, subject.model, terms)
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
    _say_credit(rows, limit)


def _say_credit(rows: list[dict[str, Any]], limit: int) -> None:
    if not rows:
        click.echo("no path")
        return
    keys = {
        "address": "address",
        "src": "from",
        "dst": "to",
        "msgs_per_s": "msg/s",
        "rtt_ms": "round trip, ms",
        "service_ms": "service, ms",
        "needed": "needs",
        "shared_needed": "all need",
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


@click.command("suggest", short_help="Tell where one more link, or a subscriber, would help most.")
@folder_argument("folder", "MODEL|RUN")
@click.option(
    "--goal",
    "goals",
    type=Choice(GOALS),
    multiple=True,
    help="distance: shorter paths; traffic: shorter paths of messages that are no multicasts; resilience: fewer "
    "pairs cut off by single failures; utilisation: a less busy busiest link. Can be repeated.  [default: "
    "the first three]",
)
@click.option("--links/--no-links", "has_links", default=True, help="Look for links.")
@click.option("--subscribers/--no-subscribers", "has_subscribers", default=True, help="Look for places of subscribers.")
@click.option("--address", "addresses", metavar="TEXT", multiple=True, help="Of this address alone. Can be repeated.")
@click.option("--cost", type=click.IntRange(1, 65535), help="Cost of the new link.  [default: that of the middle link]")
@click.option("--max-km", type=click.FloatRange(min=0), metavar="KM", help="Longest new link, by coordinates.")
@click.option("--count", type=click.IntRange(1, 1000), default=5, show_default=True, help="Suggestions of each sort.")
@json_option()
def suggest(
    folder: Path,
    goals: tuple[str, ...],
    has_links: bool,
    has_subscribers: bool,
    addresses: tuple[str, ...],
    cost: int | None,
    max_km: float | None,
    count: int,
    is_json: bool,
) -> None:
    """Tell where one more link would help most, and at which router subscribers had better be.

    Every pair of routers is judged, and every router. By `traffic`, messages keep the destinations that they have now;
    multicasts are left out, since a link carries one copy for all subscribers behind it. What is told of subscribers
    is as if they always had credit.

    Exit status: 2 for input that can't be used, else 0.
    """
    suggesting = importlib.import_module("router.simulation.whatif.suggest")
    with answering():
        model = read_model(folder)
        network, kernel = _kernel(model, is_split=_is_split(folder))
        for text in addresses:
            if text not in network.addresses:
                raise AnswerError(f"no address `{text}` in the model")
        wish = suggesting.Wish(count=count, cost=cost, max_km=max_km)
        mesh = suggesting.Mesh(model, network, kernel, wish)
        rows: list[dict[str, Any]] = []
        with progress() as on_progress:
            if has_links:
                rows += _links(suggesting, mesh, goals or GOALS[:3], on_progress)
            if has_subscribers:
                on_progress("looking for places of subscribers", 0, 0)
                rows += suggesting.subscriber_rows(mesh, addresses or None)
    if is_json:
        say_json(rows)
    else:
        _say_suggestions(rows)


def _links(
    suggesting: Any, mesh: Any, goals: tuple[str, ...], on_progress: Callable[[str, int, int], None]
) -> list[dict[str, Any]]:
    words = importlib.import_module("router.simulation.whatif.placement").Goal
    rows: list[dict[str, Any]] = list(suggesting.join_rows(mesh))
    for goal in goals:
        what = f"looking for links: {goal}"

        def told(done: int, total: int, what: str = what) -> None:
            on_progress(what, done, total)

        if goal == "utilisation":
            rows += suggesting.utilisation_rows(mesh, told)
        else:
            rows += suggesting.link_rows(mesh, words(goal), told)
    return rows


TITLES: Final = {
    ("link", "unreachable_pairs"): "Links that join parts of the mesh, by pairs without a path",
    ("link", "mean_cost"): "Links, by the mean cost of all paths",
    ("link", "load"): "Links, by messages/s times the cost of their paths",
    ("link", "cut_pairs"): "Links, by pairs that lose each other, summed over all single failures",
    ("link", "max_utilisation"): "Links, by the utilisation of the busiest link",
    ("move", "load"): "Subscribers to be moved, by messages/s times the cost of their paths",
    ("move", "lost_msgs"): "Subscribers to be moved, by messages/s lost, summed over all single failures",
    ("addition", "load"): "Subscribers to be added, by messages/s times the cost of their paths",
    ("addition", "lost_msgs"): "Subscribers to be added, by messages/s lost, summed over all single failures",
}


def _say_suggestions(rows: list[dict[str, Any]]) -> None:
    if not rows:
        click.echo("nothing would help")
    for key, title in TITLES.items():
        found = [row for row in rows if (row["kind"], row["measure"]) == key]
        if not found:
            continue
        if key[0] == "link":
            columns = ("between", "and", "cost", "before", "after", "gain")
            names = ("a", "b", "cost", "before", "after", "gain")
        else:
            columns = ("address", "from" if key[0] == "move" else "nearest now", "to", "before", "after", "gain")
            names = ("address", "a", "b", "before", "after", "gain")
        say_table(title, columns, [[row[name] for name in names] for row in found])
