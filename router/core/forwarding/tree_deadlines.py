"""When which of many trees is due."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping

from router.core.forwarding.multicast_tree import MulticastTree
from router.core.ids_and_conditions import RouterId

SPARE = 64
"""Times that have changed since, before they are thrown away."""


class TreeDeadlines:
    """Trees by the time at which they need a turn without an event. A tree's time changes in its turn only."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, MulticastTree]] = []
        self._room = SPARE
        self._number = 0

    def note(self, tree: MulticastTree) -> None:
        """A tree has had a turn."""
        due = tree.next_deadline()
        if due == math.inf:
            return
        self._number += 1
        heapq.heappush(self._heap, (due, self._number, tree))
        if len(self._heap) > self._room:
            self._heap = [item for item in self._heap if item[2].next_deadline() == item[0]]
            heapq.heapify(self._heap)
            self._room = 2 * len(self._heap) + SPARE

    def next(self, trees: Mapping[RouterId, MulticastTree]) -> float:
        """When the next of *trees* is due, seconds; infinity when never."""
        while self._heap:
            due, _, tree = self._heap[0]
            if tree.next_deadline() == due and trees.get(tree.ingress) is tree:
                return due
            heapq.heappop(self._heap)
        return math.inf

    def take(self, now: float, trees: Mapping[RouterId, MulticastTree]) -> dict[RouterId, None]:
        """Those of *trees* that are due; they are to have a turn."""
        found: dict[RouterId, None] = {}
        while self.next(trees) <= now:
            found[heapq.heappop(self._heap)[2].ingress] = None
        return found
