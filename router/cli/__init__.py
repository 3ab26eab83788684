"""The command line: `amqp-mesh run|config|stat|...`. A command is imported when it is called."""

from __future__ import annotations

import gc
import importlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any, ClassVar, Final

import click

from router import __version__, speed
from router.cli.did_you_mean import HintingGroup, with_nearest_option
from router.cli.errors import CommandError
from router.cli.interrupts import interrupts_held_back, interrupts_told
from router.core.terminal_escaping import escaped

COMMANDS = {
    "bench": ("router.cli.bench", "bench"),
    "call": ("router.cli.call", "call"),
    "completion": ("router.cli.completion_and_man", "completion"),
    "config": ("router.cli.config", "config"),
    "demo": ("router.cli.demo", "demo"),
    "drain": ("router.cli.drain_and_resume", "drain"),
    "man": ("router.cli.completion_and_man", "man"),
    "manage": ("router.cli.manage_and_ping", "manage"),
    "ping": ("router.cli.manage_and_ping", "ping"),
    "receive": ("router.cli.receive", "receive"),
    "replay": ("router.cli.replay", "replay"),
    "resume": ("router.cli.drain_and_resume", "resume"),
    "run": ("router.cli.run", "run"),
    "send": ("router.cli.send", "send"),
    "service-unit": ("router.cli.service_unit", "service_unit"),
    "stat": ("router.cli.stat", "stat"),
    "top": ("router.cli.top", "top"),
    "trace": ("router.cli.trace", "trace"),
    "user": ("router.cli.user", "user"),
    "whatif": ("router.cli.whatif", "whatif"),
}
"""Module and object of each command."""


_WRITTEN_BYTE: Final = re.compile(r"(?<!\\)\\udc([89a-f][0-9a-f])")
"""Pattern of a byte that is no UTF-8 as Python writes it: half of a surrogate pair, escaped."""


@contextmanager
def _plain_words() -> Iterator[None]:
    """Have click's own errors in the words of all others, and bytes that are no UTF-8 shown as by them."""
    try:
        yield
    except click.exceptions.NoArgsIsHelpError:
        raise  # its message is the help, in lines
    except click.UsageError as raised:
        error = with_nearest_option(raised) if isinstance(raised, click.NoSuchOption) else raised
        message = escaped(_WRITTEN_BYTE.sub(r"\\x\1", error.message))
        error.message = message  # type: ignore[misc]  # of an error that is on its way
        raise error from None


class LazyGroup(HintingGroup):
    """Commands that are imported when they are called: `config check` needs no engine."""

    modules: ClassVar[Mapping[str, tuple[str, str]]] = COMMANDS
    """Module and object of each command, by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, sorted."""
        return sorted(self.modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        if cmd_name not in self.modules:
            return None
        _check_speed()
        module, name = self.modules[cmd_name]
        command = getattr(_imported(module), name)
        assert isinstance(command, click.Command)
        return command


class _Commands(LazyGroup):
    """The commands of `amqp-mesh`."""

    def invoke(self, ctx: click.Context) -> Any:
        """Call the command."""
        with interrupts_told(), _plain_words():
            return super().invoke(ctx)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options before the name of the command."""
        with _plain_words():
            return super().parse_args(ctx, args)


def _imported(name: str) -> ModuleType:
    """A module, imported without the garbage collector: nearly all that an import makes stays."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with interrupts_held_back():
            return importlib.import_module(name)
    finally:
        if was_enabled:
            gc.enable()


def _check_speed() -> None:
    """One line instead of a traceback when the environment asks for a speed that can't be had."""
    if speed.REFUSAL:
        raise CommandError(speed.REFUSAL)


def _show_version(ctx: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    if is_wanted and not ctx.resilient_parsing:
        _check_speed()
        click.echo(f"amqp-mesh {__version__}, {speed.describe()}")
        ctx.exit()


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version, and whether messages are forwarded by compiled or interpreted code.",
)
def main() -> None:
    """A mesh of AMQP 1.0 message routers.

    Each router is one process, described by a settings file; clients attach to the nearest one.
    """
