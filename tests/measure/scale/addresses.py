"""Addresses with subscribers at R1, which R2 knows."""

from __future__ import annotations

import time
from collections.abc import Sequence

from router.cli.management import PAGE, ManagementClient
from tests.measure.scale.client import Client, Link, message
from tests.measure.scale.stand import LONGEST_S, REPEATS, Bench, Stand, Table, new_address

SIZES = (12_500, 25_000, 50_000, 100_000)
CLIENT_LINKS = 2000
"""Links of one connection."""
PAGES = 20
WAVE = 500
"""Attaches before the answers are awaited."""
BODY = message(b"x" * 100)


def measure(stand: Stand, sizes: Sequence[int]) -> Table:
    """Memory and CPU of both routers, also when R2 starts anew and learns all addresses at once."""
    table = Table("addresses subscribed at R1, known at R2")
    with stand.line(2) as bench:
        places = Places(bench)
        empty = {router: bench.memory(router) for router in ("R1", "R2")}
        for size in sizes:
            before = {router: bench.cpu(router) for router in empty}
            new = size - len(places.subscribers)
            bench.cost(lambda size=size: places.grow(size))  # type: ignore[misc]
            for router, cpu in before.items():
                table.add(size, f"CPU of {router} to add one", (bench.cpu(router) - cpu) / new)
            for router, memory in empty.items():
                table.add(size, f"memory of {router}, each", (bench.memory(router) - memory) / size, "B")
            _events(bench, table, size, places)
            _listing(bench, table, size)
            _restart(bench, table, size)
    return table


class Places:
    """Subscribers at R1, each to an address of its own."""

    def __init__(self, bench: Bench) -> None:
        self.subscribers: list[Link] = []
        self.addresses: list[str] = []
        self._bench = bench
        self._clients: list[Client] = []

    def grow(self, count: int) -> None:
        """Attach until there are so many."""
        while len(self.subscribers) < count:
            wave = [self.add() for _ in range(min(WAVE, count - len(self.subscribers)))]
            self._bench.loop.attach_all(wave)

    def add(self) -> Link:
        """One more."""
        if not self._clients or len(self._clients[-1].links) >= CLIENT_LINKS:
            self._clients.append(self._bench.loop.connect(self._bench.url()))
        self.addresses.append(new_address())
        self.subscribers.append(self._clients[-1].subscriber(self.addresses[-1], credit=100, tops_up=True))
        return self.subscribers[-1]


def _events(bench: Bench, table: Table, size: int, places: Places) -> None:
    client, publishing = bench.loop.connect(bench.url("R1")), bench.loop.connect(bench.url("R2"))
    links: list[Link] = []
    table.add(
        size, "one more", bench.cost(lambda: links.extend(bench.attach_each(lambda: client.subscriber(new_address()))))
    )
    table.add(size, "one less", bench.cost(lambda: bench.detach_each(links)))
    publisher = publishing.publisher(places.addresses[0])
    bench.send_each(publisher, places.subscribers[:1], BODY, 1)
    table.add(size, "a message", bench.cost(lambda: bench.send_each(publisher, places.subscribers[:1], BODY)))
    chosen = zip(places.addresses[-REPEATS:], places.subscribers[-REPEATS:], strict=True)

    def publish() -> None:
        for address, subscriber in chosen:
            bench.send_each(publishing.publisher(address), [subscriber], BODY, 1)

    table.add(size, "a publisher to one more, with a message", bench.cost(publish))
    client.cut()
    publishing.cut()


def _listing(bench: Bench, table: Table, size: int) -> None:
    """What it costs to be shown."""
    with ManagementClient(bench.url("R2"), timeout_s=60) as client:

        def show() -> None:
            for offset in range(0, PAGES * PAGE, PAGE):
                client.request("QUERY", {"entityType": "router.address", "offset": offset, "count": PAGE})

        table.add(size, f"a page of {PAGE} addresses", bench.cost(show, "R2", times=PAGES))
        for kind in ("router", "router.node"):
            table.add(size, f"`{kind}` is asked for", bench.cost(lambda kind=kind: client.query(kind), "R2", times=1))  # type: ignore[misc]


def _restart(bench: Bench, table: Table, size: int) -> None:
    """R2 starts anew and learns them all."""
    before = bench.cpu("R1")
    bench.mesh.kill("R2")
    bench.mesh.start("R2")
    began, base = time.monotonic(), bench.cpu("R2")
    known = 0
    while known < size:
        bench.loop.run_for(0.2)
        assert time.monotonic() - began < LONGEST_S, f"R2 knows {known} of {size} addresses"
        with ManagementClient(bench.url("R2"), timeout_s=60) as client:
            known = int(client.read("router")["addrCount"])
    table.add(size, "R2 starts anew: time to know all", time.monotonic() - began)
    table.add(size, "CPU of R1 for it, each", (bench.cpu("R1") - before) / size)
    table.add(size, "CPU of R2 for it, each", (bench.cpu("R2") - base) / size)
