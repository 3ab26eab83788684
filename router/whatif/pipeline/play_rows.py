"""Output of a task of Spark: rows of all tables of a chunk in one form, since a task has one output.

A row is of one table, whose name is in `table`; the struct of that name has its columns, the others are null, which
costs next to nothing in Parquet. Pairs and loads are a row for each scenario, with lists of numbers: names by the
million would take Java longer than playing does. The executors write these rows, partitioned by `table`; `spark_tables`
makes the tables of the run of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from router.whatif.pipeline.aggregate import directions, load_rows
from router.whatif.pipeline.chunk_evaluator import BASE_LOADS, BASE_SCHEMA, WORST_LOADS, WORST_SCHEMA
from router.whatif.pipeline.table_layouts import ADDRESS_IMPACT, LINK_LOAD, PAIR_IMPACT, SCENARIO, SCENARIO_LOAD, plain
from router.whatif.scenarios.failure_families import FailureCandidates
from router.whatif.scenarios.scenario_plan import Plan

TABLE: Final = "table"
VARIANT: Final = "variant"
FAMILY: Final = "family"
"""Of the row's scenario; null where a row is of none."""
LIST_ROWS: Final = 200_000
"""Elements of the lists in what a task gives at once, unless one scenario has more."""
BATCH_ROWS: Final = 65_536
"""In what a task gives at once: Java has a copy of it."""

_PLACES: Final = pa.list_(pa.int32())
PAIRS_SCHEMA: Final = pa.schema(
    [("scenario", pa.int64()), ("src", _PLACES), ("dst", _PLACES), ("base_cost", _PLACES), ("cost", _PLACES)]
)
"""Of all pairs of a scenario; routers by their places among the model's, a cost of -1 where there is no path."""
LOADS_SCHEMA: Final = pa.schema(
    [
        ("scenario", pa.int64()),
        ("number", _PLACES),
        *((name, pa.list_(pa.float64())) for name in ("msgs_per_s", "bytes_per_s", "utilisation")),
        ("is_down", pa.list_(pa.bool_())),
    ]
)
"""Of all loads of a scenario; directed links by their numbers in the mesh of the variant."""
LISTED: Final = {PAIR_IMPACT.name: PAIRS_SCHEMA, SCENARIO_LOAD.name: LOADS_SCHEMA}
"""Tables of which a row here is a whole scenario."""

_STRUCTS: Final = {
    **{layout.name: layout.schema for layout in (SCENARIO, ADDRESS_IMPACT, LINK_LOAD)},
    **LISTED,
    BASE_LOADS: BASE_SCHEMA,
    WORST_LOADS: WORST_SCHEMA,
}
_TYPES: Final = {"int64": "bigint", "int32": "int", "double": "double", "string": "string", "bool": "boolean"}


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
    variant = plan.variants[0]
    parts = [table]
    if name in LISTED:
        # A list has some hundred thousand elements at most where rows are taken together.
        parts = [_listed(name, part, variant.elements) for part in _by_scenario(table)]
    for part in parts:
        columns = {TABLE: _repeated(name, part.num_rows), name: _structs(name, part)}
        columns[VARIANT] = _repeated(variant.name, part.num_rows)
        if "scenario" in part.column_names:
            columns[FAMILY] = _families(part, plan)
        if name == BASE_LOADS:
            columns[LINK_LOAD.name] = _structs(LINK_LOAD.name, load_rows(variant.name, variant.elements, part))
        whole = [columns.get(field.name, pa.nulls(part.num_rows, field.type)) for field in SCHEMA]
        yield from pa.table(whole, schema=SCHEMA).to_batches(max_chunksize=BATCH_ROWS)


def table_of(rows: pa.Table, name: str, elements: FailureCandidates) -> pa.Table:
    """Take back from rows in the common form those of one table, as `Evaluator.tables` gave them.

    Args:
        rows: of a column at least, that of the table.
        name: of the table.
        elements: of the one variant that they are of.
    """
    structs = rows.column(name).combine_chunks()
    schema = _STRUCTS[name]
    found = pa.table(structs.drop_null().flatten(), names=schema.names).cast(schema)
    if name == PAIR_IMPACT.name:
        return _pairs_of(found, elements.routers)
    return _loads_of(found, elements) if name == SCENARIO_LOAD.name else found


def _by_scenario(table: pa.Table) -> Iterator[pa.Table]:
    """Parts of many rows, none of which ends within a scenario."""
    number = table.column("scenario").to_numpy()
    first = 0
    while first < len(number):
        last = min(first + LIST_ROWS, len(number)) - 1
        stop = int(np.searchsorted(number, number[last], side="right"))
        yield table.slice(first, stop - first)
        first = stop


def _listed(name: str, table: pa.Table, elements: FailureCandidates) -> pa.Table:
    """Make lists of the rows of each scenario."""
    number = table.column("scenario").to_numpy()
    starts = np.concatenate(([0], np.flatnonzero(np.diff(number)) + 1)) if len(number) else np.zeros(0, np.int64)
    offsets = pa.array(np.append(starts, len(number)).astype(np.int32))
    columns = _pair_columns(table, elements) if name == PAIR_IMPACT.name else _load_columns(table, elements)
    lists = [pa.ListArray.from_arrays(offsets, column) for column in columns]
    return pa.table([pa.array(number[starts]), *lists], schema=LISTED[name])


def _pair_columns(pairs: pa.Table, elements: FailureCandidates) -> list[pa.Array]:
    columns = [pa.array(_places(pairs, name, elements.routers)) for name in ("src", "dst")]
    costs = (pc.fill_null(pairs.column(name), -1).combine_chunks() for name in ("base_cost", "cost"))
    return [*columns, *(each.cast(pa.int32()) for each in costs)]


def _load_columns(loads: pa.Table, elements: FailureCandidates) -> list[pa.Array]:
    links = _places(loads, "link", elements.links)
    first_ends = np.array([a for a, _ in elements.ends], dtype=np.int32)
    is_back = _places(loads, "src", elements.routers) != first_ends[links]
    others = [loads.column(name).combine_chunks() for name in LOADS_SCHEMA.names[2:]]
    return [pa.array(2 * links + is_back.astype(np.int32)), *others]


def _places(table: pa.Table, name: str, names: Sequence[str]) -> NDArray[np.int32]:
    """Places in *names* of a column of texts."""
    column = table.column(name).combine_chunks()
    codes = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    place = {text: at for at, text in enumerate(names)}
    places = np.array([place[text] for text in codes.dictionary.to_pylist()], dtype=np.int32)
    found: NDArray[np.int32] = places[codes.indices.to_numpy()]
    return found


def _flat(listed: pa.Table) -> tuple[pa.Array, list[pa.Array]]:
    """Scenario of each element of the lists, and their elements."""
    lists = [column.combine_chunks() for column in listed.columns[1:]]
    counts = lists[0].value_lengths().to_numpy(zero_copy_only=False) if listed.num_rows else np.zeros(0, np.int64)
    return pa.array(np.repeat(listed.column("scenario").to_numpy(), counts)), [each.flatten() for each in lists]


def _pairs_of(listed: pa.Table, routers: Sequence[str]) -> pa.Table:
    scenario, (src, dst, before, now) = _flat(listed)
    names = pa.array(routers, pa.string())
    costs = now.to_numpy(zero_copy_only=False)
    is_lost = costs < 0
    columns = [
        scenario,
        names.take(src),
        names.take(dst),
        pa.array(is_lost),
        before.cast(pa.int64()),
        pa.array(costs.astype(np.int64), mask=is_lost),
    ]
    return pa.table(columns, schema=PAIR_IMPACT.schema)


def _loads_of(listed: pa.Table, elements: FailureCandidates) -> pa.Table:
    scenario, (numbers, *others) = _flat(listed)
    names = [column.take(numbers) for column in directions(elements)]
    return pa.table([scenario, *names, *others], schema=SCENARIO_LOAD.schema)


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
