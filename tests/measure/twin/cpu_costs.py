"""What the work of a control plane costs a real router process, and how long a message takes on loopback.

One router process; its neighbors are in this process and speak the routing protocol to it on real sockets. Processor
time is the router's own, to the nanosecond:

* an advertisement that says nothing new, alone: a turn, and one message received;
* the same after a tenth of a second without work: what it costs more when the caches have been used by others;
* a hundred of them in one write: what each more costs;
* link state that repeats what is known: it is passed on, to no other neighbor or to eight;
* link state that changes a cost somewhere in a mesh of so many routers: paths are computed anew;
* a second router process that is killed and started anew: the connection that is made, and how soon its end is noticed.

And by the clock: how long a byte takes from one process to another.
"""

from __future__ import annotations

import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs
from proton import int32

from mesh_config.generators import generate
from mesh_config.models import Role
from router.simulation.cpu_model import CpuCosts
from router.simulation.network import NetworkConditions
from tests.helpers.neighbor import ALL_TO, Neighbor
from tests.helpers.processes import LOOPBACK, MeshProcesses, RouterProcess
from tests.helpers.sockets import Sockets
from tests.measure.scale.stand import cpu_seconds

REPEATS = 200
BURST = 100
OTHERS = 8
SIZES = (10, 30, 100, 300, 1000)
RESTARTS = 6
GAP_S = 0.004
"""Time given to each event; a turn takes a fraction of it."""
REST_S = 0.1
SPF_GAP_S = 0.05
CALM_S = 1.0
ECHO = """
import socket, sys
sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
while data := sock.recv(1):
    sock.send(data)
"""


@attrs.frozen(kw_only=True)
class Measured:
    """What was measured, seconds."""

    cpu_costs: CpuCosts
    network: NetworkConditions
    detection_s: float
    """From SIGKILL to the log of a neighbor, the shortest."""
    paths_s: dict[int, float]
    """Of a computation, by routers of the mesh."""


class Bench:
    """A router R1, and raw neighbors of it."""

    def __init__(self, router: RouterProcess) -> None:
        self.sockets = Sockets()
        self.raw: list[Neighbor] = []
        self._router = router
        self._sequence = 1
        self.sockets.on_tick = [self._hello]

    def _hello(self) -> None:
        for neighbor in self.raw:
            neighbor.hello()

    def add(self) -> Neighbor:
        """One more neighbor, up."""
        name = f"N{len(self.raw)}"
        peer = self.sockets.dial(self._router.url(Role.INTER_ROUTER), container=name, sasl=True)
        made = Neighbor(name, peer, dials=True)
        self.raw.append(made)
        self.sockets.wait(lambda: peer.connection.state & peer.connection.REMOTE_ACTIVE)
        made.attach()
        self.sockets.wait(lambda: made.control_out is not None and made.control_out.credit > 0)
        made.hello()
        made.advertise()
        self.sockets.wait(lambda: "R1" in made.known)
        self.run_for(CALM_S)
        assert made.control_in is not None
        made.control_in.policy = lambda received: self._take(made, received)
        return made

    def _take(self, neighbor: Neighbor, received: Any) -> None:
        received.settle()
        assert neighbor.control_in is not None
        neighbor.control_in.flow(1)

    def state(self, router: str, peers: Mapping[str, int], *, sequence: int | None = None) -> None:
        """The first neighbor tells the link state of a router that is far away."""
        if sequence is None:
            self._sequence += 1
            sequence = self._sequence
        number = int32(sequence)
        inner = {
            "id": router,
            "area": "0",
            "ls_seq": number,
            "peers": {key: int32(cost) for key, cost in peers.items()},
        }
        body = {"instance": int32(1), "ls_seq": number, "ls": inner}
        via = self.raw[0]
        trace = [f"0/{router}"] if router == via.id else [f"0/{router}", f"0/{via.id}"]
        via.say(ALL_TO, "LSU", {**body, "id": router}, trace=trace)

    def link(self, router: str, *, is_up: bool) -> None:
        """The first neighbor tells that its link to a router that is far away is up, or not."""
        via = self.raw[0]
        via.ls_seq += 1
        self.state(via.id, {"R1": 1, router: 1} if is_up else {"R1": 1}, sequence=via.ls_seq)

    def run_for(self, duration_s: float) -> None:
        """Serve the neighbors' sockets."""
        end = time.monotonic() + duration_s
        while (left := end - time.monotonic()) > 0:
            self.sockets.step(left)

    def cost(self, act: Callable[[int], object], *, times: int = REPEATS, gap_s: float = GAP_S) -> float:
        """Processor time of the router for what *act* does, each time alone, seconds; what it does at rest aside."""
        self.run_for(CALM_S)
        idle_s = self._spent(lambda _: None, times, gap_s)
        return (self._spent(act, times, gap_s) - idle_s) / times

    def _spent(self, act: Callable[[int], object], times: int, gap_s: float) -> float:
        before = cpu_seconds(self._router.pid)
        for number in range(times):
            act(number)
            self.run_for(gap_s)
        return cpu_seconds(self._router.pid) - before


def measure(folder: Path) -> Measured:
    """Measure all of it: about a minute."""
    with MeshProcesses(generate("line", 1), folder / "one") as mesh:
        mesh.start()
        bench = Bench(mesh["R1"])
        try:
            turn, cold, received, sent = _messages(bench)
            paths, installed = _paths(bench)
        finally:
            bench.sockets.close()
    connected, detections = _connections(folder / "two")
    fixed, slope = _line(list(paths.items()))
    cpu_costs = CpuCosts(
        turn_s=turn,
        cold_s=cold,
        received_s=received,
        sent_s=sent,
        connected_s=connected,
        spf_s=fixed - turn,  # it is done in a turn of its own
        path_s=slope,
        installed_s=installed,
    )
    return Measured(cpu_costs=cpu_costs, network=_network(), detection_s=min(detections), paths_s=paths)


def _messages(bench: Bench) -> tuple[float, float, float, float]:
    """Processor time of a turn, how much more of one after a rest, of a message received in it, and of one sent."""
    first = bench.add()
    alone = bench.cost(lambda _: first.advertise())

    rested = bench.cost(lambda _: first.advertise(), times=60, gap_s=REST_S)

    def burst(_: int) -> None:
        for _ in range(BURST):
            first.advertise()

    each = bench.cost(burst, times=20, gap_s=0.1) / BURST
    bench.state("X", {"Y": 1})
    silent = bench.cost(lambda _: bench.state("X", {"Y": 1}))
    for _ in range(OTHERS):
        bench.add()
    passed = bench.cost(lambda _: bench.state("X", {"Y": 1}), gap_s=3 * GAP_S)
    more = (passed - silent) / OTHERS
    return alone - each, rested - alone, each, more


def _network() -> NetworkConditions:
    """Half of what a byte takes to another process and back, on a TCP connection of loopback."""
    with socket.create_server((LOOPBACK, 0)) as server:
        echo = subprocess.Popen([sys.executable, "-c", ECHO, str(server.getsockname()[1])])
        try:
            sock = server.accept()[0]
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            took = []
            for _ in range(10 * REPEATS):
                began = time.perf_counter()
                sock.send(b".")
                sock.recv(1)
                took.append((time.perf_counter() - began) / 2)
            sock.close()
        finally:
            echo.wait()
    took.sort()
    low, high = took[len(took) // 20], took[len(took) * 19 // 20]
    return NetworkConditions(delay_s=low, jitter_s=high - low)


def _paths(bench: Bench) -> tuple[dict[int, float], float]:
    """Processor time of a computation by routers of the mesh, and of each router that is found or lost by one.

    The mesh is behind the first neighbor: a ring with chords, of which one cost swings; then its one link breaks.
    """
    first = bench.raw[0]
    for other in bench.raw[1:]:
        other.peer.connection.close()
    del bench.raw[1:]
    bench.run_for(CALM_S)
    found: dict[int, float] = {}
    installed: list[float] = []
    for size in SIZES:
        names = [f"X{number}" for number in range(size)]
        costs: dict[str, dict[str, int]] = {name: {} for name in names}
        for number in range(size):
            for step in (1, max(2, size // 3)):
                other = names[(number + step) % size]
                costs[names[number]][other] = costs[other][names[number]] = 1
        costs[names[0]][first.id] = 1
        bench.link(names[0], is_up=True)
        for name in names:
            bench.state(name, costs[name])
            bench.run_for(GAP_S)
        bench.run_for(2.0)
        far = names[size // 2]

        def swing(number: int, far: str = far, peers: dict[str, int] = costs[far]) -> None:
            bench.state(far, {peer: cost + (number % 2) for peer, cost in peers.items()})

        calm = bench.cost(lambda _, far=far, peers=costs[far]: bench.state(far, peers), times=40, gap_s=SPF_GAP_S)  # type: ignore[misc]
        found[size] = bench.cost(swing, times=40, gap_s=SPF_GAP_S) - calm
        near = names[0]
        gone = bench.cost(lambda number, near=near: bench.link(near, is_up=number % 2 == 1), times=10, gap_s=0.5)  # type: ignore[misc]
        installed.append((gone - calm - found[size]) / size)
    return found, installed[-1]


def _connections(folder: Path) -> tuple[float, list[float]]:
    """Processor time of R1 for a connection of R2 that comes up, and the times until it notices that one is gone."""
    spent, noticed = [], []
    with MeshProcesses(generate("line", 2), folder) as mesh:
        mesh.start()
        mesh.wait_converged()
        router = mesh["R1"]
        for _ in range(RESTARTS):
            time.sleep(CALM_S)
            began = time.time()
            mesh.kill("R2")
            time.sleep(0.3)
            lines = router.log_lines("neighbor_down")
            noticed.append(datetime.fromisoformat(lines[-1].fields["timestamp"]).timestamp() - began)
            before = cpu_seconds(router.pid)
            mesh.start("R2")
            time.sleep(0.3)
            spent.append(cpu_seconds(router.pid) - before)
    return statistics.median(spent), noticed


def _line(points: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Where the line that fits best begins, and its slope."""
    middle_x, middle_y = (statistics.fmean(axis) for axis in zip(*points, strict=True))
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    slope = sum((x - middle_x) * (y - middle_y) for x, y in points) / spread
    return middle_y - slope * middle_x, slope
