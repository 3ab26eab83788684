"""A message of any size from one router to another over real sockets, in the memory of a few of its pieces.

python-proton's engine on both ends, moved by one loop. The receiver reads at a pace: a function that says how many
bytes it would read now, given the seconds since the first byte was sent.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from pathlib import Path

from proton import Collector, Connection, Delivery, Event, Link, Transport

from mesh_config.generators import generate
from tests.helpers.processes import MeshProcesses, peak_bytes, resident_bytes

PIECE = b"\0" * 65536
AHEAD_BYTES = 4 * len(PIECE)
"""What the publisher gives its engine before it is written."""
HEAD = b"\x00\x53\x75\xb0"
"""One data section; its size in four bytes and its content follow."""
WAIT_S = 100.0
EVERYTHING = 1 << 20

Pace = Callable[[float], int]


class End:
    """One connection with one session and one link."""

    def __init__(self, url: str, address: str, *, is_sender: bool) -> None:
        host, _, port = url.removeprefix("amqp://").partition(":")
        self.sock = socket.create_connection((host, int(port)))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.setblocking(False)
        self._collector = Collector()
        self._connection = Connection()
        self._connection.collect(self._collector)
        self._connection.container = "stream"
        self._transport = Transport(Transport.CLIENT)
        self._transport.bind(self._connection)
        self._connection.open()
        session = self._connection.session()
        session.open()
        self.link: Link = session.sender(address) if is_sender else session.receiver(address)
        (self.link.target if is_sender else self.link.source).address = address
        self.link.open()
        self.received = 0
        """Bytes of the message that arrived."""
        self.is_whole = False
        self.outcome: object = None

    def wants_to_write(self) -> bool:
        """Whether the engine has output."""
        return bool(self._transport.pending() > 0)

    def write(self) -> None:
        """Write what the kernel takes."""
        while (size := self._transport.pending()) > 0:
            try:
                count = self.sock.send(self._transport.peek(size))
            except BlockingIOError:
                return
            self._transport.pop(count)

    def read(self, most: int) -> None:
        """Read and handle at most so many bytes."""
        room = min(most, self._transport.capacity())
        if room <= 0:
            return
        try:
            data = self.sock.recv(room)
        except BlockingIOError:
            return
        assert data, "the router has closed the connection"
        self._transport.push(data)
        while (event := self._collector.peek()) is not None:
            if event.type == Event.DELIVERY:
                self._handle(event.delivery)
            self._collector.pop()

    def _handle(self, delivery: Delivery) -> None:
        if self.link.is_sender:
            if delivery.remote_state:
                self.outcome = delivery.remote_state
                delivery.settle()
            return
        assert not delivery.aborted
        self.received += len(self.link.recv(delivery.pending) or b"")
        if not delivery.partial:
            self.is_whole = True
            delivery.update(Delivery.ACCEPTED)
            delivery.settle()
            self.link.advance()


class Stream:
    """One publisher at one router, one subscriber at another."""

    def __init__(self, publisher_url: str, subscriber_url: str, address: str = "stream") -> None:
        self.publisher = End(publisher_url, address, is_sender=True)
        self.subscriber = End(subscriber_url, address, is_sender=False)
        self.subscriber.link.flow(1)

    def send(self, size: int, pace: Pace) -> float:
        """Send a message whose content has *size* bytes until its outcome is there. Returns: seconds."""
        publisher, subscriber = self.publisher, self.subscriber
        end = time.monotonic() + WAIT_S
        left, began = size, 0.0
        while publisher.outcome is None:
            now = time.monotonic()
            assert now < end, f"{subscriber.received} bytes of {size} arrived, {left} were not sent"
            if not began and publisher.link.credit:
                began = now
                publisher.link.delivery("one")
                publisher.link.stream(HEAD + size.to_bytes(4, "big"))
            while began and left and publisher.link.session.outgoing_bytes < AHEAD_BYTES:
                piece = PIECE[:left]
                publisher.link.stream(piece)
                left -= len(piece)
                if not left:
                    publisher.link.advance()
            room = pace(now - began) if began else EVERYTHING
            self._move(room)
        assert publisher.outcome == Delivery.ACCEPTED
        assert subscriber.is_whole
        assert subscriber.received == size + len(HEAD) + 4
        return time.monotonic() - began

    def _move(self, room: int) -> None:
        publisher, subscriber = self.publisher, self.subscriber
        ends = (publisher, subscriber)
        for each in ends:
            each.write()
        reading = [publisher.sock, subscriber.sock] if room else [publisher.sock]
        writing = [each.sock for each in ends if each.wants_to_write()]
        ready, _, _ = select.select(reading, writing, [], 0.01)
        if publisher.sock in ready:
            publisher.read(EVERYTHING)
        if subscriber.sock in ready:
            subscriber.read(room)

    def close(self) -> None:
        """Close both sockets."""
        self.publisher.sock.close()
        self.subscriber.sock.close()


def fast(_: float) -> int:
    """Everything at once."""
    return EVERYTHING


def stopping(seconds: float) -> int:
    """Nothing for the first two seconds, and for two of each four until ten are over."""
    return 0 if seconds < 10 and seconds % 4 < 2 else EVERYTHING


def slow(seconds: float) -> int:
    """16 KiB in each hundredth of a second, for five seconds."""
    return EVERYTHING if seconds > 5 else 16384 * (int(seconds * 1000) % 10 == 0)


PACES = {"fast": fast, "slow": slow, "stopping": stopping}


def cross_three(folder: Path, size: int, pace: Pace) -> tuple[float, dict[str, int]]:
    """Send one message through a line of three routers.

    Returns: the seconds that it took, and by how many bytes the memory of each router has exceeded what it had at rest.
    """
    with MeshProcesses(generate("line", 3), folder) as mesh:
        mesh.start()
        mesh.wait_converged()
        pids = {name: router.pid for name, router in mesh.routers.items()}
        idle = {name: resident_bytes(pid) for name, pid in pids.items()}
        stream = Stream(mesh.url("R1"), mesh.url("R3"))
        seconds = stream.send(size, pace)
        stream.close()
        return seconds, {name: peak_bytes(pid) - idle[name] for name, pid in pids.items()}
