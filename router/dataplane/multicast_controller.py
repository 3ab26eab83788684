"""Credit controller of a multicast address: a publisher has credit when every live subscriber of the mesh has.

Messages run along the tree of the router where they enter, on circuits of that tree, one copy on each. A child that
takes no circuits gets its copies as datagrams and grants nothing. Copies are pre-settled; the ingress router alone
acknowledges, when every copy has been given to its link. Each is taken once (`multicast_repair.py`).

Source: docs/explanation/credit.md#multicast.
"""

from __future__ import annotations

import cython

from router.core.forwarding.credit_actions import CreditAction, ReturnCredit, TellWeight
from router.core.forwarding.fib import AddressEntry
from router.core.forwarding.multicast_scheduler import MulticastScheduler
from router.core.forwarding.multicast_tree import MOST_CREDIT, BranchExcluded, RepairReopenedBranch
from router.core.ids_and_conditions import RouterId
from router.dataplane.controller_context import ControllerContext
from router.dataplane.credit_controller import CreditController
from router.dataplane.credit_key_types import AnswerSubscriberDrain, SendCopies, messages_of
from router.dataplane.links import EgressCircuitLink, EgressLink, IngressCircuitLink, SubscriberLink, Transfer
from router.dataplane.settlement import MISSED
from router.dataplane.transfer_lifecycle import advance

if not cython.compiled:  # else they come by the .pxd
    from router.binding.proton_functions import ACCEPTED, pn_link_get_drain
    from router.dataplane.transfer_stages import SELECTED, WAITING

Branch = tuple[RouterId, RouterId]
"""An ingress router, and a child of this router in its tree."""


class MulticastController(CreditController):
    """Controller of one multicast address."""

    machine: MulticastScheduler

    def __init__(self, entry: AddressEntry, context: ControllerContext) -> None:
        super().__init__(entry, context)
        self.machine = MulticastScheduler(self._me, timing=context.timing, patience=context.patience)
        self._known: dict[SubscriberLink, None] = {}
        """Local subscribers that the machine knows."""
        self._children: dict[RouterId, list[RouterId]] = {}
        """Children of this router in the tree of each ingress router."""
        for link in self._subscribers():
            self.touch(link)
        self.update_paths()

    def is_idle(self) -> bool:
        """Whether nobody needs it any more."""
        return CreditController.is_idle(self) and len(self.machine.trees) == 1

    def closed(self, link: EgressCircuitLink) -> None:
        """Take a child's word that nobody below it is live."""
        if self._is_own(link):
            ingress, child = link.key
            self.machine.outlet_closed(ingress, child)
            self.touch()

    def take(self, transfer: Transfer) -> None:
        """Send a message of the address, or let it wait; not if it was here before."""
        link = transfer.ingress
        is_first = transfer.is_coming or not transfer.is_brokered
        if transfer.tag is None or not is_first or not isinstance(link, IngressCircuitLink):
            CreditController.take(self, transfer)
            return
        circuit = link
        if not self._context.repair.is_new(self.entry, circuit.root, transfer.tag):
            self._drop_counted(transfer, circuit)
            self._context.settlement.settle(transfer, ACCEPTED)  # it is no loss
        elif self.machine.is_upstream(circuit.root, link):
            CreditController.take(self, transfer)
        else:  # the tree has changed behind it
            self._drop_counted(transfer, circuit)
            self._context.forwarder.fan_out(transfer)

    def _drop_counted(self, transfer: Transfer, link: IngressCircuitLink) -> None:
        """Count the credit that a message came with as used: it is not to leave on it."""
        if transfer.is_coming:
            self.drop(transfer)
        else:
            self.used_for_nothing(link)

    def _is_ready(self, transfer: Transfer) -> bool:
        """Whether its copies may leave: every one must be whole."""
        return transfer.is_complete

    def _requeue(self, transfer: Transfer) -> bool:
        link = transfer.ingress
        if isinstance(link, IngressCircuitLink):
            return False
        return self.machine.add_uncredited(transfer, link.port.id if link is not None else None)

    # Paths and links of our own

    def add_circuit(self, link: IngressCircuitLink) -> None:
        """Take in a circuit that a neighbor has attached."""
        super().add_circuit(link)
        self._place_children(link.root)
        for child in self._children.get(link.root, ()):
            own = self.own.get((link.root, child))
            if own is not None:
                self.touch(own)  # the tree may have been forgotten when its credit came

    def update_paths(self) -> None:
        """Tell the machine of trees, routes and subscribers that have changed."""
        for ingress in {**self.machine.trees, **self._children}:
            self._place_children(ingress)
        self.touch()

    def _place_children(self, ingress: RouterId) -> None:
        context = self._context
        is_known = ingress == self._me or ingress in context.fib.routes
        children = [route.next_hop for route in context.fib.multicast_hops(self.entry, ingress)] if is_known else []
        for child in self._children.pop(ingress, ()):
            if child not in children:
                self._leave((ingress, child))
        if children:
            self._children[ingress] = children
        predecessor = context.fib.predecessor(ingress) if is_known else None
        reached = [len(context.fib.below(ingress, child)) for child in children]
        lost = self.machine.set_children(ingress, children, predecessor, reached)
        for child in children:
            if (ingress, child) not in self.own and (ingress, child) not in self.windowed:
                self.machine.outlet_lost(ingress, child)  # so that it is made, now that it may be possible
        for message in messages_of(lost):
            self._try_elsewhere(message)

    def _circuit_lost(self, branch: Branch) -> None:
        ingress, child = branch
        self.machine.outlet_lost(ingress, child)
        self.touch()  # before a message is sent on what it had

    def subscriber_gone(self, link: SubscriberLink) -> None:
        """Forget a local subscriber that is no more."""
        self._forget_subscriber(link)
        if link in self._known:
            del self._known[link]
            for message in messages_of(self.machine.remove_subscriber(link, self._context.clock.now)):
                self._try_elsewhere(message)
        self.touch()

    # The turn

    def _restate(self, now: float) -> bool:
        changed, self._changed = self._changed, {}
        for link in changed:
            if link.is_gone:
                continue
            if isinstance(link, SubscriberLink):
                self._restate_subscriber(link, now)
                continue
            if isinstance(link, EgressCircuitLink) and self._is_own(link):
                credit = self._measure(link)
                is_draining = credit > 0 and bool(pn_link_get_drain(link.handle))
                ingress, child = link.key
                self.machine.set_outlet(ingress, child, credit, is_draining=is_draining)
        for ingress, child in self.windowed:
            self.machine.set_outlet(ingress, child, MOST_CREDIT)
        return bool(changed)

    def _restate_subscriber(self, link: SubscriberLink, now: float) -> None:
        subscribers = self.machine.local_subscribers
        if link not in self._known:
            self._known[link] = None
            subscribers.add(link)
        self._see_withdrawal(link)
        link.brokered = self._measure_lendable(link)
        is_draining = link.brokered > 0 and bool(pn_link_get_drain(link.handle))
        subscribers.changed(link, link.brokered, now, is_draining, link.is_withdrawn)

    # What the machine wants done

    def _act(self, action: CreditAction) -> None:
        if isinstance(action, SendCopies):
            self._send_copies(action)
        elif isinstance(action, ReturnCredit):
            link = self.own.get((action.root, action.neighbor))
            if link is not None:
                self._answer_drain(link)
        elif isinstance(action, AnswerSubscriberDrain):
            self._answer_drain(action.subscriber)
        elif isinstance(action, TellWeight):
            ingress, child = action.root, action.neighbor
            assert child is not None
            self._tell_weight((ingress, child), action.weight, toward=child, root=ingress, is_multicast=True)
        elif isinstance(action, BranchExcluded):
            self._context.exclusions[self._address, action.neighbor] = action.held_s
        elif isinstance(action, RepairReopenedBranch):
            self._context.repair.branch_reopened(self._context.clock.now)

    def _send_copies(self, action: SendCopies) -> None:
        """Send a copy to each child and each local subscriber, and acknowledge it."""
        message, ingress = action.message, action.ingress
        context = self._context
        if message.state == WAITING:
            context.waiting.give_up(message)
        advance(message, SELECTED)
        source = message.ingress
        parent = source.port.neighbor if isinstance(source, IngressCircuitLink) else None
        if parent is None and ingress == self._me:
            message.tag = context.repair.number(self.entry)
        data = message.whole()
        own = context.egress.leading_for(message, data, to_router=False)
        is_copied = context.copying.send(own, message, self.entry, action.subscribers, is_counted=True)
        sent_to = [*action.passed_over] if parent is None else [*action.passed_over, parent]
        for neighbor in action.neighbors:
            circuit = self.own.get((ingress, neighbor))
            if circuit is not None:
                self._send_copy(own, message, circuit)
            elif not context.forwarder.send_copy_as_datagram(message, ingress, neighbor):
                continue
            sent_to.append(neighbor)
        if message.tag is not None:
            # An excluded neighbor is not to get it later. A neighbor that said that nobody below it is live gets it
            # once somebody is: it may not have heard yet of all that is below it.
            context.repair.keep(self.entry, ingress, message.tag, own, tuple(sent_to), context.clock.now)
        for link in action.missed:
            link.counters.dropped += 1
            self.entry.dropped += 1
            context.settlement.dropped[MISSED] += 1
        if is_copied:
            context.settlement.settle(message, ACCEPTED)
        for neighbor in action.passed_over:
            self._count_missed((ingress, neighbor))

    def _count_missed(self, branch: Branch) -> None:
        self.entry.dropped += 1
        self._context.settlement.dropped[MISSED] += 1
        circuit = self.own.get(branch)
        if circuit is not None:
            circuit.counters.dropped += 1

    def _send_copy(self, data: bytes, message: Transfer, link: EgressLink) -> None:
        self._context.egress.send_copy(data, message, link)
        if not link.can_send():
            self.touch(link)  # it can take less than what was counted on
