"""Connectivity of a graph: bridges and articulation points, by one walk in depth (Tarjan 1974).

Works on numbers: nodes are 0..n-1, links 0..m-1, and parallel links are links of their own, so that neither of two is a
bridge. Each bridge and each articulation point knows what falls off without it, as slices of one order of all nodes.

Source: R. E. Tarjan, A note on finding the bridges of a graph, Information Processing Letters 2 (1974); J. Hopcroft,
R. E. Tarjan, Algorithm 447, Communications of the ACM 16 (1973).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Slice = tuple[int, int]
"""Nodes `order[first:last]`."""


@attrs.frozen(kw_only=True, eq=False)
class Connectivity:
    """The parts of a graph, and what a single failure cuts off."""

    component: Ints
    """Number of the component of each node, counted from 0 in the order of the least node of each; by node."""
    sizes: Ints
    """Number of nodes of each component."""
    order: Ints
    """All nodes in preorder; the nodes below one follow it at once."""
    parent: Ints
    """Predecessor of each node on the walk, by node; -1 where a walk began."""
    bridges: Mapping[int, Slice]
    """Nodes on the far side of each link whose failure splits a component, by link."""
    cuts: Mapping[int, tuple[Slice, ...]]
    """Branches that each articulation point cuts off from the rest of its component when it fails, by node."""

    def pairs_split_by_link(self, link: int) -> int:
        """Ordered pairs of nodes that have no path any more when *link* fails."""
        if link not in self.bridges:
            return 0
        first, last = self.bridges[link]
        whole = int(self.sizes[self.component[self.order[first]]])
        return 2 * (last - first) * (whole - (last - first))

    def pairs_split_by_node(self, node: int) -> int:
        """Ordered pairs of other nodes that have no path any more when *node* fails."""
        parts = self.parts_without_node(node)
        whole = sum(parts)
        return whole * whole - sum(size * size for size in parts)

    def parts_without_node(self, node: int) -> list[int]:
        """Sizes of the parts into which the rest of its component falls when *node* fails; the largest first."""
        whole = int(self.sizes[self.component[node]]) - 1
        branches = [last - first for first, last in self.cuts.get(node, ())]
        rest = whole - sum(branches)
        return sorted((*branches, *((rest,) if rest else ())), reverse=True)

    def labels_without_node(self, node: int) -> Ints:
        """Number of the part in which each node is when *node* has failed, by node; -1 for *node* itself.

        Parts have nothing in common but that two nodes have a path if and only if their numbers are equal.
        """
        labels = self.component.copy()
        labels[node] = -1
        for at, (first, last) in enumerate(self.cuts.get(node, ())):
            labels[self.order[first:last]] = len(self.sizes) + at
        return labels

    def labels_without_link(self, link: int) -> Ints:
        """Labels of the connected parts when *link* has failed."""
        labels = self.component.copy()
        if link in self.bridges:
            first, last = self.bridges[link]
            labels[self.order[first:last]] = len(self.sizes)
        return labels


def analyse(nodes: int, ends: Sequence[tuple[int, int]]) -> Connectivity:
    """Walk the graph once, in O(nodes + links).

    Args:
        nodes: how many.
        ends: both ends of each link; no link has the same node at both.
    """
    near: list[list[tuple[int, int]]] = [[] for _ in range(nodes)]
    for link, (a, b) in enumerate(ends):
        near[a].append((b, link))
        near[b].append((a, link))
    walk = _Walk(near)
    for root in range(nodes):
        if walk.found[root] < 0:
            walk.start(root)
    component = np.array(walk.component, dtype=np.int64)
    return Connectivity(
        component=component,
        sizes=np.bincount(component),
        order=np.array(walk.order, dtype=np.int64),
        parent=np.array(walk.parent, dtype=np.int64),
        bridges=dict(sorted(walk.bridges.items())),
        cuts={node: tuple(slices) for node, slices in sorted(walk.cuts.items())},
    )


class _Walk:
    """One walk in depth, without recursion: paths are longer than Python's stack."""

    def __init__(self, near: list[list[tuple[int, int]]]) -> None:
        nodes = len(near)
        self.near = near
        self.found = [-1] * nodes
        self.low = [0] * nodes
        self.parent = [-1] * nodes
        self.component = [-1] * nodes
        self.order: list[int] = []
        self.bridges: dict[int, Slice] = {}
        self.cuts: dict[int, list[Slice]] = {}
        self._components = 0

    def start(self, root: int) -> None:
        """Walk the component of *root*."""
        self._enter(root)
        branches: list[Slice] = []
        stack = [(root, -1, iter(self.near[root]))]
        while stack:
            node, came_by, rest = stack[-1]
            for far, link in rest:
                if link == came_by:  # a parallel link back is another way, the same link is none
                    continue
                if self.found[far] >= 0:
                    self.low[node] = min(self.low[node], self.found[far])
                    continue
                self.parent[far] = node
                self._enter(far)
                stack.append((far, link, iter(self.near[far])))
                break
            else:
                stack.pop()
                if stack:
                    self._leave(node, came_by, branches if len(stack) == 1 else None)
        # Where the walk began there is nothing before it: two branches hang together by it alone.
        if len(branches) > 1:
            self.cuts[root] = branches[1:]
        self._components += 1

    def _enter(self, node: int) -> None:
        self.found[node] = self.low[node] = len(self.order)
        self.component[node] = self._components
        self.order.append(node)

    def _leave(self, node: int, came_by: int, branches_of_root: list[Slice] | None) -> None:
        before = self.parent[node]
        self.low[before] = min(self.low[before], self.low[node])
        below = (self.found[node], len(self.order))
        if self.low[node] > self.found[before]:
            self.bridges[came_by] = below
        if branches_of_root is not None:
            branches_of_root.append(below)
        elif self.low[node] >= self.found[before]:
            self.cuts.setdefault(before, []).append(below)
