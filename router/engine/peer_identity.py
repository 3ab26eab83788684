"""The peer of a connection, as found out before its first AMQP frame."""

from __future__ import annotations

import attrs

from mesh_config.user_names import ANONYMOUS_USER


@attrs.frozen(kw_only=True)
class PeerIdentity:
    """Result of TLS and SASL."""

    user: str = ANONYMOUS_USER
    """Authenticated user."""
    mechanism: str | None = None
    """SASL mechanism; None without a SASL layer."""
    users_file: str | None = None
    """File that the user's password was checked by."""
    password: bytes | None = attrs.field(default=None, repr=False)
    """Mark of the keys that the password was checked by; it changes with the password."""
    certificate: tuple[bytes, bytes] | None = attrs.field(default=None, repr=False)
    """Issuer and serial number of the peer's certificate, which was checked; None when it showed none."""
    tls_version: str | None = None
    """Version of TLS; None without TLS."""
    tls_cipher: str | None = None
    """Cipher suite."""
    tls_bits: int = 0
    """Strength of the cipher, bits."""

    @property
    def is_authenticated(self) -> bool:
        """Whether the peer has proved its identity."""
        return self.mechanism not in (None, "ANONYMOUS")
