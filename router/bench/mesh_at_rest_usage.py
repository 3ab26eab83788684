"""Processor time and memory of routers that have nothing to do but to know of each other."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

import attrs

from router.bench.process_usage import cpu_seconds, resident_bytes
from router.bench.routers import RouterLine


@attrs.frozen(kw_only=True)
class MeshAtRestUsage:
    """Use of the machine by the routers of a mesh at rest: median, and the most of any."""

    routers: int
    seconds: float
    """Time for which the mesh was looked at."""
    core_share: float
    """Part of one processor core that a router uses, median."""
    most_core_share: float
    resident_bytes: int
    most_resident_bytes: int


def measure_idle(mesh: RouterLine, *, seconds: float, settle_s: float) -> MeshAtRestUsage:
    """Look at a mesh whose routers all know each other.

    Args:
        mesh: routers that run.
        seconds: of the measured part.
        settle_s: time before it, in which what the start has stirred up comes to rest.
    """
    time.sleep(settle_s)
    pids = mesh.pids()
    before, began = _used(pids), time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    shares = [(after - used) / took for used, after in zip(before, _used(pids), strict=True)]
    mesh.check()
    resident = [resident_bytes(pid) for pid in pids]
    return MeshAtRestUsage(
        routers=len(pids),
        seconds=took,
        core_share=statistics.median(shares),
        most_core_share=max(shares),
        resident_bytes=round(statistics.median(resident)),
        most_resident_bytes=max(resident),
    )


def _used(pids: Sequence[int]) -> list[float]:
    return [cpu_seconds([pid]) for pid in pids]
