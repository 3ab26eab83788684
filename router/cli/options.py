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
