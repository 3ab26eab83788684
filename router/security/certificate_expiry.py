"""The time when a certificate or a revocation list of a file ends, for warnings before that.

Nothing is checked here: OpenSSL does that, when it loads the file.
"""

from __future__ import annotations

from typing import Final

import attrs

from router.core.terminal_escaping import escaped
from router.security.x509_fields import (
    CERTIFICATE,
    REVOCATION_LIST,
    certificates_in,
    common_name,
    reading,
    revocation_lists_in,
)

CERTIFICATE_DAYS: Final = 30
"""Days before its end from which on a certificate is told of."""
LIST_PART: Final = 0.1
"""Part of its validity before the end of a revocation list from which on it is told of: many are made anew each day."""


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
    found = certificates_in(path)
    with reading(path, CERTIFICATE):
        return [CertificateExpiry(file=path, subject=common_name(each.subject), ends=each.ends) for each in found]


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
    lists = revocation_lists_in(path)
    found: list[CertificateExpiry] = []
    with reading(path, REVOCATION_LIST):
        for each in lists:
            if (validity := each.validity) is not None:
                begins, ends = validity
                warned_s = LIST_PART * (ends - begins)
                issuer = common_name(each.issuer)
                found.append(CertificateExpiry(file=path, subject=issuer, ends=ends, is_list=True, warned_s=warned_s))
    return found
