"""Search for the place where one more link helps most: every candidate is judged by a closed form, none is tried out.

With a link of cost w between u and v the distance of x and y becomes

    D'[x, y] = min(D[x, y], D[x, u] + w + D[v, y], D[x, v] + w + D[u, y])

and of the two ways over the new link at most one is shorter than before: their sum is D[x, y] twice and 2 w at least.
So what is gained is a sum over pairs, and only those x count that come nearer to v, and those y that come nearer to u.

What single failures cut off has a closed form too: a new link between u and v is a way around every bridge and every
articulation point between them.
"""

from __future__ import annotations

import enum
import heapq
from collections.abc import Callable, Sequence
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from router.whatif.analysis.connectivity import Connectivity

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MOST_CELLS: Final = 4_000_000
"""Maximum cells of the histograms by which all candidates are evaluated at once."""


class Goal(enum.StrEnum):
    """Measure by which candidates are compared."""

    DISTANCE = "distance"
    """Mean cost of the shortest path of two routers."""
    TRAFFIC = "traffic"
    """Mean cost of the path of a message, so that busy pairs count for more."""
    RESILIENCE = "resilience"
    """Pairs of routers that lose each other, summed over every single failure of a link or a router."""


@attrs.frozen(kw_only=True, order=True)
class LinkGain:
    """One candidate and what it is worth."""

    joined_pairs: int
    """Ordered pairs that have no path now and would have one: the two ends are in different parts of the mesh."""
    amount: float
    """Gain of the link. For distance goals: reduction of the weighted sum of all distances. For resilience: pairs no
    longer lost. For links that join parts, whatever the goal: the negative weighted sum of the new distances."""
    u: int
    v: int
    """The two routers; u < v."""


def with_link(distance: Floats, u: int, v: int, cost: float) -> Floats:
    """All distances when there is a link of *cost* between *u* and *v* too.

    Args:
        distance: (n, n), symmetric, `inf` without a path.
        u: router at one end, by place.
        v: router at the other end.
        cost: of the new link.
    """
    over = distance[:, u][:, None] + cost + distance[v, :][None, :]
    return np.minimum(distance, np.minimum(over, over.T))


def shorter_by(distance: Floats, weight: Floats, u: int, v: int, cost: float) -> float:
    """Amount by which a link of *cost* between *u* and *v* lowers the weighted sum of all distances.

    Pairs without a path do not count; `joined_pairs` counts them.

    Args:
        distance: (n, n), symmetric, `inf` without a path.
        weight: (n, n), symmetric: what both directions of a pair weigh together.
        u: router at one end, by place.
        v: router at the other end.
        cost: of the new link.
    """
    to_u, to_v = distance[:, u], distance[:, v]
    rows = np.flatnonzero(to_u + cost < to_v)
    columns = np.flatnonzero(to_v + cost < to_u)
    # What is infinitely far from one end is in another part of the mesh, and has no distance that could fall.
    rows, columns = rows[np.isfinite(to_v[rows])], columns[np.isfinite(to_u[columns])]
    if not (rows.size and columns.size):
        return 0.0
    cells = np.ix_(rows, columns)
    gain = distance[cells] - (to_u[rows] + cost)[:, None]
    gain -= to_v[columns][None, :]
    np.maximum(gain, 0.0, out=gain)
    gain *= weight[cells]
    return float(gain.sum())


def joined_pairs(connectivity: Connectivity, u: int, v: int) -> int:
    """Ordered pairs that a link between *u* and *v* gives their first path."""
    a, b = connectivity.component[u], connectivity.component[v]
    return 0 if a == b else 2 * int(connectivity.sizes[a]) * int(connectivity.sizes[b])


def saved_pairs(connectivity: Connectivity) -> NDArray[np.int64]:
    """Number of pairs fewer that lose each other, over every single failure, with a link between u and v, by u and v.

    A failure is that of one link or of one router; pairs with a failed router at an end are lost in any case and do not
    count. Between different parts of the mesh it is 0.

    All candidates take O(n^2) together. Along the tree of the walk, what is between a router and one outside its
    branch is what is between its predecessor and that one, and the predecessor itself, and the link to it.
    """
    nodes = len(connectivity.component)
    component, order, parent = connectivity.component, connectivity.order, connectivity.parent
    by_bridge = {order[ends[0]]: connectivity.pairs_split_by_link(link) for link, ends in connectivity.bridges.items()}
    branches: list[list[int]] = [[] for _ in range(nodes)]
    for node in order[parent[order] >= 0].tolist():
        branches[parent[node]].append(node)
    saved = np.zeros((nodes, nodes), dtype=np.int64)
    seen = order.copy()
    roots = order[parent[order] < 0]
    count = len(roots)
    seen[:count] = roots
    for at in range(nodes):  # in breadth, so that the branches of a router come together
        node = int(seen[at])
        labels = connectivity.labels_without_node(node)
        size = np.bincount(labels + 1)[labels + 1]
        size[node] = 0  # it loses nothing by its own failure
        for branch in branches[node]:
            others = seen[:count]
            # To both ends belongs a part; a link between two parts makes one of them.
            around = np.where(labels[others] == labels[branch], 0, 2 * size[branch] * size[others])
            saved[branch, others] = saved[node, others] + by_bridge.get(branch, 0) + around
            saved[others, branch] = saved[branch, others]
            seen[count] = branch
            count += 1
    saved[component[:, None] != component[None, :]] = 0
    return saved


def gains(
    distance: Floats, weight: Floats, cost: int, progress: Callable[[int, int], None] = lambda done, total: None
) -> Floats | None:
    """Gains of all candidates at once, by u and v: what `shorter_by` gives for each.

    For one end u, M[x, y] = D[x, y] - D[x, u] - cost is what x may still have beyond the new link without loss on its
    way to y. The gain of all v is a sum over y of S(y, D[v, y]), where S(y, t) is the sum over x of
    max(0, M[x, y] - t): a histogram of M, summed up twice. So all candidates take O(n^3) together, and not O(n^4).

    Args:
        distance: (n, n), symmetric, whole numbers, `inf` without a path.
        weight: (n, n), symmetric: what both directions of a pair weigh together.
        cost: of the new link.
        progress: told how many routers of how many are done with.
    Returns: None when distances are so large that the histograms would not fit into memory.
    """
    nodes = len(distance)
    reach = np.isfinite(distance)
    whole = np.where(reach, distance, 0).astype(np.int64)
    values = int(whole.max(initial=0)) + 1
    if nodes * values > MOST_CELLS:
        return None
    cells = np.arange(nodes, dtype=np.int64)[None, :] * values
    # Beyond the largest distance nothing is gained: that cell is 0, and stands for no path too.
    asked = (cells + np.where(reach, whole, values - 1)).ravel()
    is_even = float(weight.min(initial=0)) == float(weight.max(initial=0))
    found = np.zeros((nodes, nodes))
    for u in range(nodes):
        left = whole - (whole[:, u] + cost)[:, None]
        counts = (left > 0) & reach & reach[:, u][:, None]
        # More is left than *t* in so many, weighted: summed from the far end, without the cell itself.
        histogram = np.bincount((left + cells)[counts], None if is_even else weight[counts], nodes * values)
        more = histogram.reshape(nodes, values)[:, ::-1].cumsum(axis=1)[:, ::-1]
        sums = np.zeros((nodes, values))
        sums[:, :-1] = more[:, :0:-1].cumsum(axis=1)[:, ::-1]
        found[u] = sums.ravel()[asked].reshape(nodes, nodes).sum(axis=1)
        progress(u + 1, nodes)
    if is_even and nodes:
        found *= float(weight.flat[0])
    return found


def best_links(
    distance: Floats,
    weight: Floats,
    cost: int,
    connectivity: Connectivity,
    *,
    goal: Goal,
    count: int,
    allowed: Bools | None = None,
    effort: Floats | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[LinkGain]:
    """The *count* candidates that help most, the best first; of equal ones those with less effort, then by number.

    Candidates that help nothing are left out. A link between two parts of the mesh comes before all others.

    Args:
        distance: (n, n), symmetric, `inf` without a path.
        weight: (n, n), symmetric: what both directions of a pair weigh together.
        cost: of the new link.
        connectivity: parts and single points of failure of the mesh.
        goal: that the link is to serve.
        count: candidates at most.
        allowed: (n, n): whether a link may be built there; everywhere when absent.
        effort: (n, n): what a link takes to build there, such as its length; the same everywhere when absent.
        progress: told how many steps of how many are done.
    """
    may = np.triu(np.ones(distance.shape, dtype=np.bool_) if allowed is None else allowed, 1)
    efforts = np.zeros(distance.shape) if effort is None else effort
    apart = connectivity.component[:, None] != connectivity.component[None, :]
    if goal is Goal.RESILIENCE:
        amounts: Floats | None = saved_pairs(connectivity).astype(np.float64)
    elif (may & ~apart).any():
        amounts = gains(distance, weight, cost, progress)
    else:
        amounts = np.zeros(distance.shape)
    bound = _bounds(distance, weight, cost) if amounts is None else amounts
    if (may & apart).any():
        bound = np.where(apart, -_new_distances(distance, weight, cost, connectivity), bound)
    us, vs = np.nonzero(may & ((bound > 0) | apart))
    size = connectivity.sizes[connectivity.component]
    joins = np.where(apart[us, vs], 2 * size[us] * size[vs], 0)
    keys = np.lexsort((vs, us, efforts[us, vs], -bound[us, vs], -joins))
    if amounts is not None:
        return [_gain(joins[at], bound[us[at], vs[at]], us[at], vs[at]) for at in keys[:count]]
    # From the largest bound on: as soon as it is below the worst of the best, no later one can be among them.
    best: list[tuple[int, float, float, int, int]] = []
    for done, at in enumerate(keys):
        u, v, joined = int(us[at]), int(vs[at]), int(joins[at])
        if len(best) == count and (joined, bound[u, v]) < best[0][:2]:
            break
        amount = float(bound[u, v]) if joined else shorter_by(distance, weight, u, v, cost)
        if amount > 0 or joined:
            heapq.heappush(best, (joined, amount, -float(efforts[u, v]), -u, -v))
            if len(best) > count:
                heapq.heappop(best)
        if done % 1024 == 0:
            progress(done, len(keys))
    progress(len(keys), len(keys))
    return [_gain(joined, amount, -u, -v) for joined, amount, _, u, v in sorted(best, reverse=True)]


def _gain(joined: int, amount: float, u: int, v: int) -> LinkGain:
    return LinkGain(joined_pairs=int(joined), amount=float(amount), u=int(u), v=int(v))


def _bounds(distance: Floats, weight: Floats, cost: float) -> Floats:
    """Upper bound of the gain of a link between u and v, by u and v, found in O(n) for each.

    x comes a(x) = D[x, v] - D[x, u] - cost nearer to v, and no pair gains more than either of its ends does: the sum
    over all x with a(x) > 0, of a(x) times what x and those that gain on the other side weigh, bounds the gain.
    """
    nodes = len(distance)
    finite = np.where(np.isfinite(distance), distance, 0.0)
    reach = np.isfinite(distance)
    one_sided = np.zeros((nodes, nodes))
    total = weight.sum(axis=1)
    is_even = bool(weight.size) and float(weight.min()) == float(weight.max())
    gains = np.zeros((nodes, nodes), dtype=np.int64)
    for u in range(nodes):
        nearer = finite - finite[:, u][:, None] - cost
        nearer[~(reach & reach[:, u][:, None])] = 0.0
        np.maximum(nearer, 0.0, out=nearer)
        one_sided[u] = nearer.sum(axis=0) if is_even else total @ nearer
        gains[u] = np.count_nonzero(nearer, axis=0)
    if is_even:
        one_sided *= gains.T * float(weight.flat[0])
    bound: Floats = np.minimum(one_sided, one_sided.T)
    return bound * (1 + 1e-12)  # sums of floats: a bound must not be below by a rounding


def _new_distances(distance: Floats, weight: Floats, cost: float, connectivity: Connectivity) -> Floats:
    """Weighted sum of the distances of all pairs that a link joins, by its ends u and v in different parts."""
    parts = [np.flatnonzero(connectivity.component == part) for part in range(len(connectivity.sizes))]
    sums = np.zeros_like(distance)
    for one in parts:
        for other in parts:
            if one is not other:
                pairs = weight[np.ix_(one, other)]
                near = distance[np.ix_(one, one)] @ pairs.sum(axis=1)
                far = distance[np.ix_(other, other)] @ pairs.sum(axis=0)
                sums[np.ix_(one, other)] = near[:, None] + far[None, :] + cost * pairs.sum()
    return sums


def mean_distance(distance: Floats, weight: Floats) -> float | None:
    """Weighted mean of all distances of different nodes that have a path; None when there is none.

    Args:
        distance: from row to column, a square; infinite without a path.
        weight: of the same shape.
    """
    counts = np.isfinite(distance) & (weight > 0)
    np.fill_diagonal(counts, val=False)
    whole = float(weight[counts].sum())
    return float((distance[counts] * weight[counts]).sum()) / whole if whole else None


def even_weight(nodes: int) -> Floats:
    """All pairs alike: each direction weighs 1."""
    return np.full((nodes, nodes), 2.0)


def weight_of(rates: Sequence[tuple[int, int, float]], nodes: int) -> Floats:
    """Pairs by what they send.

    Args:
        rates: (source, destination, messages per second).
        nodes: number of routers.
    """
    weight = np.zeros((nodes, nodes))
    for src, dst, rate in rates:
        weight[src, dst] += rate
    return weight + weight.T
