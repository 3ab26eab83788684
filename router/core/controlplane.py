"""The control plane of one router: events in, actions out; no clock, no sockets.

    actions = control.handle(events, now=now)      # seconds, monotonic
    when = control.next_deadline()                 # math.inf if never
    actions = control.handle_deadline(now=now)

A turn is one call. What its events changed is advertised, and what is due is computed, at the end of the turn. Actions
are to be carried out in their order: a router is installed before its addresses and withdrawn after them.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

import attrs

from mesh_config.models import LinkStateSettings, Treatment
from router.core.addressing.address_sync import AddressSync
from router.core.errors import LocalError
from router.core.events import (
    Action,
    ControlLinkDown,
    ControlLinkUp,
    ControlReceived,
    Event,
    FirstSubscriberAttached,
    InstallAddress,
    InstallRouter,
    LastSubscriberLeft,
    Report,
    TopologyChanged,
    TransitEnded,
    TransitResumed,
    WithdrawRouter,
)
from router.core.ids_and_conditions import ConnectionId, RouterId
from router.core.linkstate.control_forwarder import TransitControlForwarder
from router.core.linkstate.control_message_sender import (
    ALL,
    ALL_LINK_STATE_TO,
    ControlMessageSender,
    FloodScope,
    target_of,
)
from router.core.linkstate.messages import (
    PROTOCOL_VERSION,
    Hello,
    LinkStateRequest,
    LinkStateUpdate,
    MobileAddressRequest,
    MobileAddressUpdate,
    RouterAdvertisement,
    UnknownMessage,
)
from router.core.linkstate.multicast_copy_predictor import MulticastCopyPredictor
from router.core.linkstate.neighbors import Neighbors
from router.core.linkstate.protocol import LinkState
from router.core.linkstate.rate_limit import NeighborConnectionRateLimits
from router.core.linkstate.routes import RoutesDiff
from router.core.linkstate.spf import Edges, Topology, TreePlace


@attrs.frozen(kw_only=True)
class NeighborConnectionView:
    """One inter-router connection, for management."""

    router: RouterId
    connection: ConnectionId
    state: str
    """`silent`, `one-way` or `two-way`."""
    cost: int
    is_standby: bool
    """Whether another connection to the same neighbor is in use."""
    pushes_lsu: bool


@attrs.frozen(kw_only=True)
class NodeView:
    """One router of the mesh, for management."""

    id: RouterId
    instance: int | None
    """Boot number; None while only others spoke of it."""
    ls_seq: int
    mobile_seq: int
    """State of its addresses that is known here."""
    peers: Mapping[RouterId, int]
    next_hop: RouterId | None
    """The router itself when it is a neighbor; None for this router and when unreachable."""
    cost: int | None
    """Cost of the path; None when unreachable; 0 for this router."""
    changed_at: float
    """Time of the last change of its peers, seconds."""


class ControlPlane:
    """The control plane of one router.

    Args:
        router_id: unique in the mesh.
        instance: boot number, up to 2**63 - 1; it must be higher at each start of the same router. Microseconds since
            1970 do: with seconds, two starts within one are told apart only with the help of neighbors of our kind.
        now: seconds, monotonic.
        rng: for jitter alone.
        topology: empty; only for many control planes in one process, that need not each find the same paths anew.
    """

    def __init__(
        self,
        *,
        router_id: RouterId,
        settings: LinkStateSettings,
        instance: int,
        now: float,
        rng: random.Random,
        topology: Topology | None = None,
    ) -> None:
        self.router_id = router_id
        self.settings = settings
        self.received: Counter[str] = Counter()
        """Number of control messages received, by opcode, those to be relayed included."""
        self.ignored = 0
        """Number of messages of no use: of a refused connection, of a foreign kind, from routers unknown, to nobody."""
        self.excess = 0
        """Number of messages dropped since their neighbor sent too many."""
        self.failing: Event | None = None
        """The event at which `handle` has raised; None when it was later, and when it didn't."""
        self._started_at = now
        self._neighbors = Neighbors(router_id, settings)
        self._sender = ControlMessageSender(router_id, self._neighbors)
        self._addresses = AddressSync(self._sender, settings)
        self._link_state = LinkState(
            sender=self._sender,
            neighbors=self._neighbors,
            settings=settings,
            instance=instance,
            rng=rng,
            mobile_seq=self._own_mobile_seq,
            raise_mobile_seq=self._addresses.overrule,
            on_restart=self._addresses.forget,
            topology=Topology() if topology is None else topology,
        )
        self._forwarder = TransitControlForwarder(self._sender, self._link_state.requests.answer_for)
        self._told_foreign: set[ConnectionId] = set()
        """Connections by which foreign messages have come, which is told of once: ids in them may be made up."""
        self._allowances = NeighborConnectionRateLimits(settings.max_control_messages)

    # The three drivers

    def handle(self, events: Sequence[Event], *, now: float) -> list[Action]:
        """Handle *events* in their order.

        Args:
            events: of one turn.
            now: seconds, monotonic.
        Returns: orders, to be carried out one after the other.
        Raises: LocalError for an event of an unknown kind.
        """
        for event in events:
            self.failing = event
            match event:
                case ControlReceived():
                    self._on_received(event, now)
                case ControlLinkUp():
                    self._neighbors.attach(event, now)
                case ControlLinkDown():
                    self._neighbors.detach(event.connection, now)
                    self._allowances.forget(event.connection)
                    self._told_foreign.discard(event.connection)
                case FirstSubscriberAttached():
                    self._addresses.add(event)
                case LastSubscriberLeft():
                    self._addresses.remove(event)
                case TransitEnded():
                    self._neighbors.end_transit()
                case TransitResumed():
                    self._neighbors.resume_transit()
                case _:
                    raise LocalError(f"the control plane knows no event {type(event).__name__}")
        self.failing = None
        return self._settle(now)

    def next_deadline(self) -> float:
        """Time to call `handle_deadline` if nothing happens before, seconds; `math.inf` if never."""
        return min(self._link_state.next_deadline(), self._addresses.next_deadline(), self._forwarder.next_deadline())

    def handle_deadline(self, *, now: float) -> list[Action]:
        """Do what is due at *now* (seconds); nothing when it is called too early. Returns: orders to be carried out."""
        self._link_state.elapse(now)
        self._forwarder.elapse(now)
        return self._settle(now)

    def installed(self) -> list[Action]:
        """The orders that make all of an empty FIB: for one that may not be what earlier orders have made of it."""
        routes = self._sender.routes
        actions: list[Action] = [
            InstallRouter(router=router, connection=route.connection, next_hop=route.next_hop, cost=route.cost)
            for router, route in sorted(routes.items())
        ]
        for router, held in sorted(self._addresses.routers.items()):
            if held.is_installed:
                actions += (
                    InstallAddress(address=address, router=router, treatment=hint)
                    for address, hint in sorted(held.addresses.items())
                )
        return [*actions, TopologyChanged()]

    # For multicast

    def tree(self, root: RouterId) -> TreePlace:
        """This router's place in the tree of *root*: worked out when first asked for, stale after `TopologyChanged`."""
        flooding = {router for router, node in self._link_state.database.nodes.items() if not node.has_trees}
        return self._link_state.routes.topology.tree(root, self.router_id, flooding)

    def flood_trace(
        self, ingress: RouterId, child: RouterId, subscribers: frozenset[RouterId]
    ) -> tuple[RouterId, ...] | None:
        """The trace of a multicast's copy for a child that floods it (`MulticastCopyPredictor.trace`).

        Stale after `TopologyChanged`.

        Args:
            ingress: router where the multicast enters.
            child: neighbor that gets the copy.
            subscribers: routers, others than this one, with subscribers of the address.
        """
        flood = MulticastCopyPredictor(
            self._link_state.routes.topology, subscribers | {self.router_id}, self._is_flooding
        )
        return flood.trace(ingress, self.router_id, child)

    def _is_flooding(self, router: RouterId) -> bool:
        node = self._link_state.database.nodes.get(router)
        return node is not None and not node.has_trees

    # For management

    @property
    def instance(self) -> int:
        """Boot number of this router as it is advertised."""
        return self._link_state.instance

    @property
    def mobile_seq(self) -> int:
        """State of this router's own addresses."""
        return self._addresses.mobile_seq

    def neighbors(self) -> list[NeighborConnectionView]:
        """Every inter-router connection, by router and connection."""
        views = [
            NeighborConnectionView(
                router=c.router,
                connection=c.connection,
                state=c.state.value,
                cost=c.cost,
                is_standby=self._neighbors.is_standby(c),
                pushes_lsu=c.pushes_lsu,
            )
            for c in self._neighbors.connections.values()
        ]
        return sorted(views, key=lambda view: (view.router, view.connection))

    def adjacent(self) -> list[RouterId]:
        """Neighbors that this router hears, and that hear it; sorted."""
        return sorted(self._neighbors.active)

    def duplicate_ids(self, within_s: float, now: float) -> list[RouterId]:
        """Ids that two distant routers have had within *within_s* seconds before *now* (seconds), sorted."""
        return self._link_state.duplicate_ids(within_s, now)

    def own_node(self) -> NodeView:
        """This router itself."""
        return NodeView(
            id=self.router_id,
            instance=self._link_state.instance,
            ls_seq=self._link_state.ls_seq,
            mobile_seq=self._addresses.mobile_seq,
            peers=dict(self._link_state.peers),
            next_hop=None,
            cost=0,
            changed_at=max(self._started_at, self._link_state.changed_at),
        )

    def nodes(self) -> list[NodeView]:
        """Every other router known, reachable or not, by id."""
        return [view for view in map(self.node, self.node_ids()) if view is not None]

    def node_ids(self) -> list[RouterId]:
        """Ids of the same, of which a large mesh has so many that `node` is asked for a few at a time."""
        return sorted(self._link_state.database.nodes)

    def was_heard(self, router: RouterId) -> bool:
        """Whether another router has ever said anything itself."""
        return self._link_state.database.was_heard(router)

    def node(self, router: RouterId) -> NodeView | None:
        """Another router; None for one that is not known."""
        node = self._link_state.database.nodes.get(router)
        if node is None:
            return None
        route = self._sender.routes.get(router)
        held = self._addresses.routers.get(router)
        return NodeView(
            id=router,
            instance=node.instance,
            ls_seq=node.ls_seq,
            mobile_seq=held.seq if held is not None else 0,
            peers=dict(node.peers),
            next_hop=route.next_hop if route is not None else None,
            cost=route.cost if route is not None else None,
            changed_at=node.changed_at,
        )

    def edges(self) -> Edges:
        """Cost of each link of the mesh, in each direction, by its ends; those of unreachable routers as last heard."""
        return self._link_state.routes.known_edges

    def hops(self) -> dict[RouterId, int]:
        """Hops of the path to each other router that can be reached."""
        paths = self._link_state.routes.topology.paths(self.router_id)
        found = {self.router_id: 0}
        if paths is not None:
            for router in paths.order[1:]:
                found[router] = found[paths.predecessor[router]] + 1
        del found[self.router_id]
        return found

    @property
    def convergence_s(self) -> float:
        """Seconds from the news of a change until the routes were computed anew, the last time."""
        return self._link_state.convergence_s

    @property
    def sent(self) -> Mapping[str, int]:
        """Control messages sent, by opcode."""
        return self._sender.sent

    def addresses(self) -> dict[str, list[RouterId]]:
        """Routers with subscribers of each mobile address, this one included, the unreachable left out; all sorted."""
        routers: dict[str, list[RouterId]] = {address: [self.router_id] for address in self._addresses.own}
        for router, held in self._addresses.routers.items():
            if held.is_installed:
                for address in held.addresses:
                    routers.setdefault(address, []).append(router)
        return {address: sorted(routers[address]) for address in sorted(routers)}

    def absent_subscribers(self, address: str) -> list[RouterId]:
        """Routers that were lost lately, and can't be reached, with subscribers of a mobile address; sorted."""
        return self._addresses.absent_subscribers(address)

    def address_counts(self) -> dict[RouterId, int]:
        """Mobile addresses with subscribers at this router, and at each reachable one that has told of some."""
        counts = {router: len(held.addresses) for router, held in self._addresses.routers.items() if held.is_installed}
        return {self.router_id: len(self._addresses.own), **counts}

    def own_addresses(self) -> dict[str, Treatment]:
        """Addresses with local subscribers."""
        return dict(self._addresses.own)

    @property
    def spf_runs(self) -> int:
        """Computations of all routes since the start."""
        return self._link_state.routes.runs

    @property
    def dijkstra_runs(self) -> int:
        """Trees of shortest paths found since the start: its own, and those that multicasts asked for."""
        return self._link_state.routes.topology.runs

    @property
    def known_addresses(self) -> int:
        """Mobile addresses of this router and of all others known, each counted once for each router that has it."""
        return len(self._addresses.own) + self._addresses.count

    @property
    def known_routers(self) -> int:
        """Other routers known, reachable or not."""
        return len(self._link_state.database.nodes)

    def counters(self) -> dict[str, int]:
        """Counts since the start, by name."""
        counts = {
            "spf_runs": self.spf_runs,
            "dijkstra_runs": self.dijkstra_runs,
            "control_dropped": self._forwarder.dropped,
            "control_ignored": self.ignored,
            "control_excess": self.excess,
        }
        counts.update((f"control_received_{opcode}", self.received[opcode]) for opcode in sorted(self.received))
        counts.update((f"control_sent_{opcode}", self._sender.sent[opcode]) for opcode in sorted(self._sender.sent))
        return counts

    def check_invariants(self) -> None:
        """Assert what must hold between two turns."""
        self._link_state.check_invariants()
        self._addresses.check_invariants()

    # Inside

    def _own_mobile_seq(self) -> int:
        return self._addresses.mobile_seq

    def _on_received(self, event: ControlReceived, now: float) -> None:
        message = event.message
        self.received[message.opcode] += 1
        if event.connection not in self._neighbors.connections:
            self.ignored += 1
        elif not isinstance(message, Hello) and not self._allowances.take(event.connection, now):
            self._on_excess(event)
        elif isinstance(message, UnknownMessage) or message.pv > PROTOCOL_VERSION:
            self._on_foreign(event)
        elif isinstance(message, Hello):
            self._link_state.on_hello(event, message, now)
        else:
            target = target_of(event.to)
            if target == self.router_id or target == ALL:
                self._on_addressed(event, now)
            elif target is not None:
                self._forwarder.forward(event, target, now)
            else:
                self.ignored += 1

    def _on_addressed(self, event: ControlReceived, now: float) -> None:
        message = event.message
        match message:
            case RouterAdvertisement():
                if self._link_state.on_advertisement(event, message, now):
                    self._addresses.on_advertised(message.id, message.mobile_seq, now)
            case LinkStateUpdate():
                self._link_state.on_update(event, message, now)
            case LinkStateRequest():
                self._link_state.on_request(event, message)
            case MobileAddressRequest():
                self._addresses.on_request(event, message)
            case MobileAddressUpdate() if message.id == self.router_id:
                # Only a lie can be newer: this router's own changes come back to it at most.
                self._link_state.on_own_claim(self.instance, 0, message.mobile_seq, event, now)
            case MobileAddressUpdate() if message.id in self._link_state.database.nodes:
                if self._link_state.is_hearsay(event):
                    self._addresses.on_hearsay(event, message, now)
                else:
                    self._addresses.on_update(event, message, now)
            case _:
                # A MAU of a router that is not known: its advertisement will say how far its addresses have got.
                self.ignored += 1

    def _on_excess(self, event: ControlReceived) -> None:
        self.excess += 1
        if self._allowances.is_first_excess(event.connection):
            neighbor = self._neighbors.connections[event.connection].router
            self._sender.do(
                Report.warning(
                    "too_many_control_messages",
                    neighbor=neighbor,
                    connection=event.connection,
                    per_second=self.settings.max_control_messages,
                )
            )

    def _on_foreign(self, event: ControlReceived) -> None:
        self.ignored += 1
        message = event.message
        if event.connection not in self._told_foreign:
            self._told_foreign.add(event.connection)
            name = message.name if isinstance(message, UnknownMessage) else message.opcode
            self._sender.do(
                Report.warning(
                    "foreign_message", remote=message.id, connection=event.connection, opcode=name, pv=message.pv
                )
            )

    def _settle(self, now: float) -> list[Action]:
        change = self._link_state.settle(now)
        for claim in self._link_state.superseded_instances.take_believed():
            self._addresses.on_advertised(claim.id, claim.mobile_seq, now)
        if change is not None:
            self._install(change, now)
            self._forwarder.retry()
        if self._addresses.settle(now):
            # After the update, so that nobody asks for what is on its way. Our own kind needs it for lost updates only.
            self._sender.flood(ALL_LINK_STATE_TO, self._link_state.own_advertisement(), FloodScope.PLAIN)
            self._link_state.expect_flux(now)
        self._link_state.requests.ask(now)
        self._addresses.ask(now)
        self._addresses.install(now)
        return self._sender.take()

    def _install(self, change: RoutesDiff, now: float) -> None:
        for router in change.lost:
            self._addresses.lose(router)
        self._addresses.install(now)  # where they are few, a router's addresses go before it
        for router in change.lost:
            self._sender.do(WithdrawRouter(router=router))
            self._sender.do(Report.warning("router_unreachable", remote=router))
        for router in (*change.moved, *change.found):
            route = self._sender.routes[router]
            self._sender.do(
                InstallRouter(router=router, connection=route.connection, next_hop=route.next_hop, cost=route.cost)
            )
        for router in change.repriced:
            # The cost said first is that of the first path found.
            self._sender.do(Report.info("router_cost_changed", remote=router, cost=self._sender.routes[router].cost))
        for router in change.found:
            self._sender.do(Report.info("router_reachable", remote=router, cost=self._sender.routes[router].cost))
            self._addresses.reach(router, now)
        if change.is_topology:
            self._sender.do(TopologyChanged())
