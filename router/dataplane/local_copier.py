"""Copies of a multicast to the subscribers of this router: where they are many in slices, a few in each turn.

To copy one message to thousands of links takes much longer than another client should have to wait. So a turn writes
`TURN_COPIES` at most, and the next turns go on. What comes to an address later waits behind, so nothing overtakes at
any subscriber, and a message has its outcome when its last copy was given to its link. Where several wait for the same
subscribers, a turn gives all of them to a few, in one write each. Addresses have their slices by turns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

import cython

from router.core.forwarding.fib import AddressEntry
from router.dataplane.internal_error_handlers import InternalErrorHandlers
from router.dataplane.links import SubscriberLink, Transfer
from router.dataplane.message_sender import MessageSender
from router.dataplane.settlement import Settlement
from router.dataplane.transfer_lifecycle import StageError

if not cython.compiled:  # else they come by the .pxd
    from router.binding.proton_functions import ACCEPTED, pn_link_credit

TURN_COPIES: Final = 64
"""Maximum number of copies written in one turn, of all messages of which there are more than go at once."""
FEW_COPIES: Final = 64
"""Maximum number of copies of a message that go at once, unless others of its address are still to be written."""


class CopyBatch:
    """The copies of one message that are still to be written."""

    def __init__(self, data: bytes, transfer: Transfer, links: list[SubscriberLink], *, is_counted: bool) -> None:
        self.data = data
        self.transfer = transfer
        self.links = links
        self.at = 0
        """Number of them that have theirs."""
        self.is_counted = is_counted


class LocalCopier:
    """All copies that are still to be written to subscribers of this router.

    Args:
        end_faulty: gives a message an outcome that a fault of ours has happened to.
    """

    def __init__(
        self,
        egress: MessageSender,
        settlement: Settlement,
        end_faulty: Callable[[StageError], None],
        faults: InternalErrorHandlers,
    ) -> None:
        self._egress = egress
        self._settlement = settlement
        self._runs: dict[AddressEntry, deque[CopyBatch]] = {}
        """Batches by address, the oldest message first; the address that is next comes first."""
        self.left = 0
        """Number of copies that are still to be written."""
        self._end_faulty = end_faulty
        self._faults = faults

    def send(
        self, data: bytes, transfer: Transfer, entry: AddressEntry, links: Iterable[Any], *, is_counted: bool
    ) -> bool:
        """Give a copy to each of *links*, now or in the next turns.

        Args:
            data: the message as it leaves.
            links: local subscribers of *entry*, `SubscriberLink`s.
            is_counted: their credit was set aside for it; else a copy waits where there is none.
        Returns: whether each has its copy; else the transfer will have its outcome, ACCEPTED, when that is so.
        """
        those: list[SubscriberLink] = list(links)
        runs = self._runs.get(entry)
        if runs is None and len(those) <= FEW_COPIES:
            for link in those:
                self._give(data, transfer, link, is_counted)
            return True
        for link in those:
            link.deferred += 1
        if runs is None:
            runs = self._runs[entry] = deque()
        self.left += len(those)
        runs.append(CopyBatch(data, transfer, those, is_counted=is_counted))
        return False

    def has_more(self) -> bool:
        """Whether copies are left for the next turn."""
        return bool(self._runs)

    def go_on(self) -> None:
        """A turn begins: write the next slice."""
        left = TURN_COPIES
        while self._runs and left > 0:
            entry = next(iter(self._runs))
            runs = self._runs.pop(entry)
            while runs and left > 0:
                left -= self._write_slice(runs, left)
                while runs and runs[0].at == len(runs[0].links):
                    self._settlement.settle(runs.popleft().transfer, ACCEPTED)
            if runs:
                self._runs[entry] = runs

    def _write_slice(self, runs: deque[CopyBatch], most: int) -> int:
        """Write *most* copies: of the oldest message, and to the same links those of the messages behind it.

        What a link gets in one turn leaves in one write, and that takes much more time than a copy. Nothing is
        overtaken: a link has the older of two messages before the newer one.

        Returns: how many were written or had nowhere to go, one at least.
        """
        oldest = runs[0]
        begin = oldest.at
        count = min(len(runs), most)
        links = oldest.links[begin : begin + most // count]
        written = 0
        for number in range(count):
            run = runs[number]
            if run.at != begin or (number and run.links[begin : begin + len(links)] != links):
                break
            self._go_on_with(run, links)
            written += len(links)
        return max(1, written)

    def _go_on_with(self, run: CopyBatch, links: list[SubscriberLink]) -> None:
        """Write a message's copies to *links*, which are its next ones."""
        run.at += len(links)
        self.left -= len(links)
        for link in links:
            link.deferred -= 1
            if link.is_gone:
                continue
            try:
                self._give(run.data, run.transfer, link, run.is_counted)
                if link.is_answering or not link.deferred:
                    self._egress.spared(link)  # what it asks back may be given back now
            except StageError as error:
                self._end_faulty(error)
            except Exception as error:  # a fault of ours must end one connection and not the router
                self._faults.of_port(link.port, error)

    def _give(self, data: bytes, transfer: Transfer, link: SubscriberLink, is_counted: bool) -> None:
        if is_counted and pn_link_credit(link.handle) > 0:
            self._egress.send_copy(data, transfer, link)
            if not link.can_send():
                self._egress.spared(link)  # it can take less than what was counted on
        else:
            self._egress.copy(data, transfer, link)
