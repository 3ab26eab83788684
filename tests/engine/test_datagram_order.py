"""Datagrams to a neighbor that reads slowly: their order on data and streaming links, and how long they wait."""

from __future__ import annotations

import pytest

from router.dataplane.connection_port import Port
from tests.helpers.engine import Bench, Plug
from tests.helpers.peer import PeerReceiver, PeerSender, message

LARGE_BYTES = 60_000
"""Size of a message that arrives in one frame, is read at once and is written in two pieces, bytes."""
WAITING_S = 1.0
"""Time that a message may wait, seconds."""


class SlowWire:
    """Two routers with a wire that takes nothing, a streaming link that is not in use, and a subscriber behind it."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.a, b = bench.mesh(("A", "B"), forwarding={"waiting_s": WAITING_S})
        (self.wire,) = bench.wires
        plug = self.wire.ends[0]
        assert isinstance(plug, Plug)
        self.plug = plug
        self.receiver: PeerReceiver = bench.client(b).receiver("topic", credit=1000).accepting()
        listener = {"max_frame_bytes": 2 * LARGE_BYTES}
        self.senders: list[PeerSender] = [bench.client(self.a, listener=listener).sender(None) for _ in range(3)]
        self._leave_free_streams()
        self.plug.room = 0
        self.send_in_parts("fills", by=1, size=2 * LARGE_BYTES)

    @property
    def port(self) -> Port:
        """The end of the wire that is written."""
        return self.plug.port

    def _leave_free_streams(self) -> None:
        data = message("another's", address="topic")
        others = [self.bench.client(self.a).sender(None) for _ in range(2)]
        sent = [other.begin(data[:60], settled=True) for other in others]
        self.bench.run()
        for one, other in zip(sent, others, strict=True):
            one.end(data[60:])
            self.bench.run()
            other.close()
        self.bench.run()
        assert [stream.bound for stream in self.port.streams] == [0, 0]

    def send(self, body: str, *, by: int = 0, size: int = 0) -> None:
        """Send a message whole."""
        self.senders[by].send(message(body + " " * size, address="topic"))
        self.bench.run()

    def send_in_parts(self, body: str, *, by: int = 0, size: int = 0) -> None:
        """Send a message of which the router reads the beginning first."""
        data = message(body + " " * size, address="topic")
        sent = self.senders[by].begin(data[:60], settled=True)
        self.bench.run()
        sent.end(data[60:])
        self.bench.run()

    def write(self, room: int) -> None:
        """Let the wire take at most *room* bytes twice."""
        self.plug.room = room
        self.wire.move()
        self.plug.room = 0

    def arrived(self) -> list[str]:
        """Let the wire take everything. Returns: the first sender's messages in the order in which they arrived."""
        self.plug.room = float("inf")
        self.bench.run()
        bodies = [body.rstrip() for body in self.receiver.bodies]
        return [body for body in bodies if body not in ("another's", "fills")]


@pytest.fixture
def slow(bench: Bench) -> SlowWire:
    return SlowWire(bench)


def test_a_message_in_parts_overtakes_no_large_one_that_is_being_written(slow: SlowWire) -> None:
    slow.send("first", size=LARGE_BYTES)
    assert slow.port.data_links[0].current is not None
    slow.send_in_parts("second")
    assert slow.arrived() == ["first", "second"]


def test_what_follows_a_message_in_parts_waits_until_that_has_its_link(slow: SlowWire) -> None:
    slow.send("first", size=LARGE_BYTES)
    data = message("second", address="topic")
    sent = slow.senders[0].begin(data[:60], settled=True)
    slow.bench.run()
    link = slow.port.data_links[0]
    while link.current is not None:
        slow.write(100)
    assert link.waiting
    sent.end(data[60:])
    slow.send("third")
    assert slow.arrived() == ["first", "second", "third"]
    assert link.is_idle()


def test_a_message_in_parts_that_waits_holds_up_nobody_once_it_is_its_turn(slow: SlowWire) -> None:
    slow.send("first", size=LARGE_BYTES)
    data = message("second", address="topic")
    sent = slow.senders[0].begin(data[:60], settled=True)
    slow.bench.run()
    slow.send("another's", by=2, size=LARGE_BYTES)
    assert slow.arrived() == ["first"]
    assert slow.receiver.bodies[-1].rstrip() == "another's"
    sent.end(data[60:])
    assert slow.arrived() == ["first", "second"]


def test_a_message_that_had_left_waits_as_long_as_any_when_its_link_is_lost(slow: SlowWire) -> None:
    slow.send("first", size=LARGE_BYTES)
    slow.send("second", size=LARGE_BYTES)
    link = slow.port.data_links[0]
    assert link.waiting
    slow.write(100)
    assert link.current is not None
    assert not link.waiting
    slow.bench.advance(1.2 * WAITING_S)
    receiver = slow.bench.client(slow.a).receiver("topic").accepting()
    slow.wire.cut()
    slow.bench.run()
    slow.bench.advance(0.8 * WAITING_S)
    receiver.flow(100)
    slow.bench.run()
    assert "second" in [body.rstrip() for body in receiver.bodies]
