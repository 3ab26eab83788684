"""A client that sends more than is taken is named by every command that looks at the address, as the cause."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from proton import Message, Timeout
from proton.utils import BlockingConnection, BlockingReceiver

from mesh_config.generators import generate
from tests.cli.test_messages import call
from tests.helpers.processes import MeshProcesses, wait_until

pytestmark = pytest.mark.interop

WAIT_S = 30
PACE_S = 0.1
"""Between two messages that the server takes."""


def serve(receiver: BlockingReceiver, is_over: threading.Event) -> None:
    while not is_over.wait(PACE_S):
        with suppress(Timeout):
            receiver.receive(timeout=1)
            receiver.accept()


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshProcesses]:
    """R1 - R2 - R3: at R3 a server that works, at R1 a client that sends it all it may, without an address."""
    with MeshProcesses(generate("line", 3), tmp_path_factory.mktemp("mesh")) as mesh:
        mesh.start()
        mesh.wait_converged()
        worker = BlockingConnection(mesh.url("R3"), timeout=WAIT_S, container_id="worker")
        batch = BlockingConnection(mesh.url("R1"), timeout=WAIT_S, container_id="batch")
        is_over = threading.Event()
        thread = threading.Thread(target=serve, args=(worker.create_receiver("jobs", credit=5), is_over))
        thread.start()
        sending = threading.Thread(target=flood, args=(batch, is_over))
        sending.start()
        try:
            wait_until(lambda: "sends faster" in call(mesh, "stat", "problems").stdout, "the flood is noticed", WAIT_S)
            yield mesh
        finally:
            is_over.set()
            for each in (thread, sending):
                each.join(WAIT_S)
            for connection in (worker, batch):
                connection.close()


def flood(connection: BlockingConnection, is_over: threading.Event) -> None:
    """Send whatever may be sent."""
    link = connection.create_sender(None).link
    while not is_over.is_set():
        while link.credit:
            link.send(Message(body="x", address="jobs"))
        with suppress(Timeout):
            connection.wait(lambda: link.credit > 0, timeout=1)


def test_the_flood_is_the_only_problem_and_what_follows_stands_with_it(mesh: MeshProcesses) -> None:
    def lines() -> list[str]:
        return call(mesh, "stat", "problems").stdout.splitlines()

    wait_until(lambda: any(line.startswith("  so: ") for line in lines()), "messages wait for long", WAIT_S)
    found = lines()
    assert found[0] == "1 problem; 3 routers asked"
    assert found[1].startswith("publisher-floods (R1, since ")
    assert found[2].startswith("  client batch (127.0.0.1:")


def test_trace_and_credit_name_it(mesh: MeshProcesses) -> None:
    traced = call(mesh, "trace", "jobs", "--seconds", "0", "--router", "R2").stdout.splitlines()
    assert traced[1].startswith("  FLOOD at R1: client batch (127.0.0.1:")
    credit = call(mesh, "stat", "credit", "--address", "jobs", "--router", "R3").stdout.splitlines()
    assert credit[1].startswith("flood at R1: client batch (127.0.0.1:")
    # At its own router nothing waits, and it is named all the same.
    own = call(mesh, "stat", "credit", "--router", "R1").stdout.splitlines()
    assert own[1].startswith("flood at R1: client batch (127.0.0.1:"), own  # how many are under way changes meanwhile
    # Where it sends from, its messages name the address, and no link does.
    credit = call(mesh, "stat", "credit", "--address", "jobs", "--router", "R1").stdout.splitlines()
    assert credit[0] == "R1: nobody subscribes to jobs here, and no publisher's link names it"
    assert credit[1].startswith("flood at R1: client batch (127.0.0.1:")


def test_top_blames_who_floods_and_not_the_server(mesh: MeshProcesses) -> None:
    found = json.loads(call(mesh, "top", "--by", "links", "--json", "--looks", "1").stdout)["rows"]
    assert [(row["container"], row["is_full"], row["is_slow"]) for row in found] == [
        ("batch", True, False),
        ("worker", False, False),
    ]
