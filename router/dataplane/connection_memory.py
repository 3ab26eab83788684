"""Account of what is held because of the peer of one connection, as last counted (`router/engine/memory_meter.py`)."""

from __future__ import annotations

from collections.abc import Callable

import attrs


def _no_socket(is_stopped: bool) -> None:
    """Do nothing: without a socket the caller that feeds the engine decides when to go on."""


@attrs.define
class ConnectionMemory:
    """The account of one connection, in bytes."""

    taken_bytes: int = 0
    """Bytes held of what the peer has sent."""
    backlog_bytes: int = 0
    """Bytes of the peer's messages that wait for credit; part of `taken_bytes`."""
    given_bytes: int = 0
    """Bytes held of what the peer is to be sent."""
    unread_bytes: int = 0
    """Bytes in the windows of the peer's sessions that nobody has read."""
    summed_bytes: int = 0
    """Bytes that count in the sum of all connections: all but the messages that wait, which have a sum of their own."""
    stopped_at: float = 0.0
    """Time since which nothing is read from the socket, seconds."""
    stop_reading: Callable[[bool], None] = _no_socket
    """Function that stops the reading of the socket, or lets it go on."""

    @property
    def total_bytes(self) -> int:
        """All that is held."""
        return self.taken_bytes + self.given_bytes + self.unread_bytes
