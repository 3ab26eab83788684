"""Values of scenarios, counted in bins: what tasks of Spark hand over in place of a row for each value.

A task counts its values and packs those that are near each other into a row. Groups and windows of Spark put the rows
of a bin together and rank the bins; inside of each the rest is done in arrays again. So percentiles and curves are
exact, whatever the values, and Java has some hundred rows of each family and measure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from router.whatif.pipeline.scenario_extremes import (
    ALL,
    PERCENTILES,
    POINT_SCHEMA,
    STRETCHES,
    columns_of,
    measured,
    points_of,
    record_batch,
)
from router.whatif.wording import BASE, NOTHING

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]
Counted = tuple[Reals, Ints]
"""Distinct values, ascending, and how often there is each."""

GROUP: Final = ("variant", "family", "measure")
"""Columns whose values are counted together."""
_BIN_SHIFT: Final = 45
"""Bits of a real that its bin leaves out: 128 bins are between a power of two and the next."""
_TEXTS: Final = [(name, pa.string()) for name in GROUP]
_PACKED: Final = [("values", pa.binary()), ("counts", pa.binary())]
BIN_SCHEMA: Final = pa.schema([*_TEXTS, ("bin", pa.int64()), ("count", pa.int64()), *_PACKED])
"""Values of a group in one bin: how many scenarios have one, and both parts of `Counted` as bytes."""
VALUE_COLUMNS: Final = columns_of((*PERCENTILES, *STRETCHES))
"""Columns of `scenario` that `bins_by_part` needs beside `variant` and `family`."""
MOST: Final = (*PERCENTILES, "stretch_p99")
"""Measures whose maximum is kept per family."""
WORSE: Final = ("starved_publishers", "dead_addresses")
"""Columns counted as harm when above the base state."""
TALLY_COLUMNS: Final = (*columns_of(MOST), *WORSE)
"""Columns of `scenario` that `tallies_by_part` needs beside `variant` and `family`."""
TALLY_SCHEMA: Final = pa.schema(
    [
        *_TEXTS[:2],
        ("is_parted", pa.bool_()),
        *((name, pa.int64()) for name in WORSE),
        ("scenarios", pa.int64()),
        *((f"{name}_max", pa.float64()) for name in MOST),
    ]
)
"""Scenarios alike in what is harm (whether living routers lose each other, and WORSE), and how many there are."""
HELD: Final = 2_000_000
"""Different values that a task has in memory, about: what is more goes into further rows."""
PARTS: Final = "parts"
"""Column with the packed values of a bin, of each task that had some: structs with `values` and `counts`."""


def counted(values: Reals) -> Counted:
    """Count reals. *values*: NaN where there is none."""
    found, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    return found, counts.astype(np.int64)


def together(parts: Iterable[Counted]) -> Counted:
    """Put together what has been counted in parts."""
    values, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
    found, places = np.unique(values, return_inverse=True)
    sums = np.zeros(len(found), dtype=np.int64)
    np.add.at(sums, places, counts)
    return found, sums


def bins(values: Reals, counts: Ints) -> Iterator[tuple[int, Counted]]:
    """Divide counted values, none of which is negative, into bins, the lowest first."""
    numbers = (values + 0.0).view(np.int64) >> _BIN_SHIFT
    edges = np.flatnonzero(np.diff(numbers, prepend=-1, append=-1)).tolist()
    for first, stop in pairwise(edges):
        yield int(numbers[first]), (values[first:stop], counts[first:stop])


def bins_by_part(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Count the values of percentiles and curves, for `mapInArrow`: rows of BIN_SCHEMA.

    Args:
        batches: with `variant`, `family` and the columns of PERCENTILES and STRETCHES.
    """
    found: dict[tuple[str, str, str], list[Counted]] = {}
    held = 0
    for batch in batches:
        for key, values in _groups(pa.Table.from_batches([batch])):
            part = counted(values)
            found.setdefault(key, []).append(part)
            held += len(part[0])
        if held > HELD:
            yield _packed(found)
            found, held = {}, 0
    yield _packed(found)


def _packed(found: Mapping[tuple[str, str, str], Sequence[Counted]]) -> pa.RecordBatch:
    rows = [
        (*key, number, int(counts.sum()), values.tobytes(), counts.tobytes())
        for key, parts in found.items()
        for number, (values, counts) in bins(*together(parts))
    ]
    return record_batch(rows, BIN_SCHEMA)


def _groups(table: pa.Table) -> Iterator[tuple[tuple[str, str, str], Reals]]:
    """Values of a part of a table by group; of stretches also those of all failures of the mesh as it is."""
    for (variant, family), rows in _by_family(table):
        for measure in PERCENTILES:
            yield (variant, family, measure), measured(rows, measure)
        if variant == BASE and family != NOTHING:
            for measure in STRETCHES:
                yield (variant, ALL, measure), measured(rows, measure)


def _by_family(table: pa.Table) -> Iterator[tuple[tuple[str, str], pa.Table]]:
    names = table.select(GROUP[:2]).group_by(GROUP[:2]).aggregate([]).to_pylist()
    for each in names:
        here = (pc.field("variant") == each["variant"]) & (pc.field("family") == each["family"])
        yield (each["variant"], each["family"]), table if len(names) == 1 else table.filter(here)


def tallies_by_part(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Count scenarios by what can be harm, and find the most of each measure, for `mapInArrow`: rows of TALLY_SCHEMA.

    Args:
        batches: with `variant`, `family` and TALLY_COLUMNS.
    """
    for batch in batches:
        table = pa.Table.from_batches([batch])
        for name in MOST:
            table = table.append_column(f"{name}_max", pa.array(measured(table, name), from_pandas=True))
        table = table.append_column("is_parted", pc.greater(table.column("lost_pairs_max"), 0))
        keys = TALLY_SCHEMA.names[:5]
        most = [f"{name}_max" for name in MOST]
        sums = table.group_by(keys).aggregate([([], "count_all"), *((name, "max") for name in most)])
        columns = [sums.column(name) for name in (*keys, "count_all", *(f"{name}_max" for name in most))]
        yield from pa.table(columns, schema=TALLY_SCHEMA).combine_chunks().to_batches()


def points_by_bin(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Find the points of curves and percentiles in bins, for `mapInArrow`: rows of POINT_SCHEMA.

    Args:
        batches: with GROUP, `count`, `last` (so many scenarios have a value of this bin or a lower one), `all` (so many
            there are in the group) and PARTS.
    """
    for batch in batches:
        rows: list[tuple[Any, ...]] = []
        for row in batch.to_pylist():
            values, counts = together(
                (np.frombuffer(part["values"], np.float64), np.frombuffer(part["counts"], np.int64))
                for part in row[PARTS]
            )
            last = row["last"] - row["count"] + np.cumsum(counts)
            rows += points_of(row["variant"], row["family"], row["measure"], (values, counts, last), row["all"])
        yield record_batch(rows, POINT_SCHEMA)
