"""Many control planes in one process under virtual time: the very core that a router runs, on a simulated network.

A run depends on its seed and on the calls made, on nothing else. What the planes install is kept by a `Forwarding` that
asserts the order in which they may do so. Failures can be clean (both ends notice), one end after the other, or silent.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol

import attrs
import networkx as nx

from mesh_config.models import LinkStateSettings, MeshSettings, Role, Treatment
from router.core.controlplane import ControlPlane
from router.core.events import (
    Action,
    CloseConnection,
    ControlLinkDown,
    ControlLinkUp,
    ControlReceived,
    Event,
    Report,
    SendControl,
    SubscriptionAdded,
    SubscriptionRemoved,
)
from router.core.linkstate.messages import from_body
from router.core.terms import ConnectionId, RouterId
from router.simulation.forwarding import Forwarding
from router.simulation.network import Network, Weather

FIRST_BOOT: Final = 1_000_000


class Participant(Protocol):
    """What takes part in a mesh: a `ControlPlane`, or a model of some other router with the same three drivers."""

    def handle(self, events: Sequence[Event], *, now: float) -> list[Action]:
        """See `ControlPlane.handle`."""

    def next_deadline(self) -> float:
        """See `ControlPlane.next_deadline`."""

    def handle_deadline(self, *, now: float) -> list[Action]:
        """See `ControlPlane.handle_deadline`."""


@attrs.define(kw_only=True, eq=False)
class Router:
    """One simulated router."""

    id: RouterId
    settings: LinkStateSettings
    make: Callable[[int], Participant]
    """Starts it anew with a boot number."""
    pushes_lsu: bool
    boots: int = 0
    participant: Participant | None = None
    """None while it is dead."""
    forwarding: Forwarding = attrs.field(factory=Forwarding)
    ends: dict[ConnectionId, tuple[Wire, int]] = attrs.field(factory=dict)
    """Connections that it was told of, and of whose end it was not."""
    subscriptions: dict[str, Treatment] = attrs.field(factory=dict)
    reports: list[Report] = attrs.field(factory=list)
    closed: list[CloseConnection] = attrs.field(factory=list)
    connections: int = 0
    wakes_at: float = math.inf

    @property
    def is_alive(self) -> bool:
        """Whether its process runs."""
        return self.participant is not None

    @property
    def plane(self) -> ControlPlane:
        """Its control plane; it is alive and of our kind."""
        assert isinstance(self.participant, ControlPlane)
        return self.participant


@attrs.define(kw_only=True, eq=False)
class Wire:
    """A connection that is to be kept up between two routers."""

    number: int
    ends: tuple[Router, Router]
    cost: int
    is_up: bool = False
    is_silent: bool = False
    """Open for both ends, and carries nothing."""
    generation: int = 0
    connections: list[ConnectionId] = attrs.field(factory=lambda: [ConnectionId(0), ConnectionId(0)])


class Mesh:
    """Routers and the wires between them.

    Args:
        seed: of the network and of every router's jitter.
        settings: of every router that has no others.
        detection_s: time until an end notices that a connection is gone, seconds.
        bodies: pass every control message through its body, as it goes over a real wire.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        settings: LinkStateSettings | None = None,
        weather: Weather | None = None,
        detection_s: float = 0.001,
        bodies: bool = False,
    ) -> None:
        self.rng = random.Random(seed)
        self.network = Network(random.Random(self.rng.getrandbits(64)), weather or Weather())
        self.settings = settings or LinkStateSettings()
        self.detection_s = detection_s
        self.bodies = bodies
        self.routers: dict[RouterId, Router] = {}
        self.wires: list[Wire] = []
        self.turns = 0
        """Calls of any control plane."""

    @property
    def now(self) -> float:
        """Virtual time, seconds."""
        return self.network.now

    # Making a mesh

    @classmethod
    def of_edges(cls, edges: Iterable[tuple[str, str, int]], **options: object) -> Mesh:
        """A mesh with these wires (router, router, cost), all starting at once; *options* as for the class."""
        mesh = cls(**options)  # type: ignore[arg-type]
        for near, far, cost in edges:
            for name in (near, far):
                if RouterId(name) not in mesh.routers:
                    mesh.add_router(name)
            mesh.connect(near, far, cost)
        return mesh

    @classmethod
    def of_settings(cls, settings: MeshSettings, **options: object) -> Mesh:
        """The routers of a configured mesh, with a wire for each of their connectors to one another."""
        mesh = cls(**options)  # type: ignore[arg-type]
        for name in sorted(settings.routers):
            mesh.add_router(name, settings=settings.routers[name].link_state)
        for name, router in sorted(settings.routers.items()):
            for connector in router.connectors:
                if connector.role is Role.INTER_ROUTER and connector.to is not None:
                    mesh.connect(name, connector.to, connector.cost)
        return mesh

    def add_router(
        self,
        name: str,
        *,
        settings: LinkStateSettings | None = None,
        make: Callable[[int], Participant] | None = None,
        pushes_lsu: bool = True,
        router_id: str | None = None,
    ) -> Router:
        """Start a router.

        Args:
            make: makes another kind of participant of a boot number.
            router_id: what it calls itself, *name* when absent; the same id twice is a fault worth simulating.
        """
        chosen = settings or self.settings
        own_id = RouterId(router_id or name)
        seed = self.rng.getrandbits(64)

        def start(instance: int) -> Participant:
            rng = random.Random(seed ^ instance)
            return ControlPlane(router_id=own_id, settings=chosen, instance=instance, now=self.now, rng=rng)

        router = Router(id=own_id, settings=chosen, make=make or start, pushes_lsu=pushes_lsu)
        self.routers[RouterId(name)] = router
        self._start(router)
        return router

    def connect(self, near: str, far: str, cost: int = 1) -> Wire:
        """Keep up a connection between two routers; several between the same two are parallel connections."""
        ends = (self.routers[RouterId(near)], self.routers[RouterId(far)])
        wire = Wire(number=len(self.wires), ends=ends, cost=cost)
        self.wires.append(wire)
        self._raise(wire)
        return wire

    # What can happen

    def disconnect(self, wire: Wire) -> None:
        """The connection breaks; each end notices within twice `detection_s`."""
        if not wire.is_up:
            return
        wire.is_up = False
        wire.generation += 1
        for side, router in enumerate(wire.ends):
            self.network.close((wire.number, wire.generation, side))
            self._tell_down(router, wire.connections[side])

    def reconnect(self, wire: Wire) -> None:
        """The connection is made again, when both its ends live."""
        if not wire.is_up:
            self._raise(wire)

    def silence(self, wire: Wire, *, is_silent: bool = True) -> None:
        """Let the wire carry nothing from now on, or again, without either end being told."""
        wire.is_silent = is_silent

    def kill(self, name: str) -> None:
        """The process ends at once; its neighbors see their connections break."""
        router = self.routers[RouterId(name)]
        router.participant = None
        router.ends.clear()
        for wire in self.wires:
            if router in wire.ends:
                self.disconnect(wire)

    def restart(self, name: str, *, is_same_boot: bool = False) -> None:
        """The process starts again, without what it knew, and its wires come up.

        Args:
            is_same_boot: give it the boot number that it had, as a clock of whole seconds may do.
        """
        router = self.routers[RouterId(name)]
        assert not router.is_alive
        if is_same_boot:
            router.boots -= 1
        self._start(router)
        for wire in self.wires:
            if router in wire.ends:
                self.reconnect(wire)

    def partition(self, names: Iterable[str]) -> list[Wire]:
        """Break every connection between *names* and the others. Returns: the wires, for `heal`."""
        group = {self.routers[RouterId(name)].id for name in names}
        cut = [w for w in self.wires if w.is_up and (w.ends[0].id in group) != (w.ends[1].id in group)]
        for wire in cut:
            self.disconnect(wire)
        return cut

    def heal(self, wires: Iterable[Wire]) -> None:
        """Make these connections again."""
        for wire in wires:
            self.reconnect(wire)

    def subscribe(self, name: str, address: str, treatment: Treatment = Treatment.BALANCED) -> None:
        """The first subscriber of *address* attaches at a router."""
        router = self.routers[RouterId(name)]
        router.subscriptions[address] = treatment
        self._handle(router, [SubscriptionAdded(address=address, treatment=treatment)])

    def unsubscribe(self, name: str, address: str) -> None:
        """The last subscriber of *address* leaves."""
        router = self.routers[RouterId(name)]
        del router.subscriptions[address]
        self._handle(router, [SubscriptionRemoved(address=address)])

    # Time

    def run_until(self, time: float) -> None:
        """Let everything happen up to *time*, seconds."""
        while self.network.next_time() <= time:
            self.network.step()
        self.network.now = time

    def run_for(self, duration_s: float) -> None:
        """Let everything happen within the next *duration_s* seconds."""
        self.run_until(self.now + duration_s)

    def run_until_true(self, is_done: Callable[[], bool], *, limit_s: float, step_s: float = 0.02) -> float:
        """Run until *is_done*, looked at every *step_s*.

        Returns: how long it took, seconds; `math.inf` when *limit_s* were not enough.
        """
        start = self.now
        while not is_done():
            if self.now - start >= limit_s:
                return math.inf
            self.run_for(step_s)
        return self.now - start

    # What must become true

    def graph(self) -> nx.Graph[RouterId]:
        """Live routers and wires as they are; of parallel wires the cheapest."""
        graph: nx.Graph[RouterId] = nx.Graph()
        graph.add_nodes_from(router.id for router in self.living())
        for wire in self.wires:
            near, far = wire.ends
            if wire.is_up and not wire.is_silent and near.id != far.id:
                known = graph.get_edge_data(near.id, far.id, {"cost": wire.cost})["cost"]
                graph.add_edge(near.id, far.id, cost=min(known, wire.cost))
        return graph

    def living(self) -> Iterator[Router]:
        """Routers whose process runs."""
        return (router for router in self.routers.values() if router.is_alive)

    def check_invariants(self) -> None:
        """Assert what every control plane promises between turns."""
        for router in self.living():
            if isinstance(router.participant, ControlPlane):
                router.participant.check_invariants()
                assert router.participant.next_deadline() >= self.now

    # Inside

    def _start(self, router: Router) -> None:
        router.boots += 1
        router.participant = router.make(FIRST_BOOT + router.boots)
        router.forwarding = Forwarding()
        router.wakes_at = math.inf
        for address, treatment in router.subscriptions.items():
            self._handle(router, [SubscriptionAdded(address=address, treatment=treatment)])

    def _raise(self, wire: Wire) -> None:
        if not all(router.is_alive for router in wire.ends):
            return
        wire.is_up = True
        wire.generation += 1
        for side, router in enumerate(wire.ends):
            router.connections += 1
            wire.connections[side] = ConnectionId(router.connections)
        generation = wire.generation
        # Handshakes take their time; both ends of one are done together.
        delay = self.network.weather.delay_s * (2 + self.rng.random())
        self.network.call_at(self.now + delay, lambda: self._tell_up(wire, generation))

    def _tell_up(self, wire: Wire, generation: int) -> None:
        if not wire.is_up or wire.generation != generation:
            return
        for side, router in enumerate(wire.ends):
            router.ends[wire.connections[side]] = (wire, side)
        for side, router in enumerate(wire.ends):
            peer = wire.ends[1 - side]
            event = ControlLinkUp(
                connection=wire.connections[side],
                peer=peer.id,
                cost=wire.cost,
                local_conn_id=wire.connections[side],
                remote_conn_id=wire.connections[1 - side],
                pushes_lsu=router.pushes_lsu and peer.pushes_lsu,
            )
            self._handle(router, [event])

    def _tell_down(self, router: Router, connection: ConnectionId) -> None:
        def tell() -> None:
            if router.ends.pop(connection, None) is not None:
                self._handle(router, [ControlLinkDown(connection=connection)])

        self.network.call_at(self.now + self.detection_s * (1 + self.rng.random()), tell)

    def _handle(self, router: Router, events: Sequence[Event]) -> None:
        if router.participant is not None:
            self.turns += 1
            self._carry_out(router, router.participant.handle(events, now=self.now))

    def _wake(self, router: Router) -> None:
        if router.participant is None or router.wakes_at > self.now:
            return
        router.wakes_at = math.inf
        if router.participant.next_deadline() <= self.now:
            self.turns += 1
            self._carry_out(router, router.participant.handle_deadline(now=self.now))
            assert router.participant.next_deadline() > self.now
        else:
            self._set_alarm(router)

    def _set_alarm(self, router: Router) -> None:
        assert router.participant is not None
        deadline = router.participant.next_deadline()
        if deadline < router.wakes_at:
            router.wakes_at = deadline
            self.network.call_at(deadline, lambda: self._wake(router))

    def _carry_out(self, router: Router, actions: Sequence[Action]) -> None:
        for action in actions:
            if isinstance(action, SendControl):
                self._send(router, action)
            elif isinstance(action, CloseConnection):
                router.closed.append(action)
                wire, _ = router.ends[action.connection]
                self.disconnect(wire)
            elif isinstance(action, Report):
                router.reports.append(action)
            else:
                router.forwarding.carry_out(action, self.now)
        self._set_alarm(router)

    def _send(self, router: Router, action: SendControl) -> None:
        wire, side = router.ends[action.connection]
        if wire.is_silent or not wire.is_up or wire.connections[side] != action.connection:
            return
        far = wire.ends[1 - side]
        connection = wire.connections[1 - side]
        message = action.message
        if self.bodies:
            message = from_body(message.opcode, message.to_body())
        event = ControlReceived(
            connection=connection, to=action.to, message=message, ingress=action.ingress, trace=action.trace
        )

        def arrive() -> None:
            if connection in far.ends:
                self._handle(far, [event])

        self.network.send((wire.number, wire.generation, side), arrive)
