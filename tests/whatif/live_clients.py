"""Clients of a live mesh: subscribers that never run short of credit, and publishers whose messages are counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Final, Self

from tests.helpers.peer import Received, message
from tests.helpers.processes import wait_until
from tests.helpers.sockets import Sockets
from tests.whatif.live import GRANTED, ROUTERS, SITES, WAIT_S, LiveMesh, Published

Place = tuple[str, str]
"""A router, and an address to which something is published there."""

MADE_UP: Final = 100
"""Messages after which every missed turn must have been made up."""


class Clients:
    """At each router one, with the subscribers of SITES there and a publisher to each address.

    A message says where it was published.
    """

    def __init__(self, mesh: LiveMesh) -> None:
        """Attach all, and wait until each router knows of all subscribers and each publisher may send."""
        self._mesh = mesh
        self._sockets = Sockets()
        self._taken: Counter[tuple[str, str, str]] = Counter()
        try:
            self._attach()
        except BaseException:
            self._sockets.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._sockets.close()

    def _attach(self) -> None:
        clients = {router: self._sockets.client(self._mesh.url(router)) for router in ROUTERS}
        for address, sites in SITES.items():
            for site, count in sites.items():
                for _ in range(count):
                    clients[site].receiver(address, credit=GRANTED).policy = self._taking(address, site)
        self._sockets.wait(lambda: all(map(self._knows_all, ROUTERS)))
        self._publishers = {place: clients[place[0]].sender(place[1]) for place in places()}
        self._sockets.wait(lambda: all(sender.credit for sender in self._publishers.values()))

    def _knows_all(self, router: str) -> bool:
        rows = self._mesh.ask(router, "router.address", ("key", "remoteHostRouters"))
        known = {row["key"].removeprefix("M0"): set(row["remoteHostRouters"]) for row in rows}
        return all(known.get(address, set()) == set(sites) - {router} for address, sites in SITES.items())

    def _taking(self, address: str, site: str) -> Callable[[Received], None]:
        def take(received: Received) -> None:
            self._taken[received.body, address, site] += 1
            received.settle()
            received.delivery.link.flow(1)

        return take

    def publish(self, wanted: Published, nearest: Mapping[Place, list[str]]) -> Published:
        """Send so many messages, each after the one before it was accepted, and wait until all have arrived.

        Where several routers take turns, more are sent until each has had its part: one without credit at the moment
        makes up for its turn later.

        Args:
            nearest: by publisher to a closest address, the routers that take its messages by turns.
        Returns: what was sent.
        """
        before = self._taken.copy()
        sent: Counter[Place] = Counter()
        left = {place for place, count in wanted.items() if count}
        while left:
            self._send_one(left)
            sent.update(left)
            self._wait_all(sent, before)
            left = {place for place, count in wanted.items() if sent[place] < count}
            for (router, address), sites in nearest.items():
                count = sent[router, address]
                taken = [self._taken[router, address, site] - before[router, address, site] for site in sites]
                if taken != parts(count, len(sites)):
                    assert count < wanted[router, address] + MADE_UP, (router, address, sites, taken)
                    left.add((router, address))
        return sent

    def _send_one(self, publishers: set[Place]) -> None:
        ready = [self._publishers[place] for place in sorted(publishers)]
        self._sockets.wait(lambda: all(sender.credit for sender in ready))
        sent = [sender.send(message(router)) for sender, (router, _) in zip(ready, sorted(publishers), strict=True)]
        self._sockets.wait(lambda: all(one.outcomes for one in sent))
        assert {one.outcome for one in sent} == {"accepted"}

    def _wait_all(self, sent: Counter[Place], before: Counter[tuple[str, str, str]]) -> None:
        goal = sum(count * copies(address) for (_, address), count in sent.items()) + before.total()
        self._sockets.wait(lambda: self._taken.total() == goal)

    def wait_until(self, is_so: Callable[[], bool], what: Callable[[], str]) -> None:
        """Wait for something of the mesh while clients answer it."""

        def steps() -> bool:
            self._sockets.step()
            return is_so()

        wait_until(steps, what, WAIT_S)


def places() -> Iterator[Place]:
    """Every router with every address, but for the one of its own subscribers alone."""
    return ((router, address) for router in ROUTERS for address in SITES if address != f"to/{router}")


def is_closest(place: Place) -> bool:
    """Whether routers take turns."""
    return place[1].startswith("near/")


def copies(address: str) -> int:
    """Of each message of an address."""
    return sum(SITES[address].values()) if address.startswith("all/") else 1


def parts(count: int, sites: int) -> list[int]:
    """How many of *count* messages each has taken, by turns from the first."""
    return [count // sites + (turn < count % sites) for turn in range(sites)]
