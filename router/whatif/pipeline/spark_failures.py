"""Errors of Spark's tasks in one line: the cause, and the setting that helps.

Spark gives the traceback of the worker, or a hundred lines of Java. Its exceptions are of several classes, by whether
the driver is here or behind Spark Connect, with nothing in common but their text.
"""

from __future__ import annotations

import re
from typing import Final

from router.whatif.pipeline.run_staging import RunExecutionError, run_error

MAX_WORDS: Final = 200
"""Characters of what Spark itself says."""

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
