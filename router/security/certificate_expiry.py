"""The time when a certificate of a file ends, for warnings before that.

Nothing is checked here: OpenSSL does that, when it loads the file.

Source: RFC 5280, 4.1.
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
from router.security.bounded_file import read_bounded
from router.security.revocations import VERSION, der_first, der_items

UTC_TIME: Final = 0x17
GENERALIZED_TIME: Final = 0x18
COMMON_NAME: Final = b"\x55\x04\x03"
"""Object identifier 2.5.4.3."""
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----(.*?)-----END CERTIFICATE-----", re.DOTALL)


@attrs.frozen(kw_only=True)
class CertificateExpiry:
    """A certificate in use."""

    file: str
    subject: str
    """Common name of the certificate; empty where it has none."""
    ends: float
    """Seconds since 1970."""


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
