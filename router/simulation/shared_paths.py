"""Graphs and shortest paths that many control planes in one process share, each worked out once, or repaired.

A real router finds its paths alone. A thousand planes that have heard the same news see the same graph, and nearly the
graph of the moment before: here they share it, and a plane's new paths are its old ones, repaired below the links that
have changed. The paths are those of `router.core.linkstate.spf.shortest_paths`, every tie included; a test compares.
"""

from __future__ import annotations

import bisect
import heapq
import weakref
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from router.core.ids_and_conditions import RouterId
from router.core.linkstate.spf import Edges, Paths, Topology

MOST_CHANGED: Final = 0.2
"""Part of the routers above which, when their links have changed, paths are found anew."""


@attrs.frozen
class Change:
    """Difference of one graph from another."""

    gone: tuple[RouterId, ...]
    heads: tuple[RouterId, ...]
    """Routers of the new graph with an edge toward them that is new, gone, or of another cost; sorted."""


class Graph:
    """One graph, which does not change, and the paths found in it so far. It lives as long as a plane has it."""

    __slots__ = ("__weakref__", "_change", "edges", "number", "paths", "size")

    def __init__(self, edges: Edges, number: int) -> None:
        self.edges = edges
        self.size = _size(edges)
        """Number of its edges."""
        self.number = number
        """Unique id of the graph within its store."""
        self.paths: dict[RouterId, Paths] = {}
        """Paths found in the graph so far, by root."""
        self._change: tuple[int, Change | None] = (0, None)

    def change_from(self, before: Graph) -> Change | None:
        """Change since *before*; None when it is too much for a repair."""
        # All planes come from the same graph, mostly.
        if self._change[0] != before.number:
            self._change = (before.number, _change(before.edges, self.edges))
        return self._change[1]


class GraphStore:
    """The graphs that planes have now."""

    def __init__(self) -> None:
        self._known: list[weakref.ref[Graph]] = []
        self._count = 0

    def graph(self, edges: Edges) -> Graph:
        """The graph with these edges."""
        is_gone = False
        size = _size(edges)
        for place in range(len(self._known) - 1, -1, -1):
            known = self._known[place]()
            if known is None:
                is_gone = True
            elif known.size == size and known.edges == edges:
                return known
        if is_gone:
            self._known = [reference for reference in self._known if reference() is not None]
        self._count += 1
        found = Graph(edges, self._count)
        self._known.append(weakref.ref(found))
        return found


class SharedTopology(Topology):
    """A plane's `Topology` that takes graphs and paths from a store; `runs` counts as if it had found them itself."""

    def __init__(self, store: GraphStore) -> None:
        super().__init__()
        self._store = store
        self._shared = store.graph({})
        self._before: dict[RouterId, tuple[Graph, Paths]] = {}

    def replace(self, edges: Edges) -> bool:
        """See `Topology.replace`."""
        if edges == self.edges:
            return False
        self._before = {root: (self._shared, paths) for root, paths in self._paths.items()}
        self._paths.clear()
        self._shared = self._store.graph(edges)
        self.edges = self._shared.edges
        return True

    def paths(self, root: RouterId) -> Paths | None:
        """See `Topology.paths`."""
        found = self._paths.get(root)
        if found is None and root in self.edges:
            self.runs += 1
            graph = self._shared
            found = graph.paths.get(root)
            if found is None:
                found = graph.paths[root] = self._find(graph, root)
            self._paths[root] = found
            self._before.pop(root, None)
        return found

    def _find(self, graph: Graph, root: RouterId) -> Paths:
        if root in self._before:
            before, paths = self._before[root]
            change = graph.change_from(before)
            if change is not None:
                return repaired(paths, graph.edges, change)
        return found_anew(graph.edges, root)


def _size(edges: Edges) -> int:
    return sum(map(len, edges.values()))


def found_anew(edges: Edges, root: RouterId) -> Paths:
    """The shortest paths from *root*, which is in the graph."""
    distance: dict[RouterId, int] = {root: 0}
    _spread(edges, distance, [(0, root)], {})
    return _whole(edges, root, distance, {}, distance.keys(), sorted(distance, key=lambda it: (distance[it], it)))


def repaired(paths: Paths, edges: Edges, change: Change) -> Paths:
    """The shortest paths from the same root after *change*; *edges* are the graph that it led to."""
    root = paths.root
    before = paths.predecessor
    # Below an edge that is gone or costs more nothing is known any more; other edges may have become better.
    distance = dict(paths.distance)
    lost: set[RouterId] = {router for router in change.gone if router in distance}
    for head in change.heads:
        near = before.get(head)
        if near is not None and near in edges and distance[head] != distance[near] + edges[near].get(head, 0):
            lost.add(head)
    if lost:
        for router in paths.order:
            if before.get(router) in lost:
                lost.add(router)
        for router in lost:
            del distance[router]
    heap: list[tuple[int, RouterId]] = []
    changed: dict[RouterId, None] = dict.fromkeys(lost)
    for head in sorted({*(router for router in lost if router in edges), *change.heads}):
        offer = min((distance[near] + edges[near][head] for near in edges[head] if near in distance), default=None)
        if offer is not None and offer < distance.get(head, offer + 1):
            distance[head] = offer
            heap.append((offer, head))
            changed[head] = None
    heapq.heapify(heap)
    _spread(edges, distance, heap, changed)
    there = [router for router in changed if router in distance]
    doubtful = {*there, *(head for head in change.heads if head in distance)}
    for router in there:
        doubtful.update(edges[router])
    if not changed:
        order = list(paths.order)
    else:
        order = [router for router in paths.order if router not in changed]
        _merge(order, there, distance)
    return _whole(edges, root, distance, before, doubtful, order)


def _spread(
    edges: Edges, distance: dict[RouterId, int], heap: list[tuple[int, RouterId]], changed: dict[RouterId, None]
) -> None:
    """Dijkstra's algorithm from what is in the heap, whose distances are set; notes whose distance it changes."""
    while heap:
        cost, near = heapq.heappop(heap)
        if cost > distance[near]:
            continue
        for far, more in edges[near].items():
            known = distance.get(far)
            if known is None or cost + more < known:
                distance[far] = cost + more
                changed[far] = None
                heapq.heappush(heap, (cost + more, far))


def _merge(order: list[RouterId], added: list[RouterId], distance: Mapping[RouterId, int]) -> None:
    """Put *added* into *order*, by (distance, id)."""

    def key(router: RouterId) -> tuple[int, RouterId]:
        return (distance[router], router)

    if 8 * len(added) > len(order):
        order.extend(added)
        order.sort(key=key)
        return
    for router in added:
        order.insert(bisect.bisect_left(order, key(router), key=key), router)


def _whole(
    edges: Edges,
    root: RouterId,
    distance: dict[RouterId, int],
    before: Mapping[RouterId, RouterId],
    doubtful: Iterable[RouterId],
    order: list[RouterId],
) -> Paths:
    """Paths of known distances.

    Args:
        edges: of the graph.
        root: from where the paths lead.
        distance: of each router that can be reached.
        before: predecessors as they were,
        doubtful: and of whom they may be others now.
        order: routers, the nearest first.
    """
    chosen = dict(before)
    for router in doubtful:
        if router != root:
            cost = distance[router]
            chosen[router] = min(
                [
                    (distance[near], near)
                    for near in edges[router]
                    if near in distance and distance[near] + edges[near][router] == cost
                ]
            )[1]
    if len(chosen) >= len(distance):
        chosen = {router: near for router, near in chosen.items() if router in distance}
    next_hop: dict[RouterId, RouterId] = {}
    hops = {root: 0}
    for router in order[1:]:
        near = chosen[router]
        next_hop[router] = router if near == root else next_hop[near]
        hops[router] = hops[near] + 1
    return Paths(
        root=root,
        distance=distance,
        predecessor=chosen,
        order=tuple(order),
        next_hop=next_hop,
        radius=max(hops.values()),
    )


def _change(before: Edges, after: Edges) -> Change | None:
    """Find how *after* differs; None when a repair would be more work than a new search.

    An edge is in a plane's graph in both directions or in none (`LinkStateDatabase.edges`).
    """
    gone = tuple(sorted(router for router in before if router not in after))
    heads: set[RouterId] = set()
    for near, peers in after.items():
        old = before.get(near, {})
        if old != peers:
            heads.update(far for far in peers if peers[far] != old.get(far))
            heads.update(far for far in old if far not in peers and far in after)
    for router in gone:
        heads.update(far for far in before[router] if far in after)
    if len(heads) + len(gone) > MOST_CHANGED * len(after) + 2:
        return None
    return Change(gone, tuple(sorted(heads)))
