"""State of a router in one line of the log: what SIGUSR1 asks for, also when no client gets through."""

from __future__ import annotations

import resource
from pathlib import Path

from router.runtime import Runtime
from router.views.router_row import resident_bytes


def log_state(runtime: Runtime, *, started: float, tasks: int) -> None:
    """Write the line.

    Args:
        runtime: of which it tells.
        started: when the router started, seconds on its clock.
        tasks: that live.
    """
    connections = runtime.connections.values()
    data_plane = runtime.data_plane
    runtime.log.info(
        "state",
        uptime_s=round(runtime.clock() - started, 1),
        connections=len(connections),
        neighbors=sum(connection.port.is_router for connection in connections),
        links=len(data_plane.links),
        addresses=runtime.fib.entry_count(),
        routers=len(runtime.fib.routes),
        waiting=data_plane.waiting.count,
        unsettled=data_plane.settlement.count,
        tasks=tasks,
        memory_bytes=resident_bytes(),
        files=_open_files(),
        max_files=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
    )


def _open_files() -> int | None:
    """Descriptors of this process; None where the system does not tell, or has none left to tell by."""
    try:
        return sum(1 for _ in Path("/proc/self/fd").iterdir()) - 1  # that of the listing
    except OSError:
        return None
