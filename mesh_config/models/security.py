"""Settings of TLS, of SASL, and of who may be a neighbor."""

from __future__ import annotations

import enum

import attrs

from mesh_config.models.setting_field import NAME_PATTERN, TEXT_PATTERN, setting

ENVIRONMENT_PATTERN = "[A-Za-z_][A-Za-z0-9_]*"
"""Name of a variable of the environment."""
PRINCIPAL_PATTERN = "[^\\s/@\\u0000-\\u001f\\u007f-\\u009f]+"
"""Service or realm of a Kerberos principal."""


class TlsVersion(enum.StrEnum):
    """Version of TLS."""

    V1_2 = "TLSv1.2"
    V1_3 = "TLSv1.3"


class TlsMode(enum.StrEnum):
    """Whether connections of a listener with a TLS profile are encrypted."""

    REQUIRED = "required"
    OPTIONAL = "optional"


class ClientCertificates(enum.StrEnum):
    """Whether whoever connects by TLS shows a certificate."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


class CertificateField(enum.StrEnum):
    """Field of a certificate from which a user's name is made."""

    COMMON_NAME = "CN"
    ORGANIZATION = "O"
    UNIT = "OU"
    LOCALITY = "L"
    STATE = "ST"
    COUNTRY = "C"
    USER_ID = "UID"
    EMAIL = "email"
    DNS = "DNS"
    URI = "URI"
    SHA256 = "SHA-256"


class Mechanism(enum.StrEnum):
    """SASL mechanism."""

    ANONYMOUS = "ANONYMOUS"
    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"
    EXTERNAL = "EXTERNAL"
    GSSAPI = "GSSAPI"


PASSWORD_MECHANISMS = (Mechanism.PLAIN, Mechanism.SCRAM_SHA_256, Mechanism.SCRAM_SHA_512)
"""Mechanisms that need a file of users at a listener, and a user with a password at a connector."""


@attrs.frozen(kw_only=True)
class TlsSettings:
    """A TLS profile: which certificate a router shows, and which authorities it trusts."""

    name: str = setting("Name by which listeners and connectors refer to the profile.", pattern=NAME_PATTERN)
    certificate: str | None = setting(
        "File of the certificate and of those of the authorities between it and `ca`, PEM; a listener needs one.",
        default=None,
        pattern=TEXT_PATTERN,
    )
    key: str | None = setting(
        "File of the private key, PEM; when absent it is in the file of the certificate.",
        default=None,
        pattern=TEXT_PATTERN,
    )
    key_password_file: str | None = setting(
        "File with the password of the private key.", default=None, pattern=TEXT_PATTERN
    )
    key_password_env: str | None = setting(
        "Environment variable with the password of the private key.", default=None, pattern=ENVIRONMENT_PATTERN
    )
    ca: str | None = setting(
        "File of the authorities for checking certificates of others, PEM; when absent a connector uses those of the"
        " system.",
        default=None,
        pattern=TEXT_PATTERN,
    )
    crl: str | None = setting(
        "File of revocation lists, PEM, one for each authority that signs certificates of others; a certificate of an"
        " authority without a list is refused.",
        default=None,
        pattern=TEXT_PATTERN,
    )
    min_version: TlsVersion = setting("Oldest version of TLS that is allowed.", default=TlsVersion.V1_2)
    max_version: TlsVersion | None = setting(
        "Newest version of TLS that is allowed; the newest available when absent.", default=None
    )
    ciphers: str | None = setting(
        "Cipher suites up to TLS 1.2, as OpenSSL writes them; those of TLS 1.3 are all allowed.",
        default=None,
        pattern=TEXT_PATTERN,
    )


@attrs.frozen(kw_only=True)
class NeighborSettings:
    """A router that may join at an inter-router listener with authentication."""

    user: str = setting("User as which the router authenticates.", pattern=TEXT_PATTERN)
    ids: tuple[str, ...] = setting(
        "Router ids that the router may have; its user's name when absent, `*` for any.", default=()
    )
