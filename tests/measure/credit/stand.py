"""What every figure is measured on, lines of router processes; and what it comes to, rows of the table."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs

from mesh_config.generators import generate
from router.cli.management import ManagementClient
from tests.helpers.processes import COMMAND, MeshProcesses, cpu_seconds

HOPS = (1, 2, 3)
"""Links between routers on the path from a publisher to its subscriber."""
_NUMBERS = itertools.count(1)


@attrs.frozen
class Row:
    """One line of the table."""

    figure: int
    """Number of the figure, from 1."""
    what: str
    measured: str
    wanted: str = "reported"
    is_met: bool | None = None
    """None: for the reader, no bound is asked for."""


@attrs.define
class Line:
    """A line of routers R1, R2, ... that run. Subscribers are at R1 unless a figure says otherwise."""

    mesh: MeshProcesses

    def url(self, hops: int = 0) -> str:
        """Of the router that is so many hops from R1."""
        return self.mesh.url(f"R{hops + 1}")

    def port(self, hops: int = 0) -> int:
        """Its port for clients."""
        return int(self.url(hops).rpartition(":")[2])

    def cpu_seconds(self) -> float:
        """Processor time that all its routers have used so far."""
        return sum(cpu_seconds(router.pid) for router in self.mesh.routers.values())

    def ask(self, attribute: str) -> dict[str, int]:
        """A number that each router says of itself over management, `waitingCount` for instance."""
        found = {}
        for key in sorted(self.mesh.routers):
            with ManagementClient(self.mesh.url(key)) as client:
                found[key] = int(client.read("router")[attribute])
        return found


@attrs.define
class Stand:
    """Where the figures are measured."""

    folder: Path
    """For mesh files and logs."""
    command: Sequence[str] = COMMAND
    """What starts a router."""
    against: Sequence[str] | None = None
    """What starts the routers to compare with, if any; used by the figure on RPC."""

    @contextmanager
    def line(self, routers: int = 4, *, is_other: bool = False, kind: str = "line") -> Iterator[Line]:
        """A line of routers that know each other, or a mesh of another kind; *is_other*: of those to compare with.

        Raises: AssertionError at the end, when one of them ended by itself.
        """
        command = self.against if is_other and self.against is not None else self.command
        folder = self.folder / f"line-{next(_NUMBERS)}"
        with MeshProcesses(generate(kind, routers), folder, command=command) as mesh:
            mesh.start()
            mesh.wait_converged()
            yield Line(mesh)
            gone = [key for key, router in mesh.routers.items() if not router.is_running]
            assert not gone, f"{gone} ended:\n{mesh.logs()}"


def new_address(kind: str = "anycast") -> str:
    """An address that nobody has used; *kind* is `anycast` (balanced) or `multicast`."""
    return f"openstack.org/om/rpc/{kind}/credit/{next(_NUMBERS)}"


def percentile(values: Sequence[float], share: float) -> float:
    """The value that *share* (0 to 1) of them don't exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def hops_text(hops: int) -> str:
    """How far it is."""
    return f"{hops} hop" if hops == 1 else f"{hops} hops"


def ms(seconds: float) -> str:
    """A time as the table shows it."""
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def median_and_worst(values: Sequence[float]) -> str:
    """Two times."""
    return f"median {ms(statistics.median(values))}, worst {ms(max(values))}"
