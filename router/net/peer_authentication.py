"""The way in: TLS and SASL, which come before AMQP. An engine is made for each peer that gets through.

A task waits for each peer, with its bytes alone: one that is slow, or silent, costs the others nothing.
"""

from __future__ import annotations

import functools
import secrets
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final

import attrs
import trio

from mesh_config.models import PASSWORD_MECHANISMS, ConnectorSettings, ListenerSettings, Mechanism, TlsMode
from mesh_config.usable_hosts import encoded
from router.core.errors import LocalError
from router.engine.peer_identity import PeerIdentity
from router.engine.tls_channel import TlsChannel
from router.net.credential_files import CredentialFiles
from router.net.handshake_socket import HandshakeFailed, HandshakeSocket, PeerLeft
from router.net.password_throttle import PasswordThrottle
from router.security.credential_store import CredentialStore, ticket_of
from router.security.revocations import number_of
from router.security.sasl_client import SaslClient
from router.security.sasl_frames import (
    AMQP_HEADER,
    SASL_HEADER,
    TLS_HEADER,
    SaslError,
    SaslFrame,
    split_frame,
)
from router.security.sasl_server import KerberosTokenCheck, PasswordCheck, SaslServer
from router.security.scram import NONCE_BYTES
from router.security.tls import certificate_user, failure_words

MOST_FRAMES: Final = 8
"""Maximum number of SASL frames from one peer."""
HANDSHAKE: Final = 0x16
ALERT: Final = 0x15
"""Values of the first byte of TLS, in a handshake and in an alert."""


@attrs.frozen(kw_only=True)
class AuthenticatedPeer:
    """Peer that was authenticated, or needed not to be."""

    identity: PeerIdentity
    channel: TlsChannel | None
    """None without TLS."""
    rest: bytes
    """Plain bytes that were read and are the engine's."""


class PeerAuthentication:
    """Lets the peers of one router in."""

    def __init__(self, credentials: CredentialStore, told: Callable[[Exception], None]) -> None:
        """*told* takes faults of ours."""
        self.credentials = credentials
        self.files = CredentialFiles(credentials, told)
        # None of trio's limiter for everybody: name servers that don't answer may hold all threads of that.
        self._handshakes = trio.CapacityLimiter(1)
        """Limiter by which one step of TLS at a time is done."""
        self.throttle = PasswordThrottle()

    # Who connects here

    async def admit(self, sock: socket.socket, settings: ListenerSettings, host: str) -> AuthenticatedPeer:
        """Authenticate a peer that has connected.

        Args:
            sock: non-blocking.
            settings: of the listener.
            host: of the peer.
        Raises:
            HandshakeFailed: it is not let in; says why.
        """
        wire = HandshakeSocket(sock, functools.partial(failure_words, other="the peer"))
        try:
            return await self._admit(wire, settings, host)
        except PeerLeft:
            raise
        except HandshakeFailed:
            await wire.hang_up()
            raise

    async def _admit(self, wire: HandshakeSocket, settings: ListenerSettings, host: str) -> AuthenticatedPeer:
        await wire.read(1)
        if settings.tls is None:
            await self._refuse_tls(wire)
        else:
            await self._begin_tls(wire, settings)
        if not await self._has_header(wire):
            if Mechanism.ANONYMOUS not in settings.sasl:
                raise HandshakeFailed("what came is no protocol header of AMQP")
            return _admitted(wire)  # the frame guard has the words for it
        header = bytes(wire.data[:8])
        if header == SASL_HEADER:
            return await self._authenticate(wire, settings, host)
        if Mechanism.ANONYMOUS in settings.sasl:
            return _admitted(wire)
        await wire.write(SASL_HEADER)
        raise HandshakeFailed(f"it speaks no SASL, and here it has to, by {' '.join(settings.sasl)}")

    async def _refuse_tls(self, wire: HandshakeSocket) -> None:
        if wire.data[0] == HANDSHAKE:
            await wire.write(AMQP_HEADER)
            raise HandshakeFailed("it speaks TLS, and this listener does not (it has no `tls`)")

    async def _begin_tls(self, wire: HandshakeSocket, settings: ListenerSettings) -> None:
        if wire.data[0] != HANDSHAKE:
            is_amqp = await self._has_header(wire)
            if is_amqp and wire.data[:8] == TLS_HEADER:  # AMQP part 5, 5.2.1
                del wire.data[:8]
                await wire.write(TLS_HEADER)
            elif settings.tls_mode is TlsMode.OPTIONAL:
                return
            else:
                await wire.write(TLS_HEADER)
                raise HandshakeFailed(
                    "it speaks plain AMQP, and this listener requires TLS" if is_amqp else "what came is no TLS"
                )
        await wire.start_tls(TlsChannel(await self.files.context(settings), is_server=True), self._handshakes)
        await wire.read(1)

    async def _has_header(self, wire: HandshakeSocket) -> bool:
        """Whether `AMQP` and four bytes more are there."""
        while len(wire.data) < 8:
            if not AMQP_HEADER.startswith(bytes(wire.data[:4])):
                return False
            await wire.read_more()
        return wire.data[:4] == AMQP_HEADER[:4]

    async def _authenticate(self, wire: HandshakeSocket, settings: ListenerSettings, host: str) -> AuthenticatedPeer:
        del wire.data[:8]
        users = await self.files.users_of(settings)
        tls = wire.channel.tls if wire.channel is not None else None
        sasl = SaslServer(
            _offered(settings, tls),
            users,
            functools.partial(_user_of, tls, settings),
            secrets.token_urlsafe(NONCE_BYTES),
            functools.partial(self.credentials.kerberos, settings),
        )
        await wire.write(SASL_HEADER + sasl.greeting())
        for _ in range(MOST_FRAMES):
            answer = sasl.received(await _next_frame(wire, sasl))
            if isinstance(answer, PasswordCheck):
                assert users is not None
                mark = await self.throttle.find_mark(users, answer.user, answer.password, host, wire.has_left)
                answer = sasl.checked(mark)
            elif isinstance(answer, KerberosTokenCheck):
                await self.throttle.compute(host, wire.has_left, answer.step, answer.token)
                answer = sasl.stepped()
            if sasl.is_guess:
                await self.throttle.pause_guesser(host)
            await wire.write(answer)
            if sasl.failure is not None:
                raise HandshakeFailed(f"SASL: {sasl.failure}")
            if sasl.user is not None:
                return _admitted(
                    wire,
                    user=sasl.user,
                    mechanism=sasl.mechanism,
                    users_file=settings.users_file if sasl.mark is not None else None,
                    password=sasl.mark,
                )
        raise HandshakeFailed("SASL: too many frames")

    # Whom this router dials

    async def dial(
        self, sock: socket.socket, settings: ConnectorSettings, blocking_calls: trio.CapacityLimiter
    ) -> AuthenticatedPeer:
        """Authenticate this router to a peer that it has dialled, and the peer to this router.

        Args:
            sock: non-blocking, connected.
            settings: of the connector.
            blocking_calls: limiter of the connector: while a file of its own or a KDC hangs no more threads do.
        Raises:
            HandshakeFailed: nothing comes of it; says why.
        """
        wire = HandshakeSocket(sock, functools.partial(failure_words, other="the other side"))
        try:
            in_thread = functools.partial(trio.to_thread.run_sync, abandon_on_cancel=True, limiter=blocking_calls)
            password = await in_thread(self.credentials.password, settings)
            if settings.tls is not None:
                host = encoded(settings.tls_host or settings.host)
                await wire.start_tls(
                    TlsChannel(await self.files.context(settings), is_server=False, host=host), self._handshakes
                )
            elif settings.sasl is Mechanism.PLAIN and not settings.plain_without_tls:
                raise HandshakeFailed("PLAIN without TLS is not allowed (`plain_without_tls`)")
            sasl = SaslClient(
                settings.sasl,
                settings.user or self.credentials.router_id,
                password,
                encoded(settings.host),
                secrets.token_urlsafe(NONCE_BYTES),
                ticket_of(settings),
            )
            await wire.write(SASL_HEADER)
            await wire.read(2)
            await self._await_sasl(wire)
            for _ in range(MOST_FRAMES):
                frame = await _next_frame(wire, None)
                await wire.write(await in_thread(sasl.received, frame))
                if sasl.is_over:
                    return _admitted(wire, mechanism=settings.sasl.value)
        except (SaslError, LocalError) as error:
            raise HandshakeFailed(str(error)) from None
        raise HandshakeFailed("SASL: too many frames")

    async def _await_sasl(self, wire: HandshakeSocket) -> None:
        if wire.channel is None and wire.data[0] in (ALERT, HANDSHAKE) and wire.data[1] == 3:
            raise HandshakeFailed("the other side speaks TLS, and this connector does not (it has no `tls`)")
        await wire.read(8)
        header = bytes(wire.data[:8])
        if header == SASL_HEADER:
            del wire.data[:8]
        elif header == TLS_HEADER:
            raise HandshakeFailed("the other side requires TLS, and this connector has no `tls`")
        else:
            raise HandshakeFailed("the other side speaks no SASL" if header == AMQP_HEADER else "what came is no AMQP")


async def _next_frame(wire: HandshakeSocket, sasl: SaslServer | None) -> SaslFrame:
    while True:
        try:
            found = split_frame(wire.data)
            if found is not None:
                del wire.data[: found[1]]
                return found[0]
            await wire.read_more()
        except SaslError as error:
            raise HandshakeFailed(f"SASL: {error}") from None
        except PeerLeft as error:
            if sasl is not None and sasl.mechanism is None:
                raise PeerLeft(f"SASL: it left when it was offered {sasl.words}: {_why_left(sasl.words)}") from None
            if sasl is not None and not sasl.is_over:
                raise PeerLeft(f"SASL: {error}, before {sasl.mechanism} was over") from None
            raise


def _why_left(offered: str) -> str:
    """Likely reasons for which a client begins none of the *offered* mechanisms."""
    names = offered.split()
    lacked = "a ticket" if Mechanism.GSSAPI in names else ""
    if set(PASSWORD_MECHANISMS) & set(names):
        lacked = f"{lacked} or a password" if lacked else "a password"
    return f"it may want another mechanism, or lack {lacked}" if lacked else "it may want another mechanism"


def _offered(settings: ListenerSettings, tls: ssl.SSLObject | None) -> list[str]:
    """Mechanisms that are of use on this connection."""
    has_certificate = tls is not None and bool(tls.getpeercert())
    return [
        mechanism.value
        for mechanism in settings.sasl
        if (mechanism is not Mechanism.EXTERNAL or has_certificate)
        and (mechanism is not Mechanism.PLAIN or tls is not None or settings.plain_without_tls)
    ]


def _user_of(tls: ssl.SSLObject | None, settings: ListenerSettings) -> str:
    if tls is None:
        raise SaslError("EXTERNAL without a certificate")
    return certificate_user(tls, settings.user_from)


def _admitted(wire: HandshakeSocket, **who: Any) -> AuthenticatedPeer:
    channel = wire.channel
    rest = bytes(wire.data)
    wire.data.clear()
    if channel is None:
        return AuthenticatedPeer(identity=PeerIdentity(**who), channel=None, rest=rest)
    name, _, bits = channel.tls.cipher() or ("", "", 0)
    certificate = channel.tls.getpeercert(binary_form=True)
    if certificate is not None and channel.tls.getpeercert():
        who["certificate"] = number_of(certificate)
    identity = PeerIdentity(tls_version=channel.tls.version(), tls_cipher=name, tls_bits=bits, **who)
    return AuthenticatedPeer(identity=identity, channel=channel, rest=rest)
