"""Credit controller of an anycast address: publishers and circuits share what subscribers granted at each egress.

An egress behind a neighbor that takes no circuits, or no more of them, has a *window* instead: credit of the mesh's own
making, and its messages travel as datagrams.

Source: docs/explanation/credit.md#who-gets-how-much.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import islice
from math import inf
from typing import Final

import cython

from router.core.addressing.address import AddressKind
from router.core.forwarding.anycast_scheduler import AnycastScheduler, EgressPath
from router.core.forwarding.credit_actions import CreditAction, Key, ReturnCredit, TellWeight
from router.core.forwarding.egress_load import EgressLoad
from router.core.forwarding.fib import CLOSEST, AddressEntry, Route
from router.core.ids_and_conditions import RouterId
from router.dataplane.controller_context import ControllerContext
from router.dataplane.credit_controller import CreditController
from router.dataplane.credit_key_types import circuits_of, loads_to_tell, messages_of
from router.dataplane.links import (
    EgressCircuitLink,
    EgressLink,
    IngressCircuitLink,
    IngressLink,
    PublisherLink,
    SubscriberLink,
    Transfer,
)
from router.dataplane.settlement import RELEASE
from router.dataplane.transfer_lifecycle import advance

if not cython.compiled:  # else they come by the .pxd
    from router.binding.proton_functions import pn_link_credit, pn_link_get_drain
    from router.dataplane.credit_key_types import Send
    from router.dataplane.transfer_stages import SELECTED, WAITING

LOOKED_AT: Final = 16
"""Number of local subscribers among which `balanced` looks for the one with the least unsettled."""


class AnycastController(CreditController):
    """Controller of one closest or balanced address."""

    machine: AnycastScheduler

    def __init__(self, entry: AddressEntry, context: ControllerContext) -> None:
        super().__init__(entry, context)
        self.is_closest = entry.treatment is CLOSEST
        self._scheduler = AnycastScheduler(timing=context.timing, is_closest=self.is_closest, distance=entry.distance)
        self.machine = self._scheduler
        # Held twice: Cython calls methods directly only through the attribute declared with the concrete class.
        self.is_reply = entry.kind is AddressKind.ROUTER and entry.owner != self._me
        """Whether the address is a client's reply address at another router: each publisher's first message goes as a
        datagram."""
        self.first: dict[PublisherLink, None] = {}
        """Publishers to a reply address that have not sent anything."""
        self._is_reached = False
        """Whether some egress is reached: each publisher in `first` has one credit."""
        self.second: dict[PublisherLink, None] = {}
        """Publishers that have sent one message; the next brings them under the rule."""
        self._connections: dict[RouterId, object] = {}
        """The connection that leads to each egress."""
        self._draining: dict[SubscriberLink, None] = {}
        """Local subscribers that ask for their credit back."""
        self._local_credit = 0
        self._able: OrderedDict[Key, SubscriberLink] = OrderedDict()
        """Local subscribers with credit, by themselves, the one that was longest without a message first."""
        self._chosen: SubscriberLink | None = None
        """Subscriber that got the last message."""
        self.local_load = EgressLoad(is_local=True)
        """Load of the local subscribers."""
        self._has_choice = False
        """Whether there are several subscribers, so that loads are counted."""
        self._reports_due = inf
        """Time at which neighbors may have to be told of loads though there was no turn, seconds."""
        self.update_paths()

    def is_idle(self) -> bool:
        """Whether nobody needs it any more."""
        if not CreditController.is_idle(self) or self.first or self.second:
            return False
        pools = self.machine.pools.values()
        return not any([p.circuits or p.core or p.coming or p.uncredited for p in pools])

    def flowed(self, link: EgressLink) -> None:
        """Take note that a local subscriber or a circuit of ours may have other credit or room than before."""
        if link.is_answering:
            self.give_back(link)
        if isinstance(link, SubscriberLink) and link not in self._draining and not pn_link_get_drain(link.handle):
            subscriber = link
            credit = pn_link_credit(link.handle)
            is_more = 0 < subscriber.brokered <= credit
            if (is_more and self._scheduler.has_enough()) or self._scheduler.is_unused():
                if not subscriber.brokered == subscriber.unspent == credit:  # else what was sent is written, no more
                    self._changed[link] = None  # looked at with the next message, or with the next who wants credit
                return
        self.touch(link)

    # Publishers

    def add_publisher(self, link: PublisherLink) -> None:
        """Take in a publisher that has attached here."""
        if not self.is_reply:
            super().add_publisher(link)
            return
        link.controller = self
        self.first[link] = None
        if self._is_reached:
            self.grant(link, 1)

    def remove_publisher(self, link: PublisherLink) -> None:
        """Forget a publisher that is gone; `drop` what was never delivered."""
        if link in self.first or link in self.second:
            self.first.pop(link, None)
            self.second.pop(link, None)
            self.touch()
        else:
            super().remove_publisher(link)

    def keeps_waiting(self) -> bool:
        """See `CreditController.keeps_waiting`."""
        if self.publishers.is_backlogged:
            return True
        return any([bool(pool.core) or pool.starves_circuits() for pool in self.machine.pools.values()])

    def closed(self, link: EgressCircuitLink) -> None:
        """Take the word of the next hop of a circuit of ours that the subscribers have withdrawn."""
        if self.own.get(link.root) is link:
            self.machine.closed(link.root)
            self.touch()

    # Messages

    def take(self, transfer: Transfer) -> None:
        """Send a message of the address, or let it wait."""
        if self.is_reply:
            link = transfer.ingress
            if isinstance(link, PublisherLink) and link in self.first and not transfer.is_brokered:
                self._take_first(transfer, link)
                return
            if isinstance(link, PublisherLink) and link in self.second:
                del self.second[link]
                self.machine.add_publisher(link, held=int(self._is_reached), client=link.port.id)
        CreditController.take(self, transfer)

    def _take_first(self, transfer: Transfer, link: PublisherLink) -> None:
        """Send the first message to a reply address as a datagram: it pays no round trip for a circuit."""
        if not self._is_ready(transfer):
            self._context.forwarder.hold(transfer)
            return
        assert self.entry.owner is not None
        route = self._context.fib.route(self.entry.owner)
        self.grant(link, 1)
        if route is None:
            self._context.settlement.settle(transfer, RELEASE)
            return
        del self.first[link]
        self.second[link] = None
        self._context.forwarder.send_datagram(transfer, route)

    def _sent_at_once(self) -> None:
        if self._scheduler.is_due:
            self.touch()

    def _is_ready(self, transfer: Transfer) -> bool:
        """Whether it may leave: for a client as a whole; what comes by a circuit for elsewhere goes on as it comes."""
        link = transfer.ingress
        if CreditController._is_ready(self, transfer):
            return True
        if not isinstance(link, IngressCircuitLink):
            return False
        circuit = link
        return circuit.root != self._me

    def _requeue(self, transfer: Transfer) -> bool:
        link = transfer.ingress
        if not transfer.is_brokered:
            return self.machine.add_uncredited(transfer, self._me, link.port.id if link is not None else None)
        return self.machine.requeue(transfer, link.root if isinstance(link, IngressCircuitLink) else self._me)

    def used_for_nothing(self, link: IngressLink) -> None:
        """Count a credit of a publisher or a circuit that a transfer without a message has used."""
        if link in self.first or link in self.second:
            self.grant(link, 1)
        else:
            super().used_for_nothing(link)

    # Paths and links of our own

    def update_paths(self) -> None:
        """Tell the machine of routes and subscribers that have changed."""
        now = self._context.clock.now
        routes = self._routes()
        connections: dict[RouterId, object] = {egress: route.connection for egress, route in routes.items()}
        paths = {
            egress: EgressPath(route.cost, route.next_hop, self.entry.remotes[egress])
            for egress, route in routes.items()
        }
        if self.entry.subscribers:
            connections[self._me] = None
            paths[self._me] = EgressPath(0, None, self.local_load)
            self._changed.update(dict.fromkeys(self._subscribers()))
        for egress, connection in sorted(self._connections.items()):
            if egress not in paths or connections[egress] != connection:
                self._leave(egress)
        self._connections = connections
        lost = self.machine.set_paths(paths, now)
        for egress in sorted(routes):
            if egress not in self.own and egress not in self.windowed:
                self.machine.circuit_lost(egress, now)  # so that it is made, now that it may be possible
        for message in messages_of(lost):
            self._try_elsewhere(message)
        if not paths and self.entry.kind is not AddressKind.MOBILE:
            # Nobody else will tell the routers upstream that a requester is gone.
            for pool in list(self.machine.pools.values()):
                for circuit in circuits_of(pool.circuits):
                    circuit.port.end_circuit(circuit)
        self._count_loads()
        if bool(paths) != self._is_reached:
            self._is_reached = bool(paths)
            for link in (*self.first, *self.second):
                self.grant(link, 1 if paths else -1)
        self.touch()

    def _routes(self) -> dict[RouterId, Route]:
        """Find how other routers with subscribers are reached."""
        found = ((router, self._context.fib.route(router)) for router in self.entry.remotes)
        return {router: route for router, route in found if route is not None}

    def _count_loads(self) -> None:
        """Count messages by their egress, if there is a choice."""
        has_choice = not self.is_closest and (len(self.entry.subscribers) > 1 or self._scheduler.has_choice)
        if has_choice == self._has_choice:
            return
        self._has_choice = has_choice
        for egress, link in self.own.items():
            self._count_load(link, self.entry.remotes.get(egress))
        for subscriber in self._able.values():
            self._count_load(subscriber, self.local_load)

    def _count_load(self, link: EgressLink, load: EgressLoad | None) -> None:
        """Count the messages on a link from now on, or no more."""
        if not self._has_choice:
            load = None
        if link.load is load:
            return
        if link.load is not None:
            link.load.unsettled -= link.outstanding
            link.load.forget(link)
        link.load = load
        if load is not None:
            load.unsettled += link.outstanding
            if load.idle is not None and link.outstanding == 0:
                load.idle[link] = None

    def _make_circuit(
        self, key: RouterId, toward: RouterId, root: RouterId, *, is_multicast: bool
    ) -> EgressCircuitLink | None:
        link = super()._make_circuit(key, toward, root, is_multicast=is_multicast)
        if link is not None:
            self._count_load(link, self.entry.remotes.get(root))
        return link

    def _circuit_lost(self, key: RouterId) -> None:
        if key in self.machine.pools:
            self.machine.circuit_lost(key, self._context.clock.now)

    def subscriber_gone(self, link: SubscriberLink) -> None:
        """Forget a local subscriber that is no more."""
        self._forget_subscriber(link)
        self._draining.pop(link, None)
        self._set_able(link, False)
        self._chosen = None
        self.local_load.forget(link)
        self._local_credit -= link.brokered
        link.brokered = 0
        self.touch(link)  # what the others have is all that there is now

    # The turn

    def _restate(self, now: float) -> bool:
        changed, self._changed = self._changed, {}
        machine = self._scheduler
        is_local = is_due = False
        for link in changed:
            if link.is_gone:
                is_local |= isinstance(link, SubscriberLink)
            elif isinstance(link, EgressCircuitLink):
                circuit = link
                credit = self._measure(link)
                returning = credit if pn_link_get_drain(link.handle) else 0
                is_due |= machine.set_capacity(circuit.root, credit, now, returning=returning)
            elif isinstance(link, SubscriberLink):
                self._restate_subscriber(link)
                is_local = True
        for egress in self.windowed:
            if machine.pools[egress].has_path:
                load = self.entry.remotes.get(egress)
                room = max(0, self._context.window - (load.datagrams if load is not None else 0))
                is_due |= machine.set_capacity(egress, room, now)
        if is_local and self.entry.subscribers:
            is_due |= machine.set_capacity(
                self._me,
                self._local_credit,
                now,
                returning=sum([link.brokered for link in self._draining]) if self._draining else 0,
                is_withdrawn=self._local_credit == 0 and self._withdrawn_count == len(self.entry.subscribers),
            )
        return is_due

    def _restate_subscriber(self, link: SubscriberLink) -> None:
        self._see_withdrawal(link)
        credit = self._measure_lendable(link)
        self._local_credit += credit - link.brokered
        link.brokered = credit
        self._set_able(link, credit > 0)
        if credit > 0 and pn_link_get_drain(link.handle):
            self._draining[link] = None
        else:
            self._draining.pop(link, None)

    def _set_able(self, link: SubscriberLink, is_able: bool) -> None:
        """Note whether a local subscriber has credit by itself."""
        if is_able:
            self._able.setdefault(link, link)
        else:
            self._able.pop(link, None)
        self._count_load(link, self.local_load if is_able else None)
        self.local_load.subscribers = max(1, len(self._able))

    def turn(self, now: float) -> None:
        """Tell the machine what credit there is, let it work, see to what waits, and tell neighbors of loads.

        Args:
            now: seconds, monotonic.
        """
        CreditController.turn(self, now)
        self._reports_due = self._report_loads(now) if self._has_choice else inf

    def _report_loads(self, now: float) -> float:
        """Tell neighbors what others have sent where their circuits lead. Returns when to look again, seconds."""
        reports, due = loads_to_tell(self._scheduler, now)
        for link, messages, subscribers in reports:
            self._context.updates_for(link.port).loads[link.name] = (messages, subscribers)
        return due

    def next_deadline(self) -> float:
        """See `CreditController.next_deadline`; `turn` does no more than to tell of loads if only that is due."""
        return min(self.deadline, self._reports_due)

    # What the machine wants done

    def _act(self, action: CreditAction) -> None:
        if isinstance(action, Send):
            self.send(action.message, action.egress)
        elif isinstance(action, ReturnCredit):
            self._give_credit_back(action.root)
        elif isinstance(action, TellWeight):
            egress = action.root
            self._tell_weight(egress, action.weight, toward=egress, root=egress, is_multicast=False)

    def send(self, transfer: Transfer, egress: RouterId) -> None:
        """Send a message toward an egress that has credit for it."""
        if transfer.state == WAITING:
            self._context.waiting.give_up(transfer)
        advance(transfer, SELECTED)
        link: EgressLink
        if egress == self._me:
            link = subscriber = self._choose_subscriber()
            subscriber.brokered -= 1  # as the machine has it: its credit is looked at again when this is written
            self._local_credit -= 1
            if subscriber.brokered > 0:
                if len(self._able) > 1:
                    self._able.move_to_end(subscriber)
            else:
                self._set_able(subscriber, False)
        elif egress in self.own:
            link = self.own[egress]
        else:
            route = self._context.fib.route(egress)
            assert route is not None, "sent out of reach"
            self._context.forwarder.send_datagram(transfer, route)
            return
        self._context.egress.commit(transfer, link)
        if link.current is not None or not link.can_send():
            self.touch(link)  # it can take less than what was counted on

    def _choose_subscriber(self) -> SubscriberLink:
        """Choose a local subscriber with credit: one that drains, else by turns, or `balanced` one without a message
        or else the least busy of the next few.

        However many there are, looking at few costs the same for each message.
        """
        assert self._able, "sent without a subscriber's credit"
        if self._draining:
            for link in self._draining:
                if link in self._able:
                    return link
        if len(self._able) == 1 and self._chosen is not None and self._chosen.brokered > 0:
            return self._chosen  # it must be the one
        idle = self.local_load.idle
        while idle and not self.is_closest:
            key = next(iter(idle))
            del idle[key]
            first = self._able.get(key)
            if first is not None and not (first.outstanding or first.waiting):
                return first
        chosen = None
        # DEV-10: qdrouterd takes the next one of equals, with credit or without.
        for link in self._able.values() if self.is_closest else islice(self._able.values(), LOOKED_AT):
            if chosen is None or link.outstanding + len(link.waiting) < chosen.outstanding + len(chosen.waiting):
                chosen = link
            if self.is_closest:
                break
        assert chosen is not None
        self._chosen = chosen
        return chosen

    def next_subscriber(self) -> SubscriberLink | None:
        """Choose a local subscriber for a message that came on no credit; None when none has any.

        It counts as before until it was sent the message, as `sent_uncredited` tells.
        """
        while True:
            if self._changed and not self._is_acting and self._restate(self._context.clock.now):
                self.touch()
            if not self._able:
                return None
            link = self._choose_subscriber()
            if self.local_load.idle is not None and self._has_choice and not (link.outstanding or link.waiting):
                self.local_load.idle[link] = None
            if link.has_credit():
                return link
            if self._is_acting or link.can_send():
                return None
            self._changed[link] = None  # its connection or session has been filled since, so that it is able no more

    def sent_uncredited(self, link: SubscriberLink) -> None:
        """Take note that a local subscriber was sent a message that came on no credit: others are next."""
        self.local_load.forget(link)
        if link in self._able:
            self._able.move_to_end(link)
        self.flowed(link)

    def _give_credit_back(self, egress: RouterId) -> None:
        """Give credit back on our circuit, or to the local subscribers that ask for it."""
        links: list[EgressLink] = [*self._draining] if egress == self._me else [self.own[egress]]
        for link in links:
            self._answer_drain(link)
