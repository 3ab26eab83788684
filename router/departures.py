"""Connections that have ended with many links: these are taken away some at a time, so that others have their turns.

Each takes some 20 microseconds, with its messages, its subscription and what neighbors are told of that. Meanwhile
nothing is sent on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from router.dataplane.interface import EgressLink, IngressLink
from router.engine.connection import Connection

LINKS_AT_ONCE: Final = 50
"""Who has no more of them loses them at once, when its connection ends."""


class Departures:
    """The links that are still to be taken away."""

    def __init__(
        self,
        take: Callable[[Connection, list[IngressLink | EgressLink]], None],
        look_at: Callable[[float], None],
    ) -> None:
        """
        Args:
            take: takes links of a connection away. Must not raise.
            look_at: told when `go_on` is to be called, seconds.
        """
        self._take = take
        self._look_at = look_at
        self._left: dict[Connection, list[IngressLink | EgressLink]] = {}

    def begin(self, connection: Connection, now: float) -> None:
        """A connection has ended, at *now*, seconds: take away the first of its links."""
        self._left[connection] = list(connection.links.values())
        self._take_some(connection)
        self._look_at(now if self._left else math.inf)

    def go_on(self, now: float) -> None:
        """Take away the next ones, of the connection that ended first."""
        for connection in self._left:
            self._take_some(connection)
            break
        self._look_at(now if self._left else math.inf)

    def has(self, connection: Connection) -> bool:
        """Whether a connection still has links to be taken away."""
        return connection in self._left

    def finish(self, connection: Connection) -> None:
        """Take away all links that a connection still has."""
        while connection in self._left:
            self._take_some(connection)

    def _take_some(self, connection: Connection) -> None:
        links = self._left[connection]
        some, links[:LINKS_AT_ONCE] = links[:LINKS_AT_ONCE], []
        connection.port.is_leaving = bool(links)
        if not links:
            del self._left[connection]
        self._take(connection, some)
