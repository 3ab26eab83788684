"""The progress of a message that comes in parts: how much of it has come in how much time."""

from __future__ import annotations

from math import inf


class ArrivalProgress:
    """Progress of the message on a link of which more parts will come, since a window of time began."""

    __slots__ = ("message", "most_unread", "paused_at", "paused_s", "received", "since")

    def __init__(self, message: int, received: int, now: float) -> None:
        """*message*: its number on its link."""
        self.message = message
        self.received = received
        """Bytes of messages in parts received since the window began."""
        self.since = now
        """Time at which the window began, seconds."""
        self.most_unread = 0
        """Maximum number of bytes of the message found unread at once: proton keeps a buffer of that size to its
        end."""
        self.paused_at = inf
        """Time since which the link is not read, seconds; infinity while it is."""
        self.paused_s = 0.0
        """Time for which the link was not read since the window began, but for the pause that lasts, seconds."""

    def restart(self, message: int, now: float) -> None:
        """Begin a window at *now*, seconds."""
        if message != self.message:
            self.most_unread = 0
        self.message = message
        self.received = 0
        self.since = now
        self.paused_s = 0.0
        if self.paused_at != inf:
            self.paused_at = now

    def found_unread(self, size: int) -> None:
        """Note that *size* bytes of the message were there to be read."""
        if size > self.most_unread:
            self.most_unread = size

    def pause(self, now: float) -> None:
        """Stop the clock: the link is not read from *now* on, seconds."""
        self.paused_at = now

    def resume(self, now: float) -> None:
        """Go on with the clock: the link is read again from *now* on, seconds."""
        if self.paused_at != inf:
            self.paused_s += now - self.paused_at
            self.paused_at = inf

    def elapsed(self, now: float) -> float:
        """Seconds of the window until *now* in which the sender could go on."""
        return min(now, self.paused_at) - self.since - self.paused_s
