"""All brokers of a router: made when an address needs one, given their turns, forgotten when nobody needs them."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Protocol

import attrs

from mesh_config.models import ForwardingSettings, Treatment
from router.binding.handles import pn_link_drained, pn_link_get_drain, pn_link_queued
from router.core.addressing.address import AddressKind
from router.core.forwarding.audience import Patience
from router.core.forwarding.fib import AddressEntry, Fib, Route
from router.core.forwarding.orders import Timing
from router.core.terms import ConnectionId, RouterId
from router.dataplane.anycast import AnycastBroker
from router.dataplane.broker import Broker
from router.dataplane.egress import Egress
from router.dataplane.interface import EgressLink, IngressLink, Port, Transfer
from router.dataplane.multicast import MulticastBroker
from router.dataplane.settlement import Settlement
from router.dataplane.waiting import WaitingRoom


@attrs.define
class Word:
    """What a neighbor is to be told of circuits at the end of a turn."""

    weights: dict[str, int] = attrs.Factory(dict)
    """Of our circuits, by link name."""
    closed: list[str] = attrs.Factory(list)
    """Its circuits whose subscribers have withdrawn, by link name."""


class Sender(Protocol):
    """What a broker asks of the forwarder."""

    def dispatch(self, transfer: Transfer) -> None:
        """Choose a way for a message anew."""

    def hold(self, transfer: Transfer) -> None:
        """Collect a message until it is whole, or too large; then `dispatch` it."""

    def send_copy_as_datagram(self, transfer: Transfer, ingress: RouterId, neighbor: RouterId) -> None:
        """Send a copy of a multicast on a data link of a neighbor; not if it is no message."""

    def send_datagram(self, transfer: Transfer, route: Route) -> None:
        """Send a message on the data links of a neighbor."""


class Brokerage:
    """The brokers of one router, and what they share."""

    forwarder: Sender
    guard: Callable[[Broker, Callable[[], None]], bool]
    """Does something for a broker. Returns False when that failed by a fault of ours, which must not stop others."""
    end_circuit: Callable[[EgressLink], None]
    """Forgets a circuit of ours and ends its link."""

    def __init__(
        self,
        fib: Fib,
        ports: dict[ConnectionId, Port],
        settings: ForwardingSettings,
        settlement: Settlement,
        egress: Egress,
        waiting: WaitingRoom,
    ) -> None:
        self.now = 0.0
        """Seconds, monotonic; set before each batch of events."""
        self.fib = fib
        self.ports = ports
        self.settlement = settlement
        self.egress = egress
        self.waiting = waiting
        self.window = settings.publisher_window
        self.brokered_messages = settings.brokered_messages
        self.circuit_idle_s = settings.circuit_idle_s
        self.retry_s = RETRY_S
        self.patience = Patience(grace_s=settings.grace_s)
        self.timing = Timing(
            quarantine_s=settings.quarantine_s, linger_s=settings.linger_s, drain_bound_s=settings.drain_bound_s
        )
        self._settings = settings
        self.touched: dict[Broker, None] = {}
        """Brokers that are to have a turn."""
        self.rerouted: set[RouterId] = set()
        """Routers whose paths have changed since the last turn."""
        self.is_replanted = False
        """The trees of multicasts have changed since the last turn."""
        self.is_stopping = False
        self._brokers: dict[Broker, None] = {}
        self._deadlines: list[tuple[float, int, Broker]] = []
        self._deadlines_room = DEADLINES_ROOM
        self._number = 0
        self._words: dict[Port, Word] = {}
        self._retired: dict[EgressLink, float] = {}
        """Circuits that lead another way than the path now goes, until their messages have outcomes; seconds."""
        waiting.expired = self._expired

    def __iter__(self) -> Iterator[Broker]:
        return iter(self._brokers)

    # Who there is

    def of(self, entry: AddressEntry) -> Broker:
        """The broker of an anycast address, made when there is none."""
        broker = entry.broker
        if broker is None:
            kind = MulticastBroker if entry.treatment is Treatment.MULTICAST else AnycastBroker
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
        elif link in self._retired:
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

    @property
    def is_due(self) -> bool:
        """Whether `turn` has something to do."""
        return bool(self.touched or self.rerouted or self.is_replanted)

    def turn(self) -> None:
        """Give a turn to each broker for which something has happened, then tell the neighbors of circuits."""
        if self.rerouted or self.is_replanted:
            rerouted, self.rerouted = self.rerouted, set()
            is_replanted, self.is_replanted = self.is_replanted, False
            for broker in list(self._brokers):
                is_multicast = broker.entry.treatment is Treatment.MULTICAST
                if (is_multicast and is_replanted) or not rerouted.isdisjoint(broker.entry.remotes):
                    self.guard(broker, broker.update_paths)
        while self.touched:
            touched, self.touched = self.touched, {}
            for broker in touched:
                if not self.guard(broker, partial(broker.turn, self.now)):
                    continue
                if broker.deadline < broker.scheduled:
                    self._schedule(broker)
                if broker.is_idle:
                    self._forget(broker)
        words, self._words = self._words, {}
        for port, word in words.items():
            if port.id in self.ports:
                port.tell_circuits(word.weights, word.closed)

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
            for link in broker.entry.subscribers:
                assert isinstance(link, EgressLink)
                link.brokered = link.unspent = 0
            self.fib.forget(broker.entry)

    def next_deadline(self) -> float:
        """When `handle_deadline` is due, seconds; infinity when never."""
        due = self._deadlines[0][0] if self._deadlines else math.inf
        return min(due, next(iter(self._retired.values()), math.inf))  # in the order of their times

    def handle_deadline(self, now: float) -> None:
        """Time has passed: `turn` is to be called for those that are due."""
        while self._deadlines and self._deadlines[0][0] <= now:
            time, _, broker = heapq.heappop(self._deadlines)
            if broker.scheduled == time and broker in self._brokers:
                broker.scheduled = math.inf
                self.touched[broker] = None
        for link in [link for link, until in self._retired.items() if until <= now]:
            self.end(link)

    def word_to(self, port: Port) -> Word:
        """What *port*'s neighbor will be told at the end of this turn."""
        return self._words.setdefault(port, Word())

    # Circuits of ours that are to go

    def retire(self, link: EgressLink) -> None:
        """Send nothing more on a circuit; end it when its messages have their outcomes."""
        link.broker = None
        if link.is_gone:
            return
        self._retired[link] = self.now + RETIRED_S
        self.word_to(link.port).weights[link.name] = 0
        self.end_if_settled(link)

    def end_if_settled(self, link: EgressLink) -> None:
        """A message on a circuit has its outcome: a retired one may be through."""
        if link in self._retired and not (link.outstanding or link.current or link.waiting):
            self.end(link)

    def _give_back_retired(self, link: EgressLink) -> None:
        is_idle = link.current is None and not link.waiting and not pn_link_queued(link.handle)
        if pn_link_get_drain(link.handle) and is_idle and pn_link_drained(link.handle):
            link.port.touch()

    def end(self, link: EgressLink) -> None:
        """End a circuit of ours. Messages on it that have no outcome get one."""
        self._retired.pop(link, None)
        if not link.is_gone:
            self.end_circuit(link)

    def circuit_gone(self, link: EgressLink) -> None:
        """A circuit of ours was lost."""
        self._retired.pop(link, None)
        if isinstance(link.broker, Broker):
            link.broker.circuit_gone(link)

    # Messages that wait

    def _expired(self, transfer: Transfer) -> None:
        broker = self.find(transfer.entry)
        if broker is not None:
            broker.drop(transfer)

    def bound_departed(self, broker: Broker) -> None:
        """Pre-settled messages stay when their publisher leaves: who comes, casts and leaves must not fill memory."""
        publishers, entry, settings = broker.publishers, broker.entry, self._settings
        if publishers.departed <= settings.waiting_messages and entry.waiting_bytes <= settings.waiting_bytes:
            return
        for message, owner in reversed(list(publishers.waiting.items())):
            if publishers.departed <= settings.waiting_messages and entry.waiting_bytes <= settings.waiting_bytes:
                break
            if not owner.is_attached:
                assert isinstance(message, Transfer)
                broker.drop(message)
                self.waiting.refuse(message)


DEADLINES_ROOM = 1000
"""Deadlines that are kept before those that are not needed any more are looked for."""
RETRY_S = 5.0
"""A circuit that a neighbor refused is tried again after so long."""
RETIRED_S = 1.0
"""Longest time that messages on a circuit are given for their outcomes when the path goes elsewhere."""
