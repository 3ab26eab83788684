"""Figure 5: one busy publisher among 1,000 that are attached, at one hop.

One process has the subscriber at R1 and the publishers at R2, ten links on each of a hundred connections; 999 never
send.

- The first grant: the subscriber grants one credit, and each publisher is lent its own; the time to the last of them.
- The next message: the busy one has used all credit; the subscriber grants 1 or 20 more. Two times from that grant:
  until the busy one, given credit again, has sent its next message, and until a message arrives. The same is measured
  with no idle publisher before, since it holds what machine and clients cost.
- Flow frames: another pair of routers with a relay on the link between them that counts frames, while the busy one
  sends 5,000 messages to a subscriber that tops up 100 at half.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import attrs

from mesh_config.generators import generate
from mesh_config.models import Role
from mesh_config.render import render_mesh
from tests.helpers.processes import MeshProcesses
from tests.helpers.relay import LISTENER
from tests.measure.credit.client import Client, Loop
from tests.measure.credit.links import Publisher, Subscriber, message
from tests.measure.credit.relay import FrameCounter, FrameReader, FrameRelay
from tests.measure.credit.stand import Line, Row, Stand, median_and_worst, ms, new_address

TITLE = "one busy among 1,000 attached publishers, one hop"
PUBLISHERS = 1000
LINKS = 10
"""Publishers on one connection."""
ROUNDS = 100
GRANTS = (1, 20)
PAUSES_S = (0.02, 0.15)
"""Between a round's end and the next grant: shorter and longer than a publisher counts as busy."""
WANTED_S = 0.010
MESSAGES = 5000
CREDIT = 100
NONE = 0.01
"""Flow frames for each message that count as none: each idle one may be lowered once."""
QUIET_S = 0.5
BODY = message(b"x" * 100)


def measure(stand: Stand) -> Iterator[Row]:
    """The busy one alone, the first grant to all, the busy one among all, and the frames."""
    with stand.line(2) as line:
        yield from _next_messages(line, 1)
        yield from _next_messages(line, PUBLISHERS)
    yield from _frames(stand)


def _attach(loop: Loop, url: str, address: str, count: int) -> tuple[list[Client], list[Publisher]]:
    clients = [loop.connect(url) for _ in range(-(-count // LINKS))]
    publishers = [clients[number // LINKS].publisher(address, presettled=True) for number in range(count)]
    loop.run_until(lambda: all(publisher.is_attached for publisher in publishers), what="all attached")
    return clients, publishers


# Times


def _next_messages(line: Line, count: int) -> Iterator[Row]:
    loop = Loop()
    address = new_address()
    subscriber = loop.connect(line.url()).subscriber(address)
    _, publishers = _attach(loop, line.url(1), address, count)
    loop.run_for(QUIET_S)
    early = sum(publisher.credit > 0 for publisher in publishers)
    began = time.monotonic()
    subscriber.grant(1)
    loop.run_until(lambda: all(publisher.credit > 0 for publisher in publishers), what="credit for all")
    first_grant_s = time.monotonic() - began
    if count > 1:
        measured = f"{early} had credit before any was granted" if early else ms(first_grant_s)
        yield Row(5, f"first grant to the last of {count:,} publishers", measured)
    sent_s, arrived_s = _rounds(loop, publishers[0], subscriber)
    loop.close()
    among = f"{count - 1} idle" if count > 1 else "alone"
    is_met = max(sent_s) < WANTED_S if count > 1 else None
    wanted = f"worst below {ms(WANTED_S)}" if count > 1 else "reported, to compare"
    yield Row(5, f"grant to the next message sent, {among}", median_and_worst(sent_s), wanted, is_met)
    is_met = max(arrived_s) < WANTED_S if count > 1 else None
    yield Row(5, f"grant to the next message received, {among}", median_and_worst(arrived_s), wanted, is_met)


def _rounds(loop: Loop, busy: Publisher, subscriber: Subscriber) -> tuple[list[float], list[float]]:
    """Times from grants to the busy one's next message sent, and to the next one received, seconds."""
    times: list[float] = []

    def send(publisher: Publisher) -> None:
        while publisher.credit > 0:
            publisher.send(BODY)
            times.append(time.monotonic())

    arrivals: list[float] = []
    subscriber.on_message = lambda _: arrivals.append(time.monotonic())
    busy.on_credit = send
    send(busy)
    sent_s, arrived_s = [], []
    for number in range(ROUNDS):
        loop.run_until(lambda: subscriber.credit == 0 and busy.credit <= 0, what="all credit used")
        loop.run_for(PAUSES_S[number // 2 % 2])
        times.clear()
        arrivals.clear()
        granted = time.monotonic()
        subscriber.grant(GRANTS[number % 2])
        loop.run_until(lambda: times and arrivals, what="the next message")
        sent_s.append(times[0] - granted)
        arrived_s.append(arrivals[0] - granted)
    busy.be_idle()
    return sent_s, arrived_s


# Frames


def _frames(stand: Stand) -> Iterator[Row]:
    mesh = MeshProcesses(generate("line", 2), stand.folder / "relayed", command=stand.command)
    (target,) = (listener.port for listener in mesh["R1"].settings.listeners if listener.role is Role.INTER_ROUTER)
    between = FrameCounter()
    with mesh, FrameRelay(target, between.hear) as relay:
        _connect_by(mesh, relay.port)
        mesh.start()
        mesh.wait_converged()
        idle, busy, subscriber, neighbors = (count / MESSAGES for count in _count(Line(mesh), between))
    yield Row(5, "flow frames for each message: to the idle ones", f"{idle:.4f}", "none", idle < NONE)
    measured = f"{busy:.3f}, {neighbors:.3f}, {subscriber:.3f}"
    yield Row(5, "... to busy, between routers, with subscriber", measured)


def _connect_by(mesh: MeshProcesses, port: int) -> None:
    """Let R2 connect to R1 by way of *port*."""
    second = mesh.settings.routers["R2"]
    (connector,) = second.connectors
    changed = attrs.evolve(second, connectors=(attrs.evolve(connector, port=port),))
    routers = {**mesh.settings.routers, "R2": changed}
    mesh.file.write_text(render_mesh(attrs.evolve(mesh.settings, routers=routers)), encoding="utf-8")


def _count(line: Line, between: FrameCounter) -> list[int]:
    """Let one of the publishers send.

    Returns: flow frames to the idle ones, to the busy one, to and from the subscriber, and of the routers (*between*).
    """
    loop = Loop()
    address = new_address()
    at_subscriber, to_busy, to_idle = FrameCounter(), FrameCounter(), FrameCounter()
    with FrameRelay(line.port(), at_subscriber.hear) as relay:
        client = loop.connect(f"amqp://127.0.0.1:{relay.port}")
        subscriber = client.subscriber(address, credit=CREDIT, top_up_at=CREDIT // 2)
        idle, publishers = _attach(loop, line.url(1), address, PUBLISHERS - 1)
        (busy_client,), (busy,) = _attach(loop, line.url(1), address, 1)
        loop.run_until(lambda: busy.credit > 0 and all(each.credit > 0 for each in publishers), what="credit for all")
        loop.run_for(QUIET_S)
        for idle_client in idle:
            _watch(idle_client, to_idle)
        _watch(busy_client, to_busy)
        between.counts.clear()
        at_subscriber.counts.clear()
        busy.be_busy(BODY, MESSAGES)
        loop.run_until(lambda: subscriber.received == MESSAGES, 60, "all messages")
        loop.run_for(QUIET_S)
        # Read before the subscriber goes: then credit is taken back from all, by a frame each.
        counters = (to_idle, to_busy, at_subscriber, between)
        counted = [counter.counts["flow"] for counter in counters]
        loop.close()
    return counted


def _watch(client: Client, counter: FrameCounter) -> None:
    """Count the frames that *client* gets from now on; there must be none half read."""
    reader = FrameReader()

    def read(data: bytes) -> None:
        for frame in reader.read(data):
            counter.hear(0, LISTENER, frame)

    client.on_bytes = read
