"""Files of chunks as rows of a DataFrame: output of the tasks of Spark that play, and what tables are made of.

A chunk makes the same files on each engine. On Spark a row is a file, with its bytes: they pass Java as they are. It
would take rows by the million, one by one, longer than Python takes to play them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from router.whatif.pipeline.aggregate import load_rows
from router.whatif.pipeline.chunk_evaluator import BASE_LOADS, OutputFile, output_file
from router.whatif.pipeline.table_layouts import LINK_LOAD, plain
from router.whatif.scenarios.failure_families import FailureCandidates
from router.whatif.scenarios.scenario_plan import Chunk, Plan

TABLE: Final = "table"
VARIANT: Final = "variant"
FAMILY: Final = "family"
SCENARIO: Final = "scenario"
"""Scenario of the row of a file: the first one of its chunk."""
NAME: Final = "name"
DATA: Final = "data"
PLACE: Final = "place"
"""Number of a directed link in the mesh of its variant."""

SCHEMA: Final = pa.schema(
    [
        (TABLE, pa.string()), (VARIANT, pa.string()), (SCENARIO, pa.int64()), (NAME, pa.string()), (DATA, pa.binary()),
    ]
)  # fmt: skip
SPARK_SCHEMA: Final = f"{TABLE} string, {VARIANT} string, {SCENARIO} bigint, {NAME} string, {DATA} binary"
"""Schema of the rows, as a schema of Spark."""
LINKS_SCHEMA: Final = pa.schema([*LINK_LOAD.schema, (PLACE, pa.int64())])
"""Schema of the rows of `link_load` that a task makes."""

ROW_GROUP: Final = 500_000
"""Rows that are encoded together, unless files of chunks have more."""
FILE_BYTES: Final = 32 * 1024 * 1024
"""A file has not much more: Java has it in memory as a whole."""
MAGIC: Final = b"PAR1"
"""Bytes with which a Parquet file ends."""

_TYPES: Final = {
    "int64": "bigint",
    "int32": "int",
    "double": "double",
    "string": "string",
    "bool": "boolean",
    "binary": "binary",
}

Section = tuple[int, str, str]
"""Scenarios of one family: the number after its last, its variant, its family."""


def ddl(kind: pa.DataType) -> str:
    """Name a type as Spark's SQL does."""
    return f"array<{ddl(kind.value_type)}>" if pa.types.is_list(kind) else _TYPES[str(plain(kind))]


def spark_schema(schema: pa.Schema, *more: str) -> str:
    """Name columns and types as Spark's SQL does. *more*: further columns, of texts."""
    own = [f"{field.name} {ddl(field.type)}" for field in schema if field.name not in more]
    return ", ".join([*(f"{name} string" for name in more), *own])


def rows(
    chunk: Chunk, variant: str, elements: FailureCandidates, files: Iterable[OutputFile]
) -> Iterator[pa.RecordBatch]:
    """Give the files of a chunk the form of rows, and add one with the rows of `link_load` to the loads of links.

    Args:
        chunk: whose they are.
        variant: name of its variant.
        elements: of the variant.
        files: in their order.
    """
    for file in files:
        yield _row(chunk, variant, file)
        if file.table == BASE_LOADS:
            loads = load_rows(variant, elements, pq.read_table(pa.BufferReader(file.data)))
            placed = loads.append_column(PLACE, pa.array(np.arange(loads.num_rows, dtype=np.int64)))
            yield _row(chunk, variant, output_file(file.name.replace(BASE_LOADS, LINK_LOAD.name, 1), placed))


def _row(chunk: Chunk, variant: str, file: OutputFile) -> pa.RecordBatch:
    row = {TABLE: file.table, VARIANT: variant, SCENARIO: chunk.first, NAME: file.name, DATA: file.data}
    return pa.RecordBatch.from_pylist([row], schema=SCHEMA)


def decoded(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Take rows out of files, for `mapInArrow`.

    Args:
        schema: of what is given, `variant` first.
        batches: of rows of files.
    """
    for batch in batches:
        for variant, data in zip(batch.column(VARIANT), batch.column(DATA), strict=True):
            table = _read(data, schema.names)
            if VARIANT not in table.column_names:
                table = table.add_column(0, VARIANT, pa.array([variant.as_py()] * table.num_rows, pa.string()))
            yield from table.select(schema.names).cast(schema).to_batches()


def counted_in_files(
    function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Call a function of rows with those of files, for `mapInArrow`.

    Args:
        function: as `mapInArrow` takes one.
        schema: of the rows that it is given, `variant` first; of files no other column is read.
        batches: of rows of files.
    """
    return function(decoded(schema, batches))


def sections_of(plan: Plan) -> tuple[Section, ...]:
    """Sections of a plan, in their order."""
    return tuple((each.stop, plan.variants[each.variant].name, each.family.text) for each in plan.sections)


def joined(
    sections: Sequence[Section], schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Join files of chunks, for `mapInArrow`: to larger files, each of one variant and family, without their last word.

    Args:
        sections: of the plan.
        schema: of the files that are made.
        batches: of rows of files of one table, in the order of chunks.
    """
    stops = np.array([stop for stop, _, _ in sections], dtype=np.int64)
    file, key = _JoinedFile(schema), ("", "")
    for batch in batches:
        for data in batch.column(DATA):
            for place, part in _by_section(_read(data), stops):
                if file.has_rows and (key != sections[place][1:] or file.size > FILE_BYTES):
                    yield file.row(*key)
                    file = _JoinedFile(schema)
                key = sections[place][1:]
                file.add(part)
    if file.has_rows:
        yield file.row(*key)


def _read(data: pa.BinaryScalar, columns: Sequence[str] | None = None) -> pa.Table:
    """Rows of a file; *columns*: those of them that it has, None: all."""
    return pq.ParquetFile(pa.BufferReader(data.as_buffer())).read(columns, use_threads=False)


def _by_section(table: pa.Table, stops: NDArray[np.int64]) -> Iterator[tuple[int, pa.Table]]:
    """Rows of each section, with its place."""
    places = np.searchsorted(stops, table.column(SCENARIO).to_numpy(), side="right")
    first = 0
    while first < len(places):
        stop = int(np.searchsorted(places, places[first], side="right"))
        yield int(places[first]), table.slice(first, stop - first)
        first = stop


class _JoinedFile:
    """A file that is being made.

    Args:
        schema: of it.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._sink = pa.BufferOutputStream()
        self._writer = pq.ParquetWriter(self._sink, schema, compression="zstd")
        self._parts: list[pa.Table] = []
        self._count = 0
        self.has_rows = False

    @property
    def size(self) -> int:
        """Bytes that have been encoded."""
        return int(self._sink.tell())

    def add(self, part: pa.Table) -> None:
        """Add rows."""
        self._parts.append(part.select(self._schema.names))
        self._count += part.num_rows
        self.has_rows = self.has_rows or part.num_rows > 0
        if self._count >= ROW_GROUP:
            self._encode()

    def row(self, variant: str, family: str) -> pa.RecordBatch:
        """End the file: a row of it. The word with which it ends is left to who writes it."""
        self._encode()
        self._writer.close()
        data = self._sink.getvalue()
        assert data[-len(MAGIC) :].to_pybytes() == MAGIC
        columns = [[variant], [family], [data[: -len(MAGIC)].to_pybytes()]]
        kinds = (pa.string(), pa.string(), pa.binary())
        arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, names=[VARIANT, FAMILY, DATA])

    def _encode(self) -> None:
        if self._parts:
            whole = pa.concat_tables(self._parts).cast(self._schema)
            self._writer.write_table(whole, row_group_size=max(whole.num_rows, 1))
        self._parts, self._count = [], 0
