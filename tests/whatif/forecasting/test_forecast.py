"""Forecasts of histories whose truth is known, on real Spark."""

from __future__ import annotations

import datetime as dt
import os
import random
import re
import signal
import threading
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from mesh_config.models import Treatment
from router import whatif
from router.cli import main
from router.cli.whatif.forecast import _say, rows_to_tell
from router.whatif.forecasting.capacity_forecast import MOST_PERIODS, RecentPeriods, Wanted, check, forecast, gaps
from router.whatif.forecasting.demand_history import Calendar, periods_of, rates_of, read_history
from router.whatif.forecasting.link_trends import LEAST, ForecastSettings, trends
from router.whatif.formats.model_folder import read_model, write_model
from router.whatif.formats.parquet_file import ParquetFileError
from router.whatif.model.demands import Demand
from router.whatif.model.elements import AddressNode, LinkEdge, RouterNode, SubscriberSite
from router.whatif.model.mesh_model import Model, with_demands
from router.whatif.pipeline.run_staging import RunError
from router.whatif.pipeline.table_files import from_rows, read_table, validate
from router.whatif.pipeline.table_layouts import LAYOUTS, TableError
from router.whatif.scenarios import scenario_plan
from router.whatif.scenarios.run_request import Request
from router.whatif.scenarios.scenario_plan import PlanError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MONDAY = dt.datetime(2026, 9, 7, tzinfo=dt.UTC)
WEEKS = 5
BUSY = 34
"""Hour of the week."""


def row(begun: dt.datetime, seconds: float, router: str, address: str, messages: int) -> dict[str, Any]:
    return {
        "begun": begun, "ended": begun + dt.timedelta(seconds=seconds), "router": router, "address": address,
        "messages": messages, "msgs_per_s": messages / seconds, "msg_bytes": 200.0 if address else None,
        "is_reset": False,
    }  # fmt: skip


def write_history(folder: Path, rows: Iterable[dict[str, Any]], *, times: int = 1) -> None:
    """Write rows as `watch` does; in several files alike, as while files are put together."""
    (folder / "address_rate").mkdir(parents=True)
    table = from_rows("address_rate", rows)
    for number in range(times):
        pq.write_table(table, folder / "address_rate" / f"part-{number:08d}-1.parquet")


def to_the_nanosecond(file: Path) -> None:
    """Write a file again as pandas does."""
    table = pq.read_table(file)
    for at, name in enumerate(("begun", "ended")):
        table = table.set_column(at, name, table.column(name).cast(pa.timestamp("ns", "UTC")))
    pq.write_table(table, file)


def triangle() -> Model:
    """What A and C send goes to B, by one link each unless it fails."""
    capacities = {("A", "B"): 21.0, ("A", "C"): 100.0, ("B", "C"): 30.0}
    model = Model(
        routers=[RouterNode(id=name) for name in "ABC"],
        links=[LinkEdge(id=f"{a}--{b}", a=a, b=b, capacity_msgs=rate) for (a, b), rate in capacities.items()],
        addresses=[AddressNode(text="jobs", treatment=Treatment.CLOSEST)],
        subscribers=[SubscriberSite(address="jobs", router="B")],
    )
    model.check()
    return model


def growing() -> list[dict[str, Any]]:
    """Each week A sends two messages/s more in the busy hour, and half of it else; C always sends as much."""
    rows = []
    for hour in range(WEEKS * 168 + 40):  # of the last week too little was watched
        week = hour // 168
        # The model has no router Z.
        sent = {"A": (10 + 2 * week) * (3600 if hour % 168 == BUSY else 1800), "C": 5 * 3600, "Z": 3600}
        if week == WEEKS:
            sent = {"A": 9_000_000, "C": 9_000_000}
        for router, count in sent.items():
            begun = MONDAY + dt.timedelta(hours=hour)
            rows += [row(begun, 3600, router, "jobs", count), row(begun, 3600, router, "", count)]
    return rows


@pytest.fixture(scope="module")
def done(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A forecast, and what the command has said."""
    folder = tmp_path_factory.mktemp("forecast")
    write_history(folder / "rates", growing(), times=2)
    to_the_nanosecond(folder / "rates" / "address_rate" / "part-00000001-1.parquet")
    write_model(triangle(), folder / "model")
    out = folder / "new" / "plan"
    words = ["whatif", "forecast", str(folder / "rates"), "--model", str(folder / "model"), "-o", str(out)]
    asked = CliRunner().invoke(main, words)
    assert asked.exit_code == 0, asked.output
    assert "warning: the model has no router `Z`: what entered there is left out\n" in asked.stderr
    assert [path.name for path in out.parent.iterdir()] == ["plan"]
    return out, asked.stdout


@pytest.mark.parametrize("name", ["demand_rate", "demand_period", "demand_forecast", "link_forecast"])
def test_tables_are_as_their_layouts_say(name: str, done: tuple[Path, str]) -> None:
    assert validate(read_table(done[0], name), name).num_rows


def test_demands_are_those_of_the_busy_hour_and_the_percentiles(done: tuple[Path, str]) -> None:
    weeks = read_table(done[0], "demand_period").to_pylist()
    weeks = [each for each in weeks if each["router"] != "Z"]
    assert len(weeks) == 2 * WEEKS, "a week that was watched for forty hours is none"
    for each in weeks:
        week = (each["begun"] - MONDAY).days // 7
        most = 10.0 + 2 * week if each["router"] == "A" else 5.0
        usual = most / 2 if each["router"] == "A" else most
        assert (each["hours"], each["max"], each["busy"], each["msg_bytes"]) == (168, most, most, 200.0)
        assert (each["p50"], each["p95"], each["p99"]) == (usual, usual, usual)
        assert each["mean"] == pytest.approx((167 * usual + most) / 168)
    hours = read_table(done[0], "demand_rate").to_pylist()
    assert hours[0] == {
        "begun": MONDAY, "router": "A", "address": "jobs", "msgs_per_s": 5.0, "msg_bytes": 200.0,
    }  # fmt: skip


def test_a_link_is_full_in_the_week_in_which_it_is(done: tuple[Path, str]) -> None:
    rows = {
        (row["link"], row["src"], row["is_failure"]): row for row in read_table(done[0], "link_forecast").to_pylist()
    }
    # (10 + 2 w) / 21 in week w, of which 4 is the last one: above 1 in week 6.
    calm = rows["A--B", "A", False]
    assert calm["level"] == pytest.approx(18 / 21)
    assert calm["growth"] == pytest.approx(2 / 21)
    assert (calm["full_in"], calm["earliest"], calm["latest"], calm["periods"]) == (2, 2, 2, WEEKS)
    assert calm["full_at"] == MONDAY + dt.timedelta(weeks=WEEKS - 1 + 2)
    assert calm["upgrade"] == pytest.approx((18 + 2 * 26) / 21)
    # Without B--C what C sends goes there too; it has been full since week 3.
    failed = rows["A--B", "A", True]
    assert (failed["failed_links"], failed["failed_routers"], failed["full_in"]) == (["B--C"], [], 0)
    # Without A--B what A sends goes by C: 5 + 10 + 2 w of 30.
    detour = rows["B--C", "C", True]
    assert (detour["failed_links"], detour["full_in"]) == (["A--B"], 4)
    assert detour["level"] == pytest.approx(23 / 30)
    # Nothing else is full within half a year.
    assert {key for key, each in rows.items() if each["full_in"] is not None} == {
        ("A--B", "A", False), ("A--B", "A", True), ("B--C", "C", True),
    }  # fmt: skip
    assert rows["A--C", "A", True]["expected"] == pytest.approx((18 + 2 * 26) / 100)
    assert rows["A--C", "A", True]["upgrade"] is None


def test_the_demands_at_the_horizon_are_a_model(done: tuple[Path, str]) -> None:
    for name in ("expected", "high"):
        model = read_model(done[0] / name)
        found = {demand.src: (demand.msgs_per_s, demand.address, demand.msg_bytes) for demand in model.demands}
        assert {src: values[1:] for src, values in found.items()} == {"A": ("jobs", 200.0), "C": ("jobs", 200.0)}
        assert [found[src][0] for src in "AC"] == pytest.approx([18 + 2 * 26, 5])
        assert model.links == triangle().links


def test_the_command_says_what_is_full_and_what_it_lacks(done: tuple[Path, str]) -> None:
    out, said = done
    lines = [line.split() for line in said.splitlines()]
    titles = [
        at for at, line in enumerate(said.splitlines()) if line.startswith("Links that reach 100% within 26 weeks")
    ]
    calm, failing = (lines[at:end] for at, end in zip(titles, [*titles[1:], None], strict=True))
    assert ["A--B", "A", "B", "85.7%", "+9.52%", "2", "2", "to", "2", "x", "3.33"] in calm
    assert [
        "A--B",
        "A",
        "B",
        "link",
        "B--C",
        "109.5%",
        "+9.52%",
        "already",
        "already",
        "to",
        "already",
        "x",
        "3.57",
    ] in failing
    for table in (calm, failing):
        links = [tuple(line[:3]) for line in table if line and "--" in line[0]]
        assert len(links) == len(set(links)), "each link once"
    assert str(out / "expected") in said
    # The weeks are variants of a run that every command opens.
    asked = CliRunner().invoke(
        main, ["whatif", "explain", str(out / "run"), "--link", "A--B", "--variant", "period -4", "--down", "B--C"]
    )
    assert asked.exit_code == 0, asked.output
    assert "15" in asked.output, "what A and C sent in the first week"


def test_it_is_said_when_no_link_gets_full_and_when_no_failure_makes_it_worse(
    capsys: pytest.CaptureFixture[str],
) -> None:
    calm = {
        "link": "A--B", "src": "A", "dst": "B", "is_failure": False, "level": 0.3, "growth": 0.04, "full_in": 2,
        "earliest": 1, "latest": None, "upgrade": 4.5,
    }  # fmt: skip
    failing = {
        **calm,
        "is_failure": True,
        "level": 0.4,
        "failed_links": ["A--C"],
        "failed_routers": [],
        "group": "duct",
    }
    found = {}
    for name, rows in (("neither", []), ("calm", [calm]), ("failing", [failing])):
        _say(rows, Path("out"), period="week", horizon=26, limit=1.0)
        found[name] = capsys.readouterr().out
    assert "no link reaches 100% within 26 weeks in any failure of --fail" in found["neither"]
    assert "no failure fills a link sooner" in found["calm"]
    assert "group duct: link A--C" in found["failing"]
    assert "no link reaches 100% within 26 weeks while nothing fails" in found["failing"]


def test_a_failure_that_changes_nothing_for_a_link_is_not_told() -> None:
    calm = {
        "link": "A--B", "src": "A", "is_failure": False, "level": 0.3, "growth": 0.04, "full_in": 2, "earliest": 1,
        "latest": None, "upgrade": 4.5,
    }  # fmt: skip
    same = {**calm, "is_failure": True, "failed_links": ["A--C"]}
    worse, other = {**same, "level": 0.4}, {**same, "src": "B"}
    never = {**calm, "link": "B--C", "earliest": None, "full_in": None}
    assert rows_to_tell([same, calm, never]) == [calm]
    assert rows_to_tell([worse, calm, other]) == [worse, calm, other]


def test_the_library_knows_the_forecast(done: tuple[Path, str], spark: SparkSession, tmp_path: Path) -> None:
    found = whatif.open_forecast(done[0])
    assert found.tables == ("demand_rate", "demand_period", "demand_forecast", "link_forecast")
    assert found.pandas("link_forecast").full_in.min() == 0
    assert found.run.model == triangle_of(found.run.model.demands)
    assert found.expected == read_model(done[0] / "expected")
    assert found.high.links == triangle().links
    with pytest.raises(TableError, match=r"has no table 'link_rate'; did you mean .*\? There are demand_rate, "):
        found.arrow("link_rate")
    words: list[dict[str, object]] = [{"horizon": "26"}, {"horizon": True}, {"limit": "1"}, {"confidence": None}]
    for wrong in (
        {"period": "year"}, {"level": "p42"}, {"horizon": 0}, {"limit": 0.0}, {"confidence": 1.0}, *words
    ):  # fmt: skip
        with pytest.raises(ValueError, match=next(iter(wrong))):
            whatif.forecast(tmp_path, triangle(), tmp_path / "out", **wrong)  # type: ignore[arg-type]
    with pytest.raises(RunError, match="no history"):
        whatif.forecast(tmp_path, triangle(), tmp_path / "out")


def test_a_forecast_is_opened_as_sql_has_it(done: tuple[Path, str], spark: SparkSession, tmp_path: Path) -> None:
    found = whatif.open_forecast(str(done[0]))
    assert found.views(spark, prefix="outlook_") == tuple(f"outlook_{name}" for name in found.tables)
    rows = spark.sql("SELECT * FROM outlook_link_forecast").toArrow()
    expected = found.arrow("link_forecast")
    assert rows.column_names == expected.column_names
    assert sorted(map(str, rows.to_pylist())) == sorted(map(str, expected.to_pylist()))
    (about,) = spark.sql("DESCRIBE outlook_link_forecast").where("col_name = 'full_in'").collect()
    assert about.comment == next(each.doc for each in LAYOUTS["link_forecast"].columns if each.name == "full_in")
    with pytest.raises(TableError, match="is no forecast; expected a folder that"):
        whatif.open_forecast(tmp_path)


def triangle_of(demands: Iterable[Demand]) -> Model:
    return with_demands(triangle(), demands)


# Hours


def by_hand(rows: Iterable[dict[str, Any]], seconds: int) -> dict[tuple[int, str], float]:
    """Messages by hour and router, each interval cut at the hours."""
    found: defaultdict[tuple[int, str], float] = defaultdict(float)
    for each in rows:
        begun, ended = each["begun"].timestamp(), each["ended"].timestamp()
        for hour in range(int(begun // seconds), int(ended // seconds) + 1):
            part = min(ended, (hour + 1) * seconds) - max(begun, hour * seconds)
            if part > 0:
                found[hour, each["router"]] += each["messages"] * part / (ended - begun)
    return found


def test_an_interval_gives_each_hour_its_share(spark: SparkSession, tmp_path: Path) -> None:
    """Hours of a minute here, and periods of four. Some intervals are longer than a minute, one is too long."""
    rng = random.Random(3)
    rows, at = [], 7.0
    while at < 720:
        took = rng.choice([5.0, 17.0, 59.0, 61.0, 110.0])
        rows.append(row(MONDAY + dt.timedelta(seconds=at), took, "A", "jobs", rng.randint(0, 500)))
        at += took
    rows.append(row(MONDAY + dt.timedelta(seconds=at), 500.0, "A", "jobs", 10**9))  # nobody knows when these came
    every = [
        *(each for each in rows if each["messages"]),
        *({**each, "address": "", "msg_bytes": None} for each in rows),
    ]
    write_history(tmp_path, every)
    calendar = Calendar(bucket_s=60, period_s=240)
    found = read_history(spark, tmp_path, calendar)
    rates, periods = (make(found, calendar).toArrow().to_pylist() for make in (rates_of, periods_of))
    shares = by_hand(rows[:-1], 60)
    first = int(MONDAY.timestamp()) // 60
    whole = {(MONDAY + dt.timedelta(minutes=hour - first)): value / 60 for (hour, _), value in shares.items()}
    got = {each["begun"].replace(tzinfo=dt.UTC): each["msgs_per_s"] for each in rates}
    inner = sorted(whole)[1:-1]  # those at the ends were watched for a part of a minute
    assert len(inner) >= 10
    assert [got[hour] for hour in inner] == pytest.approx([whole[hour] for hour in inner])
    assert max(got.values()) < 1000
    periods.sort(key=lambda each: each["period"])
    assert len(periods) == 3
    values = [got[MONDAY + dt.timedelta(minutes=4 + number)] for number in range(4)]
    assert (periods[1]["max"], periods[1]["hours"]) == (max(values), 4)
    assert periods[1]["mean"] == pytest.approx(sum(values) / 4)
    assert periods[1]["busy"] == max(values), "the mesh has no other demand"


def test_files_with_other_types_of_numbers_are_one_history(spark: SparkSession, tmp_path: Path) -> None:
    """As pandas writes them: where a value is missing in a file, all numbers of its column are floating-point."""
    rows = [row(MONDAY + dt.timedelta(minutes=at), 60.0, "A", name, 60) for at in range(6) for name in ("", "jobs")]
    kinds = (pa.int32(), pa.int64(), pa.float64(), pa.decimal128(30, 2))
    write_history(tmp_path, rows, times=0)
    for at, kind in enumerate(kinds):
        table = from_rows("address_rate", rows[3 * at : 3 * at + 3])
        place = table.column_names.index("messages")
        table = table.set_column(place, "messages", table.column("messages").cast(kind))
        pq.write_table(table, tmp_path / "address_rate" / f"{at}.parquet")
    check(tmp_path, triangle(), tmp_path / "out")
    calendar = Calendar(bucket_s=60, period_s=240)
    found = rates_of(read_history(spark, tmp_path, calendar), calendar).toArrow().to_pylist()
    assert [each["msgs_per_s"] for each in found] == 6 * [1.0]


# Holes


def steady(*, without: Callable[[str, int], bool], weeks: int = 6) -> list[dict[str, Any]]:
    """A sends 10 messages/s in the busy hour of a week and 5 else, C always 5; rows of some hours are missing."""
    rows = []
    for hour in range(weeks * 168):
        begun = MONDAY + dt.timedelta(hours=hour)
        for router in "AC":
            if not without(router, hour):
                count = 36000 if router == "A" and hour % 168 == BUSY else 18000
                rows += [row(begun, 3600, router, "jobs", count), row(begun, 3600, router, "", count)]
    return rows


def test_a_router_that_was_not_watched_makes_no_growth(spark: SparkSession, tmp_path: Path) -> None:
    """C, constant as it is, was watched in the last three weeks of six, and for a few hours of the others."""
    write_history(
        tmp_path / "rates", steady(without=lambda router, hour: router == "C" and hour < 504 and hour % 168 > 5)
    )
    write_model(triangle(), tmp_path / "model")
    words = ["forecast", str(tmp_path / "rates"), "--model", str(tmp_path / "model"), "-o", str(tmp_path / "out")]
    asked = CliRunner().invoke(main, ["whatif", *words])
    assert asked.exit_code == 0, asked.output
    warnings = [line for line in asked.stderr.splitlines() if line.startswith("warning: ")]
    assert warnings == ["warning: router `C` was watched in 3 of 6 weeks: links are forecast without the others"]
    for each in read_table(tmp_path / "out", "link_forecast").to_pylist():
        assert (each["periods"], each["growth"], each["full_in"]) == (3, pytest.approx(0), None), each
    found = {each["router"]: each for each in read_table(tmp_path / "out", "demand_forecast").to_pylist()}
    assert {router: each["periods"] for router, each in found.items()} == {"A": 6, "C": 3}


def long_history(rng: random.Random, hours: int, addresses: int = 1) -> list[dict[str, Any]]:
    """Rows of `demand_period` by hours: A in most, C, Z, which no model has, and B in the first hour alone."""
    rows = []
    for hour in range(hours):
        routers = [router for router in "ACZ" if router != "A" or rng.random() < 0.9] + ["B"] * (not hour)
        for router in sorted(routers):
            for number in range(addresses):
                rate = float(rng.randrange(1, 100))
                rows.append(
                    {"begun": MONDAY + dt.timedelta(hours=hour), "router": router, "address": f"jobs{number}"}
                    | {"hours": 60, "msg_bytes": None}
                    | dict.fromkeys(("mean", "p50", "p95", "p99", "max", "busy"), rate)
                )
    return rows


def write_periods(folder: Path, rows: Iterable[dict[str, Any]]) -> None:
    for name, table in (("demand_period", rows), ("demand_rate", [])):
        (folder / name).mkdir(parents=True)
        pq.write_table(from_rows(name, table), folder / name / "part-00000.parquet")


def last_periods(rows: Iterable[dict[str, Any]]) -> list[dt.datetime]:
    return sorted({row["begun"] for row in rows})[-MOST_PERIODS:]


@pytest.mark.parametrize("hours", [0, 4, MOST_PERIODS + 30])
def test_of_a_history_only_the_last_periods_are_taken(spark: SparkSession, tmp_path: Path, hours: int) -> None:
    rows = long_history(random.Random(hours), hours)
    write_periods(tmp_path, rows)
    found = RecentPeriods.of(spark.read.parquet(str(tmp_path / "demand_period")), "p95")
    wanted = ("begun", "router", "address", "p95", "msg_bytes")
    assert list(found.rows) == last_periods(rows)
    assert {begun: list(each) for begun, each in found.rows.items()} == {
        begun: [{name: row[name] for name in wanted} for row in rows if row["begun"] == begun] for begun in found.rows
    }
    assert found.routers == {row["router"] for row in rows}
    model = triangle()
    assert found.watched(model) == {
        router: {row["begun"] for row in rows if row["router"] == router and row["begun"] in found.rows}
        for router in "ABC"
        if router in found.routers
    }


@pytest.mark.parametrize("hours", [4, MOST_PERIODS + 30])
def test_routers_that_were_not_watched_in_the_last_periods_are_found(tmp_path: Path, hours: int) -> None:
    rows = long_history(random.Random(hours), hours)
    write_periods(tmp_path, rows)
    last = last_periods(rows)
    watched = {
        router: len({row["begun"] for row in rows if row["router"] == router and row["begun"] in last})
        for router in "ABC"
    }
    expected = {router: count for router, count in watched.items() if count < len(last)}
    assert "A" in expected or hours == 4
    assert gaps(tmp_path, triangle()) == (expected, len(last))


def test_gaps_of_a_long_history_take_less_memory_than_its_rows(tmp_path: Path) -> None:
    rows = long_history(random.Random(1), 400, addresses=20)
    write_periods(tmp_path, rows)
    tracemalloc.start()
    gaps(tmp_path, triangle())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 * len(rows)


def test_the_busy_hour_is_found_though_some_router_was_not_watched_in_it(spark: SparkSession, tmp_path: Path) -> None:
    write_history(tmp_path, steady(without=lambda router, hour: router == "C" and hour % 168 == BUSY, weeks=1))
    calendar = Calendar(bucket_s=3600, period_s=7 * 86400, offset_s=4 * 86400)
    rows = periods_of(read_history(spark, tmp_path, calendar), calendar).toArrow().to_pylist()
    found = {each["router"]: (each["busy"], each["hours"]) for each in rows}
    assert found == {"A": (10.0, 168), "C": (5.0, 167)}


def test_too_few_weeks_of_all_routers_are_an_error_that_names_one(spark: SparkSession, tmp_path: Path) -> None:
    write_history(tmp_path / "rates", steady(without=lambda router, hour: router == "C" and hour >= 336, weeks=4))
    words = "2 weeks in which every router was watched: `C` was in 2 of 4; expected 3 at least; in a model without `C`"
    with pytest.raises(RunError, match=words):
        forecast(spark, tmp_path / "rates", triangle(), tmp_path / "out", Wanted(outlook=ForecastSettings(horizon=9)))


def test_an_hour_without_messages_whose_size_is_told_is_no_error(spark: SparkSession, tmp_path: Path) -> None:
    """As whoever makes a history up rounds a low rate: no message, and still a size."""
    rows = [row(MONDAY + dt.timedelta(hours=hour), 3600, "A", "jobs", 0) for hour in range(168)]
    write_history(tmp_path, [*rows, *({**each, "address": "", "msg_bytes": None} for each in rows)])
    calendar = Calendar(bucket_s=3600, period_s=7 * 86400, offset_s=4 * 86400)
    (found,) = periods_of(read_history(spark, tmp_path, calendar), calendar).toArrow().to_pylist()
    assert (found["max"], found["msg_bytes"]) == (0.0, None)


# Bands


def test_so_many_of_the_next_periods_are_within_the_band(spark: SparkSession) -> None:
    rng = random.Random(11)
    outlook = ForecastSettings(horizon=3, confidence=0.9, limit=1.0)
    series, last = [], []
    for key in range(1500):
        slope, level, noise = rng.uniform(-0.1, 0.1), rng.uniform(0, 2), rng.uniform(0.01, 0.5)
        series += [(key, x, level + slope * x + rng.gauss(0, noise)) for x in (-7, -6, -5, -3, -2, -1, 0)]
        last.append(level + slope * 3 + rng.gauss(0, noise))
    frame = spark.createDataFrame(series, "key int, x int, y double")
    rows = {each["key"]: each for each in trends(frame, ["key"], periods=7, outlook=outlook).toArrow().to_pylist()}
    inside = sum(rows[key]["low"] <= value <= rows[key]["high"] for key, value in enumerate(last))
    assert 0.88 * 1500 < inside < 0.92 * 1500
    for each in rows.values():
        steps = [each["earliest"], each["full_in"], each["latest"]]
        known = [step for step in steps if step is not None]
        assert each["low"] <= each["expected"] <= each["high"]
        assert each["periods"] == 7
        if each["growth"] > 0:
            assert known == sorted(known), "the band is round the line"
            assert steps[len(known) :] == [None] * (3 - len(known)) or steps[: 3 - len(known)] != [None]


def test_a_link_that_is_full_and_gets_less_needs_more_capacity_all_the_same(spark: SparkSession) -> None:
    lines = {"falls": (1.3, -0.04), "falls little": (1.3, -0.01), "rises": (0.5, 0.2), "is calm": (0.5, -0.01)}
    series = [(name, x, level + slope * x) for name, (level, slope) in lines.items() for x in (-3, -2, -1, 0)]
    frame = spark.createDataFrame(series, "key string, x int, y double")
    outlook = ForecastSettings(horizon=10, confidence=0.9, limit=1.0)
    found = trends(frame, ["key"], periods=4, outlook=outlook).toArrow().to_pylist()
    needs = {each["key"]: each["upgrade"] for each in found}
    assert needs == pytest.approx({"falls": 1.3, "falls little": 1.3, "rises": 2.5, "is calm": None})


# What there is too little of


def test_a_forecast_that_is_ended_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    write_history(tmp_path / "rates", growing())
    write_model(triangle(), tmp_path / "model")
    before = {path.name for path in tmp_path.iterdir()}
    is_over = threading.Event()

    def end() -> None:
        while not list(tmp_path.glob(".outlook.*")) and not is_over.wait(0.01):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    ending = threading.Thread(target=end)
    ending.start()
    words = ["whatif", "forecast", str(tmp_path / "rates"), "--model", str(tmp_path / "model")]
    before_signal = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # for one that comes too late
    try:
        done = CliRunner().invoke(main, [*words, "-o", str(tmp_path / "outlook")])
    finally:
        is_over.set()
        ending.join()
        signal.signal(signal.SIGTERM, before_signal)
    assert done.exit_code == 128 + signal.SIGTERM
    assert {path.name for path in tmp_path.iterdir()} == before


def test_a_history_that_is_none_is_named_with_what_it_lacks(tmp_path: Path) -> None:
    write_history(tmp_path, growing()[:5])
    file = next((tmp_path / "address_rate").iterdir())
    pq.write_table(pq.read_table(file).rename_columns({"router": "node"}), file)
    with pytest.raises(RunError, match=r"part-.*: no column `router`; expected the columns begun, ended, router, "):
        check(tmp_path, triangle(), tmp_path / "out")
    write_history(tmp_path / "other", growing()[:5])
    other = next((tmp_path / "other" / "address_rate").iterdir())
    for name, kind in (("ended", pa.timestamp("us")), ("messages", pa.string())):
        table = pq.read_table(other)
        at = table.column_names.index(name)
        # Beside a file that is as it should be, and comes first.
        pq.write_table(table.set_column(at, name, table.column(name).cast(kind)), other.with_name("z.parquet"))
        words = rf"z\.parquet: error: column `{name}` is of type {re.escape(str(kind))}; expected a "
        with pytest.raises(RunError, match=words):
            check(tmp_path / "other", triangle(), tmp_path / "out")
    file.write_bytes(b"PAR1")
    with pytest.raises(ParquetFileError, match=r"part-.*: cannot be read: .*; expected a whole file of Parquet"):
        check(tmp_path, triangle(), tmp_path / "out")


def test_failures_and_costs_that_cannot_be_are_told_before_the_history_is_read(tmp_path: Path) -> None:
    write_model(triangle(), tmp_path / "model")
    directed = attrs.evolve(triangle().links[0], cost_back=9)
    write_model(attrs.evolve(triangle(), links=[directed, *triangle().links[1:]]), tmp_path / "directed")
    for model, fail, words in (
        ("model", "lnks:1", "--fail: `lnks:1`; expected such as links:1, "),
        ("model", "srlg", "`srlg`: the model has no group of kind srlg"),
        ("directed", "links:1", "link A--B has another cost in each direction"),
    ):
        asked = ["forecast", str(tmp_path / "none"), "--model", str(tmp_path / model), "-o", str(tmp_path / "out")]
        done = CliRunner().invoke(main, ["whatif", *asked, "--fail", fail])
        assert done.exit_code == 2
        assert words in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["directed", "model"]


def test_more_scenarios_than_a_run_may_have_are_told_before_trends_are_computed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_history(tmp_path / "rates", growing())
    wanted = Wanted(outlook=ForecastSettings(horizon=9), families="links:1")
    one = len(Request(families="links:1").plan([("base", triangle())]))
    monkeypatch.setattr(scenario_plan, "MAX_SCENARIOS", LEAST * one - 1)
    with pytest.raises(PlanError, match=f"--fail: {LEAST * one} scenarios; expected at most {LEAST * one - 1}: fewer"):
        check(tmp_path / "rates", triangle(), tmp_path / "out", families="links:1")
    monkeypatch.setattr(scenario_plan, "MAX_SCENARIOS", WEEKS * one - 1)
    told: list[str] = []
    with pytest.raises(PlanError, match=f"--fail: {WEEKS * one} scenarios; expected at most {WEEKS * one - 1}: fewer"):
        forecast(
            spark, tmp_path / "rates", triangle(), tmp_path / "out", wanted,
            on_progress=lambda words, _done, _total: told.append(words),
        )  # fmt: skip
    assert told == ["reading the history"]
    assert [path.name for path in tmp_path.iterdir()] == ["rates"]


def test_what_is_missing_is_said(spark: SparkSession, tmp_path: Path) -> None:
    model = triangle()
    with pytest.raises(
        RunError, match="it has no history of addresses; expected a folder that `amqp-mesh whatif watch"
    ):
        check(tmp_path, model, tmp_path / "out")
    write_history(tmp_path / "rates", [each for each in growing() if each["begun"] < MONDAY + dt.timedelta(weeks=2)])
    bare = Model(routers=model.routers, links=[LinkEdge(id="A--B", a="A", b="B")])
    with pytest.raises(RunError, match=r"^error: no link of the model has a capacity"):
        check(tmp_path / "rates", bare, tmp_path / "out")
    write_model(bare, tmp_path / "bare")
    words = ["forecast", str(tmp_path / "rates"), "--model", str(tmp_path / "bare"), "-o", str(tmp_path / "out")]
    asked = CliRunner().invoke(main, ["whatif", *words])
    assert asked.exit_code == 2
    assert f"Error: {tmp_path / 'bare'}: no link of the model has a capacity; `amqp-mesh whatif" in asked.stderr
    with pytest.raises(RunError, match="it exists and has other contents"):
        check(tmp_path / "rates", model, tmp_path / "rates")
    words = r"2 whole weeks in the history; expected 3 at least; a week is whole if 135 of its 168 hours \(80%\)"
    with pytest.raises(RunError, match=words):
        forecast(spark, tmp_path / "rates", model, tmp_path / "out", Wanted(outlook=ForecastSettings(horizon=9)))
    long = [
        row(MONDAY + dt.timedelta(hours=3 * at), 3 * 3600, "A", word, 9) for at in range(8) for word in ("", "jobs")
    ]
    write_history(tmp_path / "long", long)
    words = "0 whole weeks in the history: nothing entered in any hour that .* longer than two hours count for nothing"
    with pytest.raises(RunError, match=words):
        forecast(spark, tmp_path / "long", model, tmp_path / "out", Wanted(outlook=ForecastSettings(horizon=9)))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bare", "long", "rates"]


def refused(folder: Path, table: pa.Table, *, row_group_size: int | None = None) -> str:
    """What is said of a history of this table, beside a file that is sound."""
    write_history(folder, growing()[:6])
    pq.write_table(table, folder / "address_rate" / "z.parquet", row_group_size=row_group_size)
    with pytest.raises(RunError) as caught:
        check(folder, triangle(), folder / "out")
    return str(caught.value)


def some(number: int = 6, **changed: Any) -> list[dict[str, Any]]:
    """Rows of a history, the last one changed."""
    rows = growing()[:number]
    return [*rows[:-1], {**rows[-1], **changed}]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"messages": -3}, "row 5, counted from 0: `messages` is -3; expected a number from 0"),
        ({"msg_bytes": -1.0}, "row 5, counted from 0: `msg_bytes` is -1.0; expected a number from 0"),
        ({"msg_bytes": float("nan")}, "row 5, counted from 0: `msg_bytes` is nan; expected a number from 0"),
        ({"address": None}, "row 5, counted from 0: `address` is null; expected an address, or the empty text in the"),
        ({"begun": None}, "row 5, counted from 0: `begun` is null; expected a moment with time zone"),
        ({"messages": None}, "row 5, counted from 0: `messages` is null; expected a number from 0"),
    ],
)
@pytest.mark.parametrize("row_group_size", [None, 2])
def test_a_value_that_cannot_be_counted_is_named_with_its_row(
    changed: dict[str, Any], expected: str, row_group_size: int | None, tmp_path: Path
) -> None:
    schema = pa.schema([field.with_nullable(True) for field in from_rows("address_rate", ()).schema])
    table = pa.Table.from_pylist(some(**changed), schema)
    assert f"z.parquet: error: {expected}" in refused(tmp_path, table, row_group_size=row_group_size)


def test_numbers_of_each_type_are_looked_at(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(some(messages=-3), from_rows("address_rate", ()).schema)
    at = table.column_names.index("messages")
    for number, kind in enumerate((pa.int32(), pa.float64(), pa.decimal128(30, 2))):
        other = table.set_column(at, "messages", table.column("messages").cast(kind))
        assert "row 5, counted from 0: `messages` is -3" in refused(tmp_path / str(number), other)


def test_what_a_history_lacks_is_said_with_what_is_meant(tmp_path: Path) -> None:
    table = from_rows("address_rate", growing()[:6])
    words = (
        "no column `messages`, but `message`; expected the columns begun, ended, router, address, messages, msg_bytes"
    )
    renamed = table.rename_columns([name.replace("messages", "message") for name in table.column_names])
    assert f"{words}; did you mean `messages`?" in refused(tmp_path / "renamed", renamed)
    nothing = pa.table({name: pa.nulls(0) for name in table.column_names})
    assert "z.parquet: error: the file is empty; expected rows with" in refused(tmp_path / "nothing", nothing)
    at = table.column_names.index("msg_bytes")
    assert "column `msg_bytes` has no values; expected a number" in refused(
        tmp_path / "null", table.set_column(at, "msg_bytes", pa.nulls(len(table)))
    )
    write_history(tmp_path / "empty", [])
    with pytest.raises(RunError, match=r"address_rate: error: the history is empty; expected a folder that"):
        check(tmp_path / "empty", triangle(), tmp_path / "out")
    write_history(tmp_path / "parts", [each for each in growing()[:60] if each["address"]])
    words = "no row has an empty `address`; expected for each interval of a router a row of all that entered there"
    with pytest.raises(RunError, match=words):
        check(tmp_path / "parts", triangle(), tmp_path / "out")
    with pytest.raises(RunError, match=f"it is the table itself; expected the folder above: {tmp_path / 'parts'}"):
        check(tmp_path / "parts" / "address_rate", triangle(), tmp_path / "out")
    (tmp_path / "parts" / "address_rate").rename(tmp_path / "loose")
    with pytest.raises(
        RunError, match="files of the table are there, and not its folder; expected the folder in which"
    ):
        check(tmp_path / "loose", triangle(), tmp_path / "out")


def test_a_history_of_another_mesh_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    rows = growing()
    write_history(tmp_path / "other", ({**each, "router": f"X{each['router']}"} for each in rows))
    with pytest.raises(RunError, match="none of its routers is in the model: `XA`, `XC`, `XZ`; expected a history of"):
        check(tmp_path / "other", triangle(), tmp_path / "out")
    last = MONDAY + dt.timedelta(weeks=WEEKS)  # of which too little was watched
    write_history(tmp_path / "few", [each for each in rows if each["router"] == "Z" or each["begun"] >= last])
    words = "none of the routers with whole weeks is in the model: `Z`; expected a history of the mesh"
    with pytest.raises(RunError, match=words):
        forecast(spark, tmp_path / "few", triangle(), tmp_path / "out", Wanted(outlook=ForecastSettings(horizon=9)))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["few", "other"]


def test_the_help_says_that_the_model_of_a_run_will_do() -> None:
    told = " ".join(CliRunner().invoke(main, ["whatif", "forecast", "--help"], terminal_width=200).stdout.split())
    assert "--model MODEL|RUN" in told
    assert "or by `run`, whose model is used" in told
