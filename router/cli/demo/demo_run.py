"""`amqp-mesh demo`: the mesh under load, and what becomes of the calls when a link is cut."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from pathlib import Path

import trio

from router.cli.demo.blueprint import CALLERS, CUT, SERVERS
from router.cli.demo.children import LOOK_S, Child, stop, until
from router.cli.demo.display_state import DisplayState
from router.cli.demo.measures import CUT_STREAM
from router.cli.demo.mesh import DemoError, Mesh, start
from router.cli.demo.reported_routes import path_text
from router.cli.demo.summary import faults, print_summary
from router.cli.demo.view import LiveView, PlainView, View
from router.cli.table_output_width import console

ATTACH_S = 60.0
"""Time for the clients to start, attach and make their first calls."""
LAST_CALLS_S = 12.0
"""Time for the last calls to end: their timeout is 4 to 5 s."""
LAST_CASTS_S = 5.0
"""Time for the last casts to arrive."""
LEAVE_S = 3.0
"""Time for the clients to close their connections."""
REFRESH_S = 0.25


async def show(folder: Path, *, seconds: float, rate: int, is_live: bool) -> int:
    """Run the demonstration.

    Args:
        folder: for settings and logs.
        seconds: time under load.
        rate: calls per second that each caller tries to make.
        is_live: redraw a picture of it; else write lines as things happen.
    Returns: exit status: 0 when all went as it should.
    Raises:
        DemoError: it could not be run to its end.
    """
    out = console()
    scene = DisplayState(seconds=seconds)
    view = LiveView(scene, out) if is_live else PlainView(scene, out)
    with view:
        await DemoRun(folder, scene, view, rate).run()
    found = faults(scene)
    print_summary(scene, found, out)
    return 1 if found else 0


class DemoRun:
    """One run."""

    def __init__(self, folder: Path, scene: DisplayState, view: View, rate: int) -> None:
        self._folder = folder
        self._scene = scene
        self._view = view
        self._rate = rate
        self._servers: list[Child] = []
        self._callers: list[Child] = []
        self._ready: set[str] = set()
        self._done: set[str] = set()
        """Names of the clients that said so."""
        self._may_end: set[Child] = set()
        """Processes whose end is no fault."""

    async def run(self) -> None:
        """Run the demonstration, from the start of the first router to the end of the last.

        Raises:
            DemoError: a process ended or something took too long.
        """
        self._view.say("starting routers A, B, C, D, each a neighbor of all others")
        mesh = await start(self._folder, with_wire=True)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._refresh)
                nursery.start_soon(self._watch_routes, mesh)
                nursery.start_soon(self._watch_children, mesh)
                self._view.say("the routers have found each other")
                await self._attach(mesh, nursery)
                await self._load(mesh)
                await self._finish()
                nursery.cancel_scope.cancel()
        finally:
            with trio.CancelScope(shield=True):
                await stop([*self._callers, *self._servers])
                await mesh.stop()

    # What goes on all the time

    async def _refresh(self) -> None:
        while True:
            self._view.refresh()
            await trio.sleep(REFRESH_S)

    async def _watch_routes(self, mesh: Mesh) -> None:
        while True:
            self._scene.routes = await mesh.report()

    async def _watch_children(self, mesh: Mesh) -> None:
        while True:
            for child in (*mesh.children, *self._servers, *self._callers):
                if not child.is_alive and child not in self._may_end:
                    raise DemoError(child.ending())
            await trio.sleep(LOOK_S)

    async def _listen_to_server(self, server: Child, name: str) -> None:
        measures = self._scene.measures
        while (line := await server.line()) is not None:
            report = json.loads(line)
            measures.casts.received[name].update(report.get("casts", ()))
            measures.fanouts.received[name].update(ident for ident in report.get("fanouts", ()) if ident != "attach")
            self._note_state(name, report)

    async def _listen_to_caller(self, caller: Child, router: str) -> None:
        measures = self._scene.measures
        while (line := await caller.line()) is not None:
            report = json.loads(line)
            measures.casts.sent.update(report.get("casts", ()))
            measures.fanouts.sent.update(report.get("fanouts", ()))
            for where, began, ended, server, error in report.get("calls", ()):
                measures.add_call(router, where, began, ended, server, error)
            self._note_state(CALLERS[router], report)

    def _note_state(self, name: str, report: dict[str, object]) -> None:
        if report.get("ready"):
            self._ready.add(name)
        if report.get("done"):
            self._done.add(name)

    # One after the other

    async def _attach(self, mesh: Mesh, nursery: trio.Nursery) -> None:
        for router, name in SERVERS.items():
            server = self._client("server", name, mesh.urls[router])
            self._servers.append(server)
            nursery.start_soon(self._listen_to_server, server, name)
        for router, name in CALLERS.items():
            caller = self._client("caller", name, mesh.urls[router], self._rate)
            self._callers.append(caller)
            nursery.start_soon(self._listen_to_caller, caller, router)
        self._view.say("starting oslo.messaging servers on A, D and callers on B, C, D")
        await self._until(lambda: self._ready, "attach and make a first call", ATTACH_S)

    def _client(self, kind: str, name: str, url: str, *more: object) -> Child:
        arguments = [kind, name, url, *more]
        return Child(name, "router.cli.demo.clients", arguments, self._folder / f"{name}.log", has_pipes=True)

    async def _load(self, mesh: Mesh) -> None:
        scene, measures = self._scene, self._scene.measures
        measures.began_at = time.monotonic()
        for caller in self._callers:
            caller.tell("go")
        self._view.say("calls, casts and fanout casts begin")
        await trio.sleep(scene.seconds / 2)
        scene.paths_before = scene.paths()
        assert mesh.wire is not None
        self._may_end.add(mesh.wire)
        measures.cut_at = time.monotonic()
        mesh.wire.kill()
        self._view.say(f"the link {CUT[0]}-{CUT[1]} is cut")
        with trio.move_on_after(scene.seconds / 2):
            await until(lambda: math.isfinite(measures.resumed_at) and len(scene.paths()[CUT_STREAM] or ()) > 2)
            way = path_text(scene.paths()[CUT_STREAM])
            self._view.say(f"{1000 * scene.resumed_s():.0f} ms after the cut: calls go by {way}")
        await trio.sleep(max(0.0, measures.began_at + scene.seconds - time.monotonic()))

    async def _finish(self) -> None:
        for caller in self._callers:
            caller.tell("stop")
        self._view.say("the callers stop")
        await self._until(lambda: self._done | set(SERVERS.values()), "end its last calls", LAST_CALLS_S)
        with trio.move_on_after(LAST_CASTS_S):
            await until(lambda: not self._scene.measures.is_missing())
        self._may_end.update(self._servers)  # one may end before the other has stopped
        for server in self._servers:
            server.tell("stop")
        await self._until(lambda: self._done, "stop", LAST_CALLS_S)
        self._may_end.update(self._callers)
        for caller in self._callers:
            caller.tell("leave")
        with trio.move_on_after(LEAVE_S):
            for child in (*self._callers, *self._servers):
                await child.wait()

    async def _until(self, names: Callable[[], set[str]], what: str, seconds: float) -> None:
        everybody = {*SERVERS.values(), *CALLERS.values()}
        with trio.move_on_after(seconds):
            await until(lambda: everybody <= names())
            return
        raise DemoError(f"{', '.join(sorted(everybody - names()))} did not {what} within {seconds:g} s")
