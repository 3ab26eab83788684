"""Outcomes on their way back: from the delivery that left to the delivery that came in, exactly one for each.

Every unsettled delivery of this router has its `Transfer` as context, from its first frame until this router settles
it. All settling goes through here, so no handle is used after it is gone.

Source: AMQP 1.0 part 2, 2.6.12; part 3, 3.4; docs/explanation/walk-of-a-message.md#when-it-cant-arrive.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Final

import cython

from router.binding import proton_data
from router.core.addressing.address import AddressKind
from router.core.errors import PeerProtocolError
from router.core.forwarding.doubling_window import grown, is_used, shrunk
from router.core.forwarding.duration_histogram import DurationHistogram
from router.core.forwarding.fib import AddressEntry
from router.core.forwarding.fixed_publisher_link_window import change as change_of
from router.core.ids_and_conditions import Condition
from router.dataplane.link_counters import LinkCounters
from router.dataplane.links import EgressLink, IngressLink, PublisherLink, Transfer
from router.dataplane.transfer_lifecycle import advance
from router.dataplane.turn_clock import TurnClock

if not cython.compiled:  # else they come by the .pxd
    from router.binding.proton_functions import (
        ACCEPTED,
        MODIFIED,
        NULL,
        RECEIVED,
        REJECTED,
        RELEASED,
        Handle,
        delivery_context,
        pn_condition_is_set,
        pn_delivery_abort,
        pn_delivery_clear,
        pn_delivery_local,
        pn_delivery_remote,
        pn_delivery_remote_state,
        pn_delivery_settle,
        pn_delivery_settled,
        pn_delivery_update,
        pn_delivery_updated,
        pn_disposition_annotations,
        pn_disposition_condition,
        pn_disposition_is_failed,
        pn_disposition_is_undeliverable,
        pn_disposition_set_failed,
        pn_disposition_set_undeliverable,
        pn_link_credit,
        pn_link_queued,
        set_delivery_context,
    )
    from router.dataplane.transfer_stages import (
        DONE,
        FINISHED,
        HOLDING,
        LOST,
        QUEUED,
        SENT,
        STRANDED,
        STREAMING,
        WAITING,
    )

RELEASE: Final = RELEASED
"""Outcome of a message that surely went to nobody: its sender may try again."""
FAIL: Final = MODIFIED
"""Outcome of a message that may have been seen: delivery-failed."""
UNDELIVERABLE: Final = 0
NO_ROOM: Final = 1
EXPIRED: Final = 2
REFUSED: Final = 3
MISSED: Final = 4
TOO_LARGE: Final = 5
END_IS_NEAR_S: Final = 1.0
"""Time after which senders hear of an outcome though the end of their message has not come, seconds."""
NOTHING_UNTOLD: Final = (0, inf)
DROP_REASONS: Final = ("undeliverable", "no_room", "expired", "rejected", "missed", "too_large")
"""Names of the reasons why settled messages, or copies of multicasts, are dropped, in the order of their numbers."""


class Settlement:
    """Pairs of ingress and egress deliveries, and the credit that returns to publishers with their outcomes.

    Args:
        resume: reads a link again that was paused.
    """

    def __init__(self, clock: TurnClock, resume: Callable[[IngressLink], None], times: list[DurationHistogram]) -> None:
        """*times*: from the arrival of a message to its outcome, by group of addresses (`Fib.times`)."""
        self._clock = clock
        self._resume = resume
        self.times = times
        """Times from the arrival of a message to its outcome, by group of addresses, of the first message of each
        round; groups may be added."""
        self._timed_at = -1.0
        self.dropped = [0] * len(DROP_REASONS)
        """Number of settled messages that were dropped, by reason."""
        self.unaddressed = 0
        """Number of settled messages dropped that have no entry: nobody takes what they are addressed to, or they were
        refused."""
        self.count = 0
        """Number of deliveries, incoming and outgoing, that have a `Transfer`."""
        self.freed: list[AddressEntry] = []
        """Addresses of which a datagram that went to another router has ended: it may take the next."""
        self.stranded: list[Transfer] = []
        """Messages that look for another way in this turn."""
        self.untold: dict[Transfer, tuple[int, float]] = {}
        """Outcomes of messages of clients that have not arrived as a whole, and times at which they are told even so,
        seconds, the first one first."""
        self.untold_due = inf
        """Time at which `tell_early` is to be called, seconds; infinity when there are none."""
        self.is_stopping = False
        """Whether the router takes no more messages of clients."""

    def set_stopping(self, is_stopping: bool) -> None:
        """Take no more messages of clients, or take them again."""
        self.is_stopping = is_stopping
        if is_stopping:
            self.tell_early(inf)

    def take_freed(self) -> list[AddressEntry]:
        """Take the addresses of `freed`."""
        freed, self.freed = self.freed, []
        return freed

    def take_stranded(self) -> list[Transfer]:
        """Take the messages of `stranded`."""
        stranded, self.stranded = self.stranded, []
        return stranded

    # Which transfer a delivery belongs to

    def find(self, delivery: Handle) -> Transfer | None:
        """Find the passage that a delivery belongs to; None when it is over."""
        found: Transfer | None = delivery_context(delivery)
        return found

    def keep(self, delivery: Handle, transfer: Transfer) -> None:
        """Note that a delivery, one of its own or of another link, belongs to a passage."""
        if delivery_context(delivery) is None:
            self.count += 1
        set_delivery_context(delivery, transfer)

    def forget(self, delivery: Handle) -> Transfer | None:
        """Forget a delivery that is over for this router. Returns its passage, None when it was over before."""
        found: Transfer | None = delivery_context(delivery)
        if found is not None:
            self.count -= 1
            set_delivery_context(delivery, None)
        return found

    # From the subscriber's side

    def disposed(self, link: EgressLink, delivery: Handle) -> None:
        """Pass on that the peer changed the state of a delivery that we sent it, or settled it."""
        if not pn_delivery_updated(delivery):
            return
        transfer = self.find(delivery)
        state = pn_delivery_remote_state(delivery)
        is_final = state > RECEIVED or pn_delivery_settled(delivery)
        pn_delivery_clear(delivery)
        if transfer is None or not is_final:
            return  # a state that is not final says nothing to a publisher (and ends oslo.messaging's wait)
        if transfer.egress is not None:
            if state <= RECEIVED and transfer.egress.default_outcome is not None:
                state = take_default(delivery, transfer.egress.default_outcome)
            self._count(transfer.egress.counters, state)
        if transfer.ingress_delivery:
            self._copy_outcome(delivery, transfer, state)
            if self._timed_at != self._clock.now:
                self._take_time(transfer)
        self.leave_egress(transfer)
        self.finish(transfer)

    def _take_time(self, transfer: Transfer) -> None:
        """Take the time of a message that has its outcome: one of a round, so that it costs no others anything."""
        self._timed_at = self._clock.now
        entry = transfer.entry
        if entry is not None:
            times: DurationHistogram = self.times[entry.group]
            times.add(self._timed_at - transfer.arrived)

    def _count(self, counters: LinkCounters, state: int) -> None:
        """Count an outcome for a link of the message; what is none of the other three is a MODIFIED."""
        if state == ACCEPTED:
            counters.accepted += 1
        elif state == RELEASED:
            counters.released += 1
        elif state == REJECTED:
            counters.rejected += 1
        else:
            counters.modified += 1

    def _copy_outcome(self, delivery: Handle, transfer: Transfer, state: int) -> None:
        ingress = transfer.ingress_delivery
        if transfer.ingress is not None:
            self._count(transfer.ingress.counters, state)
        if state == ACCEPTED:
            self._tell(transfer, ACCEPTED)
            return
        remote = pn_delivery_remote(delivery)
        local = pn_delivery_local(ingress)
        if state == RELEASED:
            if transfer.ingress is not None:
                self._shrink(transfer.ingress)
            self._tell(transfer, RELEASED)
        elif state == REJECTED:
            proton_data.copy_condition(pn_disposition_condition(local), pn_disposition_condition(remote))
            self._tell(transfer, REJECTED)
        else:
            # DEV-3: the flags of a MODIFIED stay as they are. A delivery settled without a final state, or with a state
            # that only a transaction could give, may have been processed: delivery-failed.
            is_modified = state == MODIFIED
            pn_disposition_set_failed(local, pn_disposition_is_failed(remote) if is_modified else True)
            if is_modified:
                pn_disposition_set_undeliverable(local, pn_disposition_is_undeliverable(remote))
                proton_data.copy_annotations(pn_disposition_annotations(local), pn_disposition_annotations(remote))
            self._tell(transfer, MODIFIED)

    def _tell(self, transfer: Transfer, outcome: int) -> None:
        """Write an outcome to the message's sender; to a client with the end of the message, if that is near.

        An engine writes a state again with each part that comes, until the delivery is settled, and clients take each
        for an outcome. A router sends no more of the message when it hears of it.
        """
        link = transfer.ingress
        if transfer.is_complete or link is None or link.port.is_router or self.is_stopping:
            pn_delivery_update(transfer.ingress_delivery, outcome)
        else:
            due = self._clock.now + END_IS_NEAR_S
            self.untold[transfer] = (outcome, due)
            self.untold_due = min(self.untold_due, due)

    def tell_early(self, now: float) -> None:
        """Write the outcomes that are due at *now* (seconds), though the end has not come: senders may wait."""
        self.untold_due = inf
        told = []
        for transfer, (_, due) in self.untold.items():
            if due > now:
                self.untold_due = due
                break
            told.append(transfer)
        for transfer in told:
            outcome, _ = self.untold.pop(transfer)
            if transfer.ingress_delivery and transfer.ingress is not None:
                pn_delivery_update(transfer.ingress_delivery, outcome)
                transfer.ingress.port.touch()

    # From this router

    def settle(self, transfer: Transfer, outcome: int, reason: int = UNDELIVERABLE) -> None:
        """Give the publisher an outcome that this router found: ACCEPTED, RELEASE or FAIL.

        Args:
            transfer: the message.
            outcome: for its publisher.
            reason: why it is dropped, if it is pre-settled and not ACCEPTED: an index of `DROP_REASONS`.
        """
        delivery = transfer.ingress_delivery
        if delivery:
            if outcome == FAIL:
                pn_disposition_set_failed(pn_delivery_local(delivery), True)
            self._tell(transfer, outcome)
            if transfer.ingress is not None:
                self._count(transfer.ingress.counters, outcome)
        elif outcome != ACCEPTED:
            self.count_dropped(transfer, reason)
        if outcome == RELEASED:
            if transfer.entry is not None:
                transfer.entry.released += 1
            if transfer.ingress is not None:
                self._shrink(transfer.ingress)
        self.finish(transfer)

    def reject(self, transfer: Transfer, condition: Condition, description: str) -> None:
        """Give the publisher REJECTED with an AMQP error."""
        if self._set_rejected(transfer, condition, description):
            self._tell(transfer, REJECTED)
        self.finish(transfer)

    def tell_rejected(self, transfer: Transfer, condition: Condition, description: str) -> None:
        """Write REJECTED to the publisher at once, and settle nothing yet; of a pre-settled message count the loss."""
        if self._set_rejected(transfer, condition, description):
            pn_delivery_update(transfer.ingress_delivery, REJECTED)

    def _set_rejected(self, transfer: Transfer, condition: Condition, description: str) -> bool:
        """Set the error of a REJECTED. Returns: whether there is anybody to be told; else it is counted as dropped."""
        delivery = transfer.ingress_delivery
        if not delivery:
            self.count_dropped(transfer, REFUSED)
            return False
        error = pn_disposition_condition(pn_delivery_local(delivery))
        proton_data.set_condition(error, condition, description)
        if transfer.ingress is not None:
            transfer.ingress.counters.rejected += 1
        return True

    def reject_for(self, transfer: Transfer, error: PeerProtocolError) -> None:
        """Give the publisher REJECTED because of what was found in its bytes."""
        self.reject(transfer, error.condition, str(error))

    def count_dropped(self, transfer: Transfer, reason: int) -> None:
        """Count a pre-settled message that goes nowhere: all that is left of it is a number.

        Args:
            transfer: the message.
            reason: number in `DROP_REASONS`.
        """
        self.dropped[reason] += 1
        if transfer.ingress is not None:
            transfer.ingress.counters.dropped += 1
        if transfer.entry is not None:
            transfer.entry.dropped += 1
        else:
            self.unaddressed += 1

    def finish(self, transfer: Transfer) -> None:
        """End a message here: settle its ingress half once it has arrived as a whole, and return its credit."""
        if transfer.held_for is not None:
            self.unhold(transfer)
        if transfer.load is not None:
            self._leave_load(transfer)
        transfer.clear()
        transfer.leaving = None
        advance(transfer, FINISHED)
        if not transfer.is_complete and transfer.ingress is not None:
            # A router that hears of the outcome aborts it; what still comes is thrown away until the last frame.
            transfer.ingress.port.touch()
            self.resume(transfer)
            return
        self.leave_ingress(transfer)

    def resume(self, transfer: Transfer) -> None:
        """Read its source again: what stopped that is over."""
        link = transfer.ingress
        if link is not None and link.is_paused and link.current is transfer:
            self._resume(link)

    def unhold(self, transfer: Transfer) -> None:
        """Charge its bytes no longer to the connection that they are held for."""
        assert transfer.held_for is not None
        transfer.held_for.held_bytes -= transfer.size
        transfer.held_for = None

    def leave_ingress(self, transfer: Transfer) -> None:
        """Settle the ingress half and take the message off its sender's account."""
        delivery = transfer.ingress_delivery
        outcome = 0
        if self.untold:
            outcome, _ = self.untold.pop(transfer, NOTHING_UNTOLD)
        if delivery:
            transfer.ingress_delivery = NULL
            self.forget(delivery)
            if outcome:
                pn_delivery_update(delivery, outcome)
            pn_delivery_settle(delivery)
        link = transfer.ingress
        if link is not None:
            transfer.ingress = None
            link.in_flight -= 1
            if not link.is_gone:
                self.top_up(link)
                link.port.touch()

    def tell_leaving(self, transfer: Transfer) -> None:
        """Write what is known of a message to its sender, which leaves: the engine settles it with the link.

        Without an outcome it would be settled all the same.
        """
        delivery = transfer.ingress_delivery
        if not delivery:
            return
        outcome, _ = self.untold.get(transfer, NOTHING_UNTOLD)
        local = pn_delivery_local(delivery)
        # Of a message that was rejected it knows that, unless this is to be told.
        if not outcome and not pn_condition_is_set(pn_disposition_condition(local)):
            if transfer.state in (HOLDING, WAITING, QUEUED, STRANDED):
                outcome = RELEASED
            elif transfer.state != DONE:
                outcome = FAIL
                pn_disposition_set_failed(local, True)
        if outcome:
            pn_delivery_update(delivery, outcome)

    def lose_ingress(self, transfer: Transfer) -> None:
        """Note that its sender has aborted it, or is gone: nobody is to be told of an outcome any more."""
        self.untold.pop(transfer, None)
        transfer.ingress_delivery = NULL

    def leave_egress(self, transfer: Transfer) -> None:
        """Settle the egress half; a message that is not yet sent as a whole is aborted, as AMQP has it."""
        delivery = transfer.egress_delivery
        link = transfer.egress
        if not delivery or link is None:
            return
        transfer.egress_delivery = NULL
        transfer.egress = None
        self.forget(delivery)
        if transfer.state == STREAMING:
            link.current = None
            link.port.leaving_bytes -= transfer.leaving_bytes
            transfer.leaving_bytes = 0
            pn_delivery_abort(delivery)
        else:
            pn_delivery_settle(delivery)
        if transfer.state == SENT:
            link.outstanding -= 1
            if link.load is not None:
                link.load.settled(link, link.outstanding == 0)
        link.port.touch()

    def strand(self, transfer: Transfer) -> None:
        """Let a message take another way: its own was lost before it was written, so nobody has seen it."""
        # DEV-24: qdrouterd releases it, and the sender of an RPC waits for its retry.
        transfer.egress = None
        transfer.egress_delivery = NULL
        self._leave_load(transfer)
        advance(transfer, LOST)
        self.stranded.append(transfer)

    def _leave_load(self, transfer: Transfer) -> None:
        """Count it no longer as a datagram toward its egress router, however it has ended."""
        entry, load = transfer.entry, transfer.load
        transfer.load = None
        if load is None:
            return
        load.datagrams -= 1
        load.unsettled -= 1
        if entry is not None and entry.controller is not None:
            self.freed.append(entry)

    # Credit

    def grow(self, link: PublisherLink) -> None:
        """Let a sender's window grow: it has sent a message to an address with a receiver."""
        link.used += 1
        if is_used(link.window, link.used):
            link.window, link.used = grown(link.window, link.most_window), 0
            self.top_up(link)

    def _shrink(self, link: IngressLink) -> None:
        """Let the window shrink of a sender that names addresses itself: it has named what nobody serves."""
        if link.entry is None and isinstance(link, PublisherLink):
            publisher = link
            publisher.window, publisher.used = shrunk(publisher.window), 0

    def top_up(self, link: IngressLink) -> None:
        """Grant or take back what `fixed_publisher_link_window` says for this link, if it has a window."""
        if link.controller is not None:
            return
        queued = pn_link_queued(link.handle)
        held = pn_link_credit(link.handle) - queued
        if held < 0 and not link.was_lowered:
            return  # the reader comes to what is beyond its limit, and closes it
        if link.port.is_router:
            # DEV-8: a data link between routers is never without credit; it carries every address.
            change = link.window - held if 2 * held <= link.window else 0
        else:
            is_open = link.entry is None or link.entry.is_open
            if self.is_stopping and (link.entry is None or link.entry.kind is AddressKind.MOBILE):
                is_open = False  # replies to what is in flight still pass
            # What lies unread in the engine is under way too; the one that is being read is in both numbers.
            in_flight = link.in_flight + queued - (link.current is not None)
            change = change_of(is_open, link.window, held, in_flight)
            if change > 0 and held >= 0 and link.port.is_over:
                change = self._for_questions(link, held, change)
        if change:
            link.change_credit(change)

    def _for_questions(self, link: IngressLink, held: int, change: int) -> int:
        """Part of a link's credit that it gets while its connection is above its mark: whoever asks the router what is
        wrong gets an answer. The rest follows when that is over (`RouterDataPlane.release`)."""
        if link.entry is None:
            return 1 if held == 0 else 0
        return change if link.entry.service is not None else 0


def take_default(delivery: Handle, outcome: tuple[int, bool, bool]) -> int:
    """Take the default outcome of its source for a delivery that was settled without one. Returns: the state.

    Source: AMQP 1.0 part 3, 3.5.3.
    """
    state, is_failed, is_undeliverable = outcome
    pn_disposition_set_failed(pn_delivery_remote(delivery), is_failed)
    pn_disposition_set_undeliverable(pn_delivery_remote(delivery), is_undeliverable)
    return state
