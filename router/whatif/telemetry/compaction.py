"""Keeps the number of files of a history small: those of many micro-batches are put into one, again and again.

When a block of micro-batches is complete, its files become one, which appears whole. They are removed when the next
block is complete: whoever has listed them before has so long to read them. Whoever lists them all in between finds rows
twice, and tells them by the key of the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from router.whatif.formats.history_file_names import file_name, joined_among, numbered_files
from router.whatif.formats.parquet_file import parquet_schema, read_parquet
from router.whatif.pipeline.atomic_files import whole_file

BLOCKS: Final = (256, 256 * 64)
"""Micro-batches that become one file: at five seconds some twenty minutes, then a day."""


def compact(folder: Path, number: int, blocks: Sequence[int] = BLOCKS) -> None:
    """Put the files of each block that ends before a micro-batch into one, and remove those of blocks before.

    Done twice, or after it was interrupted, it leaves the same rows.

    Args:
        folder: of a table.
        number: of the micro-batch.
        blocks: sizes, ascending, each a multiple of the one before.
    """
    if not number or number % blocks[0]:
        return
    before = [file for file in numbered_files(folder) if file.stop <= number - blocks[0]]
    for file in joined_among(before):
        file.path.unlink()
    for size in blocks:
        if number % size == 0:
            _join(folder, number - size, number)


def _join(folder: Path, first: int, stop: int) -> None:
    within = [file for file in numbered_files(folder) if first <= file.first and file.stop <= stop]
    joined = joined_among(within)
    own = [file for file in within if file not in joined and file.size < stop - first]
    if len(own) > 1:
        target = folder / file_name(first, max(file.ended for file in own), stop - first)
        _write(target, [file.path for file in own])


def _write(target: Path, files: Sequence[Path]) -> None:
    schema = parquet_schema(files[0])
    with whole_file(target) as beside, pq.ParquetWriter(beside, schema, compression="zstd") as writer:
        # One file of rows in memory at a time: a day of a large mesh is more than fits.
        for file in files:
            writer.write_table(read_parquet(file))
