"""Work as a number that is the same on every machine: instructions of the interpreter."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


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
