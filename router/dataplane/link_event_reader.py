"""Reading: events of a connection, and the bytes of deliveries, part by part, as far as they can be sent on.

`pump` works through events. Deliveries and flows of the data plane's links are handled, to the end, without an object
made per event; any other event is returned to the engine. Written for two speeds (docs/explanation/two-speeds.md):
ints, bytes and handles, no closures.

A link is read until it is paused (`backpressure.py`), or its sender breaks the rules (`sender_violations.py`).
"""

from __future__ import annotations

from typing import Final

import cython

from router.core.ids_and_conditions import Condition
from router.dataplane.backpressure import IngressBackpressure
from router.dataplane.credit_manager import CreditManager
from router.dataplane.data_plane import LinkEventHandler
from router.dataplane.internal_error_handlers import InternalErrorHandlers
from router.dataplane.links import (
    EgressCircuitLink,
    EgressLargeMessagesLink,
    EgressLink,
    IngressCircuitLink,
    IngressLink,
    Transfer,
    new_transfer,
)
from router.dataplane.message_forwarder import Forwarder
from router.dataplane.message_sender import AGE_BYTES, MessageSender
from router.dataplane.sender_violations import ViolatingLinks
from router.dataplane.settlement import RELEASE, Settlement
from router.dataplane.transfer_lifecycle import StageError
from router.dataplane.turn_clock import TurnClock
from router.dataplane.unfinished_deliveries import UnfinishedDeliveries
from router.dataplane.waiting_messages import WaitingMessages

if not cython.compiled:  # else they come by the .pxd
    from router.binding.proton_functions import (
        DELIVERY,
        LINK_FLOW,
        NULL,
        TRANSPORT,
        Handle,
        link_context,
        pn_collector_next,
        pn_delivery_aborted,
        pn_delivery_clear,
        pn_delivery_link,
        pn_delivery_partial,
        pn_delivery_pending,
        pn_delivery_settle,
        pn_delivery_settled,
        pn_delivery_updated,
        pn_event_delivery,
        pn_event_link,
        pn_event_type,
        pn_link_advance,
        pn_link_credit,
        pn_link_current,
        pn_link_queued,
        receive,
        tag_of_size,
    )
    from router.dataplane.transfer_stages import NEW


class LinkEventReader(LinkEventHandler):
    """Everything that happens on the links of connections: messages, parts of them, outcomes and flows."""

    def __init__(
        self,
        clock: TurnClock,
        settlement: Settlement,
        waiting: WaitingMessages,
        egress: MessageSender,
        forwarder: Forwarder,
        credit_manager: CreditManager,
        unfinished: UnfinishedDeliveries,
        faults: InternalErrorHandlers,
    ) -> None:
        self._clock = clock
        self._settlement = settlement
        self._waiting = waiting
        self._egress = egress
        self._forwarder = forwarder
        self._credit_manager = credit_manager
        self._unfinished = unfinished
        self.backpressure = IngressBackpressure(waiting, egress, unfinished)
        """Links that are not read for now."""
        self.violations = ViolatingLinks(settlement, forwarder, unfinished, faults)
        """Links whose senders broke their rules."""
        self._is_resuming = False
        self._is_ending = False
        self._faults = faults

    # Events

    def sent(self) -> int:
        """See `LinkEventHandler.sent`."""
        return self._egress.sent + self._credit_manager.copying.left

    def pump(self, collector: Handle) -> Handle:
        """Handle events until one that is not the data plane's own: that one, or NULL when there are no more."""
        self._clock.begin_input()
        while True:
            try:
                return self._pump(collector)
            except StageError as error:  # a fault of ours must end one message, and not the connection
                self._forwarder.end_faulty(error)

    def _pump(self, collector: Handle) -> Handle:
        while True:
            event: Handle = pn_collector_next(collector)
            if event == NULL:
                if self._settlement.freed:
                    self._credit_manager.freed()
                if self._waiting.relieved:
                    self.resume_relieved()
                if self.violations.links:
                    self.violations.close()
                return NULL
            kind = pn_event_type(event)
            if kind == DELIVERY:
                delivery = pn_event_delivery(event)
                link = link_context(pn_delivery_link(delivery))
                if link is None:
                    return event
                if isinstance(link, EgressLink):
                    self._disposed(link, delivery)
                else:
                    self._arrived(link, delivery)
            elif kind == LINK_FLOW:
                link = link_context(pn_event_link(event))
                if link is None:
                    return event
                if isinstance(link, EgressLink):
                    egress = link
                    credit = pn_link_credit(egress.handle) + pn_link_queued(egress.handle)
                    if credit < 0:
                        egress.port.withdraw(egress, -credit)
                    self._forwarder.flowed(egress)
                elif isinstance(link, IngressCircuitLink):
                    self._returned(link)
            elif kind != TRANSPORT:
                return event

    def _returned(self, link: IngressCircuitLink) -> None:
        controller = link.controller
        if controller is not None:
            controller.returned(link)

    def _disposed(self, link: EgressLink, delivery: Handle) -> None:
        was_busy = link.current is not None
        self._settlement.disposed(link, delivery)
        if isinstance(link, EgressCircuitLink):
            self._credit_manager.end_if_settled(link)
        if was_busy or link.waiting or isinstance(link, EgressLargeMessagesLink):
            self._forwarder.flowed(link)

    def _arrived(self, link: IngressLink, delivery: Handle) -> None:
        """Read what there is more of a delivery, unless its sender has settled it and wants no outcome."""
        if pn_delivery_updated(delivery):
            pn_delivery_clear(delivery)
            transfer = self._settlement.find(delivery)
            if transfer is not None and transfer.is_complete and pn_delivery_settled(delivery):
                # The sender does not wait for the outcome: there is nobody left to tell it.
                transfer.is_settled = True
                self._waiting.leave_source(transfer)
                self._settlement.leave_ingress(transfer)
                return
        if not link.is_paused:
            self.read(link)

    # Reading

    def resume_relieved(self) -> None:
        """Read again what was not read because of its backlog."""
        for link in self._waiting.take_relieved():
            if link.is_paused and not link.is_gone and link.current is None:
                self.resume_safely(link)

    def resume(self, link: IngressLink) -> None:
        """Read a paused link again, as far as this turn goes; `go_on` takes what is left."""
        if self.backpressure.postpone_if_turn_is_full(link):
            return
        was_resuming, self._is_resuming = self._is_resuming, True
        link.is_paused = False
        if link.progress is not None:
            link.progress.resume(self._clock.now)
        try:
            self.read(link)
        finally:
            self._is_resuming = was_resuming
        link.port.touch()  # its session has room again, which its peer must be told

    def resume_safely(self, link: IngressLink) -> None:
        """Read a paused link again; a fault neither ends another connection nor keeps other links from being read."""
        try:
            self.resume(link)
        except StageError as error:
            self._forwarder.end_faulty(error)
            self.backpressure.postpone(link, self._clock.now)  # there may be more to read behind it
        except Exception as error:  # a fault of ours must end one connection and not the router
            self._faults.of_port(link.port, error)

    def go_on(self) -> None:
        """Begin a turn: go on with the links of which there was more in the last one."""
        self.backpressure.begin_turn()
        if self.backpressure.unread:
            for link in self.backpressure.take_unread():
                if link.is_paused and not link.is_gone:
                    self.resume_safely(link)

    def end(self, link: IngressLink) -> None:
        """Read what a link that is gone has left: pre-settled messages of which all is there, whatever waits."""
        if link.progress is not None:
            self._unfinished.forget(link)
        self._is_ending = True
        try:
            while link.is_paused:
                delivery = pn_link_current(link.handle)
                if delivery == NULL or pn_delivery_partial(delivery) or not pn_delivery_settled(delivery):
                    break
                if link.most_bytes and pn_delivery_pending(delivery) > link.most_bytes:
                    break
                if not self._take(link, delivery):
                    break
        finally:
            self._is_ending = False
        self.backpressure.forget(link)

    def read(self, link: IngressLink) -> None:
        """Take everything that the link has, as far as it can be sent on."""
        while not link.is_paused:
            delivery = pn_link_current(link.handle)
            if delivery == NULL:
                return
            is_bounded = link.rate is not None and link.current is None
            if is_bounded and self.backpressure.pause_for_rate(link, self._clock.now):
                return
            if not (self._take_limited(link, delivery) if link.most_bytes else self._take(link, delivery)):
                return

    def resume_slowed(self, now: float) -> None:
        """Read the links again whose connections may send more by now.

        Args:
            now: seconds, monotonic.
        """
        while True:
            link = self.backpressure.take_slowed(now)
            if link is None:
                return
            if link.is_paused and not link.is_gone:
                self.resume_safely(link)

    def _take_limited(self, link: IngressLink, delivery: Handle) -> bool:
        """Read as `_take` does where messages have a largest size; mark a link to be closed when one is larger."""
        if link.current is None:
            link.current_bytes = 0
        pending = pn_delivery_pending(delivery)
        if link.current_bytes + pending > link.most_bytes and not pn_delivery_aborted(delivery):
            transfer = link.current if link.current is not None else self._begin(link, delivery)
            self.violations.add_too_large(link, transfer)
            return False
        has_moved_on = self._take(link, delivery)
        if not has_moved_on:
            link.current_bytes += pending - pn_delivery_pending(delivery)
        return has_moved_on

    def _take(self, link: IngressLink, delivery: Handle) -> bool:
        """Read what is there of the current delivery. Returns whether the link has moved on to the next."""
        transfer = link.current
        if transfer is None and pn_link_credit(link.handle) <= 0 and self.violations.is_beyond_credit(link):
            if not self._is_ending:
                self.violations.add_beyond_credit(link)
            return False
        if pn_delivery_aborted(delivery):
            self._aborted(link, delivery)
            return True
        pending = pn_delivery_pending(delivery)
        is_complete = not pn_delivery_partial(delivery)
        if transfer is None:
            if pending == 0:
                if is_complete:
                    self._swallow(link, delivery)
                elif link.progress is None:
                    self.backpressure.watch(link, 0, self._clock.now)
                return bool(is_complete)
            if link.port.is_over or self._waiting.is_backlogged(link):
                if not self._is_ending and self.backpressure.pause_before_message(link):
                    return False
                transfer = self._begin_above_mark(link, delivery)
            else:
                transfer = self._begin(link, delivery)
        elif self._pause_in_message(link, transfer) or (pending == 0 and not is_complete):
            return False
        while pending > PART_BYTES:  # the allocator keeps small parts for the next ones, and gives large ones back
            self._pass_on(link, transfer, receive(link.handle, PART_BYTES))
            self._count(link, PART_BYTES, pending)
            pending -= PART_BYTES
            if self._pause_in_message(link, transfer) or self._count_read(link, PART_BYTES):
                return False
        data = receive(link.handle, pending) if pending else b""
        if is_complete:
            self._complete(link, transfer, delivery)
        else:
            self._count(link, pending, pending)
        self._pass_on(link, transfer, data)
        self._count_read(link, pending)
        return bool(is_complete)

    def _pause_in_message(self, link: IngressLink, transfer: Transfer) -> bool:
        """Pause a link if no more of its message is read now, since what was read can't be sent on; whether it is."""
        return not self._is_ending and self.backpressure.pause_in_message(link, transfer, self._clock.now)

    def _count_read(self, link: IngressLink, count: int) -> bool:
        """Pause a link if its rest is for the next turn; what has just come from a socket has a bound of its own."""
        return self._is_resuming and self.backpressure.count_read(link, count, self._clock.now)

    def _pass_on(self, link: IngressLink, transfer: Transfer, data: bytes) -> None:
        """Hand on what was read of a message: to the controller of its link's address, if it has one.

        Where its properties are to be looked at, or it is to be handed back, the forwarder has it first.
        """
        controller, forwarder = link.controller, self._forwarder
        if link.sections is not None and not forwarder.follow_sections(transfer, data):
            return
        is_first = transfer.entry is None and transfer.state == NEW
        if controller is not None and is_first and link.sections is None and not forwarder.is_handing_back:
            controller.begin(link, transfer, data)
        else:
            forwarder.progress(transfer, data)

    def _count(self, link: IngressLink, received: int, unread: int) -> None:
        """Note bytes *received* of a message whose end has not come, of those *unread* that were there."""
        if link.progress is None:
            self.backpressure.watch(link, received, self._clock.now)
        else:
            link.progress.received += received
        if link.progress is not None:
            link.progress.found_unread(unread)

    def _begin(self, link: IngressLink, delivery: Handle) -> Transfer:
        transfer = new_transfer(link, delivery, self._clock.now)
        link.current = transfer
        if link.rate is not None:
            link.rate.take()
        if link.sections is not None:
            link.sections.begin()
        link.in_flight += 1
        link.counters.deliveries += 1
        self._settlement.keep(delivery, transfer)
        self._settlement.top_up(link)  # a transfer that crossed a lowering: never a link-credit below zero on the wire
        return transfer

    def _read_number(self, transfer: Transfer, delivery: Handle) -> None:
        """Take a multicast's number from its tag; behind it stands the age of one that is sent again."""
        transfer.tag = tag_of_size(delivery, TAG_BYTES)
        if transfer.tag is None:
            tag: bytes | None = tag_of_size(delivery, TAG_BYTES + AGE_BYTES)
            if tag is not None:
                transfer.tag, transfer.age_s = tag[:TAG_BYTES], int.from_bytes(tag[TAG_BYTES:], "big") / 1000

    def _complete(self, link: IngressLink, transfer: Transfer, delivery: Handle) -> None:
        transfer.is_complete = True
        link.current = None
        if pn_delivery_settled(delivery):
            if link.is_numbered:
                self._read_number(transfer, delivery)
            transfer.is_settled = True
            transfer.ingress_delivery = NULL
            self._settlement.forget(delivery)
            link.counters.presettled += 1
            pn_delivery_settle(delivery)  # advances the link too
        else:
            pn_link_advance(link.handle)
        if link.port.is_router:
            self._settlement.top_up(link)

    def _swallow(self, link: IngressLink, delivery: Handle) -> None:
        """End a transfer without a byte, which is no message, since that has a body (AMQP 1.0 part 3, 3.2).

        A settled one is forgotten: pyngus writes one for each message that expired while it waited.
        """
        if not pn_delivery_settled(delivery):
            transfer = self._begin(link, delivery)
            self._complete(link, transfer, delivery)
            self._forwarder.forget(transfer)
            # not RELEASED, as if another time it could arrive: its sender would try for ever
            self._settlement.reject(transfer, Condition.DECODE_ERROR, "a transfer without a byte is no message")
            return
        pn_delivery_settle(delivery)
        self._used_for_nothing(link)

    def _used_for_nothing(self, link: IngressLink) -> None:
        """Count a delivery that has ended before it had a `Transfer`, and give the link its credit back."""
        if link.rate is not None:
            link.rate.take()
        if link.controller is None:
            self._settlement.top_up(link)
        else:
            link.controller.used_for_nothing(link)

    def _begin_above_mark(self, link: IngressLink, delivery: Handle) -> Transfer:
        transfer = self._begin(link, delivery)
        if link.entry is None and not link.port.is_router:
            link.port.asking = transfer
        if link.port.is_router and link.port.is_stopped:
            self._forwarder.forget(transfer)
            self._settlement.settle(transfer, RELEASE)  # its bytes are thrown away as they come
        return transfer

    def _aborted(self, link: IngressLink, delivery: Handle) -> None:
        transfer = link.current
        link.current = None
        if transfer is not None:
            self._settlement.forget(delivery)
            self._settlement.lose_ingress(transfer)
        pn_delivery_settle(delivery)
        if transfer is not None:
            self._forwarder.drop_incomplete(transfer)
        else:
            self._used_for_nothing(link)
        link.port.touch()


PART_BYTES: Final = 65536
"""Maximum number of bytes of a message that are read at a time."""
TAG_BYTES: Final = 16
"""Size of the tag of a multicast that has a number, bytes; other tags are shorter."""
