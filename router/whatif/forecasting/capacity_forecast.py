"""The forecast as a whole: from a history of counters to when which link will be full, in which failure.

The history becomes demands by period, these are played through all failures, and the trend of each link in each failure
says when it is full, and how much more capacity would keep it from that.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from router.whatif.analysis.derived_tables import write_answers
from router.whatif.forecasting.demand_history import (
    CALENDARS,
    WHOLE,
    Calendar,
    last_sizes,
    periods_of,
    rates_of,
    read_history,
)
from router.whatif.forecasting.history_check import check_history, no_router_known
from router.whatif.forecasting.link_trends import LEAST, ForecastSettings, number_of, soonest, trends
from router.whatif.forecasting.models_with_forecast_demands import with_measured
from router.whatif.formats.folder_replacement import place_of, replace_folder
from router.whatif.formats.model_folder import write_model
from router.whatif.model.mesh_model import Model
from router.whatif.model.value_kinds import amount_of, shown
from router.whatif.pipeline import run as runs
from router.whatif.pipeline.chunk_evaluator import ALL_LOADS, NO_PAIRS
from router.whatif.pipeline.output_place import check_output_place
from router.whatif.pipeline.run_folder import write_variants
from router.whatif.pipeline.run_staging import RunError, run_error
from router.whatif.pipeline.spark_engine import write
from router.whatif.pipeline.spark_masters import SparkAddress
from router.whatif.pipeline.spark_session import functions_of, jobs, name_job
from router.whatif.pipeline.spark_tables import described
from router.whatif.pipeline.table_files import address_for_spark, read_table
from router.whatif.pipeline.table_layouts import (
    DEMAND_FORECAST,
    DEMAND_PERIOD,
    DEMAND_RATE,
    LINK_FORECAST,
    SCENARIO,
    SCENARIO_LOAD,
    Layout,
)
from router.whatif.scenarios.run_request import Request
from router.whatif.wording import BASE, DEFAULT_FAMILIES

RUN: Final = "run"
"""Folder with the run in which each period is a variant."""
EXPECTED: Final = "expected"
"""Folder of the model with the demands that are expected at the horizon."""
HIGH: Final = "high"
"""Folder of the model with the demands at the upper end of the band."""
HOURS: Final = "hours"
"""Folder that is there meanwhile: all hours, those without messages too."""
LEVELS: Final = ("busy", "mean", "p50", "p95", "p99", "max")
"""Choices of what stands for a period, columns of `demand_period`."""
MOST_PERIODS: Final = 520
"""Maximum number of periods that are played, the last ones of a history, and maximum number to look ahead."""


@attrs.frozen(kw_only=True)
class Wanted:
    """Choices of a forecast: how far, of what, in which failures."""

    outlook: ForecastSettings
    period: str = "week"
    """One of CALENDARS."""
    level: str = "busy"
    """One of LEVELS."""
    families: str = DEFAULT_FAMILIES
    """Failures, as after `--fail`."""

    @property
    def calendar(self) -> Calendar:
        """Hours and periods."""
        return CALENDARS[self.period]


def choose(*, period: str, level: str, horizon: int, limit: float, confidence: float, families: str) -> Wanted:
    """Take the choices of a forecast by their names.

    Args:
        period: `week`, `day` or `hour`: what the trend counts in.
        level: one of LEVELS.
        horizon: periods to look ahead.
        limit: utilisation at which a link is full.
        confidence: so many periods, above 0 and below 1, will be within the band.
        families: of failures, as after `--fail`.
    Raises: ValueError for another *period*, *level*, *horizon*, *limit* or *confidence*.
    """
    for name, value, choices in (("period", period, tuple(CALENDARS)), ("level", level, LEVELS)):
        if value not in choices:
            raise ValueError(f"{name} is {value!r}; expected one of {', '.join(choices)}")
    steps: object = horizon
    if not isinstance(steps, int) or isinstance(steps, bool) or not 1 <= steps <= MOST_PERIODS:
        raise ValueError(f"horizon is {horizon!r}; expected 1 to {MOST_PERIODS} periods")
    for name, amount in (("limit", limit), ("confidence", confidence)):
        if amount_of(amount) is None:
            raise ValueError(f"{name} is {shown(amount)}; expected a number")
    if not limit > 0 or not 0 < confidence < 1:
        raise ValueError(f"limit {limit}, confidence {confidence}; expected both above 0, and confidence below 1")
    return Wanted(
        outlook=ForecastSettings(horizon=horizon, confidence=confidence, limit=limit),
        period=period,
        level=level,
        families=families,
    )


def forecast(
    session: SparkSession,
    history: Path,
    model: Model,
    out: Path,
    wanted: Wanted,
    *,
    address: SparkAddress | None = None,
    on_progress: runs.Progress = runs.silent,
) -> None:
    """Write a forecast into a new folder, or in the place of a forecast.

    Args:
        session: of Spark.
        history: folder that `whatif watch --addresses` writes.
        model: of the mesh; its demands are not used.
        out: the folder, which appears when all is in it.
        wanted: how far, of what, in which failures.
        address: of the session, when it is one of Spark Connect.
        on_progress: told what is being done, how much of it is done, and how much there is.
    Raises: RunError when there is too little of it; ModelError, PlanError, NetworkError, TaskError, OSError.
    """
    check(history, model, out, families=wanted.families)
    out = place_of(out)
    beside = out.parent / f".{out.name}.{secrets.token_hex(4)}"
    beside.mkdir(parents=True)
    try:
        with jobs(session, history), _exact_times(session):
            _Forecast(session, model, beside, wanted, address or SparkAddress(), on_progress).make(history)
        replace_folder(beside, out)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def check(history: Path, model: Model, out: Path, *, families: str = DEFAULT_FAMILIES) -> None:
    """Check whether there can be a forecast, before Spark is started.

    Raises: RunError; ParquetFileError for a file of the history that can't be read; PlanError for failures that can't
        be; NetworkError
    """
    Request(families=families).plan([(str(number), model) for number in range(LEAST)])
    runs.refuse_unplayable(model)
    check_history(history, [router.id for router in model.routers])
    if not model.has_capacities:
        expected = "capacities by `--details` of `whatif import` or `snapshot`"
        raise run_error(None, "no link of the model has a capacity, so none can be full", expected)
    if out.exists() and not (out / LINK_FORECAST.name).is_dir():
        raise run_error(out, "it exists and has other contents", "a new folder, or a forecast to replace")
    check_output_place(out)


def soonest_full(out: Path) -> list[dict[str, Any]]:
    """Rows of `link_forecast` of a forecast, the link that is full first at the beginning."""
    rows: list[dict[str, Any]] = read_table(out, LINK_FORECAST.name).to_pylist()
    never = 10**9
    rows.sort(
        key=lambda row: (
            never if row["full_in"] is None else row["full_in"],
            never if row["earliest"] is None else row["earliest"],
            -row["expected"],
        )
    )
    return rows


def unknown_routers(out: Path, model: Model) -> list[str]:
    """Routers of a forecast's history that the model lacks, so that what entered there is played in no failure."""
    there = set(read_table(out, DEMAND_FORECAST.name).column("router").to_pylist())
    return sorted(there - {router.id for router in model.routers})


def gaps(out: Path, model: Model) -> tuple[dict[str, int], int]:
    """Find routers of the model that were not watched in some periods of a forecast's history.

    Returns: the periods in which each of these was watched; the number of all periods.
    """
    table = read_table(out, DEMAND_PERIOD.name, ["begun", "router"])
    begun = sorted(table.column("begun").unique().to_pylist())[-MOST_PERIODS:]
    known = {router.id for router in model.routers}
    seen = {router for of in (table, read_table(out, DEMAND_RATE.name, ["router"])) for router in _routers_of(of)}
    watched = dict.fromkeys(sorted(seen & known), 0)
    each_once = table.group_by(["begun", "router"]).aggregate([])
    recent = each_once.filter(
        pc.is_in(each_once.column("begun"), pa.array(begun, each_once.schema.field("begun").type))
    )
    for row in recent.column("router").value_counts().to_pylist():
        if row["values"] in known:
            watched[row["values"]] = row["counts"]
    return {router: count for router, count in watched.items() if count < len(begun)}, len(begun)


def _routers_of(table: pa.Table) -> list[str]:
    """Routers in a table with a column `router`, each once."""
    found: list[str] = table.column("router").unique().to_pylist()
    return found


@attrs.frozen(kw_only=True)
class RecentPeriods:
    """Demands of the last MOST_PERIODS periods of a history: those that count, and all that the driver takes of it."""

    rows: Mapping[dt.datetime, Sequence[Mapping[str, Any]]]
    """`router`, `address`, a rate and `msg_bytes` of each demand, by when the period began, the first one first."""
    routers: frozenset[str]
    """Routers of the whole history, also of older periods."""

    @classmethod
    def of(cls, periods: DataFrame, level: str) -> RecentPeriods:
        """Select them.

        Args:
            periods: the table `demand_period`.
            level: column that has the rate.
        """
        sql = functions_of(periods)
        newest = periods.select("begun").distinct().orderBy(sql.desc("begun")).limit(MOST_PERIODS).toArrow()
        rows: dict[dt.datetime, list[Mapping[str, Any]]] = {each: [] for each in sorted(newest.column(0).to_pylist())}
        routers = frozenset(_routers_of(periods.select("router").distinct().toArrow()))
        if rows:
            first = int(next(iter(rows)).timestamp())
            recent = periods.where(sql.unix_seconds("begun") >= first)
            for row in recent.select("begun", "router", "address", level, "msg_bytes").toArrow().to_pylist():
                rows[row["begun"]].append(row)
        return cls(rows=rows, routers=routers)

    def watched(self, model: Model) -> dict[str, set[dt.datetime]]:
        """Beginnings of the periods of each router of the model that is in the history, though it may have none."""
        found: dict[str, set[dt.datetime]] = {router.id: set() for router in model.routers if router.id in self.routers}
        for begun, rows in self.rows.items():
            for row in rows:
                if row["router"] in found:
                    found[row["router"]].add(begun)
        return found


@contextlib.contextmanager
def _exact_times(session: SparkSession) -> Iterator[None]:
    """Let Spark write moments as the tables have them, and not as Hive of old had, and read nanoseconds as numbers."""
    wanted = {
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.legacy.parquet.nanosAsLong": "true",
    }
    before = {name: str(session.conf.get(name)) for name in wanted}
    for name, value in wanted.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            session.conf.set(name, value)


@attrs.frozen
class _Forecast:
    """Makes the parts of a forecast, one after the other."""

    session: SparkSession
    model: Model
    folder: Path
    wanted: Wanted
    address: SparkAddress
    on_progress: runs.Progress

    def make(self, history: Path) -> None:
        """Make all of them. Raises: RunError for too short a history, PlanError for too many failures in all."""
        self.on_progress("reading the history", 0, 0)
        calendar = self.wanted.calendar
        # Written and not cached: of what is cached Spark doesn't adapt the plan.
        name_job(self.session, "what-if: put the history into hours")
        write(read_history(self.session, history, calendar), self._address(HOURS), ())
        hours = self.session.read.parquet(address_for_spark(self.folder / HOURS))
        self._write(rates_of(hours, calendar), DEMAND_RATE)
        self._write(periods_of(hours, calendar), DEMAND_PERIOD)
        shutil.rmtree(self.folder / HOURS)
        recent = RecentPeriods.of(self._read(DEMAND_PERIOD), self.wanted.level)
        numbers = self._numbers(history, recent)
        whole = self._whole(history, recent, numbers)
        self._request.plan([(self._variant(number), self.model) for number in whole.values()])
        self.on_progress("computing the trend of demands", 0, 0)
        expected, high = self._demands(numbers)
        write_model(expected, self.folder / EXPECTED)
        write_model(high, self.folder / HIGH)
        self._play(recent, whole)
        self.on_progress("computing when links are full", 0, 0)
        self._links(whole, last=max(numbers))

    def _numbers(self, history: Path, recent: RecentPeriods) -> dict[Any, int]:
        """Number the periods by when they begin: 0 is the last one, those before are negative.

        Raises: RunError when there are too few.
        """
        calendar = self.wanted.calendar
        begun = list(recent.rows)
        if len(begun) < LEAST:
            raise self._too_few(history, len(begun))
        if recent.routers.isdisjoint(router.id for router in self.model.routers):
            raise no_router_known(history, recent.routers, f"the routers with whole {self.wanted.period}s")
        last = begun[-1]
        return {each: round((each - last).total_seconds() / calendar.period_s) for each in begun}

    def _whole(self, history: Path, recent: RecentPeriods, numbers: dict[Any, int]) -> dict[Any, int]:
        """Take the periods in which every router of the model was watched: in others its demands are not known.

        Raises: RunError when there are too few.
        """
        watched = recent.watched(self.model)
        found = {begun: number for begun, number in numbers.items() if all(begun in each for each in watched.values())}
        if len(found) < LEAST:
            period = self.wanted.period
            least = min(watched, key=lambda router: len(watched[router] & numbers.keys()))
            count = len(watched[least] & numbers.keys())
            message = f"{len(found)} {period}s in which every router was watched: `{least}` was in {count} of "
            expected = f"{LEAST} at least; in a model without `{least}` the others count"
            raise run_error(history, f"{message}{len(numbers)}", expected)
        return found

    def _too_few(self, history: Path, count: int) -> RunError:
        """The error of a history of too few periods, with what makes one whole, and why hours may be missing."""
        period, calendar = self.wanted.period, self.wanted.calendar
        bucket = "minute" if period == "hour" else "hour"
        buckets = calendar.period_s // calendar.bucket_s
        message = f"{count} whole {period}s in the history"
        if not self._read(DEMAND_RATE).head(1):
            long = f"longer than two {bucket}s"
            message += f": nothing entered in any {bucket} that was watched for half of it, and intervals {long} count "
            message += "for nothing"
        least = math.ceil(WHOLE * buckets)
        parts = f"{least} of its {buckets} {bucket}s ({WHOLE:.0%}) were watched"
        return run_error(history, message, f"{LEAST} at least; a {period} is whole if {parts}")

    def _address(self, name: str) -> str:
        return address_for_spark(self.folder / name, is_read=False)

    def _read(self, layout: Layout) -> DataFrame:
        return self.session.read.parquet(address_for_spark(self.folder / layout.name))

    def _write(self, frame: DataFrame, layout: Layout) -> None:
        name_job(self.session, f"what-if: make table {layout.name}")
        sql = functions_of(frame)
        kinds = {pa.int64(): "bigint", pa.float64(): "double"}
        columns = [
            sql.col(each.name).cast(kinds[each.kind]).alias(each.name) if each.kind in kinds else sql.col(each.name)
            for each in layout.columns
        ]
        write(described(frame.select(*columns).orderBy(*layout.key), layout.columns), self._address(layout.name), ())

    def _demands(self, numbers: dict[Any, int]) -> tuple[Model, Model]:
        """Write the trend of each demand. Returns: models with the demands at the horizon."""
        periods = self._read(DEMAND_PERIOD)
        sql = functions_of(periods)
        # By when they begin, which is a number too: the table has no other.
        seconds = sql.unix_seconds("begun")
        known = {str(int(moment.timestamp())): number for moment, number in numbers.items()}
        moments = periods.withColumn("period", seconds).withColumn("at", seconds.cast("string"))
        x = number_of(moments, "at", known)
        values = moments.withColumn("x", x).where(sql.col("x").isNotNull()).withColumn("y", sql.col(self.wanted.level))
        lines = trends(values, ("router", "address"), periods=len(numbers), outlook=self.wanted.outlook)
        found = lines.join(last_sizes(moments), ["router", "address"], "left")
        self._write(found, DEMAND_FORECAST)
        rows = self._read(DEMAND_FORECAST).toArrow().to_pylist()
        return with_measured(self.model, rows, "expected"), with_measured(self.model, rows, "high")

    def _play(self, recent: RecentPeriods, numbers: dict[Any, int]) -> None:
        """Play failures through the demands of each period."""
        level = self.wanted.level
        models = [
            (self._variant(number), with_measured(self.model, recent.rows[begun], level))
            for begun, number in numbers.items()
        ]

        def finish(folder: Path) -> None:
            write_answers(folder, models[-1][1])
            write_variants(folder, models)

        options = runs.Options(
            engine=runs.SPARK,
            pairs=NO_PAIRS,
            loads=ALL_LOADS,
            remote=self.address.remote,
            settings=self.address.settings,
        )
        runs.run(
            models[-1][1],
            self._request,
            self.folder / RUN,
            options,
            on_progress=self.on_progress,
            finish=finish,
            others=models,
        )

    @property
    def _request(self) -> Request:
        return Request(families=self.wanted.families)

    def _variant(self, number: int) -> str:
        return f"period {number}"

    def _links(self, numbers: dict[Any, int], *, last: dt.datetime) -> None:
        """Write when links are full.

        Args:
            numbers: of the periods that were played.
            last: when period 0 began.
        """
        folder = self.folder / RUN
        loads, scenarios = (
            self.session.read.parquet(address_for_spark(folder / layout.name)) for layout in (SCENARIO_LOAD, SCENARIO)
        )
        sql = functions_of(loads)
        failures = scenarios.where(sql.col("variant") == BASE).select(
            sql.col("scenario").alias("failure"), "failed_links", "failed_routers", "group"
        )
        # Of all variants the same scenarios are played, in the same order.
        count = failures.count()
        limited = [link.id for link in self.model.links if link.has_capacity]
        variants = {self._variant(number): number for number in numbers.values()}
        values = (
            loads.where((sql.col("variant") != BASE) & ~sql.col("is_down") & sql.col("link").isin(limited))
            .withColumn("failure", sql.col("scenario") % count)
            .withColumn("x", number_of(loads, "variant", variants))
            .withColumn("y", sql.col("utilisation"))
        )
        keys = ("link", "src", "dst", "failure")
        outlook = self.wanted.outlook
        found = soonest(trends(values, keys, periods=len(numbers), outlook=outlook))
        period_us = self.wanted.calendar.period_s * 1_000_000
        last_us = round(last.timestamp()) * 1_000_000
        full_at = sql.timestamp_micros(sql.lit(last_us) + sql.col("full_in") * period_us)
        whole = found.join(sql.broadcast(failures), "failure").withColumn("full_at", full_at)
        self._write(whole, LINK_FORECAST)
