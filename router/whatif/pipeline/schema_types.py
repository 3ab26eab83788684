"""Columns and layouts of tables, and columns that many tables have."""

from __future__ import annotations

from functools import cached_property
from typing import Final

import attrs
import pyarrow as pa

FORMAT: Final = 2
"""Version of all of this; it grows when a reader of the old form would be wrong.

Since 2 `address_impact` lists what is lost while nothing fails, and `address_summary` counts it.
"""

INT: Final = pa.int64()
SMALL: Final = pa.int32()
REAL: Final = pa.float64()
TEXT: Final = pa.string()
FLAG: Final = pa.bool_()
MOMENT: Final = pa.timestamp("us", "UTC")


class TableError(ValueError):
    """A table is not what it should be; the message has a line for each fault."""


@attrs.frozen(kw_only=True)
class Column:
    """One column of a table."""

    name: str
    kind: pa.DataType
    doc: str
    unit: str = ""
    """Empty where the column counts or names things."""
    is_nullable: bool = False
    is_measured: bool = False
    """Time, place or tool of a run: two runs of the same input may differ in it."""


@attrs.frozen(kw_only=True)
class Layout:
    """Layout of a table."""

    name: str
    doc: str
    key: tuple[str, ...]
    """Columns that tell rows apart, and by which they are sorted, ascending; texts by code points."""
    columns: tuple[Column, ...]

    @cached_property
    def schema(self) -> pa.Schema:
        """Schema for pyarrow, with the unit and meaning of each column as `unit` and `doc`."""
        fields = [
            pa.field(each.name, each.kind, each.is_nullable, {"doc": each.doc, "unit": each.unit})
            for each in self.columns
        ]
        return pa.schema(fields, {"table": self.name, "format": str(FORMAT)})

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)


def scenario_number() -> Column:
    """Number of a scenario."""
    return Column(name="scenario", kind=INT, doc="Number of the scenario; 0 is the base mesh without failures.")


def variant_name() -> Column:
    """Name of a variant."""
    return Column(name="variant", kind=TEXT, doc="Variant of the mesh; `base` is the unchanged mesh.")


def text(name: str, doc: str, *, is_nullable: bool = False, is_measured: bool = False) -> Column:
    """A text."""
    return Column(name=name, kind=TEXT, doc=doc, is_nullable=is_nullable, is_measured=is_measured)


def count(name: str, doc: str, *, is_nullable: bool = False, unit: str = "") -> Column:
    """A whole number."""
    return Column(name=name, kind=INT, doc=doc, is_nullable=is_nullable, unit=unit)


def real(name: str, doc: str, unit: str, *, is_nullable: bool = False, is_measured: bool = False) -> Column:
    """A real."""
    return Column(name=name, kind=REAL, doc=doc, unit=unit, is_nullable=is_nullable, is_measured=is_measured)


def flag(name: str, doc: str, *, is_nullable: bool = False) -> Column:
    """Yes or no."""
    return Column(name=name, kind=FLAG, doc=doc, is_nullable=is_nullable)


def listing(name: str, kind: pa.DataType, doc: str, unit: str = "") -> Column:
    """A list."""
    return Column(name=name, kind=pa.list_(pa.field("element", kind, nullable=False)), doc=doc, unit=unit)


def percentiles(
    name: str, doc: str, unit: str, suffix: str = "", *, of: str = "them", is_nullable: bool = True
) -> tuple[Column, ...]:
    """Percentiles, a column for each. *of*: what they are of, in words."""
    words = {50: f"Half of {of}", 95: "95 % of them", 99: "99 % of them"}
    return tuple(
        real(f"{name}_p{rank}{suffix}", f"{doc} {said} have no more.", unit, is_nullable=is_nullable)
        for rank, said in words.items()
    )


def directed() -> tuple[Column, ...]:
    """A direction of a link."""
    return (
        text("link", "The link."),
        text("src", "The router that sends on the link: each link has two directions."),
        text("dst", "The router that receives on the link."),
    )
