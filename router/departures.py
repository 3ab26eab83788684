"""Links of connections and sessions that have ended: taken away some at a time, so that others have their turns.

Each takes some 20 microseconds, with its messages, its subscription and what neighbors are told of that. Meanwhile
nothing is sent on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import attrs

from router.dataplane.interface import EgressLink, IngressLink
from router.engine.connection import Connection

LINKS_AT_ONCE: Final = 50
"""Who has no more of them loses them at once."""


@attrs.define(eq=False)
class Departure:
    """What of one connection is to be taken away."""

    connection: Connection
    links: list[IngressLink | EgressLink]
    done: Callable[[], None]
    """Called after the last of them."""


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
        self._left: dict[Departure, None] = {}
        self._waiting: dict[Connection, Callable[[], None]] = {}
        """Called when a connection has no more links to be taken away."""

    def begin(
        self,
        connection: Connection,
        links: list[IngressLink | EgressLink],
        now: float,
        done: Callable[[], None] = lambda: None,
    ) -> None:
        """Links of a connection have ended, at *now*, seconds: take away the first of them.

        Args:
            done: called after the last of them, here if they are few.
        """
        departure = Departure(connection, links, done)
        self._left[departure] = None
        self._take_some(departure)
        self._look_at(now if self._left else math.inf)

    def go_on(self, now: float) -> None:
        """Take away the next ones, of what ended first."""
        for departure in self._left:
            self._take_some(departure)
            break
        self._look_at(now if self._left else math.inf)

    def has(self, connection: Connection) -> bool:
        """Whether a connection still has links to be taken away."""
        return any(departure.connection is connection for departure in self._left)

    def when_gone(self, connection: Connection, then: Callable[[], None]) -> None:
        """Call *then* when a connection has no more links to be taken away: at once, if it has none."""
        if self.has(connection):
            self._waiting[connection] = then
        else:
            then()

    def finish(self, connection: Connection) -> None:
        """Take away all links of a connection that have ended."""
        for departure in list(self._left):
            while departure.connection is connection and departure in self._left:
                self._take_some(departure)

    def _take_some(self, departure: Departure) -> None:
        links = departure.links
        some, links[:LINKS_AT_ONCE] = links[:LINKS_AT_ONCE], []
        if not links:
            del self._left[departure]
        self._take(departure.connection, some)
        if not links:
            departure.done()
            if departure.connection in self._waiting and not self.has(departure.connection):
                self._waiting.pop(departure.connection)()
