"""The program that a process began with, which each new process reads again before it works."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import FrameType
from typing import Final

GUARD: Final = "`if __name__ == '__main__':`"
EXPECTED: Final = f"what calls it below {GUARD}: each process that is started reads the program as far as that line"


def unguarded_place() -> str | None:
    """File and line of the call in the program that new processes would run again; None where there is none.

    A call below any condition is taken for guarded.
    """
    file = _read_again()
    frame: FrameType | None = sys._getframe()
    while frame is not None and not (frame.f_code.co_name == "<module>" and frame.f_globals is _main_names()):
        frame = frame.f_back
    if file is None or frame is None or Path(frame.f_code.co_filename).resolve() != Path(file).resolve():
        return None
    tree = _tree(file)
    if tree is None or any(_has(each, frame.f_lineno) for each in ast.walk(tree) if isinstance(each, ast.If)):
        return None
    return f"{file}:{frame.f_lineno}"


def lacks_guard() -> bool:
    """Whether spawned workers would run the main script again because it has no `if __name__ == "__main__"` guard."""
    file = _read_again()
    tree = None if file is None else _tree(file)
    return tree is not None and not any(
        isinstance(each, ast.If) and "__name__" in ast.unparse(each.test) for each in tree.body
    )


def _main_names() -> dict[str, object]:
    return vars(sys.modules["__main__"])


def _read_again() -> str | None:
    """File of the program, where new processes read it: not of a notebook, nor of `python -c`."""
    main = sys.modules["__main__"]
    # A package that is run is not read again: multiprocessing leaves out what is called `__main__`.
    name = getattr(getattr(main, "__spec__", None), "name", "")
    return None if name.rpartition(".")[2] == "__main__" else getattr(main, "__file__", None)


def _tree(file: str) -> ast.Module | None:
    try:
        return ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None


def _has(statement: ast.stmt, line: int) -> bool:
    return statement.lineno <= line <= (statement.end_lineno or statement.lineno)
