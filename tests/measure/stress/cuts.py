"""Connections between real routers are cut while multicasts pass, one at a time; then every copy is counted.

Four routers stand in a ring, with a publisher and a subscriber at each. What connects two of them goes through a
process of its own. To cut it, that process is killed in the middle of what it carries: the kernel closes both sides.
Only when both routers have each other as neighbors again, and all routers had time to hear of it, is the next one cut.
So each subscriber has a path from each publisher throughout, in the mesh and in what routers know of it.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

import attrs

from mesh_config.generators import generate
from mesh_config.models import MeshSettings
from mesh_config.render import render_mesh
from router.bench.load_connection import Loop
from router.binding import proton_functions as pn
from router.cli.demo import cuttable_proxy
from tests.helpers.processes import COMMAND, LOOPBACK, MeshProcesses, NotInTime, ReservedPort
from tests.measure.stress.ends import Publisher, Subscriber, account

ADDRESS = "openstack.org/om/rpc/multicast/openstack/news"
ROUTERS = 4
TICK_S = 0.01
"""Each publisher sends one message in each, if it has credit."""
GRACE_S = 30.0
SILENCE_S = 30.0
SETTLE_S = 30.0
QUIET_S = 3.0
DOWN_S = (0.0, 0.05, 0.3)
"""How long a connection is down until its wire may be connected to again; one of these."""
UP_S = (0.3, 0.5, 1.0)
"""From neighbors that are up to the next cut; in the first of it all routers hear of them."""
SIZES = (*(60,) * 16, 300, 3_000, 20_000, 40_000)
FORBIDDEN = ("lost", "doubled", "unknown", "returned")


class PacedPublisher(Publisher):
    """Sends when it is told to, one message at a time."""

    def _send(self) -> None:
        pass

    def send_one(self) -> None:
        """Send the next message, if there is credit."""
        if pn.pn_link_credit(self._link) > 0:
            self._send_next(SIZES)
            self._connection.turn()


class CuttableWire:
    """A TCP connection's way to a port through a process that can be killed and started again."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._reserved = ReservedPort()
        self.port = self._reserved.number
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.heal()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.cut()
        self._reserved.close()

    def heal(self) -> None:
        """Let it be connected to, in a moment."""
        command = [sys.executable, cuttable_proxy.__file__, str(self.port), LOOPBACK, str(self._target)]
        self._process = subprocess.Popen(command)

    def cut(self) -> None:
        """End what goes through it, in the middle of a frame or not."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()


@attrs.frozen
class Played:
    """What became of the messages."""

    cuts: int
    said: Counter[str]
    """As in `account`, of all publishers together: each copy that a subscriber should have had counts."""

    def faults(self) -> dict[str, int]:
        """What must never be."""
        return {name: self.said[name] for name in FORBIDDEN if self.said[name]}


def ring_of_four() -> MeshSettings:
    """A ring whose patience outlasts a machine that is busy: see `play.two_routers`."""
    mesh = generate("ring", ROUTERS)
    return attrs.evolve(
        mesh,
        routers={
            key: attrs.evolve(
                router,
                forwarding=attrs.evolve(router.forwarding, grace_s=GRACE_S),
                link_state=attrs.evolve(router.link_state, hello_max_age_s=SILENCE_S),
                connectors=tuple(
                    attrs.evolve(connector, reconnect_initial_s=0.05, reconnect_max_s=0.2)
                    for connector in router.connectors
                ),
            )
            for key, router in mesh.routers.items()
        },
    )


class CutRing:
    """The ring as processes; a context manager that leaves none behind.

    Args:
        command: what runs the routers.
    """

    def __init__(self, folder: Path, *, command: Sequence[str] = COMMAND) -> None:
        self.mesh = MeshProcesses(ring_of_four(), folder, command=command)
        self.wires: dict[tuple[str, str], CuttableWire] = {}
        """By the router that connects, and the other one."""
        self._stack = ExitStack()
        self._stack.enter_context(self.mesh)
        routers = {}
        for key, router in self.mesh.settings.routers.items():
            connectors = []
            for connector in router.connectors:
                assert connector.to is not None
                assert connector.port is not None
                made = self._stack.enter_context(CuttableWire(connector.port))
                self.wires[key, connector.to] = made
                connectors.append(attrs.evolve(connector, to=None, host=LOOPBACK, port=made.port))
            routers[key] = attrs.evolve(router, connectors=tuple(connectors))
        self.mesh.file.write_text(render_mesh(attrs.evolve(self.mesh.settings, routers=routers)), encoding="utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, traceback)

    def times_up(self, wire: tuple[str, str]) -> int:
        """How often both of its routers have had each other as neighbors."""
        return min(
            sum(line.fields["neighbor"] == other for line in self.mesh[one].log_lines("neighbor_up"))
            for one, other in (wire, wire[::-1])
        )


def play(ring: CutRing, *, cuts: int, seed: int, tell: Callable[[int, int], None] = lambda cut, sent: None) -> Played:
    """Cut connections so often while multicasts pass, and count all copies.

    Args:
        tell: called after each cut with its number and how many messages were sent until then.
    """
    rng = random.Random(seed)
    loop = Loop()
    ports = [int(ring.mesh.url(router).rpartition(":")[2]) for router in ring.mesh.running]
    subscribers = [Subscriber(ADDRESS) for _ in ports]
    publishers = [PacedPublisher(number, ADDRESS, rng, is_presettled=number % 2 == 1) for number in range(len(ports))]
    for ends in (subscribers, publishers):
        for end, port in zip(ends, ports, strict=True):
            loop.connect(LOOPBACK, port, end, f"stays-{type(end).__name__}-{port}")
        assert loop.run_until(lambda ends=ends: all(end.is_attached for end in ends), SETTLE_S)
        loop.run_for(1.0)  # all routers hear of the subscribers

    def send_for(seconds: float) -> None:
        for _ in range(max(1, round(seconds / TICK_S))):
            for publisher in publishers:
                publisher.send_one()
            loop.run_for(TICK_S)

    send_for(1.0)
    for cut in range(cuts):
        chosen = rng.choice(sorted(ring.wires))
        before = ring.times_up(chosen)
        ring.wires[chosen].cut()
        send_for(rng.choice(DOWN_S))
        ring.wires[chosen].heal()
        waited = 0
        while ring.times_up(chosen) == before:
            send_for(5 * TICK_S)
            waited += 1
            if waited > SETTLE_S / (5 * TICK_S):
                raise NotInTime(f"{chosen} are no neighbors again\n{ring.mesh.logs()}")
        send_for(rng.choice(UP_S))
        tell(cut + 1, sum(len(publisher.outcomes) for publisher in publishers))
    loop.run_until(lambda: not any(publisher.under_way for publisher in publishers), SETTLE_S)
    total = -1
    while total != (total := sum(each.total for each in subscribers)):
        loop.run_for(QUIET_S)
    said: Counter[str] = Counter()
    for publisher in publishers:
        said += account(publisher, subscribers, is_multicast=True)
        if publisher.is_presettled:  # has no outcomes, but a path as well
            received = [each.received.get(publisher.number, bytearray()) for each in subscribers]
            said["lost"] += sum(not count for each in received for count in each[: len(publisher.outcomes)])
    loop.close()
    return Played(cuts, said)
