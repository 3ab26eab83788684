"""The table `scenario` of a run by column, as answers are computed from it: a run has a million rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from router.whatif.pipeline.table_files import read_table
from router.whatif.wording import BASE

NOTHING: Final = "none"
"""The family in which nothing fails."""

Places = NDArray[np.intp]
"""Rows of the table, counted from 0."""


@attrs.frozen(eq=False)
class Outcomes:
    """Outcome of each scenario of a run."""

    table: pa.Table
    """As in the layout `scenario`."""
    _columns: dict[str, NDArray[Any]] = attrs.field(factory=dict, init=False, repr=False)

    @classmethod
    def read(cls, folder: Path) -> Outcomes:
        """Those of the run in *folder*.

        Raises: TableError
        """
        return cls(read_table(folder, "scenario"))

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def numbers(self, name: str) -> NDArray[Any]:
        """A column of numbers; NaN where a real is null."""
        if name not in self._columns:
            column = self.table.column(name)
            if pa.types.is_float64(column.type):
                column = pc.fill_null(column, float("nan"))
            self._columns[name] = column.to_numpy()
        return self._columns[name]

    def values(self, name: str) -> tuple[str, ...]:
        """The different texts of a column, in the order in which they first occur."""
        return tuple(str(value) for value in pc.unique(self.table.column(name)).to_pylist())

    def having(self, name: str, value: str) -> NDArray[np.bool_]:
        """Mask of the rows that have this text in a column."""
        found: NDArray[np.bool_] = pc.fill_null(pc.equal(self.table.column(name), value), fill_value=False).to_numpy()
        return found

    @property
    def living_pairs(self) -> NDArray[np.int64]:
        """By row: ordered pairs of living routers that lost each other."""
        lost: NDArray[np.int64] = self.numbers("unreachable_pairs") - self.numbers("dead_end_pairs")
        return lost

    def rows(self, places: Sequence[int] | Places) -> list[dict[str, Any]]:
        """Some rows, as they are in the table.

        Args:
            places: of rows.
        """
        return list(self.table.take(pa.array(places, type=pa.int64())).to_pylist())

    def row_of(self, scenario: int) -> dict[str, Any] | None:
        """The row of a scenario by its number, None when the run has no such scenario."""
        numbers = self.numbers("scenario")
        place = int(np.searchsorted(numbers, scenario))
        if place == len(numbers) or numbers[place] != scenario:
            return None
        return self.rows([place])[0]

    def worst(self, values: NDArray[Any], count: int, among: NDArray[np.bool_] | None = None) -> Places:
        """Find the rows with the largest *values*, the largest first, then the lowest number; 0 is none of them.

        Args:
            values: one for each row.
            count: of rows at most.
            among: mask of the rows that are looked at; None: all.
        Returns: places of rows.
        """
        found = np.flatnonzero((values > 0) if among is None else (values > 0) & among)
        if len(found) > 8 * count:  # to sort all of a million would take longer than all else
            edge = np.partition(values[found], len(found) - count)[len(found) - count]
            found = found[values[found] >= edge]
        return found[np.lexsort((found, -values[found]))][:count]

    def alone(self, *, variant: str = BASE) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Every scenario of a variant in which one thing fails: (`link`, `router` or `group`, its id, the row)."""
        links = pc.list_value_length(self.table.column("failed_links")).to_numpy()
        routers = pc.list_value_length(self.table.column("failed_routers")).to_numpy()
        has_group = pc.is_valid(self.table.column("group")).to_numpy()
        is_held = self.having("family", "maintenance")
        here = self.having("variant", variant) & ~is_held & (((links + routers) == 1) | has_group)
        for row in self.rows(np.flatnonzero(here)):
            if row["group"] is not None:
                yield "group", row["group"], row
            elif row["failed_links"]:
                yield "link", row["failed_links"][0], row
            else:
                yield "router", row["failed_routers"][0], row
