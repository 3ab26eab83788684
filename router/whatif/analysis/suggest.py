"""Suggestions of what would help: links to be added, subscribers to be moved or added; the table `placement`."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import attrs
import numpy as np

from mesh_config.models import Treatment
from router.whatif.analysis import link_placement
from router.whatif.analysis.connectivity import Connectivity, analyse
from router.whatif.analysis.link_placement import Bools, Floats, Goal, LinkGain
from router.whatif.analysis.paths_and_flows import RoutingState
from router.whatif.analysis.subscriber_placement import AddressUse, SubscriberPlacement, load_places, loss_places
from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import MICRO, TREATMENTS, Network
from router.whatif.model.elements import LinkEdge, free_link_id
from router.whatif.model.geography import distance_km
from router.whatif.model.mesh_model import Model, with_links

COUNT: Final = 5
"""Maximum number of suggestions of each kind by each measure."""
PLAYED: Final = 10
"""Number of candidates that are played for each suggestion by MAX_UTILISATION."""
MOST_ROUTERS: Final = 400
"""Maximum number of routers with which a run looks for links that shorten paths: about a second."""

MEAN_COST: Final = "mean_cost"
LOAD: Final = "load"
CUT_PAIRS: Final = "cut_pairs"
UNREACHABLE_PAIRS: Final = "unreachable_pairs"
LOST_MSGS: Final = "lost_msgs"
MAX_UTILISATION: Final = "max_utilisation"
"""Measures, as the table `placement` has them."""
MEASURE_OF: Final = {Goal.DISTANCE: MEAN_COST, Goal.TRAFFIC: LOAD, Goal.RESILIENCE: CUT_PAIRS}

Row = dict[str, object]
Progress = Callable[[int, int], None]


def _untold(done: int, total: int) -> None:
    """Progress that nobody wants to see."""


@attrs.frozen(kw_only=True)
class SuggestOptions:
    """Options of a question for suggestions."""

    count: int = COUNT
    cost: int | None = None
    """Cost of an added link; None: the median cost of links."""
    max_km: float | None = None
    """Links between routers that are farther apart, or whose places are not known, are not suggested."""


class SuggestInput:
    """A mesh and what all suggestions are worked out from."""

    def __init__(self, model: Model, network: Network, kernel: Kernel, wish: SuggestOptions) -> None:
        """Work out what suggestions are made of, from a kernel in its base state.

        Raises: NetworkError when links have another cost in each direction: suggestions are for meshes.
        """
        network.refuse_asymmetric_costs()
        self.model = model
        self.network = network
        self.kernel = kernel
        self.wish = wish
        self.distance = distances(kernel)
        ends = list(zip(network.link_a.tolist(), network.link_b.tolist(), strict=True))
        self.connectivity: Connectivity = analyse(len(network.routers), ends)
        self.kilometres = kilometres(model)
        # What is nearer is easier to build: on the map, or else in the mesh.
        is_mapped = not np.isnan(self.kilometres).any()
        self.effort: Floats = np.round(self.kilometres) if is_mapped else self.distance
        costs = sorted(network.link_cost.tolist()) or [1]
        self.cost: int = costs[(len(costs) - 1) // 2] if wish.cost is None else wish.cost

    def allowed(self, *, is_joining: bool) -> Bools:
        """Mask of the pairs of routers where a link may be.

        Args:
            is_joining: between parts of the mesh without a path to each other; else within one.
        """
        part = self.connectivity.component
        found: Bools = (part[:, None] != part[None, :]) == is_joining
        if self.wish.max_km is not None:
            # NaN, where a router's place is not known, is not at most anything.
            found = found & (self.kilometres <= self.wish.max_km)
        return found

    def traffic(self, *, has_multicasts: bool = False) -> Floats:
        """Weight of pairs by messages/s: demands for routers, and those for addresses as they flow now.

        Args:
            has_multicasts: whether they count, once for each router with subscribers. A link carries one copy for all
                that are behind it, so that a sum over pairs is more than what links carry.
        """
        network = self.network
        rates = list(
            zip(
                network.demand_src.tolist(),
                network.demand_dst.tolist(),
                (network.demand_rate / MICRO).tolist(),
                strict=True,
            )
        )
        for flow in RoutingState(network, self.kernel).flows():
            is_multicast = TREATMENTS[network.treatment[flow.address]] is Treatment.MULTICAST
            if flow.dst is not None and (has_multicasts or not is_multicast):
                rates.append((flow.src, flow.dst, flow.rate / MICRO))
        return link_placement.weight_of(rates, len(network.routers))


def placement_rows(model: Model, network: Network, kernel: Kernel, wish: SuggestOptions | None = None) -> list[Row]:
    """Rows of the table `placement` of a mesh: links by their closed forms, moves and additions of subscribers.

    With more than MOST_ROUTERS no links are judged by `mean_cost` and `load`, which takes the cube of the number of
    routers: a run should not wait for it. `link_rows` does it.

    Args:
        model: the mesh.
        network: of *model*.
        kernel: of *network*, in its base state.
        wish: how many suggestions, and which links may be built; the usual ones when absent.
    """
    mesh = SuggestInput(model, network, kernel, wish or SuggestOptions())
    goals = Goal if len(network.routers) <= MOST_ROUTERS else (Goal.RESILIENCE,)
    rows = [row for goal in goals for row in link_rows(mesh, goal)]
    return [*rows, *join_rows(mesh), *subscriber_rows(mesh)]


def distances(kernel: Kernel) -> Floats:
    """Costs of all paths, `inf` without one."""
    costs = kernel.distances().astype(np.float64)
    costs[costs < 0] = np.inf
    return costs


def kilometres(model: Model) -> Floats:
    """Distances between routers along the surface of the earth, kilometres; NaN where a place is not known."""
    known = [(router.latitude, router.longitude) for router in model.routers]
    degrees = np.array([(math.nan, math.nan) if None in pair else pair for pair in known], dtype=np.float64)
    latitude, longitude = degrees.T
    found: Floats = distance_km(latitude[:, None], longitude[:, None], latitude[None, :], longitude[None, :])
    return found


# Links


def link_rows(mesh: SuggestInput, goal: Goal, progress: Progress = _untold) -> list[Row]:
    """The best links within parts of the mesh by one goal, as rows of `placement`.

    `load` is that of all messages but multicasts, which go to the subscribers that they reach now.
    """
    weight = mesh.traffic() if goal is Goal.TRAFFIC else link_placement.even_weight(len(mesh.network.routers))
    whole = _whole(mesh, goal, weight)
    scale = _scale(mesh, goal)
    return [
        _link_row(mesh, MEASURE_OF[goal], rank, gain, whole / scale, (whole - gain.amount) / scale)
        for rank, gain in enumerate(_best(mesh, goal, weight, mesh.wish.count, progress), start=1)
    ]


def join_rows(mesh: SuggestInput) -> list[Row]:
    """The best links between parts of the mesh that have no path to each other; none when it is in one piece."""
    weight = link_placement.even_weight(len(mesh.network.routers))
    best = _best(mesh, Goal.DISTANCE, weight, mesh.wish.count, _untold, is_joining=True)
    apart = float(np.isinf(mesh.distance).sum())
    return [
        _link_row(mesh, UNREACHABLE_PAIRS, rank, gain, apart, apart - gain.joined_pairs)
        for rank, gain in enumerate(best, start=1)
    ]


def _best(
    mesh: SuggestInput, goal: Goal, weight: Floats, count: int, progress: Progress, *, is_joining: bool = False
) -> list[LinkGain]:
    return link_placement.best_links(
        mesh.distance,
        weight,
        mesh.cost,
        mesh.connectivity,
        goal=goal,
        count=count,
        allowed=mesh.allowed(is_joining=is_joining),
        effort=mesh.effort,
        progress=progress,
    )


def _whole(mesh: SuggestInput, goal: Goal, weight: Floats) -> float:
    """The measure as it is: a sum over all pairs."""
    if goal is Goal.RESILIENCE:
        found = mesh.connectivity
        routers = sum(found.pairs_split_by_node(router) for router in found.cuts)
        return float(routers + sum(found.pairs_split_by_link(link) for link in found.bridges))
    there = np.isfinite(mesh.distance)
    return float((mesh.distance[there] * weight[there]).sum()) / 2


def _scale(mesh: SuggestInput, goal: Goal) -> float:
    """Divisor of a sum: for a mean, the number of pairs."""
    if goal is not Goal.DISTANCE:
        return 1.0
    return max(1.0, float(np.isfinite(mesh.distance).sum() - len(mesh.distance)))


def _link_row(mesh: SuggestInput, measure: str, rank: int, gain: LinkGain, before: float, after: float) -> Row:
    return {
        "kind": "link",
        "measure": measure,
        "rank": rank,
        "a": mesh.network.routers[gain.u],
        "b": mesh.network.routers[gain.v],
        "address": None,
        "cost": mesh.cost,
        "before": before,
        "after": after,
        "gain": before - after,
    }


def utilisation_rows(mesh: SuggestInput, progress: Progress = _untold) -> list[Row]:
    """The links after which the busiest one is the least busy, as rows of `placement`.

    There is no closed form for it: those that shorten the paths of messages most are played, PLAYED for each that is
    wanted, by the routing of the mesh's kernel. A new link can carry what half of the links can. No link with a known
    capacity: no rows.
    """
    known = [link for link in mesh.model.links if link.has_capacity]
    if not known:
        return []
    candidates = _best(mesh, Goal.TRAFFIC, mesh.traffic(has_multicasts=True), PLAYED * mesh.wish.count, _untold)
    before = mesh.kernel.max_utilisation
    found: list[tuple[float, LinkGain]] = []
    for done, gain in enumerate(candidates):
        progress(done, len(candidates))
        changed = with_links(mesh.model, [_new_link(mesh, gain, known)])
        after = Kernel(Network.of(changed), is_split=mesh.kernel.is_split).max_utilisation
        if after < before:
            found.append((after, gain))
    progress(len(candidates), len(candidates))
    found.sort(key=lambda each: (each[0], -each[1].amount, each[1].u, each[1].v))
    return [
        _link_row(mesh, MAX_UTILISATION, rank, gain, before, after)
        for rank, (after, gain) in enumerate(found[: mesh.wish.count], start=1)
    ]


def _new_link(mesh: SuggestInput, gain: LinkGain, known: Sequence[LinkEdge]) -> LinkEdge:
    a, b = mesh.network.routers[gain.u], mesh.network.routers[gain.v]
    return LinkEdge(
        id=free_link_id(a, b, {link.id for link in mesh.model.links}),
        a=a,
        b=b,
        cost=mesh.cost,
        delay_ms=_middle(link.delay_ms for link in mesh.model.links),
        capacity_msgs=_middle(link.capacity_msgs for link in known),
        capacity_bytes=_middle(link.capacity_bytes for link in known),
    )


def _middle(values: Iterable[float | None]) -> float | None:
    """The value that half of those that are known do not exceed."""
    known = sorted(value for value in values if value is not None)
    return known[(len(known) - 1) // 2] if known else None


# Subscribers


def subscriber_rows(mesh: SuggestInput, addresses: Sequence[str] | None = None) -> list[Row]:
    """The best moves and additions of subscribers, as rows of `placement`.

    `load` and `lost_msgs` are told as if credit sufficed, also of balanced addresses where it is bounded.

    Args:
        mesh: and what is wished for.
        addresses: that are looked at; all when absent.
    """
    best: dict[tuple[str, str], list[SubscriberPlacement]] = {}
    for number, text in enumerate(mesh.network.addresses):
        if addresses is None or text in addresses:
            audience = AddressUse(mesh.network, mesh.kernel, mesh.distance, number)
            found: dict[tuple[str, str], list[SubscriberPlacement]] = {}
            for measure, place in _places(mesh, audience):
                kind = "addition" if place.taken_from is None else "move"
                found.setdefault((kind, measure), []).append(place)
            for key, places in found.items():
                best[key] = heapq.nsmallest(mesh.wish.count, [*best.get(key, ()), *places], key=_order)
    return [
        _place_row(mesh, kind, measure, rank, place)
        for (kind, measure), places in sorted(best.items())
        for rank, place in enumerate(places, start=1)
    ]


def _order(place: SubscriberPlacement) -> tuple[float, int, int, int]:
    """Sort key by which the best place comes first."""
    return -place.gain, place.address, place.router, -1 if place.taken_from is None else place.taken_from


def _places(mesh: SuggestInput, audience: AddressUse) -> Iterator[tuple[str, SubscriberPlacement]]:
    for place in load_places(audience):
        if math.isfinite(place.before):
            yield LOAD, place
    for place in loss_places(audience, mesh.connectivity, len(mesh.network.links)):
        yield LOST_MSGS, place


def _place_row(mesh: SuggestInput, kind: str, measure: str, rank: int, place: SubscriberPlacement) -> Row:
    origin = place.taken_from
    if origin is None:
        first, last = mesh.network.subscriber_first[place.address], mesh.network.subscriber_first[place.address + 1]
        sites = mesh.network.subscriber_router[first:last].tolist()
        origin = min(sites, key=lambda site: (mesh.distance[site, place.router], site))
    return {
        "kind": kind,
        "measure": measure,
        "rank": rank,
        "a": mesh.network.routers[origin],
        "b": mesh.network.routers[place.router],
        "address": mesh.network.addresses[place.address],
        "cost": None,
        "before": place.before,
        "after": place.after,
        "gain": place.gain,
    }
