"""Unmodified oslo.messaging across two routers and across four: calls, casts and fanout casts, small and large."""

from __future__ import annotations

import time
from collections.abc import Iterator

import attrs
import pytest

from tests.helpers.oslo import FULL, LINE, OsloError, OsloWorker, mesh_of, needs_oslo, oslo_url, outcomes, wait_fanout
from tests.helpers.processes import MeshProcesses, wait_until

pytestmark = [pytest.mark.interop, needs_oslo]

MB = 1000 * 1000


@attrs.define(eq=False)
class Field:
    """A converged mesh with two worker processes: one has all servers in it, the other all callers.

    Each of them has one transport for each router, named after it.
    """

    mesh: MeshProcesses
    servers: OsloWorker
    callers: OsloWorker
    server_routers: tuple[str, ...]
    caller_routers: tuple[str, ...]

    def serve(self, topic: str) -> list[str]:
        """One server of *topic* at each router of servers, known everywhere on return. Returns their names."""
        names = []
        for router in self.server_routers:
            name = f"{topic}-{router}"
            self.servers.do("serve", transport=router, topic=topic, server=name)
            names.append(name)
        for router in self.caller_routers:
            wait_fanout(self.callers, router, topic, self.servers, names)
        return names


@pytest.fixture(scope="module", params=["line of two", pytest.param("full mesh of four", marks=pytest.mark.slow)])
def field(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    folder = tmp_path_factory.mktemp("oslo")
    is_line = request.param.startswith("line")
    server_routers, caller_routers = (("A",), ("B",)) if is_line else (("A", "D"), ("B", "C", "D"))
    with (
        MeshProcesses(mesh_of(LINE if is_line else FULL), folder) as mesh,
        OsloWorker(folder / "servers.log") as servers,
        OsloWorker(folder / "callers.log") as callers,
    ):
        mesh.start()
        mesh.wait_converged()
        for router in server_routers:
            servers.do("open", transport=router, url=oslo_url(mesh, router))
        for router in caller_routers:
            callers.do("open", transport=router, url=oslo_url(mesh, router), exmods=["oslo_worker"])
        yield Field(mesh, servers, callers, server_routers, caller_routers)
        for worker, routers in ((callers, caller_routers), (servers, server_routers)):
            for router in routers:
                assert worker.do("cleanup", transport=router) < 5
        assert set(mesh.terminate().values()) == {0}
        assert "Traceback" not in mesh.logs(tail=1_000_000)


def test_a_call_is_answered_from_every_router(field: Field) -> None:
    names = field.serve("call")
    for router in field.caller_routers:
        for number in range(5):
            key = f"{router}-{number}"
            server, got, data = field.callers.do(
                "call", transport=router, topic="call", method="echo", args={"key": key, "data": "é€𝄞"}
            )
            assert server in names
            assert (got, data) == (key, "é€𝄞")
    taken = [key for name in names for key in field.servers.keys(name, "echo")]
    assert sorted(taken) == sorted(f"{router}-{number}" for router in field.caller_routers for number in range(5))


def test_a_cast_reaches_one_server_once(field: Field) -> None:
    names = field.serve("cast")
    keys = {f"{router}-{number}" for router in field.caller_routers for number in range(20)}
    for key in sorted(keys):
        router = key.partition("-")[0]
        field.callers.do("cast", transport=router, topic="cast", method="echo", args={"key": key})

    def taken() -> list[str]:
        return [key for name in names for key in field.servers.keys(name, "echo")]

    wait_until(lambda: set(taken()) == keys, lambda: f"casts {sorted(keys - set(taken()))}", 15)
    assert sorted(taken()) == sorted(keys)


def test_a_fanout_cast_reaches_each_server_exactly_once(field: Field) -> None:
    names = field.serve("fanout")
    keys = {f"{router}-{number}" for router in field.caller_routers for number in range(20)}
    for key in sorted(keys):
        router = key.partition("-")[0]
        field.callers.do("cast", transport=router, topic="fanout", method="echo", args={"key": key}, fanout=True)
    for name in names:
        got = field.servers.wait_keys(name, "echo", keys)
        assert sorted(got) == sorted(keys)


def test_a_call_to_a_named_server_goes_to_no_other(field: Field) -> None:
    names = field.serve("named")
    for router in field.caller_routers:
        for name in names:
            key = f"{router}-{name}"
            reply = field.callers.do(
                "call", transport=router, topic="named", method="echo", args={"key": key}, server=name
            )
            assert reply == [name, key, ""]
    for name in names:
        assert field.servers.keys(name, "echo") == [f"{router}-{name}" for router in field.caller_routers]


@pytest.mark.parametrize(
    ("how", "name", "module"),
    [
        # so the driver names what allowed_remote_exmods lets pass
        ("typed", "TypedFault_Remote", "oslo_worker_Remote"),
        ("builtin", "ValueError", "builtins"),
        ("unlisted", "RemoteError", "oslo_messaging.rpc.client"),
    ],
)
def test_a_servers_exception_reaches_the_caller(field: Field, how: str, name: str, module: str) -> None:
    topic = f"fail-{how}"
    field.serve(topic)
    for router in field.caller_routers:
        with pytest.raises(OsloError) as caught:
            field.callers.do("call", transport=router, topic=topic, method="fail", args={"key": router, "how": how})
        assert (caught.value.name, caught.value.module) == (name, module)
        assert f"fault {router}" in caught.value.message


def test_a_call_without_a_server_times_out_in_time(field: Field) -> None:
    began = time.monotonic()
    orders = [
        field.callers.begin("call", transport=router, topic="nobody", method="echo", args={"key": 1}, timeout=2)
        for router in field.caller_routers
    ]
    for order in orders:
        with pytest.raises(OsloError) as caught:
            order.result(10)
        assert caught.value.name == "MessagingTimeout"
        assert order.answered_at is not None
        assert 1.9 < order.answered_at - began < 5  # the driver rounds up to whole seconds


def test_a_server_that_comes_within_the_timeout_answers_the_call_that_waits(field: Field) -> None:
    """Proceeds at once when it comes: nothing waits for a retry of ten seconds."""
    orders = [
        field.callers.begin("call", transport=router, topic="late", method="echo", args={"key": router}, timeout=20)
        for router in field.caller_routers
    ]
    # Another call that times out on the same connection proves that the first ones wait in the clients.
    with pytest.raises(OsloError):
        field.callers.do("call", transport="B", topic="nobody-else", method="echo", args={"key": 1}, timeout=1)
    assert not any(order.is_done for order in orders)
    began = time.monotonic()
    field.servers.do("serve", transport="A", topic="late", server="late-A")
    for router, order in zip(field.caller_routers, orders, strict=True):
        assert order.result(10) == ["late-A", router, ""]
        assert order.answered_at is not None
        assert order.answered_at - began < 2


@pytest.mark.parametrize("size", [MB, 8 * MB])
def test_large_payloads_cross_both_ways(field: Field, size: int) -> None:
    topic = f"large-{size}"
    field.servers.do("serve", transport="A", topic=topic, server=topic)
    for router in field.caller_routers:
        assert field.callers.do("upload", transport=router, topic=topic, size=size, key=router, within_s=60)
        assert field.callers.do("download", transport=router, topic=topic, size=size, key=router, within_s=60)
    assert "Fatal unhandled" not in field.servers.log() + field.callers.log()


def test_a_large_fanout_cast_reaches_each_server_whole(field: Field) -> None:
    names = field.serve("wide")
    for router in field.caller_routers:
        seen = field.callers.do("broadcast", transport=router, topic="wide", size=MB, key=router)
        for name in names:
            wait_until(lambda name=name, seen=seen: seen in field.servers.keys(name, "measure"), name, 15)  # type: ignore[misc]
    for name in names:
        assert len(field.servers.keys(name, "measure")) == len(field.caller_routers)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_many_large_requests_at_once_all_arrive(field: Field) -> None:
    """80 MB for one server, more than the router holds for a connection; small calls pass between them."""
    field.servers.do("serve", transport="A", topic="heavy", server="heavy")
    uploads = [
        field.callers.begin("upload", transport="B", topic="heavy", size=8 * MB, key=f"up-{number}", timeout=100)
        for number in range(10)
    ]
    # They go over the same link: a busy machine may take half a minute for what is before them.
    small = {"count": 20, "prefix": "small", "timeout": 100}
    records = field.callers.do("burst", transport="B", topic="heavy", **small, within_s=110)
    assert outcomes(records) == {"ok": 20}
    assert [order.result(60) for order in uploads] == [True] * 10
    assert sorted(field.servers.keys("heavy", "digest")) == sorted(f"up-{number}" for number in range(10))
    assert "Fatal unhandled" not in field.servers.log() + field.callers.log()


def test_a_burst_of_casts_loses_and_doubles_none(field: Field) -> None:
    """Pre-settled, far more than the server's credit and the publisher's window; and the next ones pass as well."""
    names = field.serve("burst")
    for burst in ("first", "next"):
        count = 3000 if burst == "first" else 20
        field.callers.do("casts", transport="B", topic="burst", count=count, prefix=burst, within_s=60)

        def taken(burst: str = burst) -> list[str]:
            return [key for name in names for key in field.servers.keys(name, "echo") if key.startswith(burst)]

        wait_until(lambda count=count: len(taken()) >= count, lambda: f"{len(taken())} casts", 40)  # type: ignore[misc]
        assert sorted(taken()) == sorted(f"{burst}-{number}" for number in range(count))


def test_of_200_concurrent_callers_each_gets_the_reply_to_its_own_request(field: Field) -> None:
    names = field.serve("crowd")
    share = 200 // len(field.caller_routers) + 1
    orders = [
        field.callers.begin("burst", transport=router, topic="crowd", count=share, prefix=router)
        for router in field.caller_routers
    ]
    records = [record for order in orders for record in order.result(60)]
    assert len(records) >= 200
    assert outcomes(records) == {"ok": len(records)}
    taken = [key for name in names for key in field.servers.keys(name, "echo")]
    assert sorted(taken) == sorted(record["key"] for record in records)


def test_a_slow_server_holds_up_nobody_else(field: Field) -> None:
    """Its requests wait; those of another server, over the same routers and from the same clients, do not."""
    field.servers.do("serve", transport="A", topic="slow", server="slow-A")
    field.servers.do("serve", transport="A", topic="swift", server="swift-A")
    field.servers.do("gate", name="slow-A", is_open=False)
    slow = {
        router: field.callers.begin("burst", transport=router, topic="slow", count=100, prefix=router)
        for router in field.caller_routers
    }
    try:
        # 64 worker threads take a request each and stop; the rest waits for them
        wait_until(lambda: len(field.servers.keys("slow-A", "echo")) >= 64, "the slow server is busy", 20)
        began = time.monotonic()
        for router in field.caller_routers:
            records = field.callers.do("burst", transport=router, topic="swift", count=20, prefix=router)
            assert outcomes(records) == {"ok": 20}
        assert time.monotonic() - began < 5
        assert not any(order.is_done for order in slow.values())
    finally:
        field.servers.do("gate", name="slow-A", is_open=True)
    for order in slow.values():
        assert outcomes(order.result(40)) == {"ok": 100}
