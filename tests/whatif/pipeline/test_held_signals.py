"""Ctrl-C and SIGTERM while Spark starts: the command ends soon and in order, and Java with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from router.whatif.formats.model_folder import write_model
from router.whatif.pipeline.held_signals import EndedBySignalError, HeldSignals, import_whole
from tests.helpers.interruptible_main import MAIN, START
from tests.helpers.processes import wait_until
from tests.whatif.runs import everything

WAIT_S = 60
LOST_IN_IMPORT = """
import builtins
import_as_usual = builtins.__import__
def import_interrupted(name, *given, **more):
    if name == "py4j.protocol":
        builtins.__import__ = import_as_usual
        try:
            signal.raise_signal(signal.SIGINT)
        except BaseException:
            pass
    return import_as_usual(name, *given, **more)
builtins.__import__ = import_interrupted
"""
IN_A_CALL_TO_JAVA = """
from pyspark import SparkContext
initialize = SparkContext._initialize_context
def initialize_interrupted(*given):
    signal.raise_signal(signal.SIGINT)
    return initialize(*given)
SparkContext._initialize_context = initialize_interrupted
"""


@pytest.fixture
def java_that_never_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Spark whose Java starts, and does nothing until its input ends. The file that has the number of its process."""
    submit = tmp_path / "spark" / "bin" / "spark-submit"
    submit.parent.mkdir(parents=True)
    (tmp_path / "spark" / "jars").mkdir()
    number = tmp_path / "number"
    submit.write_text(f"#!/bin/sh\necho $$ > {number}.new; mv {number}.new {number}\nexec cat\n", encoding="ascii")
    submit.chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    return number


def started(script: str, words: list[str]) -> subprocess.Popen[str]:
    """A command that begins with a script."""
    return subprocess.Popen(
        [sys.executable, "-c", f"{START}{script}\n{MAIN}", "whatif", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def watch(folder: Path) -> list[str]:
    return ["watch", "amqp://127.0.0.1:1", "--checkpoint", str(folder / "job")]


def run(folder: Path) -> list[str]:
    write_model(everything(), folder / "model")
    return ["run", str(folder / "model"), "-o", str(folder / "run"), "--engine", "spark"]


@pytest.mark.parametrize(
    ("words", "number", "status"),
    [
        (watch, signal.SIGINT, 0),
        (watch, signal.SIGTERM, 0),
        (run, signal.SIGINT, 130),
        (run, signal.SIGTERM, 128 + signal.SIGTERM),
    ],
)
def test_a_signal_ends_a_command_whose_java_has_not_answered_yet(
    words: Callable[[Path], list[str]], number: int, status: int, tmp_path: Path, java_that_never_answers: Path
) -> None:
    process = started("", words(tmp_path))
    try:
        wait_until(java_that_never_answers.exists, "Java", WAIT_S)
        process.send_signal(number)
        _, errors = process.communicate(timeout=WAIT_S)
    finally:
        process.kill()
    assert process.returncode == status
    assert "starting Spark" in errors
    assert "Traceback" not in errors
    java = int(java_that_never_answers.read_text(encoding="ascii"))
    wait_until(lambda: not Path(f"/proc/{java}").exists(), "the end of Java", WAIT_S)


def test_a_signal_whose_exception_an_import_would_have_lost_ends_watch(
    tmp_path: Path, java_that_never_answers: Path
) -> None:
    process = started(LOST_IN_IMPORT, watch(tmp_path))
    try:
        output, errors = process.communicate(timeout=WAIT_S)
    finally:
        process.kill()
    assert (process.returncode, output, errors) == (0, "", "")
    assert not java_that_never_answers.exists()


def test_a_signal_in_a_call_to_java_ends_java_and_watch(tmp_path: Path) -> None:
    process = started(IN_A_CALL_TO_JAVA, watch(tmp_path))
    try:
        _, errors = process.communicate(timeout=WAIT_S)
    finally:
        process.kill()
    assert (process.returncode, errors) == (0, "starting Spark, which may take a minute\n")


def test_a_signal_waits_for_the_end_of_an_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "interrupted_module.py"
    module.write_text("import signal\nsignal.raise_signal(signal.SIGTERM)\nis_whole = True\n", encoding="ascii")
    monkeypatch.syspath_prepend(tmp_path)
    seen: list[object] = []
    before = signal.signal(
        signal.SIGTERM, lambda *_: seen.append(getattr(sys.modules[module.stem], "is_whole", "not yet"))
    )
    try:
        import_whole(module.stem)
    finally:
        signal.signal(signal.SIGTERM, before)
        sys.modules.pop(module.stem, None)
    assert seen == [True]


def signalled(handler: Callable[[str], object]) -> None:
    with HeldSignals(lambda: None) as held:
        handler("meanwhile")
        held.take()
        signal.raise_signal(signal.SIGTERM)


def test_who_takes_a_signal_meanwhile_keeps_it_unless_one_has_come() -> None:
    came: list[str] = []

    def handler(name: str) -> object:
        return signal.signal(signal.SIGTERM, lambda *_: came.append(name))

    before = handler("first")
    try:
        with HeldSignals(lambda: None) as held:
            handler("meanwhile")
            held.take()
        os.kill(os.getpid(), signal.SIGTERM)
        assert came == ["meanwhile"]
        handler("first")
        with pytest.raises(EndedBySignalError):
            signalled(handler)
        assert came == ["meanwhile", "first"]
        signal.raise_signal(signal.SIGTERM)
        assert came == ["meanwhile", "first", "first"]
    finally:
        signal.signal(signal.SIGTERM, before)  # type: ignore[arg-type]
