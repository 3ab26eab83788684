"""Base of simulated routers: publishers and circuits of neighbors, and the turns of a credit machine.

Each event has its turn, if it needs one, deadlines are kept, and flows are written when a turn is over.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Protocol

from router.core.forwarding.credit_actions import CreditAction, DrainCircuit, Grant, GrantCircuit, Key
from router.core.forwarding.credit_scheduler import CreditScheduler
from router.core.forwarding.publisher_credit import LocalPublishers
from router.core.ids_and_conditions import RouterId
from router.simulation.network import Network
from router.testing.links import AmqpLink, OneWayWire

TURNS_AT_ONCE = 2000
"""Maximum number of turns without time passing: more of them are a livelock."""
NO_TURN: Final = object()
"""Result of an event that needs no turn."""


class RouterEnvironment(Protocol):
    """Interface that every simulated router needs of its mesh."""

    network: Network

    def wires(self, here: RouterId, there: RouterId) -> tuple[OneWayWire, OneWayWire] | None:
        """Both ways of the connection to a neighbor; None when it is down."""

    def released(self, message: int) -> None:
        """A message has nowhere to go, or its sender left before it was delivered."""

    def is_kept(self, message: int) -> bool:
        """Whether a message is the mesh's though its sender has left: it is pre-settled."""

    def checked(self) -> None:
        """A router has finished a turn."""


class CreditRouter:
    """A router as far as the credit of one address goes. It carries out what its machine wants done."""

    def __init__(self, name: RouterId, machine: CreditScheduler, mesh: RouterEnvironment) -> None:
        self.name = name
        self.is_alive = True
        """Whether the router runs; a dead one does nothing."""
        self.publishers: dict[Key, AmqpLink] = {}
        self.circuits: dict[Key, tuple[RouterId, RouterId, AmqpLink]] = {}
        """Incoming circuits: root of the tree, neighbor and link."""
        self._driven = machine
        self._around = mesh
        self._flowing: dict[AmqpLink, None] = {}
        """Links on which a flow is to be written at the end of the turn."""
        self._timer = math.inf
        self._at = -math.inf
        self._at_once = 0

    # What the kinds differ in

    def _restate(self, now: float) -> None:
        """Tell the machine before a turn what credit there is."""

    def _carry_out(self, action: CreditAction) -> None:
        """Do what the machine wants done."""
        match action:
            case Grant():
                self._changed(self.publishers[action.publisher]).grant(action.credit)
            case GrantCircuit():
                link = self._changed(self.circuits[action.circuit][2])
                link.grant(action.credit)
                link.is_draining = False
            case DrainCircuit():
                self._changed(self.circuits[action.circuit][2]).drain()

    def _changed(self, link: AmqpLink) -> AmqpLink:
        """Write a flow on a link at the end of the turn."""
        self._flowing[link] = None
        return link

    # Events

    def do(self, event: Callable[[float], object]) -> None:
        """Tell the machine one event, have its turn, unless that returns `NO_TURN`, and write what it ordered."""
        self._turn_after(event)

    def _turn_after(self, event: Callable[[float], object]) -> None:
        if not self.is_alive:
            return
        network, machine = self._around.network, self._driven
        now = network.now
        if event(now) is not NO_TURN:
            self._restate(now)
            for action in machine.turn(now):
                self._carry_out(action)
        self._at_once = self._at_once + 1 if now == self._at else 0
        self._at = now
        assert self._at_once < TURNS_AT_ONCE, "a livelock"
        for link in self._flowing:
            link.flush()
        self._flowing.clear()
        self._around.checked()
        due = machine.next_deadline()
        # An earlier timer that is no more needed finds nothing to do.
        if due < self._timer or self._timer <= now:
            self._timer = due
            if due < math.inf:
                network.call_at(due, lambda: self._due(due))

    def _due(self, due: float) -> None:
        if due == self._timer:
            self._timer = math.inf
            self._turn_after(lambda _: None)

    def _lose_publisher(
        self,
        key: Key,
        publishers: LocalPublishers,
        remove: Callable[[Key], None],
        drop: Callable[[Key], bool],
    ) -> None:
        """Forget a publisher that is gone, with those of its messages that wait and are not the mesh's.

        Args:
            key: the publisher.
            publishers: as the machine has them.
            remove: the machine's event for it.
            drop: the machine's event for a message.
        """
        owner = publishers.attached[key]
        waiting = [message for message, publisher in publishers.waiting.items() if publisher is owner]
        remove(key)
        self.publishers.pop(key).end_receiver()
        for message in waiting:
            assert isinstance(message, int)
            if not self._around.is_kept(message):
                assert drop(message)
                self._around.released(message)
