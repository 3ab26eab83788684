"""Clients that connect, make one call to a server at R1 and leave, through one router and through two."""

from __future__ import annotations

import time
from collections.abc import Sequence

from tests.measure.credit.rpc import request
from tests.measure.scale.client import Client, Link
from tests.measure.scale.requesters import PAYLOAD, Server
from tests.measure.scale.stand import Bench, Stand, Table, new_address

SIZES = (1000, 2000, 4000, 8000)
"""Visitors so far."""
AT_ONCE = 20
"""Visitors that are there at a time."""


def measure(stand: Stand, sizes: Sequence[int]) -> Table:
    """Visits in a second, CPU for each, and the memory after so many."""
    table = Table("clients that connect, make one call and leave, 20 at a time; sizes are clients so far")
    for routers in (1, 2):
        with stand.line(routers) as bench:
            _measure(bench, table, sizes, routers)
    return table


class Visits:
    """Visitors that follow one another."""

    def __init__(self, bench: Bench, url: str, address: str) -> None:
        self.done = 0
        self._bench = bench
        self._url = url
        self._address = address
        self._coming: list[Visitor] = []

    def run(self, count: int) -> None:
        """Let them come until so many have been there in all."""
        while self.done < count:
            while len(self._coming) < min(AT_ONCE, count - self.done):
                self._coming.append(Visitor(self._bench.loop.connect(self._url), self._address))
            self._bench.loop.step()
            for visitor in [visitor for visitor in self._coming if visitor.has_gone()]:
                self._coming.remove(visitor)
                self.done += 1


class Visitor:
    """One client, from its first byte to its last."""

    def __init__(self, client: Client, address: str) -> None:
        self._client = client
        self._address = address
        self._replies: Link = client.subscriber(None, credit=1)
        self._requests: Link = client.publisher(address)
        self._has_called = self._has_closed = False

    def has_gone(self) -> bool:
        """Do what is to be done now. Returns: whether that is all."""
        if self._client.is_closed:
            assert self._has_closed, "the router ended a visitor's connection"
            return True
        if not self._has_called and self._replies.is_attached and self._requests.credit > 0:
            self._has_called = True
            self._requests.send(request(self._address, self._replies.address, PAYLOAD))
        elif self._replies.received and not self._has_closed:
            self._has_closed = True
            self._client.close()
        return False


def _measure(bench: Bench, table: Table, sizes: Sequence[int], routers: int) -> None:
    address = new_address()
    server = Server(bench.loop, bench.url("R1"), address, most_links=2 * AT_ONCE)
    bench.loop.attach_all([server.requests])
    visits = Visits(bench, bench.url(f"R{routers}"), address)
    name = "one router" if routers == 1 else "two routers"
    visits.run(200)
    for size in sizes:
        count = size - visits.done
        began, cpu = time.monotonic(), bench.cpu()
        visits.run(size)
        took = time.monotonic() - began
        bench.calm()
        table.add(size, f"{name}: calls", count / took, "/s")
        table.add(size, f"{name}: CPU for one", (bench.cpu() - cpu) / count)
        for router in bench.mesh.running:
            table.add(size, f"{name}: memory of {router}", bench.memory(router), "B")
