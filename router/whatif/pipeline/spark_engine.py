"""Makes a run on Spark: executors play scenarios and write them, then make the tables of what was played.

A unit of work is some chunks of one variant: one job, whose rows the executors write with Spark's own writer into a
folder of its own, which its committer makes complete or not at all. A unit that is committed is never played again.
When all are, the tables are made of them as DataFrames. What a task must know travels in its function; nothing that
grows with the number of scenarios passes the driver.
"""

from __future__ import annotations

import gc
import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from router.whatif.pipeline import chunk_files_as_rows, spark_tables
from router.whatif.pipeline.chunk_evaluator import VariantWork, evaluator_of
from router.whatif.pipeline.local_engine import Done, EngineResult
from router.whatif.pipeline.resumable_units import PLAYED, ChunkRange, files_left, set_files_aside
from router.whatif.pipeline.run_staging import run_error
from router.whatif.pipeline.run_storage import LocalStorage, RunStorage
from router.whatif.pipeline.spark_masters import SparkAddress
from router.whatif.pipeline.spark_session import (
    cores,
    describe,
    jobs,
    many_files_at_once,
    name_job,
    pages,
    session,
)
from router.whatif.pipeline.spark_summaries import SparkSummaries
from router.whatif.pipeline.table_files import COMMITTED
from router.whatif.pipeline.table_layouts import LINK_LOAD, OF_LINKS, OF_SCENARIOS, SCENARIO, SCENARIO_LOAD, Layout
from router.whatif.scenarios.scenario_plan import Chunk, Plan, second_of_work

JOBS: Final = 2
"""Jobs in flight: while the last tasks of one end, those of the next begin."""
WORK_PER_CORE_S: Final = 2.0
"""Approximate seconds of work per core in the first units."""
TASK_S: Final = 2.0
"""Approximate upper bound of a task's work, seconds: lost when an executor dies."""
TASKS_PER_CORE: Final = 2
"""Minimum number of tasks per core in a unit that has enough chunks."""
SHORT_UNIT_S: Final = 20.0
"""Units that end sooner are followed by larger ones."""
LARGEST_UNIT: Final = 256
"""Size of the largest unit, as a multiple of the first one's."""
LARGE_ROWS: Final[Mapping[str, str]] = {
    "compression": "none",
    "parquet.enable.dictionary": "false",
    "parquet.block.size": "16777216",
    "parquet.page.size.row.check.min": "1",
    "parquet.block.size.row.check.min": "1",
}
"""Options of the writer of what was played: a row has whole files, so that it looks after each how much there is."""


def run(
    address: SparkAddress,
    works: Mapping[int, VariantWork],
    chunks: Sequence[Chunk],
    storage: RunStorage,
    *,
    log: Path,
    left: Sequence[Chunk] = (),
    plan: Plan,
    has_loads: bool = False,
    on_start: Callable[[str | None], None] = lambda pages: None,
    on_done: Done,
    on_tables: Callable[[], None] = lambda: None,
) -> EngineResult:
    """Play chunks, and make the tables of all that has been played.

    Args:
        address: of Spark, and its settings.
        works: by variant.
        chunks: that are still to be done.
        storage: folder of the run; one of this machine must be one that all executors see under the same path.
        log: file for what Spark logs, when it is started.
        left: chunks that the local engine has left there as files.
        plan: of the whole run.
        has_loads: whether there is a table of loads by scenario.
        on_start: called when Spark has been started, with the address of its pages.
        on_done: called for each of *chunks* when it has been written.
        on_tables: called when all has been played.
    Raises: RunError when Spark can't be started, or writes elsewhere; TaskError when tasks die.
    """
    with session(address, log) as spark:
        on_start(pages(spark))
        with (
            ThreadPoolExecutor(JOBS, thread_name_prefix="spark") as pool,  # which waits for jobs that have been ended
            jobs(spark, storage),
            many_files_at_once(spark),
        ):
            if isinstance(storage, LocalStorage):
                set_files_aside(storage.folder)
            play = _Play(spark, pool, works, storage)
            play.run(left, lambda chunk: None, is_left=True)
            play.run(chunks, on_done)
            on_tables()
            covered, summaries = _make_tables(spark, pool, storage, plan, has_loads=has_loads)
        return EngineResult(engine=describe(spark, address), coverage=covered, summaries=summaries)


@attrs.frozen
class _Play:
    """Plays chunks, unit by unit."""

    session: SparkSession
    pool: ThreadPoolExecutor
    works: Mapping[int, VariantWork]
    storage: RunStorage

    def run(self, chunks: Sequence[Chunk], on_done: Done, *, is_left: bool = False) -> None:
        """Play chunks, or take the files that are left of them for what was played."""
        rest = deque(chunks)
        size = 1
        running: dict[Future[float], list[Chunk]] = {}
        while rest or running:
            while rest and len(running) < JOBS:
                unit = _next_unit(rest, size * WORK_PER_CORE_S * cores(self.session), self._work_s)
                running[self.pool.submit(self._write_unit, unit, is_left)] = unit
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                unit = running.pop(future)
                took_s = future.result()
                for chunk in unit:
                    on_done(chunk)
                if took_s < SHORT_UNIT_S:
                    size = min(2 * size, LARGEST_UNIT)

    def _work_s(self, chunk: Chunk) -> float:
        """Seconds that one core takes to play a chunk, about."""
        elements = self.works[chunk.variant].plan.variants[0].elements
        return (chunk.stop - chunk.first) / second_of_work(len(elements.routers))

    def _write_unit(self, chunks: Sequence[Chunk], is_left: bool) -> float:
        """Play a unit, and have the executors write and commit it. Returns: seconds that it took."""
        began = time.monotonic()
        first, last = chunks[0], chunks[-1]
        work = self.works[first.variant]
        unit = f"{PLAYED}/{ChunkRange(first.number, last.number).name}"
        verb = "take over" if is_left else "play"
        name = work.plan.variants[0].name
        name_job(self.session, f"what-if: {verb} scenarios {first.first} to {last.stop - 1} of variant {name}")
        function = _function(work, tuple(chunks), str(self.storage) if is_left else None)
        work_s = sum(map(self._work_s, chunks))
        tasks = min(len(chunks), max(TASKS_PER_CORE * cores(self.session), math.ceil(work_s / TASK_S)))
        numbers = self.session.range(0, len(chunks), 1, tasks)
        frame = numbers.mapInArrow(function, chunk_files_as_rows.SPARK_SCHEMA)
        address = self.storage.address(unit, is_read=False)
        frame.write.mode("overwrite").options(**LARGE_ROWS).partitionBy(chunk_files_as_rows.TABLE).parquet(address)
        written = len(self.storage.files(f"{unit}/{chunk_files_as_rows.TABLE}={SCENARIO.name}"))
        if written < tasks:
            self.storage.remove(unit)
            expected = "a folder that all machines, this one and Spark's, see under the same path"
            raise run_error(
                self.storage,
                "OUT is not shared: files written by Spark's executors are not visible on this machine",
                expected,
            )
        return time.monotonic() - began


def _next_unit(rest: deque[Chunk], enough_s: float, work_s: Callable[[Chunk], float]) -> list[Chunk]:
    """Consecutive chunks of one variant, so that one network travels with the job.

    Args:
        rest: from whose beginning they are taken.
        enough_s: seconds of work that are enough.
        work_s: says how much a chunk is.
    """
    unit = [rest.popleft()]
    held_s = work_s(unit[0])
    while rest and held_s < enough_s and (rest[0].variant, rest[0].number) == (unit[0].variant, unit[-1].number + 1):
        unit.append(rest.popleft())
        held_s += work_s(unit[-1])
    return unit


def _function(
    work: VariantWork, chunks: tuple[Chunk, ...], folder: str | None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function of a task, for `mapInArrow`: to the places of chunks it gives their rows.

    Args:
        work: of the variant.
        chunks: of the unit.
        folder: of the run, when chunks are not played but files that are left there read.
    """
    variant = work.plan.variants[0]

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        files = evaluator_of(work).evaluate if folder is None else partial(files_left, Path(folder))
        # After each task a worker collects garbage, which takes as long as many scenarios: what is there now stays.
        gc.freeze()
        for batch in batches:
            for place in batch.column(0).to_pylist():
                chunk = chunks[place]
                yield from chunk_files_as_rows.rows(chunk, variant.name, variant.elements, files(chunk))

    return rows


def write(frame: DataFrame, address: str, partitions: Sequence[str]) -> None:
    """Have the executors write a table, which Spark's committer makes complete or not at all.

    Args:
        frame: what is written.
        address: of its folder.
        partitions: columns by whose values there are folders.
    """
    frame.write.mode("overwrite").option("compression", "zstd").partitionBy(*partitions).parquet(address)


def _make_tables(
    session: SparkSession, pool: ThreadPoolExecutor, storage: RunStorage, plan: Plan, *, has_loads: bool
) -> tuple[float | None, Mapping[str, pa.Table]]:
    """Make the tables of what has been played. Returns: the coverage; tables that sum up scenarios."""
    played = spark_tables.read_played(session, storage.address(PLAYED))
    folders = (name for unit in storage.children(PLAYED) for name in storage.children(f"{PLAYED}/{unit}"))
    played_tables = {name.partition("=")[2] for name in folders}

    def make(layout: Layout) -> None:
        name_job(session, f"what-if: make table {layout.name} of what was played")
        if layout in OF_SCENARIOS and layout.name in played_tables:
            files = spark_tables.by_scenario(played, layout, plan, cores=cores(session))
            spark_tables.write_files(files, storage, layout.name)
            return
        if storage.exists(f"{layout.name}/{COMMITTED}"):
            return  # by a run that was interrupted later
        place = storage.address(layout.name, is_read=False)
        if layout in OF_LINKS:
            rows = spark_tables.link_load(played) if layout == LINK_LOAD else spark_tables.link_worst(played)
            write(spark_tables.described(rows, layout.columns), place, (chunk_files_as_rows.VARIANT,))
        if not storage.files(layout.name):  # whoever reads it has to know its columns nevertheless
            write(spark_tables.described(spark_tables.empty(session, layout), layout.columns), place, ())

    def table(layout: Layout) -> DataFrame:
        made[layout].result()
        return spark_tables.read_table(session, storage.address(layout.name), layout)

    def cover() -> float:
        scenarios = table(SCENARIO)
        name_job(session, "what-if: sum up the probabilities of scenarios")
        return spark_tables.coverage(scenarios)

    wanted = [each for each in OF_SCENARIOS if has_loads or each != SCENARIO_LOAD]
    made = {layout: pool.submit(make, layout) for layout in (*wanted, *OF_LINKS)}
    covered = pool.submit(cover) if plan.variants[0].elements.has_rates else None
    summing = [pool.submit(maker) for maker in SparkSummaries(session, played, table, plan).makers()]
    running: list[Future[Any]] = [*made.values(), *summing]
    try:
        for future in running:
            future.result()
    except BaseException:
        for future in running:
            future.cancel()
        raise
    summaries = dict(pair for made_here in summing for pair in made_here.result())
    return None if covered is None else covered.result(), summaries
