"""Many subscribers, or many publishers, of one address."""

from __future__ import annotations

from collections.abc import Sequence

from tests.measure.scale.client import Link, message
from tests.measure.scale.stand import Bench, Stand, Table, new_address

SIZES = (500, 1000, 2000, 4000)
CLIENT_LINKS = 50
"""Links of one connection."""
EVENTS = 50
BODY = message(b"x" * 100)


def measure(stand: Stand, sizes: Sequence[int]) -> Table:
    """CPU of the router, for subscribers and for publishers of an anycast and of a multicast."""
    table = Table("subscribers, or publishers, of one address, 50 on each connection")
    for role in (Subscribers, Publishers):
        for kind in ("anycast", "multicast"):
            with stand.line() as bench:
                crowd = role(bench, table, kind)
                for size in sizes:
                    crowd.measure(size)
    return table


class Crowd:
    """All links of one kind to one address, and one of the other."""

    role: str

    def __init__(self, bench: Bench, table: Table, kind: str) -> None:
        self._bench = bench
        self._table = table
        self._kind = kind
        self._address = new_address(kind)
        self._name = f"{kind}, {self.role}s"
        self._links: list[Link] = []
        self._grow(1)
        self._client = bench.loop.connect(bench.url())

    def attach(self, count: int) -> list[Link]:
        """So many more, on a connection of their own."""
        client = self._bench.loop.connect(self._bench.url())
        if self.role == "publisher":
            return [client.publisher(self._address) for _ in range(count)]
        return [client.subscriber(self._address, credit=100, tops_up=True) for _ in range(count)]

    def _grow(self, count: int) -> None:
        while len(self._links) < count:
            new = self.attach(min(CLIENT_LINKS, count - len(self._links)))
            self._bench.loop.attach_all(new)
            self._links += new

    def add(self, size: int, what: str, seconds: float) -> None:
        """A row of this crowd."""
        self._table.add(size, f"{self._name}: {what}", seconds)

    def measure(self, size: int) -> None:
        """All rows at one size."""
        bench = self._bench
        new = size - len(self._links)
        self.add(size, "CPU to attach, each", bench.cost(lambda: self._grow(size), times=new))
        self.events(size)
        more: list[Link] = []
        self.add(size, "one more", bench.cost(lambda: self._add_each(more), times=EVENTS))
        self.add(size, "one less", bench.cost(lambda: bench.detach_each(more), times=EVENTS))

    def _add_each(self, more: list[Link]) -> None:
        for _ in range(EVENTS):
            if not more or len(more) % CLIENT_LINKS == 0:
                more += self.attach(1)
            elif self.role == "publisher":
                more.append(more[-1].client.publisher(self._address))
            else:
                more.append(more[-1].client.subscriber(self._address, credit=100))
            self._bench.loop.attach_all(more[-1:])

    def events(self, size: int) -> None:
        """Messages and flows."""
        raise NotImplementedError


class Subscribers(Crowd):
    """Many subscribers, one publisher."""

    role = "subscriber"

    def __init__(self, bench: Bench, table: Table, kind: str) -> None:
        super().__init__(bench, table, kind)
        self._publisher = self._client.publisher(self._address)
        bench.loop.run_until(lambda: self._publisher.credit > 0)

    def events(self, size: int) -> None:
        """A message to all of them, or to one; a flow of one."""
        bench, links = self._bench, self._links
        if self._kind == "multicast":
            cost = bench.cost(lambda: bench.send_each(self._publisher, links, BODY, 60), times=60)
            self.add(size, "a message, each copy", cost / size)
        else:
            self.add(size, "a message", bench.cost(self._send_to_any))
        self.add(size, "a flow", bench.cost(lambda: bench.grant_each(links[::7], 2 * EVENTS), times=2 * EVENTS))

    def _send_to_any(self) -> None:
        loop, links = self._bench.loop, self._links
        for _ in range(200):
            loop.run_until(lambda: self._publisher.credit > 0)
            wanted = sum(link.received for link in links) + 1
            self._publisher.send(BODY)
            loop.run_until(lambda wanted=wanted: sum(link.received for link in links) >= wanted)  # type: ignore[misc]


class Publishers(Crowd):
    """Many publishers, one subscriber."""

    role = "publisher"

    def __init__(self, bench: Bench, table: Table, kind: str) -> None:
        super().__init__(bench, table, kind)
        self._subscriber = self._client.subscriber(self._address, credit=1000, tops_up=True)
        bench.loop.run_until(lambda: self._links[0].credit > 0)

    def events(self, size: int) -> None:
        """A message of one that was idle; a flow; credit for all of them after there was none for long."""
        bench = self._bench
        self.add(size, "a message", bench.cost(self._send, times=2 * EVENTS))
        cost = bench.cost(lambda: bench.grant_each([self._subscriber], 2 * EVENTS), times=2 * EVENTS)
        self.add(size, "a flow", cost)

    def _send(self) -> None:
        for link in self._links[-2 * EVENTS :]:
            self._bench.send_each(link, [self._subscriber], BODY, 1)
