"""Balanced addresses on real links: who is chosen, what routers tell each other of loads, and order."""

from __future__ import annotations

import pytest

from mesh_config.models import AddressSettings, Treatment
from router.core.forwarding.egress_load import RENEW_S
from router.core.ids_and_conditions import RouterId
from router.dataplane.anycast_controller import AnycastController
from router.runtime import Runtime
from tests.helpers.engine import Bench, Plug
from tests.helpers.peer import PeerReceiver, message

BALANCED = "openstack.org/om/rpc/anycast/openstack/topic"
RING = (("A", "B"), ("B", "C"), ("C", "D"), ("D", "A"))


@pytest.fixture
def ring(bench: Bench) -> list[Runtime]:
    return bench.mesh(*RING)


def servers_at(bench: Bench, routers: list[Runtime], credit: int = 100) -> list[PeerReceiver]:
    return [bench.client(router).receiver(BALANCED, credit=credit) for router in routers]


def test_unsettled_messages_are_spread_over_all_servers_of_the_mesh(bench: Bench, ring: list[Runtime]) -> None:
    servers = servers_at(bench, ring)
    callers = [bench.client(ring[0]).sender(BALANCED) for _ in range(4)]
    bench.run()
    for turn in range(10):
        for caller in callers:
            caller.send(message(turn))
            bench.advance(0.01)
    counts = [len(server.messages) for server in servers]
    assert sum(counts) == 40
    assert max(counts) - min(counts) <= 2, counts


def test_a_message_stays_at_an_idle_server_of_its_own_router(bench: Bench, ring: list[Runtime]) -> None:
    servers = [server.accepting() for server in servers_at(bench, ring)]
    caller = bench.client(ring[0]).sender(BALANCED)
    for number in range(50):
        caller.send(message(number))
        bench.run()
    assert [len(server.messages) for server in servers] == [50, 0, 0, 0]


@pytest.mark.parametrize("count", [3, 40])
def test_a_server_without_a_message_goes_before_one_with_some(bench: Bench, count: int) -> None:
    (router,) = [bench.router("A")]
    servers = [bench.client(router).receiver(BALANCED, credit=10) for _ in range(count)]
    caller = bench.client(router).sender(BALANCED)
    bench.run()
    for number in range(count):
        caller.send(message(number))
        bench.run()
    assert [len(server.messages) for server in servers] == [1] * count
    servers[count // 2].messages[0].settle()
    bench.run()
    caller.send(message("late"))
    bench.run()
    assert servers[count // 2].bodies[-1] == "late"


def test_a_server_that_is_gone_is_kept_nowhere(bench: Bench) -> None:
    (router,) = [bench.router("A")]
    clients = [bench.client(router) for _ in range(3)]
    servers = [client.receiver(BALANCED, credit=10).accepting() for client in clients]
    caller = bench.client(router).sender(BALANCED)
    for number in range(6):
        caller.send(message(number))
        bench.run()
    assert all(server.messages for server in servers)
    clients[0].wire.cut()
    servers[1].close()
    bench.run()
    entry = router.fib.find(BALANCED)
    assert entry is not None
    assert isinstance(entry.controller, AnycastController)
    assert set(entry.controller.local_load.idle or ()) <= set(entry.subscribers)
    assert len(entry.subscribers) == 1


def test_others_messages_at_a_server_are_told_and_count(bench: Bench, ring: list[Runtime]) -> None:
    a, b, c, d = ring
    near, far = servers_at(bench, [b, d])
    first, second = bench.client(c).sender(BALANCED), bench.client(a).sender(BALANCED)
    bench.run()
    second.send(message("first"))  # its circuits are there
    bench.advance(0.1)
    (near if near.messages else far).messages[-1].settle()
    bench.advance(0.1)
    for number in range(8):
        first.send(message(number))
        bench.advance(0.02)
    counts = len(near.messages), len(far.messages)
    assert max(counts) - min(counts) <= 2, counts
    for server in (near, far):
        load = a.fib.find(BALANCED).remotes[RouterId("B" if server is near else "D")]  # type: ignore[union-attr]
        assert load.wait(bench.now) == len(server.messages) - ("first" in server.bodies)


def deadlines_in(bench: Bench, router: Runtime, seconds: float) -> int:
    """How often a router has something to do while nothing else happens."""
    end = bench.now + seconds
    count = 0
    while (due := router.next_deadline()) < end:
        bench.now = max(bench.now, due)
        router.handle_deadline()
        count += 1
    bench.now = end
    return count


def test_a_message_without_an_outcome_keeps_no_router_busy(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    servers = servers_at(bench, [a, b])
    caller = bench.client(a).sender(BALANCED)
    bench.run()
    for number in range(4):
        caller.send(message(number))
        bench.advance(0.1)
    assert all(server.messages for server in servers)
    bench.advance(5)
    load = a.fib.find(BALANCED).remotes[RouterId("B")]  # type: ignore[union-attr]
    assert load.unsettled > 0
    assert deadlines_in(bench, b, 1.0) <= 15, "beside its own of each second"


def test_what_changes_after_a_rest_is_told_soon(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    servers_at(bench, [a, b])
    caller, there = bench.client(a).sender(BALANCED), bench.client(b).sender(BALANCED)
    bench.run()
    for number in range(2):
        caller.send(message(number))
        bench.advance(0.1)
    bench.advance(5)
    load = a.fib.find(BALANCED).remotes[RouterId("B")]  # type: ignore[union-attr]
    before = load.messages(bench.now)
    for number in range(8):
        there.send(message(number))
        bench.run()
    bench.advance(RENEW_S + 0.02)
    assert load.messages(bench.now) >= before + 3


def test_where_there_is_one_subscriber_nothing_is_counted(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    bench.client(b).receiver(BALANCED, credit=10)
    sender = bench.client(a).sender(BALANCED)
    for _ in range(3):
        sender.send(message())
        bench.run()
    for router in (a, b):
        entry = router.fib.find(BALANCED)
        assert entry is not None
        assert isinstance(entry.controller, AnycastController)
        assert all(link.load is None for link in entry.controller.own.values())
        assert entry.controller.local_load.unsettled == 0
        assert all(load.unsettled == 0 for load in entry.remotes.values())


def test_messages_are_counted_from_when_there_is_a_second_subscriber(bench: Bench) -> None:
    a, b, c = bench.mesh(("A", "B"), ("B", "C"))
    bench.client(b).receiver(BALANCED, credit=10)
    sender = bench.client(a).sender(BALANCED)
    bench.run()
    for _ in range(3):
        sender.send(message())
        bench.run()
    other = bench.client(c).receiver(BALANCED, credit=10)
    bench.run()
    entry = a.fib.find(BALANCED)
    assert entry is not None
    assert entry.remotes[RouterId("B")].unsettled == 3
    for _ in range(3):
        sender.send(message())
        bench.advance(0.01)
    assert len(other.messages) >= 2, "it had none"


def test_distance_is_worth_what_the_settings_say(bench: Bench) -> None:
    settings = AddressSettings(prefix="near", treatment=Treatment.BALANCED, distance_messages=3.0)
    a, b = (bench.router(name, addresses=(settings,)) for name in "AB")
    bench.join(a, b)
    bench.advance(1)
    here, there = (bench.client(router).receiver("near/x", credit=20) for router in (a, b))
    sender = bench.client(a).sender("near/x")
    bench.run()
    for number in range(9):
        sender.send(message(number))
        bench.advance(0.01)
    assert len(here.messages) - len(there.messages) == 3


# Senders that name the address in each message


def test_datagrams_are_spread_over_all_servers_of_the_mesh(bench: Bench, ring: list[Runtime]) -> None:
    servers = servers_at(bench, ring)
    sender = bench.client(ring[0]).sender(None)
    bench.run()
    for number in range(40):
        sender.send(message(number, address=BALANCED))
        bench.run()
    counts = [len(server.messages) for server in servers]
    assert sum(counts) == 40
    assert max(counts) - min(counts) <= 1, counts


def test_no_datagram_overtakes_another_one_of_its_sender(bench: Bench, ring: list[Runtime]) -> None:
    servers = servers_at(bench, ring, credit=3)
    senders = [bench.client(router).sender(None) for router in ring]
    bench.run()
    for number in range(60):
        for home, sender in enumerate(senders):
            sender.send(message([home, number], address=BALANCED))
        if number % 5 == 4:
            bench.run()
    for _ in range(200):
        bench.advance(0.05)
        for server in servers:
            for received in server.messages[-3:]:
                received.settle()
            server.flow(3 - server.credit)
    arrived = [body for server in servers for body in server.bodies]
    assert len(arrived) == 240
    for server in servers:
        for home in range(4):
            numbers = [number for at, number in server.bodies if at == home]
            assert numbers == sorted(numbers), "overtaken"


def test_a_datagram_goes_to_the_router_that_was_chosen_where_it_came_in(bench: Bench) -> None:
    a, b, c = bench.mesh(("A", "B"), ("B", "C"))
    far = bench.client(c).receiver(BALANCED, credit=10)
    bench.run()
    sender = bench.client(a).sender(None)
    bench.run()
    near = bench.client(b).receiver(BALANCED, credit=10)
    bench.run()
    for number in range(4):
        sender.send(message(number, address=BALANCED))
        bench.run()
    assert sorted(near.bodies + far.bodies) == [0, 1, 2, 3]
    assert len(far.messages) == 2
    for received in (*near.messages, *far.messages):
        assert b"x-opt" not in received.data, "the routers' annotations are theirs"


def test_a_datagram_whose_router_has_lost_its_subscriber_goes_to_another_one(bench: Bench) -> None:
    a, b, c = bench.mesh(("A", "B"), ("B", "C"))
    far = bench.client(c)
    receiver = far.receiver(BALANCED)
    near = bench.client(b).receiver(BALANCED, credit=10)
    bench.run()
    sender = bench.client(a).sender(None)
    bench.run()
    sent = [sender.send(message(number, address=BALANCED)) for number in range(4)]
    bench.run()
    receiver.close()
    bench.advance(1)
    near.accepting()
    bench.advance(1)
    assert sorted(near.bodies) == [0, 1, 2, 3]
    assert [one.outcome for one in sent] == ["accepted"] * 4


@pytest.mark.parametrize("count", [3, 40])
def test_a_datagram_goes_to_a_server_without_a_message_before_one_with_some(bench: Bench, count: int) -> None:
    (router,) = [bench.router("A")]
    servers = [bench.client(router).receiver(BALANCED, credit=10) for _ in range(count)]
    sender = bench.client(router).sender(None)
    bench.run()
    for number in range(count):
        sender.send(message(number, address=BALANCED))
        bench.run()
    assert [len(server.messages) for server in servers] == [1] * count
    servers[count // 2].messages[0].settle()
    bench.run()
    parts = sender.begin(message("late", address=BALANCED)[:30])
    bench.run()
    parts.end(message("late", address=BALANCED)[30:])
    bench.run()
    assert servers[count // 2].bodies[-1] == "late"


def test_datagrams_of_a_closest_address_go_to_its_servers_by_turns(bench: Bench) -> None:
    (router,) = [bench.router("A")]
    servers = [bench.client(router).receiver("closest.x", credit=10) for _ in range(3)]
    servers[1].flow(-10)
    sender = bench.client(router).sender(None)
    bench.run()
    for number in range(10):
        sender.send(message(number, address="closest.x"))
        bench.run()
    assert [len(server.messages) for server in servers] == [5, 0, 5]


@pytest.mark.parametrize("address", [BALANCED, "closest.x"])
def test_a_datagram_goes_past_subscribers_whose_connections_are_full(bench: Bench, address: str) -> None:
    router = bench.router("A")
    slow, quick = bench.client(router), bench.client(router)
    filled = slow.receiver("large", credit=1000)
    full = [slow.receiver(address, credit=10).accepting() for _ in range(3)]
    free = quick.receiver(address, credit=20).accepting()
    sender = bench.client(router).sender(None)
    large = bench.client(router).sender("large")
    for _ in range(4):
        sender.send(message("early", address=address))
        bench.run()
    (plug,) = (wire.ends[1] for wire in bench.wires if wire.ends[0] is slow)
    assert isinstance(plug, Plug)
    plug.room = 0
    for _ in range(60):
        for _ in range(min(large.credit, 5)):
            large.send(message("x" * 30_000), settled=True)
        bench.advance(0.01)
    for number in range(10):
        sender.send(message(number, address=address))
        bench.run()
    assert free.bodies == ["early", *range(10)]
    plug.room = float("inf")
    bench.run()
    assert filled.messages
    for _ in range(4):
        sender.send(message("late", address=address))
        bench.run()
    assert [receiver.bodies for receiver in full] == [["early", "late"]] * 3
