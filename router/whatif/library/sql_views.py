"""Tables of a run, and the parts of its model, as views for SQL of Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from router.whatif.formats.model_folder import PARTS
from router.whatif.library.variant_and_family_columns import implied_columns
from router.whatif.pipeline.held_signals import import_whole
from router.whatif.pipeline.run_folder import MODEL, read_plan
from router.whatif.pipeline.table_files import SUFFIX
from router.whatif.pipeline.table_layouts import SCENARIO, layout_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MODEL_PARTS: Final = (*PARTS, "demands")


def make_views(frames: Mapping[str, DataFrame], prefix: str) -> tuple[str, ...]:
    """Give the session of frames a view for each of them.

    Args:
        frames: by name.
        prefix: before each name.
    Returns: names of the views.
    """
    for name, frame in frames.items():
        frame.createOrReplaceTempView(f"{prefix}{name}")
    return tuple(f"{prefix}{name}" for name in frames)


def run_frames(
    folder: Path, tables: Sequence[str], session: SparkSession, address: Callable[[str], str]
) -> dict[str, DataFrame]:
    """Read each table of a run, and each part of its model, by name.

    Args:
        folder: of the run, or of a copy of it.
        tables: that it has.
        session: that reads them.
        address: of a part of the run, as Spark takes it.
    """
    sections = read_plan(folder).sections
    frames = {name: whole_frame(session.read.parquet(address(name)), name, sections) for name in tables}
    parts = {name: f"{MODEL}/{name}{SUFFIX}" for name in MODEL_PARTS}
    return frames | {
        name: session.read.parquet(address(file)) for name, file in parts.items() if (folder / file).exists()
    }


def whole_frame(frame: DataFrame, name: str, sections: Sequence[Mapping[str, Any]]) -> DataFrame:
    """A table as Spark has read it: columns of its layout and those that its scenarios imply, with their meaning.

    Args:
        frame: of the files of the table.
        name: of the table.
        sections: of the run's plan.
    """
    names, implied = layout_of(name).names, implied_columns(name)
    # Spark's own files have these two in the names of their folders: by them it leaves files out that nobody asks for.
    missing = [f"{_case(sections, column)} AS {column}" for column in implied if column not in frame.columns]
    whole = frame.selectExpr("*", *missing).select(*names, *implied)
    tables = import_whole("router.whatif.pipeline.spark_tables")  # which needs Spark
    found: DataFrame = tables.described(whole, (*layout_of(name).columns, *SCENARIO.columns))
    return found


def _case(sections: Sequence[Mapping[str, Any]], column: str) -> str:
    """Make the expression for what a scenario is one of, by its number."""
    branches = (
        f"WHEN scenario < {section['first'] + section['count']} THEN {_quoted(section[column])}" for section in sections
    )
    return f"CASE {' '.join(branches)} END"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
