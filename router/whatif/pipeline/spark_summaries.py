"""Tables that sum up the scenarios of a run, by groups and windows of Spark; `local_summaries` is the reference.

What comes to the driver is some numbers for each family and address, and ten pairs of each variant.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession

from router.whatif.pipeline.chunk_files_as_rows import FAMILY, VARIANT, spark_schema
from router.whatif.pipeline.exact_percentile_bins import (
    BIN_SCHEMA,
    GROUP,
    MOST,
    PARTS,
    TALLY_COLUMNS,
    TALLY_SCHEMA,
    VALUE_COLUMNS,
    WORSE,
    bins_by_part,
    points_by_bin,
    tallies_by_part,
)
from router.whatif.pipeline.local_summaries import MOST_PAIR_ROWS, PAIRS, ScenarioSums, add_unlisted
from router.whatif.pipeline.scenario_extremes import (
    HARM_SCHEMA,
    HARMS,
    POINT_SCHEMA,
    WORST,
    columns_of,
    worst_by_batch,
)
from router.whatif.pipeline.spark_session import functions_of, name_job, window_of
from router.whatif.pipeline.spark_tables import counted_in_scenarios, exact_sums
from router.whatif.pipeline.table_files import from_rows
from router.whatif.pipeline.table_layouts import (
    ADDRESS_IMPACT,
    ADDRESS_SUMMARY,
    FAMILY_SUMMARY,
    PAIR_IMPACT,
    PAIR_SUMMARY,
    SCENARIO,
    SCENARIO_CURVE,
    WORST_SCENARIO,
    Layout,
)
from router.whatif.scenarios.scenario_plan import Plan
from router.whatif.wording import MAINTENANCE, NOTHING

Row = dict[str, Any]
_PATH: Final = "path"
_END: Final = "end"
_ENDS: Final = "ends"
_BETWEEN: Final = "\n"
"""Names in a text: a list of one for each would take the driver long to hand over."""


class SparkSummaries:
    """Makes the tables.

    Args:
        session: of Spark.
        played: all that has been played, as `spark_tables.read_played` gives it.
        table: gives the rows of a table of scenarios, once they have been written.
        plan: of the run.
    """

    def __init__(
        self, session: SparkSession, played: DataFrame, table: Callable[[Layout], DataFrame], plan: Plan
    ) -> None:
        self._session = session
        self._played = played
        self._table = table
        self._plan = plan
        self._is_rated = any(variant.elements.has_rates for variant in plan.variants)

    def makers(self) -> tuple[Callable[[], Sequence[tuple[str, pa.Table]]], ...]:
        """Makers of the tables, of one or two by name each."""
        return self.families, self.addresses, self.pairs, self.worst

    # Families

    def families(self) -> Sequence[tuple[str, pa.Table]]:
        """The tables `family_summary` and `scenario_curve`."""
        name_job(self._session, "what-if: sum up scenarios by family")
        found: dict[tuple[str, ...], Row] = {}
        for row in _collected(self._counted()):
            found[row[VARIANT], row[FAMILY]] = row
        points = _collected(self._points())
        for row in (each for each in points if each["percentile"]):
            found[row[VARIANT], row[FAMILY]][f"{row['measure']}_p{row['percentile']}"] = row["value"]
        curves = ({name: row[name] for name in SCENARIO_CURVE.names} for row in points if not row["percentile"])
        names = ("probability", "mean_lost_msgs_per_s", "mean_unreachable_pairs")
        for each in found.values():
            each.update(dict.fromkeys(names))
        if self._is_rated:
            rows = self._weighed(self._table(SCENARIO))
            sql, keys = functions_of(rows), (VARIANT, FAMILY)
            name_job(self._session, "what-if: sum up scenarios by family")
            chance = sql.col("probability")
            values = (chance, chance * sql.col("lost_msgs_per_s"), chance * sql.col("unreachable_pairs"))
            weighed = _stacked(sql, rows, keys, "measure", dict(zip(names, values, strict=True)))
            for row in _collected(exact_sums(weighed, (*keys, "measure"), "value")):
                found[row[VARIANT], row[FAMILY]][row["measure"]] = row["value"]
        return _made(FAMILY_SUMMARY, found.values()) + _made(SCENARIO_CURVE, curves)

    def _counted(self) -> DataFrame:
        """Scenarios by family, how many do harm, and the most of each measure; tasks count those that are alike."""
        rows = counted_in_scenarios(self._played, TALLY_COLUMNS, tallies_by_part, TALLY_SCHEMA)
        sql = functions_of(rows)
        calm = [sql.max(name).alias(f"calm_{name}") for name in WORSE]
        joined = rows.join(
            sql.broadcast(rows.where(sql.col(FAMILY) == NOTHING).groupBy(VARIANT).agg(*calm)), VARIANT, "left"
        )
        is_harmful = sql.col("is_parted")
        for name in WORSE:
            is_harmful = is_harmful | (sql.col(name) > sql.coalesce(f"calm_{name}", sql.lit(0)))
        return joined.groupBy(VARIANT, FAMILY).agg(
            sql.sum(sql.when(is_harmful, sql.col("scenarios")).otherwise(0)).alias("harmful"),
            sql.sum("scenarios").alias("scenarios"),
            *(sql.max(f"{name}_max").alias(f"{name}_max") for name in MOST),
        )

    def _points(self) -> DataFrame:
        """Percentiles and curves: tasks count values in bins, which are grouped, and ranked by a window."""
        some = counted_in_scenarios(self._played, VALUE_COLUMNS, bins_by_part, BIN_SCHEMA)
        sql, window = functions_of(some), window_of(some)
        grouped = some.groupBy(*GROUP, "bin").agg(
            sql.sum("count").alias("count"), sql.collect_list(sql.struct("values", "counts")).alias(PARTS)
        )
        groups = window.partitionBy(*GROUP)
        ranked = grouped.select(
            *GROUP,
            "count",
            sql.sum("count").over(groups.orderBy("bin")).alias("last"),
            sql.sum("count").over(groups).alias("all"),
            PARTS,
        )
        return ranked.mapInArrow(points_by_bin, spark_schema(POINT_SCHEMA))

    def worst(self) -> Sequence[tuple[str, pa.Table]]:
        """The table `worst_scenario`: the worst of each part, then of all."""
        name_job(self._session, "what-if: find the worst scenarios")
        columns = ("scenario", *columns_of(HARMS))
        some = counted_in_scenarios(self._played, columns, worst_by_batch, HARM_SCHEMA)
        sql = functions_of(some)
        order = window_of(some).partitionBy(VARIANT, "measure").orderBy(sql.col("value").desc(), "scenario")
        ranked = some.withColumn("rank", sql.row_number().over(order).cast("bigint"))
        return _made(WORST_SCENARIO, _collected(ranked.where(sql.col("rank") <= WORST)))

    def _weighed(self, rows: DataFrame) -> DataFrame:
        """Scenarios with a probability that has no condition."""
        sql = functions_of(rows)
        return rows.where(sql.col("probability").isNotNull() & (sql.col(FAMILY) != MAINTENANCE))

    # Addresses

    def addresses(self) -> Sequence[tuple[str, pa.Table]]:
        """The table `address_summary`."""
        impacts, scenarios = self._table(ADDRESS_IMPACT), self._table(SCENARIO)
        name_job(self._session, "what-if: sum up scenarios by address")
        sql, keys = functions_of(impacts), (VARIANT, "address")
        has_lost_sites = sql.col("lost_subscriber_routers") > 0
        is_dead = has_lost_sites & (sql.col("subscriber_routers") == 0)
        is_harmless = ~has_lost_sites & (sql.col("lost_msgs_per_s") == 0) & (sql.col("starved_publishers") == 0)
        worst = sql.max_by(
            sql.struct(sql.col("lost_msgs_per_s").alias("lost"), sql.col("scenario").alias("number")),
            sql.struct("lost_msgs_per_s", -sql.col("scenario")),
        )
        counted = impacts.groupBy(*keys).agg(
            sql.count("*").alias("scenarios"),
            sql.sum(is_dead.cast("bigint")).alias("dead_scenarios"),
            worst.alias("worst"),
            sql.max(sql.when(sql.col(FAMILY) == NOTHING, sql.col("lost_msgs_per_s"))).alias("calm"),
            sql.sum(is_harmless.cast("bigint")).alias("harmless"),
        )
        columns = (*keys, "scenarios", "dead_scenarios", "worst.lost", "worst.number", "calm", "harmless")
        found: dict[tuple[str, ...], Row] = {}
        calm: dict[tuple[str, str], tuple[float, int]] = {}
        names = ("probability", "mean_lost_msgs_per_s", "dead_probability")
        # Scenarios of maintenance alone have none: 0 in a model that has rates.
        none = {each.name: 0.0 if each.elements.has_rates else None for each in self._plan.variants}
        for row in _collected(counted.select(*columns)):
            said = {"max_lost_msgs_per_s": row.pop("lost"), "worst_scenario": row.pop("number")}
            lost, harmless = row.pop("calm"), row.pop("harmless")
            found[key := (row[VARIANT], row["address"])] = {**row, **said, **dict.fromkeys(names, none[row[VARIANT]])}
            if lost is not None:
                calm[key] = lost, harmless
        if self._is_rated and found:
            chance = self._weighed(scenarios).select("scenario", "probability")
            joined = impacts.join(chance, "scenario")
            weight = sql.col("probability")
            values = (
                weight,
                weight * sql.col("lost_msgs_per_s"),
                *(sql.when(each, weight).otherwise(0.0) for each in (is_dead, is_harmless)),
            )
            weighed = _stacked(sql, joined, keys, "measure", dict(zip((*names, "harmless"), values, strict=True)))
            for row in _collected(exact_sums(weighed, (*keys, "measure"), "value")):
                found[row[VARIANT], row["address"]][row["measure"]] = row["value"]
        spared = {key: row.pop("harmless", 0.0) for key, row in found.items()}
        if calm:
            sizes = Counter[str]()
            for each in self._plan.sections:
                sizes[self._plan.variants[each.variant].name] += each.count
            sums = exact_sums(self._weighed(scenarios), (VARIANT,), "probability") if self._is_rated else None
            played = {} if sums is None else {row[VARIANT]: row["probability"] for row in _collected(sums)}
            for (variant, address), (lost, harmless) in calm.items():
                every = ScenarioSums(sizes[variant], played.get(variant, 0.0))
                some = ScenarioSums(harmless, spared[variant, address])
                add_unlisted(found[variant, address], lost, every, some)
        return _made(ADDRESS_SUMMARY, found.values())

    # Pairs

    def pairs(self) -> Sequence[tuple[str, pa.Table]]:
        """The table `pair_summary`."""
        if not self._is_rated:
            return _made(PAIR_SUMMARY, ())
        pairs, scenarios = self._table(PAIR_IMPACT), self._weighed(self._table(SCENARIO))
        name_job(self._session, "what-if: find the pairs that are without a path for longest")
        if not 0 < pairs.count() <= MOST_PAIR_ROWS:
            return _made(PAIR_SUMMARY, ())
        rows = self._path_rows(pairs, scenarios).unionByName(self._end_rows(scenarios))
        sums = exact_sums(rows, (VARIANT, "what", "src", "dst"), "value")
        return _made(PAIR_SUMMARY, _collected(self._ranked(sums)))

    def _path_rows(self, pairs: DataFrame, scenarios: DataFrame) -> DataFrame:
        """The probability of each scenario for each pair that has no path in it."""
        sql = functions_of(pairs)
        chance = scenarios.select("scenario", sql.col("probability").alias("value"))
        return (
            pairs.where("is_lost")
            .join(chance, "scenario")
            .select(VARIANT, sql.lit(_PATH).alias("what"), "src", "dst", "value")
        )

    def _end_rows(self, scenarios: DataFrame) -> DataFrame:
        """Rows for each failed router, which is both ends of a pair, and for each two failed routers."""
        sql = functions_of(scenarios)
        rows = scenarios.where(sql.size("failed_routers") > 0)
        ends = rows.select(
            VARIANT, sql.col("probability").alias("value"), "failed_routers", sql.explode("failed_routers").alias("src")
        )
        both = ends.select(VARIANT, "value", "src", sql.explode("failed_routers").alias("dst"))
        what = sql.when(sql.col("src") == sql.col("dst"), _END).otherwise(_ENDS)
        return both.select(VARIANT, what.alias("what"), "src", "dst", "value")

    def _ranked(self, sums: DataFrame) -> DataFrame:
        """The first pairs of each variant, of sums of `_path_rows` and `_end_rows`."""
        sql, window = functions_of(sums), window_of(sums)

        def those(what: str, name: str) -> DataFrame:
            return sums.where(sql.col("what") == what).select(VARIANT, "src", "dst", sql.col("value").alias(name))

        texts = [(variant.name, _BETWEEN.join(variant.elements.routers)) for variant in self._plan.variants]
        named = self._session.createDataFrame(texts, f"{VARIANT} string, names string")
        src, dst = (
            named.select(VARIANT, sql.explode(sql.split("names", _BETWEEN)).alias(end)) for end in ("src", "dst")
        )
        pairs = src.join(dst, VARIANT).where("src != dst")
        for end in ("src", "dst"):
            single = those(_END, f"{end}_down").select(VARIANT, sql.col("src").alias(end), f"{end}_down")
            pairs = pairs.join(single, [VARIANT, end], "left")
        for what, name in ((_ENDS, "both"), (_PATH, "without")):
            pairs = pairs.join(those(what, name), [VARIANT, "src", "dst"], "left")
        known = {name: sql.coalesce(name, sql.lit(0.0)) for name in ("without", "src_down", "dst_down", "both")}
        down = known["without"] + ((known["src_down"] + known["dst_down"]) - known["both"])
        # Ids of routers are in the order of their code points, which is that of texts.
        order = window.partitionBy(VARIANT).orderBy(sql.col("down_probability").desc(), "src", "dst")
        ranked = pairs.select(VARIANT, "src", "dst", down.alias("down_probability")).where("down_probability > 0")
        return ranked.withColumn("rank", sql.row_number().over(order)).where(sql.col("rank") <= PAIRS)


def _stacked(sql: Any, rows: DataFrame, keys: Sequence[str], name: str, values: dict[str, Column]) -> DataFrame:
    """A row for each of some values of a row: its keys, the name of the value, the value."""
    each = [sql.struct(sql.lit(text).alias(name), value.alias("value")) for text, value in values.items()]
    return rows.select(*keys, sql.explode(sql.array(*each)).alias("each")).select(*keys, "each.*")


def _made(layout: Layout, rows: Iterable[Row]) -> list[tuple[str, pa.Table]]:
    return [(layout.name, from_rows(layout.name, rows))]


def _collected(frame: DataFrame) -> list[Row]:
    """A few rows."""
    found: list[Row] = frame.toArrow().to_pylist()
    return found
