"""The notebook of the example: each of its cells runs, and it says what the tables have."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from router.whatif.library.notebook_display import Drawing

FOLDER = Path(__file__).parents[3] / "examples" / "what-if"
BOOK = json.loads((FOLDER / "what-if.ipynb").read_text(encoding="utf-8"))


def shown(cell: str, names: dict[str, Any]) -> Any:
    """Run a cell. Returns: the value of its last line, which a notebook shows."""
    tree = ast.parse(cell)
    last = tree.body.pop()
    exec(compile(tree, "cell", "exec"), names)  # noqa: S102 - this project's own notebook
    if isinstance(last, ast.Expr):
        return eval(compile(ast.Expression(last.value), "cell", "eval"), names)  # noqa: S307
    exec(compile(ast.Module([last], []), "cell", "exec"), names)  # noqa: S102
    return None


@pytest.mark.slow
def test_every_cell_of_the_notebook_runs(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(FOLDER, tmp_path / "what-if")
    monkeypatch.chdir(tmp_path / "what-if")
    names: dict[str, Any] = {}
    found = [shown("".join(cell["source"]), names) for cell in BOOK["cells"] if cell["cell_type"] == "code"]
    assert sum(isinstance(each, Drawing) for each in found) == 3
    assert names["busiest"].utilisation.is_monotonic_decreasing
    assert (
        names["busiest"].utilisation.iloc[0]
        == names["run"].pandas("link_worst").query("variant == 'base'").worst_utilisation.max()
    )
    assert (names["full"].full_in <= 26).all()
    most = names["summary"].groupby("variant").max_utilisation_max.max()
    assert most["changed"] < most["base"], "the link that is planned helps"


def test_the_notebook_is_one_and_has_no_results_in_it() -> None:
    assert (BOOK["nbformat"], BOOK["metadata"]["kernelspec"]["name"]) == (4, "python3")
    assert len({cell["id"] for cell in BOOK["cells"]}) == len(BOOK["cells"])
    code = [cell for cell in BOOK["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
