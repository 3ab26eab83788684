"""Load in a process of its own: a function that tells its parent how it goes.

    with Task(publish, url, address, 300_000) as task:
        assert task.hear() == "ready"
        task.tell("go")
        figures = task.hear(60)

The function is called with a `Parent` before its arguments. What it returns is the last that the parent hears.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from tests.measure.credit.client import WAIT_S, Loop

_SPAWN = multiprocessing.get_context("spawn")
END_S = 5.0


class TaskError(Exception):
    """The function raised; the message is its traceback."""


class Parent:
    """What a task's function talks to."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe

    def tell(self, thing: Any) -> None:
        """Send something to the parent."""
        self._pipe.send(thing)

    def hear(self) -> Any:
        """Wait for what the parent says."""
        return self._pipe.recv()

    @property
    def has_said(self) -> bool:
        """Whether `hear` returns at once."""
        return self._pipe.poll()

    def run_until_told(self, loop: Loop) -> Any:
        """Move the bytes of *loop* until the parent says something. Returns: what it said."""
        loop.wake_on(self._pipe.fileno())
        while not self._pipe.poll():
            loop.step()
        loop.sleep_through(self._pipe.fileno())
        return self._pipe.recv()


class Task:
    """The process; a context manager that leaves none behind."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Start it."""
        self._pipe, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(target=_run, args=(function, theirs, arguments), daemon=True)
        self._process.start()
        theirs.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.join(END_S)
        self._pipe.close()

    def tell(self, thing: Any) -> None:
        """Send something to the function."""
        self._pipe.send(thing)

    def hear(self, timeout_s: float = WAIT_S) -> Any:
        """The next thing that the function tells, or returns.

        Raises:
            TaskError: it raised.
            TimeoutError: it says nothing.
        """
        if not self._pipe.poll(timeout_s):
            raise TimeoutError(f"{self._process.name} said nothing within {timeout_s:g} s")
        try:
            said = self._pipe.recv()
        except EOFError:
            raise TaskError("the process ended without a word") from None
        if isinstance(said, TaskError):
            raise said
        return said

    @property
    def has_told(self) -> bool:
        """Whether `hear` returns at once."""
        return self._pipe.poll()

    def stop(self) -> None:
        """SIGSTOP: its sockets stay open, nobody reads them."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT."""
        self._signal(signal.SIGCONT)

    def wait_ended(self, timeout_s: float = END_S) -> None:
        """Wait until the process is gone."""
        self._process.join(timeout_s)
        if self._process.is_alive():
            raise TimeoutError(f"{self._process.name} does not end")

    def _signal(self, number: signal.Signals) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, number)


def _run(function: Callable[..., Any], pipe: Connection, arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it and ends this process
    try:
        result = function(Parent(pipe), *arguments)
    except EOFError:
        return  # the parent is gone
    except (AssertionError, LookupError, OSError, TypeError, ValueError):
        result = TaskError(traceback.format_exc())
    try:
        pipe.send(result)
    except BrokenPipeError:
        pass  # the parent wants to know no more
