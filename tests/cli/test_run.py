"""`amqp-mesh run`: what it says of its settings file, and its exit status."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from router.cli import main
from router.daemon import OTHERS
from tests.helpers.processes import parse_log

STOP_S = 15

MESH = """
routers:
  alpha:
    listeners: [{port: 0}]
  twice:
    listeners:
    - {port: 7}
    - {port: 7}
  unread:
    lsteners: []
"""


@pytest.fixture
def mesh(tmp_path: Path) -> str:
    file = tmp_path / "mesh.yaml"
    file.write_text(MESH, encoding="utf-8")
    return str(file)


@contextmanager
def running(*words: str) -> Iterator[subprocess.Popen[str]]:
    """A process of `amqp-mesh run`, which is gone at the end."""
    with subprocess.Popen(
        [sys.executable, "-m", "router", "run", *words], stderr=subprocess.PIPE, text=True, env=os.environ.copy()
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


@contextmanager
def inheriting(number: signal.Signals, handler: signal.Handlers) -> Iterator[None]:
    """Processes that start meanwhile heed a signal, or have it ignored, as a shell does in the background."""
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize(
    ("router_id", "words"),
    [
        (
            "alfa",
            ":1: error: routers: no router `alfa`; expected one of `alpha`, `twice`, `unread`; did you mean `alpha`?",
        ),
        ("unread", ":10: error: routers.unread.lsteners: unknown key `lsteners`; did you mean"),
        ("twice", ":8: error: routers.twice.listeners[1].port: 127.0.0.1:7 collides with 127.0.0.1:7"),
    ],
)
def test_settings_that_are_wrong_end_it_with_1_and_one_readable_line(mesh: str, router_id: str, words: str) -> None:
    result = CliRunner().invoke(main, ["run", mesh, "--router", router_id])
    assert result.exit_code == 1
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert words in line


def test_several_routers_and_none_named_end_it_with_1(mesh: str) -> None:
    result = CliRunner().invoke(main, ["run", mesh])
    assert result.exit_code == 1
    assert "the file has several routers; expected --router with one of `" in result.stderr


def test_a_missing_file_ends_it_with_1(tmp_path: Path) -> None:
    file = tmp_path / "absent.yaml"
    result = CliRunner().invoke(main, ["run", str(file)])
    assert result.exit_code == 1
    assert result.stderr == f"{file}: error: cannot be read: No such file or directory\n"


def test_tls_that_cannot_be_is_refused_and_not_served_in_the_clear(tmp_path: Path) -> None:
    file = tmp_path / "router.yaml"
    file.write_text("router:\n  id: A\n  listeners:\n  - port: 0\n    tls: absent\n", encoding="utf-8")
    result = CliRunner().invoke(main, ["run", str(file)])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{file}:5: error: router.listeners[0].tls: no TLS profile `absent`; expected ")


def test_a_port_in_use_ends_it_with_1_and_is_named(tmp_path: Path) -> None:
    file = tmp_path / "router.yaml"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        host, port = taken.getsockname()
        file.write_text(f"router: {{id: A, listeners: [{{port: {port}}}]}}", encoding="utf-8")
        with running(str(file)) as process:
            _, said = process.communicate(timeout=STOP_S)
    assert process.returncode == 1
    (line,) = said.splitlines()
    assert "level=error event=cannot_start" in line
    assert f'reason="cannot listen on {host}:{port}: Address already in use"' in line


def test_what_is_wrong_with_other_routers_is_logged_before_it_starts(mesh: str) -> None:
    with running(mesh, "--router", "alpha") as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if "event=started" in line:
                break
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=STOP_S)
    assert process.returncode == 0
    (found,) = (line for line in said if "event=settings_finding" in line)
    assert said.index(found) < len(said) - 1
    assert " level=error " in found
    for word in (
        "router=alpha",
        f"place={mesh}:10",
        "key=routers.unread.lsteners",
        'message="unknown key `lsteners`"',
        "nearest=listeners",
    ):
        assert word in found


def test_a_warning_about_itself_is_logged_as_one(tmp_path: Path) -> None:
    file = tmp_path / "router.yaml"
    file.write_text("router: {id: A, listeners: [{port: 0, host: 0.0.0.0}]}", encoding="utf-8")
    with running(str(file)) as process:
        assert process.stderr is not None
        found = process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=STOP_S)
    assert "level=warning event=settings_finding" in found
    assert "whoever reaches it may use it" in found


@pytest.fixture
def alpha(mesh: str) -> Iterator[subprocess.Popen[str]]:
    """A router that runs."""
    with running(mesh, "--router", "alpha") as process:
        said_until(process, "started")
        yield process


def said_until(process: subprocess.Popen[str], event: str) -> dict[str, str]:
    """The fields of the next line of *event*."""
    assert process.stderr is not None
    for line in process.stderr:
        for found in parse_log(line):
            if found.event == event:
                return found.fields
    raise AssertionError(f"it ended before it said {event}")


def test_sigusr1_has_the_state_written_to_the_log(alpha: subprocess.Popen[str]) -> None:
    for _ in range(2):
        alpha.send_signal(signal.SIGUSR1)
        state = said_until(alpha, "state")
    assert state["router"] == "alpha"
    assert (state["connections"], state["links"], state["waiting"], state["unsettled"]) == ("0", "0", "0", "0")
    assert float(state["uptime_s"]) >= 0
    assert int(state["memory_bytes"]) > 10_000_000
    assert int(state["tasks"]) > 2
    assert 3 < int(state["files"]) < int(state["max_files"])
    stops(alpha)


def test_a_signal_without_a_meaning_is_said_and_ends_nothing(alpha: subprocess.Popen[str]) -> None:
    alpha.send_signal(signal.SIGUSR2)
    assert said_until(alpha, "signal_ignored")["signal"] == "SIGUSR2"
    stops(alpha)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_sigterm_and_sigint_stop_a_router_in_order(alpha: subprocess.Popen[str], number: signal.Signals) -> None:
    alpha.send_signal(number)
    assert said_until(alpha, "stopping")["signal"] == number.name
    said_until(alpha, "stopped")
    assert alpha.wait(STOP_S) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_one_that_has_stopped_does_not_change_its_status(
    alpha: subprocess.Popen[str], number: signal.Signals
) -> None:
    alpha.send_signal(number)
    said_until(alpha, "stopped")
    alpha.send_signal(number)  # Python takes tens of milliseconds to end
    assert alpha.wait(STOP_S) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("inherited", [signal.SIG_DFL, signal.SIG_IGN], ids=["heeded", "ignored"])
def test_one_that_is_told_to_stop_while_it_reads_its_file_ends_at_once(
    tmp_path: Path, number: signal.Signals, inherited: signal.Handlers
) -> None:
    file = tmp_path / "router.yaml"
    os.mkfifo(file)
    with ExitStack() as ends:
        with inheriting(number, inherited):
            process = ends.enter_context(running(str(file)))
        ends.enter_context(file.open("w", encoding="utf-8"))  # waits until the router reads it; nothing is ever written
        process.send_signal(number)
        assert process.wait(STOP_S) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("inherited", [signal.SIG_DFL, signal.SIG_IGN], ids=["heeded", "ignored"])
def test_one_that_is_told_to_stop_while_it_starts_stops_in_order(
    mesh: str, number: signal.Signals, inherited: signal.Handlers
) -> None:
    early = f"""
import os, sys
from router.__main__ import main
from router.cli import run
start = run.run_daemon
def start_later(*arguments):
    os.kill(os.getpid(), {int(number)})
    start(*arguments)
run.run_daemon = start_later
sys.argv[1:] = ["run", {mesh!r}, "--router", "alpha"]
main()
"""
    with inheriting(number, inherited):
        process = subprocess.Popen([sys.executable, "-c", early], stderr=subprocess.PIPE, text=True)
    with process:
        assert said_until(process, "stopping")["signal"] == number.name
        said_until(process, "stopped")
        assert process.wait(STOP_S) == 0


@pytest.mark.parametrize("number", OTHERS)
def test_no_other_signal_ends_a_router_from_its_first_import_on(tmp_path: Path, number: signal.Signals) -> None:
    early = f"""
import os, sys
from router.__main__ import main
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "router.cli":
            os.kill(os.getpid(), {int(number)})
sys.meta_path.insert(0, Finder())
sys.argv[1:] = ["run", "absent.yaml"]
main()
"""
    ended = subprocess.run([sys.executable, "-c", early], cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (1, "absent.yaml: error: cannot be read: No such file or directory\n")


def test_one_that_is_told_to_reload_while_it_starts_reloads_when_it_has_started(tmp_path: Path) -> None:
    file = tmp_path / "router.yaml"
    os.mkfifo(file)
    with running(str(file)) as process:
        with file.open("w", encoding="utf-8") as writer:  # waits until the router reads its settings
            process.send_signal(signal.SIGHUP)
            writer.write("router: {id: A, listeners: [{port: 0}]}")
        said_until(process, "started")
        assert "it is a FIFO and no regular file" in said_until(process, "reload_refused")["reason"]
        file.unlink()
        file.write_text("router: {id: B, listeners: [{port: 0}]}", encoding="utf-8")
        process.send_signal(signal.SIGHUP)
        assert "is of router `B` now" in said_until(process, "reload_refused")["reason"]
        stops(process)


def stops(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    said_until(process, "stopped")
    assert process.wait(STOP_S) == 0


def test_a_command_that_fails_leaves_the_signals_of_its_process_as_they_were(mesh: str) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert CliRunner().invoke(main, ["run", mesh, "--router", "unread"]).exit_code == 1
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_a_router_imports_nothing_that_only_other_commands_need() -> None:
    loaded = "import router.cli.run, sys; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", loaded], stdout=subprocess.PIPE, text=True, check=True)
    assert {"networkx", "numpy", "matplotlib", "pycparser", "pyspark", "rich"}.isdisjoint(ended.stdout.split())


def test_a_command_is_imported_without_the_collector_which_works_afterwards() -> None:
    code = (
        "import gc, click; from router.cli import main\n"
        "runs = []; gc.callbacks.append(lambda phase, _: runs.append(phase))\n"
        "main.get_command(click.Context(main), 'run'); print(len(runs), gc.isenabled())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    runs, is_enabled = done.stdout.split()
    assert int(runs) <= 2, "one begins when it is over"
    assert is_enabled == "True"
