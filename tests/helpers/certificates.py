"""Certificates for tests, made anew each time: an authority, and whatever it may be asked to sign."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

DAY = dt.timedelta(days=1)


class Certificates:
    """Files of an authority and of what it has signed, all in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._ca = trustme.CA()
        self.ca = self._path("ca")
        self._ca.cert_pem.write_to_path(self.ca)

    def _path(self, name: str) -> str:
        return str(self._folder / f"{name}.pem")

    def issue(self, name: str, *hosts: str, unit: str = "") -> str:
        """Certificate and key, in one file, of common name *name*, for *hosts*, loopback when there are none."""
        made = self._ca.issue_cert(
            *(hosts or ("localhost", "127.0.0.1")), common_name=name, organization_unit_name=unit or None
        )
        path = self._path(name)
        made.private_key_and_cert_chain_pem.write_to_path(path)
        return path

    def expired(self, name: str) -> str:
        """One that is out of date."""
        made = self._ca.issue_cert(
            "localhost",
            "127.0.0.1",
            common_name=name,
            not_before=dt.datetime(2001, 1, 1, tzinfo=dt.UTC),
            not_after=dt.datetime(2001, 1, 2, tzinfo=dt.UTC),
        )
        path = self._path(name)
        made.private_key_and_cert_chain_pem.write_to_path(path)
        return path

    def self_signed(self, name: str) -> str:
        """One that nobody else has signed."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        now = dt.datetime.now(dt.UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - DAY)
            .not_valid_after(now + DAY)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
            .sign(key, hashes.SHA256())
        )
        path = self._path(name)
        Path(path).write_bytes(_pem(key, None) + made.public_bytes(serialization.Encoding.PEM))
        return path

    def with_password(self, name: str, password: str) -> str:
        """One whose key is encrypted."""
        made = self._ca.issue_cert("localhost", "127.0.0.1", common_name=name)
        key = serialization.load_pem_private_key(made.private_key_pem.bytes(), None)
        path = self._path(name)
        chain = b"".join(blob.bytes() for blob in made.cert_chain_pems)
        Path(path).write_bytes(_pem(key, password) + chain)
        return path

    def revoke(self, *paths: str) -> str:
        """A revocation list with these certificates of the authority."""
        now = dt.datetime.now(dt.UTC)
        authority = x509.load_pem_x509_certificate(self._ca.cert_pem.bytes())
        key = serialization.load_pem_private_key(self._ca.private_key_pem.bytes(), None)
        lists = x509.CertificateRevocationListBuilder().issuer_name(authority.subject)
        lists = lists.last_update(now - DAY).next_update(now + DAY)
        for path in paths:
            revoked = x509.load_pem_x509_certificate(Path(path).read_bytes())
            entry = x509.RevokedCertificateBuilder().serial_number(revoked.serial_number).revocation_date(now - DAY)
            lists = lists.add_revoked_certificate(entry.build())
        path = self._path("crl")
        signed = lists.sign(key, hashes.SHA256())  # type: ignore[arg-type]
        Path(path).write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        return path


def _pem(key: object, password: str | None) -> bytes:
    hidden = serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
    return key.private_bytes(  # type: ignore[attr-defined, no-any-return]
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hidden
    )
