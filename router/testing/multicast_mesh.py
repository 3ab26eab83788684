"""N multicast credit machines joined: one multicast address in a mesh, with clients that come and go.

It counts what is promised in docs/explanation/credit.md#what-is-promised, for each subscriber: what it was sent,
what it missed, and how much of what publishers may send it has not granted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import networkx as nx

from router.core.forwarding.credit_scheduler import CreditTiming
from router.core.forwarding.multicast_subscribers import ExclusionTiming
from router.core.ids_and_conditions import RouterId
from router.core.linkstate.spf import Topology
from router.testing.credit_mesh_base import CreditMesh
from router.testing.links import AmqpLink
from router.testing.multicast_router import MulticastRouter, Place


class MulticastMesh(CreditMesh[MulticastRouter]):
    """One multicast address in a mesh of routers; arguments as of `CreditMesh`.

    `open` are messages that some publisher has sent and that have not left their ingress router.
    """

    def __init__(
        self,
        edges: Iterable[tuple[str, str]],
        *,
        seed: int = 0,
        delay_s: float = 0.0002,
        jitter_s: float = 0.0001,
        client_delay_s: float = 0.0001,
        news_s: float = 0.01,
        timing: CreditTiming | None = None,
        patience: ExclusionTiming | None = None,
        routers: Iterable[str] = (),
    ) -> None:
        self.departed_of: dict[int, int] = {}
        """Messages that have left their ingress router, by publisher."""
        self.departed_at: dict[int, float] = {}
        """Time at which each did, seconds."""
        self.sent: dict[AmqpLink, list[int]] = {}
        """Messages, by their numbers, of which the router of a subscriber has sent it a copy: `sent[subscriber.link]`.

        A copy may still be on its way, so this is at least what `subscriber.received` has. A subscriber that was sent
        nothing has no entry.
        """
        self.missed: dict[AmqpLink, int] = {}
        """Number of messages that passed the router of a subscriber without a copy for it, since it was excluded for
        its slowness: `missed[subscriber.link]`.

        A subscriber that missed nothing has no entry. Messages that did not reach its router, as those of a branch that
        was excluded as a whole, are not counted.
        """
        self.passed: dict[RouterId, dict[int, int]] = {}
        """Number of times that each message passed a router, by router and message."""
        self.exclusions: list[tuple[RouterId, RouterId]] = []
        """Routers, each with a neighbor that it excluded; a relapse is not counted."""
        self._timing = timing or CreditTiming()
        self._patience = patience or ExclusionTiming()
        super().__init__(
            edges,
            seed=seed,
            delay_s=delay_s,
            jitter_s=jitter_s,
            client_delay_s=client_delay_s,
            news_s=news_s,
            routers=routers,
        )

    def _make_router(self, name: RouterId) -> MulticastRouter:
        return MulticastRouter(name, self, self._timing, self._patience)

    # Of the routers

    def departed(self, message: int) -> None:
        """A message left its ingress router. Raises: KeyError when for the second time."""
        publisher = self.open.pop(message)
        self.departed_of[publisher] = self.departed_of.get(publisher, 0) + 1
        self.departed_at[message] = self.network.now

    def copied(
        self, message: int, router: RouterId, subscribers: Sequence[AmqpLink], missed: Sequence[AmqpLink]
    ) -> None:
        """A message passed a router."""
        passed = self.passed.setdefault(router, {})
        passed[message] = passed.get(message, 0) + 1
        for link in subscribers:
            self.sent.setdefault(link, []).append(message)
        for link in missed:
            self.missed[link] = self.missed.get(link, 0) + 1

    def excluded(self, router: RouterId, neighbor: RouterId) -> None:
        """A router excluded a neighbor."""
        self.exclusions.append((router, neighbor))

    # What is counted

    def waiting(self) -> int:
        """Messages that wait at their ingress router."""
        return sum(len(router.machine.publishers.waiting) for router in self._living())

    def waiting_in_core(self) -> int:
        """Messages that wait elsewhere."""
        return sum(len(tree.pool.core) for router in self._living() for tree in router.machine.trees.values())

    def check_invariants(self) -> None:
        """Raises: AssertionError when a machine is not well, disagrees with its links, or a message is lost."""
        for router in self._living():
            machine = router.machine
            machine.check_invariants()
            for link in router.subscribers:
                assert machine.local_subscribers.subscribers[link].credit == link.credit
            for (ingress, child), link in router.own.items():
                assert machine.trees[ingress].children[child].credit == link.credit
        departed = sum(self.departed_of.values())
        assert self.published == len(self.open) + departed + self.released_count + self.lost_count

    # Losses and paths

    def _lose_router(self, router: MulticastRouter) -> None:
        self._lose(m for m in router.machine.publishers.waiting if isinstance(m, int))

    def _lose(self, messages: Iterable[int]) -> None:
        """A copy that is lost between routers is not counted: its message has left."""
        for message in list(messages):
            if self.open.pop(message, None) is not None:
                self.lost_count += 1

    def _install(self, router: MulticastRouter) -> None:
        router.install(self._places(router.name))

    def _places(self, name: RouterId) -> Callable[[RouterId], Place]:
        """The place of a router in each tree, as the topology and the subscribers are now."""
        topology = Topology()
        topology.replace({a: dict.fromkeys(sorted(self.graph.neighbors(a)), 1) for a in sorted(self.graph)})
        receivers = {router.name for router in self._living() if router.subscribers}

        def place(ingress: RouterId) -> Place:
            tree = topology.tree(ingress, name)
            children = {child: len(below) for child, below in tree.children.items() if below & receivers}
            return children, tree.predecessor

        return place


def is_connected(mesh: MulticastMesh) -> bool:
    """Whether every living router reaches every other."""
    living = [name for name, router in mesh.routers.items() if router.is_alive]
    return bool(living) and nx.is_connected(mesh.graph.subgraph(living))
