"""oslo.messaging's connections: how they end, stay alive, come back and fail over; and servers that come and go."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from tests.helpers.oslo import (
    LINE,
    OsloError,
    OsloWorker,
    attached_to,
    connections_of,
    mesh_of,
    needs_oslo,
    open_at,
    oslo_url,
    outcomes,
)
from tests.helpers.processes import MeshProcesses, RouterProcess, parse_log, wait_until

pytestmark = [pytest.mark.interop, needs_oslo]


@attrs.define(eq=False)
class Field:
    mesh: MeshProcesses
    servers: OsloWorker
    callers: OsloWorker

    def call(self, transport: str, topic: str, key: object = 1, **arguments: object) -> object:
        """A call of `echo`, and what it returned."""
        return self.callers.do("call", transport=transport, topic=topic, method="echo", args={"key": key}, **arguments)


@contextlib.contextmanager
def new_field(folder: Path) -> Iterator[Field]:
    with (
        MeshProcesses(mesh_of(LINE), folder) as mesh,
        OsloWorker(folder / "servers.log") as servers,
        OsloWorker(folder / "callers.log") as callers,
    ):
        mesh.start()
        mesh.wait_converged()
        yield Field(mesh, servers, callers)
        texts = (router.log_text(whole=True) for router in mesh.routers.values())
        assert not [line for text in texts for line in parse_log(text) if "exception" in line.fields]


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    """Shared by tests whose routers live."""
    with new_field(tmp_path_factory.mktemp("oslo")) as field:
        yield field


@pytest.fixture
def own_field(tmp_path: Path) -> Iterator[Field]:
    """For one test whose routers do not."""
    with new_field(tmp_path) as field:
        yield field


def test_cleanup_is_quick_whatever_is_under_way(field: Field) -> None:
    """The router answers Close at once: with links that have credit, calls that wait for some, and a server at work."""
    field.servers.do("open", transport="A", url=oslo_url(field.mesh, "A", container_name="cleaned-server"))
    field.servers.do("serve", transport="A", topic="busy", server="busy")
    field.callers.do("open", transport="B", url=oslo_url(field.mesh, "B", container_name="cleaned-caller"))
    assert field.call("B", "busy") == ["busy", 1, ""]
    field.servers.do("gate", name="busy", is_open=False)
    for topic in ("busy", "nobody"):
        field.callers.begin("call", transport="B", topic=topic, method="echo", args={"key": 2})
    field.servers.wait_keys("busy", "echo", {2})
    assert field.callers.do("cleanup", transport="B") < 2
    assert field.servers.do("cleanup", transport="A") < 2
    ended = [(field.mesh["A"], "cleaned-server"), (field.mesh["B"], "cleaned-caller")]
    wait_until(lambda: all(_reasons_of_ends(*connection) for connection in ended), "both ends are told", 60)
    in_order = ["the other side closed it in order"]
    assert [_reasons_of_ends(*connection) for connection in ended] == [in_order, in_order]


def _reasons_of_ends(router: RouterProcess, container: str) -> list[str]:
    lines = router.log_lines("connection_closed")
    return [line.fields["reason"] for line in lines if line.fields["container"] == container]


def test_an_idle_connection_is_kept_by_heartbeats_both_ways(field: Field) -> None:
    """Both ask for a frame every 1 s (`idle_timeout` / 2); the only call takes 5 s."""
    field.servers.do("open", transport="s", url=oslo_url(field.mesh, "A", idle_timeout=2, container_name="idle-server"))
    field.servers.do("serve", transport="s", topic="calm", server="calm")
    field.callers.do("open", transport="c", url=oslo_url(field.mesh, "B", idle_timeout=2, container_name="idle-caller"))
    reply = field.callers.do(
        "call", transport="c", topic="calm", method="slow", args={"key": 1, "seconds": 5}, timeout=15
    )
    assert reply == ["calm", 1]
    assert connections_of(field.mesh, "idle-server") == connections_of(field.mesh, "idle-caller") == 1


def test_a_monitored_call_lives_by_the_servers_heartbeats(field: Field) -> None:
    """With `call_monitor_timeout` the server sends settled messages without a value to the reply address."""
    field.servers.do("open", transport="A", url=oslo_url(field.mesh, "A"))
    field.servers.do("serve", transport="A", topic="watch", server="watch")
    field.callers.do("open", transport="B", url=oslo_url(field.mesh, "B"))
    call = {"transport": "B", "topic": "watch", "method": "slow", "timeout": 15, "monitor": 2}
    assert field.callers.do("call", args={"key": 1, "seconds": 4}, **call) == ["watch", 1]


def test_a_sasl_layer_with_anonymous_is_as_good_as_none(field: Field) -> None:
    anonymous = {"sasl_mechanisms": "ANONYMOUS"}
    field.servers.do("open", transport="A", url=oslo_url(field.mesh, "A", **anonymous))
    field.servers.do("serve", transport="A", topic="sasl", server="sasl")
    field.callers.do("open", transport="B", url=oslo_url(field.mesh, "B", **anonymous))
    field.callers.do("open", transport="A", url=oslo_url(field.mesh, "A"))
    assert field.call("A", "sasl", 1) == ["sasl", 1, ""]
    assert field.call("B", "sasl", 2) == ["sasl", 2, ""]


def test_hundreds_of_sessions_live_on_one_connection(field: Field) -> None:
    """Each link has a session of its own: three for each server, one for each destination and each client answered."""
    topics = [f"topic-{number}" for number in range(60)]
    field.servers.do("open", transport="s", url=oslo_url(field.mesh, "A", container_name="crowded"))
    for topic in topics:
        field.servers.do("serve", transport="s", topic=topic, server=topic)
    clients = [f"client-{number}" for number in range(30)]
    for client in clients:
        field.callers.do("open", transport=client, url=oslo_url(field.mesh, "B", container_name=client))
    orders = [
        field.callers.begin("call", transport=clients[0], topic=topic, method="echo", args={"key": topic})
        for topic in topics
    ]
    assert [order.result() for order in orders] == [[topic, topic, ""] for topic in topics]
    orders = [
        field.callers.begin("call", transport=client, topic=topics[0], method="echo", args={"key": client})
        for client in clients
    ]
    assert [order.result() for order in orders] == [[topics[0], client, ""] for client in clients]
    for client in clients[:15]:
        assert field.callers.do("cleanup", transport=client) < 2
    assert field.call(clients[-1], topics[-1], "last") == [topics[-1], "last", ""]
    assert connections_of(field.mesh, "crowded") == 1


def test_links_that_the_driver_gives_up_when_idle_are_attached_again(field: Field) -> None:
    """After `default_sender_link_timeout` it closes links that were not used, and ends their sessions."""
    field.servers.do("open", transport="s", url=oslo_url(field.mesh, "A", default_sender_link_timeout=1))
    field.servers.do("serve", transport="s", topic="idle", server="idle")
    for client in ("one", "other"):
        url = oslo_url(field.mesh, "B", default_sender_link_timeout=1, container_name=client)
        field.callers.do("open", transport=client, url=url)
        assert field.call(client, "idle") == ["idle", 1, ""]
    slow = {"topic": "idle", "method": "slow", "args": {"key": 1, "seconds": 3}}
    assert field.callers.do("call", transport="one", **slow) == ["idle", 1]
    for number in range(5):
        for client in ("one", "other"):
            assert field.call(client, "idle", number) == ["idle", number, ""]
            assert connections_of(field.mesh, client) == 1


def test_a_router_that_hangs_is_left_for_the_next_host(own_field: Field) -> None:
    """Nothing but `idle_timeout` tells the driver. The router sees its clients gone when it goes on."""
    field = own_field
    field.servers.do("open", transport="s", url=oslo_url(field.mesh, "A"))
    field.servers.do("serve", transport="s", topic="hang", server="hang")
    caller = open_at(field.callers, field.mesh, "B", "A", idle_timeout=2)
    assert field.call(caller, "hang") == ["hang", 1, ""]
    field.mesh["B"].send_signal(signal.SIGSTOP)
    try:
        began = time.monotonic()
        wait_until(lambda: attached_to(field.mesh, caller)[:1] == ["A"], "the caller fails over", 10)
        assert field.call(caller, "hang", 2) == ["hang", 2, ""]
        assert time.monotonic() - began < 8
    finally:
        field.mesh["B"].send_signal(signal.SIGCONT)
    wait_until(lambda: attached_to(field.mesh, caller) == ["A"], "B has seen the connection end", 10)
    field.mesh.wait_converged()
    assert field.call(caller, "hang", 3) == ["hang", 3, ""]


def test_clients_of_a_killed_router_go_on_at_the_next_host(own_field: Field) -> None:
    """Servers and callers alike; a call that waits for the server meanwhile is answered."""
    field = own_field
    server = open_at(field.servers, field.mesh, "B", "A")
    field.servers.do("serve", transport=server, topic="over", server="over")
    caller = open_at(field.callers, field.mesh, "B", "A")
    assert field.call(caller, "over") == ["over", 1, ""]
    began = time.monotonic()
    field.mesh.kill("B")
    reply, tries = None, 0
    while reply is None:
        tries += 1
        with contextlib.suppress(OsloError):  # a send that was under way when the connection broke fails, as it must
            reply = field.call(caller, "over", tries + 1, timeout=10)
    took = time.monotonic() - began
    print(f"first answer {took:.2f} s after the kill")
    assert reply == ["over", tries + 1, ""]
    assert took < 6
    assert attached_to(field.mesh, caller) == attached_to(field.mesh, server) == ["A"]
    assert outcomes(field.callers.do("burst", transport=caller, topic="over", count=50, prefix="b")) == {"ok": 50}


def test_clients_of_a_single_router_come_back_when_it_does(own_field: Field) -> None:
    field = own_field
    field.servers.do("open", transport="s", url=oslo_url(field.mesh, "A", container_name="server"))
    field.servers.do("serve", transport="s", topic="back", server="back")
    field.callers.do("open", transport="c", url=oslo_url(field.mesh, "A", container_name="caller"))
    assert field.call("c", "back") == ["back", 1, ""]
    field.mesh.kill("A")
    field.mesh.start("A")
    wait_until(
        lambda: all(attached_to(field.mesh, client) == ["A"] for client in ("server", "caller")), "both are back", 15
    )
    assert field.call("c", "back", 2) == ["back", 2, ""]


@pytest.mark.parametrize("way", ["killed", "stopped"])
def test_a_server_that_starts_again_takes_the_calls(field: Field, way: str) -> None:
    """Calls made while it is away wait for it; those that the old one had taken have one outcome."""
    mesh, topic = field.mesh, f"again-{way}"
    field.callers.do("open", transport="B", url=oslo_url(mesh, "B"))
    with OsloWorker(mesh.file.parent / f"{topic}.log") as first:
        first.do("open", transport="A", url=oslo_url(mesh, "A", container_name=topic))
        first.do("serve", transport="A", topic=topic, server=topic)
        assert field.call("B", topic) == [topic, 1, ""]
        if way == "stopped":
            first.do("stop", name=topic)
            assert first.do("cleanup", transport="A") < 2
    wait_until(lambda: attached_to(mesh, topic) == [], "its connection is gone", 10)
    waiting = field.callers.begin("burst", transport="B", topic=topic, count=30, prefix="w")
    named = field.callers.begin("call", transport="B", topic=topic, method="echo", args={"key": "n"}, server=topic)
    field.servers.do("open", transport="A", url=oslo_url(mesh, "A"))
    field.servers.do("serve", transport="A", topic=topic, server=topic)
    assert outcomes(waiting.result()) == {"ok": 30}
    assert named.result() == [topic, "n", ""]
    assert sorted(field.servers.keys(topic, "echo")) == sorted([*(f"w-{number}" for number in range(30)), "n"])


def test_a_caller_that_goes_and_comes_leaves_nothing_behind(field: Field) -> None:
    """Replies to a caller that is gone disappear; the server goes on with the next one, over the same links."""
    field.servers.do("open", transport="A", url=oslo_url(field.mesh, "A"))
    field.servers.do("serve", transport="A", topic="stay", server="stay")
    field.servers.do("gate", name="stay", is_open=False)
    with OsloWorker(field.mesh.file.parent / "going.log") as first:
        first.do("open", transport="B", url=oslo_url(field.mesh, "B", container_name="going"))
        first.begin("burst", transport="B", topic="stay", count=20, prefix="gone")
        field.servers.wait_keys("stay", "echo", {f"gone-{number}" for number in range(20)})
    wait_until(lambda: attached_to(field.mesh, "going") == [], "its connection is gone", 10)
    field.servers.do("gate", name="stay", is_open=True)
    field.callers.do("open", transport="B", url=oslo_url(field.mesh, "B"))
    assert outcomes(field.callers.do("burst", transport="B", topic="stay", count=50, prefix="new")) == {"ok": 50}
