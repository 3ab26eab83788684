"""Fifty callers beside one client that means harm: what each kind of it does to them.

The callers and their server are in this process, the hostile client in one of its own, on raw sockets. It does what it
does over and over, and comes back when its connection is ended. As a control the same client attacks another router,
which takes as much of the processors: what calls take longer then isn't the router's doing. Routers and callers have
priority over the hostile client, or they would wait for the system's scheduler.

Sizes are callers. Times are the median of several turns, each of an idle router, an attack beside, and one elsewhere.
"""

from __future__ import annotations

import select
import socket
import statistics
import time
from collections.abc import Callable, Sequence

from proton import Message, symbol

from mesh_config.models import Role
from router.bench.cases import Workload, host_and_port
from router.bench.measuring import RunResult
from router.bench.measuring import measure as measure_load
from tests.helpers import frames
from tests.helpers.frames import AMQP_HEADER, write
from tests.measure.credit.tasks import Parent, Task
from tests.measure.scale import hostile_handshakes, hostile_neighbors, hostile_senders
from tests.measure.scale.beside import client_first, p99, path, routers_first
from tests.measure.scale.stand import Bench, Stand, Table

SIZES = (50,)
TURNS = 3
CALLS_S = 1.5
WARM_S = 0.3
CALL_BYTES = 200
OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE = range(0x10, 0x19)
FULL = 2**31 - 1
ANSWERED = b"statusCode"
"""What each answer of management has."""


class Ended(Exception):
    """The router has ended the connection, or takes nothing for a while."""


class Hostile:
    """One raw connection: what it writes is its own affair."""

    def __init__(self, url: str, container: str | None) -> None:
        """*container* is its name; None says nothing."""
        self._sock = socket.create_connection(host_and_port(url), 5)
        self._sock.setblocking(False)
        self.read = bytearray()
        if container is not None:
            self.write(AMQP_HEADER + write(OPEN, [container, "host"]))

    def write(self, data: bytes, patience_s: float = 1.0) -> None:
        """Write and read until all is written.

        Raises: Ended
        """
        view = memoryview(data)
        end = time.monotonic() + patience_s
        while view:
            if time.monotonic() > end:
                raise Ended
            readable, writable, _ = select.select([self._sock], [self._sock], [], 0.1)
            try:
                if readable:
                    self.look()
                if writable:
                    view = view[self._sock.send(view[:65536]) :]
                    end = time.monotonic() + patience_s
            except OSError as error:
                raise Ended from error

    def say(self, data: bytes) -> None:
        """Write what is short, whether it is taken or not."""
        try:
            self._sock.send(data)
        except OSError:
            pass  # it was given up for others

    def write_unread(self, data: bytes, patience_s: float = 0.5) -> None:
        """The same without reading anything."""
        view = memoryview(data)
        while view:
            _, writable, _ = select.select([], [self._sock], [], patience_s)
            if not writable:
                raise Ended
            try:
                view = view[self._sock.send(view[:65536]) :]
            except OSError as error:
                raise Ended from error

    def look(self) -> None:
        """Read what is there.

        Raises: Ended
        """
        try:
            data = self._sock.recv(1 << 18)
        except BlockingIOError:
            return
        if not data:
            raise Ended
        self.read += data
        del self.read[:-65536]

    def rest(self, seconds: float) -> None:
        """Read for so long."""
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if poll.poll(left * 1000):
                self.look()

    def close(self) -> None:
        """Leave without a word."""
        self._sock.close()


Connect = Callable[[str | None], Hostile]
"""Connects under a container's name, or says nothing if None."""


def begin(channel: int = 0, answers: int | None = None) -> bytes:
    """A session with all windows open."""
    return write(BEGIN, [answers, 0, FULL, FULL], channel=channel)


def receiver(handle: int, address: str, *, name: str = "", credit: int = 0) -> bytes:
    """A subscriber, and what it grants."""
    attach = write(
        ATTACH, [name or f"in{handle}", handle, True, None, None, frames.source(address), frames.target("t")]
    )
    return attach + (write(FLOW, [0, FULL, 0, FULL, handle, 0, credit]) if credit else b"")


def sender(handle: int, address: str | None, *, name: str = "") -> bytes:
    """A publisher; without an address one that names it in each message."""
    target = frames.target(address) if address is not None else frames.Described(frames.ulong(0x29), [])
    return write(ATTACH, [name or f"out{handle}", handle, False, None, None, frames.source("s"), target, None, None, 0])


def transfer(handle: int, number: int, data: bytes, *, more: bool = False, settled: bool = False) -> bytes:
    """A message, or its first part."""
    return write(TRANSFER, [handle, number, b"%d" % number, 0, settled, more], payload=data)


def request(operation: str, reply_to: str = "nobody", **properties: str) -> bytes:
    """To `$management`, with nobody to answer unless *reply_to* says who."""
    message = Message(
        address="$management", reply_to=reply_to, body={}, properties={"operation": operation, **properties}
    )
    data: bytes = message.encode()
    return data


# The kinds: each is called again when it returns or its connection is ended


def wrong_orders(connect: Connect) -> None:
    """The orders of frames by which proton would free what is in use."""
    client = connect("hostile")
    data = transfer(0, 0, b"\0\x53\x75\xa0\x01x")
    client.write(begin() + receiver(0, "hostile") + data + write(DETACH, [0, True]))
    client.write(write(DISPOSITION, [False, 0, 0, True]))
    client.rest(0.05)


def begun_twice(connect: Connect) -> None:
    """Sessions that answer what was answered."""
    client = connect("hostile")
    client.write(begin() + receiver(0, "hostile") + begin(1, 0) + write(END, [], channel=1) + write(END, []))
    client.rest(0.05)


def dear_sections(connect: Connect) -> None:
    """Requests of as many empty sections as fit, and larger ones than are taken."""
    client = connect("hostile")
    client.write(begin() + sender(0, "$management"))
    client.rest(0.05)
    for number in range(1000):
        client.write(transfer(0, number, b"\0\x53\x75\xa0\0" * (13_000 if number % 2 else 90), settled=True))


def queries(connect: Connect) -> None:
    """Requests for all that the router knows, one behind the other."""
    client = connect("hostile")
    client.write(begin() + sender(0, "$management"))
    client.rest(0.05)
    data = request("QUERY", entityType="org.apache.qpid.dispatch.router.address")
    for number in range(1000):
        client.write(transfer(0, number, data, settled=True))


def plain_requests(connect: Connect) -> None:
    """Small requests on ten connections that read their answers, within their credit."""
    clients = [connect(f"hostile {number}") for number in range(10)]
    for number, client in enumerate(clients):
        client.write(begin() + receiver(0, f"answers {number}", credit=FULL) + sender(1, "$management"))
    clients[-1].rest(0.1)
    router = "org.apache.qpid.dispatch.router"
    data = [request("READ", f"answers {number}", type=router) for number in range(len(clients))]
    waiting = [0] * len(clients)
    sent = 0
    while True:
        for number, client in enumerate(clients):
            client.look()
            waiting[number] -= client.read.count(ANSWERED)
            del client.read[: 1 - len(ANSWERED)]
            if waiting[number] <= 60:
                client.write(b"".join(transfer(1, sent + at, data[number], settled=True) for at in range(30)))
                waiting[number] += 30
        sent += 30


def long_addresses(connect: Connect) -> None:
    """Subscriptions to addresses as long as may be, again and again."""
    client = connect("hostile")
    client.write(begin())
    for turn in range(20):
        for handle in range(600):
            client.write(receiver(handle, f"{turn}/{handle}/".ljust(1000, "x"), name=f"{turn}/{handle}"))
        for handle in range(600):
            client.write(write(DETACH, [handle, True]))


def unfinished_messages(connect: Connect) -> None:
    """Sixty links, each with eight megabytes of a message that has no end."""
    client = connect("hostile")
    client.write(begin() + receiver(100, "unfinished", credit=1000))
    client.write(b"".join(sender(handle, None) for handle in range(60)))
    client.rest(0.05)
    head = Message(address="unfinished").encode()[:-5] + b"\0\x53\x75\xb0\x7f\xff\xff\xff"
    for part in range(250):
        for handle in range(60):
            client.write(transfer(handle, handle, head if part == 0 else bytes(32_000), more=True))


def without_credit(connect: Connect) -> None:
    """Links on ten connections that send though nothing was granted, and come back when they are closed."""
    clients = [connect(f"hostile {number}") for number in range(10)]
    for client in clients:
        client.write(begin())
    data = Message(address="nobody", body=b"x").encode()
    for number in range(100_000):
        for client in clients:
            client.write(sender(0, "nobody", name=f"{number}") + transfer(0, number, data) + write(DETACH, [0, True]))


def foreign_replies(connect: Connect) -> None:
    """Subscriptions to what may be the reply addresses of others."""
    client = connect("hostile")
    client.write(begin())
    for number in range(5000):
        client.write(receiver(0, f"amqp:/_topo/0/R1/temp.{number}", name=f"{number}", credit=10))
        client.write(write(DETACH, [0, True]))


def shadows(connect: Connect) -> None:
    """The callers' address in its local form."""
    client = connect("hostile")
    client.write(begin())
    for number in range(5000):
        client.write(sender(0, "_local/bench", name=f"{number}") + write(DETACH, [0, True]))


def loud_names(connect: Connect) -> None:
    """Connections with names of sixty kilobytes that come and go."""
    client = connect("\x1b[31m\u202e" + "n" * 60_000)
    client.write(begin())
    client.rest(0.002)


def half_open(connect: Connect) -> None:
    """Connections that say nothing, as many as are taken."""
    for _ in range(500):
        connect(None)
    connect("hostile").rest(0.5)


def brief_visits(connect: Connect) -> None:
    """Connections that say much of themselves, subscribe to a multicast and end at once."""
    properties = {symbol(f"property {number}"): f"value {number}" for number in range(200)}
    opening = write(OPEN, ["visitor", "host", *[None] * 7, properties])
    for _ in range(100):
        client = connect(None)
        client.write(AMQP_HEADER + opening + begin() + receiver(0, "openstack.org/om/rpc/multicast/visited", credit=9))
        client.close()


def other_protocols(connect: Connect) -> None:
    """Requests of HTTP, each on a connection of its own."""
    for _ in range(100):
        client = connect(None)
        client.write(b"GET / HTTP/1.1\r\nHost: router\r\n\r\n")
        client.close()


def echoes(connect: Connect) -> None:
    """Flows that want an answer which nobody reads."""
    client = connect("hostile")
    client.write(begin() + receiver(0, "echo"))
    client.write_unread(write(FLOW, [0, FULL, 0, FULL, 0, 0, 1, None, None, True]) * 100_000)


def unread_answers(connect: Connect) -> None:
    """Links with long addresses that come and go, whose answers nobody reads."""
    client = connect("hostile")
    client.write(begin())
    pairs = [
        receiver(0, f"{number}/".ljust(900, "x"), name=f"{number}") + write(DETACH, [0, True]) for number in range(200)
    ]
    client.write_unread(b"".join(pairs) * 100)


def sessions(connect: Connect) -> None:
    """Sessions that come and go, and then as many as there can be."""
    client = connect("hostile")
    client.write((begin() + write(END, [])) * 5000)
    client.write(b"".join(begin(channel) for channel in range(1, 30_000)))


def ranges(connect: Connect) -> None:
    """Dispositions over thousands of deliveries, again and again."""
    client = connect("hostile")
    client.write(begin() + receiver(1, "ranges", credit=5000) + sender(0, None))
    client.rest(0.05)
    data = Message(address="ranges", body=b"x").encode()
    for number in range(5000):
        client.write(transfer(0, number, data))
    state = frames.Described(frames.ulong(0x23), [frames.uint(0), frames.ulong(0)])  # received, which settles nothing
    for _ in range(300):
        client.write(write(DISPOSITION, [True, 0, 5000, False, state]))


def crowd(connect: Connect) -> None:
    """Twenty thousand subscribers of one multicast, in twenty sessions, and messages to them."""
    client = connect("hostile")
    per_session = 1000
    for channel in range(20):
        client.write(begin(channel), 5)
        for handle in range(per_session):
            address = frames.source("openstack.org/om/rpc/multicast/crowd")
            fields = [f"{channel}/{handle}", handle, True, 1, None, address, frames.target("t")]
            flow = write(FLOW, [0, FULL, 0, FULL, handle, 0, 100], channel=channel)
            client.write(write(ATTACH, fields, channel=channel) + flow, 5)
    client.write(begin(20) + write(ATTACH, ["out", 0, False, None, None, frames.source("s"),
                 frames.Described(frames.ulong(0x29), []), None, None, 0], channel=20), 5)  # fmt: skip
    client.rest(0.2)
    data = Message(address="openstack.org/om/rpc/multicast/crowd", body=b"x").encode()
    for number in range(100):
        client.write(write(TRANSFER, [0, number, b"%d" % number, 0, True], channel=20, payload=data), 10)
        client.rest(0.05)


def deep_values(connect: Connect) -> None:
    """Properties of an Open that are nested as deep as they fit."""
    client = connect("hostile")
    nested = b"\x40"
    for _ in range(3000):
        nested = b"\xd0" + (len(nested) + 4).to_bytes(4, "big") + b"\0\0\0\1" + nested
    fields = [symbol("x")] * 3
    client.write(write(ATTACH, fields)[:-3] + nested)
    client.rest(0.05)


KINDS: tuple[Callable[[Connect], None], ...] = (
    wrong_orders,
    begun_twice,
    dear_sections,
    queries,
    plain_requests,
    long_addresses,
    unfinished_messages,
    without_credit,
    foreign_replies,
    shadows,
    loud_names,
    half_open,
    brief_visits,
    other_protocols,
    echoes,
    unread_answers,
    sessions,
    ranges,
    crowd,
    deep_values,
)


def measure(stand: Stand, sizes: Sequence[int]) -> Table:
    """How long calls take beside each kind."""
    table = Table("calls beside one hostile client; sizes are callers")
    settings = hostile_neighbors.with_neighbors(hostile_handshakes.secured(stand))
    with stand.mesh(settings) as here, stand.mesh(settings) as elsewhere, client_first():
        for bench in (here, elsewhere):
            routers_first(bench)
        for size in sizes:
            for kind in (*KINDS, *hostile_senders.KINDS):
                _measure_kind(table, here, elsewhere, kind, size)
            for kind in hostile_handshakes.KINDS:
                _measure_kind(table, here, elsewhere, kind, size, index=1)
            for kind in hostile_neighbors.KINDS:
                _measure_kind(table, here, elsewhere, kind, size, role=Role.INTER_ROUTER)
        for bench in (here, elsewhere):
            assert bench.mesh["R1"].is_running, "a router was ended"
    return table


def _measure_kind(
    table: Table,
    here: Bench,
    elsewhere: Bench,
    kind: Callable[[Connect], None],
    size: int,
    *,
    index: int = 0,
    role: Role = Role.NORMAL,
) -> None:
    name = kind.__name__.replace("_", " ")
    idle, beside, control = [], [], []
    resident = here.memory()
    for _ in range(TURNS):
        here.calm()  # passwords may still be looked at
        idle.append(_calls(here, size))
        with Task(attack, here.mesh["R1"].url(role, index), kind) as task:
            assert task.hear() == "attacking"
            beside.append(_calls(here, size))
            resident = max(resident, here.memory())
        with Task(attack, elsewhere.mesh["R1"].url(role, index), kind) as task:
            assert task.hear() == "attacking"
            control.append(_calls(here, size))
    table.add(size, f"{name}: p99", statistics.median(map(p99, beside)) / 1e6)
    for where, runs in (("", beside), (", elsewhere", control)):
        ratios = [p99(run) / p99(alone) for run, alone in zip(runs, idle, strict=True)]
        table.add(size, f"{name}{where}: p99, of that of an idle router", statistics.median(ratios), "x")
    table.add(size, f"{name}: calls lost", sum(run.refused for run in beside), "")
    table.add(size, f"{name}: memory, highest seen", resident, "B")


def _calls(bench: Bench, callers: int) -> RunResult:
    case = Workload(name="calls", group="", size=CALL_BYTES, senders=callers, is_rpc=True)
    return measure_load(case, path(bench.url()), seconds=CALLS_S, warm_s=WARM_S, address=hostile_senders.CALLED)


def attack(parent: Parent, url: str, kind: Callable[[Connect], None]) -> None:
    """In a process: attack until killed."""
    clients: list[Hostile] = []
    has_told = False

    def connect(container: str | None) -> Hostile:
        nonlocal has_told
        clients.append(Hostile(url, container))
        if not has_told:
            has_told = True
            parent.tell("attacking")
        return clients[-1]

    while True:
        try:
            kind(connect)
        except (Ended, OSError):
            time.sleep(0.001)  # also where a router takes no connection
        for client in clients:
            client.close()
        clients.clear()
