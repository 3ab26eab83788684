"""The end of certificates: read from files as they are, and told of before it comes."""

from __future__ import annotations

import datetime as dt
import urllib.request
from pathlib import Path

import pytest
import structlog
from cryptography import x509

from mesh_config.models import (
    ConnectorSettings,
    HttpSettings,
    ListenerSettings,
    MeshSettings,
    RouterSettings,
    TlsSettings,
)
from router.cli.management import ManagementClient
from router.core.errors import LocalError
from router.security.certificate_expiry import authorities_end_in, ends_in
from router.security.credential_store import CredentialStore
from tests.helpers.certificates import Certificates
from tests.helpers.processes import MeshProcesses, ReservedPort, wait_until

WAIT_S = 20.0


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


def test_ends_and_names_are_those_of_the_file_in_its_order(certificates: Certificates) -> None:
    paths = [certificates.issue("router-a"), certificates.expired("old"), certificates.self_signed("own")]
    for path, name in zip(paths, ("router-a", "old", "own"), strict=True):
        expected = x509.load_pem_x509_certificates(Path(path).read_bytes())
        found = ends_in(path)
        assert [each.ends for each in found] == [each.not_valid_after_utc.timestamp() for each in expected]
        assert (found[0].subject, found[0].file) == (name, path)
    assert ends_in(paths[1])[0].ends == dt.datetime(2001, 1, 2, tzinfo=dt.UTC).timestamp()


def test_ends_of_revocation_lists_and_of_the_last_authority_are_told_of(certificates: Certificates) -> None:
    profile = TlsSettings(name="t", ca=certificates.ca, crl=certificates.revoke(certificates.issue("mallory")))
    credentials = CredentialStore(RouterSettings(id="A", tls=(profile,)), structlog.get_logger())
    authority = x509.load_pem_x509_certificate(Path(certificates.ca).read_bytes())
    revoked = x509.load_pem_x509_crl(Path(str(profile.crl)).read_bytes())
    assert revoked.next_update_utc is not None
    ends = {each.file: (each.is_list, each.ends) for each in credentials.certificates()}
    assert ends == {
        profile.ca: (False, authority.not_valid_after_utc.timestamp()),
        profile.crl: (True, revoked.next_update_utc.timestamp()),
    }
    old = certificates.expired("old")
    Path(old).write_bytes(Path(old).read_bytes() + Path(certificates.ca).read_bytes())
    assert [each.ends for each in authorities_end_in(old)] == [authority.not_valid_after_utc.timestamp()]


@pytest.mark.parametrize(
    "content", ["MA==", "MAMCAQE=", "%%", "A" * 64], ids=["empty", "no certificate", "text", "odd"]
)
def test_what_is_no_certificate_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "odd.pem"
    path.write_text(f"-----BEGIN CERTIFICATE-----\n{content}\n-----END CERTIFICATE-----\n", encoding="ascii")
    with pytest.raises(LocalError, match=r"odd\.pem: no certificate"):
        ends_in(str(path))


def test_a_cut_certificate_is_refused_wherever_it_is_cut(certificates: Certificates, tmp_path: Path) -> None:
    text = Path(certificates.self_signed("own")).read_text(encoding="ascii")
    _, begin, rest = text.partition("-----BEGIN CERTIFICATE-----\n")
    body, end, _ = rest.partition("-----END CERTIFICATE-----")
    letters = body.replace("\n", "")
    path = tmp_path / "cut.pem"
    for size in range(4, len(letters) - 4, 16):
        path.write_text(f"{begin}{letters[:size]}\n{end}\n", encoding="ascii")
        with pytest.raises(LocalError):
            ends_in(str(path))


def test_a_list_of_revocations_that_cannot_be_read_is_told_of_until_it_is_mended(certificates: Certificates) -> None:
    lists = Path(certificates.revoke())
    good = lists.read_bytes()
    profile = TlsSettings(name="t", ca=certificates.ca, crl=str(lists))
    credentials = CredentialStore(RouterSettings(id="A", tls=(profile,)), structlog.get_logger())
    assert credentials.unusable() == []
    lists.write_text("-----BEGIN X509 CRL-----\nMA==\n-----END X509 CRL-----\n", encoding="ascii")
    for _ in range(2):
        credentials.refresh()
        (found,) = credentials.unusable()
        assert found.subject == "TLS profile t"
        assert str(lists) in found.reason
    lists.write_bytes(good)
    credentials.refresh()
    assert credentials.unusable() == []


def test_files_that_cannot_be_used_are_told_of_once_per_profile_and_change(certificates: Certificates) -> None:
    path, lists = Path(certificates.issue("A")), Path(certificates.revoke())
    good, good_lists = path.read_bytes(), lists.read_bytes()
    profile = TlsSettings(name="t", certificate=str(path), ca=certificates.ca, crl=str(lists))
    settings = RouterSettings(
        id="A",
        listeners=(ListenerSettings(tls="t"), ListenerSettings(name="other", tls="t")),
        connectors=(ConnectorSettings(host="localhost", port=1, tls="t"),),
        tls=(profile,),
    )
    credentials = CredentialStore(settings, structlog.get_logger())

    def told() -> list[str]:
        with structlog.testing.capture_logs() as logs:
            credentials.refresh()
        return [each["event"] for each in logs]

    once = ["tls_files_unusable"]
    path.write_text("nothing", encoding="ascii")
    assert (told(), told()) == (once, [])
    path.write_text("nothing else", encoding="ascii")
    assert told() == once
    for _ in range(2):
        path.unlink()
        assert told() == once
        path.write_bytes(good)
        assert told() == []
    path.unlink()
    lists.rename(lists.with_suffix(".away"))
    assert told() == once
    lists.write_bytes(good_lists)
    path.write_bytes(good)
    assert told() == []
    lists.write_text("no list", encoding="ascii")
    assert told() == once
    lists.write_bytes(good_lists)
    assert told() == []


def test_own_certificates_that_have_ended_are_told_of(certificates: Certificates) -> None:
    path = certificates.expired("old")
    settings = RouterSettings(
        id="A", listeners=(ListenerSettings(tls="t"),), tls=(TlsSettings(name="t", certificate=path),)
    )
    credentials = CredentialStore(settings, structlog.get_logger())
    with structlog.testing.capture_logs() as logs:
        credentials.report()
    assert [(each["event"], each["file"], each["subject"], each["ended"]) for each in logs] == [
        ("certificate_expired", path, "old", "2001-01-02T00:00:00Z")
    ]


@pytest.mark.slow
@pytest.mark.interop
def test_a_certificate_near_its_end_is_a_problem_and_counted(certificates: Certificates, tmp_path: Path) -> None:
    http, path = ReservedPort(), certificates.self_signed("router-a")
    router = RouterSettings(
        id="A",
        listeners=(ListenerSettings(), ListenerSettings(name="tls", tls="mine")),
        tls=(TlsSettings(name="mine", certificate=path),),
        http=HttpSettings(port=http.number),
    )
    with MeshProcesses(MeshSettings(name="one", routers={"A": router}), tmp_path / "mesh") as mesh:
        mesh.start()
        with ManagementClient(mesh.url("A")) as client:
            (problem,) = client.query("amqp-mesh.problem")
        assert problem["kind"] == "certificate"
        assert f"the certificate of router-a in {path} ends on " in problem["sentence"]
        with urllib.request.urlopen(f"http://127.0.0.1:{http.number}/metrics", timeout=10) as page:
            lines = page.read().decode().splitlines()
        assert 'amqp_mesh_problems{kind="certificate"} 1.0' in lines
        assert 'amqp_mesh_problems{kind="router-absent"} 0.0' in lines
        content = Path(path).read_bytes()
        Path(path).write_text("no certificate", encoding="ascii")
        with ManagementClient(mesh.url("A")) as client:

            def kinds() -> list[object]:
                return [problem["kind"] for problem in client.query("amqp-mesh.problem")]

            wait_until(lambda: kinds() == ["unusable-file"], "the file is looked at", WAIT_S)
            (problem,) = client.query("amqp-mesh.problem")  # it stays one
            assert (problem["kind"], problem["subject"]) == ("unusable-file", "TLS profile mine")
            assert path in problem["sentence"]
            Path(path).write_bytes(content)
            wait_until(lambda: kinds() == ["certificate"], "the file is looked at", WAIT_S)
        assert mesh.terminate("A") == {"A": 0}
    http.close()
