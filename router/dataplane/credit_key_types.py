"""Keys of credit machines with the types that they have here: links and messages.

The machines take any key and never look into it. A controller gives them its links and messages, so those are what it
gets back. The classes of actions below are the machines' own: only a type checker sees them declared anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, cast

from router.core.forwarding import credit_actions, multicast_tree
from router.core.forwarding.anycast_scheduler import AnycastScheduler
from router.core.forwarding.credit_actions import Key
from router.core.forwarding.fair_queue import FairQueue
from router.core.forwarding.fib import AddressEntry
from router.dataplane.links import IngressCircuitLink, PublisherLink, SubscriberLink, Transfer

if TYPE_CHECKING:

    class Grant(credit_actions.Grant):
        """See `credit_actions.Grant`."""

        publisher: PublisherLink

    class GrantCircuit(credit_actions.GrantCircuit):
        """See `credit_actions.GrantCircuit`."""

        circuit: IngressCircuitLink

    class DrainCircuit(credit_actions.DrainCircuit):
        """See `credit_actions.DrainCircuit`."""

        circuit: IngressCircuitLink

    class TellNeighborSubscribersWithdrew(credit_actions.TellNeighborSubscribersWithdrew):
        """See `credit_actions.TellNeighborSubscribersWithdrew`."""

        circuit: IngressCircuitLink

    class Send(credit_actions.Send):
        """See `credit_actions.Send`."""

        message: Transfer

    class SendCopies(multicast_tree.SendCopies):
        """See `multicast_tree.SendCopies`."""

        message: Transfer
        subscribers: Sequence[SubscriberLink]
        missed: Sequence[SubscriberLink]

    class AnswerSubscriberDrain(multicast_tree.AnswerSubscriberDrain):
        """See `multicast_tree.AnswerSubscriberDrain`."""

        subscriber: SubscriberLink

else:
    from router.core.forwarding.credit_actions import (
        DrainCircuit,
        Grant,
        GrantCircuit,
        Send,
        TellNeighborSubscribersWithdrew,
    )
    from router.core.forwarding.multicast_tree import AnswerSubscriberDrain, SendCopies

__all__ = [
    "TellNeighborSubscribersWithdrew",
    "DrainCircuit",
    "Grant",
    "GrantCircuit",
    "AnswerSubscriberDrain",
    "Send",
    "SendCopies",
    "circuits_of",
    "loads_to_tell",
    "messages_of",
    "publishers_of",
    "youngest_of",
]


def messages_of(keys: Iterable[Key]) -> list[Transfer]:
    """The messages that a machine names by their keys."""
    return cast("list[Transfer]", list(keys))


def circuits_of(keys: Iterable[Key]) -> list[IngressCircuitLink]:
    """The neighbors' circuits that a machine names by their keys."""
    return cast("list[IngressCircuitLink]", list(keys))


def publishers_of(entry: AddressEntry) -> list[PublisherLink]:
    """The publishers to an address at this router, in the order in which they were attached."""
    return cast("list[PublisherLink]", list(entry.publishers))  # the FIB knows them by what it asks of them


def loads_to_tell(
    scheduler: AnycastScheduler, now: float
) -> tuple[Sequence[tuple[IngressCircuitLink, int, int]], float]:
    """Ask a scheduler for its reports of loads.

    Args:
        now: seconds, monotonic.
    Returns: as `AnycastScheduler.reports`.
    """
    unsettled: dict[Key, int] = {circuit: circuit.in_flight for circuit in circuits_of(scheduler.told_circuits())}
    reports, due = scheduler.reports(unsettled, now)
    return cast("list[tuple[IngressCircuitLink, int, int]]", reports), due


def youngest_of(left: FairQueue) -> Transfer:
    """Return the message that began last to wait among those whose publishers are not here."""
    return cast("Transfer", left.youngest())
