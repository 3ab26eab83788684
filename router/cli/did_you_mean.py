"""Words of the command line: a wrong one is answered with the nearest right one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import click

from mesh_config.findings import nearest

_DASHES: Final = "--"


class HintingGroup(click.Group):
    """Commands."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is called, its name and its arguments.

        Raises:
            UsageError: there is none of that name.
        """
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise click.UsageError(error.message + did_you_mean(args[0], self.list_commands(ctx)), ctx=ctx) from None


class HintingChoice(click.Choice[str]):
    """One of some words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the word.

        Raises:
            BadParameter: it is none of them.
        """
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            known = ", ".join(f"'{each}'" for each in self.choices)  # click has them in small letters
            words = f"'{value}' is not one of {known}.{did_you_mean(str(value), self.choices)}"
            raise click.BadParameter(words, ctx=error.ctx, param=error.param) from None


def with_nearest_option(error: click.NoSuchOption) -> click.UsageError:
    """Reword an error of click like all others: click itself lists whatever is near by the alphabet."""
    context = error.ctx
    options = context.command.get_params(context) if context is not None else []
    names = [name for each in options for name in (*each.opts, *each.secondary_opts) if name.startswith(_DASHES)]
    # Without the dashes, which make any two of them alike.
    near = nearest(error.option_name.removeprefix(_DASHES), [name.removeprefix(_DASHES) for name in names])
    is_long = error.option_name.startswith(_DASHES)
    hint = suggestion(_DASHES + near) if is_long and near is not None else ""
    return click.UsageError(error.message + hint, ctx=context)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Text to be added to an error: the nearest of the *known* words, if one is near."""
    near = nearest(word, known)
    return "" if near is None else suggestion(near)


def suggestion(near: str) -> str:
    """Text of a suggestion for a right word that is already found."""
    return f" Did you mean '{near}'?"
