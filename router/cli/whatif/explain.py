"""`amqp-mesh whatif explain`: one scenario, link, router, pair or address in words and as a picture."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import click

from router.cli.options import WholeNumber
from router.cli.stat_columns import printable
from router.cli.whatif.command_helpers import answering, is_run, read_model, say_json, say_table
from router.cli.whatif.options import check_output, down_option, folder_argument, json_option


@click.command("explain")
@folder_argument("folder", "RUN|MODEL")
@click.option(
    "--scenario", type=WholeNumber(min=0), metavar="NUMBER", help="Explain the scenario of this number in RUN."
)
@down_option
@click.option("--variant", metavar="NAME", default="base", show_default=True, help="Use this variant of RUN's model.")
@click.option("--link", metavar="ID", help="Explain this link.")
@click.option("--router", metavar="ID", help="Explain this router.")
@click.option("--pair", nargs=2, metavar="FROM TO", help="Explain the paths between these two routers.")
@click.option("--address", metavar="TEXT", help="Explain this address.")
@click.option(
    "--picture",
    metavar="FILE.svg",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw the explained mesh into a file.",
    callback=check_output,
)
@click.option(
    "--limit", type=WholeNumber(min=1), default=10, show_default=True, help="Maximum number of rows of each table."
)
@json_option
def explain(
    folder: Path,
    scenario: int | None,
    down: tuple[str, ...],
    variant: str,
    link: str | None,
    router: str | None,
    pair: tuple[str, str] | None,
    address: str | None,
    picture: Path | None,
    limit: int,
    is_json: bool,
) -> None:
    """Explain a scenario, a link, a router, a pair of routers or an address.

    The scenario is one of RUN, by its number as in reports and tables, or what --down names. Without other options the
    scenario itself is explained; with --link, --router, --pair or --address, these are explained as they are in the
    scenario.

    Exit status: 2 when nothing has that name or input can't be used, else 0.
    """
    if sum(asked is not None for asked in (link, router, pair, address)) > 1:
        raise click.UsageError("--link, --router, --pair, --address: only one of them can be given")
    if picture is not None and picture.suffix != ".svg":
        raise click.UsageError(f"--picture {picture}: expected a name that ends in .svg")
    explaining = importlib.import_module("router.whatif.analysis.explain")
    with answering(folder):
        subject = _subject(folder, scenario, down, variant)
        subject.shown = limit
        found = explaining.explain(subject, link=link, router=router, pair=pair, address=address)
        if picture is not None:
            drawing = importlib.import_module("router.whatif.report.explanation_picture")
            drawing.write_picture(found, subject.model, picture)
    if is_json:
        say_json(found.plain())
    else:
        _say(found)


def _subject(folder: Path, scenario: int | None, down: tuple[str, ...], variant: str) -> Any:
    subjects = importlib.import_module("router.whatif.analysis.explain").BaseAndScenario
    if is_run(folder):
        return subjects.of_run(folder, scenario=scenario, variant=variant, down=down)
    if scenario is not None or variant != "base":
        raise click.UsageError(f"{folder} is no run: --scenario and --variant need one")
    return subjects.of_model(read_model(folder), down=down)


def _say(found: Any) -> None:
    click.secho(printable(found.title), bold=True)
    for sentence in found.sentences:
        click.echo(printable(sentence))
    for listing in found.listings:
        say_table(listing.title, listing.columns, listing.rows)
