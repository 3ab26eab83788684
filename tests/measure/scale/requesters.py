"""Requesters with a reply address each, that call a server at R1 all the time, through one router and through two."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tests.measure.credit.rpc import request
from tests.measure.scale.client import Client, Link, Loop
from tests.measure.scale.stand import Bench, Stand, Table, new_address

SIZES = (1875, 3750, 7500, 15_000)
CLIENT_REQUESTERS = 500
"""Requesters of one connection."""
SERVERS = 4
SERVER_CREDIT = 200
CALLS_S = 5.0
CALLING = 200
"""Requesters that have a call under way at a time; all take their turns."""
PAYLOAD = b"x" * 200
WAVE = 250


def measure(stand: Stand, sizes: Sequence[int]) -> Table:
    """Calls in a second, and CPU of the routers for each."""
    table = Table("requesters with a reply address each; 200 calls under way")
    for routers in (1, 2):
        with stand.line(routers) as bench:
            _measure(bench, table, sizes, routers)
    return table


class Requesters:
    """Those that call by turns."""

    def __init__(self, bench: Bench, url: str, address: str) -> None:
        self.replies: list[Link] = []
        self.answered = 0
        self.has_stopped = False
        """They wait for their answers and call no more."""
        self._bench = bench
        self._url = url
        self._address = address
        self._clients: list[Client] = []
        self._requests: dict[Client, Link] = {}
        self._turn = 0

    def grow(self, count: int) -> None:
        """Attach until there are so many."""
        while len(self.replies) < count:
            wave: list[Link] = []
            for _ in range(min(WAVE, count - len(self.replies))):
                if len(self.replies) % CLIENT_REQUESTERS == 0:
                    client = self._bench.loop.connect(self._url)
                    self._clients.append(client)
                    self._requests[client] = client.publisher(self._address)
                link = self._clients[-1].subscriber(None, credit=10, tops_up=True)
                link.on_message = self._hear
                self.replies.append(link)
                wave.append(link)
            self._bench.loop.attach_all(wave)

    def begin(self) -> None:
        """Let the first of them call."""
        self.has_stopped = False
        for _ in range(CALLING):
            self.call()

    def call(self) -> None:
        """Let the next one call."""
        reply = self.replies[self._turn % len(self.replies)]
        self._turn += 1
        self._requests[reply.client].send(request(self._address, reply.address, PAYLOAD))

    def _hear(self, _: bytes) -> None:
        self.answered += 1
        if not self.has_stopped:
            self.call()


class Server:
    """Answers each call by a link to its caller's reply address.

    Args:
        most_links: the link used first is detached when there are more.
    """

    def __init__(self, loop: Loop, url: str, address: str, most_links: float = math.inf) -> None:
        self._most_links = most_links
        self._client = loop.connect(url)
        self._links: dict[bytes, Link] = {}
        self.requests = self._client.subscriber(address, credit=SERVER_CREDIT, tops_up=True)
        self.requests.on_message = self._answer

    def _answer(self, data: bytes) -> None:
        start = data.index(b"\xa1\x04call")
        to = data.index(b"\xa1", start + 6)
        reply = to + 2 + data[to + 1] + 1
        reply_to = data[reply + 2 : reply + 2 + data[reply + 1]]
        link = self._links.get(reply_to)
        if link is None:
            link = self._links[reply_to] = self._client.publisher(reply_to.decode())
            if len(self._links) > self._most_links:
                self._links.pop(next(iter(self._links))).close()
        link.send(data, presettled=True)


def _measure(bench: Bench, table: Table, sizes: Sequence[int], routers: int) -> None:
    address = new_address()
    servers = [Server(bench.loop, bench.url("R1"), address) for _ in range(SERVERS)]
    bench.loop.attach_all([server.requests for server in servers])
    requesters = Requesters(bench, bench.url(f"R{routers}"), address)
    before = {router: bench.memory(router) for router in bench.mesh.running}
    name = "one router" if routers == 1 else "two routers"
    for size in sizes:
        _at(bench, table, size, requesters, name)
        for router, memory in before.items():
            table.add(size, f"{name}: memory of {router}, each", (bench.memory(router) - memory) / size, "B")


def _at(bench: Bench, table: Table, size: int, requesters: Requesters, name: str) -> None:
    new = size - len(requesters.replies)
    table.add(size, f"{name}: CPU to attach one", bench.cost(lambda: requesters.grow(size), times=new))
    loop = bench.loop
    requesters.begin()
    # Each calls at least once, so that the links and circuits of replies are there.
    first = requesters.answered + 2 * size
    before, cpu = requesters.answered, bench.cpu()
    took = loop.run_until(lambda: requesters.answered >= first)
    done = requesters.answered - before
    table.add(size, f"{name}: calls, the first two of each", done / took, "/s")
    table.add(size, f"{name}: CPU for one of these", (bench.cpu() - cpu) / done)
    before, cpu = requesters.answered, bench.cpu()
    loop.run_for(CALLS_S)
    done = requesters.answered - before
    table.add(size, f"{name}: calls", done / CALLS_S, "/s")
    table.add(size, f"{name}: CPU for a call", (bench.cpu() - cpu) / done)
    requesters.has_stopped = True
