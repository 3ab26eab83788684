"""Tables of what-if runs as files: validated, written, read, compared.

Each table is a folder of Parquet files, in the order of their names, so that a folder may grow by files that are
complete when they appear.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from router.whatif.pipeline.table_layouts import Layout, TableError, layout_of, plain

SUFFIX: Final = ".parquet"


def faults(table: pa.Table, layout: Layout) -> list[str]:
    """Each way in which *table* is not as *layout* says: columns, types, nulls, order of rows, rows that repeat."""
    found = _column_faults(table.schema, layout)
    if found:
        return found
    found = [
        f"{layout.name}.{column.name}: {table.column(column.name).null_count} nulls; expected none"
        for column in layout.columns
        if not column.is_nullable and table.column(column.name).null_count
    ]
    return found or _order_faults(table, layout)


def _column_faults(schema: pa.Schema, layout: Layout) -> list[str]:
    expected = {column.name: column for column in layout.columns}
    found = []
    for name in schema.names:
        if name not in expected:
            near = difflib.get_close_matches(name, expected, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            found.append(f"{layout.name}.{name}: no such column{hint}")
        elif plain(schema.field(name).type) != plain(expected[name].kind):
            found.append(f"{layout.name}.{name}: {schema.field(name).type}; expected {expected[name].kind}")
    found += [f"{layout.name}.{name}: missing" for name in expected if name not in schema.names]
    if not found and tuple(schema.names) != layout.names:
        found.append(
            f"{layout.name}: columns in the order {', '.join(schema.names)}; expected {', '.join(layout.names)}"
        )
    return found


def _order_faults(table: pa.Table, layout: Layout) -> list[str]:
    keys = list(zip(*(table.column(name).to_pylist() for name in layout.key), strict=True))
    for row in range(1, len(keys)):
        if keys[row] <= keys[row - 1]:
            word = "repeats" if keys[row] == keys[row - 1] else "comes before"
            key = ", ".join(layout.key)
            return [f"{layout.name}: row {row} {word} row {row - 1} by ({key}): {keys[row]}, {keys[row - 1]}"]
    return []


def validate(table: pa.Table, name: str) -> pa.Table:
    """Check *table*, which is the table *name*, and give it back.

    Raises: TableError with every fault that it has
    """
    found = faults(table, layout_of(name))
    if found:
        raise TableError("\n".join(found))
    return table


def from_rows(name: str, rows: Iterable[Mapping[str, object]]) -> pa.Table:
    """A table of rows, sorted by its key and validated.

    Raises: TableError
    """
    layout = layout_of(name)
    table = pa.Table.from_pylist(list(rows), schema=layout.schema)
    return validate(table.sort_by([(column, "ascending") for column in layout.key]), name)


def write_table(folder: Path, table: pa.Table, name: str) -> None:
    """Write a validated table as the one file of `folder/name`, which is made.

    Raises: TableError
    """
    validate(table, name)
    (folder / name).mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / name / f"part-00000{SUFFIX}")


def files_of(folder: Path, name: str) -> list[Path]:
    """The files of table *name* in a run's folder, in the order of its rows.

    Raises: TableError when there are none
    """
    found = sorted((folder / layout_of(name).name).glob(f"*{SUFFIX}"))
    if not found:
        raise TableError(f"{folder / name}: no such table")
    return found


def read_table(folder: Path, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """The table *name* of a run's folder, in the order of its key, or some columns of it.

    Raises: TableError
    """
    schema = layout_of(name).schema
    parts = []
    for file in files_of(folder, name):
        found = _column_faults(pq.read_schema(file), layout_of(name))
        if found:
            raise TableError("\n".join(f"{file}: {fault}" for fault in found))
        parts.append(pq.ParquetFile(file).read(columns=None if columns is None else list(columns)))
    wanted = schema if columns is None else pa.schema([schema.field(column) for column in columns], schema.metadata)
    return pa.concat_tables([part.cast(wanted) for part in parts])


def comparable(table: pa.Table, name: str) -> pa.Table:
    """*table* without what differs from run to run of the same input: times, engine."""
    measured = {column.name for column in layout_of(name).columns if column.is_measured}
    return table.select([column for column in table.column_names if column not in measured])


def are_equal(left: pa.Table, right: pa.Table, name: str) -> bool:
    """Whether two tables have the same rows in the same order, bit for bit; measured columns are left out."""
    one, other = comparable(left, name), comparable(right, name)
    return one.schema.equals(other.schema) and all(
        all(a.equals(b) for a, b in zip(_bits(one.column(name)), _bits(other.column(name)), strict=True))
        for name in one.schema.names
    )


def _bits(column: pa.ChunkedArray) -> list[pa.Array]:
    """Form in which two equal columns are the same: reals as integers with their bits, so that NaN equals itself."""
    array = column.combine_chunks()
    if pa.types.is_list(array.type):
        return [array.value_lengths(), *_bits(pa.chunked_array([array.flatten()]))]
    return [array.view(pa.int64()) if pa.types.is_float64(array.type) else array]
