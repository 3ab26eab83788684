"""Options and arguments that several commands have."""

from __future__ import annotations

import math
from typing import Any, Final

import click

from mesh_config.range_wording import figures, range_words, without_unit
from router.core.terminal_escaping import escaped

MAX_SECONDS: Final = 30 * 86400.0
"""Longest time that an option takes: in milliseconds it fits the 32 bits that AMQP has for one."""


_LARGEST_SHOWN: Final = (1 << 31) - 1
"""Greatest upper bound that a help text shows: one beyond it is the largest number that there is room for."""


class _Bounded:
    """A number within bounds, in the words that settings have for theirs."""

    what: str
    """Name of such a number, in words."""
    min: Any
    max: Any
    min_open: bool

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check the number; words that Python takes for one, `inf` and `nan`, are none.

        Raises:
            BadParameter: it is none, or outside.
        """
        try:
            found = self._number_class(value)  # type: ignore[attr-defined]  # of click's types
        except ValueError:
            found = math.nan
        is_low = self.min is not None and (found <= self.min if self.min_open else found < self.min)
        is_high = self.max is not None and found > self.max
        if not isinstance(found, int) and not math.isfinite(found):
            said, is_high, near = f"{value!r} is not valid", False, without_unit(str(value), self._unit(param))
        elif is_low or is_high:
            said, nearest = f"{figures(found)} is out of range", self.max if is_high else self.min
            near = figures(nearest) if nearest is not None else None
        else:
            return found
        expected = self.what + range_words(self.min, self.max if is_high else self._shown_max(), is_open=self.min_open)
        hint = f"; did you mean `{near}`?" if near is not None and self._is_within(near) else ""
        raise click.BadParameter(f"{said}; expected {expected}{hint}", ctx=ctx, param=param)

    def _is_within(self, text: str) -> bool:
        try:
            number = self._number_class(text)  # type: ignore[attr-defined]
        except ValueError:
            return False
        is_above = self.min is None or number > self.min or (number == self.min and not self.min_open)
        return is_above and (self.max is None or number <= self.max)

    @staticmethod
    def _unit(param: click.Parameter | None) -> str:
        return (getattr(param, "metavar", None) or "").lower()  # of an option: SECONDS, BYTES

    def _shown_max(self) -> Any:
        return None if self.max is None or self.max > _LARGEST_SHOWN else self.max

    def _describe_range(self) -> str:
        """Return the words about the range that click shows in a help text."""
        has_bounds = self.min is not None or self.max is not None
        return self.what + range_words(self.min, self._shown_max(), is_open=self.min_open) if has_bounds else ""


class BoundedNumber(_Bounded, click.FloatRange):
    """A number within bounds, and a finite one."""

    name = "number"
    what = "a number"


class WholeNumber(_Bounded, click.IntRange):
    """A whole number within bounds."""

    name = "whole number"
    what = "a whole number"


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


class NonEmptyPath(click.Path):
    """Path of a file; an empty one would be taken for the folder that one is in.

    Whether it may be read is found out by whoever reads it, who says why not.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(readable=False, **options)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Check the path.

        Raises:
            BadParameter: it is empty.
        """
        if not value:
            self.fail("it is empty.", param, ctx)
        return super().convert(value, param, ctx)


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

file_argument: Final = click.argument("file", type=NonEmptyPath(dir_okay=False))

timeout_option: Final = click.option(
    "--timeout",
    type=BoundedNumber(min=0, min_open=True, max=MAX_SECONDS),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Maximum time for the connection, and for each answer.",
)

router_option: Final = click.option(
    "--router",
    metavar="ID",
    type=NAME,
    help="Router to query, by way of the one at URL; by default the one at URL itself.",
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
