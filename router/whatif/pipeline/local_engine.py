"""Works chunks out on this machine: in this process while it is a matter of seconds, then in a few others beside it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Final

from router.whatif.pipeline.atomic_files import write_run_files
from router.whatif.pipeline.chunk_evaluator import VariantWork, evaluator_of
from router.whatif.pipeline.run_staging import RunExecutionError, run_error
from router.whatif.scenarios.scenario_plan import Chunk

TRIAL_S: Final = 0.7
POOL_PAYS_S: Final = 2.0
"""Processes start in about half a second."""
AHEAD: Final = 2
"""Chunks that wait for each process."""

Done = Callable[[Chunk], None]


def play_chunk(chunk: Chunk, work: VariantWork, folder: str) -> None:
    """Work one chunk out and write its files."""
    write_run_files(Path(folder), evaluator_of(work).evaluate(chunk))


def run(
    works: Mapping[int, VariantWork],
    chunks: Sequence[Chunk],
    folder: Path,
    *,
    workers: int | None = None,
    trial_s: float = TRIAL_S,
    pool_pays_s: float = POOL_PAYS_S,
    on_done: Done,
) -> None:
    """Work chunks out, and write their files.

    Args:
        works: by variant.
        chunks: that are still to be done.
        folder: of the run.
        workers: processes at most; None: as many as there are processors; 1: none but this one.
        trial_s: seconds of work here before other processes are thought of.
        pool_pays_s: what is left goes to other processes when it would take longer here.
        on_done: called for each chunk that has been written.
    Raises: RunError when a process dies again and again.
    """
    rest = deque(chunks)
    count = workers or len(os.sched_getaffinity(0))
    began, played = time.monotonic(), 0
    while rest:
        chunk = rest.popleft()
        play_chunk(chunk, works[chunk.variant], str(folder))
        on_done(chunk)
        took, played = time.monotonic() - began, played + chunk.stop - chunk.first
        left = sum(chunk.stop - chunk.first for chunk in rest)
        if count > 1 and took > trial_s and left * took / played > pool_pays_s:
            break
    while rest:
        before = len(rest)
        rest = _run_pool(works, rest, folder, workers=min(count, len(rest)), on_done=on_done)
        if len(rest) == before:
            words = "processes die as soon as they start working"
            raise run_error(folder, words, "more memory, or fewer --workers", kind=RunExecutionError)


def _run_pool(
    works: Mapping[int, VariantWork], chunks: Sequence[Chunk], folder: Path, *, workers: int, on_done: Done
) -> deque[Chunk]:
    """Work chunks out in other processes. Returns: what is left to do because one of them died."""
    rest = deque(chunks)
    running: dict[Future[None], Chunk] = {}
    others = multiprocessing.active_children()
    # Not forked: a copy of this process may have other threads' locks, and has nothing that is needed.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=prepare_worker)
    try:
        while rest or running:
            while rest and len(running) < AHEAD * workers:
                chunk = rest.popleft()
                running[pool.submit(play_chunk, chunk, works[chunk.variant], str(folder))] = chunk
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                future.result()
                on_done(running.pop(future))
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
    """In a new process: leave interrupts to its parent, and end when that is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
