"""Credit of real routers, as `stat --credit` prints it: a stalled subscriber and blocked publishers."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from proton import Message
from proton.reactor import Container
from proton.utils import BlockingConnection

from mesh_config.generators import generate
from router.cli.management import ManagementClient
from router.management.schema import TYPES
from tests.helpers.processes import MeshProcesses, wait_until

pytestmark = pytest.mark.interop

WAIT_S = 60.0
ADDRESS = "openstack.org/om/rpc/anycast/orders"
KEY = f"M0{ADDRESS}"
GRANTED = 3


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshProcesses]:
    """R1 - R2."""
    with MeshProcesses(generate("line", 2), tmp_path_factory.mktemp("mesh")) as mesh:
        mesh.start()
        mesh.wait_converged()
        yield mesh
        assert set(mesh.terminate().values()) == {0}


def connect(url: str, name: str) -> Any:
    """A connection of python-proton; Any, as not all of that library has types."""
    container: Any = Container()
    container.container_id = name
    return BlockingConnection(url, timeout=WAIT_S, container=container)


def stat(mesh: MeshProcesses, *arguments: str) -> str:
    command = [sys.executable, "-m", "router", "stat", *arguments, "--url", mesh.url("R1")]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout


def words(table: str) -> list[list[str]]:
    return [line.split() for line in table.splitlines()]


class Scene:
    """A subscriber at R2 that granted a few credits and settles nothing; two publishers at R1 with more to send."""

    def __init__(self, mesh: MeshProcesses) -> None:
        self.mesh = mesh
        self.worker = connect(mesh.url("R2"), "worker")
        self.receiver = self.worker.create_receiver(ADDRESS, credit=0)  # else proton grants by itself
        self.grant(GRANTED)
        self.api = connect(mesh.url("R1"), "api")
        self.senders = [self.api.create_sender(ADDRESS, name=name) for name in ("first", "second")]
        for number in range(4):
            for sender in self.senders:
                sender.link.send(Message(body=number))
        # What was granted leaves, and one message of each publisher waits at its router.
        left = 2 * 4 - GRANTED - 2
        self.api.wait(lambda: self.queued == left and not self.api.conn.transport.pending())
        wait_until(lambda: self.credit()["blockedSeconds"] >= 1, "they are blocked", WAIT_S)

    def grant(self, credit: int) -> None:
        self.receiver.link.flow(credit)
        self.worker.wait(lambda: not self.worker.conn.transport.pending())

    @property
    def queued(self) -> int:
        """Messages that have not left their publishers."""
        return sum(sender.link.queued for sender in self.senders)

    def credit(self) -> dict[str, Any]:
        with ManagementClient(self.mesh.url("R1"), timeout_s=WAIT_S) as client:
            (found,) = client.query("amqp-mesh.credit", key=KEY)
        return found

    def close(self) -> None:
        for connection in (self.api, self.worker):
            connection.close()


@pytest.fixture
def scene(mesh: MeshProcesses) -> Iterator[Scene]:
    scene = Scene(mesh)
    yield scene
    scene.close()


def test_the_command_leads_from_blocked_publishers_to_the_stalled_subscriber(mesh: MeshProcesses, scene: Scene) -> None:
    title, head, *table = words(stat(mesh, "--credit"))
    assert title[:1] + title[-4:] == ["R1:", "1", "with", "blocked", "publishers"]
    assert head == ["state", "granted", "held", "waits", "for", "who"]
    address, circuit, *publishers = table[:4]
    assert address[:4] == ["blocked", "0", "0", "2"]
    assert " ".join(address[5:]) == f"{ADDRESS}, balanced, 2 of 2 publishers blocked"
    assert " ".join(circuit) == f"no credit 0 circuit out to R2, weight 2, {GRANTED} unsettled"
    for publisher in publishers:
        assert publisher[:3] + publisher[4:6] == ["blocked", "0", "1", "publisher", "api"]
        assert publisher[6].startswith("(127.0.0.1:")
    for seconds in (address[4], publishers[0][3], publishers[1][3]):
        assert int(seconds.removesuffix("s")) >= 1
    # The same address at the router of its subscriber.
    title, _, *table = words(stat(mesh, "credit", "--router", "R2", "--address", ADDRESS))
    assert title == ["R2:", "1", "address,", "0", "with", "blocked", "publishers"]
    assert [re.sub(r" \(127.0.0.1:\d+\)", "", " ".join(row)) for row in table] == [
        f"- 0 0 0 - {ADDRESS}, balanced",
        f"no credit 0 subscriber worker, {GRANTED} unsettled",
        "0 circuit in from R1, egress R2, weight 2",
    ]
    # It grants again.
    scene.grant(100)
    scene.api.wait(lambda: scene.queued == 0)
    wait_until(lambda: scene.credit()["blockedCount"] == 0, "they have credit", WAIT_S)
    _, _, address, *_ = words(stat(mesh, "--credit", "--address", ADDRESS))
    # What idle publishers give back is in quarantine for a while, which the row says too.
    assert (address[0], address[3]) == ("-", "0")
    assert " ".join(address[5:]).removesuffix(", 2 in quarantine") == f"{ADDRESS}, balanced"


def test_all_routers_are_shown_and_addresses_beyond_a_limit_are_counted(mesh: MeshProcesses, scene: Scene) -> None:
    others = [scene.worker.create_receiver(f"{ADDRESS}/{number}") for number in range(4)]
    table = words(stat(mesh, "--credit", "--all-routers", "--limit", "2"))
    assert [row[0] for row in table if row and row[0].endswith(":")] == ["R1:", "R2:"]
    assert table[-1][:6] == ["3", "more", "addresses,", "0", "with", "blocked"]
    assert words(stat(mesh, "--credit", "--address", "ordres"))[0][:4] == ["R1:", "nobody", "subscribes", "to"]
    for receiver in others:
        receiver.close()


def test_json_and_csv_have_all_attributes_of_addresses_and_parties(mesh: MeshProcesses, scene: Scene) -> None:
    found = json.loads(stat(mesh, "--credit", "--all-routers", "--json"))
    assert {row["router"] for row in found} == {"R1", "R2"}
    for row in found:
        assert list(row) == ["router", *TYPES[row["type"]].attributes]
    assert found[0]["key"] == KEY
    assert [row["role"] for row in found[1:4]] == ["circuit out", "publisher", "publisher"]
    table = list(csv.DictReader(io.StringIO(stat(mesh, "--credit", "--csv", "--limit", "1"))))
    assert [row["role"] for row in table] == ["", "circuit out", "publisher", "publisher"]
    assert {row["key"] for row in table} == {KEY}
