"""The command line: `amqp-mesh run|config|stat|demo`. Each command is imported when it is called."""

from __future__ import annotations

import importlib

import click

from router import __version__

COMMANDS = {
    "config": ("router.cli.config", "config"),
    "demo": ("router.cli.demo", "demo"),
    "run": ("router.cli.run", "run"),
    "stat": ("router.cli.stat", "stat"),
}
"""Module and object of each command."""


class _Commands(click.Group):
    """Commands that are imported when they are called: `config check` needs no engine."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name]
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        return command


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="amqp-mesh")
def main() -> None:
    """A mesh of AMQP 1.0 message routers.

    Each router is one process, described by a settings file; clients attach to the nearest one.
    """
