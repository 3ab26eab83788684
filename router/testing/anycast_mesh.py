"""N credit machines joined: one anycast address in a mesh under virtual time, with clients that come and go.

It counts what is promised in docs/explanation/credit.md#what-is-promised. `held` is what routers reckon that
publishers may still send, what is on its way to them included; `open` are messages that some publisher has sent and no
subscriber has been sent.
"""

from __future__ import annotations

from collections.abc import Iterable

import networkx as nx

from router.core.forwarding.credit_scheduler import CreditTiming
from router.core.ids_and_conditions import RouterId
from router.testing.anycast_router import AnycastRouter
from router.testing.credit_mesh_base import CreditMesh


class AnycastMesh(CreditMesh[AnycastRouter]):
    """One anycast address in a mesh of routers; arguments as of `CreditMesh`."""

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
        is_closest: bool = False,
        distance: float = 0.25,
        has_outcomes: bool = False,
        routers: Iterable[str] = (),
    ) -> None:
        self.delivered_of: dict[int, int] = {}
        """Number of messages sent to subscribers, by publisher."""
        self._timing = timing or CreditTiming()
        self._is_closest = is_closest
        self._distance = distance
        self.has_outcomes = has_outcomes
        """Whether subscribers settle messages, and routers look at loads."""
        super().__init__(
            edges,
            seed=seed,
            delay_s=delay_s,
            jitter_s=jitter_s,
            client_delay_s=client_delay_s,
            news_s=news_s,
            routers=routers,
        )

    def _make_router(self, name: RouterId) -> AnycastRouter:
        return AnycastRouter(name, self, self._timing, is_closest=self._is_closest, distance=self._distance)

    def _install(self, router: AnycastRouter) -> None:
        router.install(self._paths(router.name))

    # Of the routers

    def delivered(self, message: int) -> None:
        """A message was sent to a subscriber. Raises: KeyError when for the second time."""
        publisher = self.open.pop(message)
        self.delivered_of[publisher] = self.delivered_of.get(publisher, 0) + 1

    # What is counted

    def granted(self) -> int:
        """Unspent credit of subscribers, as it has arrived at their routers."""
        return sum(link.credit for router in self._living() for link in router.subscribers)

    def inside(self) -> int:
        """Messages that have arrived at their first router and were not yet sent to a subscriber."""
        on_wires = sum(len(wire.messages) for wire in self._wires.values())
        return on_wires + sum(
            len(router.machine.publishers.waiting) + sum(len(pool.core) for pool in router.machine.pools.values())
            for router in self._living()
        )

    def waiting_in_core(self) -> int:
        """Messages that wait elsewhere than at their first router."""
        return sum(len(pool.core) for router in self._living() for pool in router.machine.pools.values())

    def excess(self) -> int:
        """Credit held and under way beyond what the promise allows; not above 0 while nobody withdraws or leaves."""
        return self.held() + self.inside() - self.granted() - self.attached()

    def check_invariants(self) -> None:
        """Raises: AssertionError when a machine is not well, or a message is neither here nor accounted for."""
        for router in self._living():
            router.machine.check_invariants()
        delivered = sum(self.delivered_of.values())
        assert self.published == len(self.open) + delivered + self.released_count + self.lost_count

    # Losses and paths

    def _lose_router(self, router: AnycastRouter) -> None:
        self._lose(m for m in router.machine.publishers.waiting if isinstance(m, int))
        self._lose(m for pool in router.machine.pools.values() for m in pool.core if isinstance(m, int))

    def _lose(self, messages: Iterable[int]) -> None:
        for message in list(messages):
            del self.open[message]
            self.lost_count += 1

    def _paths(self, name: RouterId) -> dict[RouterId, tuple[int, RouterId | None]]:
        """Cost and next hop to each router with subscribers, of equals the first by name."""
        found: dict[RouterId, tuple[int, RouterId | None]] = {}
        for egress in self._living():
            if not egress.subscribers:
                continue
            if egress.name == name:
                found[name] = (0, None)
                continue
            costs: dict[RouterId, int] = nx.single_source_shortest_path_length(self.graph, egress.name)
            if name in costs:
                hops = sorted(n for n in self.graph.neighbors(name) if costs.get(n) == costs[name] - 1)
                found[egress.name] = (costs[name], hops[0])
        return found


def jain_index(values: Iterable[float]) -> float:
    """Jain's fairness index: 1 when all are equal, 1/n when one has everything.

    Args:
        values: what each got, 0 or more.
    """
    shares = list(values)
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0
