"""Commands that a page of the documentation shows, run against routers of a test."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

HOW_TO: Final = Path(__file__).parents[2] / "docs" / "how_to"
TIMEOUT_S: Final = 60


def run_as_shown(page: str, words: str, **values: str) -> str:
    """Run the one command of a page that has *words* in it.

    Args:
        page: of `docs/how_to`.
        words: text by which its line is found.
        values: what stands behind options in place of what the page has there, by the option's name.
    Returns: what it wrote.
    """
    text = (HOW_TO / page).read_text(encoding="utf-8")
    (line,) = re.findall(rf"^\$ amqp-mesh (.*{re.escape(words)}.*)$", text, re.MULTILINE)
    command = shlex.split(line)
    for name, value in values.items():
        command[command.index(f"--{name.replace('_', '-')}") + 1] = value
    done = subprocess.run(
        [sys.executable, "-m", "router", *command], capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, f"{line}: {done.stderr}"
    return done.stdout
