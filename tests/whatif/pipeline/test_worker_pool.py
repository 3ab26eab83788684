"""Processes that work tasks off, and die."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from router.whatif.pipeline.run_staging import RunExecutionError
from router.whatif.pipeline.worker_pool import work_off


def doubled(number: int, folder: str) -> int:
    """Twice the number; the process that is the first to be asked for 3 dies of it."""
    mark = Path(folder) / "died"
    if number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


def deadly(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_what_a_process_was_at_that_died_is_done_by_another(tmp_path: Path) -> None:
    found: dict[int, int] = {}
    told: Counter[int] = Counter()

    def on_done(task: int, result: int) -> None:
        told[task] += 1
        found[task] = result

    work_off(range(20), doubled, lambda task: (task, str(tmp_path)), workers=2, place=tmp_path, on_done=on_done)
    assert (tmp_path / "died").exists()
    assert found == {task: 2 * task for task in range(20)}
    assert set(told.values()) == {1}
    assert not multiprocessing.active_children()


def test_processes_that_die_again_and_again_are_an_error_that_names_resume(tmp_path: Path) -> None:
    with pytest.raises(RunExecutionError) as caught:
        work_off([1, 2], deadly, lambda task: (task,), workers=2, place=tmp_path, on_done=lambda *_: None)
    expected = "processes die as soon as they start working; expected more memory, or fewer --workers; --resume keeps"
    assert str(caught.value).startswith(f"{tmp_path}: error: {expected}")
    assert not multiprocessing.active_children()
