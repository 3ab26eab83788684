"""Management of real routers: by python-proton as any program would ask, and by `stat`."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner
from proton import Message
from proton.utils import SyncRequestResponse

from mesh_config.generators import generate
from mesh_config.models import ListenerSettings, MeshSettings, RouterSettings
from router.cli import main
from router.cli.entity_rows import checked
from router.cli.management import ManagementClient
from router.cli.management_errors import ManagementError, RefusedError
from router.cli.stat_columns import VIEWS
from router.management.schema import TYPES
from tests.helpers.blocking_client import connected
from tests.helpers.processes import MeshProcesses, wait_until
from tests.management.fakes import PYTHON_TYPES

pytestmark = pytest.mark.interop

WAIT_S = 60.0
NEVER_THERE = (
    "vhostStats",
    "vhost",
    *(f"router.config.{kind}" for kind in ("linkRoute", "autoLink", "exchange", "binding")),
)


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshProcesses]:
    """R1 - R2."""
    with MeshProcesses(generate("line", 2), tmp_path_factory.mktemp("mesh")) as mesh:
        mesh.start()
        mesh.wait_converged()
        yield mesh
        assert set(mesh.terminate().values()) == {0}
        for router in mesh.routers.values():
            assert not [line for line in router.log_lines() if line.level in ("error", "critical")]


@pytest.fixture
def client(mesh: MeshProcesses) -> Iterator[ManagementClient]:
    with ManagementClient(mesh.url("R1"), timeout_s=WAIT_S) as client:
        yield client


@pytest.fixture
def connection(mesh: MeshProcesses) -> Iterator[Any]:
    with connected(mesh.url("R1")) as connection:
        yield connection


def flush(connection: Any) -> None:
    """Write what proton still keeps: its blocking connection does nothing between two calls."""
    connection.wait(lambda: not connection.conn.transport.pending())


def send(connection: Any, sender: Any, number: int) -> Any:
    """A delivery whose bytes have left, settled or not."""
    delivery = sender.link.send(Message(body=number))
    flush(connection)
    return delivery


def stat(mesh: MeshProcesses, *arguments: str, router: str = "R1") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "router", "stat", *arguments, "--url", mesh.url(router)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def lines(found: subprocess.CompletedProcess[str]) -> list[list[str]]:
    """Words of each line of a table; nothing is cut where the output is no terminal."""
    assert found.returncode == 0, found.stderr
    return [line.split() for line in found.stdout.splitlines()]


# Asked as any program would


@pytest.mark.parametrize(
    ("address", "router"),
    [
        ("$management", "R1"),
        ("amqp:/_topo/0/R1/$management", "R1"),
        ("_topo/0/R1/$management", "R1"),
        ("amqp:/_topo/0/R2/$management", "R2"),
        (None, "R2"),
    ],
)
def test_a_sender_to_a_management_node_gets_an_answer_to_each_request(
    connection: Any, address: str | None, router: str
) -> None:
    requests: Any = SyncRequestResponse(connection, address)
    request = Message(properties={"operation": "READ", "type": "router"}, address=f"amqp:/_topo/0/{router}/$management")
    for _ in range(5):
        reply = requests.call(request)
        assert reply.properties == {"statusCode": 200, "statusDescription": "OK"}
        assert reply.body["id"] == router


def test_a_reply_may_go_to_any_address_that_somebody_subscribes_to(connection: Any) -> None:
    receiver = connection.create_receiver("replies/mine")
    sender = connection.create_sender("$management")
    sender.send(Message(properties={"operation": "GET-MGMT-NODES"}, reply_to="replies/mine", id="first"))
    reply = receiver.receive(WAIT_S)  # it is pre-settled
    assert reply.correlation_id == "first"
    assert reply.body == ["amqp:/_topo/0/R1/$management", "amqp:/_topo/0/R2/$management"]


def test_requests_that_cannot_be_answered_are_logged_and_hurt_nobody(
    mesh: MeshProcesses, connection: Any, client: ManagementClient
) -> None:
    sender = connection.create_sender("$management")
    sender.send(Message(properties={"operation": "READ", "type": "router"}))
    sender.send(Message(properties={"operation": "QUERY"}, reply_to="amqp:/_topo/0/R2/qdrouter"))
    sender.send(Message(properties={"operation": "QUERY"}, reply_to="amqp:/_topo/0/R2/temp.gone"))
    assert client.read("router")["id"] == "R1"
    ignored = mesh["R1"].log_lines("management_request_ignored")
    assert [line.fields["reason"] for line in ignored] == ["it names no address to reply to"] * 2


def test_bytes_that_are_no_message_are_logged_and_hurt_nobody(
    mesh: MeshProcesses, connection: Any, client: ManagementClient
) -> None:
    sender = connection.create_sender("$management")
    delivery = sender.link.delivery("garbage")
    sender.link.send(b"\x00\x53\x77\xc1\xff")
    sender.link.advance()
    connection.wait(lambda: delivery.settled)
    assert client.read("router")["id"] == "R1"
    mesh["R1"].wait_log("management_request_malformed")  # a thread writes it


# Every entity


@pytest.mark.parametrize("router", ["R1", "R2"])
@pytest.mark.parametrize("kind", TYPES.values(), ids=lambda kind: kind.short_name)
def test_every_entity_of_a_router_has_every_attribute(
    mesh: MeshProcesses, client: ManagementClient, kind: Any, router: str
) -> None:
    with connected(mesh.url(router)) as there:
        there.create_receiver("somebody/there")
        found = client.query(kind.name, router=router)
        if kind.short_name in ("router.node", "listener", "connector", "router.address", "amqp-mesh.credit"):
            for entity in found:
                read = client.read(kind.name, identity=entity["identity"], router=router)
                assert read["name"] == entity["name"]
    # There is no policy, the later router of a line connects to the earlier, and nothing is wrong.
    if kind.short_name in NEVER_THERE:
        assert not found
    elif kind.short_name != "amqp-mesh.problem" and (kind.short_name != "connector" or router == "R2"):
        assert found
    for entity in found:
        assert list(entity) == list(kind.attributes)
        for name, attribute in kind.attributes.items():
            wanted = (
                (PYTHON_TYPES[attribute.kind], type(None)) if attribute.is_optional else PYTHON_TYPES[attribute.kind]
            )
            assert isinstance(entity[name], wanted), name


def test_a_neighbor_and_its_connection_are_told(client: ManagementClient, mesh: MeshProcesses) -> None:
    near, far = client.query("router.node")
    assert (near["id"], near["nextHop"], near["cost"], near["linkState"]) == ("R1", "(self)", 0, ["R2"])
    assert (far["id"], far["nextHop"], far["cost"], far["linkCosts"]) == ("R2", "R2", 1, {"R1": 1})
    between = client.read("connection", identity=far["routerLink"])
    assert (between["container"], between["role"], between["dir"]) == ("R2", "inter-router", "in")
    assert (between["neighborState"], between["active"], between["cost"]) == ("two-way", True, 1)
    (connector,) = client.query("connector", router="R2")
    assert (connector["connectionStatus"], int(connector["port"])) == (
        "SUCCESS",
        mesh["R1"].settings.listeners[1].port,
    )


def test_counters_follow_messages_and_outlive_their_links(
    client: ManagementClient, mesh: MeshProcesses, connection: Any
) -> None:
    before = client.read("router")
    with connected(mesh.url("R2")) as far:
        receiver = far.create_receiver("counted/here", credit=10)
        sender = connection.create_sender("counted/here", name="counted")
        deliveries = []
        for number in range(3):
            connection.wait(lambda: sender.link.credit > 0)
            deliveries.append(send(connection, sender, number))
            receiver.receive(WAIT_S)
            receiver.accept() if number else receiver.reject()
        flush(far)
        connection.wait(lambda: all(delivery.settled for delivery in deliveries))
        address = client.read("router.address", name="M0counted/here")
        assert (address["deliveriesIngress"], address["remoteHostRouters"], address["publisherCount"]) == (3, ["R2"], 1)
        assert client.read("router.address", name="M0counted/here", router="R2")["deliveriesEgress"] == 3
        link = client.read("router.link", name="counted")
        assert (link["deliveryCount"], link["acceptedCount"], link["rejectedCount"]) == (3, 2, 1)
        sender.close()
    after = client.read("router")
    assert after["rejectedDeliveries"] == before["rejectedDeliveries"] + 1
    assert after["acceptedDeliveries"] >= before["acceptedDeliveries"] + 2
    assert after["deliveriesIngress"] >= before["deliveriesIngress"] + 3


def test_the_connection_of_a_neighbor_counts_messages_also_of_circuits_that_are_gone(tmp_path: Path) -> None:
    def hasty(router: RouterSettings) -> RouterSettings:
        return attrs.evolve(router, forwarding=attrs.evolve(router.forwarding, circuit_idle_s=0.1))

    routers = {key: hasty(router) for key, router in generate("line", 2).routers.items()}
    with MeshProcesses(MeshSettings(routers=routers), tmp_path) as mesh:
        mesh.start()
        mesh.wait_converged()
        with (
            ManagementClient(mesh.url("R1"), timeout_s=WAIT_S) as near,
            ManagementClient(mesh.url("R2"), timeout_s=WAIT_S) as far,
            connected(mesh.url("R1")) as publishing,
        ):

            def between(client: ManagementClient) -> dict[str, Any]:
                (found,) = [it for it in client.query("connection") if it["role"] == "inter-router"]
                return found

            began = between(near)
            assert (began["deliveriesOut"], began["deliveriesIn"]) == (0, 0)
            with connected(mesh.url("R2")) as subscribing:
                receiver = subscribing.create_receiver("counted/here", credit=10)
                sender = publishing.create_sender("counted/here")
                for _ in range(5):
                    publishing.wait(lambda: sender.link.credit > 0)
                    sender.link.send(Message(body="x" * 10_000))
                    flush(publishing)
                    receiver.receive(WAIT_S)
                    receiver.accept()
                flush(subscribing)
                sender.close()

            def circuits() -> list[Any]:
                return [it for it in near.query("router.link") if it["owningAddr"] == "M0counted/here"]

            wait_until(lambda: not circuits(), "the circuit is ended", WAIT_S)
            ended = between(near)
            assert (ended["deliveriesOut"], ended["deliveriesIn"]) == (5, 0)
            assert between(far)["deliveriesIn"] == 5
            if ended["bytesOut"] is not None:  # Linux tells
                assert 50_000 < ended["bytesOut"] - began["bytesOut"] < 60_000
                assert ended["bytesIn"] > began["bytesIn"] > 0
                assert ended["roundTripMicros"] > 0


def test_messages_without_credit_are_seen_waiting(
    client: ManagementClient, mesh: MeshProcesses, connection: Any
) -> None:
    stalled = connection.create_receiver("stalled/here", name="stalled", credit=0)
    stalled.link.flow(2)
    sender = connection.create_sender("stalled/here")
    deliveries = []
    for number in range(3):  # two that were granted, and one beyond that
        connection.wait(lambda: sender.link.credit > 0)
        deliveries.append(send(connection, sender, number))

    def blocked() -> dict[str, Any]:
        return client.read("router.link", name="stalled")

    wait_until(lambda: blocked()["undeliveredCount"] == 1 and blocked()["zeroCreditSeconds"] >= 1, "it waits", WAIT_S)
    assert sender.link.credit == 0
    assert blocked()["isBlocked"]
    address = client.read("router.address", name="M0stalled/here")
    assert (address["waitingCount"], address["creditAvailable"], address["oldestWaitSeconds"] >= 1) == (1, 0, True)
    assert client.read("router")["linksBlocked"] == 1
    # What waits stands first, in words.
    table = lines(stat(mesh, "links"))
    assert (table[2][0], table[2][6]) == ("blocked", "stalled/here")
    table = lines(stat(mesh, "addresses"))
    assert table[2][:2] == ["waiting", "stalled/here"]
    stalled.link.flow(10)
    for _ in deliveries:
        stalled.receive(WAIT_S)
        stalled.accept()
    flush(connection)
    connection.wait(lambda: all(delivery.settled for delivery in deliveries))
    assert not blocked()["isBlocked"]
    sender.close()
    stalled.close()


# The client


def test_refusals_reach_the_caller(client: ManagementClient) -> None:
    with pytest.raises(RefusedError, match=r"the nearest is router\.node/R\d \(404\)"):
        client.read("router.node", name="router.node/R9")
    with pytest.raises(ManagementError, match=r"router R9 cannot be reached.*; there are R1, R2"):
        client.read("router", router="R9")
    with pytest.raises(RefusedError, match=r"UPDATE of router is not possible; there is READ \(501\)"):
        client.request("UPDATE", {"type": "router", "name": "R1"}, {"mode": "edge"})
    assert client.routers() == ["R1", "R2"]


def test_a_long_list_comes_in_pages(client: ManagementClient, connection: Any) -> None:
    receivers = [connection.create_receiver(f"many/{number}", credit=0) for number in range(450)]
    addresses = client.query("router.address", ["key"])
    assert {f"M0many/{number}" for number in range(450)} <= {address["key"] for address in addresses}
    assert len(addresses) == len({address["key"] for address in addresses})
    assert len(client.query("router.address", ["key"], limit=7)) == 7
    del receivers


def test_nobody_there_is_said_in_words(tmp_path: Path) -> None:
    lonely = MeshSettings(routers={"A": RouterSettings(id="A", listeners=(ListenerSettings(port=0),))})
    with MeshProcesses(lonely, tmp_path) as mesh:  # its port is reserved, and nobody listens there
        found = stat(mesh, "--timeout", "5", router="A")
        assert found.returncode == 1
        assert found.stderr.startswith(f"Error: no router answers at {mesh.url('A')}: ")
        assert found.stderr.count("\n") == 1
        mesh.start()
        found = stat(mesh, router="A")
        assert lines(found)[0] == ["router", "A"]
        assert ["mode", "standalone"] in lines(found)


# stat


def test_stat_shows_the_routers(mesh: MeshProcesses) -> None:
    table = lines(stat(mesh, "routers"))
    assert table[0] == ["R1:", "2", "routers"]
    assert [[row[0], row[1], *row[3:6]] for row in table[2:]] == [
        ["R1", "up", "(self)", "0", "R2"],
        ["R2", "up", "R2", "1", "R1"],
    ]


def test_stat_asks_another_router_or_all_of_them(mesh: MeshProcesses) -> None:
    assert lines(stat(mesh, "--router", "R2"))[0] == ["router", "R2"]
    table = lines(stat(mesh, "connections", "--all-routers"))
    assert [row for row in table if row and row[0].endswith(":")] == [
        ["R1:", "1", "connection"],
        ["R2:", "1", "connection"],
    ]
    assert [row[1] for row in table if len(row) > 5 and row[3] == "inter-router"] == ["R2", "R1"]
    unknown = stat(mesh, "--router", "R9")
    assert unknown.returncode == 1
    assert unknown.stderr.strip().endswith("; there are R1, R2")


@pytest.mark.parametrize("what", ["general", "connections", "links", "addresses", "routers"])
def test_stat_writes_json_and_csv_with_all_attributes(mesh: MeshProcesses, what: str) -> None:
    shown = stat(mesh, what, "--all-routers", "--json")
    assert shown.returncode == 0, shown.stderr
    entities = json.loads(shown.stdout)
    assert {entity["router"] for entity in entities} == {"R1", "R2"}
    kind = TYPES[entities[0]["type"]]
    assert all(list(entity) == ["router", *kind.attributes] for entity in entities)
    table = list(csv.DictReader(io.StringIO(stat(mesh, what, "--all-routers", "--csv").stdout)))
    assert list(table[0]) == ["router", *kind.attributes]
    assert {row["router"] for row in table} == {"R1", "R2"}


def test_stat_shows_an_unreachable_router_first(mesh: MeshProcesses, tmp_path: Path) -> None:
    with MeshProcesses(generate("line", 2), tmp_path) as own:
        own.start()
        own.wait_converged()
        own.kill("R2")
        own.wait_converged()
        table = lines(stat(own, "routers"))
        assert [row[:2] for row in table[2:]] == [["R2", "ABSENT"], ["R1", "up"]]
        assert stat(own, "--router", "R2").returncode == 1
        own.start("R2")
        own.wait_converged()
        assert lines(stat(own, "--router", "R2"))[0] == ["router", "R2"]


@pytest.mark.parametrize("what", [*VIEWS, "general", "credit", "problems", "ping", "trace", "top"])
def test_a_router_that_does_not_tell_all_attributes_is_shown_without(
    mesh: MeshProcesses, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """One of an earlier version has not all attributes of this one."""

    def keep_only_names(
        kind: str, rows: Sequence[Mapping[str, Any]], whom: str, check: Callable[..., Any] = checked
    ) -> list[dict[str, Any]]:
        kept = ("id", "identity", "name", "connection", "address", "addresses")
        return check(kind, [{name: row[name] for name in kept if name in row} for row in rows], whom)

    monkeypatch.setattr("router.cli.management.checked", keep_only_names)
    words = {"ping": ["ping"], "trace": ["trace", "x", "--seconds", "0"], "top": ["top", "--json", "--looks", "1"]}
    found = CliRunner().invoke(main, [*words.get(what, ["stat", what]), "--url", mesh.url("R1")])
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    if what == "routers":
        assert re.search(r"^R2 +\? ", found.stdout, re.MULTILINE)
        assert "?: not reported by this router; is it another version?" in found.stdout
        assert found.exit_code == 0
        monkeypatch.setenv("COLUMNS", "6")
        folded = CliRunner().invoke(main, ["stat", what, "--url", mesh.url("R1")]).stdout
        assert "not reported" in " ".join(folded.split())
    elif found.exit_code:
        assert "is it another version?" in found.stderr
