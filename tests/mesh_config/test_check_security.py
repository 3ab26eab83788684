"""Findings about TLS and SASL: settings of one router that do not go together."""

from __future__ import annotations

from pathlib import Path

import pytest

from mesh_config.check import check_file, check_router
from mesh_config.findings import Severity
from tests.mesh_config.cases import FILE, Case, assert_only, row

HEAD = "router:\n  id: A\n"
PROFILE = "  tls: [{name: t, certificate: c}, {name: bare}]\n"


JOINED = "{port: 1, role: inter-router, sasl: [SCRAM-SHA-256], users_file: users}"
"""A listener at which routers say who they are."""


def listener(rest: str) -> str:
    return f"{HEAD}{PROFILE}  listeners:\n  - {{{rest}}}  # here\n"


def connector(rest: str) -> str:
    return f"{HEAD}{PROFILE}  listeners: [{{}}]\n  connectors:\n  - {{port: 1, {rest}}}  # here\n"


CASES = (
    row(
        "an unknown profile", listener("tls: x"), "router.listeners[0].tls", "no TLS profile `x`", "one of `t`, `bare`"
    ),
    row(
        "a profile without certificate", listener("tls: bare"), "router.listeners[0].tls", "has no certificate to show"
    ),
    row(
        "certificates that nothing is known about",
        listener("tls: t, client_certificates: required"),
        "router.listeners[0].client_certificates",
        "has no authorities",
        "`ca` in it",
    ),
    row(
        "EXTERNAL without certificates",
        listener("tls: t, sasl: [EXTERNAL]"),
        "router.listeners[0].sasl",
        "EXTERNAL without certificates of clients",
    ),
    row("a mechanism twice", listener("sasl: [ANONYMOUS, ANONYMOUS]"), "router.listeners[0].sasl", "twice"),
    row("no mechanism", listener("sasl: []"), "router.listeners[0].sasl", "no client could connect"),
    row(
        "passwords without users",
        listener("sasl: [SCRAM-SHA-256]"),
        "router.listeners[0].sasl",
        "SCRAM-SHA-256 without users",
        "`users_file`",
    ),
    row(
        "passwords for everybody to read",
        listener("sasl: [PLAIN], users_file: u"),
        "router.listeners[0].sasl",
        "PLAIN without TLS",
        "`plain_without_tls: true`",
        "SCRAM-SHA-256",
    ),
    row(
        "a keytab for nothing",
        listener("keytab: k"),
        "router.listeners[0].keytab",
        "Kerberos without its mechanism",
        "GSSAPI among `sasl`",
        "GSSAPI",
    ),
    row(
        "a keytab of a router for nothing",
        connector("keytab: k"),
        "router.connectors[0].keytab",
        "a keytab that ANONYMOUS makes no use of",
        "`sasl: GSSAPI`",
        "GSSAPI",
    ),
    row(
        "no password",
        connector("sasl: SCRAM-SHA-256"),
        "router.connectors[0].sasl",
        "neither of `password_file` and `password_env`",
    ),
    row(
        "a password for nothing",
        connector("password_file: f"),
        "router.connectors[0].sasl",
        "a password that ANONYMOUS makes no use of",
    ),
    row(
        "EXTERNAL of a router without certificate",
        connector("sasl: EXTERNAL, tls: bare"),
        "router.connectors[0].sasl",
        "EXTERNAL without a certificate of this router",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_what_does_not_go_together_is_told_with_its_line_and_what_would(case: Case, tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_text(case.text, encoding="utf-8")
    assert_only(check_file(path), case)


@pytest.mark.parametrize(
    "text",
    [
        f"routers:\n  A:\n    listeners:\n    - {JOINED}",
        f"router:\n  id: A\n  neighbors: []\n  listeners:\n  - {JOINED}",
    ],
    ids=["the mesh has no other router", "none is named"],
)
def test_a_router_that_none_may_join_runs_and_is_warned_of(text: str, tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_text(text, encoding="utf-8")
    router, findings = check_router(path)
    assert router.neighbors == ()
    (finding,) = findings
    assert finding.severity is Severity.WARNING
    assert "router `A` has no `neighbors`: none may join" in finding.message


def test_kerberos_with_its_mechanism_is_not_complained_about(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_text(listener("sasl: [GSSAPI], keytab: k, kerberos_realm: EXAMPLE.NET"), encoding="utf-8")
    assert not check_file(path)
    path.write_text(connector("sasl: GSSAPI, keytab: k, user: A, kerberos_service: amqp"), encoding="utf-8")
    assert not check_file(path)
