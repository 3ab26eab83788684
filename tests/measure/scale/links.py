"""Links of few connections: half of them subscribers, half publishers, two to each of many addresses."""

from __future__ import annotations

from collections.abc import Sequence

from tests.measure.scale.client import Client, Link, message
from tests.measure.scale.stand import Bench, Stand, Table, new_address

SIZES = (2500, 5000, 10_000, 20_000)
CLIENT_LINKS = 1000
"""Links of one connection."""
WAVE = 250
"""Addresses whose links are attached before the answers are awaited."""
BODY = message(b"x" * 100)


def measure(stand: Stand, sizes: Sequence[int]) -> Table:
    """Memory and CPU of the router they are attached to."""
    table = Table("links of connections with 1,000 each: a subscriber and a publisher to each address")
    with stand.line() as bench:
        crowd = Crowd(bench)
        empty = bench.memory()
        crowd.grow(2)
        for size in sizes:
            new = size - crowd.count
            table.add(size, "CPU to attach, each", bench.cost(lambda size=size: crowd.grow(size), times=new))  # type: ignore[misc]
            table.add(size, "memory, each", (bench.memory() - empty) / size, "B")
            _events(bench, table, size, crowd)
    return table


class Crowd:
    """Links, two to each address."""

    def __init__(self, bench: Bench) -> None:
        self.subscribers: list[Link] = []
        self.publishers: list[Link] = []
        self._bench = bench
        self._clients: list[Client] = []

    @property
    def count(self) -> int:
        """Links that there are."""
        return len(self.subscribers) + len(self.publishers)

    def grow(self, count: int) -> None:
        """Attach until there are so many."""
        while self.count < count:
            wave: list[Link] = []
            for _ in range(min(WAVE, (count - self.count + 1) // 2)):
                client, address = self.client(), new_address()
                self.subscribers.append(client.subscriber(address, credit=100, tops_up=True))
                self.publishers.append(client.publisher(address))
                wave += self.subscribers[-1], self.publishers[-1]
            self._bench.loop.attach_all(wave)

    def client(self) -> Client:
        """A connection with room for two links more."""
        if not self._clients or len(self._clients[-1].links) + 2 > CLIENT_LINKS:
            self._clients.append(self._bench.loop.connect(self._bench.url()))
        return self._clients[-1]


def _events(bench: Bench, table: Table, size: int, crowd: Crowd) -> None:
    """What one more event costs now."""
    bench.loop.run_until(lambda: crowd.publishers[0].credit > 0)
    table.add(size, "a message", bench.cost(lambda: bench.send_each(crowd.publishers[0], crowd.subscribers[:1], BODY)))
    table.add(size, "a flow", bench.cost(lambda: bench.grant_each(crowd.subscribers[:200])))
    client = bench.loop.connect(bench.url())
    bench.loop.run_until(lambda: client.is_open)
    for what, make in (("subscriber", client.subscriber), ("publisher", client.publisher)):
        links: list[Link] = []

        def attach(links: list[Link] = links, make=make) -> None:  # type: ignore[no-untyped-def]
            links += bench.attach_each(lambda: make(new_address()))

        table.add(size, f"one more {what}", bench.cost(attach))
        table.add(size, "one less", bench.cost(lambda links=links: bench.detach_each(links)))  # type: ignore[misc]
    client.cut()
    table.add(size, "a connection with 1,000 links is cut, each link", _cut(bench), "s")


def _cut(bench: Bench) -> float:
    crowd = Crowd(bench)
    crowd.grow(CLIENT_LINKS)
    return bench.cost(crowd.subscribers[0].client.cut, times=CLIENT_LINKS)
