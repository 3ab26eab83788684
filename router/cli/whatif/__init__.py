"""`amqp-mesh whatif`: what would happen to a mesh if parts of it failed, traffic grew or subscribers moved.

Each command is imported when it is called: most need libraries that only the extra `whatif` installs, and that take
longer to import than the other commands take to run.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import attrs
import click

from router.cli import LazyGroup
from router.cli.errors import CommandError

EXTRA: Final = ".[whatif]"
EXTRA_MODULES: Final = frozenset({"jinja2", "lxml", "matplotlib", "numpy", "pandas", "py4j", "pyarrow", "pyspark"})
"""Packages that the extra installs, by the names that are imported."""


@attrs.frozen
class Command:
    """Module of a command, and what the list of commands says of it."""

    module: str
    name: str
    """Name of the click command in that module."""
    help: str


COMMANDS: Final[dict[str, Command]] = {
    "run": Command("router.cli.whatif.run", "run", "Run failures and changes through a model."),
    "snapshot": Command("router.cli.whatif.snapshot", "snapshot", "Make a model of a live mesh."),
    "check": Command("router.cli.whatif.check", "check", "Check a run against limits, as a gate in CI."),
    "converge": Command("router.cli.whatif.converge", "converge", "Predict how long a mesh takes to converge."),
    "credit": Command("router.cli.whatif.credit", "credit", "Show the credit that paths need and have."),
    "diff": Command("router.cli.whatif.diff", "diff", "Show the differences between two models or runs."),
    "explain": Command("router.cli.whatif.explain", "explain", "Explain one scenario, link, router, pair or address."),
    "forecast": Command(
        "router.cli.whatif.forecast", "forecast", "Forecast when links will be full, from their history."
    ),
    "report": Command("router.cli.whatif.report", "report", "Write the report of a run again."),
    "optimise": Command("router.cli.whatif.optimise", "optimise", "Find link costs that lower the worst utilisation."),
    "plan": Command("router.cli.whatif.plan", "plan", "Find the cheapest links and upgrades within limits."),
    "suggest": Command("router.cli.whatif.suggest", "suggest", "Suggest new links and places of subscribers."),
    "watch": Command("router.cli.whatif.watch", "watch", "Show the load of a live mesh's links."),
    "import": Command("router.cli.whatif.import_model", "import_", "Make a model from a mesh or topology file."),
}
"""Commands of `amqp-mesh whatif`, by name."""


class _Commands(LazyGroup):
    """The commands of `amqp-mesh whatif`."""

    modules: ClassVar = {name: (command.module, command.name) for name, command in COMMANDS.items()}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            command.short_help = COMMANDS[cmd_name].help
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without an import of any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].help) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; without the extra, say in one line what is to be installed."""
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if missing not in EXTRA_MODULES:
                raise
            raise CommandError(
                f"{ctx.command_path} needs {missing}, which is not installed: pip install '{EXTRA}' in a clone of"
                " its repository"
            ) from error


@click.command(cls=_Commands)
def whatif() -> None:
    """Evaluate failures, growth and changes of a mesh.

    What if this router or those links fail, if traffic grows, if subscribers move? A model of the mesh is made from a
    live mesh (snapshot) or a file (import); the other commands run scenarios on it and show their effects.
    """
