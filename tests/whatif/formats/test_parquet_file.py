"""Parquet that can't be read: one line with the name of the file, from every reader."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import router
from router.whatif.formats.parquet_file import (
    ParquetFileError,
    parquet_metadata,
    parquet_schema,
    read_matching,
    read_parquet,
)

WHATIF = Path(router.__file__).parent / "whatif"
OWN = {"formats/parquet_file.py", "formats/csv_parquet.py"}
"""The second one reads files of operators, and tells of them among its other findings."""


def read_all(file: Path) -> object:
    return read_matching(file, [("number", "=", 1)])


@pytest.mark.parametrize("read", [parquet_metadata, parquet_schema, read_all, read_parquet])
@pytest.mark.parametrize("data", [b"", b"PAR1", b"garbage" * 100, b"PAR1" + b"\xff" * 100 + b"\x10\0\0\0PAR1"])
def test_damaged_bytes_are_an_error_that_names_the_file(
    tmp_path: Path, read: Callable[[Path], object], data: bytes
) -> None:
    file = tmp_path / "part.parquet"
    file.write_bytes(data)
    with pytest.raises(ParquetFileError) as caught:
        read(file)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{file}: error: cannot be read: ")
    assert "; expected a whole file of Parquet" in line


@pytest.mark.parametrize("read", [parquet_metadata, parquet_schema, read_all, read_parquet])
def test_a_file_that_is_not_there_is_named_in_the_words_of_the_system(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    with pytest.raises(ParquetFileError, match=r"part.parquet: error: cannot be read: No such file or directory$"):
        read(tmp_path / "part.parquet")


def test_what_is_whole_is_read(tmp_path: Path) -> None:
    file = tmp_path / "part.parquet"
    pq.write_table(pa.table({"number": [1, 2], "text": ["a", "b"]}), file)
    assert parquet_metadata(file).num_rows == 2
    assert parquet_schema(file).names == ["number", "text"]
    assert read_parquet(file, ["text"]).to_pylist() == [{"text": "a"}, {"text": "b"}]
    assert read_matching(file, [("number", "=", 2)], ["text"]).to_pylist() == [{"text": "b"}]


def test_no_other_module_reads_parquet_of_a_disk() -> None:
    reading = re.compile(r"\bpq\.(read_\w+|ParquetFile)\((?!pa\.BufferReader)")
    found = {str(file.relative_to(WHATIF)) for file in WHATIF.rglob("*.py") if reading.search(file.read_text("utf-8"))}
    assert found == OWN


def test_what_threads_of_pyarrow_read_is_no_file_of_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "part.parquet"
    pq.write_table(pa.table({"number": [1, 2]}), file)
    sources: list[object] = []
    read = pq.read_table

    def noted(source: object, **options: Any) -> pa.Table:
        sources.append(source)
        return read(source, **options)

    monkeypatch.setattr(pq, "read_table", noted)
    assert read_matching(file, [("number", "=", 2)]).num_rows == 1
    (source,) = sources
    # One of Python's would abort the process now and then, when its thread lets go of it at the end.
    assert isinstance(source, pa.NativeFile)
    assert not isinstance(source, pa.PythonFile)
