"""A model of qdrouterd 1.19's control plane, defects included, as a participant of a simulated mesh.

It acts once a second, fetches every link state itself, floods RA and MAU along every path (so copies come by), answers
copies of a MAU with needless requests, keeps what it had of unreachable routers, and never checks that an edge is
advertised by both ends.

Source: docs/reference/inter-router-protocol.md#control-messages;
docs/explanation/deviations.md#dev-16-repeated-address-updates-are-ignored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import attrs

from router.core.events import (
    Action,
    ControlLinkDown,
    ControlLinkUp,
    ControlReceived,
    Event,
    FirstSubscriberAttached,
    LastSubscriberLeft,
    SendControl,
)
from router.core.ids_and_conditions import ConnectionId, RouterId
from router.core.linkstate.control_message_sender import ALL, target_of
from router.core.linkstate.messages import (
    HINT_OF_TREATMENT,
    ControlMessage,
    Hello,
    LinkStateRequest,
    LinkStateUpdate,
    MobileAddressRequest,
    MobileAddressUpdate,
    RouterAdvertisement,
    mobile_key,
)
from router.core.linkstate.spf import Topology

TICK_S = 1.0
FLUX_S = 4.0
CALM_S = 30.0
MAX_AGE_S = 60.0


@attrs.define(kw_only=True)
class PlainNode:
    seq: int = 0
    peers: Mapping[RouterId, int] = attrs.field(factory=dict)
    last_seen: float = 0.0
    instance: int | None = None
    needs_lsr: bool = True
    needs_mar: bool = False
    is_mar_out: bool = False
    mobile_seq: int = 0
    keys: set[str] = attrs.field(factory=set)


class PlainRouter:
    def __init__(self, router_id: str, instance: int) -> None:
        self.id = RouterId(router_id)
        self.instance = instance
        self.seq = 0
        self.mobile_seq = 0
        self.peers: dict[RouterId, int] = {}
        self.nodes: dict[RouterId, PlainNode] = {}
        self.next_hops: dict[RouterId, RouterId] = {}
        self.costs: dict[ConnectionId, int] = {}
        self.bound: dict[RouterId, ConnectionId] = {}
        self.bindings = 0
        """How often a neighbor was bound to another connection: flapping shows here."""
        self.heard: dict[RouterId, float] = {}
        self.refreshed: dict[RouterId, float] = {}
        self.own: dict[str, int] = {}
        self.added: dict[str, int] = {}
        self.deleted: list[str] = []
        self.is_changed = False
        self.is_dirty = False
        self.tick_at = math.nan
        self.ra_at = 0.0
        self.changed_at = -math.inf
        self.mars_sent = 0
        self.updates_unasked = 0
        self.asked: set[RouterId] = set()
        self.radius = 1
        self.actions: list[Action] = []

    # The three drivers

    def handle(self, events: Sequence[Event], *, now: float) -> list[Action]:
        if math.isnan(self.tick_at):
            self.tick_at = now + TICK_S
        for event in events:
            match event:
                case ControlLinkUp():
                    self.costs[event.connection] = event.cost
                case ControlLinkDown():
                    self.costs.pop(event.connection, None)
                    for router, connection in list(self.bound.items()):
                        if connection == event.connection:
                            self._lose(router)
                case ControlReceived():
                    self._on_received(event, now)
                case FirstSubscriberAttached():
                    self.added[mobile_key(event.address)] = HINT_OF_TREATMENT[event.treatment]
                case LastSubscriberLeft():
                    key = mobile_key(event.address)
                    if self.added.pop(key, None) is None:
                        self.deleted.append(key)
        return self._take()

    def next_deadline(self) -> float:
        return math.inf if math.isnan(self.tick_at) else self.tick_at

    def handle_deadline(self, *, now: float) -> list[Action]:
        self.tick_at = now + TICK_S
        self.heard = {router: time for router, time in self.heard.items() if now - time <= 3.0}
        for connection in self.costs:
            self._write(
                connection, "amqp:/_local/qdhello", Hello(id=self.id, instance=self.instance, seen=tuple(self.heard))
            )
        for router in [router for router in self.bound if now - self.refreshed[router] > 3.0]:
            self._lose(router)
        for node in self.nodes.values():
            if now - node.last_seen > MAX_AGE_S and node.peers:
                node.peers, node.seq, self.is_dirty = {}, 0, True
        is_due = now >= self.ra_at
        if self.is_changed:
            self.seq += 1
            self.is_changed, self.is_dirty, is_due = False, True, True
        if self.is_dirty:
            self._compute(now)
        self._send_pending()
        if self.added or self.deleted:
            self.mobile_seq += 1
            update = MobileAddressUpdate(
                id=self.id,
                mobile_seq=self.mobile_seq,
                add=tuple(self.added),
                delete=tuple(self.deleted),
                hints=tuple(self.added.values()),
            )
            self._flood("_topo/0/all/qdrouter.ma", update)
            self.own.update(self.added)
            for key in self.deleted:
                self.own.pop(key, None)
            self.added, self.deleted, is_due = {}, [], True
        if is_due:
            self._flood("amqp:/_topo/0/all/qdrouter", self._advertisement())
            self.ra_at = now + (FLUX_S if now - self.changed_at < 2 * FLUX_S else CALM_S)
        return self._take()

    def addresses(self) -> set[tuple[str, RouterId]]:
        return {(key[2:], router) for router, node in self.nodes.items() for key in node.keys if key[:2] == "M0"}

    # Messages

    def _on_received(self, event: ControlReceived, now: float) -> None:  # noqa: C901
        message = event.message
        if event.connection not in self.costs:
            return
        if isinstance(message, Hello):
            self._on_hello(event.connection, message, now)
            return
        target = target_of(event.to)
        assert target is not None
        if target == ALL and self.id not in event.trace:
            for router, connection in self.bound.items():
                if router not in event.trace:
                    self._write(connection, event.to, message, event.trace)
        elif target != self.id and target != ALL:
            hop = self.next_hops.get(target)
            if hop in self.bound and hop not in event.trace and len(event.trace) <= self.radius + 1:
                self._write(self.bound[hop], event.to, message, event.trace)
            return
        if message.id == self.id:
            return
        match message:
            case RouterAdvertisement():
                self._on_advertisement(message, now)
            case LinkStateUpdate():
                self.updates_unasked += message.id not in self.asked
                node = self.nodes.setdefault(message.id, PlainNode(last_seen=now))
                if message.ls_seq > node.seq:
                    node.seq, node.peers, node.last_seen, self.is_dirty = message.ls_seq, message.peers, now, True
                    for peer in message.peers:
                        if peer != self.id:
                            self.nodes.setdefault(peer, PlainNode(last_seen=now))
            case LinkStateRequest():
                self.nodes.setdefault(message.id, PlainNode(last_seen=now))
                update = LinkStateUpdate(id=self.id, instance=self.instance, ls_seq=self.seq, peers=dict(self.peers))
                self._send(message.id, f"amqp:/_topo/0/{message.id}/qdrouter", update)
            case MobileAddressRequest() if message.have_seq < self.mobile_seq:
                answer = MobileAddressUpdate(
                    id=self.id, mobile_seq=self.mobile_seq, exist=tuple(self.own), hints=tuple(self.own.values())
                )
                self._send(message.id, f"amqp:/_topo/0/{message.id}/qdrouter.ma", answer)
            case MobileAddressUpdate():
                self._on_addresses(message)

    def _on_hello(self, connection: ConnectionId, message: Hello, now: float) -> None:
        if message.id == self.id:
            return
        self.heard[message.id] = now
        if self.id not in message.seen:
            return
        node = self.nodes.setdefault(message.id, PlainNode(last_seen=now))
        self.refreshed[message.id] = now
        self._boot(node, message.instance)
        if self.bound.get(message.id) != connection:
            self.bindings += 1
            self.bound[message.id] = connection
            node.needs_lsr = True
            # The cost of a neighbor that is listed already stays what it was.
            self.peers.setdefault(message.id, self.costs[connection])
            self.is_changed = True

    def _on_advertisement(self, message: RouterAdvertisement, now: float) -> None:
        node = self.nodes.setdefault(message.id, PlainNode(last_seen=now))
        self._boot(node, message.instance)
        node.last_seen = now
        if node.seq < message.ls_seq:
            self._ask(message.id)
        node.needs_mar |= node.mobile_seq < message.mobile_seq

    def _on_addresses(self, message: MobileAddressUpdate) -> None:
        node = self.nodes.get(message.id)
        if node is None:
            return
        if message.exist is not None:
            node.keys = set(message.exist)
        else:
            if message.mobile_seq != node.mobile_seq + 1 and not node.is_mar_out:
                self._ask_addresses(message.id, node)
                return
            node.keys |= set(message.add)
            node.keys -= set(message.delete)
        node.is_mar_out = False
        node.mobile_seq = message.mobile_seq

    def _boot(self, node: PlainNode, instance: int) -> None:
        if node.instance not in (None, instance):
            node.peers, node.seq, node.mobile_seq, self.is_dirty = {}, 0, 0, True
            node.keys.clear()
            node.needs_lsr = True
        node.instance = instance

    def _advertisement(self) -> RouterAdvertisement:
        return RouterAdvertisement(id=self.id, instance=self.instance, ls_seq=self.seq, mobile_seq=self.mobile_seq)

    # Sending

    def _send_pending(self) -> None:
        for router, node in self.nodes.items():
            if router in self.bound or router in self.next_hops:
                if node.needs_lsr:
                    node.needs_lsr = False
                    self._ask(router)
                if node.needs_mar:
                    node.needs_mar = False
                    self._ask_addresses(router, node)

    def _ask(self, router: RouterId) -> None:
        self.asked.add(router)
        self._send(router, f"amqp:/_topo/0/{router}/qdrouter", LinkStateRequest(id=self.id))

    def _ask_addresses(self, router: RouterId, node: PlainNode) -> None:
        node.is_mar_out = True
        self.mars_sent += 1
        request = MobileAddressRequest(id=self.id, have_seq=node.mobile_seq)
        self._send(router, f"amqp:/_topo/0/{router}/qdrouter.ma", request)

    def _send(self, router: RouterId, to: str, message: ControlMessage) -> None:
        connection = self.bound.get(router) or self.bound.get(self.next_hops.get(router, router))
        if connection is not None:
            self._write(connection, to, message)

    def _flood(self, to: str, message: ControlMessage) -> None:
        for connection in self.bound.values():
            self._write(connection, to, message)

    def _write(
        self, connection: ConnectionId, to: str, message: ControlMessage, trace: tuple[RouterId, ...] = ()
    ) -> None:
        self.actions.append(
            SendControl(connection=connection, to=to, message=message, ingress=message.id, trace=(*trace, self.id))
        )

    def _take(self) -> list[Action]:
        actions, self.actions = self.actions, []
        return actions

    # Paths

    def _lose(self, router: RouterId) -> None:
        self.bound.pop(router, None)
        if self.peers.pop(router, None) is not None:
            self.is_changed = True

    def _compute(self, now: float) -> None:
        self.is_dirty, self.changed_at = False, now
        edges = {self.id: dict(self.peers)}
        edges.update((router, dict(node.peers)) for router, node in self.nodes.items() if node.peers)
        for router, peers in list(edges.items()):
            for peer in peers:
                edges.setdefault(peer, {router: 1})
        topology = Topology()
        topology.replace(edges)
        paths = topology.paths(self.id)
        assert paths is not None
        # What is unreachable keeps its last next hop.
        self.next_hops.update(paths.next_hop)
        self.radius = paths.radius
