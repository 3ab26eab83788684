"""Memory and time that a router takes for each connection, link and address: attach many, and divide."""

from __future__ import annotations

import os
import time
from typing import Final

import attrs

from router.bench.cases import ATTACH_S
from router.bench.errors import BenchError
from router.bench.load_connection import Connection, Endpoint, Loop
from router.bench.process_usage import cpu_seconds, resident_bytes
from router.bench.routers import RouterLine
from router.binding import proton_functions as pn
from router.binding.proton_functions import Handle

SESSION_LINKS: Final = 100
"""Links of one session: the engine takes time by the square of their number."""
LINKS: Final = 500
"""Links of one connection."""
SPREAD_S: Final = 15.0
SETTLED_LOOKS: Final = 3
"""Number of looks at a router that find no more work done before it counts as idle."""
LOOK_S: Final = 0.1


@attrs.frozen(kw_only=True)
class MemoryCost:
    """Memory that one of a kind costs a router."""

    what: str
    count: int
    """Number of things of the kind that were attached."""
    bytes_each: float
    """Growth of resident memory for each of them."""
    us_each: float
    """Time until the last of them was attached, for each of them, with that of the load, microseconds."""


class _Many(Endpoint):
    """A connection with receiving links that grant no credit."""

    def __init__(self, addresses: list[str]) -> None:
        super().__init__()
        self._addresses = addresses
        self._left = len(addresses)

    def begin(self, connection: Connection) -> None:
        """Attach all."""
        for number, address in enumerate(self._addresses):
            if number % SESSION_LINKS == 0:
                session = connection.new_session()
            connection.new_receiver(session, address, 0)

    def attached(self, connection: Connection, link: Handle) -> None:
        """Count one more link that is answered."""
        if pn.pn_terminus_get_type(pn.pn_link_remote_source(link)) != pn.UNSPECIFIED:
            self._left -= 1
            self.is_attached = self._left == 0


def measure_memory(line: RouterLine, *, connections: int, links: int) -> list[MemoryCost]:
    """Measure the costs at the first router of a line of two that was just started.

    Args:
        line: two routers.
        connections: to attach, each with one link to the same address.
        links: to attach of each kind.
    Raises: BenchError
    """
    near, far = line.path(1), line.path(2)
    assert near.receive_from is not None
    assert far.receive_from is not None
    pid = near.pids[0]
    loop = Loop()
    try:
        _attach(loop, near.receive_from, pid, [["bench/memory"]], "first")  # what the first ever needs is not counted
        return [
            _attach(loop, near.receive_from, pid, [["bench/memory"]] * connections, "connection"),
            _attach(loop, near.receive_from, pid, _shared("bench/memory", links), "link"),
            _attach(loop, near.receive_from, pid, _own("bench/near", links), "link with an address of its own"),
            _attach(loop, far.receive_from, pid, _own("bench/far", links), "address of another router"),
        ]
    finally:
        loop.close()


def _shared(address: str, links: int) -> list[list[str]]:
    return [[address] * LINKS for _ in range(links // LINKS)] or [[address] * links]


def _own(prefix: str, links: int) -> list[list[str]]:
    names = [f"{prefix}/{number}" for number in range(links)]
    return [names[at : at + LINKS] for at in range(0, links, LINKS)]


def _attach(loop: Loop, router: tuple[str, int], pid: int, plan: list[list[str]], what: str) -> MemoryCost:
    """Connections with links to these addresses, and what they cost the process."""
    before, began = resident_bytes(pid), time.monotonic()
    ends = [_Many(addresses) for addresses in plan]
    for number, end in enumerate(ends):
        loop.connect(*router, end, f"memory-{os.getpid()}-{what}-{number}")
    if not loop.run_until(lambda: all(end.is_attached for end in ends), ATTACH_S):
        raise BenchError(f"memory: not everything was attached within {ATTACH_S:g} s")
    took = time.monotonic() - began
    _wait_idle(loop, pid)
    count = len(plan) if what == "connection" else sum(map(len, plan))
    growth = resident_bytes(pid) - before
    return MemoryCost(what=what, count=count, bytes_each=growth / count, us_each=took * 1e6 / count)


def _wait_idle(loop: Loop, pid: int) -> None:
    """Wait until the router has nothing more to do: what it is told of other routers arrives later."""
    quiet, end = 0, time.monotonic() + SPREAD_S
    while quiet < SETTLED_LOOKS and time.monotonic() < end:
        before = round(cpu_seconds([pid]), 2), resident_bytes(pid)
        loop.run_for(LOOK_S)
        quiet = quiet + 1 if (round(cpu_seconds([pid]), 2), resident_bytes(pid)) == before else 0
