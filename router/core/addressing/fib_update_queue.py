"""Addresses of other routers that the forwarding side is still to be told of, or to lose, some at a time.

A router that is reached or lost may have hundreds of thousands of addresses. To install or withdraw all of them in one
turn would take seconds in which nothing else is done. So the first FIRST go at once, and ROUTINE of all routers after
each PAUSE_S; of single changes the first DIRECT of a turn go at once, and the others wait with those. Routers have
their turns one after the other, so that one with many addresses holds up no other. What concerns one router happens in
its order.

Thus the forwarding side may know addresses of a router to which it has no route any more; it sends nothing there.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from typing import Final

import attrs

from mesh_config.models import Treatment
from router.core.events import Action, InstallAddress, WithdrawAddress
from router.core.ids_and_conditions import RouterId

FIRST: Final = 2000
"""Maximum number of addresses handed on in the turn in which a router is reached or lost."""
ROUTINE: Final = 400
"""Maximum number of addresses handed on in each later turn."""
PAUSE_S: Final = 0.005
"""Pause between two turns in which addresses are handed on, seconds: a few milliseconds each must leave others most of
the time."""
DIRECT: Final = 100
"""Maximum number of changes of single addresses in one turn that don't wait: a message may bring hundreds."""
MOST_CHANGES: Final = 2000
"""Maximum number of changes of single addresses that wait; more go at once, since a router that changes much would let
them grow."""
TURN: Final = 100
"""Addresses of one router before those of the next one."""


@attrs.define(eq=False)
class Backlog:
    """Addresses of one router of which the forwarding side was not told: first those that go, then those that come."""

    going: list[str] = attrs.field(factory=list)
    gone: int = 0
    """Number of addresses in `going` that were withdrawn."""
    is_lost: bool = False
    """Whether `going` is all that the forwarding side has of the router."""
    coming: list[tuple[str, Treatment | None]] = attrs.field(factory=list)
    come: int = 0
    """Number of addresses in `coming` that were installed."""
    changes: deque[InstallAddress | WithdrawAddress] = attrs.field(factory=deque)
    """Changes of single addresses since; what is handed on is taken out."""

    @property
    def is_empty(self) -> bool:
        """Whether the forwarding side knows all."""
        return self.gone == len(self.going) and self.come == len(self.coming) and not self.changes

    def take(self, router: RouterId, most: int) -> list[Action]:
        """Hand on the next actions, in their order.

        Args:
            router: whose backlog it is.
            most: actions.
        """
        actions: list[Action] = []
        going = self.going[self.gone : self.gone + most]
        self.gone += len(going)
        actions += (WithdrawAddress(address=address, router=router) for address in going)
        coming = self.coming[self.come : self.come + most - len(actions)]
        self.come += len(coming)
        actions += (InstallAddress(address=address, router=router, treatment=hint) for address, hint in coming)
        actions += (self.changes.popleft() for _ in range(min(len(self.changes), most - len(actions))))
        return actions

    def lose(self, addresses: Mapping[str, object]) -> None:
        """Have everything withdrawn that the forwarding side has of the router, and nothing else done.

        Args:
            addresses: of the router, after all `changes`.
        """
        left = self.going[self.gone :]
        if not (left and self.is_lost):  # else nothing came since
            if self.come < len(self.coming):
                self.going = [address for address, _ in self.coming[: self.come]]
            else:
                left += (one.address for one in self.changes if isinstance(one, WithdrawAddress))
                self.going = [*addresses, *(address for address in left if address not in addresses)]
            self.gone = 0
            self.is_lost = True
        self.coming, self.come = [], 0
        self.changes.clear()


class FibUpdateQueue:
    """Backlogs of all routers."""

    def __init__(self) -> None:
        self._backlogs: dict[RouterId, Backlog] = {}
        self._is_first = False
        """Whether a router was reached or lost in this turn."""
        self._direct = 0
        """Number of changes in this turn that did not wait."""
        self._due = math.inf

    def change(self, action: InstallAddress | WithdrawAddress) -> bool:
        """Note a change of one address of a router. Returns: whether it has to wait; else it may be done at once."""
        backlog = self._backlogs.get(action.router)
        if backlog is None and self._direct < DIRECT:
            self._direct += 1
            return False
        if backlog is None:
            backlog = self._backlogs[action.router] = Backlog()
        backlog.changes.append(action)
        return True

    def reach(self, router: RouterId, addresses: Mapping[str, Treatment | None]) -> None:
        """Install all addresses of a router.

        Args:
            router: that has become reachable.
            addresses: with the treatments that it names.
        """
        self._backlogs.setdefault(router, Backlog()).coming = list(addresses.items())
        self._is_first = True

    def lose(self, router: RouterId, addresses: Mapping[str, object]) -> None:
        """Withdraw all addresses of a router.

        Args:
            router: that was reachable.
            addresses: as they are known now.
        """
        self._backlogs.setdefault(router, Backlog()).lose(addresses)
        self._is_first = True

    def withdraw(self, router: RouterId, addresses: list[str]) -> None:
        """Withdraw many addresses of a router that stays.

        Args:
            router: that has told of all its addresses.
            addresses: that are no longer among them.
        """
        backlog = self._backlogs.get(router)
        if backlog is None:
            self._backlogs[router] = Backlog(going=addresses)
        else:
            backlog.changes += (WithdrawAddress(address=address, router=router) for address in addresses)
        self._is_first = True

    def next_deadline(self) -> float:
        """Time at which `take` has something to do, seconds; `math.inf` when never."""
        return self._due

    def take(self, now: float) -> list[Action]:
        """Hand on what is due.

        Args:
            now: seconds, monotonic.
        """
        if not self._backlogs:
            self._is_first, self._direct, self._due = False, 0, math.inf
            return []
        is_due = self._is_first or now >= self._due
        left = sum(len(backlog.changes) for backlog in self._backlogs.values()) - MOST_CHANGES
        if is_due:
            left = max(left, FIRST if self._is_first else ROUTINE)
            self._is_first = False
        self._direct = 0
        actions: list[Action] = []
        while self._backlogs and left > 0:
            router = next(iter(self._backlogs))
            backlog = self._backlogs.pop(router)
            taken = backlog.take(router, min(TURN, left))
            left -= len(taken)
            actions += taken
            if not backlog.is_empty:
                self._backlogs[router] = backlog  # behind the others
        if is_due or not self._backlogs or self._due == math.inf:
            self._due = now + PAUSE_S if self._backlogs else math.inf
        return actions
