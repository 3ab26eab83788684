"""A thousand control planes: from a cold start, and through failures that add up, to the distances of networkx."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

from router.whatif.convergence.twin import EventKind, Row, TwinCase, TwinTopology, run_case

ROUTERS = 1000
FAILURES = 20
KINDS = (EventKind.LINK, EventKind.ROUTER) * 9 + (EventKind.SILENT_LINK, EventKind.SILENT_ROUTER)


def measure(told: Callable[[Row], None]) -> tuple[list[Row], float, float]:
    """Run them. Returns: what happened, processor time in seconds, memory in MB."""
    case = TwinCase(
        ground=TwinTopology(name="chords", routers=ROUTERS), seed=1, failures=FAILURES, kinds=KINDS, is_repaired=False
    )
    began = time.process_time()
    rows = run_case(case, told)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return rows, time.process_time() - began, memory
