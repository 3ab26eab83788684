"""`amqp-mesh config`: settings files checked, completed, drawn and made."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Final

import attrs
import click

from mesh_config import generators
from mesh_config.check import check_documents
from mesh_config.findings import SettingsError, Severity, has_errors, in_order
from mesh_config.graph import dot, topology
from mesh_config.loader import load_mesh, load_router, read_document
from mesh_config.picture import svg
from mesh_config.reference import reference_text
from mesh_config.render import render_mesh, render_router
from mesh_config.schema import schema_text
from router.cli.did_you_mean import HintingChoice, HintingGroup
from router.cli.errors import InvalidInputError, show, unwritable
from router.cli.options import NonEmptyPath, WholeNumber, file_argument
from router.cli.referenced_files import referenced_file_findings
from router.security.file_replacement import replace_file

GRAPH_FORMS: Final = {"": "dot", ".dot": "dot", ".gv": "dot", ".svg": "svg"}
"""Form of a drawing by the ending of its file's name."""

_output = click.option(
    "-o",
    "--output",
    type=NonEmptyPath(dir_okay=False, writable=True, allow_dash=True),
    default="-",
    metavar="OUT",
    help="File to write, instead of standard output.",
)


@click.group(cls=HintingGroup)
def config() -> None:
    """Check, render, draw and generate settings files."""


@config.command()
@click.argument("files", nargs=-1, required=True, type=NonEmptyPath(dir_okay=False))
@click.option(
    "--files",
    "with_named",
    is_flag=True,
    help="Also read the files that the settings name, as the routers would on this machine: certificates, "
    "keys, revocation lists, users and passwords; and see that what `http` needs is installed. --router limits it to "
    "one router.",
)
@click.option("--router", "router_id", metavar="ID", help="With --files: read only the files that this router names.")
@click.option("--json", "as_json", is_flag=True, help="Write the findings as a JSON list.")
@click.pass_context
def check(
    context: click.Context, files: tuple[str, ...], with_named: bool, router_id: str | None, as_json: bool
) -> None:
    """Check settings files and report errors and warnings.

    Single values are checked first; how the settings of a router fit together is checked once its values are right, and
    how routers fit together once all values are.

    Each file of a mesh is checked by itself; files of one router each are checked together, as one mesh. Exit status: 1
    when there are errors, 0 otherwise, also with warnings.
    """
    if router_id is not None and not with_named:
        raise click.UsageError("--router goes with --files")
    documents = [read_document(file) for file in dict.fromkeys(files)]  # once: one may be a pipe
    findings = check_documents(documents)
    if with_named and not has_errors(findings):
        try:
            findings = in_order(
                [*findings, *(it for each in documents for it in referenced_file_findings(each, router_id))]
            )
        except SettingsError as error:
            raise InvalidInputError(error) from error
    if as_json:
        rows = [attrs.asdict(finding) for finding in findings]
        text = json.dumps(rows, indent=2, ensure_ascii=False)
        # What UTF-8 can't have, as the escape of JSON: the name of the file can be had back.
        click.echo(text.encode("utf-8", "backslashreplace").decode())
    else:
        show(findings)
        count = Counter(finding.severity for finding in findings)
        words = [f"{count[severity]} {severity}{'s' * (count[severity] != 1)}" for severity in Severity]
        number = len(documents)
        click.echo(f"{number} file{'s' * (number != 1)}: {', '.join(words)}")
    context.exit(1 if has_errors(findings) else 0)


@config.command()
@file_argument
@click.option("--router", "router_id", metavar="ID", help="Router to write; needed when FILE has several.")
@click.option("--brief", is_flag=True, help="Leave out settings that have their default value.")
@_output
def render(file: str, router_id: str | None, brief: bool, output: str) -> None:
    """Write all settings of one router, with defaults filled in.

    FILE describes a mesh or one router; the output is a file of only that router, which `amqp-mesh run` takes too.
    """
    try:
        router = load_router(file, router_id)
    except SettingsError as error:
        raise InvalidInputError(error) from error
    _write(output, render_router(router, with_defaults=not brief))


@config.command()
@file_argument
@click.option("--dot", "form", flag_value="dot", help="Draw in the language of Graphviz (the default).")
@click.option("--svg", "form", flag_value="svg", help="Draw a picture; the default when OUT ends in .svg.")
@_output
def graph(file: str, form: str | None, output: str) -> None:
    """Draw the mesh of FILE.

    Shows its routers, by site, and its links with their costs.
    """
    if form is None:
        form = GRAPH_FORMS.get(Path(output).suffix)
        if form is None:
            endings = ", ".join(filter(None, GRAPH_FORMS))
            raise click.UsageError(
                f"--output {output}: expected a name that ends in one of {endings}, or --svg or --dot"
            )
    try:
        mesh = load_mesh(file)
    except SettingsError as error:
        raise InvalidInputError(error) from error
    _write(output, svg(topology(mesh)) if form == "svg" else dot(topology(mesh)))


@config.command()
@_output
def schema(output: str) -> None:
    """Write the JSON Schema of settings files, for editors."""
    _write(output, schema_text())


@config.command()
@_output
def reference(output: str) -> None:
    """Write the reference of all settings, in Markdown."""
    _write(output, reference_text())


@config.command()
@click.argument("kind", metavar="SHAPE", type=HintingChoice(list(generators.KINDS)))
@click.option(
    "--routers",
    type=WholeNumber(1, generators.MAX_ROUTERS),
    required=True,
    metavar="N",
    help="Number of routers.",
)
@click.option(
    "--seed",
    type=WholeNumber(),
    default=0,
    show_default=True,
    metavar="N",
    help="Seed of the random choice of `geometric` and `chords`: the same seed gives the same mesh.",
)
@click.option(
    "--base-port",
    type=WholeNumber(1, 65534),
    default=generators.BASE_PORT,
    show_default=True,
    metavar="PORT",
    help="Port of the first listener; each router takes the next two.",
)
@_output
def generate(kind: str, routers: int, seed: int, base_port: int, output: str) -> None:
    """Generate a mesh of a well-known shape, all on loopback.

    SHAPE is line, ring, star, tree (each router has two below it), full (every router is a neighbor of every other),
    geometric (routers at random places in a square, neighbors where they are near), chords (a ring with random links,
    four neighbors on average) or fat-tree (of 5, 20, 45, 80 ... routers).
    """
    try:
        mesh = generators.generate(kind, routers, seed=seed, base_port=base_port)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    _write(output, render_mesh(mesh))


def _write(output: str, text: str) -> None:
    if output == "-":
        click.echo(text, nl=False)
        return
    try:
        replace_file(output, text, mode=0o666)
    except OSError as error:
        raise unwritable(error, output) from error
