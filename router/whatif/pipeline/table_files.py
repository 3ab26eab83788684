"""Tables of what-if runs as files: validated, written, read, compared.

Each table is a folder of Parquet files. Those of the local engine lie beside each other, in the order of their names.
Those of Spark lie in folders that have a column's value in their names, such as `variant=base/family=links%3A2`, in the
order of their first rows.
"""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from router.whatif.formats.parquet_file import parquet_metadata, parquet_schema, read_matching, read_parquet
from router.whatif.pipeline.table_layouts import Layout, TableError, layout_of, plain

SUFFIX: Final = ".parquet"
COMMITTED: Final = "_SUCCESS"
"""Written last into a folder by Spark's committer."""
_GLOB: Final = re.compile(r"[][{}*?\\]")
"""Characters that stand for others in paths that Spark reads."""


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
    layout = layout_of(name)
    place = folder / layout.name
    found = sorted(place.rglob(f"*{SUFFIX}"))
    if not found:
        raise TableError(f"{place}: no such table")
    if all(file.parent == place for file in found):
        return found
    return sorted(found, key=lambda file: _range_of(file, place, layout.key[0]))


def row_count(folder: Path, name: str) -> int:
    """Count the rows of table *name* in a run's folder, as the ends of its files say; nothing else of them is read.

    Raises: TableError when there are none; ParquetFileError for a file that can't be read
    """
    return sum(parquet_metadata(file).num_rows for file in files_of(folder, name))


def address_for_spark(place: Path, *, is_read: bool = True) -> str:
    """A path as Spark takes it: with its scheme, since without one it may be on HDFS, and with nothing escaped.

    Args:
        place: of a file or folder.
        is_read: whether Spark reads it: then characters are told from those that stand for others.
    """
    path = str(place.absolute())
    return f"file://{without_patterns(path) if is_read else path}"


def without_patterns(path: str) -> str:
    """A path of which Spark takes every character for itself when it reads there."""
    return _GLOB.sub(r"\\\g<0>", path)


def partition_of(file: Path, place: Path) -> dict[str, str]:
    """Columns of which all rows of a file have one value, from the names of its folders.

    Args:
        file: of a table.
        place: folder of the table.
    """
    words = (part.partition("=") for part in file.relative_to(place).parent.parts)
    return {name: unquote(value) for name, _, value in words}


def _range_of(file: Path, place: Path, column: str) -> tuple[Any, Any]:
    """The lowest and the highest value of a column in a file of Spark's, which has rows."""
    partition = partition_of(file, place)
    if column in partition:
        return partition[column], partition[column]
    metadata = parquet_metadata(file)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    leaves = (group.column(number) for group in groups for number in range(group.num_columns))
    found = [leaf.statistics for leaf in leaves if leaf.path_in_schema == column]
    return min(each.min for each in found), max(each.max for each in found)


def read_table(folder: Path, name: str, columns: Sequence[str] | None = None) -> pa.Table:
    """The table *name* of a run's folder, in the order of its key, or some columns of it.

    Raises: TableError; ParquetFileError for a file that can't be read
    """
    layout = layout_of(name)
    asked = layout.names if columns is None else tuple(columns)
    place = folder / layout.name
    files = files_of(folder, name)
    is_mixed = _is_mixed(files, place, layout)
    names = tuple(dict.fromkeys((*asked, *layout.key))) if is_mixed else asked
    wanted = pa.schema([layout.schema.field(each) for each in names], layout.schema.metadata)
    parts = []
    for file in files:
        partition = partition_of(file, place)
        found = _column_faults(_whole_schema(parquet_schema(file), partition, layout), layout)
        if found:
            raise TableError("\n".join(f"{file}: {fault}" for fault in found))
        rows = read_parquet(file, [each for each in names if each not in partition])
        parts.append(_with_partition(rows, partition).select(names).cast(wanted))
    table = pa.concat_tables(parts)
    if is_mixed:
        table = table.take(pc.sort_indices(table, [(each, "ascending") for each in layout.key]))
    return table.select(asked)


def _is_mixed(files: Sequence[Path], place: Path, layout: Layout) -> bool:
    """Whether files of Spark's have rows from before those of the file before: somebody else has put them together."""
    if all(file.parent == place for file in files):
        return False
    ranges = [_range_of(file, place, layout.key[0]) for file in files]
    return any(one[1] > other[0] for one, other in itertools.pairwise(ranges))


def read_parts(
    folder: Path, name: str, is_wanted: Callable[[int, int], bool], columns: Sequence[str] | None = None
) -> Iterator[tuple[int, pa.Table]]:
    """Read a table file by file: of one that is large, only what is wanted.

    Args:
        folder: of the run.
        name: of the table.
        is_wanted: told the place of the first row of a file, and of the one after its last.
        columns: that are read; None: all.
    Yields: the place of the first row, and the rows of files that are wanted.
    Raises: TableError
    """
    layout = layout_of(name)
    place = folder / layout.name
    files = files_of(folder, name)
    if _is_mixed(files, place, layout):
        yield 0, read_table(folder, name, columns)
        return
    names = layout.names if columns is None else tuple(columns)
    schema = pa.schema([layout.schema.field(each) for each in names])
    first = 0
    for file in files:
        stop = first + parquet_metadata(file).num_rows
        if is_wanted(first, stop):
            partition = partition_of(file, place)
            rows = read_parquet(file, [each for each in names if each not in partition])
            yield first, _with_partition(rows, partition).select(names).cast(schema)
        first = stop


def read_rows(folder: Path, name: str, values: Mapping[str, object]) -> list[dict[str, Any]]:
    """Rows of a table in which columns have certain values, in the order of its key.

    Args:
        folder: of the run.
        name: of the table.
        values: by column.
    Raises: TableError
    """
    layout = layout_of(name)
    found: list[dict[str, Any]] = []
    for file in files_of(folder, name):
        partition = partition_of(file, folder / layout.name)
        if all(values.get(column, value) == value for column, value in partition.items()):
            wanted = [(column, "=", value) for column, value in values.items() if column not in partition]
            rows = read_matching(file, wanted or None)
            found += _with_partition(rows, partition).select(layout.names).to_pylist()
    return found


def _with_partition(rows: pa.Table, partition: Mapping[str, str]) -> pa.Table:
    for name, value in partition.items():
        rows = rows.append_column(name, pa.array([value] * rows.num_rows, pa.string()))
    return rows


def _whole_schema(schema: pa.Schema, partition: Mapping[str, str], layout: Layout) -> pa.Schema:
    """A file's, with what its folders have; in the order of the layout, but for a file that has all by itself."""
    known = [name for name in partition if name in layout.names]
    if not partition:
        return schema
    fields = {field.name: field for field in (*schema, *(pa.field(name, pa.string()) for name in known))}
    order = {name: place for place, name in enumerate(layout.names)}
    return pa.schema(sorted(fields.values(), key=lambda field: order.get(field.name, len(order))))


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
