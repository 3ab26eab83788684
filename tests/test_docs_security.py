"""The table of clients in docs/explanation/security.md is that of the tests."""

from __future__ import annotations

import importlib.util
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "docs" / "who_gets_in.py"


def test_the_table_of_clients_is_that_of_the_tests() -> None:
    spec = importlib.util.spec_from_file_location("who_gets_in_page", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = module.PAGE.read_text(encoding="utf-8")
    assert module.BEGIN in text
    assert text == module.with_table(text), "python docs/who_gets_in.py"
