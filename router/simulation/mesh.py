"""Many control planes in one process under virtual time: the very core that a router runs, on a simulated network.

A run depends on its seed and on the calls made, on nothing else. What the planes install is kept by a `SimulatedFib`
that asserts the order in which they may do so. Failures can be clean (both ends notice), one end after the other, or
silent.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

import attrs
import networkx as nx

from mesh_config.models import ConnectorSettings, LinkStateSettings, MeshSettings, Role, Treatment
from router.core.controlplane import ControlPlane
from router.core.events import (
    Action,
    CloseConnection,
    ControlLinkDown,
    ControlLinkUp,
    ControlReceived,
    Event,
    FirstSubscriberAttached,
    LastSubscriberLeft,
    Report,
    SendControl,
)
from router.core.ids_and_conditions import ConnectionId, RouterId
from router.core.linkstate.messages import from_body
from router.simulation.control_bytes import ControlSizes
from router.simulation.cpu_model import CpuCosts, SimulatedMachine, SimulatedProcess
from router.simulation.network import Network, NetworkConditions
from router.simulation.shared_paths import GraphStore, SharedTopology
from router.simulation.simulated_fib import SimulatedFib

FIRST_BOOT: Final = 1_000_000


class Participant(Protocol):
    """Participant of a mesh: a `ControlPlane`, or a model of some other router with the same three drivers."""

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
    forwarding: SimulatedFib = attrs.field(factory=SimulatedFib)
    ends: dict[ConnectionId, tuple[Wire, int]] = attrs.field(factory=dict)
    """Connections that it was told of, and of whose end it was not."""
    subscriptions: dict[str, Treatment] = attrs.field(factory=dict)
    reports: list[Report] = attrs.field(factory=list)
    closed: list[CloseConnection] = attrs.field(factory=list)
    connections: int = 0
    wakes_at: float = math.inf
    worker: SimulatedProcess | None = None
    """Process that does its work, when work takes time."""
    sent: Counter[str] = attrs.field(factory=Counter)
    """Number of control messages that the router has written in all its lives, by opcode."""
    sent_bytes: Counter[str] = attrs.field(factory=Counter)
    """Number of bytes of the control messages that the router has written in all its lives, without frames, by opcode;
    empty where they are not counted."""

    @property
    def is_alive(self) -> bool:
        """Whether its process runs."""
        return self.participant is not None

    @property
    def plane(self) -> ControlPlane:
        """Control plane of the router, which must be alive and of our kind."""
        assert isinstance(self.participant, ControlPlane)
        return self.participant


@attrs.define(kw_only=True, eq=False)
class Wire:
    """A connection that is to be kept up between two routers."""

    number: int
    ends: tuple[Router, Router]
    """The first one is who dials."""
    cost: int
    delay_s: float | None = None
    """Time on the way, seconds; None: the network's own."""
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
        detection_jitter_s: up to this much more, by chance, seconds; as much as *detection_s* when absent.
        bodies: pass every control message through its body, as it goes over a real wire.
        is_shared: planes share graphs and paths that are equal: the same run in less time and memory.
        cpu_costs: what work costs the routers; nothing when absent.
        counts_bytes: count the bytes of control messages.
        keeps_reports: keep what the planes report, as `Router.reports`.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        settings: LinkStateSettings | None = None,
        conditions: NetworkConditions | None = None,
        detection_s: float = 0.001,
        detection_jitter_s: float | None = None,
        bodies: bool = False,
        is_shared: bool = False,
        cpu_costs: CpuCosts | None = None,
        counts_bytes: bool = False,
        keeps_reports: bool = True,
    ) -> None:
        self.rng = random.Random(seed)
        self.network = Network(random.Random(self.rng.getrandbits(64)), conditions or NetworkConditions())
        self.settings = settings or LinkStateSettings()
        self.detection_s = detection_s
        self.detection_jitter_s = detection_s if detection_jitter_s is None else detection_jitter_s
        self.bodies = bodies
        self.keeps_reports = keeps_reports
        self._sizes = ControlSizes() if counts_bytes else None
        self.machine = SimulatedMachine(self.network, cpu_costs) if cpu_costs is not None else None
        self._paths = GraphStore() if is_shared else None
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
    def of_settings(
        cls, settings: MeshSettings, *, starts: Mapping[str, float] | None = None, **options: object
    ) -> Mesh:
        """The routers of a configured mesh, with a wire for each of their connectors to one another.

        Args:
            settings: of the mesh.
            starts: when each router starts, seconds; its connectors dial then, and again and again with the pauses of
                their settings, until the other side has started too. All at once when absent.
            **options: as of `Mesh`.
        """
        mesh = cls(**options)  # type: ignore[arg-type]
        for name in sorted(settings.routers):
            starts_at = None if starts is None else starts[name]
            mesh.add_router(name, settings=settings.routers[name].link_state, starts_at=starts_at)
        for name, router in sorted(settings.routers.items()):
            for connector in router.connectors:
                if connector.role is Role.INTER_ROUTER and connector.to is not None:
                    wire = mesh.connect(name, connector.to, connector.cost)
                    if starts is not None:
                        mesh.dial(wire, connector, at=starts[name])
        return mesh

    def add_router(
        self,
        name: str,
        *,
        settings: LinkStateSettings | None = None,
        make: Callable[[int], Participant] | None = None,
        pushes_lsu: bool = True,
        router_id: str | None = None,
        starts_at: float | None = None,
    ) -> Router:
        """Start a router.

        Args:
            name: of the process.
            settings: of its link state; those of the mesh when absent.
            make: makes another kind of participant of a boot number.
            pushes_lsu: tell link state unasked, as no router of Qpid Dispatch does.
            router_id: what it calls itself, *name* when absent; the same id twice is a fault worth simulating.
            starts_at: when it is started, seconds; now when absent.
        """
        chosen = settings or self.settings
        own_id = RouterId(router_id or name)
        seed = self.rng.getrandbits(64)

        def start(instance: int) -> Participant:
            return ControlPlane(
                router_id=own_id,
                settings=chosen,
                instance=instance,
                now=self.now,
                rng=random.Random(seed ^ instance),
                topology=SharedTopology(self._paths) if self._paths is not None else None,
            )

        router = Router(id=own_id, settings=chosen, make=make or start, pushes_lsu=pushes_lsu)
        self.routers[RouterId(name)] = router
        if starts_at is None:
            self._start(router)
        else:
            self.network.call_at(starts_at, lambda: self._start(router))
        return router

    def connect(self, near: str, far: str, cost: int = 1, *, delay_s: float | None = None) -> Wire:
        """Keep up a connection between two routers; several between the same two are parallel connections.

        Args:
            near: name of the router that dials.
            far: name of the one that listens.
            cost: of the connection, at both ends.
            delay_s: time on the way, seconds; None: that of the conditions.
        """
        ends = (self.routers[RouterId(near)], self.routers[RouterId(far)])
        wire = Wire(number=len(self.wires), ends=ends, cost=cost, delay_s=delay_s)
        self.wires.append(wire)
        self._raise(wire)
        return wire

    def dial(self, wire: Wire, settings: ConnectorSettings, *, at: float) -> None:
        """Let the near end connect at *at* (seconds), and again, after a connector's pauses, until the other lives."""

        def attempt(pause_s: float) -> None:
            if wire.ends[1].is_alive:
                self.reconnect(wire)
            else:
                longer_s = min(2 * pause_s, settings.reconnect_max_s)
                self.network.call_at(self.now + pause_s * self.rng.uniform(0.5, 1), lambda: attempt(longer_s))

        self.network.call_at(at, lambda: attempt(settings.reconnect_initial_s))

    # What can happen

    def disconnect(self, wire: Wire) -> None:
        """The connection breaks; each end notices after its time of detection."""
        if not wire.is_up:
            return
        wire.is_up = False
        for side in range(len(wire.ends)):
            self.network.close((wire.number, wire.generation, side))
        wire.generation += 1
        for side, router in enumerate(wire.ends):
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
        self._end(router)
        for wire in self.wires:
            if router in wire.ends:
                self.disconnect(wire)

    def vanish(self, name: str) -> None:
        """The machine is gone: the process with it, and nobody tells its neighbors."""
        router = self.routers[RouterId(name)]
        self._end(router)
        for wire in self.wires:
            if router in wire.ends:
                self.silence(wire)

    def restart(self, name: str, *, is_same_boot: bool = False) -> None:
        """The process starts again, without what it knew, and its wires come up; those that were silent too.

        Args:
            name: of the process.
            is_same_boot: give it the boot number that it had, as a clock of whole seconds may do.
        """
        router = self.routers[RouterId(name)]
        assert not router.is_alive
        if is_same_boot:
            router.boots -= 1
        self._start(router)
        for wire in self.wires:
            if router in wire.ends:
                if wire.is_silent:
                    self.silence(wire, is_silent=False)
                    self.disconnect(wire)  # whoever has the address again knows nothing of the old connection
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
        self._handle(router, [FirstSubscriberAttached(address=address, treatment=treatment)])

    def unsubscribe(self, name: str, address: str) -> None:
        """The last subscriber of *address* leaves."""
        router = self.routers[RouterId(name)]
        del router.subscriptions[address]
        self._handle(router, [LastSubscriberLeft(address=address)])

    # Time

    def run_until(self, time: float) -> None:
        """Let everything happen up to *time*, seconds."""
        self.network.run_until(time)

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
                is_at_work = router.worker is not None and router.worker.is_waiting
                assert is_at_work or router.participant.next_deadline() >= self.now

    # Inside

    def _start(self, router: Router) -> None:
        router.boots += 1
        router.participant = router.make(FIRST_BOOT + router.boots)
        if self.machine is not None:
            router.worker = SimulatedProcess(router.plane, lambda actions: self._carry_out(router, actions))
        router.forwarding = SimulatedFib()
        router.wakes_at = math.inf
        for address, treatment in router.subscriptions.items():
            self._handle(router, [FirstSubscriberAttached(address=address, treatment=treatment)])

    def _end(self, router: Router) -> None:
        router.participant = None
        if router.worker is not None:
            router.worker.is_ended = True
        router.ends.clear()

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
        delay_s = self.network.conditions.delay_s if wire.delay_s is None else wire.delay_s
        self.network.call_at(self.now + delay_s * (2 + self.rng.random()), lambda: self._tell_up(wire, generation))

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
                is_dialer=side == 0,
                connector=wire.number,
                pushes_lsu=router.pushes_lsu and peer.pushes_lsu,
            )
            self._handle(router, [event])

    def _tell_down(self, router: Router, connection: ConnectionId) -> None:
        def tell() -> None:
            if router.ends.pop(connection, None) is not None:
                self._handle(router, [ControlLinkDown(connection=connection)])

        self.network.call_at(self.now + self.detection_s + self.detection_jitter_s * self.rng.random(), tell)

    def _handle(self, router: Router, events: Sequence[Event]) -> None:
        if router.participant is None:
            return
        self.turns += 1
        if self.machine is None:
            self._carry_out(router, router.participant.handle(events, now=self.now))
        else:
            assert router.worker is not None
            self.machine.post(router.worker, events)

    def _wake(self, router: Router) -> None:
        if router.participant is None or router.wakes_at > self.now:
            return
        router.wakes_at = math.inf
        if router.participant.next_deadline() > self.now:
            self._set_alarm(router)
        elif self.machine is None:
            self.turns += 1
            self._carry_out(router, router.participant.handle_deadline(now=self.now))
            assert router.participant.next_deadline() > self.now
        else:
            assert router.worker is not None
            self.machine.post(router.worker, ())

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
                if action.connection in router.ends:
                    self.disconnect(router.ends[action.connection][0])
            elif isinstance(action, Report):
                if self.keeps_reports:
                    router.reports.append(action)
            else:
                router.forwarding.carry_out(action, self.now)
        self._set_alarm(router)

    def _send(self, router: Router, action: SendControl) -> None:
        # Where turns take time the connection may be gone by now.
        wire, side = router.ends.get(action.connection, (None, 0))
        if wire is None:
            return
        opcode = action.message.opcode
        router.sent[opcode] += 1
        if self._sizes is not None:
            router.sent_bytes[opcode] += self._sizes.of(action.to, action.message, action.ingress, action.trace)
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

        self.network.send((wire.number, wire.generation, side), arrive, wire.delay_s)
