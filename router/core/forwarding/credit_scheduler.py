"""What a credit machine is told, what it asks for, and how patient it is."""

from __future__ import annotations

from collections.abc import Hashable

import attrs

from router.core.ids_and_conditions import RouterId

Key = Hashable
"""A publisher, an incoming circuit or a message, as the caller names it; never looked into."""


@attrs.frozen(kw_only=True)
class CreditTiming:
    """How patient the rule is, seconds, and how much it does at once."""

    busy_s: float = 0.1
    """A publisher that sent, or that was kept from it, within this time counts as busy."""
    idle_s: float = 0.02
    """Credit unused for so long is taken back while others are backlogged. Above a client's round trip, or it flaps."""
    debt_s: float = 0.03
    """After a withdrawal or a change of path, credit that is not backed any more is taken back after this."""
    quarantine_s: float = 0.05
    """Credit taken back from a client counts as held for so long: its messages may be under way, and no client says
    when it has seen the lowering."""
    linger_s: float = 1.0
    """Subscribers that have all withdrawn close the address after this."""
    drain_bound_s: float = 1.0
    """A subscriber's drain is answered after this, even when what was lent of its credit has not come back."""
    first_window: int = 4
    """What a neighbor's circuit is dealt, and a publisher keeps, before it shows that it uses more, messages."""
    slice_size: int = 64
    """First credits given in one turn: a thousand publishers must not stop the others, publishers."""


class CreditActions:
    """What the machine asks for, to be implemented by who owns it.

    Each is carried out at once, and calls no event of the machine; but from within `send` comes `published` or
    `arrived`, when a source is read again that was held up. So counts change before orders.
    """

    def grant(self, publisher: Key, credit: int) -> None:
        """Add *credit* to a publisher's link, or take it back when negative."""
        raise NotImplementedError

    def grant_circuit(self, circuit: Key, credit: int) -> None:
        """Add *credit* to an incoming circuit."""
        raise NotImplementedError

    def drain_circuit(self, circuit: Key) -> None:
        """Ask an incoming circuit for its credit; the answer is the event `circuit_drained`."""
        raise NotImplementedError

    def close_circuit(self, circuit: Key) -> None:
        """Tell the neighbor of an incoming circuit that the egress's subscribers have withdrawn: its event `closed`."""
        raise NotImplementedError

    def send(self, message: Key, egress: RouterId) -> None:
        """Send a message that waits here toward *egress*, where there is credit for it. At the egress itself it goes
        to a subscriber that drains before all others, so that what is asked back is what remains."""
        raise NotImplementedError

    def drained(self, egress: RouterId, credit: int) -> None:
        """Give *credit* back to the circuit toward *egress*, or to the local subscriber that drains."""
        raise NotImplementedError

    def weigh(self, egress: RouterId, weight: int) -> None:
        """Tell the next hop toward *egress* how many busy publishers are behind this router. The first is reason to
        make the circuit."""
        raise NotImplementedError


class CreditScheduler:
    """What both credit machines, `scheduler` and `scheduler`, take as events."""

    def add_publisher(self, key: Key) -> None:
        """A publisher attached."""
        raise NotImplementedError

    def remove_publisher(self, key: Key) -> None:
        """A publisher is gone."""
        raise NotImplementedError

    def published(self, key: Key, message: Key, now: float, is_ready: bool = True) -> bool:
        """A message of a publisher arrived. Returns whether it is kept."""
        raise NotImplementedError

    def ready(self, message: Key) -> bool:
        """A message may leave now. Returns whether it is kept."""
        raise NotImplementedError

    def drop(self, message: Key) -> bool:
        """A message is no more. Returns whether it waited."""
        raise NotImplementedError

    def add_circuit(self, root: RouterId, key: Key, neighbor: RouterId) -> None:
        """A neighbor attached a circuit."""
        raise NotImplementedError

    def remove_circuit(self, root: RouterId, key: Key) -> None:
        """It is gone."""
        raise NotImplementedError

    def set_weight(self, root: RouterId, key: Key, weight: int) -> None:
        """A neighbor told the weight of its circuit."""
        raise NotImplementedError

    def arrived(self, root: RouterId, key: Key, message: Key, now: float, is_ready: bool = True) -> bool:
        """A message arrived on a circuit. Returns whether it is kept."""
        raise NotImplementedError

    def circuit_drained(self, root: RouterId, key: Key, credit: int) -> None:
        """A neighbor returned credit of a circuit."""
        raise NotImplementedError

    def turn(self, now: float) -> None:
        """Send, deal, lend and take back."""
        raise NotImplementedError

    def next_deadline(self) -> float:
        """When a turn is due without an event, seconds."""
        raise NotImplementedError
