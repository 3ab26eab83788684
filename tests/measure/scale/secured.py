"""Encryption and passwords: what a handshake costs a router, and what becomes of a stream within TLS.

A handshake is TLS 1.3 anew, without a ticket, SCRAM-SHA-256 and the router's Open; clients are processes of their own,
which derive the password's key once. A stream is of one publisher and one subscriber, both in this process. Sizes are
clients, and bytes of a message.

With `--compare NAME=PLAIN,TLS,SCRAM,PID` the same is done to a router that runs already: ports of loopback without TLS,
with it, and with it and SCRAM for the user alice with the password of-alice; and its process. All have turns.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import socket
import ssl
import statistics
import time
from collections.abc import Sequence

import attrs
import cproton_ffi

from mesh_config.generators import generate
from mesh_config.models import ListenerSettings, Mechanism, MeshSettings, TlsSettings
from router.security.sasl_frames import (
    AMQP_HEADER,
    CHALLENGE,
    MECHANISMS,
    OUTCOME,
    SASL_HEADER,
    SaslFrame,
    init_frame,
    response_frame,
    split_frame,
)
from router.security.users import new_keys, write_users
from tests.helpers import frames
from tests.helpers.certificates import Certificates
from tests.measure.credit.tasks import Parent, Task
from tests.measure.scale.beside import client_first, routers_first
from tests.measure.scale.client import Loop, message
from tests.measure.scale.stand import Stand, Table, cpu_seconds, new_address

SIZES = (1, 4, 100, 10_000, 100_000)
MOST_CLIENTS = 20
"""Sizes up to here are clients that shake hands, and above it bytes."""
TURNS = 3
SECONDS = 1.5
CREDIT = 250
USER, PASSWORD = "alice", "of-alice"
OURS = "amqp-mesh"


@attrs.frozen
class Target:
    """A router that is measured."""

    name: str
    plain: int
    """Port without TLS,"""
    tls: int
    """with it,"""
    scram: int
    """and with it and SCRAM."""
    pid: int


def targets(compare: Sequence[str]) -> list[Target]:
    """Those that were named on the command line."""
    found = []
    for each in compare:
        name, _, numbers = each.partition("=")
        found.append(Target(name, *map(int, numbers.split(","))))
    return found


def secured(stand: Stand) -> MeshSettings:
    """One router with the three listeners."""
    certificates, users = Certificates(stand.folder / "certificates"), str(stand.folder / "users")
    write_users(users, {USER: new_keys(PASSWORD)})
    mesh = generate("line", 1)
    (router,) = mesh.routers.values()
    profile = TlsSettings(name="tls", certificate=certificates.issue(router.id))
    tls = ListenerSettings(tls=profile.name)
    scram = attrs.evolve(tls, sasl=(Mechanism.SCRAM_SHA_256,), users_file=users)
    router = attrs.evolve(router, tls=(profile,), listeners=(ListenerSettings(), tls, scram))
    return attrs.evolve(mesh, routers={router.id: router})


def measure(stand: Stand, sizes: Sequence[int]) -> Table:
    """Handshakes and messages in a second, and the router's CPU for one."""
    table = Table(f"TLS and SCRAM; sizes to {MOST_CLIENTS} are clients, above it bytes of a message")
    with stand.mesh(secured(stand)) as bench, client_first():
        routers_first(bench)
        ports = [int(bench.url(index=index).rpartition(":")[2]) for index in range(3)]
        all_targets = [Target(OURS, *ports, bench.mesh["R1"].pid), *targets(stand.compare)]
        for size in sizes:
            if size <= MOST_CLIENTS:
                _measure_handshakes(table, all_targets, size)
            else:
                _measure_streams(table, all_targets, size)
    return table


def _measure_handshakes(table: Table, all_targets: Sequence[Target], clients: int) -> None:
    figures: dict[str, list[tuple[float, float]]] = {target.name: [] for target in all_targets}
    for _ in range(TURNS):
        for target in all_targets:
            figures[target.name].append(_handshakes(target, clients))
    for name, found in figures.items():
        table.add(clients, f"{name}: handshakes", statistics.median(each[0] for each in found), "/s")
        table.add(clients, f"{name}: CPU for a handshake", statistics.median(each[1] for each in found))


def _handshakes(target: Target, clients: int) -> tuple[float, float]:
    tasks = [Task(shake_hands, target.scram) for _ in range(clients)]
    try:
        for task in tasks:
            assert task.hear() == "ready"
        cpu, began = cpu_seconds(target.pid), time.monotonic()
        for task in tasks:
            task.tell("go")
        count = sum(task.hear() for task in tasks)
        return count / (time.monotonic() - began), (cpu_seconds(target.pid) - cpu) / count
    finally:
        for task in tasks:
            task.__exit__(None, None, None)


def shake_hands(parent: Parent, port: int) -> int:
    """In a process: connect over and over. Returns: how often."""
    client = ScramConnection(port)
    client.connect()
    parent.tell("ready")
    parent.hear()
    end, count = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        client.connect()
        count += 1
    return count


class ScramConnection:
    """Connections of one user, the key of whose password is derived once."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._context = ssl.create_default_context()
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE  # the router is this measurement's own
        self._context.minimum_version = ssl.TLSVersion.TLSv1_3
        self._salted: dict[tuple[bytes, int], bytes] = {}

    def connect(self) -> None:
        """Connect, say who this is, open, and leave."""
        with (
            socket.create_connection(("127.0.0.1", self._port), 10) as plain,
            self._context.wrap_socket(plain) as sock,
        ):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            data = bytearray()
            sock.sendall(SASL_HEADER)
            self._read(sock, data, len(SASL_HEADER))
            assert data.startswith(SASL_HEADER)
            del data[:8]
            self._authenticate(sock, data)
            sock.sendall(AMQP_HEADER + frames.write(0x10, ["handshake", "localhost"]))
            self._read(sock, data, 16)

    def _authenticate(self, sock: ssl.SSLSocket, data: bytearray) -> None:
        assert "SCRAM-SHA-256" in self._frame(sock, data, MECHANISMS).mechanisms
        first = f"n={USER},r={secrets.token_hex(12)}".encode()
        sock.sendall(init_frame("SCRAM-SHA-256", b"n,," + first, "localhost"))
        challenge = self._frame(sock, data, CHALLENGE).data or b""
        sock.sendall(response_frame(self._proof(first, challenge)))
        frame = self._frame(sock, data)
        if frame.code == CHALLENGE:  # the server's signature may come before the outcome, or with it
            sock.sendall(response_frame(b""))
            frame = self._frame(sock, data)
        assert (frame.code, frame.outcome) == (OUTCOME, 0), frame

    def _proof(self, first: bytes, challenge: bytes) -> bytes:
        fields = dict(part.split(b"=", 1) for part in challenge.split(b","))
        key = (base64.b64decode(fields[b"s"]), int(fields[b"i"]))
        salted = self._salted.get(key)
        if salted is None:
            salted = self._salted[key] = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), *key)
        last = b"c=biws,r=" + fields[b"r"]
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        signed = hmac.digest(hashlib.sha256(client_key).digest(), b",".join((first, challenge, last)), "sha256")
        proof = bytes(one ^ other for one, other in zip(client_key, signed, strict=True))
        return last + b",p=" + base64.b64encode(proof)

    def _frame(self, sock: ssl.SSLSocket, data: bytearray, code: int | None = None) -> SaslFrame:
        while (found := split_frame(data)) is None:
            self._read(sock, data, len(data) + 1)
        del data[: found[1]]
        assert code is None or found[0].code == code, found
        return found[0]

    def _read(self, sock: ssl.SSLSocket, data: bytearray, size: int) -> None:
        while len(data) < size:
            piece = sock.recv(65536)
            assert piece, "the router has ended the connection"
            data += piece


def _measure_streams(table: Table, all_targets: Sequence[Target], size: int) -> None:
    figures: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for _ in range(TURNS):
        for target in all_targets:
            for way, port in (("plain", target.plain), ("TLS", target.tls)):
                figures.setdefault((target.name, way), []).append(_stream(target, port, size, is_tls=way == "TLS"))
    for target in all_targets:
        medians = {}
        for way in ("plain", "TLS"):
            found = figures[target.name, way]
            medians[way] = [statistics.median(each[at] for each in found) for at in (0, 1)]
            table.add(size, f"{target.name}, {way}: messages", medians[way][0], "/s")
            table.add(size, f"{target.name}, {way}: CPU for a message", medians[way][1])
        table.add(size, f"{target.name}: messages, TLS of plain", medians["TLS"][0] / medians["plain"][0], "x")
        table.add(size, f"{target.name}: CPU, plain of TLS", medians["plain"][1] / medians["TLS"][1], "x")


def _stream(target: Target, port: int, size: int, *, is_tls: bool) -> tuple[float, float]:
    domain = _domain() if is_tls else None
    loop = Loop()
    try:
        address = new_address()
        url = f"amqp://127.0.0.1:{port}"
        subscriber = loop.connect(url, domain).subscriber(address, credit=CREDIT, tops_up=True)
        publisher = loop.connect(url, domain).publisher(address)
        loop.attach_all([subscriber, publisher])
        data = message(bytes(size))

        def run(seconds: float) -> None:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                while publisher.credit > 0:
                    publisher.send(data)
                loop.step()

        loop.run_until(lambda: publisher.credit > 0)
        run(0.3)
        count, cpu, began = subscriber.received, cpu_seconds(target.pid), time.monotonic()
        run(SECONDS)
        count = subscriber.received - count
        return count / (time.monotonic() - began), (cpu_seconds(target.pid) - cpu) / count
    finally:
        loop.close()


def _domain() -> object:
    lib = cproton_ffi.lib
    domain = lib.pn_ssl_domain(lib.PN_SSL_MODE_CLIENT)
    assert lib.pn_ssl_domain_set_peer_authentication(domain, lib.PN_SSL_ANONYMOUS_PEER, cproton_ffi.ffi.NULL) == 0
    return domain
