"""Work as a number that is the same on every machine: instructions of the interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

LIMIT_S: Final = 300
"""Time that a module which counts may take, seconds."""


def instructions(act: Callable[[], object]) -> int:
    """How many the interpreter carries out in *act*; none of them in C, so 0 for what is compiled."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count


def counted_by(module: str) -> dict[str, tuple[int, int]]:
    """Run a module interpreted. Returns: the instructions that it prints of each case, for few and for many."""
    run = subprocess.run(
        [sys.executable, "-m", module],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, "AMQP_MESH_SPEED": "interpreted"},
        check=False,
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, tuple[int, int]] = json.loads(run.stdout)
    return found
