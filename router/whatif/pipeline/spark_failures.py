"""Errors of Spark and of its tasks in one line: the cause, and the setting that helps.

Spark gives the traceback of the worker, or a hundred lines of Java. Its exceptions are of several classes, by whether
the driver is here or behind Spark Connect, with nothing in common but their text.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import tempfile
from pathlib import Path
from typing import Final

from router.whatif.pipeline.run_staging import RunError, RunExecutionError, run_error

LAST_LINES: Final = 3
"""Lines of a log that an error shows."""
UNRESPONSIVE: Final = "All masters are unresponsive"
"""Line that Spark logs when a master has not answered it for a minute."""
MAX_WORDS: Final = 200
"""Characters of what Spark, or Hadoop's client in it, itself says."""

_MEMORY: Final = "--spark-conf spark.executor.memoryOverhead=1g; on this machine fewer --workers"
_CAUSES: Final = (
    (r"No module named '?([\w.]+)", "workers lack the Python module `{}`", "--spark-conf spark.pyspark.python=PATH"),
    (r"\bMemoryError\b", "a worker has too little memory", _MEMORY),
    (
        r"java\.lang\.OutOfMemoryError",
        "Java has too little memory",
        "--spark-conf spark.executor.memory=2g, or spark.driver.memory=2g",
    ),
    (
        r"Python worker exited unexpectedly",
        "a Python worker died, as those do that the system ends for want of memory",
        _MEMORY,
    ),
    (r"ExecutorLostFailure|[Ll]ost executor|Master removed our application", "executors are lost again and again", ""),
)
"""Patterns in their order; the cause in words; the setting that helps."""
_EXCEPTION: Final = re.compile(r"^(Exception in thread .*|(\w+\.)+\w+(Exception|Error)\b)")
_PYTHON_ERROR: Final = re.compile(r"^(?:[\w.]+\.)?\w*(?:Error|Exception|Exit|Interrupt)\b.*$", re.MULTILINE)


class TaskError(RunExecutionError):
    """Tasks of Spark died, more often than Spark tries them; `findings` has why."""


def task_error(error: Exception, place: object) -> TaskError:
    """Make an error of one finding of that with which a job of Spark ended.

    Args:
        error: that of pyspark or py4j.
        place: of Spark's log, which has more, or of the run.
    """
    text = str(error)
    for pattern, cause, remedy in _CAUSES:
        match = re.search(pattern, text)
        if match is not None:
            return _finding(place, cause.format(*match.groups()), remedy)
    # The last line of a traceback says what it was.
    lines = (
        _PYTHON_ERROR.findall(text) or [line for line in text.splitlines() if line.strip()] or [type(error).__name__]
    )
    return _finding(place, lines[-1 if _PYTHON_ERROR.search(text) else 0].strip()[:MAX_WORDS], "")


def _finding(place: object, cause: str, remedy: str) -> TaskError:
    return TaskError(run_error(place, f"a task of Spark failed: {cause}", remedy).findings)


def start_error(error: Exception, log: Path, master: str | None, *, is_remote: bool) -> RunError:
    """Make an error of that with which Spark could not be started.

    Args:
        error: that of pyspark or py4j, or of who looked whether anybody answers.
        log: file for what Spark logs, which may go when this is raised: a copy of it is named.
        master: that was given; None without.
        is_remote: whether it is Spark Connect.
    """
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    words = " ".join([*str(error).strip().splitlines()[:2], *_said(text)])
    expected = ""
    if is_remote and isinstance(error, ImportError):  # grpcio and others, which only Spark Connect needs
        expected = "pip install '.[connect]' in a clone of its repository"
    elif UNRESPONSIVE in text:
        words = f"what answers at {master} doesn't take this program's work"
        expected = f"the address of a master of Spark {importlib.metadata.version('pyspark')}, as its own page shows it"
    elif master is not None and master not in words:
        words = f"{master}: {words}"
    return run_error(_kept(text), f"Spark can't be started: {words}", expected)


def _said(log: str) -> list[str]:
    """The exception that a log begins with, else its last lines, without stacks."""
    lines = [line.strip() for line in log.splitlines() if line.strip() and not line.startswith(("\t", " "))]
    found = [line for line in lines if _EXCEPTION.search(line)]
    return found[:1] or lines[-LAST_LINES:]


def _kept(log: str) -> str | None:
    """Copy a log to where it stays. Returns: the place; None when nothing was logged."""
    if not log:
        return None
    number, place = tempfile.mkstemp(prefix="amqp-mesh-spark-", suffix=".log")
    with os.fdopen(number, "w", encoding="utf-8") as copy:
        copy.write(log)
    return place
