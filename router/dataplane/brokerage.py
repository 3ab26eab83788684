"""All brokers of a router: made when an address needs one, given their turns, forgotten when nobody needs them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from typing import Final

import cython

from mesh_config.models import ForwardingSettings
from router.core.addressing.address import AddressKind
from router.core.forwarding.allotting import Allotting
from router.core.forwarding.fib import MULTICAST, AddressEntry, Fib
from router.core.forwarding.orders import Orders
from router.core.terms import ConnectionId, RouterId
from router.dataplane.anycast import AnycastBroker
from router.dataplane.broker import Broker
from router.dataplane.egress import Egress
from router.dataplane.house import RETIRED_S, House
from router.dataplane.interface import EgressLink, IngressLink, Port, Transfer
from router.dataplane.multicast import MulticastBroker
from router.dataplane.repair import Repair
from router.dataplane.settlement import Settlement
from router.dataplane.waiting import WaitingRoom

if not cython.compiled:  # else they come by the .pxd
    from router.binding.handles import pn_link_queued


class Brokerage(House):
    """The brokers of one router."""

    fault: Callable[[Broker, Exception], None]
    """Told of a fault of ours with one address."""

    def __init__(
        self,
        fib: Fib,
        ports: dict[ConnectionId, Port],
        settings: ForwardingSettings,
        settlement: Settlement,
        egress: Egress,
        waiting: WaitingRoom,
        repair: Repair,
    ) -> None:
        House.__init__(self, fib, ports, settings, settlement, egress, waiting, repair)
        self.rerouted: set[RouterId] = set()
        """Routers whose paths have changed since the last turn."""
        self.is_replanted = False
        """The trees of multicasts have changed since the last turn."""
        self.is_stopping = False
        self._brokers: dict[Broker, None] = {}
        self._deadlines: list[tuple[float, int, Broker]] = []
        self._deadlines_room = DEADLINES_ROOM
        self._number = 0
        self._nobody = Allotting(Orders())
        waiting.expired = self._expired

    def __iter__(self) -> Iterator[Broker]:
        return iter(self._brokers)

    # Who there is

    def of(self, entry: AddressEntry) -> Broker:
        """The broker of an anycast address, made when there is none."""
        broker = entry.broker
        if broker is None:
            kind = MulticastBroker if entry.treatment is MULTICAST else AnycastBroker
            broker = entry.broker = kind(entry, self)
            if self._has_stopped(entry):
                broker.stop()
            self._brokers[broker] = None
            self.touched[broker] = None
        assert isinstance(broker, Broker)
        return broker

    def find(self, entry: AddressEntry | None) -> Broker | None:
        """The broker of an address, if it has one."""
        broker = entry.broker if entry is not None else None
        assert broker is None or isinstance(broker, Broker)
        return broker

    def of_link(self, link: IngressLink) -> Broker:
        """The broker of a link that has one."""
        assert isinstance(link.broker, Broker)
        return link.broker

    def serves(self, entry: AddressEntry | None) -> bool:
        """Whether the credit of an address is brokered."""
        return entry is not None and entry.service is None

    def flowed(self, link: EgressLink) -> None:
        """A local subscriber or a circuit of ours may have other credit or other room than before."""
        broker = link.broker if link.root is not None else self.find(link.entry)
        if link.is_answering and isinstance(broker, Broker):
            broker.give_back(link)
        if isinstance(broker, Broker):
            broker.flowed(link)
        elif link in self.retired:
            self._give_back_retired(link)

    def used_by_copies(self, entry: AddressEntry) -> None:
        """A multicast came as a datagram and has used credit of each local subscriber."""
        broker = self.find(entry)
        if broker is not None:
            for link in entry.subscribers:
                assert isinstance(link, EgressLink)
                broker.touch(link)

    def freed(self) -> None:
        """Datagrams have their outcomes: windows have room again."""
        freed, self.settlement.freed = self.settlement.freed, []
        for entry in freed:
            broker = self.find(entry)
            if isinstance(broker, AnycastBroker) and broker.windowed:
                broker.touch()

    def stop(self) -> None:
        """Take all credit back, but for replies to what is in flight."""
        self.is_stopping = True
        for broker in self._brokers:
            if self._has_stopped(broker.entry):
                broker.stop()

    def _has_stopped(self, entry: AddressEntry) -> bool:
        return self.is_stopping and entry.kind is AddressKind.MOBILE

    # Turns

    def is_due(self) -> bool:
        """Whether `turn` has something to do."""
        return bool(self.touched or self.rerouted or self.is_replanted)

    def turn(self) -> None:
        """Give a turn to each broker for which something has happened, then tell the neighbors of circuits."""
        if self.rerouted or self.is_replanted:
            rerouted, self.rerouted = self.rerouted, set()
            is_replanted, self.is_replanted = self.is_replanted, False
            for broker in list(self._brokers):
                is_multicast = broker.entry.treatment is MULTICAST
                if (is_multicast and is_replanted) or not rerouted.isdisjoint(broker.entry.remotes):
                    self.update_paths(broker)
            self.repair.send_again(self.now)
        while self.touched:
            touched, self.touched = self.touched, {}
            for each in touched:
                assert isinstance(each, Broker)
                self._turn(each)
        words, self.words = self.words, {}
        for port, word in words.items():
            if port.id in self.ports:
                port.tell_circuits(word.weights, word.closed, word.loads)

    def _turn(self, broker: Broker) -> None:
        try:
            broker.turn(self.now)
        except Exception as error:  # a fault with one address must not stop the others
            self.fault(broker, error)
            return
        if broker.deadline < broker.scheduled:
            self._schedule(broker)
        if broker.is_idle:
            self._forget(broker)

    def update_paths(self, broker: Broker) -> None:
        """Routes or subscribers of its address have changed."""
        try:
            broker.update_paths()
        except Exception as error:  # as above
            self.fault(broker, error)

    def _schedule(self, broker: Broker) -> None:
        broker.scheduled = broker.deadline
        self._number += 1
        heapq.heappush(self._deadlines, (broker.deadline, self._number, broker))
        if len(self._deadlines) > self._deadlines_room:  # most of them were for later, and are not needed any more
            self._deadlines = [item for item in self._deadlines if item[2].scheduled == item[0]]
            heapq.heapify(self._deadlines)
            self._deadlines_room = 2 * len(self._deadlines) + DEADLINES_ROOM

    def _forget(self, broker: Broker) -> None:
        if self._brokers.pop(broker, broker) is None:
            broker.entry.broker = None
            broker.scheduled = math.inf
            if isinstance(broker, AnycastBroker):
                broker.let_go(self._nobody)
            for link in broker.entry.subscribers:
                assert isinstance(link, EgressLink)
                link.brokered = link.unspent = 0
            self.fib.forget(broker.entry)

    def next_deadline(self) -> float:
        """When `handle_deadline` is due, seconds; infinity when never."""
        due: float = self._deadlines[0][0] if self._deadlines else NEVER
        due = min(due, self.repair.next_deadline())
        if self.retired:
            due = min(due, next(iter(self.retired.values())))  # in the order of their times
        return due

    def handle_deadline(self, now: float) -> None:
        """Time has passed: `turn` is to be called for those that are due."""
        self.repair.expire(now)
        while self._deadlines and self._deadlines[0][0] <= now:
            time, _, broker = heapq.heappop(self._deadlines)
            if broker.scheduled == time and broker in self._brokers:
                broker.scheduled = math.inf
                self.touched[broker] = None
        for link in [link for link, until in self.retired.items() if until <= now]:
            if self._must_be_written(link):
                del self.retired[link]
                self.retired[link] = now + RETIRED_S  # the last one again
            else:
                self.end(link)

    def _must_be_written(self, link: EgressLink) -> bool:
        """Whether messages on a circuit that is to go are not written yet, and its neighbor is there to take them."""
        route = self.fib.routes.get(link.port.neighbor) if link.port.neighbor is not None else None
        return bool(pn_link_queued(link.handle)) and route is not None and route.connection == link.port.id

    def circuit_gone(self, link: EgressLink) -> None:
        """A circuit of ours was lost."""
        self.retired.pop(link, None)
        if isinstance(link.broker, Broker):
            link.broker.circuit_gone(link)

    # Messages that wait

    def _expired(self, transfer: Transfer) -> None:
        broker = self.find(transfer.entry)
        if broker is not None:
            broker.drop(transfer)


NEVER: Final = math.inf
DEADLINES_ROOM = 1000
"""Deadlines that are kept before those that are not needed any more are looked for."""
