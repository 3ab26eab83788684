"""Options and arguments that several commands have."""

from __future__ import annotations

from typing import Final

import click

file_argument: Final = click.argument("file", type=click.Path(dir_okay=False))

timeout_option: Final = click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
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
