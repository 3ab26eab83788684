"""`amqp-mesh whatif report`: the report of a run, written again."""

from __future__ import annotations

import importlib
from pathlib import Path

import click

from router.cli.stat_columns import printable
from router.cli.whatif.command_helpers import answering, need_run
from router.cli.whatif.options import folder_argument


@click.command("report")
@folder_argument("folder", "RUN", is_elsewhere=False)
def report(folder: Path) -> None:
    """Write report.html and summary.json of RUN again, and show a summary.

    A run writes them itself at its end; this command is for a run of another version of the program.

    Exit status: 2 for input that can't be used, else 0.
    """
    need_run(folder)
    folders = importlib.import_module("router.whatif.pipeline.run_folder")
    reports = importlib.import_module("router.whatif.report")
    with answering(folder):
        for verdict in reports.write(folder, folders.model_of(folder)):
            click.echo(printable(f"{verdict.label}: {verdict.value}. {verdict.note}"))
    click.echo(f"{folder / reports.PAGE}, {folder / reports.SUMMARY}")
