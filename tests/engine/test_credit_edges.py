"""Exact credit at its edges: flows in one write with messages, what is too large, and peers that mind no bounds."""

from __future__ import annotations

import math
import time

import pytest
from proton import int32, symbol

from router.binding.proton_functions import pn_link_credit
from router.core.forwarding.anycast_scheduler import AnycastScheduler, EgressPath
from router.core.forwarding.timer_queue import SPARE
from router.core.ids_and_conditions import RouterId
from router.core.linkstate.messages import MAX_WEIGHT
from router.dataplane.anycast_controller import AnycastController
from router.dataplane.links import EgressLink
from router.dataplane.multicast_controller import MulticastController
from router.runtime import Runtime
from tests.engine.test_circuits import attach, join
from tests.helpers import frames
from tests.helpers.engine import Bench, Plug
from tests.helpers.peer import message


def subscribers(router: Runtime, address: str) -> list[EgressLink]:
    entry = router.fib.find(address)
    assert entry is not None
    return [link for link in entry.subscribers if isinstance(link, EgressLink)]


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize("address", ["topic", "broadcast.x"])
def test_a_lowering_behind_a_message_in_one_write(bench: Bench, address: str, others: int) -> None:
    """Proton knows all that came in one write before the router hears of the first of it."""
    router = bench.router("A")
    client = bench.client(router)
    receiver, sender = client.receiver(address, credit=5).accepting(), client.sender(address)
    rest = [bench.client(router).receiver(address).accepting() for _ in range(others)]
    for _ in range(10):
        sender.send(message("use"))
        bench.run()
        receiver.flow(1)
        bench.run()
    receiver.messages.clear()
    sent = sender.send(message(1))
    data = client.take()
    receiver.flow(-receiver.credit)
    client.wire.ends[1].give(data + client.take())
    bench.run()
    assert client.closed is None
    assert receiver.bodies == []
    assert sent.outcome is None
    for link in subscribers(router, address):
        assert pn_link_credit(link.handle) == 0
        assert not link.waiting
    for one in rest or [receiver]:
        one.flow(1)
    bench.run()
    if not (rest and address != "topic"):  # one that has withdrawn still holds up the others of a multicast
        assert [body for one in (receiver, *rest) for body in one.bodies] == [1]
        assert sent.outcome == "accepted"


def test_a_multicast_that_is_too_large_costs_its_publisher_no_credit(bench: Bench) -> None:
    router = bench.router("A", forwarding={"held_message_bytes": 4000})
    client = bench.client(router)
    receiver = client.receiver("broadcast.x", credit=3).accepting()
    sender = client.sender("broadcast.x")
    data = message("x" * 5000)
    for _ in range(8):
        sent = sender.begin(data[:4500])
        bench.run()
        sent.end(data[4500:])
        bench.advance(0.2)
        assert sent.outcome == "rejected"
    sender.send(message("small"))
    bench.run()
    assert receiver.bodies == ["small"]


@pytest.mark.parametrize("address", ["topic", "broadcast.x"])
def test_weights_beyond_what_can_be_told(bench: Bench, address: str) -> None:
    """Else the next router takes the whole message for malformed, with the weights of all other circuits in it."""
    a, b = bench.mesh(("A", "B"))
    bench.client(b).receiver(address, credit=10)
    raw = join(bench, a)
    root = {symbol("amqp-mesh.egress"): "B"} if address == "topic" else {symbol("amqp-mesh.ingress"): "RAW"}
    names = [attach(raw, address, root).name for _ in range(3)]
    weights = {name: int32(MAX_WEIGHT) for name in names}
    raw.say("amqp:/_local/amqp-mesh.circuits", "CIRCUITS", {"weights": weights, "closed": []})
    bench.run()
    (link,) = (link for port in b.data_plane.ports.values() for link in port.circuits_in.values())
    controller = link.controller
    if isinstance(controller, AnycastController):
        assert controller.machine.pools[RouterId("B")].circuits[link].weight == MAX_WEIGHT
    else:
        assert isinstance(controller, MulticastController)
        assert controller.machine.trees[RouterId("RAW")].pool.circuits[link].weight == MAX_WEIGHT


def test_what_waited_within_bounds_is_not_refused_when_its_subscriber_reads_again(bench: Bench) -> None:
    router = bench.router("A", forwarding={"waiting_bytes": 2_000_000})
    client = bench.client(router)
    receiver = client.receiver("topic", credit=1000).accepting()
    senders = [bench.client(router).sender("topic") for _ in range(8)]
    for _ in range(30):
        for sender in senders:
            sender.send(message("use"))
        bench.run()
        receiver.flow(1000 - receiver.credit)
        bench.run()
    receiver.messages.clear()
    plug = client.wire.ends[1]
    assert isinstance(plug, Plug)
    plug.room, client.wire.is_still = 0, True
    sent = []
    for number in range(10):
        sent += [sender.send(message("x" * 100_000), settled=number % 2 == 0) for sender in senders]
        bench.run()
    bench.advance(0.2)
    plug.room, client.wire.is_still = math.inf, False
    bench.advance(0.5)
    assert len(receiver.messages) == len(sent)
    assert {one.outcome for one in sent} == {"accepted", None}


def test_a_publisher_that_ignores_its_credit_fills_no_more_than_its_addresss_room(bench: Bench) -> None:
    router = bench.router("A", forwarding={"waiting_messages": 100})
    bench.client(router).receiver("topic", credit=1)
    stranger = bench.raw(router)
    termini = [frames.source("topic"), frames.target("topic")]
    stranger.write(frames.AMQP_HEADER + frames.write(0x10, ["x"]) + frames.write(0x11, [None, 0, 2**31 - 1, 2**31 - 1]))
    stranger.write(frames.write(0x12, ["greedy", 0, False, None, None, *termini, None, None, 0]))
    bench.run()
    for number in range(500):
        transfer = [0, number, number.to_bytes(4, "big"), 0, True]
        stranger.write(frames.write(0x14, transfer, payload=message(number)))
        if number % 50 == 0:
            bench.run()
    bench.run()
    entry = router.fib.find("topic")
    assert entry is not None
    assert len(entry.waiting) <= 200


def test_multicasts_of_an_anonymous_sender_share_the_credit_of_publishers(bench: Bench) -> None:
    router = bench.router("A")
    receiver = bench.client(router).receiver("broadcast.x", credit=3).accepting()
    client = bench.client(router)
    sender, anonymous = client.sender("broadcast.x"), client.sender(None)
    for _ in range(3):
        anonymous.send(message("datagram", address="broadcast.x"))
    data = client.take()
    sent = sender.send(message("brokered"))
    client.wire.ends[1].give(data + client.take())
    bench.run()
    bench.advance(0.1)  # what others don't use is for it after a while
    assert [pn_link_credit(link.handle) for link in subscribers(router, "broadcast.x")] == [0]
    assert len(receiver.bodies) == 3
    assert sent.outcome == "accepted"  # its turn is before that of another one's second
    receiver.flow(1)
    bench.run()
    assert sorted(map(str, receiver.bodies)) == ["brokered", *["datagram"] * 3]


def test_deadlines_of_brokers_do_not_pile_up(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    receiver = bench.client(b).receiver("topic", credit=10).accepting()
    sender = bench.client(a).sender("topic")
    rooms = [router.data_plane.credit_manager for router in (a, b)]
    for _ in range(200):
        sender.send(message("use"))
        bench.run()
        receiver.flow(10 - receiver.credit)
        bench.advance(0.2)
        assert all(len(room._timers._heap) <= SPARE + 10 for room in rooms)


def deal_among(count: int) -> float:
    """CPU seconds of a turn that deals credit to so many circuits."""
    machine = AnycastScheduler()
    machine.set_paths({RouterId("A"): EgressPath(0, None)}, 0.0)
    for number in range(count):
        machine.add_circuit(RouterId("A"), number, RouterId(f"N{number}"))
        machine.set_weight(RouterId("A"), number, 1)
    machine.set_capacity(RouterId("A"), 10 * count, 0.0)
    began = time.process_time()
    machine.turn(0.0)
    took = time.process_time() - began
    assert all(circuit.out for circuit in machine.pools[RouterId("A")].circuits.values())
    return took


@pytest.mark.slow
def test_dealing_among_many_circuits_looks_at_each_a_few_times() -> None:
    few = min(deal_among(500) for _ in range(10))
    many = min(deal_among(5000) for _ in range(3))
    assert many < 35 * few, "looking at all for each would take a hundred times as long"


@pytest.mark.parametrize("crosses", [False, True])
def test_a_reply_that_crosses_the_loss_of_its_path_costs_no_credit(bench: Bench, crosses: bool) -> None:
    a, b = bench.mesh(("A", "B"))
    (wire,) = bench.wires
    requester = bench.client(b).receiver(None, dynamic=True, credit=100).accepting()
    server = bench.client(a)
    sender = server.sender(requester.address)
    sender.send(message(1))
    bench.advance(0.2)
    server.wire.is_still = crosses
    if crosses:
        sender.send(message(2))
    wire.cut()
    bench.advance(5)
    server.wire.is_still = False
    bench.run()
    assert sender.credit == 0
    bench.join(a, b)
    bench.advance(5)
    assert sender.credit > 0
    sender.send(message(3))
    bench.advance(0.2)
    assert requester.bodies == [1, 3]
