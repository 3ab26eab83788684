"""Names that docstrings mention with a dot, as `module.function`, `object.attribute` or `module.py`, exist."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import mesh_config
import router
from tests.helpers.syntax import nodes_of

FOLDERS = [Path(package.__file__).parent for package in (router, mesh_config) if package.__file__ is not None]
DOTTED = re.compile(r"(?<!`)`([a-z_]\w*(?:\.\w+)+)(?:\([^`]*\))?`(?!`)")
SOURCES = (".py", ".pxd", ".pxi")
ELSEWHERE = {"qd", *sys.stdlib_module_names}
"""Names that begin so are of AMQP or of Python."""


def docstrings(path: Path) -> list[str]:
    """The docstrings of a module, its classes, functions and attributes."""
    values = [node.value for node in nodes_of(path) if isinstance(node, ast.Expr)]
    return [each.value for each in values if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def identifiers(path: Path) -> set[str]:
    """Whatever a module, in its code, calls something."""
    fields = {"id", "attr", "arg", "name", "asname", "module"}
    values = {getattr(node, field) for node in nodes_of(path) for field in fields.intersection(node._fields)}
    return {part for value in values if isinstance(value, str) for part in value.split(".")}


def test_names_with_a_dot_in_docstrings_exist() -> None:
    files = [path for folder in FOLDERS for suffix in SOURCES for path in sorted(folder.rglob(f"*{suffix}"))]
    modules = [path for path in files if path.suffix == ".py"]
    sources = {path.name for path in files}
    known = {name for path in files for name in (path.stem, path.parent.name)}
    known.update(*map(identifiers, modules))
    mentioned = 0
    stale = []
    for path in modules:
        if FOLDERS[0] not in path.parents:
            continue  # docstrings of settings have examples of users' names
        for name in DOTTED.findall("\n".join(docstrings(path))):
            mentioned += 1
            parts = name.split(".")
            if name not in sources and parts[0] not in ELSEWHERE and not known.issuperset(parts):
                stale.append(f"{path.name}: {name}")
    assert not stale
    assert mentioned > 100
