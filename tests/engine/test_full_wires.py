"""Clients and routers that stream to each other in circles while wires are full: no turn is without an end."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from tests.helpers.engine import Bench, Plug
from tests.helpers.peer import Peer, PeerReceiver, PeerSender, Sent, message

ADDRESSES = ("one", "two", "three", "multicast/all")
SIZES = (10, 1_000, 40_000, 200_000, 1_500_000)
ROOMS = (0.0, 0.0, 1_000.0, 100_000.0, math.inf)
STEPS = 60
SEEDS = [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 12))]


class Play:
    """Clients in a line of routers, each with senders and receivers, and what they do by chance."""

    def __init__(self, bench: Bench, seed: int) -> None:
        self.chance = chance = random.Random(seed)
        self.bench = bench
        names = "ABC"[: chance.randint(1, 3)]
        forwarding = {
            "held_message_bytes": chance.choice((1_000, 30_000, 1_000_000)),
            "session_window_frames": chance.choice((2, 4, 256)),
        }
        if len(names) == 1:
            self.routers = [bench.router("A", forwarding=forwarding)]
        else:
            self.routers = bench.mesh(*itertools.pairwise(names), forwarding=forwarding)
        self.peers: list[Peer] = []
        self.receivers: list[PeerReceiver] = []
        self.senders: list[PeerSender] = []
        self.unfinished: list[Sent] = []
        self.sent: list[Sent] = []
        for _ in range(chance.randint(1, 4)):
            peer = bench.client(chance.choice(self.routers))
            self.peers.append(peer)
            for address in chance.sample(ADDRESSES, chance.randint(1, 3)):
                self.receivers.append(peer.receiver(address, credit=chance.choice((1, 5, 100))).accepting())
            for address in chance.sample(ADDRESSES, chance.randint(1, 3)):
                self.senders.append(peer.sender(address))
        bench.advance(1)

    def step(self) -> None:
        """Do one thing."""
        chance = self.chance
        act = chance.choice((self._send, self._send, self._begin, self._begin, self._go_on, self._go_on, self._go_on,
                             self._end, self._fill, self._fill, self._grant))  # fmt: skip
        act()
        if chance.random() < 0.7:
            self.bench.run()
        if chance.random() < 0.1:
            self.bench.advance(chance.choice((0.01, 0.3)))

    def _data(self) -> bytes:
        return message("x" * self.chance.choice(SIZES))

    def _usable(self) -> list[PeerSender]:
        busy = {sent.link for sent in self.unfinished}
        return [sender for sender in self.senders if sender.closed is None and sender.link not in busy]

    def _send(self) -> None:
        if able := self._usable():
            self.sent.append(self.chance.choice(able).send(self._data(), settled=self.chance.random() < 0.3))

    def _begin(self) -> None:
        if able := self._usable():
            data = self._data()
            settled = self.chance.random() < 0.3
            self.unfinished.append(self.chance.choice(able).begin(data[: len(data) // 2 + 1], settled=settled))

    def _go_on(self) -> None:
        if self.unfinished:
            self.chance.choice(self.unfinished).part(b"x" * self.chance.choice(SIZES))

    def _end(self) -> None:
        if self.unfinished:
            sent = self.unfinished.pop(self.chance.randrange(len(self.unfinished)))
            if self.chance.random() < 0.2:
                sent.abort()
            else:
                sent.end()
                self.sent.append(sent)

    def _fill(self) -> None:
        """Let the wires of a client, or of all routers, take so much at a time."""
        wires = [self.chance.choice(self.peers).wire]
        if self.chance.random() < 0.3:
            wires = [wire for wire in self.bench.wires if all(isinstance(end, Plug) for end in wire.ends)]
        room = self.chance.choice(ROOMS)
        for end in (end for wire in wires for end in wire.ends):
            if isinstance(end, Plug):
                end.room = room

    def _grant(self) -> None:
        self.chance.choice(self.receivers).flow(self.chance.choice((1, 10)))

    def end(self) -> None:
        """Let everybody read, and end what was begun."""
        for wire in self.bench.wires:
            for end in wire.ends:
                if isinstance(end, Plug):
                    end.room = math.inf
        for sent in self.unfinished:
            sent.end()
        self.sent += self.unfinished
        for address in ADDRESSES:  # without any its publishers have no credit
            self.bench.client(self.routers[-1]).receiver(address, credit=1_000).accepting()
        for receiver in self.receivers:
            receiver.flow(1_000)
        self.bench.advance(5)


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_is_full_turns_end_and_all_have_their_outcomes_at_last(bench: Bench, seed: int) -> None:
    play = Play(bench, seed)
    for _ in range(STEPS):
        play.step()
    play.end()
    assert [sent for sent in play.sent if not sent.is_settled and sent.outcome is None] == []
    witness = bench.client(play.routers[0])
    receiver = witness.receiver("witness", credit=1).accepting()
    sender = witness.sender("witness")
    bench.advance(1)
    sender.send(message("still here"))
    bench.run()
    assert receiver.bodies == ["still here"]
