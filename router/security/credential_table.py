"""Table of what was made of the files that the endpoints of a router name: TLS profiles, users, keytabs, lists."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Any, TypeGuard

import attrs

from mesh_config.models import (
    ClientCertificates,
    ConnectorSettings,
    HttpSettings,
    ListenerSettings,
    Mechanism,
    TlsSettings,
)
from router.core.errors import LocalError
from router.security.certificate_expiry import CertificateExpiry, authorities_end_in, ends_in, lists_end_in
from router.security.kerberos import KerberosService
from router.security.revocations import CertificateNumber, read_revoked
from router.security.tls import TlsProfile, client_context, server_context
from router.security.users import Users
from router.security.value_from_files import ValueFromFiles

EndpointSettings = ListenerSettings | ConnectorSettings | HttpSettings
ProfileKey = tuple[str, ClientCertificates | bool]
"""Name of a TLS profile, and its purpose: what a listener asks of clients, or whether a connector checks the host."""
ServiceKey = tuple[str | None, str, str | None]
"""Keytab, service and realm of Kerberos."""
RevokedNumbers = frozenset[CertificateNumber]


@attrs.frozen(kw_only=True, eq=False)
class CredentialTable:
    """Contents of files. A change of the settings makes another table, which shares the contents that stay."""

    settings: Mapping[str, TlsSettings] = attrs.field(factory=dict)
    """TLS profiles by name, also those that no endpoint names."""
    profiles: Mapping[ProfileKey, TlsProfile] = attrs.field(factory=dict)
    users: Mapping[str, Users] = attrs.field(factory=dict)
    """Users by the path of their file."""
    services: Mapping[ServiceKey, KerberosService] = attrs.field(factory=dict)
    revoked: Mapping[str, ValueFromFiles[RevokedNumbers]] = attrs.field(factory=dict)
    """Certificates that a file of revocation lists revokes, by path of the file."""
    ends: Mapping[str, ValueFromFiles[list[CertificateExpiry]]] = attrs.field(factory=dict)
    """Certificates and revocation lists in a file, with when they end, by path of the file."""

    def changed(
        self,
        endpoints: Collection[EndpointSettings],
        profiles: Iterable[TlsSettings],
        users_files: Collection[str],
        preloaded: CredentialTable,
    ) -> CredentialTable:
        """Make the table of other settings.

        Args:
            endpoints: listeners and connectors, that for HTTP too.
            profiles: all TLS profiles.
            users_files: paths of files of users to keep although no endpoint names them.
            preloaded: has read files already, which are not read again; the rest is read here.
        Raises:
            LocalError: a file cannot be used; says which and why.
        """
        settings = {each.name: each for each in profiles}
        crls = {each.crl for each in settings.values() if each.crl is not None}
        ending = {each.ca: authorities_end_in for each in settings.values() if each.ca is not None}
        ending |= dict.fromkeys(crls, lists_end_in)
        ending |= {each.certificate: ends_in for each in settings.values() if each.certificate is not None}
        named = {each.users_file for each in _servers(endpoints) if each.users_file is not None}
        kept = {path for path in users_files if path in self.users} - named
        services = {service_key(each) for each in endpoints if has_keytab(each)}
        known_users = {**preloaded.users, **self.users}
        known_services = {**preloaded.services, **self.services}
        known_revoked = {**preloaded.revoked, **self.revoked}
        known_ends = {**preloaded.ends, **self.ends}
        return CredentialTable(
            settings=settings,
            profiles={
                key: self._profile(key, each, settings, preloaded)
                for each in endpoints
                if (key := profile_key(each)) is not None
            },
            users={path: known_users.get(path) or Users(path) for path in sorted(named | kept)},
            services={key: known_services.get(key) or KerberosService(*key) for key in services},
            revoked={
                path: known_revoked.get(path) or ValueFromFiles([path], partial(read_revoked, path), frozenset())
                for path in sorted(crls)
            },
            ends={
                path: known_ends.get(path) or ValueFromFiles([path], partial(ending[path], path), [])
                for path in sorted(ending)
            },
        )

    def _profile(
        self,
        key: ProfileKey,
        endpoint: EndpointSettings,
        settings: Mapping[str, TlsSettings],
        preloaded: CredentialTable,
    ) -> TlsProfile:
        name = key[0]
        if name not in settings:
            raise LocalError(f"no TLS profile {name}")
        for known in (self.profiles.get(key), preloaded.profiles.get(key)):
            if known is not None and known.settings == settings[name]:
                return known
        if isinstance(endpoint, ConnectorSettings):
            return TlsProfile(settings[name], partial(client_context, verify_host=endpoint.verify_host))
        return TlsProfile(settings[name], partial(server_context, certificates=_client_certificates(endpoint)))

    def files(self) -> list[ValueFromFiles[Any]]:
        """List all contents, each of which is made anew when its files are others."""
        users = [each.file for each in self.users.values()]
        return [*users, *self.profiles.values(), *self.revoked.values(), *self.ends.values()]

    def revoked_numbers(self) -> list[RevokedNumbers]:
        """List what each file of revocation lists revokes, as it was read last."""
        return [each.content for each in self.revoked.values()]

    def unused_profiles(self) -> list[TlsSettings]:
        """List the TLS profiles that no endpoint names."""
        used = {name for name, _ in self.profiles}
        return [self.settings[name] for name in sorted(self.settings.keys() - used)]

    def profile_names(self, content: ValueFromFiles[Any]) -> list[str]:
        """Names of the TLS profiles whose files these are; of files of users, and those of another table, none."""
        if isinstance(content, TlsProfile):
            return [content.settings.name] if content in self.profiles.values() else []
        lists = [path for path, each in self.revoked.items() if each is content]
        return [name for name, each in self.settings.items() if each.crl in lists]


def _servers(endpoints: Iterable[EndpointSettings]) -> list[ListenerSettings | HttpSettings]:
    return [each for each in endpoints if not isinstance(each, ConnectorSettings)]


def profile_key(endpoint: EndpointSettings) -> ProfileKey | None:
    """Profile of an endpoint and its purpose; None without TLS."""
    if endpoint.tls is None:
        return None
    purpose = endpoint.verify_host if isinstance(endpoint, ConnectorSettings) else _client_certificates(endpoint)
    return endpoint.tls, purpose


def _client_certificates(endpoint: ListenerSettings | HttpSettings) -> ClientCertificates:
    return endpoint.client_certificates if isinstance(endpoint, ListenerSettings) else ClientCertificates.NONE


def has_keytab(endpoint: EndpointSettings) -> TypeGuard[ListenerSettings]:
    """Whether it is a listener that offers GSSAPI."""
    return isinstance(endpoint, ListenerSettings) and Mechanism.GSSAPI in endpoint.sasl


def service_key(listener: ListenerSettings) -> ServiceKey:
    """Keys and service of a listener that offers GSSAPI."""
    return listener.keytab, listener.kerberos_service, listener.kerberos_realm
