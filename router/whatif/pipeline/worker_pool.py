"""Processes of this machine that work tasks off; what one that died was at is done again by others."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any, Final, TypeVar

from router.whatif.pipeline.main_guard_check import EXPECTED, lacks_guard, unguarded_place
from router.whatif.pipeline.run_staging import RunExecutionError, run_error

AHEAD: Final = 2
"""Tasks that wait for each process."""

Task = TypeVar("Task")
Result = TypeVar("Result")


def work_off(
    tasks: Sequence[Task],
    function: Callable[..., Result],
    arguments: Callable[[Task], tuple[Any, ...]],
    *,
    workers: int,
    place: object,
    on_done: Callable[[Task, Result], None],
) -> None:
    """Call a function for each task in other processes.

    Args:
        tasks: in the order in which they are begun.
        function: of a module, which the processes import.
        arguments: of the function, for a task.
        workers: processes at most.
        place: named in errors.
        on_done: told of each task that is done, and its result.
    Raises: RunError when they would run the program that calls this again; RunExecutionError when processes die again
        and again.
    """
    rest = deque(tasks)
    if rest and (line := unguarded_place()) is not None:
        raise run_error(line, "it starts processes, which would run all of this program again", EXPECTED)
    while rest:
        before = len(rest)
        rest = _until_one_dies(rest, function, arguments, workers=min(workers, len(rest)), on_done=on_done)
        if len(rest) == before:
            words = "processes die as soon as they start working"
            expected = "more memory, or fewer --workers; --resume keeps what is done"
            if lacks_guard():
                expected = f"{EXPECTED}; or {expected}"
            raise run_error(place, words, expected, kind=RunExecutionError)


def _until_one_dies(
    tasks: deque[Task],
    function: Callable[..., Result],
    arguments: Callable[[Task], tuple[Any, ...]],
    *,
    workers: int,
    on_done: Callable[[Task, Result], None],
) -> deque[Task]:
    """Work tasks off in new processes. Returns: what is left to do because one of them died."""
    rest = deque(tasks)
    running: dict[Future[Result], Task] = {}
    others = multiprocessing.active_children()
    # Not forked: a copy of this process may have other threads' locks, and has nothing that is needed.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=prepare_worker)
    try:
        while rest or running:
            while rest and len(running) < AHEAD * workers:
                running[pool.submit(function, *arguments(rest[0]))] = rest[0]
                rest.popleft()  # not before: nothing can be submitted once a process has died
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                result = future.result()
                on_done(running.pop(future), result)
    except BrokenProcessPool:
        rest.extendleft(reversed(running.values()))
    finally:
        if rest or running:  # interrupted: what they are at is of no use
            for process in multiprocessing.active_children():
                if process not in others:
                    process.terminate()
        pool.shutdown(wait=True, cancel_futures=True)
    return rest


def prepare_worker() -> None:
    """Prepare a new process: leave interrupts to its parent, and end when that is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
