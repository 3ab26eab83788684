"""Names of the files of a history: of micro-batches, and of blocks of these that were put into one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

_PART: Final = re.compile(r"part-(\d+)-(\d+)(?:-(\d+))?\.parquet")


@attrs.frozen
class HistoryFile:
    """File that `whatif watch` has written."""

    path: Path
    first: int
    """Number of its first micro-batch."""
    stop: int
    """Number after that of its last one."""
    ended: int
    """Last moment of the file, microseconds since 1970."""

    @property
    def size(self) -> int:
        """Number of its micro-batches."""
        return self.stop - self.first

    def has(self, other: HistoryFile) -> bool:
        """Whether it was made of another file, among others.

        A job with a new checkpoint counts its micro-batches from 0 again: its files end later than older blocks of the
        same numbers, and are no part of them.
        """
        is_within = self.first <= other.first and other.stop <= self.stop
        return is_within and other.size < self.size and other.ended <= self.ended


def file_name(number: int, ended: int, size: int = 1) -> str:
    """Name of a file.

    Args:
        number: number of the micro-batch, or of the first one of a block.
        ended: last moment of the file, microseconds since 1970.
        size: number of micro-batches of the block.
    """
    return f"part-{number:08d}-{ended}{f'-{size}' if size > 1 else ''}.parquet"


def numbered_files(folder: Path) -> list[HistoryFile]:
    """Files of a table that have such names, the first micro-batch first."""
    found = []
    for path in folder.glob("part-*.parquet"):
        if match := _PART.fullmatch(path.name):
            first = int(match[1])
            found.append(HistoryFile(path, first, first + int(match[3] or 1), int(match[2])))
    return sorted(found, key=lambda file: (file.first, file.stop))


def joined_among(files: Sequence[HistoryFile]) -> list[HistoryFile]:
    """Files of which another file has all rows."""
    blocks = [file for file in files if file.size > 1]
    return [file for file in files if any(block.has(file) for block in blocks)]


def history_files(folder: Path) -> list[Path]:
    """Files of a table in their order, whatever their names are, without those of which another one has all rows.

    None of them is removed before the next block of micro-batches is complete.
    """
    joined = {file.path for file in joined_among(numbered_files(folder))}
    return sorted(path for path in folder.glob("*.parquet") if path not in joined)
