"""One simulated router: the credit machine of one multicast address, and the links that it asks things of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from router.core.forwarding.credit_actions import (
    KEPT,
    CreditAction,
    Key,
    ReturnCredit,
    TellNeighborSubscribersWithdrew,
    TellWeight,
)
from router.core.forwarding.credit_scheduler import CreditTiming
from router.core.forwarding.multicast_scheduler import MulticastScheduler
from router.core.forwarding.multicast_subscribers import ExclusionTiming
from router.core.forwarding.multicast_tree import (
    AnswerSubscriberDrain,
    BranchExcluded,
    RepairReopenedBranch,
    SendCopies,
)
from router.core.forwarding.publisher_credit import LocalPublishers
from router.core.ids_and_conditions import RouterId
from router.testing.clients import SimPublisher
from router.testing.credit_router import CreditRouter, RouterEnvironment
from router.testing.links import AmqpLink, ignore_flow

Place = tuple[dict[RouterId, int], RouterId | None]
"""Place of a router in a tree: its children below which there are subscribers, each with the number of routers that are
reached by it, itself included; and its predecessor."""


class MulticastEnvironment(RouterEnvironment, Protocol):
    """Interface that a simulated router needs of its mesh."""

    def neighbor(self, router: RouterId) -> MulticastRouter:
        """A router by name."""

    def departed(self, message: int) -> None:
        """A message left its ingress router: a copy was sent on every branch."""

    def copied(
        self, message: int, router: RouterId, subscribers: Sequence[AmqpLink], missed: Sequence[AmqpLink]
    ) -> None:
        """A message passed a router: copies were sent to some of its subscribers, and others missed it."""

    def excluded(self, router: RouterId, neighbor: RouterId) -> None:
        """A router excluded a neighbor that held up the others."""


class MulticastRouter(CreditRouter):
    """A router as far as the credit of one multicast address goes."""

    def __init__(
        self, name: RouterId, mesh: MulticastEnvironment, timing: CreditTiming, patience: ExclusionTiming
    ) -> None:
        self.machine = MulticastScheduler(name, timing=timing, patience=patience)
        super().__init__(name, self.machine, mesh)
        self.subscribers: dict[AmqpLink, None] = {}
        self.own: dict[tuple[RouterId, RouterId], AmqpLink] = {}
        """Outgoing circuits by ingress router and child."""
        self._mesh = mesh
        self._place: Callable[[RouterId], Place] = lambda _: ({}, None)
        """The paths as they were last installed: this router's place in the tree of an ingress."""

    # What the machine wants done

    def _carry_out(self, action: CreditAction) -> None:
        match action:
            case TellNeighborSubscribersWithdrew():
                ingress, neighbor, link = self.circuits[action.circuit]
                upstream = self._mesh.neighbor(neighbor)
                link.flush()  # what was granted before is told before
                link.back.send(lambda: upstream.circuit_closed(ingress, self.name, link))
            case SendCopies():
                self._send_copies(action)
            case ReturnCredit():
                assert action.neighbor is not None
                self.own[action.root, action.neighbor].give_back()
            case AnswerSubscriberDrain():
                assert isinstance(action.subscriber, AmqpLink)
                action.subscriber.give_back()
            case TellWeight():
                assert action.neighbor is not None
                self._tell_weight(action.root, action.neighbor, action.weight)
            case BranchExcluded():
                self._mesh.excluded(self.name, action.neighbor)
            case RepairReopenedBranch():
                pass  # nothing is sent again here
            case _:
                super()._carry_out(action)

    def _send_copies(self, action: SendCopies) -> None:
        message = action.message
        assert isinstance(message, int)
        for neighbor in action.neighbors:
            self.own[action.ingress, neighbor].send(message)
        links = [link for link in action.subscribers if isinstance(link, AmqpLink)]
        for link in links:
            link.send(message)
        self._mesh.copied(message, self.name, links, [link for link in action.missed if isinstance(link, AmqpLink)])
        if action.ingress == self.name:
            self._mesh.departed(message)

    def _tell_weight(self, ingress: RouterId, neighbor: RouterId, weight: int) -> None:
        """Tell a child the weight of a circuit, over the circuit's connection; the first weight makes the circuit."""
        wires = self._mesh.wires(self.name, neighbor)
        if wires is None:
            return
        there = self._mesh.neighbor(neighbor)
        if (ingress, neighbor) not in self.own:
            link = AmqpLink(*wires)
            link.on_flow = lambda _: self.do(lambda _: self._own_changed(ingress, neighbor, link))
            self.own[ingress, neighbor] = link
            wires[0].send(lambda: there.circuit_attached(ingress, self.name, link))
        link = self.own[ingress, neighbor]
        wires[0].send(lambda: there.weight_told(ingress, link, weight))

    # Events

    def attach_publisher(self, publisher: SimPublisher) -> None:
        """A publisher's attach arrived."""
        link, key = publisher.link, publisher.key
        link.on_transfer = lambda message: self.do(lambda now: self._published(key, message, now))
        self.publishers[key] = link
        self.do(lambda _: self.machine.add_publisher(key))

    def _published(self, key: Key, message: int, now: float) -> None:
        if self.machine.published(key, message, now) != KEPT:
            self._mesh.released(message)

    @property
    def local_publishers(self) -> LocalPublishers:
        """Publishers that are attached to this router."""
        return self.machine.publishers

    def detach_publisher(self, key: int) -> None:
        """A publisher's detach arrived, or its connection ended."""
        machine = self.machine
        publishers = machine.publishers
        self.do(lambda _: self._lose_publisher(key, publishers, machine.remove_publisher, machine.drop))

    def attach_subscriber(self, link: AmqpLink) -> None:
        """A local subscriber's attach arrived."""
        link.on_flow = lambda before: self.do(lambda now: self._granted(link, before, now))
        self.subscribers[link] = None
        self.do(lambda _: self.machine.local_subscribers.add(link))

    def _granted(self, link: AmqpLink, before: int, now: float) -> None:
        is_withdrawn = link.credit == 0 and before > 0
        self.machine.local_subscribers.changed(
            link, link.credit, now, is_draining=link.is_drained, is_withdrawn=is_withdrawn
        )

    def detach_subscriber(self, link: AmqpLink) -> None:
        """A local subscriber's detach arrived."""
        del self.subscribers[link]
        link.end_sender()
        self.do(lambda now: self._lose(self.machine.remove_subscriber(link, now)))

    def _lose(self, messages: Sequence[Key]) -> None:
        for message in messages:
            assert isinstance(message, int)
            self._mesh.released(message)

    def circuit_attached(self, ingress: RouterId, neighbor: RouterId, link: AmqpLink) -> None:
        """A neighbor made a circuit."""
        self.circuits[link] = (ingress, neighbor, link)
        link.on_transfer = lambda message: self.do(lambda now: self.machine.arrived(ingress, link, message, now))
        link.on_returned = lambda credit: self.do(lambda _: self.machine.circuit_drained(ingress, link, credit))

        def attached(now: float) -> None:
            self.machine.add_circuit(ingress, link, neighbor)
            self._set_children(ingress)

        self.do(attached)

    def weight_told(self, ingress: RouterId, link: AmqpLink, weight: int) -> None:
        """A neighbor told the weight of its circuit."""
        if link in self.circuits:
            self.do(lambda _: self.machine.set_weight(ingress, link, weight))

    def circuit_closed(self, ingress: RouterId, neighbor: RouterId, link: AmqpLink) -> None:
        """A child told that nobody below it is live."""
        if self.own.get((ingress, neighbor)) is link:
            self.do(lambda _: self.machine.outlet_closed(ingress, neighbor))

    def circuit_detached(self, link: AmqpLink) -> None:
        """A neighbor ended a circuit, or its connection is gone."""
        entry = self.circuits.pop(link, None)
        if entry is None:
            return
        ingress = entry[0]
        link.end_receiver()

        def detached(now: float) -> None:
            self.machine.remove_circuit(ingress, link)
            self._set_children(ingress)

        self.do(detached)

    def _own_changed(self, ingress: RouterId, neighbor: RouterId, link: AmqpLink) -> None:
        if self.own.get((ingress, neighbor)) is link:
            self.machine.set_outlet(ingress, neighbor, link.credit, is_draining=link.is_drained)

    # Paths

    def install(self, place: Callable[[RouterId], Place]) -> None:
        """The control plane's word: this router's place in the tree of any ingress."""
        self._place = place

        def installed(now: float) -> None:
            for ingress in list(self.machine.trees):
                self._set_children(ingress)

        self.do(installed)

    def _set_children(self, ingress: RouterId) -> None:
        children, predecessor = self._place(ingress)
        if ingress != self.name and not any(root == ingress for root, _, _ in self.circuits.values()):
            children = {}  # the tree ends
        for root, child in [key for key in self.own if key[0] == ingress and key[1] not in children]:
            link = self.own.pop((root, child))
            link.end_sender()
            there = self._mesh.neighbor(child)
            link.forth.send(lambda there=there, link=link: there.circuit_detached(link))  # type: ignore[misc]
        self._lose(self.machine.set_children(ingress, list(children), predecessor, list(children.values())))

    def connection_lost(self, neighbor: RouterId) -> None:
        """All links with *neighbor* are gone."""
        for link in [link for _, other, link in self.circuits.values() if other == neighbor]:
            self.circuit_detached(link)
        self.reconnected(neighbor)

    def reconnected(self, neighbor: RouterId) -> None:
        """Circuits to *neighbor* are to be made again."""
        for ingress, child in [key for key in self.own if key[1] == neighbor]:
            self.own.pop((ingress, child)).on_flow = ignore_flow
        for ingress in list(self.machine.trees):
            self.do(lambda _, ingress=ingress: self.machine.outlet_lost(ingress, neighbor))  # type: ignore[misc]
