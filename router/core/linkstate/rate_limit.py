"""Rate limit for the control messages of a neighbor: a number a second, and a burst when it was silent before.

A router that joins tells all it knows at once, which is the burst; what goes on without end is no news of a mesh. What
is left is plain data, as all of a control plane that is recorded: `TokenBucket` is compiled.
"""

from __future__ import annotations

from typing import Final

from router.core.ids_and_conditions import ConnectionId

BURST_S: Final = 10.0
"""Seconds of the rate that may come at once."""


class NeighborConnectionRateLimits:
    """The allowance of each connection to a neighbor.

    Args:
        rate: messages a second.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._left: dict[ConnectionId, tuple[float, float]] = {}
        """Messages that may come, and the time at which it was so, seconds."""
        self._exceeded: set[ConnectionId] = set()

    def take(self, connection: ConnectionId, now: float) -> bool:
        """Whether one more message of *connection* may be read at *now* (seconds)."""
        most = self._rate * BURST_S
        left, since = self._left.get(connection, (most, now))
        left = min(most, left + (now - since) * self._rate)
        is_allowed = left >= 1
        self._left[connection] = (left - 1 if is_allowed else left, now)
        return is_allowed

    def is_first_excess(self, connection: ConnectionId) -> bool:
        """Whether nothing of *connection* was dropped before: it is told of once."""
        if connection in self._exceeded:
            return False
        self._exceeded.add(connection)
        return True

    def forget(self, connection: ConnectionId) -> None:
        """Forget *connection*, which is gone."""
        self._left.pop(connection, None)
        self._exceeded.discard(connection)
