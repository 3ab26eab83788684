"""Tables: layouts that hold together, faults that are named, files that read back, a page of reference."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from router.whatif.pipeline.table_files import (
    are_equal,
    from_rows,
    read_parts,
    read_rows,
    read_table,
    validate,
    write_table,
)
from router.whatif.pipeline.table_layouts import LAYOUTS, Layout, TableError, layout_of, page

PAIRS = [
    {"scenario": 2, "src": "A", "dst": "B", "is_lost": True, "base_cost": 3, "cost": None},
    {"scenario": 1, "src": "B", "dst": "A", "is_lost": False, "base_cost": 3, "cost": 5},
]


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=lambda layout: layout.name)
def test_a_layout_has_a_key_of_its_own_columns_and_says_what_each_is(layout: Layout) -> None:
    assert set(layout.key) <= set(layout.names)
    assert len(set(layout.names)) == len(layout.names)
    for column in layout.columns:
        assert column.doc.endswith(".")
        assert not (column.name in layout.key and column.is_nullable)
        if pa.types.is_float64(column.kind):
            assert column.unit, f"{layout.name}.{column.name} has no unit"


@pytest.mark.parametrize("name", LAYOUTS)
def test_an_empty_table_reads_back(name: str, tmp_path: Path) -> None:
    write_table(tmp_path, from_rows(name, []), name)
    assert read_table(tmp_path, name).schema.equals(layout_of(name).schema)


def test_rows_are_sorted_by_their_key_and_read_back(tmp_path: Path) -> None:
    table = from_rows("pair_impact", PAIRS)
    write_table(tmp_path, table, "pair_impact")
    read = read_table(tmp_path, "pair_impact")
    assert read.to_pylist() == [PAIRS[1], PAIRS[0]]
    assert are_equal(read, table, "pair_impact")
    assert read_table(tmp_path, "pair_impact", ["src"]).to_pylist() == [{"src": "B"}, {"src": "A"}]


def test_each_fault_of_a_table_is_named() -> None:
    table = from_rows("pair_impact", PAIRS)
    wrong = table.rename_columns(["scenario", "src", "dts", "is_lost", "base_cost", "cost"])
    with pytest.raises(
        TableError, match=r"pair_impact\.dts: no such column; did you mean 'dst'\?\npair_impact\.dst: miss"
    ):
        validate(wrong, "pair_impact")
    wrong = table.set_column(4, "base_cost", pa.array([1.5, 2.0]))
    with pytest.raises(TableError, match=r"pair_impact\.base_cost: double; expected int64"):
        validate(wrong, "pair_impact")
    wrong = table.set_column(1, "src", pa.array(["A", None]))
    with pytest.raises(TableError, match=r"pair_impact\.src: 1 nulls; expected none"):
        validate(wrong, "pair_impact")
    with pytest.raises(TableError, match=r"row 1 comes before row 0 by \(scenario, src, dst\)"):
        validate(table.take([1, 0]), "pair_impact")
    with pytest.raises(TableError, match="row 1 repeats row 0"):
        from_rows("pair_impact", [PAIRS[0], PAIRS[0]])
    with pytest.raises(TableError, match=r"'scenarios'; did you mean 'scenario'\? There are scenario, pair_impact, "):
        layout_of("scenarios")


def test_tables_that_differ_in_one_bit_are_not_equal() -> None:
    row = {
        "kind": "link", "rank": 1, "a": "A", "b": "B", "address": None, "cost": 1, "measure": "mean_cost",
        "before": 1.0, "after": 0.0, "gain": 1.0,
    }  # fmt: skip
    table = from_rows("placement", [row])
    assert are_equal(table, from_rows("placement", [row]), "placement")
    assert not are_equal(table, from_rows("placement", [row | {"after": -0.0}]), "placement")
    assert not are_equal(table, from_rows("placement", [row | {"before": 1.0000000000000002}]), "placement")
    assert not are_equal(table, from_rows("placement", []), "placement")


def test_what_differs_from_run_to_run_makes_no_difference() -> None:
    row = dict.fromkeys(
        ("model", "model_hash", "plan", "plan_hash", "routing", "pairs", "loads", "version", "speed"), "x"
    )
    row |= {"engine": "local", "started": "2026-01-01T00:00:00Z", "coverage": 0.5, "residual": None}
    row |= dict.fromkeys(("seed", "scenarios", "routers", "links"), 1) | {"wall_s": 1.0, "scenarios_per_s": 1.0}
    table = from_rows("run", [row])
    assert are_equal(table, from_rows("run", [row | {"engine": "spark", "wall_s": 2.0}]), "run")
    assert not are_equal(table, from_rows("run", [row | {"seed": 2}]), "run")


def test_the_page_has_every_column() -> None:
    text = page()
    for layout in LAYOUTS.values():
        assert f"\n## {layout.name}\n" in text
        for name in layout.names:
            assert f"\n| `{name}` |" in text


def test_files_in_folders_of_columns_are_one_table_in_the_order_of_its_key(tmp_path: Path) -> None:
    """As Spark writes it, and as it may be when somebody has put files of Spark's together."""
    rows = from_rows("pair_impact", [{**PAIRS[0], "scenario": number} for number in range(9)])
    for variant, first in (("base", 0), ("growth 1:5", 4)):
        folder = tmp_path / "pair_impact" / f"variant={quote(variant)}" / "family=links%3A1"
        folder.mkdir(parents=True)
        pq.write_table(rows.slice(first, 4 if not first else 5), folder / "part-0.parquet")
    assert are_equal(read_table(tmp_path, "pair_impact"), rows, "pair_impact")
    parts = list(read_parts(tmp_path, "pair_impact", lambda first, stop: stop > 4))
    assert [(first, part.num_rows) for first, part in parts] == [(4, 5)]
    assert read_rows(tmp_path, "pair_impact", {"variant": "growth 1:5", "scenario": 3}) == []
    assert [row["scenario"] for row in read_rows(tmp_path, "pair_impact", {"variant": "growth 1:5", "src": "A"})] == [
        *range(4, 9)
    ]
    pq.write_table(rows.take([1, 3, 5, 7]), folder.parents[1] / "variant=base" / "family=links%3A1" / "part-0.parquet")
    pq.write_table(rows.take([8, 6, 4, 2, 0]), folder / "part-0.parquet")
    assert are_equal(read_table(tmp_path, "pair_impact"), rows, "pair_impact")
    assert read_table(tmp_path, "pair_impact", ["src"]).num_rows == 9
    ((first, whole),) = read_parts(tmp_path, "pair_impact", lambda first, stop: True)
    assert first == 0
    assert are_equal(whole, rows, "pair_impact")
