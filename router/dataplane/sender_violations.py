"""Senders that break their rules, or do not go on with a message: what becomes of it, and of their links.

Their links are closed, and others of their connections go on.
"""

from __future__ import annotations

import cython

from router.core.errors import PeerProtocolError
from router.core.ids_and_conditions import Condition
from router.dataplane.internal_error_handlers import InternalErrorHandlers
from router.dataplane.links import IngressLink, Transfer
from router.dataplane.message_forwarder import Forwarder
from router.dataplane.settlement import REFUSED, Settlement
from router.dataplane.slow_streams import STREAM_BYTES_S
from router.dataplane.unfinished_deliveries import UnfinishedDeliveries

if not cython.compiled:  # else they come by the .pxd
    from router.binding.proton_functions import pn_delivery_settled
    from router.dataplane.transfer_stages import DONE


class ViolatingLinks:
    """The links whose senders broke their rules, until they are closed."""

    def __init__(
        self,
        settlement: Settlement,
        forwarder: Forwarder,
        unfinished: UnfinishedDeliveries,
        faults: InternalErrorHandlers,
    ) -> None:
        self._settlement = settlement
        self._forwarder = forwarder
        self._unfinished = unfinished
        self._faults = faults
        self.links: dict[IngressLink, PeerProtocolError] = {}
        """Links to be closed once the events at hand are worked through, and why."""

    def add_too_large(self, link: IngressLink, transfer: Transfer) -> None:
        """Reject a message that is larger than its sender was told."""
        if transfer.state != DONE:
            self._reject(transfer, Condition.MESSAGE_SIZE_EXCEEDED, f"larger than {link.most_bytes} bytes")
        self._add(
            link,
            Condition.MESSAGE_SIZE_EXCEEDED,
            f"a message is larger than the {link.most_bytes} bytes that were announced",
        )

    def is_beyond_credit(self, link: IngressLink) -> bool:
        """Whether the next transfer, for which there is no credit, breaks the rules.

        It does not when credit of the link was ever taken back, since it may be within an earlier limit. Nor is it
        known then by how much: a proton that hears of less credit than it has used takes that for four billion.
        """
        return not link.was_lowered

    def add_beyond_credit(self, link: IngressLink) -> None:
        """Refuse a transfer for which there was no credit."""
        # DEV-35: qdrouterd takes it, and lets others wait behind it.
        self._add(link, Condition.TRANSFER_LIMIT_EXCEEDED, "a transfer beyond the credit of the link")

    def _add(self, link: IngressLink, condition: Condition, description: str) -> None:
        link.is_paused = True
        self.links[link] = PeerProtocolError(description, condition=condition)

    def close(self) -> None:
        """Close these links."""
        links, self.links = self.links, {}
        for link, error in links.items():
            if not link.is_gone:
                link.is_paused = False  # there is nothing more to be read of it
                link.port.close_link(link, error)

    def give_up_stalled(self, now: float) -> None:
        """Give up the messages whose senders do not go on with them, though they could, and those that block others.

        Args:
            now: seconds, monotonic.
        """
        unfinished = self._unfinished
        for link in unfinished.stalled(now):
            window_s = unfinished.window_of(link)
            if link.is_paused:
                what = f"nobody took more of it for {window_s:g} s, while it blocked others of its session"
                self._give_up_safely(link, what, is_to_close=False)
                continue
            what = f"fewer than {unfinished.least_bytes} bytes of an unfinished message came in {window_s:g} s"
            self._give_up_safely(link, what, is_to_close=not link.port.is_router)

    def give_up_slow(self, transfers: list[Transfer]) -> None:
        """Give up messages that were passed on in parts, while others waited and their senders were slow.

        What still comes of them is thrown away. Their links stay: an honest client may be slow, and one on proton does
        not survive that a link is closed in the middle of a message.
        """
        for transfer in transfers:
            link = transfer.ingress
            if link is not None and link.current is transfer:
                least = STREAM_BYTES_S // 1024 // 1024
                what = f"an unfinished message came at less than {least} MiB/s while others waited"
                self._give_up_safely(link, what, is_to_close=False)

    def _give_up_safely(self, link: IngressLink, description: str, is_to_close: bool) -> None:
        try:
            self._give_up(link, description, is_to_close)
        except Exception as error:  # a fault of ours must not keep the others from being given up
            self._faults.of_port(link.port, error)

    def _give_up(self, link: IngressLink, description: str, is_to_close: bool) -> None:
        """Abort what was sent of its message, and reject it; close the link too, or throw away what still comes."""
        # DEV-34: a qdrouterd waits for the rest for ever.
        error = PeerProtocolError(description, condition=Condition.RESOURCE_LIMIT_EXCEEDED)
        transfer = link.current
        self._unfinished.forget(link)
        if transfer is not None:
            self._reject(transfer, error.condition, str(error))
        if is_to_close:
            link.port.close_link(link, error)
        elif transfer is not None:
            self._forwarder.abandon(transfer)

    def _reject(self, transfer: Transfer, condition: Condition, description: str) -> None:
        """Tell the sender of a message why it is rejected; of a pre-settled one there is nobody to be told."""
        if pn_delivery_settled(transfer.ingress_delivery):
            self._settlement.count_dropped(transfer, REFUSED)
        else:
            self._settlement.tell_rejected(transfer, condition, description)
