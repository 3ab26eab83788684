"""Options and arguments that several commands have."""

from __future__ import annotations

import math
import re
import shlex
from typing import Any, Final

import click

from router.core.escapes import escaped

_PLAIN_WORD: Final = re.compile(r"[\w@%+=:,./*\[\]-]+")
"""Words that no shell changes; `*` and brackets it does only where there are such files."""
MAX_SECONDS: Final = 30 * 86400.0
"""Longest time that an option takes: in milliseconds it fits the 32 bits that AMQP has for one."""


class BoundedNumber(click.FloatRange):
    """A number within bounds; words that Python takes for one, `inf` and `nan`, are none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Check the number.

        Raises:
            BadParameter: it is none, or outside.
        """
        found: float = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value!r} is not a valid number.", param, ctx)
        return found


class Utf8Text(click.types.StringParamType):
    """Text that AMQP can carry: words of the command line may be any bytes."""

    def __init__(self, *, may_be_empty: bool = True) -> None:
        """*may_be_empty*: false for the name of something, which none is there without."""
        self._may_be_empty = may_be_empty

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the text.

        Raises:
            BadParameter: it is no UTF-8.
        """
        text: str = super().convert(value, param, ctx)
        if not is_utf8(text):
            self.fail(f"'{escaped(text)}' is not UTF-8.", param, ctx)
        if not text and not self._may_be_empty:
            self.fail("it is empty.", param, ctx)
        return text


class NamedPath(click.Path):
    """Path of a file; an empty one would be taken for the folder that one is in."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check the path.

        Raises:
            BadParameter: it is empty.
        """
        if not value:
            self.fail("it is empty.", param, ctx)
        return super().convert(value, param, ctx)


def shell_word(text: str) -> str:
    """*text* as one word of a command that a shell reads, in quotes where it would be read otherwise."""
    return text if _PLAIN_WORD.fullmatch(text) else shlex.quote(text)


def is_given(name: str) -> bool:
    """Whether the command that is called was given the option *name*, so that it has not its default value."""
    return click.get_current_context().get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def is_utf8(text: str) -> bool:
    """Whether a word of the command line was UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


UTF8: Final = Utf8Text()
NAME: Final = Utf8Text(may_be_empty=False)

MAX_COUNT: Final = (1 << 63) - 1
"""Messages that an option takes at most."""

file_argument: Final = click.argument("file", type=NamedPath(dir_okay=False))

timeout_option: Final = click.option(
    "--timeout",
    type=BoundedNumber(min=0, min_open=True, max=MAX_SECONDS),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="For the connection, and for each answer.",
)

router_option: Final = click.option(
    "--router", metavar="ID", type=NAME, help="Router to ask, by way of the one at URL; by default that one itself."
)


def _not_empty(ctx: click.Context, param: click.Parameter, value: str) -> str:
    if not value:
        raise click.BadParameter("an address is expected, and this is empty", ctx=ctx, param=param)
    return value


address_argument: Final = click.argument("address", type=UTF8, callback=_not_empty)

router_argument: Final = click.argument("router", type=NAME)

verbose_messages_option: Final = click.option(
    "-v", "--verbose", "form", flag_value="verbose", help="Show header and properties too."
)
