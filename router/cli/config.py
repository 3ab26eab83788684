"""`amqp-mesh config`: settings files checked, completed, drawn and made."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import attrs
import click

from mesh_config import generators
from mesh_config.check import check_files
from mesh_config.findings import Finding, SettingsError, Severity, has_errors
from mesh_config.graph import dot, topology
from mesh_config.loader import load_mesh, load_router
from mesh_config.picture import svg
from mesh_config.reference import reference_text
from mesh_config.render import render_mesh, render_router
from mesh_config.schema import schema_text

_COLORS = {Severity.ERROR: "red", Severity.WARNING: "yellow"}

_file = click.argument("file", type=click.Path(dir_okay=False))
_output = click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, writable=True, allow_dash=True),
    default="-",
    metavar="OUT",
    help="File to write, instead of standard output.",
)


class _RefusedError(click.ClickException):
    """A file with which the command cannot go on; shows all its findings."""

    def __init__(self, error: SettingsError) -> None:
        super().__init__(str(error))
        self._findings = error.findings

    def show(self, file: object = None) -> None:
        """Write the findings to standard error."""
        _show(self._findings, err=True)


@click.group()
def config() -> None:
    """Check, complete, draw and make settings files."""


@config.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(dir_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Write the findings as a JSON list.")
@click.pass_context
def check(context: click.Context, files: tuple[str, ...], as_json: bool) -> None:
    """Tell everything that is wrong with FILES.

    Each file of a mesh is checked by itself; files of one router each are checked as one mesh. Exit status 1 when there
    are errors; warnings leave it 0.
    """
    findings = check_files(files)
    if as_json:
        click.echo(json.dumps([attrs.asdict(finding) for finding in findings], indent=2, ensure_ascii=False))
    else:
        _show(findings)
        count = Counter(finding.severity for finding in findings)
        words = [f"{count[severity]} {severity}{'s' * (count[severity] != 1)}" for severity in Severity]
        click.echo(f"{len(files)} file{'s' * (len(files) != 1)}: {', '.join(words)}")
    context.exit(1 if has_errors(findings) else 0)


@config.command()
@_file
@click.option("--router", "router_id", metavar="ID", help="Which router; not needed for a file with one.")
@click.option("--brief", is_flag=True, help="Leave out what has its default value.")
@_output
def render(file: str, router_id: str | None, brief: bool, output: str) -> None:
    """Write the complete settings of one router of FILE, as a file of its own."""
    try:
        router = load_router(file, router_id)
    except SettingsError as error:
        raise _RefusedError(error) from error
    _write(output, render_router(router, with_defaults=not brief))


@config.command()
@_file
@click.option("--dot", "form", flag_value="dot", help="In the language of Graphviz; the default.")
@click.option("--svg", "form", flag_value="svg", help="As a picture; the default for OUT that ends in .svg.")
@_output
def graph(file: str, form: str | None, output: str) -> None:
    """Draw the mesh of FILE: its routers, and its links with their costs."""
    try:
        mesh = load_mesh(file)
    except SettingsError as error:
        raise _RefusedError(error) from error
    is_picture = form == "svg" or (form is None and output.endswith(".svg"))
    _write(output, svg(topology(mesh)) if is_picture else dot(topology(mesh)))


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
@click.argument("kind", type=click.Choice(list(generators.KINDS)))
@click.option("--routers", type=click.IntRange(1, generators.MAX_ROUTERS), required=True, help="How many.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of what is random in a geometric mesh.")
@click.option(
    "--base-port",
    type=click.IntRange(1, 65534),
    default=generators.BASE_PORT,
    show_default=True,
    help="Port of the first listener; each router takes two.",
)
@_output
def generate(kind: str, routers: int, seed: int, base_port: int, output: str) -> None:
    """Make the file of a mesh of a well-known shape, all on loopback."""
    try:
        mesh = generators.generate(kind, routers, seed=seed, base_port=base_port)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    _write(output, render_mesh(mesh))


def _show(findings: tuple[Finding, ...], *, err: bool = False) -> None:
    for finding in findings:
        click.secho(str(finding), fg=_COLORS[finding.severity], err=err)


def _write(output: str, text: str) -> None:
    if output == "-":
        click.echo(text, nl=False)
        return
    try:
        Path(output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.FileError(output, hint=error.strerror) from error
