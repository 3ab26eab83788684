"""A table of a file, CSV or Parquet, by column; and the line of a row, for those who look for it."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mesh_config.findings import nearest, not_utf8
from router.whatif.formats.input_file import FileFindings, number_of

MAX_BYTES: Final = 2 * 1024**3
MAX_ROWS: Final = 20_000_000
MAX_HEADER_CHARACTERS: Final = 10_000
PIECE_BYTES: Final = 1 << 20
SHOWN: Final = 20
"""Faults of one kind that are told one by one."""
OTHER_SIGNS: Final = {";": ";", "\t": "tab", "|": "|"}
"""Signs between columns in files of others, and their names."""
PARQUET: Final = (".parquet", ".pq")


@attrs.frozen
class InputTable:
    """Columns that a file has."""

    table: pa.Table
    """Rows of the file; from CSV every column is text, with null for empty cells."""
    file: str
    is_csv: bool

    def lines(self, rows: Sequence[int], faults: FileFindings) -> dict[int, int]:
        """The lines of some rows of CSV, both counted as they are in the file: rows from 0, lines from 1.

        It reads the file again: only messages need it.

        Args:
            rows: of the table.
            faults: told of a value too long, after which no lines are known.
        """
        if not self.is_csv or not rows:
            return {}
        wanted, last = set(rows), max(rows)
        # Rows of another length are refused elsewhere, and not in the table.
        sound = (line for values, line in _rows(Path(self.file), faults) if len(values) == self.table.num_columns)
        return {row: line for row, line in zip(range(last + 1), sound, strict=False) if row in wanted}


def read_columns(faults: FileFindings, known: Sequence[str], required: Sequence[str]) -> InputTable:
    """The table of the file that *faults* is about, by the end of its name Parquet or CSV.

    Args:
        faults: names the file, and gets what is wrong.
        known: columns that it may have.
        required: columns that it must have.
    Raises: SettingsError when it can't be read, or has other columns.
    """
    path = Path(faults.file)
    try:
        faults.need_regular()
        if path.stat().st_size > MAX_BYTES:
            faults.fail("the file is too large", expected=f"at most {MAX_BYTES // 1024**3} GiB")
        is_csv = path.suffix not in PARQUET
        table = _csv(path, known, required, faults) if is_csv else _parquet(path, known, required, faults)
    except OSError as error:
        faults.fail(f"cannot be read: {error.strerror or error}")
    except pa.ArrowException as error:
        faults.fail(f"cannot be read: {error}".splitlines()[0])
    return InputTable(table, faults.file, is_csv)


def numbered(values: pa.Array, number: Callable[[str | None], int]) -> NDArray[np.int32]:
    """A column of text as numbers: *number* is asked once for each text, and for null."""
    if pa.types.is_null(values.type):
        return np.full(len(values), number(None), dtype=np.int32)
    encoded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    places = np.array([*map(number, texts), number(None)], dtype=np.int32)
    indices: NDArray[np.int64] = encoded.indices.cast(pa.int64()).fill_null(len(texts)).to_numpy(zero_copy_only=False)
    return places[indices]


def _csv(path: Path, known: Sequence[str], required: Sequence[str], faults: FileFindings) -> pa.Table:
    _check_encoding(path, faults)
    with path.open(encoding="utf-8-sig", newline="") as text:
        header = text.readline(MAX_HEADER_CHARACTERS)
    if not header.strip():
        faults.fail("the file is empty", line=1, expected=f"the columns {', '.join(required)}")
    names = [name.strip() for name in next(csv.reader([header]), [])]
    if len(names) == 1 and (others := [sign for sign in OTHER_SIGNS if sign in header]):
        faults.fail(f"`{OTHER_SIGNS[others[0]]}` between the columns", line=1, expected="commas")
    if not set(names) & set(known) and any(number_of(name) is not None for name in names):
        faults.fail("no line with the names of the columns", line=1, expected=f"the columns {', '.join(required)}")
    _check_names(names, known, required, 1, faults)

    refused = 0

    def refuse(_: arrow_csv.InvalidRow) -> str:
        nonlocal refused
        refused += 1
        return "skip"

    table = arrow_csv.read_csv(
        path,
        read_options=arrow_csv.ReadOptions(column_names=names, skip_rows=1),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True, invalid_row_handler=refuse),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
        ),
    )
    if refused:
        _tell_lengths(path, names, refused, faults)
    if table.num_rows > MAX_ROWS:
        faults.fail(f"{table.num_rows} rows", expected=f"at most {MAX_ROWS}")
    return table


def _check_encoding(path: Path, faults: FileFindings) -> None:
    """Look at all bytes: the reader of rows writes to standard error of those of another length that are no text.

    Raises: SettingsError.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    lines = 0
    with path.open("rb") as data:
        while True:
            piece = data.read(PIECE_BYTES)
            try:
                decoder.decode(piece, not piece)
            except UnicodeDecodeError as error:
                faults.extend([not_utf8(faults.file, error, lines_before=lines)])
                faults.check()
            if not piece:
                return
            lines += piece.count(b"\n")


def _tell_lengths(path: Path, names: Sequence[str], count: int, faults: FileFindings) -> None:
    """Tell of the first rows that have more or fewer values than there are columns."""
    expected = f"{len(names)}: {', '.join(names)}"
    shown = 0
    for values, line in _rows(path, faults):
        if len(values) != len(names) and shown < SHOWN:
            faults.add(f"{len(values)} values", line=line, expected=expected)
            shown += 1
    if count > shown > 0:
        faults.add(f"{count} rows of another length, the first {shown} are shown", expected=expected)


def _rows(path: Path, faults: FileFindings) -> Iterator[tuple[list[str], int]]:
    """Rows of CSV and their lines, as far as values have a sound length; empty lines are no rows."""
    with path.open(encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text)
        line = 1
        try:
            next(reader, None)
            line = reader.line_num + 1
            for values in reader:
                if values:
                    yield values, line
                line = reader.line_num + 1
        except csv.Error:  # the only one that there is where nothing is strict
            faults.add(
                f"a value of more than {csv.field_size_limit()} characters",
                line=line,
                expected="a shorter one, or the quotation mark that ends it",
            )


def _parquet(path: Path, known: Sequence[str], required: Sequence[str], faults: FileFindings) -> pa.Table:
    with pq.ParquetFile(path) as file:
        if file.metadata.num_rows > MAX_ROWS:
            faults.fail(f"{file.metadata.num_rows} rows", expected=f"at most {MAX_ROWS}")
        _check_names(file.schema_arrow.names, known, required, None, faults)
        return file.read()


def _check_names(
    names: Sequence[str], known: Sequence[str], required: Sequence[str], line: int | None, faults: FileFindings
) -> None:
    """Raises: SettingsError unless the columns are the right ones."""
    for name in dict.fromkeys(names):
        if name not in known:
            near = nearest(name, [it for it in known if it not in names])
            expected = f"one of {', '.join(known)}" if near is None else ""
            faults.add(f"unknown column `{name}`", line=line, expected=expected, nearest=near)
        elif names.count(name) > 1:
            faults.add(f"column `{name}` occurs twice", line=line, expected="each column once")
    for name in required:
        if name not in names:
            faults.add(f"column `{name}` is missing", line=line, expected=f"the columns {', '.join(required)}")
    faults.check()
