"""The process of a router: its clock, its threads, and how Python looks through its objects."""

from __future__ import annotations

import gc
import sys
import time
from typing import Final

import trio

FULL_COLLECTION: Final = 100
"""Number of collections of young objects before all are looked at: ten times as many as Python has it."""


class MonotonicClock(trio.abc.Clock):
    """Clock of a router's process, by which trio goes too: the system's, asked without a detour by Python."""

    current_time = staticmethod(time.monotonic)

    def start_clock(self) -> None:
        """Do nothing: it runs."""

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Time until *deadline*, seconds."""
        return deadline - time.monotonic()


SWITCH_S: Final = 0.0005
"""Time for which a thread beside the router's, such as one that reads a file, keeps the interpreter from it, seconds. A
message waits for that twice; Python has it at 5 ms."""


def share_interpreter() -> None:
    """Let the thread of the router have the interpreter soon, when another one computes."""
    sys.setswitchinterval(SWITCH_S)


def spare_collector() -> None:
    """Let Python look through all objects more rarely.

    It did so each time that a quarter of them was new: for 100,000 addresses it took a third of the time in which they
    came, half a second at once. Only circles of objects wait for it, and a router makes few.
    """
    gc.collect()
    gc.freeze()  # what was imported stays
    youngest, middle, _ = gc.get_threshold()
    gc.set_threshold(youngest, middle, FULL_COLLECTION)
