"""Ranges and units of numbers in words, the same for settings and for options of commands."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final

_UNITS: Final = {
    "bytes": {
        "b": 1,
        **{f"{letter}{end}": 1024**power for power, letter in enumerate("kmgt", 1) for end in ("", "i", "ib")},
        **{f"{letter}b": 1000**power for power, letter in enumerate("kmgt", 1)},
    },
    "seconds": {"ms": Fraction(1, 1000), "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400},
    "milliseconds": {"us": Fraction(1, 1000), "ms": 1, "s": 1000},
    "percent": {"%": 1},
}
"""Units that people write behind a number, in small letters, each with its size in the unit that is wanted, by that
unit."""
_WITH_UNIT: Final = re.compile(r"\s*([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*([A-Za-z]+|%)\s*", re.ASCII)


def without_unit(text: str, unit: str) -> str | None:
    """The number alone that *text* stands for, which has a unit of its own: 1073741824 for `1GiB`.

    Args:
        text: number and unit as they were written.
        unit: unit in which the number is wanted: `bytes`, `seconds`, `milliseconds` or `percent`.
    Returns: None for a text that is no number with such a unit.
    """
    match = _WITH_UNIT.fullmatch(text)
    factor = _UNITS.get(unit, {}).get(match[2].lower()) if match is not None else None
    if match is None or factor is None:
        return None
    number = Fraction(match[1]) * factor
    return str(number.numerator) if number.denominator == 1 else str(float(number))


def range_words(low: float | None, high: float | None, *, is_open: bool = False) -> str:
    """Words for a range that go on from "a number".

    Args:
        low: least that may be; None for no bound.
        high: most that may be; None for no bound.
        is_open: whether it must be above *low*, and may not be that.
    """
    if low is None:
        return "" if high is None else f" up to {figures(high)}"
    if is_open:
        return f" above {figures(low)}" + ("" if high is None else f" and up to {figures(high)}")
    return f" from {figures(low)}" + ("" if high is None else f" to {figures(high)}")


def figures(number: float) -> str:
    """A *number* as a person writes it: 60 and no 60.0."""
    return str(number).removesuffix(".0")
