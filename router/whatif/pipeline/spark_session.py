"""Sessions of Spark: on this machine, on a cluster, through Spark Connect; how they are started, named, watched, ended.

Only DataFrames are used elsewhere, since Spark Connect has nothing else.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import IO, Any, Final
from urllib.parse import urlsplit

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import router
from mesh_config.usable_hosts import failure_words
from router.whatif.pipeline.held_signals import HeldSignals
from router.whatif.pipeline.run_staging import SPARK_LOG, RunError
from router.whatif.pipeline.spark_failures import start_error, task_error
from router.whatif.pipeline.spark_masters import REACHED_S, SparkAddress, fault_of_master, fault_of_remote, reach_master

LOG: Final = SPARK_LOG
"""Name of the file for what Spark logs."""
LOOPBACK: Final = "127.0.0.1"

SETTINGS: Final[Mapping[str, str]] = {
    "spark.app.name": "amqp-mesh whatif",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
"""Settings of Spark unless the caller says otherwise."""

HERE: Final[Mapping[str, str]] = {
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.host": LOOPBACK,
    # Its pages are at whatever port is free, and for this machine alone, see `_launch_variables`.
    "spark.ui.port": "0",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
"""Further ones when Spark works on this machine alone. Java's quick compiler is enough for who hands bytes on, and
saves a short run two seconds."""
PARTITIONS_PER_CORE: Final = 4
"""Shuffle partitions per core on this machine; adaptive execution merges small ones."""

WRITERS: Final = "spark.sql.maxConcurrentOutputFileWriters"
FILES_AT_ONCE: Final = 64
CANCELLED_EVERY_S: Final = 0.1
LOGGED_BY_PY4J: Final = "Exception while sending command."
"""Text that py4j logs by the root logger, with a traceback, beside the exception that it raises."""

CONNECT_PORT: Final = 15002
"""Default port of Spark Connect."""

SPARK_ERRORS: Final = (PySparkException, Py4JError)
"""Exceptions with which a job ends when its tasks die: of Spark Connect, or a driver in Java."""


def describe(session: SparkSession, address: SparkAddress) -> str:
    """Describe where it runs."""
    try:
        return f"spark {session.sparkContext.master}"
    except PySparkException:
        return f"spark {address.remote or os.environ.get('SPARK_REMOTE', 'connect')}"


def start(address: SparkAddress, log: Path) -> SparkSession:
    """A session, that of this thread if it has one. What a new one logs goes to the file *log*.

    Raises: RunError when Spark can't be started; it names a copy of the log, which stays when the folder of a run goes.
    """
    # Else workers take the python3 that they find first.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    remote = address.remote or (None if address.master else os.environ.get("SPARK_REMOTE"))
    if remote and (fault := fault_of_remote(remote, "remote" if address.remote else "SPARK_REMOTE")):
        raise RunError([fault])
    try:
        return _connect(remote, address) if remote else _launch(address, log)
    except (*SPARK_ERRORS, ImportError, OSError) as error:
        raise start_error(error, log, _master(address), is_remote=remote is not None) from error


def session_of(address: SparkAddress) -> SparkSession | None:
    """The session that this thread has, and that `start` would give; None when there is none, and it would make one."""
    if not (address.remote or (address.master is None and os.environ.get("SPARK_REMOTE"))):
        return SparkSession.getActiveSession()
    try:
        found: SparkSession | None = importlib.import_module(
            "pyspark.sql.connect.session"
        ).SparkSession.getActiveSession()
    except ImportError:  # `start` says what is missing
        return None
    return found


def is_active() -> bool:
    """Whether this thread has a session."""
    return SparkSession.getActiveSession() is not None


@contextlib.contextmanager
def session(address: SparkAddress, log: Path) -> Iterator[SparkSession]:
    """Start a session as `start` does; one that is new is stopped at the end, which else ends with a traceback.

    Raises: RunError when Spark can't be started.
    """
    before = session_of(address)
    # Whose value Spark, started by a master, refuses, and pyspark takes for its own whenever it makes a function.
    with _variables({"SPARK_REMOTE": None} if address.master else {}):
        found = start(address, log)
        try:
            yield found
        finally:
            if found is not before:
                found.stop()


def _connect(remote: str, address: SparkAddress) -> SparkSession:
    # Not by the usual builder, which refuses a process that has a session of the other kind.
    builder = importlib.import_module("pyspark.sql.connect.session").SparkSession.builder
    _reach(remote)
    builder = builder.remote(remote)
    for key, value in address.settings.items():
        builder = builder.config(key, value)
    session: Any = builder.getOrCreate()
    found: SparkSession = session
    return found


def _reach(remote: str) -> None:
    """Look whether anybody answers at an address: its client would go on trying for a quarter of an hour.

    Raises: OSError
    """
    place = urlsplit(remote)
    host = place.hostname or ""
    try:
        socket.create_connection((host, place.port or CONNECT_PORT), REACHED_S).close()
    except OSError as error:
        raise OSError(f"no answer from {remote}: {failure_words(error, host)}") from error


def _master(address: SparkAddress) -> str | None:
    """The master that was given, by the variable too, which spark-submit does not heed."""
    return address.master or (None if "PYSPARK_GATEWAY_PORT" in os.environ else os.environ.get("MASTER"))


def _launch(address: SparkAddress, log: Path) -> SparkSession:
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    conf = SparkConf(loadDefaults=False)
    master = _master(address)
    if master is not None and (fault := fault_of_master(master, "master" if address.master else "MASTER")):
        raise RunError([fault])
    if master is not None:
        reach_master(master)
    if master is None and not is_submitted:
        # A task that fails is tried again.
        master = f"local[{_cores_here(address)},2]"
    settings = dict(SETTINGS)
    if master is not None:
        settings["spark.master"] = master
        if master.startswith("local") or LOOPBACK in master or "localhost" in master:
            settings |= HERE
            settings["spark.sql.shuffle.partitions"] = str(PARTITIONS_PER_CORE * _cores_here(address))
    for key, value in (settings | dict(address.settings)).items():
        conf.set(key, value)
    java = _StartingJava()
    try:
        with HeldSignals(java.end) as held:
            gateway = None
            if SparkContext._gateway is None and not is_submitted:  # else it is used
                with log.open("ab") as file, _variables(_launch_variables(is_here=settings.keys() >= HERE.keys())):
                    gateway = java.launch(conf, file)
            held.check()
            context = SparkContext(conf=conf, gateway=gateway)
            held.take()  # again: pyspark has taken SIGINT
            _let_java_end_in_silence(context)
            return SparkSession(context)
    finally:
        java.forget_if_ended()


class _StartingJava:
    """Java of a session that is being started, which a signal ends, and so what waits for it."""

    def __init__(self) -> None:
        gateway: Any = SparkContext._gateway
        self._process: subprocess.Popen[bytes] | None = gateway and gateway.proc
        self._is_ended = False

    def launch(self, conf: SparkConf, log: IO[bytes]) -> Any:
        """Start Java. Returns: pyspark's gateway to it."""

        class Popen(subprocess.Popen[bytes]):
            """Process of Java, known before pyspark waits for it."""

            def __init__(process, *args: Any, **options: Any) -> None:  # noqa: N805 - there is another self
                super().__init__(*args, **options)
                self._process = process
                if self._is_ended:
                    process.terminate()

        module: Any = java_gateway  # which has no types
        before, module.Popen = module.Popen, Popen
        try:
            # A signal to this process group is for this process, which ends Java in order; it ends with its input too.
            return module.launch_gateway(conf, {"stdout": log, "stderr": subprocess.STDOUT, "process_group": 0})
        finally:
            module.Popen = before

    def end(self) -> None:
        """End Java in order; the second time at once."""
        if self._process is not None:
            (self._process.kill if self._is_ended else self._process.terminate)()
        self._is_ended = True

    def forget_if_ended(self) -> None:
        """Let the next session have a Java of its own."""
        if self._is_ended:
            SparkContext._gateway = SparkContext._jvm = None


def _let_java_end_in_silence(context: SparkContext) -> None:
    """Leave it to whoever waits for Java to say that it has ended: threads of pyspark and py4j write tracebacks."""
    server: Any = context._accumulatorServer
    handle = server.handle_error

    def handle_error(request: object, address: object) -> None:
        if not isinstance(sys.exc_info()[1], (EOFError, OSError, PySparkException)):
            handle(request, address)

    server.handle_error = handle_error
    logging.getLogger().addFilter(_is_told_by_nobody)


def _is_told_by_nobody(record: logging.LogRecord) -> bool:
    return record.msg != LOGGED_BY_PY4J


def _launch_variables(*, is_here: bool) -> dict[str, str]:
    """Variables of the environment that Spark is to start with.

    Args:
        is_here: whether it works on this machine alone: then its pages are seen from here alone, too.
    """
    root = str(Path(router.__file__).parent.parent)
    path = os.environ.get("PYTHONPATH")
    # Workers on this machine find the modules that this process has, though they be installed nowhere.
    wanted = {"PYTHONPATH": os.pathsep.join([root, path] if path else [root])}
    if is_here:
        wanted["SPARK_LOCAL_IP"] = LOOPBACK
    return wanted


@contextlib.contextmanager
def _variables(wanted: Mapping[str, str | None]) -> Iterator[None]:
    """Let variables of the environment have other values meanwhile; None: they are not set."""
    before = {name: os.environ.get(name) for name in wanted}
    _set_variables(wanted)
    try:
        yield
    finally:
        _set_variables(before)


def _set_variables(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def pages(session: SparkSession) -> str | None:
    """Address of Spark's pages about this session; None where there are none, or it isn't known here."""
    try:
        url: str | None = session.sparkContext.uiWebUrl
    except PySparkException:  # Spark Connect doesn't say
        return None
    return url


def functions_of(frame: DataFrame) -> Any:
    """The module of functions of columns, which is another one for DataFrames of Spark Connect."""
    return importlib.import_module(f"{_package_of(frame)}.functions")


def window_of(frame: DataFrame) -> Any:
    """The class `Window`, of which there are two in the same way."""
    return importlib.import_module(f"{_package_of(frame)}.window").Window


def _package_of(frame: DataFrame) -> str:
    # pyspark's own choice goes by the process, which may have sessions of both kinds.
    is_remote = type(frame).__module__.startswith("pyspark.sql.connect.")
    return "pyspark.sql.connect" if is_remote else "pyspark.sql"


def _cores_here(address: SparkAddress) -> int:
    return address.workers or len(os.sched_getaffinity(0))


def cores(session: SparkSession) -> int:
    """Tasks that run at the same time, as far as can be told before any ran."""
    try:
        return max(1, int(session.sparkContext.defaultParallelism))
    except PySparkException:  # Spark Connect doesn't say
        return len(os.sched_getaffinity(0))


@contextlib.contextmanager
def many_files_at_once(session: SparkSession) -> Iterator[None]:
    """Let a task write a file for each of many folders at once, in the order in which rows come.

    Otherwise Spark would sort rows by folder first, and not keep the order of those of one folder.

    Args:
        session: whose setting it is meanwhile.
    """
    before = session.conf.get(WRITERS, None)
    session.conf.set(WRITERS, FILES_AT_ONCE)
    try:
        yield
    finally:
        with contextlib.suppress(*SPARK_ERRORS, OSError):  # it may be gone
            session.conf.unset(WRITERS) if before is None else session.conf.set(WRITERS, before)


def name_job(session: SparkSession, words: str) -> None:
    """Let the jobs that this thread starts have a name in Spark's pages and event log; Spark Connect has none."""
    with contextlib.suppress(PySparkException):
        session.sparkContext.setJobDescription(words)


@contextlib.contextmanager
def jobs(session: SparkSession, place: object) -> Iterator[None]:
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


@contextlib.contextmanager
def signals_end_jobs(session: SparkSession) -> Iterator[None]:
    """Let SIGTERM and SIGINT end Spark's jobs, and so what waits for them, in a main thread that talks to Java itself.

    An exception in the middle of such a call would leave its answer unread, to be taken for that of the next one: then
    nothing could be cleared up.

    Args:
        session: that runs the jobs.
    Raises: SystemExit, KeyboardInterrupt when a signal has come, and what waited has ended because of it.
    """
    came: list[int] = []
    has_come, is_over = threading.Event(), threading.Event()

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)
        has_come.set()

    def end_jobs() -> None:
        has_come.wait()
        while not is_over.wait(CANCELLED_EVERY_S):  # others may be begun
            with contextlib.suppress(*SPARK_ERRORS, OSError):
                cancel(session)

    ending = threading.Thread(target=end_jobs, name="spark-signals")
    ending.start()
    before = {number: signal.signal(number, note) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    except Exception:
        if came:
            raise (KeyboardInterrupt() if came[0] == signal.SIGINT else SystemExit(128 + came[0])) from None
        raise
    finally:
        is_over.set()
        has_come.set()
        ending.join()
        for number, handler in before.items():
            signal.signal(number, handler)


def cancel(session: SparkSession) -> None:
    """End what is running, so that whoever waits for it does so no longer."""
    try:
        session.sparkContext.cancelAllJobs()
    except PySparkException:
        session.interruptAll()
