"""The table `scenario` of a run by column, as answers are computed from it: a run has a million rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from router.whatif.pipeline.local_summaries import ScenarioRange
from router.whatif.pipeline.run_folder import read_plan
from router.whatif.pipeline.scenario_extremes import measured
from router.whatif.pipeline.table_files import files_of, read_parts, read_table, row_count
from router.whatif.wording import BASE, MAINTENANCE

_MORE: Final = re.compile(r"[+]|:([2-9]|1\d)")
"""Pattern that is in the name of a family of which more than one thing fails."""
ALONE_BY: Final = ("variant", "family", "group", "failed_links", "failed_routers")
"""Columns that say whether one thing alone fails."""

WHOLE_ROWS: Final = 400_000
"""Rows of a run above which columns are read one by one: a whole row takes some hundred bytes in memory."""

Places = NDArray[np.intp]
"""Rows of the table, counted from 0."""


@attrs.define(eq=False, slots=False)
class Outcomes:
    """Outcome of each scenario of a run, of which those columns are in memory that have been asked for."""

    folder: Path
    """Folder of the run."""
    _columns: dict[str, NDArray[Any]] = attrs.field(factory=dict, init=False, repr=False)
    _texts: dict[str, pa.ChunkedArray] = attrs.field(factory=dict, init=False, repr=False)

    @classmethod
    def read(cls, folder: Path) -> Outcomes:
        """Read the outcomes of the run in *folder*.

        Raises: TableError
        """
        files_of(folder, "scenario")
        return cls(folder)

    def __len__(self) -> int:
        return len(self.numbers("scenario"))

    @cached_property
    def _whole(self) -> pa.Table | None:
        """All columns where they are not many rows: to read files once is faster."""
        rows = row_count(self.folder, "scenario")
        return read_table(self.folder, "scenario") if rows <= WHOLE_ROWS else None

    def column(self, name: str) -> pa.ChunkedArray:
        """A column as it is in the table."""
        if self._whole is not None:
            return self._whole.column(name)
        return read_table(self.folder, "scenario", [name]).column(0)

    def numbers(self, name: str) -> NDArray[Any]:
        """A column of numbers; NaN where a real is null."""
        if name not in self._columns:
            column = self.column(name)
            if pa.types.is_float64(column.type):
                column = pc.fill_null(column, float("nan"))
            self._columns[name] = column.to_numpy()
        return self._columns[name]

    def _coded(self, name: str) -> pa.ChunkedArray:
        """A column of texts, each of which is kept once."""
        if name not in self._texts:
            self._texts[name] = self.column(name).dictionary_encode().unify_dictionaries()
        return self._texts[name]

    def values(self, name: str) -> tuple[str, ...]:
        """The different texts of a column, in the order in which they first occur."""
        chunks = self._coded(name).chunks
        return tuple(str(value) for value in (chunks[0].dictionary.to_pylist() if chunks else ()))

    def having(self, name: str, value: str) -> NDArray[np.bool_]:
        """Mask of the rows that have this text in a column."""
        column = self._coded(name)
        masks = [
            pc.fill_null(pc.equal(chunk.indices, pc.index(chunk.dictionary, value)), fill_value=False).to_numpy(
                zero_copy_only=False
            )
            for chunk in column.chunks
        ]
        return np.concatenate(masks) if masks else np.zeros(0, dtype=np.bool_)

    @property
    def living_pairs(self) -> NDArray[np.int64]:
        """Number of ordered pairs of living routers that lost each other, by row."""
        return measured(self, "lost_pairs").astype(np.int64)

    def rows(self, places: Sequence[int] | Places) -> list[dict[str, Any]]:
        """Rows at some places, as they are in the table.

        Args:
            places: places of the rows.
        """
        if not len(places):
            return []
        wanted = np.asarray(places, dtype=np.int64)
        if self._whole is not None:
            return list(self._whole.take(pa.array(wanted)).to_pylist())
        found: dict[int, dict[str, Any]] = {}
        for first, part in read_parts(self.folder, "scenario", lambda first, stop: _is_any(wanted, first, stop)):
            own = np.unique(wanted[(wanted >= first) & (wanted < first + part.num_rows)])
            rows = part.take(pa.array(own - first)).to_pylist()
            found.update(zip(own.tolist(), rows, strict=True))
        return [found[place] for place in wanted.tolist()]

    def of_numbers(self, numbers: Sequence[int]) -> list[dict[str, Any]]:
        """Rows of scenarios by their numbers, in that order, without those that there aren't.

        Numbers have no gaps, so that only the files are read in which they are.
        """
        wanted = np.asarray(numbers, dtype=np.int64)
        found: dict[int, dict[str, Any]] = {}
        for _, part in read_parts(self.folder, "scenario", lambda first, stop: _is_any(wanted, first, stop)):
            is_one = np.isin(part.column("scenario").to_numpy(), wanted)
            found.update((row["scenario"], row) for row in part.filter(pa.array(is_one)).to_pylist())
        return [found[number] for number in numbers if number in found]

    def row_of(self, scenario: int) -> dict[str, Any] | None:
        """The row of a scenario by its number, None when the run has no such scenario."""
        numbers = self.numbers("scenario")
        place = int(np.searchsorted(numbers, scenario))
        if place == len(numbers) or numbers[place] != scenario:
            return None
        return self.rows([place])[0]

    def alone(self, *, variant: str = BASE) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Every scenario of a variant in which one thing fails: (`link`, `router` or `group`, its id, the row)."""
        for row in self._rows_alone(variant):
            if row["group"] is not None:
                yield "group", row["group"], row
            elif row["failed_links"]:
                yield "link", row["failed_links"][0], row
            else:
                yield "router", row["failed_routers"][0], row

    def _rows_alone(self, variant: str) -> Iterator[dict[str, Any]]:
        """Rows of these scenarios; of many, only one file at a time is in memory, and only what identifies them."""
        if self._whole is not None:
            yield from self._whole.filter(_is_alone(self._whole, variant)).to_pylist()
            return
        places: list[int] = []
        single = [each for each in self._ranges() if each.variant == variant and not _MORE.search(each.family)]

        def is_wanted(first: int, stop: int) -> bool:
            return any(each.first < stop and first < each.stop for each in single)

        for first, part in read_parts(self.folder, "scenario", is_wanted, ALONE_BY):
            places += (first + np.flatnonzero(_is_alone(part, variant))).tolist()
        yield from self.rows(places)

    def _ranges(self) -> list[ScenarioRange]:
        return read_plan(self.folder).ranges


def _is_alone(part: pa.Table, variant: str) -> pa.ChunkedArray:
    """Mask of the rows of a variant in which one thing fails and nothing is held down."""
    fails = pc.add(*(pc.list_value_length(part.column(name)) for name in ("failed_links", "failed_routers")))
    is_one = pc.or_(pc.equal(fails, 1), pc.is_valid(part.column("group")))
    is_here = pc.equal(part.column("variant"), variant)
    return pc.and_(pc.and_(is_here, is_one), pc.not_equal(part.column("family"), MAINTENANCE))


def _is_any(places: NDArray[np.int64], first: int, stop: int) -> bool:
    return bool(((places >= first) & (places < stop)).any())
