"""TLS profiles: what OpenSSL is told, from files that may be replaced while a router runs; and its errors in words."""

from __future__ import annotations

import functools
import hashlib
import ssl
from collections.abc import Callable, Sequence
from typing import Any, Final

from mesh_config.models import CertificateField, ClientCertificates, TlsSettings, TlsVersion
from router.core.errors import LocalError
from router.security.bounded_file import read_bounded
from router.security.password_sources import read_secret
from router.security.sasl_frames import SaslError
from router.security.value_from_files import ValueFromFiles

MOST_KEY_PASSWORD_BYTES: Final = 1024
"""Maximum size of the password of a private key, bytes: OpenSSL's."""

_VERSIONS: Final = {TlsVersion.V1_2: ssl.TLSVersion.TLSv1_2, TlsVersion.V1_3: ssl.TLSVersion.TLSv1_3}
_VERIFY: Final = {
    ClientCertificates.NONE: ssl.CERT_NONE,
    ClientCertificates.REQUESTED: ssl.CERT_OPTIONAL,
    ClientCertificates.REQUIRED: ssl.CERT_REQUIRED,
}
_SUBJECT: Final = {
    CertificateField.COMMON_NAME: "commonName",
    CertificateField.ORGANIZATION: "organizationName",
    CertificateField.UNIT: "organizationalUnitName",
    CertificateField.LOCALITY: "localityName",
    CertificateField.STATE: "stateOrProvinceName",
    CertificateField.COUNTRY: "countryName",
    CertificateField.USER_ID: "userId",
}
_ALTERNATIVE: Final = {
    CertificateField.EMAIL: "email",
    CertificateField.DNS: "DNS",
    CertificateField.URI: "URI",
}
_CERTIFICATE: Final = b"CERTIFICATE-----"
_LIST: Final = b"X509 CRL-----"
_PRIVATE_KEY: Final = b"PRIVATE KEY-----"
"""Ends of the lines that begin these in PEM, whatever kinds of them there are."""
_ALERTS: Final = {
    "UNKNOWN_CA": "it does not know the authority of our certificate",
    "CERTIFICATE_EXPIRED": "our certificate has expired",
    "CERTIFICATE_REVOKED": "our certificate was revoked",
    "BAD_CERTIFICATE": "our certificate is bad, or of another host than it dialled",
    "CERTIFICATE_UNKNOWN": "it does not take our certificate",
    "UNSUPPORTED_CERTIFICATE": "it does not take a certificate such as ours",
    "CERTIFICATE_REQUIRED": "it requires a certificate, and we showed none",
    "PROTOCOL_VERSION": "it has no version of TLS in common with us",
    "HANDSHAKE_FAILURE": "it has no cipher suite in common with us, or our certificate is of another host",
    "UNRECOGNIZED_NAME": "it does not know the host that was dialled",
}
"""Alerts of the other side in words, by the end of OpenSSL's name for it."""


class TlsProfile(ValueFromFiles[ssl.SSLContext]):
    """Contexts of one profile for one purpose; made anew when a file has changed."""

    def __init__(self, settings: TlsSettings, make: Callable[[TlsSettings], ssl.SSLContext]) -> None:
        """Read its files.

        Args:
            settings: the profile.
            make: makes a context of it.
        Raises:
            LocalError: a file cannot be used; says which and why.
        """
        self.settings = settings
        super().__init__(
            (settings.certificate, settings.key, settings.ca, settings.crl, settings.key_password_file),
            functools.partial(make, settings),
        )


def server_context(settings: TlsSettings, certificates: ClientCertificates) -> ssl.SSLContext:
    """Make a context for peers that connect here.

    Raises:
        LocalError: a file cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    if settings.certificate is None:
        raise LocalError(f"TLS profile {settings.name}: a listener needs a certificate")
    if certificates is not ClientCertificates.NONE and settings.ca is None:
        raise LocalError(f"TLS profile {settings.name}: certificates of clients need a `ca`")
    _load(context, settings)
    context.verify_mode = _VERIFY[certificates]
    context.options |= ssl.OP_CIPHER_SERVER_PREFERENCE
    return context


def client_context(settings: TlsSettings, *, verify_host: bool) -> ssl.SSLContext:
    """A context for connections that this router makes.

    Raises:
        LocalError: a file cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if settings.ca is None:
        context.load_default_certs()
    _load(context, settings)
    context.check_hostname = verify_host
    return context


def unused_fault(settings: TlsSettings) -> str:
    """Read the files of a profile that no listener and no connector uses, as if one did.

    Returns: what is wrong with them; empty when nothing is.
    """
    try:
        _load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), settings)
    except LocalError as error:
        return f"{error} (nothing uses this profile)"
    return ""


def _load(context: ssl.SSLContext, settings: TlsSettings) -> None:
    where = f"TLS profile {settings.name}"
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.minimum_version = _VERSIONS[settings.min_version]
    if settings.max_version is not None:
        context.maximum_version = _VERSIONS[settings.max_version]
    if settings.ciphers is not None:
        try:
            context.set_ciphers(settings.ciphers)
        except ssl.SSLError:
            raise LocalError(f"{where}: no cipher suite that OpenSSL knows: {settings.ciphers}") from None
    if settings.certificate is not None:
        _load_certificate(context, settings, where)
    of_others = (("ca", settings.ca, _CERTIFICATE, "certificate"), ("crl", settings.crl, _LIST, "revocation list"))
    for what, file, ending, content in of_others:
        if file is not None:
            # OpenSSL takes a file of the other kind, and then refuses everybody.
            if ending not in _read(file, f"{where}: `{what}`"):
                raise LocalError(f"{where}: `{what}` {file} cannot be used: no {content} in PEM is in it")
            try:
                context.load_verify_locations(file)
            except (OSError, ssl.SSLError) as error:
                raise LocalError(f"{where}: `{what}` {file} cannot be used: {_file_words(error)}") from None
    if settings.crl is not None:
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _load_certificate(context: ssl.SSLContext, settings: TlsSettings, where: str) -> None:
    assert settings.certificate is not None
    key = settings.key or settings.certificate
    for file in dict.fromkeys((settings.certificate, key)):
        _read(file, f"{where}:")
    secret = read_secret(settings.key_password_file, settings.key_password_env, f"the key of {where}") or ""
    was_asked = False

    def password() -> str:
        nonlocal was_asked
        was_asked = True
        return secret  # without one OpenSSL would ask on the terminal, and wait

    try:
        context.load_cert_chain(settings.certificate, settings.key, password)
    except OSError as error:
        if was_asked:
            words = "its password is wrong" if secret else "it is encrypted, and no password is set"
            raise LocalError(f"{where}: key {key} cannot be used: {words}") from None
        files = " and ".join(dict.fromkeys((settings.certificate, key)))
        words = _missing(settings.certificate, settings.key) or f"{files} cannot be used: {_file_words(error)}"
        raise LocalError(f"{where}: {words}") from None
    except ValueError:  # of what calls `password`
        words = f"its password has more than {MOST_KEY_PASSWORD_BYTES} bytes"
        raise LocalError(f"{where}: key {key} cannot be used: {words}") from None


def _missing(certificate: str, key: str | None) -> str:
    """Find out what is in neither file, of which the errors of OpenSSL say only that it is not PEM. Empty for nothing.

    Raises:
        LocalError: a file can be read no longer.
    """
    if _CERTIFICATE not in read_bounded(certificate):
        return f"{certificate} cannot be used: no certificate in PEM is in it"
    if _PRIVATE_KEY in read_bounded(key or certificate):
        return ""
    if key is None:
        return f"{certificate} has a certificate and no private key: name the file of the key with `key`"
    return f"`key` {key} cannot be used: no private key in PEM is in it"


def _read(file: str, what: str) -> bytes:
    """Read a file before OpenSSL opens it, which would wait for a FIFO without end; *what* it is begins the error."""
    try:
        return read_bounded(file)
    except LocalError as error:
        raise LocalError(f"{what} {error}") from None


def _file_words(error: OSError) -> str:
    reason = getattr(error, "reason", None)
    words = {
        "KEY_VALUES_MISMATCH": "the key is not that of the certificate",
        "NO_START_LINE": "nothing in PEM is in it",
        "PEM_LIB": "what should be in it in PEM is not, or is damaged",
        "EE_KEY_TOO_SMALL": "its key is too short",
        "CA_MD_TOO_WEAK": "its signature is too weak",
    }
    if reason is None and "PEM lib" in str(error):
        reason = "PEM_LIB"
    return words.get(str(reason), str(reason or error.strerror or error).lower().replace("_", " "))


def failure_words(error: ssl.SSLError, other: str) -> str:
    """Why TLS with the *other* side has failed, in words for the log."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS: the certificate of {other} is refused: {error.verify_message}"
    reason = str(error.reason or "")
    if "_ALERT_" in reason:
        name = reason.partition("_ALERT_")[2]
        return f"TLS: {other} refuses: {_ALERTS.get(name, name.lower().replace('_', ' '))}"
    words = {
        "WRONG_VERSION_NUMBER": f"what {other} writes is no TLS",
        "HTTP_REQUEST": f"{other} speaks HTTP",
        "UNSUPPORTED_PROTOCOL": f"{other} has no version of TLS in common with us",
        "NO_SHARED_CIPHER": f"{other} has no cipher suite in common with us",
        "PEER_DID_NOT_RETURN_A_CERTIFICATE": f"{other} shows no certificate",
    }
    return f"TLS: {words.get(reason, reason.lower().replace('_', ' ') or 'it failed')}"


def certificate_user(tls: ssl.SSLObject, fields: Sequence[CertificateField]) -> str:
    """The user that the peer's certificate, which was checked, stands for.

    Raises:
        SaslError: there is none, or a field is missing, or there several times.
    """
    found: Any = tls.getpeercert()
    raw = tls.getpeercert(binary_form=True)
    if not found or raw is None:
        raise SaslError("EXTERNAL without a certificate")
    values = [_value(found, raw, field) for field in fields]
    user = (
        values[0] if len(values) == 1 else ",".join(each.replace("\\", "\\\\").replace(",", "\\,") for each in values)
    )
    if not user.isprintable():
        raise SaslError("a certificate with a name that cannot be printed")
    return user


def _value(found: dict[str, Any], raw: bytes, field: CertificateField) -> str:
    if field is CertificateField.SHA256:
        return hashlib.sha256(raw).hexdigest()
    if field in _SUBJECT:
        pairs = [pair for group in found.get("subject", ()) for pair in group]
        wanted = _SUBJECT[field]
    else:
        pairs = list(found.get("subjectAltName", ()))
        wanted = _ALTERNATIVE[field]
    values = [str(value) for key, value in pairs if key == wanted]
    if len(values) != 1 or not values[0]:
        count = "no" if not values else "more than one"
        raise SaslError(f"a certificate with {count} {field.value}")
    return values[0]
