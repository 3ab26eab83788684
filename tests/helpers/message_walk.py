"""Messages from a router to the next with their outcomes, then a neighbor that ends: which modules they pass.

Run interpreted; a profile function does not see compiled code. Prints for each round of the poller the modules that
were entered, in the order of the calls, one line for each round.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from types import FrameType

import trio
from proton import Event, Message
from proton.handlers import MessagingHandler
from proton.reactor import Container

import router
from mesh_config.models import ConnectorSettings, ListenerSettings, Role, RouterSettings
from router.daemon import Daemon

ROOT = str(Path(router.__file__).parent)
POLLER = "router/net/poller.py"
PATHS = "router/core/linkstate/spf.py"
ADDRESS = "orders"
MESSAGES = 3
"""The first ones find circuits that are still being made."""
LIMIT_S = 30


class Rounds:
    """Notes which modules each round enters."""

    def __init__(self) -> None:
        self.found: list[list[str]] = []
        self.has_computed = trio.Event()
        """A round has computed paths."""
        self._round: list[str] | None = None

    def profile(self, frame: FrameType, event: str, argument: object) -> None:
        """What `sys.setprofile` calls."""
        file = frame.f_code.co_filename
        if event not in ("call", "return") or not file.startswith(ROOT):
            return
        name = "router" + file.removeprefix(ROOT)
        if frame.f_code.co_name == "_serve" and name == POLLER:
            if event == "return" and self._round is not None:
                self.found.append(self._round)
                if PATHS in self._round:
                    self.has_computed.set()
            self._round = [] if event == "call" else None
        if self._round is not None and event == "call" and self._round[-1:] != [name]:
            self._round.append(name)


class Talk(MessagingHandler):
    """A client of each router: messages from the first one's to the second one's, one after the other."""

    def __init__(self, *ports: int) -> None:
        super().__init__(prefetch=10)
        self._ports = ports
        self._sent = self._settled = 0

    def on_start(self, event: Event) -> None:
        attaches = (event.container.create_sender, event.container.create_receiver)
        for port, attach in zip(self._ports, attaches, strict=True):
            attach(event.container.connect(f"127.0.0.1:{port}"), ADDRESS)

    def on_sendable(self, event: Event) -> None:
        if self._sent == self._settled < MESSAGES:
            self._sent += 1
            event.sender.send(Message("hello"))

    def on_settled(self, event: Event) -> None:
        self._settled += 1
        if self._settled == MESSAGES:
            event.container.stop()
        elif event.link.credit:
            self.on_sendable(event)


async def run(daemon: Daemon, scope: trio.CancelScope, *, task_status: trio.TaskStatus[None]) -> None:
    """Run a router that can be ended."""
    with scope:
        await daemon.run(task_status=task_status)


async def main() -> None:
    """Three routers in a line, B, A and C; messages from A to B; then C ends."""
    daemons: list[Daemon] = []
    scopes = [trio.CancelScope() for _ in range(3)]
    rounds = Rounds()
    async with trio.open_nursery() as nursery:
        for name, scope in zip("BAC", scopes, strict=True):
            listeners = tuple(ListenerSettings(port=0, role=role) for role in (Role.NORMAL, Role.INTER_ROUTER))
            connectors = tuple(
                ConnectorSettings(host="127.0.0.1", port=before.listeners[1].port, role=Role.INTER_ROUTER)
                for before in daemons[-1:]
            )
            daemons.append(Daemon(RouterSettings(id=name, listeners=listeners, connectors=connectors)))
            await nursery.start(partial(run, daemons[-1], scope))
        talk = Talk(daemons[1].listeners[0].port, daemons[0].listeners[0].port)
        sys.setprofile(rounds.profile)
        await trio.to_thread.run_sync(Container(talk).run)
        rounds.has_computed = trio.Event()
        scopes[2].cancel()
        with trio.fail_after(LIMIT_S):
            await rounds.has_computed.wait()
        sys.setprofile(None)
        nursery.cancel_scope.cancel()
    for modules in rounds.found:
        print(*modules)


if __name__ == "__main__":
    trio.run(main)
