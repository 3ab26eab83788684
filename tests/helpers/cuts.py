"""Whole routers joined by wires that are cut while multicasts pass, each in the middle of what it carries.

    play = Cuts(("AB", "BC", "CD", "DA"), seed=1)
    play.run(cuts=20)
    play.settle()
    assert not play.faults()

One wire is down at a time, and the mesh holds together without it: each router has a path to each other one throughout.
"""

from __future__ import annotations

import random
from collections import Counter

from router.runtime import Runtime
from tests.helpers.engine import Bench, Wire
from tests.helpers.peer import PeerReceiver, PeerSender, Received, message

MESHES = {
    "ring": ("AB", "BC", "CD", "DA"),
    "two rings": ("AB", "BC", "CD", "DA", "CE", "EF", "FA"),
    "ladder": ("AB", "BC", "DE", "EF", "AD", "BE", "CF"),
    "full mesh": ("AB", "AC", "AD", "BC", "BD", "CD"),
}
"""Edges of meshes that hold together without any one of them."""
FEW = {"ring": "AC", "two rings": "BF", "ladder": "AF", "full mesh": "AD"}
"""Routers with subscribers where not all have some: the others have nobody live but by those that they lead to."""
MULTICAST = "openstack.org/om/rpc/multicast/openstack/news"


KEPT_S = 6.0
"""Longer than routers keep multicasts: what was not mended by then is not when the wire is back."""


class Cuts:
    """A mesh with a publisher of a multicast address at each router.

    Args:
        edges: names of two routers each.
        seed: of all that is random.
        at: names of the routers that have a subscriber; all by default.
    """

    def __init__(self, edges: tuple[str, ...], seed: int, at: str = "") -> None:
        self.rng = random.Random(seed)
        self.bench = bench = Bench(seed=seed)
        self.names = sorted(set("".join(edges)))
        for name in self.names:
            bench.router(name)
        self.wires: dict[str, Wire] = {}
        for edge in edges:
            self._join(edge)
        bench.advance(2)
        self.receivers = {name: self._subscribe(name) for name in at or self.names}
        bench.advance(1)
        self._senders: list[PeerSender] = [bench.client(self._of(name)).sender(MULTICAST) for name in self.names]
        bench.advance(1)
        self.sent: list[str] = []
        self._got: dict[str, Counter[str]] = {name: Counter() for name in self.receivers}

    def _subscribe(self, name: str) -> PeerReceiver:
        receiver = self.bench.client(self._of(name)).receiver(MULTICAST, credit=100)

        def take(received: Received) -> None:
            received.settle()
            receiver.flow(1)

        receiver.policy = take
        return receiver

    def _of(self, name: str) -> Runtime:
        return self.bench.routers[name]

    def _join(self, edge: str) -> None:
        self.wires[edge] = self.bench.join(self._of(edge[0]), self._of(edge[1]))

    def _send(self) -> None:
        number = self.rng.randrange(len(self._senders))
        for _ in range(self.rng.randint(1, 5)):
            if self._senders[number].credit <= 0:
                return
            body = f"{self.names[number]} {len(self.sent)}"
            self.sent.append(body)
            self._senders[number].send(message(body), settled=self.rng.random() < 0.5)

    def _move(self) -> None:
        """Some wires carry what is there, in any order."""
        wires = [wire for wire in self.bench.wires if not wire.is_cut]
        for wire in self.rng.sample(wires, self.rng.randint(1, len(wires))):
            wire.move()

    def _late(self, edge: str) -> list[Wire]:
        """Choose wires that carry nothing for a while, so that somebody hears late, or by one side, of a cut."""
        if self.rng.random() < 0.3:
            return [wire for wire in self.wires.values() if self.rng.random() < 0.3]
        late = self.rng.choice(self.names)
        side = self.rng.choice(edge)
        return [wire for name, wire in self.wires.items() if late in name and side not in name]

    def run(self, cuts: int) -> None:
        """Send all the time; cut a wire in the middle, and make it anew some time later, so often."""
        rng = self.rng
        for _ in range(cuts):
            for _ in range(rng.randint(0, 12)):
                self._send()
                self._move()
            edge = rng.choice(sorted(self.wires))
            self.wires[edge].cut()
            late = self._late(edge)
            for wire in late:
                wire.is_still = True
            for _ in range(rng.randint(0, 30)):
                self._send()
                self._move()
            for wire in late:
                wire.is_still = False
            if rng.random() < 0.7:
                self.bench.advance(rng.choice([0.001, 0.02, 0.3, KEPT_S]))
                for _ in range(rng.randint(0, 10)):
                    self._send()
                    self._move()
            self._join(edge)
            self._count()

    def settle(self) -> None:
        """Let all arrive that is under way."""
        self.bench.advance(10)
        self._count()

    def _count(self) -> None:
        for name, receiver in self.receivers.items():
            self._got[name].update(receiver.bodies)
            receiver.messages.clear()

    def faults(self) -> list[str]:
        """What came to a subscriber more than once, or not at all."""
        return [
            f"{body} came {got[body]} times to {name}"
            for name, got in self._got.items()
            for body in self.sent
            if got[body] != 1
        ]
