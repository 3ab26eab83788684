"""Random plays on a mesh of credit machines: who is there, what happens, and the laws that hold at every step.

A calm play has grants, sending, attaching and idling only; no credit is withdrawn and nobody leaves, so the sums hold
at every instant. A rough one has all that can happen; it becomes calm at its end, and then everything must come right.
"""

from __future__ import annotations

import random

import networkx as nx

from router.core.ids_and_conditions import RouterId
from router.testing.anycast_mesh import AnycastMesh
from router.testing.clients import GrantHabit, SettlementHabit, SimPublisher, SimSubscriber

CALM = ("offer", "offer", "offer", "flood", "attach", "wait", "wait")
ROUGH = (*CALM, "leave", "pause", "lower", "resume", "drain", "unsubscribe", "subscribe", "cut", "join", "reroute")
SETTLED_S = 0.5
"""A calm time after which a disturbance must have passed: quarantine, debt and round trips, with room."""


class Play:
    """One play.

    Args:
        is_rough: credit is withdrawn, clients leave, connections and routers die.
    """

    def __init__(self, seed: int, *, is_rough: bool) -> None:
        self.rng = rng = random.Random(seed)
        names = [f"R{number}" for number in range(1, rng.randint(1, 5) + 1)]
        edges = [(rng.choice(names[:number]), names[number]) for number in range(1, len(names))]
        if len(names) > 2:
            edges += [tuple(rng.sample(names, 2)) for _ in range(rng.randint(0, 2))]  # type: ignore[misc]
        self.edges = sorted({(min(edge), max(edge)) for edge in edges})
        delay_s = rng.choice([0.0001, 0.0005, 0.004])
        self.mesh = AnycastMesh(
            self.edges,
            seed=seed,
            routers=names,
            delay_s=delay_s,
            jitter_s=delay_s * rng.random(),
            client_delay_s=rng.choice([0.0001, 0.001, 0.004]),
            is_closest=rng.random() < 0.3,
            has_outcomes=seed % 2 == 1,
        )
        self.names = names
        self.is_rough = is_rough
        self.publishers: list[SimPublisher] = []
        self.subscribers: list[SimSubscriber] = []
        self.paused: list[SimSubscriber] = []
        settling = (SettlementHabit.WHEN_TAKEN, SettlementHabit.WHEN_DONE)
        self.accepts = settling[seed // 2 % 2] if self.mesh.has_outcomes else SettlementHabit.NEVER
        self.egresses = rng.sample(names, min(len(names), rng.randint(1, 2)))
        for egress in self.egresses:
            self.subscribe(egress)
        self.mesh.run_for(0.05)  # until all routers know; a nearer egress that comes later takes from a farther one
        for _ in range(rng.choice([1, 2, 5, 20, 40])):
            self.attach()
        self.old: set[int] = set()
        self.old_open = 0
        self.mesh.on_step = self.check_always if is_rough else self.check_calm

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
                accepts=self.accepts,
            )
        )

    def attach(self) -> None:
        """A publisher attaches somewhere."""
        self.publishers.append(self.mesh.add_publisher(self.rng.choice(self.names), is_settled=self.rng.random() < 0.7))

    def act(self) -> None:
        """Something happens, and a little time passes."""
        rng, mesh = self.rng, self.mesh
        what = rng.choice(ROUGH if self.is_rough else CALM)
        publisher = rng.choice(self.publishers)
        subscriber = rng.choice(self.subscribers) if self.subscribers else None
        if what in ("offer", "flood") and publisher.is_attached:
            publisher.offer(rng.choice([1, 1, 3]) if what == "offer" else rng.randint(10, 200))
        elif what == "attach" and len(self.publishers) < 60:
            self.attach()
        elif what == "leave" and len(self.publishers) > 1:
            self.publishers.remove(publisher)
            mesh.remove_publisher(publisher)
        elif what == "subscribe" and len(self.subscribers) < 4:
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
        # The longest is beyond the linger, so that addresses close and open again.
        mesh.run_for(rng.choice([0.0, 0.0005, 0.002, 0.01, 0.03, 0.15, 1.2]))

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
        """All that is broken is repaired; from now on the sums hold, but for what was sent on withdrawn credit."""
        for left, right in self.edges:
            self.mesh.join(RouterId(left), RouterId(right))
        self.names = [name for name in self.names if self.mesh.routers[RouterId(name)].is_alive]
        if not self.subscribers:
            self.subscribe(self.names[0])
        for subscriber in self.subscribers:
            subscriber.resume()
        self.mesh.run_for(SETTLED_S)
        self.old = set(self.mesh.open)
        self.mesh.on_step = self.check_settled

    def finish(self, limit_s: float = 20.0) -> None:
        """Every message that has a way to a subscriber is sent to one: no deadlock."""
        reachable: set[str] = set()
        for router in self.mesh.subscribers.values():
            reachable |= nx.node_connected_component(self.mesh.graph, router)
        able = [p for p in self.publishers if self.mesh.home(p) in reachable]
        ids = {p.key for p in self.mesh.publishers.values() if self.mesh.home(p) in reachable}

        def is_done() -> bool:
            return not any(p.backlog for p in able) and not any(owner in ids for owner in self.mesh.open.values())

        done = self.mesh.run_until_true(is_done, limit_s=limit_s)
        assert done, [(p.key, self.mesh.home(p), p.backlog, p.link.credit) for p in able if p.backlog]
        self.mesh.run_for(0.2)
        self.mesh.check_invariants()

    # Laws

    def check_always(self) -> None:
        """At every instant of every play. The links assert the rest: credit below zero, sending without credit."""

    def check_calm(self) -> None:
        """Promises 1 and 2 at every instant, in the routers' eyes and in the clients'."""
        mesh = self.mesh
        granted = mesh.granted()
        held = mesh.held()
        assert held + mesh.inside() <= granted + mesh.attached(), "promise 1, as routers reckon"
        credit = sum(publisher.link.credit for publisher in self.publishers)
        attached = len(self.publishers)
        assert credit + len(mesh.open) <= granted + attached, "promise 1, as clients see it"
        for router in mesh.routers.values():
            publishers = router.machine.publishers
            n = len(publishers.attached)
            assert sum(p.standing() for p in publishers.attached.values()) <= router.machine.allotted() + n, "promise 2"
        assert mesh.waiting_in_core() == 0, "messages wait elsewhere than at their first router"

    def check_settled(self) -> None:
        """The same after a disturbance, less what had been sent before on credit that was withdrawn."""
        mesh = self.mesh
        self.old &= mesh.open.keys()
        sent = len(mesh.open) - len(self.old)
        credit = sum(p.link.credit for p in self.mesh.publishers.values() if p.is_attached)
        assert credit + sent <= mesh.granted() + mesh.attached(), "promise 1, settled"


# Whole plays


def calm_play(seed: int) -> Play:
    """Play a calm play to its end.

    Raises:
        AssertionError: a law was broken.
    """
    play = Play(seed, is_rough=False)
    for _ in range(play.rng.randint(5, 40)):
        play.act()
        play.mesh.check_invariants()
    play.finish()
    assert play.mesh.lost_count == play.mesh.released_count == 0
    assert sum(play.mesh.delivered_of.values()) == play.mesh.published
    return play


def rough_play(seed: int) -> Play:
    """Play a rough play to its end.

    Raises:
        AssertionError: a law was broken.
    """
    play = Play(seed, is_rough=True)
    for _ in range(play.rng.randint(5, 60)):
        play.act()
        play.mesh.check_invariants()
        if len(play.names) > 1 and play.rng.random() < 0.01:
            play.kill_one()
    play.settle()
    play.finish()
    drains = [took for subscriber in play.subscribers for took in subscriber.drained_s]
    assert max(drains, default=0.0) < 0.5, "a quarantine and round trips, not the bound"
    return play
