"""Counts that the endpoints of one run make together: messages, outcomes, and how long each message took.

Compiled by Cython where that is possible (see `router/speed.py`): `tally.pxd` has the types.
"""

from __future__ import annotations

from array import array
from typing import Final

UNBOUND: Final = 2**62
"""Number of messages that stands for no bound."""
BINS: Final = 200_000
FINE_NS: Final = 100
"""Width of a fine bin: all times below 20 ms go there."""
COARSE_NS: Final = 100_000
"""Width of a coarse bin: times up to 20 s; longer ones count as 20 s."""


class Tally:
    """Counters of one run, shared by all of its endpoints."""

    def __init__(self) -> None:
        self.is_on = False
        """Whether senders send and callers call."""
        self.is_measuring = False
        """Whether times are recorded."""
        self.allowed = UNBOUND
        """Maximum of `sent`: a paced load is given a message, or a call, at a time."""
        self.sent = 0
        """Number of messages handed to the engine by senders and callers since the run began."""
        self.accepted = 0
        """Number of sent messages with the outcome ACCEPTED."""
        self.refused = 0
        """Number of sent messages with another outcome, or none."""
        self.received = 0
        """Number of messages, or replies, that arrived whole."""
        self._fine = array("I", bytes(4 * BINS))
        self._coarse = array("I", bytes(4 * BINS))

    def record(self, duration_ns: int) -> None:
        """Count how long a message or call took.

        Args:
            duration_ns: nanoseconds.
        """
        if duration_ns < 0:
            duration_ns = 0
        at = duration_ns // FINE_NS
        if at < BINS:
            self._fine[at] += 1
            return
        at = duration_ns // COARSE_NS
        self._coarse[at if at < BINS else BINS - 1] += 1

    def percentiles(self, *shares: float) -> list[float]:
        """Times in seconds, to 100 ns below 20 ms, that these shares (0 to 1) of the recorded ones don't exceed.

        Returns: one for each share; none when nothing was recorded.
        """
        fine, coarse = array("I", self._fine), array("I", self._coarse)
        total = sum(fine) + sum(coarse)
        if not total:
            return []
        found = []
        for share in shares:
            left = share * total
            for bins, width in ((fine, FINE_NS), (coarse, COARSE_NS)):
                at = _bin_of(bins, left)
                if at is not None:
                    found.append((at + 1) * width / 1e9)
                    break
                left -= sum(bins)
            else:
                found.append(BINS * COARSE_NS / 1e9)
        return found


def _bin_of(bins: array[int], count: float) -> int | None:
    """The first bin at which so many are reached; None when all bins have fewer."""
    seen = 0
    for at in range(len(bins)):
        number = bins[at]
        seen += number
        if number and seen >= count:
            return at
    return None
