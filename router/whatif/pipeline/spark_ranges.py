"""Ranges of scenarios as partitions of a DataFrame, without looking at its rows.

Spark's own `repartitionByRange` runs all of a query once more to see where its rows are. Here that is known: numbers of
scenarios have no gaps.
"""

from __future__ import annotations

import math
from typing import Final

from pyspark.sql import DataFrame

from router.whatif.pipeline.spark_session import functions_of

RANGE_SCENARIOS: Final = 250_000
"""Maximum number of scenarios in a partition of rows that are few for each scenario."""
FEWEST_SCENARIOS: Final = 2_048
"""Minimum number of scenarios in a partition, even where some cores are left without one."""


def by_range(rows: DataFrame, scenarios: int, cores: int, *, most: int = RANGE_SCENARIOS) -> DataFrame:
    """Put rows into as many partitions as there are ranges, the first range first.

    Args:
        rows: rows with a column `scenario`.
        scenarios: number of scenarios, numbered from 0.
        cores: number of cores that shall have something to do.
        most: maximum number of scenarios in a partition.
    """
    count = min(math.ceil(scenarios / min(most, FEWEST_SCENARIOS)), max(2 * cores, math.ceil(scenarios / most)))
    sql = functions_of(rows)
    place = sql.floor(sql.col("scenario") / sql.lit(math.ceil(scenarios / count))).cast("int")
    return rows.repartitionById(count, place)
