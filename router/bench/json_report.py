"""Report of what was measured as JSON, with the machine and the programs."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import os
import platform
from typing import Any, Final

import attrs

import router
from router.bench.process_usage import processor
from router.bench.suite import Plan, SuiteResult

SCHEMA: Final = "amqp-mesh-bench"
VERSION: Final = 1
"""Version of the document; a new one when a reader of the old one would be wrong."""
_DISTRIBUTIONS: Final = ("python-qpid-proton", "trio", "Cython")


def document(plan: Plan, outcome: SuiteResult, *, began: dt.datetime, seconds: float) -> dict[str, Any]:
    """Make the document: numbers in the units that their names end with. Its schema is `results.schema.json`.

    Args:
        plan: what was asked for.
        outcome: what was measured.
        began: time of the begin.
        seconds: that the whole took.
    """
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "began": began.astimezone(dt.UTC).isoformat(timespec="seconds"),
        "took_s": round(seconds, 1),
        "machine": machine(),
        "programs": programs(),
        "plan": {
            "rounds": plan.rounds,
            "seconds": plan.seconds,
            "warm_s": plan.warm_s,
            "cases": [attrs.asdict(case) for case in plan.cases],
            "command": list(plan.command),
        },
        "echo_us": outcome.echo_us,
        "figures": [attrs.asdict(one) for one in outcome.figures],
        "spill": [attrs.asdict(one) for one in outcome.spill],
        "memory": [attrs.asdict(one) for one in outcome.memory],
        "oslo": [attrs.asdict(one) for one in outcome.oslo],
        "comparisons": [attrs.asdict(one) for one in outcome.comparisons],
        "idle": attrs.asdict(outcome.idle) if outcome.idle else None,
        "start": [attrs.asdict(one) for one in outcome.start],
    }


def machine() -> dict[str, Any]:
    """Describe the machine on which it was measured."""
    return {
        "system": platform.system(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "processor": processor(),
        "processors": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
    }


def programs() -> dict[str, Any]:
    """Versions of the programs that were measured, and that measured."""
    found: dict[str, Any] = {
        "amqp-mesh": router.__version__,
        "speed": router.SPEED,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }
    for name in _DISTRIBUTIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
