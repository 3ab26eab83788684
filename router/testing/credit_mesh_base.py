"""Base of all meshes of simulated credit machines: routers, wires, and clients that come and go. It knows no rule.

Not modelled: sessions, sizes, settlement, the control plane (paths are computed from the true topology, and installed
at each router after a delay of its own, so that routers disagree for a while).
"""

from __future__ import annotations

import abc
import random
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, Generic, Protocol, TypeVar

import networkx as nx

from mesh_config.findings import nearest
from router.core.forwarding.publisher_credit import LocalPublishers
from router.core.ids_and_conditions import RouterId
from router.simulation.network import Network, NetworkConditions
from router.testing.clients import (
    GrantHabit,
    SettlementHabit,
    SimPublisher,
    SimSubscriber,
    check_at_least,
    check_count,
    check_habit,
)
from router.testing.links import AmqpLink, OneWayWire


class SimulatedRouterInterface(Protocol):
    """Interface of a simulated router toward its mesh."""

    is_alive: bool

    @property
    def name(self) -> RouterId:
        """Id of the router."""

    @property
    def subscribers(self) -> Collection[AmqpLink]:
        """Links of its local subscribers."""

    @property
    def local_publishers(self) -> LocalPublishers:
        """Publishers that are attached to the router, as its machine has them."""

    def attach_publisher(self, publisher: SimPublisher) -> None:
        """A publisher's attach arrived."""

    def detach_publisher(self, key: int) -> None:
        """A publisher's detach arrived."""

    def attach_subscriber(self, link: AmqpLink) -> None:
        """A local subscriber's attach arrived."""

    def detach_subscriber(self, link: AmqpLink) -> None:
        """A local subscriber's detach arrived."""

    def connection_lost(self, neighbor: RouterId) -> None:
        """All links with a neighbor are gone."""

    def reconnected(self, neighbor: RouterId) -> None:
        """Circuits through a neighbor are to be made again."""


LISTED: Final = 10
"""Maximum number of routers that an error names."""

HomeT = TypeVar("HomeT", bound=SimulatedRouterInterface)


def _pair(edge: Sequence[str]) -> tuple[str, str]:
    """Check an edge. Raises: ValueError when it is no pair."""
    if isinstance(edge, str) or len(edge) != 2:
        raise ValueError(f"edge {edge!r}; expected a pair of routers, such as ('A', 'B')")
    left, right = edge
    return left, right


def _expected(name: str, known: Sequence[str]) -> str:
    """Words for one of *known*, and which is nearest to *name*; of many only some are listed."""
    some = ", ".join(known[:LISTED]) + (f" and {len(known) - LISTED} more" if len(known) > LISTED else "")
    near = nearest(str(name), known)
    return f"expected one of {some}" + (f"; did you mean {near!r}?" if near else "")


class CreditMesh(abc.ABC, Generic[HomeT]):
    """One address in a mesh of routers.

    Args:
        edges: pairs of routers that are connected.
        seed: decides delays, so the same seed gives the same run.
        delay_s, jitter_s: time on each wire, and up to this much more by chance, seconds.
        client_delay_s: the same between a client and its router, seconds.
        news_s: up to this time until a router hears of a change of paths, seconds.
        routers: names of those that have no edge.
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
        routers: Iterable[str] = (),
    ) -> None:
        self._rng = random.Random(seed)
        self.network = Network(self._rng, NetworkConditions())
        self.delay_s = delay_s
        self.jitter_s = jitter_s
        self.client_delay_s = client_delay_s
        self.news_s = news_s
        self.steps = 0
        """Number of turns of all routers."""
        self.published = 0
        self.publisher_of: dict[int, int] = {}
        """Publisher of each message."""
        self.open: dict[int, int] = {}
        """Messages whose fate is not known, each with its publisher."""
        self.released_count = 0
        self.lost_count = 0
        """Number of messages lost on the way on a connection that ended, or in a router that died."""
        self.on_step: Callable[[], None] = lambda: None
        """Function called after each turn of a router."""
        self.graph: nx.Graph[RouterId] = nx.Graph()
        self.publishers: dict[int, SimPublisher] = {}
        self.subscribers: dict[SimSubscriber, RouterId] = {}
        self._home: dict[int, RouterId] = {}
        self._wires: dict[tuple[RouterId, RouterId], OneWayWire] = {}
        for name, value in (
            ("delay_s", delay_s), ("jitter_s", jitter_s), ("client_delay_s", client_delay_s), ("news_s", news_s)
        ):  # fmt: skip
            check_at_least(name, value, 0)
        edges = [_pair(edge) for edge in edges]
        names = sorted({*routers, *(name for edge in edges for name in edge)})
        self.routers = {RouterId(name): self._make_router(RouterId(name)) for name in names}
        self.graph.add_nodes_from(self.routers)
        self._neighbors: dict[RouterId, set[RouterId]] = {name: set() for name in self.routers}
        """Routers that each has ever been connected to."""
        for left, right in edges:
            self.join(RouterId(left), RouterId(right))

    # Of the kind of mesh

    @abc.abstractmethod
    def _make_router(self, name: RouterId) -> HomeT: ...

    @abc.abstractmethod
    def _install(self, router: HomeT) -> None:
        """Tell a router the paths as they are now."""

    @abc.abstractmethod
    def _lose(self, messages: Iterable[int]) -> None:
        """Count messages that were lost with a wire."""

    @abc.abstractmethod
    def _lose_router(self, router: HomeT) -> None:
        """A router died with what waited in it."""

    def _router(self, name: str) -> HomeT:
        """Find a router by its name. Raises: ValueError when there is none of that name."""
        found = self.routers.get(RouterId(name))
        if found is None:
            raise ValueError(f"no router {name!r}; {_expected(name, list(self.routers))}")
        return found

    # Of the routers

    def neighbor(self, router: RouterId) -> HomeT:
        """A router by name."""
        return self.routers[router]

    def wires(self, here: RouterId, there: RouterId) -> tuple[OneWayWire, OneWayWire] | None:
        """Both ways of a connection; None when it is down."""
        forth = self._wires.get((here, there))
        return None if forth is None else (forth, self._wires[there, here])

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
        self.open[self.published] = self.publisher_of[self.published] = publisher
        return self.published

    # What is counted

    def attached(self) -> int:
        """Publishers attached."""
        return sum(len(router.local_publishers.attached) for router in self._living())

    def held(self) -> int:
        """Credit that publishers may still use, as their routers reckon it.

        Messages on the way from a publisher to its router are included.
        """
        return sum(
            publisher.standing() - len(publisher.queue)
            for router in self._living()
            for publisher in router.local_publishers.attached.values()
        )

    def _living(self) -> list[HomeT]:
        return [router for router in self.routers.values() if router.is_alive]

    # Clients

    def add_publisher(self, router: str, *, is_settled: bool = True) -> SimPublisher:
        """Attach a publisher to a router.

        Args:
            router: its id.
            is_settled: its messages are pre-settled.
        Raises: ValueError for a router that there isn't.
        """
        home = self._router(router)
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
        """Detach a publisher; nothing when it is gone already.

        Raises: ValueError for one of another mesh.
        """
        if self.publishers.get(publisher.key) is not publisher:
            raise ValueError("a publisher of another mesh; expected one that `add_publisher` of this mesh has made")
        if publisher.is_attached:
            publisher.is_attached = False
            publisher.backlog = 0
            home = self.routers[self._home[publisher.key]]
            publisher.link.end_sender()
            publisher.link.forth.send(lambda: home.detach_publisher(publisher.key))

    def add_subscriber(
        self,
        router: str,
        *,
        credit: int,
        top_up: GrantHabit | None = GrantHabit.HALF,
        service_s: float = 0.0,
        workers: int = 1,
        accepts: SettlementHabit = SettlementHabit.NEVER,
    ) -> SimSubscriber:
        """Attach a subscriber to a router; it grants its credit at once.

        Args:
            router: its id.
            credit: what it grants at most, messages.
            top_up: when it grants again; None: when `SimSubscriber.grant` is called.
            service_s: time for one message, seconds.
            workers: messages that it works on at a time.
            accepts: when it settles messages.
        Raises: ValueError for a router that there isn't, and a number that can't be; TypeError for what is no number,
            or no habit.
        """
        home = self._router(router)
        check_count("credit", credit, 0)
        check_at_least("service_s", service_s, 0)
        check_count("workers", workers, 1)
        if top_up is not None:
            check_habit("top_up", top_up, GrantHabit)
        check_habit("accepts", accepts, SettlementHabit)
        link = self._client_link()
        # Attach and grant go the way of a subscriber's frames: against the transfers.
        link.back.send(lambda: self._attach_subscriber(home, link))
        subscriber = SimSubscriber(
            self.network, link, credit=credit, top_up=top_up, service_s=service_s, workers=workers, accepts=accepts
        )
        self.subscribers[subscriber] = home.name
        return subscriber

    def _attach_subscriber(self, home: HomeT, link: AmqpLink) -> None:
        if home.is_alive:
            home.attach_subscriber(link)
            self._install(home)
            self._spread_news()

    def remove_subscriber(self, subscriber: SimSubscriber) -> None:
        """Detach a subscriber; nothing when it is gone already, as with a router that died.

        Raises: ValueError for one of another mesh.
        """
        if subscriber.is_attached:
            if subscriber not in self.subscribers:
                raise ValueError(
                    "a subscriber of another mesh; expected one that `add_subscriber` of this mesh has made"
                )
            subscriber.is_attached = False
            home = self.routers[self.subscribers.pop(subscriber)]
            subscriber.link.back.send(lambda: self._detach_subscriber(home, subscriber.link))

    def _detach_subscriber(self, home: HomeT, link: AmqpLink) -> None:
        if home.is_alive and link in home.subscribers:
            home.detach_subscriber(link)
            self._install(home)
            self._spread_news()

    def _client_link(self) -> AmqpLink:
        forth, back = (
            OneWayWire(self.network, self._rng, self.client_delay_s, self.client_delay_s / 4) for _ in range(2)
        )
        return AmqpLink(forth, back)

    # Topology

    def join(self, left: RouterId, right: RouterId) -> None:
        """Connect two routers, unless they are, or one is dead. Raises: ValueError for one, or one that there isn't."""
        ends = self._router(left), self._router(right)
        if left == right:
            raise ValueError(f"a connection from {left!r} to itself; expected two routers")
        if (left, right) not in self._wires and all(router.is_alive for router in ends):
            for pair in ((left, right), (right, left)):
                self._wires[pair] = OneWayWire(self.network, self._rng, self.delay_s, self.jitter_s)
            self.graph.add_edge(left, right)
            self._neighbors[left].add(right)
            self._neighbors[right].add(left)
            self.routers[left].reconnected(right)
            self.routers[right].reconnected(left)
            self._spread_news()

    def cut(self, left: RouterId, right: RouterId) -> None:
        """Kill the connection of two routers; what is on it is lost. One that is down already stays so.

        Raises: ValueError for a router that there isn't, and for two that were never connected.
        """
        for name in (left, right):
            self._router(name)
        if (left, right) not in self._wires:
            self._check_connected(left, right)
            return
        for pair in ((left, right), (right, left)):
            wire = self._wires.pop(pair)
            wire.is_cut = True
            self._lose(wire.messages)
        self.graph.remove_edge(left, right)
        self.routers[left].connection_lost(right)
        self.routers[right].connection_lost(left)
        self._spread_news()

    def _check_connected(self, left: RouterId, right: RouterId) -> None:
        """Check whether two routers are, or were, connected. Raises: ValueError when they never were."""
        neighbors = self._neighbors[left]
        if right not in neighbors:
            expected = f"expected one of {', '.join(sorted(neighbors))}" if neighbors else "it never had a connection"
            raise ValueError(f"no connection from {left!r} to {right!r}; {expected}")

    def kill(self, name: RouterId) -> None:
        """Kill a router with all that is in it; its clients do not come back.

        Raises: ValueError for a router that there isn't.
        """
        router = self._router(name)
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
            subscriber.is_attached = False
            self._end(subscriber.link, is_lost=False)
        self._lose_router(router)

    def _end(self, link: AmqpLink, *, is_lost: bool = True) -> None:
        link.forth.is_cut = link.back.is_cut = True
        if is_lost:
            self._lose(link.forth.messages)

    def _spread_news(self) -> None:
        for router in self._living():
            self.network.call_at(
                self.network.now + self.news_s * self._rng.random(),
                lambda router=router: self._install(router),  # type: ignore[misc]
            )

    # Time

    def run_for(self, duration_s: float) -> None:
        """Let time pass.

        Args:
            duration_s: virtual seconds.
        Raises: ValueError when it is below 0.
        """
        check_at_least("duration_s", duration_s, 0)
        end = self.network.now + duration_s
        while self.network.next_time() <= end:
            self.network.step()
        self.network.now = end

    def run_until_true(self, is_done: Callable[[], bool], *, limit_s: float) -> bool:
        """Run until something is so.

        Args:
            is_done: asked after each thing that happens.
            limit_s: virtual seconds at most.
        Returns: whether it is.
        Raises: ValueError when the limit is below 0.
        """
        check_at_least("limit_s", limit_s, 0)
        end = self.network.now + limit_s
        while not is_done():
            if self.network.next_time() > end:
                return False
            self.network.step()
        return True
