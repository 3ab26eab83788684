"""Checks of TLS, SASL and neighbors: settings of one router that do not go together, or let in who should not be."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

from mesh_config.connector_matching import is_loopback
from mesh_config.findings import Finding, Severity, nearest
from mesh_config.models import (
    PASSWORD_MECHANISMS,
    ClientCertificates,
    ConnectorSettings,
    ListenerSettings,
    Mechanism,
    Role,
    RouterSettings,
    TlsSettings,
)
from mesh_config.user_names import ANONYMOUS_USER
from mesh_config.value_rules import fault_of, field_of
from mesh_config.yaml_text import Place

At = Callable[..., Place]

ANY_ROUTER = "*"
"""Id of a neighbor that stands for any."""


def security_findings(router: RouterSettings, at: At) -> Iterator[Finding]:
    """Findings about one router.

    Args:
        router: complete settings of it.
        at: called with the steps to a setting below the router.
    """
    profiles: dict[str, TlsSettings] = {}
    for index, profile in enumerate(router.tls):
        yield from _profile_findings(profile, profiles, functools.partial(at, "tls", index))
        profiles.setdefault(profile.name, profile)
    yield from neighbor_id_findings(router, at)
    for index, listener in enumerate(router.listeners):
        place = functools.partial(at, "listeners", index)
        yield from _profile_name_findings(listener.tls, profiles, place)
        yield from _listener_tls_findings(listener, profiles, place)
        yield from _listener_sasl_findings(listener, place)
        yield from _openness_findings(listener, place, router)
    for index, connector in enumerate(router.connectors):
        place = functools.partial(at, "connectors", index)
        yield from _profile_name_findings(connector.tls, profiles, place)
        yield from _connector_findings(connector, profiles, place)


def http_security_findings(router: RouterSettings, place: At) -> Iterator[Finding]:
    """Findings about TLS and sign-in of the HTTP listener.

    Args:
        router: complete settings of it.
        place: called with the steps to a setting of `http`.
    """
    http = router.http
    profiles = {profile.name: profile for profile in router.tls}
    yield from _profile_name_findings(http.tls, profiles, place)
    profile = profiles.get(http.tls or "")
    if profile is not None and profile.certificate is None:
        yield place("tls").finding(
            f"TLS profile `{profile.name}` has no certificate to show", expected="`certificate` in it"
        )
    if http.port is not None and http.users_file is not None and http.tls is None and not is_loopback(http.host):
        yield place("users_file").finding(
            "passwords without TLS: whoever listens on the network would read them",
            expected="`tls`, or a `host` of loopback",
        )


def neighbor_findings(router: RouterSettings, at: At) -> Iterator[Finding]:
    """Findings about a router whose mesh the file does not tell: who may join must be written."""
    for index, listener in enumerate(router.listeners):
        if has_known_routers(listener) and not router.neighbors:
            yield at("listeners", index, "sasl").finding(
                f"routers have to say here who they are, and router `{router.id}` has no `neighbors`: none may join",
                expected="`neighbors` with the user of each router that may join, or a file of the whole mesh, unless"
                " none is to",
                severity=Severity.WARNING,  # right where the last neighbor was put out
            )
            return


def neighbor_id_findings(router: RouterSettings, at: At) -> Iterator[Finding]:
    """Findings about ids of neighbors that no router can have."""
    field = field_of(RouterSettings, "id")
    for index, neighbor in enumerate(router.neighbors):
        for place, router_id in enumerate(neighbor.ids):
            fault = fault_of(field, router_id) if router_id != ANY_ROUTER else None
            if fault is not None:
                yield at("neighbors", index, "ids", place).finding(
                    fault.message, expected=f"{fault.expected}; or `{ANY_ROUTER}` for any"
                )


def has_known_routers(listener: ListenerSettings) -> bool:
    """Whether routers join here that have said who they are."""
    return listener.role is Role.INTER_ROUTER and Mechanism.ANONYMOUS not in listener.sasl


def _profile_findings(profile: TlsSettings, before: dict[str, TlsSettings], place: At) -> Iterator[Finding]:
    if profile.name in before:
        yield place("name").finding(f"a second TLS profile `{profile.name}`", expected="a name of its own")
    if profile.key is not None and profile.certificate is None:
        yield place("key").finding("a key without a certificate", expected="`certificate` too")
    if profile.key_password_file is not None and profile.key_password_env is not None:
        message = "both `key_password_file` and `key_password_env`"
        yield place("key_password_env").finding(message, expected="one of them")
    if profile.crl is not None and profile.ca is None:
        yield place("crl").finding("revocation lists without `ca`", expected="the authorities that they are of")
    if profile.max_version is not None and profile.max_version < profile.min_version:
        yield place("max_version").finding(
            f"the newest version, {profile.max_version}, is older than the oldest, {profile.min_version}",
            expected="not older than min_version",
            nearest=profile.min_version.value,
        )


def _profile_name_findings(name: str | None, profiles: dict[str, TlsSettings], place: At) -> Iterator[Finding]:
    if name is not None and name not in profiles:
        known = ", ".join(f"`{each}`" for each in profiles)
        yield place("tls").finding(
            f"no TLS profile `{name}`",
            expected=f"one of {known}" if known else "the name of a profile in `tls` of the router",
            nearest=nearest(name, profiles),
        )


def _listener_tls_findings(
    listener: ListenerSettings, profiles: dict[str, TlsSettings], place: At
) -> Iterator[Finding]:
    profile = profiles.get(listener.tls or "")
    wants_certificates = listener.client_certificates is not ClientCertificates.NONE
    if profile is not None and profile.certificate is None:
        yield place("tls").finding(
            f"TLS profile `{profile.name}` has no certificate to show", expected="`certificate` in it"
        )
    if wants_certificates and listener.tls is None:
        yield place("client_certificates").finding(
            "certificates of clients without TLS", expected="`tls`, the name of a profile"
        )
    elif wants_certificates and profile is not None and profile.ca is None:
        yield place("client_certificates").finding(
            f"TLS profile `{profile.name}` has no authorities to check certificates of clients against",
            expected="`ca` in it",
        )
    if Mechanism.EXTERNAL in listener.sasl and not wants_certificates:
        yield place("sasl").finding(
            "EXTERNAL without certificates of clients",
            expected="`client_certificates`: `requested` or `required`",
        )


def _listener_sasl_findings(listener: ListenerSettings, place: At) -> Iterator[Finding]:
    if not listener.sasl:
        yield place("sasl").finding("no SASL mechanism: no client could connect", expected="one at least")
    if len(set(listener.sasl)) != len(listener.sasl):
        yield place("sasl").finding("a SASL mechanism twice", expected="each once")
    with_passwords = [mechanism.value for mechanism in listener.sasl if mechanism in PASSWORD_MECHANISMS]
    if with_passwords and listener.users_file is None:
        yield place("sasl").finding(
            f"{' and '.join(with_passwords)} without users",
            expected="`users_file`, which `amqp-mesh user add` writes",
        )
    if Mechanism.GSSAPI not in listener.sasl and (listener.keytab or listener.kerberos_realm):
        yield place("keytab" if listener.keytab else "kerberos_realm").finding(
            "Kerberos without its mechanism", expected="GSSAPI among `sasl`", nearest=Mechanism.GSSAPI.value
        )
    if Mechanism.PLAIN in listener.sasl and listener.tls is None and not listener.plain_without_tls:
        yield place("sasl").finding(
            "PLAIN without TLS: whoever listens on the network would read the passwords",
            expected="`tls`, or SCRAM-SHA-256 instead, or `plain_without_tls: true`",
            nearest=Mechanism.SCRAM_SHA_256.value,
        )


def _openness_findings(listener: ListenerSettings, place: At, router: RouterSettings) -> Iterator[Finding]:
    if is_loopback(listener.host) or Mechanism.ANONYMOUS not in listener.sasl:
        return
    address = f"{listener.host}:{listener.port} of router `{router.id}` is open to other machines"
    if listener.role is Role.INTER_ROUTER and not listener.anonymous_routers:
        yield place("sasl").finding(
            f"{address}: whoever reaches it may join as a router, and read and redirect all messages",
            expected="`sasl` without ANONYMOUS, loopback, or `anonymous_routers: true` in a network of one's own",
        )
    elif listener.role is Role.INTER_ROUTER:
        yield place("sasl").finding(
            f"{address}: whoever reaches it may join as a router, as `anonymous_routers` says",
            expected="`sasl` without ANONYMOUS, loopback, or an address of a trusted network",
            severity=Severity.WARNING,
        )
    elif not router.vhosts or _lets_in_anonymous(listener, router):
        may = "do what groups let `anonymous` do" if router.vhosts else "use it"
        yield place("sasl").finding(
            f"{address}: whoever reaches it may {may}",
            expected="`sasl` without ANONYMOUS, loopback, or an address of a trusted network",
            severity=Severity.WARNING,
        )


def _lets_in_anonymous(listener: ListenerSettings, router: RouterSettings) -> bool:
    """Whether clients of a listener find a virtual host with a group for those who did not say who they are."""
    return any(
        ANONYMOUS_USER in group.users
        for vhost in router.vhosts
        if listener.vhost in (None, vhost.name)
        for group in vhost.groups
    )


def _connector_findings(connector: ConnectorSettings, profiles: dict[str, TlsSettings], place: At) -> Iterator[Finding]:
    profile = profiles.get(connector.tls or "")
    if connector.sasl is Mechanism.EXTERNAL and (
        connector.tls is None or (profile is not None and profile.certificate is None)
    ):
        yield place("sasl").finding("EXTERNAL without a certificate of this router", expected="a TLS profile with one")
    if connector.keytab is not None and connector.sasl is not Mechanism.GSSAPI:
        yield place("keytab").finding(
            f"a keytab that {connector.sasl} makes no use of", expected="`sasl: GSSAPI`", nearest=Mechanism.GSSAPI.value
        )
    if connector.sasl in PASSWORD_MECHANISMS:
        if (connector.password_file is None) == (connector.password_env is None):
            both = "both" if connector.password_file is not None else "neither"
            yield place("sasl").finding(
                f"{both} of `password_file` and `password_env` for {connector.sasl}", expected="one"
            )
    elif connector.password_file is not None or connector.password_env is not None:
        yield place("sasl").finding(
            f"a password that {connector.sasl} makes no use of", expected="SCRAM-SHA-256, or no password"
        )
    if connector.sasl is Mechanism.PLAIN and connector.tls is None and not connector.plain_without_tls:
        yield place("sasl").finding(
            "PLAIN without TLS: whoever listens on the network would read the password",
            expected="`tls`, or SCRAM-SHA-256 instead, or `plain_without_tls: true`",
            nearest=Mechanism.SCRAM_SHA_256.value,
        )
    if connector.tls is not None and not connector.verify_host:
        yield place("verify_host").finding(
            f"the host {connector.host} is not looked for in the certificate: whoever has one of the authority can pose"
            " as it",
            expected="`verify_host: true`, with `tls_host` where the certificate has another name",
            severity=Severity.WARNING,
        )
