"""A mesh at work in which something goes wrong, to practise on: four routers, callers, servers, and one fault.

    python staged_faults.py                 # a fault by chance: which one, it says only at the end
    python staged_faults.py dead-router     # this one

Prints where the routers and their consoles are, and the time from which on something is wrong. Find out what, with
`amqp-mesh stat problems`, `amqp-mesh top`, or the console in a browser. Ctrl-C ends all, and says what it was.

Needs the extra `http` for the consoles.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

import trio
from proton import Delivery, Event, Message
from proton.handlers import MessagingHandler
from proton.reactor import Container

from mesh_config.models import ConnectorSettings, HttpSettings, ListenerSettings, MeshSettings, Role, RouterSettings
from mesh_config.render import render_mesh
from router.cli.demo.children import Child, stop
from router.cli.demo.mesh import free_ports
from router.cli.management import ManagementClient, ManagementError

HOST = "127.0.0.1"
WIRE_HOST = "127.0.0.2"
ROUTERS = ("A", "B", "C", "D")
LINKS = (("A", "B"), ("B", "C"), ("C", "D"), ("A", "D"))
"""A square: whoever dies, the others have a way."""
SERVERS = {"billing-1": ("billing", "B"), "orders-1": ("orders", "C"), "search-1": ("search", "D")}
"""Address that each server serves, and its router."""
CALLERS = {"web-1": "A", "web-2": "C", "app-1": "B", "app-2": "D"}
CALLS_EACH_S = 0.1
WORK_S = 0.005
AT_ONCE = 10
"""Requests that a server takes before it has answered the first."""
START_S = 60.0


class Client(MessagingHandler):
    """One client in a thread of its own; it comes back by itself, at another router where its own is gone."""

    def __init__(self, name: str, urls: Sequence[str], **options: object) -> None:
        super().__init__(auto_settle=True, **options)
        self.urls = urls
        self.container = Container(self)
        self.container.container_id = name
        threading.Thread(target=self.container.run, daemon=True).start()

    def connect(self, event: Event) -> None:
        self.connection = event.container.connect(urls=self.urls, reconnect=[0.0, 0.2, 0.5, 1.0], heartbeat=10)


class Server(Client):
    """Answers requests one after the other, and settles each when it is done."""

    def __init__(self, name: str, urls: Sequence[str], address: str) -> None:
        self.address = address
        self.work_s = WORK_S
        self.waiting: deque[tuple[Delivery, Message]] = deque()
        super().__init__(name, urls, prefetch=0, auto_accept=False)

    def on_start(self, event: Event) -> None:
        self.connect(event)
        self.requests = event.container.create_receiver(self.connection, self.address)
        self.answers = event.container.create_sender(self.connection, None)

    def on_link_opened(self, event: Event) -> None:
        if event.receiver == self.requests:
            self.waiting.clear()  # what came by a connection before this one
            self.requests.flow(AT_ONCE)

    def on_message(self, event: Event) -> None:
        self.waiting.append((event.delivery, event.message))
        if len(self.waiting) == 1:
            event.container.schedule(self.work_s, self)

    def on_timer_task(self, event: Event) -> None:
        if not self.waiting:
            return
        delivery, request = self.waiting.popleft()
        if request.reply_to:
            self.answers.send(Message(address=request.reply_to, correlation_id=request.id, body="done"))
        self.accept(delivery)
        self.requests.flow(1)
        if self.waiting:
            event.container.schedule(self.work_s, self)


class Caller(Client):
    """Calls each service ten times a second, as long as it may."""

    def __init__(self, name: str, urls: Sequence[str]) -> None:
        self.calls = 0
        super().__init__(name, urls, prefetch=100)

    def on_start(self, event: Event) -> None:
        self.connect(event)
        self.answers = event.container.create_receiver(self.connection, None, dynamic=True)
        addresses = sorted({address for address, _ in SERVERS.values()})
        self.services = [event.container.create_sender(self.connection, each) for each in addresses]
        event.container.schedule(CALLS_EACH_S, self)

    def on_timer_task(self, event: Event) -> None:
        event.container.schedule(CALLS_EACH_S, self)
        reply_to = self.answers.remote_source.address
        for service in self.services:
            if service.credit and reply_to:
                self.calls += 1
                service.send(Message(id=self.calls, reply_to=reply_to, body="please"))


class Flood(Client):
    """Sends without end, faster than anybody takes it."""

    def __init__(self, name: str, urls: Sequence[str], address: str) -> None:
        self.address = address
        super().__init__(name, urls)

    def on_start(self, event: Event) -> None:
        self.connect(event)
        self.sender = event.container.create_sender(self.connection, None)

    def on_sendable(self, event: Event) -> None:
        while self.sender.credit and self.sender.queued < 10:
            self.sender.send(Message(address=self.address, body=b"x" * 20_000))


class Wire:
    """The way of one link: what connects to a port of 127.0.0.2 is carried to the same port of 127.0.0.1."""

    def __init__(self, link: tuple[str, str], port: int, folder: Path) -> None:
        self.link = link
        self._arguments = [port, HOST, port, WIRE_HOST]
        self._log = folder / "wire.log"
        self.join()

    def join(self) -> None:
        """Let connections through."""
        self._process = Child("wire", "router.cli.demo.cuttable_proxy", self._arguments, self._log)

    def cut(self) -> None:
        """End those that there are, and let none through."""
        self._process.kill()


class Mesh:
    """Four routers that run, with their clients."""

    def __init__(self, folder: Path, wired: tuple[str, str] | None, rng: random.Random) -> None:
        """Start it.

        Args:
            folder: for settings and logs.
            wired: the link that can be cut.
            rng: chooses ports.
        """
        ports = free_ports(rng)
        self.clients = {name: next(ports) for name in ROUTERS}
        self.neighbors = {name: next(ports) for name in ROUTERS}
        self.consoles = {name: next(ports) for name in ROUTERS}
        file = folder / "mesh.yaml"
        file.write_text(render_mesh(self._settings(wired)), encoding="utf-8")
        self.wire = Wire(wired, self.neighbors[wired[0]], folder) if wired is not None else None
        self.routers = {
            name: Child(f"router {name}", "router", ["run", file, "--router", name], folder / f"{name}.log")
            for name in ROUTERS
        }
        self.servers: dict[str, Server] = {}

    def _settings(self, wired: tuple[str, str] | None) -> MeshSettings:
        def connectors(name: str) -> Iterator[ConnectorSettings]:
            for target, dialler in LINKS:
                if dialler == name:
                    host = WIRE_HOST if (target, dialler) == wired else HOST
                    yield ConnectorSettings(to=target, host=host, port=self.neighbors[target], reconnect_max_s=1.0)

        def router(name: str) -> RouterSettings:
            # By the name of the host, whose every address leads there.
            host = "localhost" if wired is not None and wired[0] == name else HOST
            return RouterSettings(
                id=name,
                http=HttpSettings(port=self.consoles[name]),
                listeners=(
                    ListenerSettings(name="clients", host=HOST, port=self.clients[name]),
                    ListenerSettings(name="routers", host=host, port=self.neighbors[name], role=Role.INTER_ROUTER),
                ),
                connectors=tuple(connectors(name)),
            )

        return MeshSettings(name="practice", routers={name: router(name) for name in ROUTERS})

    def url(self, router: str) -> str:
        """Where clients attach."""
        return f"amqp://{HOST}:{self.clients[router]}"

    def urls(self, router: str) -> list[str]:
        """The same, then where they go when that is gone."""
        at = ROUTERS.index(router)
        return [self.url(each) for each in (*ROUTERS[at:], *ROUTERS[:at])]

    def wait_converged(self) -> None:
        """Wait until each router reaches every other."""
        end = time.monotonic() + START_S
        for name, child in self.routers.items():
            while reached(self.url(name)) < len(ROUTERS):
                if not child.is_alive:
                    sys.exit(child.ending())
                if time.monotonic() > end:
                    sys.exit(f"the routers did not find each other within {START_S:g} s")
                time.sleep(0.1)

    def attach_clients(self) -> None:
        """Set clients to work."""
        for name, (address, router) in SERVERS.items():
            self.servers[name] = Server(name, self.urls(router), address)
        for name, router in CALLERS.items():
            Caller(name, self.urls(router))


def reached(url: str) -> int:
    """Routers that one can reach, itself included; 0 when it does not answer."""
    try:
        with ManagementClient(url, timeout_s=2) as client:
            return sum(node["cost"] is not None for node in client.query("router.node", ["id", "cost"]))
    except ManagementError:
        return 0


# The faults: each begins, says in a sentence what it is, and gives the seconds until it goes on, if it does.

Course = tuple[str, Iterator[float]]


def slow_server(mesh: Mesh, rng: random.Random) -> Course:
    """Let one server need three seconds for each request."""
    name = rng.choice(sorted(SERVERS))
    address, router = SERVERS[name]
    mesh.servers[name].work_s = 3.0
    return f"slow server: {name}, at router {router}, takes 3 s for each request to {address}", iter(())


def dead_router(mesh: Mesh, rng: random.Random) -> Course:
    """Kill a router."""
    name = rng.choice(ROUTERS[1:])  # the first one is asked
    mesh.routers[name].kill()
    return f"dead router: the process of router {name} was killed", iter(())


def flapping_link(mesh: Mesh, rng: random.Random) -> Course:
    """Cut a link again and again."""
    assert mesh.wire is not None

    def flap(wire: Wire) -> Iterator[float]:
        while True:
            wire.cut()
            yield 1.5
            wire.join()
            yield rng.uniform(4, 6)

    return f"flapping link: {' - '.join(mesh.wire.link)} is cut for 1.5 s every few seconds", flap(mesh.wire)


def flooding_client(mesh: Mesh, rng: random.Random) -> Course:
    """Let a client send to a service as fast as it can."""
    address, router = rng.choice(sorted(SERVERS.values()))
    near = rng.choice([each for each in ROUTERS if each != router])
    Flood("batch-7", mesh.urls(near), address)
    return f"flooding client: batch-7, at router {near}, sends to {address} as fast as it can", iter(())


FAULTS = {
    "slow-server": slow_server,
    "dead-router": dead_router,
    "flapping-link": flapping_link,
    "flooding-client": flooding_client,
}


def announce(mesh: Mesh) -> None:
    """Print where everything is."""
    say("router  for AMQP clients and commands  console in a browser")
    for name in ROUTERS:
        say(f"{name:6}  {mesh.url(name):29}  http://{HOST}:{mesh.consoles[name]}/")
    say(f"clients: {', '.join(sorted((*SERVERS, *CALLERS)))}")
    say(f"export AMQP_MESH_URL={mesh.url(ROUTERS[0])}")


def say(words: str) -> None:
    """Print a line at once."""
    print(words, flush=True)


def play(mesh: Mesh, faults: Sequence[str], after_s: float, rng: random.Random) -> None:
    """Stage *faults*, once all has been well for *after_s* seconds, until Ctrl-C."""
    staged: list[Course] = []
    try:
        mesh.wait_converged()
        mesh.attach_clients()
        announce(mesh)
        time.sleep(after_s)
        staged += [FAULTS[fault](mesh, rng) for fault in faults]
        say(f"something is wrong from {time.strftime('%T')} on; Ctrl-C ends it, and says what it was")
        for _, course in staged:
            for pause_s in course:
                time.sleep(pause_s)
        signal.pause()
    except KeyboardInterrupt:
        for truth, _ in staged:
            say(f"It was a {truth}.")


def main() -> None:
    """Read the command line, play, and end all processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fault", nargs="*", help=f"of {', '.join(FAULTS)}; one by chance without it")
    parser.add_argument("--after", type=float, default=10.0, metavar="SECONDS", help="all is well before (10)")
    parser.add_argument("--seed", type=int, help="chooses the fault and its place, to repeat it")
    options = parser.parse_args()
    if unknown := [each for each in options.fault if each not in FAULTS]:
        parser.error(f"there is no fault {unknown[0]!r}, but {', '.join(FAULTS)}")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    rng = random.Random(options.seed)
    faults = options.fault or [rng.choice(sorted(FAULTS))]
    wired = rng.choice(LINKS) if "flapping-link" in faults else None
    with tempfile.TemporaryDirectory(prefix="amqp-mesh-practice-") as folder:
        mesh = Mesh(Path(folder), wired, rng)
        try:
            play(mesh, faults, options.after, rng)
        finally:
            # A second Ctrl-C must not keep the routers from being ended.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            trio.run(stop, list(mesh.routers.values()))
            if mesh.wire is not None:
                mesh.wire.cut()


if __name__ == "__main__":
    main()
