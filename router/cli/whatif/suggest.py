"""`amqp-mesh whatif suggest`: where one more link, or a subscriber, would help most."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from router.cli.did_you_mean import HintingChoice
from router.cli.errors import BAD_INPUT, CommandError
from router.cli.options import BoundedNumber, WholeNumber
from router.cli.stat_columns import printable
from router.cli.whatif.command_helpers import answering, is_split, read_model, say_json, say_table
from router.cli.whatif.options import folder_argument, json_option
from router.cli.whatif.progress_bar import progress

NAMED: Final = 10
"""Routers in a line, at most."""
GOALS: Final = ("distance", "traffic", "resilience", "utilisation")


def _kernel(model: Any, *, is_split: bool) -> tuple[Any, Any]:
    """Network and kernel of a model."""
    network = importlib.import_module("router.whatif.kernel.network_arrays").Network.of(model)
    return network, importlib.import_module("router.whatif.kernel.mesh_kernel").Kernel(network, is_split=is_split)


@click.command("suggest")
@folder_argument("folder", "MODEL|RUN")
@click.option(
    "--goal",
    "goals",
    type=HintingChoice(GOALS),
    multiple=True,
    help="distance: shorter paths; traffic: shorter paths of messages other than multicasts; resilience: "
    "fewer pairs cut off by single failures; utilisation: lower utilisation of the busiest link while "
    "nothing fails. Can be repeated.  [default: the first three]",
)
@click.option("--links/--no-links", "has_links", default=True, help="Suggest new links.")
@click.option(
    "--subscribers/--no-subscribers", "has_subscribers", default=True, help="Suggest routers for subscribers."
)
@click.option(
    "--address", "addresses", metavar="TEXT", multiple=True, help="Consider only this address. Can be repeated."
)
@click.option("--cost", type=WholeNumber(1, 65535), help="Cost of the new link.  [default: median link cost]")
@click.option("--max-km", type=BoundedNumber(min=0), metavar="KM", help="Maximum length of a new link, by coordinates.")
@click.option(
    "--count", type=WholeNumber(1, 1000), default=5, show_default=True, help="Number of suggestions of each kind."
)
@json_option
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
    """Suggest where one more link would help most, and which routers suit subscribers best.

    Every pair of routers and every router is evaluated. For `traffic`, messages keep their present destinations;
    multicasts are left out, because a link carries one copy for all subscribers behind it. Suggestions for subscribers
    assume that they always have credit. For `utilisation`, the new link has the median delay and capacity of all links,
    and nothing fails: use `run --add-link` to run it through failures.

    Exit status: 2 for input that can't be used, else 0.
    """
    if not has_links and not has_subscribers:
        raise click.UsageError("--no-links --no-subscribers: nothing is left to look for")
    suggesting = importlib.import_module("router.whatif.analysis.suggest")
    places = importlib.import_module("router.whatif.analysis.explain.base_and_scenario")
    with answering(folder):
        model = read_model(folder)
        network, kernel = _kernel(model, is_split=is_split(folder))
        for text in addresses:
            places.place_of("address", text, network.addresses, option="--address")
        wish = suggesting.SuggestOptions(count=count, cost=cost, max_km=max_km)
        mesh = suggesting.SuggestInput(model, network, kernel, wish)
        if max_km is not None:
            _tell_of_unplaced(model)
        rows: list[dict[str, Any]] = []
        with progress() as on_progress:
            if has_links:
                rows += _links(suggesting, mesh, goals or GOALS[:3], on_progress)
            if has_subscribers:
                on_progress("evaluating places for subscribers", 0, 0)
                rows += suggesting.subscriber_rows(mesh, addresses or None)
    if is_json:
        say_json(rows)
    else:
        _say_suggestions(rows, goals or GOALS[:3] if has_links else ())


def _tell_of_unplaced(model: Any) -> None:
    """Say which links `--max-km` leaves out, whatever their length: those of routers whose place is not known."""
    unplaced = [router.id for router in model.routers if None in (router.latitude, router.longitude)]
    if len(unplaced) == len(model.routers):
        raise CommandError("--max-km: no router of the model has a latitude and a longitude", BAD_INPUT)
    if unplaced:
        names = ", ".join(unplaced[:NAMED]) + (" and others" if len(unplaced) > NAMED else "")
        click.echo(printable(f"no new link to routers without latitude and longitude: {names}"), err=True)


def _links(
    suggesting: Any, mesh: Any, goals: tuple[str, ...], on_progress: Callable[[str, int, int], None]
) -> list[dict[str, Any]]:
    words = importlib.import_module("router.whatif.analysis.link_placement").Goal
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
    ("link", "cut_pairs"): "Links, by pairs losing connectivity, summed over all single failures",
    ("link", "max_utilisation"): "Links, by the utilisation of the busiest link while nothing fails",
    ("move", "load"): "Subscribers to move, by messages/s times the cost of their paths",
    ("move", "lost_msgs"): "Subscribers to move, by messages/s lost, summed over all single failures",
    ("addition", "load"): "Subscribers to add, by messages/s times the cost of their paths",
    ("addition", "lost_msgs"): "Subscribers to add, by messages/s lost, summed over all single failures",
}


def _say_suggestions(rows: list[dict[str, Any]], goals: tuple[str, ...]) -> None:
    """Say them. *goals*: by which links were looked for."""
    if not rows:
        click.echo("nothing would help")
    elif goals and not any(row["kind"] == "link" and row["measure"] != "unreachable_pairs" for row in rows):
        click.echo(f"no new link would help by {', '.join(goals)}")
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
        say_table(title, columns, [[row[name] for name in names] for row in found], apart=("before", "after"))
