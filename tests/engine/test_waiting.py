"""Messages that wait for credit: their bounds hold, and what no longer waits takes no room."""

from __future__ import annotations

from tests.engine.test_raw_neighbor import join, live
from tests.helpers.engine import Bench
from tests.helpers.peer import message

FANOUT = "openstack.org/om/rpc/multicast/openstack/topic"


def test_parts_of_waiting_messages_stay_within_the_bound_of_their_connection(bench: Bench) -> None:
    router = bench.router("A", forwarding={"held_connection_bytes": 300_000})
    receiver = bench.client(router).receiver("topic", credit=1).accepting()
    publisher = bench.client(router)
    publisher.sender("topic").send(message("first"))
    bench.run()
    sent = [publisher.sender("topic").begin(message("x")) for _ in range(10)]
    bench.run()
    for _ in range(10):
        for one in sent:
            one.part(bytes(10_000))
        bench.run()
    port = next(connection.port for connection in router.connections.values() if connection.port.held_bytes)
    assert 0 < port.held_bytes <= 300_000
    for one in sent:
        one.end()
    receiver.flow(100)
    bench.run()
    assert len(receiver.messages) == 11
    assert port.held_bytes == 0


def test_expired_messages_leave_room_for_others(bench: Bench) -> None:
    router = bench.router("A", forwarding={"waiting_messages": 5})
    bench.client(router).receiver("topic")
    sender = bench.client(router).sender("topic")
    for _ in range(5):
        sender.send(message("x", ttl=1))
    bench.run()
    bench.advance(2)
    late = sender.send(message("late"))
    bench.run()
    assert late.outcome is None


def test_messages_whose_senders_left_leave_room_for_others(bench: Bench) -> None:
    router = bench.router("A", forwarding={"waiting_messages": 5})
    bench.client(router).receiver("topic")
    for _ in range(5):
        sender = bench.client(router).sender("topic")
        sender.send(message("x"))
        bench.run()
        sender.close()
    bench.run()
    late = bench.client(router).sender("topic").send(message("late"))
    bench.run()
    assert late.outcome is None


def test_copies_wait_no_longer_than_the_setting(bench: Bench) -> None:
    router = bench.router("A", forwarding={"waiting_s": 10.0, "waiting_messages": 5})
    receiver = bench.client(router).receiver(FANOUT)
    neighbor = join(bench, router, dials=True)
    old = [neighbor.send(n, FANOUT) for n in range(5)]
    bench.run()
    assert {one.outcome for one in old} == {"accepted"}
    live(bench, neighbor, 9)
    receiver.flow(1)
    bench.run()
    assert receiver.bodies == [0]
    live(bench, neighbor, 2)
    for n in range(5, 9):
        neighbor.send(n, FANOUT)
    bench.run()
    receiver.flow(100)
    bench.run()
    assert receiver.bodies == [0, 5, 6, 7, 8]
    entry = router.fib.find(FANOUT)
    assert entry is not None
    assert entry.dropped == 4


def test_copies_expire_by_their_ttl_in_any_order(bench: Bench) -> None:
    router = bench.router("A", forwarding={"waiting_messages": 6})
    receiver = bench.client(router).receiver(FANOUT)
    neighbor = join(bench, router, dials=True)
    for n in range(6):
        neighbor.send(n, FANOUT, ttl=1 if n % 2 else 30)
    bench.run()
    live(bench, neighbor, 2)
    neighbor.send("new", FANOUT)
    bench.run()
    receiver.flow(100)
    bench.run()
    assert receiver.bodies == [0, 2, 4, "new"]


def test_datagrams_for_a_neighbor_that_takes_nothing_have_a_bound(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"), forwarding={"waiting_bytes": 500_000})
    bench.client(b).receiver("topic", credit=1000)
    sender = bench.client(a).sender(None)
    wire = bench.wires[0]
    wire.is_still = True
    for end in wire.ends:
        end.room = 0  # type: ignore[attr-defined]
    sent = [sender.send(message(b"x" * 50_000, address="topic")) for _ in range(40)]
    bench.run()
    port = next(connection.port for connection in a.connections.values() if connection.port.is_router)
    waiting = [link.waiting_bytes for link in (*port.data_links, *port.streams)]
    assert 400_000 < max(waiting) <= 500_000
    released = [one.outcome for one in sent].count("released")
    assert 0 < released < 40 - 8
    wire.is_still = False
    for end in wire.ends:
        end.room = float("inf")  # type: ignore[attr-defined]
    bench.run()


def test_a_publisher_is_held_up_before_its_large_messages_fill_the_room(bench: Bench) -> None:
    """A neighbor is slow to take them: they stay with their sender, and all arrive in their order."""
    a, b = bench.mesh(("A", "B"), forwarding={"waiting_bytes": 4_000_000, "session_window_frames": 16})
    receiver = bench.client(b).receiver("topic").accepting()
    sender = bench.client(a).sender("topic")
    sent = [sender.send(message(str(n) + "x" * 500_000)) for n in range(30)]
    bench.run()
    for runtime in (a, b):
        entry = runtime.fib.find("topic")
        assert entry is not None
        assert entry.waiting_bytes < 3_000_000
    for _ in range(30):
        receiver.flow(1)
        bench.run()
    assert [body.partition("x")[0] for body in receiver.bodies] == [str(n) for n in range(30)]
    assert [delivery.outcome for delivery in sent] == ["accepted"] * 30


def test_a_publisher_whose_messages_are_held_up_goes_on_when_they_have_expired(bench: Bench) -> None:
    router = bench.router("A")
    receiver = bench.client(router).receiver("topic", credit=1)
    sender = bench.client(router).sender("topic")
    sent = [sender.send(message("x" * 400_000, ttl=1)) for _ in range(6)]
    bench.run()
    assert len(receiver.messages) == 1
    for expired in range(1, 6):
        bench.advance(1.1)
        assert [delivery.outcome for delivery in sent[1:]] == ["released"] * expired + [None] * (5 - expired)


def test_the_time_for_which_a_message_was_held_counts_as_part_of_its_ttl(bench: Bench) -> None:
    router = bench.router("A")
    bench.client(router).receiver("topic")
    bench.advance(0.1)
    sender = bench.client(router).sender(None)
    whole = message("x" * 1000, address="topic", ttl=3.0)
    sent = sender.begin(whole[:500])
    bench.advance(2)
    sent.end(whole[500:])
    bench.advance(0.5)
    assert sent.outcome is None
    bench.advance(0.7)
    assert sent.outcome == "released"


def test_a_message_that_lost_its_way_waits_no_longer_in_all_than_the_setting(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"), forwarding={"waiting_s": 2.0})
    (wire,) = bench.wires
    bench.client(b).receiver("topic", credit=1000)
    bench.advance(0.1)
    senders = [bench.client(a).sender(None) for _ in range(12)]
    bench.run()
    wire.is_still = True
    for sender in senders:
        for _ in range(100):
            sender.send(message("x", address="topic"))
    bench.run()
    bench.client(a).receiver("topic")
    bench.advance(1.5)
    assert a.data_plane.waiting.count > 0
    wire.cut()
    bench.run()
    assert a.data_plane.waiting.count > 0
    bench.advance(0.7)
    assert a.data_plane.waiting.count == 0
