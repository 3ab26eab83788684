"""One simulated router: the credit machine of one address, and the links that it asks things of."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Protocol

from router.core.forwarding.anycast_scheduler import AnycastScheduler, EgressPath
from router.core.forwarding.credit_actions import (
    KEPT,
    CreditAction,
    Grant,
    Key,
    ReturnCredit,
    Send,
    TellNeighborSubscribersWithdrew,
    TellWeight,
)
from router.core.forwarding.credit_scheduler import CreditTiming
from router.core.forwarding.egress_load import EgressLoad
from router.core.forwarding.publisher_credit import LocalPublishers
from router.core.ids_and_conditions import RouterId
from router.testing.clients import SimPublisher
from router.testing.credit_router import NO_TURN, CreditRouter, RouterEnvironment
from router.testing.links import AmqpLink, ignore_flow, ignore_transfer


class AnycastEnvironment(RouterEnvironment, Protocol):
    """Interface that a simulated router needs of its mesh."""

    def neighbor(self, router: RouterId) -> AnycastRouter:
        """A router by name."""

    def delivered(self, message: int) -> None:
        """A message was sent to a subscriber."""

    has_outcomes: bool
    """Whether subscribers settle messages, and routers look at loads."""


class AnycastRouter(CreditRouter):
    """A router as far as the credit of one anycast address goes."""

    def __init__(
        self,
        name: RouterId,
        mesh: AnycastEnvironment,
        timing: CreditTiming,
        *,
        is_closest: bool,
        distance: float = 0.0,
    ) -> None:
        self.machine = AnycastScheduler(timing=timing, is_closest=is_closest, distance=distance)
        super().__init__(name, self.machine, mesh)
        self.subscribers: list[AmqpLink] = []
        self.own: dict[RouterId, tuple[RouterId, AmqpLink]] = {}
        """Own circuits by egress: next hop and link."""
        self.orders = 0
        """Number of grants and lowerings ordered for publishers."""
        self._mesh = mesh
        self._withdrawn: dict[AmqpLink, None] = {}
        """Local subscribers that took their credit back."""
        self._turn = 0
        self._sources: dict[int, AmqpLink] = {}
        """Messages that were sent on and have no outcome, each with the link that it came on."""
        self._counted: dict[AmqpLink, tuple[RouterId | None, EgressLoad]] = {}
        """Links whose messages without an outcome are part of a load: to which neighbor, None for a subscriber."""
        self._report_at = math.inf

    # What the machine wants done

    def _carry_out(self, action: CreditAction) -> None:
        match action:
            case TellNeighborSubscribersWithdrew():
                egress, neighbor, link = self.circuits[action.circuit]
                upstream = self._mesh.neighbor(neighbor)
                link.back.send(lambda: upstream.circuit_closed(egress, link))
            case Send():
                self._send(action.message, action.egress)
            case ReturnCredit():
                self._return(action.root)
            case TellWeight():
                self._tell_weight(action.root, action.weight)
            case _:
                self.orders += isinstance(action, Grant)
                super()._carry_out(action)

    def _send(self, message: Key, egress: RouterId) -> None:
        assert isinstance(message, int)
        if egress != self.name:
            neighbor, own = self.own[egress]
            self._count(own, neighbor, egress)
            own.send(message)
            return
        # One that drains is served first, so that its drain ends; then by turns.
        links = sorted((link for link in self.subscribers if link.credit > 0), key=lambda link: not link.is_drained)
        link = links[0]
        if not link.is_drained:
            self._turn += 1
            links = links[self._turn % len(links) :] + links[: self._turn % len(links)]
            link = min(links, key=lambda each: each.unsettled)
        self._count(link, None, egress)
        self._mesh.delivered(message)
        link.send(message)

    def _return(self, egress: RouterId) -> None:
        if egress == self.name:
            links = [link for link in self.subscribers if link.is_drained]
        else:
            links = [self.own[egress][1]]
        for link in links:
            link.give_back()
            self._withdrawn[link] = None

    def _tell_weight(self, egress: RouterId, weight: int) -> None:
        """Tell the next hop a circuit's weight, over the circuit's connection; the first weight makes the circuit."""
        next_hop = self.machine.pools[egress].next_hop
        assert next_hop is not None
        wires = self._mesh.wires(self.name, next_hop)
        if wires is None:
            return
        there = self._mesh.neighbor(next_hop)
        if egress not in self.own:
            link = AmqpLink(*wires)
            link.on_flow = lambda _: self.do(lambda _: self._own_changed(egress, link))
            link.on_settled = lambda message: self._settled(link, message)
            self.own[egress] = (next_hop, link)
            wires[0].send(lambda: there.circuit_attached(egress, self.name, link))
        link = self.own[egress][1]
        wires[0].send(lambda: there.weight_told(egress, link, weight))

    # Events

    def do(self, event: Callable[[float], object]) -> None:
        """Tell the machine one event, have its turn, unless that returns `NO_TURN`, and write what it ordered."""
        super().do(event)
        if self._mesh.has_outcomes:
            self._report()

    def _report(self) -> None:
        """Tell neighbors of loads."""
        if not self.is_alive:
            return
        now = self._mesh.network.now
        unsettled = {key: self.circuits[key][2].in_flight for key in self.machine.told_circuits()}
        reports, due = self.machine.reports(unsettled, now)
        for key, elsewhere, subscribers in reports:
            egress, neighbor, link = self.circuits[key]
            there = self._mesh.neighbor(neighbor)
            link.back.send(functools.partial(there.load_told, egress, link, elsewhere, subscribers))
        if due < self._report_at or self._report_at <= now:
            self._report_at = due
            if due < math.inf:
                self._mesh.network.call_at(due, lambda: self._report() if self._report_at == due else None)

    def load_told(self, egress: RouterId, link: AmqpLink, elsewhere: int, subscribers: int) -> None:
        """The next hop toward an egress told of the load there."""
        if self.own.get(egress, (None, None))[1] is link and egress in self.machine.pools:
            self.machine.pools[egress].load.told(elsewhere, subscribers, self._mesh.network.now)

    def _count(self, link: AmqpLink, neighbor: RouterId | None, egress: RouterId) -> None:
        """A message goes out on a link."""
        if self._mesh.has_outcomes:
            load = self._counted.setdefault(link, (neighbor, self.machine.pools[egress].load))[1]
            load.sent()

    def _lose(self, link: AmqpLink) -> None:
        """A link is gone: its messages have no outcome any more."""
        if link in self._counted:
            self._counted.pop(link)[1].unsettled -= link.unsettled
        link.on_settled = ignore_transfer

    def _settled(self, link: AmqpLink, message: int) -> None:
        """A message that was sent on has its outcome."""
        if link in self._counted:
            self._counted[link][1].settled(link, False)
        source = self._sources.pop(message, None)
        if source is not None:
            source.settle(message)

    def _restate(self, now: float) -> None:
        if self.name not in self.machine.pools or not self.machine.pools[self.name].has_path:
            return
        self.machine.pools[self.name].load.subscribers = max(1, sum(link.credit > 0 for link in self.subscribers))
        self.machine.set_capacity(
            self.name,
            sum(link.credit for link in self.subscribers),
            now,
            returning=sum(link.credit for link in self.subscribers if link.is_drained),
            is_withdrawn=all(link in self._withdrawn for link in self.subscribers),
        )

    def _granted(self, link: AmqpLink, before: int) -> None:
        """A local subscriber's flow arrived; it had *before* unspent."""
        if link.credit > 0:
            self._withdrawn.pop(link, None)
        elif before > 0:
            self._withdrawn[link] = None

    def attach_publisher(self, publisher: SimPublisher) -> None:
        """A publisher's attach arrived."""
        link, key = publisher.link, publisher.key
        link.on_transfer = lambda message: self.do(lambda now: self._published(key, message, now))
        self.publishers[key] = link
        self.do(lambda _: self.machine.add_publisher(key))

    def _published(self, key: Key, message: int, now: float) -> object:
        """Take a message. As in a router, one that is sent as it comes causes a turn only where the machine asks."""
        if self._mesh.has_outcomes:
            self._sources[message] = self.publishers[key]
        result = self.machine.published(key, message, now)
        self._take(message, result)
        return NO_TURN if result >= 0 and not self.machine.is_due else None

    def _take(self, message: int, result: int) -> None:
        """Do with a message that came as the machine says."""
        if result >= 0:
            self._send(message, self.machine.egresses[result])
        elif result != KEPT:
            self._mesh.released(message)
        for action in self.machine.take_actions():
            self._carry_out(action)

    @property
    def local_publishers(self) -> LocalPublishers:
        """Publishers that are attached to this router."""
        return self.machine.publishers

    def detach_publisher(self, key: Key) -> None:
        """A publisher's detach arrived, or its connection ended."""
        machine = self.machine
        self.do(lambda _: self._lose_publisher(key, machine.publishers, machine.remove_publisher, machine.drop))

    def attach_subscriber(self, link: AmqpLink) -> None:
        """A local subscriber's attach arrived."""
        link.on_flow = lambda before: self.do(lambda _: self._granted(link, before))
        link.on_settled = lambda message: self._settled(link, message)
        self.subscribers.append(link)

    def detach_subscriber(self, link: AmqpLink) -> None:
        """A local subscriber's detach arrived."""
        self.subscribers.remove(link)
        self._withdrawn.pop(link, None)
        self._lose(link)
        link.end_sender()
        self.do(lambda _: None)

    def circuit_attached(self, egress: RouterId, neighbor: RouterId, link: AmqpLink) -> None:
        """A neighbor made a circuit."""
        self.circuits[link] = (egress, neighbor, link)
        link.on_transfer = lambda message: self.do(lambda now: self._arrived(egress, link, message, now))
        link.on_returned = lambda credit: self.do(lambda _: self.machine.circuit_drained(egress, link, credit))
        self.do(lambda _: self.machine.add_circuit(egress, link, neighbor))

    def _arrived(self, egress: RouterId, link: AmqpLink, message: int, now: float) -> None:
        if self._mesh.has_outcomes:
            self._sources[message] = link
        self._take(message, self.machine.arrived(egress, link, message, now))

    def weight_told(self, egress: RouterId, link: AmqpLink, weight: int) -> None:
        """A neighbor told the weight of its circuit."""
        if link in self.circuits:
            self.do(lambda _: self.machine.set_weight(egress, link, weight))

    def circuit_closed(self, egress: RouterId, link: AmqpLink) -> None:
        """The next hop told that the egress's subscribers have withdrawn."""
        if self.own.get(egress, (None, None))[1] is link:
            self.do(lambda _: self.machine.closed(egress))

    def circuit_detached(self, link: AmqpLink) -> None:
        """A neighbor ended a circuit, or its connection is gone."""
        entry = self.circuits.pop(link, None)
        if entry is not None:
            link.end_receiver()
            self.do(lambda _: self.machine.remove_circuit(entry[0], link))

    def _own_changed(self, egress: RouterId, link: AmqpLink) -> None:
        pool = self.machine.pools.get(egress)
        if pool is not None and pool.has_path:
            returning = link.credit if link.is_drained else 0
            self.machine.set_capacity(egress, link.credit, self._mesh.network.now, returning=returning)

    # Paths

    def install(self, paths: dict[RouterId, tuple[int, RouterId | None]]) -> None:
        """The control plane's word: for each egress with subscribers its cost and next hop."""
        self.do(lambda now: self._install(paths, now))

    def _install(self, paths: dict[RouterId, tuple[int, RouterId | None]], now: float) -> None:
        for egress, (next_hop, _) in list(self.own.items()):
            if egress not in paths or paths[egress][1] != next_hop:
                self._leave(egress)
        lost = self.machine.set_paths({egress: EgressPath(*path) for egress, path in paths.items()}, now)
        for message in lost:
            assert isinstance(message, int)
            self._mesh.released(message)

    def _leave(self, egress: RouterId) -> None:
        next_hop, link = self.own.pop(egress)
        link.end_sender()
        there = self._mesh.neighbor(next_hop)
        link.forth.send(lambda: there.circuit_detached(link))

    def connection_lost(self, neighbor: RouterId) -> None:
        """All links with *neighbor* are gone."""
        for link in [link for _, other, link in self.circuits.values() if other == neighbor]:
            self.circuit_detached(link)
        for link in [link for link, (other, _) in self._counted.items() if other == neighbor]:
            self._lose(link)
        self.reconnected(neighbor)

    def reconnected(self, neighbor: RouterId) -> None:
        """Circuits through *neighbor* are to be made again."""
        for egress in [egress for egress, (hop, _) in self.own.items() if hop == neighbor]:
            self.own.pop(egress)[1].on_flow = ignore_flow
        for egress, pool in self.machine.pools.items():
            if pool.has_path and pool.next_hop == neighbor:
                self.do(lambda now, egress=egress: self.machine.circuit_lost(egress, now))  # type: ignore[misc]
