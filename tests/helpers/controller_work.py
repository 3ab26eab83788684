"""What a router does for a message with few and many subscribers of its address, and for a tree with few and many.

Run interpreted, since what is compiled carries out no instructions of the interpreter, and these are the same on every
machine. Prints the counts for few and for many, by the name of the case, as JSON.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable

from router.binding.proton_functions import pn_link_credit
from router.core.forwarding.anycast_scheduler import AnycastScheduler, EgressPath
from router.core.ids_and_conditions import RouterId
from router.dataplane.links import EgressLink
from tests.helpers.engine import Bench, Plug
from tests.helpers.multicast_bench import MulticastBench
from tests.helpers.peer import Peer, PeerReceiver, message
from tests.helpers.work import instructions

FEW, MANY = 10, 500
"""Subscribers."""
ADDRESS = "work"
GRANTS_ONE = "one of many subscribers grants one"
FEW_TREES, MANY_TREES = 3, 24
"""Trees of a multicast."""
PATHS = "paths change"
FANOUT = "broadcast/work"
BESIDE = "messages of a publisher whose connection has many subscribers"


def plug_of(bench: Bench, client: Peer) -> Plug:
    """The router's end of a client's wire."""
    (plug,) = (wire.ends[1] for wire in bench.wires if wire.ends[0] is client)
    assert isinstance(plug, Plug)
    return plug


def subscribers(bench: Bench, client: Peer, count: int, credit: int) -> list[PeerReceiver]:
    receivers = [client.receiver(ADDRESS, credit=credit, run=False).accepting() for _ in range(count)]
    bench.run()
    return receivers


def of_one_that_grants_one(count: int) -> int:
    """Instructions of a flow of one of so many subscribers, of which all others have used their credit up or withdrawn
    it, and of the message that it gets."""
    bench = Bench()
    router = bench.router("A")
    receivers = subscribers(bench, bench.client(router), count, credit=1)
    for receiver in receivers[::2]:
        receiver.flow(-1)
    bench.run()
    publisher = bench.client(router)
    sender = publisher.sender(ADDRESS)
    for _ in receivers[1::2]:
        bench.advance(0.1)
        sender.send(message("use"))
        bench.run()
    consumer = bench.client(router)
    one = consumer.receiver(ADDRESS).accepting()
    bench.advance(1)
    consumed, published = plug_of(bench, consumer), plug_of(bench, publisher)

    def act() -> None:
        consumed.give(consumer.take())
        published.give(publisher.take())

    one.flow(1)
    sender.send(message("counted"))
    work = instructions(act)
    bench.run()
    assert one.bodies == ["counted"]
    return work


def of_messages_beside(count: int) -> int:
    """Instructions of one more message in a write of a connection that has so many subscribers."""

    def of(messages: int) -> int:
        bench = Bench()
        client = bench.client(bench.router("A"))
        sender = client.sender(ADDRESS)
        subscribers(bench, client, count, credit=1000)
        plug = plug_of(bench, client)
        while sender.credit < messages:
            for _ in range(sender.credit):
                sender.send(message("use"))
            bench.run()
        for _ in range(messages):
            sender.send(message("counted"))
        return instructions(lambda: plug.give(client.take()))

    return (of(7) - of(1)) // 6


def of_a_datagram(count: int) -> int:
    """Instructions of messages of anonymous senders to an address of which each subscriber has one message."""
    bench = Bench()
    router = bench.router("A")
    consumer, client = bench.client(router), bench.client(router)
    receivers = [consumer.receiver(ADDRESS, credit=10, run=False) for _ in range(count)]
    senders = itertools.cycle([client.sender(None) for _ in range(10)])
    bench.run()
    plug = plug_of(bench, client)

    def one() -> int:
        next(senders).send(message("use", address=ADDRESS))
        data = client.take()
        work = instructions(lambda: plug.give(data))
        bench.run()
        return work

    for _ in receivers:
        one()
    assert {len(receiver.messages) for receiver in receivers} == {1}
    return sum(one() for _ in range(5))


def of_an_empty_frame(count: int) -> int:
    """Instructions of an empty frame of a client that reads nothing and has so many receivers with credit."""
    bench = Bench()
    router = bench.router("A")
    client = bench.client(router)
    client.receiver("large", credit=1000)
    receivers = [client.receiver(f"q{number}", run=False) for number in range(count)]
    bench.run()
    plug = plug_of(bench, client)
    sender = bench.client(router).sender("large")
    bench.advance(1)
    plug.room = 0
    for _ in range(60):
        for _ in range(min(sender.credit, 5)):
            sender.send(message("x" * 30_000), settled=True)
        bench.advance(0.01)
    for receiver in receivers:
        receiver.link.flow(1)
    bench.run()
    bench.advance(0.1)
    links = [link for link in plug.connection.links.values() if isinstance(link, EgressLink)]
    assert len(links) == count + 1
    assert all(pn_link_credit(link.handle) and not link.can_send() for link in links)
    return instructions(lambda: plug.give(b"\0\0\0\x08\x02\0\0\0"))


def of_what_is_left(count: int) -> int:
    """Instructions of messages of a publisher beside so many that other publishers have left behind."""
    machine = AnycastScheduler()
    egress = RouterId("A")
    machine.set_paths({egress: EgressPath(0, None)}, 0.0)
    machine.set_capacity(egress, 1, 0.0)
    machine.turn(0.0)
    machine.set_capacity(egress, 0, 0.0)
    for number in range(count + 50):
        machine.add_publisher(("gone", number))
        machine.turn(0.0)
        machine.published(("gone", number), number, 0.0)
        machine.remove_publisher(("gone", number))
    machine.add_publisher("there")
    machine.turn(0.0)

    def one(now: float) -> int:
        def act() -> None:
            machine.published("there", ("one", now), now)
            machine.set_capacity(egress, machine.pools[egress].capacity + 2, now)
            machine.turn(now)

        return instructions(act)

    for number in range(1, 6):
        one(0.001 * number)
    work = sum(one(0.001 * number) for number in range(6, 20))
    assert len(machine.publishers.left) > 0
    return work


def of_a_message_in_parts(count: int) -> int:
    """Instructions of a multicast that comes in parts by a circuit, where messages enter at so many routers."""
    bench = MulticastBench()
    for number in range(count):
        bench.upstream(f"in {number}", f"up {number}", "child")
    last = RouterId(f"in {count - 1}")

    def act() -> None:
        for message_key in ("kept", "given up"):
            bench.machine.arrived(last, f"up {count - 1}", message_key, bench.now, is_ready=False)
        bench.machine.ready("kept")
        bench.machine.drop("given up")

    return instructions(act)


def of_paths(count: int) -> int:
    """Instructions of a change of paths at a router in the middle of so many trees, for each of them."""
    bench = Bench()
    names = [f"I{number:02}" for number in range(count)]
    bench.mesh(("M", "S"), *(("M", name) for name in names))
    middle = bench.routers["M"]
    bench.client(bench.routers["S"]).receiver(FANOUT, credit=1000)
    bench.advance(1)
    for name in names:
        bench.client(bench.routers[name]).sender(FANOUT)
    bench.advance(1)
    (controller,) = middle.data_plane.credit_manager
    assert len(controller.own) == count
    return instructions(controller.update_paths) // count


CASES: dict[str, Callable[[int], int]] = {
    GRANTS_ONE: of_one_that_grants_one,
    BESIDE: of_messages_beside,
    "messages of anonymous senders": of_a_datagram,
    "an empty frame beside receivers that must not be sent to": of_an_empty_frame,
    "messages of a publisher beside those that others have left": of_what_is_left,
    "a multicast in parts beside other trees": of_a_message_in_parts,
}

if __name__ == "__main__":
    import structlog

    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    work = {name: (case(FEW), case(MANY)) for name, case in CASES.items()}
    work[PATHS] = (of_paths(FEW_TREES), of_paths(MANY_TREES))
    print(json.dumps(work))
