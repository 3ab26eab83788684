"""`amqp-mesh whatif import`: a model of a mesh or topology file."""

from __future__ import annotations

import importlib
from typing import Any, Final

import click

from router.cli.did_you_mean import HintingChoice
from router.cli.errors import BAD_INPUT, faults_of, show, unwritable
from router.cli.options import BoundedNumber
from router.cli.whatif.options import check_model_output, demands_option, groups_option, output_option

FORMS: Final = ("mesh", "graphml", "topohub", "sndlib", "repetita")
NOUNS: Final = {
    "routers": "router",
    "links": "link",
    "addresses": "address",
    "subscribers": "subscriber",
    "demands": "demand",
    "groups": "group",
}
"""Parts of a model, and what one item of each is called."""


@click.command("import")
@click.argument("file", type=click.Path(readable=False))
@demands_option
@groups_option
@click.option("--format", "form", type=HintingChoice(FORMS), help="Format of FILE.  [default: detected from FILE]")
@click.option(
    "--message-bytes",
    type=BoundedNumber(min=1, max=1e9),
    default=1000.0,
    show_default=True,
    metavar="BYTES",
    help="Size of a message, where FILE has traffic without message sizes.",
)
@output_option("MODEL", check_model_output)
def import_(
    file: str, demands: str | None, details: tuple[str, ...], form: str | None, message_bytes: float, output: str
) -> None:
    """Make a model from a mesh file or a topology file.

    FILE is a mesh file as for `amqp-mesh run`, GraphML of the Topology Zoo, JSON of TopoHub, a network of SNDlib, or a
    .graph file of REPETITA (give its .demands file to --demands). MODEL becomes a folder; an existing model is
    replaced. With an error in any file nothing is written.

    Exit status: 2 for input that can't be used, and when MODEL can't be written; else 0.
    """
    importing = importlib.import_module("router.whatif.formats.importer")
    with faults_of(output, BAD_INPUT):
        model, warnings = importing.import_model(
            file,
            form=None if form is None else importing.Form(form),
            details=details,
            demands=demands,
            message_bytes=message_bytes,
        )
        show(warnings, err=True)
        save(model, output)


def save(model: Any, output: str) -> None:
    """Write a model, and say what it has.

    Raises: SettingsError; CommandError when it can't be written.
    """
    store = importlib.import_module("router.whatif.formats.model_folder")
    try:
        store.write_model(model, output)
    except OSError as error:
        raise unwritable(error, output, BAD_INPUT) from error
    counts = {part: len(getattr(model, part)) for part in NOUNS}
    found = ", ".join(f"{count} {NOUNS[part] if count == 1 else part}" for part, count in counts.items() if count)
    click.echo(f"{output}: {found}")
