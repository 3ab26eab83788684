"""Random lives of clients leave nothing in memory, down to the last object.

Messages under way hold each other, their links and their connections, and proton's objects hold them by counts that
the compiled code keeps itself. Python's collector doesn't see messages, so blocks of memory are counted.
Python's own cache of attributes that types were asked for keeps the names, and C code that asks by a new string each
time, as that of `datetime` does for each line that is logged, puts thousands of them there. So it is emptied before.
"""

from __future__ import annotations

import gc
import itertools
import random
import sys

import pytest
from proton import Delivery

from tests.helpers.engine import Bench
from tests.helpers.peer import Peer, PeerReceiver, PeerSender, Sent, message

ADDRESSES = ("exclusive.x", "balanced", "broadcast.x")
SIZES = (10, 1500, 40_000, 200_000)
OUTCOMES = (Delivery.ACCEPTED, Delivery.REJECTED, Delivery.RELEASED, Delivery.MODIFIED)
LIVES = 6
STEPS = 60


class Life:
    """Clients of one bench, who do what *rng* says and end in the midst of it."""

    def __init__(self, rng: random.Random, edges: tuple[tuple[str, str], ...]) -> None:
        self.rng = rng
        self.bench = Bench()
        self.routers = self.bench.mesh(*edges) if edges else [self.bench.router("A")]
        self.clients: list[tuple[Peer, PeerSender, PeerReceiver]] = []
        self.begun: dict[PeerSender, tuple[Sent, bytes]] = {}
        for _ in range(STEPS):
            self.step()
        for wire in self.bench.wires:
            wire.cut()
        self.bench.run()

    def step(self) -> None:
        rng = self.rng
        if len(self.clients) < 4 or rng.random() < 0.1:
            peer = self.bench.client(rng.choice(self.routers))
            sender = peer.sender(rng.choice((*ADDRESSES, None)))
            self.clients.append((peer, sender, peer.receiver(rng.choice(ADDRESSES), credit=rng.randrange(5))))
        client = rng.choice(self.clients)
        peer, sender, receiver = client
        act = rng.choice(("send", "receive", "leave", "move", "run"))
        if act == "send" and sender in self.begun:
            sent, rest = self.begun.pop(sender)
            if rng.random() < 0.5:
                sent.end(rest)
            else:
                sent.abort()
        elif act == "send":
            data = message("x" * rng.choice(SIZES), address=rng.choice(ADDRESSES))
            if rng.random() < 0.5:
                sender.send(data, settled=rng.random() < 0.5)
            else:
                half = len(data) // 2
                self.begun[sender] = (sender.begin(data[:half]), data[half:])
        elif act == "receive":
            receiver.flow(rng.randrange(3))
            for received in receiver.messages:
                if not received.was_settled and not received.delivery.local_state and rng.random() < 0.5:
                    received.settle(rng.choice(OUTCOMES))
        elif act == "leave" and rng.random() < 0.3:
            self.clients.remove(client)
            peer.wire.cut()
        elif act == "move":
            peer.wire.move()
        else:
            self.bench.run()


def clear_attribute_cache() -> None:
    """Let Python forget which attributes types were asked for, under whichever name its version has that."""
    if sys.version_info >= (3, 13):
        sys._clear_internal_caches()
    else:
        sys._clear_type_cache()


@pytest.mark.parametrize(
    "edges",
    [
        pytest.param((), id="one router"),
        pytest.param((("A", "B"), ("B", "C")), id="three in a line", marks=pytest.mark.slow),
    ],
)
def test_random_lives_leave_no_object(edges: tuple[tuple[str, str], ...]) -> None:
    blocks = []
    for _ in range(4):  # the same lives: the first time fills what is kept on purpose
        for seed in range(LIVES):
            Life(random.Random(seed), edges)
        gc.collect()
        clear_attribute_cache()
        blocks.append(sys.getallocatedblocks())
    growth = [after - before for before, after in itertools.pairwise(blocks)]
    assert min(growth) < LIVES, growth  # the interpreter's own tables grow now and then
