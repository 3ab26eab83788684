"""Shortest paths over the graph of routers, alike at every router that has the same link state.

Distances come from networkx, ties never do: its choice among predecessors at the same distance depends on the order in
which edges were added, and a multicast along trees that differ from router to router is duplicated or lost. Among the
predecessors that a shortest path may use, the one with the smallest (distance from the root, id) is taken.

networkx is imported by `load_algorithms` when a router starts that may have neighbors, else with the first one: it
takes 13 MB and a tenth of a second, which a router for clients alone has no use for.

Source: docs/reference/inter-router-protocol.md#ties.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING

import attrs

from router.core.ids_and_conditions import RouterId

if TYPE_CHECKING:
    import networkx as nx

Edges = Mapping[RouterId, Mapping[RouterId, int]]
"""Cost of each directed edge, 1 at least, by its two ends; every router is a key."""


@attrs.frozen(kw_only=True)
class Paths:
    """The shortest paths from *root* to every router that it reaches: a tree."""

    root: RouterId
    distance: Mapping[RouterId, int]
    """Distance of each router that is reached, the root included."""
    predecessor: Mapping[RouterId, RouterId]
    """The router before it on its path; the root has none."""
    order: tuple[RouterId, ...]
    """Every router reached by (distance, id): predecessors come before their successors."""
    next_hop: Mapping[RouterId, RouterId]
    """The first router after the root on the path; the root has none."""
    radius: int
    """Number of hops of the longest path."""


@attrs.frozen(kw_only=True)
class TreePlace:
    """The place of one router in the tree of *root*, as multicast needs it."""

    root: RouterId
    predecessor: RouterId | None
    """Neighbor toward the root; None at the root itself and when the root does not reach this router."""
    children: Mapping[RouterId, frozenset[RouterId]]
    """Neighbors away from the root, in the order of their ids, each with the routers below it, itself included."""
    flooded: frozenset[RouterId] = frozenset()
    """Routers of the whole tree that flood multicasts, and all below these: their copies have no numbers."""


def shortest_paths(graph: nx.DiGraph[RouterId, dict[str, int], dict[str, int]], costs: Edges, root: RouterId) -> Paths:
    """Every shortest path from *root*, which is in *graph*, by the *costs* of its edges."""
    import networkx as nx  # noqa: PLC0415 - see above

    def cost(near: RouterId, far: RouterId, _: object) -> int:
        return costs[near][far]

    predecessors, found = nx.dijkstra_predecessor_and_distance(graph, root, weight=cost)
    # Whole costs: networkx' types say float.
    distances = {router: int(distance) for router, distance in found.items()}
    order = tuple(sorted(distances, key=lambda router: (distances[router], router)))
    chosen: dict[RouterId, RouterId] = {}
    next_hop: dict[RouterId, RouterId] = {}
    hops = {root: 0}
    for router in order[1:]:
        before = min(predecessors[router], key=lambda candidate: (distances[candidate], candidate))
        chosen[router] = before
        next_hop[router] = router if before == root else next_hop[before]
        hops[router] = hops[before] + 1
    return Paths(
        root=root, distance=distances, predecessor=chosen, order=order, next_hop=next_hop, radius=max(hops.values())
    )


def load_algorithms() -> None:
    """Import networkx, for a process that knows that there will be neighbors."""
    _new_graph()


def _new_graph() -> nx.DiGraph[RouterId, dict[str, int], dict[str, int]]:
    import networkx as nx  # noqa: PLC0415 - see above

    return nx.DiGraph()


class Topology:
    """The graph and the paths in it from any root, worked out when first asked for and kept until the graph changes."""

    def __init__(self) -> None:
        self.edges: Edges = {}
        self.runs = 0
        """Number of runs of Dijkstra's algorithm since the start."""
        self._graph: nx.DiGraph[RouterId, dict[str, int], dict[str, int]] | None = None
        """Made with the first edges; their costs are in `edges` alone."""
        self._paths: dict[RouterId, Paths] = {}

    def __getstate__(self) -> dict[str, object]:
        # All else follows from the edges; trees are worked out when they are asked for, and are no state.
        return {"edges": self.edges}

    def __setstate__(self, state: Mapping[str, Edges]) -> None:
        Topology.__init__(self)
        self.replace(state["edges"])

    def replace(self, edges: Edges) -> bool:
        """Take *edges* as the whole graph. Returns: whether it differs from the one before."""
        if edges == self.edges:
            return False
        before, self.edges = self.edges, edges
        self._paths.clear()
        # To make the graph anew, or to note costs in it, would take longer than Dijkstra's algorithm.
        graph = self._graph = self._graph if self._graph is not None else _new_graph()
        graph.remove_nodes_from([router for router in before if router not in edges])
        graph.add_nodes_from(router for router in edges if router not in before)
        for near, peers in edges.items():
            old = before.get(near, {})
            if peers.keys() != old.keys():
                graph.remove_edges_from([(near, far) for far in old if far not in peers])
                graph.add_edges_from([(near, far) for far in peers if far not in old])
        return True

    def count_edges(self) -> int:
        """Count the edges, both directions."""
        return sum(map(len, self.edges.values()))

    def paths(self, root: RouterId) -> Paths | None:
        """The paths from *root*; None when it is not in the graph."""
        found = self._paths.get(root)
        if found is None and root in self.edges:
            assert self._graph is not None, "it has routers"
            self.runs += 1
            found = self._paths[root] = shortest_paths(self._graph, self.edges, root)
        return found

    def tree(self, root: RouterId, at: RouterId, flooding: Set[RouterId] = frozenset()) -> TreePlace:
        """Find the place of router *at* in the tree of *root*; nothing leads anywhere when *root* does not reach it.

        Args:
            root: router in which the tree has its root.
            at: router of which the place is found.
            flooding: routers that send multicasts along every path.
        """
        paths = self.paths(root)
        if paths is None or at not in paths.distance:
            return TreePlace(root=root, predecessor=None, children={})
        # A predecessor comes before its successors, so one pass finds the branch of each router below.
        branch: dict[RouterId, RouterId] = {}
        below: dict[RouterId, list[RouterId]] = {}
        flooded: set[RouterId] = set()
        for router in paths.order:
            before = paths.predecessor.get(router)
            if flooding and (router in flooding or before in flooded):
                flooded.add(router)
            if before is None:
                continue
            child = router if before == at else branch.get(before)
            if child is not None:
                branch[router] = child
                below.setdefault(child, []).append(router)
        children = {child: frozenset(below[child]) for child in sorted(below)}
        return TreePlace(
            root=root, predecessor=paths.predecessor.get(at), children=children, flooded=frozenset(flooded)
        )

    def check_invariants(self) -> None:
        """Assert that costs are positive, both ends of an edge are there, and kept paths are trees."""
        for near, peers in self.edges.items():
            for far, cost in peers.items():
                assert cost >= 1
                assert far in self.edges
                assert far != near
        for root, paths in self._paths.items():
            assert set(paths.order) == set(paths.distance) == {root, *paths.predecessor}
            for router, before in paths.predecessor.items():
                assert paths.distance[router] == paths.distance[before] + self.edges[before][router]
