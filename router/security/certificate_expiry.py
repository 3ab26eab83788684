"""The time when a certificate or a revocation list of a file ends, for warnings before that.

Nothing is checked here: OpenSSL does that, when it loads the file.

Source: RFC 5280, 4.1 and 5.1.
"""

from __future__ import annotations

import base64
import binascii
import calendar
import re
import time
from collections.abc import Iterator
from typing import Final

import attrs

from router.core.errors import LocalError
from router.core.terminal_escaping import escaped
from router.security.bounded_file import read_bounded
from router.security.revocations import INTEGER, LIST, VERSION, der_first, der_items

UTC_TIME: Final = 0x17
GENERALIZED_TIME: Final = 0x18
COMMON_NAME: Final = b"\x55\x04\x03"
"""Object identifier 2.5.4.3."""
CERTIFICATE_DAYS: Final = 30
"""Days before its end from which on a certificate is told of."""
LIST_PART: Final = 0.1
"""Part of its validity before the end of a revocation list from which on it is told of: many are made anew each day."""
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)


@attrs.frozen(kw_only=True)
class CertificateExpiry:
    """A certificate or a revocation list in use."""

    file: str
    subject: str
    """Common name of the certificate, or of the authority whose list it is; empty where it has none."""
    ends: float
    """Seconds since 1970."""
    is_list: bool = False
    warned_s: float = CERTIFICATE_DAYS * 86400.0
    """Time before the end from which on it is told of, seconds."""

    @property
    def words(self) -> str:
        """Words for it: kind, owner and file."""
        kind = "the revocation list" if self.is_list else "the certificate"
        return f"{kind} of {escaped(self.subject) or 'no name'} in {self.file}"


@attrs.frozen(kw_only=True)
class UnusableFile:
    """A file of keys, certificates or users that was replaced by what can't be used."""

    subject: str
    """File, or TLS profile that names it."""
    reason: str
    """Sentence that names the file."""


def ends_in(path: str) -> list[CertificateExpiry]:
    """The certificates of a file in PEM, in its order.

    Raises:
        LocalError: it cannot be read.
    """
    raw = read_bounded(path)
    try:
        return [_end(path, base64.b64decode(match[1])) for match in _CERTIFICATE.finditer(raw)]
    except (binascii.Error, ValueError, LocalError):
        raise LocalError(f"{path}: no certificate that can be read") from None


def authorities_end_in(path: str) -> list[CertificateExpiry]:
    """The certificate of a file of authorities that ends last: after it all are refused. Empty where it has none.

    Others that end are no warning: files of systems have a hundred, of which some always do.

    Raises:
        LocalError: it cannot be read.
    """
    found = ends_in(path)
    return [max(found, key=lambda each: each.ends)] if found else []


def lists_end_in(path: str) -> list[CertificateExpiry]:
    """The revocation lists of a file in PEM that end: after that OpenSSL refuses all certificates of the authority.

    Raises:
        LocalError: it cannot be read.
    """
    raw = read_bounded(path)
    try:
        found = [_list_end(path, base64.b64decode(match[1])) for match in LIST.finditer(raw)]
    except (binascii.Error, ValueError, LocalError):
        raise LocalError(f"{path}: no revocation list that can be read") from None
    return [each for each in found if each is not None]


def _list_end(path: str, data: bytes) -> CertificateExpiry | None:
    # After an optional version: algorithm, issuer, time, perhaps the time when it ends.
    fields = [field for field in der_items(der_first(der_first(data))) if field[0] != INTEGER][:4]
    if len(fields) < 4 or fields[3][0] not in (UTC_TIME, GENERALIZED_TIME):
        return None
    begins, ends = _seconds(*fields[2]), _seconds(*fields[3])
    subject = next(_common_names(fields[1][1]), "")
    return CertificateExpiry(file=path, subject=subject, ends=ends, is_list=True, warned_s=LIST_PART * (ends - begins))


def _end(path: str, data: bytes) -> CertificateExpiry:
    # Number, algorithm, issuer, validity, subject: after an optional version.
    fields = [field for field in der_items(der_first(der_first(data))) if field[0] != VERSION]
    if len(fields) < 5:
        raise LocalError("no certificate")
    times = list(der_items(fields[3][1]))
    if len(times) != 2:
        raise LocalError("no certificate")
    return CertificateExpiry(file=path, subject=next(_common_names(fields[4][1]), ""), ends=_seconds(*times[1]))


def _seconds(tag: int, text: bytes) -> float:
    """Seconds since 1970 of a time in DER, which is UTC."""
    if tag not in (UTC_TIME, GENERALIZED_TIME):
        raise LocalError("no time")
    digits = text.decode("ascii").removesuffix("Z")
    if tag == UTC_TIME:
        digits = ("20" if int(digits[:2]) < 50 else "19") + digits
    return calendar.timegm(time.strptime(digits, "%Y%m%d%H%M%S"))


def _common_names(subject: bytes) -> Iterator[str]:
    for _, parts in der_items(subject):
        for _, part in der_items(parts):
            values = list(der_items(part))
            if len(values) == 2 and values[0][1] == COMMON_NAME:
                yield values[1][1].decode("utf-8", "replace")
