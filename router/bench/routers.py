"""Routers that the benchmark starts for itself: a line of processes on free ports of loopback."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import attrs

from mesh_config.generators import generate
from mesh_config.models import ListenerSettings, MeshSettings, Role
from mesh_config.render import render_mesh
from router.bench.cases import Path as Way
from router.bench.cases import hops_name
from router.bench.errors import BenchError
from router.child_processes import mortal

LOOPBACK: Final = "127.0.0.1"
START_S: Final = 120.0
"""Maximum time until a router has started, seconds: most of it for routers that a profiler runs slowly."""
STOP_S: Final = 8.0
LOOK_S: Final = 0.02
LAST_LINES: Final = 8
"""Number of lines of a log that a message shows."""
LINE_CHARS: Final = 2000
"""Maximum number of characters of each line that a message shows."""
COMMAND: Final = (sys.executable, "-m", "router")
_REACHED: Final = re.compile(r"event=router_reachable .*?\bremote=(\S+)")
_STARTED: Final = re.compile(r"event=started\b")
ROOT: Final = Path(__file__).parents[2]
"""Folder of the package: `python -m` looks there first, so routers run the very code that loads them."""


class RouterLine:
    """Routers R1, R2, ... each connected to the next; a context manager that leaves none behind.

    In a ring the last is connected to the first.
    """

    def __init__(
        self,
        count: int,
        folder: Path,
        *,
        command: Sequence[str] = COMMAND,
        environment: Mapping[str, str] | None = None,
        kind: str = "line",
    ) -> None:
        """Write the mesh file into *folder*, which exists; starts nothing.

        Args:
            count: number of routers, from 1.
            folder: of the mesh file and the logs.
            command: `amqp-mesh` by another name, words.
            environment: variables to set besides those of this process.
            kind: `line`, `ring`, or another of `mesh_config.generators`.
        """
        self.count = count
        self._folder = folder
        self._command = tuple(command)
        self._environment = {**os.environ, **(environment or {})}
        self._ports: list[socket.socket] = []
        self._routers: dict[str, subprocess.Popen[bytes]] = {}
        self._mesh = self._placed(generate(kind, count))
        self._file = folder / "mesh.yaml"
        self._file.write_text(render_mesh(self._mesh), encoding="utf-8")

    def __enter__(self) -> Self:
        """Start all and wait until they know each other.

        Raises: BenchError with the last lines of a log.
        """
        try:
            for key in self._mesh.routers:
                self._start(key)
            for key in self._mesh.routers:
                others = set(self._mesh.routers) - {key}
                self._wait(key, lambda log, others=others: _is_up(log, others))  # type: ignore[misc]
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop()

    def path(self, hops: int, name: str | None = None) -> Way:
        """The way from a sender at R1 to a receiver so many routers on, from 1."""
        keys = list(self._mesh.routers)[:hops]
        return Way(
            name=name or hops_name(hops),
            hops=hops,
            send_to=self._address(keys[0]),
            receive_from=self._address(keys[-1]),
            pids=tuple(self._routers[key].pid for key in keys),
        )

    def address(self, number: int) -> tuple[str, int]:
        """Host and port for clients of a router, counted from 0."""
        return self._address(list(self._mesh.routers)[number])

    def pids(self) -> Sequence[int]:
        """Processes of the routers, in their order."""
        return [process.pid for process in self._routers.values()]

    def check(self) -> None:
        """See that all still run.

        Raises: BenchError with the last lines of a log.
        """
        for key, process in self._routers.items():
            if process.poll() is not None:
                raise BenchError(f"router {key} ended with status {process.returncode}{self._log_end(key)}")

    # Its parts

    def _address(self, key: str) -> tuple[str, int]:
        listener = next(one for one in self._mesh.routers[key].listeners if one.role is Role.NORMAL)
        return LOOPBACK, listener.port

    def _start(self, key: str) -> None:
        with self._log_file(key).open("wb") as log:
            self._routers[key] = subprocess.Popen(
                mortal([*self._command, "run", str(self._file), "--router", key]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env=self._environment,
                process_group=0,  # an interrupt at the terminal is for the benchmark, which stops them
            )

    def _wait(self, key: str, is_up: Callable[[str], bool]) -> None:
        end = time.monotonic() + START_S
        while not is_up(self._log_file(key).read_text(encoding="utf-8", errors="replace")):
            self.check()
            if time.monotonic() > end:
                raise BenchError(f"router {key} was not up within {START_S:g} s{self._log_end(key)}")
            time.sleep(LOOK_S)

    def _stop(self) -> None:
        for process in self._routers.values():
            _signal_group(process, signal.SIGTERM)
        for process in self._routers.values():
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                pass
            _signal_group(process, signal.SIGKILL)
            process.wait()
        for port in self._ports:
            port.close()

    def _log_file(self, key: str) -> Path:
        return self._folder / f"{key}.log"

    def _log_end(self, key: str) -> str:
        lines = self._log_file(key).read_text(encoding="utf-8", errors="replace").splitlines()
        first = next((line for line in lines[:-LAST_LINES] if "level=error" in line), None)
        lines = [*([first] if first else []), *lines[-LAST_LINES:]]  # what follows an error says less of its cause
        short = [line if len(line) <= LINE_CHARS else line[:LINE_CHARS] + "..." for line in lines]
        return "; its log ends with:\n  " + "\n  ".join(short) if short else "; it has written nothing"

    def _placed(self, mesh: MeshSettings) -> MeshSettings:
        """Place a mesh on ports that the system gives to nobody else.

        A socket stays bound to each and never listens: the router's listener, which sets SO_REUSEADDR too, may bind it.
        """

        def free(listener: ListenerSettings) -> ListenerSettings:
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((LOOPBACK, 0))
            self._ports.append(sock)
            return attrs.evolve(listener, host=LOOPBACK, port=sock.getsockname()[1])

        routers = {
            key: attrs.evolve(router, listeners=tuple(map(free, router.listeners)))
            for key, router in mesh.routers.items()
        }
        for key, router in routers.items():
            connectors = []
            for connector in router.connectors:
                assert connector.to is not None
                target = next(one for one in routers[connector.to].listeners if one.role is Role.INTER_ROUTER)
                connectors.append(attrs.evolve(connector, host=LOOPBACK, port=target.port))
            routers[key] = attrs.evolve(router, connectors=tuple(connectors))
        return attrs.evolve(mesh, routers=routers)


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Signal a router and whatever its command has started, such as a profiler's program."""
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        pass  # all of them have ended


def _is_up(log: str, others: set[str]) -> bool:
    """Whether a router listens and reaches all *others*, as it logs it."""
    return _STARTED.search(log) is not None and others <= {found.strip("'\"") for found in _REACHED.findall(log)}
