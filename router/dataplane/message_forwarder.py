"""Forwarding: the address of a message that names it itself, its egress, and whether it is held or waits first.

`progress` is called with every part that was read, but for the first of a message on a link whose address has a
controller. `_route` finds the address, `dispatch` hands the message to its controller or chooses an egress
(`core.forwarding.egress_selection`), `MessageSender` writes. A message in parts goes to a client only when it is whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import cython

from router.core.addressing.address import MANAGEMENT, AddressKind, with_vhost
from router.core.errors import DecodeError, PeerProtocolError
from router.core.forwarding.egress_selection import choose
from router.core.forwarding.fib import MULTICAST, AddressEntry, Fib, Route, Subscriber
from router.core.ids_and_conditions import Condition, ConnectionId, RouterId
from router.dataplane.anycast_controller import AnycastController
from router.dataplane.connection_port import Port
from router.dataplane.credit_controller import CreditController
from router.dataplane.credit_key_types import publishers_of
from router.dataplane.credit_manager import CreditManager
from router.dataplane.current_settings import CurrentSettings
from router.dataplane.datagram_fanout import DatagramFanout
from router.dataplane.internal_error_handlers import InternalErrorHandlers
from router.dataplane.links import (
    HEAD_BYTES,
    EgressCircuitLink,
    EgressLink,
    IngressCircuitLink,
    IngressDatagramLink,
    IngressLink,
    PublisherLink,
    SubscriberLink,
    Transfer,
    local_subscribers,
    new_transfer,
)
from router.dataplane.message_refusals import (
    AddressStreamBudgetSpent,
    ForeignUserId,
    MulticastTooLarge,
    RequestTooLarge,
    SenderOverMark,
    TooManyRequests,
)
from router.dataplane.message_sender import MessageSender
from router.dataplane.multicast_repair import MulticastRepair
from router.dataplane.scan_result import Scan
from router.dataplane.section_scanner import read_reply_to, scan
from router.dataplane.settlement import FAIL, RELEASE, Settlement
from router.dataplane.slow_streams import SlowStreams
from router.dataplane.transfer_lifecycle import StageError, advance
from router.dataplane.turn_clock import TurnClock
from router.dataplane.waiting_messages import WaitingMessages

if not cython.compiled:  # else they come by the .pxd
    from router.binding.proton_functions import ACCEPTED, NULL, pn_link_drained, pn_link_get_drain
    from router.dataplane.transfer_stages import (
        DONE,
        GATHERED,
        HELD,
        HOLDING,
        NEW,
        RETRIED,
        STRANDED,
        STREAMING,
        WAITING,
    )

ANNOTATION_BYTES: Final = 65536
"""Maximum growth of a message on its way, bytes, so that no router refuses what another one has passed on."""


class Forwarder:
    """Decides for each message, and moves what waits when things change; with the controllers of addresses."""

    def __init__(
        self,
        clock: TurnClock,
        fib: Fib,
        ports: dict[ConnectionId, Port],
        settings: CurrentSettings,
        settlement: Settlement,
        egress: MessageSender,
        waiting: WaitingMessages,
        streams: SlowStreams,
        repair: MulticastRepair,
        end_circuit: Callable[[EgressCircuitLink], None],
        faults: InternalErrorHandlers,
    ) -> None:
        self.clock = clock
        self._fib = fib
        self._ports = ports
        self._settings = settings
        self._settlement = settlement
        self._egress = egress
        self._waiting = waiting
        self._streams = streams
        self._faults = faults
        self._is_last_try = False
        self.is_handing_back = False
        """Whether what clients publish is released while stopping, so that they send it elsewhere."""
        self.credit_manager = CreditManager(
            clock, fib, ports, settings, settlement, egress, waiting, repair, self, end_circuit, faults
        )
        self._fanout = DatagramFanout(fib, ports, egress, settlement, repair, self.credit_manager.copying)

    def set_handing_back(self, is_handing_back: bool) -> None:
        """Release what clients publish, or forward it again."""
        self.is_handing_back = is_handing_back

    def publish(self, to: str, data: bytes) -> None:
        """Send a whole message of this process itself, pre-settled, to an address."""
        transfer = new_transfer(None, NULL, self.clock.now)
        transfer.is_complete = transfer.is_settled = True
        transfer.append(bytes(data))
        transfer.entry = self._fib.find(to)
        transfer.to = to
        self.dispatch(transfer)

    def progress(self, transfer: Transfer, data: bytes) -> None:
        """Go on with a message of which more is there, or its end."""
        state = transfer.state
        if state == STREAMING:
            link = transfer.egress
            self._egress.stream(transfer, data)
            if transfer.is_complete and link is not None:
                self.flowed(link)  # it can take others again
            return
        if state == DONE:
            if transfer.is_complete:
                self._settlement.leave_ingress(transfer)
            return
        transfer.append(data)
        if state == NEW:
            self._route(transfer)
        elif state == HOLDING:
            self._hold(transfer, len(data))
        elif state == WAITING:
            self._waiting.grew(transfer, len(data))

    def follow_sections(self, transfer: Transfer, data: bytes) -> bool:
        """Read the next bytes of a message whose receivers must find in it what policy has looked at.

        Returns: False when it is rejected, and what was sent of it aborted: a section comes twice or out of its order.
        """
        link = transfer.ingress
        if link is None or transfer.state == DONE:
            return True
        sections = link.sections
        assert sections is not None
        try:
            sections.follow(data, transfer.is_complete)
        except DecodeError as error:
            self._settlement.tell_rejected(transfer, error.condition, str(error))
            self.abandon(transfer)
            return False
        return True

    def _route(self, transfer: Transfer) -> None:
        """Find the address entry, as soon as enough of the message is there."""
        link = transfer.ingress
        assert link is not None
        if transfer.entry is not None:
            self.dispatch(transfer)  # it was known already, and the message's first sections were not there
            return
        try:
            if link.entry is not None:
                if link.sections is not None and not self._may_say(transfer, link):
                    return
                transfer.entry = link.entry
                transfer.to = link.address
            elif link.address is not None:  # at an edge router
                if link.sections is not None and not self._may_say(transfer, link):
                    return
                transfer.entry = self._fib.target(link.address)
                transfer.to = link.address
            elif not self._read_address(transfer, link):
                return
        except PeerProtocolError as error:
            self.forget(transfer)
            self._settlement.reject_for(transfer, error)
            return
        if transfer.state == DONE:
            return
        if transfer.entry is None:
            self._settlement.settle(transfer, RELEASE)
            return
        if isinstance(link, PublisherLink):
            publisher = link
            transfer.entry.ingress += 1
            if publisher.window < publisher.most_window and transfer.entry.is_open:
                self._settlement.grow(publisher)
            if self.is_handing_back and transfer.entry.kind is AddressKind.MOBILE:
                self._settlement.settle(transfer, RELEASE)
                return
        self.dispatch(transfer)

    def _read_address(self, transfer: Transfer, link: IngressLink) -> bool:
        """The destination of a message that names it itself. Returns False when more bytes are needed."""
        port = link.port
        found = self._scan(transfer, False, not port.is_router)
        if found is None:
            return False
        to = found.to_override if port.is_router and found.to_override is not None else found.to
        transfer.to = found.to_override if port.is_router else None
        if to is None:
            raise PeerProtocolError("routing failure: no address present")
        if 4 * len(to) > self._settings.forwarding.address_bytes and not port.is_router:
            self._check_length(to)
        if port.is_router:
            if self._fib.me in found.trace:
                self._settlement.settle(transfer, RELEASE)
                return True
            if found.ingress is None and port.neighbor is not None:
                found.ingress, found.trace = port.neighbor, (port.neighbor,)
            if port.rights is not None:
                port.rights.message_target(to, port.id)
        elif port.rights is not None:
            self._check_user_id(found, link)
            to = port.rights.message_target(to, port.id)
            if MANAGEMENT in to and port.rights.asks_other_router(to):
                self._check_reply_to(transfer, found, link)
            if port.rights.prefix:
                transfer.to = to
        elif port.vhost is not None:
            to = transfer.to = with_vhost(to, port.vhost)
        transfer.entry = self._fib.target(to)
        return True

    def _may_say(self, transfer: Transfer, link: IngressLink) -> bool:
        """Look at the properties of a message on a link with an address. Returns False when more bytes are needed."""
        found = self._scan(transfer, False, True)
        if found is None:
            return False
        self._check_user_id(found, link)
        if link.asks_other_router:
            self._check_reply_to(transfer, found, link)
        return True

    def _check_user_id(self, found: Scan, link: IngressLink) -> None:
        """Refuse a `user-id` that is another's: receivers take it for who has sent the message (AMQP part 3, 3.2.4)."""
        if link.user_id is not None and found.user_id and found.user_id != link.user_id:
            error = ForeignUserId()
            if link.port.rights is not None:
                link.port.rights.denied_user_id(error, link.port.id)
            raise error

    def _check_reply_to(self, transfer: Transfer, found: Scan, link: IngressLink) -> None:
        """Refuse a request to another router that wants its answer where its sender may not send.

        That router would write there in its stead: it doesn't know who has asked.
        """
        properties = transfer.head()[found.properties_start : found.properties_end]
        reply_to = read_reply_to(properties) if properties else None
        if reply_to and link.port.rights is not None:
            link.port.rights.message_target(reply_to, link.port.id)

    def _check_length(self, to: str) -> None:
        """Refuse an address that no link could have either."""
        size = len(to.encode())
        limit = self._settings.forwarding.address_bytes
        if size > limit:
            raise PeerProtocolError(
                f"the address {to[:20]!r}... in `to` has {size} bytes, and may have {limit}",
                condition=Condition.INVALID_FIELD,
            )

    def dispatch(self, transfer: Transfer) -> None:
        """Send it, hold its parts, or let it wait."""
        entry = transfer.entry
        if entry is None:
            self._settlement.settle(transfer, RELEASE)
        elif self._is_brokered(transfer):
            self._controller_of(transfer, entry).take(transfer)
        elif entry.service is not None or entry.treatment is MULTICAST:
            if transfer.is_complete:
                self._deliver_whole(transfer, entry)
            else:
                self.hold(transfer)
        else:
            self._dispatch_anycast(transfer, entry)

    def _controller_of(self, transfer: Transfer, entry: AddressEntry) -> CreditController:
        """Find its link's controller; that of the address when the link is gone, or has none."""
        source = transfer.ingress
        controller = source.controller if source is not None else None
        return controller if controller is not None else self.credit_manager.of(entry)

    def _is_brokered(self, transfer: Transfer) -> bool:
        """Whether it came on credit that was dealt, and not as a datagram."""
        source = transfer.ingress
        return transfer.is_brokered or (source is not None and source.controller is not None)

    def _deliver_whole(self, transfer: Transfer, entry: AddressEntry) -> None:
        source = transfer.ingress
        if entry.service is None:
            if source is not None and source.port.is_router:
                self.fan_out(transfer)
            else:
                self.credit_manager.of(entry).take(transfer)
            return
        if transfer.size > self._most_held(transfer, entry):
            self._settlement.reject_for(transfer, RequestTooLarge(transfer.size, entry.service_bytes))
            return
        if entry.service(transfer.whole(), source.port.id if source is not None else None):
            self._settlement.settle(transfer, ACCEPTED)
        else:
            self._settlement.reject_for(transfer, TooManyRequests("too many requests wait for their answers"))

    def fan_out(self, transfer: Transfer) -> None:
        """Copy a whole multicast of a neighbor without credit that was set aside for it."""
        entry = transfer.entry
        assert entry is not None
        if entry.remotes and not self._look_into(transfer):
            return
        source = transfer.ingress
        if isinstance(source, IngressCircuitLink) and transfer.scan is not None:
            transfer.scan.ingress = source.root
        self._fanout.send(transfer, entry, self.clock.now)
        self.credit_manager.used_by_copies(entry)

    def _dispatch_anycast(self, transfer: Transfer, entry: AddressEntry) -> None:
        target = self._choose(transfer, entry)
        if target is not None:
            self._send_to(transfer, target)
        elif entry.subscribers:
            self.credit_manager.of(entry).take(transfer)
        else:
            self._settlement.settle(transfer, RELEASE)

    def _choose(self, transfer: Transfer, entry: AddressEntry) -> Subscriber | Route | None:
        found = transfer.scan
        passed = found.trace if found is not None else ()
        if found is not None and found.egress is not None:
            # The router where it entered the mesh has chosen: were each to choose anew, messages would overtake.
            if found.egress == self._fib.me and entry.subscribers:
                return self._choose_local(entry)
            route = self._fib.routes.get(RouterId(found.egress))
            if route is not None and route.router in entry.remotes and route.next_hop not in passed:
                return route
        window = self._settings.forwarding.publisher_window
        return choose(entry, self._fib.routes, passed, window, self.clock.now, self._choose_local(entry))

    def _choose_local(self, entry: AddressEntry) -> SubscriberLink | None:
        """Choose the local subscriber for a message without credit; None when it has to wait, or there is none.

        It waits for credit or behind another message.
        """
        subscribers = entry.subscribers
        if not subscribers or entry.waiting:
            return None
        if len(subscribers) > 1:
            controller = self.credit_manager.of(entry)
            if not isinstance(controller, AnycastController):
                return None
            anycast = controller
            return anycast.next_subscriber()
        (only,) = local_subscribers(entry)
        return only if only.has_credit() else None

    def _send_to(self, transfer: Transfer, target: Subscriber | Route) -> None:
        """Send a datagram; a client gets one in parts only once it is whole, or too large to be held."""
        if isinstance(target, Route):
            self.send_datagram(transfer, target)
        elif not (transfer.is_complete or transfer.may_stream):
            self.hold(transfer)
        elif isinstance(target, SubscriberLink):
            self._egress.send(transfer, target)
            controller = target.controller
            if isinstance(controller, AnycastController):
                anycast = controller
                anycast.sent_uncredited(target)

    def send_datagram(self, transfer: Transfer, route: Route) -> None:
        """Send it on the data links of a neighbor, with its destination in annotations."""
        port = self._ports.get(route.connection)
        if port is None or not port.data_links:
            # the connection is gone, and the routes of this turn are not there yet
            if self._is_last_try:
                self._settlement.settle(transfer, RELEASE)
            else:
                self._settlement.strand(transfer)
            return
        # DEV-29: of one that came on a circuit nobody knows where it entered, so annotations begin here.
        if not self._look_into(transfer):
            return
        entry = transfer.entry
        load = entry.remotes.get(route.router) if entry is not None else None
        if load is not None and not transfer.is_settled:
            load.datagrams += 1
            load.unsettled += 1
            transfer.load = load
        links = port.data_links
        assert transfer.scan is not None
        assert entry is not None
        # DEV-33: only routers that take circuits are known to understand it.
        has_choice = transfer.scan.egress is not None or len(entry.remotes) > 1 or bool(entry.subscribers)
        is_named = has_choice and entry.owner is None and port.open_circuit is not None
        transfer.scan.egress = route.router if is_named else None
        # DEV-5: the priority chooses one of a qdrouterd's links and does nothing else.
        link = links[0] if len(links) == 1 else links[min(transfer.scan.priority, len(links) - 1)]
        self._egress.commit_in_order(transfer, link)

    def send_copy_as_datagram(self, transfer: Transfer, ingress: RouterId, neighbor: RouterId) -> bool:
        """Send a copy of a multicast that entered at *ingress* on a data link; not if it is no message.

        Returns: whether it was sent; there may be no way to *neighbor* until the routes are up to date.
        """
        if transfer.scan is None:
            try:
                transfer.scan = scan(transfer.whole(), True, stop_at_annotations=True, from_client=True)
            except PeerProtocolError:
                return False  # others have it already, and it has one outcome
        found = transfer.scan
        assert found is not None
        if ingress != self._fib.me:
            found.ingress = ingress
        route = self._fib.route(neighbor)
        if route is None or transfer.entry is None:
            return False
        return self._fanout.send_to(transfer, transfer.entry, ingress, route)

    def retry_stranded(self) -> None:
        """Send what lost its way by another, now that the routes are up to date; what has none is released."""
        self._is_last_try = True
        try:
            for transfer in self._settlement.take_stranded():
                if transfer.state == STRANDED:
                    try:
                        advance(transfer, RETRIED)
                        self.dispatch(transfer)
                    except Exception as error:  # a fault of ours with one must not keep the others here for ever
                        self.fail(error.transfer if isinstance(error, StageError) else transfer, error)
        finally:
            self._is_last_try = False

    def _look_into(self, transfer: Transfer) -> bool:
        """Read the sections among which this router's annotations go. False when it is rejected, or more must come."""
        if transfer.scan is None:
            try:
                self._scan(transfer, True, True)
            except PeerProtocolError as error:
                self._settlement.reject_for(transfer, error)
        return transfer.scan is not None

    def _scan(self, transfer: Transfer, stop_at_annotations: bool, from_client: bool) -> Scan | None:
        """Scan the leading sections; None if they are incomplete: tried again when twice as many bytes are there."""
        data = transfer.head()
        is_whole = transfer.has_all(data)
        if len(data) < 2 * transfer.scanned_bytes and len(data) < HEAD_BYTES and not is_whole:
            return None
        transfer.scan = scan(data, is_whole, stop_at_annotations, from_client)
        if transfer.scan is None:
            transfer.scanned_bytes = len(data)
        return transfer.scan

    # Holding and waiting

    def hold(self, transfer: Transfer) -> None:
        """Collect the parts of a message that somebody must get whole, on the account of its sender's connection."""
        # DEV-17: qdrouterd passes them on as they come, and aborts the message when its sender dies.
        assert transfer.ingress is not None
        port = transfer.ingress.port
        advance(transfer, HELD)
        transfer.held_for = port
        port.held_bytes += transfer.size
        self._hold(transfer, 0)

    def _hold(self, transfer: Transfer, added: int) -> None:
        port = transfer.held_for
        assert port is not None
        port.held_bytes += added
        settings = self._settings.forwarding
        entry = transfer.entry
        assert entry is not None
        is_too_large = transfer.size > self._most_held(transfer, entry)
        is_too_large = is_too_large or port.held_bytes > settings.held_connection_bytes
        if port.is_over and (entry.treatment is not MULTICAST or self._waiting.is_closed or port.is_stopped):
            is_too_large = True  # were it held, and none of its connection's whole, nothing would ever leave
        if not (transfer.is_complete or is_too_large):
            return
        self._settlement.unhold(transfer)
        advance(transfer, GATHERED)
        if not transfer.is_complete and (entry.service is not None or entry.treatment is MULTICAST or port.is_stopped):
            # DEV-9: a multicast is held whole at each router, so its size has a bound.
            self.forget(transfer)
            if port.is_over and transfer.size <= settings.held_message_bytes:
                self._settlement.reject_for(transfer, SenderOverMark())
            elif entry.service is None:
                self._settlement.reject_for(transfer, MulticastTooLarge(settings.held_message_bytes))
            else:
                self._settlement.reject_for(transfer, RequestTooLarge(transfer.size, entry.service_bytes))
            return
        transfer.may_stream = not transfer.is_complete
        if transfer.may_stream and not port.is_over and not self._may_stream(transfer, entry):
            self.forget(transfer)
            self._settlement.reject_for(transfer, AddressStreamBudgetSpent())
            return
        self.dispatch(transfer)

    def _may_stream(self, transfer: Transfer, entry: AddressEntry) -> bool:
        """Whether a message may keep others from the subscribers of its address until its end has come."""
        controller = self.credit_manager.find(entry)
        return controller is None or not controller.keeps_waiting() or self._streams.may_begin(transfer, entry)

    def hold_less(self, transfer: Transfer) -> None:
        """See whether a message may still be held until it is whole: its connection is above its mark."""
        if transfer.state == HOLDING:
            self._hold(transfer, 0)

    def _most_held(self, transfer: Transfer, entry: AddressEntry) -> int:
        """Bytes up to which it is held until it is whole."""
        limit = self._settings.forwarding.held_message_bytes if entry.service is None else entry.service_bytes
        source = transfer.ingress
        if isinstance(source, IngressDatagramLink):
            limit += ANNOTATION_BYTES
        return limit

    def reconsider(self, entry: AddressEntry) -> None:
        """Move credit, and what waits: others than before take the messages of an address."""
        self.credit_manager.repair.subscribers_changed(entry, self.clock.now)
        controller = self.credit_manager.find(entry)
        if controller is not None:
            self.credit_manager.update_paths(controller)
            return  # it sees to all publishers of the address
        for link in publishers_of(entry):
            self._settlement.top_up(link)

    def drop_incomplete(self, transfer: Transfer) -> None:
        """End a message that its sender gave up, or whose sender is gone, before the last part came."""
        transfer.is_complete = True
        self.abandon(transfer)

    def abandon(self, transfer: Transfer) -> None:
        """End a message that was rejected before its last part came: what still comes of it is thrown away."""
        self.forget(transfer)
        egress = transfer.egress
        if transfer.state == STREAMING:
            self._settlement.leave_egress(transfer)
        self._settlement.finish(transfer)
        if egress is not None:
            self.flowed(egress)

    def end_faulty(self, error: StageError) -> None:
        """Give a message an outcome to which something has happened that can't be in its stage."""
        self.fail(error.transfer, error)

    def fail(self, transfer: Transfer, error: Exception) -> None:
        """Give a message an outcome because of *error*: a fault of ours, which must stop no other.

        Whatever has happened to it, its publisher must not take it for lost without a trace: delivery-failed.
        """
        self._faults.of_message(transfer, error)
        egress = transfer.egress
        self.forget(transfer)
        self._waiting.expel(transfer)
        self._settlement.leave_egress(transfer)
        transfer.egress = None
        self._settlement.settle(transfer, FAIL)
        if egress is not None:
            if egress.current is transfer:
                egress.current = None
            self.flowed(egress)

    def forget(self, transfer: Transfer) -> None:
        """Make a message wait no longer, if it does: it is rejected, or its sender is gone, or gave it up.

        The credit that it came on counts as used for nothing if the controller of its link has not heard of it.
        """
        link = transfer.ingress
        is_unknown = not transfer.is_brokered and (transfer.state == NEW or transfer.state == HOLDING)
        if is_unknown and link is not None and link.controller is not None:
            link.controller.used_for_nothing(link)
        self._waiting.give_up(transfer)
        controller = self.credit_manager.find(transfer.entry)
        if controller is not None:
            controller.drop(transfer)

    # Room

    def flowed(self, link: EgressLink) -> None:
        """Send what is committed to a link that may have credit or room, and let its controller deal with the rest."""
        self._egress.flowed(link)
        controller = link.controller
        if controller is not None:
            controller.flowed(link)
        elif pn_link_get_drain(link.handle) and link.is_idle() and pn_link_drained(link.handle):
            link.port.touch()  # what is left of its credit was asked for, and all that there was for it is written
