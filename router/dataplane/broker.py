"""Brokering: the credit of one anycast address, on real links.

`core.forwarding.allotting` decides who may send and what leaves. A `Broker` tells it what happens on the links of its
address and carries out its orders: credit for publishers and for circuits of neighbors, messages to local subscribers
and onto circuits of our own. An egress behind a neighbor that takes no circuits, or no more of them, has a *window*
instead: credit of the mesh's own making, and its messages travel as datagrams.

Source: design, section 6; AMQP 1.0 part 2, 2.6.7.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mesh_config.models import Treatment
from router.binding.handles import (
    pn_link_credit,
    pn_link_drain,
    pn_link_drained,
    pn_link_flow,
    pn_link_get_drain,
    pn_link_queued,
)
from router.core.addressing.address import AddressKind, router_address
from router.core.forwarding.allotting import Allotting
from router.core.forwarding.fib import AddressEntry
from router.core.forwarding.orders import Key
from router.core.terms import RouterId
from router.dataplane.interface import (
    HOLDING,
    NEW,
    QUEUED,
    WAITING,
    EgressLink,
    IngressLink,
    Transfer,
)
from router.dataplane.settlement import RELEASE

if TYPE_CHECKING:
    from router.dataplane.brokerage import Brokerage


class Broker:
    """The credit of one address (an `orders.Orders`). Links and transfers are the machine's keys."""

    def __init__(self, entry: AddressEntry, house: Brokerage) -> None:
        self.entry = entry
        self._house = house
        self._me = house.fib.me
        is_closest = entry.treatment is Treatment.CLOSEST
        self._address = router_address(entry.owner, entry.text) if entry.owner is not None else entry.text
        """As other routers know it."""
        self.machine = Allotting(self, timing=house.timing, is_closest=is_closest)
        self.own: dict[RouterId, EgressLink] = {}
        """Our circuits, by egress."""
        self.windowed: set[RouterId] = set()
        """Egresses toward which there can be no circuit on the present path."""
        self.is_reply = entry.kind is AddressKind.ROUTER and entry.owner != self._me
        """A client's reply address at another router: the first message of each publisher goes as a datagram."""
        self.first: dict[IngressLink, None] = {}
        """Publishers to a reply address that have not sent anything."""
        self.second: dict[IngressLink, None] = {}
        """Those that have sent one message; the next brings them under the rule."""
        self.deadline = math.inf
        """When a turn is due without an event, seconds."""
        self.scheduled = math.inf
        """For when that is scheduled."""
        self._connections: dict[RouterId, object] = {}
        """The connection that leads to each egress."""
        self._changed: dict[EgressLink, None] = {}
        """Links whose credit is to be looked at."""
        self._draining: dict[EgressLink, None] = {}
        """Local subscribers that ask for their credit back."""
        self._local_credit = 0
        self._fresh: list[Transfer] = []
        """Messages that came since the last turn."""
        self._turn_of = 0
        self.update_paths()

    @property
    def is_idle(self) -> bool:
        """Whether nobody needs it any more. It knows that subscribers have granted credit as long as there are any."""
        machine = self.machine
        return not (
            self.entry.subscribers
            or machine.publishers.attached
            or machine.publishers.waiting
            or self._fresh
            or self.first
            or self.second
            or self.own
            or any(pool.circuits or pool.core or pool.coming for pool in machine.pools.values())
        )

    def touch(self, link: EgressLink | None = None) -> None:
        """Something happened: have a turn, and look at the credit of *link* before."""
        if link is not None:
            self._changed[link] = None
        self._house.touched[self] = None

    # Publishers and circuits of neighbors

    def add_publisher(self, link: IngressLink) -> None:
        """A publisher attached here."""
        link.broker = self
        if self.is_reply:
            self.first[link] = None
            if self.machine.pools:
                self.grant(link, 1)
        else:
            self.machine.add_publisher(link)
        self.touch()

    def remove_publisher(self, link: IngressLink) -> None:
        """It is gone; `drop` what was never delivered."""
        if link in self.first or link in self.second:
            self.first.pop(link, None)
            self.second.pop(link, None)
        else:
            self.machine.remove_publisher(link)
            self._house.bound_departed(self)
        self.touch()

    def add_circuit(self, link: IngressLink) -> None:
        """A neighbor attached a circuit."""
        link.broker = self
        assert link.root is not None
        assert link.port.neighbor is not None
        self.machine.add_circuit(link.root, link, link.port.neighbor)
        self.touch()

    def remove_circuit(self, link: IngressLink) -> None:
        """It is gone; `drop` what was never delivered."""
        assert link.root is not None
        self.machine.remove_circuit(link.root, link)
        self.touch()

    def set_weight(self, link: IngressLink, weight: int) -> None:
        """A neighbor told how many busy publishers are behind its circuit."""
        assert link.root is not None
        self.machine.set_weight(link.root, link, weight)
        self.touch()

    def returned(self, link: IngressLink) -> None:
        """Flow arrived on a neighbor's circuit: perhaps the answer to a drain."""
        credit = pn_link_drained(link.handle)
        if credit > 0 and link.root is not None:
            self.machine.circuit_drained(link.root, link, credit)
            self.touch()

    def closed(self, link: EgressLink) -> None:
        """The next hop of a circuit of ours tells that the subscribers have withdrawn."""
        if link.root is not None and self.own.get(link.root) is link:
            self.machine.closed(link.root)
            self.touch()

    # Messages

    def take(self, transfer: Transfer) -> None:
        """A message of the address: it waits, until the turn at least."""
        link = transfer.ingress
        is_ready = transfer.is_complete or transfer.may_stream
        now = self._house.now
        if transfer.is_coming:
            if not is_ready:
                return
            transfer.is_coming = False
            is_kept = self.machine.ready(transfer)
        elif transfer.is_brokered or link is None or link.broker is not self:
            is_kept = self.machine.requeue(transfer, self._me if link is None or link.root is None else link.root)
            is_ready = True
        elif link.root is not None:
            is_ready = is_ready or link.root != self._me  # only a client must get it as a whole
            is_kept = self.machine.arrived(link.root, link, transfer, now, is_ready=is_ready)
        elif link in self.first:
            self._take_first(transfer, link, is_ready=is_ready)
            return
        else:
            if link in self.second:
                del self.second[link]
                self.machine.add_publisher(link, held=1)
            is_kept = self.machine.published(link, transfer, now, is_ready=is_ready)
        transfer.is_brokered = True
        self.touch()
        if not is_kept:
            self._house.settlement.settle(transfer, RELEASE)
        elif is_ready:
            transfer.state = QUEUED
            self._fresh.append(transfer)
        else:
            transfer.is_coming = True
            self._house.forwarder.hold(transfer)

    def _take_first(self, transfer: Transfer, link: IngressLink, *, is_ready: bool) -> None:
        """The first message to a reply address pays no round trip for a circuit."""
        if not is_ready:
            self._house.forwarder.hold(transfer)
            return
        del self.first[link]
        self.second[link] = None
        assert self.entry.owner is not None
        route = self._house.fib.route(self.entry.owner)
        if route is None:
            self._house.settlement.settle(transfer, RELEASE)
            return
        self.grant(link, 1)
        self._house.forwarder.send_datagram(transfer, route)

    def used_for_nothing(self, link: IngressLink) -> None:
        """A transfer without a message used a credit of a publisher or a circuit."""
        if link in self.first or link in self.second:
            self.grant(link, 1)
            return
        nothing = object()
        if link.root is not None:
            self.machine.arrived(link.root, link, nothing, self._house.now)
        else:
            self.machine.published(link, nothing, self._house.now)
        self.machine.drop(nothing)
        self.touch()

    def drop(self, transfer: Transfer) -> None:
        """If the message waits here it no longer does."""
        transfer.is_coming = False
        if transfer.is_brokered and self.machine.drop(transfer):
            self.touch()

    # Paths and links of our own

    def update_paths(self) -> None:
        """Routes or subscribers have changed."""
        house = self._house
        routes = {router: house.fib.route(router) for router in self.entry.remotes}
        wanted = {router for router, route in routes.items() if route is not None}
        if self.entry.subscribers:
            wanted.add(self._me)
        was_open = bool(self.machine.pools)
        for egress in sorted(router for router, pool in self.machine.pools.items() if pool.has_path):
            if egress not in wanted:
                self._leave(egress)
                for message in self.machine.remove_path(egress, house.now):
                    assert isinstance(message, Transfer)
                    self._try_elsewhere(message)
        for egress in sorted(wanted):
            route = routes.get(egress)
            connection = None if egress == self._me or route is None else route.connection
            if self._connections.get(egress, connection) != connection:
                self._leave(egress)
            self._connections[egress] = connection
            if egress == self._me or route is None:
                self.machine.set_path(egress, cost=0, next_hop=None, now=house.now)
                self._changed.update(dict.fromkeys(self._subscribers()))
            else:
                self.machine.set_path(egress, cost=route.cost, next_hop=route.next_hop, now=house.now)
                if egress not in self.own and egress not in self.windowed:
                    self.machine.circuit_lost(egress, house.now)  # so that it is made, now that it may be possible
        if bool(self.machine.pools) != was_open:
            for link in self.first:
                self.grant(link, -1 if was_open else 1)
        self.touch()

    def _leave(self, egress: RouterId) -> None:
        """The way to an egress is another one, or none."""
        self._connections.pop(egress, None)
        self.windowed.discard(egress)
        link = self.own.pop(egress, None)
        if link is not None:
            self._changed.pop(link, None)
            self._house.retire(link)

    def _try_elsewhere(self, transfer: Transfer) -> None:
        if transfer.state == WAITING:
            self._house.waiting.give_up(transfer)
        transfer.is_coming = False
        if transfer.state != HOLDING:  # else when it is whole
            transfer.state = NEW
            self._house.forwarder.dispatch(transfer)

    def circuit_gone(self, link: EgressLink) -> None:
        """A circuit of ours was lost, or refused by the next hop."""
        egress = link.root
        self._changed.pop(link, None)
        if egress is None or self.own.get(egress) is not link:
            return
        del self.own[egress]
        if link.is_refused:
            self.windowed.add(egress)
        pool = self.machine.pools.get(egress)
        if pool is not None:
            self.machine.circuit_lost(egress, self._house.now)
        self.touch()

    def _subscribers(self) -> list[EgressLink]:
        return [link for link in self.entry.subscribers if isinstance(link, EgressLink)]

    def subscriber_gone(self, link: EgressLink) -> None:
        """A local subscriber is no more."""
        self._changed.pop(link, None)
        self._draining.pop(link, None)
        self._local_credit -= link.brokered
        link.brokered = 0
        self.touch()

    # The turn

    def turn(self, now: float) -> None:
        """Tell the machine what credit there is, let it work, and see to what waits."""
        self._restate(now)
        self.machine.turn(now)
        fresh, self._fresh = self._fresh, []
        for transfer in fresh:
            if transfer.state == QUEUED:
                self._let_wait(transfer)
        self.deadline = min(self.machine.next_deadline(), self._drop_idle_circuits(now))

    def _let_wait(self, transfer: Transfer) -> None:
        """It waits for longer than this turn. A publisher's own needs no bound: it has no credit for a second one."""
        link = transfer.ingress
        is_own = link is not None and link.root is None and link.broker is self and not link.is_gone
        self._house.waiting.enter(transfer, self.entry, is_bounded=not is_own)

    def _restate(self, now: float) -> None:
        changed, self._changed = self._changed, {}
        is_local = False
        for link in changed:
            if link.is_gone:
                continue
            if link.root is not None:
                self._restate_circuit(link, now)
            else:
                self._restate_subscriber(link)
                is_local = True
        for egress in self.windowed:
            if self.machine.pools[egress].has_path:
                room = max(0, self._house.window - self.entry.remotes.get(egress, 0))
                self.machine.set_capacity(egress, room, now)
        if is_local and self.entry.subscribers:
            self.machine.set_capacity(
                self._me,
                self._local_credit,
                now,
                returning=sum(link.brokered for link in self._draining),
                is_withdrawn=self._local_credit == 0 and all(link.is_withdrawn for link in self._subscribers()),
            )

    def _restate_circuit(self, link: EgressLink, now: float) -> None:
        credit = self._measure(link)
        assert link.root is not None
        self.machine.set_capacity(link.root, credit, now, returning=credit if pn_link_get_drain(link.handle) else 0)

    def _restate_subscriber(self, link: EgressLink) -> None:
        unspent = pn_link_credit(link.handle)
        if unspent > 0:
            link.is_withdrawn = False
        elif link.unspent > 0:
            link.is_withdrawn = True
        link.unspent = unspent
        credit = min(self._measure(link), self._house.brokered_messages)
        self._local_credit += credit - link.brokered
        link.brokered = credit
        if credit > 0 and pn_link_get_drain(link.handle):
            self._draining[link] = None
        else:
            self._draining.pop(link, None)

    def _measure(self, link: EgressLink) -> int:
        """Messages that may be sent on a link at once: none while a long one is under way, or too much is unwritten."""
        credit = int(pn_link_credit(link.handle)) - len(link.waiting)
        return credit if credit > 0 and link.can_send() else 0

    def _drop_idle_circuits(self, now: float) -> float:
        """End circuits of ours that nobody behind us needs. Returns when to look again, seconds."""
        due = math.inf
        for egress, link in list(self.own.items()):
            pool = self.machine.pools[egress]
            if pool.told_weight or link.outstanding or link.current is not None or link.waiting:
                link.idle_since = now
            elif link.idle_since + self._house.circuit_idle_s <= now:
                del self.own[egress]
                self._house.end(link)
                self.machine.circuit_lost(egress, now)
                due = now
                continue
            if not pool.told_weight:
                due = min(due, link.idle_since + self._house.circuit_idle_s)
        return due

    # Orders of the machine

    def grant(self, publisher: Key, credit: int) -> None:
        """Add credit to a publisher's link, or take it back.

        What it has sent and nobody has read yet used some of it: no more is taken back than is left, since a
        link-credit below zero is read as four billion; the rest is kept back from what is granted next.
        """
        assert isinstance(publisher, IngressLink)
        handle = publisher.handle
        if credit < 0:
            left = pn_link_credit(handle) - pn_link_queued(handle)
            taken = min(-credit, max(0, left))
            publisher.owed += -credit - taken
            credit = -taken
        elif publisher.owed:
            kept = min(credit, publisher.owed)
            publisher.owed -= kept
            credit -= kept
        if credit:
            pn_link_flow(handle, credit)
            publisher.port.touch()

    def grant_circuit(self, circuit: Key, credit: int) -> None:
        """Add credit to a neighbor's circuit."""
        assert isinstance(circuit, IngressLink)
        pn_link_flow(circuit.handle, credit)
        circuit.port.touch()

    def drain_circuit(self, circuit: Key) -> None:
        """Ask a neighbor for what is left of a circuit's credit."""
        assert isinstance(circuit, IngressLink)
        pn_link_drain(circuit.handle, 0)
        circuit.port.touch()

    def close_circuit(self, circuit: Key) -> None:
        """Tell a neighbor that the egress's subscribers have withdrawn."""
        assert isinstance(circuit, IngressLink)
        self._house.word_to(circuit.port).closed.append(circuit.name)

    def send(self, message: Key, egress: RouterId) -> None:
        """Send a message toward an egress that has credit for it."""
        assert isinstance(message, Transfer)
        if message.state == WAITING:
            self._house.waiting.give_up(message)
        message.state = NEW
        if egress == self._me:
            link = self._choose_subscriber()
        elif egress in self.own:
            link = self.own[egress]
        else:
            route = self._house.fib.route(egress)
            assert route is not None, "sent out of reach"
            self._house.forwarder.send_datagram(message, route)
            return
        self._house.egress.commit(message, link)
        if link.current is not None or not link.can_send():
            self.touch(link)  # it can take less than what was counted on

    def _choose_subscriber(self) -> EgressLink:
        """A local subscriber with credit: one that drains, else by the treatment's rule."""
        able = [link for link in self._draining if _has_credit(link)]
        if not able:
            able = [link for link in self._subscribers() if _has_credit(link)]
        assert able, "sent without a subscriber's credit"
        self._turn_of += 1
        turn = self._turn_of % len(able)
        if len(able) == 1 or self.entry.treatment is Treatment.CLOSEST:
            return able[turn]
        return min(able[turn:] + able[:turn], key=lambda link: link.outstanding + len(link.waiting))

    def drained(self, egress: RouterId, credit: int) -> None:
        """Give credit back on our circuit, or to the local subscribers that ask for it."""
        links = list(self._draining) if egress == self._me else [self.own[egress]]
        for link in links:
            link.is_answering = True
            self.give_back(link)

    def give_back(self, link: EgressLink) -> None:
        """Answer a drain, once all that was sent on the link is written."""
        if not pn_link_get_drain(link.handle):
            link.is_answering = False
        elif link.current is None and not link.waiting and not pn_link_queued(link.handle):
            link.is_answering = False
            if pn_link_drained(link.handle):
                link.port.touch()
            self.touch(link)

    def weigh(self, egress: RouterId, weight: int) -> None:
        """Tell the next hop how many busy publishers are behind this router; make the circuit for the first."""
        link = self.own.get(egress)
        if link is None and weight and egress not in self.windowed:
            link = self._make_circuit(egress)
        if link is not None:
            self._house.word_to(link.port).weights[link.name] = weight

    def _make_circuit(self, egress: RouterId) -> EgressLink | None:
        house = self._house
        route = house.fib.route(egress)
        port = house.ports.get(route.connection) if route is not None else None
        if port is None:
            return None  # its connection is gone; the new path brings us here again
        link = port.open_circuit(self._address, egress, False) if port.open_circuit is not None else None
        if link is None:
            self.windowed.add(egress)
            self.touch()
            return None
        link.broker = self
        link.idle_since = house.now
        self.own[egress] = link
        return link


def _has_credit(link: EgressLink) -> bool:
    return bool(pn_link_credit(link.handle) > len(link.waiting))
