"""Doubling window: what a holder of credit may hold begins small, and doubles each time that half of it was used."""

from __future__ import annotations

import math
from typing import Final

FIRST_WINDOW: Final = 4
"""Messages that a window has to begin with, when it grows."""
NO_BOUND: Final = 2**62
"""For a window that is bounded elsewhere, messages."""


def first_window(most: int) -> int:
    """Window of a holder that was not heard of yet, where it may have *most* at last, messages."""
    return min(FIRST_WINDOW, most)


def is_used(window: int, used: int) -> bool:
    """Whether a window is to grow.

    Args:
        window: as it is, messages.
        used: messages of the holder since the window last changed.
    """
    return 2 * used >= window


def grown(window: int, most: int) -> int:
    """Next window of a holder that made use of it; it doubles, but grows no further than *most*, messages."""
    return max(window, min(2 * window, most))


def shrunk(window: int) -> int:
    """Next window of a sender of which a message came back as RELEASED, messages."""
    return max(window // 2, first_window(window))


class DoublingWindow:
    """Window of one holder of credit: a publisher, an incoming circuit, or the local publishers together.

    Args:
        window: what it may hold at first, messages.
    """

    __slots__ = ("goal", "since", "used", "window")

    def __init__(self, window: int) -> None:
        self.since = -math.inf
        """Time of its last use of credit, or of getting some after it had none, seconds; `-math.inf` before."""
        self.window = window
        """Most that it may hold, messages: what lies idle at one is missing elsewhere."""
        self.used = 0
        """Credit used since the window was last doubled."""
        self.goal = 0
        """Credit that it was to hold when that was last looked at."""

    def use(self, now: float, most: int) -> None:
        """Count one credit that it used.

        Args:
            now: seconds.
            most: what the window need not grow beyond, messages.
        """
        self.since = now
        self.used += 1
        if is_used(self.window, self.used):
            self.window, self.used = grown(self.window, most), 0

    def rest(self, window: int) -> None:
        """Begin again with *window*, messages: it does not use what it has."""
        self.window, self.used = window, 0
