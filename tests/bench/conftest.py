"""A document as `amqp-mesh bench` writes it, made once for all tests that read one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from router.cli import main


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["bench", *words], catch_exceptions=False)


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Of a quick run of every case, on the shortest and the longest of the usual paths."""
    file = tmp_path_factory.mktemp("bench") / "found.json"
    result = run("--quick", "--hops", "1,3", "--json", str(file))
    assert result.exit_code == 0, result.output
    document: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    document["output"] = result.output
    return document
