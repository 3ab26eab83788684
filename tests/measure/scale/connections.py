"""Client connections, each with a subscriber to an address of its own."""

from __future__ import annotations

from collections.abc import Sequence

from tests.measure.scale.client import Client, Link, message
from tests.measure.scale.stand import Bench, Stand, Table, new_address

SIZES = (250, 500, 1000, 2000)
WAVE = 100
"""Connections that are opened before their attaches are awaited."""
EVENTS = 100
BODY = message(b"x" * 100)


def measure(stand: Stand, sizes: Sequence[int]) -> Table:
    """Memory and CPU of the router they are attached to."""
    table = Table("client connections, each with a subscriber to an address of its own")
    with stand.line() as bench:
        loop = bench.loop
        subscribers: list[Link] = []
        first = new_address()
        empty = bench.memory()
        publisher = loop.connect(bench.url()).publisher(first)
        subscribers.append(_attach(bench, first))

        def grow(count: int) -> None:
            while len(subscribers) < count:
                wave = [_attach(bench, new_address()) for _ in range(min(WAVE, count - len(subscribers)))]
                loop.attach_all(wave)
                subscribers.extend(wave)

        for size in sizes:
            new = size - len(subscribers)
            cost = bench.cost(lambda size=size: grow(size), times=new)  # type: ignore[misc]
            table.add(size, "CPU to connect and attach, each", cost)
            table.add(size, "memory, each", (bench.memory() - empty) / size, "B")
            _events(bench, table, size, publisher, subscribers)
    return table


def _events(bench: Bench, table: Table, size: int, publisher: Link, subscribers: Sequence[Link]) -> None:
    table.add(size, "a message", bench.cost(lambda: bench.send_each(publisher, subscribers[:1], BODY)))
    table.add(size, "a flow", bench.cost(lambda: bench.grant_each(subscribers)))
    more: list[Link] = []

    def attach() -> None:
        more.extend(bench.attach_each(lambda: _attach(bench, new_address()), EVENTS))

    table.add(size, "one more connection", bench.cost(attach, times=EVENTS))
    table.add(size, "one less", bench.cost(lambda: _leave(bench, [link.client for link in more]), times=EVENTS))
    table.add(size, "nothing, for a second", bench.cost(lambda: bench.loop.run_for(3.0), times=3))


def _attach(bench: Bench, address: str) -> Link:
    return bench.loop.connect(bench.url()).subscriber(address, credit=10_000)


def _leave(bench: Bench, clients: Sequence[Client]) -> None:
    for client in clients:
        client.close()
        bench.loop.run_until(lambda client=client: client.is_closed)  # type: ignore[misc]
