"""Standard output that can't be written: one line and status 1, whatever the command."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

DIFFERENT = ("--version", "config schema")
"""Commands whose output is written by click itself, and in pieces."""
OTHERS = ("--help", "completion bash", "config render router.yaml", "stat --help")
COMMANDS = (*DIFFERENT, *(pytest.param(words, marks=pytest.mark.slow) for words in OTHERS))
"""All of them for each fault: the place that tells of it is the same one."""

FULL = "Error: cannot write the output: No space left on device\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "router.yaml").write_text("router: {id: A, listeners: [{port: 0}]}", encoding="utf-8")
    return tmp_path


def ended(words: str, folder: Path, output: int) -> tuple[int, str]:
    line = [sys.executable, "-m", "router", *words.split()]
    done = subprocess.run(line, cwd=folder, stdout=output, stderr=subprocess.PIPE, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("words", [*DIFFERENT, *OTHERS])
def test_a_full_disk_is_told_in_one_line(words: str, folder: Path) -> None:
    with open("/dev/full", "wb") as full:
        assert ended(words, folder, full.fileno()) == (1, FULL)


def test_a_failing_output_is_no_answer_of_a_command_whose_status_is_one(folder: Path) -> None:
    """1 says of `check` that a limit isn't kept, and of `diff` that something differs."""
    pytest.importorskip("pyarrow")
    (folder / "mesh.yaml").write_text("routers: {A: {listeners: [{port: 5672}]}}", encoding="utf-8")
    for words in ("import mesh.yaml -o model", "run model -o out --engine local --workers 1 --no-report"):
        assert ended(f"whatif {words}", folder, subprocess.DEVNULL)[0] == 0
    reading, writing = os.pipe()
    os.close(reading)
    try:
        with open("/dev/full", "wb") as full:
            for words in ("check out --max-lost-pairs 0 --json", "check out --max-lost-pairs 0", "diff model model"):
                assert ended(f"whatif {words}", folder, subprocess.DEVNULL) == (0, "")
                assert ended(f"whatif {words}", folder, full.fileno()) == (2, FULL)
                assert ended(f"whatif {words}", folder, writing) == (2, "")
    finally:
        os.close(writing)


@pytest.mark.parametrize("words", COMMANDS)
def test_who_has_read_enough_hears_of_no_error(words: str, folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert ended(words, folder, writing) == (1, "")
    finally:
        os.close(writing)


@pytest.mark.parametrize("words", COMMANDS)
def test_an_output_that_is_closed_is_an_error(words: str, folder: Path) -> None:
    command = shlex.join([sys.executable, "-m", "router", *words.split()])
    done = subprocess.run(["sh", "-c", f"{command} >&-"], cwd=folder, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "Error: cannot write the output: Bad file descriptor\n")
