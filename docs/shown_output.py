"""Run the commands that a page shows, and paste what they write below them.

    python docs/shown_output.py docs/tutorials/what-if.md

A command stands after `$ ` in a block of `console`; what follows it is its output. Output that ends with a line `...`
is cut to as many lines as before. Read what was pasted: the words around it were written for the old output.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
NOT_RUN = ("sudo ", "python3 -m venv ", ". ", "pip ", "xdg-open ")
"""How commands begin that set things up, or show a window."""
LIMIT_S = 280.0
PROGRESS = re.compile(r" *\d+\.\d s  ")
"""How a line begins that tells how far a command is."""
MEASURED = (
    (re.compile(r"\d+(?:\.\d+)? s\b"), "# s"),
    (re.compile(r"\([\d,]+/s\)"), "(#/s)"),
)
"""What differs from run to run."""
BLOCK = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
"""A command, which may have several lines, and what is shown below it."""


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Every command of a page, with what the page shows below it."""
    for block in BLOCK.findall(text):
        yield from COMMAND.findall(block)


def play(text: str, folder: Path) -> list[str]:
    """What each command of a page writes, but those in NOT_RUN, in a folder with the examples."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    program = folder / "bin" / "amqp-mesh"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m router "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    wanted = [command for command, _ in commands(text) if not command.startswith(NOT_RUN)]
    # One shell for all, since `$?` is a part of what is shown.
    script = "".join(f"status=$?; echo '#### {n}'; (exit $status)\n{it}\n" for n, it in enumerate(wanted))
    environment = {
        **os.environ,
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([path for path in sys.path if path] + [str(ROOT)]),
        "COLUMNS": "120",
    }
    done = subprocess.run(
        ["bash"],
        input=script,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    outputs = re.split(r"^#### \d+\n", done.stdout, flags=re.MULTILINE)[1:]
    assert len(outputs) == len(wanted), done.stdout
    return outputs


def pasted(text: str, outputs: list[str]) -> str:
    """The page with these outputs, in the order of its commands."""
    rest = iter(outputs)

    def answered(found: re.Match[str]) -> str:
        command, shown = found[1], found[2].splitlines()
        if command.startswith(NOT_RUN):
            return found[0]
        lines = [line.rstrip() for line in next(rest).splitlines() if not PROGRESS.match(line)]
        if shown[-1:] == ["..."]:
            lines = [*lines[: len(shown) - 1], "..."]
        return "".join(f"{line}\n" for line in (f"$ {command}", *lines))

    return BLOCK.sub(lambda block: COMMAND.sub(answered, block[0]), text)


def masked(text: str) -> str:
    """A page without what differs from run to run."""
    for pattern, mark in MEASURED:
        text = pattern.sub(mark, text)
    return text


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: python docs/shown_output.py PAGE")
    page = Path(sys.argv[1])
    text = page.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        page.write_text(pasted(text, play(text, Path(folder))), encoding="utf-8")


if __name__ == "__main__":
    main()
