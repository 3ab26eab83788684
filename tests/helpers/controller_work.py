"""What a router does for a message with few and many subscribers of its address, and for a tree with few and many.

Run interpreted, since what is compiled carries out no instructions of the interpreter, and these are the same on every
machine. Prints the counts for few and for many, by the name of the case, as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.helpers.engine import Bench, Plug
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


CASES: dict[str, Callable[[int], int]] = {GRANTS_ONE: of_one_that_grants_one, BESIDE: of_messages_beside}

if __name__ == "__main__":
    import structlog

    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    work = {name: (case(FEW), case(MANY)) for name, case in CASES.items()}
    work[PATHS] = (of_paths(FEW_TREES), of_paths(MANY_TREES))
    print(json.dumps(work))
