"""Says HELLO: at once to whom it matters, periodically to all that must know this router to be there."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from typing import Final

from mesh_config.models import LinkStateSettings
from router.core.events import CloseConnection, Report
from router.core.ids_and_conditions import Condition, ConnectionId
from router.core.linkstate.control_message_sender import HELLO_TO, ControlMessageSender
from router.core.linkstate.messages import Hello
from router.core.linkstate.neighbors import Neighbors, RefusedConnection

HELLO_JITTER: Final = 0.1
"""Part by which intervals are shortened at most, at random, so that a thousand routers do not act in step."""


class HelloSender:
    """The HELLOs of one router, and the connections that it closes because of others'.

    Args:
        instance: boot number to speak of, until `raise_instance`.
    """

    def __init__(
        self,
        *,
        sender: ControlMessageSender,
        neighbors: Neighbors,
        settings: LinkStateSettings,
        instance: int,
        rng: random.Random,
    ) -> None:
        self.instance = instance
        self.next_hello = math.inf
        """Time at which HELLOs are due, seconds; `math.inf` without connections."""
        self._sender = sender
        self._neighbors = neighbors
        self._interval_s = settings.hello_interval_s
        self._rng = rng

    def raise_instance(self, instance: int) -> None:
        """Speak of another boot number from now on, a higher one."""
        assert instance > self.instance, "boot numbers never fall"
        self.instance = instance

    def elapse(self, now: float) -> None:
        """Find neighbors that fell silent, and say HELLO when it is due.

        Args:
            now: seconds, monotonic.
        """
        late_s = now - self.next_hello
        self._neighbors.elapse(now, late_s=late_s if late_s > self._interval_s / 2 else 0.0)
        if self.next_hello <= now:
            self.hello(now)

    def hello(self, now: float) -> None:
        """Say HELLO to everybody now.

        Args:
            now: seconds, monotonic.
        """
        self._write(self._neighbors.speakers(now))
        self.next_hello = self._due(now) if self._neighbors.connections else math.inf

    def settle(self, now: float) -> None:
        """End a turn: close connections that were refused, answer those heard for the first time.

        Args:
            now: seconds, monotonic.
        """
        if self._neighbors.refusals:
            self._refuse()
        if self._neighbors.greetings:
            self._greet(now)

    def _greet(self, now: float) -> None:
        due = self._neighbors.take_greetings()
        speakers = set(self._neighbors.speakers(now))
        self._write([connection for connection in due if connection in speakers])
        if self.next_hello == math.inf:
            self.next_hello = self._due(now)

    def _refuse(self) -> None:
        for refusal in self._neighbors.take_refusals():
            self._sender.do(_report(refusal))
            self._sender.do(
                CloseConnection(
                    connection=refusal.connection,
                    condition=Condition.RESOURCE_LIMIT_EXCEEDED if refusal.is_surplus else Condition.NOT_ALLOWED,
                    description=refusal.description,
                )
            )

    def _write(self, connections: Iterable[ConnectionId]) -> None:
        """Say the same to each of them: it is encoded once."""
        hello = Hello(id=self._sender.router_id, instance=self.instance, seen=self._neighbors.seen())
        for connection in connections:
            self._sender.write(connection, HELLO_TO, hello)

    def _due(self, now: float) -> float:
        return now + self._interval_s * (1 - HELLO_JITTER * self._rng.random())


def _report(refusal: RefusedConnection) -> Report:
    if refusal.is_surplus:
        return Report.warning("too_many_connections", neighbor=refusal.router, connection=refusal.connection)
    if refusal.new_id is None:
        return Report.warning("duplicate_router_id", id=refusal.router, connection=refusal.connection)
    return Report.warning("router_id_changed", id=refusal.router, new_id=refusal.new_id, connection=refusal.connection)
