"""The folder of a run or of a forecast: its tables as others know them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from router.whatif.library.variant_and_family_columns import implied_columns, read_with_implied
from router.whatif.pipeline.table_layouts import LAYOUTS, TableError, layout_of, said_of_missing, said_of_names


class TableFolder:
    """A folder with tables.

    Nothing is kept in memory: each call reads what it needs of the folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that are there; what their columns mean is in the reference of tables."""
        return tuple(name for name in LAYOUTS if (self.folder / name).is_dir())

    def arrow(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """A table, in the order of its key.

        Tables with rows by scenario have the columns `variant` and `family`, too.

        Args:
            table: one of `tables`.
            columns: only these, in this order, or the one of this name; None: all.
        Raises: TableError for a table or column that isn't there.
        """
        names = (*layout_of(table).names, *implied_columns(table))
        if table not in self.tables:
            raise TableError(f"{self.folder} has no table {table!r}; {said_of_missing(table, self.tables)}")
        if isinstance(columns, str):
            columns = (columns,)
        for name in columns or ():
            if name not in names:
                raise TableError(f"table {table} has no column {name!r}; {said_of_names(name, names)}")
        return read_with_implied(self.folder, table, names if columns is None else columns)

    def pandas(self, table: str, columns: Sequence[str] | None = None) -> Any:
        """Table as a pandas DataFrame. See `arrow`."""
        return self.arrow(table, columns).to_pandas()
