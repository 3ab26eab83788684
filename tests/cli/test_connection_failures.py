"""Who is called in place of a router, or wants another guest: what commands say of it."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from proton import ConnectionException

from mesh_config.generators import generate
from mesh_config.models import ListenerSettings, Mechanism, MeshSettings, RouterSettings
from router.cli import main, router_access
from router.cli.connection_failure_words import REFUSED, Credentials, failed_connection
from router.cli.router_access import WITH_PASSWORD
from router.security.users import new_keys, write_users
from tests.helpers.certificates import Certificates
from tests.helpers.processes import MeshProcesses
from tests.helpers.spark_presence import needs_spark

WAIT_S = 30.0


def stat(url: str, *words: str) -> str:
    """Standard error of a `stat` that fails."""
    result = CliRunner().invoke(main, ["stat", "--url", url, *words], catch_exceptions=False)
    assert result.exit_code == 1
    return result.stderr


@contextmanager
def answering(answer: Callable[[socket.socket], object]) -> Iterator[str]:
    """A server that has *answer* speak with the first who comes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT_S)

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"amqp://127.0.0.1:{server.getsockname()[1]}"
        finally:
            thread.join(WAIT_S)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            b"HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n",
            "it speaks HTTP there, not AMQP: the port of a listener for",
        ),
        (b"220 mail.example ESMTP\r\n", "it speaks another protocol there, not AMQP (Expected SASL"),
        (b"AMQP\x00\x00\x09\x01", "it speaks another version of AMQP there, not 1.0 (Expected SASL"),
    ],
    ids=["HTTP", "SMTP", "AMQP 0-9-1"],
)
def test_who_speaks_something_else_is_told_of_what(answer: bytes, said: str) -> None:
    def speak(connection: socket.socket) -> None:
        connection.recv(8)
        connection.sendall(answer)

    with answering(speak) as url:
        assert f"Error: no connection to {url}: {said}" in stat(url)


def test_who_says_nothing_may_be_no_router() -> None:
    with answering(lambda connection: connection.recv(100) and connection.recv(100)) as url:
        assert stat(url, "--timeout", "0.5") == (
            f"Error: no router answers at {url}: nothing has come from there in time (--timeout): no way leads there,"
            " it hangs, or it is no listener of AMQP, perhaps one of HTTP\n"
        )


def ask_for_certificate(connection: socket.socket, certificates: Certificates, version: ssl.TLSVersion) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=certificates.ca)
    context.load_cert_chain(certificates.issue("localhost"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.maximum_version = version
    with contextlib.suppress(ssl.SSLError), context.wrap_socket(connection, server_side=True) as stream:
        stream.recv(1)


@pytest.mark.parametrize(
    ("version", "own", "said"),
    [
        (ssl.TLSVersion.TLSv1_3, False, "its listener wants a certificate of who comes: --certificate, and --key"),
        (ssl.TLSVersion.TLSv1_2, False, "TLS could not be agreed on: it wants a certificate of who comes"),
        (ssl.TLSVersion.TLSv1_3, True, "it doesn't trust the authority of the certificate of --certificate"),
    ],
    ids=["1.3", "1.2", "of another authority"],
)
def test_a_listener_for_certificates_is_told_of_with_the_options(
    version: ssl.TLSVersion, own: bool, said: str, tmp_path: Path
) -> None:
    certificates = Certificates(tmp_path)
    words = ["--ca", certificates.ca]
    if own:
        words += ["--certificate", Certificates(tmp_path / "others").issue("alice")]
    with answering(lambda connection: ask_for_certificate(connection, certificates, version)) as url:
        tls = url.replace("amqp://127.0.0.1", "amqps://localhost")
        assert f"Error: no connection to {tls}: {said}" in stat(tls, *words)


def show_certificate(connection: socket.socket, certificate: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with contextlib.suppress(ssl.SSLError), context.wrap_socket(connection, server_side=True) as stream:
        stream.recv(1)


def test_a_certificate_that_has_expired_is_among_what_is_said(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    expired = certificates.expired("localhost")
    with answering(lambda connection: show_certificate(connection, expired)) as url:
        tls = url.replace("amqp://127.0.0.1", "amqps://localhost")
        said = stat(tls, "--ca", certificates.ca)
    assert said.startswith(f"Error: no connection to {tls}: its certificate has expired, is not signed by ")


def test_a_key_in_the_place_of_authorities_is_told_that_certificates_are_expected(tmp_path: Path) -> None:
    key = tmp_path / "router.key"
    issued = Path(Certificates(tmp_path).issue("router")).read_text(encoding="ascii")
    key.write_text(issued.partition("-----BEGIN CERT")[0], encoding="ascii")
    assert "PRIVATE KEY" in key.read_text(encoding="ascii")
    said = stat("amqps://127.0.0.1:1", "--ca", str(key))
    assert f"{key}: not usable for TLS, certificates in PEM are expected (" in said


@needs_spark
def test_a_url_of_http_is_told_what_that_is_for() -> None:
    result = CliRunner().invoke(main, ["whatif", "snapshot", "http://127.0.0.1:1", "-o", "model"])
    assert result.exit_code == 2
    assert "expected that of a listener for clients, amqp://HOST:PORT" in result.stderr


@pytest.mark.interop
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--user", "alice"), "user alice: no password given (--password-file)"),
        (("--user", "alice", "--sasl", "SCRAM-SHA-256"), "user alice: no password given (--password-file)"),
        (("--sasl", "SCRAM-SHA-256"), "SCRAM-SHA-256 needs --user and --password-file"),
        (("--user", "alice", "--sasl", "PLAIN"), "it doesn't offer PLAIN (--sasl), or not without TLS (amqps://)"),
        (("--sasl", "EXTERNAL"), "EXTERNAL needs --certificate, and TLS (amqps://)"),
        (("--sasl", "XOAUTH2"), "it doesn't offer XOAUTH2 (--sasl)"),
        ((), "it offers no SASL mechanism for that; --user and --password-file, or --certificate?"),
    ],
)
def test_credentials_that_are_missing_are_named(
    guarded: MeshProcesses, words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    url = guarded.url("A")
    assert stat(url, *words).startswith(f"Error: no connection to {url}: {said}")
    given = tmp_path / "password"
    given.write_text("any\n", encoding="utf-8")
    if "PLAIN" in words:
        assert said in stat(url, *words, "--password-file", str(given))


NO_WORTHY = "SASL(-4): no mechanism available: No worthy mechs found (Authentication failed [mech=none])"
"""Of Cyrus SASL 2.1.28, through python-qpid-proton 0.40, as those below."""
NO_TICKET = (
    "SASL(-1): generic failure: GSSAPI Error: No credentials were supplied, or the credentials were unavailable or"
    " inaccessible (No Kerberos credentials available (default cache: FILE:/tmp/krb5cc_0)) (Authentication failed"
    " [mech=none])"
)
NO_PRINCIPAL = (
    "SASL(-1): generic failure: GSSAPI Error: Unspecified GSS failure.  Minor code may provide more information (Server"
    " amqp/127.0.0.1@MESH.TEST not found in Kerberos database) (Authentication failed [mech=none])"
)
NO_KDC = NO_PRINCIPAL.replace(
    "Server amqp/127.0.0.1@MESH.TEST not found in Kerberos database", "Cannot contact any KDC"
)


@pytest.mark.parametrize(
    ("mechanism", "given", "failed", "said"),
    [
        ("GSSAPI", "", NO_TICKET, "there is no Kerberos ticket here: kinit gets one (No Kerberos credentials "),
        ("GSSAPI", "", NO_PRINCIPAL, "Kerberos knows no router of that host: dial the host of its principal (Server "),
        ("GSSAPI", "", NO_KDC, "Kerberos gives no ticket for it (Cannot contact any KDC)"),
        ("GSSAPI", "", NO_WORTHY, "Cyrus SASL has no GSSAPI on this machine (Debian: libsasl2-modules-gssapi-mit)"),
        ("GSSAPI", "", "Authentication failed [mech=none]", "it doesn't offer GSSAPI (--sasl)"),
        ("GSSAPI", "", "Authentication failed [mech=GSSAPI]", "it refuses the Kerberos ticket, or its user may not"),
        ("EXTERNAL", "", "Authentication failed [mech=none]", "EXTERNAL needs --certificate"),
        ("EXTERNAL", "", NO_WORTHY, "EXTERNAL needs --certificate"),
        ("EXTERNAL", "certificate", "Authentication failed [mech=none]", "it doesn't offer EXTERNAL (--sasl)"),
        (None, "certificate", NO_WORTHY, "it offers no SASL mechanism for a certificate (EXTERNAL): --user and "),
        (None, "password", NO_WORTHY, "it offers no SASL mechanism for a password: --certificate?"),
        (None, "certificate password", NO_WORTHY, "it offers no SASL mechanism for a password or a certificate"),
        (None, "", NO_WORTHY, "it offers no SASL mechanism for that; --user and --password-file, or --certificate?"),
        (None, "certificate", "Authentication failed [mech=EXTERNAL]", "the user of the certificate of --certificate"),
        ("PLAIN", "", NO_WORTHY, "PLAIN needs --user and --password-file"),
        ("PLAIN", "certificate", NO_WORTHY, "PLAIN needs --user and --password-file"),
        ("SCRAM-SHA-256", "user", NO_WORTHY, "user alice: no password given (--password-file)"),
        ("SCRAM-SHA-256", "user password", NO_WORTHY, "Cyrus SASL has no SCRAM-SHA-256 on this machine"),
        ("SCRAM-SHA-256", "user password", "Authentication failed [mech=SCRAM-SHA-256]", "user or password is wrong"),
        (None, "", "Authentication failed [mech=none]", "it offers no SASL mechanism that may be used here: is --user"),
    ],
)  # fmt: skip
def test_what_the_client_lacks_is_not_blamed_on_the_router(
    mechanism: str | None, given: str, failed: str, said: str
) -> None:
    credentials = Credentials(
        user="alice" if "user" in given else None,
        has_password="password" in given,
        has_certificate="certificate" in given,
        mechanism=mechanism,
        needs_password=mechanism is None or mechanism in WITH_PASSWORD,
        is_encrypted=True,
    )
    error = ConnectionException(
        f"Connection amqps://h:1 disconnected: Condition('amqp:unauthorized-access', {failed!r})"
    )
    assert failed_connection("amqps://h:1", "h", error, credentials).startswith(f"no connection to amqps://h:1: {said}")


@pytest.mark.parametrize(
    ("host", "is_numeric"), [("127.0.0.1", True), ("::1", True), ("[::1]", True), ("localhost", False), ("1.h", False)]
)
def test_a_numeric_host_that_no_certificate_can_have_is_named(host: str, is_numeric: bool) -> None:
    credentials = Credentials(
        user=None, has_password=False, has_certificate=False, mechanism=None, needs_password=False, is_encrypted=True
    )
    error = ConnectionException("Condition('amqp:connection:framing-error', 'SSL Failure: certificate verify failed')")
    said = failed_connection("amqps://h:1", host, error, credentials)
    assert ("write the router's host name" in said) == is_numeric
    assert "has expired" in said


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeshProcesses]:
    """A router that lets in users by SCRAM alone."""
    folder = tmp_path_factory.mktemp("guarded")
    users = str(folder / "users")
    write_users(users, {"alice": new_keys("secret", 4096)})
    listener = ListenerSettings(sasl=(Mechanism.SCRAM_SHA_256,), users_file=users)
    router = RouterSettings(id="A", listeners=(listener,))
    with MeshProcesses(MeshSettings(routers={"A": router}), folder / "mesh") as mesh:
        mesh.start()
        yield mesh


def test_the_port_that_was_tried_is_named_where_the_url_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ConnectionException("Connection refused to all addresses")

    monkeypatch.setattr(router_access, "CloseTimeoutConnection", refuse)
    for url, tried in (("amqp://h", "amqp://h (port 5672)"), ("amqps://h", "amqps://h (port 5671)"), ("h:7", "h:7")):
        assert stat(url) == f"Error: no router answers at {tried}: {REFUSED}\n"


@pytest.mark.interop
def test_a_user_who_is_not_asked_for_is_warned_of_once(tmp_path: Path) -> None:
    with MeshProcesses(generate("line", 1), tmp_path) as mesh:
        mesh.start()
        url = mesh.url("R1")
        warning = (
            f"Warning: {url} has let user alice in as anonymous: it does not authenticate clients, or only those"
            " with a password (--password-file)\n"
        )

        def said(*words: str) -> str:
            return CliRunner().invoke(main, [*words, "--url", url], catch_exceptions=False).stderr

        assert said("stat", "links", "--user", "alice") == warning
        assert said("send", "jobs", "x", "--user", "alice", "--timeout", "0.5").count(warning) == 1
        assert said("stat", "links") == said("stat", "links", "--user", "alice", "--sasl", "ANONYMOUS") == ""


@pytest.mark.parametrize("words", ["stat", "ping", "top --looks 1", "send x m", "receive x", "trace x"])
def test_a_host_that_is_not_known_is_named(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(*_: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", deny)
    result = CliRunner().invoke(main, [*words.split(), "--url", "amqp://nosuch.invalid:5672"])
    assert "no router answers at amqp://nosuch.invalid:5672: the host nosuch.invalid is not known" in result.stderr
    assert "Errno" not in result.stderr
