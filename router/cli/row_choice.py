"""Rows of a table that are wanted, and their order: `--where`, `--match` and `--sort`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import attrs
import click

from router.cli.did_you_mean import did_you_mean, suggestion
from router.cli.stat_columns import Entity, View, cell
from router.management.schema import find_type

CONDITION: Final = re.compile(r"\s*(?P<name>.+?)\s*(?P<sign><=|>=|!=|=|<|>|~)\s*(?P<value>.*?)\s*", re.DOTALL)

SIGNS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": lambda one, other: bool(one == other),
    "!=": lambda one, other: bool(one != other),
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
            found = [row for row in found if any(wanted in cell(col.text(row)).casefold() for col in view.columns)]
        if self.sort is not None:
            value = _reader(view, self.sort)
            numbers = [row for row in found if _number(value(row)) is not None]
            others = [row for row in found if _number(value(row)) is None]
            # Of numbers the largest are looked for, of words the alphabet is.
            numbers.sort(key=lambda row: -(_number(value(row)) or 0.0))
            others.sort(key=lambda row: (value(row) in (None, ""), str(value(row))))
            found = [*numbers, *others]
        return found[::-1] if self.is_reversed else found


def _reader(view: View, name: str) -> Callable[[Entity], Any]:
    """Value of a column by its title, or of an attribute by its name."""
    attributes = find_type(view.kind).attributes
    for column in view.columns:
        if column.title == name:
            return column.text
    if name in attributes:
        return lambda row: row[name]
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
    value, sign, wanted = _reader(view, found["name"]), found["sign"], found["value"]
    if sign == "~":
        return lambda row: wanted.casefold() in cell(value(row)).casefold()
    number = _number(wanted)
    compare = SIGNS[sign]
    if sign not in ("=", "!=") and number is None and _is_of_numbers(list(map(value, rows))):
        raise click.UsageError(f"--where {text}: `{found['name']}` is a number; one is expected after `{sign}`")

    def holds(row: Entity) -> bool:
        given = value(row)
        if number is not None and _number(given) is not None:
            return compare(_number(given), number)
        if sign in ("=", "!="):
            return compare(_word(given), _word(wanted))
        return number is None and given not in (None, "") and compare(str(given), wanted)

    return holds


def _is_of_numbers(values: Sequence[object]) -> bool:
    """Whether a column has numbers, and nothing else but empty cells."""
    given = [each for each in values if each not in (None, "", "-")]
    return bool(given) and all(_number(each) is not None for each in given)


def _word(value: object) -> str:
    """A value as it may be asked for: `-` and nothing are the same."""
    text = "" if value is None else str(value)
    return text.casefold() if text not in ("", "-") else ""


def _number(value: object) -> float | None:
    """The number that it is, or that it begins with where a unit follows; None when it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    try:
        return float(str(value))
    except ValueError:
        return None
