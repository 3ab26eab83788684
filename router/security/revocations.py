"""Certificates that are revoked, read from a file of lists: for peers connected already; OpenSSL checks handshakes.

Only what tells one certificate from another is read, its issuer and number. That a list is signed as it should be
OpenSSL sees to when it loads the file; who can write the file could as well empty it.

Source: RFC 5280, 4.1 and 5.1; X.690, 8.1.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Final

from router.core.errors import LocalError
from router.security.bounded_file import read_bounded
from router.security.work_slices import SlicePauses

INTEGER: Final = 0x02
SEQUENCE: Final = 0x30
VERSION: Final = 0xA0
"""Tag before a certificate's version."""
CertificateNumber = tuple[bytes, bytes]
"""Issuer of a certificate, as it is encoded, and its number there: no other one has both."""
LIST = re.compile(rb"-----BEGIN X509 CRL-----(.*?)-----END X509 CRL-----", re.DOTALL)


def number_of(certificate: bytes) -> CertificateNumber:
    """Number of a certificate in DER.

    Raises:
        LocalError: it is none.
    """
    fields = [field for field in der_items(der_first(der_first(certificate))) if field[0] != VERSION]
    if len(fields) < 3 or fields[0][0] != INTEGER:
        raise LocalError("no certificate")
    return fields[2][1], fields[0][1]


def read_revoked(path: str) -> frozenset[CertificateNumber]:
    """All that a file of lists in PEM revokes.

    Raises:
        LocalError: it cannot be read.
    """
    raw = read_bounded(path)
    try:
        lists = [base64.b64decode(match[1]) for match in LIST.finditer(raw)]
        return frozenset(number for each in lists for number in _revoked_by(each))
    except (binascii.Error, LocalError):
        raise LocalError(f"{path}: no revocation list that can be read") from None


def _revoked_by(data: bytes) -> Iterator[CertificateNumber]:
    # After an optional version: algorithm, issuer, time, perhaps time, perhaps the entries, perhaps extensions.
    fields = [field for field in der_items(der_first(der_first(data))) if field[0] != INTEGER]
    if len(fields) < 3:
        raise LocalError("no revocation list")
    issuer = fields[1][1]
    slices = SlicePauses()
    for tag, entries in fields[3:]:
        if tag == SEQUENCE:
            for _, entry in der_items(entries):
                slices.pause()
                yield issuer, der_first(entry, INTEGER)


def der_first(data: bytes, tag: int = SEQUENCE) -> bytes:
    """Content of the first item, which has to be of that kind."""
    for found, content in der_items(data):
        if found == tag:
            return content
        break
    raise LocalError("not what was expected in DER")


def der_items(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Tags and contents of the items that are encoded one after the other."""
    at = 0
    while at < len(data):
        head = data[at : at + 2]
        if len(head) < 2:
            raise LocalError("DER that ends early")
        size, at = head[1], at + 2
        if size >= 0x80:
            width = size & 0x7F
            size, at = int.from_bytes(data[at : at + width], "big"), at + width
        if at + size > len(data):
            raise LocalError("DER that ends early")
        yield head[0], data[at : at + size]
        at += size
