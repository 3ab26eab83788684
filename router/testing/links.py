"""Links as AMQP has them, seen from both ends at once: delivery-counts, link-credit, drain, and frames that cross.

Nothing here knows routers. A `OneWayWire` is one way of a connection: what is sent on it arrives in order, or never
when it is cut. An `AmqpLink` uses the wire of its direction for transfers and the other one for flow.

Source: AMQP 1.0 part 2, 2.6.7; RFC 1982 for delivery-counts.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from router.simulation.network import Network

FIRST_COUNT = 2**32 - 20
"""Delivery-count of a new link: near the wrap, so that every run crosses it."""


def serial_difference(left: int, right: int) -> int:
    """*left* - *right* in serial number arithmetic of 32 bits."""
    return (left - right + 2**31) % 2**32 - 2**31


class OneWayWire:
    """One way of a connection.

    Args:
        delay_s: time on the way, seconds.
        jitter_s: up to this much more, by chance, seconds.
    """

    def __init__(self, network: Network, rng: random.Random, delay_s: float, jitter_s: float) -> None:
        self._network = network
        self._rng = rng
        self.delay_s = delay_s
        self.jitter_s = jitter_s
        self.is_cut = False
        self.messages: dict[int, None] = {}
        """Messages that are on the way."""
        self._last = 0.0

    def send(self, arrive: Callable[[], None]) -> None:
        """Call *arrive* when it has arrived, after all that was sent before."""
        time = max(self._last, self._network.now + self.delay_s + self.jitter_s * self._rng.random())
        self._last = time
        self._network.call_at(time, lambda: None if self.is_cut else arrive())

    def carry(self, message: int, arrive: Callable[[int], None]) -> None:
        """Send a message."""
        self.messages[message] = None

        def arrived() -> None:
            del self.messages[message]
            arrive(message)

        self.send(arrived)


def ignore_transfer(message: int) -> None:
    """Ignore a transfer: for a link whose receiver is gone."""


def ignore_flow(before: int) -> None:
    """Ignore a flow: for a link whose sender is gone, or has nothing to do."""


def ignore_return(credit: int) -> None:
    """Ignore returned credit: for a receiver that never drains."""


class AmqpLink:
    """One link, sender and receiver in one object; each knows of the other only what has arrived."""

    def __init__(self, forth: OneWayWire, back: OneWayWire) -> None:
        self.forth = forth
        self.back = back
        # The sender's.
        self.sent_count = FIRST_COUNT
        self.credit = 0
        """Credit that the sender may use."""
        self.is_drained = False
        """Whether the receiver asks for its credit back."""
        self.unsettled = 0
        """Messages that the receiver has not settled, where outcomes are simulated."""
        self.on_settled: Callable[[int], None] = ignore_transfer
        """Function called with a message that the receiver has settled."""
        self.on_flow: Callable[[int], None] = ignore_flow
        """Function called with the credit before the flow."""
        # The receiver's.
        self.seen_count = FIRST_COUNT
        self.granted = 0
        """Credit that the receiver thinks is unspent."""
        self.is_draining = False
        self.on_transfer: Callable[[int], None] = ignore_transfer
        self.on_returned: Callable[[int], None] = ignore_return
        self.flows = 0
        """Number of flow frames that the receiver sent."""
        self.in_flight = 0
        """Messages that it has not settled, where outcomes are simulated."""
        self._is_changed = False

    # Receiver

    def grant(self, credit: int) -> None:
        """Add credit, or take it back; `flush` tells the sender."""
        self.granted += credit
        self._is_changed = True

    def drain(self, *, is_draining: bool = True) -> None:
        """Ask for all credit back, or cease to."""
        self.is_draining = is_draining
        self._is_changed = True

    def flush(self) -> None:
        """Send one flow for all changes since the last."""
        if not self._is_changed:
            return
        self._is_changed = False
        assert self.granted >= 0, "a link-credit below zero on the wire"
        count, credit, is_draining = self.seen_count, self.granted, self.is_draining
        self.flows += 1
        self.back.send(lambda: self._flow_arrived(count, credit, is_draining=is_draining))

    def _transfer_arrived(self, message: int) -> None:
        self.seen_count = (self.seen_count + 1) % 2**32
        self.granted -= 1
        self.in_flight += 1
        self.on_transfer(message)

    def settle(self, message: int) -> None:
        """Send the outcome of one message."""
        self.in_flight -= 1
        self.back.send(lambda: self._outcome_arrived(message))

    def _return_arrived(self, count: int) -> None:
        credit = serial_difference(count, self.seen_count)
        assert credit >= 0
        self.seen_count = count
        self.granted -= credit
        if credit:
            self.on_returned(credit)

    # Sender

    def _outcome_arrived(self, message: int) -> None:
        self.unsettled -= 1
        self.on_settled(message)

    def _flow_arrived(self, count: int, credit: int, *, is_draining: bool) -> None:
        before = self.credit
        self.credit = max(0, serial_difference((count + credit) % 2**32, self.sent_count))
        self.is_drained = is_draining
        self.on_flow(before)

    def send(self, message: int) -> None:
        """Send one message."""
        assert self.credit > 0, "sent without credit"
        self.credit -= 1
        self.unsettled += 1
        self.sent_count = (self.sent_count + 1) % 2**32
        self.forth.carry(message, self._transfer_arrived)

    def give_back(self) -> None:
        """Answer a drain: advance the delivery-count over the credit that is left."""
        count = self.sent_count = (self.sent_count + self.credit) % 2**32
        self.credit = 0
        self.forth.send(lambda: self._return_arrived(count))

    # Both

    def end_sender(self) -> None:
        """The sender is gone; it hears nothing more."""
        self.credit = 0
        self.on_flow = ignore_flow

    def end_receiver(self) -> None:
        """The receiver is gone; it hears nothing more."""
        self.on_transfer = ignore_transfer
        self.on_returned = ignore_return
