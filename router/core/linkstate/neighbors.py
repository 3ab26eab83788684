"""Neighbors: the router at the other end of each inter-router connection, and the connection in use to each.

A connection is two-way when the HELLOs heard on it name this router. Of several connections to the same neighbor one
is active and the others stand by, silent: a qdrouterd binds a neighbor to the connection of the last HELLO, so a HELLO
on each would make it swing to and fro (DEV-6). Both ends prefer the same one, whichever came first: smallest cost, then
the lower id of the router that dialled, then the place of the connector there. Peers that don't tell the place: the
smallest number given by the end with the lower router id. When the active one dies another takes over in the same turn,
as a two-way connection: the neighbor's HELLOs name this router whichever connection they come by.

A neighbor that hears this router and hears it not by turns would have all routers find their paths anew each time: from
its second break within a minute on, such a connection is held one-way, twice as long each time.

Of two routers with the same id that are neighbors of this one, the first stays and the other is refused: it has another
boot number, and the first speaks again after it. Were it the first router itself, started anew, the first connection
would be dead or silent, and the new one accepted after `hello_max_age_s` at the latest.

The first HELLO of a connection says the id of the router at its other end for as long as the connection lasts. One with
another id is refused: what a neighbor may have and bring is counted by its id.

Source: docs/reference/inter-router-protocol.md#neighbors.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from mesh_config.models import LinkStateSettings
from router.core.events import ControlLinkUp
from router.core.ids_and_conditions import ConnectionId, RouterId
from router.core.linkstate.messages import Hello


class AdjacencyState(enum.Enum):
    """State of a connection by what is known of the router at its other end."""

    SILENT = "silent"
    """State of a connection on which nothing was heard for `hello_max_age_s`, or ever."""
    ONE_WAY = "one-way"
    """State of a connection whose router is heard, and has not heard this one."""
    TWO_WAY = "two-way"
    """State of a connection whose router is heard, and has heard this one."""


class AdjacencyEvent(enum.Enum):
    """Input that changes an `AdjacencyState`."""

    HELLO_WITHOUT_ME = "hello-without-me"
    HELLO_WITH_ME = "hello-with-me"
    SILENCE = "silence"
    TAKEOVER = "takeover"
    """The active connection to the same neighbor, which was two-way, died or fell silent; this one is next."""


TRANSIT_ENDED_COST: Final = 1_000_000
"""Cost of an edge from a router that is about to stop. Sums of several fit 31 bits, with which a qdrouterd computes."""

ADJACENCY: Final[Mapping[tuple[AdjacencyState, AdjacencyEvent], AdjacencyState]] = {
    (AdjacencyState.SILENT, AdjacencyEvent.HELLO_WITHOUT_ME): AdjacencyState.ONE_WAY,
    (AdjacencyState.SILENT, AdjacencyEvent.HELLO_WITH_ME): AdjacencyState.TWO_WAY,
    (AdjacencyState.SILENT, AdjacencyEvent.SILENCE): AdjacencyState.SILENT,
    (AdjacencyState.SILENT, AdjacencyEvent.TAKEOVER): AdjacencyState.TWO_WAY,
    (AdjacencyState.ONE_WAY, AdjacencyEvent.HELLO_WITHOUT_ME): AdjacencyState.ONE_WAY,
    (AdjacencyState.ONE_WAY, AdjacencyEvent.HELLO_WITH_ME): AdjacencyState.TWO_WAY,
    (AdjacencyState.ONE_WAY, AdjacencyEvent.SILENCE): AdjacencyState.SILENT,
    # The peer says that it hears this router by no connection at all.
    (AdjacencyState.TWO_WAY, AdjacencyEvent.HELLO_WITHOUT_ME): AdjacencyState.ONE_WAY,
    (AdjacencyState.TWO_WAY, AdjacencyEvent.HELLO_WITH_ME): AdjacencyState.TWO_WAY,
    (AdjacencyState.TWO_WAY, AdjacencyEvent.SILENCE): AdjacencyState.SILENT,
}
"""The rule of a connection. A takeover is only ever of a silent one, so the other two pairs are absent."""

CALM_S: Final = 60.0
"""Time without a break after which a connection that was two-way may fail again at no price, seconds."""
LONGEST_HOLD_S: Final = 30.0
"""Maximum time for which a connection that comes and goes is held one-way, seconds."""

MOST_PARALLEL: Final = 64
"""Maximum number of connections to one neighbor: each is compared with all others."""

Rank = tuple[int, str, int, int, int, int]


@attrs.define(kw_only=True, eq=False)
class ControlConnection:
    """One inter-router connection with both control links attached."""

    connection: ConnectionId
    router: RouterId
    """Id of the neighbor in its first HELLO; until there was one, in its Open."""
    is_named: bool = False
    """Whether there was a HELLO: the id is what it says from then on."""
    cost: int
    pushes_lsu: bool
    local_conn_id: int
    remote_conn_id: int
    is_dialer: bool
    connector: int
    rank: Rank = (0, "", 0, 0, 0, 0)
    """The lowest of a neighbor's connections is preferred."""
    state: AdjacencyState = AdjacencyState.SILENT
    heard_at: float
    """Time of the last HELLO, or since when one is due, seconds."""
    instance: int | None = None
    """Boot number in the neighbor's last HELLO, or of the connection that this one took over from."""
    is_suspect: bool = False
    """Whether HELLOs were due and did not come: the connection is the last choice until one does."""
    is_excused: bool = False
    """Whether the silence was excused since the neighbor was last heard: this router was held up itself."""
    breaks: int = 0
    """Number of times that the neighbor ceased to hear this router, the last at `broken_at`, with no calm between."""
    broken_at: float = -math.inf
    held_until: float = -math.inf
    """Time until which the connection stays one-way for its breaks, seconds."""
    is_challenger: bool = False
    """Whether the connection speaks of another boot than the active one: a duplicate id, or the end of the old boot is
    not noticed."""

    def note_break(self, now: float, shortest_hold_s: float) -> None:
        """Note that its neighbor does not hear this router any more: the second time it is held one-way, then longer.

        Args:
            now: seconds, monotonic.
            shortest_hold_s: for the second break, seconds; twice as long for each further one.
        """
        self.breaks = self.breaks + 1 if now < self.broken_at + CALM_S else 1
        self.broken_at = now
        if self.breaks > 1:
            self.held_until = now + min(LONGEST_HOLD_S, shortest_hold_s * 2 ** min(self.breaks - 2, 10))


@attrs.frozen(kw_only=True)
class RefusedConnection:
    """A connection to close, already forgotten here."""

    connection: ConnectionId
    router: RouterId
    new_id: RouterId | None = None
    """Id to which `router` changed; None when it is refused for another reason."""
    is_surplus: bool = False
    """Whether there are too many to `router`; else, without `new_id`, two routers have its id."""
    description: str


class Neighbors:
    """All inter-router connections of this router, by neighbor."""

    def __init__(self, router_id: RouterId, settings: LinkStateSettings) -> None:
        self.router_id = router_id
        self.connections: dict[ConnectionId, ControlConnection] = {}
        self.active: dict[RouterId, ControlConnection] = {}
        """The two-way connection in use to each neighbor."""
        self.revision = 0
        """Raised whenever `active` or a cost changes."""
        self._is_transit_ended = False
        self.refusals: list[RefusedConnection] = []
        """Connections to close; see `take_refusals`."""
        self.greetings: dict[ConnectionId, None] = {}
        """Connections on which a HELLO is due at once, to find a neighbor in a round trip; see `take_greetings`."""
        self.next_silence = math.inf
        """Lower bound of the moment at which the next connection counts as silent unless it is heard, seconds."""
        self._settings = settings
        self._by_router: dict[RouterId, list[ControlConnection]] = {}

    # What happened

    def attach(self, event: ControlLinkUp, now: float) -> None:
        """Take in a connection of which both control links are there.

        Args:
            event: names the connection and the router at its other end.
            now: seconds, monotonic.
        """
        assert event.connection not in self.connections
        made = ControlConnection(
            connection=event.connection,
            router=event.peer,
            cost=event.cost,
            pushes_lsu=event.pushes_lsu,
            local_conn_id=event.local_conn_id,
            remote_conn_id=event.remote_conn_id,
            is_dialer=event.is_dialer,
            connector=event.connector,
            heard_at=now,
        )
        self.connections[event.connection] = made
        if event.peer == self.router_id:
            self._refuse(made, event.peer, "this router has the same id")
            return
        if not self._make_room(event.peer):
            self._drop_surplus(made, event.peer)
            return
        self._join(made, event.peer)
        self._watch(made)
        self._choose(event.peer, now)
        self.greetings[event.connection] = None

    def detach(self, connection: ConnectionId, now: float) -> None:
        """Forget a connection: it, or a control link of it, is gone. Nothing happens when it was refused before.

        Args:
            connection: known or not.
            now: seconds, monotonic.
        """
        gone = self.connections.pop(connection, None)
        if gone is not None:
            self._leave(gone)
            self._expect_anew(gone.router, now)
            self._choose(gone.router, now)

    def hear(self, connection: ConnectionId, hello: Hello, now: float) -> bool:
        """Take in a HELLO that came by a connection.

        Args:
            connection: one that is known.
            hello: what it says.
            now: seconds, monotonic.
        Returns: whether it speaks for the neighbor; not so that of a challenger or of a connection just refused.
        """
        heard = self.connections[connection]
        if hello.id == self.router_id:
            self._refuse(heard, hello.id, "this router has the same id")
        elif heard.is_named and hello.id != heard.router:
            self._drop(heard, f"router {heard.router} changed its id to {hello.id}", hello.id)
        elif hello.id != heard.router and not self._make_room(hello.id):
            self._drop_surplus(heard, hello.id)
        if connection not in self.connections:
            self._choose(heard.router, now)
            return False
        heard.is_named = True
        if hello.id != heard.router:
            self._leave(heard)
            self._choose(heard.router, now)
            self._join(heard, hello.id)
        with_me = self.router_id in hello.seen and now >= heard.held_until
        if heard.state is AdjacencyState.SILENT:
            self.greetings[connection] = None
        if heard.state is AdjacencyState.TWO_WAY and not with_me:
            heard.note_break(now, self._settings.hello_interval_s)
        heard.state = ADJACENCY[
            heard.state, AdjacencyEvent.HELLO_WITH_ME if with_me else AdjacencyEvent.HELLO_WITHOUT_ME
        ]
        heard.heard_at = now
        heard.instance = hello.instance
        heard.is_suspect = heard.is_excused = False
        self._watch(heard)
        active = self.active.get(hello.id)
        if active is heard:
            self._answer_challengers(heard)
        elif active is not None:
            heard.is_challenger = active.instance is not None and active.instance != hello.instance
        self._choose(hello.id, now)
        return not heard.is_challenger

    def elapse(self, now: float, *, late_s: float = 0.0) -> None:
        """Find connections that fell silent.

        Args:
            now: seconds, monotonic.
            late_s: how long this router itself was held up, seconds; HELLOs may lie unread for as long. Whoever is not
                heard yet is given at least another `hello_interval_s` to speak, once after each HELLO.
        """
        self.next_silence = math.inf
        for connection in list(self.connections.values()):
            if late_s > 0:
                self._excuse(connection, now, late_s)
            if not self._expects(connection):
                continue
            if connection.heard_at + self._settings.hello_max_age_s > now:
                self._watch(connection)
                continue
            connection.state = ADJACENCY[connection.state, AdjacencyEvent.SILENCE]
            connection.is_suspect = self._speaks(connection)
            self._expect_anew(connection.router, now)
            self._choose(connection.router, now)

    def refuse_all(self, router: RouterId, why: str, now: float) -> None:
        """Forget all connections of a neighbor, which are to be closed.

        Args:
            router: its id.
            why: what the peer is told of it.
            now: seconds, monotonic.
        """
        for connection in list(self._by_router.get(router, ())):
            self._refuse(connection, router, why)
        self._choose(router, now)

    def take_refusals(self) -> list[RefusedConnection]:
        """Take the connections that are to be closed: each is returned once."""
        taken, self.refusals = self.refusals, []
        return taken

    def take_greetings(self) -> dict[ConnectionId, None]:
        """Take the connections on which a HELLO is due at once: each is returned once."""
        taken, self.greetings = self.greetings, {}
        return taken

    # What is known

    def seen(self) -> tuple[RouterId, ...]:
        """Routers heard lately, for our HELLO."""
        heard = {
            c.router for c in self.connections.values() if c.state is not AdjacencyState.SILENT and not c.is_challenger
        }
        return tuple(sorted(heard))

    def end_transit(self) -> None:
        """Have every edge from here cost the most: paths lead through other routers where these join both ends.

        The way to this router itself costs what its neighbors say, so that what is in flight arrives. The cost is a
        field of link state that all have, Qpid Dispatch too.
        """
        self._is_transit_ended = True
        self.revision += 1

    def resume_transit(self) -> None:
        """Have every edge from here cost again what its settings say."""
        self._is_transit_ended = False
        self.revision += 1

    def costs(self) -> dict[RouterId, int]:
        """Cost of the edge to each neighbor, in the order of their ids."""
        # DEV-15: of the connection in use; in a qdrouterd it may stay that of the one before.
        if self._is_transit_ended:
            return {router: max(self.active[router].cost, TRANSIT_ENDED_COST) for router in sorted(self.active)}
        return {router: self.active[router].cost for router in sorted(self.active)}

    def speakers(self, now: float) -> list[ConnectionId]:
        """Connections on which HELLOs are due periodically.

        Args:
            now: seconds, monotonic.
        """
        speaking = {c.connection for group in self._by_router.values() for c in self._speaking(group)}
        due = (
            c for c in self.connections.values() if c.connection in speaking or self._probes(c) or self._echoes(c, now)
        )
        return [connection.connection for connection in due]

    def is_standby(self, connection: ControlConnection) -> bool:
        """Whether another connection serves its neighbor."""
        active = self.active.get(connection.router)
        return active is not None and active is not connection

    # Choosing

    def _speaks(self, connection: ControlConnection) -> bool:
        return connection in self._speaking(self._by_router[connection.router])

    def _speaking(self, group: Sequence[ControlConnection]) -> list[ControlConnection]:
        """Connections, of all those to one neighbor, that HELLOs are sent on."""
        # DEV-6: of parallel connections one is spoken on; a qdrouterd would follow HELLOs from one to the other.
        able = [c for c in group if not c.is_challenger]
        fit = [c for c in able if not c.is_suspect]
        active = self.active.get(group[0].router)
        if fit:
            found = [min(fit, key=_rank)]
        else:
            found = able if active is None else []
        return found if active is None or active in found else [*found, active]

    def _probes(self, connection: ControlConnection) -> bool:
        # A better one that fell silent may be well again. Not with a qdrouterd, which would take it for the active one.
        active = self.active.get(connection.router)
        is_better = active is not None and connection.rank < active.rank
        return is_better and connection.is_suspect and connection.pushes_lsu and not connection.is_challenger

    def _echoes(self, connection: ControlConnection, now: float) -> bool:
        # The neighbor speaks here while the connection that we use is silent: it may have lost that one already.
        active = self.active.get(connection.router)
        if active is None or active is connection or connection.is_challenger:
            return False
        stale = active.heard_at + 1.5 * self._settings.hello_interval_s <= now
        return stale and connection.state is not AdjacencyState.SILENT

    def _expects(self, connection: ControlConnection) -> bool:
        if connection.state is not AdjacencyState.SILENT:
            return True
        return not connection.is_suspect and self._speaks(connection)

    def _excuse(self, connection: ControlConnection, now: float, late_s: float) -> None:
        heard_at = connection.heard_at + late_s
        if not connection.is_excused:  # or a router that is late again and again would never lose a dead neighbor
            connection.is_excused = True
            heard_at = max(heard_at, now + self._settings.hello_interval_s - self._settings.hello_max_age_s)
        connection.heard_at = min(now, heard_at)

    def _expect_anew(self, router: RouterId, now: float) -> None:
        # One that stood by may have to speak and be heard from now on.
        for connection in self._by_router.get(router, ()):
            if connection.state is AdjacencyState.SILENT and not connection.is_suspect:
                connection.heard_at = now
                self._watch(connection)

    def _watch(self, connection: ControlConnection) -> None:
        self.next_silence = min(self.next_silence, connection.heard_at + self._settings.hello_max_age_s)

    def _choose(self, router: RouterId, now: float) -> None:
        group = self._by_router.get(router, [])
        before = self.active.get(router)
        is_before_alive = before is not None and before in group and before.state is AdjacencyState.TWO_WAY
        if not is_before_alive:
            for connection in group:
                connection.is_challenger = False
        two_way = [c for c in group if c.state is AdjacencyState.TWO_WAY and not c.is_challenger]
        if two_way:
            chosen = min(two_way, key=_rank)
        elif before is not None and all(c.state is AdjacencyState.SILENT for c in group):
            standby = [c for c in group if c is not before and not c.is_suspect]
            if not standby:
                self._lose(router)
                return
            chosen = min(standby, key=_rank)
            chosen.state = ADJACENCY[chosen.state, AdjacencyEvent.TAKEOVER]
            chosen.instance = before.instance if chosen.instance is None else chosen.instance
        else:
            self._lose(router)
            return
        if chosen is not before:
            chosen.heard_at = max(chosen.heard_at, now)
            self.active[router] = chosen
            self.revision += 1
            if before is not None:
                self.greetings[chosen.connection] = None

    def _lose(self, router: RouterId) -> None:
        if self.active.pop(router, None) is not None:
            self.revision += 1

    def _answer_challengers(self, active: ControlConnection) -> None:
        for other in [c for c in self._by_router[active.router] if c.is_challenger]:
            if other.instance == active.instance:
                other.is_challenger = False
            else:
                self._refuse(other, other.router, "another router with the same id is connected to the same neighbor")

    def _make_room(self, router: RouterId) -> bool:
        """Make room for one more connection to *router*. Returns: whether there is some."""
        group = self._by_router.get(router, ())
        if len(group) < MOST_PARALLEL:
            return True
        # Else those that only say whose they are, or that a cut left half open, would keep the true router out.
        silent = (c for c in group if not c.is_named and c.state is AdjacencyState.SILENT)
        oldest = next(silent, None)
        if oldest is not None:
            self._drop_surplus(oldest, router)
        return oldest is not None

    def _drop_surplus(self, connection: ControlConnection, router: RouterId) -> None:
        self._drop(connection, f"router {router} has {MOST_PARALLEL} connections already", is_surplus=True)

    def _refuse(self, connection: ControlConnection, taken: RouterId, why: str) -> None:
        """Forget a connection that is to be closed, as its peer goes by an id that is *taken*."""
        self._drop(connection, f"router id {taken} is in use: {why}")

    def _drop(
        self,
        connection: ControlConnection,
        description: str,
        new_id: RouterId | None = None,
        *,
        is_surplus: bool = False,
    ) -> None:
        del self.connections[connection.connection]
        self._leave(connection)
        self.refusals.append(
            RefusedConnection(
                connection=connection.connection,
                router=connection.router,
                new_id=new_id,
                is_surplus=is_surplus,
                description=description,
            )
        )

    def _join(self, connection: ControlConnection, router: RouterId) -> None:
        connection.router = router
        ids = (connection.local_conn_id, connection.remote_conn_id)
        low, high = ids if self.router_id < router else ids[::-1]
        dialer = self.router_id if connection.is_dialer else router
        connection.rank = (connection.cost, dialer, connection.connector, low, high, connection.connection)
        self._by_router.setdefault(router, []).append(connection)

    def _leave(self, connection: ControlConnection) -> None:
        self.greetings.pop(connection.connection, None)
        group = self._by_router.get(connection.router, [])
        if connection in group:
            group.remove(connection)
            if not group:
                del self._by_router[connection.router]

    def check_invariants(self) -> None:
        """Assert that what is active is two-way and known, and that groups and connections agree."""
        grouped = [c.connection for group in self._by_router.values() for c in group]
        assert sorted(grouped) == sorted(self.connections)
        assert all(len(group) <= MOST_PARALLEL for group in self._by_router.values())
        for router, active in self.active.items():
            assert active.state is AdjacencyState.TWO_WAY
            assert not active.is_challenger
            assert active in self._by_router[router]
            assert active.router == router != self.router_id
        assert set(self.greetings) <= set(self.connections)


def _rank(connection: ControlConnection) -> Rank:
    return connection.rank
