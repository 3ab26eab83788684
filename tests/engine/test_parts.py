"""Messages of several frames: held until whole for a client, streamed when too large, aborted, given up."""

from __future__ import annotations

import itertools

import pytest

from router.runtime import Runtime
from tests.helpers import frames
from tests.helpers.engine import Bench
from tests.helpers.peer import Peer, PeerReceiver, PeerSender, message

HELD = {"held_message_bytes": 4000}


def held_bytes(router: Runtime) -> int:
    return sum(connection.port.held_bytes for connection in router.connections.values())


def transfers(peer: Peer) -> list[frames.Frame]:
    """Transfer frames that the router wrote to the peer."""
    return [frame for frame in frames.read(peer.wire.log[1]) if frame.name == "transfer"]


class Line:
    """A publisher and a subscriber at one router, or at both ends of a line of them."""

    def __init__(self, bench: Bench, count: int, *, credit: int = 100) -> None:
        self.bench = bench
        if count == 1:
            self.routers = [bench.router("A", forwarding=HELD)]
        else:
            names = "ABC"[:count]
            self.routers = bench.mesh(*itertools.pairwise(names), forwarding=HELD)
        self.client: Peer = bench.client(self.routers[0], container="publisher")
        self.server: Peer = bench.client(self.routers[-1], container="subscriber")
        self.receiver: PeerReceiver = self.server.receiver("big", credit=credit).accepting()
        self.sender: PeerSender = self.client.sender("big")

    def run(self) -> None:
        self.bench.run()


@pytest.fixture(params=[1, 2, 3])
def line(request: pytest.FixtureRequest, bench: Bench) -> Line:
    return Line(bench, request.param)


def test_nothing_is_seen_of_a_message_before_it_is_whole(line: Line) -> None:
    data = message("x" * 3000)
    sent = line.sender.begin(data[:1000])
    line.run()
    sent.part(data[1000:2000])
    line.run()
    assert not transfers(line.server)
    assert held_bytes(line.routers[0]) == 2000
    assert not any(held_bytes(router) for router in line.routers[1:])
    sent.end(data[2000:])
    line.run()
    assert line.receiver.bodies == ["x" * 3000]
    assert sent.outcome == "accepted"
    assert held_bytes(line.routers[-1]) == 0


def test_parts_of_a_datagram_go_on_between_routers_as_they_arrive(bench: Bench) -> None:
    line = Line(bench, 2)
    sent = line.client.sender(None).begin(message("x" * 3000, address="big")[:1000])
    line.run()
    assert held_bytes(line.routers[0]) == 0
    assert held_bytes(line.routers[1]) > 1000  # what arrived, and the annotations
    sent.abort()
    line.run()


@pytest.mark.parametrize("end", ["end", "abort"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_datagram_that_waits_for_credit_in_parts_reaches_a_client_whole(bench: Bench, count: int, end: str) -> None:
    line = Line(bench, count, credit=1)
    line.client.sender(None).send(message("first", address="big"), settled=True)
    line.run()
    data = message("x" * 3000, address="big")
    sent = line.client.sender(None).begin(data[:1000])
    line.run()
    line.receiver.flow(5)
    line.run()
    assert line.receiver.bodies == ["first"]
    assert len(transfers(line.server)) == 1
    if end == "end":
        sent.end(data[1000:])
    else:
        sent.abort()
    line.run()
    assert line.receiver.bodies == ["first"] + ["x" * 3000] * (end == "end")
    assert len(transfers(line.server)) == len(line.receiver.bodies)


def test_a_message_that_arrives_byte_by_byte_is_delivered_whole() -> None:
    bench = Bench(piece=1)
    line = Line(bench, 1)
    data = message("x" * 500)
    sent = line.sender.begin(data[:1])
    for at in range(1, len(data) - 1, 50):
        line.run()
        sent.part(data[at : min(at + 50, len(data) - 1)])
    sent.end(data[-1:])
    line.run()
    assert line.receiver.bodies == ["x" * 500]
    assert len(transfers(line.server)) == 1
    bench.close()


@pytest.mark.parametrize("piece", [1, 3, 7])
def test_the_address_is_found_however_small_the_parts(bench: Bench, piece: int) -> None:
    a, b = bench.mesh(("A", "B"))
    client, server = bench.client(a), bench.client(b)
    receiver = server.receiver("there", credit=5).accepting()
    for link in (client.sender(None), client.sender("there")):
        data = message("hello", address="there")
        sent = link.begin(data[:piece])
        for at in range(piece, len(data), piece):
            bench.run()
            sent.part(data[at : at + piece])
        sent.end()
        bench.run()
        assert sent.outcome == "accepted"
    assert receiver.bodies == ["hello", "hello"]


def test_large_messages_stream(line: Line) -> None:
    data = message("x" * 20_000)
    sent = line.sender.begin(data[:5000])
    line.run()
    assert line.receiver.partial == data[:5000]
    sent.part(data[5000:12_000])
    line.run()
    assert line.receiver.partial == data[:12_000]
    sent.end(data[12_000:])
    line.run()
    assert line.receiver.bodies == ["x" * 20_000]
    assert sent.outcome == "accepted"


def test_bytes_cross_unchanged_whatever_their_size(line: Line) -> None:
    for size in (1, 3990, 4000, 4010, 16_384, 100_000, 2_000_000):
        sent = line.sender.send(message("x" * size))
        line.run()
        assert line.receiver.messages[-1].data == message("x" * size)
        assert sent.outcome == "accepted"


def test_an_aborted_message_that_is_held_is_never_seen(line: Line) -> None:
    sent = line.sender.begin(message("x" * 3000)[:1000])
    line.run()
    sent.abort()
    line.run()
    line.sender.send(message("next"))
    line.run()
    assert line.receiver.bodies == ["next"]
    assert line.receiver.aborted == 0
    assert len(transfers(line.server)) == 1


def test_an_aborted_stream_is_aborted(line: Line) -> None:
    sent = line.sender.begin(message("x" * 30_000)[:10_000])
    line.run()
    assert line.receiver.partial
    sent.abort()
    line.run()
    assert line.receiver.aborted == 1
    line.sender.send(message("next"))
    line.run()
    assert line.receiver.bodies == ["next"]


@pytest.mark.parametrize("how", ["cut", "detach", "end"])
@pytest.mark.parametrize("settled", [False, True])
def test_a_sender_that_dies_in_the_middle(line: Line, how: str, settled: bool) -> None:
    for size, aborted in ((3000, 0), (30_000, 1)):
        client = line.bench.client(line.routers[0])
        sender = client.sender("big")
        sent = sender.begin(message("x" * size)[: size // 2], settled=settled)
        line.run()
        if how == "cut":
            client.wire.cut()
        elif how == "detach":
            sender.close()
        else:
            sender.end_session()
        line.run()
        assert line.receiver.aborted == aborted
        assert line.receiver.bodies == []
        if how == "detach" and not settled:
            assert sent.outcome == ("modified" if aborted else "released")
    after = line.sender.send(message("after"))
    line.run()
    assert line.receiver.bodies == ["after"]
    assert after.outcome == "accepted"
    for router in line.routers:
        assert router.data_plane.settlement.count == 0
        assert held_bytes(router) == 0


def test_a_subscriber_that_leaves_while_its_message_is_held(line: Line) -> None:
    data = message("x" * 3000)
    sent = line.sender.begin(data[:1000])
    line.run()
    line.receiver.close()
    line.run()
    sent.end(data[1000:])
    line.run()
    assert sent.outcome in ("released", "modified")
    assert len(line.routers) > 1 or sent.outcome == "released"
    again = line.server.receiver("big", credit=5).accepting()
    line.bench.advance(0.1)  # credit that was taken back may still be in use
    line.sender.send(message("next"))
    line.run()
    assert again.bodies == ["next"]


def test_a_subscriber_that_leaves_while_its_message_streams(line: Line) -> None:
    data = message("x" * 30_000)
    sent = line.sender.begin(data[:10_000])
    line.run()
    line.receiver.close()
    line.run()
    sent.end(data[10_000:])
    line.run()
    assert (sent.outcome, sent.failed) == ("modified", True)
    assert sent.is_settled


def test_a_subscriber_may_settle_before_the_last_part(line: Line) -> None:
    line.receiver.policy = None
    data = message("x" * 30_000)
    sent = line.sender.begin(data[:10_000])
    line.run()
    delivery = line.receiver.link.current
    delivery.update(delivery.REJECTED)
    delivery.settle()
    line.run()
    sent.end(data[10_000:])
    line.run()
    assert sent.outcome == "rejected"
    assert sent.is_settled
    line.receiver.accepting().partial = b""
    line.sender.send(message("next"))
    line.run()
    assert line.receiver.bodies == ["next"]


def test_a_message_that_has_no_subscriber_any_more_is_read_to_its_end_and_released(line: Line) -> None:
    line.receiver.link.drain(0)
    sent = line.sender.begin(message("x" * 3000)[:100])
    line.receiver.close()
    line.run()
    sent.end(message("x" * 3000)[100:])
    line.run()
    assert sent.outcome in ("released", "modified")
    assert sent.is_settled


def test_several_messages_in_parts_at_once_do_not_mix(line: Line) -> None:
    senders = [line.client.sender("big") for _ in range(5)]
    data = [message(str(n) * 3000) for n in range(5)]
    sent = [sender.begin(one[:500]) for sender, one in zip(senders, data, strict=True)]
    line.run()
    for at in range(500, 2500, 500):
        for one, whole in zip(sent, data, strict=True):
            one.part(whole[at : at + 500])
            line.run()
    for one, whole in zip(reversed(sent), reversed(data), strict=True):
        one.end(whole[2500:])
        line.run()
    assert [body[0] for body in line.receiver.bodies] == ["4", "3", "2", "1", "0"]
    assert {one.outcome for one in sent} == {"accepted"}


def test_order_is_kept_when_a_large_message_is_followed_by_small_ones(line: Line) -> None:
    for number in range(20):
        line.sender.send(message(f"{number:02} " + "x" * (30_000 if number % 3 == 0 else 10)))
    line.run()
    assert [body[:2] for body in line.receiver.bodies] == [f"{number:02}" for number in range(20)]


def test_what_is_held_for_a_connection_is_bounded(bench: Bench) -> None:
    router = bench.router("A", forwarding={"held_message_bytes": 10_000, "held_connection_bytes": 15_000})
    client, server = bench.client(router), bench.client(router)
    receiver = server.receiver("big", credit=10)
    other = server.receiver("big", credit=10)
    for _ in range(4):
        client.sender("big").begin(message("x" * 9000)[:8000])
        bench.run()
        assert held_bytes(router) <= 15_000
    assert receiver.partial or other.partial  # what would not fit streams


def test_a_multicast_that_is_too_large_to_hold_is_rejected(bench: Bench) -> None:
    router = bench.router("A", forwarding=HELD)
    client = bench.client(router)
    receiver = client.receiver("broadcast.x", credit=10)
    data = message("x" * 5000)
    sent = client.sender("broadcast.x").begin(data[:4500])
    bench.run()
    sent.end(data[4500:])
    bench.run()
    assert sent.outcome == "rejected"
    assert receiver.messages == []


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("address", ["big", "broadcast.x"])
@pytest.mark.parametrize("data", [b"\x00\x53\x70\xc0", b"not a message at all", b"\x00\x53\x99\x45", b"\xff"])
def test_what_is_no_message_ends_no_connection(bench: Bench, count: int, address: str, data: bytes) -> None:
    line = Line(bench, count)
    receiver = line.server.receiver(address, credit=5).accepting()
    subscriber_closed = line.server.closed
    sent = line.client.sender(address).send(data)
    anonymous = line.client.sender(None).send(data)
    line.run()
    assert line.client.closed is None
    assert line.server.closed is subscriber_closed
    assert len(line.routers[0].fib.routes) == count - 1
    assert anonymous.outcome == "rejected"
    # no router looks into a message that goes from an attached address on a circuit
    assert [one.data for one in (*line.receiver.messages, *receiver.messages)] == [data]
    assert sent.outcome == "accepted"
    again = line.sender.send(message("fine"))
    line.run()
    assert again.outcome == "accepted" or address == "big"
