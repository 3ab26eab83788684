"""What goes wrong: a fault is a generator that yields the seconds in which traffic passes, and heals at its end."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import socket
import struct
import subprocess
from collections.abc import Callable, Generator
from pathlib import Path

import attrs
from proton import uint

from mesh_config.models import ListenerSettings, Role
from mesh_config.render import render_router
from tests.helpers.frames import AMQP_HEADER, target, write
from tests.helpers.processes import COMMAND, RouterProcess
from tests.helpers.relay import CONNECTOR, LISTENER, LOOPBACK
from tests.measure.chaos.ends import attach_receiver, attach_sender
from tests.measure.chaos.ledger import ACCEPTED, RELEASED
from tests.measure.chaos.stage import ROUTERS, START_S, Stage
from tests.measure.chaos.wires import Wire

Course = Generator[float]
Act = Callable[[Stage, random.Random], Course]

LARGE = 5_000_000
"""Bytes of what dying clients had under way."""
DELAY_S = 0.05
SPARE_DESCRIPTORS = 6
SPARE_BYTES = 8_000_000
_RESET = struct.pack("ii", 1, 0)


@attrs.frozen
class Fault:
    """One kind."""

    name: str
    what: str
    """For the table."""
    act: Act
    keeps_paths: bool = False
    """Whether every path stands meanwhile: order and copies of multicasts are as ever."""
    is_slow: bool = False
    """Whether it takes more than some seconds."""


# Wires


def _link(cut: Callable[..., None], *arguments: float, seconds: float) -> Act:
    def act(stage: Stage, rng: random.Random) -> Course:
        wire = stage.links[rng.choice(sorted(stage.links))]
        cut(wire, *arguments)
        yield seconds
        wire.mend()

    return act


def _hold_link(seconds: float) -> Act:
    def act(stage: Stage, rng: random.Random) -> Course:
        wire = stage.links[rng.choice(sorted(stage.links))]
        wire.hold(rng.choice((CONNECTOR, LISTENER)))
        yield seconds
        wire.mend()

    return act


def half_open_link(stage: Stage, rng: random.Random) -> Course:
    """One router loses the connection, the other hears nothing of it."""
    wire = stage.links[rng.choice(sorted(stage.links))]
    wire.half_open(rng.choice((CONNECTOR, LISTENER)))
    yield 1.5
    wire.mend()


def flap_link(stage: Stage, rng: random.Random) -> Course:
    """Cut and mended six times."""
    wire = stage.links[rng.choice(sorted(stage.links))]
    for _ in range(6):
        wire.cut(reset=rng.random() < 0.5)
        yield rng.uniform(0.02, 0.15)
        wire.mend()
        yield rng.uniform(0.02, 0.3)


def cut_client(stage: Stage, rng: random.Random) -> Course:
    """A client's connection ends, by RST or by FIN."""
    seat = rng.choice(stage.seats)
    seat.wire.cut(reset=rng.random() < 0.5)
    yield 0.2
    seat.wire.mend()


def hold_client(stage: Stage, rng: random.Random) -> Course:
    """What a client or its router writes arrives a second later."""
    seat = rng.choice(stage.seats)
    seat.wire.hold(rng.choice((CONNECTOR, LISTENER)))
    yield 1.0
    seat.wire.mend()


def half_open_client(stage: Stage, rng: random.Random) -> Course:
    """A client or its router loses the connection, the other one hears nothing of it."""
    seat = rng.choice(stage.seats)
    seat.wire.half_open(rng.choice((CONNECTOR, LISTENER)))
    yield 1.0
    seat.wire.mend()


# Processes


def kill(stage: Stage, rng: random.Random) -> Course:
    """SIGKILL, and the same again."""
    router = rng.choice(ROUTERS)
    stage.mesh.kill(router)
    yield rng.uniform(0.0, 0.5)
    yield from _start(stage, router)


def terminate(stage: Stage, rng: random.Random) -> Course:
    """SIGTERM, its time to end, and the same again."""
    router = rng.choice(ROUTERS)
    yield from _terminate(stage, router)
    yield from _start(stage, router)


def other_settings(stage: Stage, rng: random.Random) -> Course:
    """A restart with other windows, frames and bounds."""
    router = rng.choice(ROUTERS)
    yield from _terminate(stage, router)
    before = stage.mesh[router].settings
    frame = rng.choice((2048, 4096, 32768, 1048576))
    forwarding = attrs.evolve(
        before.forwarding,
        session_window_frames=rng.choice((2, 16, 256)),
        held_message_bytes=rng.choice((0, 10_000, 16_777_216)),
        max_circuits=rng.choice((0, 1, 30_000)),
        quarantine_s=rng.choice((0.05, 0.5)),
        brokered_messages=rng.choice((10, 10_000)),
    )
    listeners = tuple(attrs.evolve(one, max_frame_bytes=frame) for one in before.listeners)
    stage.mesh.change(attrs.evolve(before, forwarding=forwarding, listeners=listeners))
    yield from _start(stage, router)
    yield 1.0
    yield from _terminate(stage, router)
    stage.mesh.change(before)
    yield from _start(stage, router)


def _terminate(stage: Stage, router: str) -> Course:
    code = stage.aside(lambda: stage.mesh[router].terminate(60.0))
    if code != 0:
        stage.ledger.violate("ended", f"{router} ended with {code} on SIGTERM")
    yield 0.0


def _start(stage: Stage, router: str) -> Course:
    stage.aside(lambda: _start_and_wait(stage.mesh[router]))
    yield 0.0


def _start_and_wait(process: RouterProcess) -> None:
    process.start()
    process.wait_started(START_S)


def _stop(seconds: float) -> Act:
    def act(stage: Stage, rng: random.Random) -> Course:
        process = stage.mesh[rng.choice(ROUTERS)]
        process.send_signal(signal.SIGSTOP)
        yield seconds
        process.send_signal(signal.SIGCONT)

    return act


def same_id(stage: Stage, rng: random.Random) -> Course:
    """Another router with the id of one that runs connects to a third."""
    router, other = rng.sample(ROUTERS, 2)
    folder = stage.folder / "twice"
    folder.mkdir(exist_ok=True)
    settings = stage.mesh[router].settings
    connector = attrs.evolve(
        next(one for each in ROUTERS for one in stage.mesh[each].settings.connectors),
        to=None,
        port=stage.port(other, Role.INTER_ROUTER),
    )
    settings = attrs.evolve(settings, listeners=(ListenerSettings(name="clients", port=0),), connectors=(connector,))
    file = folder / "router.yaml"
    file.write_text(render_router(settings), encoding="utf-8")
    with (folder / "log").open("ab") as log:
        second = subprocess.Popen([*COMMAND, "run", str(file)], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield 4.0
    finally:
        second.kill()
        second.wait(10)


# Clients that die


def dying_publisher(stage: Stage, rng: random.Random) -> Course:
    """It dies with a part of 5 MB on the way to a subscriber that stays."""
    address = rng.choice(("chaos/balanced", "exclusive/chaos", "broadcast/chaos"))
    frames = AMQP_HEADER + write(0x10, [f"dying-{rng.getrandbits(40)}", "host", uint(16384)])
    frames += write(0x11, [None, 0, 1000, 1000])
    frames += write(0x12, ["dying", 0, False, None, None, None, target(address), None, None, 0])
    with socket.create_connection((LOOPBACK, stage.port(rng.choice(ROUTERS)))) as sock:
        sock.sendall(frames)
        yield 0.2  # it has its first credit
        sock.setblocking(False)
        data = b"".join(write(0x14, [0, 0, b"0", 0, None, True], payload=bytes(16_000)) for _ in range(LARGE // 16_000))
        left = memoryview(data)[: rng.randrange(20_000, len(data))]
        for _ in range(100):
            with contextlib.suppress(BlockingIOError):
                left = left[sock.send(left) :]
            if not left:
                break
            yield 0.005
        if rng.random() < 0.7:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    yield 0.2


def dying_subscriber(stage: Stage, rng: random.Random) -> Course:
    """It dies with a part of 5 MB that a publisher that stays has sent it; then another one takes the next."""
    address = f"chaos/large/{rng.getrandbits(40)}"
    ledger, loop = stage.ledger, stage.loop
    wire = stage.wires.to(stage.port(rng.choice(ROUTERS)))
    first = loop.connect(f"amqp://{LOOPBACK}:{wire.port}", "large-dying")
    dying = attach_receiver(first, ledger, ledger.new_sink(address), credit=4)
    publisher = loop.connect(stage.mesh.url(rng.choice(ROUTERS)), "large-publisher")
    sender = attach_sender(publisher, ledger, ledger.new_source(address))
    sender.size = LARGE
    stage.run_until(lambda: sender.credit > 0, 20)
    wire.hold(CONNECTOR, *((LISTENER,) if rng.random() < 0.5 else ()))  # some of it may come through, and no outcome
    sender.fill(1)
    yield rng.uniform(0.0, 0.3)
    wire.cut()
    ledger.left(dying.sink)
    first.drop()
    stage.run_until(lambda: not sender.source.unanswered, 20)
    second = loop.connect(stage.mesh.url(rng.choice(ROUTERS)), "large-heir")
    heir = attach_receiver(second, ledger, ledger.new_sink(address), credit=4)
    heir.says = (ACCEPTED,)
    before = sender.source.sent

    def is_answered() -> bool:
        """Whether the next one is; what came before its router knew of the heir is released, and sent again."""
        heir.answer()
        if sender.source.unanswered:
            return False
        is_sent = sender.source.sent > before and sender.source.outcomes[-1] != RELEASED
        if not is_sent:
            sender.fill(1)
        return is_sent

    if not stage.run_until(is_answered, 30) or sender.source.outcomes[-1] != ACCEPTED:
        ledger.violate("no recovery", f"5 MB to {address} after its subscriber died: {sender.source.outcomes[-1]}")
    for end in (sender.source, heir.sink):
        ledger.left(end)
    publisher.drop()
    second.drop()
    wire.close()
    yield 0.0


# What a router may have


def few_descriptors(stage: Stage, rng: random.Random) -> Course:
    """Six descriptors are left, and fifty clients come."""
    pid = stage.mesh[rng.choice(ROUTERS)].pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    highest = max(int(each.name) for each in Path(f"/proc/{pid}/fd").iterdir())
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (highest + 1 + SPARE_DESCRIPTORS, before[1]))
    port = next(stage.port(key) for key in ROUTERS if stage.mesh[key].pid == pid)
    crowd = [socket.create_connection((LOOPBACK, port)) for _ in range(50)]
    yield 1.0
    for sock in crowd:
        sock.close()
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    yield 0.2


def full_log(stage: Stage, rng: random.Random) -> Course:
    """The log can't grow (RLIMIT_FSIZE), while thirty clients come and go that are worth a line each."""
    router = rng.choice(ROUTERS)
    process = stage.mesh[router]
    before = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (os.stat(process.log_file).st_size, before[1]))
    for _ in range(30):
        with contextlib.suppress(OSError), socket.create_connection((LOOPBACK, stage.port(router))) as sock:
            sock.sendall(b"no AMQP" * 3)
        yield 0.02
    if process.is_running:
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, before)
    yield 0.2


def little_memory(stage: Stage, rng: random.Random) -> Course:
    """8 MB are left (RLIMIT_AS) while twenty publishers begin messages of 5 MB; a router that ends is started."""
    router = rng.choice(ROUTERS)
    process = stage.mesh[router]
    before = resource.prlimit(process.pid, resource.RLIMIT_AS)
    pages = int(Path(f"/proc/{process.pid}/statm").read_text(encoding="ascii").split()[0])
    resource.prlimit(process.pid, resource.RLIMIT_AS, (pages * resource.getpagesize() + SPARE_BYTES, before[1]))
    courses = [dying_publisher(stage, rng) for _ in range(20)]
    with contextlib.suppress(OSError):  # refused, or cut
        for _ in range(60):
            for course in courses:
                next(course, None)
            yield 0.005
    for course in courses:
        course.close()
    if process.is_running:
        resource.prlimit(process.pid, resource.RLIMIT_AS, before)
        yield 0.2
    if not process.is_running:
        stage.ledger.totals["routers that ended for want of memory"] += 1
        yield from _start(stage, router)


def _faults() -> tuple[Fault, ...]:
    return (
        Fault("cut", "link cut for 0.5 s", _link(Wire.cut, seconds=0.5)),
        Fault("stall", "link stalled one way for 1 s", _hold_link(1.0)),
        Fault("stall-4", "link stalled one way for 4 s", _hold_link(4.0)),
        Fault("delay", "link 50 ms longer each way for 1 s", _link(Wire.delay, DELAY_S, seconds=1.0), keeps_paths=True),
        Fault("half-open", "link half open for 1.5 s", half_open_link),
        Fault("flap", "link cut six times in a second", flap_link),
        Fault("client-cut", "client's connection cut", cut_client),
        Fault("client-stall", "client's connection stalled one way for 1 s", hold_client),
        Fault("client-half-open", "client's connection half open for 1 s", half_open_client),
        Fault("kill", "router killed, started again", kill),
        Fault("term", "router ended by SIGTERM, started again", terminate),
        Fault("settings", "router restarted twice, with other settings between", other_settings),
        Fault("stop-1", "router stopped for 1 s", _stop(1.0)),
        Fault("stop-5", "router stopped for 5 s", _stop(5.0)),
        Fault("stop-30", "router stopped for 30 s", _stop(30.0), is_slow=True),
        Fault("same-id", "a second router of the same id for 4 s", same_id),
        Fault("publisher", "publisher dies with 5 MB under way", dying_publisher, keeps_paths=True),
        Fault("subscriber", "subscriber dies with 5 MB under way", dying_subscriber, keeps_paths=True),
        Fault("descriptors", "six descriptors left, fifty clients come", few_descriptors, keeps_paths=True),
        Fault("log", "log can't grow, thirty clients come", full_log, keeps_paths=True),
        Fault("memory", "8 MB of addresses left, twenty times 5 MB come", little_memory),
    )


FAULTS = {fault.name: fault for fault in _faults()}
