"""Tables of a run, and the parts of its model, as views for SQL of Spark."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from router.whatif.formats.model_folder import PARTS
from router.whatif.pipeline.run_folder import MODEL
from router.whatif.pipeline.table_files import SUFFIX, read_table
from router.whatif.pipeline.table_layouts import layout_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MODEL_PARTS: Final = (*PARTS, "demands")
OF_SCENARIO: Final = ("variant", "family")
"""Columns that tables with scenarios have here, whoever wrote them."""


def make_views(
    folder: Path, tables: Sequence[str], session: SparkSession, prefix: str, address: Callable[[str], str]
) -> tuple[str, ...]:
    """Give the session a view for each table of a run, and for each part of its model.

    Args:
        folder: of the run, or of a copy of it.
        tables: that it has.
        session: that has the views then.
        prefix: before each name.
        address: of a part of the run, as Spark takes it.
    Returns: names of the views.
    """
    (run,) = read_table(folder, "run", ["plan"]).to_pylist()
    sections = json.loads(run["plan"])["sections"]
    frames = {name: _table(session.read.parquet(address(name)), name, sections) for name in tables}
    parts = {name: f"{MODEL}/{name}{SUFFIX}" for name in MODEL_PARTS}
    frames |= {name: session.read.parquet(address(file)) for name, file in parts.items() if (folder / file).exists()}
    for name, frame in frames.items():
        frame.createOrReplaceTempView(f"{prefix}{name}")
    return tuple(f"{prefix}{name}" for name in frames)


def _table(frame: DataFrame, name: str, sections: Sequence[dict[str, Any]]) -> DataFrame:
    names = layout_of(name).names
    if "scenario" not in layout_of(name).key:
        return frame.select(*names)
    # Spark's own files have these two in the names of their folders: by them it leaves files out that nobody asks for.
    missing = [f"{_case(sections, column)} AS {column}" for column in OF_SCENARIO if column not in frame.columns]
    return frame.selectExpr("*", *missing).select(*names, *(each for each in OF_SCENARIO if each not in names))


def _case(sections: Sequence[dict[str, Any]], column: str) -> str:
    """Make the expression for what a scenario is one of, by its number."""
    branches = (
        f"WHEN scenario < {section['first'] + section['count']} THEN {_quoted(section[column])}" for section in sections
    )
    return f"CASE {' '.join(branches)} END"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
