"""The mesh of the demonstration as processes: started, watched, stopped."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs
import trio

from mesh_config.render import render_mesh, render_router
from router.cli.demo.blueprint import CUT, HOST, ROUTERS, by_wire, settings
from router.cli.demo.children import Child, stop
from router.cli.demo.reported_routes import Routes, from_json, is_full

PORTS = range(20000, 32000)
"""Below those that the system takes for outgoing connections."""
CONVERGED_S = 30.0
"""Time for the routers to start and find each other; about a second where nothing else is going on."""
WATCH_PAUSE_S = 0.1
ATTEMPTS = 3
"""Maximum number of attempts to start a mesh: another program may take a port between the search for it and its use."""


class DemoError(Exception):
    """Reason why the demonstration cannot go on, in words for its operator."""


@attrs.define(kw_only=True)
class Mesh:
    """Four routers that are running, each a process."""

    urls: Mapping[str, str]
    """URLs at which clients connect, by router."""
    routers: Mapping[str, Child]
    wire: Child | None
    """Relay that carries the link `CUT`, when it is to be cut."""
    watch: Child
    """Asks the routers for their routes; see `router.cli.demo.route_poller`."""

    @property
    def children(self) -> list[Child]:
        """All processes but the watch."""
        return [*self.routers.values(), *([self.wire] if self.wire is not None else [])]

    async def report(self) -> Routes:
        """The routes that the routers report next, several times a second.

        Raises:
            DemoError: the watch has ended.
        """
        line = await self.watch.line()
        if line is None:
            await self.watch.wait()
            raise DemoError(self.watch.ending())
        return from_json(json.loads(line)["routes"])

    async def converge(self) -> None:
        """Wait until every router reaches every other directly.

        Raises:
            DemoError: a process has ended, or it takes too long.
        """
        routes: Routes = {}
        with trio.move_on_after(CONVERGED_S):
            while not is_full(routes := await self.report(), ROUTERS):
                for child in self.children:
                    if not child.is_alive:
                        raise DemoError(child.ending())
            return
        silent = sorted(set(ROUTERS) - set(routes))
        about = f"no answer from {', '.join(silent)}" if silent else "a neighbor is missing"
        raise DemoError(f"the routers did not all find each other within {CONVERGED_S:g} s: {about}")

    async def stop(self) -> list[Child]:
        """End all processes. Returns: those that had to be killed."""
        self.watch.kill()
        return await stop(self.children)


async def start(folder: Path, *, with_wire: bool) -> Mesh:
    """Start the mesh and wait until it has converged.

    Args:
        folder: for settings and logs.
        with_wire: let the link `CUT` go through a process of its own.
    Raises:
        DemoError: it does not work, even with other ports.
    """
    for attempt in range(ATTEMPTS):
        mesh = _launch(folder, with_wire)
        try:
            await mesh.converge()
        except DemoError:
            await mesh.stop()
            if attempt == ATTEMPTS - 1 or all(child.process.returncode == 0 for child in mesh.children):
                raise
        except BaseException:
            with trio.CancelScope(shield=True):
                await mesh.stop()
            raise
        else:
            return mesh
    raise AssertionError("the last attempt returns or raises")


def _launch(folder: Path, with_wire: bool) -> Mesh:
    ports = free_ports(random.SystemRandom())
    clients = {router: next(ports) for router in ROUTERS}
    neighbors = {router: next(ports) for router in ROUTERS}
    mesh = settings(clients, neighbors)
    files = dict.fromkeys(ROUTERS, _write(folder / "mesh.yaml", render_mesh(mesh)))
    wire = None
    if with_wire:
        port, (target, router) = next(ports), CUT
        wire = Child(
            f"link {target}-{router}",
            "router.cli.demo.cuttable_proxy",
            [port, HOST, neighbors[target]],
            folder / "wire.log",
        )
        # A file of its own: in that of the whole mesh, a connector that leads to no listener is a fault.
        files[router] = _write(
            folder / f"router-{router}.yaml", render_router(by_wire(mesh.routers[router], port), with_defaults=False)
        )
    routers = {
        name: Child(f"router {name}", "router", ["run", file, "--router", name], folder / f"router-{name}.log")
        for name, file in files.items()
    }
    urls = {name: f"amqp://{HOST}:{clients[name]}" for name in ROUTERS}
    arguments = [WATCH_PAUSE_S, *(f"{name}={url}" for name, url in urls.items())]
    watch = Child("watch", "router.cli.demo.route_poller", arguments, folder / "watch.log", has_pipes=True)
    return Mesh(urls=urls, routers=routers, wire=wire, watch=watch)


def _write(file: Path, text: str) -> Path:
    file.write_text(text, encoding="utf-8")
    return file


def free_ports(rng: random.Random) -> Iterator[int]:
    """Choose ports of HOST that nobody listens on."""
    for port in rng.sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            # As the routers do: a port whose last connection is about to be forgotten is free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        yield port
