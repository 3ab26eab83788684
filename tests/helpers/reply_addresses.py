"""Opens dynamic reply addresses on one connection and closes them again, each in a session of its own, as oslo does."""

from __future__ import annotations

from collections.abc import Callable

from proton import Endpoint, Event, Receiver
from proton.handlers import MessagingHandler
from proton.reactor import Container


class _Opener(MessagingHandler):
    def __init__(self, url: str, count: int, opened: Callable[[], None]) -> None:
        super().__init__()
        self._opened = opened
        self.addresses: set[str] = set()
        self._url = url
        self._count = count
        self._links: list[Receiver] = []
        self._closed = 0

    def on_start(self, event: Event) -> None:
        connection = event.container.connect(self._url, reconnect=False)
        for number in range(self._count):
            session = connection.session()
            session.open()
            link = session.receiver(f"reply-{number}")
            link.source.dynamic = True
            link.open()
            self._links.append(link)

    def on_link_opened(self, event: Event) -> None:
        self.addresses.add(event.link.remote_source.address)
        if len(self.addresses) == self._count:
            self._opened()
            for link in self._links:
                link.close()
                link.session.close()

    def on_link_closed(self, event: Event) -> None:
        self._closed += 1
        assert event.link.state & Endpoint.REMOTE_CLOSED
        if self._closed == self._count:
            event.connection.close()


def open_and_close(url: str, count: int, opened: Callable[[], None]) -> set[str]:
    """Open *count* reply addresses, call *opened*, close them all. Returns: the addresses that were given."""
    opener = _Opener(url, count, opened)
    Container(opener).run()
    return opener.addresses


def resident_kb(pid: int) -> int:
    """Memory that a process has in RAM, kB."""
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))
