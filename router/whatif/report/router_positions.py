"""Positions of routers in a picture: on a map when the model knows where they are, else so that distances show.

All of it is computed the same way each time: the same mesh gives the same picture.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.whatif.model.mesh_model import Model

Floats = NDArray[np.float64]

MAP_SHARE: Final = 0.8
"""Minimum share of routers with coordinates for a map; the others are put near their neighbors."""
PIVOTS: Final = 40
STRESS_CELLS: Final = 16_000_000
"""Pairs of routers times rounds of improvement: about half a second."""
MOST_ROUNDS: Final = 80


def positions(model: Model) -> Floats:
    """Positions of routers in the order of ids: (x, y), x to the right and y upward, in equal units."""
    count = len(model.routers)
    place = {router.id: at for at, router in enumerate(model.routers)}
    ends = np.array([(place[link.a], place[link.b]) for link in model.links], dtype=np.int64).reshape(-1, 2)
    known = np.array([router.latitude is not None and router.longitude is not None for router in model.routers])
    if known.sum() >= max(2, MAP_SHARE * count):
        on_map = _on_map(model, known, ends)
        if np.ptp(on_map, axis=0).max() > 0:
            return on_map
    return _by_distance(count, ends)


def _on_map(model: Model, known: NDArray[np.bool_], ends: NDArray[np.int64]) -> Floats:
    """Longitude and latitude as in an equirectangular map whose scale is right in the middle."""
    points = np.array([(router.longitude or 0.0, router.latitude or 0.0) for router in model.routers])
    points[:, 0] *= math.cos(math.radians(float(points[known, 1].mean())))
    missing = np.flatnonzero(~known)
    middle = points[known].mean(axis=0)
    points[missing] = middle
    step = 0.04 * float(np.ptp(points[known], axis=0).max())
    for _ in range(3):  # one that is only beside others without a place needs more than one round
        for at, router in enumerate(missing):
            near = [a if b == router else b for a, b in ends if router in (a, b)]
            # Beside its neighbors, each in another direction: in the middle of two it would be on a line of theirs.
            angle = 2.399963 * (at + 1)
            offset = step * np.array([math.cos(angle), math.sin(angle)])
            points[router] = (points[near].mean(axis=0) if near else middle) + offset
    return points


def _by_distance(count: int, ends: NDArray[np.int64]) -> Floats:
    """Positions with distances like hops in the mesh: pivot MDS, then a few rounds against stress.

    Source: U. Brandes, C. Pich, Eigensolver methods for progressive multidimensional scaling of large data, GD 2006;
    E. R. Gansner, Y. Koren, S. North, Graph drawing by stress majorization, GD 2004.
    """
    if count < 3 or not len(ends):
        angles = 2 * np.pi * np.arange(count) / max(count, 1)
        return np.column_stack([np.cos(angles), np.sin(angles)])
    near: list[list[int]] = [[] for _ in range(count)]
    for a, b in ends.tolist():
        near[a].append(b)
        near[b].append(a)
    is_small = 5 * count * count <= STRESS_CELLS
    hops = np.array([_hops(near, root) for root in (range(count) if is_small else _pivots(near))])
    far = float(hops[np.isfinite(hops)].max()) + 2.0
    hops = np.where(np.isfinite(hops), hops, far)  # parts without a path stand beside each other
    points = _pivot_mds(hops if len(hops) <= PIVOTS else hops[:: math.ceil(count / PIVOTS)])
    if is_small:
        points = _relaxed(points, hops, min(MOST_ROUNDS, STRESS_CELLS // (count * count)))
    return points


def _hops(near: list[list[int]], root: int) -> Floats:
    """Hops from *root* to each router, `inf` without a path."""
    found = [math.inf] * len(near)
    found[root] = 0.0
    ring, hops = [root], 0
    while ring:
        hops += 1
        following = []
        for node in ring:
            for far in near[node]:
                if found[far] == math.inf:
                    found[far] = hops
                    following.append(far)
        ring = following
    return np.array(found)


def _pivots(near: list[list[int]]) -> list[int]:
    """Routers far from each other: each next one is the farthest from all before."""
    pivots = [0]
    nearest = _hops(near, 0)
    while len(pivots) < min(PIVOTS, len(near)):
        pivots.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, _hops(near, pivots[-1]))
    return pivots


def _pivot_mds(hops: Floats) -> Floats:
    """Two axes from the distances of all routers to some of them."""
    squared = hops.T**2
    centred = squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean()
    _, vectors = np.linalg.eigh(centred.T @ centred)
    axes = vectors[:, ::-1][:, :2] if vectors.shape[1] > 1 else np.column_stack([vectors, np.zeros_like(vectors)])
    points = centred @ axes
    # The sign of an eigenvector means nothing: the first router that is off the axis is on its positive side.
    for axis in range(2):
        off = np.flatnonzero(np.abs(points[:, axis]) > 1e-9)
        if off.size and points[off[0], axis] < 0:
            points[:, axis] *= -1
    size = float(np.abs(points).max()) or 1.0
    # Routers that are alike would lie on each other, and never come apart.
    angles = 2.399963 * np.arange(len(points))
    jitter = np.column_stack([np.cos(angles), np.sin(angles)])
    scaled: Floats = points / size * float(hops.max()) / 2 + 0.05 * jitter
    return scaled


def _relaxed(points: Floats, hops: Floats, rounds: int) -> Floats:
    """Each router moves to where the others, the near ones above all, want it to be."""
    # Half the digits take half the time, and a picture needs fewer still.
    with np.errstate(divide="ignore"):
        weight = np.where(hops > 0, hops**-2.0, 0.0).astype(np.float32)
    total = weight.sum(axis=1)[:, None]
    pull = weight * hops.astype(np.float32)
    places = points.astype(np.float32)
    for _ in range(rounds):
        dx = places[:, 0][:, None] - places[:, 0][None, :]
        dy = places[:, 1][:, None] - places[:, 1][None, :]
        length = np.hypot(dx, dy)
        np.fill_diagonal(length, 1.0)
        scale = pull / np.maximum(length, 1e-4, out=length)
        dx *= scale
        dy *= scale
        places = (weight @ places + np.column_stack([dx.sum(axis=1), dy.sum(axis=1)])) / total
    return places.astype(np.float64)
