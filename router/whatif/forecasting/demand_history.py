"""Demand matrices of a history of counters: by hour, then by period such as a week. All of it is done by Spark.

An interval that lies in two hours gives each of them its share. The counters are differences of readings, so nothing
between two readings of a router is missing, and a row that is there twice while files are put together counts once.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from router.whatif.formats.history_file_names import history_files
from router.whatif.formats.parquet_file import parquet_schema
from router.whatif.pipeline.spark_session import functions_of, window_of
from router.whatif.pipeline.table_files import address_for_spark
from router.whatif.pipeline.table_layouts import ADDRESS_RATE

SECOND: Final = 1_000_000
"""Times are microseconds since 1970."""
WATCHED: Final = 0.5
"""Least share of an hour."""
WHOLE: Final = 0.8
"""Least share of the hours of a period."""
MOMENT: Final = "a moment with time zone"
TEXT: Final = "text"
NUMBER: Final = "a number"
COLUMNS: Final = {
    "begun": MOMENT, "ended": MOMENT, "router": TEXT, "address": TEXT, "messages": NUMBER, "msg_bytes": NUMBER,
}  # fmt: skip
"""Columns of a history that are used, with their types."""
PERCENTILES: Final = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


@attrs.frozen(kw_only=True)
class Calendar:
    """Parts of time. A bucket is what the text calls an hour."""

    bucket_s: int
    period_s: int
    """Length of a period, a multiple of `bucket_s`, seconds."""
    offset_s: int = 0
    """Beginning of some period, seconds since 1970."""


CALENDARS: Final = {
    # The first Monday of 1970 was the fifth of January.
    "week": Calendar(bucket_s=3600, period_s=7 * 86400, offset_s=4 * 86400),
    "day": Calendar(bucket_s=3600, period_s=86400),
    "hour": Calendar(bucket_s=60, period_s=3600),
}
"""Calendars by the name of their period."""


def read_history(session: SparkSession, folder: Path, calendar: Calendar) -> DataFrame:
    """Make demands of what `whatif watch --addresses` has written: a row for each hour in which the router was watched.

    Args:
        session: of Spark.
        folder: with the table `address_rate`.
        calendar: hours and periods.
    Returns: `bucket` and `period`, the numbers of hour and period; `router`, `address`, `msgs_per_s` and `msg_bytes`.
    """
    counted = _read(session, folder / ADDRESS_RATE.name).dropDuplicates(list(ADDRESS_RATE.key))
    sql = functions_of(counted)
    pieces = _pieces(counted, calendar)
    is_all = sql.col("address") == ""
    watched = pieces.where(is_all).groupBy("bucket", "router").agg(sql.sum("micros").alias("watched"))
    watched = watched.where(sql.col("watched") >= WATCHED * calendar.bucket_s * SECOND)
    sizes = sql.sum(sql.col("messages") * sql.col("msg_bytes"))
    counts = (
        pieces.where(~is_all)
        .groupBy("bucket", "router", "address")
        .agg(
            sql.sum("messages").alias("messages"),
            _mean_size(sql, sizes, sql.col("messages")).alias("msg_bytes"),
        )
    )
    # Each demand has a row in each hour in which its router was watched, though nothing came.
    demands = counts.select("router", "address").distinct()
    grid = watched.join(demands, "router").join(counts, ["bucket", "router", "address"], "left")
    rate = sql.coalesce("messages", sql.lit(0.0)) * sql.lit(float(SECOND)) / sql.col("watched")
    period = sql.floor((sql.col("bucket") * calendar.bucket_s - calendar.offset_s) / sql.lit(calendar.period_s))
    return grid.select("bucket", "router", "address", rate.alias("msgs_per_s"), "msg_bytes", period.alias("period"))


def _read(session: SparkSession, place: Path) -> DataFrame:
    """Read a folder of files, those whose columns have other types by themselves: Spark reads all by one schema."""
    alike: dict[tuple[pa.DataType, ...], list[str]] = {}
    for file in history_files(place):
        schema = parquet_schema(file)
        alike.setdefault(tuple(schema.field(name).type for name in COLUMNS), []).append(address_for_spark(file))
    frames = [
        _typed(session.read.parquet(*files), dict(zip(COLUMNS, types, strict=True))) for types, files in alike.items()
    ]
    return functools.reduce(lambda one, other: one.union(other), frames)


def _typed(frame: DataFrame, types: Mapping[str, pa.DataType]) -> DataFrame:
    """The columns that are used, with the types that those of other files have.

    Args:
        frame: of files.
        types: of their columns, by name.
    """
    sql = functions_of(frame)
    columns = []
    for name, what in COLUMNS.items():
        column = sql.col(name)
        if what == NUMBER:
            column = column.cast("double")
        elif getattr(types[name], "unit", "") == "ns":  # as pandas writes moments: Spark takes them for whole numbers
            column = _moment(frame, name)
        columns.append(column.alias(name))
    return frame.select(*columns)


def _moment(frame: DataFrame, name: str) -> Any:
    """Moments of nanoseconds since 1970."""
    sql = functions_of(frame)
    return sql.timestamp_micros(sql.expr(f"{name} div 1000"))


def rates_of(grid: DataFrame, calendar: Calendar) -> DataFrame:
    """Make the table `demand_rate` of what `read_history` has made."""
    sql = functions_of(grid)
    return grid.where(sql.col("msgs_per_s") > 0).select(
        sql.timestamp_micros(sql.col("bucket") * (calendar.bucket_s * SECOND)).alias("begun"),
        "router",
        "address",
        "msgs_per_s",
        "msg_bytes",
    )


def _pieces(counted: DataFrame, calendar: Calendar) -> DataFrame:
    """Cut intervals at the hours, into `bucket`, `micros` and their share of the messages."""
    sql = functions_of(counted)
    bucket_us = calendar.bucket_s * SECOND
    begun, ended = (sql.unix_micros(sql.col(name)) for name in ("begun", "ended"))
    timed = counted.select("router", "address", "messages", "msg_bytes", begun.alias("from"), ended.alias("to"))
    # Of one that is longer nobody knows to which hour its messages belong.
    timed = timed.where((sql.col("to") > sql.col("from")) & (sql.col("to") - sql.col("from") <= 2 * bucket_us))
    first, last = (sql.floor(moment / sql.lit(bucket_us)) for moment in (sql.col("from"), sql.col("to") - 1))
    cut = timed.withColumn("bucket", sql.explode(sql.sequence(first, last)))
    low = sql.greatest("from", sql.col("bucket") * bucket_us)
    high = sql.least("to", (sql.col("bucket") + 1) * bucket_us)
    share = (high - low) / (sql.col("to") - sql.col("from"))
    return cut.select(
        "bucket",
        "router",
        "address",
        (high - low).alias("micros"),
        (sql.col("messages") * share).alias("messages"),
        "msg_bytes",
    )


def _mean_size(sql: Any, sizes: Any, weights: Any) -> Any:
    """Mean of sizes, bytes, of those rows that have one; null where none has, or all weights are 0."""
    return sql.try_divide(sizes, sql.sum(sql.when(sql.col("msg_bytes").isNotNull(), weights)))


def periods_of(grid: DataFrame, calendar: Calendar) -> DataFrame:
    """Sum up each period of each router that is whole: the table `demand_period`, with `period`, its number.

    Args:
        grid: as `read_history` makes it: all demands of a router have rows of the same hours.
        calendar: hours and periods.
    """
    sql = functions_of(grid)
    rate = sql.col("msgs_per_s")
    demand = window_of(grid).partitionBy("period", "router", "address")
    watched = grid.withColumn("hours", sql.count("*").over(demand)).withColumn("mean", sql.avg(rate).over(demand))
    whole = watched.where(sql.col("hours") >= WHOLE * calendar.period_s / calendar.bucket_s)
    found = (
        whole.join(sql.broadcast(_busiest(whole)), "period")
        .groupBy("period", "router", "address")
        .agg(
            sql.count("*").alias("hours"),
            sql.avg(rate).alias("mean"),
            *(sql.percentile(rate, sql.lit(share)).alias(name) for name, share in PERCENTILES.items()),
            sql.max(rate).alias("max"),
            sql.max(sql.when(sql.col("bucket") == sql.col("busiest"), rate)).alias("busy"),
            _mean_size(sql, sql.sum(rate * sql.col("msg_bytes")), rate).alias("msg_bytes"),
        )
    )
    begun_s = sql.col("period") * calendar.period_s + calendar.offset_s
    return found.withColumn("busy", sql.coalesce("busy", "mean")).withColumn(
        "begun", sql.timestamp_micros(begun_s * SECOND)
    )


def _busiest(whole: DataFrame) -> DataFrame:
    """Find the busy hour of each period: `period` and `busiest`. A router not watched in an hour counts as its mean."""
    sql = functions_of(whole)
    means = whole.groupBy("period", "router", "address").agg(sql.max("mean").alias("mean"))
    usual = means.groupBy("period").agg(sql.count("*").alias("demands"), sql.sum("mean").alias("usual"))
    hours = whole.groupBy("period", "bucket").agg(
        sql.count("*").alias("known"), sql.sum("msgs_per_s").alias("total"), sql.sum("mean").alias("known_usual")
    )
    unknown = sql.when(sql.col("known") < sql.col("demands"), sql.col("usual") - sql.col("known_usual")).otherwise(0.0)
    totals = hours.join(sql.broadcast(usual), "period").withColumn("total", sql.col("total") + unknown)
    # The first of equal ones.
    busiest = sql.max_by("bucket", sql.struct("total", -sql.col("bucket")))
    return totals.groupBy("period").agg(busiest.alias("busiest"))


def last_sizes(periods: DataFrame) -> DataFrame:
    """Size of the messages of each demand in the last period that has it."""
    sql = functions_of(periods)
    window = window_of(periods).partitionBy("router", "address").orderBy(sql.col("period").desc())
    known = periods.where(sql.col("msg_bytes").isNotNull()).withColumn("rank", sql.row_number().over(window))
    return known.where(sql.col("rank") == 1).select("router", "address", "msg_bytes")
