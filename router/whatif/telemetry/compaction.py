"""Keeps the number of files of a history small: those of many micro-batches are put into one, again and again.

A file of a micro-batch is named by its number. When a block of numbers is complete, its files become one, which appears
whole before they are removed. Whoever reads in between finds rows twice, and tells them by the key of the table.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from router.whatif.formats.parquet_file import parquet_schema, read_parquet

BLOCKS: Final = (256, 256 * 64)
"""Micro-batches that become one file: at five seconds some twenty minutes, then a day."""

_PART: Final = re.compile(r"part-(\d+)-(\d+)\.parquet")


def part_name(number: int, ended: int) -> str:
    """Name of a file.

    Args:
        number: of the micro-batch, or of the first one of a block.
        ended: its last moment, microseconds since 1970.
    """
    return f"part-{number:08d}-{ended}.parquet"


def compact(folder: Path, number: int, blocks: Sequence[int] = BLOCKS) -> None:
    """Put the files of each block that ends before a micro-batch into one.

    Done twice, or after it was interrupted, it leaves the same rows.

    Args:
        folder: of a table.
        number: of the micro-batch.
        blocks: sizes, ascending.
    """
    for size in blocks:
        if number and number % size == 0:
            _join(folder, number - size, number)


def _join(folder: Path, first: int, stop: int) -> None:
    found = sorted((match, file) for file in folder.glob("part-*.parquet") if (match := _numbers(file)) is not None)
    own = [(numbers, file) for numbers, file in found if first <= numbers[0] < stop]
    if len(own) < 2:
        return
    target = folder / part_name(own[0][0][0], max(numbers[1] for numbers, _ in own))
    rest = [file for _, file in own if file != target]
    if not target.exists():  # else it is whole, and only the rest was not removed
        _write(target, rest)
    for file in rest:
        file.unlink()


def _write(target: Path, files: Sequence[Path]) -> None:
    beside = target.parent / f".{secrets.token_hex(8)}.tmp"
    # One file of rows in memory at a time: a day of a large mesh is more than fits.
    with pq.ParquetWriter(beside, parquet_schema(files[0]), compression="zstd") as writer:
        for file in files:
            writer.write_table(read_parquet(file))
    beside.replace(target)


def _numbers(file: Path) -> tuple[int, int] | None:
    match = _PART.fullmatch(file.name)
    return None if match is None else (int(match[1]), int(match[2]))
