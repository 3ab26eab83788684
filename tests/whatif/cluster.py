"""Real Spark processes for tests, from the jars of the pip package: a standalone cluster, a server of Spark Connect."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import attrs
import pyspark

import router

HOME = Path(pyspark.__file__).parent
LOOPBACK = "127.0.0.1"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For processes that live for seconds."""
FEW_ROWS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
}
"""Settings for a few rows at a time: to compile what reads them takes longer than to interpret it. Whole runs as they
are without these are in `test_spark_cluster.py`."""
WAIT_S = 90


def environment() -> dict[str, str]:
    """Of Spark's processes: they find what this process has imported, wherever that is."""
    return os.environ | {
        "SPARK_HOME": str(HOME),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_DAEMON_MEMORY": "600m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(Path(router.__file__).parent.parent),
    }


class SparkProcess:
    """One process, with all that it starts."""

    def __init__(self, *command: str) -> None:
        self.process = subprocess.Popen(
            [str(HOME / "bin" / command[0]), *command[1:]],
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.last: deque[str] = deque(maxlen=20)
        """What it wrote last."""
        self._pattern: re.Pattern[str] | None = None
        self._found: re.Match[str] | None = None
        self._said = threading.Event()
        self._reader = threading.Thread(target=self._read)

    def said(self, pattern: str) -> re.Match[str]:
        """Wait until it writes a line in which *pattern* is found. To be called once."""
        self._pattern = re.compile(pattern)
        # It is read to its end, since a process whose pipe is full waits.
        self._reader.start()
        assert self._said.wait(WAIT_S), "".join(self.last)
        assert self._found is not None, "".join(self.last)
        return self._found

    def _read(self) -> None:
        assert self.process.stderr is not None
        assert self._pattern is not None
        for line in self.process.stderr:
            if not line.startswith("\tat "):  # not the calls that led to an exception
                self.last.append(line)
            self._found = self._found or self._pattern.search(line)
            if self._found:
                self._said.set()
        self._said.set()

    def kill(self) -> None:
        """At once, without a word to anybody; what it has started as well."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if self._reader.ident is not None:
            self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()


@attrs.frozen
class Cluster:
    """A standalone cluster."""

    url: str
    workers: list[SparkProcess]


@contextlib.contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[Cluster]:
    """A master and workers of one core each."""
    with contextlib.ExitStack() as stack:

        def start(role: str, *args: str) -> SparkProcess:
            name = f"org.apache.spark.deploy.{role.lower()}.{role}"
            ports = ("--host", LOOPBACK, "--port", "0", "--webui-port", "0")
            process = SparkProcess("spark-class", name, *ports, *args)
            stack.callback(process.kill)
            return process

        url = start("Master").said(r"Starting Spark master at (\S+)")[1]
        started = [
            start("Worker", "--cores", "1", "--memory", "700m", "--work-dir", str(folder / f"worker{number}"), url)
            for number in range(workers)
        ]
        for worker in started:
            worker.said("Successfully registered with master")
        yield Cluster(url, started)


@contextlib.contextmanager
def connect() -> Iterator[str]:
    """A server of Spark Connect that works by itself. Gives its address."""
    settings = {
        "spark.master": "local[2,2]",
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.host": LOOPBACK,
        "spark.driver.extraJavaOptions": QUICK,
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": "0",
        **FEW_ROWS,
    }
    options = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    name = "org.apache.spark.sql.connect.service.SparkConnectServer"
    server = SparkProcess("spark-submit", *options, "--class", name, "spark-internal")
    try:
        # Of an address such as `/127.0.0.1:43211`.
        port = server.said(r"Spark Connect server started at: \S*:(\d+)")[1]
        yield f"sc://{LOOPBACK}:{port}"
    finally:
        server.kill()
