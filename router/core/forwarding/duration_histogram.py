"""Durations counted by their size."""

from __future__ import annotations

from typing import Final

BOUNDS_S: Final = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
)  # fmt: skip
"""Upper bounds of the classes, seconds; one more class has all above."""


class DurationHistogram:
    """Durations, counted by class; nothing is kept of a single one."""

    __slots__ = ("counts", "total_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        """Number of durations in each class, from the shortest."""
        self.total_s = 0.0
        """Sum of all durations, seconds."""

    def add(self, duration_s: float) -> None:
        """Count one duration.

        Args:
            duration_s: seconds, 0 or more.
        """
        place = 0
        for bound in BOUNDS_S:
            if duration_s <= bound:
                break
            place += 1
        self.counts[place] += 1
        self.total_s += duration_s
