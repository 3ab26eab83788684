"""Sender of control messages, own and of others: along routes or to all neighbors, as actions of this turn.

Source: docs/reference/inter-router-protocol.md#how-they-travel.
"""

from __future__ import annotations

import enum
import functools
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

import attrs

from router.core.events import Action, ControlReceived, SendControl
from router.core.ids_and_conditions import AREA, ConnectionId, RouterId
from router.core.linkstate.messages import MAX_ROUTER_ID_CHARS, ControlMessage
from router.core.linkstate.neighbors import ControlConnection, Neighbors

HELLO_TO: Final = "amqp:/_local/qdhello"
ALL_LINK_STATE_TO: Final = f"amqp:/_topo/{AREA}/all/qdrouter"
ALL_ADDRESSES_TO: Final = f"_topo/{AREA}/all/qdrouter.ma"
"""Address of messages to all routers, without a scheme, as qdrouterd writes it."""

_LONGEST_TO: Final = MAX_ROUTER_ID_CHARS + 100
"""Characters of the longest `to` that names a router."""

ALL: Final = RouterId("all")
"""Name that stands for every router in a `to`; no router is called so."""


def link_state_to(router: RouterId) -> str:
    """`to` of an LSR or LSU to *router*."""
    return f"amqp:/_topo/{AREA}/{router}/qdrouter"


def addresses_to(router: RouterId) -> str:
    """`to` of a MAR or absolute MAU to *router*."""
    return f"amqp:/_topo/{AREA}/{router}/qdrouter.ma"


def target_of(to: str) -> RouterId | None:
    """The router that `to` names, `ALL` for every router, None for anything else."""
    # Others wrote it: what is remembered must not be of any length.
    return _target_of(to) if len(to) <= _LONGEST_TO else None


@functools.lru_cache(maxsize=4096)
def _target_of(to: str) -> RouterId | None:
    words = to.removeprefix("amqp:").lstrip("/").split("/")
    if len(words) >= 4 and words[0] == "_topo" and words[2]:
        return RouterId(words[2])
    return None


class FloodScope(enum.Enum):
    """Scope of a flooded message: which neighbors get a copy."""

    EVERY = "every"
    PUSHING = "pushing"
    """Neighbors that take link state unasked."""
    PLAIN = "plain"
    """Neighbors that ask for link state, as qdrouterd does."""


@attrs.frozen(kw_only=True)
class KnownRoute:
    """Route to one reachable router."""

    router: RouterId
    connection: ConnectionId
    next_hop: RouterId
    cost: int


class ControlMessageSender:
    """Sends control messages by the rules of how they travel; what it sends are the actions of this turn."""

    def __init__(self, router_id: RouterId, neighbors: Neighbors) -> None:
        self.router_id = router_id
        self.routes: Mapping[RouterId, KnownRoute] = {}
        self.radius = 0
        """Number of hops to the farthest router."""
        self.sent: Counter[str] = Counter()
        """Number of messages written, own and relayed, by opcode."""
        self._neighbors = neighbors
        self._actions: list[Action] = []

    def take_routes(self, routes: Mapping[RouterId, KnownRoute], radius: int) -> None:
        """Send along other routes from now on.

        Args:
            routes: by destination.
            radius: hops to the farthest router.
        """
        self.routes = routes
        self.radius = radius

    def take(self) -> list[Action]:
        """The actions so far; they are gone from here."""
        actions, self._actions = self._actions, []
        return actions

    def do(self, action: Action) -> None:
        """Add *action*."""
        self._actions.append(action)

    def write(
        self, connection: ConnectionId, to: str, message: ControlMessage, trace: tuple[RouterId, ...] = ()
    ) -> None:
        """Send by *connection*.

        Args:
            connection: of a neighbor, the active one or another.
            to: address, as `core.addressing` writes it.
            message: what is said.
            trace: routers passed so far; empty for a message of this router.
        """
        self.sent[message.opcode] += 1
        self._actions.append(
            SendControl(
                connection=connection, to=to, message=message, ingress=message.id, trace=(*trace, self.router_id)
            )
        )

    def flood(self, to: str, message: ControlMessage, reach: FloodScope = FloodScope.EVERY) -> None:
        """Send a message of this router to all neighbors in *reach*."""
        for neighbor in self._neighbors.active.values():
            if _is_in(neighbor, reach):
                self.write(neighbor.connection, to, message)

    def relay(
        self,
        received: ControlReceived,
        message: ControlMessage,
        to: str,
        reach: FloodScope = FloodScope.EVERY,
        *,
        is_news: bool = False,
        told: Collection[RouterId] = (),
    ) -> None:
        """Pass *message*, which is or follows from *received*, to the neighbors in *reach* where it has not been.

        Args:
            received: the event that brought what is passed on.
            message: what is said.
            to: address, as `core.addressing` writes it.
            reach: which neighbors.
            is_news: the message was new to this router. Then it is also sent to routers in its trace: had they known
                it, they would have sent it here. A message that is news to nobody goes no further, so this ends.
            told: routers that get it from others.
        """
        trace = received.trace or (message.id,)
        passed = set(trace)
        if self.router_id in passed and not is_news:
            return
        arrived = self._neighbors.connections[received.connection].router
        for router, neighbor in self._neighbors.active.items():
            has_been_there = router in (arrived, message.id) or router in told or (router in passed and not is_news)
            if not has_been_there and _is_in(neighbor, reach):
                self.write(neighbor.connection, to, message, trace)

    def tell_origin(self, received: ControlReceived, message: ControlMessage, to: str) -> None:
        """Pass *message*, which is or follows from *received* and speaks of its origin, to that router.

        Only if it is a neighbor of our kind and it came from somebody else: it may be a lie, which only the origin
        itself can tell.
        """
        origin = self._neighbors.active.get(message.id)
        is_its_own = self._neighbors.connections[received.connection].router == message.id
        if origin is not None and origin.pushes_lsu and not is_its_own:
            self.write(origin.connection, to, message, (message.id,))

    def send(self, router: RouterId, to: str, message: ControlMessage, via: ConnectionId | None) -> bool:
        """Send a message of this router to *router*.

        Args:
            router: another one, a neighbor or not.
            to: address, as `core.addressing` writes it.
            message: what is said.
            via: connection to use when there is no way yet, for instance the one that a question came by.
        Returns: whether there was a way.
        """
        way = self.way(router)
        if way is not None:
            self.write(way[0], to, message)
        elif via is not None and via in self._neighbors.connections:
            self.write(via, to, message)
        else:
            return False
        return True

    def forward(self, received: ControlReceived, target: RouterId) -> bool:
        """Pass on what another router sent to a third one.

        Returns: whether there was a way that leads on, within a number of hops that no path has.
        """
        trace = received.trace or (received.message.id,)
        way = self.way(target)
        # DEV-25, twice what qdrouterd allows: routes may change while a message is under way; its trace ends any loop.
        if way is None or self.router_id in trace or way[1] in trace or len(trace) > 2 * (self.radius + 1):
            return False
        self.write(way[0], received.to, received.message, trace)
        return True

    def way(self, router: RouterId) -> tuple[ConnectionId, RouterId] | None:
        """The connection, and the neighbor at its end, by which control messages go to *router*.

        A neighbor is spoken to directly, even where the route to it is another: routes come from link state, and what
        repairs old link state must not depend on it.
        """
        direct = self._neighbors.active.get(router)
        if direct is not None:
            return direct.connection, router
        route = self.route(router)
        return (route.connection, route.next_hop) if route is not None else None

    def route(self, router: RouterId) -> KnownRoute | None:
        """The route to *router*, if its connection still stands: routes are computed anew at the end of a turn only."""
        route = self.routes.get(router)
        return route if route is not None and route.connection in self._neighbors.connections else None


def _is_in(neighbor: ControlConnection, reach: FloodScope) -> bool:
    return reach is FloodScope.EVERY or neighbor.pushes_lsu == (reach is FloodScope.PUSHING)
