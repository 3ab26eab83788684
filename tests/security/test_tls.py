"""TLS profiles: files that cannot be used, and names from certificates."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner
from structlog import get_logger
from structlog.testing import capture_logs

from mesh_config.loader import read_document
from mesh_config.models import (
    CertificateField,
    ClientCertificates,
    ListenerSettings,
    RouterSettings,
    TlsSettings,
    TlsVersion,
)
from router.cli import main, referenced_files
from router.core.errors import LocalError
from router.engine.tls_channel import TlsChannel
from router.security.credential_store import CredentialStore
from router.security.sasl_frames import SaslError
from router.security.tls import certificate_user, client_context, server_context
from router.security.users import new_keys, read_table, write_users
from tests.helpers.certificates import Certificates

SECRET = "planted-secret"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def profile(certificates: Certificates, certificate: str, **settings: str) -> TlsSettings:
    return TlsSettings(name="t", certificate=certificate, ca=certificates.ca, **settings)  # type: ignore[arg-type]


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> TlsChannel:
    """The server's end after a handshake in memory."""
    ends = (TlsChannel(server, is_server=True), TlsChannel(client, is_server=False, host="localhost"))
    done = [False, False]
    while not all(done):
        for at, end in enumerate(ends):
            done[at] = done[at] or end.shake_hands()
            written = end._outgoing.read()
            if written:
                ends[1 - at].feed(written)
    return ends[0]


def user_of(certificates: Certificates, certificate: str, *fields: CertificateField) -> str:
    server = server_context(profile(certificates, certificates.issue("A")), ClientCertificates.REQUESTED)
    client = client_context(profile(certificates, certificate), verify_host=True)
    return certificate_user(shake_hands(server, client).tls, fields)


def test_a_user_is_made_of_the_fields_that_are_chosen(certificates: Certificates) -> None:
    shown = certificates.issue("al,ice", "one.example", unit="red\\blue")
    assert user_of(certificates, shown, CertificateField.COMMON_NAME) == "al,ice"
    assert user_of(certificates, shown, CertificateField.DNS) == "one.example"
    both = user_of(certificates, shown, CertificateField.COMMON_NAME, CertificateField.UNIT)
    assert both == "al\\,ice,red\\\\blue"
    assert len(user_of(certificates, shown, CertificateField.SHA256)) == 64


@pytest.mark.parametrize(
    ("hosts", "name", "field", "reason"),
    [
        (("a.example", "b.example"), "x", CertificateField.DNS, "more than one DNS"),
        (("a.example",), "x", CertificateField.URI, "no URI"),
        (("a.example",), "x\x07", CertificateField.COMMON_NAME, "cannot be printed"),
    ],
)
def test_a_certificate_that_names_nobody_is_refused(
    hosts: tuple[str, ...], name: str, field: CertificateField, reason: str, certificates: Certificates
) -> None:
    with pytest.raises(SaslError, match=reason):
        user_of(certificates, certificates.issue(name, *hosts), field)


def test_a_key_with_a_password_needs_it(
    certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = profile(certificates, certificates.with_password("locked", SECRET))
    file = tmp_path / "password"
    file.write_text(SECRET, encoding="utf-8")
    monkeypatch.setenv("PLANTED", SECRET)
    for right in ({"key_password_file": str(file)}, {"key_password_env": "PLANTED"}):
        server_context(attrs.evolve(shown, **right), ClientCertificates.NONE)
    file.write_text(f"not {SECRET}", encoding="utf-8")
    for wrong, reason in (
        ({}, "it is encrypted, and no password is set"),
        ({"key_password_file": str(file)}, "its password is wrong"),
        ({"key_password_env": "ABSENT"}, "the variable of the environment"),
        ({"key_password_file": str(tmp_path / "absent")}, "cannot be read"),
    ):
        with pytest.raises(LocalError, match=reason) as caught:
            server_context(attrs.evolve(shown, **wrong), ClientCertificates.NONE)
        assert SECRET not in str(caught.value)


def test_a_password_of_a_key_that_is_longer_than_openssl_takes_is_said_to_be(
    certificates: Certificates, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text(1025 * "x", encoding="utf-8")
    shown = attrs.evolve(profile(certificates, certificates.with_password("long", SECRET)), key_password_file=str(file))
    with pytest.raises(LocalError, match=r"key .* cannot be used: its password has more than 1024 bytes"):
        server_context(shown, ClientCertificates.NONE)


@pytest.mark.parametrize("what", ["certificate", "key", "ca", "crl", "key_password_file"])
def test_a_fifo_is_refused_and_not_waited_for(what: str, certificates: Certificates, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    settings = attrs.evolve(profile(certificates, certificates.issue("A")), **{what: str(fifo)})
    with pytest.raises(LocalError, match=r"fifo.* is a FIFO and no regular file"):
        server_context(settings, ClientCertificates.NONE)


def test_files_that_cannot_be_used_are_named(certificates: Certificates, tmp_path: Path) -> None:
    good = profile(certificates, certificates.issue("A"))
    nothing = tmp_path / "nothing"
    nothing.write_text("nothing", encoding="utf-8")
    damaged = tmp_path / "damaged"
    damaged.write_text(Path(certificates.issue("A")).read_text(encoding="utf-8").replace("\n", "\n!"), encoding="utf-8")
    for changes, reason in (
        ({"certificate": str(tmp_path / "absent")}, "absent: cannot be read"),
        ({"certificate": str(nothing)}, "nothing cannot be used: no certificate in PEM is in it"),
        ({"certificate": certificates.ca}, "has a certificate and no private key: name the file of the key with `key`"),
        ({"key": certificates.ca}, "`key` .* cannot be used: no private key in PEM is in it"),
        ({"key": str(nothing)}, "`key` .*nothing cannot be used: no private key in PEM is in it"),
        ({"certificate": str(damaged)}, "what should be in it in PEM is not, or is damaged"),
        ({"key": certificates.issue("B")}, "the key is not that of the certificate"),
        ({"ca": str(nothing)}, "`ca` .*nothing cannot be used: no certificate in PEM is in it"),
        ({"crl": str(nothing)}, "`crl` .*nothing cannot be used: no revocation list in PEM is in it"),
        ({"ca": certificates.revoke()}, "`ca` .* cannot be used: no certificate in PEM is in it"),
        ({"crl": certificates.ca}, "`crl` .* cannot be used: no revocation list in PEM is in it"),
        ({"crl": str(tmp_path / "absent")}, "`crl` .*absent: cannot be read: No such file"),
        ({"ciphers": "NOTHING"}, "no cipher suite that OpenSSL knows: NOTHING"),
        ({"certificate": None}, "a listener needs a certificate"),
    ):
        with pytest.raises(LocalError, match=reason):
            server_context(attrs.evolve(good, **changes), ClientCertificates.NONE)


def test_a_profile_that_nothing_uses_is_read_and_told_of(certificates: Certificates, tmp_path: Path) -> None:
    used = profile(certificates, certificates.issue("A"))
    password = tmp_path / "password"
    password.write_text(f"not {SECRET}", encoding="utf-8")
    locked = certificates.with_password("locked", SECRET)
    listener = ListenerSettings(tls="t")

    def told(**changes: str) -> dict[str, str]:
        unused = attrs.evolve(used, name="spare", **changes)
        settings = RouterSettings(id="A", tls=(used, unused), listeners=(listener,))
        with capture_logs() as logs:
            CredentialStore(settings, get_logger()).report()
        (found,) = logs
        return {key: str(value) for key, value in found.items()}

    for changes, reason in (
        ({"certificate": str(tmp_path / "absent")}, "absent: cannot be read"),
        ({"certificate": locked, "key_password_file": str(password)}, "its password is wrong"),
        ({"ca": str(tmp_path / "absent")}, "`ca` "),
    ):
        found = told(**changes)
        assert (found["event"], found["profile"]) == ("tls_files_unusable", "spare")
        assert reason in found["reason"]
        assert found["reason"].endswith("(nothing uses this profile)")
        assert SECRET not in found["reason"]
    old = certificates.expired("old")
    assert (told(certificate=old)["event"], told(certificate=old)["file"]) == ("certificate_expired", old)


def test_the_files_that_settings_name_are_checked_before_a_router_reads_them(
    certificates: Certificates, tmp_path: Path
) -> None:
    file, users = tmp_path / "mesh.yaml", tmp_path / "users"
    users.write_text("junk", encoding="utf-8")
    file.write_text(
        f"""routers:
  A:
    tls:
      - {{name: used, certificate: {certificates.issue("A")}}}
      - {{name: spare, certificate: {tmp_path / "absent"}}}
      - {{name: old, certificate: {certificates.expired("old")}}}
    listeners:
      - {{port: 5671, tls: used, sasl: [SCRAM-SHA-256], users_file: {users}}}
      - {{port: 25672, role: inter-router}}
  B:
    connectors:
      - {{to: A}}
""",
        encoding="utf-8",
    )

    def check(*words: str) -> tuple[int, list[str]]:
        result = CliRunner().invoke(main, ["config", "check", str(file), *words])
        return result.exit_code, result.output.splitlines()

    assert check()[0] == 0, "it may be checked on another machine"
    status, lines = check("--files")
    assert status == 1
    assert [line.partition(": ")[0] for line in lines[:3]] == [f"{file}:{at}" for at in (5, 6, 8)]
    assert lines[0].startswith(f"{file}:5: warning: routers.A.tls[1]: TLS profile spare: ")
    assert lines[0].endswith("(nothing uses this profile)")
    assert lines[1].endswith("; expected a certificate that has not ended")
    assert lines[1].startswith(f"{file}:6: warning: routers.A.tls[2]: the certificate of old in ")
    assert f"routers.A.listeners[0].users_file: {users}:1: no line of a user; expected a name " in lines[2]
    users.unlink()
    (line,) = (line for line in check("--files")[1] if "users_file" in line)
    assert line == (
        f"{file}:8: error: routers.A.listeners[0].users_file: {users}: cannot be read: No such file or directory; "
        "expected a file that `amqp-mesh user add` has written"
    )
    assert check("--files", "--router", "B")[0] == 0
    assert "no router `C`" in check("--files", "--router", "C")[1][0]
    assert check("--router", "B")[0] == 2


def test_users_of_groups_that_no_file_has_are_found_with_the_files(tmp_path: Path) -> None:
    file, users, others = tmp_path / "mesh.yaml", tmp_path / "users", tmp_path / "others"
    write_users(str(users), {"alice": new_keys(SECRET, 4096)})
    write_users(str(others), {"bob": new_keys(SECRET, 4096)})

    def check(listeners: str, http: str = "{}") -> list[str]:
        vhosts = (
            '[{name: shop, groups: [{name: x, users: [alcie, alice, "*", anonymous]}, {name: y, users: [bob]}]}, '
            "{name: b, groups: [{name: x, users: [bob]}]}]"
        )
        file.write_text(f"router: {{id: A, http: {http}, vhosts: {vhosts}, listeners: [{listeners}]}}", "utf-8")
        assert "no user" not in CliRunner().invoke(main, ["config", "check", str(file)]).output
        result = CliRunner().invoke(main, ["config", "check", str(file), "--files"])
        return [line.partition(": router.")[2] for line in result.output.splitlines() if ": no user" in line]

    shop = f"{{sasl: [SCRAM-SHA-256], users_file: {users}, vhost: shop}}"
    other = f"{{port: 1, sasl: [SCRAM-SHA-256], users_file: {others}, vhost: b}}"
    alcie = f"vhosts[0].groups[0].users[0]: no user `alcie` in {users}"
    found = check(f"{shop}, {other}")
    assert [line.partition(";")[0] for line in found] == [
        alcie,
        f"vhosts[0].groups[1].users[0]: no user `bob` in {users}",
    ]
    assert found[0].endswith("did you mean `alice`?")
    assert "a user that `amqp-mesh user add` has written there" in found[1]
    assert len(check(f"{shop}, {other}", f"{{port: 2, users_file: {others}}}")) == 1  # it signs in bob, for metrics
    assert not check(f"{shop}, {{port: 2, sasl: [EXTERNAL]}}, {other}")
    assert not check("{}")
    users.unlink()
    assert not check(shop)


def test_many_unknown_users_are_not_all_compared_with_the_known_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, users = tmp_path / "mesh.yaml", tmp_path / "users"
    write_users(str(users), {"u": new_keys(SECRET, 4096)})
    names = ", ".join(f"u{number}" for number in range(10))
    vhosts = ", ".join(f"{{name: v{number}, groups: [{{name: x, users: [{names}]}}]}}" for number in range(3))
    listeners = ", ".join(
        f"{{port: {number}, sasl: [SCRAM-SHA-256], users_file: {users}, vhost: v{number}}}" for number in range(3)
    )
    file.write_text(f"router: {{id: A, vhosts: [{vhosts}], listeners: [{listeners}]}}", "utf-8")
    read: list[str] = []
    monkeypatch.setattr(referenced_files, "read_table", lambda path: read_table(read.append(path) or path))
    findings = referenced_files.referenced_file_findings(read_document(file))
    found = [each.nearest for each in findings if "no user" in each.message]
    assert found == ["u"] * referenced_files.MOST_HINTS + [None] * (30 - referenced_files.MOST_HINTS)
    assert read == [str(users)], "it is read once for all virtual hosts"


def test_versions_are_those_of_the_profile(certificates: Certificates) -> None:
    old = attrs.evolve(profile(certificates, certificates.issue("A")), max_version=TlsVersion.V1_2)
    new = attrs.evolve(old, max_version=None, min_version=TlsVersion.V1_3)
    client = client_context(old, verify_host=True)
    assert shake_hands(server_context(old, ClientCertificates.NONE), client).tls.version() == "TLSv1.2"
    with pytest.raises(ssl.SSLError):
        shake_hands(server_context(new, ClientCertificates.NONE), client)


def test_names_are_compared_with_the_host_that_is_dialled(certificates: Certificates) -> None:
    server = server_context(
        profile(certificates, certificates.issue("A", "elsewhere.example")), ClientCertificates.NONE
    )
    trusting = profile(certificates, certificates.issue("B"))
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake_hands(server, client_context(trusting, verify_host=True))
    shake_hands(server, client_context(trusting, verify_host=False))
