"""`amqp-mesh whatif snapshot`: a model of a live mesh."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from router.cli.errors import BAD_INPUT, faults_of, show
from router.cli.management import ManagementClient
from router.cli.options import BoundedNumber
from router.cli.router_access import RouterAccess, access_options_beside_url
from router.cli.whatif.import_model import save
from router.cli.whatif.mesh_client import MeshClient
from router.cli.whatif.options import check_model_output, demands_option, groups_option, output_option
from router.core.terminal_escaping import url_without_password


@click.command()
@click.argument("url")
@output_option("MODEL", check_model_output)
@click.option("--name", default="mesh", show_default=True, metavar="TEXT", help="Name to give to the model.")
@groups_option
@demands_option
@click.option(
    "--measure",
    type=BoundedNumber(min=0.1, max=86400),
    metavar="SECONDS",
    help="Measure for SECONDS what publishers send to each address, and use it as demands.",
)
@access_options_beside_url
def snapshot(
    access: RouterAccess,
    output: str,
    name: str,
    details: tuple[str, ...],
    demands: str | None,
    measure: float | None,
) -> None:
    """Make a model of the live mesh that the router at URL belongs to.

    URL is a client listener of any router, such as amqp://127.0.0.1:5672 (amqps:// for TLS); it leads to all others.
    The model has the routers and their sites, links with costs, delays and counters, and addresses with subscribers and
    credit. MODEL becomes a folder; an existing model is replaced.

    Exit status: 1 when a router cannot be queried, or its answer can't be used; 2 for a file that can't be used, and
    when MODEL can't be written; else 0.
    """
    if demands is not None and measure is not None:
        raise click.UsageError("--demands and --measure exclude each other")
    sources = importlib.import_module("router.whatif.formats.live_snapshot")
    importing = importlib.import_module("router.whatif.formats.importer")
    with faults_of(output, BAD_INPUT):
        with faults_of(url_without_password(access.url)):  # of the mesh, and not of what was given
            with ManagementClient(access) as client:
                reading, found = _read(sources, client, measure)
            model, warnings = sources.checked_model(reading, url_without_password(access.url), name=name, demands=found)
        model, more = importing.completed(model, details=details, demands=demands)
        show((*warnings, *more, *importing.parts_warning(model, None)), err=True)
        save(model, output)


def _read(sources: Any, client: ManagementClient, measure: float | None) -> tuple[Any, Sequence[Any]]:
    """Read what the mesh tells, and measure the demands."""
    asking = MeshClient(client)
    with _progress("asking routers") as told:
        before = sources.collect(asking, told)
    if measure is None:
        return before, ()
    began = time.monotonic()
    time.sleep(measure)
    with _progress("asking again") as told:
        after = sources.collect(asking, told)
    return after, sources.measured_demands(before, after, time.monotonic() - began)


@contextmanager
def _progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """A bar, where there is a terminal. Yields: what is told how many routers were asked, and how many there are."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, every: bar.update(task, completed=done, total=every)
