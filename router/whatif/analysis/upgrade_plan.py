"""The cheapest set of new links and upgrades with which a mesh keeps its limits, and how far from it a plan may be.

Which links are upgraded changes no path: of each set of new links the failures are played once, and for each link that
is too busy then the cheapest upgrade that is enough is taken, which is the best there can be for that set. So only sets
of new links are searched: in the order of their prices, the cheapest first. When the next one alone costs as much as
the best plan, no plan is cheaper. Where that would take too many tries, the price of the next set is what every cheaper
plan costs at least. A plan to begin with comes from building what helps most, one link after the other, and leaving out
what turns out not to be needed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import cast

import attrs

from router.whatif.analysis.check import refuse_unknown_elements
from router.whatif.analysis.failure_sweep import TRIES, FailureSweep
from router.whatif.analysis.spof import spof_rows
from router.whatif.formats.price_file import PricedChange, PricedOptions
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import Network, capacity_units
from router.whatif.model.elements import LinkEdge
from router.whatif.model.mesh_model import Model, with_links
from router.whatif.scenarios.failure_families import Family
from router.whatif.wording import exact

Progress = Callable[[int, int], None]
Chosen = frozenset[int]
"""New links by their places in the list of prices."""


@attrs.frozen(kw_only=True)
class PlanLimits:
    """Limits as `check` has them; None and False: no such limit."""

    max_util: float | None = None
    no_single_point_of_failure: bool = False
    allowed: Collection[str] = ()
    """Ids of routers, links and groups that may be single points of failure."""
    max_lost_pairs: int | None = None
    max_lost_msgs: float | None = None


@attrs.frozen(kw_only=True)
class UpgradePlan:
    """Result of a search."""

    builds: tuple[PricedChange, ...] = ()
    upgrades: tuple[PricedChange, ...] = ()
    price: float | None = None
    """None when none was found."""
    at_least: float
    """No plan costs less."""
    tries: int
    """Sets of new links that were played."""
    broken: tuple[str, ...] = ()
    """Limits that none of these sets keeps, as options, when no plan was found."""

    @property
    def is_cheapest(self) -> bool:
        """Whether no plan costs less."""
        return self.price is not None and self.at_least >= self.price


@attrs.frozen
class _Judged:
    """A set of new links with its cheapest upgrades."""

    missing: tuple[float, ...]
    """Distance from each limit; all 0 when it keeps them."""
    upgrades: tuple[PricedChange, ...]
    price: float

    @property
    def is_kept(self) -> bool:
        return not any(self.missing)


class PlanSearch:
    """Search for the cheapest plan.

    Args:
        model: the mesh as it is.
        prices: of what could be done.
        limits: that are to be kept.
        families: failures that are played.
        is_split: as `Kernel` has it.
    Raises: TableError when an element that limits allow is not there.
    """

    def __init__(
        self,
        model: Model,
        prices: PricedOptions,
        limits: PlanLimits,
        families: Sequence[Family],
        *,
        is_split: bool = False,
    ) -> None:
        refuse_unknown_elements(limits.allowed, model)
        self.model = model
        self._is_split = is_split
        self.limits = limits
        self.families = families
        self.builds = sorted(prices.builds, key=lambda each: (each.price, each.link.id))
        self._upgrades: dict[str, list[PricedChange]] = {}
        for upgrade in sorted(prices.upgrades, key=lambda each: each.price):
            self._upgrades.setdefault(upgrade.link.id, []).append(upgrade)
        self._judged: dict[Chosen, _Judged] = {}

    def find(self, tries: int = TRIES, progress: Progress = lambda done, total: None) -> UpgradePlan:
        """Search until no plan can be cheaper, or *tries* sets have been played."""
        best = self._greedy(tries, progress)
        at_least = 0.0
        for price, chosen in _by_price([each.price for each in self.builds]):
            at_least = price
            if best is not None and price >= self._judge(best).price:
                break
            if chosen not in self._judged and len(self._judged) >= tries:
                break
            found = self._judge(chosen)
            progress(len(self._judged), tries)
            if found.is_kept and (best is None or found.price < self._judge(best).price):
                best = chosen
        else:
            at_least = float("inf")  # every set was played
        if best is None:
            return UpgradePlan(at_least=at_least, tries=len(self._judged), broken=self._broken())
        judged = self._judge(best)
        return UpgradePlan(
            builds=tuple(self.builds[place] for place in sorted(best)),
            upgrades=judged.upgrades,
            price=judged.price,
            at_least=min(at_least, judged.price),
            tries=len(self._judged),
        )

    def _broken(self) -> tuple[str, ...]:
        """Limits that no set that was played keeps."""
        limits = self.limits
        names = ["--no-single-point-of-failure"] * 2 if limits.no_single_point_of_failure else []
        for option, limit in (
            ("--max-lost-pairs", limits.max_lost_pairs),
            ("--max-lost-msgs", limits.max_lost_msgs),
            ("--max-util", limits.max_util),
        ):
            names += [] if limit is None else [f"{option} {exact(limit)}"]
        least = map(min, zip(*(judged.missing for judged in self._judged.values()), strict=True))
        return tuple(dict.fromkeys(name for name, missing in zip(names, least, strict=True) if missing))

    def planned(self, plan: UpgradePlan) -> Model:
        """The model with what is planned."""
        better = {upgrade.link.id: upgrade.link for upgrade in plan.upgrades}
        links = [better.get(link.id, link) for link in self.model.links]
        return with_links(attrs.evolve(self.model, links=links), [build.link for build in plan.builds])

    def _greedy(self, tries: int, progress: Progress) -> Chosen | None:
        """A plan made link by link; None when that leads to none."""
        chosen: Chosen = frozenset()
        while not self._judge(chosen).is_kept:
            if len(self._judged) + len(self.builds) - len(chosen) > tries:
                return None
            wider = [chosen | {place} for place in range(len(self.builds)) if place not in chosen]
            for each in wider:
                self._judge(each)
                progress(len(self._judged), tries)
            nearest = min(wider, key=self._order, default=chosen)
            if nearest == chosen or self._judge(nearest).missing >= self._judge(chosen).missing:
                return None
            chosen = nearest
        for place in sorted(chosen, reverse=True):  # the dearest first
            less = chosen - {place}
            if self._judge(less).is_kept and self._judge(less).price <= self._judge(chosen).price:
                chosen = less
        return chosen

    def _order(self, chosen: Chosen) -> tuple[tuple[float, ...], float, tuple[int, ...]]:
        judged = self._judge(chosen)
        return judged.missing, judged.price, tuple(sorted(chosen))

    def _judge(self, chosen: Chosen) -> _Judged:
        if chosen not in self._judged:
            self._judged[chosen] = self._played(chosen)
        return self._judged[chosen]

    def _played(self, chosen: Chosen) -> _Judged:
        model = with_links(self.model, [self.builds[place].link for place in chosen])
        limits, missing = self.limits, []
        if limits.no_single_point_of_failure:
            network = Network.of(model)
            rows = spof_rows(None, model, network, Kernel(network, is_split=self._is_split, has_percentiles=False))
            left = [row for row in rows if row["element"] not in limits.allowed]
            missing += [float(sum(cast("int", row["unreachable_pairs"]) for row in left)), float(len(left))]
        sweep = FailureSweep.of(model, self.families, is_split=self._is_split)
        if limits.max_lost_pairs is not None:
            missing.append(max(0.0, float(sweep.lost_pairs - limits.max_lost_pairs)))
        if limits.max_lost_msgs is not None:
            missing.append(max(0.0, sweep.lost_msgs_per_s - limits.max_lost_msgs))
        upgrades: list[PricedChange] = []
        if limits.max_util is not None:
            excess = 0.0
            for link, share, load in zip(model.links, sweep.utilisations(model), sweep.loads, strict=True):
                if share > limits.max_util:
                    enough = self._enough(link, load.tolist(), limits.max_util)
                    if enough is None:
                        excess += float(share) - limits.max_util
                    else:
                        upgrades.append(enough)
            missing.append(excess)
        price = sum(self.builds[place].price for place in chosen) + sum(each.price for each in upgrades)
        return _Judged(tuple(missing), tuple(upgrades), price)

    def _enough(self, link: LinkEdge, load: Sequence[float], limit: float) -> PricedChange | None:
        """The cheapest upgrade of a link with which its highest load is within the limit."""
        for upgrade in self._upgrades.get(link.id, ()):
            capacities = (upgrade.link.capacity_msgs, upgrade.link.capacity_bytes)
            shares = (amount / capacity_units(each) for amount, each in zip(load, capacities, strict=True))
            if max(shares) <= limit:
                return upgrade
        return None


def _by_price(prices: Sequence[float]) -> Iterator[tuple[float, Chosen]]:
    """All sets of things with these prices, which ascend: the cheapest set first."""
    yield 0.0, frozenset()
    # Each set leads to two others: with the next thing besides its last one, and instead of it.
    waiting: list[tuple[float, tuple[int, ...]]] = [(prices[0], (0,))] if prices else []
    while waiting:
        price, places = heapq.heappop(waiting)
        yield price, frozenset(places)
        after = places[-1] + 1
        if after < len(prices):
            heapq.heappush(waiting, (price + prices[after], (*places, after)))
            heapq.heappush(waiting, (price - prices[places[-1]] + prices[after], (*places[:-1], after)))
