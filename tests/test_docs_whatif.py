"""The pages on what-if show what the commands really say, and name no option that there isn't."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import attrs
import click
import pytest

from router.cli.whatif import whatif

ROOT = Path(__file__).parent.parent
TUTORIAL = ROOT / "docs" / "tutorials" / "what-if.md"
PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    if "amqp-mesh whatif" in page.read_text(encoding="utf-8")
)
NOT_RUN = ("sudo ", "python3 -m venv ", ". ", "pip ", "xdg-open ")
"""How commands begin that set things up, or show a window."""

PROGRESS = re.compile(r" *\d+\.\d s  ")
"""How a line begins that tells how far a command is; a slow machine may show some."""
MEASURED = (
    (re.compile(r"\d+(?:\.\d+)? (ms|s|min)\b"), r"# \1"),
    (re.compile(r"\([\d,]+/s\)"), "(#/s)"),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?Z?"), "#"),
)
"""What differs from run to run."""


@attrs.frozen
class Shown:
    """A command of a page and what the page says that it writes."""

    command: str
    output: tuple[str, ...]


def console(page: Path) -> list[Shown]:
    """Every command that a page shows after `$ `, with the lines below it."""
    found: list[Shown] = []
    for block in re.findall(r"^```console\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        lines = iter(block.splitlines())
        for line in lines:
            if line.startswith("$ "):
                command = line[2:]
                while command.endswith("\\"):
                    command = command[:-1].rstrip() + " " + next(lines).strip()
                found.append(Shown(command, ()))
            else:
                found[-1] = attrs.evolve(found[-1], output=(*found[-1].output, line))
    return found


def masked(line: str) -> str:
    """A line without what differs from run to run, and without what only makes columns of equal width."""
    for pattern, text in MEASURED:
        line = pattern.sub(text, line)
    return " ".join(line.split())


def differs(shown: tuple[str, ...], real: list[str]) -> str:
    """What is wrong with the output that a page shows; empty when it is right. A line `...` stands for any lines."""
    wanted = [re.escape(masked(line)) + "\n" if line.strip() != "..." else "(?:.*\n)*" for line in shown]
    found = "".join(masked(line) + "\n" for line in real if not PROGRESS.match(line))
    if re.fullmatch("".join(wanted), found):
        return ""
    return f"the page shows\n{chr(10).join(shown)}\nbut it writes\n{chr(10).join(real)}"


@pytest.mark.timeout(300)
def test_the_tutorial_shows_what_its_commands_write(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    program = tmp_path / "bin" / "amqp-mesh"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m router "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    commands = [shown for shown in console(TUTORIAL) if not shown.command.startswith(NOT_RUN)]
    assert commands
    # One shell for all, since `$?` is a part of what is shown.
    script = "".join(f"status=$?; echo '#### {n}'; (exit $status)\n{it.command}\n" for n, it in enumerate(commands))
    environment = {
        **os.environ,
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "COLUMNS": "120",
    }
    done = subprocess.run(
        ["bash"],
        input=script,
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
        check=False,
    )
    outputs = re.split(r"^#### \d+\n", done.stdout, flags=re.MULTILINE)[1:]
    assert len(outputs) == len(commands), done.stdout
    wrong = [
        f"$ {shown.command}\n{fault}"
        for shown, output in zip(commands, outputs, strict=True)
        if (fault := differs(shown.output, output.splitlines()))
    ]
    assert not wrong, "\n\n".join(wrong)


def asked(page: Path) -> list[str]:
    """Every `amqp-mesh whatif ...` of a page, in blocks of commands and in words."""
    text = page.read_text(encoding="utf-8")
    lines = [shown.command for shown in console(page)]
    for block in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        lines += block.replace("\\\n", " ").splitlines()
    words = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    lines += re.findall(r"`(amqp-mesh whatif [^`]+)`", words)
    found = (re.match(r"amqp-mesh whatif +(?!\.)([^|;&>#]+)", line) for line in lines)
    return [match[1] for match in found if match]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_name_commands_and_options_that_there_are(page: Path) -> None:
    context = click.Context(whatif)
    for line in asked(page):
        name, *rest = shlex.split(line)
        command = whatif.get_command(context, name)
        assert command is not None, line
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
        known |= {"--help"}
        missing = [word for word in rest if word.startswith("-") and word.partition("=")[0] not in known]
        assert not missing, line
