"""Clients of each make, by each mechanism, with TLS and without, across two routers that know each other.

The table in docs/explanation/security.md is made of the same cases.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from proton import SSL, ConnectionException, SSLDomain, Transport
from proton.utils import BlockingConnection

from mesh_config.models import (
    CertificateField,
    ClientCertificates,
    ConnectorSettings,
    ListenerSettings,
    Mechanism,
    MeshSettings,
    NeighborSettings,
    Role,
    RouterSettings,
    TlsMode,
    TlsSettings,
)
from router.cli.management import ManagementClient
from router.cli.router_access import RouterAccess
from router.security.sasl_frames import SASL_HEADER, init_frame, mechanisms_frame, outcome_frame
from router.security.users import new_keys, read_users, write_users
from tests.helpers.certificates import Certificates
from tests.helpers.getting_in import TIMEOUT_S, Field, OneRouter, by_oslo, by_proton, check_connections, dial
from tests.helpers.neighbor import Neighbor
from tests.helpers.oslo import OsloWorker, needs_oslo
from tests.helpers.peer import message
from tests.helpers.processes import MeshProcesses, RouterProcess, wait_until
from tests.helpers.secured_mesh import ITERATIONS, PASSWORD, USER, secured_mesh
from tests.helpers.sockets import Sockets
from tests.helpers.who_gets_in import NO_SASL, OSLO, PROTON, RHEA, WHO_GETS_IN

SCRIPT = Path(__file__).with_name("rhea_security.js")

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    folder = tmp_path_factory.mktemp("secured")
    made = secured_mesh(folder)
    with MeshProcesses(made.settings, folder / "mesh") as mesh:
        mesh.start()
        mesh.wait_converged()
        yield Field(mesh, made)


def by_rhea(field: Field, mechanism: str, mode: str, container: str) -> None:
    has_certificate = mechanism == Mechanism.EXTERNAL
    told = {
        "ports": [field.port(key, mode) for key in ("A", "B")],
        "address": container,
        "ca": field.made.certificates.ca if mode != "none" else None,
        "certificate": field.made.client if has_certificate else None,
        "mechanism": None if mechanism == NO_SASL else str(mechanism),
        "user": USER if mechanism == Mechanism.PLAIN else None,
        "password": PASSWORD if mechanism == Mechanism.PLAIN else None,
    }
    command = ["node", str(SCRIPT), json.dumps(told)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as node:
        assert node.stdin is not None
        assert node.stdout is not None
        assert json.loads(node.stdout.readline()) == "x" * 1000
        check_connections(field, mechanism, mode, container)
        node.stdin.close()
        assert node.wait(TIMEOUT_S) == 0


def has_rhea() -> bool:
    node = shutil.which("node")
    return node is not None and not subprocess.run([node, "-e", "require('rhea')"], capture_output=True).returncode


needs_rhea = pytest.mark.skipif(
    "AMQP_MESH_TEST_INSTALLED" not in os.environ and not has_rhea(),
    reason="needs node, and rhea in NODE_PATH: `npm install --prefix D $(cat requirements/node.txt)`",
)


def rows(client: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("mechanism", "mode"), [row[1:] for row in WHO_GETS_IN if row[0] == client and row[1] != Mechanism.GSSAPI]
    )


@rows(PROTON)
def test_proton_gets_in(field: Field, mechanism: str, mode: str) -> None:
    by_proton(field, mechanism, mode, f"proton-{mechanism}-{mode}")


@rows(RHEA)
@needs_rhea
def test_rhea_gets_in(field: Field, mechanism: str, mode: str) -> None:
    by_rhea(field, mechanism, mode, f"rhea-{mechanism}-{mode}")


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OsloWorker]:
    with OsloWorker(tmp_path_factory.mktemp("oslo") / "worker.log") as worker:
        yield worker


@rows(OSLO)
@needs_oslo
def test_oslo_messaging_gets_in(field: Field, worker: OsloWorker, mechanism: str, mode: str) -> None:
    by_oslo(field, mechanism, mode, f"oslo-{mechanism}-{mode}".replace(" ", "-"), worker)


@pytest.mark.parametrize(
    ("comes_with", "mechanism"),
    [
        ({}, Mechanism.ANONYMOUS),
        ({"certificate"}, Mechanism.EXTERNAL),
        ({"user", "password"}, Mechanism.SCRAM_SHA_512),
        ({"user", "password", "certificate"}, Mechanism.SCRAM_SHA_512),
        ({"user", "password", "sasl"}, Mechanism.PLAIN),
    ],
)
def test_a_command_comes_in_by_the_best_of_what_it_has(
    field: Field, comes_with: set[str], mechanism: Mechanism
) -> None:
    has = {"user": USER, "password": PASSWORD, "certificate": field.made.client, "sasl": "PLAIN"}
    access = RouterAccess(
        url=f"amqps://localhost:{field.port('A', 'required')}",
        ca=field.made.certificates.ca,
        **{name: has[name] for name in comes_with},
    )
    connection = access.connect()
    assert connection.conn.transport.sasl().mech == mechanism
    connection.close()


def test_management_shows_mechanisms_and_profiles_as_the_settings_have_them(field: Field) -> None:
    for key in ("A", "B"):
        settings = field.mesh.settings.routers[key]
        with ManagementClient(field.mesh.url(key), timeout_s=TIMEOUT_S) as client:
            rows = client.query("listener")
            found = {int(row["port"]): (row["saslMechanisms"], row["sslProfile"]) for row in rows}
            assert found == {each.port: (" ".join(each.sasl), each.tls) for each in settings.listeners}
            needed = {int(row["port"]): row["authenticatePeer"] for row in rows}
            assert needed == {each.port: Mechanism.ANONYMOUS not in each.sasl for each in settings.listeners}
            dialled = [(row["saslMechanisms"], row["sslProfile"]) for row in client.query("connector")]
            assert dialled == [(str(each.sasl), each.tls) for each in settings.connectors]
    assert {each.tls for each in field.mesh.settings.routers["A"].listeners} == {None, "mesh"}


# Refusals, in words


def refusals(router: RouterProcess) -> list[str]:
    """Reasons for which it has let peers not in."""
    lines = [*router.log_lines("peer_refused"), *router.log_lines("connection_closed")]
    return [line.fields["reason"] for line in lines]


def refused_with(router: RouterProcess, reason: str) -> None:
    wait_until(
        lambda: any(reason in each for each in refusals(router)),
        lambda: f"{reason!r} in the log:\n{router.log_text()[-3000:]}",
        TIMEOUT_S,
    )


@pytest.fixture
def password_router(tmp_path: Path) -> Iterator[OneRouter]:
    made = OneRouter(tmp_path, tls="t", sasl=(Mechanism.SCRAM_SHA_256, Mechanism.PLAIN))
    with made.mesh:
        made.mesh.start()
        yield made


def test_a_client_that_is_refused_and_the_log_say_the_same(password_router: OneRouter, tmp_path: Path) -> None:
    made, router = password_router, password_router.router
    others = Certificates(tmp_path / "others")
    with pytest.raises(ConnectionException, match="AMQP TLS layer"):
        dial(made, is_tls=False)
    refused_with(router, "it speaks plain AMQP, and this listener requires TLS")
    with pytest.raises(ConnectionException, match="certificate verify failed"):
        dial(made, ca=others.ca)
    refused_with(router, "TLS: the peer refuses: it does not know the authority of our certificate")
    for mechanism in ("PLAIN", "SCRAM-SHA-256"):
        with pytest.raises(ConnectionException, match="amqp:unauthorized-access"):
            dial(made, user=USER, password="wrong", allowed_mechs=mechanism)
        with pytest.raises(ConnectionException, match="amqp:unauthorized-access"):
            dial(made, user="bob", password=PASSWORD, allowed_mechs=mechanism)
    refused_with(router, f"SASL: user {USER}: no such user, or the password is wrong")
    refused_with(router, "SASL: user bob: no such user, or the password is wrong")
    with pytest.raises(ConnectionException, match="AMQP SASL layer"):
        dial(made, sasl_enabled=False)
    refused_with(router, "it speaks no SASL, and here it has to, by SCRAM-SHA-256 PLAIN")
    with pytest.raises(ConnectionException):
        dial(made, allowed_mechs="ANONYMOUS")
    refused_with(
        router,
        "SASL: it left when it was offered SCRAM-SHA-256 PLAIN: it may want another mechanism, or lack a password",
    )
    dial(made, user=USER, password=PASSWORD, allowed_mechs="SCRAM-SHA-256")
    assert PASSWORD not in router.log_text()
    assert "wrong" not in router.log_text().replace("the password is wrong", "")


def test_a_password_or_tls_where_neither_is_wanted_is_told_of(tmp_path: Path) -> None:
    made = OneRouter(tmp_path)
    with made.mesh:
        made.mesh.start()
        with pytest.raises(ConnectionException):
            dial(made, is_tls=False, user=USER, password=PASSWORD, allowed_mechs="PLAIN")
        refused_with(made.router, "SASL: it left when it was offered ANONYMOUS: it may want another mechanism")
        with socket.create_connection(("127.0.0.1", made.port)) as sock:
            sock.sendall(SASL_HEADER + init_frame("PLAIN", f"\0{USER}\0{PASSWORD}".encode(), None))
            answer = b""
            while piece := sock.recv(4096):
                answer += piece
        assert answer == SASL_HEADER + mechanisms_frame(["ANONYMOUS"]) + outcome_frame(1)
        refused_with(made.router, "SASL: it offers a password, by PLAIN, and here there is ANONYMOUS only")
        with pytest.raises(ConnectionException, match="SSL Failure"):
            dial(made)
        refused_with(made.router, "it speaks TLS, and this listener does not (it has no `tls`)")
        assert PASSWORD not in made.router.log_text()


def test_plain_is_offered_within_tls_alone(tmp_path: Path) -> None:
    made = OneRouter(tmp_path, tls="t", tls_mode=TlsMode.OPTIONAL, sasl=(Mechanism.SCRAM_SHA_256, Mechanism.PLAIN))
    with made.mesh:
        made.mesh.start()
        dial(made, user=USER, password=PASSWORD, allowed_mechs="PLAIN")
        dial(made, is_tls=False, user=USER, password=PASSWORD, allowed_mechs="SCRAM-SHA-256")
        with pytest.raises(ConnectionException):
            dial(made, is_tls=False, user=USER, password=PASSWORD, allowed_mechs="PLAIN")
        refused_with(
            made.router,
            "SASL: it left when it was offered SCRAM-SHA-256: it may want another mechanism, or lack a password",
        )


def test_certificates_of_clients_are_checked(tmp_path: Path) -> None:
    made = OneRouter(
        tmp_path,
        tls="t",
        client_certificates=ClientCertificates.REQUIRED,
        sasl=(Mechanism.EXTERNAL,),
        user_from=(CertificateField.COMMON_NAME, CertificateField.DNS),
    )
    certificates = made.certificates
    revoked = certificates.issue("mallory", "one.example")
    made.profile = attrs.evolve(made.profile, crl=certificates.revoke(revoked))
    made.mesh.change(attrs.evolve(made.router.settings, tls=(made.profile,)))
    refused = {
        certificates.self_signed("self"): "TLS: the certificate of the peer is refused: self-signed certificate",
        certificates.expired("old"): "TLS: the certificate of the peer is refused: certificate has expired",
        Certificates(tmp_path / "others").issue("alice"): (
            "TLS: the certificate of the peer is refused: unable to get local issuer certificate"
        ),
        revoked: "TLS: the certificate of the peer is refused: certificate revoked",
        certificates.issue("nobody", "127.0.0.1"): "SASL: a certificate with no DNS",
        certificates.issue("two", "one.example", "two.example"): "SASL: a certificate with more than one DNS",
    }
    with made.mesh:
        made.mesh.start()
        for certificate, reason in refused.items():
            with pytest.raises(ConnectionException):
                dial(made, certificate=certificate)
            refused_with(made.router, reason)
        with pytest.raises(ConnectionException):
            dial(made)
        refused_with(made.router, "TLS: the peer shows no certificate")
        dial(made, certificate=certificates.issue("alice", "one.example"), container_id="good")
        assert made.router.wait_log("connection_opened").fields["container"] == "good"


def test_files_that_are_replaced_count_for_new_connections_and_bad_ones_do_not(password_router: OneRouter) -> None:
    made, router = password_router, password_router.router
    options = {"user": USER, "password": PASSWORD, "allowed_mechs": "SCRAM-SHA-256"}
    assert made.profile.certificate is not None
    certificate = Path(made.profile.certificate)
    good = certificate.read_bytes()
    dial(made, **options)
    certificate.write_bytes(b"nothing")
    dial(made, **options)
    unusable = router.wait_log("tls_files_unusable")
    assert unusable.fields["profile"] == "t"
    assert "PEM" in unusable.fields["reason"]
    others = Certificates(certificate.parent / "others")
    certificate.write_bytes(Path(others.issue("A")).read_bytes())
    with pytest.raises(ConnectionException, match="certificate verify failed"):
        dial(made, **options)
    dial(made, ca=others.ca, **options)
    certificate.write_bytes(good)
    dial(made, **options)
    assert len(router.log_lines("tls_files_unusable")) == 1


def test_a_user_that_is_removed_is_closed_and_a_new_one_gets_in(password_router: OneRouter) -> None:
    made, router = password_router, password_router.router
    domain = SSLDomain(SSLDomain.MODE_CLIENT)
    domain.set_trusted_ca_db(made.certificates.ca)
    options = {"timeout": TIMEOUT_S, "ssl_domain": domain, "allowed_mechs": "PLAIN"}
    url = f"amqps://localhost:{made.port}"
    connection = BlockingConnection(url, user=USER, password=PASSWORD, **options)
    write_users(made.users, {**read_users(made.users), "bob": new_keys("of bob", ITERATIONS)})
    BlockingConnection(url, user="bob", password="of bob", **options).close()
    Path(made.users).write_text("what is this", encoding="utf-8")
    BlockingConnection(url, user="bob", password="of bob", **options).close()
    assert router.wait_log("users_file_unusable").fields["reason"].startswith(made.users)
    write_users(made.users, {"bob": new_keys("of bob", ITERATIONS)})
    with pytest.raises(ConnectionException):
        dial(made, user=USER, password=PASSWORD, allowed_mechs="PLAIN")
    with pytest.raises(ConnectionException, match="amqp:unauthorized-access"):
        connection.wait(lambda: False, timeout=TIMEOUT_S)
    refused = router.wait_log("connection_refused")
    assert refused.fields["reason"] == "there is no such user any more"


# Routers


def two_routers(folder: Path, certificates: Certificates, **changes: Any) -> MeshSettings:
    """A, which asks for certificates, and B, which dials it. Changes are of B: its file, its id, of its connector."""
    profile = TlsSettings(name="t", certificate=certificates.issue("A"), ca=certificates.ca)
    listener = ListenerSettings(
        role=Role.INTER_ROUTER, tls="t", client_certificates=ClientCertificates.REQUIRED, sasl=(Mechanism.EXTERNAL,)
    )
    connector = ConnectorSettings(to="A", tls="t", sasl=Mechanism.EXTERNAL, reconnect_max_s=0.2)
    connector = attrs.evolve(connector, **changes.get("connector", {}))
    shown = attrs.evolve(profile, certificate=str(changes.get("certificate", certificates.issue("B"))))
    shown = attrs.evolve(shown, ca=str(changes.get("ca", certificates.ca)))
    neighbors = (NeighborSettings(user="B"), NeighborSettings(user="shared", ids=("C", "B")))
    return MeshSettings(
        name="one",
        routers={
            "A": RouterSettings(id="A", tls=(profile,), neighbors=neighbors, listeners=(ListenerSettings(), listener)),
            "B": RouterSettings(
                id="B", mesh=changes.get("mesh"), tls=(shown,), listeners=(ListenerSettings(),), connectors=(connector,)
            ),
        },
    )


WRONG_ROUTERS = {
    "an authority of its own": ("stranger", "TLS: the certificate of the peer is refused: unable to get local issuer"),
    "a client's certificate": ("client", "user alice may not act as a router"),
    "another router's certificate": ("other", "user A may not act as a router"),
    "another mesh": ("mesh", "router B is of mesh two, and this one of mesh one"),
}


@pytest.mark.parametrize(("who", "reason"), WRONG_ROUTERS.values(), ids=WRONG_ROUTERS)
def test_no_stranger_joins_as_a_router(who: str, reason: str, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "certificates")
    changes = {
        "stranger": {"certificate": Certificates(tmp_path / "others").issue("B")},
        "client": {"certificate": certificates.issue("alice")},
        "other": {"certificate": certificates.issue("A")},
        "mesh": {"mesh": "two"},
    }[who]
    with MeshProcesses(two_routers(tmp_path, certificates, **changes), tmp_path) as mesh:
        mesh.start()
        wait_until(
            lambda: any(reason in line.fields.get("reason", "") for line in mesh["A"].log_lines()),
            lambda: f"{reason}:\n{mesh.logs()[-3000:]}",
            TIMEOUT_S,
        )
        failed = mesh["B"].wait_log("connect_failed")
        assert failed.fields["reason"]
        assert not mesh["A"].log_lines("neighbor_up")
        with ManagementClient(mesh.url("A")) as client:
            (absent,) = [row for row in client.query("router.node") if row["id"] == "B"]
            sentences = {row["kind"]: row["sentence"] for row in client.query("amqp-mesh.problem")}
        assert reason in absent["reason"]
        assert reason in sentences["router-refused"]


def test_a_router_whose_user_may_have_several_ids_joins(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "certificates")
    settings = two_routers(tmp_path, certificates, certificate=certificates.issue("shared"))
    with MeshProcesses(settings, tmp_path) as mesh:
        mesh.start()
        mesh.wait_converged()


WRONG_HOSTS = {
    "wrong host": "TLS: the certificate of the other side is refused: IP address mismatch",
    "expired": "TLS: the certificate of the other side is refused: certificate has expired",
    "self-signed": "TLS: the certificate of the other side is refused: self-signed certificate",
    "wrong authority": "TLS: the certificate of the other side is refused: unable to get local issuer certificate",
}


@pytest.mark.parametrize(("what", "reason"), WRONG_HOSTS.items(), ids=WRONG_HOSTS)
def test_a_connector_refuses_a_certificate_that_is_not_good(what: str, reason: str, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "certificates")
    others = Certificates(tmp_path / "others")
    shown = {
        "wrong host": lambda: certificates.issue("A", "elsewhere.example"),
        "expired": lambda: certificates.expired("A"),
        "self-signed": lambda: certificates.self_signed("A"),
        "wrong authority": lambda: others.issue("A"),
    }[what]
    settings = two_routers(tmp_path, certificates)
    profile = attrs.evolve(settings.routers["A"].tls[0], certificate=shown())
    routers = {**settings.routers, "A": attrs.evolve(settings.routers["A"], tls=(profile,))}
    with MeshProcesses(attrs.evolve(settings, routers=routers), tmp_path) as mesh:
        mesh.start()
        mesh["B"].wait_connect_failed(reason)


def test_routers_know_each_other_by_passwords_too(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("of-router-B\n", encoding="utf-8")
    users = str(tmp_path / "users")
    write_users(users, {"B": new_keys("of-router-B", ITERATIONS)})
    listener = ListenerSettings(role=Role.INTER_ROUTER, sasl=(Mechanism.SCRAM_SHA_512,), users_file=users)
    connector = ConnectorSettings(to="A", sasl=Mechanism.SCRAM_SHA_512, password_file=str(secret), reconnect_max_s=0.2)
    routers = {
        "A": RouterSettings(id="A", listeners=(ListenerSettings(), listener)),
        "B": RouterSettings(id="B", listeners=(ListenerSettings(),), connectors=(connector,)),
    }
    with MeshProcesses(MeshSettings(name="one", routers=routers), tmp_path) as mesh:
        mesh.start()
        mesh.wait_converged()
        assert "of-router-B" not in mesh.logs()
        with ManagementClient(mesh.url("A")) as client:
            (row,) = [row for row in client.query("connection") if row["container"] == "B"]
        assert (row["user"], row["sasl"]) == ("B", "SCRAM-SHA-512")


def test_plain_and_encrypted_ends_that_meet_are_named_at_both(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "certificates")
    settings = two_routers(tmp_path, certificates, connector={"tls": None, "sasl": Mechanism.ANONYMOUS})
    with MeshProcesses(settings, tmp_path / "plain") as mesh:
        mesh.start()
        mesh["B"].wait_connect_failed("the other side requires TLS, and this connector has no `tls`")
        refused_with(mesh["A"], "it speaks plain AMQP, and this listener requires TLS")
    settings = two_routers(tmp_path, certificates)
    listeners = (ListenerSettings(), ListenerSettings(role=Role.INTER_ROUTER))
    routers = {**settings.routers, "A": attrs.evolve(settings.routers["A"], listeners=listeners)}
    with MeshProcesses(attrs.evolve(settings, routers=routers), tmp_path / "encrypted") as mesh:
        mesh.start()
        mesh["B"].wait_connect_failed("TLS: the other side speaks plain AMQP")
        refused_with(mesh["A"], "it speaks TLS, and this listener does not (it has no `tls`)")


def test_a_partner_brings_only_the_addresses_that_it_may(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "certificates")
    settings = two_routers(tmp_path, certificates)
    a = settings.routers["A"]
    listeners = (a.listeners[0], attrs.evolve(a.listeners[1], allowed_prefixes=("partner/b",)))
    routers = {**settings.routers, "A": attrs.evolve(a, listeners=listeners)}
    with MeshProcesses(attrs.evolve(settings, routers=routers), tmp_path) as mesh:
        mesh.start()
        mesh.wait_converged()
        client = BlockingConnection(mesh.url("B"), timeout=TIMEOUT_S)
        for address in ("orders", "partner/bad", "partner/b.x"):
            client.create_receiver(address, credit=1)

        def known() -> set[str]:
            with ManagementClient(mesh.url("A")) as at_a:
                return {str(row["name"]) for row in at_a.query("router.address")}

        wait_until(lambda: any("partner/b.x" in name for name in known()), "the address that may come", TIMEOUT_S)
        assert not any("orders" in name or "partner/bad" in name for name in known())
        assert mesh["A"].wait_log("addresses_refused").fields["remote"] == "B"
        client.close()


def test_a_router_of_another_make_joins_by_its_certificate(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path / "certificates")
    a = two_routers(tmp_path, certificates).routers["A"]
    a = attrs.evolve(a, neighbors=(NeighborSettings(user="RAW"),))
    with (
        MeshProcesses(MeshSettings(routers={"A": a}), tmp_path / "mesh") as mesh,
        contextlib.closing(Sockets()) as ends,
    ):
        mesh.start()

        def configure(transport: Transport) -> None:
            domain = SSLDomain(SSLDomain.MODE_CLIENT)
            domain.set_credentials(shown, shown, None)
            domain.set_trusted_ca_db(certificates.ca)
            domain.set_peer_authentication(SSLDomain.VERIFY_PEER)
            SSL(transport, domain)
            transport.sasl().allowed_mechs("EXTERNAL")

        def join(name: str) -> Neighbor:
            peer = ends.dial(mesh["A"].url(Role.INTER_ROUTER), container=name, sasl=True, configure=configure)
            return Neighbor(name, peer, dials=True)

        shown = certificates.issue("RAW")
        raw = join("RAW")
        ends.wait(lambda: raw.peer.connection.state & raw.peer.connection.REMOTE_ACTIVE)
        raw.attach()
        ends.on_tick = [raw.hello]
        ends.wait(lambda: raw.control_out is not None and raw.control_out.credit > 0)
        raw.hello()
        raw.advertise()
        raw.subscribe("raw")
        ends.wait(lambda: mesh["A"].log_lines("neighbor_up"))
        client = ends.client(mesh.url("A"))
        sender = client.sender("raw", run=False)
        ends.wait(lambda: sender.credit > 0)
        sender.send(message("x" * 100_000))
        ends.wait(lambda: raw.received)
        assert len(raw.received[0][0].body) == 100_000
        shown = certificates.issue("alice")
        stranger = join("RAW2")
        ends.wait(lambda: stranger.peer.connection.remote_condition)
        assert stranger.peer.connection.remote_condition.name == "amqp:unauthorized-access"
