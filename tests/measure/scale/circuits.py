"""Circuits: addresses with a subscriber at R1 and a publisher at R2."""

from __future__ import annotations

from collections.abc import Sequence

from tests.measure.scale.client import Client, Link, message
from tests.measure.scale.stand import Bench, Stand, Table, new_address

SIZES = (2500, 5000, 10_000, 20_000)
CLIENT_LINKS = 2000
"""Links of one connection."""
WAVE = 250
BODY = message(b"x" * 100)


def measure(stand: Stand, sizes: Sequence[int]) -> Table:
    """Memory and CPU of both routers."""
    table = Table("circuits: addresses with a subscriber at R1 and a publisher at R2")
    with stand.line(2) as bench:
        pairs = Pairs(bench)
        empty = {router: bench.memory(router) for router in ("R1", "R2")}
        for size in sizes:
            _at(bench, table, size, pairs, empty)
    return table


class Pairs:
    """A subscriber at R1 and a publisher at R2 for each address."""

    def __init__(self, bench: Bench) -> None:
        self.subscribers: list[Link] = []
        self.publishers: list[Link] = []
        self._bench = bench
        self._here: list[Client] = []
        self._there: list[Client] = []

    def grow(self, count: int) -> None:
        """Attach until there are so many; each publisher has sent a message."""
        while len(self.subscribers) < count:
            wave = range(min(WAVE, count - len(self.subscribers)))
            addresses = [new_address() for _ in wave]
            subscribers = [self._client(self._here, "R1").subscriber(a, credit=100, tops_up=True) for a in addresses]
            self._bench.loop.attach_all(subscribers)
            publishers = [self._client(self._there, "R2").publisher(address) for address in addresses]
            self._bench.loop.attach_all(publishers)
            for publisher in publishers:
                publisher.send(BODY)
            self._await(subscribers)
            self.subscribers += subscribers
            self.publishers += publishers

    def _await(self, subscribers: Sequence[Link]) -> None:
        self._bench.loop.run_until(lambda: all(subscriber.received for subscriber in subscribers))

    def _client(self, clients: list[Client], router: str) -> Client:
        if not clients or len(clients[-1].links) >= CLIENT_LINKS:
            clients.append(self._bench.loop.connect(self._bench.url(router)))
        return clients[-1]


def _at(bench: Bench, table: Table, size: int, pairs: Pairs, empty: dict[str, int]) -> None:
    before = {router: bench.cpu(router) for router in empty}
    new = size - len(pairs.subscribers)
    bench.cost(lambda: pairs.grow(size))
    for router, cpu in before.items():
        table.add(size, f"CPU of {router} to make one", (bench.cpu(router) - cpu) / new)
    for router, memory in empty.items():
        table.add(size, f"memory of {router}, each", (bench.memory(router) - memory) / size, "B")
    publisher, subscriber = pairs.publishers[0], pairs.subscribers[0]
    bench.loop.run_for(0.5)
    table.add(size, "a message", bench.cost(lambda: bench.send_each(publisher, [subscriber], BODY)))
    table.add(size, "a flow", bench.cost(lambda: bench.grant_each(pairs.subscribers[:200])))
    links = pairs.subscribers[-100:]
    del pairs.subscribers[-100:]
    table.add(size, "a subscriber leaves", bench.cost(lambda: bench.detach_each(links), times=100))
    links = pairs.publishers[-100:]
    del pairs.publishers[-100:]
    table.add(size, "and its publisher", bench.cost(lambda: bench.detach_each(links), times=100))
    table.add(size, "nothing, for a second", bench.cost(lambda: bench.loop.run_for(3.0), times=3))
