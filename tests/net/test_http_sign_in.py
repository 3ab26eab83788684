"""Sign-in and TLS of the HTTP listener of a real router: by its users, at its pace, with the rights of its policy."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from mesh_config.models import (
    GroupSettings,
    HttpSettings,
    ListenerSettings,
    ManagementRight,
    MeshSettings,
    RouterSettings,
    TlsSettings,
    VhostSettings,
)
from router.cli.management import ManagementClient
from router.management.sign_in import credentials
from router.security.users import new_keys, write_users
from tests.helpers.browser import Browser
from tests.helpers.certificates import Certificates
from tests.helpers.processes import MeshProcesses, ReservedPort, wait_until

pytestmark = pytest.mark.interop
WATCHER, OTHER = "wätcher", "other"
PASSWORD = "right: pässword"


class Signed:
    """A router whose HTTP listener speaks TLS and wants users, and has a virtual host whose watchers may read."""

    def __init__(self, mesh: MeshProcesses, port: int, ca: str) -> None:
        self.mesh = mesh
        self.port = port
        self.ca = ca
        self.url = f"https://127.0.0.1:{port}"
        self._context = ssl.create_default_context(cafile=ca)

    def get(self, path: str, user: str | None = None, password: str = PASSWORD) -> tuple[int, str, Any]:
        """Status, body and headers of an answer."""
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}")
        if user is not None:
            token = base64.b64encode(f"{user}:{password}".encode()).decode()
            request.add_header("Authorization", f"Basic {token}")
        try:
            with urllib.request.urlopen(request, timeout=30, context=self._context) as answer:  # noqa: S310
                return answer.status, answer.read().decode(), answer.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), error.headers


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Signed]:
    folder = tmp_path_factory.mktemp("signed")
    certificates = Certificates(folder / "certificates")
    users = folder / "users"
    write_users(str(users), {user: new_keys(PASSWORD, 4096) for user in (WATCHER, OTHER)})
    port = ReservedPort()
    groups = (
        GroupSettings(name="watchers", users=(WATCHER,), management=ManagementRight.READ),
        GroupSettings(name="tools", users=("anonymous",), management=ManagementRight.WRITE),
        GroupSettings(name="others", users=("*",), management=ManagementRight.OWN),
    )
    router = RouterSettings(
        id="R1",
        listeners=(ListenerSettings(host="127.0.0.1", port=0),),
        tls=(TlsSettings(name="web", certificate=certificates.issue("R1"), ca=certificates.ca),),
        http=HttpSettings(port=port.number, tls="web", users_file=str(users)),
        vhosts=(VhostSettings(name="shop", hostnames=("*",), isolated=False, groups=groups),),
    )
    with MeshProcesses(MeshSettings(routers={"R1": router}), folder / "mesh") as mesh:
        mesh.start()
        yield Signed(mesh, port.number, certificates.ca)
        assert set(mesh.terminate().values()) == {0}
    port.close()


@pytest.mark.parametrize("path", ["/", "/api/mesh", "/metrics", "/console.js", "/nowhere"])
def test_without_a_user_there_is_nothing_but_a_challenge(signed: Signed, path: str) -> None:
    status, body, headers = signed.get(path)
    assert (status, body) == (401, "sign in as a user of this router\n")
    assert headers["WWW-Authenticate"] == 'Basic realm="amqp-mesh", charset="UTF-8"'
    assert headers["Content-Security-Policy"]


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_is_told_to_anybody(signed: Signed, path: str) -> None:
    assert signed.get(path)[0] == 200


def test_who_may_read_management_sees_console_and_metrics(signed: Signed) -> None:
    status, body, _ = signed.get("/api/mesh", WATCHER)
    assert (status, json.loads(body)["me"]) == (200, "R1")
    assert "amqp_mesh_ready" in signed.get("/metrics", WATCHER)[1]
    assert "amqp-mesh" in signed.get("/", WATCHER)[1]


def test_who_may_not_read_management_is_told_so(signed: Signed) -> None:
    status, body, _ = signed.get("/metrics", OTHER)
    assert (status, body) == (403, "this user may not read management: see `management` of its group\n")


@pytest.mark.parametrize("user", [WATCHER, "nobody"])
def test_a_wrong_password_is_answered_late_and_told(signed: Signed, user: str) -> None:
    router = signed.mesh["R1"]
    before = len(router.log_lines("sign_in_refused"))
    status, body, _ = signed.get("/metrics", user, "wrong")
    assert (status, body) == (401, "no such user, or a wrong password\n")
    wait_until(lambda: len(router.log_lines("sign_in_refused")) > before, "the log tells of it", 30)
    lines = router.log_lines("sign_in_refused")[before:]
    assert [(line.level, line.fields["host"]) for line in lines] == [("warning", "127.0.0.1")]


def test_by_tls_no_other_version_is_agreed_than_1_1(signed: Signed) -> None:
    context = ssl.create_default_context(cafile=signed.ca)
    context.set_alpn_protocols(["h2", "http/1.1"])
    with (
        socket.create_connection(("127.0.0.1", signed.port), 30) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
    ):
        assert secured.selected_alpn_protocol() in (None, "http/1.1")
        secured.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert secured.recv(65536).startswith(b"HTTP/1.1 505 ")


def test_plain_http_is_not_answered(signed: Signed) -> None:
    with pytest.raises(OSError, match=r"closed|reset"):
        urllib.request.urlopen(f"http://127.0.0.1:{signed.port}/healthz", timeout=30)


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    with Browser(folder) as made:
        yield made


def test_a_browser_signs_in_once_and_shows_the_mesh(signed: Signed, tmp_path: Path) -> None:
    with browser(tmp_path) as page:
        page.trust_all()
        page.open(f"{signed.url}/")
        assert page.run("document.querySelectorAll('.node').length") == 0
        page.open(f"{signed.url}/icon.svg".replace("://", f"://{WATCHER}:{PASSWORD.replace(' ', '%20')}@"))
        page.open(f"{signed.url}/")
        page.wait("document.querySelectorAll('.node').length === 1")
        assert "seen from router R1" in page.run("document.body.innerText")


def test_a_changed_file_of_users_and_another_right_count_at_once(signed: Signed) -> None:
    mesh = signed.mesh
    router = mesh.settings.routers["R1"]
    users = router.http.users_file
    assert users is not None
    assert signed.get("/metrics", WATCHER)[0] == 200
    write_users(users, {user: new_keys("another", 4096) for user in (WATCHER, OTHER)})
    assert signed.get("/metrics", WATCHER)[0] == 401
    assert signed.get("/metrics", WATCHER, "another")[0] == 200
    watchers, *others = router.vhosts[0].groups
    less = attrs.evolve(watchers, management=ManagementRight.NONE)
    mesh.change(attrs.evolve(router, vhosts=(attrs.evolve(router.vhosts[0], groups=(less, *others)),)))
    with ManagementClient(mesh.url("R1"), timeout_s=10) as client:
        client.request("RELOAD", {})
    assert signed.get("/metrics", WATCHER, "another")[0] == 403


@pytest.mark.parametrize(
    ("header", "found"),
    [
        (b"Basic YTpi", (b"a", b"b")),
        (b"basic YTpiOmM=", (b"a", b"b:c")),
        (b"Basic YTo=", (b"a", b"")),
        (b"Basic YQ==", None),
        (b"Basic !!!!", None),
        (b"Basic", None),
        (b"Bearer YTpi", None),
    ],
)
def test_credentials_are_read_as_they_are_written(header: bytes, found: tuple[bytes, bytes] | None) -> None:
    assert credentials({"headers": [(b"host", b"x"), (b"authorization", header)]}) == found
    assert credentials({"headers": [(b"authorization", header)] * 2}) is None
