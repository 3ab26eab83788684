"""Credit toward publishers, what waits for a subscriber's credit, and the bounds of all of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

import pytest
from proton import Link

from router.binding.proton_functions import pn_session_outgoing_bytes
from router.dataplane.links import EgressLink
from tests.helpers import frames
from tests.helpers.engine import Bench
from tests.helpers.frames import Frame
from tests.helpers.peer import Peer, PeerReceiver, PeerSender, message


def flows(peer: Peer) -> list[Frame]:
    """Link flows that the router wrote to the peer."""
    found = [frame for frame in frames.read(peer.wire.log[1]) if frame.name == "flow"]
    return [frame for frame in found if frame.flow("link_credit") is not None]


@pytest.fixture(params=[1, 2], ids=["one router", "two routers"])
def ends(request: pytest.FixtureRequest, bench: Bench) -> tuple[Peer, Peer]:
    """A client for publishing and one for subscribing."""
    routers = [bench.router("A")] if request.param == 1 else bench.mesh(("A", "B"))
    return bench.client(routers[0], container="publisher"), bench.client(routers[-1], container="subscriber")


def opened(bench: Bench, ends: tuple[Peer, Peer]) -> PeerReceiver:
    """A subscriber that has used up its credit: publishers have one each, and what they send waits."""
    publisher, subscriber = ends
    receiver = subscriber.receiver("topic", credit=1).accepting()
    sender = publisher.sender("topic")
    sender.send(message("first"))
    bench.run()
    assert receiver.bodies == ["first"]
    sender.close()
    bench.run()
    receiver.messages.clear()
    return receiver


def use(bench: Bench, sender: PeerSender, receiver: PeerReceiver, count: int) -> None:
    """Send so much that the publisher is lent more than it began with."""
    receiver.accepting()
    for _ in range(count):
        sender.send(message("use"))
        bench.run()
        receiver.flow(1)
        bench.run()


def test_no_credit_until_a_subscriber_exists_anywhere(bench: Bench, ends: tuple[Peer, Peer]) -> None:
    publisher, subscriber = ends
    sender = publisher.sender("topic")
    assert sender.is_attached
    assert sender.credit == 0
    sent = sender.send(message("early"))
    bench.run()
    assert not sent.outcomes
    receiver = subscriber.receiver("topic", credit=5).accepting()
    assert sender.credit > 0
    bench.run()
    assert receiver.bodies == ["early"]
    assert sent.outcome == "accepted"


def test_credit_is_withdrawn_when_the_last_subscriber_leaves(bench: Bench, ends: tuple[Peer, Peer]) -> None:
    publisher, subscriber = ends
    sender = publisher.sender("topic")
    one, other = subscriber.receiver("topic", credit=5), subscriber.receiver("topic", credit=5)
    one.close()
    bench.run()
    assert sender.credit > 0
    other.close()
    bench.run()
    assert sender.credit == 0
    assert sender.closed is None
    subscriber.receiver("topic", credit=5)
    bench.advance(0.1)  # what was taken back may be in use until the quarantine is over
    assert sender.credit > 0


def test_transfers_that_cross_the_withdrawal_are_released(bench: Bench, ends: tuple[Peer, Peer]) -> None:
    publisher, subscriber = ends
    sender = publisher.sender("topic")
    receiver = subscriber.receiver("topic", credit=100)
    use(bench, sender, receiver, 100)
    count = sender.credit
    assert count > 25
    publisher.wire.is_still = True
    receiver.close()
    bench.run()
    sent = [sender.send(message(number)) for number in range(count // 2)]
    for number in range(count - count // 2):
        sender.send(message(number), settled=True)
    publisher.wire.is_still = False
    bench.run()
    assert {one.outcome for one in sent} == {"released"}
    assert sender.credit == 0
    granted = [frame.flow("link_credit") for frame in flows(publisher)]
    assert all(0 <= credit < 10_000 for credit in granted), granted
    again = subscriber.receiver("topic", credit=500).accepting()
    more = sender.send(message("again"))
    bench.advance(0.1)
    assert again.bodies == ["again"]
    assert more.outcome == "accepted"
    assert all(0 <= frame.flow("link_credit") < 10_000 for frame in flows(publisher))


@pytest.mark.parametrize("step", [1, 7, 249])
def test_crossing_transfers_however_they_are_cut(step: int) -> None:
    bench = Bench(piece=step)
    router = bench.router("A")
    publisher, subscriber = bench.client(router), bench.client(router)
    for _ in range(3):
        sender = publisher.sender("topic")
        receiver = subscriber.receiver("topic", credit=50).accepting()
        use(bench, sender, receiver, 30)
        count = sender.credit
        assert count >= 5
        publisher.wire.is_still = True
        for number in range(count):
            sender.send(message(number), settled=number % 3 == 0)
        receiver.close()
        subscriber.wire.move()
        publisher.wire.is_still = False
        bench.run()
        assert sender.credit == 0
    assert all(0 <= frame.flow("link_credit") < 10_000 for frame in flows(publisher))
    bench.close()


def test_zero_length_settled_transfers_are_swallowed_and_their_credit_comes_back(
    bench: Bench, ends: tuple[Peer, Peer]
) -> None:
    publisher, subscriber = ends
    sender = publisher.sender("topic")
    receiver = subscriber.receiver("topic", credit=5).accepting()
    for _ in range(1000):
        if sender.credit <= 0:
            bench.run()
        sender.send(b"", settled=True)
    bench.run()
    assert sender.credit >= 1
    sent = sender.send(message("real"))
    bench.run()
    assert receiver.bodies == ["real"]
    assert sent.outcome == "accepted"


def test_a_zero_length_unsettled_transfer_is_rejected(bench: Bench, ends: tuple[Peer, Peer]) -> None:
    publisher, subscriber = ends
    receiver = subscriber.receiver("topic", credit=5).accepting()
    sender = publisher.sender("topic")
    sent = [sender.send(b"") for _ in range(5)]
    bench.run()
    assert [one.outcome for one in sent] == ["rejected"] * 5
    assert {one.condition.name for one in sent if one.condition is not None} == {"amqp:decode-error"}
    assert receiver.messages == []
    assert sender.credit == 5


def test_aborted_transfers_cost_no_credit(bench: Bench) -> None:
    client = bench.client(bench.router("A"))
    client.receiver("topic", credit=5)
    sender = client.sender("topic")
    for number in range(100):
        sent = sender.begin(message("x" * 100)[: 50 * (number % 2)])
        bench.run()
        sent.abort()
        bench.run()
    assert 1 <= sender.credit <= 6


def test_an_anonymous_sender_has_credit_without_any_subscriber(bench: Bench, ends: tuple[Peer, Peer]) -> None:
    publisher, subscriber = ends
    sender = publisher.sender(None)
    assert sender.credit > 0
    lost = sender.send(message("x", address="nobody"))
    nowhere = sender.send(message("x"))
    sender.send(message("x", address="nobody"), settled=True)
    receiver = subscriber.receiver("somebody", credit=5).accepting()
    bench.run()
    found = sender.send(message("y", address="somebody"))
    bench.run()
    assert lost.outcome == "released"
    assert nowhere.outcome == "rejected"
    assert nowhere.condition is not None
    assert nowhere.condition.name in ("amqp:precondition-failed", "amqp:not-allowed")
    assert found.outcome == "accepted"
    assert receiver.bodies == ["y"]


@pytest.mark.parametrize("settled", [False, True])
def test_the_window_of_an_anonymous_sender_grows_with_its_use_up_to_the_setting(bench: Bench, settled: bool) -> None:
    router = bench.router("A", forwarding={"anonymous_window": 50})
    client = bench.client(router)
    client.receiver("topic", credit=10_000).accepting()
    sender = client.sender(None)
    found = [sender.credit]
    while len(found) < 100:
        sender.send(message("x", address="topic"), settled=settled)
        bench.run()
        found.append(sender.credit)
    assert found[0] == 4
    assert max(found) == 50
    assert max(found[:10]) <= 16


@pytest.mark.parametrize("settled", [False, True])
def test_an_anonymous_sender_to_where_nobody_is_keeps_a_small_window(bench: Bench, settled: bool) -> None:
    client = bench.client(bench.router("A"))
    sender = client.sender(None)
    for _ in range(300):
        assert 0 < sender.credit <= 4
        sender.send(message("x", address="nobody/there"), settled=settled)
        bench.run()
    assert sender.credit <= 4


def test_the_window_of_an_anonymous_sender_shrinks_when_nobody_serves_it_any_more(
    bench: Bench, ends: tuple[Peer, Peer]
) -> None:
    publishing, subscribing = ends
    receiver = subscribing.receiver("topic", credit=10_000).accepting()
    bench.advance(1)
    sender = publishing.sender(None)
    for _ in range(600):
        sender.send(message("x", address="topic"))
        bench.run()
    assert sender.credit > 125
    receiver.close()
    bench.advance(1)
    for _ in range(300):
        assert sender.credit > 0
        sender.send(message("x", address="topic"))
        bench.run()
    assert sender.credit <= 4


@pytest.mark.slow
def test_one_requester_that_is_gone_among_many_leaves_a_server_its_window(bench: Bench) -> None:
    client = bench.client(bench.router("A"))
    client.receiver("topic", credit=100_000).accepting()
    sender = client.sender(None)
    found = []
    for number in range(2000):
        sender.send(message("x", address="nobody" if number % 100 == 99 else "topic"))
        bench.run()
        found.append(sender.credit)
    assert min(found[1000:]) >= 32


def test_a_sender_whose_first_messages_wait_still_reaches_others(bench: Bench, ends: tuple[Peer, Peer]) -> None:
    publishing, subscribing = ends
    subscribing.receiver("stalled")
    receiver = subscribing.receiver("topic", credit=1000).accepting()
    bench.advance(1)
    sender = publishing.sender(None)
    for _ in range(100):
        sender.send(message("x", address="stalled"))
        bench.run()
    sender.send(message("y", address="topic"))
    bench.run()
    assert receiver.bodies == ["y"]


@pytest.mark.parametrize("setting", [1, 2, 3])
def test_a_small_setting_of_the_window_is_the_window(bench: Bench, setting: int) -> None:
    client = bench.client(bench.router("A", forwarding={"anonymous_window": setting}))
    sender = client.sender(None)
    for _ in range(20):
        assert sender.credit in range(1, setting + 1)
        sender.send(message("x", address="nobody"))
        bench.run()


def test_no_more_is_taken_than_was_granted_and_one_for_each_publisher(bench: Bench, ends: tuple[Peer, Peer]) -> None:
    publisher, subscriber = ends
    subscriber.receiver("topic", credit=1)
    senders = [publisher.sender("topic") for _ in range(3)]
    for sender in senders:
        for number in range(2000):
            sender.send(message(number))
    bench.advance(5)
    transfers = [frame for frame in frames.read(publisher.wire.log[0]) if frame.name == "transfer"]
    assert len(transfers) == 1 + 3


# Waiting


def test_messages_wait_for_credit_and_go_in_order(bench: Bench, ends: tuple[Peer, Peer]) -> None:
    publisher, subscriber = ends
    receiver = subscriber.receiver("topic").accepting()
    sender = publisher.sender("topic")
    sent = [sender.send(message(number)) for number in range(10)]
    bench.run()
    assert receiver.bodies == []
    for credit in (1, 3, 2, 10):
        receiver.flow(credit)
        bench.run()
    assert receiver.bodies == list(range(10))
    assert {one.outcome for one in sent} == {"accepted"}


def test_what_publishers_leave_behind_is_bounded_in_number(bench: Bench) -> None:
    router = bench.router("A", forwarding={"waiting_messages": 5})
    client = bench.client(router)
    receiver = opened(bench, (client, client))
    senders = [client.sender("topic") for _ in range(8)]
    for number, sender in enumerate(senders):
        sender.send(message(number), settled=True)
    bench.run()
    for sender in senders:
        sender.close()
    bench.run()
    receiver.flow(100)
    bench.run()
    assert sorted(receiver.bodies) == [0, 1, 2, 3, 4]
    entry = router.fib.find("topic")
    assert entry is not None
    assert entry.dropped == 3


def test_what_publishers_leave_behind_is_bounded_in_bytes(bench: Bench) -> None:
    router = bench.router("A", forwarding={"waiting_bytes": 10_000})
    client = bench.client(router)
    opened(bench, (client, client))
    senders = [client.sender("topic") for _ in range(5)]
    for sender in senders:
        sender.send(message("x" * 3000), settled=True)
    bench.run()
    entry = router.fib.find("topic")
    assert entry is not None
    assert len(entry.waiting) == 5, "each of its publisher's own"
    for sender in senders:
        sender.close()
    bench.run()
    assert entry.waiting_bytes <= 10_000
    assert entry.dropped == 2


class LookedThrough(OrderedDict[object, object]):
    """Table that counts what is looked at of it from its youngest."""

    count = 0

    def __reversed__(self) -> Iterator[object]:
        for key in list(super().__reversed__()):
            self.count += 1
            yield key


def test_a_publisher_that_leaves_nothing_has_no_waiting_messages_looked_through(bench: Bench) -> None:
    router = bench.router("A", forwarding={"waiting_bytes": 10_000})
    client = bench.client(router)
    opened(bench, (client, client))
    for _ in range(50):
        client.sender("topic").send(message("x" * 1000))
    leaving = [client.sender("topic") for _ in range(3)]
    bench.run()
    (controller,) = router.data_plane.credit_manager
    assert controller.entry.waiting_bytes > 10_000, "each of its publisher's own"
    waiting = controller.publishers.waiting = LookedThrough(controller.publishers.waiting)
    leaving[0].send(message("x" * 1000), settled=True)
    bench.run()
    for sender in leaving:
        sender.close()
    bench.run()
    assert controller.entry.dropped == 1, "what the first one left"
    assert waiting.count == 0


@pytest.mark.parametrize("count", [1, 2])
def test_datagrams_that_wait_are_bounded_in_number_and_time(bench: Bench, count: int) -> None:
    bound = {"waiting_messages": 10}  # half is for what came without credit
    routers = [bench.router("A", forwarding=bound)] if count == 1 else bench.mesh(("A", "B"), forwarding=bound)
    publisher, subscriber = bench.client(routers[0]), bench.client(routers[-1])
    receiver = subscriber.receiver("topic")
    sender = publisher.sender(None)
    sent = [sender.send(message("x", address="topic")) for _ in range(7)]
    bench.advance(59.5)
    assert [one.outcome for one in sent] == [None] * 5 + ["released"] * 2
    bench.advance(1)
    assert {one.outcome for one in sent} == {"released"}
    receiver.flow(5)
    bench.run()
    assert receiver.messages == []


@pytest.mark.slow
def test_a_publishers_own_message_waits_for_as_long_as_it_takes(bench: Bench, ends: tuple[Peer, Peer]) -> None:
    receiver = opened(bench, ends)
    sent = ends[0].sender("topic").send(message("x"))
    bench.advance(7200)
    assert sent.outcome is None
    receiver.flow(1)
    bench.run()
    assert receiver.bodies == ["x"]
    assert sent.outcome == "accepted"


def test_a_message_expires_by_its_ttl(bench: Bench, ends: tuple[Peer, Peer]) -> None:
    publisher, _ = ends
    receiver = opened(bench, ends)
    senders = [publisher.sender("topic") for _ in range(3)]
    short = senders[0].send(message("short", ttl=2.0))
    long = senders[1].send(message("long", ttl=30.0))
    senders[2].send(message("settled", ttl=1.0), settled=True)
    bench.advance(1.9)
    assert short.outcome is None
    bench.advance(0.2)
    assert short.outcome == "released"
    assert long.outcome is None
    receiver.flow(5)
    bench.run()
    assert receiver.bodies == ["long"]
    assert long.outcome == "accepted"


def test_absolute_expiry_time_means_nothing(bench: Bench, ends: tuple[Peer, Peer]) -> None:
    # oslo.messaging takes it from a clock that starts at boot: always a day of January 1970
    publisher, subscriber = ends
    receiver = subscriber.receiver("topic").accepting()
    sent = publisher.sender("topic").send(message("x", expiry_time=60.0))
    bench.advance(1)
    receiver.flow(1)
    bench.run()
    assert receiver.bodies == ["x"]
    assert sent.outcome == "accepted"


# Subscribers that take nothing


def test_a_subscriber_is_never_sent_more_than_it_granted(bench: Bench, ends: tuple[Peer, Peer]) -> None:
    publisher, subscriber = ends
    receiver = subscriber.receiver("topic", credit=3)
    sender = publisher.sender("topic")
    for number in range(20):
        sender.send(message(number))
    bench.run()
    assert receiver.bodies == [0, 1, 2]
    receiver.flow(2)
    bench.run()
    assert receiver.bodies == [0, 1, 2, 3, 4]


def test_drain_delivers_what_waits_and_returns_the_rest(bench: Bench, ends: tuple[Peer, Peer]) -> None:
    receiver = opened(bench, ends)
    senders = [ends[0].sender("topic") for _ in range(3)]
    for number, sender in enumerate(senders):
        sender.send(message(number))
    bench.run()
    receiver.drain(10)
    bench.run()
    assert sorted(receiver.bodies) == [0, 1, 2]
    assert receiver.credit == 0
    assert receiver.link.drained() == 7
    senders[0].send(message(3))
    bench.run()
    assert len(receiver.bodies) == 3
    receiver.flow(1)
    bench.run()
    assert receiver.bodies[3:] == [3]


def test_drain_with_nothing_there_is_answered(bench: Bench, ends: tuple[Peer, Peer]) -> None:
    _, subscriber = ends
    receiver = subscriber.receiver("topic", credit=5)
    receiver.drain(0)
    bench.run()
    assert receiver.credit == 0
    receiver.drain(100)
    bench.run()
    assert receiver.credit == 0


def test_drain_waits_for_the_message_that_is_being_written(bench: Bench) -> None:
    router = bench.router("A", forwarding={"held_message_bytes": 1000})
    client = bench.client(router)
    receiver = client.receiver("topic", credit=5).accepting()
    data = message("x" * 5000)
    sent = client.sender("topic").begin(data[:3000])
    bench.run()
    receiver.drain(0)
    bench.run()
    sent.end(data[3000:])
    bench.advance(0.2)
    assert receiver.bodies == ["x" * 5000]
    assert receiver.credit == 0


def test_a_peer_that_stops_reading_costs_bounded_memory(bench: Bench) -> None:
    router = bench.router("A")
    publisher, deaf = bench.client(router), bench.client(router)
    receiver = deaf.receiver("topic", credit=1_000_000)
    plug = deaf.wire.ends[1]
    plug.room = 0
    sender = publisher.sender("topic")
    sent = []
    for _ in range(100):
        sent += [sender.send(message("x" * 50_000), settled=True) for _ in range(max(1, sender.credit))]
        bench.run()
    buffered = sum(pn_bytes(link.session) for link in plug.connection.links.values())
    entry = router.fib.find("topic")
    assert entry is not None
    assert buffered <= 2 * 1024 * 1024
    assert entry.waiting_bytes <= 64 * 1024 * 1024
    assert len(sent) > 100
    plug.room = float("inf")
    bench.run()
    assert receiver.messages


def pn_bytes(session: object) -> int:
    return int(pn_session_outgoing_bytes(session))


def test_a_large_message_toward_a_peer_that_stops_reading_stops_its_sender(bench: Bench) -> None:
    router = bench.router("A", forwarding={"held_message_bytes": 100_000})
    publisher, deaf, well = bench.client(router), bench.client(router), bench.client(router)
    receiver = deaf.receiver("large", credit=10)
    plug = deaf.wire.ends[1]
    sender = publisher.sender("large")
    sent = sender.begin(message("x" * 200_000)[:150_000])
    bench.run()
    plug.room = 0
    for _ in range(300):
        sent.part(b"x" * 100_000)
        bench.run()
    links = list(plug.connection.links.values())
    assert sum(pn_bytes(link.session) for link in links) <= 3 * 1024 * 1024
    # others are served all the time
    other = well.receiver("other", credit=5).accepting()
    well.sender("other").send(message("x"))
    bench.run()
    assert other.bodies == ["x"]
    sent.abort()
    plug.room = float("inf")
    bench.run()
    assert receiver.aborted == 1


@pytest.mark.parametrize("count", [1, 2])
def test_a_large_message_waits_for_credit_without_filling_memory(bench: Bench, count: int) -> None:
    small = {"held_message_bytes": 100_000, "session_window_frames": 8}
    routers = [bench.router("A", forwarding=small)] if count == 1 else bench.mesh(("A", "B"), forwarding=small)
    publisher, subscriber = bench.client(routers[0]), bench.client(routers[-1])
    receiver = subscriber.receiver("large")
    sent = publisher.sender("large").begin(message("x" * 100_000))
    for _ in range(60):
        sent.part(b"x" * 100_000)
        bench.run()
    for router in bench.routers.values():
        for entry in router.fib.entries():
            assert sum(one.size for one in entry.waiting) <= 2 * 1024 * 1024
    receiver.flow(1)
    bench.run()
    assert len(receiver.partial) > 6_000_000
    sent.abort()
    bench.run()
    assert receiver.aborted == 1


def test_snd_settle_mode_unsettled_and_settled_are_obeyed(bench: Bench) -> None:
    client = bench.client(bench.router("A"))

    def unsettled(link: Link) -> None:
        link.snd_settle_mode = Link.SND_UNSETTLED

    receiver = client.receiver("topic", credit=5, prepare=unsettled)
    sender = client.sender("topic")
    sender.send(message("a"), settled=True)
    sender.send(message("b"))
    bench.run()
    assert receiver.bodies == ["a", "b"]


@pytest.mark.parametrize("settled", [False, True])
def test_a_subscriber_that_leaves_with_unwritten_messages_costs_its_session_no_room(
    bench: Bench, settled: bool
) -> None:
    router = bench.router("A")
    publisher, client = bench.client(router), bench.client(router)
    session = client.connection.session()
    session.incoming_capacity = 100_000
    session.open()
    client.receiver("other", session=session, credit=1000)
    leaving = client.receiver("topic", session=session, credit=100)
    plug = client.wire.ends[1]
    plug.room = 0
    for _ in range(50):
        publisher.sender("topic").send(message("x" * 30_000), settled=settled)  # the engine is given them whole
    bench.run()
    links = [link for connection in router.connections.values() for link in connection.links.values()]
    link = next(link for link in links if link.address == "other")
    assert isinstance(link, EgressLink)
    assert not link.can_send()
    leaving.close()
    bench.run()
    assert link.unwritten_bytes() == 0
    assert pn_bytes(link.session) > 900_000 or not settled, "proton counts them still"
    assert link.can_send()
    session.close()
    bench.run()
    assert not link.port.lost_bytes


def test_no_message_is_sent_on_credit_that_is_taken_back_behind_it_in_one_write(bench: Bench) -> None:
    raw = bench.raw(bench.router("A"))
    raw.write(frames.AMQP_HEADER + frames.write(0x10, ["raw"]) + frames.write(0x11, [None, 0, 2048, 2048]))
    source, target = frames.source("topic"), frames.target("topic")
    for handle in (0, 1):
        raw.write(frames.write(0x12, [f"in{handle}", handle, True, None, None, source, target]))
        raw.write(frames.write(0x13, [None, 2048, 0, 2048, handle, 0, 10]))
    raw.write(frames.write(0x12, ["out", 2, False, None, None, source, target, None, None, 0]))
    bench.run()

    def transfer(number: int) -> bytes:
        return frames.write(0x14, [2, number, b"%d" % number, 0, True], payload=message(number))

    def handles() -> list[int]:
        return [frame.fields[0] for frame in frames.read(raw.read) if frame.name == "transfer"]

    for number in range(4):
        raw.write(transfer(number))
        bench.run()
    first, second = handles()[:2]
    assert handles() == 2 * [first, second]
    raw.write(transfer(4) + frames.write(0x13, [None, 2048, 0, 2048, first, 2, 0]))
    bench.run()
    assert handles() == [*2 * [first, second], second]
