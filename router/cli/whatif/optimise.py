"""`amqp-mesh whatif optimise`: link costs with which the busiest link of the worst failure is less busy."""

from __future__ import annotations

import difflib
import importlib
import io
from pathlib import Path
from typing import Any, Final

import click

from router.cli.errors import BAD_INPUT, CommandError
from router.cli.options import WholeNumber
from router.cli.stat_columns import printable
from router.cli.whatif.command_helpers import answering, is_split, need_capacities, read_model, say_json, say_table
from router.cli.whatif.options import fail_option, folder_argument, json_option, tries_option
from router.cli.whatif.progress_bar import progress
from router.core.terminal_escaping import shell_word

MOST_COST: Final = 65535
NAMED: Final = 5
"""Links that are named in a warning about the mesh file."""
BOM: Final = "\ufeff"
"""Mark at the beginning of a file that some editors write."""


@click.command("optimise")
@folder_argument("folder", "MODEL|RUN")
@click.option(
    "--mesh",
    "file",
    metavar="FILE",
    type=click.Path(dir_okay=False, readable=False),
    help="Mesh file: show the changes to it as a diff that `patch` takes.",
)
@fail_option
@click.option(
    "--changes",
    type=WholeNumber(1, 10_000),
    default=5,
    show_default=True,
    metavar="N",
    help="Maximum number of links whose cost is changed.",
)
@click.option(
    "--max-cost", type=WholeNumber(1, MOST_COST), default=MOST_COST, metavar="N", help="Maximum cost of a link."
)
@click.option(
    "--keep", "kept", metavar="LINK", multiple=True, help="Don't change the cost of this link. Can be repeated."
)
@tries_option
@json_option
def optimise(
    folder: Path,
    file: str | None,
    families: tuple[str, ...],
    changes: int,
    max_cost: int,
    kept: tuple[str, ...],
    tries: int,
    is_json: bool,
) -> None:
    """Search for link costs that lower the maximum utilisation of any link over all failures.

    The search changes the cost of one link at a time, and ends where no such step helps: the result is better, but need
    not be the best. Costs in FILE are written at connectors; parallel links keep theirs.

    Exit status: 2 for input that can't be used, else 0.
    """
    searching = importlib.import_module("router.whatif.analysis.cost_search")
    settings = importlib.import_module("router.whatif.formats.mesh_settings")
    places = importlib.import_module("router.whatif.analysis.explain.base_and_scenario")
    with answering(folder), progress() as on_progress:
        if file is not None:
            # It is read again for the diff, which is of no use for what `patch` can't change.
            importlib.import_module("router.whatif.formats.input_file").FileFindings(file).need_regular()
        model = read_model(folder)
        need_capacities(folder, model)
        if is_split(folder):
            message = "a run with --routing ecmp; costs are sought for single paths, as routers of a mesh use them"
            raise CommandError(f"{folder}: {message}", BAD_INPUT)
        least = {link.id: 1 for link in model.links}
        for name in kept:
            places.place_of("link", name, tuple(least), option="--keep")
        if file is not None:
            mesh = importlib.import_module("mesh_config.loader").load_mesh(file)
            there = settings.links_by_id(mesh)
            _tell_of_differences(file, {name: link.cost for name, link in there.items()}, model)
            known = settings.least_costs(mesh)
            least = {name: known[name] for name in least if name in known}
        limits = searching.CostLimits(
            changes=changes,
            max_cost=max_cost,
            least={name: cost for name, cost in least.items() if name not in kept},
            tries=tries,
        )
        chosen = importlib.import_module("router.whatif.scenarios.scenario_plan").families_of(",".join(families))
        found = searching.better_costs(
            model, chosen, limits, lambda done, total: on_progress("evaluating costs", done, total)
        )
        edited = None if file is None else settings.with_link_costs(file, found.costs)
    own = {link.id: link.cost for link in model.links}
    rows = [{"link": name, "before": own[name], "after": cost} for name, cost in sorted(found.costs.items())]
    diff = "" if file is None or edited is None else _diff(Path(file), edited)
    if is_json:
        say_json({"costs": rows, "before": found.before, "after": found.after, "tries": found.tries, "diff": diff})
    else:
        _say(rows, found, diff)


def _tell_of_differences(file: str, costs: dict[str, int], model: Any) -> None:
    """Say where a mesh file differs from the model, whose costs and links are those that are played.

    Args:
        file: path of the mesh file.
        costs: of its links, by id.
        model: whose costs are changed.
    Raises: CommandError when it has no link of the model: it is the file of another mesh.
    """
    own = {link.id: link.cost for link in model.links}
    missing = [name for name in own if name not in costs]
    if missing and len(missing) == len(own):
        raise CommandError(
            f"{file}: it has no link of the model ({_some(missing)}); expected the mesh file that the model was made "
            "from",
            BAD_INPUT,
        )
    for names, said in (
        (missing, "lacks links of the model, whose costs stay"),
        ([name for name in costs if name not in own], "has links that the model lacks, which were left out"),
        (
            [name for name in costs if name in own and costs[name] != own[name]],
            "has other costs of links than the model, whose costs were taken",
        ),
    ):
        if names:
            click.echo(printable(f"warning: {file} {said}: {_some(names)}"), err=True)


def _some(names: list[str]) -> str:
    return ", ".join(names[:NAMED]) + (" and others" if len(names) > NAMED else "")


def _diff(file: Path, edited: str) -> str:
    """Changes to a file, as `patch` takes them: with the ends of lines that the file has."""
    text = file.read_bytes().decode("utf-8")
    if text.startswith(BOM):
        edited = BOM + edited
    before, after = (io.StringIO(each, newline="\n").readlines() for each in (text, edited))
    changes = difflib.unified_diff(before, after, str(file), str(file))
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in changes)


def _say(rows: list[dict[str, Any]], found: Any, diff: str) -> None:
    words = importlib.import_module("router.whatif.wording")
    played = f"{words.counted(found.tries, 'mesh')} evaluated"
    if not rows:
        click.echo(f"no cost change improves the worst case ({words.percent(found.before)} utilisation); {played}")
        return
    before, after = words.told_apart(words.percent, found.before, found.after)
    say_table("Costs of links", ("link", "current cost", "cost"), [[row[name] for name in row] for row in rows])
    click.echo(f"\nhighest utilisation in the worst failure: {before} before, {after} after; {played}")
    if diff:
        click.echo(f"\n{diff}", nl=False)
    else:
        costs = (shell_word(f"{row['link']}={row['after']}") for row in rows)
        click.echo("try it: amqp-mesh whatif run " + " ".join(f"--cost {cost}" for cost in costs))
