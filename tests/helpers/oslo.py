"""oslo.messaging for tests: worker processes that carry out orders, and meshes to attach them to.

    with OsloWorker() as worker:
        worker.do("open", transport="t", url=oslo_url(mesh, "A", "B", link_retry_delay=1))
        worker.do("serve", transport="t", topic="greetings", server="s1")
        calling = worker.begin("call", transport="t", topic="greetings", method="echo", args={"key": 1})
        assert calling.result(10) == ["s1", 1, ""]

The driver runs in the worker (`oslo_worker.py`) alone: what it warns of, and what it hangs in, stays there.
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

from mesh_config.models import ConnectorSettings, ListenerSettings, MeshSettings, Role, RouterSettings
from tests.helpers.processes import MeshProcesses, NotInTime, wait_until

WORKER = Path(__file__).with_name("oslo_worker.py")
ORDER_S = 60.0
"""Within which an order is carried out, unless the test says otherwise."""
START_S = 60.0

needs_oslo = pytest.mark.skipif(
    importlib.util.find_spec("oslo_messaging") is None and "AMQP_MESH_TEST_INSTALLED" not in os.environ,
    reason="needs the extra `demo`",
)

Record = dict[str, Any]
"""One call of a load: key, server, outcome (`ok`, `wrong` or an error's name), began and ended (seconds, monotonic)."""


# Meshes


def mesh_of(links: Mapping[str, Mapping[str, int]], *, listener: ListenerSettings | None = None) -> MeshSettings:
    """Routers by id, each with the cost to the earlier ones that it connects to. *listener* is that of clients."""
    routers = {
        key: RouterSettings(
            id=key,
            listeners=(
                listener or ListenerSettings(name="clients"),
                ListenerSettings(name="routers", role=Role.INTER_ROUTER),
            ),
            connectors=tuple(
                ConnectorSettings(to=to, cost=cost, reconnect_max_s=1.0) for to, cost in neighbors.items()
            ),
        )
        for key, neighbors in links.items()
    }
    return MeshSettings(name="oslo", routers=routers)


LINE: Mapping[str, Mapping[str, int]] = {"A": {}, "B": {"A": 1}}
FULL: Mapping[str, Mapping[str, int]] = {"A": {}, "B": {"A": 1}, "C": {"A": 1, "B": 1}, "D": {"A": 1, "B": 1, "C": 1}}
SQUARE: Mapping[str, Mapping[str, int]] = {"A": {}, "B": {"A": 1}, "C": {"B": 1}, "D": {"A": 5, "C": 5}}
"""A - B - C is the way from A to C; by D it costs five times as much."""


def oslo_url(mesh: MeshProcesses, *routers: str, vhost: str = "", **options: object) -> str:
    """Transport URL of these routers, in this order, with driver options in its query."""
    hosts = ",".join(mesh.url(router).removeprefix("amqp://") for router in routers)
    return hosts_url(hosts, vhost=vhost, **options)


def hosts_url(hosts: str, *, vhost: str = "", **options: object) -> str:
    """The same of `host:port,host:port`. Pauses are the shortest that the driver has, unless given."""
    chosen = {"link_retry_delay": 1, "connection_retry_interval": 1, **options}
    return f"amqp://{hosts}/{vhost}?" + "&".join(f"{key}={value}" for key, value in chosen.items())


def attached_to(mesh: MeshProcesses, container: str) -> list[str]:
    """Routers that run and have a connection of the transport whose `container_name` is *container*, as they log it."""
    found = []
    for key in mesh.running:
        changes = [
            line.event for line in mesh[key].log_lines() if line.fields.get("container", "").startswith(container)
        ]
        if changes.count("connection_opened") > changes.count("connection_closed"):
            found.append(key)
    return found


def connections_of(mesh: MeshProcesses, container: str) -> int:
    """How often that transport has connected to routers that run."""
    return sum(
        line.fields["container"] == container
        for key in mesh.running
        for line in mesh[key].log_lines("connection_opened")
    )


# Workers


class OsloError(Exception):
    """What an order raised in the worker."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        super().__init__(f"{answer['error']}: {answer['message']}\n{answer['traceback']}")
        self.name: str = answer["error"]
        self.module: str = answer["module"]
        self.message: str = answer["message"]


class Order:
    """One order under way."""

    def __init__(self, worker: OsloWorker, text: str) -> None:
        self._worker = worker
        self._text = text
        self._answers: queue.Queue[Mapping[str, Any]] = queue.Queue()
        self.answered_at: float | None = None

    def put(self, answer: Mapping[str, Any]) -> None:
        """The worker's answer is there."""
        self.answered_at = time.monotonic()
        self._answers.put(answer)

    @property
    def is_done(self) -> bool:
        """Whether `result` returns at once."""
        return self.answered_at is not None

    def result(self, timeout_s: float = ORDER_S) -> Any:
        """What the order returned.

        Raises:
            OsloError: what it raised.
            NotInTime: there is no answer; the worker's log is in the message.
        """
        try:
            answer = self._answers.get(timeout=timeout_s)
        except queue.Empty:
            raise NotInTime(f"no answer within {timeout_s:g} s: {self._text}\n{self._worker.log()[-3000:]}") from None
        self._answers.put(answer)
        if "error" in answer:
            raise OsloError(answer)
        return answer["value"]


class OsloWorker:
    """A process with oslo.messaging in it; a context manager that leaves none behind."""

    def __init__(self, log: Path, *arguments: str) -> None:
        """Start it; its warnings and errors go to the file *log*."""
        self._log = log
        self._orders: dict[int, Order] = {}
        self._numbers = itertools.count(1)
        ready = self._orders[0] = Order(self, "start")
        with log.open("ab") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "ignore", str(WORKER), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._ready = ready

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()
        if kind is not None:
            print(f"--- {self._log.name}\n{self.log()[-6000:]}")  # pytest shows it with the failure

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            answer = json.loads(line)
            self._orders.pop(answer["id"]).put(answer)

    def begin(self, what: str, **arguments: Any) -> Order:
        """Give an order; a public method of `oslo_worker.Worker`."""
        self._ready.result(START_S)
        number = next(self._numbers)
        order = self._orders[number] = Order(self, f"{what} {arguments}"[:300])
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"id": number, "do": what, **arguments}) + "\n")
        self.process.stdin.flush()
        return order

    def do(self, what: str, *, within_s: float = ORDER_S, **arguments: Any) -> Any:
        """Give an order and wait for its result."""
        return self.begin(what, **arguments).result(within_s)

    def log(self) -> str:
        """What the driver and Python complained of."""
        return self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""

    def kill(self) -> None:
        """SIGKILL, and wait until the process is gone."""
        self.process.kill()
        self.process.wait(10)
        self._reader.join(10)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass  # an order that it never read

    # What many tests need

    def keys(self, name: str, method: str) -> list[Any]:
        """Keys of the requests of *method* that the server or listener *name* got, in their order."""
        return [key for called, key, _ in self.do("seen", name=name) if called == method]

    def wait_keys(self, name: str, method: str, wanted: set[Any], timeout_s: float = 15.0) -> list[Any]:
        """The same once all of *wanted* are there."""
        wait_until(
            lambda: wanted <= set(self.keys(name, method)),
            lambda: f"{name} got {method} of {sorted(wanted)[:10]}, has {self.keys(name, method)[:10]}",
            timeout_s,
        )
        return self.keys(name, method)


def open_at(worker: OsloWorker, mesh: MeshProcesses, router: str, others: str, **options: object) -> str:
    """Open a transport with several hosts that is attached to the first of them. Returns its name.

    The driver begins with any of its hosts; it is opened anew until that is *router*. *others* are ids of one letter.
    """
    for _ in range(100):  # of three or four hosts, one by chance
        name = f"transport-{next(_TRANSPORTS)}"
        url = oslo_url(mesh, router, *others, container_name=name, **options)
        worker.do("open", transport=name, url=url)
        # the driver connects when it is used first
        worker.do("cast", transport=name, topic="nobody", method="note", args={"key": 0}, timeout=1)
        wait_until(lambda name=name: bool(attached_to(mesh, name)), f"{name} is attached", 10)  # type: ignore[misc]
        if attached_to(mesh, name) == [router]:
            return name
        worker.do("cleanup", transport=name)
    raise NotInTime(f"the driver never began with {router}")


_TRANSPORTS = itertools.count(1)


def wait_fanout(callers: OsloWorker, transport: str, topic: str, servers: OsloWorker, names: list[str]) -> None:
    """Wait until a fanout cast reaches all servers: every link of theirs is known at the callers' router then.

    Each leaves the key of a `note` or more behind at the servers, `probe-<transport>-<number>`.
    """
    numbers = itertools.count()
    keys: list[str] = []

    def missing(key: str) -> list[str]:
        return [name for name in names if key not in servers.keys(name, "note")]

    def reaches_all() -> bool:
        # Each has its own router between, so one may be later than another, for each cast.
        keys.append(key := f"probe-{transport}-{next(numbers)}")
        callers.do("cast", transport=transport, topic=topic, method="note", args={"key": key}, fanout=True)
        try:
            wait_until(lambda: not missing(key), key, 2)
        except NotInTime:
            return False
        return True

    def what() -> str:
        return f"a fanout cast on {transport} reaches all, missing are { {key: missing(key) for key in keys} }"

    wait_until(reaches_all, what, 20)


def outcomes(records: list[Record]) -> dict[str, int]:
    """How many calls of a load ended in which outcome."""
    counts: dict[str, int] = {}
    for record in records:
        counts[record["outcome"]] = counts.get(record["outcome"], 0) + 1
    return dict(sorted(counts.items()))
