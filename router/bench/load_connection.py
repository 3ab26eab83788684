"""The load's connections: an engine and a socket each, and one epoll loop that moves the bytes of all of them.

One thread, no trio, no queue: bytes are read straight into the engine's buffer and written straight from it, and what
they cause is handled at once by the connection's endpoint. Frames are as large as those of amqp-mesh's listeners.

Compiled by Cython where that is possible (see `router/speed.py`): `load_connection.pxd` has the types, and in C what
`router/bench/c_helpers_in_python.py` has for interpreted code.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable
from typing import Final

import cython

from mesh_config.usable_hosts import failure_words
from router.bench.errors import BenchError, PeerRefusedError
from router.binding import proton_functions as pn
from router.binding.proton_data import read_condition

if not cython.compiled:
    from router.bench.c_helpers_in_python import WOULD_BLOCK, look_for_signals, now_ns, read_socket, write_socket
    from router.binding.proton_functions import (
        DELIVERY,
        LINK_FLOW,
        NULL,
        TRANSPORT,
        Handle,
        pn_collector_next,
        pn_event_delivery,
        pn_event_link,
        pn_event_session,
        pn_event_type,
        pn_transport_capacity,
        pn_transport_head,
        pn_transport_pending,
        pn_transport_pop,
        pn_transport_process,
        pn_transport_tail,
    )

EPOLLIN: Final = select.EPOLLIN
EPOLLOUT: Final = select.EPOLLOUT
MAX_FRAME_BYTES: Final = 16384
"""Maximum size of frames that routers send, bytes."""
READ_BYTES: Final = 1 << 20
"""Bytes read at once where no router is between; nor are frames limited: the yardstick is the engine at its best."""
READS_IN_A_ROW: Final = 8
"""Number of reads of one connection before the others have their turn."""
WRITE_BYTES: Final = 65_536
"""Bytes written on one connection before the others have their turn: still in the processor's cache when read."""
EXACT_S: Final = 0.01
"""Waits shorter than this end in time, to some tens of microseconds; epoll by itself counts in milliseconds."""
CONNECT_S: Final = 5.0
CLOSE_S: Final = 5.0
"""Time that peers have to answer our Close, seconds."""
TICK_NS: Final = 1_000_000_000
"""Time between two chances of the engine to keep a silent connection alive, ns."""


class Endpoint:
    """User of a connection. The loop tells it what happens on its links."""

    def __init__(self) -> None:
        self.is_attached = False
        """Whether the peer has attached all of its links."""

    def begin(self, connection: Connection) -> None:
        """Attach on a new connection, if that is this side's part."""

    def attached(self, connection: Connection, link: Handle) -> None:
        """Handle a link that the peer attached, or its answer to one."""

    def flowed(self, link: Handle) -> None:
        """Send what the credit allows: the peer may have granted some."""

    def drained(self) -> None:
        """Send more: everything that was sent is written."""

    def delivered(self, link: Handle, delivery: Handle) -> None:
        """Handle bytes of a message that arrived, or the outcome of one."""

    def resume(self) -> None:
        """Send: the tally was switched on."""


class Connection:
    """One connection of the load. Handles of its links are valid until `free`."""

    def __init__(self, loop: Loop, sock: socket.socket, endpoint: Endpoint, container: str, is_server: bool) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._loop = loop
        self._sock = sock
        self.fd = sock.fileno()
        self.endpoint = endpoint
        self.is_blocked = False
        """Whether the socket takes no more now."""
        self.is_full = False
        """Whether more was handed to the engine than could be written yet."""
        self.is_closed = False
        """Whether the peer has closed its side, or is gone."""
        self._container = container
        self._links = 0
        self._collector = pn.pn_collector()
        self._connection = pn.pn_connection()
        pn.pn_connection_collect(self._connection, self._collector)
        self._transport = pn.pn_transport()
        if is_server:
            pn.pn_transport_set_server(self._transport)
            pn.pn_transport_require_auth(self._transport, False)
            pn.pn_transport_set_max_frame(self._transport, 0)
            pn.pni_transport_grow_capacity(self._transport, READ_BYTES)
        else:
            pn.pn_transport_set_max_frame(self._transport, MAX_FRAME_BYTES)
        if loop.has_sasl:
            pn.pn_sasl_allowed_mechs(pn.pn_sasl(self._transport), b"ANONYMOUS")
        pn.pn_transport_bind(self._transport, self._connection)
        if not is_server:
            self._open()

    def _open(self) -> None:
        pn.pn_connection_set_container(self._connection, self._container.encode())
        pn.pn_connection_open(self._connection)

    # Links

    def new_session(self) -> Handle:
        """Begin a session."""
        session: Handle = pn.pn_session(self._connection)
        pn.pn_session_open(session)
        return session

    def new_sender(self, session: Handle, address: str | None, is_presettled: bool) -> Handle:
        """Attach a sending link; without an address each message names its own."""
        link: Handle = pn.pn_sender(session, self._name())
        if address is not None:
            pn.pn_terminus_set_address(pn.pn_link_target(link), address.encode())
        pn.pn_link_set_snd_settle_mode(link, pn.SND_SETTLED if is_presettled else pn.SND_MIXED)
        pn.pn_link_open(link)
        return link

    def new_receiver(self, session: Handle, address: str | None, credit: int) -> Handle:
        """Attach a receiving link and grant *credit*, messages; without an address the peer is asked for one."""
        link: Handle = pn.pn_receiver(session, self._name())
        if address is None:
            pn.pn_terminus_set_dynamic(pn.pn_link_source(link), True)
        else:
            pn.pn_terminus_set_address(pn.pn_link_source(link), address.encode())
        pn.pn_link_open(link)
        if credit:
            pn.pn_link_flow(link, credit)
        return link

    def _name(self) -> bytes:
        self._links += 1
        return f"{self._container}-{self._links}".encode()

    # Bytes

    def readable(self) -> None:
        """Take what the socket has, as far as a fair turn goes, and act on it."""
        for _ in range(READS_IN_A_ROW):
            size = pn_transport_capacity(self._transport)
            if size < 0:  # what came was no AMQP, or was the last frame
                self._lost()
                return
            if size == 0:
                break
            count = read_socket(self.fd, pn_transport_tail(self._transport), size)
            if count == WOULD_BLOCK:
                break
            if count <= 0:
                self._lost()
                return
            pn_transport_process(self._transport, count)
            self._dispatch()
            if count < size or self.is_closed:
                break
        self.turn()

    def turn(self) -> None:
        """Handle what has happened and write what that causes."""
        self._dispatch()
        self.flush()

    def flush(self) -> None:
        """Write as far as there is room and a fair turn goes; a sender that has nothing unwritten may send more."""
        written = 0
        while not self.is_blocked and not self.is_closed:
            size = pn_transport_pending(self._transport)
            if size <= 0:
                self.is_full = False
                self._dispatch()
                self.endpoint.drained()
                size = pn_transport_pending(self._transport)
                if size <= 0:
                    return
            if written >= WRITE_BYTES:
                self.is_full = True
                self._loop.defer(self)
                return
            count = write_socket(self.fd, pn_transport_head(self._transport), size)
            if count == WOULD_BLOCK:
                self.is_full = True
                self._loop.block(self)
            elif count < 0:
                self._lost()
            else:
                pn_transport_pop(self._transport, count)
                written += count

    def _dispatch(self) -> None:
        while True:
            event = pn_collector_next(self._collector)
            if event == NULL:
                return
            kind = pn_event_type(event)
            if kind == DELIVERY:
                self.endpoint.delivered(pn_event_link(event), pn_event_delivery(event))
            elif kind == LINK_FLOW:
                self.endpoint.flowed(pn_event_link(event))
            elif kind != TRANSPORT:
                self._handle_rare(kind, event)

    def _handle_rare(self, kind: int, event: Handle) -> None:
        if kind == pn.CONNECTION_REMOTE_OPEN:
            if pn.pn_connection_state(self._connection) & pn.LOCAL_UNINIT:
                self._open()
        elif kind == pn.SESSION_REMOTE_OPEN:
            session = pn_event_session(event)
            if pn.pn_session_state(session) & pn.LOCAL_UNINIT:
                pn.pn_session_open(session)
        elif kind == pn.LINK_REMOTE_OPEN:
            self.endpoint.attached(self, pn_event_link(event))
        elif kind in (pn.LINK_REMOTE_CLOSE, pn.LINK_REMOTE_DETACH):
            self._refused("a link", pn.pn_link_remote_condition(pn_event_link(event)))
        elif kind == pn.CONNECTION_REMOTE_CLOSE:
            self._refused("the connection", pn.pn_connection_remote_condition(self._connection))
            self.is_closed = True
        elif kind == pn.TRANSPORT_ERROR:
            self._refused("the connection", pn.pn_transport_condition(self._transport))

    def _refused(self, what: str, condition: Handle) -> None:
        if not self._loop.is_closing:
            reason = read_condition(condition) or "it gives no reason"
            raise PeerRefusedError(f"the peer of {self._container} ended {what}: {reason}")

    def _lost(self) -> None:
        """End the connection: its socket is at its end."""
        pn.pn_transport_close_tail(self._transport)
        self._dispatch()  # the engine may know better why
        self.is_closed = True
        self._loop.forget(self)
        self._refused("the connection", pn.pn_transport_condition(self._transport))

    # The end

    def tick(self, now_ms: int) -> None:
        """Let the engine look at the time.

        Args:
            now_ms: milliseconds, monotonic.
        """
        pn.pn_transport_tick(self._transport, now_ms)
        self.turn()

    def close(self) -> None:
        """Send Close, behind everything that was sent."""
        pn.pn_connection_close(self._connection)
        self.turn()

    def free(self) -> None:
        """Close the socket and give everything back to the engine."""
        self._sock.close()
        pn.pn_transport_unbind(self._transport)
        pn.pn_transport_free(self._transport)
        pn.pn_collector_free(self._collector)
        pn.pn_connection_free(self._connection)


class Loop:
    """Moves the bytes of all connections of one run."""

    def __init__(self, has_sasl: bool = False) -> None:
        """Begin without connections.

        Args:
            has_sasl: begin each by SASL, for which Cyrus looks up the name of this machine, where no name server
                answers for seconds. Routers of amqp-mesh do without.
        """
        self.is_closing = False
        self.has_sasl = has_sasl
        self._poll = select.epoll()
        self._all: list[Connection] = []
        self._connections: dict[int, Connection] = {}
        self._deferred: list[Connection] = []
        self._listener: socket.socket | None = None
        self._make: Callable[[], Endpoint] | None = None
        self._ticked = now_ns()

    def connect(self, host: str, port: int, endpoint: Endpoint, container: str) -> Connection:
        """Begin a connection.

        Raises: BenchError when nobody listens there.
        """
        try:
            sock = socket.create_connection((host, port), CONNECT_S)
        except OSError as error:
            raise BenchError(f"no connection to {host}:{port}: {failure_words(error, host)}") from error
        return self._add(sock, endpoint, container, False)

    def listen(self, make: Callable[[], Endpoint]) -> int:
        """Accept connections on a free port of loopback, each with an endpoint of its own. Returns the port."""
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self._listener.setblocking(False)
        self._make = make
        self._poll.register(self._listener, select.EPOLLIN)
        port: int = self._listener.getsockname()[1]
        return port

    def _add(self, sock: socket.socket, endpoint: Endpoint, container: str, is_server: bool) -> Connection:
        connection = Connection(self, sock, endpoint, container, is_server)
        self._connections[connection.fd] = connection
        self._all.append(connection)
        self._poll.register(connection.fd, select.EPOLLIN)
        endpoint.begin(connection)
        connection.turn()
        return connection

    def _accept(self) -> None:
        assert self._listener is not None
        assert self._make is not None
        sock, _ = self._listener.accept()
        self._add(sock, self._make(), "bench-listener", True)

    # Called by connections

    def block(self, connection: Connection) -> None:
        """Tell a connection when there is room: its socket is full."""
        connection.is_blocked = True
        self._poll.modify(connection.fd, select.EPOLLIN | select.EPOLLOUT)

    def defer(self, connection: Connection) -> None:
        """Give a connection that has more to write another turn when others had theirs."""
        self._deferred.append(connection)

    def forget(self, connection: Connection) -> None:
        """Forget a connection whose socket is at its end."""
        if self._connections.pop(connection.fd, None) is not None:
            self._poll.unregister(connection.fd)

    # Running

    def step(self, timeout_s: float) -> None:
        """Wait for something to happen, and act on all of it.

        Args:
            timeout_s: seconds to wait at most.
        Raises: BenchError
        """
        look_for_signals()
        deferred, self._deferred = self._deferred, []
        for connection in deferred:
            connection.flush()
        if 0 < timeout_s < EXACT_S and not self._deferred:
            select.select([self._poll], [], [], timeout_s)
            timeout_s = 0
        for fd, mask in self._poll.poll(0 if self._deferred else timeout_s):
            if fd not in self._connections:
                if self._listener is not None and fd == self._listener.fileno():
                    self._accept()
                continue
            connection = self._connections[fd]
            if mask & EPOLLOUT:
                connection.is_blocked = False
                self._poll.modify(fd, EPOLLIN)
                connection.flush()
            if mask & ~EPOLLOUT:
                connection.readable()
        now = now_ns()
        if now - self._ticked > TICK_NS:
            self._ticked = now
            for connection in list(self._connections.values()):
                connection.tick(now // 1_000_000)

    def run_for(self, seconds: float) -> None:
        """Step for *seconds*.

        Args:
            seconds: of real time.
        Raises: BenchError
        """
        end = now_ns() + int(seconds * 1e9)
        while (left := end - now_ns()) > 0:
            self.step(left / 1e9)

    def run_until(self, is_so: Callable[[], bool], seconds: float) -> bool:
        """Step until *is_so*.

        Args:
            is_so: asked before each step.
            seconds: of real time, at most.
        Returns: whether it is.
        Raises: BenchError
        """
        end = now_ns() + int(seconds * 1e9)
        while not is_so():
            left = end - now_ns()
            if left <= 0:
                return False
            self.step(min(left / 1e9, 0.01))
        return True

    def close(self) -> None:
        """Close every connection, in order where its peer answers in time, and free them all."""
        self.is_closing = True
        for connection in list(self._connections.values()):
            connection.close()
        self.run_until(lambda: all(connection.is_closed for connection in self._connections.values()), CLOSE_S)
        for connection in self._all:
            connection.free()
        if self._listener is not None:
            self._listener.close()
        self._poll.close()
