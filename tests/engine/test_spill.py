"""Balanced addresses whose local subscribers have no credit: what waits for them goes to a router that takes it."""

from __future__ import annotations

import math

from tests.helpers.engine import Bench, Plug
from tests.helpers.peer import message

BALANCED = "openstack.org/om/rpc/anycast/openstack/topic"
WINDOW = {"publisher_window": 4}
"""Unsettled datagrams toward another router while there are subscribers here."""


def test_what_waits_for_a_stalled_subscriber_leaves_for_another_as_it_takes_more(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    stalled = bench.client(a).receiver(BALANCED)
    far = bench.client(b).receiver(BALANCED, credit=4)
    client = bench.client(a)
    senders = [client.sender(BALANCED) for _ in range(3)]
    sent = [sender.send(message(n)) for n, sender in enumerate(senders * 4)]
    bench.run()
    assert len(far.messages) == 4
    far.accepting()
    far.flow(100)
    bench.run()
    assert stalled.bodies == []
    assert sorted(far.bodies) == list(range(12))
    assert [delivery.outcome for delivery in sent] == ["accepted"] * 12
    late = senders[0].send(message("late"))  # and nothing is left that a new message would have to wait behind
    bench.run()
    assert late.outcome == "accepted"


def test_what_waits_for_a_subscriber_that_stalls_leaves_for_one_that_comes_elsewhere(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    bench.client(a).receiver(BALANCED)
    sender = bench.client(a).sender(BALANCED)
    sent = [sender.send(message(n)) for n in range(5)]
    bench.run()
    far = bench.client(b).receiver(BALANCED, credit=100).accepting()
    bench.run()
    assert far.bodies == [0, 1, 2, 3, 4]
    assert [delivery.outcome for delivery in sent] == ["accepted"] * 5


def test_messages_lost_with_a_connection_do_not_count_as_under_way(bench: Bench) -> None:
    """B stays reachable by C, so it is not forgotten and counted anew."""
    a, b, _ = bench.mesh(("B", "C"), ("A", "C"), forwarding=WINDOW)
    direct = bench.join(a, b)
    bench.advance(1)
    bench.client(a).receiver(BALANCED)
    far = bench.client(b).receiver(BALANCED, credit=100)
    sender = bench.client(a).sender(BALANCED)
    sent = [sender.send(message(n)) for n in range(4)]
    bench.run()
    assert far.bodies == [0, 1, 2, 3]
    direct.cut()
    bench.advance(1)
    assert [delivery.outcome for delivery in sent] == ["modified"] * 4
    assert [load.datagrams for load in a.fib.find(BALANCED).remotes.values()] == [0]  # type: ignore[union-attr]
    far.accepting()
    again = [sender.send(message(n)) for n in range(4, 8)]
    bench.run()
    assert [delivery.outcome for delivery in again] == ["accepted"] * 4


def test_what_was_not_written_when_its_way_was_lost_takes_another(bench: Bench) -> None:
    """The direct connection takes no more bytes and then breaks: nobody has seen the whole of what it did not take."""
    a, b, _ = bench.mesh(("B", "C"), ("A", "C"))
    direct = bench.join(a, b)
    bench.advance(1)
    far = bench.client(b).receiver(BALANCED, credit=100).accepting()
    client = bench.client(a)
    sender = client.sender(None)
    bench.run()
    end = next(end for end in direct.ends if isinstance(end, Plug) and end.runtime is a)
    end.room = 0
    sent = [sender.send(message("x" * 200_000, address=BALANCED))]  # more than the engine's own output holds
    bench.run()
    sent += [sender.send(message(n, address=BALANCED)) for n in range(1, 6)]
    bench.run()
    assert far.bodies == []
    direct.cut()
    bench.advance(1)
    assert [delivery.outcome for delivery in sent] == ["accepted"] * 6
    assert far.bodies == ["x" * 200_000, 1, 2, 3, 4, 5]


def test_what_its_circuit_had_not_sent_when_its_way_was_lost_takes_another(bench: Bench) -> None:
    a, b, _ = bench.mesh(("B", "C"), ("A", "C"))
    direct = bench.join(a, b)
    bench.advance(1)
    far = bench.client(b).receiver(BALANCED, credit=100).accepting()
    senders = [bench.client(a).sender(BALANCED) for _ in range(20)]
    bench.run()
    end = next(end for end in direct.ends if isinstance(end, Plug) and end.runtime is a)
    end.room = 0
    sent = [sender.send(message(f"{n} " + "x" * (1000 if n < 3 else 200_000))) for n, sender in enumerate(senders)]
    bench.run()
    assert far.bodies == []
    direct.cut()
    bench.advance(1)
    # what may have been seen cannot be sent again
    outcomes = [delivery.outcome for delivery in sent]
    assert set(outcomes) == {"accepted", "modified"}
    assert outcomes.count("modified") <= 4
    seen = sorted(int(body.partition(" ")[0]) for body in far.bodies)
    assert seen == [n for n, outcome in enumerate(outcomes) if outcome == "accepted"]


def test_a_way_that_has_become_longer_is_in_doubt_while_there_is_another(bench: Bench) -> None:
    """A seems to be reachable by C when its direct link to B is lost; perhaps it is dead, and the news under way."""
    a, b, _ = bench.mesh(("A", "B"), ("B", "C"), ("A", "C"))
    far = bench.client(a).receiver(BALANCED, credit=100).accepting()
    near = bench.client(b).receiver(BALANCED, credit=100)
    sender = bench.client(b).sender(None)
    bench.run()
    for number in range(4):
        sender.send(message(number, address=BALANCED))
    bench.run()
    assert len(near.messages) < 4  # the local one has some unsettled, so others went to A
    next(wire for wire in bench.wires if {end.runtime for end in wire.ends} == {a, b}).cut()  # type: ignore[attr-defined]
    bench.run()
    count = len(far.messages)
    for number in range(4, 8):
        sender.send(message(number, address=BALANCED))
    bench.run()
    assert len(far.messages) == count
    bench.advance(1)
    for number in range(8, 12):
        sender.send(message(number, address=BALANCED))
    bench.run()
    assert len(far.messages) > count


def test_a_message_in_parts_waits_for_its_circuit_and_takes_no_other_link(bench: Bench) -> None:
    _, b, c = bench.mesh(("A", "B"), ("B", "C"))
    far = bench.client(c).receiver(BALANCED, credit=100).accepting()
    senders = [bench.client(bench.routers["A"]).sender(BALANCED) for _ in range(4)]
    bench.run()
    end = next(
        end
        for wire in bench.wires
        for end in wire.ends
        if isinstance(end, Plug) and end.runtime is b and end.port.neighbor == "C"
    )
    end.room = 0
    sizes = (120_000, 120_000, 3_000_000, 120_000)  # the third waits behind a whole one while its end is still to come
    sent = [sender.send(message("x" * size)) for size, sender in zip(sizes, senders, strict=True)]
    bench.run()
    end.room = math.inf
    bench.advance(1)
    assert [delivery.outcome for delivery in sent] == ["accepted"] * len(senders)
    assert len(far.bodies) == len(senders)
    assert not end.port.streams
