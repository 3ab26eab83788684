"""All commands say errors in one way: `Error: ` and what is wrong, or the place in a file, as compilers name it."""

from __future__ import annotations

import errno
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from router.cli import main
from router.cli.errors import BAD_INPUT, CommandError, faults_of
from router.whatif.pipeline.run_staging import RunExecutionError, run_error
from router.whatif.pipeline.spark_failures import task_error

WRONG = (
    "bench nothing",
    "call x --url amqp://127.0.0.1:1",
    "completion nothing",
    "config check absent.yaml",
    "config generate fat-tree --routers 6",
    "config graph absent.yaml",
    "config reference -o absent/file",
    "config render absent.yaml",
    "config schema -o absent/file",
    "demo --keep --logs file/folder",
    "drain A --url amqp://127.0.0.1:1",
    "man file/folder",
    "manage read --id x --url amqp://127.0.0.1:1",
    "ping --url amqp://127.0.0.1:1",
    "receive x --url amqp://127.0.0.1:1",
    "replay absent.yaml",
    "resume A --url amqp://127.0.0.1:1",
    "run absent.yaml",
    "send x --url amqp://127.0.0.1:1",
    "service-unit --nothing",
    "stat --url amqp://127.0.0.1:1",
    "top --url amqp://127.0.0.1:1",
    "trace x --url amqp://127.0.0.1:1",
    "user add absent/file alice",
    "user list absent",
    "user passwd absent alice",
    "user remove absent alice",
    "whatif check .",
    "whatif converge absent -o out",
    "whatif credit .",
    "whatif diff . .",
    "whatif explain .",
    "whatif import absent.yaml -o out",
    "whatif import mesh.yaml -o file/folder",
    "whatif optimise model --keep A-B",
    "whatif plan model --prices mesh.yaml --max-util 1",
    "whatif report .",
    "whatif run absent -o out",
    "whatif forecast . --model . -o out",
    "whatif run model -o out --fail lnks:1",
    "whatif forecast . --model . -o out",
    "whatif run model -o file/folder",
    "whatif snapshot amqp://127.0.0.1:1 -o out",
    "whatif suggest .",
    "whatif watch amqp://127.0.0.1:1 --checkpoint checkpoint --model absent",
)
OF_THE_MESH = ("whatif snapshot amqp://127.0.0.1:1 -o out",)
"""Of what-if, those whose input can be used."""
ERROR = re.compile(r"Error: \S.*|[\w./-]+(:\d+)?: error: \S.*")


def commands(group: click.Group, name: str = "") -> Iterator[str]:
    """Names of all commands that do something, with those of their groups."""
    context = click.Context(group)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        if isinstance(command, click.Group):
            yield from commands(command, f"{name}{word} ")
        else:
            yield f"{name}{word}"


def test_errors_of_every_command_are_looked_at() -> None:
    every = set(commands(main))
    assert {max((name for name in every if f"{words} ".startswith(f"{name} ")), key=len) for words in WRONG} == every


@pytest.mark.parametrize("words", WRONG)
def test_an_error_is_told_in_the_same_way_by_every_command(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    runner = CliRunner()
    runner.invoke(main, ["config", "generate", "ring", "--routers", "3", "-o", "mesh.yaml"], catch_exceptions=False)
    runner.invoke(main, ["whatif", "import", "mesh.yaml", "-o", "model"], catch_exceptions=False)
    result = runner.invoke(main, words.split())
    is_of_input = words.startswith("whatif ") and words not in OF_THE_MESH
    assert result.exit_code in ((2,) if is_of_input else (1, 2)), result.output
    told = [line for line in result.output.splitlines() if "error:" in line.casefold()]
    assert told
    assert [line for line in told if not ERROR.fullmatch(line)] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("check PLACE", "{}: no such folder; expected a folder that `amqp-mesh whatif run` wrote"),
        ("report PLACE", "{}: no such folder"),
        ("run PLACE -o out", "{}: error: no such folder"),
        ("explain PLACE", "{}: error: no such folder"),
        ("optimise PLACE", "{}: error: no such folder"),
        ("diff model PLACE", "{}: error: no such folder"),
        ("forecast . --model PLACE -o out", "{}: error: no such folder"),
        ("forecast PLACE --model priced -o out", "{}: error: it has no history of addresses"),
        ("plan priced --max-util 1 --prices PLACE", "{}: error: cannot be read: No such file or directory"),
        ("optimise priced --mesh PLACE", "{}: error: cannot be read: No such file or directory"),
    ],
)
def test_whatif_tells_of_a_folder_or_file_that_is_not_there_in_its_own_words(
    words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("details.yaml").write_text("defaults: {link: {capacity_msgs: 1000}}", encoding="utf-8")
    runner = CliRunner()
    runner.invoke(main, ["config", "generate", "ring", "--routers", "3", "-o", "mesh.yaml"], catch_exceptions=False)
    runner.invoke(main, ["whatif", "import", "mesh.yaml", "-o", "model"], catch_exceptions=False)
    details = ["--details", "details.yaml"]
    runner.invoke(main, ["whatif", "import", "mesh.yaml", "-o", "priced", *details], catch_exceptions=False)
    result = runner.invoke(main, ["whatif", *words.replace("PLACE", "absent").split()], catch_exceptions=False)
    assert result.exit_code == BAD_INPUT
    assert said.format("absent") in result.stderr


def test_a_message_keeps_its_lines_and_nothing_else_that_moves_the_cursor() -> None:
    assert (
        CommandError("its log ends with:\n  \x1b[2Jgone\r").format_message() == "its log ends with:\n  \\x1b[2Jgone\\r"
    )


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (run_error(Path("run"), "it exists and has other contents"), 2),
        (run_error(Path("run"), "processes die as soon as they start working", kind=RunExecutionError), 1),
        (task_error(RuntimeError("MemoryError"), Path("run")), 1),
        (OSError(errno.EROFS, "Read-only file system"), 2),
    ],
    ids=["input", "processes", "tasks", "system"],
)
def test_the_exit_status_tells_bad_input_from_work_that_failed(error: Exception, status: int) -> None:
    with pytest.raises(CommandError) as caught, faults_of("run", BAD_INPUT):
        raise error
    assert caught.value.exit_code == status


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((b"send", b"q", b"x", b"--count", b"99999999999999999999"), "99999999999999999999 is out of range"),
        ((b"send", b"q", b"x", b"-p", b"a=\xff"), "is not UTF-8"),
        ((b"send", b"\xff", b"x"), "is not UTF-8"),
        ((b"send", b"", b"x"), "an address is expected"),
        ((b"stat", b"links", b"--router", b"\xff"), r"Invalid value for '--router': '\xff' is not UTF-8"),
        ((b"stat", b"links", b"--router", b""), "Invalid value for '--router': it is empty."),
        ((b"manage", b"read", b"--name", b""), "Invalid value for '--name': it is empty."),
        ((b"stat", b"\xff"), r"'\xff' is not one of 'general'"),
        ((b"--\xff",), r"No such option '--\xff'"),
        ((b"run", b"\xff.yaml"), r"\xff.yaml: error: cannot be read"),
        ((b"config", b"check", b""), "it is empty."),
        ((b"run", b""), "Invalid value for 'FILE': it is empty."),
        ((b"user", b"list", b"\xff"), r"Error: \xff: cannot be read"),
        ((b"stat", b"--user", b"\xff"), "is not UTF-8"),
        ((b"stat", b"--url", b"amqp://\xff"), "is no address of AMQP"),
        ((b"stat", b"--url", b"/"), "is no address of AMQP"),
        ((b"stat", b"--sasl", b"SCRAM-256"), "Did you mean 'SCRAM-SHA-256'?"),
        ((b"manage", b"create", b"--name", b"\xff"), "is not UTF-8"),
        ((b"manage", b"update", b"a=\xff"), "is not UTF-8"),
    ],
)
def test_words_that_no_message_could_carry_are_refused_before_one_is_sent(words: tuple[bytes, ...], said: str) -> None:
    result = CliRunner().invoke(main, [os.fsdecode(word) for word in words], catch_exceptions=False)
    assert result.exit_code in (1, 2)
    assert said in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((b"send", b"q", b"x", b"--subject", b"\xff"), "is not UTF-8"),
        ((b"\xff",), r"No such command '\xff'"),
        ((b"stat", b"--user", b"x", b"--password-file", b"/dev/zero"), "is no password"),
    ],
)
def test_bytes_that_are_no_text_come_to_a_process_as_to_the_command(words: tuple[bytes, ...], said: str) -> None:
    found = subprocess.run([sys.executable, "-m", "router", *words], capture_output=True, text=True, check=False)
    assert found.returncode in (1, 2)
    assert said in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_command_whose_input_or_output_is_closed_ends_as_it_would(closed: str) -> None:
    command = shlex.join([sys.executable, "-m", "router", "send", "x", "--file", "-", "--url", "amqp://127.0.0.1:1"])
    found = subprocess.run(["sh", "-c", f"{command} {closed}"], capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert found.stderr.count("\n") == (0 if "2>" in closed else 1), found.stderr


@pytest.mark.parametrize(
    ("number", "status"), [(errno.ENOENT, 2), (errno.EACCES, 2), (errno.ENOSPC, 1), (errno.EIO, 1)]
)
def test_a_disk_that_is_full_or_broken_is_no_bad_input(number: int, status: int) -> None:
    with pytest.raises(CommandError) as caught, faults_of("out", BAD_INPUT):
        raise OSError(number, os.strerror(number), "out/file")
    assert (caught.value.exit_code, caught.value.message) == (status, f"out/file: {os.strerror(number)}")


@pytest.mark.parametrize("words", ["check RUN --max-util 1000%", "diff RUN RUN --no-worse", "diff RUN RUN --exit-code"])
def test_a_broken_disk_is_no_answer_of_a_command_whose_status_is_one(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), "RUN/table")

    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    making = ("config generate ring --routers 3 -o mesh.yaml", "whatif import mesh.yaml -o model")
    for made in (*making, "whatif run model -o RUN --no-report"):
        runner.invoke(main, made.split(), catch_exceptions=False)
    monkeypatch.setattr("router.whatif.analysis.check.check", fail)
    monkeypatch.setattr("router.whatif.analysis.diff.compare", fail)
    result = runner.invoke(main, ["whatif", *words.split()], catch_exceptions=False)
    assert (result.exit_code, result.stderr) == (BAD_INPUT, "Error: RUN/table: Input/output error\n")
