"""What `amqp-mesh bench` says when it can't go on."""

from __future__ import annotations

import importlib.util
import shlex
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from router.bench.cases import OTHERS
from router.bench.load_connection import CLOSE_S
from tests.bench.conftest import run
from tests.helpers.processes import ReservedPort

ENDED = str(2**31 - 1)
"""No process has such a number: Linux counts them to 2**22."""


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["steam-100B"], "did you mean 'stream-100B'?"),
        (["rcp"], "did you mean 'rpc'?"),
        (["xyzzy"], "there are copies-200, fan"),
        (["--hops", "0"], "expected numbers from 1 to 16"),
        (["--hops", "one"], "expected numbers from 1 to 16"),
        (["--compare", "amqps://127.0.0.1:5671"], "is no URL of a router: expected amqp://HOST:PORT"),
        (["--compare", "x=amqp://127.0.0.1:none"], "is no URL of a router: expected amqp://HOST:PORT"),
        (["--compare", "direct=amqp://127.0.0.1"], "two paths would be named 'direct'"),
        (["--compare", "a=amqp://127.0.0.1", "--compare-pid", "b=1"], "there is no --compare b=URL; expected one of a"),
        (["--compare-pid", "b=1"], "there is no --compare b=URL, nor any other"),
        (["--compare", "a=amqp://127.0.0.1", "--compare-pid", "a"], "expected the id of a process"),
        (["--compare", "a=amqp://127.0.0.1", "--compare-pid", "0"], "expected the id of a process"),
        (["--compare", "a=amqp://127.0.0.1", "--compare-pid", ENDED], f"no process {ENDED} runs here"),
        (["--compare", "a=amqp://127.0.0.1", "--compare-pid", f"a={ENDED}"], f"no process {ENDED} runs here"),
        (["--compare-pid", "4711"], "--compare-pid 4711: there is no --compare whose process it could be"),
        (["--router-command", "'"], "--router-command"),
        (["--picture", "found.pdf"], "the name of a picture ends in .png or .svg"),
        (["memory", "--picture", "found.png"], "oslo, spill, memory, idle, start can't be drawn without other cases"),
    ],
)
def test_a_wrong_command_is_refused_before_anything_is_started(words: list[str], hint: str) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert hint in " ".join(result.output.split())


def test_a_picture_without_matplotlib_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    result = run("stream-100B", "--picture", "found.png")
    assert result.exit_code == 2
    assert "pip install '.[bench]' in a clone of its repository" in result.output


def test_calls_by_oslo_messaging_without_it_name_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    result = run("oslo")
    assert result.exit_code == 2
    assert "pip install '.[demo]' in a clone of its repository" in " ".join(result.output.split())


def test_too_few_open_files_are_told_before_anything_is_started() -> None:
    words = shlex.join([sys.executable, "-m", "router", "bench", "--quick", "copies-200"])
    found = subprocess.run(["sh", "-c", f"ulimit -n 400; {words}"], capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert "1024 open files are needed, and `ulimit -n` allows 400" in " ".join(found.stderr.split())


def test_nobody_at_the_url_is_an_error() -> None:
    port = ReservedPort()
    try:
        result = run("--quick", "stream-100B", "--hops", "", "--compare", f"amqp://127.0.0.1:{port.number}")
    finally:
        port.close()
    assert result.exit_code == 1
    assert f"no connection to 127.0.0.1:{port.number}: Connection refused" in result.output


def test_a_router_that_does_not_come_up_shows_the_end_of_its_log(tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text("import sys\nsys.stderr.write('no such luck\\n')\nsys.exit(3)\n", encoding="utf-8")
    command = shlex.join([sys.executable, str(script)])
    result = run("--quick", "stream-100B", "--hops", "1", "--router-command", command)
    assert result.exit_code == 1
    assert "router R1 ended with status 3; its log ends with:\n  no such luck" in result.output


def test_a_command_that_is_not_there_is_an_error() -> None:
    result = run("--quick", "stream-100B", "--hops", "1", "--router-command", "/nowhere/amqp-mesh")
    assert result.exit_code == 1
    assert "/nowhere/amqp-mesh cannot be started: No such file or directory" in result.output


@pytest.mark.parametrize("option", ["--json", "--picture"])
def test_a_file_without_a_folder_is_refused_before_anything_is_measured(option: str) -> None:
    result = run("stream-100B", "--seconds", "3600", option, "/nowhere/found.svg")
    assert result.exit_code == 2
    assert "/nowhere/found.svg: its folder is not there, or can't be written to" in result.output


def test_a_peer_that_speaks_no_amqp_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        port = listener.getsockname()[1]

        def greet() -> None:
            peer, _ = listener.accept()
            peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            peer.close()

        thread = threading.Thread(target=greet)
        thread.start()
        before = time.process_time()
        result = run("--quick", "stream-100B", "--hops", "", "--compare", f"amqp://127.0.0.1:{port}")
        thread.join()
    assert time.process_time() - before < CLOSE_S / 2, "it asks a socket that is at its end again and again"
    assert result.exit_code == 1
    assert "ended the connection: amqp:connection:framing-error" in result.output


def test_the_cases_are_listed() -> None:
    result = run("--list")
    assert result.exit_code == 0
    assert "rpc-50" in result.output
    assert "50 callers, 200 bytes, one call each at a time" in result.output
    for name in OTHERS:
        assert name in result.output
