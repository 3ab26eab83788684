"""Credit for publishers: the one place that decides how much.

A publisher has credit only while somebody, anywhere in the mesh, subscribes to its address. It then gets a fixed
window, counted as credit it holds plus its messages that this router took and that have no outcome yet; when the last
subscriber leaves, what it holds is taken back.

A sender that names an address in each message may name one that nobody serves, so its window begins small: it doubles
each time that messages for half of it went to where somebody is, up to the setting, and each RELEASED one halves it.

Source: AMQP 1.0 part 2, 2.6.7.
"""

from __future__ import annotations

from typing import Final

FIRST_WINDOW: Final = 4
"""Messages that a window has to begin with, when it grows."""


def change(is_open: bool, window: int, held: int, in_flight: int) -> int:
    """Credit to add to a publisher's link now; negative to take back.

    Args:
        is_open: somebody takes messages of the publisher's address.
        window: messages that it may have under way, at least 1.
        held: credit that it holds, messages; below 0 while transfers that it sent before a lowering arrive.
        in_flight: its messages taken by this router and not yet settled, pre-settled ones until they are sent on.
    Returns: messages. Small top-ups wait until half of the window is free, since each costs a frame.
    """
    if not is_open:
        return -held  # DEV-18: qdrouterd leaves it there, and releases what is sent with it.
    free = window - in_flight - held
    if held <= 0 or 2 * free >= window:
        return max(free, -held if held < 0 else 0)
    return 0


def first_window(most: int) -> int:
    """The window of a sender that was not heard of yet, where it may have *most* at last, messages."""
    return min(FIRST_WINDOW, most)


def is_used(window: int, used: int) -> bool:
    """Whether the window is to grow.

    Args:
        window: as it is, messages.
        used: messages of the sender to addresses that somebody serves, since the window last changed.
    """
    return 2 * used >= window


def grown(window: int, most: int) -> int:
    """The next window of a sender that made use of it, at most *most*, messages."""
    return min(2 * window, most)


def shrunk(window: int) -> int:
    """The next window of a sender of which a message came back as RELEASED, messages."""
    return max(window // 2, first_window(window))
