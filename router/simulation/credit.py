"""N credit machines joined: one anycast address in a mesh under virtual time, with clients that come and go.

It counts what the promises of the design are about. `held` is what routers reckon that publishers may still send, what
is on its way to them included; `open` are messages that some publisher has sent and no subscriber has been sent.

Not modelled: sessions, sizes, settlement, the control plane (paths are computed from the true topology, and installed
at each router after a delay of its own, so that routers disagree for a while).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

import networkx as nx

from router.core.forwarding.orders import Timing
from router.core.terms import RouterId
from router.simulation.credit_clients import SimPublisher, SimSubscriber, TopUp
from router.simulation.credit_links import Link, Wire
from router.simulation.credit_router import SimRouter
from router.simulation.network import Network, Weather


class CreditMesh:
    """One address in a mesh of routers.

    Args:
        edges: pairs of routers that are connected.
        seed: decides delays, so the same seed gives the same run.
        delay_s, jitter_s: time on each wire, and up to this much more by chance, seconds.
        client_delay_s: the same between a client and its router, seconds.
        news_s: up to this time until a router hears of a change of paths, seconds.
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
        timing: Timing | None = None,
        is_closest: bool = False,
        routers: Iterable[str] = (),
    ) -> None:
        self._rng = random.Random(seed)
        self.network = Network(self._rng, Weather())
        self.delay_s = delay_s
        self.jitter_s = jitter_s
        self.client_delay_s = client_delay_s
        self.news_s = news_s
        self.steps = 0
        """Turns of all routers."""
        self.published = 0
        self.open: dict[int, int] = {}
        """Messages not yet sent to a subscriber, each with its publisher."""
        self.delivered_of: dict[int, int] = {}
        """Messages sent to subscribers, by publisher."""
        self.released_count = 0
        self.lost_count = 0
        """On the way on a connection that ended, or in a router that died."""
        self.on_step: Callable[[], None] = lambda: None
        """Called after each turn of a router."""
        self.graph: nx.Graph[RouterId] = nx.Graph()
        self.publishers: dict[int, SimPublisher] = {}
        self.subscribers: dict[SimSubscriber, RouterId] = {}
        self._home: dict[int, RouterId] = {}
        self._wires: dict[tuple[RouterId, RouterId], Wire] = {}
        edges = list(edges)
        names = sorted({*routers, *(name for edge in edges for name in edge)})
        self.routers = {
            RouterId(name): SimRouter(RouterId(name), self, timing or Timing(), is_closest=is_closest) for name in names
        }
        self.graph.add_nodes_from(self.routers)
        for left, right in edges:
            self.join(RouterId(left), RouterId(right))

    # Of the routers

    def neighbor(self, router: RouterId) -> SimRouter:
        """A router by name."""
        return self.routers[router]

    def wires(self, here: RouterId, there: RouterId) -> tuple[Wire, Wire] | None:
        """Both ways of a connection; None when it is down."""
        forth = self._wires.get((here, there))
        return None if forth is None else (forth, self._wires[there, here])

    def delivered(self, message: int) -> None:
        """A message was sent to a subscriber. Raises: KeyError when for the second time."""
        publisher = self.open.pop(message)
        self.delivered_of[publisher] = self.delivered_of.get(publisher, 0) + 1

    def released(self, message: int) -> None:
        """A message goes no further, and its fate is known."""
        del self.open[message]
        self.released_count += 1

    def is_kept(self, message: int) -> bool:
        """Whether it is pre-settled."""
        return self.publishers[self.open[message]].is_settled

    def checked(self) -> None:
        """A router has finished a turn."""
        self.steps += 1
        self.on_step()

    def _publish(self, publisher: int) -> int:
        self.published += 1
        self.open[self.published] = publisher
        return self.published

    # What is counted

    def granted(self) -> int:
        """Unspent credit of subscribers, as it has arrived at their routers."""
        return sum(link.credit for router in self._living() for link in router.subscribers)

    def attached(self) -> int:
        """Publishers attached."""
        return sum(len(router.machine.publishers.attached) for router in self._living())

    def held(self) -> int:
        """Credit that publishers may still use, as their routers reckon it: messages on the way from a publisher to
        its router included."""
        return sum(
            publisher.standing - publisher.waiting
            for router in self._living()
            for publisher in router.machine.publishers.attached.values()
        )

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
        """How much more is held and under way than the promise allows; not above 0 while nobody withdraws or leaves."""
        return self.held() + self.inside() - self.granted() - self.attached()

    def _living(self) -> list[SimRouter]:
        return [router for router in self.routers.values() if router.is_alive]

    def check_invariants(self) -> None:
        """Raises: AssertionError when a machine is not well, or a message is neither here nor accounted for."""
        for router in self._living():
            router.machine.check_invariants()
        delivered = sum(self.delivered_of.values())
        assert self.published == len(self.open) + delivered + self.released_count + self.lost_count

    # Clients

    def add_publisher(self, router: str, *, is_settled: bool = True) -> SimPublisher:
        """A publisher attaches to *router*."""
        home = self.routers[RouterId(router)]
        publisher = SimPublisher(len(self.publishers), self._client_link(), self._publish, is_settled=is_settled)
        self.publishers[publisher.key] = publisher
        self._home[publisher.key] = home.name
        if home.is_alive:
            publisher.link.forth.send(lambda: home.attach_publisher(publisher) if home.is_alive else None)
        return publisher

    def home(self, publisher: SimPublisher) -> RouterId:
        """The router that a publisher is, or was, attached to."""
        return self._home[publisher.key]

    def remove_publisher(self, publisher: SimPublisher) -> None:
        """A publisher detaches."""
        if publisher.is_attached:
            publisher.is_attached = False
            publisher.backlog = 0
            home = self.routers[self._home[publisher.key]]
            publisher.link.end_sender()
            publisher.link.forth.send(lambda: home.detach_publisher(publisher.key))

    def add_subscriber(
        self, router: str, *, credit: int, top_up: TopUp = TopUp.HALF, service_s: float = 0.0
    ) -> SimSubscriber:
        """A subscriber attaches to *router* and grants *credit*."""
        home = self.routers[RouterId(router)]
        link = self._client_link()
        # Attach and grant go the way of a subscriber's frames: against the transfers.
        link.back.send(lambda: self._attach_subscriber(home, link))
        subscriber = SimSubscriber(self.network, link, credit=credit, top_up=top_up, service_s=service_s)
        self.subscribers[subscriber] = home.name
        return subscriber

    def _attach_subscriber(self, home: SimRouter, link: Link) -> None:
        if home.is_alive:
            home.attach_subscriber(link)
            home.install(self._paths(home.name))
            self._spread_news()

    def remove_subscriber(self, subscriber: SimSubscriber) -> None:
        """A subscriber detaches."""
        if subscriber.is_attached:
            subscriber.is_attached = False
            home = self.routers[self.subscribers.pop(subscriber)]
            subscriber.link.back.send(lambda: self._detach_subscriber(home, subscriber.link))

    def _detach_subscriber(self, home: SimRouter, link: Link) -> None:
        if home.is_alive and link in home.subscribers:
            home.detach_subscriber(link)
            home.install(self._paths(home.name))
            self._spread_news()

    def _client_link(self) -> Link:
        forth, back = (Wire(self.network, self._rng, self.client_delay_s, self.client_delay_s / 4) for _ in range(2))
        return Link(forth, back)

    # Topology

    def join(self, left: RouterId, right: RouterId) -> None:
        """Connect two routers."""
        if (left, right) not in self._wires and self.routers[left].is_alive and self.routers[right].is_alive:
            for pair in ((left, right), (right, left)):
                self._wires[pair] = Wire(self.network, self._rng, self.delay_s, self.jitter_s)
            self.graph.add_edge(left, right)
            self.routers[left].reconnected(right)
            self.routers[right].reconnected(left)
            self._spread_news()

    def cut(self, left: RouterId, right: RouterId) -> None:
        """Kill the connection of two routers; what is on it is lost."""
        if (left, right) not in self._wires:
            return
        for pair in ((left, right), (right, left)):
            wire = self._wires.pop(pair)
            wire.is_cut = True
            self._lose(wire.messages)
        self.graph.remove_edge(left, right)
        self.routers[left].connection_lost(right)
        self.routers[right].connection_lost(left)
        self._spread_news()

    def kill(self, name: RouterId) -> None:
        """Kill a router with all that is in it; its clients do not come back."""
        router = self.routers[name]
        if not router.is_alive:
            return
        router.is_alive = False
        for other in list(self.graph.neighbors(name)):
            self.cut(name, other)
        for publisher in self.publishers.values():
            if self._home[publisher.key] == name:
                publisher.backlog = 0
                publisher.link.end_sender()
                self._end(publisher.link)
        for subscriber in [s for s, home in self.subscribers.items() if home == name]:
            del self.subscribers[subscriber]
            self._end(subscriber.link, is_lost=False)
        self._lose(m for m in router.machine.publishers.waiting if isinstance(m, int))
        self._lose(m for pool in router.machine.pools.values() for m in pool.core if isinstance(m, int))

    def _end(self, link: Link, *, is_lost: bool = True) -> None:
        link.forth.is_cut = link.back.is_cut = True
        if is_lost:
            self._lose(link.forth.messages)

    def _lose(self, messages: Iterable[int]) -> None:
        for message in list(messages):
            del self.open[message]
            self.lost_count += 1

    def _spread_news(self) -> None:
        for router in self._living():
            self.network.call_at(
                self.network.now + self.news_s * self._rng.random(),
                lambda router=router: router.install(self._paths(router.name)),  # type: ignore[misc]
            )

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

    # Time

    def run_for(self, duration_s: float) -> None:
        """Let virtual time pass."""
        end = self.network.now + duration_s
        while self.network.next_time() <= end:
            self.network.step()
        self.network.now = end

    def run_until_true(self, is_done: Callable[[], bool], *, limit_s: float) -> bool:
        """Run until *is_done* or for *limit_s*, seconds. Returns which of them."""
        end = self.network.now + limit_s
        while not is_done():
            if self.network.next_time() > end:
                return False
            self.network.step()
        return True


def jain_index(values: Iterable[float]) -> float:
    """Jain's fairness index: 1 when all are equal, 1/n when one has everything."""
    shares = list(values)
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0
