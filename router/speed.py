"""One source, two speeds: whether the hot path runs compiled or interpreted.

Modules with a `.pxd` beside their `.py` are compiled by Cython when the wheel is built, into one library. All of them
are, or none: a compiled module and an interpreted one would not agree about the classes that they share. The
environment variable `AMQP_MESH_SPEED` chooses: `compiled` or `interpreted`; without it the library is used when it is
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
"""Modules whose .pxd declares for compiled modules what is there already, in proton or as a number."""
_ROOT: Final = Path(__file__).parent
LIBRARY: Final = _ROOT / f"_compiled{importlib.machinery.EXTENSION_SUFFIXES[0]}"
"""Library of all compiled modules."""


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


@functools.cache
def _show_proton() -> None:
    """Load proton so that its functions are visible in the whole process, where the library looks for them."""
    ctypes = importlib.import_module("ctypes")  # not needed by who only asks for the version
    ctypes.CDLL(importlib.import_module("cproton_ffi").__file__, mode=ctypes.RTLD_GLOBAL)


class _LibraryLoader(importlib.machinery.ExtensionFileLoader):
    """Loads one of the modules of the library, which Python finds there by the last word of its name."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """See `importlib.abc.Loader`.

        Raises: ImportError
        """
        _show_proton()
        try:
            return super().create_module(spec)
        except ImportError as error:
            hint = "if it is older than that module, build it again: scripts/build"
            raise ImportError(f"{spec.name} can't be loaded from {self.path}: {error}; {hint}") from error


class _FromLibrary:
    """Finds hot modules in the library, not in their sources."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Spec that loads a hot module from the library; None for any other."""
        if name not in hot_modules():
            return None
        loader = _LibraryLoader(name, str(LIBRARY))
        return importlib.util.spec_from_file_location(name, LIBRARY, loader=loader)


class _Refuse:
    """Lets no hot module be imported: nobody gets another speed than was asked for."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """None for any other than a hot module.

        Raises: SpeedUnavailable
        """
        if name in hot_modules():
            raise SpeedUnavailable(REFUSAL)
        return None


def choose(wanted: str | None, library: Path) -> tuple[str, str]:
    """Choose the speed when *wanted* is asked for, with the reason when that is INTERPRETED.

    Raises: SpeedUnavailable
    """
    if wanted not in (COMPILED, INTERPRETED, "", None):
        raise SpeedUnavailable(f"{VARIABLE} is {wanted!r}; expected {COMPILED!r} or {INTERPRETED!r}")
    if wanted == INTERPRETED:
        return INTERPRETED, f"{VARIABLE} says so"
    if library.exists():
        return COMPILED, ""
    reason = "it was not built, or no C compiler worked then"
    if wanted == COMPILED:
        raise SpeedUnavailable(f"{VARIABLE} is {COMPILED!r}, but {reason}")
    return INTERPRETED, reason


def _install(wanted: str | None) -> tuple[str, str, str]:
    """Have hot modules imported as *wanted*. Returns: speed, reason, refusal; two of them are empty."""
    try:
        speed, reason = choose(wanted, LIBRARY)
    except SpeedUnavailable as error:
        sys.meta_path.insert(0, _Refuse())
        return "", "", str(error)
    if speed == COMPILED:
        sys.meta_path.insert(0, _FromLibrary())
    return speed, reason, ""


SPEED, REASON, REFUSAL = _install(os.environ.get(VARIABLE))
"""COMPILED or INTERPRETED; why it is the latter; why it is neither, and hot modules can't be imported."""


def describe() -> str:
    """The speed in words: "compiled", or "interpreted: <why>"."""
    return f"{SPEED}: {REASON}" if REASON else SPEED
