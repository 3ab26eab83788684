"""Ratios of our routers to others that did the same work in the same rounds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import attrs

from router.bench.cases import Path


@attrs.frozen(kw_only=True)
class RatioToOtherRouter:
    """Our routers over a path by another router's figure: medians of the ratios of each round.

    None where one of both could not be read.
    """

    case: str
    path: str
    other: str
    """Name of the path over the other router, with as many hops."""
    rounds: int
    per_s: float | None
    cpu_us: float | None
    p50_us: float | None
    resident_bytes: float | None


def compare(case: str, ours: Path, other: Path, rounds: Sequence[tuple[Any, Any]]) -> RatioToOtherRouter:
    """Compare what two paths did in a case.

    Args:
        case: its name.
        ours: path over our routers.
        other: path over others.
        rounds: of each round the run over both; a run has the attributes that are compared, or some of them.
    """
    return RatioToOtherRouter(
        case=case,
        path=ours.name,
        other=other.name,
        rounds=len(rounds),
        per_s=_ratio(rounds, "per_s"),
        cpu_us=_ratio(rounds, "cpu_us"),
        p50_us=_ratio(rounds, "p50_us"),
        resident_bytes=_ratio(rounds, "resident_bytes"),
    )


def _ratio(rounds: Sequence[tuple[Any, Any]], name: str) -> float | None:
    pairs = [(getattr(one, name, None), getattr(other, name, None)) for one, other in rounds]
    ratios = [one / other for one, other in pairs if one is not None and other]
    return statistics.median(ratios) if ratios else None


def pairs_of(ours: Sequence[Path], others: Sequence[Path]) -> list[tuple[Path, Path]]:
    """Paths that can be compared: over as many hops."""
    return [(one, other) for one in ours for other in others if one.hops == other.hops]
