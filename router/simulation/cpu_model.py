"""Costs of simulated routers' work, and the cores of machines that they share.

Without it a turn of a control plane takes no time. With it a router handles what has arrived when it gets a core, all
of it in one turn as the real one does, and what the turn sends leaves when the turn is over. Cores are given in the
order in which routers ask for them; nobody is interrupted.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import attrs

from router.core.controlplane import ControlPlane
from router.core.events import Action, ControlLinkUp, Event, InstallRouter, SendControl, WithdrawRouter
from router.simulation.network import Network

REST_S: Final = 0.02
"""Time without work after which a router is almost as cold as it gets, seconds."""


@attrs.frozen(kw_only=True)
class CpuCosts:
    """Processor time of a router, seconds."""

    turn_s: float
    """Time to wake up and begin a turn, whatever follows, seconds."""
    cold_s: float
    """Additional time of a turn when others have filled the caches of the processor, seconds: the router has rested for
    `REST_S`, or shares cores with routers that have worked since."""
    received_s: float
    """Time for each control message that arrives, seconds."""
    sent_s: float
    """Time for each control message that is written, seconds."""
    connected_s: float
    """Time for each connection to another router that comes up, seconds: both ends shake hands and attach their
    links."""
    spf_s: float
    """Time for each computation of paths, whatever the number of routers, seconds."""
    path_s: float
    """Additional time for each computation of paths per router of the mesh, seconds."""
    installed_s: float
    """Time for each router that is found, lost, or reached in another way, seconds: the change is installed, and told
    in the log."""
    cores: int | None = None
    """Cores that all routers share; None: each has one of its own, as on machines of their own."""

    def __attrs_post_init__(self) -> None:
        assert self.cores is None or self.cores >= 1

    def of_turn(
        self, events: Sequence[Event], actions: Sequence[Action], *, runs: int, routers: int, is_cold: bool
    ) -> float:
        """Time of one turn, seconds.

        Args:
            events: events that are handled in the turn.
            actions: actions that the turn asks for.
            runs: number of computations of paths in the turn.
            routers: number of routers in the mesh.
            is_cold: whether others have had the caches of the processor since the last turn of the router.
        """
        connected = sum(1 for event in events if isinstance(event, ControlLinkUp))
        sent = sum(1 for action in actions if isinstance(action, SendControl))
        installed = sum(1 for action in actions if isinstance(action, (InstallRouter, WithdrawRouter)))
        return (
            self.turn_s
            + (self.cold_s if is_cold else 0.0)
            + self.connected_s * connected
            + self.received_s * (len(events) - connected)
            + self.sent_s * sent
            + (self.spf_s + self.path_s * routers) * runs
            + self.installed_s * installed
        )


class SimulatedProcess:
    """One process that has work to do now and then: a control plane from its start to its end."""

    __slots__ = ("carry_out", "events", "is_ended", "is_waiting", "plane", "turn", "worked_at")

    def __init__(self, plane: ControlPlane, carry_out: Callable[[Sequence[Action]], None]) -> None:
        self.plane = plane
        self.carry_out = carry_out
        """Does what a turn has ordered, once it is over."""
        self.events: list[Event] = []
        self.is_waiting = False
        """Whether the process has a core, or waits for one."""
        self.is_ended = False
        self.worked_at = -math.inf
        """Time at which the last turn of the process was over, seconds."""
        self.turn = -math.inf
        """Number of the last turn of the process, among the turns of all workers."""


class SimulatedMachine:
    """Gives cores to the workers that have something to do."""

    def __init__(self, network: Network, cpu_costs: CpuCosts) -> None:
        self.cpu_costs = cpu_costs
        self.busy_s = 0.0
        """Time of all turns so far, seconds of processors."""
        self._network = network
        self._free = cpu_costs.cores
        self._turns = 0
        self._ready: deque[SimulatedProcess] = deque()

    def post(self, worker: SimulatedProcess, events: Sequence[Event]) -> None:
        """Events have arrived for a worker; none: one of its deadlines has."""
        worker.events.extend(events)
        if not worker.is_waiting:
            worker.is_waiting = True
            self._ready.append(worker)
            self._give()

    def _give(self) -> None:
        while self._ready and (self._free is None or self._free > 0):
            worker = self._ready.popleft()
            if worker.is_ended:
                continue
            if self._free is not None:
                self._free -= 1
            self._work(worker)

    def _work(self, worker: SimulatedProcess) -> None:
        plane, network = worker.plane, self._network
        events, worker.events = worker.events, []
        runs = plane.spf_runs
        actions: list[Action] = []
        if plane.next_deadline() <= network.now:
            actions += plane.handle_deadline(now=network.now)
        if events:
            actions += plane.handle(events, now=network.now)
        spent_s = self.cpu_costs.of_turn(
            events,
            actions,
            runs=plane.spf_runs - runs,
            routers=1 + plane.known_routers,
            is_cold=self._is_cold(worker),
        )
        self._turns += 1
        worker.turn = self._turns
        self.busy_s += spent_s
        network.call_at(network.now + spent_s, lambda: self._finish(worker, actions))

    def _is_cold(self, worker: SimulatedProcess) -> bool:
        if self._network.now - worker.worked_at >= REST_S:
            return True
        return self.cpu_costs.cores is not None and self._turns - worker.turn >= self.cpu_costs.cores

    def _finish(self, worker: SimulatedProcess, actions: Sequence[Action]) -> None:
        if self._free is not None:
            self._free += 1
        worker.is_waiting = False
        worker.worked_at = self._network.now
        if not worker.is_ended:
            worker.carry_out(actions)
            if worker.events or worker.plane.next_deadline() <= self._network.now:
                self.post(worker, ())
        self._give()
