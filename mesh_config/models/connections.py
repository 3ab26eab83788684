"""Settings of listeners and connectors."""

from __future__ import annotations

import enum

import attrs

from mesh_config.models.security import (
    ENVIRONMENT_PATTERN,
    PRINCIPAL_PATTERN,
    CertificateField,
    ClientCertificates,
    Mechanism,
    TlsMode,
)
from mesh_config.models.setting_field import (
    HOST_PATTERN,
    ID_PATTERN,
    MIB,
    NAME_PATTERN,
    TEXT_PATTERN,
    TLS_PROFILE,
    setting,
)
from mesh_config.models.vhosts import VHOST_PATTERN


class Role(enum.StrEnum):
    """Role of the peers at the other end of a listener's or connector's connections (names of Qpid Dispatch)."""

    NORMAL = "normal"
    INTER_ROUTER = "inter-router"


@attrs.frozen(kw_only=True)
class ConnectionSettings:
    """Settings that a listener and a connector have in common: the AMQP side of a connection."""

    role: Role = setting(
        "Peers of the connections: clients (`normal`) or other routers (`inter-router`).", default=Role.NORMAL
    )
    cost: int = setting(
        "Cost of the link to the neighbor; the larger of both ends counts.", default=1, low=1, high=65535
    )
    max_frame_bytes: int = setting(
        "Largest frame accepted. Between routers it must be 512 larger than `forwarding.address_bytes` at least (1536"
        " where that has its default), so that a frame can name the longest address.",
        default=32768,
        unit="bytes",
        low=512,
        high=16 * MIB,
        beyond="closed, `amqp:connection:framing-error`",
    )
    max_sessions: int = setting(
        "Maximum number of sessions of one connection (channel-max + 1).",
        default=32768,
        unit="sessions",
        low=1,
        high=32768,
        beyond="closed, `amqp:connection:framing-error`",
    )
    idle_timeout_s: float = setting(
        "Time after which a silent connection is closed; 0: never. A connection to a router is closed "
        "after twice `hello_max_age_s` if that is less or this is 0, but not before 4 s.",
        default=16.0,
        unit="seconds",
        low=0,
        high=86400,
    )
    tls: str | None = setting(
        "Name of a TLS profile of the router; without one nothing is encrypted.",
        default=None,
        pattern=NAME_PATTERN,
        names=TLS_PROFILE,
    )
    allowed_prefixes: tuple[str, ...] = setting(
        "For connections to routers: prefixes of addresses, whole words; all when absent. Subscribers of other"
        " addresses behind this link are hidden, and its messages to other addresses are rejected, except replies.",
        default=(),
    )
    plain_without_tls: bool = setting(
        "Allow PLAIN without encryption: anyone who listens on the network can then read the password.",
        default=False,
    )


@attrs.frozen(kw_only=True)
class ListenerSettings(ConnectionSettings):
    """A socket that waits for connections."""

    name: str | None = setting(
        "Name in logs, metrics and management; host:port when absent. Management puts `listener/` before it.",
        default=None,
        pattern=NAME_PATTERN,
    )
    host: str = setting("Address to bind.", default="127.0.0.1", pattern=HOST_PATTERN)
    port: int = setting("TCP port; 0 lets the system choose.", default=5672, low=0, high=65535)
    handshake_timeout_s: float = setting(
        "Time within which the peer's Open must arrive.",
        default=10.0,
        unit="seconds",
        low=0.1,
        high=3600,
        beyond="closed",
    )
    vhost: str | None = setting(
        "Virtual host of all its clients, whatever host name they write in their Open.",
        default=None,
        pattern=VHOST_PATTERN,
    )
    vhost_prefix: bool = setting(
        "Put the host name of the client's Open before each of its addresses (oslo.messaging with "
        "pseudo_vhost=false). Most other clients write the host there to which they connected. A "
        "treatment may name the address with or without it.",
        default=False,
    )
    max_message_bytes: int = setting(
        "Largest message of a client, announced to it; a link with a larger one is closed. 0: no limit.",
        default=0,
        unit="bytes",
        low=0,
        high=1024 * 1024 * MIB,
        beyond="its link is closed, `amqp:link:message-size-exceeded`",
    )
    max_connections: int = setting(
        "Maximum number of connections at one time.",
        default=10000,
        unit="connections",
        low=1,
        high=1000000,
        beyond="closed at once, `listener_full`",
    )
    max_connections_of_host: int = setting(
        "Maximum number of connections at one time of one remote host. 0: no separate bound.",
        default=0,
        unit="connections",
        low=0,
        high=1000000,
        beyond="closed at once, `host_full`",
    )
    max_handshakes: int = setting(
        "Maximum number of connections at one time whose Open has not come; when there are more, the "
        "oldest of them is closed.",
        default=1000,
        unit="connections",
        low=1,
        high=1000000,
        beyond="the oldest of them is closed",
    )
    tls_mode: TlsMode = setting(
        "For a listener with a TLS profile: whether peers must use TLS, or may also connect without.",
        default=TlsMode.REQUIRED,
    )
    client_certificates: ClientCertificates = setting(
        "Whether a peer that connects with TLS is asked for a certificate, and whether it is refused without one. A"
        " certificate that it shows must be valid for the profile's `ca`.",
        default=ClientCertificates.NONE,
    )
    user_from: tuple[CertificateField, ...] = setting(
        "Fields of a client's certificate that make its user's name with EXTERNAL, joined by `,`. Each "
        "must occur exactly once. `SHA-256` is the fingerprint.",
        default=(CertificateField.COMMON_NAME,),
    )
    sasl: tuple[Mechanism, ...] = setting(
        "SASL mechanisms that are offered, in this order. With ANONYMOUS a client without SASL is accepted too.",
        default=(Mechanism.ANONYMOUS,),
    )
    users_file: str | None = setting(
        "File of users and their salted passwords, for PLAIN and SCRAM; `amqp-mesh user` writes it.",
        default=None,
        pattern=TEXT_PATTERN,
    )
    keytab: str | None = setting(
        "For GSSAPI: file of the keys with which Kerberos tickets are checked; when absent the system's, which is"
        " `KRB5_KTNAME` or /etc/krb5.keytab.",
        default=None,
        pattern=TEXT_PATTERN,
    )
    kerberos_service: str = setting(
        "Service that clients ask tickets for: the service part of the principal; any host with a key in the keytab is"
        " accepted.",
        default="amqp",
        pattern=PRINCIPAL_PATTERN,
    )
    kerberos_realm: str | None = setting(
        "Realm whose users are known without it: `alice` for `alice@EXAMPLE.NET`. When it is absent, and for users of"
        " other realms, the realm is part of the name.",
        default=None,
        pattern=PRINCIPAL_PATTERN,
    )
    anonymous_routers: bool = setting(
        "For a listener for routers that other machines can reach: let routers join without authenticating.",
        default=False,
    )


@attrs.frozen(kw_only=True)
class ConnectorSettings(ConnectionSettings):
    """A connection that this router makes and keeps up."""

    name: str | None = setting(
        "Name in logs and management; host:port when absent. Management puts `connector/` before it.",
        default=None,
        pattern=NAME_PATTERN,
    )
    role: Role = setting(
        "Peer at the other end: another router. With the role `normal` it would carry nothing, and is refused.",
        default=Role.INTER_ROUTER,
    )
    to: str | None = setting(
        "Router of the same file to connect to: host and port are those of its inter-router listener.",
        default=None,
        pattern=ID_PATTERN,
    )
    host: str = setting("Host to connect to.", default="127.0.0.1", pattern=HOST_PATTERN)
    port: int = setting("TCP port to connect to.", default=5672, low=1, high=65535)
    reconnect_initial_s: float = setting(
        "Pause before the first new attempt; doubled each time, with jitter.",
        default=0.05,
        unit="seconds",
        low=0.001,
        high=3600,
    )
    reconnect_max_s: float = setting(
        "Longest pause between attempts.", default=5.0, unit="seconds", low=0.01, high=3600
    )
    verify_host: bool = setting(
        "Refuse a certificate that is not the host's. Without this check anyone with any certificate of the authority"
        " can pose as the other router.",
        default=True,
    )
    tls_host: str | None = setting(
        "Host whose certificate is expected, when it is not `host`.", default=None, pattern=HOST_PATTERN
    )
    sasl: Mechanism = setting("SASL mechanism with which this router authenticates.", default=Mechanism.ANONYMOUS)
    user: str | None = setting(
        "User's name for PLAIN and SCRAM; the router's id when absent. For GSSAPI the principal; the first one in the"
        " keytab when absent.",
        default=None,
        pattern=TEXT_PATTERN,
    )
    password_file: str | None = setting(
        "File with the user's password, without a line end or with one.", default=None, pattern=TEXT_PATTERN
    )
    password_env: str | None = setting(
        "Environment variable with the user's password.", default=None, pattern=ENVIRONMENT_PATTERN
    )
    keytab: str | None = setting(
        "For GSSAPI: file of the keys with which this router gets a Kerberos ticket; when absent what the environment"
        " names: the keys of `KRB5_CLIENT_KTNAME` or the tickets of `KRB5CCNAME`.",
        default=None,
        pattern=TEXT_PATTERN,
    )
    kerberos_service: str = setting(
        "Service at `host` that a ticket is asked for: the service part of the principal.",
        default="amqp",
        pattern=PRINCIPAL_PATTERN,
    )

    @property
    def effective_name(self) -> str:
        """Name for logs, management and metrics."""
        return self.name or f"{self.host}:{self.port}"
