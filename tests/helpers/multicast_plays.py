"""Random plays on a mesh of multicast credit machines: who is there, what happens, and the laws that hold.

In a calm play every subscriber is there before the first message and keeps granting; publishers send, attach and idle.
In an unruly one subscribers stall, lower and drain, and publishers leave. In a rough one subscribers come and go too,
connections and routers die and paths change; it becomes calm at its end, and then everything must come right.
"""

from __future__ import annotations

import enum
import random

from router.core.forwarding.credit_scheduler import CreditTiming
from router.core.ids_and_conditions import RouterId
from router.testing.clients import GrantHabit, SimPublisher, SimSubscriber
from router.testing.links import AmqpLink
from router.testing.multicast_mesh import MulticastMesh, is_connected

CALM = ("offer", "offer", "offer", "flood", "attach", "wait", "wait")
UNRULY = (*CALM, "leave", "pause", "lower", "resume", "resume", "drain")
ROUGH = (*UNRULY, "unsubscribe", "subscribe", "cut", "join", "reroute")
SETTLED_S = 62.0
"""A calm time after which a disturbance must have passed: the longest pause of an excluded subscriber, with room."""
NEWS_S = 0.5
"""A subscriber that has counted for so long is known to all routers to count."""
GONE_S = 3.0
"""A copy is sent within this time after its message left its ingress router: others hold it up for a grace at most."""
HELD_UP_S = 1.0
"""With credit from all live subscribers nobody waits for so long."""


class Kind(enum.Enum):
    """How much can happen."""

    CALM = CALM
    UNRULY = UNRULY
    ROUGH = ROUGH


class MulticastPlay:
    """One play."""

    def __init__(self, seed: int, kind: Kind) -> None:
        self.rng = rng = random.Random(seed)
        self.kind = kind
        self.names = names = [f"R{number}" for number in range(1, rng.randint(1, 5) + 1)]
        edges = [(rng.choice(names[:number]), names[number]) for number in range(1, len(names))]
        if len(names) > 2:
            edges += [tuple(rng.sample(names, 2)) for _ in range(rng.randint(0, 2))]  # type: ignore[misc]
        self.edges = sorted({(min(edge), max(edge)) for edge in edges})
        delay_s = rng.choice([0.0001, 0.0005, 0.004])
        self.mesh = MulticastMesh(
            self.edges,
            seed=seed,
            routers=names,
            delay_s=delay_s,
            jitter_s=delay_s * rng.random(),
            client_delay_s=rng.choice([0.0001, 0.001, 0.004]),
        )
        self.publishers: list[SimPublisher] = []
        self.subscribers: list[SimSubscriber] = []
        self.paused: list[SimSubscriber] = []
        self.live: dict[AmqpLink, list[tuple[float, float]]] = {}
        """When each subscriber counted, seconds."""
        self.homes: dict[AmqpLink, RouterId] = {}
        """The router of each subscriber."""
        self._live_since: dict[AmqpLink, float] = {}
        self._is_settled = False
        self._settled_at = 0.0
        self._departed_before = 0
        self._sent_before: dict[AmqpLink, int] = {}
        """When it settled."""
        self.held_up_s = 0.0
        """The longest that publishers waited while all live subscribers had credit."""
        self._moved_at = 0.0
        self._is_stuck = False
        self._departed = 0
        for _ in range(rng.randint(1, 5)):
            self.subscribe(rng.choice(names))
        self.mesh.run_for(0.05)  # until all routers know
        for _ in range(rng.choice([1, 2, 5, 20])):
            self.attach()
        self.mesh.on_step = self.check

    # What happens

    def subscribe(self, name: str) -> None:
        """A subscriber of some kind attaches."""
        rng = self.rng
        self.subscribers.append(
            self.mesh.add_subscriber(
                name,
                credit=rng.choice([1, 2, 5, 20, 100]),
                top_up=rng.choice(list(GrantHabit)),
                service_s=rng.choice([0.0, 0.0002, 0.001, 0.003]),
            )
        )

    def attach(self) -> None:
        """A publisher attaches somewhere."""
        self.publishers.append(self.mesh.add_publisher(self.rng.choice(self.names), is_settled=self.rng.random() < 0.7))

    def act(self) -> None:
        """Something happens, and a little time passes."""
        rng, mesh = self.rng, self.mesh
        what = rng.choice(self.kind.value)
        publisher = rng.choice(self.publishers)
        subscriber = rng.choice(self.subscribers) if self.subscribers else None
        if what in ("offer", "flood") and publisher.is_attached:
            publisher.offer(rng.choice([1, 1, 3]) if what == "offer" else rng.randint(10, 100))
        elif what == "attach" and len(self.publishers) < 30:
            self.attach()
        elif what == "leave" and len(self.publishers) > 1:
            self.publishers.remove(publisher)
            mesh.remove_publisher(publisher)
        elif what == "subscribe" and len(self.subscribers) < 6:
            self.subscribe(rng.choice(self.names))
        elif what == "cut" and self.edges and rng.random() < 0.5:
            left, right = rng.choice(self.edges)
            mesh.cut(RouterId(left), RouterId(right))
        elif what == "join" and self.edges:
            left, right = rng.choice(self.edges)
            mesh.join(RouterId(left), RouterId(right))
        elif what == "reroute" and len(self.names) > 2:
            left, right = rng.sample(self.names, 2)
            mesh.join(RouterId(left), RouterId(right))
            self.edges.append((left, right))
        elif subscriber is not None:
            self._disturb(what, subscriber)
        # The longest is beyond grace, linger and the first pause.
        mesh.run_for(rng.choice([0.0, 0.0005, 0.002, 0.01, 0.03, 0.15, 1.2, 2.5]))

    def _disturb(self, what: str, subscriber: SimSubscriber) -> None:
        match what:
            case "pause" | "lower":
                subscriber.pause(is_lowering=what == "lower")
                self.paused.append(subscriber)
            case "resume" if self.paused:
                self.paused.pop(0).resume()
            case "drain":
                subscriber.drain()
            case "unsubscribe":
                self.subscribers.remove(subscriber)
                self.mesh.remove_subscriber(subscriber)

    def kill_one(self) -> None:
        """A router dies, with its clients."""
        name = self.rng.choice(self.names)
        self.mesh.kill(RouterId(name))
        self.names.remove(name)
        self.edges = [edge for edge in self.edges if name not in edge]
        self.subscribers = [s for s in self.subscribers if s in self.mesh.subscribers]
        self.paused = [s for s in self.paused if s in self.mesh.subscribers]

    def settle(self) -> None:
        """All that is broken is repaired and every subscriber grants: from now on the laws of a calm play hold."""
        for left, right in self.edges:
            self.mesh.join(RouterId(left), RouterId(right))
        for left, right in zip(self.names, self.names[1:], strict=False):
            if not is_connected(self.mesh):
                self.mesh.join(RouterId(left), RouterId(right))
        if not self.subscribers:
            self.subscribe(self.names[0])
        if not any(publisher.is_attached for publisher in self.publishers):
            self.attach()
        for subscriber in self.subscribers:
            subscriber.resume()
        self.mesh.run_for(SETTLED_S)
        assert not self.mesh.open, "nobody gets through"
        self._is_settled = True
        self._settled_at = self.mesh.network.now
        self._departed_before = len(self.mesh.departed_at)
        self._sent_before = {link: len(sent) for link, sent in self.mesh.sent.items()}
        for publisher in self.publishers:
            publisher.offer(20)

    def finish(self, limit_s: float = 20.0) -> None:
        """Every message leaves its ingress router: no deadlock. And every subscriber was sent what it should be."""
        mesh = self.mesh
        alive = [p for p in self.publishers if mesh.routers[mesh.home(p)].is_alive]
        done = mesh.run_until_true(lambda: not mesh.open and not any(p.backlog for p in alive), limit_s=limit_s)
        assert done, [(p.key, mesh.home(p), p.backlog, p.link.credit) for p in alive if p.backlog]
        mesh.run_for(0.2)
        mesh.check_invariants()
        mesh.run_for(5.0)
        self._check_copies()

    # Laws

    @property
    def is_calm(self) -> bool:
        """Whether nobody withdraws credit, joins or leaves."""
        return self.kind is Kind.CALM or self._is_settled

    def check(self) -> None:
        """After each turn. The links assert more: credit below zero, sending without credit."""
        self._note_live()
        if self.is_calm:
            self._check_sums()
            self._check_held_up()

    def _note_live(self) -> None:
        now = self.mesh.network.now
        live: set[AmqpLink] = set()
        for router in self.mesh.routers.values():
            if router.is_alive:
                live.update(
                    link for link in router.subscribers if router.machine.local_subscribers.subscribers[link].is_live
                )
                self.homes.update(dict.fromkeys(router.subscribers, router.name))
        for link in [link for link in self._live_since if link not in live]:
            self.live.setdefault(link, []).append((self._live_since.pop(link), now))
        for link in live:
            self._live_since.setdefault(link, now)

    def _check_sums(self) -> None:
        """Promise 1 for each live subscriber, as routers reckon and as clients see it; promise 2."""
        mesh = self.mesh
        attached, held, waiting = mesh.attached(), mesh.held(), mesh.waiting()
        credit = sum(p.link.credit for p in mesh.publishers.values() if p.is_attached)
        departed = len(mesh.departed_at) - self._departed_before
        for link in self._live_since:
            under_way = departed - len(mesh.sent.get(link, ())) + self._sent_before.get(link, 0)
            assert held + waiting + under_way <= link.credit + attached, "promise 1, as routers reckon"
            assert credit + len(mesh.open) + under_way <= link.credit + attached, "promise 1, as clients see it"
        assert mesh.waiting_in_core() == 0, "messages wait elsewhere than at their first router"
        for router in mesh.routers.values():
            if router.is_alive:
                tree = router.machine.own.machine
                standing = sum(publisher.standing() for publisher in tree.publishers.attached.values())
                assert standing <= tree.allotted() + len(tree.publishers.attached), "promise 2"

    def _check_held_up(self) -> None:
        mesh = self.mesh
        departed = len(mesh.departed_at)
        if departed != self._departed or not self._is_stuck:
            self._moved_at = mesh.network.now
        self._departed = departed
        self._is_stuck = mesh.waiting() > 0 and all(link.credit for link in self._live_since)
        self.held_up_s = max(self.held_up_s, mesh.network.now - self._moved_at)
        assert self.held_up_s < HELD_UP_S, "nobody gets through"

    def _check_copies(self) -> None:
        """No subscriber was sent a message twice, and none that counted all the time misses one, but for changes of
        paths and of who is there."""
        now = self.mesh.network.now
        for link, since in self._live_since.items():
            self.live.setdefault(link, []).append((since, now))
        for link, times in self.live.items():
            sent = self.mesh.sent.get(link, [])
            if self.kind is not Kind.ROUGH:
                assert len(sent) == len(set(sent)), "a copy was sent twice"
            got = set(sent)
            new = got - set(sent[: self._sent_before.get(link, 0)])
            assert not self._is_settled or len(new) == len(sent) - self._sent_before.get(link, 0), (
                "a copy was sent twice"
            )
            # One that was without credit for longer than the grace is excluded when another comes back, and then misses
            # what waited at its router for it.
            passed = self.mesh.passed.get(self.homes[link], {})
            for message, departed_at in self.mesh.departed_at.items():
                if message in got or message in passed or (self.kind is Kind.ROUGH and departed_at < self._settled_at):
                    continue
                until = departed_at + GONE_S
                assert not any(since + NEWS_S <= departed_at and until <= end for since, end in times), (
                    f"{message} was missed"
                )


# Whole plays


def calm_play(seed: int) -> MulticastPlay:
    """Play a calm play to its end.

    Raises:
        AssertionError: a law was broken.
    """
    play = MulticastPlay(seed, Kind.CALM)
    for _ in range(play.rng.randint(5, 40)):
        play.act()
        play.mesh.check_invariants()
    play.finish()
    assert play.mesh.lost_count == play.mesh.released_count == 0
    assert not play.mesh.exclusions
    assert not play.mesh.missed
    for subscriber in play.subscribers:
        assert sorted(subscriber.received) == list(range(1, play.mesh.published + 1))
    return play


def disturbed_play(seed: int, kind: Kind) -> MulticastPlay:
    """Play an unruly or a rough play to its end.

    Raises:
        AssertionError: a law was broken.
    """
    play = MulticastPlay(seed, kind)
    for _ in range(play.rng.randint(5, 40)):
        play.act()
        play.mesh.check_invariants()
        if kind is Kind.ROUGH and len(play.names) > 1 and play.rng.random() < 0.01:
            play.kill_one()
    play.settle()
    play.finish()
    assert not play.mesh.exclusions
    drains = [took for subscriber in play.subscribers for took in subscriber.drained_s]
    # It is the bound where messages keep coming one by one, since another subscriber has little credit.
    assert max(drains, default=0.0) < CreditTiming().drain_bound_s + 0.1
    return play
