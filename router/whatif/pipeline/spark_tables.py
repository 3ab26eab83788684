"""Tables of a run as DataFrames of what has been played: put in order, ranked and summed up, written by executors.

All of it is the DataFrame API, so that it runs through Spark Connect too. What local tables have, these have, bit for
bit: sums of probabilities are exact, and all else is copied, compared or divided once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession

from router.whatif.kernel.network_arrays import MICRO
from router.whatif.pipeline.aggregate import KEPT
from router.whatif.pipeline.chunk_evaluator import WORST_LOADS, WORST_SCHEMA
from router.whatif.pipeline.chunk_files_as_rows import (
    DATA,
    FAMILY,
    LINKS_SCHEMA,
    MAGIC,
    NAME,
    PLACE,
    SPARK_SCHEMA,
    TABLE,
    VARIANT,
    counted_in_files,
    ddl,
    decoded,
    joined,
    sections_of,
    spark_schema,
)
from router.whatif.pipeline.chunk_files_as_rows import SCENARIO as FIRST
from router.whatif.pipeline.exact_sums import MANTISSA_BITS
from router.whatif.pipeline.run_storage import RunStorage
from router.whatif.pipeline.spark_ranges import RANGE_SCENARIOS, by_range
from router.whatif.pipeline.spark_session import functions_of, window_of
from router.whatif.pipeline.table_files import COMMITTED, SUFFIX
from router.whatif.pipeline.table_layouts import LINK_LOAD, LINK_WORST, SCENARIO, SCENARIO_LOAD, Layout
from router.whatif.pipeline.table_layouts import Column as LayoutColumn
from router.whatif.scenarios.scenario_plan import Plan
from router.whatif.wording import BASE, MAINTENANCE

SPARK_METADATA: Final = "org.apache.spark.sql.parquet.row.metadata"
"""Metadata key of a Parquet file for its columns as Spark has them."""
_RANGE_LOADS: Final = 5_000_000
"""Loads in a partition, about: a task makes files of them."""
_TEXT: Final = ".txt"
"""Suffix of the files that Spark writes as texts."""


def read_played(session: SparkSession, address: str) -> DataFrame:
    """Rows in the form of `chunk_files_as_rows`, of all units of work that are there.

    Args:
        session: of Spark.
        address: of the folder with a folder for each of them.
    """
    return session.read.schema(SPARK_SCHEMA).parquet(address)


def by_scenario(played: DataFrame, layout: Layout, plan: Plan, *, cores: int) -> DataFrame:
    """Make the files of a table that has rows by scenario, sorted by its key: rows as `write_files` takes them.

    Args:
        played: as `read_played` gives it.
        layout: one of `table_layouts.OF_SCENARIOS`.
        plan: of the whole run.
        cores: that shall have something to do.
    """
    sql = functions_of(played)
    rows = played.where(sql.col(TABLE) == layout.name).select(FIRST, NAME, DATA)
    most = RANGE_SCENARIOS
    if layout == SCENARIO_LOAD:
        most = max(1, _RANGE_LOADS // max(1, 2 * len(plan.variants[0].elements.links)))
    ordered = by_range(rows, len(plan), cores, most=most).sortWithinPartitions(NAME)
    # As Spark itself would write them: columns that folders have are in no file, and each has its unit and meaning.
    about = described(empty(played.sparkSession, layout), layout.columns).drop(VARIANT, FAMILY).schema.json()
    schema = pa.schema(
        [field for field in layout.schema if field.name not in (VARIANT, FAMILY)], {SPARK_METADATA: about}
    )
    function = partial(joined, sections_of(plan), schema)
    return ordered.mapInArrow(function, f"{VARIANT} string, {FAMILY} string, {DATA} binary")


def write_files(files: DataFrame, storage: RunStorage, name: str) -> None:
    """Have the executors write files that tasks have encoded, which Spark's committer makes complete or not at all.

    Spark writes bytes as lines of a text: a file of one line, whose end is the word with which a Parquet file ends.
    These get the name of Parquet files afterwards.

    Args:
        files: rows as `by_scenario` makes them, which may have gone through with this before.
        storage: of the run.
        name: of the table.
    """
    if not storage.exists(f"{name}/{COMMITTED}"):
        sql = functions_of(files)
        lines = files.select(VARIANT, FAMILY, sql.col(DATA).cast("string").alias("value"))
        writer = lines.write.mode("overwrite").partitionBy(VARIANT, FAMILY).option("compression", "none")
        address = storage.address(name, is_read=False)
        writer.option("lineSep", MAGIC.decode()).option("maxRecordsPerFile", 1).text(address)
    for file in storage.files(name, _TEXT):
        storage.rename_file(file, file.removesuffix(_TEXT) + SUFFIX)


def read_table(session: SparkSession, address: str, layout: Layout) -> DataFrame:
    """Rows of a table of scenarios, with the columns that its folders have.

    Args:
        session: of Spark.
        address: of the folder of the table.
        layout: of it.
    """
    return session.read.schema(spark_schema(layout.schema, VARIANT, FAMILY)).parquet(address)


def _decoded(played: DataFrame, name: str, schema: pa.Schema) -> DataFrame:
    """Rows of the files of one table, with their variant."""
    rows = played.where(functions_of(played).col(TABLE) == name).select(VARIANT, DATA)
    whole = schema if VARIANT in schema.names else pa.schema([(VARIANT, pa.string()), *schema])
    return rows.mapInArrow(partial(decoded, whole), spark_schema(whole))


def counted_in_scenarios(
    played: DataFrame,
    columns: Sequence[str],
    function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    made: pa.Schema,
) -> DataFrame:
    """Rows that a function makes of those of `scenario`: tasks read the files that were played, Java passes bytes.

    Args:
        played: as `read_played` gives it.
        columns: of SCENARIO that the function needs.
        function: as `mapInArrow` takes one.
        made: schema of what it gives.
    """
    rows = played.where(functions_of(played).col(TABLE) == SCENARIO.name).select(VARIANT, DATA)
    schema = pa.schema([SCENARIO.schema.field(name) for name in (VARIANT, FAMILY, *columns)])
    return rows.mapInArrow(partial(counted_in_files, function, schema), spark_schema(made))


def link_load(played: DataFrame) -> DataFrame:
    """Make the table `link_load`, sorted by its key."""
    rows = _decoded(played, LINK_LOAD.name, LINKS_SCHEMA).drop(PLACE)
    return rows.coalesce(1).sortWithinPartitions(*LINK_LOAD.key)


def link_worst(played: DataFrame) -> DataFrame:
    """Make the table `link_worst`, sorted by its key: of each directed link the KEPT worst scenarios, by a window."""
    sql = functions_of(played)
    worst = _decoded(played, WORST_LOADS, WORST_SCHEMA)
    window = window_of(played).partitionBy(VARIANT, "link").orderBy(sql.col("share").desc(), sql.col("scenario"))
    ranked = worst.withColumn("rank", sql.row_number().over(window)).where(sql.col("rank") <= KEPT)
    cause = sql.struct("rank", "scenario", _real(sql, "rate"), _real(sql, "bytes"), "share")
    causes = ranked.groupBy(VARIANT, sql.col("link").alias(PLACE)).agg(
        sql.sort_array(sql.collect_list(cause)).alias("causes")
    )
    links = _decoded(played, LINK_LOAD.name, LINKS_SCHEMA)
    ranked_links = links.join(causes, [VARIANT, PLACE], "left")
    none = sql.array().cast("array<struct<rank: int, scenario: bigint, rate: double, bytes: double, share: double>>")
    ranked_links = ranked_links.withColumn("causes", sql.coalesce("causes", none))
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
    chosen = ranked_links.select(*(columns.get(name, sql.col(name)).alias(name) for name in LINK_WORST.names))
    return chosen.repartition(1).sortWithinPartitions(*LINK_WORST.key)


def _real(sql: Any, name: str) -> Column:
    """Convert a column of millionths to a double."""
    found: Column = (sql.col(name).cast("double") / sql.lit(float(MICRO))).alias(name)
    return found


def coverage(scenarios: DataFrame) -> float:
    """Sum of the probabilities of scenarios of the mesh as it is, without maintenance, which have some."""
    sql = functions_of(scenarios)
    here = (sql.col(VARIANT) == BASE) & (sql.col(FAMILY) != MAINTENANCE)
    return min(1.0, exact_sum(scenarios.where(here), "probability"))


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
    shift = sql.lit(MANTISSA_BITS) - sql.col("power")
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
            exact = sum((int(whole) * Fraction(2) ** (power - MANTISSA_BITS) for power, whole in parts), Fraction())
            values.append(float(exact))
        keys = [batch.column(at) for at in range(batch.num_columns - 2)]
        names = [*batch.schema.names[:-2], name]
        yield pa.RecordBatch.from_arrays([*keys, pa.array(values, pa.float64())], names=names)


def described(frame: DataFrame, columns: Iterable[LayoutColumn]) -> DataFrame:
    """Add unit and meaning to each column, which Spark keeps with the files and shows as comments.

    Args:
        frame: whose columns they are.
        columns: of its layout; of two of one name the first counts.
    """
    sql = functions_of(frame)
    about: dict[str, dict[str, str]] = {}
    for column in columns:
        about.setdefault(column.name, {"comment": column.doc, "unit": column.unit})
    return frame.select(*(sql.col(name).alias(name, metadata=about.get(name, {})) for name in frame.columns))


def empty(session: SparkSession, layout: Layout) -> DataFrame:
    """A table without rows."""
    # Not of a list: for that Spark starts further processes of Python.
    columns = (f"CAST(NULL AS {ddl(field.type)}) AS {field.name}" for field in layout.schema)
    return session.range(0, 0, 1, 1).selectExpr(*columns)
