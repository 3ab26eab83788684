"""Sending: a message goes out on one link, as a whole or part by part, as soon as that link can take it.

A link that cannot take a message keeps it in its own queue; messages of an address for which no subscriber has credit
wait at the address (`waiting_messages.py`). What leaves for a neighbor gets router annotations, what leaves for a
client loses them; everything else crosses byte for byte.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from math import inf
from typing import Final

import cython

from router.core.ids_and_conditions import Condition, RouterId
from router.dataplane.annotation_writer import annotate, strip
from router.dataplane.connection_port import Port
from router.dataplane.links import (
    EgressDatagramLink,
    EgressLargeMessagesLink,
    EgressLink,
    IngressLink,
    PublisherLink,
    SubscriberLink,
    Transfer,
    keep_unwritten,
    new_transfer,
)
from router.dataplane.settlement import FAIL, RELEASE, TOO_LARGE, Settlement
from router.dataplane.slow_streams import SlowStreams
from router.dataplane.transfer_lifecycle import advance
from router.dataplane.waiting_messages import WaitingMessages

if not cython.compiled:  # else they come by the .pxd
    from router.binding.proton_functions import (
        ACCEPTED,
        NULL,
        Handle,
        new_delivery,
        new_tagged_delivery,
        pn_delivery_abort,
        pn_delivery_buffered,
        pn_delivery_pending,
        pn_delivery_settle,
        pn_link_advance,
        pn_link_queued,
        pn_link_send,
        pn_unsettled_head,
        pn_unsettled_next,
        send_part,
    )
    from router.dataplane.transfer_stages import BEGUN, DONE, PIECE_BYTES, SENT, STREAM_BUFFER_BYTES, STREAMING, WRITTEN

LOW_WATER_BYTES = STREAM_BUFFER_BYTES // 2
"""Number of unwritten bytes of a session up to which its paused source is read again."""


AGE_BYTES: Final = 4
"""Size of the age of a multicast that is sent again, bytes: milliseconds, behind its number."""
MOST_AGE_MS: Final = 0xFFFF_FFFF


class MessageSender:
    """Everything that is written to a link as a message.

    Args:
        spared: told of a link on which a message was not sent though its credit had been counted on.
    """

    def __init__(
        self,
        me: RouterId,
        settlement: Settlement,
        waiting: WaitingMessages,
        streams: SlowStreams,
        spared: Callable[[EgressLink], None],
    ) -> None:
        self.spared = spared
        self._me = me
        self._settlement = settlement
        self._waiting = waiting
        self._streams = streams
        self.sent = 0
        """Number of messages and copies that were begun since the start, which numbers their deliveries."""

    # One message

    def send(self, transfer: Transfer, link: EgressLink) -> None:
        """Begin, and if it is small and there as a whole end, the message on a link that can take it.

        A large one is written piece by piece, as the connection takes it, and one that is not complete as it comes:
        the link is occupied until its last piece was written.
        """
        data = self._leading(transfer, link)
        parts = transfer.parts
        is_small = transfer.is_complete and parts is None and len(data) <= PIECE_BYTES
        rest = transfer.size - len(transfer.data)
        if link.most_bytes:
            link.current_bytes = len(data) + rest
            if link.current_bytes > link.most_bytes:
                self._refuse(transfer, link)
                return
        if transfer.held_for is not None:
            self._settlement.unhold(transfer)
        if not (transfer.is_complete and transfer.ingress_delivery) or isinstance(link, SubscriberLink):
            transfer.clear()  # else it is kept until the kernel has it
        delivery = self._new_delivery(link) if transfer.tag is None else self._new_numbered(transfer, link)
        self._count(transfer, link)
        transfer.egress = link
        transfer.egress_delivery = delivery
        if is_small:
            pn_link_send(link.handle, data, len(data))
            transfer.given_bytes = len(data)
            link.port.unwritten_bytes += len(data)
            self._sent(transfer, link, delivery)
            link.port.touch()
        else:
            advance(transfer, BEGUN)
            transfer.leaving = deque((data, *parts) if parts is not None else (data,))
            transfer.leaving_at = transfer.given_bytes = 0
            transfer.leaving_bytes = len(data) + rest
            link.port.leaving_bytes += transfer.leaving_bytes
            link.current = transfer
            if not transfer.is_complete:
                self._streams.begin(transfer, link)
            self._settlement.keep(delivery, transfer)
            self._write_piece(transfer, link)
            self._settlement.resume(transfer)

    def _refuse(self, transfer: Transfer, link: EgressLink) -> None:
        """Reject a message that is larger than the link's receiver takes."""
        what = f"larger than the {link.most_bytes} bytes that a receiver of {link.address} takes"
        if transfer.state == STREAMING:
            self._settlement.leave_egress(transfer)
        self._settlement.reject(transfer, Condition.MESSAGE_SIZE_EXCEEDED, what)
        self.spared(link)

    def _write_piece(self, transfer: Transfer, link: EgressLink) -> None:
        """Give the engine the next piece of the link's current message if it has written the one before.

        It goes on when that is written (`flowed`). With the last piece the message is sent.
        """
        leaving = transfer.leaving
        if transfer.leaving_bytes:
            assert leaving is not None
            if pn_delivery_pending(transfer.egress_delivery) or link.is_full():
                link.port.block(link, link.session)
                return
            room = PIECE_BYTES
            while room and leaving:
                first = leaving[0]
                at = transfer.leaving_at
                count = min(len(first) - at, room)
                send_part(link.handle, first, at, count)
                room -= count
                at += count
                if at == len(first):
                    leaving.popleft()
                    at = 0
                transfer.leaving_at = at
            transfer.leaving_bytes -= PIECE_BYTES - room
            transfer.given_bytes += PIECE_BYTES - room
            link.port.leaving_bytes -= PIECE_BYTES - room
            link.port.unwritten_bytes += PIECE_BYTES - room
            link.port.touch()
        if transfer.leaving_bytes:
            link.port.block(link, link.session)
        elif transfer.is_complete:
            link.current = None
            transfer.leaving = None
            self._sent(transfer, link, transfer.egress_delivery)
            link.port.touch()

    def send_copy(self, data: bytes, transfer: Transfer, link: EgressLink) -> None:
        """Send one pre-settled copy of a multicast, already with the right annotations.

        In its turn where a large one is being written: whoever has counted on the link's credit can't know of that. One
        that is larger than the receiver takes is counted as missed.
        """
        if link.most_bytes and len(data) > link.most_bytes:
            link.counters.dropped += 1
            self._settlement.dropped[TOO_LARGE] += 1
            if transfer.entry is not None:
                transfer.entry.dropped += 1
            self.spared(link)
            return
        if link.current is not None or link.waiting:
            # There is no more of it than there was: a copy for each message that was here and had its credit.
            self._waiting.enter(self._new_copy(data, transfer), link, is_bounded=False)
            return
        if len(data) > PIECE_BYTES:
            self.send(self._new_copy(data, transfer), link)
            return
        delivery = self._new_numbered(transfer, link)
        pn_link_send(link.handle, data, len(data))
        link.port.unwritten_bytes += len(data)
        self._count(transfer, link)
        self._advance(link)
        pn_delivery_settle(delivery)
        link.note_settled(len(data))
        link.counters.presettled += 1
        link.port.touch()

    def stream(self, transfer: Transfer, data: bytes) -> None:
        """Send one more part of a message that `send` began; the last one when the transfer is complete."""
        link = transfer.egress
        assert link is not None
        assert transfer.leaving is not None
        if data:
            self._streams.receive(link, len(data))
            transfer.leaving.append(data)
            transfer.leaving_bytes += len(data)
            link.port.leaving_bytes += len(data)
        if link.most_bytes:
            link.current_bytes += len(data)
            if link.current_bytes > link.most_bytes:
                self._refuse(transfer, link)
                return
        self._write_piece(transfer, link)
        if link.current is None:
            self.flowed(link)

    def is_full(self, link: EgressLink) -> bool:
        """Whether the source of its current message should not be read for now."""
        current = link.current
        return link.is_full() or (current is not None and current.leaving_bytes > PIECE_BYTES)

    def has_drained(self, link: EgressLink) -> bool:
        """Whether more may be written on it."""
        return link.unwritten_bytes() <= LOW_WATER_BYTES and link.port.unwritten_bytes <= LOW_WATER_BYTES

    def leading_for(
        self, transfer: Transfer, data: bytes, *, to_router: bool, trace: tuple[RouterId, ...] = ()
    ) -> bytes:
        """The message as it leaves, with the annotations of a neighbor's link or of a client's.

        Args:
            trace: for a neighbor; empty for the routers that it has passed, and this one.
        """
        found = transfer.scan
        if to_router:
            assert found is not None
            ingress = RouterId(found.ingress) if found.ingress is not None else self._me
            head = annotate(
                data,
                found,
                to=transfer.to,
                ingress=ingress,
                trace=trace or (*found.trace, self._me),
                phase=found.phase,
                egress=found.egress,
            )
        elif found is not None and found.has_router_annotations:
            head = strip(data, found)
        else:
            return data
        return head + data[found.rest_offset :]

    def _leading(self, transfer: Transfer, link: EgressLink) -> bytes:
        """The first of its parts, as it leaves."""
        data = transfer.data
        if transfer.is_ready:
            return data
        # DEV-31: what leaves on a circuit leaves as it came.
        return self.leading_for(transfer, data, to_router=isinstance(link, EgressDatagramLink))

    def _new_delivery(self, link: EgressLink) -> Handle:
        self.sent += 1
        return new_delivery(link.handle, self.sent)

    def _new_numbered(self, transfer: Transfer, link: EgressLink) -> Handle:
        """Open a delivery of a multicast, with its number where the neighbor takes it."""
        if transfer.tag is None or not link.port.takes_numbers:
            return self._new_delivery(link)
        self.sent += 1
        tag = transfer.tag
        if transfer.age_s > 0:
            tag += min(1 + int(1000 * transfer.age_s), MOST_AGE_MS).to_bytes(AGE_BYTES, "big")
        return new_tagged_delivery(link.handle, tag)

    def _advance(self, link: EgressLink) -> None:
        """End the link's delivery, which is written and has used a credit."""
        pn_link_advance(link.handle)
        if isinstance(link, SubscriberLink):
            subscriber = link
            subscriber.unspent -= 1

    def _count(self, transfer: Transfer, link: EgressLink) -> None:
        link.counters.deliveries += 1
        entry = transfer.entry
        if entry is not None:
            if isinstance(link, SubscriberLink):
                entry.egress += 1
            elif transfer.ingress is not None and transfer.ingress.port.is_router:
                entry.transit += 1

    def _sent(self, transfer: Transfer, link: EgressLink, delivery: Handle) -> None:
        """Settle a message whose last byte is with the engine, or wait for the subscriber's outcome."""
        self._advance(link)
        settlement = self._settlement
        if not transfer.ingress_delivery or link.is_presettled:
            link.counters.presettled += 1
            settlement.forget(delivery)
            transfer.clear()
            transfer.egress = None
            transfer.egress_delivery = NULL
            link.note_settled(pn_delivery_pending(delivery))
            pn_delivery_settle(delivery)
            settlement.settle(transfer, ACCEPTED)
            return
        advance(transfer, WRITTEN)
        if transfer.size:
            keep_unwritten(link.port, transfer)
        link.outstanding += 1
        if link.load is not None:
            link.load.sent()
        settlement.keep(delivery, transfer)

    # A link's own queue

    def commit(self, transfer: Transfer, link: EgressLink) -> None:
        """Send on this link and no other: at once if it can, in its turn otherwise."""
        if link.has_credit():
            self.send(transfer, link)
        else:
            source = transfer.ingress
            # A publisher's own has waited here before: there is no more of it than there was.
            is_own = transfer.is_brokered and isinstance(source, PublisherLink) and source.controller is not None
            self._waiting.enter(transfer, link, is_bounded=not is_own)

    def commit_in_order(self, transfer: Transfer, link: EgressDatagramLink) -> None:
        """Send to a neighbor: on a data link, or where that would hold up others, on a streaming link.

        A message whose end is not there yet goes on a link that holds up nothing else, and whatever its sender sends
        later follows it there: on two links the one could be read before the other.
        """
        stream = self._stream_of(transfer, link.port)
        if stream is not None:
            self.commit(transfer, stream)
        elif not self._needs_stream(transfer, link):
            self.commit(transfer, link)
        elif not link.is_idle():
            self._waiting.enter(transfer, link)  # in its turn it gets a streaming link: see `flowed`
        else:
            self.commit(transfer, self._bind_stream(transfer, link.port) or link)

    def _stream_of(self, transfer: Transfer, port: Port) -> EgressLargeMessagesLink | None:
        """The streaming link that its sender's messages go on since one of them was large."""
        source = transfer.ingress
        stream = source.streams.get(port.id) if source is not None else None
        return stream if stream is not None and not stream.is_gone else None

    def _bind_stream(self, transfer: Transfer, port: Port) -> EgressLargeMessagesLink | None:
        """A streaming link for a sender: one that no other has, a new one, or the one that the fewest have.

        Returns: None when there is no session for any.
        """
        assert port.open_stream is not None
        link = min(port.streams, key=lambda stream: (stream.bound, len(stream.waiting)), default=None)
        if link is None or (link.bound and len(port.streams) < MAX_STREAMS):
            new = port.open_stream()
            if new is not None:
                port.streams.append(new)
                link = new
        source = transfer.ingress
        if source is not None and link is not None:
            # connections that are gone have numbers that never come again
            source.streams = {number: stream for number, stream in source.streams.items() if not stream.is_gone}
            source.streams[port.id] = link
            link.bound += 1
        return link

    def unbind(self, source: IngressLink) -> None:
        """Free the streaming links of a sender that is gone for others."""
        for stream in source.streams.values():
            stream.bound -= 1

    def copy(self, data: bytes, transfer: Transfer, link: EgressLink) -> None:
        """Send a copy of a multicast, or keep it until the link can take it."""
        if link.has_credit():
            self.send_copy(data, transfer, link)
        else:
            self.commit_copy(data, transfer, link)

    def commit_copy(self, data: bytes, transfer: Transfer, link: EgressLink) -> None:
        """Keep a copy of a multicast for a link that cannot take it now."""
        self._waiting.enter(self._new_copy(data, transfer), link)

    def _new_copy(self, data: bytes, transfer: Transfer) -> Transfer:
        copy = new_transfer(None, NULL, transfer.arrived)
        copy.is_complete = copy.is_settled = copy.is_ready = True
        copy.append(data)
        copy.entry = transfer.entry
        copy.scan = transfer.scan
        copy.tag, copy.age_s = transfer.tag, transfer.age_s
        return copy

    def flowed(self, link: EgressLink) -> None:
        """Go on with a link's current message, then send what is committed to it: it may be able to take more."""
        current = link.current
        if current is not None and current.leaving_bytes:
            self._write_piece(current, link)
        while link.waiting and link.can_send():
            transfer = self._waiting.oldest(link)
            assert transfer is not None
            stream = None
            if self._needs_stream(transfer, link):
                if pn_link_queued(link.handle):
                    return  # it must not overtake these; the event that they are written brings us here again
                stream = self._bind_stream(transfer, link.port)
            self._waiting.take(link)
            if stream is not None:
                self.commit(transfer, stream)
            else:
                self.send(transfer, link)

    def _needs_stream(self, transfer: Transfer, link: EgressLink) -> bool:
        """Whether a message would hold up a data link until its end comes, and there may be a streaming link for it."""
        if transfer.is_complete or link.port.open_stream is None:
            return False
        return isinstance(link, EgressDatagramLink) and not isinstance(link, EgressLargeMessagesLink)

    def lost(self, link: EgressLink) -> None:
        """Give every message on a link that is gone its outcome.

        Source: docs/explanation/walk-of-a-message.md#when-it-cant-arrive.
        """
        port = link.port
        port.unblock(link)
        if isinstance(link, EgressLargeMessagesLink):
            port.streams.remove(link)
        self.lose(link, sys.maxsize)
        link.lose_settled()
        link.current = None
        if link.load is not None:
            link.load.unsettled -= link.outstanding
            link.load = None
        link.outstanding = 0
        link.is_gone = True

    def lose(self, link: EgressLink, most: int) -> int:
        """Give messages of a link that is about to go their outcomes, at most so many.

        What was not written as a whole goes another way if it can; else it is RELEASED if none of its bytes was
        written, and MODIFIED with delivery-failed if somebody may have seen some.

        Returns: how many.
        """
        settlement = self._settlement
        port = link.port
        count = 0
        while count < most and (transfer := self._waiting.take(link)) is not None:
            count += 1
            if transfer.is_ready:
                settlement.settle(transfer, RELEASE)  # a copy
            else:
                settlement.strand(transfer)
        delivery = pn_unsettled_head(link.handle)
        while delivery and count < most:
            following = pn_unsettled_next(delivery)
            lost = settlement.forget(delivery)
            if lost is not None and lost.egress is link:
                count += 1
                is_buffered = bool(pn_delivery_buffered(delivery))
                was_seen = lost.given_bytes > pn_delivery_pending(delivery)
                # Whoever reads has aborted what has not come as a whole.
                can_go_again = bool(lost.size) and (lost.is_complete if lost.state == STREAMING else is_buffered)
                if lost.state == STREAMING or is_buffered:
                    # Else proton ends one that streams, and a peer still reading takes the half for whole; and the
                    # bytes of one that is not written count as unwritten for ever.
                    port.lose_unwritten(pn_delivery_pending(delivery))
                    pn_delivery_abort(delivery)
                    link.has_aborted = link.has_aborted or lost.state != STREAMING
                if lost.state == SENT:
                    link.outstanding -= 1
                    if link.load is not None:
                        link.load.unsettled -= 1
                lost.egress = None
                lost.egress_delivery = NULL
                lost.leaving = None
                port.leaving_bytes -= lost.leaving_bytes
                lost.leaving_bytes = 0
                if lost.state != DONE and can_go_again:
                    lost.waits_until = inf  # it has left since it waited, if it did
                    settlement.strand(lost)
                elif lost.state != DONE:
                    settlement.settle(lost, FAIL if was_seen else RELEASE)
            delivery = following
        return count


MAX_STREAMS = 64
"""Maximum number of streaming links to one neighbor; further senders of large messages share them."""
