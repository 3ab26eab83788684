"""Thousands of connections and links in one process, on the very functions of proton that the router is made of.

    loop = Loop()
    client = loop.connect("amqp://127.0.0.1:5672")
    subscriber = client.subscriber("news", credit=10)
    publisher = client.publisher("news")
    loop.run_until(lambda: publisher.credit > 0)
    publisher.send(message(b"hello"))

One thread, one epoll. Bytes are read into proton's memory and written from it. Every message is accepted at once.
"""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Callable

import cproton_ffi

from router.binding import proton_functions as pn
from router.binding.proton_functions import Handle

WAIT_S = 60.0
TICK_S = 1.0
"""How often proton may send the empty frames that keep a connection alive."""
SESSION_LINKS = 50
"""Links of one session: proton looks for a free handle among all of them."""


def message(payload: bytes, *, header: bytes = b"") -> bytes:
    """A message with one data section, whose payload is its last bytes; *header* stands before it, encoded."""
    return header + b"\x00\x53\x75\xb0" + struct.pack(">I", len(payload)) + payload


class Link:
    """A link of either direction."""

    __slots__ = ("client", "handle", "is_attached", "is_closed", "on_message", "received", "sent", "top_up_to")

    def __init__(self, client: Client, handle: Handle) -> None:
        self.client = client
        self.handle = handle
        self.is_attached = False
        self.is_closed = False
        """By the router: it was refused, or the detach is answered."""
        self.sent = self.received = 0
        self.top_up_to = 0
        """Of a subscriber: credit to which it tops up once half is used; 0: never."""
        self.on_message: Callable[[bytes], None] | None = None

    @property
    def credit(self) -> int:
        """Messages that may still be sent on it."""
        return int(pn.pn_link_credit(self.handle))

    @property
    def address(self) -> str:
        """That the router gave, for one that asked for a dynamic one."""
        return pn.text(pn.pn_terminus_get_address(pn.pn_link_remote_source(self.handle))) or ""

    def grant(self, count: int) -> None:
        """So many messages more."""
        pn.pn_link_flow(self.handle, count)
        self.client.touch()

    def send(self, data: bytes, *, presettled: bool = False) -> None:
        """One whole message; proton keeps it until there is credit."""
        self.sent += 1
        delivery = pn.new_delivery(self.handle, self.sent)
        pn.pn_link_send(self.handle, data, len(data))
        pn.pn_link_advance(self.handle)
        if presettled:
            pn.pn_delivery_settle(delivery)
        self.client.touch()

    def close(self) -> None:
        """Detach."""
        pn.pn_link_close(self.handle)
        self.client.touch()

    def heard(self, delivery: Handle) -> None:
        """Something arrived: a message, or the outcome of one."""
        if pn.pn_link_is_sender(self.handle):
            if pn.pn_delivery_updated(delivery):
                pn.pn_delivery_settle(delivery)
            return
        if pn.pn_delivery_partial(delivery) or pn.pn_link_current(self.handle) != delivery:
            return
        self.received += 1
        data = pn.receive(self.handle, int(pn.pn_delivery_pending(delivery)))
        pn.pn_delivery_update(delivery, pn.ACCEPTED)
        pn.pn_delivery_settle(delivery)
        if 2 * self.credit < self.top_up_to:
            self.grant(self.top_up_to - self.credit)
        if self.on_message is not None:
            self.on_message(data)


class Client:
    """One connection to a router."""

    def __init__(self, loop: Loop, sock: socket.socket, container: str, tls: object | None = None) -> None:
        self.sock = sock
        self.fileno = sock.fileno()
        self.links: dict[Handle, Link] = {}
        """Those that are not detached."""
        self.is_open = False
        self.is_closed = False
        self._loop = loop
        self._count = 0
        self._session: Handle = pn.NULL
        self._transport = pn.pn_transport()
        self._connection = pn.pn_connection()
        self._collector = pn.pn_collector()
        pn.pn_connection_collect(self._connection, self._collector)
        pn.pn_connection_set_container(self._connection, container.encode())
        if tls is not None:
            ffi, lib = cproton_ffi.ffi, cproton_ffi.lib
            transport = ffi.cast("pn_transport_t *", self._transport)
            assert lib.pn_ssl_init(lib.pn_ssl(transport), tls, ffi.NULL) == 0
        pn.pn_transport_bind(self._transport, self._connection)
        pn.pn_connection_open(self._connection)
        self.touch()

    def subscriber(self, address: str | None, *, credit: int = 0, tops_up: bool = False) -> Link:
        """Attach a subscriber and grant *credit*; None asks the router for an address."""
        handle = pn.pn_receiver(self._room(), b"in%d" % self._count)
        source = pn.pn_link_source(handle)
        if address is None:
            pointer = cproton_ffi.ffi.cast("pn_terminus_t *", source)
            cproton_ffi.lib.pn_terminus_set_dynamic(pointer, True)
        else:
            pn.pn_terminus_set_address(source, address.encode())
        link = self._attach(handle)
        link.top_up_to = credit if tops_up else 0
        if credit:
            link.grant(credit)
        return link

    def publisher(self, address: str) -> Link:
        """Attach a publisher."""
        handle = pn.pn_sender(self._room(), b"out%d" % self._count)
        pn.pn_terminus_set_address(pn.pn_link_target(handle), address.encode())
        return self._attach(handle)

    def _room(self) -> Handle:
        if self._count % SESSION_LINKS == 0:
            self._session = pn.pn_session(self._connection)
            pn.pn_session_open(self._session)
        self._count += 1
        return self._session

    def _attach(self, handle: Handle) -> Link:
        link = self.links[handle] = Link(self, handle)
        pn.pn_link_open(handle)
        self.touch()
        return link

    def close(self) -> None:
        """Close the connection, behind all that was sent."""
        pn.pn_connection_close(self._connection)
        self.touch()

    def cut(self) -> None:
        """End it without a word."""
        self._gone()

    def touch(self) -> None:
        """There may be something to write."""
        self._loop.touched[self] = None

    # Bytes

    def read(self) -> None:
        """Take what the socket has, and act on it."""
        size = int(pn.pn_transport_capacity(self._transport))
        if size <= 0:
            self._gone()
            return
        try:
            count = self.sock.recv_into(pn.memory_at(pn.pn_transport_tail(self._transport), size))
        except BlockingIOError:
            return
        except OSError:
            count = 0
        if not count:
            self._gone()
            return
        pn.pn_transport_process(self._transport, count)
        self._handle()

    def write(self) -> bool:
        """Give the socket what there is. Returns: whether all of it went."""
        while (size := int(pn.pn_transport_pending(self._transport))) > 0:
            try:
                count = self.sock.send(pn.memory_at(pn.pn_transport_head(self._transport), size))
            except BlockingIOError:
                return False
            except OSError:
                self._gone()
                return True
            pn.pn_transport_pop(self._transport, count)
        return True

    def tick(self, now_ms: int) -> None:
        """Let proton look at the time."""
        pn.pn_transport_tick(self._transport, now_ms)
        self.touch()

    def _gone(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._loop.forget(self)

    def free(self) -> None:
        """Give everything back to proton."""
        self.links.clear()
        pn.pn_transport_unbind(self._transport)
        pn.pn_transport_free(self._transport)
        pn.pn_collector_free(self._collector)
        pn.pn_connection_free(self._connection)

    def _handle(self) -> None:
        while event := pn.pn_collector_next(self._collector):
            kind = pn.pn_event_type(event)
            if kind == pn.DELIVERY:
                delivery = pn.pn_event_delivery(event)
                link = self.links.get(pn.pn_delivery_link(delivery))
                if link is not None:
                    link.heard(delivery)
            elif kind == pn.LINK_REMOTE_OPEN:
                self.links[pn.pn_event_link(event)].is_attached = True
            elif kind in (pn.LINK_REMOTE_CLOSE, pn.LINK_REMOTE_DETACH):
                handle = pn.pn_event_link(event)
                self.links.pop(handle).is_closed = True
                pn.pn_link_close(handle)
                pn.pn_link_free(handle)
            elif kind == pn.CONNECTION_REMOTE_OPEN:
                self.is_open = True
            elif kind == pn.CONNECTION_REMOTE_CLOSE:
                self.close()
        self.touch()


class Loop:
    """Moves the bytes of all connections of this process."""

    def __init__(self) -> None:
        self.touched: dict[Client, None] = {}
        """Connections on which something was done since they were last written."""
        self.clients: dict[int, Client] = {}
        """By file number, those that are not over."""
        self._poll = select.epoll()
        self._ticked = time.monotonic()
        self._count = 0

    def connect(self, url: str, tls: object | None = None) -> Client:
        """Begin a connection to `amqp://host:port`; *tls*: proton's domain."""
        host, _, port = url.removeprefix("amqp://").partition(":")
        sock = socket.create_connection((host, int(port)), WAIT_S)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._count += 1
        client = self.clients[sock.fileno()] = Client(self, sock, f"scale-{self._count}", tls)
        self._poll.register(sock, select.EPOLLIN)
        return client

    def step(self, timeout_s: float = 0.02) -> None:
        """Write what there is, wait at most *timeout_s* for something to read, and act on it."""
        self.flush()
        for fileno, mask in self._poll.poll(timeout_s):
            client = self.clients.get(fileno)
            if client is None:
                continue
            if mask & select.EPOLLOUT:
                self._poll.modify(fileno, select.EPOLLIN)
                client.touch()
            if mask & ~select.EPOLLOUT:
                client.read()
        now = time.monotonic()
        if now - self._ticked > TICK_S:
            self._ticked = now
            for client in self.clients.values():
                client.tick(int(now * 1000))

    def flush(self) -> None:
        """Write what there is, as far as the kernel takes it."""
        touched, self.touched = self.touched, {}
        for client in touched:
            if not client.is_closed and not client.write() and not client.is_closed:
                self._poll.modify(client.fileno, select.EPOLLIN | select.EPOLLOUT)

    def run_until(self, is_so: Callable[[], object], timeout_s: float = WAIT_S) -> float:
        """Step until *is_so*. Returns: the seconds that it took.

        Raises: TimeoutError.
        """
        began = time.monotonic()
        while not is_so():
            if time.monotonic() - began > timeout_s:
                raise TimeoutError(f"not within {timeout_s:g} s")
            self.step()
        self.flush()
        return time.monotonic() - began

    def run_for(self, seconds: float) -> None:
        """Step for so long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.step(min(left, 0.02))

    def attach_all(self, links: list[Link]) -> None:
        """Step until all of them are attached."""
        left = list(reversed(links))

        def are_attached() -> bool:
            while left and left[-1].is_attached:
                left.pop()
            return not left

        self.run_until(are_attached)

    def forget(self, client: Client) -> None:
        """A connection is over: close its socket and free its memory."""
        del self.clients[client.fileno]
        self._poll.unregister(client.fileno)
        client.sock.close()
        self.touched.pop(client, None)
        client.free()

    def close(self) -> None:
        """Cut every connection."""
        for client in list(self.clients.values()):
            client.cut()
        self._poll.close()
