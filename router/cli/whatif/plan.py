"""`amqp-mesh whatif plan`: the cheapest links and upgrades with which a mesh keeps its limits."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, Final

import click

from router.cli.errors import BAD_INPUT, CommandError
from router.cli.whatif.command_helpers import CAPACITIES_BY, answering, is_split, read_model, say_json, say_table
from router.cli.whatif.options import (
    allowed_option,
    check_model_output,
    fail_option,
    folder_argument,
    json_option,
    lost_messages_option,
    lost_pairs_option,
    share_option,
    single_point_option,
    tries_option,
)
from router.cli.whatif.progress_bar import progress

NO_PLAN: Final = 1


@click.command("plan")
@folder_argument("folder", "MODEL|RUN")
@click.option(
    "--prices",
    metavar="FILE",
    type=click.Path(dir_okay=False, readable=False),
    required=True,
    help="YAML file of links that could be built and upgrades of links, each with its price.",
)
@fail_option
@share_option("--max-util", "Maximum utilisation of any link in any scenario.")
@single_point_option
@allowed_option
@lost_pairs_option
@lost_messages_option
@tries_option
@click.option(
    "-o",
    "--output",
    metavar="PLANNED",
    type=click.Path(path_type=Path),
    help="Write the planned model to this folder.",
    callback=check_model_output,
)
@json_option
def plan(
    folder: Path,
    prices: str,
    families: tuple[str, ...],
    tries: int,
    output: Path | None,
    is_json: bool,
    **limits: Any,
) -> None:
    """Find the cheapest new links and upgrades in FILE with which MODEL stays within limits (those of `check`).

    FILE has two lists: `new_links` with `a`, `b`, `cost`, capacities and `price`, and `upgrades` with `link` (`*` for
    every one), its new capacities (or `times`, a factor) and `price`.

    The output says whether the plan is the cheapest possible one, or else the minimum cost of any plan.

    Exit status: 1 when no plan is found, 2 for input that can't be used, else 0.
    """
    planning = importlib.import_module("router.whatif.analysis.upgrade_plan")
    wanted = planning.PlanLimits(**limits)
    if not (
        wanted.no_single_point_of_failure or {wanted.max_util, wanted.max_lost_pairs, wanted.max_lost_msgs} - {None}
    ):
        raise click.UsageError("no limit is given: see --help")
    with answering(folder), progress() as on_progress:
        model = read_model(folder)
        if wanted.max_util is not None and not model.has_capacities:
            raise CommandError(f"--max-util: no link of the model has a capacity; {CAPACITIES_BY}", BAD_INPUT)
        priced = importlib.import_module("router.whatif.formats.price_file").read_prices(prices, model)
        chosen = importlib.import_module("router.whatif.scenarios.scenario_plan").families_of(",".join(families))
        search = planning.PlanSearch(model, priced, wanted, chosen, is_split=is_split(folder))
        found = search.find(tries, lambda done, total: on_progress("evaluating plans", done, total))
    if is_json:
        say_json(_plain(found))
    else:
        _say(found)
    if found.price is None:
        raise SystemExit(NO_PLAN)
    if output is not None:
        with answering(output):
            importlib.import_module("router.whatif.formats.model_folder").write_model(search.planned(found), output)
        if not is_json:
            click.echo(f"planned model: {output}")


def _rows(found: Any) -> list[dict[str, Any]]:
    return [
        {"kind": kind, "link": each.link.id, "cost": each.link.cost, "capacity_msgs": each.link.capacity_msgs,
         "capacity_bytes": each.link.capacity_bytes, "price": each.price}
        for kind, items in (("new link", found.builds), ("upgrade", found.upgrades))
        for each in items
    ]  # fmt: skip


def _plain(found: Any) -> dict[str, Any]:
    at_least = None if found.at_least == float("inf") else found.at_least
    return {
        "steps": _rows(found),
        "price": found.price,
        "at_least": at_least,
        "is_cheapest": found.is_cheapest,
        "tries": found.tries,
        "broken": list(found.broken),
    }


def _say(found: Any) -> None:
    words = importlib.import_module("router.whatif.wording")
    sets = f"{words.counted(found.tries, 'mesh')} evaluated"
    if found.price is None:
        limits = words.listed(found.broken) or "all limits together"
        if found.at_least == float("inf"):
            click.echo(f"no combination of the priced changes satisfies {limits}; {sets}")
        else:
            click.echo(
                f"no plan found that satisfies {limits}; the minimum price of one is {found.at_least:,.10g}; {sets}"
            )
        return
    rows = _rows(found)
    if rows:
        names = ("kind", "link", "cost", "capacity_msgs", "capacity_bytes", "price")
        columns = ("what", "link", "cost", "messages/s", "bytes/s", "price")
        say_table("Cheapest changes found", columns, [[row[name] for name in names] for row in rows])
    else:
        click.echo("no change is needed: the limits are kept")
    if found.is_cheapest:
        verdict = "no plan is cheaper"
    else:
        most = f": at most {found.price / found.at_least - 1:.0%} more than the cheapest" if found.at_least else ""
        verdict = f"the minimum price of any plan is {found.at_least:,.10g}{most}"
    click.echo(f"\nprice {found.price:,.10g}; {verdict}; {sets}")
