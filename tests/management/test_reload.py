"""A running router reads its file again: what it changes, what it says needs a restart, and what it refuses."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import socket
import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner
from proton.utils import ConnectionClosed, LinkDetached

from mesh_config.generators import generate
from mesh_config.models import (
    AddressSettings,
    ConnectorSettings,
    GroupSettings,
    HttpSettings,
    ListenerSettings,
    LogFormat,
    LogLevel,
    LogSettings,
    ManagementRight,
    Mechanism,
    Role,
    RouterSettings,
    TlsSettings,
    Treatment,
    VhostSettings,
)
from router.cli import main
from router.cli.management import ManagementClient
from router.cli.management_errors import RefusedError
from router.net.listener import bound_socket
from router.security.users import new_keys, write_users
from router.views.reload import NAMES_SAID
from tests.helpers.blocking_client import connected
from tests.helpers.certificates import Certificates
from tests.helpers.processes import LOOPBACK, MeshProcesses, ReservedPort, wait_until

pytestmark = pytest.mark.interop
WAIT_S = 60.0


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshProcesses]:
    """R1 to R3, each joined to each: without one link it is a mesh still."""
    with MeshProcesses(generate("ring", 3), tmp_path_factory.mktemp("mesh")) as mesh:
        mesh.start()
        mesh.wait_converged()
        yield mesh
        assert set(mesh.terminate().values()) == {0}


@pytest.fixture
def mesh(processes: MeshProcesses) -> Iterator[MeshProcesses]:
    """The mesh, as it was before at the end of each test."""
    before = processes.file.read_text(encoding="utf-8")
    settings = processes.settings
    yield processes
    processes.settings = settings
    processes.file.write_text(before, encoding="utf-8")
    for router in processes.routers:
        reload(processes, router)
    processes.wait_converged()


def reload(mesh: MeshProcesses, router: str) -> dict[str, list[str]]:
    with ManagementClient(mesh.url(router), timeout_s=WAIT_S) as client:
        body = client.request("RELOAD", {}).body
    assert isinstance(body, dict)
    return body


def settings(mesh: MeshProcesses, router: str) -> RouterSettings:
    return mesh.settings.routers[router]


def accepts(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True


def status(port: int, name: str) -> int:
    """Status of an answer to `/healthz` of a router that is called *name*."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=WAIT_S)
    try:
        connection.request("GET", "/healthz", headers={"Host": name})
        return connection.getresponse().status
    finally:
        connection.close()


def dialler(mesh: MeshProcesses) -> str:
    """A router that connects to another."""
    return next(key for key, router in mesh.settings.routers.items() if router.connectors)


def test_a_file_that_is_the_same_changes_nothing(mesh: MeshProcesses) -> None:
    assert reload(mesh, "R1") == {"applied": [], "needsRestart": []}


def test_a_listener_is_opened_and_closed(mesh: MeshProcesses) -> None:
    port = ReservedPort()
    before = settings(mesh, "R1")
    more = ListenerSettings(host=LOOPBACK, port=port.number)
    mesh.change(attrs.evolve(before, listeners=(*before.listeners, more)))
    assert reload(mesh, "R1")["applied"] == [f"listener {LOOPBACK}:{port.number} opened"]
    assert accepts(port.number)
    mesh.change(before)
    assert reload(mesh, "R1")["applied"] == [f"listener {LOOPBACK}:{port.number} closed"]
    wait_until(lambda: not accepts(port.number), "nobody accepts", WAIT_S)
    port.close()


def test_a_listener_may_have_the_port_of_one_that_leaves(mesh: MeshProcesses) -> None:
    """On an address of another name, or as HTTP and the other way round: each is bound before the other is closed."""
    one, other = ReservedPort(), ReservedPort()
    before = settings(mesh, "R1")
    first = attrs.evolve(
        before,
        listeners=(*before.listeners, ListenerSettings(host=LOOPBACK, port=one.number)),
        http=HttpSettings(host=LOOPBACK, port=other.number),
    )
    swapped = attrs.evolve(
        before,
        listeners=(*before.listeners, ListenerSettings(host=LOOPBACK, port=other.number)),
        http=HttpSettings(host=LOOPBACK, port=one.number),
    )
    renamed = attrs.evolve(
        swapped, listeners=(*before.listeners, ListenerSettings(host="localhost", port=other.number))
    )
    for wanted, http_port, port in ((first, other, one), (swapped, one, other), (renamed, one, other)):
        mesh.change(wanted)
        reload(mesh, "R1")
        assert status(http_port.number, LOOPBACK) == 200
        with connected(f"amqp://{LOOPBACK}:{port.number}"):
            pass
    with pytest.raises(OSError, match="in use"):
        bound_socket(LOOPBACK, other.number, 1)
    for reserved in (one, other):
        reserved.close()


def test_a_listener_with_another_limit_keeps_its_connections(mesh: MeshProcesses) -> None:
    before = settings(mesh, "R1")
    with ManagementClient(mesh.url("R1"), timeout_s=WAIT_S) as held:
        limited = tuple(
            attrs.evolve(each, max_connections=1) if each.role is Role.NORMAL else each for each in before.listeners
        )
        mesh.change(attrs.evolve(before, listeners=limited))
        said = held.request("RELOAD", {}).body
        assert isinstance(said, dict)
        (what,) = said["applied"]
        assert what.endswith("max_connections changed, for new connections")
        with socket.create_connection((LOOPBACK, limited[0].port), timeout=WAIT_S) as other:
            assert other.recv(1) == b""  # it is one too many
        assert held.read("router")["id"] == "R1"
        mesh.change(before)
        held.request("RELOAD", {})
    assert reload(mesh, "R1")["applied"] == []


def test_a_connector_that_left_the_file_is_ended_and_one_that_came_back_connects(mesh: MeshProcesses) -> None:
    name = dialler(mesh)
    before = settings(mesh, name)
    left = before.connectors[0]
    mesh.change(attrs.evolve(before, connectors=before.connectors[1:]))
    mesh[name].send_signal(signal.SIGHUP)
    mesh.wait_converged()  # by way of the third
    ended = [line.fields["what"] for line in mesh[name].log_lines("reload_applied")]
    assert f"connector {left.host}:{left.port} ended" in ended
    mesh.change(before)
    added, links = reload(mesh, name)["applied"]
    assert added == f"connector {left.host}:{left.port} added"
    assert links in {f"links of the file: {pair} added" for pair in ("R1 - R2", "R1 - R3", "R2 - R3")}
    mesh.wait_converged()


def test_the_answer_comes_by_a_connection_that_is_made_anew(mesh: MeshProcesses) -> None:
    (name,) = (router for router in mesh.routers if len(settings(mesh, router).connectors) == 2)
    before = settings(mesh, name)
    other = next(router for router in mesh.routers if router != name)
    for cost in (4, 3, 2):
        connectors = tuple(attrs.evolve(each, cost=cost) for each in before.connectors)
        mesh.change(attrs.evolve(before, connectors=connectors))
        with ManagementClient(mesh.url(other), timeout_s=WAIT_S) as client:
            said = client.request("RELOAD", {}, router=name).body
        assert isinstance(said, dict)
        *connections, costs = said["applied"]
        assert len(connections) == 4  # each is ended and added
        assert costs.endswith(" with another cost")
        mesh.wait_converged()


def test_a_connection_goes_on_when_only_the_pauses_of_its_connector_change(mesh: MeshProcesses) -> None:
    name = dialler(mesh)
    before = settings(mesh, name)

    def connections() -> set[object]:
        with ManagementClient(mesh.url(name), timeout_s=WAIT_S) as client:
            return {row["identity"] for row in client.query("connection") if row["role"] == "inter-router"}

    held = connections()
    for pause_s in (4.0, 2.0):
        connectors = tuple(attrs.evolve(each, reconnect_max_s=pause_s) for each in before.connectors)
        mesh.change(attrs.evolve(before, connectors=connectors))
        applied = reload(mesh, name)["applied"]
        assert len(applied) == len(connectors)
        assert all(said.endswith("reconnect_max_s changed, for its next attempt") for said in applied)
        assert reload(mesh, name)["applied"] == []
    assert connections() == held
    left = connectors[0]  # and one that was given other pauses can be ended
    mesh.change(attrs.evolve(before, connectors=connectors[1:]))
    assert reload(mesh, name)["applied"][0] == f"connector {left.host}:{left.port} ended"
    wait_until(lambda: len(connections()) == len(held) - 1, "its connection has ended", WAIT_S)


def test_a_connector_that_leaves_while_its_peer_is_silent_lets_go_of_its_socket(tmp_path: Path) -> None:
    with MeshProcesses(generate("ring", 3), tmp_path / "mesh") as mesh:
        name = dialler(mesh)
        before = settings(mesh, name)
        place, *others = before.connectors
        with socket.create_server((LOOPBACK, place.port)) as silent:
            silent.settimeout(WAIT_S)
            mesh.start(name)
            dialled, _ = silent.accept()
            with dialled:
                dialled.settimeout(5.0)  # it would wait for an answer for 10 s
                assert dialled.recv(8).startswith(b"AMQP")
                mesh.change(attrs.evolve(before, connectors=tuple(others)))
                assert reload(mesh, name)["applied"][0] == f"connector {place.host}:{place.port} ended"
                assert dialled.recv(8) == b""


def test_a_connector_that_is_given_other_pauses_while_it_dials_connects(tmp_path: Path) -> None:
    with MeshProcesses(generate("line", 2), tmp_path / "mesh") as mesh:
        name = dialler(mesh)
        (other,) = (router for router in mesh.settings.routers if router != name)
        before = settings(mesh, name)
        mesh.start(other)
        mesh[other].send_signal(signal.SIGSTOP)
        mesh.start(name)
        paced = tuple(attrs.evolve(each, reconnect_max_s=1.5) for each in before.connectors)
        mesh.change(attrs.evolve(before, connectors=paced))
        assert len(reload(mesh, name)["applied"]) == 1
        mesh[other].send_signal(signal.SIGCONT)
        mesh.wait_converged()
        lines = [line for line in mesh[name].log_lines() if line.level in ("error", "critical")]
        assert not lines
        assert not mesh[name].log_lines("connect_failed")


def test_what_management_deleted_comes_back_where_it_is_in_the_file_still(mesh: MeshProcesses) -> None:
    name = dialler(mesh)
    (left, *_) = settings(mesh, name).connectors
    place = f"{left.host}:{left.port}"
    with ManagementClient(mesh.url(name), timeout_s=WAIT_S) as client:
        (row,) = [each for each in client.query("connector") if f"{each['host']}:{each['port']}" == place]
        assert client.request("DELETE", {"type": "connector", "identity": row["identity"]}).status == 204
    assert reload(mesh, name) == {"applied": [f"connector {place} added"], "needsRestart": []}
    mesh.wait_converged()
    assert reload(mesh, name)["applied"] == []


def test_a_listener_of_management_may_be_written_into_the_file(mesh: MeshProcesses) -> None:
    before = settings(mesh, "R1")
    port = ReservedPort()
    with ManagementClient(mesh.url("R1"), timeout_s=WAIT_S) as client:
        attributes = {"host": LOOPBACK, "port": str(port.number)}
        assert client.request("CREATE", {"type": "listener", "name": "more"}, attributes).status == 201
    more = ListenerSettings(host=LOOPBACK, port=port.number, name="more")
    mesh.change(attrs.evolve(before, listeners=(*before.listeners, more)))
    reload(mesh, "R1")
    assert accepts(port.number)
    mesh.change(before)
    assert reload(mesh, "R1")["applied"] == [f"listener more ({LOOPBACK}:{port.number}) closed"]
    wait_until(lambda: not accepts(port.number), "nobody accepts", WAIT_S)
    port.close()


def test_addresses_are_taken_over_and_those_that_management_made_stay(mesh: MeshProcesses) -> None:
    before = settings(mesh, "R1")
    news = AddressSettings(prefix="news", treatment=Treatment.MULTICAST)
    with ManagementClient(mesh.url("R1"), timeout_s=WAIT_S) as client:
        client.request(
            "CREATE", {"type": "router.config.address", "name": "made"}, {"prefix": "made", "distribution": "closest"}
        )
        mesh.change(attrs.evolve(before, addresses=(*before.addresses, news)))
        client.request("RELOAD", {})
        rows = {row["prefix"]: row["distribution"] for row in client.query("router.config.address")}
        assert (rows["news"], rows["made"]) == ("multicast", "closest")
        mesh.change(before)
        client.request("RELOAD", {})
        rows = {row["prefix"]: row["distribution"] for row in client.query("router.config.address")}
        assert "news" not in rows
        assert "made" in rows


def test_addresses_that_management_deleted_come_back_and_are_told(mesh: MeshProcesses) -> None:
    before = settings(mesh, "R1")
    metering = AddressSettings(prefix="metering", treatment=Treatment.MULTICAST)
    mesh.change(attrs.evolve(before, addresses=(*before.addresses, metering)))
    assert reload(mesh, "R1")["applied"] == ["address metering added"]
    with ManagementClient(mesh.url("R1"), timeout_s=WAIT_S) as client:
        (row,) = [each for each in client.query("router.config.address") if each["prefix"] == "metering"]
        selector = {"type": "router.config.address", "identity": row["identity"]}
        assert client.request("DELETE", selector).status == 204
    assert reload(mesh, "R1")["applied"] == ["address metering added"]
    assert reload(mesh, "R1")["applied"] == []


def test_addresses_in_use_that_keep_their_treatment_are_named(mesh: MeshProcesses) -> None:
    before = settings(mesh, "R1")
    with connected(mesh.url("R1")) as client:
        client.create_receiver("kept/news")
        mesh.change(attrs.evolve(before, addresses=(AddressSettings(prefix="kept", treatment=Treatment.MULTICAST),)))
        assert reload(mesh, "R1") == {
            "applied": [
                "address kept added",
                "addresses in use keep their treatment as long as anybody uses them: kept/news",
            ],
            "needsRestart": [],
        }


def shown_name(port: int, ca: str) -> str:
    """Common name of the certificate that a listener shows to a new connection."""
    context = ssl.create_default_context(cafile=ca)
    with (
        socket.create_connection((LOOPBACK, port), timeout=WAIT_S) as sock,
        context.wrap_socket(sock, server_hostname="localhost") as tls,
    ):
        certificate = tls.getpeercert()
    assert certificate is not None
    return str(dict(pair[0] for pair in certificate["subject"])["commonName"])


def test_tls_profiles_come_change_and_go(mesh: MeshProcesses, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    port = ReservedPort()
    before = settings(mesh, "R1")

    def with_profile(**changes: Any) -> RouterSettings:
        profile = attrs.evolve(TlsSettings(name="p", certificate=certificates.issue("first")), **changes)
        listener = ListenerSettings(host=LOOPBACK, port=port.number, tls="p")
        return attrs.evolve(before, tls=(profile,), listeners=(*before.listeners, listener))

    def refused() -> str:
        with ManagementClient(mesh.url("R1"), timeout_s=WAIT_S) as client, pytest.raises(RefusedError) as error:
            client.request("RELOAD", {})
        return str(error.value)

    mesh.change(with_profile(certificate=str(tmp_path / "absent.pem")))
    assert "absent.pem" in refused()
    mesh.change(with_profile())
    assert f"listener {LOOPBACK}:{port.number} opened" in reload(mesh, "R1")["applied"]
    assert shown_name(port.number, certificates.ca) == "first"
    with socket.create_connection((LOOPBACK, port.number), timeout=WAIT_S) as stays:
        mesh.change(with_profile(certificate=str(tmp_path / "absent.pem")))
        assert "absent.pem" in refused()
        assert shown_name(port.number, certificates.ca) == "first"
        mesh.change(with_profile(certificate=certificates.issue("second")))
        assert reload(mesh, "R1") == {"applied": ["tls profile p changed, for new connections"], "needsRestart": []}
        assert shown_name(port.number, certificates.ca) == "second"
        stays.setblocking(False)
        with pytest.raises(BlockingIOError):
            stays.recv(1)
    mesh.change(before)
    assert "tls profile p removed" in reload(mesh, "R1")["applied"]
    port.close()


def test_files_that_cannot_be_used_any_more_refuse_a_reload(mesh: MeshProcesses, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    tls_port, users_port, users = ReservedPort(), ReservedPort(), tmp_path / "users"
    write_users(str(users), {"alice": new_keys("secret", 4096)})
    before = settings(mesh, "R1")
    profile = TlsSettings(name="p", certificate=certificates.issue("first"), ca=certificates.ca)
    with_tls = ListenerSettings(host=LOOPBACK, port=tls_port.number, tls="p")
    with_users = ListenerSettings(
        host=LOOPBACK, port=users_port.number, sasl=(Mechanism.SCRAM_SHA_256,), users_file=str(users)
    )
    mesh.change(attrs.evolve(before, tls=(profile,), listeners=(*before.listeners, with_tls, with_users)))
    assert len(reload(mesh, "R1")["applied"]) > 1
    for file in (Path(certificates.ca), users):
        content = file.read_bytes()
        file.write_text("junk", encoding="utf-8")
        with ManagementClient(mesh.url("R1"), timeout_s=WAIT_S) as client, pytest.raises(RefusedError) as refused:
            client.request("RELOAD", {})
        assert str(file) in str(refused.value)
        assert accepts(tls_port.number)
        file.write_bytes(content)
        assert reload(mesh, "R1") == {"applied": [], "needsRestart": []}
    shutil.copy(certificates.expired("old"), profile.certificate or "")
    reload(mesh, "R1")
    assert mesh["R1"].wait_log("certificate_expired").fields["file"] == profile.certificate
    mesh.change(before)
    reload(mesh, "R1")
    tls_port.close()
    users_port.close()


def test_level_and_form_of_the_log_are_taken_over(mesh: MeshProcesses) -> None:
    before = settings(mesh, "R1")
    changed = attrs.evolve(before, log=LogSettings(level=LogLevel.WARNING, format=LogFormat.JSON))
    mesh.change(changed)
    assert reload(mesh, "R1")["applied"] == ["log changed"]
    with ManagementClient(mesh.url("R1"), timeout_s=WAIT_S) as client:
        row = client.read("log", name="log/DEFAULT")
        assert (row["enable"], row["format"]) == ("warning+", "json")
    mesh.change(before)
    assert reload(mesh, "R1")["applied"] == ["log changed"]
    # Lines are written beside the answer, not before it.
    wait_until(
        lambda: mesh["R1"].log_lines("reload_applied")[-1].fields["what"] == "log changed", "the line is there", WAIT_S
    )


def test_the_level_of_the_command_line_stays_where_that_of_the_file_does(tmp_path: Path) -> None:
    with MeshProcesses(generate("line", 1), tmp_path / "mesh", log_level="warning") as mesh:
        (name,) = mesh.settings.routers
        mesh.start(wait=False)
        before = settings(mesh, name)

        def level() -> object:
            with ManagementClient(mesh.url(name), timeout_s=WAIT_S) as client:
                return client.read("log", name="log/DEFAULT")["enable"]

        wait_until(lambda: accepts(before.listeners[0].port), "it listens", WAIT_S)
        for log, kept in (
            (LogSettings(format=LogFormat.JSON), "warning+"),
            (LogSettings(level=LogLevel.ERROR), "error+"),
        ):
            mesh.change(attrs.evolve(before, log=log))
            assert reload(mesh, name)["applied"] == ["log changed"]
            assert level() == kept


def test_what_needs_a_restart_is_said_each_time(mesh: MeshProcesses) -> None:
    before = settings(mesh, "R1")
    mesh.change(attrs.evolve(before, site="elsewhere", forwarding=attrs.evolve(before.forwarding, grace_s=7.0)))
    names = ["site", "forwarding.grace_s"]
    for _ in range(2):
        assert reload(mesh, "R1") == {"applied": [], "needsRestart": names}
    assert {it.fields["setting"] for it in mesh["R1"].log_lines("reload_needs_restart")} == set(names)


def test_bounds_of_forwarding_are_taken_over(mesh: MeshProcesses) -> None:
    before = settings(mesh, "R1")
    bounds = attrs.evolve(before.forwarding, address_bytes=64, max_links=3, grace_s=7.0)
    with connected(mesh.url("R1"), may_be_closed=True) as client:
        mesh.change(attrs.evolve(before, forwarding=bounds))
        said = reload(mesh, "R1")
        assert said == {
            "applied": ["forwarding.address_bytes changed", "forwarding.max_links changed"],
            "needsRestart": ["forwarding.grace_s"],
        }
        with pytest.raises(LinkDetached, match="may have 64"):
            client.create_sender("a" * 65)
        for number in range(3):
            client.create_sender(f"jobs/{number}")
        with pytest.raises(LinkDetached, match="too many links"):
            client.create_sender("jobs/3")
    mesh.change(before)
    assert reload(mesh, "R1")["applied"] == ["forwarding.address_bytes changed", "forwarding.max_links changed"]
    with connected(mesh.url("R1"), may_be_closed=True) as client:
        client.create_sender("a" * 65)


def test_http_begins_changes_and_ends(mesh: MeshProcesses) -> None:
    before = settings(mesh, "R2")
    one, other = ports = ReservedPort(), ReservedPort()
    uptime = 0.0
    for changed in (
        HttpSettings(port=one.number),
        HttpSettings(port=one.number, names=("router.example",)),
        HttpSettings(port=other.number),
    ):
        mesh.change(attrs.evolve(before, http=changed))
        assert reload(mesh, "R2") == {"applied": ["http changed"], "needsRestart": []}
        assert changed.port is not None
        assert status(changed.port, "localhost") == 200
        assert status(changed.port, "router.example") == (200 if changed.names else 421)
        with urllib.request.urlopen(f"http://{LOOPBACK}:{changed.port}/api/mesh", timeout=WAIT_S) as answer:
            before_it, uptime = uptime, json.load(answer)["uptime"]
        assert uptime > before_it, "the router is the same"
    wait_until(lambda: not accepts(one.number), "the port before is given up", WAIT_S)
    with socket.create_server((LOOPBACK, 0)) as taken:
        mesh.change(attrs.evolve(before, http=HttpSettings(port=taken.getsockname()[1])))
        with pytest.raises(RefusedError, match="cannot listen for HTTP"):
            reload(mesh, "R2")
    assert status(other.number, "localhost") == 200
    mesh.change(before)
    assert reload(mesh, "R2") == {"applied": ["http changed"], "needsRestart": []}
    wait_until(lambda: not accepts(other.number), "nothing serves HTTP", WAIT_S)
    for port in ports:
        port.close()


def vhost(*sources: str) -> VhostSettings:
    """A virtual host of everybody, who may look after the router, and receive from *sources*."""
    group = GroupSettings(name="all", users=("anonymous",), sources=sources, management=ManagementRight.WRITE)
    return VhostSettings(name="shop", hostnames=("*",), isolated=False, groups=(group,))


def closed_since(connection: Any) -> str:
    """Why a connection is closed, once it is."""
    with pytest.raises(ConnectionClosed) as found:
        connection.wait(lambda: False, timeout=WAIT_S)
    return str(found.value)


def test_virtual_hosts_come_change_and_go(mesh: MeshProcesses) -> None:
    before = settings(mesh, "R1")
    with connected(mesh.url("R1"), may_be_closed=True) as client:
        mesh.change(attrs.evolve(before, vhosts=(vhost("jobs"),)))
        assert reload(mesh, "R1") == {"applied": ["vhosts changed"], "needsRestart": []}
        assert "there are virtual hosts now: connect again" in closed_since(client)
    with connected(mesh.url("R1"), may_be_closed=True) as client:
        client.create_receiver("jobs")
        with pytest.raises(LinkDetached, match="may not receive from news"):
            client.create_receiver("news")
        mesh.change(attrs.evolve(before, vhosts=(vhost("jobs", "news"),)))
        reload(mesh, "R1")
        client.create_receiver("news")  # who has more now keeps its connection
        mesh.change(attrs.evolve(before, vhosts=(vhost("news"),)))
        reload(mesh, "R1")
        assert "the rights of user `anonymous` in virtual host `shop` have changed" in closed_since(client)
    with connected(mesh.url("R1"), may_be_closed=True) as client:
        mesh.change(before)
        reload(mesh, "R1")
        assert "there are no virtual hosts any more" in closed_since(client)
    with connected(mesh.url("R1"), may_be_closed=True) as client:
        client.create_receiver("jobs")


def test_a_signal_ends_a_drain_where_policy_lets_nobody_in(mesh: MeshProcesses) -> None:
    before = settings(mesh, "R1")
    mesh.change(attrs.evolve(before, vhosts=(vhost("jobs"),)))
    reload(mesh, "R1")
    assert CliRunner().invoke(main, ["drain", "--url", mesh.url("R1"), "R1"]).exit_code == 0
    (port,) = (each.port for each in before.listeners if each.role is Role.NORMAL)
    assert not accepts(port)
    with ManagementClient(mesh.url("R2"), timeout_s=WAIT_S) as elsewhere, pytest.raises(RefusedError, match="reading"):
        elsewhere.request("RESUME", {}, router="R1")
    mesh["R1"].send_signal(signal.SIGUSR2)
    mesh["R1"].wait_log("resumed")
    wait_until(lambda: accepts(port), "it accepts again", WAIT_S)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("routers: {R1: {listeners: [{port: 5672}], lsteners: []}}", "did you mean `listeners`"),
        ("routers: {R1: {}, R2: {listeners: [{port: 7}, {port: 7}]}}", "R2"),
        ("routers: {R7: {}}", "no router `R1`"),
        ("routers: [", "mesh.yaml"),
    ],
    ids=["a wrong key", "a fault of another router", "without this router", "no YAML"],
)
def test_a_file_with_a_fault_changes_nothing(mesh: MeshProcesses, text: str, said: str) -> None:
    before = reload_state(mesh)
    mesh.file.write_text(text, encoding="utf-8")
    with ManagementClient(mesh.url("R1"), timeout_s=WAIT_S) as client, pytest.raises(RefusedError, match=said):
        client.request("RELOAD", {})
    assert mesh["R1"].log_lines("reload_refused")[-1].level == "warning"
    assert [line for line in mesh["R1"].log_lines("settings_finding") if line.level == "error"]
    assert reload_state(mesh) == before


def test_a_listener_that_cannot_be_bound_takes_all_else_with_it(mesh: MeshProcesses) -> None:
    before = settings(mesh, "R1")
    free = ReservedPort()
    with socket.create_server((LOOPBACK, 0)) as taken:
        more = [ListenerSettings(host=LOOPBACK, port=port) for port in (free.number, taken.getsockname()[1])]
        mesh.change(
            attrs.evolve(before, listeners=(*before.listeners, *more), addresses=(AddressSettings(prefix="never"),))
        )
        with pytest.raises(RefusedError, match="cannot listen"):
            reload(mesh, "R1")
    wait_until(lambda: not accepts(free.number), "the one that could be bound is closed", WAIT_S)
    free.close()
    assert "never" not in reload_state(mesh)[1]


def test_routers_and_links_that_the_file_has_anew_or_no_more_are_named(mesh: MeshProcesses) -> None:
    before = mesh.settings
    (listener,) = (each for each in settings(mesh, "R1").listeners if each.role is Role.INTER_ROUTER)
    connector = ConnectorSettings(to="R1", host=LOOPBACK, port=listener.port)
    names = [f"S{number:02}" for number in range(NAMES_SAID + 2)]
    for name in names:
        mesh.change(RouterSettings(id=name, connectors=(connector,)))
    said, pairs = ", ".join(names[:NAMES_SAID]), ", ".join(f"R1 - {name}" for name in names[:NAMES_SAID])
    expected = [f"routers of the file: {said} and 2 more added", f"links of the file: {pairs} and 2 more added"]
    assert reload(mesh, "R1") == {"applied": expected, "needsRestart": []}
    mesh.settings = before
    mesh.change(attrs.evolve(settings(mesh, "R3"), site="far"))
    assert reload(mesh, "R1")["applied"] == [
        *(line.replace("added", "removed") for line in expected[:1]),
        "routers of the file: R3 with another site",
        *(line.replace("added", "removed") for line in expected[1:]),
    ]
    assert reload(mesh, "R1")["applied"] == []


def test_the_command_shows_what_was_changed(mesh: MeshProcesses) -> None:
    mesh.change(attrs.evolve(settings(mesh, "R3"), shutdown_s=2.0, site="there"))
    found = CliRunner().invoke(main, ["manage", "reload", "--url", mesh.url("R1"), "--router", "R3"])
    assert found.exit_code == 0, found.output
    assert json.loads(found.output) == {"applied": ["shutdown_s changed"], "needsRestart": ["site"]}


def reload_state(mesh: MeshProcesses) -> tuple[list[str], list[str]]:
    """Listeners and addresses of R1."""
    with ManagementClient(mesh.url("R1"), timeout_s=WAIT_S) as client:
        listeners = sorted(row["identity"] for row in client.query("listener"))
        return listeners, sorted(str(row["prefix"]) for row in client.query("router.config.address"))
