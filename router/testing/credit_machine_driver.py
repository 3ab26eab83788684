"""Driver of a simulated router: each event has its turn, deadlines are kept, and flows are written."""

from __future__ import annotations

import math
from collections.abc import Callable

from router.core.forwarding.credit_actions import CreditAction
from router.core.forwarding.credit_scheduler import CreditScheduler
from router.simulation.network import Network
from router.testing.links import Link

TURNS_AT_ONCE = 2000
"""More turns than this without time passing are a livelock."""


class CreditMachineDriver:
    """The turns of one machine.

    Args:
        restate: called before each turn.
        carry_out: called with each thing that the machine wants done.
        checked: called after each turn.
    """

    def __init__(
        self,
        network: Network,
        machine: CreditScheduler,
        *,
        restate: Callable[[float], None],
        carry_out: Callable[[CreditAction], None],
        checked: Callable[[], None],
    ) -> None:
        self.count = 0
        self.changed: dict[Link, None] = {}
        """Links on which a flow is to be written."""
        self.is_over = False
        """The router is dead."""
        self._network = network
        self._machine = machine
        self._restate = restate
        self._carry_out = carry_out
        self._checked = checked
        self._timer = math.inf
        self._at = -math.inf
        self._at_once = 0

    def do(self, event: Callable[[float], object]) -> None:
        """Tell the machine one event, have its turn, and write what it wants done."""
        if self.is_over:
            return
        now = self._network.now
        event(now)
        self._restate(now)
        for action in self._machine.turn(now):
            self._carry_out(action)
        self.count += 1
        self._at_once = self._at_once + 1 if now == self._at else 0
        self._at = now
        assert self._at_once < TURNS_AT_ONCE, "a livelock"
        for link in self.changed:
            link.flush()
        self.changed.clear()
        self._checked()
        due = self._machine.next_deadline()
        # An earlier timer that is no more needed finds nothing to do.
        if due < self._timer or self._timer <= now:
            self._timer = due
            if due < math.inf:
                self._network.call_at(due, lambda: self._due(due))

    def _due(self, due: float) -> None:
        if due == self._timer:
            self._timer = math.inf
            self.do(lambda _: None)
