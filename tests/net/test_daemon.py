"""What the daemon sets in its process, and what it says when that did not run."""

from __future__ import annotations

import gc
import signal
import socket
import struct
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path

import attrs
import pytest
import structlog
import trio
from proton import UNDESCRIBED, Array, Data, symbol, ubyte
from structlog.testing import capture_logs
from trio.testing import MockClock

from mesh_config.connector_matching import link_costs
from mesh_config.generators import generate
from mesh_config.models import (
    ConnectorSettings,
    HttpSettings,
    ListenerSettings,
    MeshSettings,
    Role,
    RouterSettings,
    TlsSettings,
)
from router.clock_and_gc import FULL_COLLECTION, SWITCH_S, spare_collector
from router.core.errors import LocalError
from router.daemon import Daemon
from router.daemon import run as run_daemon
from router.drain_state import DrainState
from router.graceful_stop import none_left
from router.net.listener import AcceptedConnection
from router.runtime import Runtime
from router.security.users import new_keys, write_users
from tests.helpers.certificates import Certificates
from tests.helpers.frames import AMQP_HEADER, SASL_HEADER, write


def test_the_collector_looks_through_all_objects_more_rarely() -> None:
    before = gc.get_threshold()
    gc.freeze()  # what other tests have left takes seconds to look through
    frozen = gc.get_freeze_count()
    made: list[list[object]] = [[] for _ in range(100)]
    try:
        spare_collector()
        assert gc.get_threshold() == (*before[:2], FULL_COLLECTION)
        assert gc.get_freeze_count() >= frozen + len(made)
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


@pytest.mark.parametrize(("seconds", "told"), [(0.5, []), (5.0, [5.0])])
async def test_a_timer_that_comes_late_is_told_of_once(
    autojump_clock: MockClock, seconds: float, told: list[float]
) -> None:
    daemon = Daemon(RouterSettings(id="A", listeners=(ListenerSettings(port=0),)))
    with capture_logs() as lines:
        daemon.runtime.log = structlog.get_logger()
        daemon.runtime.tell_deadlines(changed=daemon._wake_timer, came=daemon._handle_deadline)
        async with trio.open_nursery() as nursery:
            daemon.runtime.trim_at = trio.current_time() + 1.0
            nursery.start_soon(daemon._keep_time)
            await trio.testing.wait_all_tasks_blocked()
            autojump_clock.jump(1.0 + seconds)
            await trio.sleep(10)
            nursery.cancel_scope.cancel()
    for listener in daemon.listeners:
        listener.close()
    assert [line["seconds"] for line in lines if line["event"] == "stood_still"] == told


async def test_signals_are_held_back_after_a_run_as_they_were_before_it() -> None:
    for held in (set(), {signal.SIGTERM, signal.SIGINT}):
        before = signal.pthread_sigmask(signal.SIG_SETMASK, held)
        try:
            daemon = Daemon(RouterSettings(id="A"))
            async with trio.open_nursery() as nursery:
                await nursery.start(lambda task_status, daemon=daemon: daemon.run(task_status=task_status))
                assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())
                daemon.stop()
            assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == held
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_a_thread_that_computes_gives_the_interpreter_back_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    before, thresholds, during = sys.getswitchinterval(), gc.get_threshold(), 0.0
    gc.freeze()  # what other tests have left takes seconds to look through

    async def run(_: Daemon) -> None:
        nonlocal during
        during = sys.getswitchinterval()

    monkeypatch.setattr(Daemon, "run", run)
    try:
        run_daemon(RouterSettings(id="A"))
    finally:
        sys.setswitchinterval(before)
        gc.unfreeze()
        gc.set_threshold(*thresholds)
    assert during == pytest.approx(SWITCH_S)


async def drained(daemon: Daemon) -> None:
    """Drain a router, and wait until it is."""
    daemon.draining.begin(None, is_to_stop=False)
    with trio.fail_after(20):
        while not all(listener.is_closed for listener in daemon.listeners):
            await trio.lowlevel.checkpoint()
        while daemon.runtime.drain_state is not DrainState.DRAINED:
            await trio.lowlevel.checkpoint()


async def said_until_close(client: trio.SocketStream) -> bytes:
    """What a router writes to a client, until its Close, which is answered, or its end."""
    data = b""
    async with client:
        with trio.fail_after(20):
            while b"amqp:connection:forced" not in data and (piece := await client.receive_some()):
                data += piece
        await client.send_all(write(0x18, []))
    return data


async def test_a_drained_router_that_resumes_has_the_port_that_the_system_chose() -> None:
    daemon = Daemon(RouterSettings(id="A", listeners=(ListenerSettings(port=0),)))
    port = daemon.listeners[0].port
    async with trio.open_nursery() as nursery:
        await nursery.start(lambda task_status: daemon.run(task_status=task_status))
        await trio.testing.wait_all_tasks_blocked()
        await drained(daemon)
        daemon.draining.resume()
        assert (daemon.listeners[0].port, daemon.listeners[0].is_closed) == (port, False)
        daemon.stop()


async def test_what_a_listener_has_counted_since_the_start_stays_through_a_drain() -> None:
    daemon = Daemon(RouterSettings(id="A", listeners=(ListenerSettings(host="127.0.0.1", port=0),)))
    async with trio.open_nursery() as nursery:
        await nursery.start(lambda task_status: daemon.run(task_status=task_status))
        async with await trio.open_tcp_stream("127.0.0.1", daemon.listeners[0].port):
            await trio.testing.wait_all_tasks_blocked()
            assert [listener.accepted for listener in daemon.listeners] == [1]
            await drained(daemon)
            daemon.draining.resume()
        async with await trio.open_tcp_stream("127.0.0.1", daemon.listeners[0].port):
            await trio.testing.wait_all_tasks_blocked()
            assert [listener.accepted for listener in daemon.listeners] == [2]
        daemon.stop()


async def test_a_drain_with_a_fault_is_over_once_it_was_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    daemon = Daemon(RouterSettings(id="A", listeners=(ListenerSettings(port=0),)))
    faults = [ZeroDivisionError()]

    async def fail_once(runtime: Runtime, is_so: Callable[[], bool]) -> None:
        if faults:
            raise faults.pop()
        await none_left(runtime, is_so)

    monkeypatch.setattr("router.draining.none_left", fail_once)
    monkeypatch.setattr("router.daemon.FAULT_PAUSE_S", 0)
    with capture_logs() as lines:
        daemon.runtime.log = structlog.get_logger()
        async with trio.open_nursery() as nursery:
            await nursery.start(lambda task_status: daemon.run(task_status=task_status))
            await drained(daemon)
            daemon.draining.resume()
            daemon.stop()
    events = [line["event"] for line in lines]
    assert [event for event in events if event in ("turn_fault", "drained", "resumed")] == [
        "turn_fault",
        "drained",
        "resumed",
    ]


async def test_a_client_that_was_shaking_hands_gets_a_close_of_a_drained_router() -> None:
    daemon = Daemon(RouterSettings(id="A", listeners=(ListenerSettings(host="127.0.0.1", port=0),)))
    async with trio.open_nursery() as nursery:
        await nursery.start(lambda task_status: daemon.run(task_status=task_status))
        client = await trio.open_tcp_stream("127.0.0.1", daemon.listeners[0].port)
        await trio.testing.wait_all_tasks_blocked()
        await drained(daemon)
        await client.send_all(AMQP_HEADER + write(0x10, ["late"]))
        assert b"the router is drained: connect to another one" in await said_until_close(client)
        with trio.fail_after(20):
            while daemon.runtime.connections:
                await trio.lowlevel.checkpoint()
        daemon.stop()


async def test_a_router_whose_second_port_is_taken_stays_drained_with_all_listeners_closed() -> None:
    listeners = tuple(ListenerSettings(host="127.0.0.1", port=0, name=name) for name in ("one", "two"))
    daemon = Daemon(RouterSettings(id="A", listeners=listeners))
    async with trio.open_nursery() as nursery:
        await nursery.start(lambda task_status: daemon.run(task_status=task_status))
        await trio.testing.wait_all_tasks_blocked()
        await drained(daemon)
        with socket.create_server(("127.0.0.1", daemon.listeners[1].port)):
            with pytest.raises(LocalError):
                daemon.draining.resume()
            await trio.testing.wait_all_tasks_blocked()
            assert [listener.is_closed for listener in daemon.listeners] == [True, True]
        daemon.draining.resume()
        assert [listener.is_closed for listener in daemon.listeners] == [False, False]
        daemon.stop()


async def test_a_listener_that_is_opened_at_a_drained_router_lets_in_no_client() -> None:
    daemon = Daemon(RouterSettings(id="A", listeners=(ListenerSettings(host="127.0.0.1", port=0),)))
    async with trio.open_nursery() as nursery:
        await nursery.start(lambda task_status: daemon.run(task_status=task_status))
        await trio.testing.wait_all_tasks_blocked()
        await drained(daemon)
        opened = daemon.open_listener(ListenerSettings(host="127.0.0.1", port=0, name="new"), "127.0.0.1")
        client = await trio.open_tcp_stream("127.0.0.1", opened.port)
        await client.send_all(AMQP_HEADER + write(0x10, ["early"]))
        assert b"the router is drained: connect to another one" in await said_until_close(client)
        daemon.draining.resume()
        assert not opened.is_closed
        daemon.stop()


async def test_a_connector_taken_away_while_it_is_let_in_is_no_fault() -> None:
    settings = ConnectorSettings(host="127.0.0.1", port=1)
    daemon = Daemon(RouterSettings(id="A", connectors=(settings,)))
    (connector,) = daemon.connectors
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    mechanisms = Array(UNDESCRIBED, Data.SYMBOL, symbol("ANONYMOUS"))
    reasons = []

    async def serve() -> None:
        reasons.append(await daemon._server.serve_connected(ours, connector))

    with theirs, capture_logs() as lines:
        daemon.runtime.log = structlog.get_logger()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            await trio.testing.wait_all_tasks_blocked()
            daemon.end_connector(connector)
            theirs.sendall(SASL_HEADER + write(0x40, [mechanisms], kind=1) + write(0x44, [ubyte(0)], kind=1))
    assert reasons == ["its connector was taken away"]
    assert ours.fileno() == -1
    assert not lines


async def test_of_two_equal_connectors_only_the_one_taken_away_loses_its_connection() -> None:
    settings = ConnectorSettings(port=1)
    daemon = Daemon(RouterSettings(id="A", connectors=(settings, settings)))
    runtime = daemon.runtime
    made = [runtime.new_connection(each.settings, is_server=False) for each in daemon.connectors]
    for connection in made:
        runtime.add_connection(connection, lambda: None, lambda: None, lambda: None)
    gone = daemon.connectors[0]
    daemon.end_connector(gone)
    await daemon._close_connections(gone)
    assert [connection.is_ending for connection in made] == [True, False]


async def test_a_peer_that_resets_its_connection_is_logged_with_its_host() -> None:
    settings = ListenerSettings(port=0)
    daemon = Daemon(RouterSettings(id="A", listeners=(settings,)))
    with socket.create_server(("127.0.0.1", 0)) as server, capture_logs() as lines:
        daemon.runtime.log = structlog.get_logger()
        peer = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
        ours.setblocking(False)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
        with trio.fail_after(60):
            await trio.lowlevel.wait_readable(ours)
            guest = AcceptedConnection("127.0.0.1", lambda _: None, lambda _: None)
            await daemon._server.serve_accepted(ours, settings, guest)
    for listener in daemon.listeners:
        listener.close()
    assert [line["host"] for line in lines if line["event"] == "connection_closed"] == ["127.0.0.1"]


async def test_a_signal_to_reload_during_a_reload_reads_the_file_again() -> None:
    settings = RouterSettings(id="A")
    reads: list[int] = []
    may_go_on = threading.Event()

    def read() -> tuple[RouterSettings, None, tuple[()]]:
        reads.append(len(reads))
        assert may_go_on.wait(10)
        return settings, None, ()

    daemon = Daemon(settings, read=read)
    by_management = daemon.reloading.reload()
    next(by_management)
    with capture_logs() as lines:
        daemon.runtime.log = structlog.get_logger()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(daemon._reload_when_told)
            daemon._told_to_reload.set()
            await trio.testing.wait_all_tasks_blocked()
            may_go_on.set()
            with trio.fail_after(10):
                while [line["event"] for line in lines].count("reloaded") < 2:
                    next(by_management, None)
                    await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    assert len(reads) == 2
    assert "reload_refused" not in [line["event"] for line in lines]


async def test_links_of_the_mesh_are_worked_out_in_the_thread_that_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    mesh = generate("line", 3)
    router = mesh.routers["R1"]
    threads: list[threading.Thread] = []

    def counted(settings: MeshSettings) -> dict[tuple[str, str], int]:
        threads.append(threading.current_thread())
        return link_costs(settings)

    monkeypatch.setattr("router.mesh_presence.link_costs", counted)
    daemon = Daemon(attrs.evolve(router, listeners=()), read=lambda: (attrs.evolve(router, listeners=()), mesh, ()))
    reloading = daemon.reloading.reload()
    with trio.fail_after(60):
        while next(reloading, "over") is None:
            await trio.lowlevel.checkpoint()
    expected = daemon.runtime.mesh_presence.expected
    assert expected is not None
    assert sorted(expected.links) == [("R1", "R2"), ("R2", "R3")]
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()


async def test_a_fault_while_a_signal_is_taken_ends_no_router(monkeypatch: pytest.MonkeyPatch) -> None:
    daemon = Daemon(RouterSettings(id="A"))

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    async def signals() -> AsyncIterator[int]:
        yield signal.SIGUSR1
        yield signal.SIGTERM

    monkeypatch.setattr("router.daemon.log_state", fail)
    with capture_logs() as lines:
        daemon.runtime.log = structlog.get_logger()
        await daemon._watch(signals())
    assert daemon._told_to_stop.is_set()
    assert [line["event"] for line in lines] == ["turn_fault", "stopping"]


async def test_what_a_first_neighbor_needs_is_imported_when_files_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    daemon = Daemon(RouterSettings(id="A"))
    loaded: list[bool] = []
    monkeypatch.setattr("router.daemon.load_algorithms", lambda: loaded.append(True))
    daemon.read_files(RouterSettings(id="A"))
    assert not loaded
    daemon.read_files(RouterSettings(id="A", listeners=(ListenerSettings(port=0, role=Role.INTER_ROUTER),)))
    assert loaded


async def test_of_http_servers_that_replace_each_other_none_stays_open() -> None:
    settings = RouterSettings(id="A", http=HttpSettings(port=0))
    daemon = Daemon(settings)
    servers = [daemon.http._server]
    async with trio.open_nursery() as nursery:
        for _ in range(2):  # before any is served, and while one is
            for _ in range(2):
                servers.append(daemon.http.prepare(settings))
                daemon.http.take(servers[-1])
            if len(servers) == 3:
                nursery.start_soon(daemon.http.run, daemon._keep_up)
            await trio.testing.wait_all_tasks_blocked()
        assert [server._sock.fileno() >= 0 for server in servers if server is not None] == [*[False] * 4, True]
        nursery.cancel_scope.cancel()
    assert servers[-1] is not None
    assert servers[-1]._sock.fileno() < 0


async def asked_without_files(settings: RouterSettings) -> tuple[bytes, list[str]]:
    """Answer to a request by HTTP while its files are taken away by a reload, and the events of the log."""
    daemon = Daemon(settings)
    server = daemon.http._server
    assert server is not None
    with capture_logs() as lines:
        daemon.runtime.log = structlog.get_logger()
        daemon._credentials.take((), (), (), daemon._credentials)
        answer = b""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(daemon.http.run, daemon._keep_up)
            async with await trio.open_tcp_stream("127.0.0.1", server.port) as client:
                await client.send_all(
                    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                    b"Authorization: Basic YWxpY2U6c2VjcmV0\r\n\r\n"
                )
                with trio.fail_after(20), suppress(trio.BrokenResourceError):
                    while piece := await client.receive_some():
                        answer += piece
            nursery.cancel_scope.cancel()
    return answer, [line["event"] for line in lines]


async def test_a_sign_in_whose_users_a_reload_took_away_is_refused(tmp_path: Path) -> None:
    users = str(tmp_path / "users")
    write_users(users, {"alice": new_keys("secret", 4096)})
    answer, events = await asked_without_files(RouterSettings(id="A", http=HttpSettings(port=0, users_file=users)))
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert events == ["sign_in_refused"]


async def test_a_connection_by_https_whose_profile_a_reload_took_away_ends(tmp_path: Path) -> None:
    profile = TlsSettings(name="web", certificate=Certificates(tmp_path).issue("A"))
    answer, events = await asked_without_files(
        RouterSettings(id="A", tls=(profile,), http=HttpSettings(port=0, tls="web"))
    )
    assert answer == b""
    assert events == []
