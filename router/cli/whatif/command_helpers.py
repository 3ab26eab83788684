"""Helpers of the commands that ask a run or a model: where they look, how they answer, how they fail."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mesh_config.findings import SettingsError
from router.cli.stat_columns import printable
from router.cli.whatif.run import BAD_INPUT, InputError

PLAIN_WIDTH: Final = 160
"""Columns of a table that goes into a file."""
LONG: Final = frozenset({"path", "what is down", "between", "note", "was", "is", "what"})
"""Columns with sentences: they are folded, others are not."""


class AnswerError(click.ClickException):
    """Question that can't be answered; exits with 2."""

    exit_code = BAD_INPUT


@contextmanager
def answering() -> Iterator[None]:
    """Failures as an operator reads them, with exit status 2."""
    tables = importlib.import_module("router.whatif.pipeline.table_layouts")
    networks = importlib.import_module("router.whatif.kernel.network_arrays")
    try:
        yield
    except SettingsError as error:
        raise InputError(error) from error
    except (tables.TableError, networks.NetworkError) as error:
        raise AnswerError(str(error)) from error
    except OSError as error:
        raise AnswerError(f"{error.filename or ''}: {error.strerror or error}") from error


F = TypeVar("F", bound=Callable[..., Any])


def folder_argument(name: str, what: str) -> Callable[[F], F]:
    """An argument that is the folder of a run, or of a model."""
    return click.argument(name, metavar=what, type=click.Path(exists=True, file_okay=False, path_type=Path))


def json_option() -> Callable[[F], F]:
    """`--json`."""
    return click.option("--json", "is_json", is_flag=True, help="Write JSON instead of tables.")


def is_run(folder: Path) -> bool:
    """Whether a folder is a run; else it should be a model."""
    return bool(importlib.import_module("router.whatif.pipeline.run_folder").is_run(folder))


def read_model(folder: Path) -> Any:
    """The model of a run, or in a folder of its own. Raises: SettingsError"""
    if is_run(folder):
        return importlib.import_module("router.whatif.pipeline.run_folder").model_of(folder)
    return importlib.import_module("router.whatif.formats.model_folder").read_model(folder)


def say_json(value: object) -> None:
    """Write JSON to standard output."""
    click.echo(json.dumps(value, indent=1, allow_nan=False))


def console() -> Console:
    """Standard output: as wide as the terminal is, or wide in a file."""
    made = Console(highlight=False)
    return made if made.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


def say_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Write a table, numbers to the right."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    are_numbers = [
        any(_is_number(row[at]) for row in rows) and all(_is_number(row[at]) or row[at] is None for row in rows)
        for at in range(len(columns))
    ]
    for column, is_number in zip(columns, are_numbers, strict=True):
        table.add_column(column, justify="right" if is_number else "left", no_wrap=column not in LONG, overflow="fold")
    for row in rows:
        # Text, and no markup: names are what others have chosen.
        table.add_row(*(Text(cell(value)) for value in row))
    out = console()
    out.print(Text(f"\n{printable(title)}", style="bold"))
    out.print(table)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def cell(value: object) -> str:
    """A value as a table shows it."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return str(importlib.import_module("router.whatif.wording").amount(value))
    return printable(str(value))
