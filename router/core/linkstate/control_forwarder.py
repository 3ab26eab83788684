"""Passes on what one router sends to another, and keeps for a moment what finds no way.

After a change routers compute within milliseconds of each other: until this one has caught up with the sender, a
message may find no route, or one that leads back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import attrs

from router.core.events import ControlReceived
from router.core.ids_and_conditions import RouterId
from router.core.linkstate.control_message_sender import ControlMessageSender

HOLD_S: Final = 0.1
"""Time for which a message may wait for a way, seconds."""
MAX_HELD: Final = 1000
"""Messages that may wait."""


@attrs.frozen(kw_only=True)
class HeldMessage:
    """A message that waits."""

    received: ControlReceived
    target: RouterId
    expiry: float


class TransitControlForwarder:
    """Messages from one router to another that pass this one.

    Args:
        answer: may answer what finds no way in the place of the router that it is for; returns whether it did.
    """

    def __init__(self, sender: ControlMessageSender, answer: Callable[[ControlReceived, RouterId], bool]) -> None:
        self.dropped = 0
        """Messages that found no way: too many hops, a loop, no route."""
        self._sender = sender
        self._answer = answer
        self._held: list[HeldMessage] = []

    def forward(self, received: ControlReceived, target: RouterId, now: float) -> None:
        """Pass on *received*, at once if there is a way.

        Args:
            received: a message for another router.
            target: that router.
            now: seconds, monotonic.
        """
        if self._sender.forward(received, target) or self._answer(received, target):
            return
        if len(self._held) < MAX_HELD:
            self._held.append(HeldMessage(received=received, target=target, expiry=now + HOLD_S))
        else:
            self.dropped += 1

    def retry(self) -> None:
        """Routes have been computed: try again."""
        held, self._held = self._held, []
        self._held = [item for item in held if not self._sender.forward(item.received, item.target)]

    def next_deadline(self) -> float:
        """Time at which something is given up, seconds; `math.inf` when nothing waits."""
        return self._held[0].expiry if self._held else math.inf

    def elapse(self, now: float) -> None:
        """Give up what has waited for too long.

        Args:
            now: seconds, monotonic.
        """
        kept = [item for item in self._held if item.expiry > now]
        self.dropped += len(self._held) - len(kept)
        self._held = kept
