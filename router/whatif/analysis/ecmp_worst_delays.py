"""Delays where traffic is split over equally short paths: that of the slowest of them, since some messages take it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from router.whatif.kernel.mesh_kernel import Kernel
from router.whatif.kernel.network_arrays import Network


class EcmpWorstDelays:
    """The slowest of all shortest paths, by both ends; worked out for one destination at a time, and kept."""

    def __init__(self, network: Network, kernel: Kernel, failed_links: Collection[int]) -> None:
        """Take the state in which the kernel is and stays, in which *failed_links* are down."""
        self._costs = kernel.distances()
        self._kept: dict[int, tuple[NDArray[np.int64], NDArray[np.bool_]]] = {}
        # Of each router: neighbor, cost and delay of each of its links.
        self._links: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        columns = (network.link_a, network.link_b, network.link_cost, network.link_cost_back, network.link_delay_us)
        for link, (a, b, cost, back, delay) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            if link not in failed_links:
                self._links[a].append((b, cost, delay))
                self._links[b].append((a, back, delay))

    def toward(self, dst: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Delay of the slowest path to *dst*, one way, microseconds, and whether all of it is known; both by router.

        Without a path: 0, and not known. A delay that is not known counts as 0.
        """
        if dst not in self._kept:
            far = self._costs[:, dst].tolist()
            delay, is_known = [0] * len(far), [cost >= 0 for cost in far]
            for router in sorted((router for router, cost in enumerate(far) if cost > 0), key=far.__getitem__):
                for peer, cost, own in self._links[router]:
                    if far[peer] >= 0 and far[peer] + cost == far[router]:
                        delay[router] = max(delay[router], delay[peer] + max(own, 0))
                        is_known[router] = is_known[router] and is_known[peer] and own >= 0
            self._kept[dst] = np.array(delay, dtype=np.int64), np.array(is_known, dtype=bool)
        return self._kept[dst]
