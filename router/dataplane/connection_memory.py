"""Account of what is held because of the peer of one connection, as last counted (`router/engine/memory_meter.py`)."""

from __future__ import annotations

from collections.abc import Callable

import attrs


def _no_socket(is_stopped: bool) -> None:
    """Do without a socket: whoever feeds the engine goes on."""


@attrs.define
class ConnectionMemory:
    """The account of one connection, in bytes."""

    taken_bytes: int = 0
    """Of what the peer has sent,"""
    backlog_bytes: int = 0
    """among it its messages that waited for credit;"""
    given_bytes: int = 0
    """of what it is to get;"""
    unread_bytes: int = 0
    """and in the windows of its sessions, which nobody has asked for."""
    summed_bytes: int = 0
    """Part of it in the sum of all connections: all but the messages that waited, which have a sum of their own."""
    stopped_at: float = 0.0
    """Since when nothing is read from its socket, seconds."""
    stop_reading: Callable[[bool], None] = _no_socket
    """Stops the reading of its socket, or lets it go on."""

    @property
    def total_bytes(self) -> int:
        """All that is held."""
        return self.taken_bytes + self.given_bytes + self.unread_bytes
