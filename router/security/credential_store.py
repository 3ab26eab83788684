"""TLS profiles and users of one router, read from their files: by them it finds out who is at the other end."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from mesh_config.models import (
    PASSWORD_MECHANISMS,
    ClientCertificates,
    ConnectorSettings,
    HttpSettings,
    ListenerSettings,
    Mechanism,
    RouterSettings,
    TlsSettings,
)
from router.core.errors import LocalError
from router.security.certificate_expiry import CertificateExpiry, UnusableFile, ends_in
from router.security.kerberos import KerberosExchange, KerberosService, KerberosTicket, gssapi_library
from router.security.revocations import CertificateNumber, read_revoked
from router.security.secret_files import read_secret
from router.security.tls import TlsProfile, client_context, file_mark, server_context
from router.security.users import Users

Socket = ListenerSettings | ConnectorSettings | HttpSettings


class AuthenticatedIdentity(Protocol):
    """Identity of a peer that was let in, with the credentials that it was checked by."""

    @property
    def user(self) -> str:
        """Its user."""

    @property
    def users_file(self) -> str | None:
        """File that its password was checked by."""

    @property
    def password(self) -> bytes | None:
        """Mark of the keys that it was checked by."""

    @property
    def certificate(self) -> CertificateNumber | None:
        """Of its certificate."""


class CredentialStore:
    """Profiles and users of one router. Files that were replaced count from the next connection on."""

    def __init__(self, settings: RouterSettings, log: Any) -> None:
        """Read all files.

        Raises:
            LocalError: one of them cannot be used; says which and why.
        """
        self.router_id = settings.id
        self._log = log
        self._profiles: dict[Socket, TlsProfile] = {}
        self.users: dict[str, Users] = {}
        """By path of the file."""
        self._services: dict[tuple[str | None, str, str | None], KerberosService] = {}
        self._revoked: dict[str, tuple[object, frozenset[CertificateNumber]]] = {}
        """By name of the profile: which file of lists was read, and what it revokes."""
        self._bad_lists: dict[str, str] = {}
        """By name of the profile: fault of its file of lists as it is."""
        self._ends: dict[str, tuple[object, list[CertificateExpiry]]] = {}
        """By path of the file: which one was read, and the certificates in it."""
        self._by_name = {profile.name: profile for profile in settings.tls}
        for listener in settings.listeners:
            self.prepare(listener)
        for connector in settings.connectors:
            self.prepare(connector)

    def change_profiles(
        self, profiles: Sequence[TlsSettings], removed: Sequence[str], sockets: Sequence[Socket]
    ) -> Callable[[], None]:
        """Know other TLS profiles, for the connections to come.

        Args:
            profiles: those that are new, or others than before.
            removed: names of those that nothing uses any more.
            sockets: listeners and connectors that stay.
        Returns: what takes the change back.
        Raises:
            LocalError: a file that one of the sockets needs cannot be used, and nothing has changed.
        """
        changed = {profile.name: profile for profile in profiles}
        made = {
            socket: TlsProfile(changed[socket.tls], _maker(socket))
            for socket in sockets
            if socket.tls in changed and socket in self._profiles
        }
        before = (self._by_name, self._profiles)
        self._by_name = {name: it for name, it in {**self._by_name, **changed}.items() if name not in removed}
        self._profiles = {**self._profiles, **made}
        for name in (*changed, *removed):
            self._revoked.pop(name, None)  # they are read again, where there are such lists
            self._bad_lists.pop(name, None)

        def take_back() -> None:
            self._by_name, self._profiles = before

        return take_back

    def prepare(self, socket: Socket) -> None:
        """Read the files of a listener, of the one for HTTP, or of a connector, before its first connection.

        Raises:
            LocalError: one of them cannot be used; says which and why.
        """
        if socket.tls is not None and socket not in self._profiles:
            if socket.tls not in self._by_name:
                raise LocalError(f"no TLS profile {socket.tls}")
            self._profiles[socket] = TlsProfile(self._by_name[socket.tls], _maker(socket))
        if isinstance(socket, ConnectorSettings):
            self.password(socket)
            if socket.sasl is Mechanism.GSSAPI:
                gssapi_library()
            return
        if socket.users_file is not None and socket.users_file not in self.users:
            self.users[socket.users_file] = Users(socket.users_file)
        if isinstance(socket, HttpSettings):
            return
        if Mechanism.GSSAPI in socket.sasl and (key := _service_key(socket)) not in self._services:
            self._services[key] = KerberosService(*key)

    def tls(self, socket: Socket) -> Any:
        """Context for a new connection of a listener or connector with a profile."""
        context, problem = self._profiles[socket].context()
        if problem:
            self._log.warning("tls_files_unusable", profile=socket.tls, reason=problem)
        return context

    def users_of(self, listener: ListenerSettings | HttpSettings) -> Users | None:
        """Users of a listener's file, as it is now."""
        if listener.users_file is None:
            return None
        users = self.users[listener.users_file]
        self._refresh(users)
        return users

    def kerberos(self, listener: ListenerSettings) -> KerberosExchange:
        """An exchange of a listener that offers GSSAPI."""
        return KerberosExchange(self._services[_service_key(listener)])

    def refresh(self) -> None:
        """Look at the files of users, and of revocation lists, again."""
        for users in self.users.values():
            self._refresh(users)
        for name, profile in self._by_name.items():
            if profile.crl is not None:
                self._read_revoked(name, profile.crl)

    def _read_revoked(self, profile: str, path: str) -> None:
        mark = file_mark(path)
        seen, revoked = self._revoked.get(profile, (None, frozenset()))
        if mark == seen:
            return
        try:
            revoked = read_revoked(path)
            self._bad_lists.pop(profile, None)
        except LocalError as error:
            self._bad_lists[profile] = str(error)
            self._log.warning("tls_files_unusable", profile=profile, reason=str(error))
        self._revoked[profile] = (mark, revoked)

    def certificates(self) -> list[CertificateExpiry]:
        """List the certificates that this router shows, those of their authorities in the same files included."""
        found: list[CertificateExpiry] = []
        for path in dict.fromkeys(profile.certificate for profile in self._by_name.values() if profile.certificate):
            mark = file_mark(path)
            if self._ends.get(path, (None, ()))[0] != mark:
                try:
                    self._ends[path] = (mark, ends_in(path))
                except LocalError:  # `unusable` tells of it
                    self._ends[path] = (mark, [])
            found += self._ends[path][1] if path in self._ends else []
        return found

    def unusable(self) -> list[UnusableFile]:
        """List the files that were replaced by what can't be used, so that those before them count still."""
        used = {
            socket: profile
            for socket, profile in self._profiles.items()
            if profile.settings is self._by_name.get(socket.tls or "")
        }
        for socket in used:
            self.tls(socket)  # looks whether they are others
        reasons = {socket.tls or "": profile.problem for socket, profile in used.items() if profile.problem}
        found = [
            UnusableFile(subject=f"TLS profile {name}", reason=why) for name, why in (self._bad_lists | reasons).items()
        ]
        return found + [UnusableFile(subject=it.path, reason=it.problem) for it in self.users.values() if it.problem]

    def objection(self, profile: str | None, identity: AuthenticatedIdentity) -> str:
        """Why a peer that was let in by a TLS profile, or without, would not be now; empty when it would.

        As of the last `refresh`.
        """
        if identity.users_file is not None:
            mark = self.users[identity.users_file].mark(identity.user)
            if mark is None:
                return "there is no such user any more"
            if mark != identity.password:
                return "the password of its user was changed"
        revoked = self._revoked.get(profile or "")
        return "its certificate was revoked" if revoked is not None and identity.certificate in revoked[1] else ""

    def _refresh(self, users: Users) -> None:
        problem = users.refresh()
        if problem:
            self._log.warning("users_file_unusable", reason=problem)

    def password(self, connector: ConnectorSettings) -> str | None:
        """Password of a connector, as its file has it now; None when it needs none.

        Raises:
            LocalError: it isn't there.
        """
        if connector.sasl not in PASSWORD_MECHANISMS:
            return None
        user = connector.user or self.router_id
        secret = read_secret(connector.password_file, connector.password_env, f"user {user}")
        if secret is None:
            raise LocalError(f"a connector with {connector.sasl} needs `password_file` or `password_env`")
        return secret


def ticket_of(connector: ConnectorSettings) -> KerberosTicket | None:
    """The ticket by which a connector says who it is; None when its mechanism is another one."""
    if connector.sasl is not Mechanism.GSSAPI:
        return None
    return KerberosTicket(connector.keytab, connector.user, connector.kerberos_service, connector.host)


def _service_key(listener: ListenerSettings) -> tuple[str | None, str, str | None]:
    return (listener.keytab, listener.kerberos_service, listener.kerberos_realm)


def _maker(socket: Socket) -> Callable[[TlsSettings], Any]:
    if isinstance(socket, HttpSettings):
        return functools.partial(server_context, certificates=ClientCertificates.NONE)
    if isinstance(socket, ListenerSettings):
        return functools.partial(server_context, certificates=socket.client_certificates)
    return functools.partial(client_context, verify_host=socket.verify_host)
