"""Clients with Kerberos tickets, from a KDC of the test's own."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from proton import ConnectionException
from proton.utils import BlockingConnection

from mesh_config.models import ConnectorSettings, ListenerSettings, Mechanism, MeshSettings, Role, RouterSettings
from router.cli import main
from router.cli.management import ManagementClient
from router.core.errors import LocalError
from router.security.kerberos import KerberosClientExchange, KerberosExchange, KerberosService
from router.security.sasl_client import SaslClient
from router.security.sasl_frames import (
    MECHANISMS,
    OUTCOME,
    SASL_HEADER,
    SaslError,
    SaslFrame,
    init_frame,
    outcome_frame,
)
from tests.helpers.getting_in import TIMEOUT_S, Field, by_oslo, by_proton
from tests.helpers.kerberos import REALM, Realm, needs_kerberos
from tests.helpers.oslo import OsloWorker, needs_oslo
from tests.helpers.processes import MeshProcesses, RouterProcess, wait_until
from tests.helpers.secured_mesh import USER, secured_mesh
from tests.helpers.shown_commands import run_as_shown
from tests.helpers.who_gets_in import OSLO, PROTON, WHO_GETS_IN

pytestmark = [pytest.mark.interop, needs_kerberos]
SERVICE = "amqp/localhost"


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with Realm(tmp_path_factory.mktemp("realm")) as realm, pytest.MonkeyPatch.context() as patch:
        for name, value in realm.environment.items():
            patch.setenv(name, value)
        realm.keytab(USER)
        yield realm


@pytest.fixture(scope="module")
def keytab(realm: Realm) -> str:
    return realm.keytab(SERVICE)


@pytest.fixture
def with_tickets(realm: Realm, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in realm.as_user(USER).items():
        monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def field(keytab: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    folder = tmp_path_factory.mktemp("kerberos")
    made = secured_mesh(folder, keytab, REALM)
    with MeshProcesses(made.settings, folder / "mesh") as mesh:
        mesh.start()
        mesh.wait_converged()
        yield Field(mesh, made)


def rows(client: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("mode", [row[2] for row in WHO_GETS_IN if row[:2] == (client, Mechanism.GSSAPI)])


@rows(PROTON)
@pytest.mark.usefixtures("with_tickets")
def test_proton_gets_in(field: Field, mode: str) -> None:
    by_proton(field, Mechanism.GSSAPI, mode, f"proton-{mode}")


@rows(OSLO)
@needs_oslo
@pytest.mark.usefixtures("with_tickets")
def test_oslo_messaging_gets_in(field: Field, tmp_path: Path, mode: str) -> None:
    with OsloWorker(tmp_path / "worker.log") as worker:
        by_oslo(field, Mechanism.GSSAPI, mode, f"oslo-{mode}", worker)


@pytest.mark.usefixtures("with_tickets")
def test_a_command_comes_in_by_a_ticket_as_the_page_has_it(field: Field) -> None:
    url, ca = f"amqps://localhost:{field.port('A', 'required')}", field.made.certificates.ca
    shown = run_as_shown("secure-a-mesh.md", "--sasl GSSAPI", url=url, ca=ca)
    assert re.search(r"^B +", shown, re.MULTILINE), shown


def refused_with(router: RouterProcess, reason: str) -> None:
    wait_until(
        lambda: any(
            reason in line.fields.get("reason", "")
            for line in (*router.log_lines("peer_refused"), *router.log_lines("connection_closed"))
        ),
        lambda: f"{reason!r} in the log:\n{router.log_text()[-3000:]}",
        TIMEOUT_S,
    )


@pytest.fixture
def router(realm: Realm, tmp_path: Path) -> Iterator[RouterProcess]:
    """A router with keys of its own, which says of everybody which realm they are of."""
    keys = tmp_path / "keytab"
    keys.write_bytes(Path(realm.keytab("amqp/127.0.0.1")).read_bytes())
    listener = ListenerSettings(sasl=(Mechanism.GSSAPI,), keytab=str(keys))
    settings = RouterSettings(id="A", listeners=(ListenerSettings(), listener))
    with MeshProcesses(MeshSettings(routers={"A": settings}), tmp_path / "mesh") as mesh:
        mesh.start()
        yield mesh["A"]


def dial(router: RouterProcess, host: str = "127.0.0.1") -> None:
    port = router.settings.listeners[1].port
    BlockingConnection(f"amqp://{host}:{port}", timeout=TIMEOUT_S, allowed_mechs="GSSAPI").close()


@pytest.mark.usefixtures("with_tickets")
def test_who_is_refused_is_told_of_in_words(
    realm: Realm, router: RouterProcess, keytab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dial(router)
    with pytest.raises(ConnectionException, match="amqp:unauthorized-access"):
        dial(router, "localhost")  # whose keys are in another keytab
    refused_with(router, f"SASL: Kerberos: Request ticket server amqp/localhost@{REALM}")
    # Keys that were changed at the KDC count when they have come into the keytab, without a restart.
    file = Path(str(router.settings.listeners[1].keytab))
    Path(realm.as_user(USER)["KRB5CCNAME"].removeprefix("FILE:")).unlink()
    file.write_bytes(file.read_bytes() + Path(keytab).read_bytes()[2:])
    dial(router, "localhost")
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(file.with_name("none")))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{file.with_name('no-tickets')}")
    with pytest.raises(ConnectionException):
        dial(router)
    refused_with(router, "SASL: it left when it was offered GSSAPI: it may want another mechanism, or lack a ticket")


def test_a_command_without_a_ticket_says_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Realm(tmp_path / "own") as own:  # which knows `localhost`, and no 127.0.0.1
        own.keytab(USER)
        listener = ListenerSettings(sasl=(Mechanism.GSSAPI,), keytab=own.keytab(SERVICE))
        settings = RouterSettings(id="A", listeners=(ListenerSettings(), listener))
        for name, value in own.environment.items():
            monkeypatch.setenv(name, value)
        with MeshProcesses(MeshSettings(routers={"A": settings}), tmp_path / "mesh") as mesh:
            mesh.start()
            url = f"amqp://127.0.0.1:{mesh['A'].settings.listeners[1].port}"

            def stat() -> str:
                result = CliRunner().invoke(main, ["stat", "--sasl", "GSSAPI", "--url", url])
                assert result.exit_code == 1
                return result.stderr

            assert f"no connection to {url}: there is no Kerberos ticket here: kinit gets one (No " in stat()
            for name, value in own.as_user(USER).items():
                monkeypatch.setenv(name, value)
            assert f"no connection to {url}: Kerberos knows no router of that host: dial the host of its" in stat()


def test_what_is_no_token_ends_one_connection_and_nothing_else(router: RouterProcess) -> None:
    refused = {
        b"": "SASL: Kerberos: ",
        b"nothing": "SASL: Kerberos: ",
        b"\x60" + os.urandom(15_000): "SASL: Kerberos: ",
    }
    for token, reason in refused.items():
        with socket.create_connection(("127.0.0.1", router.settings.listeners[1].port)) as sock:
            sock.sendall(SASL_HEADER + init_frame("GSSAPI", token, None))
            answer = b""
            while piece := sock.recv(4096):
                answer += piece
        assert answer.endswith(outcome_frame(1))
        refused_with(router, reason)
    assert router.is_running


@pytest.mark.usefixtures("with_tickets")
@pytest.mark.parametrize(
    ("choice", "reason"),
    [
        (b"\x04\x00\xff\xff", "a client that wants a security layer"),
        (b"\x01\x00", "a client that wants a security layer"),
        (b"\x01\x00\x00\x00bob", "wants to act as another one"),
        (b"\x01\x00\x00\x00", None),
    ],
)
def test_only_who_wants_no_layer_and_is_itself_gets_in(keytab: str, choice: bytes, reason: str | None) -> None:
    gssapi = pytest.importorskip("gssapi")
    exchange = KerberosExchange(KerberosService(keytab, "amqp", None))
    name = gssapi.Name("amqp@localhost", gssapi.NameType.hostbased_service)
    client = gssapi.SecurityContext(name=name, usage="initiate")
    exchange.step(client.step())
    client.step(exchange.challenge)
    exchange.step(b"")
    assert client.unwrap(exchange.challenge).message == b"\x01\x00\x00\x00"
    assert exchange.user is None
    exchange.step(client.wrap(choice, False).message)
    if reason is None:
        assert (exchange.user, exchange.failure) == (f"{USER}@{REALM}", None)
    else:
        assert exchange.user is None
        assert reason in str(exchange.failure)


def test_a_listener_without_keys_is_refused(realm: Realm, keytab: str, tmp_path: Path) -> None:
    for path, service in ((str(tmp_path / "none"), "amqp"), (keytab, "other")):
        with pytest.raises(LocalError, match=f"keytab {path} has no key of {service}: "):
            KerberosService(path, service, None)


# Routers


@pytest.fixture
def dialling(realm: Realm, tmp_path: Path) -> Iterator[Callable[..., MeshProcesses]]:
    """Makes routers A and B, of which B dials A by GSSAPI with what a connector has more, and starts both."""
    with contextlib.ExitStack() as stack:

        def start(principal: str, **connector: Any) -> MeshProcesses:
            listener = ListenerSettings(
                role=Role.INTER_ROUTER,
                sasl=(Mechanism.GSSAPI,),
                keytab=realm.keytab("amqp/127.0.0.1"),
                kerberos_realm=REALM,
            )
            options = {"to": "A", "sasl": Mechanism.GSSAPI, "keytab": realm.keytab(principal), "reconnect_max_s": 0.2}
            dials = RouterSettings(id="B", connectors=(ConnectorSettings(**{**options, **connector}),))
            routers = {"A": RouterSettings(id="A", listeners=(ListenerSettings(), listener)), "B": dials}
            mesh = stack.enter_context(MeshProcesses(MeshSettings(routers=routers), tmp_path / "mesh"))
            mesh.start()
            return mesh

        yield start


def test_a_router_says_by_a_ticket_who_it_is(dialling: Callable[..., MeshProcesses]) -> None:
    mesh = dialling("B")
    assert mesh["A"].wait_log("neighbor_up").fields["neighbor"] == "B"
    with ManagementClient(mesh.url("A")) as client:
        rows = client.query("org.apache.qpid.dispatch.connection")
    assert {(row["user"], row["sasl"]) for row in rows if row["role"] == "inter-router"} == {("B", "GSSAPI")}


def test_a_router_whose_ticket_is_another_one_s_does_not_join(dialling: Callable[..., MeshProcesses]) -> None:
    mesh = dialling("mallory")
    assert "mallory" in mesh["A"].wait_log("connection_refused").fields["reason"]
    assert not mesh["A"].log_lines("neighbor_up")


def test_a_router_without_a_ticket_says_why(dialling: Callable[..., MeshProcesses]) -> None:
    mesh = dialling("B", kerberos_service="other")
    mesh["B"].wait_connect_failed(f"Kerberos: Server other/127.0.0.1@{REALM} not found in Kerberos database")


@pytest.mark.parametrize(("principal", "is_good"), [(USER, True), (f"{USER}@{REALM}", True), ("nobody", False)])
def test_a_ticket_is_that_of_the_principal(realm: Realm, keytab: str, principal: str, is_good: bool) -> None:
    ticket = KerberosClientExchange(realm.as_user(USER)["KRB5_CLIENT_KTNAME"], principal, "amqp", "localhost")
    if not is_good:
        with pytest.raises(LocalError, match="Kerberos: "):
            ticket.answer(None)
        return
    exchange = KerberosExchange(KerberosService(keytab, "amqp", REALM))
    exchange.step(ticket.answer(None))
    exchange.step(ticket.answer(exchange.challenge))
    exchange.step(ticket.answer(exchange.challenge))
    assert (exchange.user, exchange.failure, ticket.is_server_known) == (USER, None, True)


@pytest.mark.usefixtures("with_tickets")
def test_a_server_that_has_not_proved_who_it_is_is_left(keytab: str) -> None:
    ticket = KerberosClientExchange(None, None, "amqp", "localhost")
    client = SaslClient("GSSAPI", "B", None, "localhost", "nonce", ticket)
    init = client.received(SaslFrame(code=MECHANISMS, mechanisms=("GSSAPI",)))
    assert b"GSSAPI" in init
    with pytest.raises(SaslError, match="without having proved who it is"):
        client.received(SaslFrame(code=OUTCOME, outcome=0))


@pytest.mark.usefixtures("with_tickets")
@pytest.mark.parametrize("offer", [b"", b"\x01", b"\x06\0\xff\xff", b"\x01\0\0\0\0"])
def test_a_server_that_wants_a_security_layer_is_left(keytab: str, offer: bytes) -> None:
    gssapi = pytest.importorskip("gssapi")
    ticket = KerberosClientExchange(None, None, "amqp", "localhost")
    server = gssapi.SecurityContext(creds=KerberosService(keytab, "amqp", None).credentials(), usage="accept")
    assert ticket.answer(server.step(ticket.answer(None))) == b""
    with pytest.raises(LocalError, match="security layer"):
        ticket.answer(server.wrap(offer, False).message)
    assert not ticket.is_server_known
