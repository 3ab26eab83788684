"""One source, two speeds: whether the hot path runs compiled or interpreted.

Modules with a `.pxd` beside their `.py` are compiled by Cython when the wheel is built. All of them are, or none is
used: a compiled module and an interpreted one would not agree about the classes that they share. The environment
variable `AMQP_MESH_SPEED` chooses: `compiled` or `interpreted`; without it the compiled modules are used when they are
there.

Called by `router/__init__.py`, before anything else of the package is imported. Source: design, section 8.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Final

VARIABLE: Final = "AMQP_MESH_SPEED"
COMPILED: Final = "compiled"
INTERPRETED: Final = "interpreted"
_ROOT: Final = Path(__file__).parent
_SUFFIX: Final = importlib.machinery.EXTENSION_SUFFIXES[0]


class NotCompiled(ImportError):
    """The environment asks for compiled modules, and there are none."""


def hot_modules() -> dict[str, Path]:
    """Dotted names of the modules that are made to be compiled, and their sources."""
    return {
        ".".join((_ROOT.name, *path.relative_to(_ROOT).with_suffix("").parts)): path.with_suffix(".py")
        for path in sorted(_ROOT.rglob("*.pxd"))
        if path != _ROOT / "binding" / "handles.pxd"  # declarations only: proton is what is compiled
    }


class _SourceFirst:
    """Finds the sources of hot modules, which an extension beside them would hide."""

    def __init__(self, modules: dict[str, Path]) -> None:
        self._modules = modules

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """How to load a hot module from its source; None for any other."""
        source = self._modules.get(name)
        return None if source is None else importlib.util.spec_from_file_location(name, source)


def choose(wanted: str | None) -> tuple[str, str]:
    """Have hot modules imported as *wanted*, or as fast as can be.

    Returns: COMPILED or INTERPRETED, and why it is the latter.
    Raises: NotCompiled, ValueError
    """
    if wanted not in (COMPILED, INTERPRETED, "", None):
        raise ValueError(f"{VARIABLE} is {wanted!r}: expected {COMPILED!r} or {INTERPRETED!r}")
    modules = hot_modules()
    missing = [name for name, source in modules.items() if not source.with_suffix(_SUFFIX).exists()]
    if missing and wanted == COMPILED:
        raise NotCompiled(f"{VARIABLE} is {COMPILED!r}, but {missing[0]} is not compiled (of {len(missing)} modules)")
    if not missing and wanted != INTERPRETED:
        return COMPILED, ""
    sys.meta_path.insert(0, _SourceFirst(modules))
    return INTERPRETED, f"{VARIABLE} says so" if wanted == INTERPRETED else "no compiler was there when it was built"


SPEED, REASON = choose(os.environ.get(VARIABLE))
