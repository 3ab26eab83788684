"""A router as a service: what it tells the service manager, and that it needs no more than its unit allows."""

from __future__ import annotations

import configparser
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from mesh_config.models import ForwardingSettings, RouterSettings
from router.cli import main

SETTINGS = "router: {id: A, shutdown_s: 35, listeners: [{port: 0}]}\n"
WAIT_S = 60
ROOT = Path(__file__).parents[2]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], socket.socket]]:
    """A router that a service manager has started, and the manager's socket."""
    (tmp_path / "router.yaml").write_text(SETTINGS)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(WAIT_S)
        variables = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "300000"}
        with subprocess.Popen(
            [sys.executable, "-m", "router", "run", tmp_path / "router.yaml"],
            env=os.environ | variables,
            stderr=subprocess.PIPE,
        ) as process:
            yield process, manager
            process.kill()


def test_a_service_manager_hears_that_a_router_is_ready_alive_and_stopping(
    served: tuple[subprocess.Popen[bytes], socket.socket],
) -> None:
    process, manager = served
    assert manager.recv(100) == b"READY=1"
    assert [manager.recv(100) for _ in range(5)] == [b"WATCHDOG=1"] * 5
    process.send_signal(signal.SIGTERM)
    word = b"WATCHDOG=1"
    while word == b"WATCHDOG=1":
        word = manager.recv(100)
    stopping, _, extended_us = word.partition(b"\nEXTEND_TIMEOUT_USEC=")
    assert stopping == b"STOPPING=1"
    assert int(extended_us) > (35 + 1) * 1e6
    assert process.wait(WAIT_S) == 0


DENY_WRITE_EXECUTE = """
import ctypes, os, sys
PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN = 65, 1  # what MemoryDenyWriteExecute does, from Linux 6.3 on
ctypes.CDLL(None).prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-m", "router", "run", sys.argv[1]])
"""


@pytest.mark.parametrize("speed", ["compiled", "interpreted"])
def test_a_router_needs_no_memory_that_may_be_written_and_executed(speed: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, tempfile.TemporaryDirectory() as folder:
        manager.bind(f"{folder}/notify")
        manager.settimeout(WAIT_S)
        (Path(folder) / "router.yaml").write_text(SETTINGS)
        with subprocess.Popen(
            [sys.executable, "-c", DENY_WRITE_EXECUTE, f"{folder}/router.yaml"],
            env=os.environ | {"NOTIFY_SOCKET": f"{folder}/notify", "AMQP_MESH_SPEED": speed},
            stderr=subprocess.PIPE,
        ) as process:
            assert manager.recv(100) == b"READY=1"
            process.terminate()
            assert process.wait(WAIT_S) == 0


def unit() -> dict[str, dict[str, list[str]]]:
    """The unit file, by section and key."""
    result = CliRunner().invoke(main, ["service-unit"], catch_exceptions=False)
    assert result.exit_code == 0
    sections: dict[str, dict[str, list[str]]] = {}
    parser = configparser.RawConfigParser(strict=False, comment_prefixes=("#",), delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(result.stdout.replace("SystemCallFilter=~", "SystemCallFilterNot="))
    for name in parser.sections():
        sections[name] = {key: value.split() for key, value in parser[name].items()}
    return sections


def test_the_unit_starts_a_router_again_however_often_it_ends() -> None:
    found = unit()
    assert found["Unit"]["StartLimitIntervalSec"] == ["0"]
    assert found["Service"]["Restart"] == ["always"]
    assert found["Service"]["Type"] == ["notify"]
    # A check of the whole file would keep a router from its start for what is wrong with another one.
    assert "ExecStartPre" not in found["Service"]
    assert found["Service"]["ExecReload"] == ["/bin/kill", "-HUP", "$MAINPID"]
    assert int(found["Service"]["WatchdogSec"][0]) > 0


def test_the_unit_leaves_a_router_time_to_stop_and_memory_for_its_peers() -> None:
    service = unit()["Service"]
    assert int(service["TimeoutStopSec"][0]) > RouterSettings(id="A").shutdown_s + 1
    counted = 1.75 * ForwardingSettings().process_bytes
    assert int(service["MemoryMax"][0].removesuffix("G")) * 2**30 > 2 * counted


def test_docs_that_give_a_stop_more_time_tell_of_who_would_kill_it() -> None:
    waited_s = int(unit()["Service"]["TimeoutStopSec"][0])
    head = (ROOT / "deployment" / "Containerfile").read_text(encoding="utf-8")
    how = (ROOT / "docs" / "how_to" / "run-as-a-service.md").read_text(encoding="utf-8")
    assert f"--stop-timeout={waited_s}" in head
    assert f"`TimeoutStopSec={waited_s}`" in how
    pages = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")}
    longest = {
        name: max(map(float, found))
        for name, text in pages.items()
        if (found := re.findall(r"(?<![\w.])shutdown_s: ([\d.]+)", text))
    }
    assert longest["oslo-messaging.md"] > waited_s
    silent = [
        name
        for name, seconds in longest.items()
        if seconds + 1 >= waited_s and not re.search(r"#time-to-stop|^## Time to stop$", pages[name], re.MULTILINE)
    ]
    assert silent == []


def test_the_unit_names_the_program_that_wrote_it_and_the_settings() -> None:
    result = CliRunner().invoke(main, ["service-unit", "--settings", "/srv/mesh.yaml"], catch_exceptions=False)
    assert re.search(r"^ExecStart=/\S+ run /srv/mesh.yaml --router %i$", result.stdout, re.MULTILINE)
    assert "/etc/amqp-mesh/mesh.yaml" not in result.output
    assert "/srv" not in result.stderr


def test_the_unit_names_settings_by_their_whole_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/srv")
    result = CliRunner().invoke(main, ["service-unit", "--settings", "mesh.yaml"], catch_exceptions=False)
    assert re.search(r"^ExecStart=/\S+ run /srv/mesh.yaml --router %i$", result.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("/etc/mesh-1/a@b:c,d=e+f_g.yaml", "/etc/mesh-1/a@b:c,d=e+f_g.yaml"),
        ("/etc/my mesh/100%.yaml", '"/etc/my mesh/100%%.yaml"'),
        ("/etc/%i.yaml", "/etc/%%i.yaml"),
        ("/etc/$HOME/${x}.yaml", '"/etc/$$HOME/$${x}.yaml"'),
        ('/etc/it\'s \\ "so"', '"/etc/it\'s \\\\ \\"so\\""'),
        ("/etc/a\nExecStartPre=b\x7f", '"/etc/a\\x0aExecStartPre=b\\x7f"'),
        ("/etc/é", '"/etc/é"'),
        ("/etc/é\udcff", '"/etc/\\xc3\\xa9\\xff"'),
        ("/usr/bin/amqp-mesh", "/usr/bin/amqp-mesh"),
    ],
)
def test_settings_are_one_word_of_the_command_that_the_unit_runs(name: str, word: str) -> None:
    result = CliRunner().invoke(main, ["service-unit", "--settings", name], catch_exceptions=False)
    (line,) = re.findall(r"^ExecStart=.*", result.stdout, re.MULTILINE)
    assert line.partition(" run ")[2] == f"{word} --router %i"
    assert len(result.stdout.splitlines()) == len(unit_lines())


def unit_lines() -> list[str]:
    return CliRunner().invoke(main, ["service-unit"], catch_exceptions=False).stdout.splitlines()


def test_a_program_that_systemd_cannot_run_by_any_unit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / 'of "us"'
    program.touch()
    monkeypatch.setattr(sys, "argv", [str(program)])
    result = CliRunner().invoke(main, ["service-unit"], catch_exceptions=False)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "systemd runs no program whose path has quotes" in result.stderr


def test_a_program_or_settings_that_the_unit_hides_are_warned_of() -> None:
    result = CliRunner().invoke(main, ["service-unit", "--settings", "/root/mesh.yaml"], catch_exceptions=False)
    assert result.exit_code == 0
    assert "warning: /root/mesh.yaml: the unit hides that folder" in result.stderr
