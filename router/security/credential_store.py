"""TLS profiles and users of one router, read from their files: by them it finds out who is at the other end."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Protocol

from mesh_config.models import (
    PASSWORD_MECHANISMS,
    ConnectorSettings,
    HttpSettings,
    ListenerSettings,
    Mechanism,
    RouterSettings,
    TlsSettings,
)
from router.core.errors import LocalError
from router.security.broken_file_log import BrokenFileLog
from router.security.certificate_expiry import CertificateExpiry, UnusableFile
from router.security.credential_table import (
    CredentialTable,
    EndpointSettings,
    RevokedNumbers,
    profile_key,
    service_key,
)
from router.security.kerberos import KerberosClientExchange, KerberosExchange, gssapi_library
from router.security.password_sources import read_secret
from router.security.revocations import CertificateNumber
from router.security.sasl_frames import SaslError
from router.security.tls import TlsProfile, unused_fault
from router.security.users import Users
from router.security.value_from_files import ValueFromFiles


class RecheckableIdentity(Protocol):
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
        self._log = BrokenFileLog(log)
        http = [settings.http] if settings.http.port is not None else []
        endpoints: list[EndpointSettings] = [*settings.listeners, *settings.connectors, *http]
        nothing = CredentialTable()
        self._table = nothing.changed(endpoints, settings.tls, (), nothing)
        for connector in settings.connectors:
            self.password(connector)
            if connector.sasl is Mechanism.GSSAPI:
                gssapi_library()
        # Defaults that routers of several machines share have profiles that not each of them has files for.
        faults = ((profile.name, unused_fault(profile)) for profile in self._table.unused_profiles())
        self.unused: dict[str, str] = {name: fault for name, fault in faults if fault}
        """Fault of the files of a profile that nothing used when it was read, by name of the profile."""
        for file in self.files():
            file.refresh()

    @property
    def users(self) -> Mapping[str, Users]:
        """Users by the path of their file."""
        return self._table.users

    def take(
        self,
        endpoints: Collection[EndpointSettings],
        profiles: Iterable[TlsSettings],
        users_files: Collection[str],
        read: CredentialStore,
    ) -> Callable[[], None]:
        """Go by other settings, for the connections to come. Files that nothing names any more are forgotten.

        Args:
            endpoints: listeners and connectors that there will be, that for HTTP too.
            profiles: all TLS profiles that there will be.
            users_files: paths of the files by which users that are connected were checked.
            read: has read the files of these settings.
        Returns: what takes the change back.
        Raises:
            LocalError: a file that an endpoint needs cannot be used, and nothing has changed.
        """
        before = self._table, self.unused
        self._table = self._table.changed(endpoints, profiles, users_files, read._table)
        self.unused = read.unused
        self.report()

        def take_back() -> None:
            self._table, self.unused = before

        return take_back

    def forget_unused(self, endpoints: Collection[EndpointSettings], users_files: Collection[str]) -> None:
        """Forget the files that nothing names any more.

        Args:
            endpoints: listeners and connectors that there are, that for HTTP too.
            users_files: paths of the files by which users that are connected were checked.
        """
        self._table = self._table.changed(endpoints, self._table.settings.values(), users_files, self._table)

    def profile(self, endpoint: EndpointSettings) -> TlsProfile:
        """The TLS profile of a listener or connector that has one, for its purpose.

        Raises:
            LocalError: the settings have changed, and there is none any more.
        """
        key = profile_key(endpoint)
        if key is None or key not in self._table.profiles:
            raise LocalError(f"TLS profile {endpoint.tls} was taken away")
        return self._table.profiles[key]

    def users_of(self, listener: ListenerSettings | HttpSettings) -> Users | None:
        """Users of a listener's file, as they were read last; None where it names none.

        Raises:
            LocalError: the settings have changed, and nothing names that file any more.
        """
        if listener.users_file is None:
            return None
        if listener.users_file not in self._table.users:
            raise LocalError("its file of users was taken away")
        return self._table.users[listener.users_file]

    def kerberos(self, listener: ListenerSettings) -> KerberosExchange:
        """An exchange of a listener that offers GSSAPI.

        Raises:
            SaslError: the settings have changed, and nothing names its keytab any more.
        """
        service = self._table.services.get(service_key(listener))
        if service is None:
            raise SaslError("its keytab was taken away")
        return KerberosExchange(service)

    def files(self) -> list[ValueFromFiles[Any]]:
        """All that was made of files, and is made anew when they are others."""
        return self._table.files()

    def refresh(self) -> None:
        """Read again all files that have changed. Blocks until they are read."""
        for each in self.files():
            self.tell(each, each.refresh())

    def report(self) -> None:
        """Tell the log of all files that can't be used, and of own certificates that have ended."""
        self._log.write_all(self._table, self.unused)

    def tell(self, content: ValueFromFiles[Any], problem: str) -> None:
        """Tell the log what is wrong with files that were read again: they can't be used, or have ended."""
        self._log.write(self._table, content, problem)

    def certificates(self) -> list[CertificateExpiry]:
        """List the certificates that this router shows, the authorities that it goes by, and their revocation lists."""
        return [certificate for each in self._table.ends.values() for certificate in each.content]

    def unusable(self) -> list[UnusableFile]:
        """List the files that were replaced by what can't be used, so that those before them count still."""
        table = self._table
        contents: list[ValueFromFiles[Any]] = [*table.revoked.values(), *table.profiles.values()]
        reasons = {name: each.problem for each in contents if each.problem for name in table.profile_names(each)}
        found = [UnusableFile(subject=f"TLS profile {name}", reason=why) for name, why in reasons.items()]
        users = [UnusableFile(subject=it.path, reason=it.file.problem) for it in table.users.values()]
        return found + [each for each in users if each.reason]

    def judged_by(self) -> list[object]:
        """List the contents by which `objection` judges: while they are the same objects, its answers are too."""
        return [*(each.file.content for each in self._table.users.values()), *self._table.revoked_numbers()]

    def objection(self, identity: RecheckableIdentity) -> str:
        """Why a peer that was let in would not be now; empty when it would. As of the last `refresh`."""
        return objection(identity, self._table.users, self._table.revoked_numbers())

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


def objection(identity: RecheckableIdentity, users: Mapping[str, Users], revoked: Iterable[RevokedNumbers]) -> str:
    """Why a peer that was let in would not be now; empty when it would.

    Args:
        identity: of the peer.
        users: by the path of their file.
        revoked: certificates that each file of revocation lists revokes; of whatever profile, since no two certificates
            have one number.
    """
    if identity.users_file is not None:
        if identity.users_file not in users:
            return "its file of users was taken away"
        mark = users[identity.users_file].mark(identity.user)
        if mark is None:
            return "there is no such user any more"
        if mark != identity.password:
            return "the password of its user was changed"
    return "its certificate was revoked" if any(identity.certificate in each for each in revoked) else ""


def ticket_of(connector: ConnectorSettings) -> KerberosClientExchange | None:
    """The ticket by which a connector authenticates; None when its mechanism is another one."""
    if connector.sasl is not Mechanism.GSSAPI:
        return None
    return KerberosClientExchange(connector.keytab, connector.user, connector.kerberos_service, connector.host)
