"""Variant and family of the rows of tables that have only the number of a scenario."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from router.whatif.pipeline.run_folder import read_plan
from router.whatif.pipeline.table_files import read_table
from router.whatif.pipeline.table_layouts import layout_of

OF_SCENARIO: Final = ("variant", "family")
"""Columns that tables with rows by scenario have in the library, whoever wrote them."""


def implied_columns(name: str) -> tuple[str, ...]:
    """Columns that a table has in the library besides those of its layout.

    Args:
        name: of the table.
    Raises: TableError for a table that there isn't.
    """
    layout = layout_of(name)
    return tuple(each for each in OF_SCENARIO if each not in layout.names) if "scenario" in layout.key else ()


def read_with_implied(folder: Path, name: str, columns: Sequence[str]) -> pa.Table:
    """Read columns of a table with rows by scenario, those of its layout and implied ones.

    Args:
        folder: of the run.
        name: of the table.
        columns: that are wanted, in their order.
    Raises: TableError
    """
    implied = [each for each in implied_columns(name) if each in columns]
    stored = [each for each in columns if each not in implied]
    if not implied:
        return read_table(folder, name, stored)
    table = read_table(folder, name, list(dict.fromkeys([*stored, "scenario"])))
    sections = read_plan(folder).sections
    firsts = np.array([section["first"] for section in sections])
    numbers = table.column("scenario").chunks
    places = [pa.array(np.searchsorted(firsts, chunk.to_numpy(), side="right") - 1) for chunk in numbers]
    for each in implied:
        values = pa.array([section[each] for section in sections], pa.string())
        # Chunk by chunk, as the texts beside them: all of a large table are more than one array can hold.
        column = pa.chunked_array([values.take(part) for part in places], pa.string())
        table = table.append_column(pa.field(each, pa.string()), column)
    return table.select(columns)
