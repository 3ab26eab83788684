"""Works chunks out on this machine: in this process while it is a matter of seconds, then in a few others beside it."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs
import pyarrow as pa

from router.whatif.pipeline.atomic_files import write_run_files
from router.whatif.pipeline.chunk_evaluator import VariantWork, evaluator_of
from router.whatif.pipeline.worker_pool import work_off
from router.whatif.scenarios.scenario_plan import Chunk

TRIAL_S: Final = 0.7
POOL_PAYS_S: Final = 2.0
"""Processes start in about half a second."""

Done = Callable[[Chunk], None]


@attrs.frozen(kw_only=True)
class EngineResult:
    """Result of an engine, this one or Spark's, beside the tables."""

    engine: str
    """Description of the engine, in words."""
    coverage: float | None
    """Coverage, as in the table `run`."""
    summaries: Mapping[str, pa.Table]
    """Tables that sum up scenarios, by name: a few rows each."""


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
    Raises: RunExecutionError when processes die again and again.
    """
    rest = deque(chunks)
    count = workers or len(os.sched_getaffinity(0))
    began, played = time.monotonic(), 0
    left = sum(chunk.stop - chunk.first for chunk in rest)
    while rest:
        chunk = rest.popleft()
        play_chunk(chunk, works[chunk.variant], str(folder))
        on_done(chunk)
        scenarios = chunk.stop - chunk.first
        took, played, left = time.monotonic() - began, played + scenarios, left - scenarios
        if count > 1 and took > trial_s and left * took / played > pool_pays_s:
            break
    work_off(
        rest,
        play_chunk,
        lambda chunk: (chunk, works[chunk.variant], str(folder)),
        workers=count,
        place=folder,
        on_done=lambda chunk, _: on_done(chunk),
    )
