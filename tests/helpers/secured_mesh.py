"""Two routers that know each other by certificates, with listeners for clients of each kind."""

from __future__ import annotations

from pathlib import Path

import attrs

from mesh_config.models import (
    ClientCertificates,
    ConnectorSettings,
    ListenerSettings,
    Mechanism,
    MeshSettings,
    Role,
    RouterSettings,
    TlsMode,
    TlsSettings,
)
from router.security.users import new_keys, write_users
from tests.helpers.certificates import Certificates

USER, PASSWORD = "alice", "s3cr3t-of-alice"
ITERATIONS = 4096
MECHANISMS = tuple(each for each in Mechanism if each is not Mechanism.GSSAPI)


@attrs.frozen
class SecuredMesh:
    """Settings of the mesh and the files that it needs."""

    settings: MeshSettings
    certificates: Certificates
    users: str
    client: str
    """Certificate and key of the client alice."""


def secured_mesh(folder: Path, keytab: str | None = None, realm: str | None = None) -> SecuredMesh:
    """Make routers A and B; B dials A. Whoever is anywhere as alice has her password, her certificate, or her ticket.

    Args:
        folder: for files.
        keytab: keys of the service; clients get in by GSSAPI too.
        realm: of alice.
    """
    certificates = Certificates(folder / "certificates")
    users = str(folder / "users")
    write_users(users, {USER: new_keys(PASSWORD, ITERATIONS)})
    client = certificates.issue(USER)
    routers = {key: _router(key, certificates, users, keytab, realm) for key in ("A", "B")}
    routers["B"] = attrs.evolve(
        routers["B"], connectors=(ConnectorSettings(to="A", tls="mesh", sasl=Mechanism.EXTERNAL, reconnect_max_s=1.0),)
    )
    mesh = MeshSettings(name="secured", routers=routers)
    return SecuredMesh(settings=mesh, certificates=certificates, users=users, client=client)


def _router(key: str, certificates: Certificates, users: str, keytab: str | None, realm: str | None) -> RouterSettings:
    mechanisms = (*MECHANISMS, Mechanism.GSSAPI) if keytab is not None else MECHANISMS
    clients = ListenerSettings(
        sasl=mechanisms, users_file=users, plain_without_tls=True, keytab=keytab, kerberos_realm=realm
    )
    with_tls = attrs.evolve(clients, tls="mesh", client_certificates=ClientCertificates.REQUESTED)
    return RouterSettings(
        id=key,
        tls=(TlsSettings(name="mesh", certificate=certificates.issue(key), ca=certificates.ca),),
        listeners=(
            attrs.evolve(clients, sasl=tuple(each for each in mechanisms if each is not Mechanism.EXTERNAL)),
            with_tls,
            attrs.evolve(with_tls, tls_mode=TlsMode.OPTIONAL),
            ListenerSettings(
                role=Role.INTER_ROUTER,
                tls="mesh",
                client_certificates=ClientCertificates.REQUIRED,
                sasl=(Mechanism.EXTERNAL,),
            ),
        ),
    )
