"""Processes that work tasks off, and die."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
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


WORK = """\
from operator import neg
from router.whatif.pipeline.worker_pool import work_off
print("read")
def work():
    work_off([1, 2, 3], neg, lambda task: (task,), workers=1, place="here", on_done=lambda *done: print(*done))
"""


def of_program(file: Path, text: str) -> tuple[str, str]:
    """What a program writes, and the last line of its errors."""
    file.write_text(text, encoding="utf-8")
    ended = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
    return ended.stdout, (ended.stderr.splitlines() or [""])[-1]


def test_a_program_that_processes_would_run_again_is_told_how_to_keep_them_from_it(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    out, error = of_program(file, f"{WORK}\nfor _ in range(1):\n    work()\n")
    assert out == "read\n", "no process has been started"
    assert (
        f"{file}:8: error: it starts processes, which would run all of this program again; expected what calls" in error
    )
    assert "below `if __name__ == '__main__':`" in error
    out, error = of_program(file, f"{WORK}\nif __name__ == '__main__':\n    work()\n")
    assert error == ""
    assert sorted(out.splitlines()) == ["1 -1", "2 -2", "3 -3", "read", "read"], "in the order in which they were done"


def test_a_program_that_calls_below_another_condition_hears_of_the_likely_cause(tmp_path: Path) -> None:
    _, error = of_program(tmp_path / "program.py", f"{WORK}\nif work:\n    work()\n")
    assert "processes die as soon as they start working; expected what calls it below `if __name__ ==" in error
    assert "; or more memory, or fewer --workers" in error
