"""Output of a task of Spark: rows of all tables of a chunk in one form, since a task has one output.

A row is of one table, whose name is in `table`; the struct of that name has its columns, the others are null, which
costs next to nothing in Parquet. The executors write these rows, partitioned by `table`; `spark_tables` makes the
tables of the run of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa

from router.whatif.pipeline.aggregate import load_rows
from router.whatif.pipeline.chunk_evaluator import BASE_LOADS, BASE_SCHEMA, WORST_LOADS, WORST_SCHEMA
from router.whatif.pipeline.table_layouts import ADDRESS_IMPACT, LINK_LOAD, PAIR_IMPACT, SCENARIO, plain
from router.whatif.scenarios.scenario_plan import Plan

TABLE: Final = "table"
VARIANT: Final = "variant"
FAMILY: Final = "family"
"""Of the row's scenario; null where a row is of none."""
BATCH_ROWS: Final = 65_536
"""In what a task gives at once: Java has a copy of it."""

_STRUCTS: Final = {
    **{layout.name: layout.schema for layout in (SCENARIO, PAIR_IMPACT, ADDRESS_IMPACT, LINK_LOAD)},
    BASE_LOADS: BASE_SCHEMA,
    WORST_LOADS: WORST_SCHEMA,
}
_TYPES: Final = {"int64": "bigint", "int32": "int", "double": "double", "string": "string", "bool": "boolean"}


EMPTY: Final = {name: schema.empty_table() for name, schema in _STRUCTS.items()}
"""Of each table no rows."""


def _struct(schema: pa.Schema) -> pa.StructType:
    """All of it may be null, as Spark has it."""
    return pa.struct([pa.field(field.name, plain(field.type)) for field in schema])


SCHEMA: Final = pa.schema(
    [(TABLE, pa.string()), (VARIANT, pa.string()), (FAMILY, pa.string())]
    + [(name, _struct(schema)) for name, schema in _STRUCTS.items()]
)
"""Of the rows."""


def ddl(kind: pa.DataType) -> str:
    """Name a type as Spark's SQL does."""
    if pa.types.is_struct(kind):
        return "struct<" + ", ".join(f"{field.name}: {ddl(field.type)}" for field in kind) + ">"
    if pa.types.is_list(kind):
        return f"array<{ddl(kind.value_type)}>"
    return _TYPES[str(kind)]


SPARK_SCHEMA: Final = ", ".join(f"{field.name} {ddl(field.type)}" for field in SCHEMA)
"""The same in Spark's words."""


def rows(name: str, table: pa.Table, plan: Plan) -> Iterator[pa.RecordBatch]:
    """Give rows of one table the common form.

    Args:
        name: of the table.
        table: its rows, as `Evaluator.tables` gives them.
        plan: of the one variant that they are of.
    """
    columns: dict[str, pa.Array] = {TABLE: _repeated(name, table.num_rows), name: _structs(name, table)}
    columns[VARIANT] = _repeated(plan.variants[0].name, table.num_rows)
    if "scenario" in table.column_names:
        columns[FAMILY] = _families(table, plan)
    if name == BASE_LOADS:
        variant = plan.variants[0]
        columns[LINK_LOAD.name] = _structs(LINK_LOAD.name, load_rows(variant.name, variant.elements, table))
    whole = pa.table([columns.get(field.name, pa.nulls(table.num_rows, field.type)) for field in SCHEMA], schema=SCHEMA)
    yield from whole.to_batches(max_chunksize=BATCH_ROWS)


def table_of(rows: pa.Table, name: str) -> pa.Table:
    """Take back from rows in the common form those of one table, as `Evaluator.tables` gave them."""
    structs = rows.column(name).combine_chunks()
    schema = _STRUCTS[name]
    return pa.table(structs.drop_null().flatten(), names=schema.names).cast(schema)


def _structs(name: str, table: pa.Table) -> pa.Array:
    kind = SCHEMA.field(name).type
    columns = [column.combine_chunks().cast(field.type) for column, field in zip(table.columns, kind, strict=True)]
    return pa.StructArray.from_arrays(columns, fields=list(kind))


def _families(table: pa.Table, plan: Plan) -> pa.Array:
    """Of each row, by the number of its scenario."""
    stops = np.array([section.stop for section in plan.sections], dtype=np.int64)
    places = np.searchsorted(stops, table.column("scenario").to_numpy(), side="right")
    return pa.array([section.family.text for section in plan.sections], pa.string()).take(pa.array(places))


def _repeated(text: str, count: int) -> pa.Array:
    return pa.array([text], pa.string()).take(pa.array(np.zeros(count, dtype=np.int64)))
