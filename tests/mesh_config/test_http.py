"""Settings of the HTTP listener that do not go together."""

from __future__ import annotations

import pytest

from mesh_config.check import check_mesh
from mesh_config.findings import Severity
from mesh_config.models import HttpSettings, ListenerSettings, MeshSettings, RouterSettings, TlsSettings


@pytest.mark.parametrize(
    ("http", "is_told"),
    [
        (HttpSettings(), False),
        (HttpSettings(port=9672), False),
        (HttpSettings(host="10.0.0.1"), False),
        (HttpSettings(host="10.0.0.1", port=9672), True),
    ],
)
def test_an_http_listener_that_others_reach_is_told_of(http: HttpSettings, is_told: bool) -> None:
    router = RouterSettings(id="A", listeners=(ListenerSettings(port=5672),), http=http)
    findings = check_mesh(MeshSettings(routers={"A": router}))
    assert [(finding.severity, finding.key) for finding in findings] == (
        [(Severity.WARNING, "routers.A.http.host")] if is_told else []
    )


WITHOUT_CERTIFICATE = TlsSettings(name="inner", ca="ca.pem")
WITH_CERTIFICATE = TlsSettings(name="web", certificate="web.pem")


@pytest.mark.parametrize(
    ("http", "key", "words"),
    [
        (HttpSettings(port=1, tls="web", users_file="users", host="10.0.0.1"), "", ""),
        (HttpSettings(port=1, users_file="users"), "", ""),
        (HttpSettings(port=1, tls="wbe"), "tls", "no TLS profile `wbe`"),
        (HttpSettings(port=1, tls="inner"), "tls", "has no certificate to show"),
        (HttpSettings(port=1, users_file="users", host="10.0.0.1"), "users_file", "passwords without TLS"),
    ],
)
def test_tls_and_sign_in_need_what_they_need(http: HttpSettings, key: str, words: str) -> None:
    router = RouterSettings(
        id="A", listeners=(ListenerSettings(port=5672),), http=http, tls=(WITHOUT_CERTIFICATE, WITH_CERTIFICATE)
    )
    findings = check_mesh(MeshSettings(routers={"A": router}))
    assert [finding.key for finding in findings] == ([f"routers.A.http.{key}"] if key else [])
    assert all(words in finding.message for finding in findings)


@pytest.mark.parametrize(
    ("http", "is_told"),
    [
        (HttpSettings(port=5672), True),
        (HttpSettings(host="localhost", port=5672), True),
        (HttpSettings(host="127.0.0.2", port=5672), False),
        (HttpSettings(port=5673), True),  # there is a listener at all addresses
        (HttpSettings(port=0), False),
    ],
)
def test_a_port_that_a_listener_has_is_found(http: HttpSettings, is_told: bool) -> None:
    listeners = (ListenerSettings(port=5672), ListenerSettings(port=5673, host="0.0.0.0"), ListenerSettings(port=0))
    findings = check_mesh(MeshSettings(routers={"A": RouterSettings(id="A", listeners=listeners, http=http)}))
    found = [finding for finding in findings if finding.severity is Severity.ERROR]
    assert [finding.key for finding in found] == (["routers.A.http.port"] if is_told else [])
    assert all("collides with the listener" in finding.message for finding in found)
