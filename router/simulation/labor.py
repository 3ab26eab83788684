"""What work costs simulated routers, and how many of them share the cores of a machine.

Without it a turn of a control plane takes no time. With it a router handles what has arrived when it gets a core, all
of it in one turn as the real one does, and what the turn sends leaves when the turn is over. Cores are given in the
order in which routers ask for them; nobody is interrupted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import attrs

from router.core.controlplane import ControlPlane
from router.core.events import Action, ControlLinkUp, Event, SendControl
from router.simulation.network import Network


@attrs.frozen(kw_only=True)
class Labor:
    """Processor time of a router, seconds."""

    turn_s: float
    """To wake up and begin a turn, whatever follows."""
    received_s: float
    """For each control message that arrives."""
    sent_s: float
    """For each that is written."""
    connected_s: float
    """For each connection to another router that comes up: both ends shake hands and attach their links."""
    path_s: float
    """For each router of the mesh, each time that paths are computed."""
    cores: int | None = None
    """Cores that all routers share; None: each has one of its own, as on machines of their own."""

    def __attrs_post_init__(self) -> None:
        assert self.cores is None or self.cores >= 1

    def of_turn(self, events: Sequence[Event], actions: Sequence[Action], paths: int) -> float:
        """Time of one turn, seconds; *paths*: routers in all computations of it together."""
        connected = sum(1 for event in events if isinstance(event, ControlLinkUp))
        sent = sum(1 for action in actions if isinstance(action, SendControl))
        return (
            self.turn_s
            + self.connected_s * connected
            + self.received_s * (len(events) - connected)
            + self.sent_s * sent
            + self.path_s * paths
        )


class Worker:
    """One process that has work to do now and then: a control plane from its start to its end."""

    __slots__ = ("carry_out", "events", "is_ended", "is_waiting", "plane")

    def __init__(self, plane: ControlPlane, carry_out: Callable[[Sequence[Action]], None]) -> None:
        self.plane = plane
        self.carry_out = carry_out
        """Does what a turn has ordered, once it is over."""
        self.events: list[Event] = []
        self.is_waiting = False
        """It has a core, or waits for one."""
        self.is_ended = False


class Machine:
    """Gives cores to the workers that have something to do."""

    def __init__(self, network: Network, labor: Labor) -> None:
        self.labor = labor
        self.busy_s = 0.0
        """Time of all turns so far, seconds of processors."""
        self._network = network
        self._free = labor.cores
        self._ready: deque[Worker] = deque()

    def post(self, worker: Worker, events: Sequence[Event]) -> None:
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

    def _work(self, worker: Worker) -> None:
        plane, network = worker.plane, self._network
        events, worker.events = worker.events, []
        runs = plane.spf_runs
        actions: list[Action] = []
        if plane.next_deadline() <= network.now:
            actions += plane.handle_deadline(now=network.now)
        if events:
            actions += plane.handle(events, now=network.now)
        spent_s = self.labor.of_turn(events, actions, (plane.spf_runs - runs) * (1 + plane.known_routers))
        self.busy_s += spent_s
        network.call_at(network.now + spent_s, lambda: self._finish(worker, actions))

    def _finish(self, worker: Worker, actions: Sequence[Action]) -> None:
        if self._free is not None:
            self._free += 1
        worker.is_waiting = False
        if not worker.is_ended:
            worker.carry_out(actions)
            if worker.events or worker.plane.next_deadline() <= self._network.now:
                self.post(worker, ())
        self._give()
