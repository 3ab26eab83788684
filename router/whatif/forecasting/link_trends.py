"""Trends: straight lines through the periods of a history, their error bands, and when they reach a limit. By Spark.

The band is that of a new period, not of the line: it has the scatter of periods round the line, and what is not known
of the line itself, which grows with the distance from the history.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
from pyspark.sql import Column, DataFrame

from router.whatif.forecasting.student_t import t_of_confidence
from router.whatif.pipeline.spark_session import functions_of, window_of

LEAST: Final = 3
"""Periods of which there is an error."""
EXACT: Final = 1e-18
"""Scatter by the squares of all values, below which it is that of rounding."""


@attrs.frozen(kw_only=True)
class ForecastSettings:
    """Horizon, confidence and limit of a forecast."""

    horizon: int
    """Periods."""
    confidence: float = 0.9
    """Confidence level of the prediction band: the share of periods within it."""
    limit: float = 1.0
    """Utilisation at which a link is full."""


@attrs.frozen
class _Line:
    """A line and its band, as columns of a DataFrame."""

    sql: Any
    """Functions of columns."""
    t: Column
    """Standard errors in half of the band."""

    def at(self, x: Column) -> Column:
        """The line, so many periods after the last one."""
        value: Column = self.sql.col("level") + self.sql.col("growth") * x
        return value

    def margin(self, x: Column) -> Column:
        """Half of the width of the band."""
        away = x - self.sql.col("middle")
        share = away * away / self.sql.col("spread") + 1 / self.sql.col("periods") + 1
        value: Column = self.t * self.sql.col("error") * self.sql.sqrt(share)
        return value


def trends(values: DataFrame, keys: Sequence[str], *, periods: int, outlook: ForecastSettings) -> DataFrame:
    """Fit a line for each key.

    Args:
        values: with `x`, the period, 0 being the last one and those before negative; and `y`.
        keys: columns that tell the series apart.
        periods: at most in a series.
        outlook: of the forecast.
    Returns: the columns `periods` to `high` of forecasts, `full_in`, `earliest`, `latest`, and `upgrade`: the factor of
        the limit that the upper end of the band stays within until the horizon; null where it does so as it is.
    """
    sql = functions_of(values)
    y, x = sql.col("y"), sql.col("x").cast("double")
    sums = values.groupBy(*keys).agg(
        sql.count("*").alias("periods"),
        sql.avg(x).alias("middle"),
        sql.avg(y).alias("mean"),
        sql.regr_sxx(y, x).alias("spread"),
        sql.regr_sxy(y, x).alias("both"),
        sql.regr_syy(y, x).alias("scatter"),
        sql.sum(y * y).alias("squares"),
    )
    line = _Line(sql, sql.get(sql.array(*map(sql.lit, _factors(outlook.confidence, periods))), sql.col("periods")))
    growth = sql.col("both") / sql.col("spread")
    rest = sql.col("scatter") - sql.col("growth") * sql.col("both")
    variance = sql.when(rest > EXACT * sql.col("squares"), rest / (sql.col("periods") - 2)).otherwise(0.0)
    fitted = (
        sums.where(sql.col("periods") >= LEAST)
        .withColumn("growth", growth)
        .withColumn("level", sql.col("mean") - sql.col("growth") * sql.col("middle"))
        .withColumn("error", sql.sqrt(variance))
    )
    end = sql.lit(outlook.horizon)
    # The upper end of the band is convex: it is highest at one of its ends.
    need = sql.greatest(*(line.at(step) + line.margin(step) for step in (sql.lit(0), end))) / sql.lit(outlook.limit)
    steps = sql.sequence(sql.lit(0), end)

    def first(sign: int) -> Column:
        """The first period in which the line, or an end of its band, is at the limit."""
        reached = sql.filter(steps, lambda step: line.at(step) + sign * line.margin(step) >= outlook.limit)
        found: Column = sql.array_min(reached).cast("bigint")
        return found

    return fitted.select(
        *keys,
        "periods",
        "level",
        "growth",
        "error",
        line.at(end).alias("expected"),
        (line.at(end) - line.margin(end)).alias("low"),
        (line.at(end) + line.margin(end)).alias("high"),
        first(0).alias("full_in"),
        first(1).alias("earliest"),
        first(-1).alias("latest"),
        sql.when(need > 1, need).alias("upgrade"),
    )


def _factors(confidence: float, periods: int) -> list[float]:
    """Quantiles of Student's t by the number of periods of a series; 0 for fewer periods than LEAST."""
    return [t_of_confidence(confidence, count - 2) if count >= LEAST else 0.0 for count in range(periods + 1)]


def soonest(found: DataFrame) -> DataFrame:
    """Choose for each directed link the row without a failure, and the row of the failure that fills it first.

    Args:
        found: trends by `link`, `src`, `dst` and `failure`, the number of the failure, 0 for none.
    """
    sql = functions_of(found)
    order = [
        sql.col("full_in").asc_nulls_last(),
        sql.col("earliest").asc_nulls_last(),
        sql.col("expected").desc(),
        sql.col("failure"),
    ]
    by_kind = found.withColumn("is_failure", sql.col("failure") > 0)
    window = window_of(found).partitionBy("link", "src", "is_failure").orderBy(*order)
    return by_kind.withColumn("rank", sql.row_number().over(window)).where(sql.col("rank") == 1).drop("rank")


def number_of(frame: DataFrame, column: str, numbers: Mapping[str, int]) -> Column:
    """Number of what a column names; null for other names."""
    sql = functions_of(frame)
    pairs = [sql.lit(value) for name, number in numbers.items() for value in (name, number)]
    found: Column = sql.create_map(*pairs)[sql.col(column)]
    return found
