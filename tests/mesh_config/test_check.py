"""Findings about meshes whose every value is right by itself."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from mesh_config.check import check_file, check_files, check_mesh, check_router
from mesh_config.findings import Finding, SettingsError, Severity, has_errors
from mesh_config.generators import line
from mesh_config.models import (
    AddressSettings,
    ConnectorSettings,
    LinkStateSettings,
    ListenerSettings,
    MeshSettings,
    Role,
    RouterSettings,
)
from tests.mesh_config.cases import FILE, Case, assert_only, row, warning

B_LISTENS = "  B:\n    listeners: [{port: 7, role: inter-router}]\n"
A_DIALS = "  A:\n    connectors:\n"

CASES = (
    row(
        "two listeners of one port",
        """
router:
  id: A
  listeners:
  - {port: 5}
  - {port: 5, role: inter-router}  # here
""",
        "router.listeners[1].port",
        "127.0.0.1:5 collides with 127.0.0.1:5 of router `A` (",
        "another port",
    ),
    row(
        "listeners of two routers of one machine",
        """
routers:
  B:
    listeners: [{port: 7, role: inter-router}]
  A:
    listeners: [{port: 7}]  # here
    connectors: [{to: B}]
""",
        "routers.A.listeners[0].port",
        "127.0.0.1:7 collides with 127.0.0.1:7 of router `B`",
        "another port",
    ),
    row(
        "HTTP of two routers of one machine",
        f"""
defaults:
  router:
    http:
      port: 9672  # here
routers:
{B_LISTENS}  A:
    connectors: [{{to: B}}]
""",
        "defaults.router.http.port",
        "127.0.0.1:9672 (HTTP) collides with 127.0.0.1:9672 (HTTP) of router `B` (",
        "another port, or a different `host` of each router",
    ),
    row(
        "HTTP at another router's listener",
        f"routers:\n{B_LISTENS}  A:\n    connectors: [{{to: B}}]\n    http: {{port: 7, host: '::'}}  # here",
        "routers.A.http.port",
        ":::7 (HTTP) collides with 127.0.0.1:7 of router `B` (",
    ),
    row(
        "a listener at another router's HTTP",
        "routers:\n  B: {http: {port: 8}, listeners: [{port: 7, role: inter-router}]}\n"
        "  A:\n    connectors: [{to: B}]\n    listeners: [{port: 8}]  # here",
        "routers.A.listeners[0].port",
        "127.0.0.1:8 collides with 127.0.0.1:8 (HTTP) of router `B` (",
    ),
    row(
        "all addresses include each one",
        "router:\n  id: A\n  listeners:\n  - port: 5\n  - {port: 5, host: '::'}  # here",
        "router.listeners[1].port",
        ":::5 collides with 127.0.0.1:5",
    ),
    row(
        "localhost is a loopback address",
        "router:\n  id: A\n  listeners:\n  - port: 5\n  - {port: 5, host: localhost}  # here",
        "router.listeners[1].port",
        "localhost:5 collides with 127.0.0.1:5",
    ),
    warning(
        "a connector to no listener, where another router may be",
        f"routers:\n{B_LISTENS}  A:\n    connectors:\n    - {{to: B}}\n    - {{port: 8}}  # here",
        "routers.A.connectors[1].port",
        "no router of this mesh listens at 127.0.0.1:8",
        "a listener for other routers, or a router that is not of this file",
        "127.0.0.1:7",
    ),
    warning(
        "two connectors to one place under two names",
        """
router:
  id: A
  connectors:
  - {name: x, host: far, port: 7}
  - {name: y, host: far, port: 7}  # here
""",
        "router.connectors[1]",
        "a second connector to far:7, as connectors[0] (line 4): one of their connections is active, the others stand",
        "one connector for each neighbor",
    ),
    warning(
        "two connectors to one place by two hosts",
        "router:\n  id: A\n  connectors:\n  - {host: localhost, port: 7}\n  - {port: 7}  # here",
        "router.connectors[1]",
        "a second connector to 127.0.0.1:7, as connectors[0] (line 4): one of their connections is active",
    ),
    row(
        "two listeners of one name",
        "router:\n  id: A\n  listeners:\n  - {name: x, port: 1}\n  - {name: x, port: 2}  # here",
        "router.listeners[1].name",
        "listeners[0] is called `x` already",
        "a name of its own, or none",
    ),
    row(
        "two connectors of one name",
        "router:\n  id: A\n  connectors:\n  - {name: x, port: 1}\n  - {name: x, port: 2}  # here",
        "router.connectors[1].name",
        "connectors[0] is called `x` already",
    ),
    warning(
        "a connector to every address",
        "router:\n  id: A\n  connectors:\n  - {host: 0.0.0.0, port: 1}  # here",
        "router.connectors[0].host",
        "`0.0.0.0` stands for every address of a machine: it can be listened at, and not connected to",
        "the host of the other router, 127.0.0.1 for one of this machine",
    ),
    warning(
        "every address as the host at which a router is reached",
        "router:\n  id: A\n  host: '::'  # here",
        "router.host",
        "`::` stands for every address",
        "the host at which the other routers reach this one",
    ),
    row(
        "a neighbor with an id that no router can have",
        "router:\n  id: A\n  neighbors:\n  - {user: x, ids: ['*', b, a b]}  # here",
        "router.neighbors[0].ids[2]",
        'the text "a b" has a blank, which it may not have',
        "; or `*` for any",
    ),
    row(
        "a treatment of management",
        "router:\n  id: A\n  addresses:\n  - prefix: $management  # here",
        "router.addresses[0].prefix",
        "the prefix `$management` has no effect: what begins with `$management` belongs to the routers themselves",
        "an address of clients, which begins with neither `$` nor `_`",
    ),
    row(
        "a treatment of what is of one router",
        "router:\n  id: A\n  addresses:\n  - pattern: _topo/0/A/#  # here",
        "router.addresses[0].pattern",
        "what begins with `_topo` is of the routers that it names, whatever the treatment of its address",
    ),
    row(
        "a treatment of an address with its scheme",
        "router:\n  id: A\n  addresses:\n  - prefix: amqp://host/jobs  # here",
        "router.addresses[0].prefix",
        "no address begins with `amqp://host/` once it is read, so the prefix `amqp://host/jobs` fits none",
        nearest="jobs",
    ),
    row(
        "a connector to a router that does not listen there",
        f"routers:\n{B_LISTENS}  A:\n    connectors:\n    - {{to: B}}\n    - {{to: B, port: 9}}  # here",
        "routers.A.connectors[1].to",
        "router `B` does not listen at 127.0.0.1:9",
        nearest="127.0.0.1:7",
    ),
    row(
        "a connector to loopback of another machine",
        """
routers:
  B:
    host: b
    listeners:
    - {port: 7, role: inter-router}
    - {port: 8, host: b, role: inter-router}
  A:
    host: a
    connectors:
    - {to: B, host: b, port: 8}
    - {to: B}  # here
""",
        "routers.A.connectors[1].to",
        "router `B`, on another machine than `A`, cannot be reached at 127.0.0.1:7",
        nearest="127.0.0.1:7",
    ),
    row(
        "a connector to a listener for clients",
        """
routers:
  B: {listeners: [{port: 7, role: inter-router}, {port: 5}]}
  A:
    connectors:
    - {to: B}
    - {port: 5}  # here
""",
        "routers.A.connectors[1].role",
        "has the role `normal`, this connector `inter-router`",
        "one role at both ends",
    ),
    row(
        "a client's connector to a listener for routers",
        f"routers:\n{B_LISTENS}  A:\n    connectors:\n    - {{to: B}}\n    - {{port: 7, role: normal}}  # here",
        "routers.A.connectors[1].role",
        "a connector with the role `normal` would carry nothing",
        "`inter-router`; clients connect to a listener with the role `normal`",
        nearest="inter-router",
    ),
    row(
        "a connector to a broker",
        "routers:\n  A:\n    connectors:\n    - role: normal  # here\n      host: broker",
        "routers.A.connectors[0].role",
        "a connector with the role `normal` would carry nothing: router `A` attaches links only to routers",
        "`inter-router`",
        nearest="inter-router",
    ),
    row(
        "a role of all connectors that carries nothing",
        "defaults:\n  connector:\n    role: normal  # here\nrouters:\n  A:\n    connectors: [{host: far}]",
        "defaults.connector.role",
        "a connector with the role `normal` would carry nothing",
        nearest="inter-router",
    ),
    row(
        "a connector to oneself",
        "routers:\n  A:\n    listeners: [{port: 7, role: inter-router}]\n    connectors:\n    - {to: A}  # here",
        "routers.A.connectors[0].to",
        "connects to itself",
        "another router",
    ),
    row(
        "a connector to oneself by host and port",
        "routers:\n  A:\n    listeners: [{port: 7, role: inter-router}]\n    connectors:\n    - {port: 7}  # here",
        "routers.A.connectors[0]",
        "connects to itself",
        "another router",
    ),
    row(
        "a connector to oneself without a listener for routers",
        "routers:\n  A:\n    connectors:\n    - {to: A}  # here",
        "routers.A.connectors[0].to",
        "connects to itself",
        "another router",
    ),
    warning(
        "a neighbor of another file on a host of this mesh",
        "routers:\n  A:\n    listeners: [{port: 24805, role: inter-router}]\n    connectors: [{port: 24801}]  # here",
        "routers.A.connectors[0].port",
        "no router of this mesh listens at 127.0.0.1:24801",
    ),
    warning(
        "stars in a word",
        "router:\n  id: A\n  addresses:\n  - pattern: a/**  # here",
        "router.addresses[0].pattern",
        "`**` in the pattern `a/**` matches only that word",
        "`*` for one word or `#` for any number",
        "a/#",
    ),
    warning(
        "a wildcard of MQTT",
        "router:\n  id: A\n  addresses:\n  - pattern: a.+.b  # here",
        "router.addresses[0].pattern",
        "`+` in the pattern `a.+.b` matches only that word",
        "as a whole word",
        "a.*.b",
    ),
    warning(
        "a star at the end of a word",
        "router:\n  id: A\n  addresses:\n  - pattern: shop*/x  # here",
        "router.addresses[0].pattern",
        "`shop*` in the pattern `shop*/x` matches only that word",
        "as a whole word",
    ),
    warning(
        "a star at the end of a prefix",
        "router:\n  id: A\n  addresses:\n  - prefix: shop*  # here",
        "router.addresses[0].prefix",
        "`shop*` in the prefix `shop*` matches only that word",
        "as a whole word of a `pattern`",
    ),
    warning(
        "two connectors of a pair",
        """
routers:
  B:
    listeners: [{port: 7, role: inter-router}]
    connectors: [{to: A}]
  A:
    listeners: [{port: 8, role: inter-router}]
    connectors:
    - {to: B}  # here
""",
        "routers.A.connectors[0]",
        "connection 2 between `A` and `B`: one is active",
        "one connector",
    ),
    warning(
        "different costs at both ends",
        """
routers:
  B: {listeners: [{port: 7, role: inter-router, cost: 3}]}
  A:
    connectors:
    - {to: B, cost: 5}  # here
""",
        "routers.A.connectors[0].cost",
        "cost 5 here, 3 at the listener 127.0.0.1:7 of router `B`: the larger, 5, counts",
        "one cost",
        "5",
    ),
    row(
        "a connector without TLS to a listener that requires it",
        f"""
routers:
  B:
    tls: [{{name: x, certificate: c}}]
    listeners: [{{port: 7, role: inter-router, tls: x}}]
{A_DIALS}    - {{to: B}}  # here
""",
        "routers.A.connectors[0].tls",
        "the listener 127.0.0.1:7 of router `B` requires TLS, and this connector has none",
        "`tls`, the name of a profile",
    ),
    row(
        "a connector with TLS to a listener without",
        f"""
routers:
{B_LISTENS}{A_DIALS}    - to: B
      tls: x  # here
    tls: [{{name: x}}]
""",
        "routers.A.connectors[0].tls",
        "the listener 127.0.0.1:7 of router `B` has no TLS, and this connector requires it",
        "TLS at both ends, or at neither",
    ),
    row(
        "a connector without the certificate that is required",
        f"""
routers:
  B:
    tls: [{{name: x, certificate: c, ca: a}}]
    listeners: [{{port: 7, role: inter-router, tls: x, client_certificates: required}}]
{A_DIALS}    - to: B
      tls: y  # here
    tls: [{{name: y}}]
""",
        "routers.A.connectors[0].tls",
        "requires a certificate, and TLS profile `y` of this connector has none",
        "`certificate` in it",
    ),
    row(
        "a mechanism that is not offered",
        f"""
routers:
  B: {{listeners: [{{port: 7, role: inter-router, sasl: [SCRAM-SHA-256], users_file: u}}]}}
{A_DIALS}    - {{to: B}}  # here
""",
        "routers.A.connectors[0].sasl",
        "the listener 127.0.0.1:7 of router `B` does not offer ANONYMOUS",
        "SCRAM-SHA-256",
        "SCRAM-SHA-256",
    ),
    warning(
        "a user that is no neighbor",
        f"""
routers:
  B:
    listeners: [{{port: 7, role: inter-router, sasl: [SCRAM-SHA-256], users_file: u}}]
    neighbors: [{{user: C}}, {{user: a, ids: [D]}}]
{A_DIALS}    - to: B
      sasl: SCRAM-SHA-256
      password_env: P
      user: a  # here
""",
        "routers.A.connectors[0].user",
        "the listener 127.0.0.1:7 of router `B` lets no user `a` join as router `A`",
        "a user of `neighbors` of router `B` who may have that id",
    ),
    warning(
        "a user that is no router of the file",
        f"""
routers:
  B: {{listeners: [{{port: 7, role: inter-router, sasl: [SCRAM-SHA-256], users_file: u}}]}}
{A_DIALS}    - {{to: B, sasl: SCRAM-SHA-256, password_env: P, user: a}}  # here
""",
        "routers.A.connectors[0].user",
        "lets no user `a` join as router `A`",
    ),
    row(
        "routers of two meshes",
        f"""
mesh: {{name: here}}
routers:
{B_LISTENS}    mesh: there
{A_DIALS}    - {{to: B}}  # here
""",
        "routers.A.connectors[0]",
        "router `A` is of mesh `here`, and router `B` of mesh `there`: no neighbors",
        "one `mesh` at both ends",
    ),
    row(
        "a neighbor that is taken for lost before it says HELLO again",
        f"""
routers:
{B_LISTENS}    link_state: {{hello_interval_s: 3, hello_max_age_s: 9}}
{A_DIALS}    - {{to: B}}  # here
""",
        "routers.A.connectors[0]",
        "router `A` takes a neighbor for lost after 3.0 s, but router `B` says HELLO every 3.0 s only",
        "hello_max_age_s of each end above hello_interval_s of the other",
    ),
    row(
        "a mesh in parts",
        f"routers:\n{B_LISTENS}  A:\n    connectors: [{{to: B}}]\n  C:  # here\n    site: x",
        "routers.C",
        "the mesh is in 2 parts: no path from {C} to {A, B}",
        "a connector",
    ),
    row(
        "a prefix twice",
        "router:\n  id: A\n  addresses:\n  - prefix: a/b\n  - {prefix: a.b, treatment: closest}  # here",
        "router.addresses[1]",
        "prefix `a.b` is given twice, first in line 4",
        "each prefix",
    ),
    row(
        "a pattern that is longer than any address",
        f"router:\n  id: A\n  addresses:\n  - pattern: {'é/' * 400}  # here",
        "router.addresses[0].pattern",
        "a pattern of 1200 bytes fits no address",
        "1024 bytes at most (`forwarding.address_bytes`)",
    ),
    row(
        "a prefix that is longer than any address",
        f"router:\n  id: A\n  forwarding: {{address_bytes: 100}}\n  addresses:\n  - prefix: {'a' * 101}  # here",
        "router.addresses[0].prefix",
        "a prefix of 101 bytes fits no address",
        "100 bytes at most",
    ),
    row(
        "patterns of too many words",
        "router:\n  id: A\n  addresses:  # here"
        + "".join(f"\n  - pattern: a/{'*/' * 98}{number}" for number in range(101)),
        "router.addresses",
        "the patterns of router `A` have 10100 words",
        "10000 at most",
    ),
    row(
        "a pattern twice",
        "router:\n  id: A\n  addresses:\n  - pattern: a/*\n  - pattern: a/*  # here",
        "router.addresses[1]",
        "pattern `a/*` is given twice",
    ),
    row(
        "prefix and pattern",
        "router:\n  id: A\n  addresses:\n  - {prefix: a, pattern: b}  # here",
        "router.addresses[0]",
        "both `prefix` and `pattern`",
        "one of them",
    ),
    row(
        "neither prefix nor pattern",
        "router:\n  id: A\n  addresses:\n  - treatment: closest  # here",
        "router.addresses[0]",
        "neither `prefix` nor `pattern`",
        "one of them",
    ),
    row(
        "a prefix without a word",
        "router:\n  id: A\n  addresses:\n  - prefix: ./  # here",
        "router.addresses[0].prefix",
        "the prefix `./` has no word",
        "words",
    ),
    row(
        "a pattern without a word",
        "router:\n  id: A\n  addresses:\n  - pattern: ''  # here",
        "router.addresses[0].pattern",
        "the pattern `` has no word",
        "words",
    ),
    row(
        "a pattern that calls itself a prefix",
        "router:\n  id: A\n  addresses:\n  - prefix: jobs/#  # here",
        "router.addresses[0].prefix",
        "not of the prefix `jobs/#`",
        "`pattern`",
    ),
    warning(
        "allowed prefixes of clients",
        "router:\n  id: A\n  listeners:\n  - {port: 5, allowed_prefixes: [partner]}  # here",
        "router.listeners[0].allowed_prefixes",
        "prefixes are for neighbors, and this listener of router `A` is for clients",
        "`sources` and `targets` of a group",
    ),
    warning(
        "an allowed prefix with a wildcard",
        "router:\n  id: A\n  connectors:\n  - {host: far, allowed_prefixes: [a, b/#]}  # here",
        "router.connectors[0].allowed_prefixes[1]",
        "`#` in the prefix `b/#` matches only that word, character by character",
        "whole words: the prefix is for every address that begins with them",
    ),
    warning(
        "an allowed prefix with its scheme",
        "router:\n  id: A\n  connectors:\n  - {host: far, allowed_prefixes: ['amqp:/partner']}  # here",
        "router.connectors[0].allowed_prefixes[0]",
        "no address begins with `amqp:/` once it is read",
        nearest="partner",
    ),
    warning(
        "an allowed prefix without a word",
        "router:\n  id: A\n  listeners:\n  - {port: 5, role: inter-router, allowed_prefixes: ['']}  # here",
        "router.listeners[0].allowed_prefixes[0]",
        "the prefix `` fits no address: by it a neighbor may use none",
        "the first words of the addresses that it may use",
    ),
    warning(
        "an allowed prefix that is of the routers themselves",
        "router:\n  id: A\n  connectors:\n  - {host: far, allowed_prefixes: [partner, $management]}  # here",
        "router.connectors[0].allowed_prefixes[1]",
        "the prefix `$management` has no effect: addresses that begin with `$management` are never open to a neighbor",
        "a prefix that begins with neither `$` nor `_`",
    ),
    row(
        "frames between routers that take no circuit",
        "router:\n  id: A\n  listeners:\n  - port: 7\n    role: inter-router\n    max_frame_bytes: 1024  # here",
        "router.listeners[0].max_frame_bytes",
        "less than a circuit of an address of `address_bytes` takes",
        "1536 or more",
        "1536",
    ),
    row(
        "hello_max_age_s not above hello_interval_s",
        "router:\n  id: A\n  link_state:\n    hello_interval_s: 2\n    hello_max_age_s: 2  # here",
        "router.link_state.hello_max_age_s",
        "lost after 2.0 s, but says HELLO every 2.0 s only",
        "more than hello_interval_s",
        "6",
    ),
    row(
        "hello_max_age_s left at its default",
        "router:\n  id: A\n  link_state:  # here\n    hello_interval_s: 5",
        "router.link_state.hello_max_age_s",
        "lost after 3.0 s",
        nearest="15",
    ),
    row(
        "remote_ls_max_age_s not above ra_interval_s",
        "router:\n  id: A\n  link_state:\n    ra_interval_s: 30\n    remote_ls_max_age_s: 20  # here",
        "router.link_state.remote_ls_max_age_s",
        "forgotten after 20.0 s, but refreshed every 30.0 s",
        "more than ra_interval_s",
        "60",
    ),
    row(
        "reconnect_max_s below reconnect_initial_s",
        """
router:
  id: A
  connectors:
  - host: b
    reconnect_initial_s: 2
    reconnect_max_s: 1  # here
""",
        "router.connectors[0].reconnect_max_s",
        "the longest pause, 1.0 s, is below the first, 2.0 s",
        "not below reconnect_initial_s",
        "2",
    ),
    warning(
        "a listener open to other machines",
        "router:\n  id: A\n  listeners:\n  - host: 10.0.0.1  # here",
        "router.listeners[0].sasl",
        "10.0.0.1:5672 of router `A` is open to other machines: whoever reaches it may use it",
        "`sasl` without ANONYMOUS, loopback, or an address of a trusted network",
    ),
    warning(
        "a listener for other routers open to other machines, as told",
        "router:\n  id: A\n  listeners:\n  - {host: '::', role: inter-router, anonymous_routers: true}  # here",
        "router.listeners[0].sasl",
        ":::5672 of router `A` is open to other machines: whoever reaches it may join as a router, as `",
    ),
    warning(
        "a listener open to other machines, where groups say what strangers may do",
        "router:\n  id: A\n  listeners:\n  - host: 10.0.0.1  # here\n"
        "  vhosts: [{name: a, groups: [{name: x, users: [anonymous]}]}]",
        "router.listeners[0].sasl",
        "is open to other machines: whoever reaches it may do what groups let `anonymous` do",
    ),
    row(
        "a listener for other routers open to other machines",
        "router:\n  id: A\n  listeners:\n  - {host: '::', role: inter-router}  # here",
        "router.listeners[0].sasl",
        ":::5672 of router `A` is open to other machines: whoever reaches it may join as a router",
        "`sasl` without ANONYMOUS, loopback, or `anonymous_routers: true`",
    ),
)


def closed(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Findings but those about listeners that are open to other machines."""
    return tuple(finding for finding in findings if "is open to other machines" not in finding.message)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_misfit_has_file_line_key_and_what_is_nearest(case: Case, tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_text(case.text, encoding="utf-8")
    findings = check_file(file)
    # A case about anything else may well have a listener for other machines.
    assert_only(findings if "open to other machines" in case.found else closed(findings), case)


SOUND = {
    "port 0 never collides": "router: {id: A, listeners: [{port: 0}, {port: 0}, {port: 0, host: localhost}]}",
    "one port on two addresses": "router: {id: A, listeners: [{host: 127.0.0.1}, {host: 127.0.0.2}, {host: '::1'}]}",
    "all addresses of two machines": """
defaults: {listener: {host: 0.0.0.0, port: 7, role: inter-router}}
routers:
  A: {host: a, listeners: [{}]}
  B: {host: b, listeners: [{}], connectors: [{to: A}]}
""",
    "HTTP of two machines that say their hosts": """
defaults: {router: {http: {port: 9}}, inter_router_listener: {anonymous_routers: true}}
routers:
  A: {host: a, listeners: [{host: '::', port: 7, role: inter-router}]}
  B: {host: b, connectors: [{to: A}]}
""",
    "HTTP of two machines that listen at addresses of their own": """
defaults: {router: {http: {port: 9}}, inter_router_listener: {anonymous_routers: true}}
routers:
  A: {listeners: [{host: 10.0.0.1, port: 7, role: inter-router}]}
  B: {listeners: [{host: 10.0.0.2, port: 7, role: inter-router}], connectors: [{to: A}]}
""",
    "HTTP where the system chooses the port": """
defaults: {router: {http: {port: 0}}}
routers:
  A: {listeners: [{port: 7, role: inter-router}]}
  B: {connectors: [{to: A}]}
""",
    "a cost at the connector alone": """
routers:
  A: {listeners: [{port: 7, role: inter-router}]}
  B: {connectors: [{to: A, cost: 9}]}
""",
    "one cost at both ends": """
routers:
  A: {listeners: [{port: 7, role: inter-router, cost: 9}]}
  B: {connectors: [{port: 7, cost: 9}]}
""",
    "a port of a container that is published under another number": """
defaults: {inter_router_listener: {host: 0.0.0.0, anonymous_routers: true}}
routers:
  A: {listeners: [{port: 25672, role: inter-router}]}
  B: {connectors: [{to: A, host: gateway, port: 30672}]}
  C: {connectors: [{to: A, host: 127.0.0.1, port: 30672}]}
""",
    "an address that leads to the listener by another name": """
defaults: {inter_router_listener: {anonymous_routers: true}}
routers:
  A: {listeners: [{host: 10.0.0.1, port: 7, role: inter-router}]}
  B: {connectors: [{to: A, host: a.example.net}]}
  C: {connectors: [{to: A, host: localhost, port: 9}]}
""",
    "TLS that is optional": """
routers:
  A:
    tls: [{name: x, certificate: c}]
    listeners: [{port: 7, role: inter-router, tls: x, tls_mode: optional}]
  B: {connectors: [{to: A}]}
""",
    "users of neighbors, with ids and without": """
defaults: {inter_router_connector: {sasl: SCRAM-SHA-256, password_env: P}}
routers:
  A:
    listeners: [{port: 7, role: inter-router, sasl: [SCRAM-SHA-512, SCRAM-SHA-256], users_file: u}]
    neighbors: [{user: B}, {user: c, ids: [C]}, {user: d, ids: ['*']}]
  B: {connectors: [{to: A}]}
  C: {connectors: [{to: A, user: c}]}
  D: {connectors: [{to: A, user: d}]}
""",
    "one mesh, in the file and at a router": """
mesh: {name: here}
routers:
  A: {mesh: here, listeners: [{port: 7, role: inter-router}]}
  B: {connectors: [{to: A}]}
""",
    "a connector of a file of one router leads anywhere": "router: {id: A, connectors: [{host: far}, {port: 9}]}",
    "allowed prefixes of neighbors, with any separators": """
router:
  id: A
  listeners: [{port: 5, role: inter-router, allowed_prefixes: [partner, /partner/b, a.b]}]
  connectors: [{host: far, allowed_prefixes: [partner/]}]
""",
    "a prefix and a pattern of the same words": "router: {id: A, addresses: [{prefix: a}, {pattern: a}]}",
}


@pytest.mark.parametrize("text", SOUND.values(), ids=SOUND)
def test_nothing_is_found_where_nothing_is_wrong(text: str, tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_text(text, encoding="utf-8")
    assert closed(check_file(file)) == ()


def test_a_neighbor_outside_the_mesh_is_a_warning_and_so_are_parts_that_it_may_join(tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_text("routers: {A: {connectors: [{host: far}]}, B: {}}", encoding="utf-8")
    findings = check_file(file)
    assert [finding.key for finding in findings] == ["routers.A.connectors[0].port", "routers.B"]
    assert not has_errors(findings)


def test_routers_are_compared_only_when_each_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_text("routers: {A: {bad: 1}, B: {link_state: {hello_interval_s: 9}}, C: {}}", encoding="utf-8")
    assert [finding.key for finding in check_file(file)] == [
        "routers.A.bad",
        "routers.B.link_state.hello_max_age_s",
    ], "nothing about parts of the mesh"


def test_files_of_one_router_each_are_one_mesh(tmp_path: Path) -> None:
    texts = {
        "a.yaml": "router:\n  id: A\n  listeners: [{port: 7, role: inter-router}]\n",
        "b.yaml": "router:\n  id: A\n  connectors: [{port: 7}]\n",
        "c.yaml": "router:\n  id: C\n  listeners: [{port: 7}]\n  connectors: [{port: 7}]\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    a, b, c = (tmp_path / name for name in texts)
    duplicate, collision = check_files([a, b, c])
    assert (duplicate.file, duplicate.line, duplicate.key) == (str(b), 2, "router.id")
    assert duplicate.message == f"router id `A` is taken ({a}:2)"
    assert (collision.file, collision.line, collision.key) == (str(c), 3, "router.listeners[0].port")
    assert check_files([a]) == check_files([b]) == check_files([c]) == check_files([]) == ()


def findings_of(mesh: MeshSettings) -> dict[str, Finding]:
    return {finding.key: finding for finding in check_mesh(mesh)}


def test_a_mesh_made_by_a_program_is_checked_without_lines() -> None:
    mesh = line(2)
    assert check_mesh(mesh) == ()
    first, second = mesh.routers.values()
    broken = MeshSettings(
        routers={
            "R1": attrs.evolve(first, id="R 1", listeners=(ListenerSettings(port=70000, cost=0),)),
            "R2": attrs.evolve(
                second,
                id="R 1",
                connectors=(ConnectorSettings(to="R1", cost=65536),),
                link_state=LinkStateSettings(hello_interval_s=-1),
                addresses=(AddressSettings(),),
            ),
        }
    )
    found = findings_of(broken)
    assert {finding.line for finding in found.values()} == {None}
    assert set(found) == {
        "routers.R1.id",
        "routers.R1.listeners[0].port",
        "routers.R1.listeners[0].cost",
        "routers.R2",
        "routers.R2.id",
        "routers.R2.connectors[0].cost",
        "routers.R2.connectors[0].to",
        "routers.R2.link_state.hello_interval_s",
        "routers.R2.addresses[0]",
    }
    messages = {finding.message for finding in check_mesh(broken) if finding.key == "routers.R2.id"}
    assert "router id `R 1` is taken" in messages
    assert "id `R 1` is not the key `R2`" in messages


def test_every_part_of_a_mesh_is_named() -> None:
    routers = {key: RouterSettings(id=key) for key in "ABC"}
    routers["D"] = RouterSettings(id="D", listeners=(ListenerSettings(port=7, role=Role.INTER_ROUTER),))
    routers["E"] = RouterSettings(id="E", connectors=(ConnectorSettings(to="D", port=7),))
    found = findings_of(MeshSettings(routers=routers))
    assert list(found) == ["routers.A", "routers.B", "routers.C"]
    assert found["routers.A"].message == "the mesh is in 4 parts: no path from {A} to {D, E} and {B} and {C}"
    assert {finding.severity for finding in found.values()} == {Severity.ERROR}


MANY_FAULTS = """
defaults: {listener: {host: 127.0.0.1}}
routers:
  alone:
    listeners: [{port: 5}, {port: 6}]
  twice:
    listeners: [{port: 7}, {port: 7}]
  hasty:
    link_state: {hello_interval_s: 5}
  unread:
    lsteners: [{port: 8, role: inter-router}]
  other:
    id: else
  neighbor:
    connectors: [{to: unread}]
  knows:
    listeners: [{port: 5}]
    connectors: [{host: far}]
"""


@pytest.mark.parametrize(
    ("router_id", "keys"),
    [
        ("alone", []),
        ("twice", ["routers.twice.listeners[1].port"]),
        ("hasty", ["routers.hasty.link_state.hello_max_age_s"]),
        ("unread", ["routers.unread.lsteners"]),
        ("other", ["routers.other.id"]),
        ("neighbor", ["routers.unread.lsteners"]),
        ("knows", []),
    ],
)
def test_a_router_is_stopped_by_its_own_errors_and_not_by_those_of_others(
    router_id: str, keys: list[str], tmp_path: Path
) -> None:
    file = tmp_path / FILE
    file.write_text(MANY_FAULTS, encoding="utf-8")
    if not keys:
        router, findings = check_router(file, router_id)
        assert router.id == router_id
        assert findings == check_file(file)
        assert has_errors(findings)
        return
    with pytest.raises(SettingsError) as caught:
        check_router(file, router_id)
    assert [finding.key for finding in caught.value.findings] == keys
    assert {finding.file for finding in caught.value.findings} == {str(file)}


def test_what_only_a_comparison_shows_stops_no_router(tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_text("routers: {A: {listeners: [{port: 5}]}, B: {listeners: [{port: 5}]}}", encoding="utf-8")
    for router_id in "AB":
        _, findings = check_router(file, router_id)
        assert [finding.key for finding in findings] == ["routers.B", "routers.B.listeners[0].port"]


@pytest.mark.parametrize(
    ("text", "router_id", "key"),
    [
        ("mesh: {nme: x}\nrouters: {A: {}}", "A", "mesh.nme"),
        ("defaults: {listener: {prt: 5}}\nrouters: {A: {}}", "A", "defaults.listener.prt"),
        ("routers: {A: {}, B: {}}", "C", "routers"),
        ("routers: {A: {}, B: {}}", None, "routers"),
        ("routers: {}", "A", "routers"),
        ("router: {id: A B}", None, "router.id"),
        ("router: {id: A, tls: {}}", "A", "router.tls"),
        ("a: [", "A", ""),
    ],
)
def test_what_all_routers_share_stops_each(text: str, router_id: str | None, key: str, tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        check_router(file, router_id)
    assert [finding.key for finding in caught.value.findings] == [key]


@pytest.mark.parametrize(("name", "is_right"), [("all", False), ("all2", True), ("x" * 255, True), ("x" * 256, False)])
def test_a_router_id_is_one_that_neighbors_take(name: str, is_right: bool) -> None:
    found = findings_of(MeshSettings(routers={name: RouterSettings(id=name)}))
    shown = name if len(name) < 256 else f"{name[:57]}..."
    assert (f"routers.{shown}.id" not in found) == is_right


@pytest.mark.parametrize(
    ("connectors", "is_told"), [("[{to: A}]", True), ("[{to: A}, {}]", False), ("[{to: A, host: h}]", False)]
)
def test_a_default_host_that_no_connector_goes_by_is_a_warning(tmp_path: Path, connectors: str, is_told: bool) -> None:
    file = tmp_path / "mesh.yaml"
    file.write_text(
        f"""
defaults: {{inter_router_connector: {{host: localhost}}}}
routers:
  A: {{listeners: [{{port: 2, role: inter-router}}]}}
  B: {{connectors: {connectors}}}
""",
        encoding="utf-8",
    )
    said = [each for each in check_file(file) if each.key == "defaults.inter_router_connector.host"]
    assert bool(said) is is_told
    for each in said:
        assert (each.severity, each.line) == (Severity.WARNING, 2)
        assert "no connector goes by this `host`" in each.message


@pytest.mark.parametrize(
    ("connector", "severity"),
    [("{to: B}", Severity.ERROR), ("{to: B, host: proxy}", Severity.WARNING), ("{host: b, port: 7}", Severity.ERROR)],
)
def test_tls_at_one_end_is_a_warning_where_a_proxy_may_be_between(
    tmp_path: Path, connector: str, severity: Severity
) -> None:
    file = tmp_path / FILE
    file.write_text(
        f"""
routers:
  A: {{host: a, connectors: [{connector}]}}
  B:
    host: b
    tls: [{{name: x, certificate: c}}]
    listeners: [{{host: 0.0.0.0, port: 7, role: inter-router, tls: x}}]
""",
        encoding="utf-8",
    )
    (said,) = [each for each in check_file(file) if "requires TLS" in each.message]
    assert (said.key, said.severity) == ("routers.A.connectors[0].tls", severity)


GUESSES = {
    "does not offer SCRAM-SHA-256": """
routers:
  A: {listeners: [{host: 0.0.0.0, port: 7, role: inter-router, anonymous_routers: true}]}
  B: {connectors: [{to: A, host: a}, {host: far, port: 7, sasl: SCRAM-SHA-256, user: b, password_env: P}]}
""",
    "of router `A` (where this connector seems to lead) has the role `normal`": """
routers:
  A: {listeners: [{host: 0.0.0.0, port: 7}, {port: 8, role: inter-router}]}
  B: {connectors: [{to: A}, {host: far, port: 7}]}
""",
    "requires a certificate, and TLS profile `y` of this connector has none": """
routers:
  A:
    host: a
    tls: [{name: x, certificate: c, ca: a}]
    listeners:
    - {host: 0.0.0.0, port: 7, role: inter-router, tls: x, client_certificates: required, anonymous_routers: true}
  B: {tls: [{name: y}, {name: z, certificate: c}], connectors: [{to: A, tls: z}, {to: A, host: proxy, tls: y}]}
""",
    "router `B` is of mesh `here`, and router `A` of mesh `there`": """
mesh: {name: here}
routers:
  A: {mesh: there, listeners: [{host: 0.0.0.0, port: 7, role: inter-router, anonymous_routers: true}]}
  C: {mesh: there, connectors: [{to: A, host: a}]}
  B: {mesh: here, connectors: [{host: c, port: 8}, {host: far, port: 7}]}
""",
    "router `B` connects to itself": """
routers:
  B:
    listeners: [{host: 0.0.0.0, port: 7, role: inter-router, anonymous_routers: true}]
    connectors: [{host: c, port: 8}, {host: far, port: 7}]
  C: {connectors: [{to: B, host: b}]}
""",
}
"""Files by what is said of the second connector of B, which may well lead elsewhere, or by way of something between."""


@pytest.mark.parametrize(("message", "text"), GUESSES.items())
def test_what_rests_on_a_guess_where_a_connector_leads_is_a_warning(message: str, text: str, tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_text(text, encoding="utf-8")
    findings = check_file(file)
    said = [each for each in findings if message in each.message]
    assert [each.key.partition("]")[0] for each in said] == ["routers.B.connectors[1"]
    assert not has_errors(findings), findings


def test_a_router_that_connects_to_itself_by_loopback_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_text(
        """
routers:
  A: {listeners: [{host: 0.0.0.0, port: 7, role: inter-router, anonymous_routers: true}], connectors: [{port: 7}]}
  B: {connectors: [{to: A, host: a}]}
""",
        encoding="utf-8",
    )
    said = [each for each in check_file(file) if each.severity is Severity.ERROR]
    assert [each.message for each in said] == ["router `A` connects to itself"]


@pytest.mark.parametrize(
    ("connectors", "told"),
    [
        ("{host: far, port: 7}, {host: far, port: 7}", [True]),
        ("{name: n, host: far, port: 7}, {host: far, port: 7}, {host: far, port: 7}", [False, True]),
        ("{name: 'far:7', host: far, port: 7}, {host: far, port: 7}", [True]),
        ("{name: n, host: far, port: 7}, {host: far, port: 7}", [False]),
        ("{host: localhost, port: 7}, {host: 127.0.0.1, port: 7}", [False]),
        ("{to: B}, {to: C}", []),
    ],
)
def test_connectors_that_are_called_alike_are_told_of(tmp_path: Path, connectors: str, told: list[bool]) -> None:
    file = tmp_path / FILE
    file.write_text(f"router: {{id: A, connectors: [{connectors}]}}", encoding="utf-8")
    found = [each.message for each in check_file(file) if "a second connector to" in each.message]
    assert ["both are called far:7 in the log" in message for message in found] == told


def test_connectors_to_unknown_routers_are_not_taken_for_one_address(tmp_path: Path) -> None:
    file = tmp_path / FILE
    file.write_text(
        "routers:\n  A: {listeners: [{port: 7, role: inter-router}]}\n"
        "  B: {connectors: [{to: AA}, {to: BB}, {host: 127.0.0.1, port: 5672}]}\n",
        encoding="utf-8",
    )
    found = [(it.key, it.message, it.nearest) for it in check_file(file)]
    assert found == [
        ("routers.B.connectors[0].to", "no router `AA` in this file", "A"),
        ("routers.B.connectors[1].to", "no router `BB` in this file", None),
    ]


def test_the_nearest_router_to_an_unknown_one_is_not_that_which_connects(tmp_path: Path) -> None:
    file = tmp_path / FILE
    listening = "{listeners: [{port: 7, role: inter-router, host: 127.0.0.%d}]}"
    routers = [f"  {key}: {listening % number}" for number, key in enumerate(("edge1", "edge3", "hub5"), 1)]
    routers += ["  edge2: {connectors: [{to: edge02}, {to: edge1}]}", "  hub6: {connectors: [{to: edge02}]}"]
    file.write_text("\n".join(["routers:", *routers]), encoding="utf-8")
    found = {it.key: it.nearest for it in check_file(file) if "no router" in it.message}
    assert found["routers.hub6.connectors[0].to"] == "edge2"
    assert found["routers.edge2.connectors[0].to"] in ("edge1", "edge3")
