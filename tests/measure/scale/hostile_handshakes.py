"""What a client without credentials does to a listener with TLS and SASL: it begins over and over, and ends nothing."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from mesh_config.generators import generate
from mesh_config.models import ListenerSettings, Mechanism, MeshSettings, TlsMode, TlsSettings
from router.security.sasl_frames import SASL_HEADER, init_frame
from router.security.users import new_keys, write_users
from tests.helpers.certificates import Certificates
from tests.measure.scale.stand import Stand

if TYPE_CHECKING:
    from tests.measure.scale.hostile import Connect, Hostile

CROWD = 1000
"""Connections at a time: as many as may wait for an Open by default."""
PROFILE = "tls"


def secured(stand: Stand) -> MeshSettings:
    """One router with a listener for the callers, and one where clients have to say who they are."""
    certificates = Certificates(stand.folder / "certificates")
    users = str(stand.folder / "users")
    write_users(users, {"alice": new_keys("of alice")})
    mesh = generate("line", 1)
    (router,) = mesh.routers.values()
    listener = ListenerSettings(
        tls=PROFILE,
        tls_mode=TlsMode.OPTIONAL,
        sasl=(Mechanism.SCRAM_SHA_256, Mechanism.PLAIN),
        users_file=users,
        plain_without_tls=True,
    )
    profile = TlsSettings(name=PROFILE, certificate=certificates.issue(router.id))
    router = attrs.evolve(router, tls=(profile,), listeners=(*router.listeners, listener))
    return attrs.evolve(mesh, routers={router.id: router})


class Handshake:
    """The client's side of TLS, without a socket."""

    def __init__(self) -> None:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # it means harm
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing)

    def step(self, data: bytes = b"") -> bytes:
        """Take what the router has written. Returns: what to write."""
        self._incoming.write(data)
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            pass
        return self._outgoing.read()


def hellos(connect: Connect) -> None:
    """A thousand connections that begin with TLS and say no more."""
    hello = Handshake().step()
    for _ in range(CROWD):
        connect(None).say(hello)


def hellos_that_stay(connect: Connect) -> None:
    """The same, which are left open for a second before others come."""
    hellos(connect)
    connect(None).rest(1.0)


def slow_hellos(connect: Connect) -> None:
    """A thousand connections that begin with TLS by a byte at a time."""
    hello = Handshake().step()
    clients: list[Hostile] = [connect(None) for _ in range(CROWD)]
    for at in range(len(hello)):
        for client in clients:
            client.say(hello[at : at + 1])


def wrong_passwords(connect: Connect) -> None:
    """Wrong passwords by PLAIN, each on a connection of its own, a thousand at a time."""
    for number in range(CROWD):
        connect(None).say(SASL_HEADER + init_frame("PLAIN", b"\0alice\0wrong %d" % number, None))


KINDS: tuple[Callable[[Connect], None], ...] = (hellos, hellos_that_stay, slow_hellos, wrong_passwords)
