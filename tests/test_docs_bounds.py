"""The tables of bounds and of security defaults are made from the program."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"


def program(name: str) -> Any:
    """One of the programs that write tables."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_security_defaults_is_the_one_made_from_the_program() -> None:
    defaults = program("security_defaults")
    written = defaults.PAGE.read_text(encoding="utf-8")
    assert written == defaults.page(), "write it anew: python docs/security_defaults.py"
    assert len(list(defaults.rows())) > 20


def test_the_table_of_bounds_is_the_one_made_from_the_program() -> None:
    bounds = program("bounds")
    assert bounds.PAGE.read_text(encoding="utf-8") == bounds.page(), "write it anew: python docs/bounds.py"
    assert len(list(bounds.rows())) > len(bounds.CONSTANTS)
