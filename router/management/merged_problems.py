"""Problems of several routers, the most urgent first, and what only follows from another one beside that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from router.management.snapshot import OF_ADDRESS, PROBLEM_KINDS

P = TypeVar("P", bound=Mapping[str, Any])


def by_urgency(problems: Sequence[P]) -> list[tuple[P, list[P]]]:
    """Order problems, the most urgent kinds first, each with those that only follow from it.

    Args:
        problems: with `kind`, `subject` and `causeElsewhere`, which a router of an earlier version doesn't say.
    Returns: what has its cause at another router that tells of it is with that alone.
    """
    causes = {
        each["subject"]: at
        for at, each in enumerate(problems)
        if each["kind"] in OF_ADDRESS and not each.get("causeElsewhere")
    }
    kept: dict[int, tuple[P, list[P]]] = {}
    consequences: list[tuple[int, P]] = []
    for at, each in enumerate(problems):
        cause = causes.get(each["subject"]) if each.get("causeElsewhere") else None
        if cause is None:
            kept[at] = (each, [])
        else:
            consequences.append((cause, each))
    for cause, each in consequences:
        kept[cause][1].append(each)
    order = {kind: at for at, kind in enumerate(PROBLEM_KINDS)}
    return sorted(kept.values(), key=lambda one: order.get(str(one[0]["kind"]), len(order)))
