"""Values counted in bins: percentiles and curves are those of all values, however they were divided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from router.whatif.pipeline.exact_percentile_bins import (
    BIN_SCHEMA,
    GROUP,
    PARTS,
    VALUE_COLUMNS,
    bins,
    bins_by_part,
    counted,
    points_by_bin,
)
from router.whatif.pipeline.scenario_extremes import PERCENTILES, POINT_SCHEMA, STRETCHES, points_of

FAMILIES = ("none", "links:1", "maintenance")
amounts = st.sampled_from([0.0, 0.5, 0.25]) | st.floats(0, 1e12)


def batch(rows: Sequence[tuple[str, str, float, float | None]]) -> pa.RecordBatch:
    """Rows of `scenario`: variant, family, the value of all that has percentiles, that of all stretches."""
    variants, families, values, stretches = zip(*rows, strict=True) if rows else ((), (), (), ())
    columns = [pa.array(variants, pa.string()), pa.array(families, pa.string())]
    by_name = dict.fromkeys(VALUE_COLUMNS, pa.array(values, pa.float64()))
    by_name["dead_end_pairs"] = pa.array([0.0] * len(rows), pa.float64())
    by_name |= dict.fromkeys(STRETCHES, pa.array(stretches, pa.float64()))
    return pa.RecordBatch.from_arrays([*columns, *by_name.values()], names=["variant", "family", *by_name])


def ranked(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """What groups and windows of Spark make of the bins of all tasks."""
    rows: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in pa.Table.from_batches(parts).to_pylist():
        rows.setdefault((*(row[name] for name in GROUP), row["bin"]), []).append(row)
    sums = {key: sum(row["count"] for row in own) for key, own in rows.items()}
    found = [
        {
            **dict(zip(GROUP, key[:3], strict=True)),
            "count": sums[key],
            "last": sum(count for other, count in sums.items() if other[:3] == key[:3] and other[3] <= key[3]),
            "all": sum(count for other, count in sums.items() if other[:3] == key[:3]),
            PARTS: [{name: row[name] for name in ("values", "counts")} for row in own],
        }
        for key, own in rows.items()
    ]
    return pa.RecordBatch.from_pylist(found) if found else None


rows_of_tasks = st.lists(
    st.lists(
        st.tuples(st.sampled_from(["base", "other"]), st.sampled_from(FAMILIES), amounts, st.none() | amounts),
        max_size=9,
    ),
    max_size=4,
)


@given(rows_of_tasks)
def test_points_of_bins_are_those_of_all_values(tasks: list[list[tuple[str, str, float, float | None]]]) -> None:
    parts = [part for rows in tasks for part in bins_by_part([batch(rows[:3]), batch(rows[3:])])]
    assert all(part.schema.equals(BIN_SCHEMA) for part in parts)
    whole = ranked(parts) if any(part.num_rows for part in parts) else None
    found = [row for part in points_by_bin([whole] if whole else []) for row in part.to_pylist()]
    every = [row for rows in tasks for row in rows]
    groups: dict[tuple[str, str, str], list[float]] = {
        (row[0], row[1], measure): [] for row in every for measure in PERCENTILES
    }
    for variant, family, value, stretch in every:
        for measure in PERCENTILES:
            groups[variant, family, measure].append(value)
        if variant == "base" and family != "none" and stretch is not None:
            for measure in STRETCHES:
                groups.setdefault((variant, "all", measure), []).append(stretch)
    expected: list[tuple[Any, ...]] = []
    for key, values in groups.items():
        distinct, counts = np.unique(values, return_counts=True)
        expected += points_of(*key, (distinct, counts, np.cumsum(counts)), len(values))
    names = POINT_SCHEMA.names
    assert sorted(tuple(row[name] for name in names) for row in found) == sorted(expected)


@given(st.lists(amounts, max_size=50))
def test_bins_have_every_value_once_in_order(values: list[float]) -> None:
    distinct, counts = counted(np.array([*values, np.nan]))
    found = list(bins(distinct, counts))
    assert [number for number, _ in found] == sorted({number for number, _ in found})
    assert [value for _, (own, _) in found for value in own.tolist()] == sorted(set(values))
    assert sum(int(own.sum()) for _, (_, own) in found) == len(values)
