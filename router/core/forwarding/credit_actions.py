"""Credit actions: what a machine wants done. Its events and turns return them, and its owner carries them out in order.

What happens to one message as it comes is a number, so that it costs next to nothing: not below 0 when it is to be sent
to the egress with that number, else `KEPT` or `REFUSED`. All else is a list of actions.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from router.core.ids_and_conditions import RouterId

Key = Hashable
"""A publisher, an incoming circuit or a message, as the caller names it; never looked into."""

KEPT: Final = -1
"""Result for a message that waits here."""
REFUSED: Final = -2
"""Result for a message that is not kept, since no subscriber can be reached."""


class CreditAction:
    """One thing to be done."""

    __slots__ = ()


class Grant(CreditAction):
    """Add *credit* to a publisher's link, or take it back when negative."""

    __slots__ = ("credit", "publisher")

    def __init__(self, publisher: Key, credit: int) -> None:
        self.publisher = publisher
        self.credit = credit


class GrantCircuit(CreditAction):
    """Add *credit* to an incoming circuit."""

    __slots__ = ("circuit", "credit")

    def __init__(self, circuit: Key, credit: int) -> None:
        self.circuit = circuit
        self.credit = credit


class DrainCircuit(CreditAction):
    """Ask an incoming circuit for its credit; the answer is the event `circuit_drained`."""

    __slots__ = ("circuit",)

    def __init__(self, circuit: Key) -> None:
        self.circuit = circuit


class TellNeighborSubscribersWithdrew(CreditAction):
    """Tell the neighbor of an incoming circuit that the subscribers have withdrawn: its event `closed`."""

    __slots__ = ("circuit",)

    def __init__(self, circuit: Key) -> None:
        self.circuit = circuit


class Send(CreditAction):
    """Send a message that waited here toward *egress*, where there is credit for it.

    At the egress itself it goes to a subscriber that drains before all others, so that what is asked back is what
    remains.
    """

    __slots__ = ("egress", "message")

    def __init__(self, message: Key, egress: RouterId) -> None:
        self.message = message
        self.egress = egress


class ReturnCredit(CreditAction):
    """Give all credit back on a circuit of this router, or to the local subscribers that drain.

    The circuit is the one toward the egress *root*; or in the tree of the ingress *root* the one to *neighbor*.
    """

    __slots__ = ("neighbor", "root")

    def __init__(self, root: RouterId, neighbor: RouterId | None = None) -> None:
        self.root = root
        self.neighbor = neighbor


class TellWeight(CreditAction):
    """Tell the next hop of such a circuit how many busy publishers are behind this router.

    The first is reason to make the circuit.
    """

    __slots__ = ("neighbor", "root", "weight")

    def __init__(self, root: RouterId, weight: int, neighbor: RouterId | None = None) -> None:
        self.root = root
        self.weight = weight
        self.neighbor = neighbor
