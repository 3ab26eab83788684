"""Tables, ways to send, updates to neighbors and circuits that are to go, which the controllers of a router share."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from router.core.forwarding.credit_scheduler import CreditTiming
from router.core.forwarding.fib import Fib
from router.core.forwarding.multicast_subscribers import ExclusionTiming
from router.core.ids_and_conditions import ConnectionId, RouterId
from router.dataplane.connection_port import Port
from router.dataplane.current_settings import CurrentSettings
from router.dataplane.internal_error_handlers import InternalErrorHandlers
from router.dataplane.links import EgressCircuitLink
from router.dataplane.local_copier import LocalCopier
from router.dataplane.message_sender import MessageSender
from router.dataplane.multicast_repair import MulticastRepair
from router.dataplane.settlement import Settlement
from router.dataplane.turn_clock import TurnClock
from router.dataplane.waiting_messages import WaitingMessages

if TYPE_CHECKING:  # they have a context
    from router.dataplane.credit_controller import CreditController
    from router.dataplane.message_forwarder import Forwarder


@attrs.define
class CircuitUpdates:
    """Changes of circuits, of which a neighbor is told at the end of a turn."""

    weights: dict[str, int] = attrs.Factory(dict)
    """Weights of our circuits, by link name."""
    closed: list[str] = attrs.Factory(list)
    """Link names of the neighbor's circuits whose subscribers have withdrawn."""
    loads: dict[str, tuple[int, int]] = attrs.Factory(dict)
    """Load of the egress to which each of the neighbor's circuits leads, by link name: others' messages, and
    subscribers."""


class ControllerContext:
    """Tables, parts and bounds that the controllers of one router share.

    Args:
        end_circuit: forgets a circuit of ours and ends its link.
    """

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
        self.clock = clock
        self.fib = fib
        self.ports = ports
        self.current_settings = settings
        self.settlement = settlement
        self.egress = egress
        self.waiting = waiting
        self.repair = repair
        self.forwarder = forwarder
        self._end_circuit = end_circuit
        self.faults = faults
        self.copying = LocalCopier(egress, settlement, forwarder.end_faulty, faults)
        forwarding = settings.forwarding  # these don't change (`mesh_config.change_plan.FORWARDING_AT_START`)
        self.window = forwarding.publisher_window
        self.brokered_messages = forwarding.brokered_messages
        self.circuit_idle_s = forwarding.circuit_idle_s
        self.retry_s = RETRY_S
        self.patience = ExclusionTiming(grace_s=forwarding.grace_s)
        self.timing = CreditTiming(
            quarantine_s=forwarding.quarantine_s,
            linger_s=forwarding.linger_s,
            drain_bound_s=forwarding.drain_bound_s,
            look_s=2 * forwarding.quarantine_s,
        )
        self.touched: dict[CreditController, None] = {}
        """Controllers that are to have a turn."""
        self.updates: dict[Port, CircuitUpdates] = {}
        """Changes that neighbors are told of at the end of this turn."""
        self.retired: dict[EgressCircuitLink, float] = {}
        """Circuits that lead another way than the path now goes, until their messages have outcomes; seconds."""
        self.exclusions: dict[tuple[str, RouterId], float] = {}
        """Multicast addresses with neighbors that held them up for so long that they count no more, seconds; until it
        is said."""

    def updates_for(self, port: Port) -> CircuitUpdates:
        """Find or begin the message to *port*'s neighbor at the end of this turn."""
        return self.updates.setdefault(port, CircuitUpdates())

    # Circuits of ours that are to go

    def retire(self, link: EgressCircuitLink) -> None:
        """Send nothing more on a circuit; end it when its messages have their outcomes."""
        link.controller = None
        if link.is_gone:
            return
        self.retired[link] = self.clock.now + RETIRED_S
        self.updates_for(link.port).weights[link.name] = 0
        self.end_if_settled(link)

    def end_if_settled(self, link: EgressCircuitLink) -> None:
        """End a retired circuit if all of its messages have outcomes."""
        if link in self.retired and not (link.outstanding or link.current or link.waiting):
            self.end(link)

    def end(self, link: EgressCircuitLink) -> None:
        """End a circuit of ours. Messages on it that have no outcome get one."""
        self.retired.pop(link, None)
        if not link.is_gone:
            self._end_circuit(link)


RETRY_S = 5.0
"""Time after which a circuit that a neighbor refused is tried again, seconds."""
RETIRED_S = 1.0
"""Maximum time that messages on a circuit are given for their outcomes when the path goes elsewhere, seconds."""
