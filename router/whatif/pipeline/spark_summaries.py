"""Tables that sum up the scenarios of a run, by groups and windows of Spark; `summaries` is the reference.

What comes to the driver is some numbers for each family and address, and ten pairs of each variant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame

from router.whatif.pipeline.play_rows import FAMILY, TABLE, VARIANT
from router.whatif.pipeline.spark_session import functions_of, name_job, window_of
from router.whatif.pipeline.spark_tables import exact_sums
from router.whatif.pipeline.summaries import MOST_PAIR_ROWS, PAIRS, RANKS
from router.whatif.pipeline.table_files import from_rows
from router.whatif.pipeline.table_layouts import (
    ADDRESS_IMPACT,
    ADDRESS_SUMMARY,
    FAMILY_SUMMARY,
    PAIR_IMPACT,
    PAIR_SUMMARY,
    SCENARIO,
)
from router.whatif.scenarios.scenario_plan import Plan
from router.whatif.wording import MAINTENANCE, NOTHING

Row = dict[str, Any]
MEASURES: Final = ("lost_msgs_per_s", "lost_pairs", "max_utilisation")
"""Of which there are percentiles."""
_ENDS: Final = "ends"
_PATH: Final = "path"


class SparkSummaries:
    """Makes the tables.

    Args:
        played: rows in the form of `play_rows`, of all units of work.
        plan: of the run.
    """

    def __init__(self, played: DataFrame, plan: Plan) -> None:
        self._sql = functions_of(played)
        self._window = window_of(played)
        self._session = played.sparkSession
        self._plan = plan
        self._is_rated = any(variant.elements.has_rates for variant in plan.variants)
        self._scenarios = self._table(played, SCENARIO.name, FAMILY)
        self._impacts = self._table(played, ADDRESS_IMPACT.name, VARIANT)
        self._pairs = self._table(played, PAIR_IMPACT.name, VARIANT)

    def _table(self, played: DataFrame, name: str, column: str) -> DataFrame:
        """Rows of one table, with variant or family."""
        rows = played.where(self._sql.col(TABLE) == name)
        return rows.select(f"{name}.*") if name == SCENARIO.name else rows.select(column, f"{name}.*")

    def makers(self) -> dict[str, Callable[[], pa.Table]]:
        """Makers of the tables, by name."""
        return {
            FAMILY_SUMMARY.name: self.families,
            ADDRESS_SUMMARY.name: self.addresses,
            PAIR_SUMMARY.name: self.pairs,
        }

    # Families

    def families(self) -> pa.Table:
        """The table `family_summary`."""
        name_job(self._session, "what-if: sum up scenarios by family")
        sql, keys = self._sql, (VARIANT, FAMILY)
        rows = self._scenarios.withColumn("lost_pairs", sql.col("unreachable_pairs") - sql.col("dead_end_pairs"))
        found: dict[tuple[str, ...], Row] = {}
        for row in _collected(self._counted(rows)):
            found[row[VARIANT], row[FAMILY]] = row
        for row in _collected(self._percentiles(rows)):
            found[row[VARIANT], row[FAMILY]][f"{row['measure']}_p{row['percentile']}"] = row["value"]
        names = ("probability", "mean_lost_msgs_per_s", "mean_unreachable_pairs")
        for each in found.values():
            each.update(dict.fromkeys(names))
        if self._is_rated:
            chance = sql.col("probability")
            values = (chance, chance * sql.col("lost_msgs_per_s"), chance * sql.col("unreachable_pairs"))
            weighed = _stacked(sql, self._weighed(rows), keys, "measure", dict(zip(names, values, strict=True)))
            for row in _collected(exact_sums(weighed, (*keys, "measure"), "value")):
                found[row[VARIANT], row[FAMILY]][row["measure"]] = row["value"]
        return from_rows(FAMILY_SUMMARY.name, found.values())

    def _counted(self, rows: DataFrame) -> DataFrame:
        """Scenarios by family, how many do harm, and the most of each measure."""
        sql = self._sql
        worse = ("starved_publishers", "dead_addresses")
        most = [sql.max(name).alias(f"calm_{name}") for name in worse]
        calm = rows.where(sql.col(FAMILY) == NOTHING).groupBy(VARIANT).agg(*most)
        joined = rows.join(sql.broadcast(calm), VARIANT, "left")
        is_harmful = sql.col("lost_pairs") > 0
        for name in worse:
            is_harmful = is_harmful | (sql.col(name) > sql.coalesce(f"calm_{name}", sql.lit(0)))
        return joined.groupBy(VARIANT, FAMILY).agg(
            sql.count("*").alias("scenarios"),
            sql.sum(is_harmful.cast("bigint")).alias("harmful"),
            *(sql.max(sql.col(name).cast("double")).alias(f"{name}_max") for name in MEASURES),
            sql.max("stretch_p99").alias("stretch_p99_max"),
        )

    def _percentiles(self, rows: DataFrame) -> DataFrame:
        """Values of the nearest ranks."""
        sql = self._sql
        values = {name: sql.col(name).cast("double") for name in MEASURES}
        stacked = _stacked(sql, rows, (VARIANT, FAMILY), "measure", values)
        groups = self._window.partitionBy(VARIANT, FAMILY, "measure")
        ranked = stacked.select(
            "*",
            sql.row_number().over(groups.orderBy("value")).alias("place"),
            sql.count("*").over(groups).alias("count"),
        )
        wanted = sql.explode(sql.array(*map(sql.lit, RANKS))).alias("percentile")
        # As `summaries.nearest_rank`.
        place = sql.greatest(sql.lit(1), sql.ceil(sql.col("count") * sql.col("percentile") / 100))
        is_near = (sql.col("place") * 100 >= sql.col("count") * RANKS[0]) | (sql.col("place") == 1)
        return ranked.where(is_near).select("*", wanted).where(sql.col("place") == place)

    def _weighed(self, rows: DataFrame) -> DataFrame:
        """Scenarios with a probability that has no condition."""
        sql = self._sql
        return rows.where(sql.col("probability").isNotNull() & (sql.col(FAMILY) != MAINTENANCE))

    # Addresses

    def addresses(self) -> pa.Table:
        """The table `address_summary`."""
        name_job(self._session, "what-if: sum up scenarios by address")
        sql, keys = self._sql, (VARIANT, "address")
        is_dead = sql.col("subscriber_routers") == 0
        worst = sql.max_by(
            sql.struct(sql.col("lost_msgs_per_s").alias("lost"), sql.col("scenario").alias("number")),
            sql.struct("lost_msgs_per_s", -sql.col("scenario")),
        )
        counted = self._impacts.groupBy(*keys).agg(
            sql.count("*").alias("scenarios"),
            sql.sum(is_dead.cast("bigint")).alias("dead_scenarios"),
            worst.alias("worst"),
        )
        columns = (*keys, "scenarios", "dead_scenarios", "worst.lost", "worst.number")
        found: dict[tuple[str, ...], Row] = {}
        names = ("probability", "mean_lost_msgs_per_s", "dead_probability")
        for row in _collected(counted.select(*columns)):
            said = {"max_lost_msgs_per_s": row.pop("lost"), "worst_scenario": row.pop("number")}
            found[row[VARIANT], row["address"]] = {**row, **said, **dict.fromkeys(names)}
        if self._is_rated and found:
            chance = self._weighed(self._scenarios).select("scenario", "probability")
            joined = self._impacts.join(chance, "scenario")
            weight = sql.col("probability")
            values = (weight, weight * sql.col("lost_msgs_per_s"), sql.when(is_dead, weight).otherwise(0.0))
            weighed = _stacked(sql, joined, keys, "measure", dict(zip(names, values, strict=True)))
            for row in _collected(exact_sums(weighed, (*keys, "measure"), "value")):
                found[row[VARIANT], row["address"]][row["measure"]] = row["value"]
        return from_rows(ADDRESS_SUMMARY.name, found.values())

    # Pairs

    def pairs(self) -> pa.Table:
        """The table `pair_summary`."""
        layout = PAIR_SUMMARY
        if not self._is_rated:
            return from_rows(layout.name, ())
        name_job(self._session, "what-if: find the pairs that are without a path for longest")
        sql = self._sql
        (counted,) = _collected(self._pairs.agg(sql.sum(sql.size("src")).alias("rows")))
        if not 0 < (counted["rows"] or 0) <= MOST_PAIR_ROWS:
            return from_rows(layout.name, ())
        sums = exact_sums(self._path_rows().unionByName(self._end_rows()), (VARIANT, "what", "src", "dst"), "value")
        rows = _collected(self._ranked(sums))
        names = {variant.name: variant.elements.routers for variant in self._plan.variants}
        for row in rows:
            row["src"], row["dst"] = (names[row[VARIANT]][row[end]] for end in ("src", "dst"))
        return from_rows(layout.name, rows)

    def _path_rows(self) -> DataFrame:
        """The probability of each scenario for each pair that has no path in it; routers by their places."""
        sql = self._sql
        chance = self._weighed(self._scenarios).select("scenario", "probability")
        pairs = self._pairs.join(chance, "scenario").select(
            VARIANT, sql.col("probability").alias("value"), sql.inline(sql.arrays_zip("src", "dst", "cost"))
        )
        return pairs.where(sql.col("cost") < 0).select(VARIANT, sql.lit(_PATH).alias("what"), "src", "dst", "value")

    def _end_rows(self) -> DataFrame:
        """The same for each router that has failed, which has -1 for its other end, and for each two that have."""
        sql = self._sql
        rows = self._weighed(self._scenarios).where(sql.size("failed_routers") > 0)
        number: Column = sql.lit(None)
        texts: dict[tuple[str, ...], list[str]] = {}
        for variant in self._plan.variants:
            texts.setdefault(variant.elements.routers, []).append(variant.name)
        for routers, variants in texts.items():
            places = sql.split(sql.lit("\n".join(routers)), "\n")
            number = sql.when(sql.col(VARIANT).isin(variants), places).otherwise(number)
        failed = sql.transform(
            "failed_routers", lambda name: (sql.array_position(sql.col("names"), name) - 1).cast("int")
        )
        rows = rows.select(VARIANT, sql.col("probability").alias("value"), "failed_routers", number.alias("names"))
        rows = rows.select(VARIANT, "value", failed.alias("failed"))
        ends = rows.select(VARIANT, "value", "failed", sql.explode("failed").alias("src"))
        # A router that has failed is its own other end: that makes -1 of it.
        both = ends.select(VARIANT, "value", "src", sql.explode("failed").alias("other"))
        dst = sql.when(sql.col("other") == sql.col("src"), sql.lit(-1)).otherwise(sql.col("other"))
        return both.select(VARIANT, sql.lit(_ENDS).alias("what"), "src", dst.alias("dst"), "value")

    def _ranked(self, sums: DataFrame) -> DataFrame:
        """The first pairs of each variant, of sums of `_path_rows` and `_end_rows`."""
        sql = self._sql
        path = sums.where(sql.col("what") == _PATH).select(VARIANT, "src", "dst", sql.col("value").alias("without"))
        ends = sums.where(sql.col("what") == _ENDS).select(VARIANT, "src", "dst", "value")
        both = ends.where(sql.col("dst") >= 0).select(VARIANT, "src", "dst", sql.col("value").alias("both"))
        one = ends.where(sql.col("dst") < 0)
        routers = {variant.name: len(variant.elements.routers) for variant in self._plan.variants}
        numbers = self._session.range(max(routers.values())).select(sql.col("id").cast("int").alias("src"))
        variants = self._session.createDataFrame(list(routers.items()), f"{VARIANT} string, count int")
        pairs = variants.crossJoin(numbers).crossJoin(numbers.select(sql.col("src").alias("dst")))
        is_pair = (sql.col("src") < sql.col("count")) & (sql.col("dst") < sql.col("count"))
        pairs = pairs.where(is_pair & (sql.col("src") != sql.col("dst"))).drop("count")
        for end in ("src", "dst"):
            single = one.select(VARIANT, sql.col("src").alias(end), sql.col("value").alias(f"{end}_down"))
            pairs = pairs.join(single, [VARIANT, end], "left")
        joined = pairs.join(both, [VARIANT, "src", "dst"], "left").join(path, [VARIANT, "src", "dst"], "left")
        known = {name: sql.coalesce(name, sql.lit(0.0)) for name in ("without", "src_down", "dst_down", "both")}
        down = known["without"] + ((known["src_down"] + known["dst_down"]) - known["both"])
        order = self._window.partitionBy(VARIANT).orderBy(sql.col("down_probability").desc(), "src", "dst")
        ranked = joined.select(VARIANT, "src", "dst", down.alias("down_probability")).where("down_probability > 0")
        return ranked.withColumn("rank", sql.row_number().over(order)).where(sql.col("rank") <= PAIRS)


def _stacked(sql: Any, rows: DataFrame, keys: Sequence[str], name: str, values: dict[str, Column]) -> DataFrame:
    """A row for each of some values of a row: its keys, the name of the value, the value."""
    each = [sql.struct(sql.lit(text).alias(name), value.alias("value")) for text, value in values.items()]
    return rows.select(*keys, sql.explode(sql.array(*each)).alias("each")).select(*keys, "each.*")


def _collected(frame: DataFrame) -> list[Row]:
    """A few rows."""
    found: list[Row] = frame.toArrow().to_pylist()
    return found
