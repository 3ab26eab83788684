"""TLS profiles and users of one router, read from their files: by them it finds out who is at the other end."""

from __future__ import annotations

import functools
import time
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
from router.security.kerberos import KerberosClientExchange, KerberosExchange, KerberosService, gssapi_library
from router.security.password_sources import read_secret
from router.security.revocations import CertificateNumber, read_revoked
from router.security.tls import TlsProfile, client_context, server_context, unused_fault
from router.security.users import Users
from router.security.value_from_files import ValueFromFiles

Socket = ListenerSettings | ConnectorSettings | HttpSettings


class AuthenticatedIdentity(Protocol):
    """Identity of a peer that was let in, with the credentials that it was checked by."""

    @property
    def user(self) -> str:
        """User that the peer has authenticated as."""

    @property
    def users_file(self) -> str | None:
        """File that its password was checked by."""

    @property
    def password(self) -> bytes | None:
        """Mark of the keys that it was checked by."""

    @property
    def certificate(self) -> CertificateNumber | None:
        """Issuer and number of the peer's certificate; None when it showed none."""


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
        """Users by the path of their file."""
        self._services: dict[tuple[str | None, str, str | None], KerberosService] = {}
        self._revoked: dict[str, ValueFromFiles[frozenset[CertificateNumber]]] = {}
        """Certificates that the revocation lists of a profile revoke, by name of the profile."""
        self._ends: dict[str, ValueFromFiles[list[CertificateExpiry]]] = {}
        """Certificates in a file, with when they expire, by path of the file."""
        self._told: dict[str, tuple[object, ...]] = {}
        """Marks of a profile's files at the time the log said that they can't be used, by name of the profile."""
        self._by_name = {profile.name: profile for profile in settings.tls}
        for listener in settings.listeners:
            self.prepare(listener)
        for connector in settings.connectors:
            self.prepare(connector)
        if settings.http.port is not None:
            self.prepare(settings.http)
        # Defaults that routers of several machines share have profiles that not each of them has files for.
        unused = sorted(self._by_name.keys() - {socket.tls for socket in self._profiles})
        faults = ((name, unused_fault(self._by_name[name])) for name in unused)
        self.unused: dict[str, str] = {name: fault for name, fault in faults if fault}
        """Fault of the files of a profile that nothing used when it was read, by name of the profile."""
        for file in self.files():
            file.refresh()

    def take(
        self,
        profiles: Sequence[TlsSettings],
        removed: Sequence[str],
        held: Sequence[Socket],
        come: Sequence[Socket],
        read: CredentialStore,
    ) -> Callable[[], None]:
        """Know other TLS profiles and sockets, for the connections to come.

        Args:
            profiles: those that are new, or others than before.
            removed: names of those that nothing uses any more.
            held: listeners and connectors that stay.
            come: those that are new.
            read: has read their files already.
        Returns: what takes the change back.
        Raises:
            LocalError: a file that one of the sockets needs cannot be used, and nothing has changed.
        """
        changed = {profile.name: profile for profile in profiles}
        made = {
            socket: self._read_profile(socket, changed[socket.tls], read)
            for socket in held
            if socket.tls in changed and socket in self._profiles
        }
        before = (self._by_name, self._profiles)
        self._by_name = {name: it for name, it in {**self._by_name, **changed}.items() if name not in removed}
        self._profiles = {**self._profiles, **made}
        self._ends.update(read._ends)
        self.unused = read.unused
        for name in (*changed, *removed):
            self._revoked.pop(name, None)  # they are read again, where there are such lists

        def take_back() -> None:
            self._by_name, self._profiles = before

        try:
            for socket in come:
                self.prepare(socket, read)
        except LocalError:
            take_back()
            raise
        self.report()
        return take_back

    def _read_profile(self, socket: Socket, settings: TlsSettings, read: CredentialStore | None) -> TlsProfile:
        found = read._profiles.get(socket) if read is not None else None
        return found if found is not None else TlsProfile(settings, _maker(socket))

    def prepare(self, socket: Socket, read: CredentialStore | None = None) -> None:
        """Read the files of a listener, of the one for HTTP, or of a connector, before its first connection.

        Args:
            socket: settings of it.
            read: has read files already, which are not read again; None: all are read here.
        Raises:
            LocalError: one of them cannot be used; says which and why.
        """
        if socket.tls is not None and socket not in self._profiles:
            if socket.tls not in self._by_name:
                raise LocalError(f"no TLS profile {socket.tls}")
            self._profiles[socket] = self._read_profile(socket, self._by_name[socket.tls], read)
        if isinstance(socket, ConnectorSettings):
            if read is None:
                self.password(socket)
            if socket.sasl is Mechanism.GSSAPI:
                gssapi_library()
            return
        if socket.users_file is not None and socket.users_file not in self.users:
            found = read.users.get(socket.users_file) if read is not None else None
            self.users[socket.users_file] = found if found is not None else Users(socket.users_file)
        if isinstance(socket, HttpSettings):
            return
        if Mechanism.GSSAPI in socket.sasl and (key := _service_key(socket)) not in self._services:
            self._services[key] = KerberosService(*key)

    def profile(self, socket: Socket) -> TlsProfile:
        """The TLS profile of a listener or connector that has one, for its purpose."""
        return self._profiles[socket]

    def users_of(self, listener: ListenerSettings | HttpSettings) -> Users | None:
        """Users of a listener's file, as they were read last."""
        return self.users[listener.users_file] if listener.users_file is not None else None

    def kerberos(self, listener: ListenerSettings) -> KerberosExchange:
        """An exchange of a listener that offers GSSAPI."""
        return KerberosExchange(self._services[_service_key(listener)])

    def files(self) -> list[ValueFromFiles[Any]]:
        """All that was made of files, and is made anew when they are others."""
        lists = {name: profile.crl for name, profile in self._by_name.items() if profile.crl is not None}
        for name, path in lists.items():
            if name not in self._revoked:
                self._revoked[name] = ValueFromFiles([path], functools.partial(read_revoked, path), frozenset())
        for path in self._certificate_files():
            if path not in self._ends:
                self._ends[path] = ValueFromFiles([path], functools.partial(ends_in, path), [])
        revoked = [self._revoked[name] for name in lists]
        ends = [self._ends[path] for path in self._certificate_files()]
        return [*(users.file for users in self.users.values()), *self._used().values(), *revoked, *ends]

    def refresh(self) -> None:
        """Read again all files that have changed. Blocks until they are read."""
        for each in self.files():
            self.tell(each, each.refresh())

    def report(self) -> None:
        """Tell the log of all files that can't be used, and of own certificates that have ended."""
        self._told.clear()
        for each in self.files():
            self.tell(each, each.problem)
        for name, fault in self.unused.items():
            self._log.warning("tls_files_unusable", profile=name, reason=fault)

    def tell(self, content: ValueFromFiles[Any], problem: str) -> None:
        """Tell the log what is wrong with files that were read again: they can't be used, or have ended."""
        if not problem:
            if isinstance(content, TlsProfile) and self._told.get(content.settings.name) != content.seen:
                self._told.pop(content.settings.name, None)  # they can be used again
            if any(content is each for each in self._ends.values()):
                self._warn_of_ended(content.content)
        elif any(content is users.file for users in self.users.values()):
            self._log.warning("users_file_unusable", reason=problem)
        elif (profile := self._profile_of(content)) is not None and not self._is_told(profile, content):
            self._told[profile] = content.seen
            self._log.warning("tls_files_unusable", profile=profile, reason=problem)

    def _is_told(self, profile: str, content: ValueFromFiles[Any]) -> bool:
        """Whether the log has these files already: each socket of a profile reads them."""
        told = self._told.get(profile, ())
        if isinstance(content, TlsProfile):
            return content.seen == told
        return any(mark in told for mark in content.seen)  # its revocation lists, which are read on their own as well

    def _warn_of_ended(self, certificates: list[CertificateExpiry]) -> None:
        for each in certificates:
            if each.ends <= time.time():
                ended = time.strftime("%FT%TZ", time.gmtime(each.ends))
                self._log.warning("certificate_expired", file=each.file, subject=each.subject, ended=ended)

    def certificates(self) -> list[CertificateExpiry]:
        """List the certificates that this router shows, those of their authorities in the same files included."""
        return [each for path in self._certificate_files() if path in self._ends for each in self._ends[path].content]

    def unusable(self) -> list[UnusableFile]:
        """List the files that were replaced by what can't be used, so that those before them count still."""
        contents: list[ValueFromFiles[Any]] = [*self._revoked.values(), *self._used().values()]
        reasons = {self._profile_of(each): each.problem for each in contents if each.problem}
        found = [UnusableFile(subject=f"TLS profile {name}", reason=why) for name, why in reasons.items()]
        users = [UnusableFile(subject=it.path, reason=it.file.problem) for it in self.users.values() if it.file.problem]
        return found + users

    def _certificate_files(self) -> list[str]:
        return list(dict.fromkeys(each.certificate for each in self._by_name.values() if each.certificate))

    def _used(self) -> dict[Socket, TlsProfile]:
        """Profiles by socket, but for those of sockets that are gone."""
        return {
            socket: profile
            for socket, profile in self._profiles.items()
            if profile.settings == self._by_name.get(socket.tls or "")
        }

    def _profile_of(self, content: ValueFromFiles[Any]) -> str | None:
        """Name of the TLS profile whose files these are; None for others."""
        if isinstance(content, TlsProfile):
            return content.settings.name
        return next((name for name, each in self._revoked.items() if each is content), None)

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
        return "its certificate was revoked" if revoked is not None and identity.certificate in revoked.content else ""

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


def ticket_of(connector: ConnectorSettings) -> KerberosClientExchange | None:
    """The ticket by which a connector authenticates; None when its mechanism is another one."""
    if connector.sasl is not Mechanism.GSSAPI:
        return None
    return KerberosClientExchange(connector.keytab, connector.user, connector.kerberos_service, connector.host)


def _service_key(listener: ListenerSettings) -> tuple[str | None, str, str | None]:
    return (listener.keytab, listener.kerberos_service, listener.kerberos_realm)


def _maker(socket: Socket) -> Callable[[TlsSettings], Any]:
    if isinstance(socket, HttpSettings):
        return functools.partial(server_context, certificates=ClientCertificates.NONE)
    if isinstance(socket, ListenerSettings):
        return functools.partial(server_context, certificates=socket.client_certificates)
    return functools.partial(client_context, verify_host=socket.verify_host)
