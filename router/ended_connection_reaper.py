"""Links of connections and sessions that have ended: taken away some at a time, so that others have their turns.

Each takes some 20 microseconds, with its subscription and what neighbors are told of that, and one more for each of its
messages that has no outcome yet. Meanwhile nothing is sent on it. Then what a connection had goes back to proton, which
takes up to 10 microseconds for a link. After each piece there is a pause three times as long as it took.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

import attrs

from router.dataplane.links import EgressLink, IngressLink
from router.engine.connection import Connection

LINKS_AT_ONCE: Final = 50
"""Maximum number of links that are taken away at once: a connection with no more of them waits for nothing."""
MESSAGES_AT_ONCE: Final = 1000
"""Maximum number of messages that get their outcomes at once."""
PAUSE: Final = 3.0
"""Length of the pause after a piece, in parts of what the piece took: others keep three quarters of the time."""
UNBINDING_S: Final = 0.001
"""Pause after which to look whether a thread is through with a connection's sessions."""


@attrs.define(eq=False)
class LinksToReap:
    """Links of one connection that are to be taken away."""

    connection: Connection
    links: deque[IngressLink | EgressLink]
    done: Callable[[], object]
    """Function called after the last of the links."""


class EndedLinkReaper:
    """The links that are still to be taken away."""

    def __init__(
        self,
        take: Callable[[Connection, list[IngressLink | EgressLink]], None],
        lose: Callable[[Connection, IngressLink | EgressLink, int], int],
        look_at: Callable[[float], None],
        clock: Callable[[], float],
    ) -> None:
        """Begin with none.

        Args:
            take: takes links of a connection away. Must not raise.
            lose: gives messages of a link their outcomes, at most so many. Returns how many. Must not raise.
            look_at: told when `go_on` is to be called, seconds.
            clock: seconds, monotonic.
        """
        self._take = take
        self._lose = lose
        self._look_at = look_at
        self._clock = clock
        self._left: dict[LinksToReap, None] = {}
        self._of: dict[Connection, list[LinksToReap]] = {}
        """Teardowns in `_left`, by connection: many connections may end at the same time."""
        self._waiting: dict[Connection, Callable[[], None]] = {}
        """Functions to call when a connection has no more links to be taken away."""
        self._freeing: deque[Connection] = deque()
        self._rests_until = -math.inf
        self._begun_at = -math.inf
        """Time at which the last teardown began, seconds: what is ready at the same time is one round."""
        self._taken = 0
        """Number of links that were taken away in the round of the last teardown."""

    def begin(
        self,
        connection: Connection,
        links: Iterable[IngressLink | EgressLink],
        now: float,
        done: Callable[[], object] = lambda: None,
    ) -> None:
        """Links of a connection have ended, at *now*, seconds: take away the first of them.

        Args:
            connection: of the client.
            links: that have ended, in the order in which they go.
            now: seconds, monotonic.
            done: called after the last of them, here if they are few and not many others end now.
        """
        teardown = LinksToReap(connection, deque(links), done)
        self._left[teardown] = None
        self._of.setdefault(connection, []).append(teardown)
        if now != self._begun_at:
            self._begun_at, self._taken = now, 0
        if self._taken < LINKS_AT_ONCE:
            taken = self._take_some(teardown)
            self._taken = LINKS_AT_ONCE if teardown in self._left else self._taken + taken
        self._look_on(now)

    def free(self, connection: Connection, now: float) -> None:
        """Give a connection back to proton, here if it had little. None of its handles may be used any more.

        Args:
            connection: that has ended, with all its links.
            now: seconds, monotonic.
        """
        if not connection.free_some(LINKS_AT_ONCE):
            self._freeing.append(connection)
            self._look_on(now)

    def go_on(self, now: float) -> None:
        """Take away the next ones, of what ended first, and free the next ones.

        Args:
            now: seconds, monotonic.
        """
        begin = self._clock()
        for teardown in self._left:
            self._take_some(teardown)
            break
        if self._freeing and self._freeing[0].free_some(LINKS_AT_ONCE):
            self._freeing.popleft()
        elif self._freeing and self._freeing[0].is_unbinding():
            self._freeing.rotate(-1)
        end = self._clock()
        self._rests_until = end + PAUSE * (end - begin)
        self._look_on(now)

    def _look_on(self, now: float) -> None:
        at = max(now, self._rests_until)
        if self._left:
            self._look_at(at)
        elif self._freeing:
            self._look_at(max(at, now + UNBINDING_S) if self._freeing[0].is_unbinding() else at)
        else:
            self._look_at(math.inf)

    def has(self, connection: Connection) -> bool:
        """Whether a connection still has links to be taken away."""
        return connection in self._of

    def when_gone(self, connection: Connection, then: Callable[[], None]) -> None:
        """Call *then* when a connection has no more links to be taken away: at once, if it has none."""
        if self.has(connection):
            self._waiting[connection] = then
        else:
            then()

    def finish(self, connection: Connection) -> None:
        """Take away all links of a connection that have ended."""
        for teardown in list(self._of.get(connection, ())):
            while teardown in self._left:
                self._take_some(teardown)

    def _take_some(self, teardown: LinksToReap) -> int:
        """Take away the next links of one. Returns: how many."""
        links = teardown.links
        some: list[IngressLink | EgressLink] = []
        messages = MESSAGES_AT_ONCE
        while links and len(some) < LINKS_AT_ONCE:
            messages -= self._lose(teardown.connection, links[0], messages)
            if messages <= 0:
                break
            some.append(links.popleft())
        if not links:
            self._forget(teardown)
        self._take(teardown.connection, some)
        if not links:
            teardown.done()
            if teardown.connection in self._waiting and not self.has(teardown.connection):
                self._waiting.pop(teardown.connection)()
        return len(some)

    def _forget(self, teardown: LinksToReap) -> None:
        """Note that the last links of one are being taken away."""
        del self._left[teardown]
        others = self._of[teardown.connection]
        others.remove(teardown)
        if not others:
            del self._of[teardown.connection]
