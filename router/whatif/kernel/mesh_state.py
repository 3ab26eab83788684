"""Everything of a mesh that failures change, put together: links, trees, loads, subscribers, delays."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Final

import cython

from router.whatif.kernel.address_delivery import AddressDelivery
from router.whatif.kernel.credit_bounded_balancing import BalancedAddresses
from router.whatif.kernel.ecmp_loads import EcmpLoads
from router.whatif.kernel.graph import Graph
from router.whatif.kernel.link_loads import LinkLoads
from router.whatif.kernel.network_arrays import Network
from router.whatif.kernel.path_delays import PathDelays
from router.whatif.kernel.spf_trees import SpfTrees

if not cython.compiled:  # else they come by the .pxd
    from router.whatif.kernel.c_arrays import ints, longs

SLICE: Final = 100_000
"""Demands."""


class MeshState:
    """A mesh in its base state, or with a scenario on top of that."""

    def __init__(
        self,
        network: Network,
        *,
        is_split: bool,
        has_percentiles: bool = True,
        origin: MeshState | None = None,
        links: Sequence[int] = (),
        routers: Sequence[int] = (),
    ) -> None:
        """The base state of a mesh.

        Args:
            network: the mesh.
            is_split: as in `Kernel`.
            has_percentiles: as there.
            origin: the same mesh with nothing failed, in its base state. It isn't changed.
            links: that have failed in the base state, by place. Only with *origin*.
            routers: the same of routers.
        """
        self.graph = Graph(network)
        for link in links:
            self.graph.take_down(link)
        for router in routers:
            self.graph.kill(router)
        self.trees: SpfTrees = SpfTrees(self.graph, None if origin is None else origin.trees)
        self.delays = PathDelays(self.trees, network, is_ranked=has_percentiles) if network.has_delays else None
        self.traffic = EcmpLoads(self.trees) if is_split else LinkLoads(self.trees)
        self.audience = AddressDelivery(self.trees, self.traffic, network)
        self.traffic.expect(self.audience.cells)
        self.balance = BalancedAddresses(self.trees, self.audience, self.delays, network)
        self._add_demands(network)
        self.audience.begin()
        self.balance.review()
        self.audience.settle()
        self.traffic.settle()

    def _add_demands(self, network: Network) -> None:
        # A slice at a time: there may be millions.
        for first in range(0, len(network.demand_src), SLICE):
            part = slice(first, first + SLICE)
            kept = (
                array("i", network.demand_src[part].tobytes()),
                array("i", network.demand_dst[part].tobytes()),
                array("q", network.demand_rate[part].tobytes()),
                array("q", network.demand_bytes[part].tobytes()),
            )
            srcs, dsts = ints(kept[0]), ints(kept[1])
            rates, volumes = longs(kept[2]), longs(kept[3])
            for index in range(len(kept[0])):
                self.traffic.demand(srcs[index], dsts[index], rates[index], volumes[index])

    def fail(self, links: Sequence[int], routers: Sequence[int]) -> None:
        """Let links and routers fail, in the base state."""
        for link in links:
            self.graph.take_down(link)
        for router in routers:
            self.graph.kill(router)
        self.trees.repair()
        if self.delays is not None:
            self.delays.update()
        self.traffic.shift()
        self.audience.review()
        self.balance.review()
        self.traffic.finish()

    def restore(self) -> None:
        """Back to the base state."""
        self.audience.restore()
        self.traffic.restore()
        self.trees.restore()
        if self.delays is not None:
            self.delays.restore()
