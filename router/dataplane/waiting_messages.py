"""Messages that wait for credit, at an address or at a link: bounded in number, bytes and time.

What any local subscriber may take waits at its address, so that the first with credit takes the oldest. What has to go
out on one link waits there: copies of a multicast, and what a neighbor is to get. Each waits no longer than its own
`ttl` and the setting allow; then it is RELEASED or, pre-settled, dropped and counted.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from math import inf
from typing import Final

import cython

from router.core.errors import PeerProtocolError
from router.core.forwarding.fib import AddressEntry
from router.dataplane.current_settings import CurrentSettings
from router.dataplane.links import EgressLink, IngressLargeMessagesLink, IngressLink, Transfer
from router.dataplane.section_scanner import scan
from router.dataplane.settlement import EXPIRED, NO_ROOM, RELEASE, Settlement
from router.dataplane.transfer_lifecycle import advance
from router.dataplane.turn_clock import TurnClock

if not cython.compiled:  # else they come by the .pxd
    from router.dataplane.transfer_stages import POSTPONED, SELECTED, STREAM_BUFFER_BYTES, WAITING

NEVER: Final = inf
"""Deadline that never comes. It is declared as a number of C: the next deadline is asked for in each turn."""
Place = AddressEntry | EgressLink
"""A queue of messages that wait, oldest first."""


class WaitingMessages:
    """The waiting messages of all places, with their deadlines.

    Args:
        expired: told of a message that waited at its address for too long.
    """

    def __init__(
        self, clock: TurnClock, settings: CurrentSettings, settlement: Settlement, expired: Callable[[Transfer], None]
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._settlement = settlement
        self.count = 0
        """Number of messages that wait, at all places."""
        self.total_bytes = 0
        """Bytes of the messages that wait."""
        self.is_closed = False
        """Whether too much is held in this process: what is on no connection's account must not begin to wait."""
        self._deadlines: list[tuple[float, int, Transfer]] = []
        """Heap of times. No `TimerQueue`: a message that leaves has nothing to do here, since its stage tells."""
        self._deadlines_room = DEADLINES_ROOM
        self._number = 0
        self.refused: dict[str, int] = {}
        """Number of messages for which there was no room since this was last reported, by address."""
        self.given_up = {NO_ROOM: 0, EXPIRED: 0}
        """Messages that wait no more though nobody took them, by reason, since the start."""
        self._expired = expired
        self.relieved: list[IngressLink] = []
        """Links that were paused because too much of theirs waited, and need be no longer."""

    def set_closed(self, is_closed: bool) -> None:
        """Let nothing begin to wait that is on no connection's account, or let it again."""
        self.is_closed = is_closed

    def take_relieved(self) -> list[IngressLink]:
        """Take the links of `relieved`."""
        relieved, self.relieved = self.relieved, []
        return relieved

    def enter(self, transfer: Transfer, place: Place, *, is_bounded: bool = True, is_credited: bool = True) -> None:
        """Let it wait, or release it when there is no room left.

        Args:
            is_bounded: else there is always room, and no bound in time but its own `ttl`.
            is_credited: it came on credit; what didn't leaves half of the room to others.
        """
        # DEV-4: qdrouterd drops pre-settled messages to make room, and tells nobody.
        size = transfer.size
        settings = self._settings.forwarding
        transfer.egress = place if isinstance(place, EgressLink) else None
        most, most_bytes = settings.waiting_messages, settings.waiting_bytes
        if not is_credited:
            most, most_bytes = max(1, most // 2), most_bytes // 2
        is_full = len(place.waiting) >= most or place.waiting_bytes + size > most_bytes
        if is_bounded and (is_full or (self.is_closed and self._has_no_account(transfer))):
            self.refuse(transfer)
            return
        advance(transfer, POSTPONED)
        place.waiting[transfer] = None
        self.count += 1
        self.total_bytes += size
        place.waiting_bytes += size
        if transfer.ingress is not None:
            transfer.ingress.backlog_bytes += size
        until = min(transfer.waits_until, self._clock.now + settings.waiting_s)  # also if it has waited elsewhere
        transfer.waits_until = until if is_bounded else inf
        # Most wait for a moment only, so its `ttl` is looked for later.
        self._push(transfer, self._clock.now + LOOK_S)

    def _has_no_account(self, transfer: Transfer) -> bool:
        """Whether its sender is gone, or has a neighbor's account on which there is too much."""
        return transfer.ingress is None or transfer.ingress.port.is_over

    def _push(self, transfer: Transfer, due: float) -> None:
        self._number += 1
        heapq.heappush(self._deadlines, (due, self._number, transfer))
        if len(self._deadlines) > self._deadlines_room:  # most of them were sent long ago
            self._deadlines = [item for item in self._deadlines if item[2].state == WAITING]
            heapq.heapify(self._deadlines)
            self._deadlines_room = 2 * len(self._deadlines) + DEADLINES_ROOM

    def grew(self, transfer: Transfer, added: int) -> None:
        """Count what has come more of a message that waits, in bytes; it is among its data already."""
        place = transfer.egress or transfer.entry
        assert place is not None
        self.total_bytes += added
        place.waiting_bytes += added
        if transfer.ingress is not None:
            transfer.ingress.backlog_bytes += added
        is_of_link = transfer.egress is not None  # else its source is not read beyond a bound
        if is_of_link and place.waiting_bytes > self._settings.forwarding.waiting_bytes:
            self.refuse(transfer)

    def oldest(self, place: Place) -> Transfer | None:
        """Find the message that has waited longest; None when nothing waits."""
        transfer = next(iter(place.waiting), None)
        return transfer if isinstance(transfer, Transfer) else None

    def take(self, place: Place) -> Transfer | None:
        """Take out the oldest message; None when nothing waits."""
        transfer = self.oldest(place)
        if transfer is not None:
            self._leave(transfer)
            transfer.egress = None
        return transfer

    def give_up(self, transfer: Transfer) -> None:
        """Make a message wait no longer, if it does, for instance because its sender is gone."""
        if transfer.state == WAITING:
            self._leave(transfer)

    def _leave(self, transfer: Transfer) -> None:
        place = transfer.egress or transfer.entry
        assert place is not None
        self._take_out(transfer, place)
        advance(transfer, SELECTED)

    def expel(self, transfer: Transfer) -> None:
        """Make a message wait no longer after a fault of ours, wherever it does and whatever its stage is."""
        for place in (transfer.egress, transfer.entry):
            if place is not None and transfer in place.waiting:
                self._take_out(transfer, place)

    def _take_out(self, transfer: Transfer, place: Place) -> None:
        del place.waiting[transfer]
        self.count -= 1
        self.total_bytes -= transfer.size
        place.waiting_bytes -= transfer.size
        if transfer.ingress is not None:
            self._relieve(transfer.ingress, transfer.size)

    def _relieve(self, source: IngressLink, size: int) -> None:
        source.backlog_bytes -= size
        if source.is_paused and source.current is None and source.backlog_bytes <= LOW_BACKLOG_BYTES:
            self.relieved.append(source)

    def leave_source(self, transfer: Transfer) -> None:
        """Take a message that waits off the account of its sender, which wants to hear nothing of it."""
        if transfer.state == WAITING and transfer.ingress is not None:
            self._relieve(transfer.ingress, transfer.size)

    def is_backlogged(self, source: IngressLink) -> bool:
        """Whether too many bytes of a link's messages wait for more to be read of it.

        Never so for links that carry messages to many addresses: one slow subscriber would hold up all others.
        """
        if source.backlog_bytes <= STREAM_BUFFER_BYTES:
            return False
        return source.entry is not None or isinstance(source, IngressLargeMessagesLink)

    def next_deadline(self) -> float:
        """Time at which the next message has waited too long, seconds; infinity when none waits."""
        while self._deadlines and self._deadlines[0][2].state != WAITING:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else NEVER

    def handle_deadline(self, now: float) -> None:
        """Release what has waited too long at *now*, seconds."""
        while self._deadlines and self._deadlines[0][0] <= now:
            transfer = heapq.heappop(self._deadlines)[2]
            if transfer.state != WAITING:
                continue
            # DEV-19: a qdrouterd lets it wait for ever.
            until = min(transfer.waits_until, transfer.arrived + self._own_patience(transfer))
            if until > now:
                if until < inf:
                    self._push(transfer, until)
            else:
                self._leave(transfer)
                self._expired(transfer)
                self._release(transfer, EXPIRED)

    def refuse(self, transfer: Transfer) -> None:
        """Release a message for which there is no room."""
        self.give_up(transfer)
        self._expired(transfer)
        if transfer.entry is not None:
            self.refused[transfer.entry.text] = self.refused.get(transfer.entry.text, 0) + 1
        self._release(transfer, NO_ROOM)

    def _release(self, transfer: Transfer, reason: int) -> None:
        self.given_up[reason] += 1
        link, transfer.egress = transfer.egress, None
        if link is not None and transfer.is_settled:
            link.counters.dropped += 1
        self._settlement.settle(transfer, RELEASE, reason)

    def _own_patience(self, transfer: Transfer) -> float:
        """Seconds that it says it may wait, by its `ttl`."""
        found = transfer.scan
        if found is None:
            try:
                data = transfer.head()
                found = scan(data, transfer.has_all(data), stop_at_annotations=True)
            except PeerProtocolError:
                found = None  # a local subscriber may understand what we need not read
        return inf if found is None or found.ttl_ms is None else found.ttl_ms / 1000


LOOK_S = 0.01
"""Time for which a message has waited before its `ttl` is read, seconds."""
LOW_BACKLOG_BYTES = STREAM_BUFFER_BYTES // 2
"""Backlog below which a link that was not read because of it is read again, bytes."""
DEADLINES_ROOM = 1000
"""Minimum number of deadlines kept before those of messages that wait no more are looked for."""
