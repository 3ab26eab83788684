"""Tables that sum up scenarios: exact sums, nearest ranks, and what a plain computation finds."""

from __future__ import annotations

import math
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from router.whatif.analysis.availability import availability, calm_losses, summary_rows
from router.whatif.analysis.derived_tables import write_answers
from router.whatif.pipeline.exact_sums import exact_sums
from router.whatif.pipeline.local_summaries import of_plan
from router.whatif.pipeline.scenario_extremes import WORST, nearest_rank, points, points_of, worst
from router.whatif.pipeline.table_files import read_table, write_table
from router.whatif.pipeline.table_layouts import SUMMARIES
from router.whatif.scenarios.run_request import Request
from router.whatif.scenarios.scenario_plan import MAX_SCENARIOS
from router.whatif.wording import MAINTENANCE
from tests.whatif.runs import everything, losing, made, relieved

REALS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e200, max_value=1e200)


@given(st.lists(st.tuples(st.integers(0, 3), REALS), max_size=40))
def test_sums_by_group_are_exact_and_rounded_once(rows: list[tuple[int, float]]) -> None:
    places = np.array([place for place, _ in rows], dtype=np.int64)
    values = np.array([value for _, value in rows], dtype=np.float64)
    expected = [math.fsum(value for place, value in rows if place == group) for group in range(4)]
    assert exact_sums(places, values, 4).tolist() == expected


@pytest.mark.parametrize("value", [1 - 2**-53, 2**-53 - 1, math.pi * 2**600, -math.pi / 2**600])
def test_sums_of_as_many_reals_as_a_run_has_scenarios_are_exact(value: float, monkeypatch: pytest.MonkeyPatch) -> None:
    count, added = np.bincount, list[float]()

    def counted(places: NDArray[Any], summands: NDArray[Any], groups: int) -> NDArray[Any]:
        added.extend(np.abs(summands).tolist())
        return count(places, summands, groups)

    monkeypatch.setattr(np, "bincount", counted)
    assert exact_sums(np.array([0, 1, 1]), np.array([value] * 3), 2).tolist() == [value, 2 * value]
    assert 0 < max(added) * MAX_SCENARIOS <= 2**53  # whole numbers up to there are reals


def test_a_percentile_is_the_first_value_that_enough_do_not_exceed() -> None:
    for count in (1, 2, 3, 19, 20, 99, 100, 101):
        for percentile in (50, 95, 99):
            rank = nearest_rank(count, percentile)
            assert rank / count >= percentile / 100 > (rank - 1) / count


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("summaries") / "run"
    request = Request(families="links:1-2,routers:1-2,srlg", maintenance=("window",), growth="2")
    made(everything(), request, folder, workers=1)
    write_answers(folder, everything())
    return folder


def weight(row: dict[str, Any]) -> float | None:
    return None if row["family"] == MAINTENANCE else row["probability"]


def test_families_are_summed_up_as_a_plain_computation_does(whole: Path) -> None:
    by_family: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in read_table(whole, "scenario").to_pylist():
        by_family[row["variant"], row["family"]].append(row)
    found = {(row["variant"], row["family"]): row for row in read_table(whole, "family_summary").to_pylist()}
    assert found.keys() == by_family.keys()
    for (variant, family), rows in by_family.items():
        summed = found[variant, family]
        (calm,) = by_family[variant, "none"]
        pairs = [row["unreachable_pairs"] - row["dead_end_pairs"] for row in rows]
        names = ("starved_publishers", "dead_addresses")
        harmful = [
            lost > 0 or any(row[name] > calm[name] for name in names) for row, lost in zip(rows, pairs, strict=True)
        ]
        assert (summed["scenarios"], summed["harmful"]) == (len(rows), sum(harmful))
        assert summed["lost_pairs_max"] == max(pairs)
        ordered = sorted(row["max_utilisation"] for row in rows)
        assert summed["max_utilisation_p95"] == ordered[math.ceil(0.95 * len(rows)) - 1]
        if family == MAINTENANCE:
            assert summed["probability"] is summed["mean_lost_msgs_per_s"] is None
        else:
            assert summed["probability"] == math.fsum(row["probability"] for row in rows)
            lost = math.fsum(row["probability"] * row["lost_msgs_per_s"] for row in rows)
            assert summed["mean_lost_msgs_per_s"] == lost


def test_addresses_are_summed_up_as_a_plain_computation_does(whole: Path) -> None:
    scenarios = {row["scenario"]: row for row in read_table(whole, "scenario").to_pylist()}
    touched: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in read_table(whole, "address_impact").to_pylist():
        touched[scenarios[row["scenario"]]["variant"], row["address"]].append(row)
    found = {(row["variant"], row["address"]): row for row in read_table(whole, "address_summary").to_pylist()}
    assert found.keys() == touched.keys()
    for key, rows in touched.items():
        worst = min(rows, key=lambda row: (-row["lost_msgs_per_s"], row["scenario"]))
        weights = [(row, weight(scenarios[row["scenario"]])) for row in rows]
        dead = [share for row, share in weights if not row["subscriber_routers"] and share is not None]
        assert found[key]["worst_scenario"] == worst["scenario"]
        assert found[key]["dead_scenarios"] == sum(not row["subscriber_routers"] for row in rows)
        assert found[key]["dead_probability"] == math.fsum(dead)


@pytest.fixture(scope="module")
def calmly_losing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("losing") / "run"
    request = Request(families="links:1-2,routers:1,links:1+routers:1", maintenance=("window",), growth="1:3:2")
    made(losing(), request, folder, workers=1)
    write_answers(folder, losing())
    return folder


def losses_by_hand(scenario: dict[str, Any]) -> dict[str, float]:
    """Messages/s of `losing` that reach nobody, by address; C reaches nobody, ever."""
    links, routers = set(scenario["failed_links"]), set(scenario["failed_routers"])
    far = bool(routers & {"A", "B"}) or "A--B" in links
    times = 3 if scenario["variant"] == "growth 3" else 1
    return {
        "island": times * (50.0 + 100.0 * far),
        "nobody": times * 34.0,
        "served": times * 7.0 * (far or "D" in routers or "B--D" in links),
    }


@pytest.mark.parametrize("variant", ["base", "growth 3"])
def test_what_an_address_loses_while_nothing_fails_counts_in_each_scenario(calmly_losing: Path, variant: str) -> None:
    scenarios = [row for row in read_table(calmly_losing, "scenario").to_pylist() if row["variant"] == variant]
    found = {row["address"]: row for row in summary_rows(calmly_losing, "address_summary", variant)}
    assert found.keys() == {"island", "nobody", "served"}
    weights = {row["scenario"]: weight(row) or 0.0 for row in scenarios}
    for address, summed in found.items():
        losses = {row["scenario"]: losses_by_hand(row)[address] for row in scenarios}
        home = {"island": "B", "served": "D"}.get(address)
        hit = [row["scenario"] for row in scenarios if losses[row["scenario"]] or home in row["failed_routers"]]
        dead = [row["scenario"] for row in scenarios if home in row["failed_routers"]]
        most = max(losses.values())
        assert (summed["scenarios"], summed["dead_scenarios"]) == (len(hit), len(dead))
        assert summed["max_lost_msgs_per_s"] == most
        assert summed["worst_scenario"] == min(number for number, lost in losses.items() if lost == most)
        assert summed["probability"] == pytest.approx(math.fsum(weights[number] for number in hit), rel=1e-12)
        assert summed["dead_probability"] == math.fsum(weights[number] for number in dead)
        mean = math.fsum(weights[number] * lost for number, lost in losses.items())
        assert summed["mean_lost_msgs_per_s"] == pytest.approx(mean, rel=1e-12)


def test_the_losses_of_addresses_add_up_to_those_of_families_and_scenarios(calmly_losing: Path) -> None:
    impacts: dict[int, dict[str, float]] = defaultdict(dict)
    for row in read_table(calmly_losing, "address_impact").to_pylist():
        impacts[row["scenario"]][row["address"]] = row["lost_msgs_per_s"]
    calm = {}
    for row in read_table(calmly_losing, "scenario").to_pylist():
        if row["family"] == "none":
            calm = impacts[row["scenario"]]
            assert calm == {name: lost for name, lost in losses_by_hand(row).items() if lost}
        listed = {name: lost for name, lost in impacts[row["scenario"]].items() if lost != calm.get(name, 0.0)}
        assert row["lost_msgs_per_s"] == math.fsum({**calm, **listed}.values()) == sum(losses_by_hand(row).values())
    for variant in ("base", "growth 3"):
        addresses, families = (
            math.fsum(row["mean_lost_msgs_per_s"] or 0.0 for row in summary_rows(calmly_losing, name, variant))
            for name in ("address_summary", "family_summary")
        )
        assert addresses == pytest.approx(families, rel=1e-12)
        dead = [
            row["dead_addresses"]
            for row in read_table(calmly_losing, "scenario").to_pylist()
            if row["variant"] == variant
        ]
        summed = summary_rows(calmly_losing, "address_summary", variant)
        assert sum(dead) == sum(row["dead_scenarios"] for row in summed)


def test_scenarios_in_which_a_failure_ends_a_loss_are_not_counted_as_losing(tmp_path: Path) -> None:
    made(relieved(), Request(families="links:1-2"), tmp_path / "run", workers=1)
    write_answers(tmp_path / "run", relieved())
    scenarios = read_table(tmp_path / "run", "scenario").to_pylist()
    ended = [row for row in scenarios if not row["lost_msgs_per_s"]]
    assert next(row["failed_links"] for row in ended) == ["r1--r2"]
    assert len(ended) < len(scenarios)
    summed = {row["address"]: row for row in summary_rows(tmp_path / "run", "address_summary", "base")}
    losing = math.fsum(row["probability"] for row in scenarios if row["lost_msgs_per_s"])
    mean = math.fsum(row["probability"] * row["lost_msgs_per_s"] for row in scenarios)
    assert summed["q"]["scenarios"] == len(scenarios) - len(ended)
    assert summed["q"]["probability"] == pytest.approx(losing, rel=1e-12)
    assert summed["q"]["mean_lost_msgs_per_s"] == pytest.approx(mean, rel=1e-12)
    found = availability(tmp_path / "run", relieved(), calm_losses(relieved()))
    assert found is not None
    (share,) = (it.demand for it in found.addresses if it.address == "q")
    assert found.demand is not None
    assert share.at_least == pytest.approx(found.demand.at_least, rel=1e-12), "nothing else is sent"


def test_a_run_of_0_2_0_has_the_same_availability(tmp_path: Path) -> None:
    """Such a run doesn't list what is lost while nothing fails, and has no sums of it."""
    folder = tmp_path / "run"
    made(losing(), Request(families="links:1-2,routers:1"), folder, workers=1)
    write_answers(folder, losing())
    wanted = availability(folder, losing(), calm_losses(losing()))
    assert wanted is not None
    listed = read_table(folder, "address_impact")
    shutil.rmtree(folder / "address_impact")
    write_table(folder, listed.filter(pc.not_equal(listed.column("scenario"), 0)), "address_impact")
    shutil.rmtree(folder / "address_summary")
    write_table(
        folder,
        of_plan(folder, Request(families="links:1-2,routers:1").plan([("base", losing())])).addresses(),
        "address_summary",
    )
    found = availability(folder, losing(), calm_losses(losing()))
    assert found != wanted, "of another format it is read as complete"
    (file,) = (folder / "run").iterdir()
    table = pq.read_table(file)
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, b"format": b"1"}), file)
    found = availability(folder, losing(), calm_losses(losing()))
    assert found is not None
    for one, other in zip(found.addresses, wanted.addresses, strict=True):
        assert one.address == other.address
        assert one.demand.at_least == pytest.approx(other.demand.at_least, rel=1e-12)


def test_pairs_without_a_path_for_longest_are_those_of_a_plain_computation(whole: Path) -> None:
    ids = [router.id for router in everything().routers]
    lost = {(row["scenario"], row["src"], row["dst"]) for row in read_table(whole, "pair_impact").to_pylist()}
    down: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in read_table(whole, "scenario").to_pylist():
        share = weight(row)
        if row["variant"] == "base" and share is not None:
            for src in ids:
                for dst in ids:
                    is_dead = {src, dst} & set(row["failed_routers"])
                    if src != dst and (is_dead or (row["scenario"], src, dst) in lost):
                        down[src, dst].append(share)
    expected = sorted((math.fsum(shares) for shares in down.values()), reverse=True)[:10]
    rows = [row for row in read_table(whole, "pair_summary").to_pylist() if row["variant"] == "base"]
    assert [row["down_probability"] for row in rows] == pytest.approx(expected)
    for row in rows:
        assert math.fsum(down[row["src"], row["dst"]]) == pytest.approx(row["down_probability"])


def test_a_run_of_an_older_version_is_summed_up_when_it_is_asked(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    for each in whole.iterdir():
        if each.name not in {layout.name for layout in SUMMARIES}:
            (tmp_path / "run" / each.name).symlink_to(each)
    for layout in SUMMARIES:
        for variant in ("base", "growth 2"):
            assert summary_rows(tmp_path / "run", layout.name, variant) == summary_rows(whole, layout.name, variant)


def test_the_worst_scenarios_are_those_of_a_plain_computation(whole: Path) -> None:
    scenarios = read_table(whole, "scenario").to_pylist()
    found: dict[tuple[str, str], list[tuple[int, int, float]]] = defaultdict(list)
    for row in read_table(whole, "worst_scenario").to_pylist():
        found[row["variant"], row["measure"]].append((row["rank"], row["scenario"], row["value"]))
    for variant in ("base", "growth 2"):
        for measure in ("lost_msgs_per_s", "lost_pairs", "max_utilisation", "stretch_p99"):
            bad = []
            for row in scenarios:
                pairs = row["unreachable_pairs"] - row["dead_end_pairs"]
                value = pairs if measure == "lost_pairs" else row[measure] or 0.0
                is_bad = value > 1 if measure == "stretch_p99" else value > 0
                if row["variant"] == variant and is_bad and (measure != "max_utilisation" or row["family"] != "none"):
                    bad.append((-value, row["scenario"]))
            expected = [(rank, number, -value) for rank, (value, number) in enumerate(sorted(bad)[:20], start=1)]
            assert found[variant, measure] == expected
    assert {len(rows) for rows in found.values()} == {20}


def test_a_curve_says_how_many_scenarios_have_so_much_or_more(whole: Path) -> None:
    scenarios = [row for row in read_table(whole, "scenario").to_pylist() if row["variant"] == "base"]
    failing = [row for row in scenarios if row["family"] != "none"]
    curves: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in read_table(whole, "scenario_curve").to_pylist():
        curves[row["family"], row["measure"]].append(row)
    families = {row["family"] for row in failing}
    stretches = {("all", f"stretch_p{percent}") for percent in (50, 95, 99)}
    wanted = {(family, name) for family in families for name in ("lost_msgs_per_s", "max_utilisation")} | stretches
    assert curves.keys() == wanted
    for (family, measure), rows in curves.items():
        of_all = (row[measure] for row in failing if family in ("all", row["family"]))
        values = sorted((value for value in of_all if value is not None), reverse=True)
        assert [row["rank"] for row in (rows[0], rows[-1])] == [1, len(values)]
        for row in rows:
            assert row["value"] == values[row["rank"] - 1]
            assert row["larger"] == sum(value > row["value"] for value in values)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=30), st.data())
def test_points_of_parts_of_the_values_are_those_of_all(counts: list[int], data: st.DataObject) -> None:
    """Tasks of Spark get counted values in batches, which end anywhere."""
    sizes = np.array(counts, dtype=np.int64)
    whole = np.arange(len(counts), dtype=np.float64), sizes, np.cumsum(sizes)
    at = data.draw(st.integers(0, len(counts)))
    parts = [tuple(column[part] for column in whole) for part in (slice(0, at), slice(at, None))]
    total = int(sizes.sum())

    def found(counted: Any) -> list[tuple[Any, ...]]:
        return list(points_of("base", "links:1", "lost_msgs_per_s", counted, total))

    assert sorted(found(parts[0]) + found(parts[1])) == sorted(found(whole))
    ranks = [rank for *_, percentile, rank, _, _ in found(whole) if not percentile]
    assert sorted(ranks) == points(total).tolist()


def test_the_worst_of_batches_have_the_worst_of_all() -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(0, 40, 5000).astype(np.float64)
    numbers = np.arange(5000)
    places = worst(values, numbers, values > 0)
    assert places.tolist() == sorted(np.flatnonzero(values > 0).tolist(), key=lambda at: (-values[at], at))[:WORST]
    some = [worst(values[part], numbers[part], values[part] > 0) for part in (slice(0, 1700), slice(1700, 5000))]
    assert set(places.tolist()) <= {*some[0].tolist(), *(some[1] + 1700).tolist()}
