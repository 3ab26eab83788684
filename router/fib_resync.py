"""Reinstallation of the FIB after a fault of ours, so that it agrees with the control plane again."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from router.core.addressing.address import AddressKind
from router.core.controlplane import ControlPlane
from router.core.events import (
    Action,
    Event,
    FirstSubscriberAttached,
    InstallAddress,
    InstallRouter,
    LastSubscriberLeft,
    WithdrawAddress,
    WithdrawRouter,
)
from router.core.forwarding.fib import MULTICAST, Fib

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
"""Maximum pause between two attempts that fail, seconds."""


class FibResync:
    """Decides when all is installed anew, and what that is."""

    def __init__(self, control: ControlPlane, fib: Fib) -> None:
        self._control = control
        self._fib = fib
        self.at = math.inf
        """Time at which it is due, seconds; infinity when FIB and control plane agree."""
        self._pause_s = FIRST_PAUSE_S
        self._rests_until = -math.inf

    def want(self, now: float) -> None:
        """Install all anew at once, or after a pause if that fails: an action has failed, or an event was not heard.

        Args:
            now: seconds, monotonic.
        """
        self.at = min(self.at, now)

    def rest(self, now: float) -> None:
        """Ask the control plane nothing for a while, since it has failed itself, then install all anew.

        Args:
            now: seconds, monotonic.
        """
        self._rests_until = now + self._pause_s
        self.at = min(self.at, self._rests_until)

    def deadline(self, now: float) -> float:
        """Time at which the control plane is to be asked next, or this is due, seconds.

        Args:
            now: seconds, monotonic.
        Returns: seconds.
        """
        due = min(self._control.next_deadline(), self.at)
        return max(due, self._rests_until) if self._rests_until > now else due

    def actions(self, now: float) -> list[Action]:
        """Orders that withdraw what the control plane does not hold and install all that it holds.

        Args:
            now: seconds, monotonic.
        """
        self.at = math.inf
        installed = self._control.installed()
        routers = {action.router for action in installed if isinstance(action, InstallRouter)}
        addresses = {(action.address, action.router) for action in installed if isinstance(action, InstallAddress)}
        gone: list[Action] = [
            WithdrawAddress(address=entry.text, router=router)
            for entry in list(self._fib.entries())
            if entry.kind is AddressKind.MOBILE
            for router in list(entry.remotes)
            if (entry.text, router) not in addresses
        ]
        gone += (WithdrawRouter(router=router) for router in sorted(set(self._fib.routes) - routers))
        return [*gone, *installed]

    def events(self) -> Iterator[Event]:
        """Events that the control plane has not heard of the subscribers of this router."""
        own = self._control.own_addresses()
        subscribed = {
            entry.text: entry.treatment
            for entry in self._fib.entries()
            if entry.kind is AddressKind.MOBILE and entry.subscribers
        }
        for address in sorted(own.keys() - subscribed.keys()):
            yield LastSubscriberLeft(address=address)
        for address in sorted(subscribed.keys() - own.keys()):
            yield FirstSubscriberAttached(address=address, treatment=subscribed[address])

    def withdrawals(self) -> Iterator[Event]:
        """Events of a router that stops, of its subscribers whose messages others can have.

        A multicast has a copy for each: those of one that is still here nobody else gets.
        """
        for address, treatment in self._control.own_addresses().items():
            if treatment is not MULTICAST:
                yield LastSubscriberLeft(address=address)

    def finish(self, now: float) -> None:
        """Note that all was installed: without a fault, or else it is tried again after a pause that grows.

        Args:
            now: seconds, monotonic.
        """
        if self.at > now:
            self._pause_s = FIRST_PAUSE_S
            return
        self.at = now + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
