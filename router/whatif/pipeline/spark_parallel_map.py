"""Any function of any item as a task of Spark: for what takes long and gives little."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Final, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession

from router.whatif.pipeline.spark_session import cores, jobs

SCHEMA: Final = "data binary"

Item = TypeVar("Item")


def map_tasks(
    session: SparkSession, function: Callable[[Item], bytes], items: Sequence[Item], place: Path
) -> Iterator[tuple[int, bytes]]:
    """Call *function* with each item, each call a task; a task that is lost with its worker is done again by another.

    Args:
        session: of Spark, connected.
        function: of a module that the workers have; it and the items travel to them.
        items: that can be pickled.
        place: of Spark's log, which errors name.
    Yields: the place of an item, from 0, and what came of it, as they are done. Items begin in their order.
    Raises: TaskError when a task dies again and again.
    """
    count = max(1, cores(session))
    with ThreadPoolExecutor(count, thread_name_prefix="spark-task") as pool:
        # A job for each item: so what is done is known at once, and is not lost when a later one fails.
        waiting = iter(range(len(items)))
        running: dict[Future[bytes], int] = {}

        def begin() -> None:
            while len(running) < count and (place := next(waiting, None)) is not None:
                running[pool.submit(_run, session, function, items[place])] = place

        with jobs(session, place):
            begin()
            while running:
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    yield running.pop(future), future.result()
                begin()


def _run(session: SparkSession, function: Callable[[Item], bytes], item: Item) -> bytes:
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for _ in range(batch.num_rows):
                yield pa.record_batch([pa.array([function(item)], pa.binary())], names=["data"])

    table = session.range(0, 1, 1, 1).mapInArrow(work, SCHEMA).toArrow()
    data: bytes = table.column("data")[0].as_py()
    return data
