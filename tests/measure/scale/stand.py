"""What scale is measured on: a line of router processes, their CPU and memory, and figures by size."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import attrs

from mesh_config.generators import generate
from mesh_config.models import MeshSettings, Role
from tests.helpers.processes import COMMAND, MeshProcesses, resident_bytes
from tests.measure.scale.client import Link, Loop

REPEATS = 200
"""How often an event is repeated to be measured."""
CALM_S = 0.1
"""A router that has used next to no CPU for so long has nothing left to do."""
CALM_CPU_S = 0.0006
LONGEST_S = 60.0
_NUMBERS = itertools.count(1)

Unit = Literal["s", "B", "/s", "x", ""]
"""`x`: so many times something else."""


def new_address(kind: str = "anycast") -> str:
    """An address that nobody has used, as long as those of oslo.messaging; *kind* is `anycast` or `multicast`."""
    return f"openstack.org/om/rpc/{kind}/scale/{next(_NUMBERS)}"


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used so far, to the nanosecond."""
    return time.clock_gettime((~pid << 3) | 2)  # as clock_getcpuclockid(3) makes it


@attrs.define
class Figure:
    """What was measured, at each size."""

    what: str
    unit: Unit
    values: dict[int, float] = attrs.field(factory=dict)
    """By size."""

    @property
    def exponent(self) -> float | None:
        """Of the power of the size with which it grows: the slope of its logarithm; None where there is no such."""
        points = [(math.log(size), math.log(value)) for size, value in self.values.items() if value > 0]
        if len(points) < 2:
            return None
        mean_x, mean_y = (sum(axis) / len(points) for axis in zip(*points, strict=True))
        spread = sum((x - mean_x) ** 2 for x, _ in points)
        return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else None


@attrs.define
class Table:
    """Figures of one subject."""

    title: str
    figures: dict[str, Figure] = attrs.field(factory=dict)

    def add(self, size: int, what: str, value: float, unit: Unit = "s") -> None:
        """Add what was measured at one size."""
        self.figures.setdefault(what, Figure(what, unit)).values[size] = value


class Bench:
    """Routers that run, and the clients of this process."""

    def __init__(self, mesh: MeshProcesses) -> None:
        self.mesh = mesh
        self.loop = Loop()

    def url(self, router: str = "R1", index: int = 0) -> str:
        """Where clients attach: its listener number *index* of those for clients."""
        return self.mesh[router].url(Role.NORMAL, index)

    def cpu(self, *routers: str) -> float:
        """Processor time that these routers have used so far, seconds; of all when none is named."""
        return sum(cpu_seconds(self.mesh[router].pid) for router in routers or self.mesh.running)

    def memory(self, router: str = "R1") -> int:
        """Of one router, bytes."""
        return resident_bytes(self.mesh[router].pid)

    def calm(self) -> None:
        """Wait until the routers have nothing left to do."""
        end = time.monotonic() + LONGEST_S
        while time.monotonic() < end:
            before = self.cpu()
            self.loop.run_for(CALM_S)
            if self.cpu() - before < CALM_CPU_S * len(self.mesh.running):
                return
        raise TimeoutError("the routers do not come to rest")

    def cost(self, act: Callable[[], object], *routers: str, times: int = REPEATS) -> float:
        """CPU of the routers for what *act* does *times* over, and all that follows from it, seconds for each."""
        self.calm()
        before = self.cpu(*routers)
        act()
        self.calm()
        return (self.cpu(*routers) - before) / times

    def attach_each(self, make: Callable[[], Link], times: int = REPEATS) -> list[Link]:
        """Make links one after the other."""
        made = []
        for _ in range(times):
            link = make()
            self.loop.run_until(lambda link=link: link.is_attached)  # type: ignore[misc]
            made.append(link)
        return made

    def detach_each(self, links: Sequence[Link]) -> None:
        """Detach them one after the other."""
        for link in links:
            link.close()
            self.loop.run_until(lambda link=link: link.is_closed)  # type: ignore[misc]

    def send_each(self, publisher: Link, subscribers: Sequence[Link], data: bytes, times: int = REPEATS) -> None:
        """Send messages one after the other, each when the one before has reached all of *subscribers*."""
        loop = self.loop
        for _ in range(times):
            loop.run_until(lambda: publisher.credit > 0)
            received = sum(link.received for link in subscribers) + len(subscribers)
            publisher.send(data)
            self._await(subscribers, received)

    def _await(self, subscribers: Sequence[Link], count: int) -> None:
        self.loop.run_until(lambda: sum(link.received for link in subscribers) >= count)

    def grant_each(self, links: Sequence[Link], times: int = REPEATS) -> None:
        """Let subscribers grant one credit each, one after the other, over and over."""
        for link in itertools.islice(itertools.cycle(links), times):
            link.grant(1)
            self.loop.step(0)
            self.loop.run_for(0.001)  # else the router reads several at once


@attrs.frozen
class Stand:
    """Where measuring is done."""

    folder: Path
    """For mesh files and logs."""
    command: Sequence[str] = COMMAND
    """What starts a router."""
    compare: Sequence[str] = ()
    """Routers that run already, for subjects that compare."""

    @contextmanager
    def line(self, routers: int = 1) -> Iterator[Bench]:
        """A line of routers R1, R2, ... that know each other."""
        with self.mesh(generate("line", routers)) as bench:
            yield bench

    @contextmanager
    def mesh(self, settings: MeshSettings) -> Iterator[Bench]:
        """Routers of a mesh, once they know each other."""
        with MeshProcesses(settings, self.folder / f"mesh-{next(_NUMBERS)}", command=self.command) as mesh:
            mesh.start()
            mesh.wait_converged()
            bench = Bench(mesh)
            try:
                yield bench
            finally:
                bench.loop.close()
