"""Which lines of an entry point's modules inputs reach, and which of many inputs are enough for all of them.

Of the interpreted modules: the environment has AMQP_MESH_SPEED=interpreted.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FrameType
from typing import Any

from tests.fuzz.entry_points import EntryPoint

Arc = tuple[str, int, int]
"""A file, and two lines that were run one after the other."""


class Tracer:
    """Counts what one entry point runs of its modules."""

    def __init__(self, entry: EntryPoint) -> None:
        self._entry = entry
        modules = [importlib.import_module(name) for name in entry.modules]
        self._files = {str(module.__file__) for module in modules}
        self.lines = {arc for module in modules for arc in _lines(module)}
        """All that can be run: files and lines, those at import left out."""
        self._arcs: set[Arc] = set()
        self._last: dict[int, int] = {}

    def arcs(self, data: bytes) -> set[Arc]:
        """What one input runs."""
        self._arcs = set()
        sys.settrace(self._called)
        try:
            self._entry.check(data)
        except Exception:  # noqa: BLE001 (a find is told by others)
            pass
        finally:
            sys.settrace(None)
        return self._arcs

    def _called(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in self._files:
            return None
        last = frame.f_lineno

        def ran(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal last
            if event == "line":
                self._arcs.add((frame.f_code.co_filename, last, frame.f_lineno))
                last = frame.f_lineno
            return ran

        return ran


def _lines(module: Any) -> Iterator[tuple[str, int]]:
    """File and number of each line within a function."""
    file = str(module.__file__)
    open_ = [compile(inspect.getsource(module), file, "exec")]
    while open_:
        code = open_.pop()
        open_ += [it for it in code.co_consts if isinstance(it, CodeType)]
        if code.co_flags & inspect.CO_NEWLOCALS:
            yield from ((file, line) for _, _, line in code.co_lines() if line and line != code.co_firstlineno)


def enough(entry: EntryPoint, inputs: Iterable[bytes], most: int) -> tuple[list[bytes], int, int]:
    """Short inputs that run all that all inputs run.

    Args:
        most: bytes of an input that is kept.
    Returns: the inputs, lines that were run, and all lines.
    """
    tracer = Tracer(entry)
    seen: set[Arc] = set()
    kept = []
    for data in sorted(set(inputs), key=lambda it: (len(it), it)):
        new = tracer.arcs(data) - seen
        if new and len(data) <= most:
            kept.append(data)
        seen |= new
    lines = {(file, line) for file, _, line in seen} & tracer.lines
    return kept, len(lines), len(tracer.lines)
