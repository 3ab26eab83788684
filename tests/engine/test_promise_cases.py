"""Cases of exact credit that are easily got wrong, each on real links: crossings, departures, loops, and crowds.

With `AMQP_MESH_PROMISE_PLAYS` in the environment the crowds are as large as they may be, else smaller.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable

import pytest

from router.binding.proton_functions import pn_link_credit
from router.core.events import InstallRouter
from router.core.ids_and_conditions import RouterId
from router.runtime import Runtime
from tests.helpers import frames
from tests.helpers.engine import Bench, Plug, Wire
from tests.helpers.frames import Frame
from tests.helpers.peer import Peer, PeerReceiver, PeerSender, message

LINE = (("A", "B"), ("B", "C"))
FANOUT = "openstack.org/om/rpc/multicast/openstack/topic"
GRACE_S = 1.0
"""Default of a subscriber of a multicast without credit."""


def between(bench: Bench, one: Runtime, other: Runtime) -> Wire:
    """The connection between two routers."""
    for wire in bench.wires:
        ends = [end.runtime for end in wire.ends if isinstance(end, Plug)]
        if len(ends) == 2 and one in ends and other in ends:
            return wire
    raise AssertionError("they are not joined")


def link_flows(log: bytearray) -> list[Frame]:
    return [f for f in frames.read(log) if f.name == "flow" and f.flow("link_credit") is not None]


def waiting(router: Runtime) -> int:
    """Messages that wait anywhere in a router."""
    at_addresses = sum(len(entry.waiting) for entry in router.fib.entries())
    links = [link for connection in router.connections.values() for link in connection.links.values()]
    return at_addresses + sum(len(getattr(link, "waiting", ())) for link in links)


def use_up(bench: Bench, sender: PeerSender, receiver: PeerReceiver) -> None:
    """Send until the subscriber has no credit and one message waits."""
    count = -1
    while len(receiver.messages) > count:
        count = len(receiver.messages)
        sender.send(message("use"))
        bench.advance(0.2)
    assert receiver.credit == 0
    receiver.messages.clear()


# Drains


@pytest.mark.parametrize("still", ["client", "A-B", "B-C", "subscriber"])
def test_a_drain_that_crosses_the_last_use_of_the_credit(bench: Bench, still: str) -> None:
    """Such a drain gets no answer on its circuit; whoever waited for one would never grant again."""
    a, b, c = bench.mesh(*LINE)
    subscriber, publisher = bench.client(c), bench.client(a)
    receiver = subscriber.receiver("topic", credit=1).accepting()
    sender = publisher.sender("topic")
    assert sender.credit == 1
    wires = {"client": publisher.wire, "A-B": between(bench, a, b), "B-C": between(bench, b, c)}
    wire = wires.get(still, subscriber.wire)
    wire.is_still = True
    sent = sender.send(message(1))
    bench.run()
    receiver.drain(0)
    bench.advance(0.03)
    wire.is_still = False
    bench.advance(0.3)
    assert receiver.bodies == ([] if receiver.link.drained() else [1])
    assert receiver.credit == 0
    receiver.flow(2)
    bench.advance(0.1)
    again = sender.send(message(2))
    bench.advance(0.1)
    assert receiver.bodies == [1, 2]
    assert (sent.outcome, again.outcome) == ("accepted", "accepted")


def test_a_drain_while_messages_wait_at_two_other_routers(bench: Bench) -> None:
    a, b, c = bench.mesh(*LINE)
    receiver = bench.client(c).receiver("topic", credit=1).accepting()
    senders = [bench.client(router).sender("topic") for router in (a, b, a)]
    use_up(bench, senders[0], receiver)
    for number, sender in enumerate(senders[1:]):
        sender.send(message(number))
    bench.advance(0.1)
    assert receiver.bodies == []
    receiver.drain(10)
    bench.advance(0.2)
    assert len(receiver.messages) == 3
    assert receiver.credit == 0
    assert receiver.link.drained() == 7


def test_a_drain_while_publishers_hold_the_credit_is_answered_when_it_has_come_back(bench: Bench) -> None:
    a, _, c = bench.mesh(*LINE)
    receiver = bench.client(c).receiver("topic", credit=100).accepting()
    sender = bench.client(a).sender("topic")
    for _ in range(40):
        sender.send(message("use"))
        bench.run()
        receiver.flow(1)
        bench.run()
    assert sender.credit > 3
    receiver.drain(0)
    bench.run()
    assert receiver.credit > 0, "what the publisher holds is not given back before it has come back"
    bench.advance(0.06)
    assert receiver.credit == 0
    assert sender.credit == 1


def test_messages_on_credit_that_is_being_drained_are_delivered_and_not_given_back(bench: Bench) -> None:
    a, _, c = bench.mesh(*LINE)
    publisher = bench.client(a)
    receiver = bench.client(c).receiver("topic", credit=50).accepting()
    sender = publisher.sender("topic")
    for _ in range(40):
        sender.send(message("use"))
        bench.run()
        receiver.flow(1)
        bench.run()
    receiver.messages.clear()
    publisher.wire.is_still = True
    count = sender.credit
    for number in range(count):
        sender.send(message(number), settled=True)
    receiver.drain(0)
    bench.advance(0.02)
    publisher.wire.is_still = False
    bench.advance(0.3)
    assert receiver.bodies == list(range(count))
    assert receiver.credit == 0
    assert receiver.link.drained() == 50 - count


# Departures


def close(sender: PeerSender, client: Peer) -> None:
    sender.close()


def detach(sender: PeerSender, client: Peer) -> None:
    sender.detach()


def end_session(sender: PeerSender, client: Peer) -> None:
    sender.end_session()


def close_connection(sender: PeerSender, client: Peer) -> None:
    client.connection.close()


def cut(sender: PeerSender, client: Peer) -> None:
    client.wire.cut()


@pytest.mark.parametrize("leave", [close, detach, end_session, close_connection, cut])
def test_a_publisher_that_leaves_with_a_pre_settled_message_waiting(
    bench: Bench, leave: Callable[[PeerSender, Peer], None]
) -> None:
    a, _, c = bench.mesh(*LINE)
    receiver = bench.client(c).receiver("topic", credit=1).accepting()
    client, other = bench.client(a), bench.client(a)
    use_up(bench, other.sender("topic"), receiver)
    sender = client.sender("topic")
    sender.send(message("cast"), settled=True)
    bench.run()
    leave(sender, client)
    bench.advance(1)
    assert waiting(a) == 2
    receiver.flow(2)
    bench.advance(0.1)
    assert sorted(receiver.bodies) == ["cast", "use"]
    assert all(waiting(router) == 0 for router in bench.routers.values())


@pytest.mark.parametrize("leave", [close, detach, end_session, close_connection, cut])
def test_a_publisher_that_leaves_with_an_unsettled_message_waiting(
    bench: Bench, leave: Callable[[PeerSender, Peer], None]
) -> None:
    a, _, c = bench.mesh(*LINE)
    receiver = bench.client(c).receiver("topic", credit=1).accepting()
    client, other = bench.client(a), bench.client(a)
    use_up(bench, other.sender("topic"), receiver)
    sender = client.sender("topic")
    sender.send(message("call"))
    bench.run()
    leave(sender, client)
    bench.advance(1)
    assert waiting(a) == 1
    receiver.flow(2)
    bench.advance(0.1)
    assert receiver.bodies == ["use"]
    assert receiver.credit == 1


def test_the_last_subscriber_leaves(bench: Bench) -> None:
    a, b, c = bench.mesh(*LINE)
    receiver = bench.client(c).receiver("topic", credit=1).accepting()
    senders = [bench.client(router).sender("topic") for router in (a, b, c)]
    use_up(bench, senders[0], receiver)
    calls = [sender.send(message("call")) for sender in senders[1:]]
    bench.run()
    receiver.close()
    bench.advance(0.1)
    assert [sender.credit for sender in senders] == [0, 0, 0]
    assert [call.outcome for call in calls] == ["released", "released"]
    assert all(waiting(router) == 0 for router in bench.routers.values())


def test_credit_that_is_used_up_takes_nothing_back(bench: Bench) -> None:
    a, _, c = bench.mesh(*LINE)
    receiver = bench.client(c).receiver("topic", credit=1).accepting()
    senders = [bench.client(a).sender("topic") for _ in range(3)]
    use_up(bench, senders[0], receiver)
    bench.advance(10)
    assert [sender.credit for sender in senders] == [0, 1, 1]


@pytest.mark.parametrize("how", ["lowered", "drained"])
def test_all_subscribers_withdraw_for_the_linger(bench: Bench, how: str) -> None:
    a, b, c = bench.mesh(*LINE)
    receivers = [bench.client(router).receiver("topic", credit=5) for router in (b, c)]
    senders = [bench.client(a).sender("topic") for _ in range(3)]
    for receiver in receivers:
        receiver.flow(-5) if how == "lowered" else receiver.drain(0)
    bench.advance(0.9)
    assert all(sender.credit == 1 for sender in senders)
    bench.advance(0.3)
    assert all(sender.credit == 0 for sender in senders)
    receivers[0].flow(1)
    bench.advance(0.1)
    assert all(sender.credit == 1 for sender in senders)


# Demand


def test_a_router_whose_publishers_never_had_credit(bench: Bench) -> None:
    """They show no use; were they not counted as busy, all credit would stay where it was used before."""
    a, b, c = bench.mesh(*LINE)
    receiver = bench.client(c).receiver("topic", credit=1).accepting()
    receiver.policy = lambda received: receiver.flow(1)
    busy = bench.client(c).sender("topic")
    for number in range(1500):
        busy.send(message(("busy", number)), settled=True)
    late = [bench.client(router).sender("topic", run=False) for router in (a, b)]
    for sender in late:
        for number in range(5):
            sender.send(message(("late", number)))
    bench.advance(1)
    assert Counter(body[0] for body in receiver.bodies)["late"] == 10


# Lowering


@pytest.mark.parametrize("late_s", [0.01, 0.045, 0.2])
def test_lowered_credit_that_is_used_late(bench: Bench, late_s: float) -> None:
    """What was taken back counts as held for the quarantine; what comes even later is taken, and nothing is lost."""
    a, c = bench.mesh(("A", "B"))
    receiver = bench.client(c).receiver("topic", credit=40).accepting()
    slow, other = bench.client(a), bench.client(a)
    sender, backlogged = slow.sender("topic"), other.sender("topic")
    for _ in range(40):
        sender.send(message("use"))
        bench.run()
        receiver.flow(1)
        bench.run()
    receiver.messages.clear()
    held = sender.credit
    assert held > 3
    bench.advance(0.05)
    slow.wire.is_still = True
    receiver.flow(-35)
    for number in range(50):
        backlogged.send(message(number))
    bench.advance(late_s)
    assert receiver.credit + len(receiver.messages) == 5
    late = [sender.send(message("late"), settled=True) for _ in range(held)]
    slow.wire.is_still = False
    bench.run()
    if late_s < 0.05:
        links = (sender.link, backlogged.link)
        inside = len(late) + 50 - len(receiver.messages)
        assert sum(link.credit for link in links) + inside <= receiver.credit + 2 + 35
    assert all(0 <= frame.flow("link_credit") < 2**31 for frame in link_flows(slow.wire.log[1]))
    for _ in range(30):
        receiver.flow(10)
        bench.advance(0.1)
    assert receiver.bodies.count("late") == held
    assert [body for body in receiver.bodies if body != "late"] == list(range(50))


@pytest.mark.parametrize("piece", [0, 40])
@pytest.mark.parametrize("parts", [1, 3])
def test_lowering_in_the_middle_of_a_message_in_parts(piece: int, parts: int) -> None:
    """A sender on proton stops in the middle of a message when its credit is taken back before it has begun it here."""
    bench = Bench(piece=piece)
    a, b = bench.mesh(("A", "B"))
    receiver = bench.client(b).receiver("topic", credit=40).accepting()
    client = bench.client(a)
    sender = client.sender("topic")
    for _ in range(40):
        sender.send(message("use"))
        bench.run()
        receiver.flow(1)
        bench.run()
    receiver.messages.clear()
    assert sender.credit > 3
    client.wire.is_still = True
    receiver.close()
    bench.advance(0.2)  # the lowering is on its way
    data = message("x" * 10_000)
    sent = sender.begin(data[:100])
    client.wire.is_still = False
    for at in range(1, parts):
        bench.run()
        sent.part(data[100 * at : 100 * at + 100])
    again = bench.client(b).receiver("topic", credit=5).accepting()
    bench.run()
    sent.end(data[100 * parts :])
    bench.advance(0.5)
    assert sent.outcome in ("accepted", "released")
    assert again.bodies == (["x" * 10_000] if sent.outcome == "accepted" else [])
    other = sender.send(message("next"))
    bench.advance(0.5)
    assert other.outcome == "accepted"
    assert all(0 <= frame.flow("link_credit") < 2**31 for frame in link_flows(client.wire.log[1]))
    bench.close()


def test_a_lowering_by_the_subscriber_acts_at_once_whatever_is_under_way(bench: Bench) -> None:
    a, b, c = bench.mesh(*LINE)
    receiver = bench.client(c).receiver("topic", credit=50).accepting()
    sender = bench.client(a).sender("topic")
    for _ in range(50):
        sender.send(message("use"))
        bench.run()
        receiver.flow(1)
        bench.run()
    receiver.messages.clear()
    wire = between(bench, b, c)
    wire.is_still = True
    held = sender.credit
    for number in range(held):
        sender.send(message(number))
    bench.run()
    receiver.flow(-receiver.credit)
    bench.run()
    wire.is_still = False
    bench.advance(0.2)
    assert receiver.bodies == []
    receiver.flow(held)
    bench.advance(0.2)
    assert receiver.bodies == list(range(held))


# Paths


def take_for_next_hop(router: Runtime, egress: str, neighbor: str, cost: int) -> None:
    """Install a route by hand, as for a moment while paths change."""
    connection = next(port.id for port in router.data_plane.ports.values() if port.neighbor == neighbor)
    action = InstallRouter(router=RouterId(egress), connection=connection, next_hop=RouterId(neighbor), cost=cost)
    router._carry_out([action])
    router.settle()


def test_two_routers_that_take_each_other_for_the_next_hop(bench: Bench) -> None:
    a, b, c = bench.mesh(*LINE)
    receiver = bench.client(c).receiver("topic", credit=20).accepting()
    senders = [bench.client(router).sender("topic") for router in (a, b)]
    sent = [sender.send(message("before")) for sender in senders]
    bench.run()
    take_for_next_hop(b, "C", "A", 2)
    wire = between(bench, a, b)
    before = len(wire.log[0]) + len(wire.log[1])
    for _ in range(20):
        sent += [sender.send(message("loop")) for sender in senders]
        bench.advance(0.02)
    assert len(wire.log[0]) + len(wire.log[1]) - before < 20_000, "messages go round"
    assert [router.fib.route(RouterId("C")).next_hop for router in (a, b)] == ["B", "A"]  # type: ignore[union-attr]
    take_for_next_hop(b, "C", "C", 1)
    for _ in range(40):
        bench.advance(0.1)
        receiver.flow(max(0, 20 - receiver.credit))
    assert {one.outcome for one in sent} == {"accepted"}
    assert len(receiver.messages) == len(sent)
    for router in bench.routers.values():
        for controller in router.data_plane.credit_manager:
            controller.machine.check_invariants()  # type: ignore[attr-defined]


# Reply addresses


def test_a_first_message_to_a_reply_address_that_is_given_up(bench: Bench) -> None:
    a, _, c = bench.mesh(*LINE)
    requester = bench.client(c).receiver(None, dynamic=True, credit=5).accepting()
    sender = bench.client(a).sender(requester.address)
    for _ in range(3):
        given_up = sender.begin(message("x" * 1000)[:500])
        bench.run()
        given_up.abort()
        bench.run()
    assert sender.credit == 1
    sent = [sender.send(message(number)) for number in range(3)]
    bench.advance(0.1)
    assert requester.bodies == [0, 1, 2]
    assert [one.outcome for one in sent] == ["accepted"] * 3


def test_a_first_message_to_a_reply_address_that_crosses_the_loss_of_its_path(bench: Bench) -> None:
    a, b, c = bench.mesh(*LINE)
    requester = bench.client(c).receiver(None, dynamic=True, credit=5).accepting()
    client = bench.client(a)
    sender = client.sender(requester.address)
    client.wire.is_still = True
    sent = sender.send(message(1))
    between(bench, a, b).cut()
    bench.advance(0.1)
    client.wire.is_still = False
    bench.run()
    assert sent.outcome == "released"
    assert sender.credit == 0
    assert all(0 <= frame.flow("link_credit") < 2**31 for frame in link_flows(client.wire.log[1]))
    bench.join(a, b)
    bench.advance(5)
    assert sender.credit == 1
    sender.send(message(2))
    bench.advance(0.1)
    assert requester.bodies == [2]


def test_a_reply_address_is_forgotten_with_its_publishers(bench: Bench) -> None:
    a, b, c = bench.mesh(*LINE, forwarding={"circuit_idle_s": 1.0})
    requester = bench.client(c).receiver(None, dynamic=True, credit=5).accepting()
    sender = bench.client(a).sender(requester.address)
    for number in range(3):
        sender.send(message(number))
        bench.advance(0.1)
    assert requester.bodies == [0, 1, 2]
    sender.close()
    bench.advance(5)
    for router in (a, b):
        assert not [entry.text for entry in router.fib.entries() if entry.text.startswith("temp.")]


# Crowds


def test_a_thousand_idle_publishers_cost_no_frame_for_each_message_of_a_busy_one(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    receiver = bench.client(b).receiver("topic", credit=100)
    crowd, client = bench.client(a), bench.client(a)
    session = crowd.session()
    crowd_links = [session.sender(f"idle-{number}") for number in range(1000)]
    for link in crowd_links:
        link.target.address = "topic"
        link.open()
    bench.run()
    sender = client.sender("topic")
    bench.advance(0.2)
    assert all(link.credit == 1 for link in crowd_links)

    def take(received: object) -> None:
        if receiver.credit <= 50:
            receiver.flow(50)

    receiver.policy = take
    first = len(crowd.wire.log[1])
    written = len(client.wire.log[1])
    for number in range(500):
        sender.send(message(number), settled=True)
    start = bench.now
    while len(receiver.messages) < 500:
        bench.advance(0.01)
        assert bench.now < start + 1
    assert len(crowd.wire.log[1]) == first, "nothing was said to the idle ones"
    assert len(link_flows(client.wire.log[1][written:])) < 150


def test_one_that_used_its_credit_among_a_thousand_idle_ones_gets_the_next_at_once(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    receiver = bench.client(b).receiver("topic", credit=1).accepting()
    crowd, client = bench.client(a), bench.client(a)
    session = crowd.session()
    for number in range(1000):
        link = session.sender(f"idle-{number}")
        link.target.address = "topic"
        link.open()
    sender = client.sender("topic")
    bench.advance(0.2)
    sender.send(message(0))
    sender.send(message(1))
    sender.send(message(2))
    bench.advance(1)
    assert receiver.bodies == [0]
    for number in (1, 2):
        receiver.flow(1)
        bench.advance(0.01)
        assert receiver.bodies == list(range(number + 1))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_thousands_of_addresses_between_two_routers(bench: Bench) -> None:
    count = 10_000 if "AMQP_MESH_PROMISE_PLAYS" in os.environ else 1500
    a, b = bench.mesh(("A", "B"), forwarding={"circuit_idle_s": 5.0})
    subscriber, publisher = bench.client(b), bench.client(a)
    receivers, senders = [], []
    for at in range(0, count, 500):
        taking, giving = subscriber.session(), publisher.session()
        for number in range(at, at + 500):
            receiver = taking.receiver(f"r-{number}")
            receiver.source.address = f"address-{number}"
            receiver.flow(2)
            receiver.open()
            sender = giving.sender(f"s-{number}")
            sender.target.address = f"address-{number}"
            sender.open()
            receivers.append(receiver)
            senders.append(sender)
        bench.run()
    bench.advance(1)
    port = next(iter(a.data_plane.ports.values()))
    assert len(port.circuits_out) == count
    assert all(sender.credit >= 1 for sender in senders)
    data = message("x")
    for sender in senders:
        delivery = sender.delivery("1")
        sender.send(data)
        sender.advance()
        delivery.settle()
    bench.advance(1)
    assert all(receiver.queued == 1 for receiver in receivers)
    assert all(pn_link_credit(link.handle) >= 0 for link in port.circuits_out.values())
    publisher.wire.cut()
    bench.advance(8)
    assert not port.circuits_out
    assert not list(a.data_plane.credit_manager)


# Multicast


def test_a_multicast_has_the_credit_of_the_subscriber_with_the_least(bench: Bench) -> None:
    a, b, c = bench.mesh(*LINE)
    receivers = [
        bench.client(router).receiver(FANOUT, credit=credit) for router, credit in ((a, 50), (b, 3), (c, 20), (c, 100))
    ]
    senders = [bench.client(router).sender(FANOUT) for router in (a, b, c)]
    for sender in senders:
        for number in range(10):
            sender.send(message(number), settled=True)
    bench.advance(0.3)
    assert [len(receiver.messages) for receiver in receivers] == [3, 3, 3, 3]
    held = sum(sender.credit + sender.link.queued for sender in senders)
    sent = sum(len(sender.sent) - sender.link.queued for sender in senders)
    assert held + sent - 3 <= 3, "one for each publisher"


@pytest.mark.parametrize("how", ["no credit", "still", "reads nothing"])
def test_a_stalled_subscriber_of_a_multicast_holds_up_the_others_for_the_grace(bench: Bench, how: str) -> None:
    a, b, c = bench.mesh(*LINE)
    stopped = bench.client(c)
    stalled = stopped.receiver(FANOUT, credit=5)
    well = [bench.client(router).receiver(FANOUT, credit=1000).accepting() for router in (a, c, b)]
    sender = bench.client(a).sender(FANOUT)
    if how == "still":
        stopped.wire.is_still = True
    elif how == "reads nothing":
        stopped.wire.ends[1].room = 0
    total = 100
    sent = [sender.send(message(number)) for number in range(total)]
    bench.advance(0.8 * GRACE_S)
    assert all(len(receiver.messages) <= 5 for receiver in well)
    for _ in range(20):
        bench.advance(0.1)
    assert all(receiver.bodies == list(range(total)) for receiver in well)
    assert {one.outcome for one in sent} == {"accepted"}
    stopped.wire.is_still = False
    stopped.wire.ends[1].room = float("inf")
    bench.advance(0.1)
    assert stalled.bodies == list(range(len(stalled.messages)))
    assert len(stalled.messages) <= 5


@pytest.mark.parametrize("hops", [0, 2])
def test_one_that_grants_one_credit_in_each_grace_sets_no_pace_of_a_multicast(bench: Bench, hops: int) -> None:
    routers = bench.mesh(*LINE)
    slow = bench.client(routers[hops]).receiver(FANOUT, credit=1).accepting()
    well = [bench.client(router).receiver(FANOUT, credit=1000).accepting() for router in routers]
    sender = bench.client(routers[0]).sender(FANOUT)
    total = 200
    for number in range(total):
        sender.send(message(number), settled=True)
    for _ in range(2):
        bench.advance(0.9 * GRACE_S)
        slow.flow(1)
    assert all(receiver.bodies == list(range(total)) for receiver in well)
    assert slow.bodies == list(range(len(slow.messages)))
    assert 1 <= len(slow.messages) <= 3
    missed = sum(link.counters.dropped for link in routers[hops].data_plane.links)
    assert missed == total - len(slow.messages)


@pytest.mark.parametrize("hops", [0, 2])
def test_one_that_grants_in_bursts_is_waited_for_by_a_multicast(bench: Bench, hops: int) -> None:
    routers = bench.mesh(*LINE)
    bursty = bench.client(routers[hops]).receiver(FANOUT, credit=100).accepting()
    well = [bench.client(router).receiver(FANOUT, credit=1000).accepting() for router in routers]
    sender = bench.client(routers[0]).sender(FANOUT)
    total = 700
    for number in range(total):
        sender.send(message(number), settled=True)
    for _ in range(7):
        bench.advance(0.5 * GRACE_S)
        bursty.flow(100)
    assert bursty.bodies == list(range(total))
    assert all(receiver.bodies == list(range(total)) for receiver in well)


def test_an_excluded_subscriber_counts_again_when_it_grants_and_has_paused(bench: Bench) -> None:
    a, _, c = bench.mesh(*LINE)
    stalled = bench.client(c).receiver(FANOUT, credit=4).accepting()
    well = bench.client(c).receiver(FANOUT, credit=1000).accepting()
    sender = bench.client(a).sender(FANOUT)
    for number in range(20):
        sender.send(message(number), settled=True)
    bench.advance(2 * GRACE_S + 0.2)
    assert len(well.messages) == 20
    assert len(stalled.messages) == 4
    stalled.flow(4)
    bench.advance(2)
    sender.send(message("again"), settled=True)
    bench.advance(0.1)
    assert stalled.bodies == [0, 1, 2, 3, "again"]
    assert well.bodies[-1] == "again"


def test_a_multicast_passes_subscribers_that_have_all_withdrawn(bench: Bench) -> None:
    a, _, c = bench.mesh(*LINE, forwarding={"grace_s": 60.0})
    withdrawn = bench.client(c).receiver(FANOUT, credit=5)
    well = bench.client(a).receiver(FANOUT, credit=50).accepting()
    sender = bench.client(a).sender(FANOUT)
    sender.send(message(1))
    bench.run()
    withdrawn.flow(-withdrawn.credit)
    bench.advance(2)
    sent = sender.send(message(2))
    other = bench.client(c).sender(FANOUT).send(message(3))
    bench.advance(1)
    assert withdrawn.bodies == [1]
    assert well.bodies == [1, 2, 3]
    assert (sent.outcome, other.outcome) == ("accepted", "accepted")


def test_a_drain_of_a_multicast_after_a_lowering_is_waited_for_in_peace(bench: Bench) -> None:
    """More is out than there is, and all of it is asked for already: nothing is due before the answer or the bound."""
    a, b = bench.mesh(("A", "B"))
    receiver = bench.client(a).receiver(FANOUT, credit=100).accepting()
    client = bench.client(b)
    sender = client.sender(FANOUT)
    for number in range(100):
        sender.send(message(number), settled=True)
        bench.run()
        receiver.flow(1)
        bench.run()
    assert sender.credit > 3
    between(bench, a, b).is_still = True
    receiver.flow(1 - receiver.credit)
    bench.run()
    receiver.drain(0)
    turns = 0
    handle_deadline = a.handle_deadline

    def count() -> None:
        nonlocal turns
        turns += 1
        handle_deadline()

    a.handle_deadline = count  # type: ignore[method-assign]
    bench.advance(0.5)
    assert turns < 50
    between(bench, a, b).is_still = False
    bench.advance(1)
    assert receiver.credit == 0


def test_an_excluded_subscriber_counts_again_at_once_when_it_is_the_only_one_left(bench: Bench) -> None:
    a, _, c = bench.mesh(*LINE)
    slow = bench.client(c).receiver(FANOUT, credit=20).accepting()
    other = bench.client(c).receiver(FANOUT, credit=1000)
    sender = bench.client(a).sender(FANOUT)
    sent = [sender.send(message(number)) for number in range(30)]
    bench.advance(2 * GRACE_S)
    assert len(other.messages) == 30
    other.close()
    slow.flow(1)  # much less than usual
    bench.advance(0.1)
    sent.append(sender.send(message("last")))
    bench.advance(0.1)
    assert slow.bodies == [*range(20), "last"]
    assert {one.outcome for one in sent} == {"accepted"}


# Counting


@pytest.mark.parametrize("before", [1, 3, 2**31])
def test_a_delivery_count_that_wraps(bench: Bench, before: int) -> None:
    """RFC 1982: a publisher that begins so far before the end of the count, or of its half."""
    router = bench.router("A")
    receiver = bench.client(router).receiver("topic", credit=5)
    publisher = bench.raw(router)
    begin = frames.write(0x11, [None, 0, 2**31 - 1, 2**31 - 1])
    attach = [
        "p", 0, False, None, None, frames.source("topic"), frames.target("topic"), None, None, 2**32 - before,
    ]  # fmt: skip
    publisher.write(frames.AMQP_HEADER + frames.write(0x10, ["raw"]) + begin + frames.write(0x12, attach))
    bench.run()
    count = 2**32 - before
    for number in range(6):
        flow = link_flows(publisher.read)[-1]
        assert 0 < (flow.flow("delivery_count") + flow.flow("link_credit") - count) % 2**32 < 100
        publisher.write(frames.write(0x14, [0, number, bytes([number]), 0, True], payload=message(number)))
        bench.run()
        count = (count + 1) % 2**32
        receiver.flow(1)
        bench.run()
    assert receiver.bodies == list(range(6))
    assert all(flow.flow("link_credit") < 100 for flow in link_flows(publisher.read))
