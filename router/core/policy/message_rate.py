"""Rates of messages: token buckets, of a connection and of all connections of its user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

BURST_S: Final = 1.0
"""Time whose messages may come at once after a rate was not used, seconds."""
MIN_WAIT_S: Final = 0.01
"""Minimum time until what waits is looked at again, seconds; several messages go on then."""


class TokenBucket:
    """Messages, or turns, that may be taken now: a number each second, and a second's worth at once."""

    __slots__ = ("_rate", "_tokens", "_updated")

    def __init__(self, rate: float, now: float) -> None:
        """*rate* is messages a second, above 0; *now* seconds, monotonic."""
        self._rate = rate
        self._tokens = 1.0  # not a burst: else to connect anew would be a way round it
        self._updated = now

    def wait(self, now: float) -> float:
        """Time until the next message may be taken, seconds; 0 when it may be now."""
        self._tokens = min(max(1.0, self._rate * BURST_S), self._tokens + (now - self._updated) * self._rate)
        self._updated = now
        return 0.0 if self._tokens >= 1 else (1 - self._tokens) / self._rate

    def take(self) -> None:
        """Count a message. One that could not be made to wait is owed: the next waits the longer."""
        self._tokens -= 1


class MessageRate:
    """Bound of the messages that are read of one connection."""

    __slots__ = ("_buckets",)

    def __init__(self, buckets: Sequence[TokenBucket]) -> None:
        """*buckets* are all those that must have room."""
        self._buckets = list(buckets)

    def wait(self, now: float) -> float:
        """Time until the next message may be begun, seconds; 0 when it may be now."""
        longest: float = 0.0
        for bucket in self._buckets:
            longest = max(longest, bucket.wait(now))
        return max(MIN_WAIT_S, longest) if longest else 0.0

    def bottleneck(self, now: float) -> TokenBucket:
        """Find the bucket that makes the next message wait for the longest time; *now* is seconds."""
        return max(self._buckets, key=lambda bucket: bucket.wait(now))

    def take(self) -> None:
        """Count a message."""
        for bucket in self._buckets:
            bucket.take()
