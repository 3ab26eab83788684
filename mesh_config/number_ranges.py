"""Ranges of numbers in words, the same for settings and for options of commands."""

from __future__ import annotations


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
