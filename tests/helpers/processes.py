"""Real router processes for tests: a mesh of them on loopback, each with its log; killed, stopped and started again.

    with MeshProcesses(generate("ring", 3), tmp_path) as mesh:
        mesh.start()
        mesh.wait_converged()
        client = BlockingConnection(mesh.url("R1"))
        mesh.kill("R2")
        mesh.wait_converged()
        mesh.start("R2")

The ports of the settings do not matter: each listener gets a free one, which stays its own until the mesh is closed,
also while its router is dead.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import attrs
import networkx as nx

from mesh_config.graph import topology
from mesh_config.models import ListenerSettings, MeshSettings, Role, RouterSettings
from mesh_config.render import render_mesh, render_router
from router.cli.management import ManagementClient
from router.cli.management_errors import ManagementError

LOOPBACK = "127.0.0.1"
START_S = 60.0
"""How long a router may take until it listens; importing everything takes most of it."""
CONVERGE_S = 60.0
STOP_S = 15.0
POLL_S = 0.02
NO_REASON = re.compile(r' reason=(""|\s|$)')
"""In a line of the log that leaves whoever reads it to guess."""
COMMAND = (sys.executable, "-m", "router")
"""What a router is started with, unless it is said."""


class NotInTime(AssertionError):
    """Something that a test waited for did not happen; the message has the ends of the logs."""


def wait_until(is_so: Callable[[], bool], what: Callable[[], str] | str, timeout_s: float) -> float:
    """Look every 20 ms whether *is_so*, for at most *timeout_s*. Returns the seconds that it took.

    Raises: NotInTime with *what* was waited for.
    """
    began = time.monotonic()
    while not is_so():
        if time.monotonic() - began > timeout_s:
            raise NotInTime(f"not within {timeout_s:g} s: {what if isinstance(what, str) else what()}")
        time.sleep(POLL_S)
    return time.monotonic() - began


class ReservedPort:
    """A free port of loopback that the system gives to nobody else until `close`.

    The socket stays bound and never listens: others that set SO_REUSEADDR, as the router's listeners do, may bind the
    same port and listen there, while neither port 0 nor an outgoing connection is given it.
    """

    def __init__(self) -> None:
        self._sock = socket.socket()
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._sock.bind((LOOPBACK, 0))
        self.number: int = self._sock.getsockname()[1]

    def close(self) -> None:
        """Give the port back."""
        self._sock.close()


@attrs.frozen
class LogLine:
    """One line of a router's log."""

    event: str
    level: str
    fields: dict[str, str]
    """All of its fields, as text."""


def parse_log(text: str) -> Iterator[LogLine]:
    """Lines of a log in `key=value` form; what is none, such as a traceback, is left out."""
    for line in text.splitlines():
        try:
            words = [word.partition("=") for word in shlex.split(line)]
        except ValueError:
            continue
        fields = {key: value for key, equals, value in words if equals}
        if "event" in fields:
            yield LogLine(fields["event"], fields.get("level", ""), fields)


class RouterProcess:
    """One router of a mesh file, running or not. Its log is kept over restarts, in one file."""

    def __init__(
        self,
        settings: RouterSettings,
        file: Path,
        log: Path,
        arguments: Sequence[str] = (),
        command: Sequence[str] = COMMAND,
    ) -> None:
        self.settings = settings
        self.log_file = log
        self._file = file
        self._arguments = arguments
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0
        self._lines: list[LogLine] = []
        """Since the last start,"""
        self._parsed = 0
        """as far as the log was parsed."""

    def start(self) -> None:
        """Start it, without waiting until it listens."""
        assert not self.is_running, f"router {self.settings.id} runs already"
        self._forget()
        self._log_start = self._parsed = self.log_file.stat().st_size if self.log_file.exists() else 0
        self._lines = []
        command = [*self._command, "run", str(self._file), "--router", self.settings.id]
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *self._arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Of the running process."""
        assert self._process is not None
        return self._process.pid

    def url(self, role: Role = Role.NORMAL, index: int = 0) -> str:
        """Of its listener number *index*, from 0, of those with *role*."""
        listeners = [listener for listener in self.settings.listeners if listener.role is role]
        return f"amqp://{listeners[index].host}:{listeners[index].port}"

    def log_text(self, *, whole: bool = False) -> str:
        """What it has logged since its last start, or since the first one (*whole*)."""
        if not self.log_file.exists():
            return ""
        with self.log_file.open("rb") as log:
            log.seek(0 if whole else self._log_start)
            return log.read().decode(errors="replace")

    def log_lines(self, event: str | None = None) -> list[LogLine]:
        """Whole lines since its last start, of one event if *event* is given."""
        self._parse_new()
        return [line for line in self._lines if event is None or line.event == event]

    def _parse_new(self) -> None:
        # Whoever waits for a line asks every 20 ms, and to parse a line takes long.
        if not self.log_file.exists():
            return
        with self.log_file.open("rb") as log:
            log.seek(self._parsed)
            whole, newline, _ = log.read().rpartition(b"\n")
        self._parsed += len(whole) + len(newline)
        self._lines += parse_log(whole.decode(errors="replace"))

    def wait_log(self, event: str, timeout_s: float = START_S) -> LogLine:
        """The first line of that event since its last start, once it is there."""
        wait_until(
            lambda: bool(self.log_lines(event)) or not self.is_running,
            lambda: f"router {self.settings.id} logs {event}:\n{self.log_text()[-3000:]}",
            timeout_s,
        )
        lines = self.log_lines(event)
        if not lines:
            raise NotInTime(f"router {self.settings.id} ended before it logged {event}:\n{self.log_text()[-3000:]}")
        return lines[0]

    def wait_connect_failed(self, reason: str, timeout_s: float = START_S) -> None:
        """Wait until a connector failed for a reason that begins so. It may have dialled before anybody listened."""
        wait_until(
            lambda: any(line.fields["reason"].startswith(reason) for line in self.log_lines("connect_failed")),
            lambda: f"{reason!r} in the log of {self.settings.id}:\n{self.log_text()[-3000:]}",
            timeout_s,
        )

    def wait_started(self, timeout_s: float = START_S) -> None:
        """Wait until every listener listens."""
        self.wait_log("started", timeout_s)
        ports = {int(line.fields["port"]) for line in self.log_lines("listening")}
        assert ports == {listener.port for listener in self.settings.listeners}

    # Ending

    def kill(self) -> None:
        """SIGKILL, and wait until the process is gone."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(STOP_S)
        self._forget()

    def send_signal(self, number: signal.Signals) -> None:
        """Any signal, SIGSTOP for instance."""
        assert self._process is not None
        self._process.send_signal(number)

    def terminate(self, timeout_s: float = STOP_S) -> int:
        """SIGTERM, once, and `wait_ended`."""
        self.send_signal(signal.SIGTERM)
        return self.wait_ended(timeout_s)

    def wait_ended(self, timeout_s: float = STOP_S) -> int:
        """The exit code, negative for a signal; a router that does not end in time is killed and the test fails."""
        assert self._process is not None
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise NotInTime(f"router {self.settings.id} did not end:\n{self.log_text()[-3000:]}") from None
        self._process = None
        return code

    def _forget(self) -> None:
        if self._process is not None:
            self._process.wait(STOP_S)
            self._process = None


class MeshProcesses:
    """The routers of a mesh as processes; a context manager that leaves none behind."""

    def __init__(
        self,
        mesh: MeshSettings,
        folder: Path,
        *,
        log_level: str | None = None,
        command: Sequence[str] = COMMAND,
        through: Callable[[str, str, int], int] | None = None,
    ) -> None:
        """Reserve the ports and write the mesh file into *folder*; starts nothing.

        Args:
            command: `amqp-mesh` by another name, to run the routers of another installation.
            through: port of loopback to which a router connects in place of another one's listener; called with both
                ids and the listener's port. Each router has a file of its own then: in that of a mesh, a connector
                that leads to no listener is a fault.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._ports: list[ReservedPort] = []
        self.settings = self._with_ports(mesh)
        self.file = folder / "mesh.yaml"
        self._files = dict.fromkeys(self.settings.routers, self.file)
        self._ways: dict[str, list[int]] = {}
        if through is not None:
            for key, router in self.settings.routers.items():
                self._files[key] = folder / f"{key}.yaml"
                self._ways[key] = [through(key, str(one.to), one.port) for one in router.connectors]
        self._write()
        arguments = ("--log-level", log_level) if log_level is not None else ()
        self.routers = {
            key: RouterProcess(router, self._files[key], folder / f"{key}.log", arguments, command)
            for key, router in self.settings.routers.items()
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
        if kind is not None:
            print(self.logs())  # pytest shows it with the failure
            return
        unexplained = [line for router in self.routers.values() for line in router.log_text(whole=True).splitlines()
                       if NO_REASON.search(line)]  # fmt: skip
        assert not unexplained, f"a line without its reason: {unexplained[0]}"

    def __getitem__(self, router: str) -> RouterProcess:
        return self.routers[router]

    def _write(self) -> None:
        self.file.write_text(render_mesh(self.settings), encoding="utf-8")
        for key, ports in self._ways.items():
            router = self.settings.routers[key]
            connectors = tuple(
                attrs.evolve(one, to=None, port=port) for one, port in zip(router.connectors, ports, strict=True)
            )
            text = render_router(attrs.evolve(router, connectors=connectors), with_defaults=False)
            self._files[key].write_text(text, encoding="utf-8")

    def change(self, router: RouterSettings) -> None:
        """Let one router have other settings from its next start on; listeners and connectors stay as they are."""
        self.settings = attrs.evolve(self.settings, routers={**self.settings.routers, router.id: router})
        self._write()

    # Running

    def start(self, *ids: str, wait: bool = True) -> None:
        """Start these routers, or all that don't run, and wait until they listen. After `kill` it is a restart."""
        chosen = ids or tuple(key for key, router in self.routers.items() if not router.is_running)
        for key in chosen:
            self.routers[key].start()
        if wait:
            for key in chosen:
                self.routers[key].wait_started()

    def url(self, router: str) -> str:
        """Where clients attach to *router*."""
        return self.routers[router].url()

    @property
    def running(self) -> list[str]:
        """Ids of the routers that run, sorted."""
        return sorted(key for key, router in self.routers.items() if router.is_running)

    def kill(self, router: str) -> None:
        """SIGKILL one router."""
        self.routers[router].kill()

    def terminate(self, *ids: str) -> dict[str, int]:
        """SIGTERM to these routers, or to all that run, at once. Returns their exit codes."""
        chosen = ids or tuple(self.running)
        for key in chosen:
            self.routers[key].send_signal(signal.SIGTERM)
        return {key: self.routers[key].wait_ended() for key in chosen}

    def close(self) -> None:
        """Kill what still runs and give the ports back."""
        for router in self.routers.values():
            if router.is_running:
                router.kill()
        for port in self._ports:
            port.close()

    # Looking

    def distances(self) -> dict[str, dict[str, int]]:
        """Cost from each running router to each that it should reach, itself included, in the mesh of running ones."""
        graph = topology(self.settings).subgraph(self.running)
        lengths = nx.all_pairs_dijkstra_path_length(graph, weight="cost")
        return {one: {other: int(cost) for other, cost in costs.items()} for one, costs in lengths}

    def costs(self, router: str) -> dict[str, int]:
        """Cost from *router* to each that it can reach, itself included, as it says over management."""
        with ManagementClient(self.url(router), timeout_s=2) as client:
            nodes = client.query("router.node", ["id", "cost"])
        return {node["id"]: node["cost"] for node in nodes if node["cost"] is not None}

    def reachable(self, router: str) -> set[str]:
        """The other routers that *router* can reach, as it logs it."""
        found: set[str] = set()
        for line in self.routers[router].log_lines():
            if line.event == "router_reachable":
                found.add(line.fields["remote"])
            elif line.event == "router_unreachable":
                found.discard(line.fields["remote"])
        return found

    def wait_converged(self, timeout_s: float = CONVERGE_S) -> float:
        """Wait until every running router reaches exactly those that it should, at the lowest cost.

        Returns: the seconds that it took.
        """

        def has_converged() -> bool:
            distances = self.distances()
            if any(self.reachable(one) != set(others) - {one} for one, others in distances.items()):
                return False
            try:
                return all(self.costs(one) == others for one, others in distances.items())
            except ManagementError:
                return False  # it is busy, or just ending

        return wait_until(has_converged, lambda: "the mesh has converged\n" + self.logs(), timeout_s)

    def logs(self, *, tail: int = 4000) -> str:
        """The ends of all logs, in characters, for a message."""
        return "\n".join(
            f"--- {key} ({'running' if router.is_running else 'not running'})\n{router.log_text(whole=True)[-tail:]}"
            for key, router in self.routers.items()
        )

    def _with_ports(self, mesh: MeshSettings) -> MeshSettings:
        def placed(listener: ListenerSettings) -> ListenerSettings:
            port = ReservedPort()
            self._ports.append(port)
            return attrs.evolve(listener, host=LOOPBACK, port=port.number)

        routers = {
            key: attrs.evolve(router, listeners=tuple(map(placed, router.listeners)))
            for key, router in mesh.routers.items()
        }
        for key, router in routers.items():
            connectors = []
            for connector in router.connectors:
                assert connector.to is not None, "connectors name their target by `to`, since ports are given here"
                target = next(one for one in routers[connector.to].listeners if one.role is Role.INTER_ROUTER)
                connectors.append(attrs.evolve(connector, host=LOOPBACK, port=target.port))
            routers[key] = attrs.evolve(router, connectors=tuple(connectors))
        return attrs.evolve(mesh, routers=routers)


def without_idle_timeout(settings: MeshSettings) -> MeshSettings:
    """A mesh that asks nobody for heartbeats: clients of tests give some only while a test waits for them."""
    routers = {
        key: attrs.evolve(router, listeners=tuple(attrs.evolve(each, idle_timeout_s=0.0) for each in router.listeners))
        for key, router in settings.routers.items()
    }
    return attrs.evolve(settings, routers=routers)


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """Memory of a process that is in RAM."""
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def peak_bytes(pid: int) -> int:
    """The most memory of a process that was in RAM at any time."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024
