"""Rows of a table that are wanted, and their order: `--where`, `--match` and `--sort`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import attrs
import click

from router.cli.did_you_mean import did_you_mean, suggestion
from router.cli.entity_rows import told
from router.cli.stat_columns import Column, Entity, Measure, View, cell
from router.management.schema import find_type

CONDITION: Final = re.compile(r"\s*(?P<name>.+?)\s*(?P<sign><=|>=|!=|=|<|>|~)\s*(?P<value>.*?)\s*", re.DOTALL)

DURATION: Final = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
UNITS_S: Final = (86400, 3600, 60, 1)
"""Units of its parts, seconds."""
TIMES: Final = ("%H:%M", "%H:%M:%S", "%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S")
"""Forms of a time; without a date it is of today."""

ORDERINGS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": lambda one, other: bool(one < other),
    ">": lambda one, other: bool(one > other),
    "<=": lambda one, other: bool(one <= other),
    ">=": lambda one, other: bool(one >= other),
}
OTHER_WORDS: Final[Mapping[str, Sequence[str]]] = {
    "speed": ("msg/s", "rate"),
    "throughput": ("msg/s", "rate"),
}
"""Words for what columns or attributes have under other names, the best first."""


@attrs.frozen(kw_only=True)
class RowChoice:
    """Choice of rows and their order."""

    where: Sequence[str] = ()
    match: str | None = None
    sort: str | None = None
    is_reversed: bool = False

    @property
    def is_any(self) -> bool:
        """Whether anything was chosen."""
        return self.is_narrowing or self.sort is not None or self.is_reversed

    @property
    def is_narrowing(self) -> bool:
        """Whether it may leave rows out."""
        return bool(self.where) or self.match is not None

    def apply(self, view: View, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Choose among the rows of a table.

        Raises: UsageError for a column or attribute that there is none of, or a condition that can't be read.
        """
        found = list(rows)
        for text in self.where:
            holds = _condition(view, text, rows)
            found = [row for row in found if holds(row)]
        if self.match is not None:
            wanted = self.match.casefold()
            texts = [_Reader(column) for column in view.columns]
            found = [row for row in found if any(wanted in cell(each.text(row)).casefold() for each in texts)]
        if self.sort is not None:
            reader = _reader(view, self.sort)
            numbers = [row for row in found if reader.number(row) is not None]
            others = [row for row in found if reader.number(row) is None]
            # Of numbers the largest are looked for, of words the alphabet is.
            numbers.sort(key=lambda row: -(reader.number(row) or 0.0))
            others.sort(key=lambda row: (reader.text(row) in (None, ""), str(reader.text(row))))
            found = [*numbers, *others]
        return found[::-1] if self.is_reversed else found


@attrs.frozen
class _Reader:
    """Reader of a column, or of an attribute: nothing where the router is of another version and doesn't tell it."""

    column: Column

    def text(self, row: Entity) -> object:
        """The text that is shown."""
        return told(self.column.text, row, None)

    def number(self, row: Entity) -> float | None:
        """The number that it is, or that the text is of; None for none."""
        return _number(told(self.column.value or self.column.text, row, None))


def _reader(view: View, name: str) -> _Reader:
    """Reader of a column by its title, or of an attribute by its name."""
    attributes = find_type(view.kind).attributes
    for column in view.columns:
        if column.title == name:
            return _Reader(column)
    if name in attributes:
        return _Reader(Column(name, lambda row: row[name]))
    known = [*(column.title for column in view.columns), *attributes]
    titles = ", ".join(column.title for column in view.columns)
    other = next((each for each in OTHER_WORDS.get(name.casefold(), ()) if each in known), None)
    hint = suggestion(other) if other is not None else did_you_mean(name, known)
    hint = hint or f" There are {titles}; and the attributes that --json shows."
    raise click.UsageError(f"no column `{name}` in {view.noun}.{hint}")


def _condition(view: View, text: str, rows: Sequence[Entity]) -> Callable[[Entity], bool]:
    found = CONDITION.fullmatch(text)
    if found is None:
        raise click.UsageError(f"--where {text}: NAME=VALUE is expected, or with !=, <, >, <=, >=, ~ (contains)")
    reader, sign, wanted = _reader(view, found["name"]), found["sign"], found["value"]
    if sign == "~":
        return lambda row: wanted.casefold() in cell(reader.text(row)).casefold()
    measure = reader.column.measure
    number = _time(wanted) if measure is Measure.TIME else _number(wanted)
    if number is None and measure is Measure.DURATION:
        number = _seconds(wanted)

    def is_equal(row: Entity) -> bool:
        return (number is not None and reader.number(row) == number) or _word(reader.text(row)) == _word(wanted)

    if sign in ("=", "!="):
        return is_equal if sign == "=" else lambda row: not is_equal(row)
    compare = ORDERINGS[sign]
    if number is None and measure is not None:
        raise click.UsageError(f"--where {text}: `{found['name']}` is {measure.value} after `{sign}`")
    given = [row for row in rows if reader.text(row) not in (None, "", "-")]
    are_numbers = [reader.number(row) is not None for row in given] if reader.column.value is None else []
    if number is None and (reader.column.is_number or (are_numbers and all(are_numbers))):
        raise click.UsageError(f"--where {text}: `{found['name']}` is a number; one is expected after `{sign}`")
    if number is not None and are_numbers and not any(are_numbers):
        raise click.UsageError(f"--where {text}: `{found['name']}` is no number; a word is expected after `{sign}`")

    def holds(row: Entity) -> bool:
        if number is not None:
            value = reader.number(row)
            return value is not None and compare(value, number)
        return reader.text(row) not in (None, "") and compare(str(reader.text(row)), wanted)

    return holds


def _word(value: object) -> str:
    """A value as it may be asked for: `-` and nothing are the same."""
    text = "" if value is None else str(value)
    return text.casefold() if text not in ("", "-") else ""


def _number(value: object) -> float | None:
    """The number that it is; None when it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    try:
        return float(str(value))
    except ValueError:
        return None


def _seconds(text: str) -> float | None:
    """Seconds of a duration as tables show it, such as `3m10s`; None when it is none."""
    found = DURATION.fullmatch(text)
    if found is None or not text:
        return None
    return float(sum(int(count or 0) * size for count, size in zip(found.groups(), UNITS_S, strict=True)))


def _time(text: str) -> float | None:
    """Seconds since 1970 of a time of this place, as tables show it, or shorter; None when it is none."""
    for form in TIMES:
        try:
            found = datetime.strptime(text, form).astimezone()
        except ValueError:
            continue
        if "%d" not in form:
            today = datetime.now().astimezone()
            found = today.replace(hour=found.hour, minute=found.minute, second=found.second, microsecond=0)
        return found.timestamp()
    return None
