"""Link costs with which the busiest link of the worst failure is less busy: a search among neighbors.

A step changes the cost of one link. Meshes are compared by the highest utilisation of each link over all failures, the
busiest link first, so that a step counts too that helps the next ones while several links are equally busy. What is
found is no worse than before, and need not be the best there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import attrs
import numpy as np

from router.whatif.analysis.failure_sweep import TRIES, FailureSweep
from router.whatif.model.elements import MAX_COST
from router.whatif.model.mesh_model import Model, with_costs
from router.whatif.scenarios.failure_families import Family

RANKED: Final = 16
"""Number of links that are compared, the busiest first."""


@attrs.frozen(kw_only=True)
class CostLimits:
    """Limits of a search."""

    changes: int = 5
    """Maximum number of links whose cost is changed."""
    max_cost: int = MAX_COST
    least: Mapping[str, int] = attrs.field(factory=dict)
    """Minimum cost of each link that may be changed, by link id."""
    tries: int = TRIES
    """Maximum number of meshes that are played."""


@attrs.frozen(kw_only=True)
class CostSearchResult:
    """Result of a search."""

    costs: Mapping[str, int]
    """New costs of the links that are changed, by link id."""
    before: float
    """Highest utilisation of any link in any scenario."""
    after: float
    tries: int


Order = tuple[float, ...]


def better_costs(
    model: Model,
    families: Sequence[Family],
    limits: CostLimits,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> CostSearchResult:
    """Search for costs.

    Args:
        model: with capacities, and one cost for each link.
        families: of failures that are played.
        limits: of the search.
        progress: told how many meshes of how many have been played.
    Raises: NetworkError
    """
    first = FailureSweep.of(model, families)
    costs: dict[str, int] = {}
    best, busiest = _order(first, model), _busiest(first, model)
    tries = 1
    while tries < limits.tries:
        found: tuple[Order, dict[str, int], FailureSweep] | None = None
        for changed in _steps(model, costs, busiest, limits):
            if tries >= limits.tries:
                break
            candidate = with_costs(model, changed)
            sweep = FailureSweep.of(candidate, families)
            tries += 1
            progress(tries, limits.tries)
            order = _order(sweep, candidate)
            if order < (best if found is None else found[0]):
                found = order, changed, sweep
        if found is None:
            break
        best, costs = found[0], found[1]
        busiest = _busiest(found[2], model)
    return CostSearchResult(costs=costs, before=first.max_utilisation, after=best[0] if best else 0.0, tries=tries)


def _order(sweep: FailureSweep, model: Model) -> Order:
    shares = np.sort(sweep.utilisations(model))[::-1][:RANKED]
    return tuple(shares.tolist())


def _busiest(sweep: FailureSweep, model: Model) -> list[str]:
    """Links, the busiest first."""
    shares = sweep.utilisations(model)
    return [model.links[place].id for place in np.lexsort((np.arange(len(shares)), -shares)).tolist()]


def _steps(
    model: Model, costs: Mapping[str, int], busiest: Iterable[str], limits: CostLimits
) -> Iterable[dict[str, int]]:
    """Costs that differ from these by one link: the busiest links dearer, the others cheaper and dearer."""
    own = {link.id: link.cost for link in model.links}
    for link in busiest:
        if link not in limits.least or (link not in costs and len(costs) >= limits.changes):
            continue
        now = costs.get(link, own[link])
        wanted = dict.fromkeys((now + 1, 2 * now, 4 * now, now - 1, now // 2, own[link]))
        for cost in wanted:
            if cost != now and limits.least[link] <= cost <= limits.max_cost:
                changed = {**costs, link: cost}
                yield {name: each for name, each in changed.items() if each != own[name]}
