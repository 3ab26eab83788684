"""Nobody has more than a turn: what one round of the poller writes to a connection, or because of it, is bounded.

Sockets are real, and take everything. Clients read and write whenever the poller asks for the time, which is before it
serves who is ready: so what they find is what the round before has written.
"""

from __future__ import annotations

import random
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import trio

from mesh_config.models import ListenerSettings, RouterSettings
from router.dataplane.backpressure import TURN_BYTES
from router.dataplane.links import IngressLink
from router.dataplane.transfer_stages import PIECE_BYTES
from router.engine.byte_stream_limits import LEAST_PIECE_BYTES, MOST_PIECE_BYTES, MOST_SHARED_PIECE_BYTES, PIECE_COPIES
from router.net.poller import PolledSocket, Poller
from router.net.pump import MOST_WRITTEN_BYTES, Pump
from router.runtime import Runtime
from tests.helpers.peer import Peer, PeerReceiver, PeerSender, Received, message

SOCKET_BYTES = 4_000_000
"""What a socket takes, twice as much as is written to it while nobody reads."""
LOOK_S = 0.0005
"""Between two looks at the clock."""
MULTICAST = "openstack.org/om/rpc/multicast/openstack/topic"
SUBSCRIBERS = 400
SUBSCRIBER_LINKS = 40
"""Of one connection."""
BODY = b"x" * 100
MESSAGE_BYTES = 160
"""At most, with its frame."""


class Client:
    """A peer on a socket.

    Attributes:
        is_deaf: what it reads is counted and thrown away.
        is_still: it neither reads nor writes.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.peer = Peer(lambda: None)
        self.peer.connection.open()
        self.is_deaf = self.is_still = False
        self._sock = sock
        self._unwritten = b""

    def step(self) -> int:
        """Read all that there is, then write. Returns: bytes read."""
        count = 0
        if self.is_still:
            return count
        try:
            while data := self._sock.recv(1 << 20):
                count += len(data)
                if not self.is_deaf:
                    self.peer.give(data)
        except BlockingIOError:
            pass
        self._unwritten += self.peer.take()
        if self._unwritten:
            try:
                self._unwritten = self._unwritten[self._sock.send(self._unwritten) :]
            except BlockingIOError:
                pass
        return count

    def close(self) -> None:
        self._sock.close()


class Kick(PolledSocket):
    """A channel that does one thing in a round."""

    def __init__(self, poller: Poller, act: Callable[[], None]) -> None:
        super().__init__()
        self._ours, theirs = socket.socketpair()
        self._poller = poller
        self._act = act
        poller.add(self._ours.fileno(), self)
        theirs.close()

    def read(self) -> None:
        self._poller.remove(self._ours.fileno())
        self._ours.close()
        self._act()

    def write(self) -> None:
        raise AssertionError("it waits for nothing to write")


class Stand:
    """A router with its poller, and its clients."""

    def __init__(self, nursery: trio.Nursery) -> None:
        self._now = 0.0
        self.runtime = Runtime(RouterSettings(id="A"), clock=lambda: self._now, instance=1, rng=random.Random(1))
        self.poller = Poller(self.look, self.runtime)
        self.written: dict[Client, Counter[int]] = {}
        """Bytes for each client, by number of the round."""
        self.sent: Counter[int] = Counter()
        """Messages and copies that have left, in the same way,"""
        self.begun: Counter[int] = Counter()
        """and messages that were begun to be read."""
        self._nursery = nursery
        self._counted = 0

    def look(self) -> float:
        """What the last round has done; the time."""
        number = self.poller.rounds
        self.sent[number] += self.runtime.data_plane.sent() - self._counted
        self._counted = self.runtime.data_plane.sent()
        self.begun[number] += self.count_begun() - self.begun.total()
        for client, written in self.written.items():
            written[number] += client.step()
        self._now += LOOK_S
        return self._now

    def count_begun(self) -> int:
        """Since the start."""
        links = [link for link in self.runtime.data_plane.links if isinstance(link, IngressLink)]
        return self.runtime.data_plane.gone_ingress.deliveries + sum(link.counters.deliveries for link in links)

    async def until(self, is_so: Callable[[], object]) -> None:
        """Let everything go on."""
        with trio.fail_after(60):
            while not is_so():
                self.look()
                if self.runtime.next_deadline() <= self._now:
                    self.runtime.handle_deadline()
                await trio.lowlevel.checkpoint()

    async def client(self, room: int = SOCKET_BYTES) -> Client:
        """Connect one whose socket takes *room* bytes."""
        ours, theirs = socket.socketpair()
        for sock in (ours, theirs):
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, room)
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) < room:
                pytest.skip("the system has no socket that takes everything: see net.core.wmem_max")
        # Clients here move only when they are told to, and the machine may stand still for longer than usual time-outs.
        settings = ListenerSettings(idle_timeout_s=0)
        connection = self.runtime.new_connection(settings, is_server=True)
        pump = Pump(ours, connection, self.runtime, self.poller)
        self.runtime.add_connection(connection, pump.flush)
        self._nursery.start_soon(pump.run)
        client = Client(theirs)
        self.written[client] = Counter()
        await self.until(lambda: client.peer.connection.state & client.peer.connection.REMOTE_ACTIVE)
        return client

    async def subscriber(self, address: str, credit: int, room: int = SOCKET_BYTES) -> tuple[Client, PeerReceiver]:
        """Connect one, with its link."""
        client = await self.client(room)
        receiver = client.peer.receiver(address, credit=credit).accepting()
        await self.until(lambda: receiver.is_attached)
        return client, receiver


@asynccontextmanager
async def stand() -> AsyncIterator[Stand]:
    async with trio.open_nursery() as nursery:
        stand = Stand(nursery)
        nursery.start_soon(stand.poller.run)
        yield stand
        nursery.cancel_scope.cancel()
    for connection in list(stand.runtime.connections.values()):
        stand.runtime.remove_connection(connection)
    for client in stand.written:
        client.close()
    stand.poller.close()


async def talking(bench: Stand, credit: int) -> tuple[Client, PeerSender]:
    """Connect one who talks with itself, and its link: each message that it gets it sends again."""
    talker, itself = await bench.subscriber("talk", credit)
    sender = talker.peer.sender("talk")

    def talk(received: Received) -> None:
        received.settle()
        itself.flow(1)
        sender.send(received.data)

    itself.policy = talk
    sender.send(message("hello"))
    await bench.until(lambda: len(itself.messages) > 10)
    return talker, sender


@pytest.mark.parametrize(
    "bodies", [[b"x" * 2_000_000], [b"x" * 10_000] * 90], ids=["one message of 2 MB", "90 messages of 10 kB"]
)
async def test_what_one_round_writes_to_a_connection_is_bounded_and_others_come_between(
    bodies: list[bytes],
) -> None:
    async with stand() as bench:
        client, receiver = await bench.subscriber(MULTICAST, len(bodies))
        talker, _ = await talking(bench, credit=1)
        began = bench.poller.rounds
        data = [message(body) for body in bodies]

        def publish_all() -> None:
            for one in data:
                bench.runtime.data_plane.publish(MULTICAST, one)

        Kick(bench.poller, publish_all)
        await bench.until(lambda: len(receiver.messages) == len(bodies))
        assert [received.data for received in receiver.messages] == data
        written = {number: size for number, size in bench.written[client].items() if number >= began and size}
        assert max(written.values()) <= MOST_WRITTEN_BYTES + PIECE_BYTES
        assert len(written) >= sum(map(len, bodies)) // (MOST_WRITTEN_BYTES + PIECE_BYTES)
        # What the talker writes after the poller has looked for what is ready has its turn in the round after the next.
        answers = bench.written[talker]
        assert all(answers[number] + answers[number + 1] for number in sorted(written)[:-2])


async def subscribed_by_many(bench: Stand) -> None:
    for _ in range(SUBSCRIBERS // SUBSCRIBER_LINKS):
        client = await bench.client()
        session = client.peer.session()
        links = [client.peer.receiver(MULTICAST, session=session, credit=10_000) for _ in range(SUBSCRIBER_LINKS)]
        await bench.until(lambda links=links: all(link.is_attached for link in links))  # type: ignore[misc]
        client.is_deaf = True


async def publish(bench: Stand, sender: PeerSender, count: int, subscribers: int) -> list[int]:
    """Copies that leave in each round."""
    began, goal = bench.poller.rounds, bench.runtime.data_plane.sent() + count * subscribers
    for _ in range(count):
        sender.send(message(BODY))
    await bench.until(lambda: bench.runtime.data_plane.sent() == goal)
    bench.look()
    return [copies for number, copies in sorted(bench.sent.items()) if number > began and copies]


async def test_as_few_messages_to_many_are_read_at_once_as_others_can_wait_for() -> None:
    async with stand() as bench:
        await subscribed_by_many(bench)
        sender = (await bench.client()).peer.sender(MULTICAST)
        await publish(bench, sender, 200, SUBSCRIBERS)  # nobody can know before the first ones, nor has it much credit
        for pause in (0, 1, 2):
            await publish(bench, sender, pause, SUBSCRIBERS)
            assert sender.credit >= 100
            copies = await publish(bench, sender, 100, SUBSCRIBERS)
            assert max(copies) <= PIECE_COPIES + 2 * SUBSCRIBERS
            assert len(copies) <= 100 * SUBSCRIBERS // (PIECE_COPIES // 2)


async def test_as_many_messages_as_ever_are_read_at_once_when_for_one_subscriber_again() -> None:
    async with stand() as bench:
        await subscribed_by_many(bench)
        await bench.subscriber("alone", 10_000)
        publisher = (await bench.client()).peer
        await publish(bench, publisher.sender(MULTICAST), 100, SUBSCRIBERS)
        copies = await publish(bench, publisher.sender("alone"), 500, 1)
        assert max(copies) >= LEAST_PIECE_BYTES // MESSAGE_BYTES


async def most_read(bench: Stand, sender: PeerSender, data: bytes) -> int:
    """Bytes of messages that are read at most in a round, of many that are sent one after the other."""
    before, began = bench.count_begun(), bench.poller.rounds
    while bench.count_begun() < before + 400:
        for _ in range(min(sender.credit, 40)):
            sender.send(data)
        rounds = bench.poller.rounds
        await bench.until(lambda rounds=rounds: bench.poller.rounds > rounds)  # type: ignore[misc]
    return len(data) * max(count for number, count in bench.begun.items() if number > began)


async def test_a_flood_is_read_in_longer_pieces_while_nobody_else_has_single_messages() -> None:
    data = message(b"x" * 10_000)
    async with stand() as bench:
        await bench.subscriber("large", 10_000)
        flood = (await bench.client()).peer.sender("large")
        await most_read(bench, flood, data)  # its credit grows
        assert MOST_SHARED_PIECE_BYTES + len(data) < await most_read(bench, flood, data)
        _, sender = await talking(bench, credit=10)
        assert await most_read(bench, flood, data) <= MOST_SHARED_PIECE_BYTES + len(data)
        sender.detach()
        await bench.until(lambda: not bench.poller.is_shared)
        assert MOST_SHARED_PIECE_BYTES + len(data) < await most_read(bench, flood, data) <= MOST_PIECE_BYTES + len(data)


class Backlog:
    """Large messages for a subscriber that stands still: the last ones lie in the engine, as much as a session may."""

    def __init__(self, bench: Stand) -> None:
        self.bench = bench
        self.data = [message(b"%3d" % number + b"x" * 100_000) for number in range(80)]

    async def build(self, *, is_settled: bool) -> None:
        bench = self.bench
        self.client, self.receiver = await bench.subscriber("slow", 1000, room=100_000)
        self.sender = (await bench.client()).peer.sender("slow")
        for _ in range(300):  # credit comes to who has used some
            self.sender.send(message(BODY))
        await bench.until(lambda: len(self.receiver.messages) == 300)
        assert self.sender.credit >= len(self.data)
        self.receiver.messages.clear()
        self.client.is_still = True
        self.sent = [self.sender.send(one, settled=is_settled) for one in self.data]
        await bench.until(lambda: not self.sender.link.queued)
        before = -1
        while before < (before := bench.poller.rounds):
            for _ in range(5):
                bench.look()
                await trio.lowlevel.checkpoint()
        self.began = before
        assert bench.begun.total() < 300 + len(self.data) // 2

    async def clear(self) -> None:
        self.client.is_still = False
        await self.bench.until(lambda: len(self.receiver.messages) == len(self.data))
        assert [received.data for received in self.receiver.messages] == self.data


@pytest.mark.parametrize("is_settled", [False, True])
async def test_what_a_session_has_held_back_is_read_turn_by_turn(is_settled: bool) -> None:
    async with stand() as bench:
        backlog = Backlog(bench)
        await backlog.build(is_settled=is_settled)
        await backlog.clear()
        begun = [count for number, count in bench.begun.items() if number > backlog.began]
        assert sum(begun) > len(backlog.data) // 2
        assert max(begun) <= TURN_BYTES // len(backlog.data[0]) + 1
        if not is_settled:
            await bench.until(lambda: {one.outcome for one in backlog.sent} == {"accepted"})


async def test_settled_messages_that_a_session_held_back_arrive_when_their_sender_has_left() -> None:
    async with stand() as bench:
        backlog = Backlog(bench)
        await backlog.build(is_settled=True)
        backlog.sender.close()
        await bench.until(lambda: backlog.sender.closed is not None)
        await backlog.clear()
