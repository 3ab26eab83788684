"""Parquet files as all of what-if reads them: one that can't be read is an error of one line that names it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mesh_config.findings import Finding, SettingsError, Severity


class ParquetFileError(SettingsError):
    """A file that can't be read as Parquet; `findings` has which, and why."""


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Name the file in errors: pyarrow doesn't, and has several sorts of them for bytes that were damaged."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        # The system's errors have a number; pyarrow raises others of the same class for damaged bytes.
        number = error.errno if isinstance(error, OSError) else None
        words = os.strerror(number) if number else next(iter(str(error).splitlines()), type(error).__name__)
        expected = "" if number else "a whole file of Parquet: this one is damaged, or of another kind"
        message = f"cannot be read: {words.rstrip('.')}"
        finding = Finding(severity=Severity.ERROR, file=str(file), message=message, expected=expected)
        raise ParquetFileError([finding]) from error


def read_parquet(file: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a file, or some columns of it. Raises: ParquetFileError."""
    with _naming(file), pq.ParquetFile(file) as opened:  # `pq.read_table` would import pandas
        return opened.read(None if columns is None else list(columns))


def read_row_group(file: Path, number: int, column: str) -> pa.Table:
    """Read a column of one part of a file. Raises: ParquetFileError."""
    with _naming(file), pq.ParquetFile(file) as opened:
        return opened.read_row_group(number, [column])


def read_matching(file: Path, filters: Any, columns: Sequence[str] | None = None) -> pa.Table:
    """Read the rows of a file that filters of pyarrow let through; None: all. Raises: ParquetFileError."""
    wanted = None if columns is None else list(columns)
    # Opened here, since of a path pyarrow doesn't tell why it can't be. And opened by pyarrow: it aborts the process
    # when a thread of its own lets go of a file of Python's while all ends (apache/arrow#34314).
    with _naming(file), pa.OSFile(str(file)) as opened:
        return pq.read_table(opened, columns=wanted, filters=filters, partitioning=None)


def parquet_metadata(file: Path) -> pq.FileMetaData:
    """Read what the end of a file says of its rows, and nothing else. Raises: ParquetFileError."""
    with _naming(file):
        return pq.read_metadata(file)


def parquet_schema(file: Path) -> pa.Schema:
    """Read the columns that a file has. Raises: ParquetFileError."""
    with _naming(file):
        return pq.read_schema(file)
