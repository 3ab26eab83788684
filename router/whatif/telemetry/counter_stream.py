"""The load of a live mesh's links, and what enters it, kept up to date by a Structured Streaming job of Spark.

The source is a Python data source. Its offset is a reading of all counters, as text: so what has passed in a
micro-batch is the difference of its two offsets and nothing else. Spark keeps offsets in its checkpoint before a batch
is worked out; one that was interrupted is worked out again from the same offsets, and the next one begins where it
ended, however much later. So no interval is lost or counted twice when the job is killed, and nothing else is kept.
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.query import StreamingQuery

from router.whatif.formats.history_file_names import file_name
from router.whatif.formats.management_queries import ManagementQueries
from router.whatif.formats.parquet_file import read_parquet
from router.whatif.model.elements import LinkEdge
from router.whatif.pipeline.atomic_files import whole_file
from router.whatif.pipeline.output_place import check_output_place, check_own_folder
from router.whatif.pipeline.run_staging import run_error
from router.whatif.pipeline.table_layouts import ADDRESS_RATE, LINK_RATE, Layout
from router.whatif.telemetry import link_counters
from router.whatif.telemetry.compaction import compact

FORMAT: Final = "amqp_mesh_counters"
QUERY: Final = "amqp-mesh whatif watch"
LOG: Final = "spark.log"
LOCK: Final = "lock"
STATE: Final = "checkpoint"
CURRENT: Final = "current.parquet"
"""The last interval of each link, as one file beside the table of all intervals."""

PASSED: Final = """
    link string, src string, dst string, begun bigint, ended bigint, messages bigint, bytes bigint, is_reset boolean,
    address string, msg_bytes double
"""
"""Schema of readings. In a row about traffic that entered at a router, that router is `src`, and `link` is null; in
others `address` is null."""

T = TypeVar("T")
Connect = Callable[[str], AbstractContextManager[ManagementQueries]]
"""Makes a client of management of a router's address; it raises OSError when there is no answer."""


# The source


class CounterSource(DataSource):
    """Source of what has passed over each link of a mesh, and entered at each router: see PASSED.

    Options: `urls`, a JSON list of routers that are asked, one when the one before doesn't answer; `connect`,
    `module:name` of a Connect; `links`, a JSON list of the model's links; `addresses`, `true` when routers are asked
    for what entered, too.
    """

    @classmethod
    def name(cls) -> str:
        """Name of the source for `spark.readStream.format`."""
        return FORMAT

    def schema(self) -> str:
        """Times are microseconds since 1970."""
        return PASSED

    def streamReader(self, schema: object) -> DataSourceStreamReader:  # noqa: N802 - pyspark's word
        """See `DataSource.streamReader`."""
        module, _, name = self.options["connect"].partition(":")
        connect: Connect = getattr(importlib.import_module(module), name)
        links = tuple(LinkEdge(**link) for link in json.loads(self.options["links"]))
        has_addresses = self.options.get("addresses") == "true"
        return CounterReader(tuple(json.loads(self.options["urls"])), connect, links, has_addresses=has_addresses)


class ReadingPairPartition(InputPartition):
    """Two readings, as text."""

    def __init__(self, before: str, after: str) -> None:
        self.before = before
        self.after = after


class CounterReader(DataSourceStreamReader):
    """Reads the counters of a mesh whenever Spark asks for the latest offset."""

    def __init__(
        self, urls: Sequence[str], connect: Connect, links: tuple[LinkEdge, ...], *, has_addresses: bool = False
    ) -> None:
        self._has_addresses = has_addresses
        self._urls = tuple(urls)
        self._connect = connect
        self._links = links
        self._last = self.initialOffset()

    def initialOffset(self) -> dict[str, str]:  # noqa: N802 - pyspark's word
        """Offset of an empty reading: what passed before the first reading is not counted."""
        return {"reading": link_counters.to_text({})}

    def latestOffset(  # noqa: N802 - pyspark's word
        self, start: dict[str, str] | None = None, limit: object = None
    ) -> dict[str, str]:
        """The counters as they are now; *start* itself when no router answers: then there is no batch."""
        before = self._last if start is None else start  # Spark before 4.2 doesn't tell
        has_addresses = self._has_addresses
        reading = ask_any(
            self._urls,
            self._connect,
            lambda client: link_counters.read(client, _now, has_addresses=has_addresses),
        )
        if reading is None:
            return before
        known = link_counters.from_text(before["reading"])
        self._last = {"reading": link_counters.to_text(link_counters.merged(known, reading))}
        return self._last

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        """One partition, as there is little to compute; none without another reading."""
        return [ReadingPairPartition(start["reading"], end["reading"])] if start != end else []

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """Read what has passed between the readings of a partition."""
        assert isinstance(partition, ReadingPairPartition)
        before, after = link_counters.from_text(partition.before), link_counters.from_text(partition.after)
        for row in link_counters.passed(before, after, self._links):
            yield (*attrs.astuple(row), None, None)
        for one in link_counters.entered(before, after):
            yield (
                None, one.router, None, one.begun, one.ended, one.messages, None, one.is_reset,
                one.address, one.msg_bytes,
            )  # fmt: skip


def ask_any(urls: Sequence[str], connect: Connect, ask: Callable[[ManagementQueries], T]) -> T | None:
    """Ask the first router that answers.

    Args:
        urls: addresses of routers of one mesh.
        connect: connects a client to an address.
        ask: asks the router of a client.
    Returns: answer of *ask*, None when no router answers.
    """
    for url in urls:
        try:
            with connect(url) as client:
                return ask(client)
        except OSError:
            continue
    return None


def _now() -> int:
    return time.time_ns() // 1000


# The job


@attrs.frozen(kw_only=True)
class WatchSpec:
    """Watch of a mesh: what is watched, and where it is kept."""

    urls: tuple[str, ...]
    connect: str
    """`module:name` of a Connect."""
    checkpoint: Path
    """Folder of the job; with it another process goes on where this one ended."""
    out: Path | None = None
    """Folder for the tables `link_rate` and `address_rate` and for CURRENT; None: nothing is written."""
    has_addresses: bool = False
    """Whether what enters the mesh at each router is watched too."""
    links: tuple[LinkEdge, ...] = ()
    """Links of the model, with ids and capacities."""
    capacity_msgs: float | None = None
    """Capacity in each direction of links for which the model has none, messages/s."""
    capacity_bytes: float | None = None
    """Capacity in each direction of links for which the model has none, bytes/s."""


def check_places(checkpoint: Path, out: Path | None) -> None:
    """Check whether a job may write into its folders, before any work is begun.

    Args:
        checkpoint: folder of the job.
        out: folder for its tables, which may be the same one.
    Raises: RunError when nothing can be written there, or something else is there, which could take it with it.
    """
    check_output_place(checkpoint, is_whole=False)
    check_own_folder(checkpoint, [STATE], [LOCK, LOG], "a new folder, or one with which `whatif watch` was started")
    if out is None:
        return
    check_output_place(out, is_whole=False)
    marks = [LINK_RATE.name, ADDRESS_RATE.name, CURRENT]
    if out.absolute() == checkpoint.absolute():
        marks.append(STATE)
    check_own_folder(out, marks, [LOCK, LOG], "a new folder, or one that `whatif watch` wrote")


class StreamingJob:
    """A streaming job, and the folders that are its own.

    Args:
        told: called with the rows of each micro-batch that has some, table `link_rate`.
    Raises: RunError when another process has one of the folders.
    """

    def __init__(self, watch: WatchSpec, told: Callable[[pa.Table], None]) -> None:
        self.watch = watch
        self._told = told
        with ExitStack() as locks:
            locks.enter_context(_locked(watch.checkpoint))
            if watch.out is not None and os.path.realpath(watch.out) != os.path.realpath(watch.checkpoint):
                locks.enter_context(_locked(watch.out, is_needed=False))
            self._locks = locks.pop_all()

    def close(self) -> None:
        """Let others have the folders."""
        self._locks.close()

    def start(self, session: SparkSession, *, interval_s: float | None) -> StreamingQuery:
        """Begin, or go on.

        Args:
            session: of Spark.
            interval_s: between two readings, seconds; None: one reading, then the query ends.
        """
        session.dataSource.register(CounterSource)
        links = [attrs.asdict(link) for link in self.watch.links]
        options = {"urls": json.dumps(self.watch.urls), "connect": self.watch.connect, "links": json.dumps(links)}
        options["addresses"] = str(self.watch.has_addresses).lower()
        stream = session.readStream.format(FORMAT).options(**options).load()
        writer = (
            self._rates(session, stream)
            .writeStream.queryName(QUERY)
            .option("checkpointLocation", str((self.watch.checkpoint / STATE).absolute()))
            .foreachBatch(self._keep)
        )
        if interval_s is None:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{round(1000 * interval_s)} milliseconds").start()

    def _rates(self, session: SparkSession, passed: DataFrame) -> DataFrame:
        """Rates, utilisation and headroom of what has passed."""
        rows = [(link.id, link.capacity_msgs, link.capacity_bytes) for link in self.watch.links]
        capacities = session.createDataFrame(rows, "link string, known_msgs double, known_bytes double")
        seconds = (sql.col("ended") - sql.col("begun")) / 1e6
        found = passed.join(sql.broadcast(capacities), "link", "left").select(
            "link",
            "src",
            "dst",
            sql.timestamp_micros("begun").alias("begun"),
            sql.timestamp_micros("ended").alias("ended"),
            "messages",
            "bytes",
            (sql.col("messages") / seconds).alias("msgs_per_s"),
            (sql.col("bytes") / seconds).alias("bytes_per_s"),
            sql.coalesce("known_msgs", sql.lit(self.watch.capacity_msgs).cast("double")).alias("capacity_msgs"),
            sql.coalesce("known_bytes", sql.lit(self.watch.capacity_bytes).cast("double")).alias("capacity_bytes"),
            "is_reset",
            "address",
            "msg_bytes",
        )
        # Of what is null `greatest` takes no notice.
        utilisation = sql.greatest(
            sql.col("msgs_per_s") / sql.col("capacity_msgs"), sql.col("bytes_per_s") / sql.col("capacity_bytes")
        )
        return found.withColumn("utilisation", utilisation).withColumn("headroom", 1 - sql.col("utilisation"))

    def _keep(self, batch: DataFrame, number: int) -> None:
        """Write a micro-batch. Done twice for the same offsets, it leaves the same files."""
        found = batch.withColumn("router", sql.col("src")).toArrow()
        is_link = pc.is_valid(found.column("link"))
        table = _rows(found.filter(is_link), LINK_RATE)
        if self.watch.out is not None:
            entered = _rows(found.filter(pc.invert(is_link)), ADDRESS_RATE)
            for rows, layout in ((table, LINK_RATE), (entered, ADDRESS_RATE)):
                if rows.num_rows:
                    self._write_part(rows, layout, number)
            if table.num_rows:
                _write(_latest(self.watch.out / CURRENT, table), self.watch.out / CURRENT)
        if table.num_rows:
            self._told(table)

    def _write_part(self, rows: pa.Table, layout: Layout, number: int) -> None:
        assert self.watch.out is not None
        ended = max(moment.value for moment in rows.column("ended").combine_chunks())
        folder = self.watch.out / layout.name
        folder.mkdir(parents=True, exist_ok=True)
        _write(rows, folder / file_name(number, ended))
        compact(folder, number)


@contextmanager
def _locked(folder: Path, *, is_needed: bool = True) -> Iterator[None]:
    """Make a folder, and keep other processes from watching with it.

    Args:
        folder: to make, if it is not there.
        is_needed: whether it must be possible: some file systems of other machines can lock nothing.
    Raises: RunError when another process watches with it; OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise run_error(folder, "another process watches with it", "a folder of its own") from None
        except OSError:
            if is_needed:
                raise
        yield


def _rows(found: pa.Table, layout: Layout) -> pa.Table:
    table = found.select(layout.names).sort_by([(name, "ascending") for name in layout.key])
    return table.cast(layout.schema)


def _latest(file: Path, table: pa.Table) -> pa.Table:
    """Content of *file*, with the rows of *table* in the place of older ones of the same links."""
    rows = read_parquet(file).to_pylist() if file.exists() else []
    latest = {(row["link"], row["src"]): row for row in [*rows, *table.to_pylist()]}
    return pa.Table.from_pylist([latest[key] for key in sorted(latest)], schema=table.schema)


def _write(table: pa.Table, target: Path) -> None:
    with whole_file(target) as beside:
        pq.write_table(table, beside)
