"""Works chunks out on Spark: on this machine, on a cluster, or through Spark Connect. Nothing else knows pyspark.

Each task takes the number of a chunk and gives its finished files; the driver writes them. So no folder need be shared
with the workers, nothing is shuffled, and the tables are those of the local engine. Only DataFrames are used, since
Spark Connect has nothing else; what a task must know travels in the function.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

import router
from router.whatif.pipeline import local_engine
from router.whatif.pipeline.chunk_evaluator import OutputFile, VariantWork, evaluator_of
from router.whatif.pipeline.spark_failures import task_error
from router.whatif.pipeline.unfinished_run import run_error, write_run_files
from router.whatif.scenarios.scenario_plan import Chunk

LOG: Final = "spark.log"
LOOPBACK: Final = "127.0.0.1"

SETTINGS: Final[Mapping[str, str]] = {
    "spark.app.name": "amqp-mesh whatif",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # The plan is one range and one function: nothing is worth being compiled, and starting up takes half the time.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.maxResultSize": "0",
}
"""Settings of Spark unless the caller says otherwise."""

VARIABLES: Final = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE", "MASTER")
"""Of the environment, by which others than the caller say where Spark is."""

SCHEMA: Final = "chunk int, name string, data binary"
JOBS: Final = 2
"""At the same time: while the last tasks of one end, those of the next begin."""
CHUNKS_PER_CORE: Final = 2
"""In the first jobs."""
SHORT_JOB_S: Final = 2.0
"""Jobs that end sooner are followed by larger ones: there are more cores than was thought."""
LARGE_JOB_BYTES: Final = 64 * 2**20
"""Jobs with larger results are followed by smaller ones."""
MAX_JOB: Final = 512

SPARK_ERRORS: Final = (PySparkException, Py4JError)
"""Exceptions with which a job ends when its tasks die: of Spark Connect, or a driver in Java."""

Done = Callable[[Chunk], None]


@attrs.frozen(kw_only=True)
class SparkAddress:
    """Address of Spark."""

    master: str | None = None
    """Such as `local[2]` or `spark://host:7077`; None: as spark-submit says, else this machine."""
    remote: str | None = None
    """A server of Spark Connect: `sc://host:15002`."""
    settings: Mapping[str, str] = attrs.field(factory=dict)
    """Further settings of Spark."""
    workers: int | None = None
    """Tasks at the same time on this machine; None: as many as there are processors."""

    @property
    def is_here(self) -> bool:
        """Whether Spark shall do its work on this machine alone."""
        if self.remote or any(name in os.environ for name in VARIABLES):
            return False
        return self.master is None or self.master.startswith("local")


def describe(session: SparkSession, address: SparkAddress) -> str:
    """Describe where it runs."""
    try:
        return f"spark {session.sparkContext.master}"
    except PySparkException:
        return f"spark {address.remote or os.environ.get('SPARK_REMOTE', 'connect')}"


def start(address: SparkAddress, log: Path) -> SparkSession:
    """A session, that of this thread if it has one. What a new one logs goes to the file *log*.

    Raises: RunError when Spark can't be started.
    """
    # Else workers take the python3 that they find first.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    remote = address.remote or (None if address.master else os.environ.get("SPARK_REMOTE"))
    try:
        return _connect(remote, address) if remote else _launch(address, log)
    except (*SPARK_ERRORS, ImportError, OSError) as error:
        tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-3:] if log.exists() else []
        words = str(error).strip().splitlines()[:2]
        expected = ""
        if remote and isinstance(error, ImportError):  # grpcio and others, which only Spark Connect needs
            expected = "pip install 'amqp-mesh[connect]'"
        raise run_error(log, f"Spark can't be started: {' '.join([*words, *tail])}", expected) from error


@contextlib.contextmanager
def session(address: SparkAddress, log: Path) -> Iterator[SparkSession]:
    """Start a session as `start` does; one that is new is stopped at the end, which else ends with a traceback.

    Raises: RunError when Spark can't be started.
    """
    before = SparkSession.getActiveSession()
    found = start(address, log)
    try:
        yield found
    finally:
        if found is not before:
            found.stop()


def _connect(remote: str, address: SparkAddress) -> SparkSession:
    # Not by the usual builder, which refuses a process that has a session of the other kind.
    builder = importlib.import_module("pyspark.sql.connect.session").SparkSession.builder.remote(remote)
    for key, value in address.settings.items():
        builder = builder.config(key, value)
    session: Any = builder.getOrCreate()
    found: SparkSession = session
    return found


def _launch(address: SparkAddress, log: Path) -> SparkSession:
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    conf = SparkConf(loadDefaults=False)
    master = address.master or (None if is_submitted else os.environ.get("MASTER"))
    if master is None and not is_submitted:
        # A task that fails is tried again.
        master = f"local[{address.workers or len(os.sched_getaffinity(0))},2]"
    settings = dict(SETTINGS)
    if master is not None:
        settings["spark.master"] = master
        if master.startswith("local") or LOOPBACK in master or "localhost" in master:
            settings |= {"spark.driver.bindAddress": LOOPBACK, "spark.driver.host": LOOPBACK}
    for key, value in (settings | dict(address.settings)).items():
        conf.set(key, value)
    gateway = None
    if SparkContext._gateway is None and not is_submitted:  # else it is used
        launch: Any = launch_gateway  # which has no types
        with log.open("ab") as file, _our_modules():
            gateway = launch(conf, {"stdout": file, "stderr": subprocess.STDOUT})
    return SparkSession(SparkContext(conf=conf, gateway=gateway))


@contextlib.contextmanager
def _our_modules() -> Iterator[None]:
    """Let workers on this machine find the modules that this process has, though they be installed nowhere."""
    before = os.environ.get("PYTHONPATH")
    root = str(Path(router.__file__).parent.parent)
    os.environ["PYTHONPATH"] = os.pathsep.join([root, before] if before else [root])
    try:
        yield
    finally:
        del os.environ["PYTHONPATH"]
        if before is not None:
            os.environ["PYTHONPATH"] = before


def cores(session: SparkSession) -> int:
    """Tasks that run at the same time, as far as can be told before any ran."""
    try:
        return max(1, int(session.sparkContext.defaultParallelism))
    except PySparkException:  # Spark Connect doesn't say
        return len(os.sched_getaffinity(0))


def run(
    address: SparkAddress,
    works: Mapping[int, VariantWork],
    chunks: Sequence[Chunk],
    folder: Path,
    *,
    on_start: Callable[[], None] = lambda: None,
    on_done: Done,
) -> str:
    """Work chunks out, and write their files.

    Where Spark is started on this machine, this process works as well until Spark is at work.

    Args:
        address: of Spark, and its settings.
        works: by variant.
        chunks: that are still to be done.
        folder: of the run, on this machine.
        on_start: called when Spark has been started.
        on_done: called for each chunk that has been written.
    Returns: where it was done, in words.
    Raises: RunError when Spark can't be started; TaskError when tasks die.
    """
    rest = deque(chunks)
    active = None if address.remote else SparkSession.getActiveSession()
    helps = active is None and address.is_here

    def help_until(others: Collection[Future[Any]]) -> None:
        while helps and rest and not any(other.done() for other in others):
            chunk = rest.popleft()
            local_engine.play_chunk(chunk, works[chunk.variant], str(folder))
            on_done(chunk)

    with ThreadPoolExecutor(JOBS, thread_name_prefix="spark") as pool:
        if active is None:
            starting = pool.submit(start, address, folder / LOG)
            help_until([starting])
            session = starting.result()
        else:
            session = active
        on_start()
        try:
            with jobs(session, folder):
                _run_jobs(session, pool, works, rest, folder, help_until, on_done)
        finally:
            if active is None:
                # It takes a second, in which others may go on.
                threading.Thread(target=session.stop, name="spark-stop").start()
        return describe(session, address)


def _run_jobs(
    session: SparkSession,
    pool: ThreadPoolExecutor,
    works: Mapping[int, VariantWork],
    rest: deque[Chunk],
    folder: Path,
    help_until: Callable[[Collection[Future[Any]]], None],
    on_done: Done,
) -> None:
    size = CHUNKS_PER_CORE * cores(session)
    running: dict[Future[_Result], list[Chunk]] = {}
    is_first = True
    while rest or running:
        while rest and len(running) < JOBS:
            job = _next_job(rest, size)
            running[pool.submit(_run_job, session, works[job[0].variant], job)] = job
        if is_first:
            help_until(running)
            is_first = False
        finished, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in finished:
            job = running.pop(future)
            result = future.result()
            write_run_files(folder, result.pieces)
            for chunk in job:
                on_done(chunk)
            size = _next_size(size, len(job), result)


@attrs.frozen(kw_only=True)
class _Result:
    pieces: list[OutputFile]
    seconds: float


def _next_job(rest: deque[Chunk], size: int) -> list[Chunk]:
    """Chunks of one variant, so that one network travels with the job."""
    job = [rest.popleft()]
    while rest and len(job) < size and rest[0].variant == job[0].variant:
        job.append(rest.popleft())
    return job


def _next_size(size: int, last: int, result: _Result) -> int:
    volume = sum(len(piece.data) for piece in result.pieces)
    if volume > LARGE_JOB_BYTES:
        return max(1, size // 2)
    if last == size and result.seconds < SHORT_JOB_S and 2 * volume <= LARGE_JOB_BYTES:
        return min(2 * size, MAX_JOB)
    return size


def _run_job(session: SparkSession, work: VariantWork, chunks: Sequence[Chunk]) -> _Result:
    began = time.monotonic()
    first, last = chunks[0], chunks[-1]
    name_job(session, f"what-if: play scenarios {first.first} to {last.stop - 1} of variant {first.variant}")
    numbers = session.range(0, len(chunks), 1, len(chunks))
    table = numbers.mapInArrow(_function(work, tuple(chunks)), SCHEMA).toArrow()
    # The files of a chunk in the order in which they must be written: that of its scenarios is the last.
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    pieces = [OutputFile(name=name, data=data) for _, name, data in rows]
    return _Result(pieces=pieces, seconds=time.monotonic() - began)


def _function(
    work: VariantWork, chunks: tuple[Chunk, ...]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function of a task, for `mapInArrow`: to the places of chunks it gives their files."""

    def files(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        evaluator = evaluator_of(work)
        # After each task a worker collects garbage, which takes as long as many scenarios: what is there now stays.
        gc.freeze()
        for batch in batches:
            for place in batch.column(0).to_pylist():
                for piece in evaluator.evaluate(chunks[place]):
                    columns = [
                        pa.array([chunks[place].number], pa.int32()),
                        pa.array([piece.name], pa.string()),
                        pa.array([piece.data], pa.binary()),
                    ]
                    yield pa.record_batch(columns, names=["chunk", "name", "data"])

    return files


def name_job(session: SparkSession, words: str) -> None:
    """Let the jobs that this thread starts have a name in Spark's pages and event log; Spark Connect has none."""
    with contextlib.suppress(PySparkException):
        session.sparkContext.setJobDescription(words)


@contextlib.contextmanager
def jobs(session: SparkSession, place: Path) -> Iterator[None]:
    """Wait for jobs: when one fails the others end as well.

    Args:
        session: that runs them.
        place: named in errors.
    Raises: TaskError when tasks died.
    """
    try:
        yield
    except BaseException as error:
        with contextlib.suppress(*SPARK_ERRORS, OSError):  # it may be gone
            cancel(session)
        if isinstance(error, SPARK_ERRORS):
            raise task_error(error, place) from error
        raise


def cancel(session: SparkSession) -> None:
    """End what is running, so that whoever waits for it does so no longer."""
    try:
        session.sparkContext.cancelAllJobs()
    except PySparkException:
        session.interruptAll()
