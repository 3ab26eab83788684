"""Sockets that wait for connections, and whom they take in.

A connection costs one descriptor, and a router that has none left loses its neighbors. So each listener has a last
descriptor that it takes: the system gives the lowest one that is free, hence a number says how many are in use.
"""

from __future__ import annotations

import enum
import errno
import math
import select
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import attrs
import trio

from mesh_config.models import HttpSettings, ListenerSettings
from mesh_config.usable_hosts import encoded, failure_words
from router.core.errors import LocalError

BACKLOG: Final = 1024
PAUSE_WITHOUT_FILES_S: Final = 0.1
"""Pause when the process may open no more files: the connection waits in the kernel meanwhile."""
WITHOUT_FILES: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

ACCEPTING_S: Final = (50e-6, 5e-4)
"""Minimum and maximum time for accepting before open connections have their turn, seconds."""
ACCEPTING_PART: Final = 0.05
"""Part of the time since connections were last accepted for which they are accepted now, within `ACCEPTING_S`."""
MOST_WAITING: Final = 500
"""Maximum number of connections that wait here to be served, and half of `max_handshakes`: more wait in the kernel."""
PAUSE_WHEN_FULL_S: Final = 0.01
SHORT_S: Final = 0.05
"""Wait up to which a connection is served even when its peer has ended it, seconds."""
NO_BOUND: Final = 2**31
"""Number of descriptors that stands for no bound."""


class Refusal(enum.Enum):
    """Reason why a connection was not taken in."""

    FULL = enum.auto()
    """Refused since there are `max_connections`."""
    HOST_FULL = enum.auto()
    """Refused since there are `max_connections_of_host` of its host."""
    FILES_SHORT = enum.auto()
    """Refused since the descriptors that are left are for others, or there are none."""
    HANDSHAKES_FULL = enum.auto()
    """Evicted as the oldest of more than `max_handshakes` connections whose peers have not said who they are."""


class AcceptedConnection:
    """A connection that was taken in."""

    def __init__(
        self, host: str, opened: Callable[[AcceptedConnection], None], ended: Callable[[AcceptedConnection], None]
    ) -> None:
        self.host = host
        self._opened = opened
        self._ended = ended
        self.is_given_up = False
        self.is_ended = False
        """Whether the connection has ended, and is still to be cleared away."""
        self._give_up: Callable[[str], None] = lambda reason: None

    def served_by(self, give_up: Callable[[str], None]) -> None:
        """Set what closes it, told why, as long as its peer has not authenticated."""
        self._give_up = give_up

    def opened(self) -> None:
        """Note that its peer has authenticated."""
        self._opened(self)

    def ended(self) -> None:
        """Note that it has ended, and is to be cleared away now."""
        self.is_ended = True
        self._ended(self)

    def give_up(self, reason: str) -> None:
        """Close it: there are too many whose peers haven't."""
        self.is_given_up = True
        self._give_up(reason)


@attrs.frozen(eq=False)
class QueuedConnection:
    """A connection that was taken in and is to be served: its socket, and since when it waits, seconds."""

    sock: socket.socket
    guest: AcceptedConnection
    since: float


Serve = Callable[[socket.socket, ListenerSettings, AcceptedConnection], Awaitable[None]]
Refused = Callable[["Listener", Refusal, str], None]
"""Function that is told of the listener, the reason and the remote host."""


def bound_socket(place: str, port: int, backlog: int, *, shares_port: bool = False) -> socket.socket:
    """A socket that listens at an address.

    Args:
        place: the address.
        port: its port.
        backlog: connections that may wait to be accepted.
        shares_port: bind it also where another socket that shares its port (`share_port`) has this one.
    Raises: OSError.
    """
    sock = socket.socket(_family(place), socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        share_port(sock, shares_port)
        sock.bind((place, port))
        sock.listen(backlog)
        share_port(sock, False)
    except BaseException:
        sock.close()
        raise
    return sock


def share_port(sock: socket.socket, is_shared: bool) -> None:
    """Let another socket be bound at the port of one that is to be closed, or no more."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, is_shared)


class Listener:
    """One bound socket."""

    def __init__(
        self,
        settings: ListenerSettings,
        place: str | None = None,
        *,
        files: int = NO_BOUND,
        shares_port: bool = False,
    ) -> None:
        """Bind it.

        Args:
            settings: host, port and role.
            place: address of the host, as `address_of` finds it; None: it is looked up, which may take a while.
            files: descriptors of the process that its connections may take; a connection with a number not below is
                refused.
            shares_port: bind it also where a listener that shares its port has this one.
        Raises:
            LocalError: the address cannot be bound; says which and why.
        """
        self.settings = settings
        self.files = files
        self._sock = _accepting_socket(settings, place or address_of(settings), settings.port, shares_port=shares_port)
        self._place = self._sock.getsockname()
        self.count = 0
        """Number of connections that are open now."""
        self.accepted = 0
        """Number of connections taken in since the start."""
        self.refusals = dict.fromkeys(Refusal, 0)
        """Number of connections closed at once since the start, by reason."""
        self.short_of_files_at = -math.inf
        """Time at which a connection was last closed, or not accepted, for want of descriptors, seconds."""
        self._of_host: dict[str, int] = {}
        self._handshakes: dict[AcceptedConnection, None] = {}
        """Connections whose peers have not said who they are, oldest first."""
        self._ended_of_host: dict[str, int] = {}
        """Number of connections that have ended and are not cleared away, by host."""
        self._waiting: dict[str, deque[QueuedConnection]] = {}
        """Connections that are to be served, by host, oldest first; the host that is next comes first."""
        self._waiting_count = 0
        self._may_serve = trio.Event()
        self._told: set[Refusal] = set()

    def bind_again(self) -> None:
        """Bind it where it was before it was closed; what it has counted stays.

        Raises:
            LocalError: the address cannot be bound; says which and why.
        """
        assert self.is_closed, "it is bound"
        self._sock = _accepting_socket(self.settings, self.host, self.port)

    def take_settings(self, settings: ListenerSettings, files: int) -> None:
        """Go by other settings, and another bound on descriptors, for the connections to come; it stays bound."""
        self.settings, self.files = settings, files

    @property
    def refused(self) -> int:
        """Connections closed at once since the start."""
        return sum(count for reason, count in self.refusals.items() if reason is not Refusal.HANDSHAKES_FULL)

    @property
    def host(self) -> str:
        """Address that it is, or was, bound to."""
        return str(self._place[0])

    @property
    def port(self) -> int:
        """Port that it is, or was, bound to: the system's choice when the setting is 0."""
        return int(self._place[1])

    @property
    def name(self) -> str:
        """Name for logs and management."""
        return self.settings.name or f"{self.host}:{self.port}"

    async def accept(self, nursery: trio.Nursery, serve: Serve, refused: Refused) -> None:
        """Accept until cancelled; each connection is served by a task of its own in *nursery*.

        *refused* is called when the listener begins to refuse connections for a reason, not for each of them; for too
        many of one host, and too many that say nothing, it is called each time.

        Hosts have turns. While connections of one that have ended are still to be cleared away, its new ones wait:
        those that come and go faster than they can be served take nobody's time but that of their own host.
        """
        try:
            async with trio.open_nursery() as own:
                own.start_soon(self._serve_guests, nursery, serve)
                await self._accept(refused)
        finally:
            for one in [one for waiting in self._waiting.values() for one in waiting]:
                self._drop(one)
            self._waiting.clear()

    async def _accept(self, refused: Refused) -> None:
        least_s, most_s = ACCEPTING_S
        end = -math.inf
        while True:
            await trio.lowlevel.wait_readable(self._sock)
            if self._is_full():
                await trio.sleep(PAUSE_WHEN_FULL_S)
                continue
            now = trio.current_time()
            end = now + min(max(least_s, ACCEPTING_PART * (now - end)), most_s)
            while (now := trio.current_time()) < end and not self._is_full():
                try:
                    sock, peer = self._sock.accept()
                except BlockingIOError:
                    break
                except OSError as error:
                    if error.errno in WITHOUT_FILES:
                        self._tell(Refusal.FILES_SHORT, "", refused)
                        await trio.sleep(PAUSE_WITHOUT_FILES_S)
                        break
                    continue  # the peer was gone before it was accepted
                host = str(peer[0]) if peer else ""
                reason = self._refusal(sock.fileno(), host)
                if reason is None:
                    self._take_in(sock, host, now)
                    self._bound_handshakes(refused)
                else:
                    sock.close()
                    self.refusals[reason] += 1
                    self._tell(reason, host, refused)
            end = trio.current_time()

    def _is_full(self) -> bool:
        """Whether no more may wait here. Those that have ended meanwhile are closed, before it comes to that."""
        most = max(1, min(MOST_WAITING, self.settings.max_handshakes // 2))
        if self._waiting_count < most:
            return False
        for host, waiting in list(self._waiting.items()):
            self._waiting[host] = deque(one for one in waiting if not self._drop_if_ended(one))
        return self._waiting_count >= most

    def _drop_if_ended(self, one: QueuedConnection) -> bool:
        if has_ended(one.sock):
            self._drop(one)
            return True
        return False

    def _refusal(self, fd: int, host: str) -> Refusal | None:
        if self.count >= self.settings.max_connections:
            return Refusal.FULL
        if fd >= self.files:
            return Refusal.FILES_SHORT
        most = self.settings.max_connections_of_host
        return Refusal.HOST_FULL if most and self._of_host.get(host, 0) >= most else None

    def _tell(self, reason: Refusal, host: str, refused: Refused) -> None:
        if reason is Refusal.FILES_SHORT:
            self.short_of_files_at = trio.current_time()
        if reason not in self._told:
            refused(self, reason, host)
        if reason is not Refusal.HOST_FULL:
            self._told.add(reason)

    def _take_in(self, sock: socket.socket, host: str, now: float) -> None:
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError:  # the peer is gone
            sock.close()
            return
        self._told.clear()
        self.count += 1
        self.accepted += 1
        self._of_host[host] = self._of_host.get(host, 0) + 1
        guest = AcceptedConnection(host, self._opened, self._ended)
        guest.served_by(lambda reason: sock.close())
        self._handshakes[guest] = None
        self._waiting.setdefault(host, deque()).append(QueuedConnection(sock, guest, now))
        self._waiting_count += 1
        self._may_serve.set()

    def _drop(self, one: QueuedConnection) -> None:
        self._waiting_count -= 1
        one.sock.close()
        self._forget(one.guest)

    async def _serve_guests(self, nursery: trio.Nursery, serve: Serve) -> None:
        """Begin to serve one after the other. Other tasks have their turn between: in a busy process, a millisecond."""
        while True:
            await self._may_serve.wait()
            self._may_serve = trio.Event()
            host = next((host for host in self._waiting if host not in self._ended_of_host), None)
            if host is None:
                continue
            waiting = self._waiting.pop(host)
            one = self._next_of(waiting, trio.current_time())
            if one is not None:
                self._waiting_count -= 1
                nursery.start_soon(self._serve, one.sock, one.guest, serve)
            if waiting:
                self._waiting[host] = waiting  # behind the others
            self._may_serve.set()

    def _next_of(self, waiting: deque[QueuedConnection], now: float) -> QueuedConnection | None:
        """Take the next one of a host.

        Who has ended while it waited for long isn't served: nobody is there any more to read an answer.
        """
        while waiting:
            one = waiting.popleft()
            if not one.guest.is_given_up and (now - one.since <= SHORT_S or not has_ended(one.sock)):
                return one
            self._drop(one)
        return None

    def _bound_handshakes(self, refused: Refused) -> None:
        most = self.settings.max_handshakes
        if len(self._handshakes) > most:
            oldest = next(iter(self._handshakes))
            del self._handshakes[oldest]
            self.refusals[Refusal.HANDSHAKES_FULL] += 1
            refused(self, Refusal.HANDSHAKES_FULL, oldest.host)
            others = "1 other that waits" if most == 1 else f"{most} others that wait"
            oldest.give_up(f"no Open yet, and {others} for one (max_handshakes)")

    def _opened(self, guest: AcceptedConnection) -> None:
        self._handshakes.pop(guest, None)

    def _ended(self, guest: AcceptedConnection) -> None:
        self._ended_of_host[guest.host] = self._ended_of_host.get(guest.host, 0) + 1

    async def _serve(self, sock: socket.socket, guest: AcceptedConnection, serve: Serve) -> None:
        try:
            if guest.is_given_up:
                sock.close()
            else:
                await serve(sock, self.settings, guest)
        finally:
            self._forget(guest)
            self._may_serve.set()

    def _forget(self, guest: AcceptedConnection) -> None:
        self._opened(guest)
        self.count -= 1
        _less(self._of_host, guest.host)
        if guest.is_ended:
            _less(self._ended_of_host, guest.host)

    @property
    def is_closed(self) -> bool:
        """Whether it accepts no more."""
        return self._sock.fileno() < 0

    def share_port(self, is_shared: bool) -> None:
        """Let another one be bound at its port, as it is to be closed, or no more."""
        if not self.is_closed:
            share_port(self._sock, is_shared)

    def close(self) -> None:
        """Accept no more."""
        self._sock.close()


def _accepting_socket(settings: ListenerSettings, place: str, port: int, *, shares_port: bool = False) -> socket.socket:
    try:
        sock = bound_socket(place, port, BACKLOG, shares_port=shares_port)
    except OSError as error:
        raise _cannot_listen(settings, error) from error
    sock.setblocking(False)
    return sock


def peer_name(sock: socket.socket, known: str = "") -> str:
    """Host and port at the other end; *known*, the host as it was accepted, when the peer is gone already."""
    try:
        host, port, *_ = sock.getpeername()
    except OSError:
        return known
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def has_ended(sock: socket.socket) -> bool:
    """Whether the peer of a connection has ended it, or it is closed here."""
    if sock.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(sock, select.POLLRDHUP)
    return bool(poll.poll(0))


def _less(counts: dict[str, int], host: str) -> None:
    counts[host] -= 1
    if not counts[host]:
        del counts[host]


def address_of(settings: ListenerSettings | HttpSettings) -> str:
    """Look up the address that the host of a listener has. A name server may take its time: not for the event loop.

    Raises:
        LocalError: it has none.
    """
    host = encoded(settings.host)
    if ":" in host:
        return host  # an address of IPv6, perhaps with its interface, which a look-up would take off
    try:
        found = socket.getaddrinfo(host, None, socket.AF_UNSPEC, socket.SOCK_STREAM)
    except OSError as error:
        raise _cannot_listen(settings, error) from error
    *_, (address, *_) = min(found, key=lambda each: each[0] == socket.AF_INET6)  # the first of IPv4, if it has one
    return str(address)


def _cannot_listen(settings: ListenerSettings | HttpSettings, error: OSError) -> LocalError:
    said = failure_words(error, settings.host)
    return LocalError(f"cannot listen on {settings.host}:{settings.port}: {said}")


def _family(place: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in place else socket.AF_INET
