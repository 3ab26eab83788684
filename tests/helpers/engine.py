"""Routers without sockets: `Runtime`s whose connections are joined by bytes, under virtual time.

    bench = Bench()
    a, b = bench.router("A"), bench.router("B")
    bench.join(a, b)
    client = bench.client(a)
    receiver = client.receiver("somewhere", credit=10)
    bench.run()                        # until no byte is under way
    bench.advance(1.0)                 # seconds, with every deadline on the way

A client is python-proton's own engine (`tests.helpers.peer`), which is not the code under test: the router calls
proton's C library by handles of its own. Each wire hands over what was written as a whole, or in pieces of `piece`
bytes, each handled before the next arrives. With `shares_turns` a router reads what all its connections have before it
settles, as its poller does in one round.
"""

from __future__ import annotations

import ctypes
import gc
import math
import random
from collections.abc import Callable
from typing import Any, Protocol, TypeGuard

from mesh_config.models import ConnectionSettings, ForwardingSettings, ListenerSettings, Role, RouterSettings
from router import __version__
from router.core.events import Action
from router.core.forwarding.egress_load import EgressLoad
from router.core.forwarding.fib import AddressEntry
from router.dataplane.anycast_controller import AnycastController
from router.dataplane.connection_port import Port
from router.dataplane.links import EgressLink, IngressLink, Transfer, local_subscribers
from router.dataplane.transfer_stages import SENT, WAITING
from router.engine.connection import Connection
from router.runtime import Runtime
from tests.helpers.peer import Peer

START = 1000.0
"""Seconds of virtual time at which a bench begins."""
MAX_STEPS = 200_000
"""Deadlines or bytes' movements after which something must be going round in circles."""


class End(Protocol):
    """One end of a wire."""

    has_ended: bool
    """Nothing more will be written."""

    def take(self) -> bytes:
        """What is to be written."""

    def give(self, data: bytes) -> None:
        """Bytes of the other end."""

    def give_end(self) -> None:
        """The other end writes nothing more."""

    def tick(self, now: float) -> float:
        """Tell the time; returns when to do so again, seconds."""

    def close(self) -> None:
        """Both directions have ended, or the wire is cut."""


class Plug:
    """A router's end of a wire, in the place of `router.net.pump`."""

    def __init__(self, runtime: Runtime, settings: ConnectionSettings, *, is_server: bool) -> None:
        self.runtime = runtime
        self.connection = runtime.new_connection(settings, is_server=is_server)
        self.port = self.connection.port
        runtime.add_connection(self.connection, self.flush)
        self.written = bytearray()
        self.room: float = math.inf
        """Bytes that fit between the router and its peer: a kernel's buffers."""
        self.is_blocked = False
        self.is_stopped = False
        self._unread = b""
        """What the router doesn't read for now."""
        self.port.charge.stop_reading = self._stop
        self.has_ended = False
        self.is_removed = False
        self.handle: Callable[[Connection], None] = runtime.turn
        """What follows bytes."""

    def _stop(self, is_stopped: bool) -> None:
        self.is_stopped = is_stopped

    def flush(self) -> None:
        connection = self.connection
        while not self.is_blocked and not self.has_ended:
            size = connection.pending()
            if size < 0:
                self.has_ended = True
                connection.sent_end()
            elif size == 0:
                return
            else:
                count = int(min(size, self.room - len(self.written)))
                if count <= 0:
                    self.is_blocked = True
                    return
                self.written += connection.head(size)[:count]
                connection.sent(count)

    def take(self) -> bytes:
        if (self._unread or self.connection.has_rest()) and not self.is_stopped:
            self.give(b"")
        if self.room != math.inf and self.room <= 0:
            return b""
        data = bytes(self.written)
        self.written.clear()
        if self.is_blocked:
            self.is_blocked = False
            self.flush()
            self.runtime.begin(self.runtime.clock())
            self.runtime.written(self.connection)
            self.runtime.settle()
            data += self.written
            self.written.clear()
        return data

    def give(self, data: bytes) -> None:
        connection = self.connection
        data, self._unread = self._unread + data, b""
        while data or connection.has_rest():
            if self.is_stopped:
                self._unread = data
                return
            if connection.has_rest():
                connection.go_on()
                self.handle(connection)
                continue
            size = connection.capacity()
            if size < 0:
                return
            assert size > 0
            piece, data = data[:size], data[size:]
            connection.tail(len(piece))[:] = piece
            connection.received(len(piece))
            self.handle(connection)

    def give_end(self) -> None:
        self.connection.received_end()
        self.runtime.turn(self.connection)

    def tick(self, now: float) -> float:
        deadline = self.connection.tick(now)
        self.runtime.turn(self.connection)
        return math.inf if deadline is None else deadline

    def close(self) -> None:
        if self.is_removed:
            return
        self.is_removed = True
        if not self.connection.is_closed:
            self.connection.received_end()
            self.connection.sent_end()
            self.has_ended = True
            self.runtime.turn(self.connection)
        self.runtime.remove_connection(self.connection)


class RawEnd:
    """The end of a peer that writes the bytes it is told to, whatever they are.

    Args:
        stays: it does not end its side when the router has ended the other.
    """

    def __init__(self, *, stays: bool = False) -> None:
        self._stays = stays
        self.to_write = bytearray()
        self.read = bytearray()
        """All that the router wrote."""
        self.was_closed = False
        """The router has ended its side."""
        self.has_ended = False

    def write(self, data: bytes) -> None:
        """Bytes for the next move."""
        self.to_write += data

    def take(self) -> bytes:
        data = bytes(self.to_write)
        self.to_write.clear()
        return data

    def give(self, data: bytes) -> None:
        self.read += data

    def give_end(self) -> None:
        self.was_closed = True
        self.has_ended = not self._stays

    def tick(self, now: float) -> float:
        return math.inf

    def close(self) -> None:
        self.has_ended = True


class Wire:
    """A connection between two ends."""

    def __init__(self, one: End, other: End, piece: int) -> None:
        self.ends = (one, other)
        self.piece = piece
        self.is_cut = False
        self.is_still = False
        """Nothing moves, though it is not cut."""
        self.log: tuple[bytearray, bytearray] = (bytearray(), bytearray())
        """Everything that each end has written."""
        self._told = [False, False]

    def move(self) -> bool:
        """Carry what is there; returns whether anything was."""
        if self.is_cut or self.is_still:
            return False
        moved = False
        for index in (0, 1):
            source, target = self.ends[index], self.ends[1 - index]
            data = source.take()
            if data:
                moved = True
                self.log[index].extend(data)
                step = self.piece or len(data)
                for at in range(0, len(data), step):
                    target.give(data[at : at + step])
            elif source.has_ended and not self._told[index]:
                moved = self._told[index] = True
                target.give_end()
        if self.ends[0].has_ended and self.ends[1].has_ended and not moved:
            self.cut()
        return moved

    def cut(self) -> None:
        """The end, with or without one that was agreed."""
        if not self.is_cut:
            self.is_cut = True
            for end in self.ends:
                end.close()


class Bench:
    """Routers, clients and the wires between them."""

    def __init__(self, *, piece: int = 0, seed: int = 1, shares_turns: bool = False) -> None:
        """
        Args:
            piece: bytes that arrive at a time; 0 for all that was written.
            shares_turns: bytes of several connections of a router share one turn.
        """
        self._shares_turns = shares_turns
        self.now = START
        self.piece = piece
        self.routers: dict[str, Runtime] = {}
        self.wires: list[Wire] = []
        self.peers: list[Peer] = []
        self.raw_ends: list[Wire] = []
        self._rng = random.Random(seed)
        self._boots = 0

    def router(
        self,
        router_id: str,
        *,
        forwarding: dict[str, Any] | None = None,
        is_forgiving: bool = False,
        **settings: Any,
    ) -> Runtime:
        """A router; *forwarding* and *settings* are what differs from the defaults.

        Args:
            is_forgiving: a fault of the program is dealt with as in production; else it comes out of the bench.
        """
        self._boots += 1
        kind = Runtime if is_forgiving else StrictRuntime
        runtime = kind(
            RouterSettings(id=router_id, forwarding=ForwardingSettings(**(forwarding or {})), **settings),
            clock=lambda: self.now,
            instance=10_000 + self._boots,
            rng=self._rng,
        )
        self.routers[router_id] = runtime
        return runtime

    def plug(self, runtime: Runtime, *, role: Role = Role.NORMAL, is_server: bool = True, **settings: Any) -> Plug:
        """A connection of a router that has no other end yet."""
        plug = Plug(runtime, ListenerSettings(role=role, **settings), is_server=is_server)
        if self._shares_turns:
            plug.handle = runtime.arrived
        if not is_server:
            plug.connection.open(runtime.settings.id, properties={}, version=__version__)
        return plug

    def wire(self, one: End, other: End) -> Wire:
        """Join two ends; bytes move with `run`."""
        wire = Wire(one, other, self.piece)
        self.wires.append(wire)
        return wire

    def join(self, one: Runtime, other: Runtime, *, cost: int = 1, **settings: Any) -> Wire:
        """*one* connects to *other*, and both find each other."""
        dialled = self.plug(one, role=Role.INTER_ROUTER, is_server=False, cost=cost, **settings)
        listening = self.plug(other, role=Role.INTER_ROUTER, cost=cost, **settings)
        wire = self.wire(dialled, listening)
        self.run()
        self.advance(0.1)
        return wire

    def mesh(self, *edges: tuple[str, str], forwarding: dict[str, Any] | None = None) -> list[Runtime]:
        """Routers joined by *edges*, in the order of their ids, converged."""
        for edge in edges:
            for name in edge:
                if name not in self.routers:
                    self.router(name, forwarding=forwarding)
        for one, other in edges:
            self.join(self.routers[one], self.routers[other])
        self.advance(5)
        routers = [self.routers[name] for name in sorted(self.routers)]
        for runtime in routers:
            assert len(runtime.fib.routes) == len(routers) - 1, runtime.me
        return routers

    def client(self, runtime: Runtime, *, listener: dict[str, Any] | None = None, **options: Any) -> Peer:
        """A client of a router, its Open exchanged; *options* as of `Peer`."""
        peer = Peer(self.run, **options)
        peer.wire = self.wire(peer, self.plug(runtime, **(listener or {})))
        self.peers.append(peer)
        peer.connection.open()
        self.run()
        return peer

    def raw(self, runtime: Runtime, *, stays: bool = False, **listener: Any) -> RawEnd:
        """The other end of a connection of *runtime*, from its first byte; *stays* as of `RawEnd`."""
        end = RawEnd(stays=stays)
        self.raw_ends.append(self.wire(end, self.plug(runtime, **listener)))
        return end

    # Time

    def run(self) -> None:
        """Let bytes move until there are none."""
        for _ in range(MAX_STEPS):
            if not self.step():
                self.wires = [wire for wire in self.wires if not wire.is_cut]
                return
        raise AssertionError("bytes move without end")

    def step(self, wires: list[Wire] | None = None) -> bool:
        """Carry what is there on *wires*, once on each; None: on all.

        There is a turn for each, or one for each router and the wires in any order.

        Returns: whether there was anything.
        """
        if not self._shares_turns:
            return any([wire.move() for wire in wires or self.wires])
        for runtime in self.routers.values():
            runtime.begin(self.now)
        moved = [wire.move() for wire in wires or self._rng.sample(self.wires, len(self.wires))]
        for runtime in self.routers.values():
            runtime.settle()
        return any(moved)

    def advance(self, seconds: float) -> None:
        """Let time pass, with every deadline on the way."""
        end = self.now + seconds
        for _ in range(MAX_STEPS):
            self.run()
            due = min([end, *(runtime.next_deadline() for runtime in self.routers.values()), *self._ticks()])
            self.run()
            if due >= end:
                break
            self.now = max(self.now, due)
            for runtime in self.routers.values():
                if runtime.next_deadline() <= self.now:
                    runtime.handle_deadline()
        else:
            raise AssertionError("deadlines without end")
        self.now = end
        for runtime in self.routers.values():
            if runtime.next_deadline() <= self.now:
                runtime.handle_deadline()
        self._ticks()
        self.run()

    def _ticks(self) -> list[float]:
        return [end.tick(self.now) for wire in self.wires if not wire.is_cut for end in wire.ends]

    # The end

    def check(self) -> None:
        """Tables agree with each other, and every account with what it counts."""
        for runtime in self.routers.values():
            runtime.fib.check_invariants()
            runtime.control.check_invariants()
            check_accounts(runtime)

    def close(self) -> None:
        """Cut every client off; nothing of it may be left in any router."""
        self.check()
        for peer in self.peers:
            peer.wire.cut()
        for wire in self.raw_ends:
            wire.cut()
        self.run()
        self.advance(0.5)
        self.check()
        for runtime in self.routers.values():
            check_nothing_left(runtime)
        # An open connection is held by proton, with all that knows it.
        for wire in self.wires:
            wire.cut()
        self.run()


def is_leaving(link: IngressLink | EgressLink) -> TypeGuard[EgressLink]:
    """Whether a large message is being sent on it."""
    return isinstance(link, EgressLink) and link.current is not None


def check_accounts(runtime: Runtime) -> None:
    """What is counted per link, address and connection is what the transfers say."""
    data_plane = runtime.data_plane
    transfers = {transfer for link in data_plane.links for transfer in data_plane.transfers_on(link)}
    for transfer in transfers:
        assert transfer.ingress_delivery or transfer.egress_delivery
    for entry in runtime.fib.entries():
        waiting = [transfer for transfer in entry.waiting if transfer.state == WAITING]
        assert entry.waiting_bytes == sum(transfer.size for transfer in waiting), entry.text
    counted: dict[EgressLoad, int] = {}
    for connection in runtime.connections.values():
        assert connection.port.held_bytes >= 0
        leaving = [link.current.leaving_bytes for link in connection.links.values() if is_leaving(link)]
        assert connection.port.leaving_bytes == sum(leaving), connection.id
        for link in connection.links.values():
            if isinstance(link, EgressLink):
                if link.load is not None:
                    counted[link.load] = counted.get(link.load, 0) + link.outstanding
                assert link.outstanding == sum(one.egress is link and one.state == SENT for one in transfers), link.name
                assert link.waiting_bytes == sum(one.size for one in link.waiting), link.name
            else:
                assert link.in_flight >= sum(1 for one in transfers if one.ingress is link), link.name
    for entry in runtime.fib.entries():
        for router, load in entry.remotes.items():
            datagrams = sum(one.load is load for one in transfers)
            assert load.datagrams == datagrams, (entry.text, router)
            assert load.unsettled == counted.get(load, 0) + datagrams, (entry.text, router)
        if isinstance(entry.controller, AnycastController):
            assert entry.controller.local_load.unsettled == counted.get(entry.controller.local_load, 0), entry.text
            withdrawn = sum(link.is_withdrawn for link in local_subscribers(entry))
            assert entry.controller._withdrawn_count == withdrawn, entry.text


def check_nothing_left(runtime: Runtime) -> None:
    """No client is attached any more: no message, no address of this router, no byte on an account."""
    assert runtime.data_plane.settlement.count == 0
    for entry in runtime.fib.entries():
        assert not entry.subscribers, entry.text
        assert not entry.publishers, entry.text
        waiting = [transfer for transfer in entry.waiting if transfer.state == WAITING]
        assert all(transfer.is_settled for transfer in waiting), entry.text
    for connection in runtime.connections.values():
        assert connection.port.held_bytes == 0
        assert not connection.port.paused
        for link in connection.links.values():
            if isinstance(link, EgressLink):
                assert link.outstanding == 0, link.name
                assert link.current is None, link.name
            else:
                assert link.in_flight == 0, link.name


class StrictRuntime(Runtime):
    """Raises faults of the program, which a router would log to go on: no test may overlook one."""

    def turn_fault(self, error: Exception) -> None:
        raise error

    def _action_fault(self, action: Action, error: Exception, now: float) -> None:
        raise error

    def _tell_of(self, connection: Connection, error: Exception) -> None:
        raise error

    def _address_fault(self, entry: AddressEntry, error: Exception) -> None:
        raise error

    def _port_fault(self, port: Port, error: Exception) -> None:
        raise error

    def _message_fault(self, transfer: Transfer, error: Exception) -> None:
        raise error


def settle_modes(**modes: int) -> Callable[[Any], None]:
    """For `Peer.sender` and `Peer.receiver`: set `snd_settle_mode` or `rcv_settle_mode` before the attach."""

    def set_modes(link: Any) -> None:
        for name, mode in modes.items():
            setattr(link, name, mode)

    return set_modes


MALLINFO2 = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")


def allocated() -> int:
    """Bytes that the process has from malloc, or -1 where the C library doesn't tell."""

    class Mallinfo2(ctypes.Structure):
        _fields_ = [(name, ctypes.c_size_t) for name in MALLINFO2]

    try:
        function = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return -1
    function.restype = Mallinfo2
    gc.collect()
    found = function()
    return int(found.uordblks + found.hblkhd)


def least_growth(act: Callable[[], object], parts: int = 3) -> int:
    """What is allocated more after an act than before it, bytes: the least of some times.

    Other threads allocate too, but what an act loses is lost each time.
    """
    growths = []
    for _ in range(parts):
        before = allocated()
        act()
        growths.append(allocated() - before)
    return min(growths)
