"""Incoming circuit: a neighbor's link toward an egress router, as a claimant of the pool there."""

from __future__ import annotations

import math
from typing import Final

from router.core.forwarding.credit_actions import Key
from router.core.forwarding.credit_pool import Claimant
from router.core.forwarding.credit_scheduler import CreditTiming
from router.core.forwarding.egress_load import LoadToldToNeighbor
from router.core.ids_and_conditions import RouterId

MOST_PATIENCE_S: Final = 0.5
"""Most patience with a circuit: the longest round trip to its publishers that is reckoned with, seconds."""


class IncomingCircuit(Claimant):
    """Incoming circuit: a neighbor's link toward the egress."""

    __slots__ = (
        "answer_due",
        "late",
        "neighbor",
        "neighbor_weight",
        "report",
        "unreturned",
        "was_asked_early",
        "was_told_closed",
    )

    def __init__(self, key: Key, neighbor: RouterId, timing: CreditTiming) -> None:
        Claimant.__init__(self, key, timing.first_window, timing.look_s)
        self.neighbor = neighbor
        self.report = LoadToldToNeighbor()
        """Load at the egress as its neighbor was told."""
        self.neighbor_weight = 0
        """In a multicast's tree: its weight as its neighbor told it."""
        self.was_told_closed = False
        """In a multicast's tree: it was told that nobody is live, and has not been granted any credit since."""
        self.answer_due = math.inf
        """Time until which its neighbor has to answer the last drain, seconds."""
        self.was_asked_early = False
        """Credit came to use after the last drain that was used before it: messages were on the way."""
        self.unreturned = 0
        """Credit that was asked back and is overdue. Others have it now; the neighbor gets none until it is returned or
        used."""
        self.late = 0
        """Messages whose ends are overdue, likewise."""

    def drain(self, now: float, bound_s: float) -> None:
        """Note that it is drained at *now*, and is to answer within *bound_s* (seconds both)."""
        self.is_draining, self.was_asked_early = True, False
        self.answer_due = now + bound_s

    def used_while_draining(self, now: float) -> None:
        """Learn how far away its publishers are from a message, at *now* (seconds), that was on the way when drained.

        One that is farther away than `idle_s` would seem idle with each credit, and get hardly any beside those near.
        """
        if self.weight:
            self.was_asked_early = True
            self.patience_s = min(MOST_PATIENCE_S, max(self.patience_s, now - self.since))

    def answered(self) -> None:
        """Note that it has answered a drain. Where nothing was on the way there is less need for patience."""
        self.unreturned = 0
        if not self.was_asked_early:
            self.patience_s /= 2


class UnfinishedMessage:
    """Message of a circuit that is not there as a whole: it is counted, and not to be sent yet."""

    __slots__ = ("circuit", "is_late", "since")

    def __init__(self, circuit: IncomingCircuit, now: float) -> None:
        self.circuit = circuit
        self.since = now
        self.is_late = False
        """Its end is overdue, so that its credit is for others."""
