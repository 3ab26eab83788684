"""Demands from a table: CSV or Parquet with `src`, `dst` or `address` (or both), `msgs_per_s`, `msg_bytes`, `class`.

Read by column, since a mesh of 1,000 routers has a million of them; only where something is wrong are rows looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mesh_config.findings import Finding, nearest
from mesh_config.value_rules import expectation, fault_of, field_of, found_words
from router.core.addressing.address import normalise
from router.whatif.formats.csv_parquet import SHOWN, InputTable, numbered, read_columns
from router.whatif.formats.input_file import FileFindings, FilePath, in_file, number_of
from router.whatif.formats.mesh_settings import TreatmentOf
from router.whatif.model.demands import DEFAULT_CLASS, NOBODY, Demand, Demands
from router.whatif.model.elements import AddressNode
from router.whatif.model.mesh_model import Model, ModelError
from router.whatif.model.validation import MICRO
from router.whatif.wording import counted

COLUMNS: Final = ("src", "dst", "address", "msgs_per_s", "msg_bytes", "class")
REQUIRED: Final = ("src", "msgs_per_s", "msg_bytes")
Mask = NDArray[np.bool_]


def with_demand_file(model: Model, path: FilePath, treatment_of: TreatmentOf) -> tuple[Model, tuple[Finding, ...]]:
    """The model with the demands of a file instead of its own.

    A row from a router to itself without messages, as the diagonal of a matrix has it, is left out.
    Args:
        model: has the routers.
        path: of a CSV or Parquet file.
        treatment_of: of addresses that the model doesn't have yet.
    Returns: the model; warnings: addresses without subscribers, and demands too small to count.
    Raises: SettingsError with all that is wrong with the file.
    """
    faults = FileFindings(path)
    columns = read_columns(faults, COLUMNS, REQUIRED)
    reading = _Reading(columns, faults)
    names = {name: reading.names(name) for name in ("src", "dst", "address", "class")}
    amounts = {name: reading.amounts(name) for name in ("msgs_per_s", "msg_bytes")}
    routers = dict.fromkeys(router.id for router in model.routers)
    reading.refuse_unknown("src", names["src"], routers)
    reading.refuse_unknown("dst", names["dst"], routers)
    reading.refuse_ends(names)
    is_diagonal = (names["src"] == names["dst"]) & (names["src"] != NOBODY)
    has_messages = amounts["msgs_per_s"] != 0
    reading.refuse(is_diagonal & has_messages, "dst", lambda _: "where the messages come from", "another router")
    there = {site.address for site in model.subscribers}
    reading.warn_unsubscribed(names["address"], there)
    reading.warn_too_little(amounts["msgs_per_s"])
    if not columns.table.num_rows:
        faults.warn("no demand: the table has no rows")
    warnings = reading.check()
    demands = reading.demands(names, amounts, is_kept=~is_diagonal)
    known = {address.text for address in model.addresses}
    used = sorted({demands.names[number] for number in np.unique(demands.address) if number != NOBODY} - known)
    new = [AddressNode(text=text, treatment=treatment_of(text)) for text in used]
    found = attrs.evolve(model, demands=demands, addresses=(*model.addresses, *new))
    try:
        found.check()
    except ModelError as error:  # what no single row shows: the sum of all
        raise ModelError(in_file(error.findings, path)) from error
    return found, warnings


class _Reading:
    """One table; names become numbers, the same number for the same name in every column."""

    def __init__(self, columns: InputTable, faults: FileFindings) -> None:
        self._columns = columns
        self._faults = faults
        self._count = columns.table.num_rows
        self._numbers: dict[str, int] = {}
        self._texts: list[str] = []
        self._late: list[tuple[int, Callable[[str, int | None], None]]] = []
        """Rows with something to tell, which need their lines first."""

    def names(self, column: str) -> NDArray[np.int32]:
        """A column of names as numbers; NOBODY where nothing stands, or the column is missing."""
        if column not in self._columns.table.column_names:
            default = self._number(DEFAULT_CLASS) if column == "class" else NOBODY
            return np.full(self._count, default, dtype=np.int32)
        values = self._column(column)
        kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)):
            self._faults.fail(f"column `{column}` is of type {kind}", expected="text")
        tidy = normalise if column == "address" else str.strip
        fallback = DEFAULT_CLASS if column == "class" else ""

        def number(text: str | None) -> int:
            name = tidy(text or "") or fallback
            return self._number(name) if name else NOBODY

        return numbered(values, number)

    def amounts(self, column: str) -> NDArray[np.float64]:
        """A column of numbers; NaN where something is wrong, which is told."""
        field = field_of(Demand, column)
        values = self._column(column)
        kind = values.type
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        if not is_number and not pa.types.is_string(kind) and not pa.types.is_null(kind):
            self._faults.fail(f"column `{column}` is of type {kind}", expected="numbers")
        try:
            found = pc.cast(values, pa.float64())
        except pa.ArrowInvalid:
            found = pa.array([number_of(text) for text in values.to_pylist()], pa.float64())
        numbers: NDArray[np.float64] = found.fill_null(np.nan).to_numpy(zero_copy_only=False)
        low, high = field.metadata["low"], field.metadata["high"]

        def told(row: int) -> str:
            value = values[row].as_py()
            fault = fault_of(field, float(numbers[row])) if number_of(value) is not None else None
            return found_words(value) if fault is None else fault.message

        self.refuse(~((numbers >= low) & (numbers <= high)), column, told, expectation(field))
        return numbers

    def refuse(self, wrong: Mask, column: str, told: Callable[[int], str], expected: str) -> None:
        """Tell of the first rows at which *wrong* is true, and how many there are.

        Args:
            wrong: by row.
            column: that is at fault.
            told: what is found in a row.
            expected: what may stand there.
        """
        rows = np.flatnonzero(wrong)
        for row in rows[:SHOWN].tolist():
            self._tell(row, column, told(row), expected, None)
        if len(rows) > SHOWN:
            self._faults.add(f"{len(rows)} rows have such a `{column}`, the first {SHOWN} are shown", expected=expected)

    def refuse_unknown(self, column: str, names: NDArray[np.int32], routers: Collection[str]) -> None:
        """Tell of each name that is no router, once."""
        for number, row, count in zip(*np.unique(names, return_index=True, return_counts=True), strict=True):
            if number == NOBODY or self._texts[number] in routers:
                continue
            name = self._texts[number]
            times = f", in {count} rows" if count > 1 else ""
            self._tell(int(row), column, f"no router `{name}`{times}", "a router of the model", nearest(name, routers))

    def refuse_ends(self, names: dict[str, NDArray[np.int32]]) -> None:
        """Tell of rows without a source, and with both or neither of `dst` and `address`."""
        self.refuse(names["src"] == NOBODY, "src", lambda _: "nothing", "a router of the model")
        has_dst, has_address = names["dst"] != NOBODY, names["address"] != NOBODY
        self.refuse(has_dst & has_address, "dst", lambda _: "there is an `address` too", "one of them")
        self.refuse(~has_dst & ~has_address, "dst", lambda _: "neither `dst` nor `address`", "one of them")

    def warn_unsubscribed(self, addresses: NDArray[np.int32], there: Collection[str]) -> None:
        """Tell of each address that nobody subscribes to: its messages have nowhere to go, which may be a slip."""
        numbers, rows = (column.tolist() for column in np.unique(addresses, return_index=True))
        missing = [
            (number, row)
            for number, row in zip(numbers, rows, strict=True)
            if number != NOBODY and self._texts[number] not in there
        ]
        for number, row in missing[:SHOWN]:
            name = self._texts[number]
            near = nearest(name, there)
            hint = f"; did you mean `{near}`?" if near else ""
            self._warn(row, "address", f"address `{name}` has no subscriber{hint}")
        if len(missing) > SHOWN:
            self._faults.warn(f"{len(missing)} addresses have no subscriber, the first {SHOWN} are shown")

    def warn_too_little(self, rates: NDArray[np.float64]) -> None:
        """Tell of demands that are rounded to nothing."""
        rows = np.flatnonzero((rates > 0) & (np.rint(rates * MICRO) == 0))
        for row in rows[:1].tolist():
            more = f", as in {counted(len(rows) - 1, 'row')} more" if len(rows) > 1 else ""
            self._warn(row, "msgs_per_s", f"{rates[row]:g} counts as 0{more}: rates are whole millionths of messages/s")

    def check(self) -> tuple[Finding, ...]:
        """The warnings. Raises: SettingsError with everything that was found."""
        lines = self._columns.lines([row for row, _ in self._late], self._faults)
        for row, tell in self._late:
            # A file without lines is known by its rows, the first being 1.
            tell("" if row in lines else f"row {row + 1}: ", lines.get(row))
        return self._faults.check()

    def demands(
        self, names: dict[str, NDArray[np.int32]], amounts: dict[str, NDArray[np.float64]], *, is_kept: Mask
    ) -> Demands:
        """The rows that are kept."""
        return Demands.of_columns(
            self._texts,
            *(names[column][is_kept] for column in ("src", "dst", "address", "class")),
            msgs_per_s=amounts["msgs_per_s"][is_kept],
            msg_bytes=amounts["msg_bytes"][is_kept],
        )

    def _tell(self, row: int, column: str, message: str, expected: str, near: str | None) -> None:
        def tell(prefix: str, line: int | None) -> None:
            self._faults.add(f"{prefix}{message}", line=line, key=(column,), expected=expected, nearest=near)

        self._late.append((row, tell))

    def _warn(self, row: int, column: str, message: str) -> None:
        def tell(prefix: str, line: int | None) -> None:
            self._faults.warn(f"{prefix}{message}", line=line, key=(column,))

        self._late.append((row, tell))

    def _column(self, name: str) -> Any:
        """A column in one piece."""
        return self._columns.table.column(name).combine_chunks()

    def _number(self, text: str) -> int:
        number = self._numbers.setdefault(text, len(self._texts))
        if number == len(self._texts):
            self._texts.append(text)
        return number
