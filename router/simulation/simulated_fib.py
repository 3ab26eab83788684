"""Forwarding side of a simulated router: what it was told to install, with the order of its actions asserted."""

from __future__ import annotations

import math

from mesh_config.models import Treatment
from router.core.events import (
    Action,
    InstallAddress,
    InstallRouter,
    TopologyChanged,
    WithdrawAddress,
    WithdrawRouter,
)
from router.core.ids_and_conditions import RouterId


class SimulatedFib:
    """Routes and addresses as a router's forwarding side would hold them."""

    def __init__(self) -> None:
        self.routes: dict[RouterId, InstallRouter] = {}
        self.addresses: dict[str, dict[RouterId, Treatment | None]] = {}
        """Subscribed routers of each address, with the hint that came with them."""
        self.changed_at = -math.inf
        """Time of the last action, seconds."""
        self.known_at = -math.inf
        """Time when a router appeared or went last, seconds."""
        self.changes = 0

    def carry_out(self, action: Action, now: float) -> None:
        """Do what *action* says.

        Args:
            action: an install, a withdrawal or `TopologyChanged`.
            now: seconds.
        Raises: AssertionError when it may not come at this point.
        """
        self.changed_at = now
        self.changes += 1
        match action:
            case InstallRouter():
                assert action.cost >= 1
                before = self.routes.get(action.router)
                assert before != action, "installed as it was"
                if before is None:
                    self.known_at = now
                self.routes[action.router] = action
            case WithdrawRouter():
                self.known_at = now
                del self.routes[action.router]
            case InstallAddress():
                assert action.router in self.routes, "an address of a router that is not installed"
                self.addresses.setdefault(action.address, {})[action.router] = action.treatment
            case WithdrawAddress():
                # Of many addresses that go with their router, some go later, and some may never have come.
                routers = self.addresses.get(action.address, {})
                routers.pop(action.router, None)
                if not routers:
                    self.addresses.pop(action.address, None)
            case TopologyChanged():
                pass  # nobody keeps trees here
            case _:
                raise AssertionError(f"nothing to install: {action}")
