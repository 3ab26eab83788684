"""Words of the command line: a wrong one is answered with the nearest right one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from mesh_config.findings import nearest


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
            hint = did_you_mean(str(value), self.choices)
            raise click.BadParameter(error.message + hint, ctx=error.ctx, param=error.param) from None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Text to be added to an error: the nearest of the *known* words, if one is near."""
    near = nearest(word, known)
    return "" if near is None else f" Did you mean '{near}'?"
