"""Manager of the credit controllers: makes one when an address needs it, gives them turns, forgets those not needed."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING

import cython

from router.core.addressing.address import AddressKind
from router.core.forwarding.fib import MULTICAST, AddressEntry, Fib
from router.core.forwarding.timer_queue import TimerQueue
from router.core.ids_and_conditions import ConnectionId, RouterId
from router.dataplane.anycast_controller import AnycastController
from router.dataplane.connection_port import Port
from router.dataplane.controller_context import RETIRED_S, ControllerContext
from router.dataplane.credit_controller import CreditController
from router.dataplane.current_settings import CurrentSettings
from router.dataplane.internal_error_handlers import InternalErrorHandlers
from router.dataplane.links import (
    EgressCircuitLink,
    Transfer,
    local_subscribers,
)
from router.dataplane.message_sender import MessageSender
from router.dataplane.multicast_controller import MulticastController
from router.dataplane.multicast_repair import MulticastRepair
from router.dataplane.settlement import Settlement
from router.dataplane.transfer_lifecycle import StageError
from router.dataplane.turn_clock import TurnClock
from router.dataplane.waiting_messages import WaitingMessages

if TYPE_CHECKING:  # it makes the manager
    from router.dataplane.message_forwarder import Forwarder
if not cython.compiled:  # else they come by the .pxd
    from router.binding.proton_functions import pn_link_queued


class CreditManager(ControllerContext):
    """The controllers of one router."""

    def __init__(
        self,
        clock: TurnClock,
        fib: Fib,
        ports: dict[ConnectionId, Port],
        settings: CurrentSettings,
        settlement: Settlement,
        egress: MessageSender,
        waiting: WaitingMessages,
        repair: MulticastRepair,
        forwarder: Forwarder,
        end_circuit: Callable[[EgressCircuitLink], None],
        faults: InternalErrorHandlers,
    ) -> None:
        ControllerContext.__init__(
            self, clock, fib, ports, settings, settlement, egress, waiting, repair, forwarder, end_circuit, faults
        )
        self.rerouted: set[RouterId] = set()
        """Routers whose paths have changed since the last turn."""
        self.is_replanted = False
        """Whether the trees of multicasts have changed since the last turn."""
        self.is_stopping = False
        self._controllers: dict[Hashable, CreditController] = {}
        """Controllers by their addresses."""
        self._timers = TimerQueue()
        """Addresses by when their controllers are due without an event, or before that."""

    def __iter__(self) -> Iterator[CreditController]:
        return iter(self._controllers.values())

    # Who there is

    def of(self, entry: AddressEntry) -> CreditController:
        """Find the controller of an address, or make it when there is none."""
        controller = self._controllers.get(entry)
        if controller is None:
            controller = self._make(entry)
        return controller

    def _make(self, entry: AddressEntry) -> CreditController:
        kind = MulticastController if entry.treatment is MULTICAST else AnycastController
        controller = kind(entry, self)
        entry.controller = self._controllers[entry] = controller
        for link in local_subscribers(entry):
            link.controller = controller
        if self._has_stopped(entry):
            controller.stop()
        self.touched[controller] = None
        return controller

    def find(self, entry: AddressEntry | None) -> CreditController | None:
        """Find the controller of an address, if it has one."""
        return self._controllers.get(entry)

    def serves(self, entry: AddressEntry | None) -> bool:
        """Whether the credit of an address is brokered."""
        return entry is not None and entry.service is None

    def used_by_copies(self, entry: AddressEntry) -> None:
        """Look at each local subscriber's credit: a multicast that came as a datagram has used some."""
        controller = self.find(entry)
        if controller is not None:
            for link in local_subscribers(entry):
                controller.touch(link)

    def freed(self) -> None:
        """Look at windows that have room again, since datagrams have their outcomes."""
        for entry in self.settlement.take_freed():
            controller = self.find(entry)
            if isinstance(controller, AnycastController) and controller.windowed:
                controller.touch()

    def replanted(self) -> None:
        """Note that the trees of multicasts have changed."""
        self.is_replanted = True

    def stop(self) -> None:
        """Take all credit back, but for replies to what is in flight."""
        self.is_stopping = True
        for controller in self._controllers.values():
            if self._has_stopped(controller.entry):
                controller.stop()

    def resume(self) -> None:
        """Give publishers credit again, as far as subscribers have granted it."""
        self.is_stopping = False
        for controller in self._controllers.values():
            controller.resume()

    def _has_stopped(self, entry: AddressEntry) -> bool:
        return self.is_stopping and entry.kind is AddressKind.MOBILE

    # Turns

    def is_due(self) -> bool:
        """Whether `turn` has something to do."""
        return bool(self.touched or self.rerouted or self.is_replanted)

    def turn(self) -> None:
        """Give a turn to each controller for which something has happened, then tell the neighbors of circuits."""
        if self.rerouted or self.is_replanted:
            rerouted, self.rerouted = self.rerouted, set()
            is_replanted, self.is_replanted = self.is_replanted, False
            for controller in list(self._controllers.values()):
                is_multicast = controller.entry.treatment is MULTICAST
                if (is_multicast and is_replanted) or not rerouted.isdisjoint(controller.entry.remotes):
                    self.update_paths(controller)
            self.repair.trees_changed(self.clock.now)
        while self.touched:
            touched, self.touched = self.touched, {}
            for controller in touched:
                self._turn(controller)
        if self.repair.is_due:
            self.repair.send_again(self.clock.now)
        updates, self.updates = self.updates, {}
        for port, told in updates.items():
            if port.id in self.ports:
                port.tell_circuits(told.weights, told.closed, told.loads)

    def _turn(self, controller: CreditController) -> None:
        try:
            controller.turn(self.clock.now)
        except Exception as error:  # a fault with one address must not stop the others
            self._fault(controller, error)
            return
        due = controller.next_deadline()
        if due < self._timers.time_of(controller.entry):
            self._timers.set(controller.entry, due)
        if controller.is_idle():
            self._forget(controller)

    def update_paths(self, controller: CreditController) -> None:
        """Tell a controller that routes or subscribers of its address have changed."""
        try:
            controller.update_paths()
        except Exception as error:  # as above
            self._fault(controller, error)

    def _fault(self, controller: CreditController, error: Exception) -> None:
        """See to a fault of ours at an address: it costs one message, if it is known which, and is told."""
        if isinstance(error, StageError):
            self.forwarder.end_faulty(error)
            controller.touch()
        else:
            self.faults.of_address(controller.entry, error)

    def _forget(self, controller: CreditController) -> None:
        if self._controllers.get(controller.entry) is controller:
            del self._controllers[controller.entry]
            controller.entry.controller = None
            self._timers.cancel(controller.entry)
            controller.windowed.clear()
            self.fib.forget(controller.entry)

    def next_deadline(self) -> float:
        """Time at which `handle_deadline` is due, seconds; infinity when never."""
        due = self._timers.next()
        other = self.repair.next_deadline()
        if other < due:
            due = other
        if self.retired:
            due = min(due, next(iter(self.retired.values())))  # in the order of their times
        return due

    def handle_deadline(self, now: float) -> None:
        """Ask for turns of the addresses whose time has come; `turn` gives them.

        Args:
            now: seconds, monotonic.
        """
        self.repair.expire(now)
        self.look_at_timers(now)
        for link in [link for link, until in self.retired.items() if until <= now]:
            if self._must_be_written(link):
                del self.retired[link]
                self.retired[link] = now + RETIRED_S  # the last one again
            else:
                self.end(link)

    def look_at_timers(self, now: float) -> None:
        """Find which controllers are due at *now* (seconds): messages that were sent at once may have put that off."""
        for entry in self._timers.take(now):
            controller = self._controllers.get(entry)
            if controller is None:
                continue
            controller.look_again()
            due = controller.next_deadline()
            if due > now:
                self._timers.set(entry, due)
            else:
                self.touched[controller] = None

    def _must_be_written(self, link: EgressCircuitLink) -> bool:
        """Whether messages on a circuit that is to go are not written yet, and its neighbor is there to take them."""
        route = self.fib.routes.get(link.port.neighbor) if link.port.neighbor is not None else None
        return bool(pn_link_queued(link.handle)) and route is not None and route.connection == link.port.id

    def circuit_gone(self, link: EgressCircuitLink) -> None:
        """Forget a circuit of ours that was lost."""
        self.retired.pop(link, None)
        if link.controller is not None:
            link.controller.circuit_gone(link)

    # Messages that wait

    def expired(self, transfer: Transfer) -> None:
        """Drop a message that has waited at its address for too long, or for which there is no room."""
        controller = self.find(transfer.entry)
        if controller is not None:
            controller.drop(transfer)
