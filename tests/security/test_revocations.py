"""Which certificates lists revoke is read without OpenSSL, and as it is written."""

from __future__ import annotations

import base64
import contextlib
import random
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from router.core.errors import LocalError
from router.security.revocations import number_of, read_revoked
from router.security.x509_fields import PIECE_BYTES, _from_base64
from tests.helpers.certificates import Certificates


def der(path: str) -> bytes:
    return x509.load_pem_x509_certificate(Path(path).read_bytes()).public_bytes(Encoding.DER)


def test_a_list_has_those_that_were_revoked_and_no_others(tmp_path: Path) -> None:
    certificates, others = Certificates(tmp_path / "one"), Certificates(tmp_path / "other")
    gone = [certificates.issue(f"gone-{number}") for number in range(3)]
    kept = [certificates.issue("kept"), others.issue("gone-0")]
    lists = tmp_path / "lists"
    lists.write_bytes(Path(certificates.revoke(*gone)).read_bytes() + Path(others.revoke()).read_bytes())
    revoked = read_revoked(str(lists))
    assert revoked == {number_of(der(path)) for path in gone}
    assert not revoked & {number_of(der(path)) for path in kept}


def test_an_authority_that_has_revoked_nothing_has_an_empty_list(tmp_path: Path) -> None:
    assert read_revoked(Certificates(tmp_path).revoke()) == frozenset()


def test_pem_is_decoded_in_pieces_as_it_is_at_once(rng: random.Random) -> None:
    for size in (0, 1, 2, 3, PIECE_BYTES, *(rng.randrange(4 * PIECE_BYTES) for _ in range(5))):
        raw = rng.randbytes(size)
        width = rng.randrange(1, 100)
        digits = base64.b64encode(raw)
        text = b"\r\n".join(digits[at : at + width] for at in range(0, len(digits), width))
        assert _from_base64(b" " + text + b"\n") == raw


def test_what_cannot_be_read_is_told_of_and_nothing_else(tmp_path: Path, rng: random.Random) -> None:
    certificates = Certificates(tmp_path)
    certificate = der(certificates.issue("A"))
    whole = Path(certificates.revoke(certificates.issue("B"))).read_bytes()
    path = tmp_path / "spoilt"
    for _ in range(300):
        spoilt = bytearray(whole)
        spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
        path.write_bytes(spoilt[: rng.randrange(len(spoilt))])
        raw = bytearray(certificate)
        raw[rng.randrange(60)] = rng.randrange(256)
        for read in (lambda: read_revoked(str(path)), lambda raw=raw: number_of(bytes(raw))):
            with contextlib.suppress(LocalError):
                read()
    with pytest.raises(LocalError, match="cannot be read"):
        read_revoked(str(tmp_path / "none"))
