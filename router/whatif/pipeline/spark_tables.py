"""Tables of a run as DataFrames of what has been played: sorted, ranked and summed up by Spark, written by executors.

All of it is the DataFrame API, so that it runs through Spark Connect too. What local tables have, these have, bit for
bit: sums of probabilities are exact, and all else is copied, compared or divided once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession

from router.whatif.kernel.network_arrays import MICRO
from router.whatif.pipeline.aggregate import KEPT, directions
from router.whatif.pipeline.chunk_evaluator import BASE_LOADS, WORST_LOADS
from router.whatif.pipeline.play_rows import FAMILY, LISTED, SPARK_SCHEMA, TABLE, VARIANT, ddl
from router.whatif.pipeline.spark_ranges import RANGE_SCENARIOS, by_range
from router.whatif.pipeline.spark_session import functions_of, window_of
from router.whatif.pipeline.table_layouts import (
    LINK_LOAD,
    LINK_WORST,
    PAIR_IMPACT,
    SCENARIO,
    SCENARIO_LOAD,
    Layout,
    plain,
)
from router.whatif.scenarios.scenario_plan import Plan
from router.whatif.wording import BASE, MAINTENANCE

_MANTISSA_BITS: Final = 53
_RANGE_LOADS: Final = 5_000_000
"""Loads in a partition, about: a task sorts them, and writes them as one file of each family."""
_BETWEEN: Final = "\n"
"""Names in a text: a list of one for each would take the driver long to hand over."""


def read_played(session: SparkSession, address: str) -> DataFrame:
    """Rows in the form of `play_rows`, of all units of work that are there.

    Args:
        session: of Spark.
        address: of the folder with a folder for each of them.
    """
    return session.read.schema(SPARK_SCHEMA).parquet(address)


def by_scenario(played: DataFrame, layout: Layout, plan: Plan, *, cores: int) -> DataFrame:
    """Make a table that has rows by scenario, sorted by its key within ranges of scenarios.

    Args:
        played: as `read_played` gives it.
        layout: one of `table_layouts.OF_SCENARIOS`.
        plan: of the whole run.
        cores: that shall have something to do.
    """
    sql = functions_of(played)
    is_listed = layout.name in LISTED
    fields = LISTED[layout.name].names if is_listed else layout.names
    own = [sql.col(f"{layout.name}.{name}").alias(name) for name in fields if name not in (VARIANT, FAMILY)]
    rows = played.where(sql.col(TABLE) == layout.name).select(VARIANT, FAMILY, *own)
    keys = [name for name in layout.key if not is_listed or name == "scenario"]
    most = RANGE_SCENARIOS
    if layout == SCENARIO_LOAD:
        most = max(1, _RANGE_LOADS // max(1, 2 * len(plan.variants[0].elements.links)))
    ordered = by_range(rows, len(plan), cores, most=most).sortWithinPartitions(VARIANT, FAMILY, *keys)
    if layout == PAIR_IMPACT:
        return _pairs(ordered, plan.variants[0].elements.routers)
    return _loads(ordered, plan) if layout == SCENARIO_LOAD else ordered


def _pairs(listed: DataFrame, routers: Sequence[str]) -> DataFrame:
    """Make rows of lists of pairs, in their order."""
    sql = functions_of(listed)
    pairs = listed.select(VARIANT, FAMILY, "scenario", sql.inline(sql.arrays_zip("src", "dst", "base_cost", "cost")))
    names = sql.array(*map(sql.lit, routers))
    is_lost = sql.col("cost") < 0
    return pairs.select(
        VARIANT,
        FAMILY,
        "scenario",
        sql.get(names, sql.col("src")).alias("src"),
        sql.get(names, sql.col("dst")).alias("dst"),
        is_lost.alias("is_lost"),
        sql.col("base_cost").cast("bigint").alias("base_cost"),
        sql.when(~is_lost, sql.col("cost").cast("bigint")).alias("cost"),
    )


def _loads(listed: DataFrame, plan: Plan) -> DataFrame:
    """Make rows of lists of loads, in their order."""
    sql = functions_of(listed)
    lists = LISTED[SCENARIO_LOAD.name].names[1:]
    loads = listed.select(VARIANT, FAMILY, "scenario", sql.inline(sql.arrays_zip(*lists)))
    # Variants may have other links, and then the same number is another link.
    meshes: dict[tuple[object, ...], list[str]] = {}
    texts: dict[tuple[object, ...], list[str]] = {}
    for variant in plan.variants:
        key = (variant.elements.links, variant.elements.ends)
        meshes.setdefault(key, []).append(variant.name)
        if key not in texts:
            texts[key] = [_BETWEEN.join(column.to_pylist()) for column in directions(variant.elements)]

    def name(place: int) -> Column:
        """Link, sender or receiver of the direction that has the number."""
        found: Column = sql.lit(None)
        for key, variants in meshes.items():
            names = sql.split(sql.lit(texts[key][place]), _BETWEEN)
            found = sql.when(sql.col(VARIANT).isin(variants), sql.get(names, sql.col("number"))).otherwise(found)
        return found

    return loads.select(
        VARIANT,
        FAMILY,
        "scenario",
        *(name(place).alias(column) for place, column in enumerate(("link", "src", "dst"))),
        *lists[1:],
    )


def link_load(played: DataFrame) -> DataFrame:
    """Make the table `link_load`, sorted by its key."""
    sql = functions_of(played)
    rows = played.where(sql.col(TABLE) == BASE_LOADS).select(f"{LINK_LOAD.name}.*")
    return rows.coalesce(1).sortWithinPartitions(*LINK_LOAD.key)


def link_worst(played: DataFrame) -> DataFrame:
    """Make the table `link_worst`, sorted by its key: of each directed link the KEPT worst scenarios, by a window."""
    sql = functions_of(played)
    worst = played.where(sql.col(TABLE) == WORST_LOADS).select(VARIANT, f"{WORST_LOADS}.*")
    window = window_of(played).partitionBy(VARIANT, "link").orderBy(sql.col("share").desc(), sql.col("scenario"))
    ranked = worst.withColumn("rank", sql.row_number().over(window)).where(sql.col("rank") <= KEPT)
    cause = sql.struct("rank", "scenario", _real(sql, "rate"), _real(sql, "bytes"), "share")
    causes = ranked.groupBy(VARIANT, sql.col("link").alias("place")).agg(
        sql.sort_array(sql.collect_list(cause)).alias("causes")
    )
    loads = played.where(sql.col(TABLE) == BASE_LOADS)
    links = loads.select(sql.col(f"{BASE_LOADS}.link").alias("place"), f"{LINK_LOAD.name}.*")
    joined = links.join(causes, [VARIANT, "place"], "left")
    none = sql.array().cast("array<struct<rank: int, scenario: bigint, rate: double, bytes: double, share: double>>")
    joined = joined.withColumn("causes", sql.coalesce("causes", none))
    first = sql.get("causes", sql.lit(0))
    columns = {
        "base_msgs_per_s": sql.col("msgs_per_s"),
        "base_utilisation": sql.col("utilisation"),
        "worst_msgs_per_s": sql.coalesce(first["rate"], "msgs_per_s"),
        "worst_bytes_per_s": sql.coalesce(first["bytes"], "bytes_per_s"),
        "worst_utilisation": sql.coalesce(first["share"], "utilisation"),
        "scenarios": sql.col("causes.scenario"),
        "scenario_msgs_per_s": sql.col("causes.rate"),
        "scenario_bytes_per_s": sql.col("causes.bytes"),
        "scenario_utilisation": sql.col("causes.share"),
    }
    chosen = joined.select(*(columns.get(name, sql.col(name)).alias(name) for name in LINK_WORST.names))
    return chosen.repartition(1).sortWithinPartitions(*LINK_WORST.key)


def _real(sql: Any, name: str) -> Column:
    """Of millionths."""
    found: Column = (sql.col(name).cast("double") / sql.lit(float(MICRO))).alias(name)
    return found


def coverage(played: DataFrame) -> float:
    """Sum of the probabilities of scenarios of the mesh as it is, without maintenance, which have some."""
    sql = functions_of(played)
    here = (sql.col(TABLE) == SCENARIO.name) & (sql.col(VARIANT) == BASE) & (sql.col(FAMILY) != MAINTENANCE)
    rows = played.where(here).select(sql.col(f"{SCENARIO.name}.probability").alias("probability"))
    return min(1.0, exact_sum(rows, "probability"))


def exact_sum(rows: DataFrame, name: str) -> float:
    """Sum up reals, see `exact_sums`.

    Args:
        rows: of which none but *name* is used; nulls count nothing.
        name: of a column of finite reals.
    """
    sql = functions_of(rows)
    found = exact_sums(rows.select(sql.lit(0).alias("all"), name), ("all",), name).toArrow().to_pylist()
    return float(found[0][name]) if found else 0.0


def exact_sums(rows: DataFrame, keys: Sequence[str], name: str) -> DataFrame:
    """Sum up reals by group as `math.fsum` does: exactly, and rounded once, in whatever order they come.

    A real is a whole number of at most 53 bits times a power of two. Spark sums these up for each power, and there are
    a few dozen of such sums in a group, which a task puts together.

    Args:
        rows: of which none but *keys* and *name* are used; nulls count nothing.
        keys: columns of the groups.
        name: of a column of finite reals, and of the sums.
    Returns: keys and sum of each group that has a value.
    """
    sql = functions_of(rows)
    value = sql.col(name)
    # One too high or too low does no harm: there are bits to spare.
    power = sql.when(value == 0, sql.lit(0)).otherwise(sql.floor(sql.log2(sql.abs(value)))).cast("int")
    shift = sql.lit(_MANTISSA_BITS) - sql.col("power")
    half = sql.floor(shift / 2).cast("int")
    # By two factors, since one alone may be beyond what a real can be.
    whole = sql.col("value") * sql.pow(sql.lit(2.0), half) * sql.pow(sql.lit(2.0), shift - half)
    sums = (
        rows.where(value.isNotNull())
        .select(*keys, value.alias("value"), power.alias("power"))
        .select(*keys, "power", whole.cast("bigint").cast("decimal(20,0)").alias("whole"))
        .groupBy(*keys, "power")
        .agg(sql.sum("whole").alias("whole"))
        .groupBy(*keys)
        .agg(sql.collect_list("power").alias("powers"), sql.collect_list("whole").alias("wholes"))
    )
    kinds = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in sums.select(*keys).schema.fields)
    return sums.mapInArrow(partial(_put_together, name), f"{kinds}, {name} double")


def _put_together(name: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Make reals of sums of whole numbers by powers."""
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("powers", "wholes"))
        values = []
        for powers, wholes in zip(*columns, strict=True):
            parts = zip(powers, wholes, strict=True)
            exact = sum((int(whole) * Fraction(2) ** (power - _MANTISSA_BITS) for power, whole in parts), Fraction())
            values.append(float(exact))
        keys = [batch.column(at) for at in range(batch.num_columns - 2)]
        names = [*batch.schema.names[:-2], name]
        yield pa.RecordBatch.from_arrays([*keys, pa.array(values, pa.float64())], names=names)


def described(frame: DataFrame, layout: Layout) -> DataFrame:
    """The same with unit and meaning of each column, which Spark keeps with the files."""
    sql = functions_of(frame)
    about = {column.name: {"comment": column.doc, "unit": column.unit} for column in layout.columns}
    return frame.select(*(sql.col(name).alias(name, metadata=about.get(name, {})) for name in frame.columns))


def empty(session: SparkSession, layout: Layout) -> DataFrame:
    """A table without rows."""
    fields = ", ".join(f"{column.name} {ddl(plain(column.kind))}" for column in layout.columns)
    return session.createDataFrame([], fields)
