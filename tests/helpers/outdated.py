"""Modules of a checkout that were compiled before something that the build reads for them has changed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from Cython.Build.Dependencies import create_dependency_tree


def outdated(modules: Mapping[str, Path], library: Path) -> list[str]:
    """Names of those that are not in the library what their sources say.

    Args:
        modules: paths of the sources by name
        library: all of them, compiled
    """
    compiled_at = changed_at(library)
    return [name for name, source in modules.items() if compiled_at < max(map(changed_at, read_for(source)))]


def read_for(source: Path) -> set[Path]:
    """What Cython reads to compile it: the `.pxd` beside it, those that it imports, and what these include."""
    return {source, *map(Path, create_dependency_tree().all_dependencies(str(source)))}


def changed_at(path: Path) -> float:
    return path.stat().st_mtime
