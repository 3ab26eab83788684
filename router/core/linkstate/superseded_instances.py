"""Neighbors of which others report later news: they ran before a restart, or are another router of that id."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from mesh_config.models import LinkStateSettings
from router.core.ids_and_conditions import RouterId
from router.core.linkstate.lsdb import LinkStateDatabase, Node
from router.core.linkstate.messages import RouterAdvertisement
from router.core.linkstate.neighbors import Neighbors

LATER_NEWS: Final = "others have heard later news of it"
"""Reason for which a superseded instance is refused."""


class SupersededInstances:
    """Instances of neighbors that are superseded, by what others report of them.

    A router overrules at once what is said in its name. A neighbor that does not within `hello_max_age_s` is not the
    router that the others speak of. When it has gone, what they say is taken for true.
    """

    def __init__(self, *, neighbors: Neighbors, database: LinkStateDatabase, settings: LinkStateSettings) -> None:
        self.due = math.inf
        """Time at which `refuse` is to be called, seconds; infinity when nobody is watched."""
        self.believed: list[RouterAdvertisement] = []
        """Advertisements that have become true, each of a neighbor that is gone."""
        self._neighbors = neighbors
        self._database = database
        self._patience_s = settings.hello_max_age_s

    def note(self, node: Node, claim: RouterAdvertisement, now: float) -> None:
        """Note what others tell of a neighbor.

        Args:
            node: what is held of it.
            claim: later news.
            now: seconds, monotonic.
        """
        if node.rival is None or claim.numbers > node.rival.numbers:
            node.rival = claim
        node.rival_since = min(node.rival_since, now)
        self.due = min(self.due, node.rival_since + self._patience_s)

    def refuse(self, now: float) -> None:
        """Refuse those that have not overruled the others in time.

        Args:
            now: seconds, monotonic.
        """
        self.due = math.inf
        for router in list(self._neighbors.active):
            node = self._database.nodes.get(router)  # none of one that is forgotten, since no path leads there
            due = node.rival_since + self._patience_s if node is not None else math.inf
            if due <= now:
                self._neighbors.refuse_all(router, LATER_NEWS, now)
            else:
                self.due = min(self.due, due)

    def believe(self, gone: Iterable[RouterId]) -> list[RouterAdvertisement]:
        """Take for true what others told of neighbors.

        Args:
            gone: neighbors that have no connection any more.
        Returns: what is true of those that are elsewhere; all that is held of them is void.
        """
        nodes = (self._database.nodes.get(router) for router in sorted(gone))
        found = [node.rival for node in nodes if node is not None and node.rival is not None]
        self.believed += found
        return found

    def take_believed(self) -> list[RouterAdvertisement]:
        """Take the advertisements that have become true: each is returned once."""
        taken, self.believed = self.believed, []
        return taken
