"""Credentials that are guessed, changed or revoked while a router runs; and what of them it shows."""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from proton import ConnectionException, SSLDomain
from proton.utils import BlockingConnection

from mesh_config.models import (
    CertificateField,
    ClientCertificates,
    ConnectorSettings,
    ListenerSettings,
    Mechanism,
    MeshSettings,
    RecorderSettings,
    Role,
    RouterSettings,
    TlsSettings,
)
from router.cli.management import ManagementClient
from router.cli.management_errors import ManagementError
from router.net.password_throttle import WRONG_PASSWORD_PAUSE_S
from router.security.sasl_frames import SASL_HEADER, init_frame, mechanisms_frame, outcome_frame
from router.security.users import new_keys, read_users, write_users
from tests.helpers.certificates import Certificates
from tests.helpers.getting_in import TIMEOUT_S, OneRouter
from tests.helpers.processes import MeshProcesses, wait_until
from tests.helpers.secured_mesh import ITERATIONS, PASSWORD, USER

pytestmark = pytest.mark.interop
GUESSES = 1000
OFFER = SASL_HEADER + mechanisms_frame(["PLAIN"])


@pytest.fixture
def many_files() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4 * GUESSES, before[1]), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def attempt(port: int, password: str, source: str) -> socket.socket:
    """Try a password, from a host of one's own."""
    sock = socket.create_connection(("127.0.0.1", port), TIMEOUT_S, source_address=(source, 0))
    sock.sendall(SASL_HEADER + init_frame("PLAIN", f"\0{USER}\0{password}".encode(), None))
    return sock


def answer(sock: socket.socket) -> bytes:
    """What the router says of it."""
    data = b""
    while len(data) < len(OFFER + outcome_frame(0)) and (piece := sock.recv(4096)):
        data += piece
    return data.removeprefix(OFFER)


@pytest.mark.usefixtures("many_files")
def test_a_thousand_wrong_passwords_have_to_wait_and_keep_nobody_out(tmp_path: Path) -> None:
    made = OneRouter(tmp_path, sasl=(Mechanism.PLAIN,), plain_without_tls=True)
    with made.mesh:
        made.mesh.start()
        with attempt(made.port, PASSWORD, "127.0.0.1") as sock:
            assert answer(sock) == outcome_frame(0)
        began = time.monotonic()
        guesses = [attempt(made.port, f"guess {number}", "127.0.0.1") for number in range(GUESSES)]
        try:
            # From the host of who guesses, whose password is known; and from another one.
            for source in ("127.0.0.1", "127.0.0.2"):
                with attempt(made.port, PASSWORD, source) as sock:
                    assert answer(sock) == outcome_frame(0)
            with attempt(made.port, "wrong", "127.0.0.2") as sock:
                assert answer(sock) == outcome_frame(1)
            # Not one of the oldest, which may have been given up for these three (`max_handshakes`).
            assert answer(guesses[10]) == outcome_frame(1)
            assert time.monotonic() - began > WRONG_PASSWORD_PAUSE_S
        finally:
            for sock in guesses:
                sock.close()
        with attempt(made.port, PASSWORD, "127.0.0.3") as sock:  # nothing is computed for those that have left
            assert answer(sock) == outcome_frame(0)
        assert made.router.is_running


def connected(made: OneRouter, certificate: str | None = None, **options: str) -> BlockingConnection:
    domain = SSLDomain(SSLDomain.MODE_CLIENT)
    domain.set_trusted_ca_db(made.certificates.ca)
    if certificate is not None:
        domain.set_credentials(certificate, certificate, None)
    return BlockingConnection(f"amqps://localhost:{made.port}", timeout=TIMEOUT_S, ssl_domain=domain, **options)


def closed(connection: BlockingConnection, made: OneRouter, reason: str) -> None:
    with pytest.raises(ConnectionException, match="amqp:unauthorized-access"):
        connection.wait(lambda: False, timeout=TIMEOUT_S)
    assert made.router.wait_log("connection_refused").fields["reason"] == reason


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_whose_password_was_changed_is_closed_and_nobody_else(tmp_path: Path, mechanism: str) -> None:
    made = OneRouter(tmp_path, tls="t", sasl=(Mechanism.SCRAM_SHA_256, Mechanism.PLAIN))
    write_users(made.users, {**read_users(made.users), "bob": new_keys("of bob", ITERATIONS)})
    with made.mesh:
        made.mesh.start()
        bob = connected(made, user="bob", password="of bob", allowed_mechs=mechanism)
        alice = connected(made, user=USER, password=PASSWORD, allowed_mechs=mechanism)
        write_users(made.users, {**read_users(made.users), USER: new_keys("another", ITERATIONS)})
        closed(alice, made, "the password of its user was changed")
        bob.create_receiver("still here")
        bob.close()
        connected(made, user=USER, password="another", allowed_mechs=mechanism).close()
        assert len(made.router.log_lines("connection_refused")) == 1


def test_a_fifo_in_place_of_users_and_certificate_keeps_nobody_out(tmp_path: Path) -> None:
    made = OneRouter(tmp_path, tls="t", sasl=(Mechanism.SCRAM_SHA_256,))
    with made.mesh:
        made.mesh.start()
        for path in (made.users, made.profile.certificate or ""):
            os.unlink(path)
            os.mkfifo(path)
        connected(made, user=USER, password=PASSWORD, allowed_mechs="SCRAM-SHA-256").close()
        for event, path in (("users_file_unusable", made.users), ("tls_files_unusable", made.profile.certificate)):
            assert f"{path}: cannot be read: it is a FIFO" in made.router.wait_log(event).fields["reason"]
        assert made.mesh.terminate("A") == {"A": 0}


def test_whose_certificate_was_revoked_is_closed_and_nobody_else(tmp_path: Path) -> None:
    made = OneRouter(
        tmp_path,
        tls="t",
        client_certificates=ClientCertificates.REQUIRED,
        sasl=(Mechanism.EXTERNAL,),
        user_from=(CertificateField.COMMON_NAME,),
    )
    mallory, bob = made.certificates.issue("mallory"), made.certificates.issue("bob")
    made.profile = attrs.evolve(made.profile, crl=made.certificates.revoke())
    made.mesh.change(attrs.evolve(made.router.settings, tls=(made.profile,)))
    with made.mesh:
        made.mesh.start()
        connections = [connected(made, each, allowed_mechs="EXTERNAL") for each in (mallory, bob)]
        made.certificates.revoke(mallory)
        closed(connections[0], made, "its certificate was revoked")
        connections[1].create_receiver("still here")
        connections[1].close()
        with pytest.raises(ConnectionException):
            connected(made, mallory, allowed_mechs="EXTERNAL")
        assert len(made.router.log_lines("connection_refused")) == 1


def test_no_secret_is_in_what_management_answers_or_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificates = Certificates(tmp_path)
    (tmp_path / "secret").write_text("pl4nted-of-connector", encoding="utf-8")
    monkeypatch.setenv("OF_KEY", "pl4nted-of-key")
    monkeypatch.setenv("OF_USER", "pl4nted-of-user")
    users = str(tmp_path / "users")
    write_users(users, {USER: new_keys("pl4nted-of-alice", ITERATIONS)})
    key = certificates.with_password("A", "pl4nted-of-key")
    scram = ConnectorSettings(to="B", sasl=Mechanism.SCRAM_SHA_256, reconnect_max_s=0.2)
    routers_only = ListenerSettings(role=Role.INTER_ROUTER, sasl=(Mechanism.SCRAM_SHA_256,), users_file=users)
    router = RouterSettings(
        id="A",
        tls=(TlsSettings(name="t", certificate=key, key_password_env="OF_KEY", ca=certificates.ca),),
        listeners=(ListenerSettings(), ListenerSettings(tls="t", sasl=(Mechanism.SCRAM_SHA_256,), users_file=users)),
        connectors=(
            attrs.evolve(scram, name="a", password_file=str(tmp_path / "secret")),
            attrs.evolve(scram, name="b", password_env="OF_USER"),
        ),
    )
    other = RouterSettings(id="B", listeners=(ListenerSettings(), routers_only))
    # Short ones, such as the number of iterations, are no secret, and are part of other numbers now and then.
    words = Path(users).read_text(encoding="utf-8").replace("$", " ").replace(":", " ").split()
    hidden = ["pl4nted", *(word for word in words if len(word) > 16)]
    assert len(hidden) >= 4, "a salt and two keys"
    hidden += Path(key).read_text(encoding="utf-8").splitlines()[1:3]
    with MeshProcesses(MeshSettings(routers={"A": router, "B": other}), tmp_path / "mesh") as mesh:
        mesh.start()
        mesh["A"].wait_connect_failed("the other side refuses SCRAM-SHA-256")
        told = []
        with ManagementClient(mesh.url("A")) as client:
            for kind in client.request("GET-TYPES").body:
                try:
                    told += client.query(str(kind))
                except ManagementError as error:
                    told.append({"error": str(error)})
        assert any("users_file" in str(row) or "saslMechanisms" in str(row) for row in told)
        logs = "".join(mesh[key].log_file.read_text(encoding="utf-8") for key in ("A", "B"))
        assert "connect_failed" in logs
        assert not [secret for secret in hidden if secret in str(told) or secret in logs]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_no_secret_is_in_a_traceback_the_state_or_a_recording(tmp_path: Path, mechanism: str) -> None:
    """Faults of our own, raised where the secrets are known: the router goes on, and says where it was and no more."""
    (tmp_path / "secret").write_text("pl4nted-of-connector", encoding="utf-8")
    users = str(tmp_path / "users")
    write_users(users, {USER: new_keys("pl4nted-of-alice", ITERATIONS)})
    offered = ListenerSettings(sasl=tuple(map(Mechanism, ["PLAIN", "SCRAM-SHA-256"])), users_file=users)
    router = RouterSettings(
        id="A",
        listeners=(attrs.evolve(offered, plain_without_tls=True), ListenerSettings(name="open")),
        connectors=(
            ConnectorSettings(
                to="B",
                sasl=Mechanism(mechanism),
                user=USER,
                password_file=str(tmp_path / "secret"),
                plain_without_tls=True,
                reconnect_max_s=0.2,
            ),
        ),
        recorder=RecorderSettings(directory=str(tmp_path)),
    )
    routers_only = attrs.evolve(offered, role=Role.INTER_ROUTER, plain_without_tls=True)
    mesh = MeshSettings(routers={"A": router, "B": RouterSettings(id="B", listeners=(routers_only,))})
    words = Path(users).read_text(encoding="utf-8").replace("$", " ").replace(":", " ").split()
    hidden = ["pl4nted", *(word for word in words if len(word) > 20)]  # salts and keys
    assert len(hidden) > 3
    command = (sys.executable, "-m", "tests.helpers.faulty_router", "plain,scram,connector")
    with MeshProcesses(mesh, tmp_path / "mesh", command=command) as running:
        running.start()
        with pytest.raises(ConnectionException):
            BlockingConnection(
                running.url("A"), user=USER, password="pl4nted-of-alice", allowed_mechs=mechanism, timeout=TIMEOUT_S
            )
        own = running["A"]
        checked = "fault of Users.check" if mechanism == "PLAIN" else "fault of ScramServer.verify"
        for fault in ("fault of SaslClient.received", checked):
            wait_until(lambda fault=fault: fault in own.log_file.read_text(encoding="utf-8"), running.logs, TIMEOUT_S)
        assert own.is_running
        os.kill(own.pid, signal.SIGUSR1)
        recording = Path(own.wait_log("recording_written").fields["path"]).read_bytes()
        told = own.log_file.read_text(encoding="utf-8") + recording.decode()
        assert not [secret for secret in hidden if secret in told]


def test_no_secret_is_in_the_last_words_of_a_router(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("pl4nted", encoding="utf-8")
    secret = str(tmp_path / "secret")
    connector = ConnectorSettings(to="B", sasl=Mechanism.SCRAM_SHA_256, password_file=secret)
    other = RouterSettings(id="B", listeners=(ListenerSettings(role=Role.INTER_ROUTER),))
    mesh = MeshSettings(routers={"A": RouterSettings(id="A", connectors=(connector,)), "B": other})
    command = (sys.executable, "-m", "tests.helpers.faulty_router", "secret")
    with MeshProcesses(mesh, tmp_path / "mesh", command=command) as running:
        own = running["A"]
        own.start()
        wait_until(lambda: not own.is_running, running.logs, TIMEOUT_S)
        told = own.log_file.read_text(encoding="utf-8")
        assert "event=ended" in told
        assert "ZeroDivisionError" in told
        assert "pl4nted" not in told
