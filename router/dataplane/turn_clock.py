"""Clock of turns: the time of one, which stands still until the next."""

from __future__ import annotations


class TurnClock:
    """Time of the present turn, held in one place for all parts of a data plane.

    Attributes:
        now: seconds, monotonic.
        inputs: number of times that events of what a connection has sent were worked through, since the start.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.inputs = 0

    def set(self, now: float) -> None:
        """Begin a turn at *now*."""
        self.now = now

    def begin_input(self) -> None:
        """Count one more of `inputs`."""
        self.inputs += 1
