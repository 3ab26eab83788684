"""The table of bounds is made from the program."""

from __future__ import annotations

import importlib.util
from pathlib import Path

PROGRAM = Path(__file__).parents[1] / "docs" / "bounds.py"


def test_the_table_of_bounds_is_the_one_made_from_the_program() -> None:
    spec = importlib.util.spec_from_file_location("docs_bounds", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    bounds = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bounds)
    assert bounds.PAGE.read_text(encoding="utf-8") == bounds.page(), "write it anew: python docs/bounds.py"
    assert len(list(bounds.rows())) > len(bounds.CONSTANTS)
