"""Requests for link state that did not come by itself; answers others' requests where these would get lost."""

from __future__ import annotations

import math
from typing import Final

from mesh_config.models import LinkStateSettings
from router.core.events import ControlReceived
from router.core.ids_and_conditions import ConnectionId, RouterId
from router.core.linkstate.control_message_sender import ControlMessageSender, link_state_to
from router.core.linkstate.due_routers import DueRouters
from router.core.linkstate.lsdb import LinkStateDatabase, Node
from router.core.linkstate.messages import LinkStateRequest
from router.core.linkstate.neighbors import Neighbors

SOON: Final = 8
"""Number of requests for the same link state at short intervals: a router that answers none of them may not be
there."""


class LinkStateRequests:
    """The LSRs of one router.

    Routes come from link state, so old link state may lead a question in a circle: this router sees a way where all
    others see one through this router. A neighbor is therefore asked directly, a repeated question for another router
    goes to each neighbor in turn, and who can't pass one on answers it with what it holds.
    """

    def __init__(
        self,
        *,
        sender: ControlMessageSender,
        neighbors: Neighbors,
        database: LinkStateDatabase,
        settings: LinkStateSettings,
    ) -> None:
        self.next_ask = math.inf
        """Time at which a question is due, seconds; `math.inf` when none is."""
        self._sender = sender
        self._neighbors = neighbors
        self._database = database
        self._settings = settings
        self._due = DueRouters()

    def want(self, node: Node, at: float) -> None:
        """Ask for the link state of *node* at time *at* (seconds), unless it is there by then or asked for already."""
        if node.ask_at is None or (node.asked == 0 and at < node.ask_at):
            node.ask_at = at
        self._due.set(node.id, node.ask_at)
        self.next_ask = self._due.next

    def want_of_others(self, node: Node, now: float) -> None:
        """Ask for the link state of *node* at *now* (seconds), first of a neighbor: there may be no way to it yet."""
        node.asked = max(node.asked, 1) | 1
        node.ask_at = now
        self._due.set(node.id, now)
        self.next_ask = self._due.next

    def ask(self, now: float) -> None:
        """Ask for what is due.

        Args:
            now: seconds, monotonic.
        """
        if self.next_ask > now:
            return
        self._due.ask(now, lambda router: self._ask(router, now))
        self.next_ask = self._due.next

    def _ask(self, router: RouterId, now: float) -> bool:
        """Ask for the link state of *router*, if it is still wanted. Returns: whether a request was written."""
        node = self._database.nodes.get(router)
        if node is None or node.ask_at is None or node.is_current:
            return False
        is_due = node.ask_at <= now
        if is_due:
            way = self._way(node)
            if way is None:
                # It is asked for again as soon as it is reachable.
                node.ask_at = None
                return False
            self._sender.write(way, link_state_to(router), LinkStateRequest(id=self._sender.router_id))
            node.asked += 1
            node.ask_at = now + retry_s(self._settings, node.asked)
        self._due.set(router, node.ask_at)
        return is_due

    def answer_for(self, received: ControlReceived, target: RouterId) -> bool:
        """Answer *received*, an LSR for *target* that finds no way, if link state of *target* is held."""
        node = self._database.nodes.get(target)
        if not isinstance(received.message, LinkStateRequest) or node is None or not node.is_current:
            return False
        self._sender.write(received.connection, link_state_to(received.message.id), node.update(), (node.id,))
        return True

    def _way(self, node: Node) -> ConnectionId | None:
        active = self._neighbors.active
        if node.asked % 2 and active and node.id not in active:
            ways = [active[router].connection for router in sorted(active)]
            return ways[node.asked // 2 % len(ways)]
        way = self._sender.way(node.id)
        if way is not None:
            return way[0]
        return node.via if node.via in self._neighbors.connections else None


def retry_s(settings: LinkStateSettings, asked: int) -> float:
    """Pause before the next request, after *asked* of them without an answer, seconds."""
    doubled_s = settings.hello_interval_s / 4 * 2.0 ** min(asked - 1, 16)
    most_s = settings.ra_interval_s if asked > SOON else settings.ra_interval_flux_s
    return min(doubled_s, max(settings.hello_interval_s, most_s))
