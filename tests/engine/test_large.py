"""Large messages and slow receivers: what lies in a router is bounded, however slowly it is read."""

from __future__ import annotations

import itertools
import math

import pytest

from router.dataplane.transfer_stages import PIECE_BYTES, STREAM_BUFFER_BYTES
from router.runtime import Runtime
from tests.helpers.engine import Bench, Plug, Wire
from tests.helpers.peer import Peer, PeerReceiver, message

WINDOW_BYTES = 4 * 65536
"""Of a session, with the setting below."""
TOPIC = "openstack.org/om/rpc/multicast/openstack/topic"
FORWARDING = {"session_window_frames": 4}
BOUND_BYTES = STREAM_BUFFER_BYTES + 2 * WINDOW_BYTES
"""What may lie in a router between one publisher and one subscriber: output, and what its sessions have not read."""


def plug_of(peer: Peer) -> Plug:
    """The router's end of a client's wire."""
    plug = peer.wire.ends[1]
    assert isinstance(plug, Plug)
    return plug


def line_of(bench: Bench, count: int) -> list[Runtime]:
    """So many routers in a line."""
    return [bench.router("A")] if count == 1 else bench.mesh(*itertools.pairwise("ABC"[:count]))


def read_slowly(bench: Bench, slow: Plug, room: int) -> int:
    """Let all wires move but that of *slow*, of which *room* bytes are read at a time. Returns: bytes written to it."""
    count = 0
    slow.room = room
    wire = next(wire for wire in bench.wires if slow in wire.ends)
    wire.is_still = True
    for _ in range(20):
        bench.run()
        data = slow.take()
        count += len(data)
        wire.ends[0].give(data)
    return count


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("size", [1000, 50_000, 1_000_000])
def test_a_slow_receiver_with_much_credit_stops_its_sender(bench: Bench, size: int, settled: bool) -> None:
    router = bench.router("A", forwarding=FORWARDING)
    publisher, subscriber = bench.client(router), bench.client(router)
    subscriber.receiver("large", credit=100_000)
    sender = publisher.sender("large")
    bench.run()
    before = len(publisher.wire.log[0])
    for _ in range(max(20, 5_000_000 // size)):
        sender.send(message("x" * size), settled=settled)
    written = read_slowly(bench, plug_of(subscriber), 100_000)
    inside = len(publisher.wire.log[0]) - before - written
    assert inside <= BOUND_BYTES + 2 * size
    assert written > 1_000_000


class Stuck:
    """A subscriber whose connection takes nothing more when the first bytes of a large message are in it."""

    def __init__(self, bench: Bench, count: int) -> None:
        self.bench = bench
        self.routers = line_of(bench, count)
        self.publisher, self.subscriber = bench.client(self.routers[0]), bench.client(self.routers[-1])
        self.receiver: PeerReceiver = self.subscriber.receiver("large", credit=10).accepting()
        self.sender = self.publisher.sender("large")
        bench.run()
        self.plug = plug_of(self.subscriber)
        self.plug.room = 20_000
        self.subscriber.wire.is_still = True
        self.data = message("x" * 500_000)

    def free(self) -> None:
        """It takes everything again."""
        self.plug.room = 1e9
        self.subscriber.wire.is_still = False
        self.bench.run()


@pytest.fixture(params=[1, 2])
def stuck(request: pytest.FixtureRequest, bench: Bench) -> Stuck:
    return Stuck(bench, request.param)


def test_the_engine_is_given_a_large_message_piece_by_piece(stuck: Stuck) -> None:
    sent = stuck.sender.send(stuck.data)
    stuck.bench.run()
    assert 0 < stuck.plug.port.unwritten_bytes <= 4 * PIECE_BYTES
    assert sent.outcome is None
    stuck.free()
    assert [one.data for one in stuck.receiver.messages] == [stuck.data]
    assert sent.outcome == "accepted"


def test_what_follows_a_large_message_stays_behind_it(stuck: Stuck) -> None:
    data = [stuck.data, message("small"), stuck.data + b"", message("last")]
    sent = [stuck.sender.send(one) for one in data]
    stuck.bench.run()
    stuck.free()
    assert [one.data for one in stuck.receiver.messages] == data
    assert {one.outcome for one in sent} == {"accepted"}


@pytest.mark.parametrize("settled", [False, True])
def test_a_whole_message_goes_on_when_its_sender_leaves(stuck: Stuck, settled: bool) -> None:
    stuck.sender.send(stuck.data, settled=settled)
    stuck.bench.run()
    stuck.publisher.wire.cut()
    stuck.bench.run()
    stuck.free()
    assert [one.data for one in stuck.receiver.messages] == [stuck.data]


@pytest.mark.parametrize("how", ["detach", "cut"])
def test_a_large_message_that_was_not_written_to_its_end_may_have_been_seen(bench: Bench, how: str) -> None:
    stuck = Stuck(bench, 1)
    sent = stuck.sender.send(stuck.data)
    bench.run()
    if how == "cut":
        stuck.subscriber.wire.cut()
    else:
        stuck.receiver.close()
        stuck.free()
    bench.run()
    assert (sent.outcome, sent.failed) == ("modified", True)
    assert stuck.receiver.bodies == []
    again = bench.client(stuck.routers[0]).receiver("large", credit=5).accepting()
    bench.advance(0.1)  # credit that was taken back may still be in use
    stuck.sender.send(stuck.data)
    bench.run()
    assert [one.data for one in again.messages] == [stuck.data]


def test_a_subscriber_may_refuse_a_large_message_before_its_end(stuck: Stuck) -> None:
    stuck.receiver.policy = None
    stuck.plug.room = 200_000
    sent = stuck.sender.send(stuck.data)
    stuck.bench.run()
    stuck.subscriber.give(stuck.plug.take())
    delivery = stuck.receiver.link.current
    delivery.update(delivery.REJECTED)
    delivery.settle()
    stuck.receiver.accepting()
    stuck.free()
    assert sent.outcome == "rejected"
    stuck.receiver.partial = b""
    stuck.sender.send(message("next"))
    stuck.bench.run()
    assert stuck.receiver.bodies == ["next"]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_copies_of_a_large_multicast_arrive_whole(bench: Bench, count: int) -> None:
    routers = line_of(bench, count)
    publisher = bench.client(routers[0])
    receivers = [bench.client(router).receiver("broadcast.large", credit=10) for router in routers for _ in range(2)]
    bench.run()
    data = [message(str(number) * 300_000) for number in range(3)]
    sent = [publisher.sender("broadcast.large").send(one) for one in data]
    bench.run()
    for receiver in receivers:
        assert sorted(one.data for one in receiver.messages) == data
    assert {one.outcome for one in sent} == {"accepted"}


def plug_between(bench: Bench, one: Runtime, other: Runtime) -> tuple[Plug, Wire]:
    """The end of *one*'s connection to *other*, and its wire."""
    for wire in bench.wires:
        for end, far in (wire.ends, wire.ends[::-1]):
            if isinstance(end, Plug) and isinstance(far, Plug) and (end.runtime, far.runtime) == (one, other):
                return end, wire
    raise AssertionError("they are not neighbors")


@pytest.mark.parametrize("size", [100_000, 10])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_large_copies_follow_one_another_to_a_subscriber_that_was_stuck(bench: Bench, count: int, size: int) -> None:
    """The first is under way when its connection takes nothing, and the others were counted on its credit."""
    routers = line_of(bench, count)
    publisher, subscriber, other = (bench.client(router) for router in (routers[0], routers[-1], routers[-1]))
    receiver = subscriber.receiver(TOPIC, credit=100).accepting()
    beside = other.receiver(TOPIC, credit=100).accepting()
    sender = publisher.sender(TOPIC)
    bench.advance(1)
    bodies = [message(f"{number:2}" + "x" * (100_000 if number % 2 == 0 else size)) for number in range(20)]
    plug = plug_of(subscriber)
    plug.room = 0
    while sender.credit and len(sender.sent) < len(bodies):
        sender.send(bodies[len(sender.sent)], settled=True)
        bench.run()
    assert len(sender.sent) > 3
    plug.room = 1 << 30
    bench.run()
    for body in bodies[len(sender.sent) :]:
        sender.send(body, settled=True)
        bench.advance(1)
    assert [it.data for it in receiver.messages] == bodies
    assert [it.data for it in beside.messages] == bodies


def test_half_a_message_that_waits_for_a_circuit_stays_on_it(bench: Bench) -> None:
    a, b, c = bench.mesh(("A", "B"), ("B", "C"))
    receiver = bench.client(c).receiver("large", credit=100).accepting()
    sender = bench.client(a).sender("large")
    for _ in range(20):  # credit comes to who has used some
        sender.send(message("small"))
        bench.run()
    here, to_here = plug_between(bench, a, b)
    there, to_there = plug_between(bench, b, c)
    there.room = 20_000
    here.room = 50_000
    to_here.is_still = to_there.is_still = True
    sent = [sender.send(message(f"{n} " + "x" * 300_000)) for n in range(3)]
    for _ in range(14):  # two of them, and half of the third one
        bench.run()
        to_here.ends[1 - to_here.ends.index(here)].give(here.take())
    there.room = here.room = math.inf
    to_there.is_still = False
    bench.run()
    to_here.is_still = False
    bench.run()
    assert [one.outcome for one in sent] == ["accepted"] * 3
    assert [body[:2] for body in receiver.bodies[20:]] == ["0 ", "1 ", "2 "]
    assert len(bench.wires) == 4


def streams_that_are_stuck(bench: Bench, peers: list[Peer], *, settled: bool) -> list[PeerReceiver]:
    """Each peer sends half a message to the next of them, the last one to the first, and is written nothing."""
    receivers = [peer.receiver(f"to/{at}", credit=10).accepting() for at, peer in enumerate(peers)]
    senders = [peer.sender(f"to/{(at + 1) % len(peers)}") for at, peer in enumerate(peers)]
    bench.run()
    for peer in peers:
        plug_of(peer).room = 0
    half = message("x" * 4_000_000)[:2_000_000]
    sent = [sender.begin(half, settled=settled) for sender in senders]
    bench.run()
    for one in sent:
        one.end()
    bench.run()
    return receivers


@pytest.mark.parametrize("settled", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_clients_that_stream_to_each_other_and_read_nothing_stop_nobody(
    bench: Bench, count: int, settled: bool
) -> None:
    router = bench.router("A", forwarding={**FORWARDING, "held_message_bytes": 10_000})
    peers = [bench.client(router) for _ in range(count)]
    receivers = streams_that_are_stuck(bench, peers, settled=settled)
    assert [receiver.messages for receiver in receivers] == [[]] * count
    other = bench.client(router)
    receiver = other.receiver("other", credit=1).accepting()
    sender = other.sender("other")
    bench.run()
    sender.send(message("small"))
    bench.run()
    assert receiver.bodies == ["small"]
    for peer in peers:
        plug_of(peer).room = math.inf
    bench.run()
    assert [len(receiver.messages[0].data) for receiver in receivers] == [2_000_000] * count


def test_routers_that_stream_to_each_other_over_a_full_wire_stop_nobody(bench: Bench) -> None:
    routers = bench.mesh(("A", "B"), ("B", "C"), forwarding={**FORWARDING, "held_message_bytes": 10_000})
    ends = [bench.client(routers[0]), bench.client(routers[2])]
    receivers = [peer.receiver(f"to/{at}", credit=10).accepting() for at, peer in enumerate(ends)]
    senders = [peer.sender(f"to/{1 - at}") for at, peer in enumerate(ends)]
    bench.advance(1)
    wires = [wire for wire in bench.wires if all(isinstance(end, Plug) for end in wire.ends)]
    assert len(wires) == 2
    plugs = [end for wire in wires for end in wire.ends if isinstance(end, Plug)]
    sent = [sender.begin(message("x" * 4_000_000)[:50_000]) for sender in senders]
    bench.run()
    for plug in plugs:
        plug.room = 0
    for one in sent:
        one.part(b"x" * 2_000_000)
    bench.run()
    for plug in plugs:
        plug.room = math.inf
    for one in sent:
        one.end()
    bench.run()
    assert [len(receiver.messages[0].data) for receiver in receivers] == [2_050_000] * 2
