"""Messages of an address that wait for credit of a local subscriber: bounded in number, bytes and time.

They wait at the address and not at a link, so the first subscriber that has credit takes the oldest. Each waits no
longer than its own `ttl` and the setting allow; then it is RELEASED or, pre-settled, dropped and counted.
"""

from __future__ import annotations

import heapq
import math
from collections import deque

from mesh_config.models import ForwardingSettings
from router.core.errors import RemoteProtocolError
from router.core.forwarding.fib import AddressEntry
from router.dataplane.interface import WAITING, Transfer
from router.dataplane.sections import scan
from router.dataplane.settlement import RELEASE, Settlement


class WaitingRoom:
    """The waiting messages of all addresses, with their deadlines."""

    def __init__(self, settings: ForwardingSettings, settlement: Settlement) -> None:
        self._settings = settings
        self._settlement = settlement
        self._deadlines: list[tuple[float, int, Transfer]] = []
        self._count = 0
        self._number = 0
        self.refused: dict[str, int] = {}
        """Messages by address for which there was no room since this was last reported."""

    def enter(self, transfer: Transfer, entry: AddressEntry, now: float) -> None:
        """Let it wait, or release it when the address has no room left."""
        size = len(transfer.data)
        settings = self._settings
        if len(entry.waiting) >= settings.waiting_messages or entry.waiting_bytes + size > settings.waiting_bytes:
            self.refused[entry.text] = self.refused.get(entry.text, 0) + 1
            self._settlement.settle(transfer, RELEASE)
            return
        transfer.state = WAITING
        entry.waiting.append(transfer)
        entry.waiting_bytes += size
        self._number += 1
        self._count += 1
        heapq.heappush(self._deadlines, (now + self._patience(transfer), self._number, transfer))
        if len(self._deadlines) > 2 * self._count + 1000:  # most of them were sent long ago
            self._deadlines = [item for item in self._deadlines if item[2].state == WAITING]
            heapq.heapify(self._deadlines)

    def oldest(self, entry: AddressEntry) -> Transfer | None:
        """The message that `leave` would take out."""
        waiting: deque[object] = entry.waiting
        while waiting:
            transfer = waiting[0]
            assert isinstance(transfer, Transfer)
            if transfer.state == WAITING:
                return transfer
            waiting.popleft()
            self._count -= 1
        entry.waiting_bytes = 0
        return None

    def leave(self, entry: AddressEntry) -> Transfer | None:
        """Take out the oldest message of the address; None when nothing waits."""
        transfer = self.oldest(entry)
        if transfer is not None:
            entry.waiting.popleft()
            self._count -= 1
            entry.waiting_bytes -= len(transfer.data)
        return transfer

    def give_up(self, transfer: Transfer) -> None:
        """It no longer waits, for instance because its sender is gone. Its place in the queue is skipped later.

        What waits for one link was never on its address's account.
        """
        if transfer.state == WAITING and transfer.entry is not None and transfer.egress is None:
            transfer.entry.waiting_bytes -= len(transfer.data)

    def next_deadline(self) -> float:
        """When the next message has waited too long, seconds; infinity when none waits."""
        while self._deadlines and self._deadlines[0][2].state != WAITING:
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else math.inf

    def handle_deadline(self, now: float) -> None:
        """Release what has waited too long."""
        while self._deadlines and self._deadlines[0][0] <= now:
            transfer = heapq.heappop(self._deadlines)[2]
            if transfer.state == WAITING:
                self.give_up(transfer)
                self._settlement.settle(transfer, RELEASE)

    def _patience(self, transfer: Transfer) -> float:
        """Seconds that it may wait."""
        found = transfer.scan
        if found is None:
            try:
                found = scan(transfer.data, transfer.is_complete, stop_at_annotations=True)
            except RemoteProtocolError:
                found = None  # a local subscriber may understand what we need not read
        limit = self._settings.waiting_s
        if found is None or found.ttl_ms is None:
            return limit
        return min(limit, found.ttl_ms / 1000)
