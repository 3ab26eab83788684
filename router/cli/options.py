"""Options and arguments that several commands have."""

from __future__ import annotations

import math
from typing import Any, Final

import click

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


file_argument: Final = click.argument("file", type=click.Path(dir_okay=False))

timeout_option: Final = click.option(
    "--timeout",
    type=BoundedNumber(min=0, min_open=True, max=MAX_SECONDS),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="For the connection, and for each answer.",
)

router_option: Final = click.option(
    "--router", metavar="ID", help="Router to ask, by way of the one at URL; by default that one itself."
)

address_argument: Final = click.argument("address")

router_argument: Final = click.argument("router")

verbose_messages_option: Final = click.option(
    "-v", "--verbose", "form", flag_value="verbose", help="Show header and properties too."
)
