"""Ctrl-C at odd moments: no traceback, and what has become of a command is told."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import click
import pytest
from click.testing import CliRunner

from mesh_config.generators import generate
from router.cli import main
from router.cli.config import check
from router.cli.interrupts import interruptible, interrupts_held_back
from router.cli.management import ManagementClient
from router.cli.message_links import Client
from router.cli.router_access import RouterAccess
from router.cli.whatif.run import run
from tests.helpers.interruptible_main import MAIN, START
from tests.helpers.processes import MeshProcesses, wait_until

WAIT_S = 20

WHILE_IMPORTING = """
import builtins, router.__main__
import_as_usual = builtins.__import__
def import_interrupted(name, *given, **more):
    if name == "router.cli.errors":
        signal.raise_signal(signal.SIGINT)
    return import_as_usual(name, *given, **more)
builtins.__import__ = import_interrupted
"""
IN_TLS = """
from proton import _transport
pn_ssl_domain = _transport.pn_ssl_domain
def interrupted_pn_ssl_domain(mode):
    signal.raise_signal(signal.SIGINT)
    return pn_ssl_domain(mode)
_transport.pn_ssl_domain = interrupted_pn_ssl_domain
"""


def started(script: str, *words: str) -> subprocess.Popen[str]:
    """A command that begins with a script."""
    return subprocess.Popen(
        [sys.executable, "-c", f"{START}{script}\n{MAIN}", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("script", "status", "said"),
    [(WHILE_IMPORTING, -signal.SIGINT, ""), (IN_TLS, 130, "\ninterrupted\n")],
    ids=["while it is imported", "while TLS is set up"],
)
def test_a_command_that_is_interrupted_early_shows_no_traceback(script: str, status: int, said: str) -> None:
    process = started(script, "stat", "--url", "amqp://127.0.0.1:1")
    _, errors = process.communicate(timeout=WAIT_S)
    assert (process.returncode, errors) == (status, said)


def interrupted() -> None:
    raise KeyboardInterrupt


def interrupted_prompt() -> None:
    with patch("click.termui.visible_prompt_func", side_effect=KeyboardInterrupt):
        click.prompt("more")


def ended_input() -> None:
    with patch("click.termui.visible_prompt_func", side_effect=EOFError):
        click.prompt("more")


@pytest.mark.parametrize(
    ("end", "status", "said"),
    [
        (interrupted, 130, "\ninterrupted\n"),
        (interrupted_prompt, 130, "\ninterrupted\n"),
        (ended_input, 1, "Aborted!\n"),
    ],
)
@pytest.mark.parametrize("words", [["config", "check", "FILE"], ["whatif", "run", "MODEL", "-o", "OUT"]], ids=" ".join)
def test_ctrl_c_ends_each_command_with_130_wherever_it_is(
    tmp_path: Path, words: list[str], end: Callable[[], None], status: int, said: str
) -> None:
    def at_once(ctx: click.Context, args: list[str]) -> list[str]:
        end()
        return args

    command = {"config": check, "whatif": run}[words[0]]
    with patch.object(command, "parse_args", at_once):
        result = CliRunner().invoke(main, [str(tmp_path / word) if word.isupper() else word for word in words])
    assert (result.exit_code, result.stderr) == (status, said)


@pytest.fixture
def handled() -> Iterator[None]:
    """SIGINT as Python has it by default."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("handled")
def test_an_interrupt_waits_for_the_end_of_what_is_short() -> None:
    done = []

    def work() -> None:
        with interrupts_held_back():
            signal.raise_signal(signal.SIGINT)
            done.append(1)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done


@pytest.mark.usefixtures("handled")
@pytest.mark.parametrize("is_interrupted", [False, True])
def test_an_interrupt_behind_the_end_of_a_run_changes_nothing(is_interrupted: bool) -> None:
    @click.command()
    def command() -> None:
        try:
            with interruptible():
                if is_interrupted:
                    signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            click.echo("interrupted")
        signal.raise_signal(signal.SIGINT)
        click.echo("told")

    result = CliRunner().invoke(command)
    assert (result.exit_code, result.output) == (0, "interrupted\ntold\n" if is_interrupted else "told\n")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshProcesses]:
    with MeshProcesses(generate("line", 1), tmp_path_factory.mktemp("mesh")) as mesh:
        mesh.start()
        yield mesh


@pytest.mark.interop
def test_the_time_of_a_send_that_is_interrupted_is_that_until_then(mesh: MeshProcesses) -> None:
    url = mesh.url("R1")
    process = started("", "send", "nobody", "x", "--json", "--timeout", "600", "--url", url)
    with ManagementClient(url) as client:
        wait_until(
            lambda: any(row["owningAddr"] == "M0nobody" for row in client.query("router.link", ["owningAddr"])),
            "it has its link",
            WAIT_S,
        )
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=WAIT_S)
    told = json.loads(output)
    assert (process.returncode, told["sent"], told["error"]) == (130, 0, "stopped")
    assert 0 <= told["seconds"] < WAIT_S


@pytest.mark.interop
def test_a_connection_that_was_interrupted_midway_is_given_up_in_silence(mesh: MeshProcesses) -> None:
    client = Client(RouterAccess(mesh.url("R1")))
    connection = client._connection.conn
    assert connection is not None
    selectable = connection.transport._selectable

    def interrupt() -> None:
        with client:
            selectable._transport = object()  # half changed
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    selectable.release()


@pytest.mark.interop
def test_looks_at_a_router_that_dies_are_told_as_such(tmp_path: Path) -> None:
    with MeshProcesses(generate("line", 1), tmp_path) as mesh:
        mesh.start()
        words = ("--interval", "0.5", "--looks", "4", "--url", mesh.url("R1"))
        top, stat = started("", "top", "--json", *words), started("", "stat", "addresses", "--watch", *words)
        assert top.stdout is not None
        assert stat.stdout is not None
        first = [top.stdout.readline(), *(stat.stdout.readline() for _ in range(2))]
        mesh.kill("R1")
        (looks, _), (tables, _) = top.communicate(timeout=WAIT_S), stat.communicate(timeout=WAIT_S)
    assert [top.returncode, stat.returncode] == [1, 1]
    assert json.loads(first[0])["errors"] == {}
    last = json.loads(looks.splitlines()[-1])
    assert last["rows"] == []
    assert "no router answers at" in last["errors"]["R1"] or "went away" in last["errors"]["R1"]
    assert all(isinstance(json.loads(line), dict) for line in looks.splitlines())
    time, error = tables.splitlines()[-2:]
    assert time.startswith("-- ")
    assert error.startswith("Error: ")


@pytest.mark.interop
def test_who_hears_nothing_from_its_router_is_sent_to_another_one(tmp_path: Path) -> None:
    with MeshProcesses(generate("line", 1), tmp_path) as mesh:
        mesh.start()
        with ManagementClient(mesh.url("R1"), timeout_s=0.5) as client:
            mesh["R1"].send_signal(signal.SIGSTOP)
            try:
                with pytest.raises(Exception, match=r"has not answered within 0\.5 s.* Ask another router") as raised:
                    client.query("router")
            finally:
                mesh["R1"].send_signal(signal.SIGCONT)
        assert "stat routers" not in str(raised.value)
