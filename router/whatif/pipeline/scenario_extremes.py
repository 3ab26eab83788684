"""Worst scenarios and curves over all: what charts and reports show of a million scenarios, in some hundred rows.

Numbers come in arrays, so that the local engine calls this with whole columns, and tasks of Spark with parts of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from router.whatif.wording import BASE, NOTHING

WORST: Final = 20
"""Maximum number of scenarios by each harm."""
HARMS: Final = ("lost_msgs_per_s", "lost_pairs", "max_utilisation", "stretch_p99")
"""Measures by which scenarios are ranked."""
POINTS: Final = 160
"""Approximate number of points of a curve on each of two scales."""
FALLING: Final = ("lost_msgs_per_s", "max_utilisation")
"""Measures of which there is a curve for each family."""
STRETCHES: Final = ("stretch_p50", "stretch_p95", "stretch_p99")
"""Measures of which there is a curve over all failures."""
ALL: Final = "all"
"""Stands in place of a family where a curve is of all failures."""
RANKS: Final = (50, 95, 99)
"""Percentiles of the measures of PERCENTILES, percent."""
PERCENTILES: Final = ("lost_msgs_per_s", "lost_pairs", "max_utilisation")
"""Measures of which there are percentiles by family."""

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

_POINT_KINDS: Final = (pa.string(), pa.string(), pa.string(), pa.int64(), pa.int64(), pa.float64(), pa.int64())
POINT_SCHEMA: Final = pa.schema(
    zip(("variant", "family", "measure", "percentile", "rank", "value", "larger"), _POINT_KINDS, strict=True)
)
"""Schema of points: points of a curve have `percentile` 0, others are percentiles."""
HARM_SCHEMA: Final = pa.schema(
    [("variant", pa.string()), ("measure", pa.string()), ("scenario", pa.int64()), ("value", pa.float64())]
)


class Columns(Protocol):
    """Rows of `scenario`, such as a table of Arrow."""

    def column(self, name: str, /) -> pa.ChunkedArray:
        """A column of them."""


def measured(rows: Columns, name: str) -> Reals:
    """A measure of scenarios as reals, NaN where it is null.

    Args:
        rows: scenarios, with the columns that the measure is made of.
        name: of a column, or `lost_pairs`.
    """
    if name == "lost_pairs":
        return measured(rows, "unreachable_pairs") - measured(rows, "dead_end_pairs")
    found: Reals = rows.column(name).cast(pa.float64()).to_numpy()
    return found


def columns_of(measures: Sequence[str]) -> tuple[str, ...]:
    """Columns of `scenario` of which measures are made."""
    parts = {"lost_pairs": ("unreachable_pairs", "dead_end_pairs")}
    return tuple(name for each in measures for name in parts.get(each, (each,)))


def nearest_rank(count: int, percentile: int) -> int:
    """Rank, from 1, of the value that so many percent of *count* values do not exceed."""
    return max(1, -(-count * percentile // 100))


def is_harm(measure: str, values: Reals, is_calm: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mask of the scenarios that are bad in one way.

    Args:
        measure: one of HARMS.
        values: of it, NaN where there is none.
        is_calm: whether nothing fails in a scenario: then a load is no harm of it.
    """
    if measure == "stretch_p99":
        return values > 1
    return (values > 0) & ~is_calm if measure == "max_utilisation" else values > 0


def worst(values: Reals, numbers: Ints, among: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Find the WORST largest values, of equal ones those with the lowest numbers. Returns: places, the worst first."""
    found = np.flatnonzero(among)
    if len(found) > 8 * WORST:  # to sort all of a million would take longer than all else
        edge = np.partition(values[found], len(found) - WORST)[len(found) - WORST]
        found = found[values[found] >= edge]
    return found[np.lexsort((numbers[found], -values[found]))][:WORST]


def points(count: int) -> Ints:
    """Ranks, from 1, of the points of a curve over so many values, close enough on a linear and a logarithmic scale."""
    if not count:
        return np.zeros(0, np.int64)
    scales = np.geomspace(1, count, POINTS), np.linspace(1, count, POINTS)
    return np.unique(np.concatenate(scales).astype(np.int64))


def points_of(
    variant: str, family: str, measure: str, counted: tuple[Reals, Ints, Ints], total: int
) -> Iterator[tuple[Any, ...]]:
    """Points of one group of values: rows of POINT_SCHEMA.

    Args:
        variant: that all are of.
        family: that all are of, or ALL.
        measure: that they are of.
        counted: values, ascending, how many scenarios have each, and how many have it or less. All or some of them.
        total: values that there are.
    """
    values, counts, last = counted
    if measure in PERCENTILES and family != ALL:
        for percentile in RANKS:
            place = nearest_rank(total, percentile)
            at = int(np.searchsorted(last, place))
            if at < len(last) and last[at] - counts[at] < place:
                yield variant, family, measure, percentile, place, float(values[at]), 0
    if variant == BASE and family != NOTHING and (measure in FALLING or family == ALL):
        larger = total - last[::-1]
        ranks = points(total)
        first, stop = (
            np.searchsorted(ranks, larger, side="right"),
            np.searchsorted(ranks, larger + counts[::-1], "right"),
        )
        for at in np.flatnonzero(stop > first).tolist():
            for rank in ranks[first[at] : stop[at]].tolist():
                yield variant, family, measure, 0, rank, float(values[::-1][at]), int(larger[at])


def worst_by_batch(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Worst scenarios of each batch, for `mapInArrow`: all together have the worst of all.

    Args:
        batches: with `variant`, `family`, `scenario` and the columns of HARMS.
    """
    for batch in batches:
        table = pa.Table.from_batches([batch])
        variants, families = (np.array(table.column(name).to_pylist(), dtype=object) for name in ("variant", "family"))
        numbers = table.column("scenario").to_numpy()
        rows: list[tuple[Any, ...]] = []
        for measure in HARMS:
            values = measured(table, measure)
            harm = is_harm(measure, values, families == NOTHING)
            for variant in dict.fromkeys(variants.tolist()):
                places = worst(values, numbers, harm & (variants == variant))
                rows += [(variant, measure, int(numbers[at]), float(values[at])) for at in places.tolist()]
        yield record_batch(rows, HARM_SCHEMA)


def record_batch(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Make a batch of rows, which may be none."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
