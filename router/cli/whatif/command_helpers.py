"""Helpers of the commands that ask a run or a model: where they look, how they answer, how they fail."""

from __future__ import annotations

import importlib
import json
import signal
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import click
from rich.table import Table
from rich.text import Text

from mesh_config.findings import SettingsError
from router.cli.errors import BAD_INPUT, FAILED, CommandError, InvalidInputError, file_error
from router.cli.interrupts import INTERRUPTED
from router.cli.stat_columns import printable
from router.cli.table_output_width import console

CAPACITIES_BY: Final = "`amqp-mesh whatif import --details FILE` takes them from a file of details"
"""Said where a model without capacities can't be used."""
LONG: Final = frozenset({"path", "what is down", "between", "note", "was", "is", "what"})
"""Columns with sentences: they are folded, others are not."""


def need_capacities(folder: object, model: Any) -> None:
    """Refuse a model in which no link can be full. Raises: CommandError that names its folder."""
    if not model.has_capacities:
        raise CommandError(f"{folder}: no link of the model has a capacity; {CAPACITIES_BY}", BAD_INPUT)


@contextmanager
def answering(place: object) -> Iterator[None]:
    """Failures as an operator reads them, with exit status 2 where input is at fault.

    Args:
        place: named where the system names no file, as it does on a full disk.
    """
    tables = importlib.import_module("router.whatif.pipeline.table_layouts")
    networks = importlib.import_module("router.whatif.kernel.network_arrays")
    try:
        yield
    except SettingsError as error:
        raise InvalidInputError(error, BAD_INPUT if error.is_of_input else FAILED) from error
    except (tables.TableError, networks.NetworkError) as error:
        raise CommandError(str(error), BAD_INPUT) from error
    except OSError as error:
        raise file_error(error, error.filename or place, BAD_INPUT) from error


@contextmanager
def interruptions(words: str) -> Iterator[None]:
    """End the command on Ctrl-C and SIGTERM in order, so that what it has begun is taken away or kept.

    Args:
        words: that Ctrl-C is answered with, instead of a traceback.
    """

    def terminated(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    previous = signal.signal(signal.SIGTERM, terminated)
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"\n{words}", err=True)
        raise SystemExit(INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGTERM, previous)


def resumed(output: str) -> str:
    """Say how an interrupted run goes on. *output*: its folder."""
    return f"interrupted; continue with the same command and --resume ({output})"


def is_run(folder: Path) -> bool:
    """Whether a folder is a run; else it should be a model.

    Raises: CommandError, InvalidInputError for a run of which something is missing or can't be read.
    """
    with answering(folder):
        return bool(importlib.import_module("router.whatif.pipeline.run_folder").is_run(folder))


def is_split(folder: Path) -> bool:
    """Whether a folder is a run whose messages are split over equal paths.

    Raises: TableError
    """
    return is_run(folder) and bool(importlib.import_module("router.whatif.pipeline.run_folder").is_split(folder))


def need_run(folder: Path) -> None:
    """Refuse a folder that is no run.

    Raises: CommandError
    """
    if not is_run(folder):
        said = "no run with its model" if folder.exists() else "no such folder"
        raise CommandError(f"{folder}: {said}; expected a folder that `amqp-mesh whatif run` wrote", BAD_INPUT)


def read_model(folder: Path) -> Any:
    """The model of a run, or in a folder of its own.

    Raises: SettingsError
    """
    if is_run(folder):
        return importlib.import_module("router.whatif.pipeline.run_folder").model_of(folder)
    return importlib.import_module("router.whatif.formats.model_folder").read_model(folder)


def say_json(value: object) -> None:
    """Write JSON to standard output."""
    click.echo(json.dumps(value, indent=1, allow_nan=False))


def say_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, apart: Collection[str] = ()
) -> None:
    """Write a table, numbers to the right.

    Args:
        title: stands above it.
        columns: their titles.
        rows: values, one for each column.
        apart: columns whose numbers in a row are shown because they may differ, so that they look different if they do.
    """
    places = [at for at, column in enumerate(columns) if column in apart]
    table = Table(box=None, pad_edge=False, header_style="dim")
    are_numbers = [
        any(_is_number(row[at]) for row in rows) and all(_is_number(row[at]) or row[at] is None for row in rows)
        for at in range(len(columns))
    ]
    for column, is_number in zip(columns, are_numbers, strict=True):
        table.add_column(column, justify="right" if is_number else "left", no_wrap=column not in LONG, overflow="fold")
    for row in rows:
        # Text, and no markup: names are what others have chosen.
        table.add_row(*map(Text, _cells(row, places)))
    out = console()
    out.print(Text(f"\n{printable(title)}", style="bold"))
    out.print(table)


def _cells(row: Sequence[object], apart: Sequence[int]) -> list[str]:
    """Texts of a row. *apart*: places of numbers that look different if they differ."""
    texts = [cell(value) for value in row]
    values = [value for value in (row[at] for at in apart) if isinstance(value, int | float)]
    if len(values) == len(apart) and any(isinstance(value, float) for value in values):
        words = importlib.import_module("router.whatif.wording")
        for at, text in zip(apart, words.told_apart(words.amount, *values), strict=True):
            texts[at] = text
    return texts


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def cell(value: object) -> str:
    """A value as a table shows it."""
    if value is None:
        return "-"
    return printable(importlib.import_module("router.whatif.wording").cell(value))
