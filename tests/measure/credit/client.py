"""Publishers and subscribers on proton's bare C engine, fast enough to load a router from Python.

    loop = Loop()
    client = loop.connect("amqp://127.0.0.1:5672")
    subscriber = client.subscriber("news", credit=250, top_up_at=0)
    publisher = client.publisher("news", presettled=True)
    loop.run_until(lambda: publisher.credit > 0)
    publisher.send(message(b"hello"))

proton's Python classes cost about 100 us for each message; the functions below them, called as here, about 5 us. One
thread, one epoll; nothing is granted, sent or settled but what is asked for. Everything is counted where it happens, so
that credit and messages of all clients of one process can be compared at any instant.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from typing import Any, TypeVar

from cproton_ffi import ffi, lib

from tests.measure.credit.links import NEVER, Publisher, Subscriber

WAIT_S = 20.0
READ_BYTES = 1 << 18
TICK_S = 1.0
"""How often proton may send the empty frames that keep a connection alive."""
MAX_FRAME_BYTES = 16384

P = TypeVar("P", bound=Publisher)
S = TypeVar("S", bound=Subscriber)

_BUFFER = ffi.new("char[]", 1 << 20)


class Client:
    """One connection to a router."""

    def __init__(self, loop: Loop, sock: socket.socket, container: str, idle_timeout_s: float | None = None) -> None:
        self.sock = sock
        self.is_open = False
        self.is_closed = False
        """Whether the router has answered the close, or the socket is gone."""
        self.fault: str | None = None
        """What proton holds against the router's bytes, or the router against ours."""
        self.on_bytes: Callable[[bytes], None] | None = None
        """Called with all that is read."""
        self._loop = loop
        self._ends: dict[Any, Publisher | Subscriber] = {}
        self._container = container
        self._transport = lib.pn_transport()
        lib.pn_transport_set_max_frame(self._transport, MAX_FRAME_BYTES)
        if idle_timeout_s is not None:
            lib.pn_transport_set_idle_timeout(self._transport, int(idle_timeout_s * 1000))
        self._connection = lib.pn_connection()
        self._collector = lib.pn_collector()
        lib.pn_connection_collect(self._connection, self._collector)
        lib.pn_connection_set_container(self._connection, container.encode())
        lib.pn_transport_bind(self._transport, self._connection)
        lib.pn_connection_open(self._connection)
        self.touch()

    # Attaching

    def publisher(self, address: str | None, *, presettled: bool = False) -> Publisher:
        """Attach a publisher, in a session of its own as oslo's have it; without an address each message names it."""
        return self.attach_publisher(Publisher, address, presettled=presettled)

    def attach_publisher(self, kind: type[P], address: str | None, *, presettled: bool = False) -> P:
        """The same of a class of one's own."""
        link = lib.pn_sender(self._session(), f"{self._container}-{len(self._ends)}".encode())
        if address is not None:
            lib.pn_terminus_set_address(lib.pn_link_target(link), address.encode())
        found = kind(self, link, presettled=presettled)
        self._open(link, found)
        return found

    def subscriber(
        self, address: str | None, *, credit: int = 0, top_up_at: int = NEVER, settles: bool = True
    ) -> Subscriber:
        """Attach a subscriber and grant *credit*; None asks the router for an address.

        Args:
            top_up_at: credit at which it grants what is missing to *credit*; 0: when all is used.
            settles: whether it accepts each message at once.
        """
        return self.attach_subscriber(Subscriber, address, credit=credit, top_up_at=top_up_at, settles=settles)

    def attach_subscriber(
        self, kind: type[S], address: str | None, *, credit: int = 0, top_up_at: int = NEVER, settles: bool = True
    ) -> S:
        """The same of a class of one's own."""
        link = lib.pn_receiver(self._session(), f"{self._container}-{len(self._ends)}".encode())
        if address is None:
            lib.pn_terminus_set_dynamic(lib.pn_link_source(link), True)
        else:
            lib.pn_terminus_set_address(lib.pn_link_source(link), address.encode())
        found = kind(self, link, credit=credit, top_up_at=top_up_at, settles=settles)
        self._open(link, found)
        if credit:
            found.grant(credit)
        return found

    def close(self) -> None:
        """Close the connection, behind all that was sent."""
        lib.pn_connection_close(self._connection)
        self.touch()

    def drop(self) -> None:
        """Leave without a word: close the socket, and give proton everything back; no link may be used any more."""
        if self._transport is not None:
            self._gone(None)
            self._ends.clear()
            lib.pn_transport_unbind(self._transport)
            lib.pn_decref(self._transport)
            lib.pn_collector_free(self._collector)
            lib.pn_connection_release(self._connection)
            lib.pn_decref(self._connection)
            self._transport = self._collector = self._connection = None

    def touch(self) -> None:
        """There may be something to write."""
        self._loop.written_to.add(self)

    def _session(self) -> Any:
        session = lib.pn_session(self._connection)
        lib.pn_session_open(session)
        return session

    def _open(self, link: Any, end: Publisher | Subscriber) -> None:
        self._ends[link] = end
        lib.pn_link_open(link)
        self.touch()

    # Bytes

    def read(self) -> None:
        """Take what the socket has, and act on it."""
        try:
            data = self.sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            self._gone(str(error))
            return
        if not data:
            lib.pn_transport_close_tail(self._transport)
            self._handle()
            self._gone("the router ended the connection" if not self.is_closed else None)
            return
        if self.on_bytes is not None:
            self.on_bytes(data)
        while data:
            taken = lib.pn_transport_push(self._transport, data, len(data))
            self._handle()
            if taken <= 0:
                return
            data = data[taken:]

    def write(self) -> bool:
        """Give the socket what there is. Returns: whether all of it went."""
        while (pending := lib.pn_transport_pending(self._transport)) > 0:
            size = lib.pn_transport_peek(self._transport, _BUFFER, min(pending, len(_BUFFER)))
            try:
                count = self.sock.send(ffi.buffer(_BUFFER, size))
            except BlockingIOError:
                return False
            except OSError as error:
                self._gone(str(error))
                return True
            lib.pn_transport_pop(self._transport, count)
        return True

    def tick(self, now_ms: int) -> None:
        """Let proton look at the time."""
        lib.pn_transport_tick(self._transport, now_ms)
        self._handle()

    def _gone(self, why: str | None) -> None:
        self.is_closed = True
        self.fault = self.fault or why
        self._loop.forget(self)

    def _handle(self) -> None:
        collector = self._collector
        while (event := lib.pn_collector_peek(collector)) != ffi.NULL:
            kind = lib.pn_event_type(event)
            if kind == lib.PN_DELIVERY:
                self._ends[lib.pn_event_link(event)].hear_delivery(lib.pn_event_delivery(event))
            elif kind == lib.PN_LINK_FLOW:
                self._ends[lib.pn_event_link(event)].hear_flow()
            else:
                self._handle_rare(kind, event)
            lib.pn_collector_pop(collector)
        self.touch()

    def _handle_rare(self, kind: int, event: Any) -> None:
        if kind == lib.PN_CONNECTION_REMOTE_OPEN:
            self.is_open = True
        elif kind == lib.PN_LINK_REMOTE_OPEN:
            self._ends[lib.pn_event_link(event)].is_attached = True
        elif kind in (lib.PN_LINK_REMOTE_CLOSE, lib.PN_LINK_REMOTE_DETACH):
            link = lib.pn_event_link(event)
            self._ends[link].closed = _name(lib.pn_link_remote_condition(link))
        elif kind == lib.PN_CONNECTION_REMOTE_CLOSE:
            self.is_closed = True
            self.fault = _name(lib.pn_connection_remote_condition(self._connection)) or None
            lib.pn_connection_close(self._connection)
        elif kind == lib.PN_TRANSPORT_ERROR and not self.is_closed:
            self.fault = _name(lib.pn_transport_condition(self._transport))


def _name(condition: Any) -> str:
    chars = lib.pn_condition_get_name(condition)
    return str(ffi.string(chars).decode()) if chars != ffi.NULL else ""


class Loop:
    """Moves the bytes of all connections of this process."""

    def __init__(self) -> None:
        self.written_to: set[Client] = set()
        """Connections on which something was done since they were last written."""
        self.on_step: Callable[[], None] | None = None
        """Called at each instant at which nothing is half done: everything read has been acted on."""
        self._poll = select.epoll()
        self._clients: dict[int, Client] = {}
        self._full: set[Client] = set()
        """Their sockets took no more."""
        self._ticked = time.monotonic()
        self._count = 0

    def connect(self, url: str, container: str = "credit", *, idle_timeout_s: float | None = None) -> Client:
        """Begin a connection to `amqp://host:port`, which a router ends by *idle_timeout_s* of silence."""
        host, _, port = url.removeprefix("amqp://").partition(":")
        sock = socket.create_connection((host, int(port)), WAIT_S)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._count += 1
        client = Client(self, sock, f"{container}-{self._count}", idle_timeout_s)
        self._clients[sock.fileno()] = client
        self._poll.register(sock, select.EPOLLIN)
        return client

    def wake_on(self, fd: int) -> None:
        """Let `step` return early when there is something to read at *fd*."""
        self._poll.register(fd, select.EPOLLIN)

    def sleep_through(self, fd: int) -> None:
        """Undo `wake_on`."""
        self._poll.unregister(fd)

    def step(self, timeout_s: float = 0.02) -> None:
        """Write what there is, wait at most *timeout_s* for something to read, and act on it."""
        self._write()
        for fd, mask in self._poll.poll(timeout_s):
            client = self._clients.get(fd)
            if client is None:
                continue
            if mask & select.EPOLLOUT:
                self._full.discard(client)
                self._poll.modify(client.sock, select.EPOLLIN)
                self.written_to.add(client)
            if mask & ~select.EPOLLOUT:
                client.read()
        now = time.monotonic()
        if now - self._ticked > TICK_S:
            self._ticked = now
            for client in list(self._clients.values()):
                client.tick(int(now * 1000))
        if self.on_step is not None:
            self.on_step()

    def run_until(self, is_so: Callable[[], object], timeout_s: float = WAIT_S, what: str = "") -> float:
        """Step until *is_so*. Returns: the seconds that it took.

        Raises: TimeoutError; what it was about is in the message.
        """
        began = time.monotonic()
        while not is_so():
            if time.monotonic() - began > timeout_s:
                raise TimeoutError(f"not within {timeout_s:g} s: {what or 'what was waited for'}")
            self.step()
        self._write()
        return time.monotonic() - began

    def run_for(self, seconds: float) -> None:
        """Step for so long: a period of observation."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.step(min(left, 0.02))

    def close(self, timeout_s: float = 5.0) -> None:
        """Close every connection in order; what has not answered in time is cut."""
        for client in self._clients.values():
            client.close()
        end = time.monotonic() + timeout_s
        while any(not client.is_closed for client in self._clients.values()) and time.monotonic() < end:
            self.step()
        for client in list(self._clients.values()):
            self.forget(client)
        self._poll.close()

    def forget(self, client: Client) -> None:
        """Close the socket of a connection that is over."""
        if self._clients.pop(client.sock.fileno(), None) is not None:
            self._poll.unregister(client.sock)
            client.sock.close()
        self._full.discard(client)
        self.written_to.discard(client)

    def _write(self) -> None:
        while self.written_to:
            client = self.written_to.pop()
            if client in self._full or client.sock.fileno() < 0:
                continue
            if not client.write() and client.sock.fileno() >= 0:
                self._full.add(client)
                self._poll.modify(client.sock, select.EPOLLIN | select.EPOLLOUT)
