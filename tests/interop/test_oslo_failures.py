"""oslo.messaging while clients and routers die: who needs the dead one hears of it once, nobody else notices."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import attrs
import pytest

from tests.helpers.oslo import (
    FULL,
    LINE,
    SQUARE,
    OsloError,
    OsloWorker,
    Record,
    attached_to,
    hosts_url,
    mesh_of,
    needs_oslo,
    open_at,
    oslo_url,
    outcomes,
    wait_fanout,
)
from tests.helpers.processes import LOOPBACK, MeshProcesses, parse_log, wait_until
from tests.helpers.relay import Relay

pytestmark = [pytest.mark.interop, needs_oslo]

MB = 1000 * 1000
FATAL = ("Fatal unhandled", "Traceback")
"""What the driver logs when its thread ends, and when it was given a message that it cannot read."""
IN_FLIGHT_S = 4.0
"""Deadline of calls under load: one whose reply died with a router ends so late."""

NewWorker = Callable[[str], OsloWorker]
NewMesh = Callable[..., MeshProcesses]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def new_worker(stack: ExitStack, tmp_path: Path) -> NewWorker:
    """Makes workers; they are killed when the test is over."""
    return lambda name: stack.enter_context(OsloWorker(tmp_path / f"{name}.log"))


@pytest.fixture
def new_mesh(stack: ExitStack, tmp_path: Path) -> NewMesh:
    """Makes a converged mesh."""

    def make(links: dict[str, dict[str, int]], **changes: float) -> MeshProcesses:
        settings = mesh_of(links)
        routers = {name: attrs.evolve(router, **changes) for name, router in settings.routers.items()}
        mesh = stack.enter_context(MeshProcesses(attrs.evolve(settings, routers=routers), tmp_path / "mesh"))
        mesh.start()
        mesh.wait_converged()
        stack.callback(lambda: check_logs(mesh))
        return mesh

    return make


def check_logs(mesh: MeshProcesses) -> None:
    texts = (router.log_text(whole=True) for router in mesh.routers.values())
    faults = [line.fields["exception"] for text in texts for line in parse_log(text) if "exception" in line.fields]
    assert faults == []


def call(worker: OsloWorker, transport: str, topic: str, key: object, **arguments: object) -> object:
    """A call of `echo`, and what it returned."""
    return worker.do("call", transport=transport, topic=topic, method="echo", args={"key": key}, **arguments)


# Messages that expired in the client


def test_sends_that_expire_without_credit_reach_no_server_and_cost_it_no_credit(
    new_mesh: NewMesh, new_worker: NewWorker
) -> None:
    """Each is a settled transfer of no bytes when credit comes. There are more of them than a publisher's window has
    messages, and the server grants five: one lost for each would end its service at once."""
    servers, callers, mesh = new_worker("servers"), new_worker("callers"), new_mesh(LINE)
    callers.do("open", transport="B", url=oslo_url(mesh, "B"))
    records = callers.do("burst", transport="B", topic="expired", count=300, prefix="call", timeout=1)
    assert outcomes(records) == {"MessagingTimeout": 300}
    servers.do("open", transport="A", url=oslo_url(mesh, "A", rpc_server_credit=5))
    servers.do("serve", transport="A", topic="expired", server="expired")
    records = callers.do("burst", transport="B", topic="expired", count=100, prefix="fresh")
    assert outcomes(records) == {"ok": 100}
    assert sorted(servers.keys("expired", "echo")) == sorted(record["key"] for record in records)
    assert not any(word in servers.log() for word in FATAL)


# Clients that die in the middle of a message


@pytest.mark.parametrize("where", [pytest.param("A", marks=pytest.mark.slow), "B"])
def test_a_caller_that_dies_in_the_middle_of_a_request_takes_no_server_with_it(
    new_mesh: NewMesh, new_worker: NewWorker, stack: ExitStack, where: str
) -> None:
    """At the router of the server, and at another one, which streams the parts on before it dies."""
    servers, callers, dying, mesh = *map(new_worker, ("servers", "callers", "dying")), new_mesh(LINE)
    servers.do("open", transport="A", url=oslo_url(mesh, "A"))
    servers.do("serve", transport="A", topic="half", server="half")
    proxy = stack.enter_context(Relay(port_of(mesh, where), limit=MB))
    dying.do("open", transport="p", url=hosts_url(f"{LOOPBACK}:{proxy.port}", container_name="dying"))
    dying.begin("upload", transport="p", topic="half", size=8 * MB, key="half a request")
    assert proxy.is_stalled.wait(20)
    dying.kill()
    proxy.cut()
    wait_until(lambda: attached_to(mesh, "dying") == [], "its connection is gone", 10)
    callers.do("open", transport="B", url=oslo_url(mesh, "B"))
    assert outcomes(callers.do("burst", transport="B", topic="half", count=50, prefix="b")) == {"ok": 50}
    assert callers.do("upload", transport="B", topic="half", size=MB, key="a whole request")
    assert servers.keys("half", "digest") == ["a whole request"]
    assert not any(word in servers.log() for word in FATAL)


def test_a_router_that_dies_in_the_middle_of_a_request_takes_no_server_with_it(
    new_mesh: NewMesh, new_worker: NewWorker, stack: ExitStack
) -> None:
    servers, callers, mesh = new_worker("servers"), new_worker("callers"), new_mesh(LINE)
    servers.do("open", transport="A", url=oslo_url(mesh, "A"))
    servers.do("serve", transport="A", topic="half", server="half")
    proxy = stack.enter_context(Relay(port_of(mesh, "B"), limit=MB))
    callers.do("open", transport="p", url=hosts_url(f"{LOOPBACK}:{proxy.port}"))
    upload = callers.begin("upload", transport="p", topic="half", size=8 * MB, key="half a request", timeout=10)
    assert proxy.is_stalled.wait(20)
    mesh.kill("B")
    callers.do("open", transport="A", url=oslo_url(mesh, "A"))
    assert outcomes(callers.do("burst", transport="A", topic="half", count=50, prefix="b")) == {"ok": 50}
    with pytest.raises(OsloError) as caught:
        upload.result()
    assert caught.value.name == "MessageDeliveryFailure"
    assert servers.keys("half", "digest") == []
    assert not any(word in servers.log() for word in FATAL)


@pytest.mark.slow
def test_a_server_that_dies_in_the_middle_of_a_reply_takes_no_caller_with_it(
    new_mesh: NewMesh, new_worker: NewWorker, stack: ExitStack
) -> None:
    servers, callers, dying, mesh = *map(new_worker, ("servers", "callers", "dying")), new_mesh(LINE)
    servers.do("open", transport="A", url=oslo_url(mesh, "A"))
    servers.do("serve", transport="A", topic="other", server="other")
    proxy = stack.enter_context(Relay(port_of(mesh, "A"), limit=MB))
    dying.do("open", transport="p", url=hosts_url(f"{LOOPBACK}:{proxy.port}", container_name="dying"))
    dying.do("serve", transport="p", topic="half", server="half")
    callers.do("open", transport="B", url=oslo_url(mesh, "B"))
    download = callers.begin("download", transport="B", topic="half", size=8 * MB, key="half a reply", timeout=5)
    assert proxy.is_stalled.wait(20)
    dying.kill()
    proxy.cut()
    wait_until(lambda: attached_to(mesh, "dying") == [], "its connection is gone", 10)
    assert outcomes(callers.do("burst", transport="B", topic="other", count=50, prefix="b")) == {"ok": 50}
    with pytest.raises(OsloError) as caught:
        download.result()
    assert caught.value.name == "MessagingTimeout"
    assert callers.do("download", transport="B", topic="other", size=MB, key="a whole reply")
    assert not any(word in callers.log() for word in FATAL)


def port_of(mesh: MeshProcesses, router: str) -> int:
    return int(mesh.url(router).rpartition(":")[2])


# Routers that die under load


class Loads:
    """Callers at several routers that call without a pause; what became of each call."""

    def __init__(self, worker: OsloWorker, servers: OsloWorker) -> None:
        self._worker = worker
        self._servers = servers
        self._names: list[str] = []
        self.records: dict[str, list[Record]] = {}

    def start(self, name: str, transport: str, topic: str, threads: int = 4) -> None:
        self._names.append(name)
        self._worker.do("load", name=name, transport=transport, topic=topic, threads=threads, timeout=IN_FLIGHT_S)

    def wait_progress(self, count: int, *names: str) -> None:
        """Wait until each of these loads, or each at all, has had that many more calls answered."""
        chosen = names or tuple(self._names)
        goals = {name: self._worker.do("progress", name=name) + count for name in chosen}
        for name, goal in goals.items():
            wait_until(lambda: self._worker.do("progress", name=name) >= goal, f"{name} gets {count} answers", 20)  # noqa: B023

    def stop(self, *servers: str) -> None:
        """Stop all; then each call has one outcome, none a wrong one, and no server has got a request twice."""
        orders = {name: self._worker.begin("stop_load", name=name, timeout=20) for name in self._names}
        self.records = {name: order.result(30) for name, order in orders.items()}
        for name, records in self.records.items():
            print(name, outcomes(records), f"slowest answered {1000 * slowest(records):.0f} ms")
            keys = [record["key"] for record in records]
            assert len(keys) == len(set(keys))
            assert set(outcomes(records)) <= {"ok", "MessageDeliveryFailure", "MessagingTimeout"}, name
        got = Counter(key for server in servers for key in self._servers.keys(server, "echo"))
        assert max(got.values()) == 1
        assert {record["key"] for records in self.records.values() for record in records if is_ok(record)} <= set(got)

    def failed(self, name: str) -> list[Record]:
        return [record for record in self.records[name] if not is_ok(record)]

    def first_ok_after(self, name: str, when: float) -> float:
        """Seconds from *when* to the first answer of a call that began after it."""
        return min(record["ended"] for record in self.records[name] if is_ok(record) and record["began"] > when) - when


def is_ok(record: Record) -> bool:
    return bool(record["outcome"] == "ok")


def slowest(records: list[Record]) -> float:
    return max((record["ended"] - record["began"] for record in records if is_ok(record)), default=0.0)


def test_a_router_killed_under_load_stops_only_the_calls_that_needed_it(
    new_mesh: NewMesh, new_worker: NewWorker
) -> None:
    """A - B - C is the way between A and C, D the dear way round. B is killed while all call.

    Calls from A, and from D to A, don't need B: each is answered. New calls from C to A and from A to C are answered
    within a second. B's own clients are back after their driver's pause of a second.
    """
    servers, callers, probes, mesh = *map(new_worker, ("servers", "callers", "probes")), new_mesh(SQUARE)
    for router in ("A", "C"):
        servers.do("open", transport=router, url=oslo_url(mesh, router))
        for topic in ("load", "probe"):
            servers.do("serve", transport=router, topic=f"{topic} {router}", server=f"{topic}-{router}")
    for router in ("A", "C", "D"):
        for worker in (callers, probes):
            worker.do("open", transport=router, url=oslo_url(mesh, router))
    own = open_at(callers, mesh, "B", "D")
    for transport, topic in (("C", "probe A"), ("A", "probe C")):
        call(probes, transport, topic, "before")
    loads = Loads(callers, servers)
    loads.start("A to A", "A", "load A", 2)
    loads.start("D to A", "D", "load A", 2)
    loads.start("C to A by B", "C", "load A")
    loads.start("A to C by B", "A", "load C")
    loads.start("B's own", own, "load A", 2)
    loads.wait_progress(50)

    killed = time.monotonic()
    mesh.kill("B")
    new = {
        f"{one} to {other}": probes.begin(
            "call", transport=one, topic=f"probe {other}", method="echo", args={"key": "after"}, timeout=10
        )
        for one, other in (("C", "A"), ("A", "C"))
    }
    for name, order in new.items():
        assert order.result()[1] == "after"
        assert order.answered_at is not None
        print(f"a new call {name}: answered {1000 * (order.answered_at - killed):.0f} ms after the kill")
        assert order.answered_at - killed < 1
    loads.wait_progress(100)
    loads.stop("load-A", "load-C")
    assert attached_to(mesh, own) == ["D"]
    for name in ("A to A", "D to A"):
        assert loads.failed(name) == []
    for name in ("C to A by B", "A to C by B", "B's own"):
        back = loads.first_ok_after(name, killed)
        print(f"{name}: {len(loads.failed(name))} in flight failed; first new answer after {1000 * back:.0f} ms")
        assert back < (5 if name == "B's own" else 1)
    for name in ("C to A by B", "A to C by B"):
        # What failed was under way when B died: nothing that began when the news was out.
        assert all(record["began"] < killed + 0.1 for record in loads.failed(name))


@pytest.mark.slow
def test_a_router_of_the_full_mesh_killed_under_load_takes_only_its_clients_along(
    new_mesh: NewMesh, new_worker: NewWorker
) -> None:
    """Servers at A and D share the calls of callers at B, C and D. A is killed; its server goes on at D."""
    servers, callers, mesh = new_worker("servers"), new_worker("callers"), new_mesh(FULL)
    at_a = open_at(servers, mesh, "A", "D")
    servers.do("open", transport="D", url=oslo_url(mesh, "D"))
    servers.do("serve", transport=at_a, topic="load", server="server-A")
    servers.do("serve", transport="D", topic="load", server="server-D")
    for router in ("B", "C", "D"):
        callers.do("open", transport=router, url=oslo_url(mesh, router))
        wait_fanout(callers, router, "load", servers, ["server-A", "server-D"])
    loads = Loads(callers, servers)
    for router in ("B", "C", "D"):
        loads.start(f"at {router}", router, "load", 6)
    loads.wait_progress(100)
    killed = time.monotonic()
    mesh.kill("A")
    loads.wait_progress(100)
    for router in ("B", "C", "D"):
        assert call(callers, router, "load", f"named-{router}", server="server-A")[0] == "server-A"  # type: ignore[index]
        callers.do("cast", transport=router, topic="load", method="note", args={"key": f"all-{router}"}, fanout=True)
    for server in ("server-A", "server-D"):
        got = servers.wait_keys(server, "note", {f"all-{router}" for router in ("B", "C", "D")})
        assert max(Counter(got).values()) == 1
    loads.stop("server-A", "server-D")
    for name, records in loads.records.items():
        back = loads.first_ok_after(name, killed)
        print(f"{name}: {len(loads.failed(name))} in flight failed; first new answer after {1000 * back:.0f} ms")
        assert back < 1
        assert all(record["began"] < killed + 0.1 for record in loads.failed(name)), outcomes(records)


# A router that is told to stop


def test_calls_in_flight_settle_while_their_router_stops(new_mesh: NewMesh, new_worker: NewWorker) -> None:
    """100 calls are under way, not all of them taken by a worker of the server, when B gets SIGTERM. None is lost."""
    servers, callers, mesh = new_worker("servers"), new_worker("callers"), new_mesh(LINE)
    servers.do("open", transport="A", url=oslo_url(mesh, "A"))
    servers.do("serve", transport="A", topic="stop", server="stop")
    caller = open_at(callers, mesh, "B", "A")
    assert call(callers, caller, "stop", "first") == ["stop", "first", ""]
    servers.do("gate", name="stop", is_open=False)
    burst = callers.begin("burst", transport=caller, topic="stop", count=100, prefix="s", timeout=10)
    wait_until(lambda: len(servers.keys("stop", "echo")) >= 64, "the workers of the server are busy", 20)
    began = time.monotonic()
    ending = mesh["B"]
    ending.send_signal(signal.SIGTERM)
    ending.wait_log("stopping")
    servers.do("gate", name="stop", is_open=True)
    assert ending.wait_ended() == 0
    print(f"B ended after {time.monotonic() - began:.2f} s")
    assert time.monotonic() - began < 7
    records = burst.result()
    assert outcomes(records) == {"ok": 100}
    # the callers go on at the other host
    assert call(callers, caller, "stop", "last", timeout=15) == ["stop", "last", ""]
    assert attached_to(mesh, caller) == ["A"]


def test_a_router_that_stops_waits_for_the_reply_to_a_call_that_takes_long(
    new_mesh: NewMesh, new_worker: NewWorker
) -> None:
    """The server has acknowledged the call, and answers it later than replies come that nobody counts."""
    servers, callers = new_worker("servers"), new_worker("callers")
    mesh = new_mesh(LINE, shutdown_s=60.0, shutdown_replies_s=50.0)
    servers.do("open", transport="A", url=oslo_url(mesh, "A"))
    servers.do("serve", transport="A", topic="long", server="long")
    caller = open_at(callers, mesh, "B", "A")
    assert call(callers, caller, "long", "first") == ["long", "first", ""]
    servers.do("gate", name="long", is_open=False)
    burst = callers.begin("burst", transport=caller, topic="long", count=1, prefix="s", timeout=40)
    wait_until(lambda: len(servers.keys("long", "echo")) == 2, "the server has taken the call", 20)
    ending = mesh["B"]
    ending.send_signal(signal.SIGTERM)
    waiting = ending.wait_log("waiting_for_replies")
    assert (waiting.fields["clients"], waiting.fields["requests"]) == ("1", "1")
    servers.do("gate", name="long", is_open=True)
    assert outcomes(burst.result()) == {"ok": 1}
    # long before `shutdown_replies_s`
    assert ending.wait_ended() == 0


def test_a_router_that_is_only_passed_stops_under_load_and_no_call_fails(
    new_mesh: NewMesh, new_worker: NewWorker
) -> None:
    """A - B - C is the way between A and C. B stops while all call; they go by D before it takes no more."""
    servers, callers, mesh = new_worker("servers"), new_worker("callers"), new_mesh(SQUARE)
    for router in ("A", "C"):
        servers.do("open", transport=router, url=oslo_url(mesh, router))
        servers.do("serve", transport=router, topic=f"load {router}", server=f"load-{router}")
        callers.do("open", transport=router, url=oslo_url(mesh, router))
    loads = Loads(callers, servers)
    loads.start("C to A", "C", "load A", 4)
    loads.start("A to C", "A", "load C", 4)
    loads.wait_progress(100)
    assert mesh.terminate("B") == {"B": 0}
    loads.wait_progress(100)
    loads.stop("load-A", "load-C")
    for name in ("C to A", "A to C"):
        assert loads.failed(name) == []
