"""`amqp-mesh run`: one router, in the foreground."""

from __future__ import annotations

import sys

import click

from mesh_config.findings import SettingsError
from mesh_config.loader import load_router
from router import logs
from router.core.errors import LocalError
from router.daemon import run as run_daemon


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--router", "router_id", metavar="ID", help="Which router of the file to be; needed when it has several.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="Lines to write to standard error.",
)
def run(file: str, router_id: str | None, log_level: str) -> None:
    """Run a router as FILE describes it, until SIGTERM or SIGINT.

    On either it accepts nothing new, lets what is in flight settle (the setting `shutdown_s`), closes every connection
    and ends with status 0. Status 1: the settings are wrong or a listener cannot be bound.
    """
    try:
        settings = load_router(file, router_id)
    except SettingsError as error:
        raise click.ClickException(str(error)) from error
    logs.configure(log_level)
    try:
        run_daemon(settings)
    except LocalError as error:
        logs.get(router=settings.id).error("cannot_start", reason=str(error))
        sys.exit(1)
