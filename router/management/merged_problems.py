"""Problems that several routers tell of, merged: each once, the most urgent first, what follows from one beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from router.management.snapshot import OF_ADDRESS, PROBLEM_KINDS, SEEN_BY_ALL


@attrs.define
class ProblemNearestCause:
    """A problem as the router tells it that is nearest to its cause."""

    row: Mapping[str, Any]
    """Attributes of the problem."""
    seen_by: list[str]
    """Routers that tell of it, that one first."""
    also_at: list[str] = attrs.field(factory=list)
    """Routers with a problem that only follows from it."""


def merged(told: Iterable[tuple[str, Mapping[str, Any]]]) -> list[ProblemNearestCause]:
    """Merge problems of several routers.

    Args:
        told: routers, each with a problem of it: with `kind`, `subject` and `closeness`.
    Returns: what concerns the whole mesh once; what has its cause at another router that tells of it only with that.
    """
    found: dict[tuple[str, ...], ProblemNearestCause] = {}
    for router, row in told:
        key = (row["kind"], row["subject"], *(() if row["kind"] in SEEN_BY_ALL else (router,)))
        known = found.get(key)
        if known is None:
            found[key] = ProblemNearestCause(row, [router])
        elif row["closeness"] > known.row["closeness"]:
            known.row = row
            known.seen_by.insert(0, router)
        else:
            known.seen_by.append(router)
    causes = {
        each.row["subject"]: each for each in found.values() if each.row["kind"] in OF_ADDRESS and each.row["closeness"]
    }
    kept: list[ProblemNearestCause] = []
    for each in found.values():
        is_consequence = each.row["kind"] in OF_ADDRESS and not each.row["closeness"]
        cause = causes.get(each.row["subject"]) if is_consequence else None
        if cause is None:
            kept.append(each)
        else:
            cause.also_at += each.seen_by
    order = {kind: at for at, kind in enumerate(PROBLEM_KINDS)}
    return sorted(kept, key=lambda each: order.get(str(each.row["kind"]), len(order)))
