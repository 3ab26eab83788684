"""One round: real routers in a line, ends that stay, and vandals beside them; then what is left of it all."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import attrs

from mesh_config.generators import generate
from mesh_config.models import MeshSettings
from router.bench.load_connection import Loop
from router.cli.management import ManagementClient
from router.dataplane.connection_port import Port
from router.dataplane.links import (
    EgressCircuitLink,
    EgressDatagramLink,
    IngressCircuitLink,
    IngressDatagramLink,
    PublisherLink,
    SubscriberLink,
    Transfer,
)
from router.dataplane.multicast_repair import KeptMulticast
from router.dataplane.scan_result import Scan
from router.engine.connection import Connection
from router.net.pump import Pump
from tests.helpers.processes import MeshProcesses, RouterProcess, wait_until
from tests.measure.stress.ends import Publisher, Subscriber, account
from tests.measure.stress.vandals import ADDRESSES

WATCHED = (sys.executable, "-m", "tests.measure.stress.watched")
A, B, SETTLED, MULTICAST = ADDRESSES
SETTLE_S = 30.0
GRACE_S = 30.0
SILENCE_S = 30.0
QUIET_FOR_S = 0.5
QUIET_S = 20.0
GONE = tuple(
    each.__name__
    for each in (
        Connection, EgressCircuitLink, EgressDatagramLink, IngressCircuitLink, IngressDatagramLink, KeptMulticast,
        Port, PublisherLink, Pump, Scan, SubscriberLink, Transfer,
    )
)  # fmt: skip
"""Classes of which there must be no more than before. What is over at an address may wait in the heap of deadlines.

Streaming links between routers stay for the next large message, `MAX_STREAMS` of them at most."""
BOUNDED = ("TimerQueue._heap",)
"""Tables that keep what is over, with a bound of their own."""
FORBIDDEN = ("lost", "doubled", "unknown", "released, yet received")


@attrs.frozen
class Round:
    """What happened to the messages of those that stayed."""

    anycast: Counter[str]
    multicast: Counter[str]
    settled: Counter[str]
    vandals: int
    seconds: float

    @property
    def messages(self) -> int:
        """How many were sent."""
        return self.anycast["sent"] + self.multicast["sent"] + self.settled["sent"]

    def faults(self) -> dict[str, int]:
        """What must never be."""
        return {
            f"{name} ({kind})": said[name]
            for kind, said in (("anycast", self.anycast), ("multicast", self.multicast), ("settled", self.settled))
            for name in FORBIDDEN
            if said[name]
        }


def two_routers() -> MeshSettings:
    """A line of two, whose patience outlasts a machine that is busy with something else for seconds.

    They neither leave out a subscriber for having been without credit, nor take the other router to be lost: then
    messages on their way to it are MODIFIED and multicasts miss its subscribers, as they should.
    """
    mesh = generate("line", 2)
    return attrs.evolve(
        mesh,
        routers={
            key: attrs.evolve(
                router,
                forwarding=attrs.evolve(router.forwarding, grace_s=GRACE_S),
                link_state=attrs.evolve(router.link_state, hello_max_age_s=SILENCE_S),
            )
            for key, router in mesh.routers.items()
        },
    )


def play(mesh: MeshProcesses, *, seconds: float, rate: float, seed: int) -> Round:
    """Let messages pass for so long while *rate* connections die each second."""
    rng = random.Random(seed)
    wait_until(lambda: not knows_subscriber(mesh.url("R1"), MULTICAST), "R1 has forgotten the last round", SETTLE_S)
    first, last = (int(mesh.url(router).rpartition(":")[2]) for router in ("R1", mesh.running[-1]))
    loop = Loop()
    began = time.monotonic()
    # Address, its publishers' ports and its subscribers'.
    plan = ((A, (first, first), (first, last)), (B, (last,), (first,)), (SETTLED, (last,), (first,)))
    publishers: list[Publisher] = []
    subscribers: list[Subscriber] = []

    def add(end: Publisher | Subscriber, port: int) -> None:
        (publishers if isinstance(end, Publisher) else subscribers).append(end)  # type: ignore[arg-type]
        loop.connect("127.0.0.1", port, end, f"stays-{len(publishers)}-{len(subscribers)}")

    for address, sending, receiving in (*plan, (MULTICAST, (first,), (first, last))):
        for port in receiving:
            add(Subscriber(address), port)
        for port in sending:
            add(Publisher(len(publishers), address, rng, is_presettled=address == SETTLED), port)
    assert loop.run_until(lambda: all(end.is_attached for end in (*publishers, *subscribers)), SETTLE_S)
    wait_until(lambda: knows_subscriber(mesh.url("R1"), MULTICAST), "R1 knows the other subscriber", SETTLE_S)
    command = [
        sys.executable,
        "-m",
        "tests.measure.stress.vandals",
        str(seconds),
        str(rate),
        str(seed),
        str(first),
        str(last),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as vandals:
        for publisher in publishers:
            publisher.resume()
        while vandals.poll() is None:
            loop.run_for(0.1)
        assert vandals.stdout is not None
        born = int(vandals.stdout.read())
    assert vandals.returncode == 0
    for publisher in publishers:
        publisher.is_on = False
    loop.run_until(lambda: not any(publisher.under_way for publisher in publishers), SETTLE_S)
    # A multicast is accepted when its copies have left the first router: the last ones are still on their way.
    before = -1
    while before != (before := sum(each.total for each in subscribers)):
        loop.run_for(QUIET_FOR_S)
    said = {
        address: sum(
            (
                account(
                    publisher,
                    [each for each in subscribers if each.address == address],
                    is_multicast=address == MULTICAST,
                )
                for publisher in publishers
                if publisher.address == address
            ),
            Counter(),
        )
        for address in ADDRESSES
    }
    loop.close()
    return Round(said[A] + said[B], said[MULTICAST], said[SETTLED], born, time.monotonic() - began)


def knows_subscriber(url: str, address: str) -> bool:
    """Whether a router knows that another one has subscribers of *address*."""
    with ManagementClient(url, timeout_s=SETTLE_S) as client:
        rows = client.query("router.address", ["name", "remoteCount"])
    return any(row["remoteCount"] for row in rows if row["name"].endswith(address))


def look(router: RouterProcess, folder: Path) -> dict[str, Any]:
    """What a watched router keeps now."""
    path = folder / f"{router.pid}.json"
    path.unlink(missing_ok=True)
    router.send_signal(signal.SIGRTMIN)
    wait_until(path.exists, f"router {router.settings.id} says what it keeps", QUIET_S)
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def look_when_quiet(router: RouterProcess, folder: Path, before: dict[str, Any]) -> dict[str, Any]:
    """What it keeps when all clients have gone, or have had time enough to."""
    end = time.monotonic() + QUIET_S
    while remains(found := look(router, folder), before) and time.monotonic() < end:
        time.sleep(0.3)
    return found


def remains(found: dict[str, Any], before: dict[str, Any]) -> dict[str, int]:
    """What should be gone when nobody is attached but the neighbor: objects and rows of tables, more than *before*."""
    more = {
        name: count - before[part].get(name, 0)
        for part in ("objects", "tables")
        for name, count in found[part].items()
        if (name in GONE if part == "objects" else name not in BOUNDED)
    }
    return {name: count for name, count in more.items() if count > 0}
