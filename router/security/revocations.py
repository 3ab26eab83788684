"""Certificates that are revoked, read from a file of lists: for peers connected already; OpenSSL checks handshakes.

Only what tells one certificate from another is read, its issuer and number. That a list is signed as it should be
OpenSSL sees to when it loads the file; who can write the file could as well empty it.
"""

from __future__ import annotations

from collections.abc import Iterator

from router.security.work_slices import SlicePauses
from router.security.x509_fields import REVOCATION_LIST, RevocationList, certificate_of, reading, revocation_lists_in

CertificateNumber = tuple[bytes, bytes]
"""Issuer of a certificate, as it is encoded, and its number there: no other one has both."""


def number_of(certificate: bytes) -> CertificateNumber:
    """Number of a certificate in DER.

    Raises:
        LocalError: it is none.
    """
    found = certificate_of(certificate)
    return found.issuer, found.number


def read_revoked(path: str) -> frozenset[CertificateNumber]:
    """All that a file of lists in PEM revokes.

    Raises:
        LocalError: it cannot be read.
    """
    lists = revocation_lists_in(path)
    with reading(path, REVOCATION_LIST):
        return frozenset(number for each in lists for number in _revoked_by(each))


def _revoked_by(found: RevocationList) -> Iterator[CertificateNumber]:
    slices = SlicePauses()
    for number in found.numbers():
        slices.pause()
        yield found.issuer, number
