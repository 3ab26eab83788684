"""This router's routes, worked out from the link state database.

Source: docs/reference/inter-router-protocol.md#paths.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import attrs

from router.core.ids_and_conditions import ConnectionId, RouterId
from router.core.linkstate.control_message_sender import ControlMessageSender, KnownRoute
from router.core.linkstate.lsdb import LinkStateDatabase
from router.core.linkstate.neighbors import Neighbors
from router.core.linkstate.spf import Topology


@attrs.frozen(kw_only=True)
class RoutesDiff:
    """Difference that a computation of routes made."""

    lost: tuple[RouterId, ...]
    found: tuple[RouterId, ...]
    """Routers that are newly reachable, nearest first."""
    moved: tuple[RouterId, ...]
    """Routers that are reachable as before, by another connection or at another cost; nearest first."""
    repriced: tuple[RouterId, ...] = ()
    """Routers in `moved` whose cost is another one."""
    is_topology: bool
    """Whether the graph changed."""

    def __bool__(self) -> bool:
        return bool(self.lost or self.found or self.moved or self.is_topology)


class RouteComputation:
    """Computes the routes and puts them where control messages find them (`ControlMessageSender.routes`)."""

    def __init__(
        self, *, sender: ControlMessageSender, neighbors: Neighbors, database: LinkStateDatabase, topology: Topology
    ) -> None:
        self.topology = topology
        self.known_edges: Mapping[RouterId, Mapping[RouterId, int]] = {}
        """The graph as last heard, with what an unreachable router has said and not confirmed since."""
        self.runs = 0
        """Number of computations since the start."""
        self._is_doubting = False
        """Whether `known_edges` has more than the edges that count."""
        self._given_up: set[RouterId] = set()
        """Routers whose routes were given up before others were looked for."""
        self._sender = sender
        self._neighbors = neighbors
        self._database = database

    def compute(self, own_peers: Mapping[RouterId, int], now: float) -> RoutesDiff:
        """Compute all routes anew.

        Args:
            own_peers: this router's link state; each of them has an active connection.
            now: seconds, monotonic.
        """
        self.runs += 1
        is_doubting = self._database.doubt_what_is_due(now)
        edges = self._database.edges(own_peers)
        is_topology = self.topology.replace(edges)
        paths = self.topology.paths(self._sender.router_id)
        assert paths is not None
        before = self._sender.routes
        routes: dict[RouterId, KnownRoute] = {}
        found: list[RouterId] = []
        moved: list[RouterId] = []
        repriced: list[RouterId] = []
        for router in paths.order[1:]:
            hop = paths.next_hop[router]
            connection = self._neighbors.active[hop].connection
            cost = paths.distance[router]
            route = before.get(router)
            # Most stay as they were, in a large mesh nearly all.
            if route is None or route.cost != cost or route.next_hop != hop or route.connection != connection:
                if route is None:
                    found.append(router)
                    self._database.reach(self._database.node(router, now))
                else:
                    moved.append(router)
                    if route.cost != cost:
                        repriced.append(router)
                route = KnownRoute(router=router, connection=connection, next_hop=hop, cost=cost)
            routes[router] = route
        # DEV-2: what is unreachable goes now, not when its link state is too old.
        lost = sorted(before.keys() - routes.keys())
        for router in lost:
            self._database.lose(router)
        for router in sorted(self._given_up.union(lost) - routes.keys()):
            self._database.doubt(router, now)
        self._given_up.clear()
        known = self._database.edges(own_peers, with_unconfirmed=True) if is_doubting else edges
        if is_doubting or self._is_doubting:
            is_topology |= known != self.known_edges
        self.known_edges, self._is_doubting = known, is_doubting
        self._sender.take_routes(routes, paths.radius)
        return RoutesDiff(
            lost=tuple(lost),
            found=tuple(found),
            moved=tuple(moved),
            repriced=tuple(repriced),
            is_topology=is_topology,
        )

    def drop(self, connections: Collection[ConnectionId]) -> RoutesDiff:
        """Give up the routes that lead over *connections*, which are lost, until others are computed."""
        kept: dict[RouterId, KnownRoute] = {}
        lost: list[RouterId] = []
        for router, route in self._sender.routes.items():
            if route.connection in connections:
                lost.append(router)
                self._given_up.add(router)
                self._database.lose(router)
            else:
                kept[router] = route
        self._sender.take_routes(kept, self._sender.radius)
        return RoutesDiff(lost=tuple(sorted(lost)), found=(), moved=(), is_topology=False)

    def told_along(self, trace: tuple[RouterId, ...]) -> set[RouterId]:
        """Routers that hear what has come by *trace* from a router of our kind in it.

        The first has told all of its neighbors, and each further one those of its own that hear of it from none before.
        """
        found: set[RouterId] = set()
        for router in set(trace):
            node = self._database.nodes.get(router)
            if node is not None and node.has_trees:  # DEV-39: so only routers of our kind do it
                found.update(self.topology.edges.get(router, ()))
        return found

    def check_invariants(self) -> None:
        """Assert that routes, nodes and neighbors agree."""
        self.topology.check_invariants()
        for router, route in self._sender.routes.items():
            assert self._database.nodes[router].is_reachable
            assert self._neighbors.active[route.next_hop].connection == route.connection
        for router, node in self._database.nodes.items():
            assert node.is_reachable == (router in self._sender.routes)
