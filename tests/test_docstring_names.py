"""Names that docstrings mention with a dot, as `module.function`, `object.attribute` or `module.py`, exist."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import mesh_config
import router

FOLDERS = [Path(package.__file__).parent for package in (router, mesh_config) if package.__file__ is not None]
DOTTED = re.compile(r"(?<!`)`([a-z_]\w*(?:\.\w+)+)(?:\([^`]*\))?`(?!`)")
SOURCES = (".py", ".pxd", ".pxi")
ELSEWHERE = {"qd", *sys.stdlib_module_names}
"""Names that begin so are of AMQP or of Python."""


def docstrings(tree: ast.Module) -> list[str]:
    """The docstrings of a module, its classes, functions and attributes."""
    values = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    return [each.value for each in values if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def identifiers(tree: ast.Module) -> set[str]:
    """Whatever a module, in its code, calls something."""
    fields = ("id", "attr", "arg", "name", "asname", "module")
    values = [getattr(node, field, None) for node in ast.walk(tree) for field in fields]
    return {part for value in values if isinstance(value, str) for part in value.split(".")}


def test_names_with_a_dot_in_docstrings_exist() -> None:
    files = [path for folder in FOLDERS for suffix in SOURCES for path in sorted(folder.rglob(f"*{suffix}"))]
    trees = {path: ast.parse(path.read_text()) for path in files if path.suffix == ".py"}
    sources = {path.name for path in files}
    known = {name for path in files for name in (path.stem, path.parent.name)}
    known.update(*map(identifiers, trees.values()))
    mentioned = 0
    stale = []
    for path, tree in trees.items():
        if FOLDERS[0] not in path.parents:
            continue  # docstrings of settings have examples of users' names
        for name in DOTTED.findall("\n".join(docstrings(tree))):
            mentioned += 1
            parts = name.split(".")
            if name not in sources and parts[0] not in ELSEWHERE and not known.issuperset(parts):
                stale.append(f"{path.name}: {name}")
    assert not stale
    assert mentioned > 100
