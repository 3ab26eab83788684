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
MECHANISMS = tuple(Mechanism)


@attrs.frozen
class SecuredMesh:
    """Settings of the mesh and the files that it needs."""

    settings: MeshSettings
    certificates: Certificates
    users: str
    client: str
    """Certificate and key of the client alice."""


def secured_mesh(folder: Path) -> SecuredMesh:
    """Make routers A and B; B dials A. Whoever is anywhere as alice has her password, or her certificate."""
    certificates = Certificates(folder / "certificates")
    users = str(folder / "users")
    write_users(users, {USER: new_keys(PASSWORD, ITERATIONS)})
    client = certificates.issue(USER)
    routers = {key: _router(key, certificates, users) for key in ("A", "B")}
    routers["B"] = attrs.evolve(
        routers["B"], connectors=(ConnectorSettings(to="A", tls="mesh", sasl=Mechanism.EXTERNAL, reconnect_max_s=1.0),)
    )
    mesh = MeshSettings(name="secured", routers=routers)
    return SecuredMesh(settings=mesh, certificates=certificates, users=users, client=client)


def _router(key: str, certificates: Certificates, users: str) -> RouterSettings:
    clients = ListenerSettings(sasl=MECHANISMS, users_file=users, plain_without_tls=True)
    with_tls = attrs.evolve(clients, tls="mesh", client_certificates=ClientCertificates.REQUESTED)
    return RouterSettings(
        id=key,
        tls=(TlsSettings(name="mesh", certificate=certificates.issue(key), ca=certificates.ca),),
        listeners=(
            attrs.evolve(clients, sasl=tuple(each for each in MECHANISMS if each is not Mechanism.EXTERNAL)),
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
