"""`amqp-mesh service-unit`: the unit file for systemd, which comes with the program."""

from __future__ import annotations

import os
import shutil
import sys
from importlib import resources
from pathlib import Path
from typing import Final

import click

UNIT: Final = "amqp-mesh@.service"
INSTALLED: Final = "/usr/bin/amqp-mesh"
"""Program in the file, in whose place the one that is called stands."""
SETTINGS: Final = "/etc/amqp-mesh/mesh.yaml"
HIDDEN: Final = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")  # noqa: S108 - nothing is written there
"""Folders that the unit hides from the router, or gives it others of: ProtectHome and PrivateTmp."""


@click.command("service-unit", short_help="Write a unit file for systemd.")
@click.option("--settings", default=SETTINGS, show_default=True, metavar="FILE", help="Settings file on the hosts.")
def service_unit(settings: str) -> None:
    """Write a unit file for systemd to standard output.

    With it `systemctl start amqp-mesh@A` runs router A of the settings file: sandboxed, watched, and started again
    whenever it ends. It names this very program, and FILE by its whole path.
    """
    settings = str(Path(settings).absolute())
    called = Path(sys.argv[0])
    program = str(called.resolve()) if called.is_file() else shutil.which("amqp-mesh") or INSTALLED
    for path in sorted({program, os.path.realpath(sys.executable), os.path.realpath(settings)}):
        if any(Path(path).is_relative_to(folder) for folder in HIDDEN):
            click.echo(f"warning: {path}: the unit hides that folder from the router; take /opt, or /etc", err=True)
    text = (resources.files("router.deployment") / UNIT).read_text(encoding="utf-8")
    click.echo(text.replace(INSTALLED, program).replace(SETTINGS, settings), nl=False)
