"""Doubling window: what a holder of credit may hold begins small, and doubles each time that half of it was used."""

from __future__ import annotations

import math

NO_BOUND = 2**62
"""For a window that is bounded elsewhere, messages."""


class DoublingWindow:
    """A holder of credit: a publisher, an incoming circuit, or the local publishers together.

    Args:
        window: what it may hold at first, messages.
    """

    __slots__ = ("goal", "since", "used", "window")

    def __init__(self, window: int) -> None:
        self.since = -math.inf
        """When it last used credit, or was given some after having none, seconds; `-math.inf` before its first."""
        self.window = window
        """What it may hold at most, messages: what lies idle at one is missing elsewhere."""
        self.used = 0
        """Credit used since the window was last doubled."""
        self.goal = 0
        """What it was to hold when that was last looked at."""

    def use(self, now: float, most: int) -> None:
        """One credit was used.

        Args:
            most: what the window need not grow beyond.
        """
        self.since = now
        self.used += 1
        if 2 * self.used >= self.window:
            self.window, self.used = max(self.window, min(2 * self.window, most)), 0

    def rest(self, window: int) -> None:
        """It does not use what it has: begin again with *window*."""
        self.window, self.used = window, 0
