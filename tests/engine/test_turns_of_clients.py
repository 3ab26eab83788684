"""Turns of clients at one address: whoever sends much there waits behind its own, and nobody else does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from router.runtime import Runtime
from tests.engine.test_raw_neighbor import join
from tests.helpers.engine import Bench
from tests.helpers.peer import Peer, PeerReceiver, PeerSender, message

TOPIC = "openstack.org/om/rpc/anycast/openstack/topic"
FANOUT = "openstack.org/om/rpc/multicast/openstack/topic"
SHARE = 0.4
"""Least part of what the subscriber takes that either of two busy clients gets."""


def fill(sender: PeerSender, body: str, address: str = TOPIC) -> None:
    while sender.credit > 0:
        sender.send(message(body, address=address), settled=True)


def taken(bench: Bench, receiver: PeerReceiver, busy: Callable[[], None], count: int = 200) -> list[str]:
    """Bodies of the messages that a subscriber gets, one in each 5 ms."""
    for _ in range(count):
        busy()
        receiver.flow(1)
        bench.advance(0.005)
    return [str(body) for body in receiver.bodies]


def assert_fair(bodies: list[str], *clients: str) -> None:
    """Each of the clients has its share, by what its messages say."""
    for client in clients:
        assert bodies.count(client) >= SHARE * len(bodies)


def subscribed(bench: Bench, router: Runtime, address: str = TOPIC) -> PeerReceiver:
    return bench.client(router).receiver(address, credit=1).accepting()


@pytest.mark.parametrize("address", [TOPIC, None])
def test_a_client_with_many_links_gets_no_more_than_one_with_one(bench: Bench, address: str | None) -> None:
    router = bench.router("A")
    receiver = subscribed(bench, router)
    honest = bench.client(router).sender(TOPIC)
    other = bench.client(router)
    many = [other.sender(address) for _ in range(20)]

    def busy() -> None:
        for sender in many:
            fill(sender, "many")
        fill(honest, "one")

    bodies = taken(bench, receiver, busy)
    assert_fair(bodies, "one", "many")


@pytest.mark.parametrize("address", [TOPIC, FANOUT])
def test_an_anonymous_sender_within_its_credit_starves_nobody(bench: Bench, address: str) -> None:
    router = bench.router("A")
    receiver = subscribed(bench, router, address)
    honest = bench.client(router).sender(address)
    anonymous = bench.client(router).sender(None)

    def busy() -> None:
        fill(anonymous, "anonymous", address)
        fill(honest, "honest", address)

    bodies = taken(bench, receiver, busy)
    assert_fair(bodies, "honest", "anonymous")


@pytest.mark.parametrize("at", [0, 1])
def test_multicasts_of_anonymous_senders_leave_others_their_part_across_routers(bench: Bench, at: int) -> None:
    routers = bench.mesh(("A", "B"))
    receiver = subscribed(bench, routers[1], FANOUT)
    honest = bench.client(routers[0]).sender(FANOUT)
    anonymous = bench.client(routers[at]).sender(None)

    def busy() -> None:
        fill(anonymous, "anonymous", FANOUT)
        fill(honest, "honest", FANOUT)

    bodies = taken(bench, receiver, busy)
    assert_fair(bodies, "honest", "anonymous")


def test_anonymous_senders_have_turns_at_a_multicast(bench: Bench) -> None:
    router = bench.router("A")
    receiver = subscribed(bench, router, FANOUT)
    quiet = bench.client(router).sender(None)
    other = bench.client(router)
    many = [other.sender(None) for _ in range(10)]

    def busy() -> None:
        for sender in many:
            fill(sender, "many", FANOUT)
        fill(quiet, "one", FANOUT)

    bodies = taken(bench, receiver, busy)
    assert_fair(bodies, "one", "many")


def test_a_client_that_comes_sends_and_goes_starves_nobody(bench: Bench) -> None:
    router = bench.router("A")
    receiver = subscribed(bench, router)
    honest = bench.client(router).sender(TOPIC)
    restless = bench.client(router)

    def busy() -> None:
        links = [restless.sender(TOPIC) for _ in range(5)]
        for link in links:
            fill(link, "gone")
            link.close()
        fill(honest, "honest")

    bodies = taken(bench, receiver, busy, count=100)
    assert_fair(bodies, "honest", "gone")


@pytest.mark.parametrize("distance", [1, 2])
def test_what_others_have_left_behind_gets_half_of_each_grant_at_most(bench: Bench, distance: int) -> None:
    routers = [bench.router("A")] if distance == 1 else bench.mesh(("A", "B"))
    receiver = bench.client(routers[-1]).receiver(TOPIC, credit=20).accepting()
    honest = bench.client(routers[0]).sender(TOPIC)
    restless = bench.client(routers[0])
    for _ in range(30):  # a backlog
        for link in [restless.sender(TOPIC) for _ in range(30)]:
            fill(link, "gone")
            link.close()
        bench.run()
    before = len(receiver.messages)
    for step in range(400):
        fill(honest, "honest")
        if step % 20 == 0:
            receiver.flow(20 - receiver.credit)
        bench.advance(0.005)
    bodies = [str(body) for body in receiver.bodies[before:]]
    assert len(bodies) >= 300
    assert_fair(bodies, "honest", "gone")


def test_datagrams_of_a_neighbor_starve_nobody(bench: Bench) -> None:
    router = bench.router("A")
    neighbor = join(bench, router, dials=True)
    receiver = subscribed(bench, router)
    honest = bench.client(router).sender(TOPIC)
    neighbor.hello()
    neighbor.advertise()

    def busy() -> None:
        while neighbor.data_out[0].credit > 0:
            neighbor.send("datagram", TOPIC, settled=True)
            bench.run()
            if neighbor.data_out[0].credit < 900:
                break
        fill(honest, "honest")

    bodies = taken(bench, receiver, busy, count=100)
    assert_fair(bodies, "honest", "datagram")


@pytest.mark.parametrize("is_settled", [True, False])
def test_anonymous_senders_leave_a_publisher_of_their_router_half_of_another(bench: Bench, is_settled: bool) -> None:
    """The subscriber grants five at once: what is left of them goes to the publisher while it is busy."""
    a, b = bench.mesh(("A", "B"))
    receiver = bench.client(b).receiver(TOPIC, credit=20).accepting()
    honest = bench.client(a).sender(TOPIC)
    anonymous = [bench.client(a).sender(None) for _ in range(3)]
    for _ in range(400):
        for sender in (*anonymous, honest):
            for _ in range(min(sender.credit, 50)):
                sender.send(message("honest" if sender is honest else "other", address=TOPIC), settled=is_settled)
        receiver.flow(min(5, 20 - receiver.credit))
        bench.advance(0.01)
    bodies = [str(body) for body in receiver.bodies]
    assert bodies.count("honest") > 0.45 * len(bodies)


def test_messages_of_each_link_keep_their_order(bench: Bench) -> None:
    router = bench.router("A")
    receiver = subscribed(bench, router)
    senders: dict[str, PeerSender] = {}
    peers: list[Peer] = [bench.client(router) for _ in range(3)]
    for number, peer in enumerate(peers):
        senders[f"{number}t"] = peer.sender(TOPIC)
        senders[f"{number}a"] = peer.sender(None)
    counts = dict.fromkeys(senders, 0)

    def busy() -> None:
        for name, sender in senders.items():
            while sender.credit > 0:
                counts[name] += 1
                sender.send(message(f"{name} {counts[name]}", address=TOPIC), settled=True)

    bodies = taken(bench, receiver, busy)
    assert len(bodies) > 150
    for name in senders:
        numbers = [int(body.split()[1]) for body in bodies if body.startswith(name)]
        assert numbers == list(range(1, len(numbers) + 1))
        assert numbers
