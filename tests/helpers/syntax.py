"""Syntax of source files, read once for all tests of a process; no test may change it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path


@cache
def syntax_of(path: Path) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a module, as `ast.walk` gives them."""
    return tuple(ast.walk(syntax_of(path)))


@cache
def docstrings_of(path: Path) -> tuple[tuple[int, str], ...]:
    """The docstrings of modules, classes and functions, and the texts below attributes; each with its line."""
    return tuple(_docstrings(path))


def _docstrings(path: Path) -> Iterator[tuple[int, str]]:
    for node in nodes_of(path):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for before, after in zip([None, *body], body, strict=False):
            is_first = before is None and not isinstance(node, ast.If | ast.For | ast.While | ast.With | ast.Try)
            if (is_first or isinstance(before, ast.Assign | ast.AnnAssign)) and isinstance(after, ast.Expr):
                value = after.value
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield after.lineno, value.value.strip()
