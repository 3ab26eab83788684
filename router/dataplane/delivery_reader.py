"""Reading: events of a connection, and the bytes of deliveries, part by part, as far as they can be sent on.

`pump` works through events. Deliveries and flows of the data plane's links are handled, to the end, without an object
made per event; any other event is returned to the engine. Written for two speeds (docs/explanation/two-speeds.md):
ints, bytes and handles, no closures.

A link is read as long as its messages can go on, be held or wait within their bounds. When they cannot it is paused:
its bytes stay in the session, whose window closes, until there is room again. By then these may be megabytes, of which
a turn takes a part: others are to have theirs.
"""

from __future__ import annotations

import math
from typing import Final

import cython

from router.core.errors import RemoteProtocolError
from router.core.ids_and_conditions import Condition
from router.dataplane.credit_manager import CreditManager
from router.dataplane.data_plane_interface import LinkEventHandler
from router.dataplane.internal_errors import InternalErrorCallbacks
from router.dataplane.links import (
    EgressCircuitLink,
    EgressLargeMessageLink,
    EgressLink,
    IngressCircuitLink,
    IngressLink,
    SubscriberLink,
    Transfer,
    new_transfer,
)
from router.dataplane.message_forwarder import Forwarder
from router.dataplane.message_sender import AGE_BYTES, MessageSender
from router.dataplane.settlement import REFUSED, RELEASE, Settlement
from router.dataplane.stalled_senders import StalledSenders
from router.dataplane.transfer_lifecycle import StageError
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
    from router.dataplane.transfer_stages import DONE, NEW, STREAM_BUFFER_BYTES, STREAMING, WAITING


class Reader(LinkEventHandler):
    """Everything that happens on the links of connections: messages, parts of them, outcomes and flows."""

    def __init__(
        self,
        settlement: Settlement,
        waiting: WaitingMessages,
        egress: MessageSender,
        forwarder: Forwarder,
        credit_manager: CreditManager,
        unfinished: StalledSenders,
        faults: InternalErrorCallbacks,
    ) -> None:
        self._settlement = settlement
        self._waiting = waiting
        self._egress = egress
        self._forwarder = forwarder
        self._credit_manager = credit_manager
        self._unfinished = unfinished
        self.unread: dict[IngressLink, None] = {}
        """Paused links that are to be read again in the next turn, in their order."""
        self.violations: dict[IngressLink, RemoteProtocolError] = {}
        """Links to be closed, and why: a message larger than they were told, or beyond their credit."""
        self.slowed: dict[IngressLink, float] = {}
        """Links that are paused since their connection sends faster than it may, each with the time until then,"""
        self.slowed_due = math.inf
        """and the first of these, seconds."""
        self._alone: dict[Handle, dict[IngressLink, None]] = {}
        """Paused links by session, of whose messages no more is read since no other of the session is unfinished."""
        self._left = TURN_BYTES
        """Rest of what may be read of such links in this turn, bytes."""
        self._is_resuming = False
        self._is_ending = False
        self._faults = faults

    # Events

    def sent(self) -> int:
        """See `LinkEventHandler.sent`."""
        return self._egress.sent + self._credit_manager.copying.left

    def pump(self, collector: Handle) -> Handle:
        """Handle events until one that is not the data plane's own: that one, or NULL when there are no more."""
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
                if self.violations:
                    self.close_violating()
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
                    credit = pn_link_credit(link.handle) + pn_link_queued(link.handle)
                    if credit < 0:
                        link.port.withdraw(link, -credit)
                    self._forwarder.flowed(link)
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
        if was_busy or link.waiting or isinstance(link, EgressLargeMessageLink):
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
        relieved, self._waiting.relieved = self._waiting.relieved, []
        for link in relieved:
            if link.is_paused and not link.is_gone and link.current is None:
                self.resume_safely(link)

    def resume(self, link: IngressLink) -> None:
        """Read a paused link again, as far as this turn goes; `go_on` takes what is left."""
        if self._left <= 0:
            self.unread[link] = None
        if link in self.unread:
            return
        was_resuming, self._is_resuming = self._is_resuming, True
        link.is_paused = False
        if link.progress is not None:
            link.progress.resume(self._forwarder.now)
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
            self.unread[link] = None  # there may be more to read behind it
            self._pause(link)
        except Exception as error:  # a fault of ours must end one connection and not the router
            self._faults.of_port(link.port, error)

    def go_on(self) -> None:
        """Begin a turn: go on with the links of which there was more in the last one."""
        self._left = TURN_BYTES
        if self.unread:
            unread, self.unread = self.unread, {}
            for link in unread:
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
                if link.rate is not None and link.current is None:
                    link.rate.take()  # not waited for, but owed
                if not self._take(link, delivery):
                    break
        finally:
            self._is_ending = False
        self.slowed.pop(link, None)
        self.unread.pop(link, None)
        self._forget_alone(link)

    def _forget_alone(self, link: IngressLink) -> None:
        """Take a link that is gone out of those that are paused."""
        alone = self._alone.get(link.session)
        if alone is not None:
            alone.pop(link, None)
            if not alone:
                del self._alone[link.session]

    def _has_read_enough(self, link: IngressLink, count: int) -> bool:
        """Whether the rest of a link is for the next turn."""
        if not self._is_resuming:
            return False  # what has just come from a socket is a piece, and that has a bound
        self._left -= count
        if self._left > 0:
            return False
        self._pause(link)
        self.unread[link] = None
        return True

    def _pause(self, link: IngressLink) -> None:
        """Stop reading a link in the middle of a message."""
        link.is_paused = True
        if link.progress is not None:
            link.progress.pause(self._forwarder.now)

    def read(self, link: IngressLink) -> None:
        """Take everything that the link has, as far as it can be sent on."""
        while not link.is_paused:
            delivery = pn_link_current(link.handle)
            if delivery == NULL:
                return
            if link.rate is not None and link.current is None and not self._may_begin(link):
                return
            if not (self._take_limited(link, delivery) if link.most_bytes else self._take(link, delivery)):
                return

    def _may_begin(self, link: IngressLink) -> bool:
        """Count a message against the rate of its connection; when that is used up, read on when it is not."""
        assert link.rate is not None
        now = self._forwarder.now
        wait_s = link.rate.wait(now)
        if wait_s == 0:
            link.rate.take()
            return True
        self._pause(link)
        self.slowed[link] = now + wait_s
        self.slowed_due = min(self.slowed_due, now + wait_s)
        return False

    def resume_slowed(self, now: float) -> None:
        """Read the links again whose connections may send more by now.

        Args:
            now: seconds, monotonic.
        """
        due = [link for link, at in self.slowed.items() if at <= now]
        for link in due:
            del self.slowed[link]
        self.slowed_due = min(self.slowed.values(), default=math.inf)
        for link in due:
            if link.is_paused and not link.is_gone:
                self.resume_safely(link)

    def _take_limited(self, link: IngressLink, delivery: Handle) -> bool:
        """Read as `_take` does where messages have a largest size; mark a link to be closed when one is larger."""
        if link.current is None:
            link.current_bytes = 0
        pending = pn_delivery_pending(delivery)
        if link.current_bytes + pending > link.most_bytes and not pn_delivery_aborted(delivery):
            self._refuse(link, delivery)
            return False
        has_moved_on = self._take(link, delivery)
        if not has_moved_on:
            link.current_bytes += pending - pn_delivery_pending(delivery)
        return has_moved_on

    def _refuse(self, link: IngressLink, delivery: Handle) -> None:
        transfer = link.current if link.current is not None else self._begin(link, delivery)
        if transfer.state != DONE:
            if pn_delivery_settled(delivery):
                self._settlement.count_dropped(transfer, REFUSED)
            else:
                self._settlement.tell_rejected(
                    transfer, Condition.MESSAGE_SIZE_EXCEEDED, f"larger than {link.most_bytes} bytes"
                )
        self._close_later(
            link,
            RemoteProtocolError(
                f"a message is larger than the {link.most_bytes} bytes that were announced",
                condition=Condition.MESSAGE_SIZE_EXCEEDED,
            ),
        )

    def _is_beyond_limit(self, link: IngressLink) -> bool:
        """Whether the next transfer, for which there is no credit, breaks the rules: then its link is closed.

        It does not when credit of the link was ever taken back, since it may be within an earlier limit. Nor is it
        known then by how much: a proton that hears of less credit than it has used takes that for four billion.
        """
        # DEV-35: qdrouterd takes it, and lets others wait behind it.
        if link.was_lowered:
            return False
        if not self._is_ending:
            self._close_later(
                link,
                RemoteProtocolError(
                    "a transfer beyond the credit of the link", condition=Condition.TRANSFER_LIMIT_EXCEEDED
                ),
            )
        return True

    def _close_later(self, link: IngressLink, error: RemoteProtocolError) -> None:
        """Read no more of a link, and close it once the events at hand are worked through."""
        link.is_paused = True
        self.violations[link] = error

    def close_violating(self) -> None:
        """Close the links of senders that broke their rules; others of their connections go on."""
        violations, self.violations = self.violations, {}
        for link, error in violations.items():
            if not link.is_gone:
                link.is_paused = False  # there is nothing more to be read of it
                link.port.close_link(link, error)

    def give_up_stalled(self, now: float) -> None:
        """Give up the messages whose senders do not go on with them, though they could.

        Args:
            now: seconds, monotonic.
        """
        for link in self._unfinished.stalled(now):
            try:
                self._give_up(link)
            except Exception as error:  # a fault of ours must not keep the others from being given up
                self._faults.of_port(link.port, error)

    def _give_up(self, link: IngressLink) -> None:
        """Abort what was sent of its message, and reject it; a client's link is closed too, a neighbor's is shared."""
        # DEV-34: a qdrouterd waits for the rest for ever.
        unfinished = self._unfinished
        error = RemoteProtocolError(
            f"fewer than {unfinished.least_bytes} bytes of an unfinished message came in"
            f" {unfinished.window_of(link):g} s",
            condition=Condition.RESOURCE_LIMIT_EXCEEDED,
        )
        transfer = link.current
        unfinished.forget(link)
        if transfer is not None:
            if pn_delivery_settled(transfer.ingress_delivery):
                self._settlement.count_dropped(transfer, REFUSED)
            else:
                self._settlement.tell_rejected(transfer, error.condition, str(error))
        if not link.port.is_router:
            link.port.close_link(link, error)
        elif transfer is not None:
            self._forwarder.abandon(transfer)

    def _take(self, link: IngressLink, delivery: Handle) -> bool:
        """Read what is there of the current delivery. Returns whether the link has moved on to the next."""
        transfer = link.current
        if transfer is None and pn_link_credit(link.handle) <= 0 and self._is_beyond_limit(link):
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
                    self._watch(link, 0)
                return bool(is_complete)
            if link.port.is_over or self._waiting.is_backlogged(link):
                if not self._is_ending and self._must_stop(link):
                    return False
                transfer = self._begin_above_mark(link, delivery)
            else:
                transfer = self._begin(link, delivery)
        elif self._must_pause(link, transfer) or (pending == 0 and not is_complete):
            return False
        while pending > PART_BYTES:  # the allocator keeps small parts for the next ones, and gives large ones back
            self._pass_on(link, transfer, receive(link.handle, PART_BYTES))
            self._count(link, PART_BYTES, pending)
            pending -= PART_BYTES
            if self._must_pause(link, transfer) or self._has_read_enough(link, PART_BYTES):
                return False
        data = receive(link.handle, pending) if pending else b""
        if is_complete:
            self._complete(link, transfer, delivery)
        else:
            self._count(link, pending, pending)
        self._pass_on(link, transfer, data)
        self._has_read_enough(link, pending)
        return bool(is_complete)

    def _pass_on(self, link: IngressLink, transfer: Transfer, data: bytes) -> None:
        """Hand on what was read of a message: to the controller of its link's address, if it has one.

        Where its `user-id` is to be looked at, or it is to be handed back, the forwarder has it first.
        """
        controller, forwarder = link.controller, self._forwarder
        if link.sections is not None and not forwarder.follow_sections(transfer, data):
            return
        is_first = transfer.entry is None and transfer.state == NEW
        if controller is not None and is_first and link.user_id is None and not forwarder.is_handing_back:
            controller.begin(link, transfer, data)
        else:
            forwarder.progress(transfer, data)

    def _count(self, link: IngressLink, received: int, unread: int) -> None:
        """Note bytes *received* of a message whose end has not come, of those *unread* that were there."""
        if link.progress is None:
            self._watch(link, received)
        else:
            link.progress.received += received
        if link.progress is not None:
            link.progress.found_unread(unread)

    def _watch(self, link: IngressLink, received: int) -> None:
        """Watch a message whose end has not come. Siblings must not keep its sender from going on."""
        self._unfinished.watch(link, received, self._forwarder.now)
        if self._alone:
            self.unread.update(self._alone.pop(link.session, {}))

    def _begin(self, link: IngressLink, delivery: Handle) -> Transfer:
        transfer = new_transfer(link, delivery, self._forwarder.now)
        link.current = transfer
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
        """Settle a transfer without a byte: pyngus writes one for each message that expired while it waited."""
        if not pn_delivery_settled(delivery):
            transfer = self._begin(link, delivery)
            self._complete(link, transfer, delivery)
            if link.controller is not None:
                link.controller.used_for_nothing(link)
            self._settlement.settle(transfer, RELEASE)
            return
        pn_delivery_settle(delivery)
        if link.controller is None:
            self._settlement.top_up(link)
        else:
            link.controller.used_for_nothing(link)

    def _must_pause(self, link: IngressLink, transfer: Transfer) -> bool:
        """Whether no more of it should be read now, since what was read cannot be sent on."""
        if self._is_ending:
            return False
        egress = transfer.egress
        if transfer.state == STREAMING and egress is not None and self._egress.is_full(egress):
            self._pause(link)
            egress.port.paused.append(link)
            return True
        if transfer.state != WAITING:
            return False
        is_over = link.port.is_over
        if transfer.size > STREAM_BUFFER_BYTES and self._is_large(transfer):
            # What it waits for may be the end of a message on another link of its session, whose window has to be open.
            if is_over or not self._unfinished.has_sibling(link):
                self._pause(link)  # until it is sent or settled (`Settlement.resume`), or such a message begins
                self._alone.setdefault(link.session, {})[link] = None
                return True
        elif is_over:
            self._pause(link)  # until it is sent, or that is over
            link.port.stopped[link] = None
            return True
        return False

    def _must_stop(self, link: IngressLink) -> bool:
        """Whether no message of a link is to be begun: too much of it waits, or its connection is above its mark."""
        port = link.port
        if port.is_router and port.is_stopped:
            return False  # it is read, and released
        if self._waiting.is_backlogged(link):
            link.is_paused = True  # until enough has left (`WaitingMessages.relieved`)
            return True
        if link.entry is not None and link.entry.service is not None:
            return False  # whoever asks the router what is wrong gets an answer
        asking = port.asking
        if link.entry is None and not port.is_router and (asking is None or asking.state == DONE):
            return False  # it may be such a question: one message of the connection at a time is looked at
        link.is_paused = True
        port.stopped[link] = None  # until that is over (`RouterDataPlane.release`)
        return True

    def _begin_above_mark(self, link: IngressLink, delivery: Handle) -> Transfer:
        transfer = self._begin(link, delivery)
        if link.entry is None:
            link.port.asking = transfer
        if link.port.is_router and link.port.is_stopped:
            if link.controller is not None:
                link.controller.used_for_nothing(link)
            self._settlement.settle(transfer, RELEASE)  # its bytes are thrown away as they come
        return transfer

    def _is_large(self, transfer: Transfer) -> bool:
        egress, source = transfer.egress, transfer.ingress
        is_to_router = egress is not None and not isinstance(egress, SubscriberLink)
        return transfer.may_stream or is_to_router or isinstance(source, IngressCircuitLink)

    def _aborted(self, link: IngressLink, delivery: Handle) -> None:
        transfer = link.current
        link.current = None
        if transfer is not None:
            self._settlement.forget(delivery)
            transfer.ingress_delivery = NULL
        pn_delivery_settle(delivery)
        if transfer is not None:
            self._forwarder.drop_incomplete(transfer)
        elif link.controller is not None:
            link.controller.used_for_nothing(link)
        link.port.touch()


PART_BYTES: Final = 65536
"""Most of a message that is read at a time."""
TAG_BYTES: Final = 16
"""Of the tag of a multicast that has a number; others have less."""
TURN_BYTES: Final = 4 * PART_BYTES
"""Read in one turn of all links that were paused."""
