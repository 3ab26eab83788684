"""Fields of certificates and of revocation lists, read from DER without OpenSSL: numbers, names and times.

Nothing is verified here: OpenSSL does that when it loads a file, and in handshakes.

Source: RFC 5280, 4.1 and 5.1; X.690, 8.1.
"""

from __future__ import annotations

import base64
import binascii
import calendar
import string
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import attrs

from router.core.errors import LocalError
from router.security.bounded_file import read_bounded
from router.security.work_slices import SlicePauses

T = TypeVar("T")
Item = tuple[int, bytes]
"""Tag and content of what is encoded."""
CERTIFICATE: Final = "certificate"
REVOCATION_LIST: Final = "revocation list"
INTEGER: Final = 0x02
SEQUENCE: Final = 0x30
UTC_TIME: Final = 0x17
GENERALIZED_TIME: Final = 0x18
VERSION: Final = 0xA0
"""Tag before a certificate's version."""
COMMON_NAME: Final = b"\x55\x04\x03"
"""Object identifier 2.5.4.3."""
PIECE_BYTES: Final = 64 * 1024
"""Size of the pieces in which PEM is decoded: it may have 64 MiB."""
NOT_BASE64: Final = bytes(set(range(256)) - set(f"{string.ascii_letters}{string.digits}+/=".encode()))


@attrs.frozen(kw_only=True)
class Certificate:
    """Fields of a certificate."""

    number: bytes
    issuer: bytes
    """Name of the authority, as it is encoded: no other certificate has this issuer and this number."""
    subject: bytes
    validity: bytes

    @property
    def ends(self) -> float:
        """Seconds since 1970. Raises: LocalError."""
        times = list(der_items(self.validity))
        if len(times) != 2:
            raise LocalError("no certificate")
        return _seconds(times[1])


@attrs.frozen(kw_only=True)
class RevocationList:
    """Fields of a revocation list."""

    issuer: bytes
    this_update: Item
    next_update: Item | None
    entries: bytes
    """Revoked certificates, as they are encoded: there may be very many."""

    @property
    def validity(self) -> tuple[float, float] | None:
        """Begin and end, seconds since 1970; None without an end. Raises: LocalError."""
        return (_seconds(self.this_update), _seconds(self.next_update)) if self.next_update is not None else None

    def numbers(self) -> Iterator[bytes]:
        """Numbers of the certificates that it revokes. Raises: LocalError."""
        for _, entry in der_items(self.entries):
            yield der_first(entry, INTEGER)


def certificate_of(data: bytes) -> Certificate:
    """Read a certificate in DER.

    Raises:
        LocalError: it is none.
    """
    # After an optional version: number, algorithm, issuer, validity, subject.
    fields = [field for field in der_items(der_first(der_first(data))) if field[0] != VERSION]
    if len(fields) < 5 or fields[0][0] != INTEGER:
        raise LocalError("no certificate")
    return Certificate(number=fields[0][1], issuer=fields[2][1], subject=fields[4][1], validity=fields[3][1])


def revocation_list_of(data: bytes) -> RevocationList:
    """Read a revocation list in DER.

    Raises:
        LocalError: it is none.
    """
    # After an optional version: algorithm, issuer, begin, perhaps the end, perhaps the entries, perhaps extensions.
    fields = [field for field in der_items(der_first(der_first(data))) if field[0] != INTEGER]
    if len(fields) < 3:
        raise LocalError("no revocation list")
    has_end = len(fields) > 3 and fields[3][0] in (UTC_TIME, GENERALIZED_TIME)
    return RevocationList(
        issuer=fields[1][1],
        this_update=fields[2],
        next_update=fields[3] if has_end else None,
        entries=b"".join(content for tag, content in fields[3:] if tag == SEQUENCE),
    )


def certificates_in(path: str) -> list[Certificate]:
    """The certificates of a file in PEM, in its order.

    Raises:
        LocalError: it cannot be read.
    """
    return _read_all(path, "CERTIFICATE", certificate_of, CERTIFICATE)


def revocation_lists_in(path: str) -> list[RevocationList]:
    """The revocation lists of a file in PEM, in its order.

    Raises:
        LocalError: it cannot be read.
    """
    return _read_all(path, "X509 CRL", revocation_list_of, REVOCATION_LIST)


def common_name(name: bytes) -> str:
    """Common name in the name of a subject or issuer; empty where it has none."""
    for _, parts in der_items(name):
        for _, part in der_items(parts):
            values = list(der_items(part))
            if len(values) == 2 and values[0][1] == COMMON_NAME:
                return values[1][1].decode("utf-8", "replace")
    return ""


def der_first(data: bytes, tag: int = SEQUENCE) -> bytes:
    """Content of the first item, which has to be of that kind."""
    for found, content in der_items(data):
        if found == tag:
            return content
        break
    raise LocalError("not what was expected in DER")


def der_items(data: bytes) -> Iterator[Item]:
    """The items that are encoded one after the other."""
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


@contextmanager
def reading(path: str, what: str) -> Iterator[None]:
    """Have an error that comes from the content of a file name the file, and *what* was expected in it."""
    try:
        yield
    except (binascii.Error, LocalError):
        raise LocalError(f"{path}: no {what} that can be read") from None


def _read_all(path: str, kind: str, read: Callable[[bytes], T], what: str) -> list[T]:
    raw = read_bounded(path)
    with reading(path, what):
        return [read(_from_base64(text)) for text in _between(raw, f"{kind}-----".encode())]


def _between(raw: bytes, kind: bytes) -> Iterator[bytes]:
    """Find what stands between the first and the last line of each PEM of a kind."""
    begin, end = b"-----BEGIN " + kind, b"-----END " + kind
    at = 0
    while (start := raw.find(begin, at)) >= 0 and (stop := raw.find(end, start)) >= 0:
        yield raw[start + len(begin) : stop]
        at = stop + len(end)


def _from_base64(text: bytes) -> bytes:
    """Decode it in pieces, each of which holds the interpreter's lock for a moment only."""
    pauses = SlicePauses()
    found = bytearray()
    rest = b""
    for at in range(0, len(text), PIECE_BYTES):
        pauses.pause()
        digits = rest + text[at : at + PIECE_BYTES].translate(None, NOT_BASE64)
        whole = len(digits) - len(digits) % 4
        found += base64.b64decode(digits[:whole])
        rest = digits[whole:]
    return bytes(found) + base64.b64decode(rest)


def _seconds(item: Item) -> float:
    """Seconds since 1970 of a time in DER, which is UTC."""
    tag, text = item
    if tag not in (UTC_TIME, GENERALIZED_TIME):
        raise LocalError("no time")
    try:
        digits = text.decode("ascii").removesuffix("Z")
        if tag == UTC_TIME:
            digits = ("20" if int(digits[:2]) < 50 else "19") + digits
        return calendar.timegm(time.strptime(digits, "%Y%m%d%H%M%S"))
    except ValueError:
        raise LocalError("no time") from None
