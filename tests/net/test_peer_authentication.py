"""TLS and SASL beside threads that hang: what is slow for one peer keeps out nobody else."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog
import trio
import trio.testing

from mesh_config.models import ConnectorSettings, ListenerSettings, Mechanism, RouterSettings, TlsSettings
from router import connection_server
from router.daemon import Daemon
from router.net.peer_authentication import AuthenticatedPeer, PeerAuthentication
from router.security import credential_store
from router.security.credential_store import CredentialStore
from router.security.sasl_frames import AMQP_HEADER
from tests.helpers.certificates import Certificates


def take_all_threads() -> None:
    """Take all threads that trio has for everybody, as lookups at name servers that don't answer do."""
    limiter = trio.to_thread.current_default_thread_limiter()
    for number in range(int(limiter.available_tokens)):
        limiter.acquire_on_behalf_of_nowait(f"hangs {number}")


async def test_tls_goes_on_while_threads_for_other_things_hang(tmp_path: Path) -> None:
    take_all_threads()
    made = Certificates(tmp_path)
    profile = TlsSettings(name="t", certificate=made.issue("A"), ca=made.ca)
    listener = ListenerSettings(tls="t")
    store = CredentialStore(RouterSettings(id="A", tls=(profile,), listeners=(listener,)), structlog.get_logger())
    authentication = PeerAuthentication(store, pytest.fail)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    admitted: list[AuthenticatedPeer] = []

    async def admit() -> None:
        admitted.append(await authentication.admit(ours, listener, "127.0.0.1"))

    with ours, theirs, trio.fail_after(5):
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(theirs))
        client = trio.SSLStream(stream, ssl.create_default_context(cafile=made.ca), server_hostname="localhost")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(admit)
            await client.send_all(AMQP_HEADER)
    assert admitted[0].rest == AMQP_HEADER


class DeadDisk:
    """A disk that doesn't answer until it is told to."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()
        self.reads = 0

    def read(self, *_: object) -> str:
        """Read a password."""
        self.reads += 1
        self.may_go_on.wait(30)
        return "secret"


@pytest.fixture
def disk() -> Iterator[DeadDisk]:
    made = DeadDisk()
    yield made
    made.may_go_on.set()


async def test_a_password_on_a_disk_that_hangs_takes_one_thread_of_its_connector(
    disk: DeadDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "password"
    file.write_text("secret", encoding="utf-8")
    settings = ConnectorSettings(host="127.0.0.1", port=1, sasl=Mechanism.SCRAM_SHA_256, password_file=str(file))
    daemon = Daemon(RouterSettings(id="A", connectors=(settings,)))
    monkeypatch.setattr(connection_server, "HANDSHAKE_TIMEOUT_S", 0.05)
    monkeypatch.setattr(credential_store, "read_secret", disk.read)
    for _ in range(3):
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            reason = await daemon._server.serve_connected(ours, daemon.connectors[0])
        assert reason == "no password or ticket of this router within 0.05 s"
    assert disk.reads == 1
    assert trio.to_thread.current_default_thread_limiter().borrowed_tokens == 0
    disk.may_go_on.set()
    monkeypatch.setattr(connection_server, "HANDSHAKE_TIMEOUT_S", 1.0)
    while daemon.connectors[0].blocking_calls.borrowed_tokens:
        await trio.lowlevel.checkpoint()
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with theirs:  # it says nothing
        assert await daemon._server.serve_connected(ours, daemon.connectors[0]) == "no answer within 1 s"
