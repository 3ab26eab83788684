"""Prediction of the copies that flooding neighbors make of a multicast, so that each subscriber gets one.

A qdrouterd sends a multicast to each next hop toward a subscriber, but for those that its trace names, whether they
have a copy or not. Which that are follows from the link state. So a router that gives a copy to a qdrouterd knows
which others will get it by that, and can keep it from the rest: it names them in the trace.

Source: docs/reference/inter-router-protocol.md#multicast;
docs/explanation/deviations.md#dev-1-a-multicast-arrives-once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from router.core.ids_and_conditions import RouterId
from router.core.linkstate.spf import Paths, Topology

MOST_COPIES: Final = 2000
"""Maximum number of copies that are followed; where there are more, the flood is left to itself."""
Edge = tuple[RouterId, RouterId]
"""A copy, by the router that sends it and the one that gets it."""


class MulticastCopyPredictor:
    """The copies of multicasts to the subscribers at some routers.

    Args:
        is_flooding: whether a router sends copies along every path, and not along trees only.
    """

    def __init__(
        self, topology: Topology, subscribers: Collection[RouterId], is_flooding: Callable[[RouterId], bool]
    ) -> None:
        self._topology = topology
        self._subscribers = subscribers
        self._is_flooding = is_flooding
        self._hops: dict[RouterId, list[RouterId]] = {}

    def _next_hops(self, router: RouterId) -> list[RouterId]:
        """Neighbors that a router sends copies to, but for those that the trace names."""
        found = self._hops.get(router)
        if found is None:
            paths = self._topology.paths(router)
            hops = paths.next_hop if paths is not None else {}
            found = self._hops[router] = sorted({hops[one] for one in self._subscribers if one in hops})
        return found

    def copies(self, router: RouterId, trace: tuple[RouterId, ...]) -> set[Edge] | None:
        """The copies that follow when a flooding router gets one, up to the first router that doesn't flood.

        Args:
            router: that gets it.
            trace: of the copy that it gets; empty when the message enters there.
        Returns: None when there are too many.
        """
        found: set[Edge] = set()
        open_: list[tuple[RouterId, tuple[RouterId, ...]]] = [(router, trace)]
        count = 0
        while open_:
            here, passed = open_.pop()
            paths = self._topology.paths(here)
            if paths is None or len(passed) > paths.radius + 1:
                continue
            onward = (*passed, here)
            for hop in self._next_hops(here):
                if hop in onward:
                    continue
                count += 1
                if count > MOST_COPIES:
                    return None
                if self._arrives(hop, onward):
                    found.add((here, hop))
                    if self._is_flooding(hop):
                        open_.append((hop, onward))
        return found

    def _arrives(self, router: RouterId, trace: tuple[RouterId, ...]) -> bool:
        """Whether a router takes a copy with that trace: a qdrouterd drops what has come a longer way than it knows."""
        paths = self._topology.paths(router)
        return not self._is_flooding(router) or (paths is not None and len(trace) <= paths.radius + 1)

    def trace(self, ingress: RouterId, me: RouterId, child: RouterId) -> tuple[RouterId, ...] | None:
        """The trace of a copy for a flooding child in the tree of *ingress*.

        Returns: empty when none is better than that of the way it came; None when no copy is to be sent, since all
            routers that should have it from the child get it by the flood from the ingress router.
        """
        paths = self._topology.paths(ingress)
        if paths is None:
            return ()
        part = self._part(paths, child)
        wanted = self._wanted(paths, part)
        if self._is_flooding(ingress):
            flooded = self.copies(ingress, ())
            if flooded is not None:
                reached = {router for _, router in flooded}
                if child in reached and all(self._is_served(edge, flooded, reached) for edge in wanted):
                    return None
        beyond = sorted(
            {
                peer
                for router in part
                for peer in self._topology.edges.get(router, {})
                if peer not in part and peer != me and self._is_flooding(peer)
            }
        )
        if not beyond:
            return ()
        trace = (me, *beyond)
        if self._reaches(child, trace, wanted):
            return trace
        only = self._by_one(paths, me, child)
        if only != ():
            return only
        for left_out in beyond:  # a copy too many is better than none
            trace = (me, *(one for one in beyond if one != left_out))
            if len(trace) > 1 and self._reaches(child, trace, wanted):
                return trace
        return ()

    def _by_one(self, paths: Paths, me: RouterId, child: RouterId) -> tuple[RouterId, ...] | None:
        """Find the trace of a copy where it can't name all: one child gets the copy, and floods it to the others."""
        heads = [
            peer
            for peer in sorted(self._topology.edges.get(me, {}))
            if paths.predecessor.get(peer) == me and self._is_flooding(peer)
        ]
        parts = {head: self._part(paths, head) for head in heads}
        heads = [head for head in heads if self._wanted(paths, parts[head]) or head in self._subscribers]
        wanted = [edge for head in heads for edge in self._wanted(paths, parts[head])]
        wanted += [(me, head) for head in heads]
        for head in heads:
            if self._reaches(head, (me,), wanted):
                return (me,) if head == child else None
        return ()

    def _reaches(self, child: RouterId, trace: tuple[RouterId, ...], wanted: list[Edge]) -> bool:
        """Whether a copy for the child with that trace brings one along each of the edges *wanted*."""
        found = self.copies(child, trace) if self._arrives(child, trace) else None
        if found is None:
            return False
        reached = {child, *(router for _, router in found)}
        return all(self._is_served(edge, found, reached) for edge in wanted)

    def _is_served(self, edge: Edge, copies: set[Edge], reached: set[RouterId]) -> bool:
        """Whether a router gets a copy: one that keeps to trees only from its predecessor."""
        return edge[1] in reached if self._is_flooding(edge[1]) else edge in copies

    def _part(self, paths: Paths, child: RouterId) -> set[RouterId]:
        """The child and those below it that get copies by flooding routers only, all flooding themselves."""
        part = {child}
        for router in paths.order:  # predecessors come first
            if paths.predecessor.get(router) in part and self._is_flooding(router):
                part.add(router)
        return part

    def _wanted(self, paths: Paths, part: set[RouterId]) -> list[Edge]:
        """Edges of the tree by which the subscribers in that part and below are reached from within it."""
        wanted: dict[Edge, None] = {}
        for subscriber in self._subscribers:
            router = subscriber
            before = paths.predecessor.get(router)
            while before is not None:
                if before in part:
                    wanted[before, router] = None
                router, before = before, paths.predecessor.get(before)
        return list(wanted)
