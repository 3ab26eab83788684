"""Doubling window: what a holder of credit may hold begins small, and doubles each time that half of it was used.

Source: docs/explanation/credit.md#who-gets-how-much.
"""

from __future__ import annotations

from math import inf
from typing import Final

FIRST_WINDOW: Final = 4
"""Messages that a window has to begin with, when it grows."""
SLOW_PART: Final = 4
"""Part of what a holder has that it uses between two looks, unless it is slow: one in so many."""
NO_BOUND: Final = 2**62
"""Maximum size of a window that is bounded elsewhere, messages."""


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
        look_s: time between two looks at how fast it uses what it holds, seconds.
    """

    __slots__ = ("goal", "look_at", "look_s", "since", "to_use", "used", "was_slow", "window")

    def __init__(self, window: int, look_s: float) -> None:
        self.since = -inf
        """Time of its last use of credit, or of getting some after it had none, seconds; `-inf` before."""
        self.window = window
        """Maximum number of messages that the holder may have: what lies idle at one is missing elsewhere."""
        self.used = 0
        """Credit used since the window was last doubled."""
        self.look_s = look_s
        self.look_at = -inf
        """Time of the next look, seconds; it takes place with the next use."""
        self.to_use = 0
        """Credit still to be used until then, by one that is not slow."""
        self.was_slow = False
        """Whether the holder was slow at the last look."""
        self.goal = 0
        """Credit that it was to hold when that was last looked at."""

    @property
    def is_slow(self) -> bool:
        """Whether it uses so little of what it holds that others may have it; not any more once it uses much."""
        return self.was_slow and self.to_use > 0

    def use(self, now: float, most: int, left: int) -> bool:
        """Count one credit that it used.

        Args:
            now: seconds.
            most: what the window need not grow beyond, messages.
            left: credit that it holds yet.
        Returns: whether this was a look at how fast it uses what it holds.
        """
        is_look = now >= self.look_at
        if is_look:
            self.look_at = now + self.look_s
            self.was_slow = self.to_use > 0
            self.to_use = (left + SLOW_PART - 1) // SLOW_PART
        self.since = now
        self.used += 1
        self.to_use -= 1
        if is_used(self.window, self.used):
            self.window, self.used = grown(self.window, most), 0
        return is_look

    def rest(self, window: int) -> None:
        """Begin again with *window*, messages: it does not use what it has."""
        self.window, self.used, self.to_use = window, 0, 0
