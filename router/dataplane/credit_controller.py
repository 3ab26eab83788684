"""Controller of the credit of one address: joins its credit machine to real links.

The machines of `core.forwarding` decide who may send and what leaves. A controller tells its machine what happens on
the links of its address and carries out what it returns. Here is what the two kinds have in common;
`anycast_controller.py` and `multicast_controller.py` have the rest. Links and transfers are the machine's keys.

Source: docs/explanation/credit.md#pools-and-claimants; AMQP 1.0 part 2, 2.6.7.
"""

from __future__ import annotations

from math import inf
from typing import Final

import cython

from router.core.addressing.address import router_address
from router.core.forwarding.anycast_scheduler import AnycastScheduler
from router.core.forwarding.credit_actions import REFUSED, CreditAction
from router.core.forwarding.fib import AddressEntry
from router.core.forwarding.multicast_scheduler import MulticastScheduler
from router.core.forwarding.publisher_credit import LocalPublishers
from router.core.ids_and_conditions import ConnectionId, RouterId
from router.dataplane.connection_port import Port
from router.dataplane.controller_context import ControllerContext
from router.dataplane.credit_key_types import youngest_of
from router.dataplane.links import (
    CircuitKey,
    EgressCircuitLink,
    EgressLink,
    IngressCircuitLink,
    IngressLink,
    PublisherLink,
    SubscriberLink,
    Transfer,
    local_subscribers,
)
from router.dataplane.settlement import RELEASE
from router.dataplane.transfer_lifecycle import StageError, advance

if not cython.compiled:  # else they come by the .pxd
    from router.binding.proton_functions import (
        pn_link_credit,
        pn_link_drain,
        pn_link_drained,
        pn_link_get_drain,
        pn_link_queued,
    )
    from router.dataplane.credit_key_types import DrainCircuit, Grant, GrantCircuit, TellNeighborSubscribersWithdrew
    from router.dataplane.transfer_stages import HOLDING, OFFERED, QUEUED, SELECTED, WAITING


class CreditController:
    """Controller of one address: grants, drains and sends on its links what its machine says."""

    machine: AnycastScheduler | MulticastScheduler

    def __init__(self, entry: AddressEntry, context: ControllerContext) -> None:
        self.entry = entry
        self._context = context
        self._me = context.fib.me
        self._address = router_address(entry.owner, entry.text) if entry.owner is not None else entry.text
        """Address as other routers know it."""
        self.own: dict[CircuitKey, EgressCircuitLink] = {}
        """Our circuits."""
        self.windowed: dict[CircuitKey, float] = {}
        """Keys of circuits that cannot be had on the present path, each with the time to try again, seconds."""
        self.deadline = inf
        """Time at which the machine has a turn without an event, seconds, as the last turn, or `look_again`, found
        it."""
        self._links_deadline = inf
        """Time at which a turn is due for the sake of links, seconds; `deadline` has the machine's part too."""
        self._is_due = False
        self._is_acting = False
        """Whether actions are being carried out: messages that come meanwhile wait for the next turn, behind these."""
        self._changed: dict[EgressLink, None] = {}
        """Links whose credit is to be looked at."""
        self._fresh: list[Transfer] = []
        """Messages that came since the last turn."""
        self._beside: dict[Port, dict[SubscriberLink, None]] = {}
        """Local subscribers by their connections."""
        self._looked_in = 0
        """Number of the input in which subscribers beside a publisher were last looked at."""
        self._looked_at: ConnectionId | None = None
        """Connection of these."""
        self._withdrawn_count = sum(link.is_withdrawn for link in self._subscribers())
        """Number of local subscribers that took their credit back."""

    @property
    def publishers(self) -> LocalPublishers:
        """Publishers of this router, and what of theirs waits."""
        return self.machine.publishers

    def is_idle(self) -> bool:
        """Whether nobody needs it any more. It knows that subscribers have granted credit as long as there are any."""
        publishers = self.publishers
        return not (self.entry.subscribers or publishers.attached or publishers.waiting or self._fresh or self.own)

    def stop(self) -> None:
        """Give publishers no credit any more."""
        self.machine.set_stopping(True)
        self.touch()

    def resume(self) -> None:
        """Give publishers credit again."""
        self.machine.set_stopping(False)
        self.touch()

    def touch(self, link: EgressLink | None = None) -> None:
        """Ask for a turn, or for a look at the credit of *link*, to see whether one is needed."""
        if link is not None:
            self._changed[link] = None
        elif self._is_due:
            return  # it was told so already
        else:
            self._is_due = True
        self._context.touched[self] = None

    def flowed(self, link: EgressLink) -> None:
        """Take note that a local subscriber or a circuit of ours may have other credit or room than before."""
        if link.is_answering:
            self.give_back(link)
        self.touch(link)

    # Publishers and circuits of neighbors

    def add_publisher(self, link: PublisherLink) -> None:
        """Take in a publisher that has attached here."""
        link.controller = self
        self.machine.add_publisher(link, client=link.port.id)
        self.touch()

    def remove_publisher(self, link: PublisherLink) -> None:
        """Forget a publisher that is gone; `drop` what was never delivered."""
        self.machine.remove_publisher(link)
        self._bound_departed()
        self.touch()

    def _bound_departed(self) -> None:
        """Bound what publishers leave behind, pre-settled: clients that come, cast and leave must not fill memory."""
        left, settings = self.publishers.left, self._context.current_settings.forwarding
        while left and (
            self.publishers.departed > settings.waiting_messages or self.entry.waiting_bytes > settings.waiting_bytes
        ):
            message = youngest_of(left)
            self.drop(message)
            self._context.waiting.refuse(message)

    def add_circuit(self, link: IngressCircuitLink) -> None:
        """Take in a circuit that a neighbor has attached."""
        link.controller = self
        assert link.port.neighbor is not None
        self.machine.add_circuit(link.root, link, link.port.neighbor)
        self.touch()

    def remove_circuit(self, link: IngressCircuitLink) -> None:
        """Forget a circuit that is gone; `drop` what was never delivered."""
        self.machine.remove_circuit(link.root, link)
        self.touch()

    def set_weight(self, link: IngressCircuitLink, weight: int) -> None:
        """Take a neighbor's word on how many busy publishers are behind its circuit."""
        self.machine.set_weight(link.root, link, weight)
        self.touch()

    def returned(self, link: IngressCircuitLink) -> None:
        """Take back credit if a flow on a neighbor's circuit is the answer to a drain."""
        credit = pn_link_drained(link.handle)
        if credit > 0:
            self.machine.circuit_drained(link.root, link, credit)
            self.touch()

    def closed(self, link: EgressCircuitLink) -> None:
        """Take the word of the next hop of a circuit of ours that nobody takes messages there any more."""
        raise NotImplementedError

    def keeps_waiting(self) -> bool:
        """Whether anything needs more credit to go on: publishers here, or messages that came by a circuit."""
        return self.publishers.is_backlogged

    # Messages

    def begin(self, link: IngressLink, transfer: Transfer, data: bytes) -> None:
        """Take the first part of a message, or all of it, that came on a link of the address."""
        transfer.append(data)
        transfer.entry = self.entry
        transfer.to = link.address
        if isinstance(link, PublisherLink):
            self.entry.ingress += 1
        self.take(transfer)

    def take(self, transfer: Transfer) -> None:
        """Send a message of the address, or let it wait."""
        link = transfer.ingress
        if link is not None:
            self._look_beside(link.port)
        if self._changed and not self._is_acting and self._restate(self._context.clock.now):
            self.touch()  # nothing is sent on credit that was taken back meanwhile
        is_ready = self._is_ready(transfer)
        if transfer.is_coming:
            if is_ready:
                transfer.is_coming = False
                self._keep(transfer, self.machine.ready(transfer), is_ready)
        elif transfer.is_brokered or link is None or link.controller is not self:
            if not is_ready:
                self._context.forwarder.hold(transfer)  # it comes again when it is whole: clients get no parts
                return
            self.touch()
            is_credited = transfer.is_brokered
            if self._requeue(transfer):
                transfer.is_brokered = True
                self._let_wait(transfer, is_credited)  # from now on: its sender's next one must not overtake it
            else:
                self._context.settlement.settle(transfer, RELEASE)
        else:
            self._take_new(transfer, link, is_ready)

    def _take_new(self, transfer: Transfer, link: IngressLink, is_ready: bool) -> None:
        """Tell the machine of a message that came on its credit, and do what it says."""
        transfer.is_brokered = True
        machine = self.machine
        # While others are about to be sent it goes behind them.
        is_behind = is_ready and self._is_acting
        if isinstance(link, IngressCircuitLink):
            circuit = link
            result = machine.arrived(circuit.root, link, transfer, self._context.clock.now, is_ready and not is_behind)
        else:
            result = machine.published(link, transfer, self._context.clock.now, is_ready and not is_behind)
        if result >= 0:
            self.send(transfer, machine.egresses[result])
            if machine.actions:
                self._carry_out(machine.take_actions())
            self._sent_at_once()
            return
        is_kept = result != REFUSED
        if is_behind and is_kept:
            machine.ready(transfer)
        advance(transfer, OFFERED)
        if machine.actions:
            self._carry_out(machine.take_actions())
        if is_kept and transfer.state != QUEUED:
            self._sent_at_once()
        else:
            self._keep(transfer, is_kept, is_ready)

    def _keep(self, transfer: Transfer, is_kept: bool, is_ready: bool) -> None:
        """Let a message wait for the end of the turn, or until more of it is there; or release it."""
        self.touch()
        if not is_kept:
            self._context.settlement.settle(transfer, RELEASE)
        elif is_ready:
            advance(transfer, OFFERED)
            self._fresh.append(transfer)
        else:
            transfer.is_coming = True
            self._context.forwarder.hold(transfer)

    def _look_beside(self, port: Port) -> None:
        """Look at subscribers of the connection that a message came on, at the first message of an input.

        Flows in the same input have changed their credit already, though their events come after that of the message.
        """
        beside = self._beside.get(port)
        if beside is None or (self._looked_in == self._context.clock.inputs and self._looked_at == port.id):
            return
        self._looked_in, self._looked_at = self._context.clock.inputs, port.id
        for link in beside:
            if pn_link_credit(link.handle) != link.unspent:
                self.touch(link)

    def _sent_at_once(self) -> None:
        """See to a turn, after a message was sent as it came."""
        self.touch()

    def _is_ready(self, transfer: Transfer) -> bool:
        """Whether it may leave before its end has come, or its end is there."""
        return transfer.is_complete or transfer.may_stream

    def _requeue(self, transfer: Transfer) -> bool:
        """Let a message wait for credit that comes on none, or has lost its way. Returns whether it may."""
        return False

    def used_for_nothing(self, link: IngressLink) -> None:
        """Count a credit of a publisher or a circuit that a transfer without a message has used."""
        nothing = object()
        if isinstance(link, IngressCircuitLink):
            self.machine.arrived(link.root, link, nothing, self._context.clock.now, is_ready=False)
        else:
            self.machine.published(link, nothing, self._context.clock.now, is_ready=False)
        self.machine.drop(nothing)
        self._carry_out(self.machine.take_actions())
        self.touch()

    def drop(self, transfer: Transfer) -> None:
        """Make a message wait here no longer, if it does."""
        transfer.is_coming = False
        if transfer.is_brokered and self.machine.drop(transfer):
            self.touch()

    def _try_elsewhere(self, transfer: Transfer) -> None:
        """Find another way for a message that has nowhere to go from here."""
        if transfer.state == WAITING:
            self._context.waiting.give_up(transfer)
        transfer.is_coming = False
        if transfer.state != HOLDING:  # else when it is whole
            advance(transfer, SELECTED)
            self._context.forwarder.dispatch(transfer)

    # Paths and links of our own

    def update_paths(self) -> None:
        """Tell the machine of routes and subscribers that have changed."""
        raise NotImplementedError

    def _circuit_lost(self, key: CircuitKey) -> None:
        """Tell the machine that a circuit of ours is gone, or can be made after it could not."""
        raise NotImplementedError

    def _is_own(self, link: EgressCircuitLink) -> bool:
        """Whether a circuit of ours is in use, and not one that is to go."""
        return self.own.get(link.key) is link

    def circuit_gone(self, link: EgressCircuitLink) -> None:
        """Forget a circuit of ours that was lost, or refused by the next hop."""
        self._changed.pop(link, None)
        if not self._is_own(link):
            return
        del self.own[link.key]
        if link.is_refused:
            self.windowed[link.key] = self._context.clock.now + self._context.retry_s
        self._circuit_lost(link.key)
        self.touch()

    def _leave(self, key: CircuitKey) -> None:
        """Retire a circuit: the way there is another one, or none."""
        self.windowed.pop(key, None)
        link = self.own.pop(key, None)
        if link is not None:
            self._changed.pop(link, None)
            self._context.retire(link)

    def subscriber_gone(self, link: SubscriberLink) -> None:
        """Forget a local subscriber that is no more."""
        raise NotImplementedError

    def _subscribers(self) -> list[SubscriberLink]:
        return local_subscribers(self.entry)

    def _tell_weight(
        self, key: CircuitKey, weight: int, *, toward: RouterId, root: RouterId, is_multicast: bool
    ) -> None:
        """Tell the next hop *toward* a router how many busy publishers are behind us; the first makes the circuit."""
        link = self.own.get(key)
        if link is None and weight and key not in self.windowed:
            link = self._make_circuit(key, toward, root, is_multicast=is_multicast)
        if link is not None:
            link.weight = weight
            self._context.updates_for(link.port).weights[link.name] = weight

    def _make_circuit(
        self, key: CircuitKey, toward: RouterId, root: RouterId, *, is_multicast: bool
    ) -> EgressCircuitLink | None:
        context = self._context
        route = context.fib.route(toward)
        port = context.ports.get(route.connection) if route is not None else None
        if port is None:
            return None  # its connection is gone; the new path brings us here again
        link = port.open_circuit(self._address, root, is_multicast) if port.open_circuit is not None else None
        if link is None:
            self.windowed[key] = context.clock.now + context.retry_s if port.open_circuit is not None else inf
            self.touch()
            return None
        link.controller = self
        link.key = key
        link.idle_since = context.clock.now
        self.own[key] = link
        return link

    # The turn

    def turn(self, now: float) -> None:
        """Tell the machine what credit there is, let it work, and see to what waits.

        Args:
            now: seconds, monotonic.
        """
        for key in [key for key, until in self.windowed.items() if until <= now]:
            del self.windowed[key]
            self._circuit_lost(key)
        is_due = self._restate(now) or self._is_due or self.deadline <= now
        self._is_due = False
        if not is_due:
            return
        actions = self.machine.turn(now)
        fresh, self._fresh = self._fresh, []
        if actions:
            self._carry_out(actions)
        for transfer in fresh:
            if transfer.state == QUEUED:
                self._let_wait(transfer, is_credited=True)
        self._links_deadline = self._end_idle_circuits(now)
        for until in self.windowed.values():
            self._links_deadline = min(self._links_deadline, until)
        self.look_again()

    def look_again(self) -> None:
        """Find the deadline anew: messages that were sent at once may have put it off."""
        self.deadline = min(self._links_deadline, self.machine.next_deadline())

    def next_deadline(self) -> float:
        """Tell the time at which `turn` is to be called without an event, seconds."""
        return self.deadline

    def _let_wait(self, transfer: Transfer, is_credited: bool) -> None:
        """Let a message wait for longer than this turn. A publisher's own needs no bound: it has no credit for two."""
        link = transfer.ingress
        is_own = isinstance(link, PublisherLink) and link.controller is self and not link.is_gone
        publisher = self.publishers.attached.get(link)
        if publisher is not None and publisher.excess > MOST_EXCESS:
            is_own = False  # it takes no notice of its credit
        self._context.waiting.enter(transfer, self.entry, is_bounded=not is_own, is_credited=is_credited)

    def _restate(self, now: float) -> bool:
        """Tell the machine of the credit that has changed. Returns whether that is a reason for a turn."""
        raise NotImplementedError

    def _see_withdrawal(self, link: SubscriberLink) -> None:
        """See whether a local subscriber took its credit back, since its credit was last looked at."""
        beside = self._beside.get(link.port)
        if beside is None:
            self._beside[link.port] = {link: None}
        else:
            beside[link] = None
        unspent = pn_link_credit(link.handle)
        if unspent > 0 or link.unspent > 0:
            is_withdrawn = unspent <= 0
            self._withdrawn_count += is_withdrawn - link.is_withdrawn
            link.is_withdrawn = is_withdrawn
        link.unspent = unspent

    def _forget_subscriber(self, link: SubscriberLink) -> None:
        """Forget a local subscriber that is no more."""
        self._changed.pop(link, None)
        self._withdrawn_count -= link.is_withdrawn
        link.is_withdrawn = False
        beside = self._beside.get(link.port, {})
        beside.pop(link, None)
        if not beside:
            self._beside.pop(link.port, None)

    def lendable(self, link: SubscriberLink) -> int:
        """Messages that publishers may get of a subscriber's credit, as it is: a change may not have been looked at."""
        return self._measure_lendable(link) if link in self._changed else link.brokered

    def _measure_lendable(self, link: SubscriberLink) -> int:
        """The part of what may be sent to a subscriber at once that is lent out at a time."""
        return min(self._measure(link), self._context.brokered_messages)

    def _measure(self, link: EgressLink) -> int:
        """Messages that may be sent on a link at once: none while a long one is under way, or too much is unwritten."""
        credit: int = pn_link_credit(link.handle) - link.backlog()
        return credit if credit > 0 and link.can_send() else 0

    def _end_idle_circuits(self, now: float) -> float:
        """End circuits of ours that nobody behind us needs. Returns when to look again, seconds."""
        due = inf
        unneeded = []
        for key, link in self.own.items():
            if link.weight or link.outstanding or link.current is not None or link.waiting:
                link.idle_since = now
            elif link.idle_since + self._context.circuit_idle_s <= now:
                unneeded.append(key)
            if not link.weight:
                due = min(due, link.idle_since + self._context.circuit_idle_s)
        for key in unneeded:
            link = self.own.pop(key)
            link.controller = None
            self._context.end(link)
            self._circuit_lost(key)
            due = now
        return due

    # What the machine wants done

    def _carry_out(self, actions: list[CreditAction]) -> None:
        """Do what an event or a turn returned, in its order."""
        was_acting = self._is_acting
        self._is_acting = True
        try:
            for action in actions:
                try:
                    if isinstance(action, Grant):
                        self.grant(action.publisher, action.credit)
                    elif isinstance(action, GrantCircuit):
                        self.grant_circuit(action.circuit, action.credit)
                    elif isinstance(action, DrainCircuit):
                        self.drain_circuit(action.circuit)
                    elif isinstance(action, TellNeighborSubscribersWithdrew):
                        self.close_circuit(action.circuit)
                    else:
                        self._act(action)
                except Exception as error:  # a fault of ours: the machine counts on the other actions all the same
                    self._end_faulty(action, error)
        finally:
            self._is_acting = was_acting

    def _end_faulty(self, action: CreditAction, error: Exception) -> None:
        """End the message that an action could not send, and look at all credit anew: the machine took it for sent."""
        transfer = error.transfer if isinstance(error, StageError) else getattr(action, "message", None)
        if transfer is None:
            self._context.faults.of_address(self.entry, error)
            return
        self._context.forwarder.fail(transfer, error)
        for link in (*self._subscribers(), *self.own.values()):
            self.touch(link)

    def _act(self, action: CreditAction) -> None:
        """Do what only machines of this kind want done."""
        raise NotImplementedError

    def send(self, transfer: Transfer, egress: RouterId) -> None:
        """Send a message toward an egress that has credit for it."""
        raise NotImplementedError

    def grant(self, link: PublisherLink, credit: int) -> None:
        """Add credit to a publisher's link, or take it back.

        What it has sent and nobody has read yet used some of it: no more is taken back than is left, since a
        link-credit below zero is read as four billion; the rest is kept back from what is granted next.
        """
        # DEV-27: qdrouterd grants 250 of its own.
        handle = link.handle
        if link.port.is_over and credit > 0:
            # What it has sent beyond its credit it must get: none is ever below zero on the wire.
            used = min(credit, max(0, pn_link_queued(handle) - pn_link_credit(handle)))
            link.withheld += credit - used
            credit = used
        elif link.withheld and credit < 0:
            kept = min(-credit, link.withheld)
            link.withheld -= kept
            credit += kept
        if credit < 0:
            left = pn_link_credit(handle) - pn_link_queued(handle)
            taken = min(-credit, max(0, left))
            link.owed += -credit - taken
            credit = -taken
        elif link.owed:
            kept = min(credit, link.owed)
            link.owed -= kept
            credit -= kept
        if credit:
            link.change_credit(credit)

    def grant_circuit(self, circuit: IngressCircuitLink, credit: int) -> None:
        """Add credit to a neighbor's circuit."""
        if circuit.port.is_over:
            circuit.withheld += credit
            return
        circuit.change_credit(credit)

    def give_withheld(self, link: IngressLink) -> None:
        """Grant what was withheld: the connection of a publisher or a circuit is no longer above its mark."""
        withheld, link.withheld = link.withheld, 0
        if withheld and isinstance(link, PublisherLink):
            self.grant(link, withheld)
        elif withheld and isinstance(link, IngressCircuitLink):
            self.grant_circuit(link, withheld)

    def drain_circuit(self, circuit: IngressCircuitLink) -> None:
        """Ask a neighbor for what is left of a circuit's credit."""
        if circuit.withheld:  # it can give back only what it has
            circuit.change_credit(circuit.withheld)
            circuit.withheld = 0
        pn_link_drain(circuit.handle, 0)
        circuit.port.touch()

    def close_circuit(self, circuit: IngressCircuitLink) -> None:
        """Tell a neighbor that nobody takes messages of its circuit any more."""
        self._context.updates_for(circuit.port).closed.append(circuit.name)

    def _answer_drain(self, link: EgressLink) -> None:
        link.is_answering = True
        self.give_back(link)

    def give_back(self, link: EgressLink) -> None:
        """Answer a drain, once all that was sent on the link is written."""
        if not pn_link_get_drain(link.handle):
            link.is_answering = False
        elif link.is_idle():
            link.is_answering = False
            if pn_link_drained(link.handle):
                link.port.touch()
            self.touch(link)


MOST_EXCESS: Final = 100
"""Messages that came later than a quarantine after their credit was taken back: so many are a slow client's."""
