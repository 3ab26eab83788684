"""A running router is changed over management: listeners, connectors, addresses, the log, connections."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from proton import UNDESCRIBED, Array, ConnectionException, Data, Described, Message, decimal32, decimal128, symbol
from proton.utils import BlockingConnection

from mesh_config.generators import generate
from mesh_config.models import ListenerSettings, Role
from router.cli.management import ManagementClient
from router.cli.management_errors import RefusedError
from router.core.errors import LocalError
from router.net.listener import address_of
from router.views.reload import in_thread
from tests.helpers.processes import LOOPBACK, MeshProcesses, ReservedPort, wait_until

pytestmark = pytest.mark.interop
WAIT_S = 60.0


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshProcesses]:
    """R1 and R2, joined; the tests join them anew."""
    with MeshProcesses(generate("line", 2), tmp_path_factory.mktemp("mesh")) as mesh:
        mesh.start()
        mesh.wait_converged()
        yield mesh
        assert set(mesh.terminate().values()) == {0}
        assert not [line for line in mesh["R1"].log_lines() if line.level in ("error", "critical")]


@pytest.fixture
def client(mesh: MeshProcesses) -> Iterator[ManagementClient]:
    with ManagementClient(mesh.url("R1"), timeout_s=WAIT_S) as client:
        yield client


@contextmanager
def free_port() -> Iterator[int]:
    port = ReservedPort()
    try:
        yield port.number
    finally:
        port.close()


def create(client: ManagementClient, kind: str, name: str, **attributes: object) -> dict[str, Any]:
    reply = client.request("CREATE", {"type": kind, "name": name}, attributes)
    assert reply.status == 201
    assert isinstance(reply.body, dict)
    return reply.body


def delete(client: ManagementClient, kind: str, name: str) -> None:
    assert client.request("DELETE", {"type": kind, "name": name}).status == 204


def accepts(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True


def test_a_listener_is_opened_and_closed(client: ManagementClient) -> None:
    with free_port() as port:
        made = create(client, "listener", "more", host=LOOPBACK, port=str(port), role="normal")
        assert made["identity"] == f"listener/{LOOPBACK}:{port}:more"
        with ManagementClient(f"amqp://{LOOPBACK}:{port}", timeout_s=WAIT_S) as other:
            delete(client, "listener", "more")
            wait_until(lambda: not accepts(port), "nobody accepts", WAIT_S)
            assert other.read("router")["id"] == "R1"  # its connections stay
        with pytest.raises(RefusedError, match="no listener `more`"):
            client.read("listener", name="more")


def exhaust(work: Iterator[None]) -> None:
    for _ in work:
        pass


def test_the_host_of_a_listener_is_looked_up_beside_all_else(
    client: ManagementClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with free_port() as port:
        assert create(client, "listener", "named", host="localhost", port=port)["host"] == LOOPBACK
        delete(client, "listener", "named")
    answered = threading.Event()

    def answer_late(*_: object) -> list[tuple[object, ...]]:
        assert answered.wait(WAIT_S)
        return [(0, 0, 0, "", ("192.0.2.7", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", answer_late)
    work = in_thread(lambda: address_of(ListenerSettings(host="slow.example")))
    for _ in range(10):
        next(work)
    answered.set()
    found: list[str] = []

    def take() -> Iterator[None]:
        found.append((yield from work))

    exhaust(take())
    assert found == ["192.0.2.7"]

    def deny(*_: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", deny)
    with pytest.raises(LocalError, match=r"nowhere\.example:7: the host nowhere\.example is not known"):
        exhaust(in_thread(lambda: address_of(ListenerSettings(host="nowhere.example", port=7))))


def test_a_connector_joins_two_routers_and_parts_them(mesh: MeshProcesses, client: ManagementClient) -> None:
    listener = next(each for each in mesh["R2"].settings.listeners if each.role is Role.INTER_ROUTER)
    made = create(client, "connector", "second", host=LOOPBACK, port=listener.port)
    assert made["connectionStatus"] in ("CONNECTING", "SUCCESS")
    wait_until(lambda: client.read("connector", name="second")["connectionStatus"] == "SUCCESS", "it is up", WAIT_S)
    delete(client, "connector", "second")
    place = f":{listener.port}"
    wait_until(
        lambda: not any(each["host"].endswith(place) for each in client.query("connection")), "it is closed", WAIT_S
    )
    mesh.wait_converged()


@pytest.mark.parametrize("host", [LOOPBACK, "localhost"])
def test_a_connector_to_this_very_router_is_refused(mesh: MeshProcesses, host: str) -> None:
    listener = next(each for each in mesh["R2"].settings.listeners if each.role is Role.INTER_ROUTER)
    with (
        ManagementClient(mesh.url("R2"), timeout_s=WAIT_S) as client,
        pytest.raises(RefusedError, match=f"this router listens at {host}:{listener.port}: it would connect to itself"),
    ):
        create(client, "connector", "self", host=host, port=listener.port)


def test_of_two_connectors_to_one_place_the_named_one_goes(mesh: MeshProcesses) -> None:
    with ManagementClient(mesh.url("R2"), timeout_s=WAIT_S) as client:
        (in_file,) = client.query("connector")
        create(client, "connector", "again", host=in_file["host"], port=int(in_file["port"]), role="inter-router")
        delete(client, "connector", "again")
        assert [each["identity"] for each in client.query("connector")] == [in_file["identity"]]


def test_an_address_has_the_treatment_that_was_created(client: ManagementClient) -> None:
    made = create(client, "router.config.address", "news", prefix="news", distribution="multicast")
    assert client.read("router.config.address", identity=made["identity"])["name"] == "news"
    connection: Any = BlockingConnection(client.url, timeout=WAIT_S)
    connection.create_receiver("news/today")
    found = next(each for each in client.query("router.address") if each["key"] == "M0news/today")
    assert found["distribution"] == "multicast"
    connection.close()
    delete(client, "router.config.address", "news")
    again = client.request(
        "CREATE", {"type": "router.config.address"}, {"prefix": "news", "distribution": "multicast"}
    ).body
    assert isinstance(again, dict)
    assert again["name"] != "news", "that was the name of the one before"
    client.request("DELETE", {"type": "router.config.address", "identity": again["identity"]})


def test_what_distance_is_worth_is_shown_as_it_was_given(client: ManagementClient) -> None:
    made = create(client, "router.config.address", "far", prefix="far", distanceMessages=0.2)
    assert made["distanceMessages"] == 0.2
    assert client.read("router.config.address", identity=made["identity"])["distanceMessages"] == 0.2
    delete(client, "router.config.address", "far")


@pytest.mark.parametrize(
    ("kind", "attributes", "said"),
    [
        ("listener", {"port": 70000}, "port: "),
        ("listener", {"prot": 1}, "no attribute of listener `prot`; the nearest is port"),
        ("listener", {"connectionCount": 1}, "`connectionCount` of a new entity can't be set"),
        ("connector", {"port": 1, "role": "normal"}, "would carry nothing"),
        ("connector", {"port": 1, "host": "a..b"}, 'host: the text "a..b" has a dot with nothing before'),
        ("listener", {"port": 0, "host": "a\0b"}, "which it may not have; expected a host name"),
        ("listener", {"port": 0, "host": "x" * 64}, "has a part of more than 63 characters"),
        ("listener", {"port": 0, "idleTimeoutSeconds": Described(symbol("a"), 1)}, "is a described value; exp"),
        ("connector", {"port": UUID(int=1)}, "port is a uuid; expected text, a number, `true` or `false`"),
        ("connector", {"port": 1, "cost": decimal128(bytes(16))}, "cost is a decimal; expected text"),
        ("connector", {"port": 1, "cost": decimal32(1)}, "cost is a decimal; expected text"),
        ("connector", {"port": 1, "maxSessions": Array(UNDESCRIBED, Data.INT, 1)}, "maxSessions is an array; expected"),
        ("connector", {"port": 1, "host": b"a"}, "host is binary; expected text"),
        ("connector", {"port": {"a": [1]}}, "port is a map; expected text"),
        (
            "router.config.address",
            {"prefix": "a", "distanceMessages": float("nan")},
            "distance_messages: nan is out of range",
        ),
        ("router.config.address", {"pattern": "a/" * 600}, "pattern: a pattern of 1200 bytes fits no address"),
        ("router.config.address", {"prefix": "_local/x"}, "what begins with `_local` is of one router"),
        ("router.config.address", {"distribution": "closest"}, "neither `prefix` nor `pattern`"),
        ("router.config.address", {"prefix": "a", "distribution": "nearest"}, "treatment: "),
    ],
)
def test_what_a_file_may_not_have_is_refused_in_the_same_words(
    client: ManagementClient, kind: str, attributes: dict[str, object], said: str
) -> None:
    before = client.query(kind)
    with pytest.raises(RefusedError) as refused:
        create(client, kind, "wrong", **attributes)
    assert refused.value.status == 400
    assert said in str(refused.value)
    assert len(client.query(kind)) == len(before)


@pytest.mark.parametrize(
    ("kind", "name", "attributes"),
    [
        ("log", "log/DEFAULT", {"enable": ["debug+"]}),
        ("log", "log/DEFAULT", {"format": {"a": 1}}),
        ("log", "log/DEFAULT", {"enable": Described(symbol("a"), "debug+")}),
        ("connection", None, {"adminStatus": ["deleted"]}),
    ],
)
def test_an_update_to_what_is_no_scalar_is_refused(
    client: ManagementClient, kind: str, name: str | None, attributes: dict[str, object]
) -> None:
    found = {"name": name} if name is not None else {"identity": client.query(kind)[0]["identity"]}
    with pytest.raises(RefusedError, match="expected text, a number") as refused:
        client.request("UPDATE", {"type": kind, **found}, attributes)
    assert refused.value.status == 400


def test_a_name_may_have_any_letters(client: ManagementClient) -> None:
    name = "\N{GRINNING FACE} null: 'é'"
    made = create(client, "listener", name, host=LOOPBACK, port=0)
    assert made["name"] == name
    delete(client, "listener", name)


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        ("listener", {"port": 0}),
        ("connector", {"port": 1}),
        ("router.config.address", {"prefix": "named"}),
    ],
)
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a\nb", 'name: the text "a\\nb" has the character U+000A (a control character), which it may not have'),
        ("a\u2028b", "has the character U+2028 (line separator), which it may not have"),
        ("", 'name: the text "" is empty; expected a name of visible characters'),
    ],
)
def test_a_name_is_as_a_file_may_have_it(
    client: ManagementClient, kind: str, attributes: dict[str, object], name: str, said: str
) -> None:
    with pytest.raises(RefusedError) as refused:
        create(client, kind, name, **attributes)
    assert refused.value.status == 400
    assert said in str(refused.value)


def test_a_port_that_is_taken_and_a_name_that_is_taken_are_refused(
    mesh: MeshProcesses, client: ManagementClient
) -> None:
    with pytest.raises(RefusedError, match="Address already in use"):
        create(client, "listener", "taken", host=LOOPBACK, port=mesh["R1"].settings.listeners[0].port)
    create(client, "router.config.address", "once", prefix="once")
    with pytest.raises(RefusedError, match="`once` already"):
        create(client, "router.config.address", "once", prefix="twice")
    create(client, "router.config.address", "in words", prefix="one/word")
    for prefix in ("once", "/once", "one.word"):
        with pytest.raises(RefusedError, match=f"`{prefix}` is configured already"):
            create(client, "router.config.address", "other", prefix=prefix)
    (near,) = (each.settings.connectors[0] for each in [mesh["R2"]] if each.settings.connectors)
    with pytest.raises(RefusedError, match="already: give this one a name of its own"):
        client.request("CREATE", {"type": "connector"}, {"host": near.host, "port": near.port}, router="R2")
    builtin = next(each for each in client.query("router.config.address") if each["isBuiltin"])
    with pytest.raises(RefusedError, match="is built in"):
        delete(client, "router.config.address", builtin["name"])


@pytest.mark.parametrize("entry", [{"prefix": ""}, {"prefix": "/"}, {"pattern": "./"}, {"prefix": "jobs/#"}])
def test_an_address_that_fits_nothing_is_refused_and_not_kept(client: ManagementClient, entry: dict[str, str]) -> None:
    before = client.query("router.config.address")
    with pytest.raises(RefusedError) as refused:
        create(client, "router.config.address", "bad", **entry)
    assert refused.value.status == 400
    assert client.query("router.config.address") == before
    create(client, "router.config.address", "good", prefix="good")
    delete(client, "router.config.address", "good")


def test_patterns_are_bounded_by_all_their_words(client: ManagementClient) -> None:
    made = [create(client, "router.config.address", f"p{at}", pattern="#/" * 499 + str(at)) for at in range(20)]
    with pytest.raises(RefusedError, match="more than 10000 words together") as refused:
        create(client, "router.config.address", "one more", pattern="a/*")
    assert refused.value.status == 403
    create(client, "router.config.address", "a prefix", prefix="a prefix")
    for name in (*(each["name"] for each in made), "a prefix"):
        delete(client, "router.config.address", name)


def test_the_log_level_is_changed(mesh: MeshProcesses, client: ManagementClient) -> None:
    assert client.read("log", name="log/DEFAULT")["enable"] == "info+"
    reply = client.request("UPDATE", {"type": "log", "name": "log/DEFAULT"}, {"enable": "error+"})
    assert reply.body["enable"] == "error+"
    lines = len(mesh["R1"].log_lines())
    with ManagementClient(client.url, timeout_s=WAIT_S):
        pass
    client.request("UPDATE", {"type": "log", "name": "log/DEFAULT"}, {"enable": "info+"})
    wait_until(lambda: bool(mesh["R1"].log_lines("log_level_changed")), "it says so", WAIT_S)
    assert len(mesh["R1"].log_lines()) - lines <= 2
    texts = [line[2] for line in client.request("GET-LOG", {"limit": 3}).body]
    assert any(text.startswith("log_level_changed") for text in texts)


def test_the_form_of_lines_is_changed(mesh: MeshProcesses, client: ManagementClient) -> None:
    name = {"type": "log", "name": "log/DEFAULT"}
    assert client.read("log", name="log/DEFAULT")["format"] == "key-value"
    assert client.request("UPDATE", name, {"format": "json"}).body["format"] == "json"
    with ManagementClient(client.url, timeout_s=WAIT_S) as other:
        container = other.container
    wait_until(lambda: f'"container": "{container}"' in mesh["R1"].log_text(), "a line in JSON", WAIT_S)
    line = next(each for each in mesh["R1"].log_text().splitlines() if f'"container": "{container}"' in each)
    found = json.loads(line)
    assert (found["event"], found["router"], found["level"]) == ("connection_opened", "R1", "info")
    assert isinstance(found["connection"], int)
    with pytest.raises(RefusedError, match="`xml`; expected one of key-value, json"):
        client.request("UPDATE", name, {"format": "xml"})
    assert client.request("UPDATE", name, {"format": "key-value"}).body["format"] == "key-value"


def test_a_connection_is_closed_by_its_admin_status(client: ManagementClient) -> None:
    victim: Any = BlockingConnection(client.url, timeout=WAIT_S)
    name = victim.conn.container
    row = next(each for each in client.query("connection") if each["container"] == name)
    done = client.request(
        "UPDATE", {"type": "connection", "identity": row["identity"]}, {"adminStatus": "deleted"}
    ).body
    assert (done["adminStatus"], done["operStatus"]) == ("deleted", "closing")
    with pytest.raises(ConnectionException, match="closed by management"):
        victim.wait(lambda: False, timeout=WAIT_S)
    with pytest.raises(RefusedError) as refused:
        client.request("UPDATE", {"type": "connection", "identity": "99999"}, {"adminStatus": "deleted"})
    assert refused.value.status == 404


def test_links_tell_of_outcomes_at_both_ends_and_of_the_last_message(client: ManagementClient) -> None:
    connection: Any = BlockingConnection(client.url, timeout=WAIT_S)
    receiver = connection.create_receiver("counted", credit=10)
    sender = connection.create_sender("counted")
    for outcome in ("accept", "accept", "reject"):
        delivery = sender.link.send(Message(body=1))
        receiver.receive()
        getattr(receiver, outcome)()
        connection.wait(lambda delivery=delivery: delivery.settled, timeout=WAIT_S)
    rows = [each for each in client.query("router.link") if each["owningAddr"] == "M0counted"]
    assert {(each["linkDir"], each["acceptedCount"], each["rejectedCount"]) for each in rows} == {
        ("in", 2, 1),
        ("out", 2, 1),
    }
    assert all(each["capacity"] for each in rows)
    identity = rows[0]["connectionId"]
    assert client.read("connection", identity=identity)["lastDlvSeconds"] in (0, 1, 2, 3, 4, 5)
    kinds = {each["linkType"] for each in client.query("router.link")}
    assert kinds == {"endpoint", "inter-router", "router-control"}
    connection.close()
