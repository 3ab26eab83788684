"""One source, two speeds: whether the hot path runs compiled or interpreted.

Modules with a `.pxd` beside their `.py` are compiled by Cython when the wheel is built. All of them are, or none is
used: a compiled module and an interpreted one would not agree about the classes that they share. The environment
variable `AMQP_MESH_SPEED` chooses: `compiled` or `interpreted`; without it the compiled modules are used when they are
there.

Called by `router/__init__.py`, before anything else of the package is imported.

Source: docs/explanation/two-speeds.md.
"""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Final

VARIABLE: Final = "AMQP_MESH_SPEED"
COMPILED: Final = "compiled"
INTERPRETED: Final = "interpreted"
DECLARATIONS: Final = (
    "byte_stream_limits",
    "c_arrays",
    "epoll",
    "guard_constants",
    "proton_functions",
    "section_codes",
    "transfer_stages",
)
"""Their .pxd tells compiled modules what is there already, in proton or as a number."""
_ROOT: Final = Path(__file__).parent
SUFFIX: Final = importlib.machinery.EXTENSION_SUFFIXES[0]


class SpeedUnavailable(ImportError):
    """Refusal of what the environment asks for and can't be had; the message says it in one line."""


@functools.cache  # the folders are read once: some ask for each import of a program
def hot_modules() -> Mapping[str, Path]:
    """Dotted names of the modules that are made to be compiled, and their sources."""
    return {
        ".".join((_ROOT.name, *path.relative_to(_ROOT).with_suffix("").parts)): path.with_suffix(".py")
        for path in sorted(_ROOT.rglob("*.pxd"))
        if path.stem not in DECLARATIONS
    }


class _SourceFirst:
    """Finds the sources of hot modules, which an extension beside them would hide."""

    def __init__(self, modules: Mapping[str, Path]) -> None:
        self._modules = modules

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Spec that loads a hot module from its source; None for any other."""
        source = self._modules.get(name)
        return None if source is None else importlib.util.spec_from_file_location(name, source)


class _Refuse(_SourceFirst):
    """Lets no hot module be imported: nobody gets another speed than was asked for."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """None for any other than a hot module.

        Raises: SpeedUnavailable
        """
        if name in self._modules:
            raise SpeedUnavailable(REFUSAL)
        return None


def choose(wanted: str | None, modules: Mapping[str, Path]) -> tuple[str, str]:
    """Choose the speed when *wanted* is asked for, with the reason when that is INTERPRETED.

    Raises: SpeedUnavailable
    """
    if wanted not in (COMPILED, INTERPRETED, "", None):
        raise SpeedUnavailable(f"{VARIABLE} is {wanted!r}; expected {COMPILED!r} or {INTERPRETED!r}")
    if wanted == INTERPRETED:
        return INTERPRETED, f"{VARIABLE} says so"
    missing = [name for name, source in modules.items() if not source.with_suffix(SUFFIX).exists()]
    if not missing:
        return COMPILED, ""
    whole = len(missing) == len(modules)
    reason = "it was not built, or no C compiler worked then" if whole else f"{missing[0]} is not compiled"
    if wanted == COMPILED:
        raise SpeedUnavailable(f"{VARIABLE} is {COMPILED!r}, but {reason}")
    return INTERPRETED, reason


def _install(wanted: str | None) -> tuple[str, str, str]:
    """Have hot modules imported as *wanted*. Returns: speed, reason, refusal; two of them are empty."""
    modules = hot_modules()
    try:
        speed, reason = choose(wanted, modules)
    except SpeedUnavailable as error:
        sys.meta_path.insert(0, _Refuse(modules))
        return "", "", str(error)
    if speed == INTERPRETED:
        sys.meta_path.insert(0, _SourceFirst(modules))
    return speed, reason, ""


SPEED, REASON, REFUSAL = _install(os.environ.get(VARIABLE))
"""COMPILED or INTERPRETED; why it is the latter; why it is neither, and hot modules can't be imported."""


def describe() -> str:
    """The speed in words: "compiled", or "interpreted: <why>"."""
    return f"{SPEED}: {REASON}" if REASON else SPEED
