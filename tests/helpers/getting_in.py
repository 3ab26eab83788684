"""Clients that get into a mesh which knows its users, each by one mechanism, and what the routers say of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
from proton import Message, SSLDomain
from proton.utils import BlockingConnection

from mesh_config.models import (
    PASSWORD_MECHANISMS,
    ListenerSettings,
    Mechanism,
    MeshSettings,
    Role,
    RouterSettings,
    TlsSettings,
)
from router.cli.management import ManagementClient
from router.security.users import new_keys, write_users
from tests.helpers.certificates import Certificates
from tests.helpers.oslo import OsloWorker, hosts_url
from tests.helpers.processes import MeshProcesses, RouterProcess
from tests.helpers.secured_mesh import ITERATIONS, PASSWORD, USER, SecuredMesh
from tests.helpers.who_gets_in import MODES, NO_SASL

TIMEOUT_S = 30


@attrs.frozen
class Field:
    """The mesh that runs, and its files."""

    mesh: MeshProcesses
    made: SecuredMesh

    def port(self, router: str, mode: str) -> int:
        """Of the listener of *router* whose TLS is *mode*."""
        return int(self.mesh[router].url(Role.NORMAL, MODES.index(mode)).rpartition(":")[2])


def proton_connection(
    made: SecuredMesh, port: int, mechanism: str, *, is_tls: bool, container: str
) -> BlockingConnection:
    """A connection of proton's."""
    domain = None
    if is_tls:
        domain = SSLDomain(SSLDomain.MODE_CLIENT)
        domain.set_trusted_ca_db(made.certificates.ca)
        domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
        if mechanism == Mechanism.EXTERNAL:
            domain.set_credentials(made.client, made.client, None)
    options = {"sasl_enabled": False} if mechanism == NO_SASL else {"allowed_mechs": str(mechanism)}
    if mechanism in PASSWORD_MECHANISMS:
        options |= {"user": USER, "password": PASSWORD}
    return BlockingConnection(
        f"{'amqps' if is_tls else 'amqp'}://localhost:{port}",
        timeout=TIMEOUT_S,
        ssl_domain=domain,
        allow_insecure_mechs=True,
        container_id=container,
        **options,
    )


def by_proton(field: Field, mechanism: str, mode: str, container: str) -> None:
    """A message passes from a client of proton at A to one at B."""
    is_tls = mode != "none"
    ends = [
        proton_connection(field.made, field.port(key, mode), mechanism, is_tls=is_tls, container=container)
        for key in ("A", "B")
    ]
    receiver = ends[1].create_receiver(container, credit=10)
    sender = ends[0].create_sender(container)
    ends[0].wait(lambda: sender.link.credit > 0)
    sender.link.send(Message(body="x" * 100_000))
    ends[0].wait(lambda: not ends[0].conn.transport.pending())
    assert len(receiver.receive(TIMEOUT_S).body) == 100_000
    receiver.accept()
    check_connections(field, mechanism, mode, container)
    for end in ends:
        end.close()


def by_oslo(field: Field, mechanism: str, mode: str, container: str, worker: OsloWorker) -> None:
    """A caller at B is answered by a server at A, both of oslo.messaging."""
    options: dict[str, object] = {"container_name": container}
    if mechanism != NO_SASL:
        options["sasl_mechanisms"] = mechanism
    if mode != "none":
        options |= {"ssl": "true", "ssl_ca_file": field.made.certificates.ca}
    if mechanism == Mechanism.EXTERNAL:
        options |= {"ssl_cert_file": field.made.client, "ssl_key_file": field.made.client}
    vhost = ""
    if (
        mechanism == Mechanism.GSSAPI
    ):  # the driver tells Cyrus no host but a virtual one, and without there is no ticket
        vhost, options["pseudo_vhost"] = "localhost", "false"
    user = f"{USER}:{PASSWORD}@" if mechanism in PASSWORD_MECHANISMS else ""
    for key in ("A", "B"):
        worker.do(
            "open", transport=key, url=hosts_url(f"{user}localhost:{field.port(key, mode)}", vhost=vhost, **options)
        )
    worker.do("serve", transport="A", topic=container, server="s")
    assert worker.do("call", transport="B", topic=container, method="echo", args={"key": 1}, timeout=TIMEOUT_S)
    check_connections(field, mechanism, mode, container)


def check_connections(field: Field, mechanism: str, mode: str, container: str) -> None:
    """What the routers say of the connections of *container*."""
    wanted = {
        "user": USER if mechanism not in (NO_SASL, Mechanism.ANONYMOUS) else "anonymous",
        "sasl": None if mechanism == NO_SASL else str(mechanism),
        "isEncrypted": mode != "none",
    }
    for key in ("A", "B"):
        with ManagementClient(field.mesh.url(key)) as client:
            rows = [row for row in client.query("connection") if str(row["container"]).startswith(container)]
        assert rows
        for row in rows:
            assert {name: row[name] for name in wanted} == wanted


class OneRouter:
    """A router of which other settings are tried."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.certificates = Certificates(folder / "certificates")
        self.users = str(folder / "users")
        write_users(self.users, {USER: new_keys(PASSWORD, ITERATIONS)})
        self.profile = TlsSettings(name="t", certificate=self.certificates.issue("A"), ca=self.certificates.ca)
        self.mesh = MeshProcesses(self.with_listeners(**settings), folder)

    def with_listeners(self, **settings: Any) -> MeshSettings:
        """Settings with a listener for operators, and the one that is tried."""
        operators = ListenerSettings()
        tried = ListenerSettings(**{"users_file": self.users, **settings})
        router = RouterSettings(id="A", tls=(self.profile,), listeners=(operators, tried))
        return MeshSettings(routers={"A": router})

    @property
    def router(self) -> RouterProcess:
        """The process."""
        return self.mesh["A"]

    @property
    def port(self) -> int:
        """Of the listener that is tried."""
        return self.router.settings.listeners[1].port


def dial(
    made: OneRouter, *, is_tls: bool = True, ca: str | None = None, host: str = "localhost", **options: object
) -> None:
    """Connect, and find out what the client is told."""
    domain = None
    if is_tls:
        domain = SSLDomain(SSLDomain.MODE_CLIENT)
        domain.set_trusted_ca_db(ca or made.certificates.ca)
        domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
        certificate = options.pop("certificate", None)
        if certificate is not None:
            domain.set_credentials(certificate, certificate, None)
    url = f"{'amqps' if is_tls else 'amqp'}://localhost:{made.port}"
    BlockingConnection(url, timeout=TIMEOUT_S, ssl_domain=domain, allow_insecure_mechs=True, **options).close()
