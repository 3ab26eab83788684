"""A router that is drained: nobody uses it, everybody sees that, and it comes back, or stops, when it is told to."""

from __future__ import annotations

import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner, Result
from proton import ConnectionException, Delivery, Event, Message, Timeout
from proton.handlers import MessagingHandler
from proton.reactor import Container
from proton.utils import BlockingConnection, BlockingReceiver

from mesh_config.generators import generate
from mesh_config.models import HttpSettings, RouterSettings
from router.cli import main
from router.cli.drain_and_resume import wait_connection_ended, wait_neighbors_told
from router.cli.management import ManagementClient
from router.cli.management_errors import ManagementError, RefusedError
from tests.helpers.oslo import OsloWorker, needs_oslo, oslo_url, outcomes
from tests.helpers.processes import MeshProcesses, ReservedPort, wait_until

pytestmark = pytest.mark.interop
WAIT_S = 60.0
ORDER = ("draining", "drained", "stopped")
"""Events of the log of a router that is drained to be stopped."""
AGAIN = 25
"""Calls of each group that are answered while a router is away, and after it is back."""


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshProcesses]:
    """R1 - R2 - R3 - R4 - R1: the way from R1 to R3 by R2 costs as much as that by R4; R2 has HTTP."""
    port = ReservedPort()
    settings = generate("ring", 4)

    def with_http(router: RouterSettings) -> RouterSettings:
        return attrs.evolve(router, http=HttpSettings(port=port.number)) if router.id == "R2" else router

    settings = attrs.evolve(settings, routers={key: with_http(router) for key, router in settings.routers.items()})
    with MeshProcesses(settings, tmp_path_factory.mktemp("mesh")) as mesh:
        mesh.start()
        mesh.wait_converged()
        yield mesh
        assert set(mesh.terminate().values()) == {0}
    port.close()


def command(mesh: MeshProcesses, at: str, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--url", mesh.url(at)])


def ready(mesh: MeshProcesses) -> tuple[int, str]:
    """Answer of R2 to `/readyz`."""
    try:
        url = f"http://127.0.0.1:{mesh.settings.routers['R2'].http.port}/readyz"
        with urllib.request.urlopen(url, timeout=WAIT_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def is_drained(mesh: MeshProcesses, at: str) -> bool:
    """Whether the router *at* sees R2 drained, and no other."""
    with ManagementClient(mesh.url(at), timeout_s=WAIT_S) as client:
        return {row["id"] for row in client.query("router.node") if row["isDraining"]} == {"R2"}


def passes(mesh: MeshProcesses, sender: str, receiver: str, address: str) -> bool:
    """Whether a message passes from one router to another."""
    there = BlockingConnection(mesh.url(receiver), timeout=WAIT_S)
    subscriber = there.create_receiver(address, credit=1)
    try:
        return exchange(mesh, sender, subscriber, address)
    finally:
        there.close()


def exchange(mesh: MeshProcesses, sender: str, subscriber: BlockingReceiver, address: str) -> bool:
    """Send a message from a router to a subscriber, which takes it. Raises what either side raises."""
    here = BlockingConnection(mesh.url(sender), timeout=WAIT_S)

    def send() -> bool:
        delivery = here.create_sender(address).send(Message(body="one"))
        return bool(delivery.remote_state == Delivery.ACCEPTED)

    with ThreadPoolExecutor(1) as threads:
        sent = threads.submit(send)
        subscriber.receive(WAIT_S)
        subscriber.accept()
        while not sent.done():
            with suppress(Timeout):
                subscriber.connection.wait(sent.done, timeout=0.05)  # it writes while it waits
        here.close()
        return sent.result()


def test_a_drained_router_sends_clients_elsewhere_and_comes_back(mesh: MeshProcesses) -> None:
    client = BlockingConnection(mesh.url("R2"), timeout=WAIT_S)
    subscriber = client.create_receiver("drained.here", credit=1)
    assert exchange(mesh, "R1", subscriber, "drained.here")

    found = command(mesh, "R1", "drain", "R2")
    assert found.exit_code == 0, found.stderr
    assert "router R2 is drained" in found.stdout

    with pytest.raises(ConnectionException, match="drained"):
        client.wait(lambda: False, timeout=WAIT_S)
    with pytest.raises(ConnectionException):
        BlockingConnection(mesh.url("R2"), timeout=WAIT_S)
    code, said = ready(mesh)
    assert code == 503
    assert "the router is drained\n" in said
    wait_until(lambda: is_drained(mesh, "R4"), "R4 sees R2 drained", WAIT_S)
    assert "drained" in command(mesh, "R1", "stat", "routers").stdout
    assert "drained" in command(mesh, "R1", "stat", "general", "--router", "R2").stdout
    problems = command(mesh, "R1", "stat", "problems").stdout
    assert "router R2 is drained" in problems
    assert "amqp-mesh resume R2" in problems
    assert passes(mesh, "R1", "R3", "by.R4")
    with ManagementClient(mesh.url("R1"), timeout_s=WAIT_S) as client_of_r1:
        (route,) = [row for row in client_of_r1.query("router.node") if row["id"] == "R3"]
    assert route["nextHop"] == "R4"

    found = command(mesh, "R1", "resume", "R2")
    assert found.exit_code == 0, found.stderr
    assert "router R2 serves again" in found.stdout
    wait_until(lambda: ready(mesh)[0] == 200, "R2 is ready", WAIT_S)
    mesh.wait_converged()
    assert passes(mesh, "R2", "R2", "drained.here")
    assert passes(mesh, "R2", "R3", "drained.here")
    assert "router R2 serves: it was not drained" in command(mesh, "R1", "resume", "R2").stdout
    assert passes(mesh, "R1", "R2", "drained.here")


class Wanderer(MessagingHandler):
    """Client of python-proton that connects anew when it is closed, once."""

    def __init__(self, urls: Sequence[str]) -> None:
        super().__init__()
        self.urls = urls
        self.opened: list[str] = []

    def on_start(self, event: Event) -> None:
        event.container.connect(urls=self.urls, reconnect=[0.1] * 600, heartbeat=2)

    def on_connection_opened(self, event: Event) -> None:
        self.opened.append(event.connection.remote_container)
        if len(self.opened) == 2:
            event.connection.close()


def test_a_client_of_python_proton_with_heartbeats_goes_to_its_next_router(mesh: MeshProcesses) -> None:
    client = Wanderer([mesh.url("R2"), mesh.url("R3")])
    running = threading.Thread(target=Container(client).run, daemon=True)
    running.start()
    wait_until(lambda: client.opened == ["R2"], "it is at R2", WAIT_S)
    assert command(mesh, "R1", "drain", "R2").exit_code == 0
    running.join(60)
    assert client.opened == ["R2", "R3"]
    assert command(mesh, "R1", "resume", "R2").exit_code == 0


def test_who_drains_a_router_from_itself_stays_connected(mesh: MeshProcesses) -> None:
    with ManagementClient(mesh.url("R2"), timeout_s=WAIT_S) as client:
        assert client.request("DRAIN", {}).body["state"] == "draining"
        wait_until(lambda: client.read("router")["drainState"] == "drained", "R2 is drained", WAIT_S)
        assert client.request("DRAIN", {}).body["state"] == "drained"
        closed = [row["name"] for row in client.query("listener") if not row["isOpen"]]
        assert len(closed) == 1
        assert client.request("RESUME", {}).body["state"] == "serving"
    found = command(mesh, "R2", "drain", "R2")
    assert found.exit_code == 0
    assert "`amqp-mesh resume R2` needs the --url of another router" in found.stdout
    assert command(mesh, "R1", "resume", "R2").exit_code == 0
    assert passes(mesh, "R2", "R4", "again")


def test_a_subscriber_of_the_operator_is_known_again(mesh: MeshProcesses) -> None:
    with ManagementClient(mesh.url("R2"), timeout_s=WAIT_S) as client:
        subscriber = client.connection.create_receiver("kept", credit=1)
        client.request("DRAIN", {})
        wait_until(lambda: client.read("router")["drainState"] == "drained", "R2 is drained", WAIT_S)
        client.request("RESUME", {})
        assert exchange(mesh, "R4", subscriber, "kept")


def test_what_is_no_drained_router_is_said(mesh: MeshProcesses) -> None:
    found = command(mesh, "R1", "drain", "R9")
    assert found.exit_code == 1
    assert "there are R1, R2, R3, R4" in found.stderr
    with ManagementClient(mesh.url("R1"), timeout_s=WAIT_S) as client, pytest.raises(RefusedError, match="`stop`"):
        client.request("DRAIN", {}, {"stop": "yes"})


def stop_drained(mesh: MeshProcesses, router: str) -> None:
    """Drain a router by way of another one, and have it stop."""
    found = command(mesh, "R1" if router != "R1" else "R2", "drain", router, "--stop")
    assert found.exit_code == 0, found.output
    assert found.stdout == f"router {router} has stopped\n"
    assert mesh[router].wait_ended() == 0
    assert [line.event for line in mesh[router].log_lines() if line.event in ORDER][-3:] == list(ORDER)


def test_who_stops_a_router_from_itself_waits_for_its_end(tmp_path: Path) -> None:
    with MeshProcesses(generate("line", 1), tmp_path) as mesh:
        mesh.start()
        found = command(mesh, "R1", "drain", "R1", "--stop")
        assert (found.exit_code, found.output) == (0, "router R1 has stopped\n")
        assert mesh["R1"].wait_ended() == 0


def test_a_router_that_stops_is_told_from_one_that_is_cut_off_by_its_neighbors(tmp_path: Path) -> None:
    with MeshProcesses(generate("line", 3), tmp_path) as mesh:
        mesh.start()
        mesh.wait_converged()
        found = command(mesh, "R1", "drain", "R3", "--stop")
        assert (found.exit_code, found.output) == (0, "router R3 has stopped\n")
        assert mesh["R3"].wait_ended() == 0


def test_who_looks_when_a_router_has_stopped_already_is_told_by_its_former_neighbors(tmp_path: Path) -> None:
    with MeshProcesses(generate("line", 3), tmp_path) as mesh:
        mesh.start()
        mesh.wait_converged()
        with ManagementClient(mesh.url("R1"), timeout_s=WAIT_S) as client:
            client.request("DRAIN", body={"stop": True}, router="R3")
            assert mesh["R3"].wait_ended() == 0
            mesh.wait_converged()
            wait_neighbors_told(client, "R3", ["R2"], time.monotonic() + WAIT_S)
            with pytest.raises(ManagementError, match="can't be reached: lost by its neighbors: R2"):
                wait_neighbors_told(client, "R3", (), time.monotonic() + WAIT_S)


def test_a_connection_that_ends_by_the_drain_of_another_one_tells_of_no_stop(tmp_path: Path) -> None:
    with MeshProcesses(generate("line", 1), tmp_path) as mesh:
        mesh.start()
        end = time.monotonic() + WAIT_S
        with ManagementClient(mesh.url("R1")) as first, ManagementClient(mesh.url("R1")) as second:
            assert second.attached_router() == "R1"
            first.request("DRAIN", body={"stop": True})
            with pytest.raises(ManagementError, match=r"is to stop, and has ended this connection before: .* drained"):
                wait_connection_ended(second, "R1", end)
            wait_connection_ended(first, "R1", end)
        assert mesh["R1"].wait_ended() == 0


@pytest.mark.slow
@needs_oslo
def test_no_call_fails_while_four_routers_restart_in_turn(mesh: MeshProcesses, tmp_path: Path) -> None:
    """Two are drained before they end, two are just told to. Servers and callers know two routers each."""
    with OsloWorker(tmp_path / "servers.log") as servers, OsloWorker(tmp_path / "callers.log") as callers:
        for first, second in (("R1", "R2"), ("R3", "R4")):
            servers.do("open", transport=first, url=oslo_url(mesh, first, second))
            servers.do("serve", transport=first, topic="load", server=f"server-{first}")
            callers.do("open", transport=first, url=oslo_url(mesh, second, first))
            callers.do("load", name=first, transport=first, topic="load", threads=2)
        for router in mesh.routers:
            wait_progress(callers, ("R1", "R3"))
            if router in ("R2", "R3"):
                stop_drained(mesh, router)
            else:
                assert mesh.terminate(router) == {router: 0}
            wait_progress(callers, ("R1", "R3"))
            mesh.start(router)
            mesh.wait_converged()
        records = [record for name in ("R1", "R3") for record in callers.do("stop_load", name=name)]
    assert set(outcomes(records)) == {"ok"}, outcomes(records)
    assert len(records) > 4 * AGAIN


def wait_progress(callers: OsloWorker, loads: tuple[str, ...]) -> None:
    """Wait until each load has made some more calls."""
    wanted = {load: callers.do("progress", name=load) + AGAIN for load in loads}
    wait_until(lambda: all(callers.do("progress", name=load) >= wanted[load] for load in loads), "calls go on", 30)


def test_who_drains_a_router_without_neighbors_is_told_how_it_serves_again(tmp_path: Path) -> None:
    with MeshProcesses(generate("line", 1), tmp_path) as lone:
        lone.start()
        found = command(lone, "R1", "drain", "R1")
        assert found.exit_code == 0
        assert "no neighbor by which it could be reached: SIGUSR2 makes it serve again" in found.output
        lone["R1"].send_signal(signal.SIGUSR2)
        wait_until(lambda: bool(lone["R1"].log_lines("resumed")), "it serves again", WAIT_S)
        with ManagementClient(lone.url("R1"), timeout_s=WAIT_S) as client:
            assert client.read("router")["drainState"] == "serving"
        assert set(lone.terminate().values()) == {0}
