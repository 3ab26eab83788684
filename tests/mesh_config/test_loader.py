"""Files to settings."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import pytest

from mesh_config.check import check_file
from mesh_config.findings import SettingsError
from mesh_config.loader import MOST_BYTES, load_mesh, load_router, parse_document, read_document
from mesh_config.models import ListenerSettings, Role, Treatment
from tests.mesh_config.cases import FILE, MARK, Case, assert_only, row

LISTENING = "  B:\n    listeners: [{port: 7, role: inter-router}]\n"

CASES = (
    row(
        "unknown key of a file", "router: {id: A}\nruter: {}  # here", "ruter", "unknown key `ruter`", nearest="router"
    ),
    row("a router beside routers", "router: {id: A}\nrouters: {}  # here", "routers", "beside `router`", "one of them"),
    row(
        "a whole mesh below router",
        "mesh: {name: x}\nrouter:  # here\n  A:\n    listeners: [{port: 0}]",
        "router",
        "`router` beside `mesh`, of a whole mesh",
        "`routers`, with each router below its id",
        "routers",
    ),
    row("no routers", "mesh: {name: x}  # here", "routers", "`routers` is missing", "a mapping"),
    row("routers without a router", "routers: {}  # here", "routers", "no router", "at least one"),
    row("a list as a file", "- a  # here", "", "a list", "`router`"),
    row("unknown key of the mesh", "mesh: {nme: x}  # here\nrouters: {A: {}}", "mesh.nme", "unknown", nearest="name"),
    row("a number as the mesh's name", "mesh: {name: 5}  # here\nrouters: {A: {}}", "mesh.name", "`5`", "text"),
    row(
        "unknown key of a router",
        "router:\n  id: A\n  listener: []  # here",
        "router.listener",
        "unknown key `listener`",
        "",
        "listeners",
    ),
    row(
        "unknown key with nothing like it",
        "router:\n  id: A\n  zzz: []  # here",
        "router.zzz",
        "unknown key `zzz`",
        "one of id, host, site",
    ),
    row("an alias for a router", "routers:\n  A: &a {}\n  B: *a  # here", "routers.B", "an alias", "`defaults`"),
    row("an alias for a word", "router:\n  id: &a A\n  site: *a  # here", "router.site", "an alias", "`defaults`"),
    row("a router without id", "router:  # here\n", "router", "nothing", "a mapping"),
    row("a required setting missing", "router:  # here\n  site: x", "router.id", "`id` is missing", "a word"),
    row(
        "a port out of range",
        "router:\n  id: A\n  listeners:\n  - port: 70000  # here",
        "router.listeners[0].port",
        "70000 is out of range",
        "a whole number from 0 to 65535",
        "65535",
    ),
    row(
        "a port beyond any float",
        f"router:\n  id: A\n  listeners:\n  - port: {'9' * 400}  # here",
        "router.listeners[0].port",
        "99999999999999999999... is out of range",
        "a whole number from 0 to 65535",
        "65535",
    ),
    row(
        "a time beyond any float",
        f"router:\n  id: A\n  shutdown_s: {'9' * 400}  # here",
        "router.shutdown_s",
        "the number `99999999999999999999...`",
        "a number from 0 to 3600 (seconds)",
    ),
    row(
        "a connector's port of zero",
        "router:\n  id: A\n  connectors:\n  - {port: 0}  # here",
        "router.connectors[0].port",
        "0 is out of range",
        "from 1 to 65535",
        "1",
    ),
    row(
        "a cost out of range",
        "router:\n  id: A\n  connectors:\n  - {port: 5, cost: 0}  # here",
        "router.connectors[0].cost",
        "0 is out of range",
        "from 1 to 65535",
        "1",
    ),
    row(
        "a time out of range",
        "router:\n  id: A\n  link_state:\n    hello_interval_s: 0  # here",
        "router.link_state.hello_interval_s",
        "out of range",
        "a number from 0.01 to 3600 (seconds)",
        "0.01",
    ),
    row(
        "not a number", "router:\n  id: A\n  shutdown_s: .nan  # here", "router.shutdown_s", "out of range", "0 to 3600"
    ),
    row(
        "a number in quotes",
        "router:\n  id: A\n  listeners:\n  - port: '5672'  # here",
        "router.listeners[0].port",
        'the text "5672"',
        "a whole number",
        "5672",
    ),
    row(
        "true as a number",
        "router:\n  id: A\n  listeners:\n  - port: true  # here",
        "router.listeners[0].port",
        "`true`",
        "a whole number",
    ),
    row(
        "a fraction as a whole number",
        "router:\n  id: A\n  listeners:\n  - port: 5.5  # here",
        "router.listeners[0].port",
        "the number `5.5`",
        "a whole number",
    ),
    row(
        "yes for true",
        "router:\n  id: A\n  listeners:\n  - vhost_prefix: yes  # here",
        "router.listeners[0].vhost_prefix",
        'the text "yes"',
        "`true` or `false`",
        "true",
    ),
    row("a number as text", "router:\n  id: A\n  site: 5  # here", "router.site", "the number `5`", "a name", '"5"'),
    row(
        "an unknown role",
        "router:\n  id: A\n  listeners:\n  - role: inter_router  # here",
        "router.listeners[0].role",
        'the text "inter_router"',
        "one of `normal`, `inter-router`",
        "inter-router",
    ),
    row(
        "an unknown treatment",
        "router:\n  id: A\n  addresses:\n  - {prefix: a, treatment: multcast}  # here",
        "router.addresses[0].treatment",
        "multcast",
        "`multicast`, `closest`, `balanced`",
        "multicast",
    ),
    row(
        "TLS of a listener, which is the name of a profile",
        "router:\n  id: A\n  listeners:\n  - tls: {certificate: c}  # here",
        "router.listeners[0].tls",
        "a mapping",
        "the name of a profile of the router's `tls`",
    ),
    row(
        "a password in the settings, which belongs into a file",
        "router:\n  id: A\n  connectors:\n  - password: hunter2  # here",
        "router.connectors[0].password",
        "unknown key `password`",
        nearest="password_env",
    ),
    row(
        "SASL mechanisms, which are called sasl",
        "router:\n  id: A\n  listeners:\n  - sasl_mechanisms: [EXTERNAL]  # here",
        "router.listeners[0].sasl_mechanisms",
        "unknown key `sasl_mechanisms`",
        "",
        "sasl",
    ),
    row(
        "a port alone where settings of a socket belong",
        "router:\n  id: A\n  http: 9672  # here",
        "router.http",
        "the number `9672`",
        "a mapping",
        "{port: 9672}",
    ),
    row(
        "a list of one where a word belongs",
        "router:\n  id: A\n  connectors:\n  - {host: a, port: 1, sasl: [EXTERNAL]}  # here",
        "router.connectors[0].sasl",
        "a list",
        "one of `ANONYMOUS`",
        "EXTERNAL",
    ),
    row(
        "a word where a list of them belongs",
        "router:\n  id: A\n  listeners:\n  - sasl: external  # here",
        "router.listeners[0].sasl",
        'the text "external"',
        "a list",
        "[EXTERNAL]",
    ),
    row("a number that is no port", "router:\n  id: A\n  http: 99999  # here", "router.http", "`99999`", "a mapping"),
    row("a mapping as a list", "router:\n  id: A\n  listeners: {}  # here", "router.listeners", "a mapping", "a list"),
    row(
        "a list as a mapping", "router:\n  id: A\n  forwarding: []  # here", "router.forwarding", "a list", "a mapping"
    ),
    row("nothing as a mapping", "router:\n  id: A\n  forwarding:  # here", "router.forwarding", "nothing", "a mapping"),
    row(
        "an item that is no mapping", "router:\n  id: A\n  listeners:\n  - 0.5  # here", "router.listeners[0]", "`0.5`"
    ),
    row(
        "a number that is too long to be read",
        f"router:\n  id: A\n  listeners:\n  - port: {5000 * '9'}  # here",
        "router.listeners[0].port",
        "a number of 5,000 characters",
        "one in its range",
    ),
    row("an id with a blank", "router:\n  id: A B  # here", "router.id", '"A B"', "without blanks"),
    row("an id with a slash", "router:\n  id: A/B  # here", "router.id", '"A/B"', "`/`"),
    row(
        "an id with a control character",
        'router:\n  id: "A\\u0085"  # here',
        "router.id",
        "U+0085 (a control",
        "visible",
    ),
    row(
        "an id that turns the direction",
        'router:\n  id: "A\\u202eB"  # here',
        "router.id",
        'the text "A\\u202eB" has the character U+202E (right-to-left override), which it may not have',
        "visible",
    ),
    row("an id with a tag", 'router:\n  id: "A\\U000e0041"  # here', "router.id", "U+E0041 (tag latin", "visible"),
    row("an id of no width", 'router:\n  id: "A\\u200b"  # here', "router.id", "U+200B (zero width space)", "visible"),
    row("an empty id", "router:\n  id: ''  # here", "router.id", 'the text "" is empty', "a word of 1 to 255"),
    row(
        "an id of 256 characters", f"router:\n  id: {'x' * 256}  # here", "router.id", "has 256 characters", "1 to 255"
    ),
    row(
        "the word for every router as an id",
        "routers:\n  all: {}  # here",
        "routers.all",
        'the text "all" means every router, so none can have it for an id',
        "not `all`",
    ),
    row(
        "a listener's name of two lines",
        'router:\n  id: A\n  listeners: [{name: "a\\nb"}]  # here',
        "router.listeners[0].name",
        'the text "a\\nb" has the character U+000A',
        "a name of visible characters",
    ),
    row(
        "a site with a blank first",
        "router:\n  id: A\n  site: ' x'  # here",
        "router.site",
        "begins or ends with a blank",
    ),
    row("an empty name of a mesh", "mesh: {name: ''}  # here\nrouters: {A: {}}", "mesh.name", "is empty", "a name"),
    row(
        "digits of full width",
        "router:\n  id: A\n  listeners:\n  - port: ５６７２  # here",  # noqa: RUF001
        "router.listeners[0].port",
        "the text",
        "a whole number",
        "5672",
    ),
    row(
        "a number in quotes that is too large",
        "router:\n  id: A\n  listeners:\n  - port: '99999'  # here",
        "router.listeners[0].port",
        'the text "99999"',
        "a whole number",
        "65535",
    ),
    row("a number for a host", "router:\n  id: A\n  host: 127.1  # here", "router.host", "`127.1`", "a host name"),
    row(
        "an older version of TLS",
        "router:\n  id: A\n  tls:\n  - {name: x, min_version: TLSv1.1}  # here",
        "router.tls[0].min_version",
        "TLSv1.1",
        "one of `TLSv1.2`, `TLSv1.3`",
        "TLSv1.2",
    ),
    row("a bad id as a key", "routers:\n  A B: {}  # here", 'routers."A B"', '"A B"', "without blanks"),
    row("a host with a blank", "router:\n  id: A\n  host: a b  # here", "router.host", '"a b"', "a host name"),
    row("an id that is not the key", "routers:\n  A:\n    id: B  # here", "routers.A.id", "id `B` is not the key `A`"),
    row(
        "an unknown router to connect to",
        f"routers:\n{LISTENING}  A:\n    connectors: [{{to: b}}]  # here",
        "routers.A.connectors[0].to",
        "no router `b` in this file",
        "one of `B`, or also",
        "B",
    ),
    row(
        "a router to connect to in a file of one",
        "router:\n  id: A\n  connectors:\n  - to: B  # here",
        "router.connectors[0].to",
        "no router `B` in this file",
        "`host` and `port`",
    ),
    row(
        "a target that does not listen for routers",
        "routers:\n  B: {listeners: [{port: 5}]}\n  A:\n    connectors: [{to: B}]  # here",
        "routers.A.connectors[0].to",
        "no listener for other routers",
        "`{port: 25672, role: inter-router}`",
    ),
    row(
        "a target whose port nobody knows",
        "routers:\n  B: {listeners: [{port: 0, role: inter-router}]}\n  A:\n    connectors: [{to: B}]  # here",
        "routers.A.connectors[0].to",
        "the system chooses the port",
        "a fixed address",
    ),
    row(
        "a target of all addresses and no host",
        "routers:\n  B: {listeners: [{host: '::', role: inter-router}]}\n  A:\n    connectors: [{to: B}]  # here",
        "routers.A.connectors[0].to",
        "says no `host`",
        "a fixed address",
    ),
    row(
        "unknown key in defaults",
        "defaults:\n  lisener: {}  # here\nrouters: {A: {}}",
        "defaults.lisener",
        "unknown key",
        nearest="listener",
    ),
    row(
        "a setting that has no default for all",
        "defaults:\n  router: {id: X}  # here\nrouters: {A: {}, B: {}}",
        "defaults.router.id",
        "unknown key",
        "it at each router itself",
    ),
    row(
        "treatments of all routers among their defaults",
        "defaults:\n  router: {addresses: []}  # here\nrouters: {A: {}}",
        "defaults.router.addresses",
        "unknown key `addresses`",
        "it at the top of the file",
    ),
    row(
        "connectors among the defaults of routers",
        "defaults:\n  router: {connectors: []}  # here\nrouters: {A: {}}",
        "defaults.router.connectors",
        "unknown key",
        "it at each router itself",
    ),
    row(
        "a name among the defaults of listeners",
        "defaults:\n  listener: {name: x}  # here\nrouters: {A: {}}",
        "defaults.listener.name",
        "unknown key",
        "it at each listener itself",
    ),
    row(
        "a setting of routers at the top of a mesh",
        "forwarding: {}  # here\nrouters: {A: {}}",
        "forwarding",
        "unknown key",
        "it below `defaults.router`, or at a router",
    ),
    row(
        "listeners at the top of a mesh",
        "listeners: []  # here\nrouters: {A: {}}",
        "listeners",
        "unknown key",
        "it at each router",
    ),
    row(
        "a setting of a router at the top of its file",
        "router: {id: A}\nlink_state: {}  # here",
        "link_state",
        "unknown key",
        "it below `router`",
    ),
    row(
        "a timer of the routing protocol at the router itself",
        "router:\n  id: A\n  hello_max_age_s: 3  # here",
        "router.hello_max_age_s",
        "unknown key",
        "it below `link_state`",
    ),
    row(
        "a file of users at the router itself",
        "router:\n  id: A\n  users_file: u  # here",
        "router.users_file",
        "unknown key",
        "it below `listeners` or `http`",
    ),
    row(
        "a setting of connectors at a listener",
        "router:\n  id: A\n  listeners:\n  - verify_host: true  # here",
        "router.listeners[0].verify_host",
        "unknown key",
        "it below `connectors` of the router",
    ),
    row(
        "a setting of the router at a listener",
        "router:\n  id: A\n  listeners:\n  - site: x  # here",
        "router.listeners[0].site",
        "unknown key",
        "it at the router itself",
    ),
    row(
        "a file of users at a connector",
        "router:\n  id: A\n  connectors:\n  - users_file: u  # here",
        "router.connectors[0].users_file",
        "unknown key",
        "it below `listeners` or `http` of the router",
    ),
    row(
        "a port at the router itself",
        "router:\n  id: A\n  port: 5672  # here",
        "router.port",
        "unknown key",
        "it below `listeners`, `connectors` or `http`",
    ),
    row(
        "a setting of connectors among the defaults of listeners",
        "defaults:\n  listener: {verify_host: true}  # here\nrouters: {A: {}}",
        "defaults.listener.verify_host",
        "unknown key",
        "it below `connector`",
    ),
    row(
        "a port by its name",
        "router:\n  id: A\n  listeners:\n  - port: amqps  # here",
        "router.listeners[0].port",
        'the text "amqps"',
        "a whole number from 0 to 65535",
        "5671",
    ),
    row(
        "a level as the log",
        "router:\n  id: A\n  log: debug  # here",
        "router.log",
        'the text "debug"',
        "a mapping",
        "{level: debug}",
    ),
    row(
        "the form of lines as the log",
        "router:\n  id: A\n  log: json  # here",
        "router.log",
        'the text "json"',
        "a mapping",
        "{format: json}",
    ),
    row(
        "a listener that is no list",
        "router:\n  id: A\n  listeners: {port: 5672, host: 10.0.0.1}  # here",
        "router.listeners",
        "a mapping",
        "a list",
        '[{port: 5672, host: "10.0.0.1"}]',
    ),
    row(
        "a listener that is no list and not right",
        "router:\n  id: A\n  listeners: {prt: 5672}  # here",
        "router.listeners",
        "a mapping",
        "a list",
    ),
    row(
        "routers as a list",
        "mesh: {name: x}\nrouters: [{id: A}]  # here",
        "routers",
        "a list",
        "a mapping, with each router below its id",
    ),
    *(
        row(
            f"a host with its port, {value}",
            f"router:\n  id: A\n  connectors:\n  - host: '{value}'  # here",
            "router.connectors[0].host",
            "is a host and a port",
            "only the host",
            host,
        )
        for value, host in (("10.0.0.1:25672", "10.0.0.1"), ("broker:5672", "broker"), ("[::1]:5672", "::1"))
    ),
    row(
        "a size with its unit",
        "router:\n  id: A\n  forwarding:\n    process_bytes: 1GiB  # here",
        "router.forwarding.process_bytes",
        'the text "1GiB"',
        "from 4194304 to 1099511627776 (bytes)",
        "1073741824",
    ),
    row(
        "a size that is no whole number of bytes",
        "router:\n  id: A\n  forwarding:\n    process_bytes: 4194304.5B  # here",
        "router.forwarding.process_bytes",
        'the text "4194304.5B"',
        "(bytes)",
    ),
    row(
        "a time with its unit",
        "router:\n  id: A\n  shutdown_s: 1.5 min  # here",
        "router.shutdown_s",
        'the text "1.5 min"',
        "(seconds)",
        "90",
    ),
    row(
        "a time with its unit that is out of range",
        "router:\n  id: A\n  shutdown_s: 2d  # here",
        "router.shutdown_s",
        'the text "2d"',
        "from 0 to 3600 (seconds)",
        "3600",
    ),
    row(
        "a bad default, once and not at each router",
        "defaults:\n  router: {shutdown_s: -1}  # here\nrouters: {A: {}, B: {}}",
        "defaults.router.shutdown_s",
        "out of range",
        nearest="0",
    ),
    row(
        "a bad default that nobody uses",
        "defaults:\n  connector: {cost: 0}  # here\nrouters: {A: {}}",
        "defaults.connector.cost",
        "out of range",
        nearest="1",
    ),
    row(
        "a bad mesh-wide address, once",
        "addresses:\n- {prefix: a, treatment: x}  # here\nrouters: {A: {}, B: {}}",
        "addresses[0].treatment",
        "x",
        "one of",
    ),
    row("addresses that are no list", "addresses: {}  # here\nrouters: {A: {}}", "addresses", "a mapping", "a list"),
    row("a duplicate router", "routers:\n  A: {}\n  A: {}  # here", "routers.A", "given twice, first in line 2"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_fault_has_file_line_key_and_what_is_nearest(case: Case) -> None:
    assert_only(parse_document(case.text, FILE).findings, case)


def test_all_faults_of_a_file_are_told_at_once_in_the_order_of_lines() -> None:
    text = "".join(
        f"{line}\n"
        for line in (
            "mesh: {nam: x}  # here",
            "defaults:",
            "  listener: {prt: 5}  # here",
            "routers:",
            "  A:",
            "    sit: x  # here",
            "    listeners:",
            "    - {port: -1, role: x}  # here",
            "    connectors:",
            "    - {to: Z}  # here",
            "  A: {}  # here",
        )
    )
    lines = [number for number, line in enumerate(text.splitlines(), 1) if line.endswith(MARK)]
    findings = parse_document(text, FILE).findings
    assert sorted({finding.line for finding in findings if finding.line}) == lines
    assert [finding.line for finding in findings] == sorted(finding.line or 0 for finding in findings)
    assert len(findings) == len(lines) + 1, "port and role are in one line"


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / FILE
    file.write_text(text, encoding="utf-8")
    return file


def test_defaults_give_way_to_those_of_the_role_and_these_to_the_router(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        """
defaults:
  router: {site: s, link_state: {hello_interval_s: 2, hello_max_age_s: 9}}
  listener: {cost: 2, max_frame_bytes: 1024}
  inter_router_listener: {cost: 3}
routers:
  A:
    link_state: {hello_max_age_s: 7}
    listeners:
      - {port: 1}
      - {port: 2, role: inter-router}
      - {port: 3, role: inter-router, cost: 4}
""",
    )
    router = load_router(file)
    assert router.site == "s"
    assert (router.link_state.hello_interval_s, router.link_state.hello_max_age_s) == (2.0, 7.0)
    assert router.listeners == (
        ListenerSettings(port=1, cost=2, max_frame_bytes=1024),
        ListenerSettings(port=2, cost=3, max_frame_bytes=1024, role=Role.INTER_ROUTER),
        ListenerSettings(port=3, cost=4, max_frame_bytes=1024, role=Role.INTER_ROUTER),
    )


def test_a_routers_treatment_goes_before_the_meshs_of_the_same_words(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        """
addresses:
  - {prefix: a/b, treatment: multicast}
  - {pattern: a/b, treatment: closest}
routers:
  A: {addresses: [{prefix: a.b, treatment: closest}, {prefix: c}]}
  B: {}
""",
    )
    mesh = load_mesh(file)
    seen = {
        key: [(address.prefix or address.pattern, address.treatment) for address in router.addresses]
        for key, router in mesh.routers.items()
    }
    assert seen == {
        "A": [("a.b", Treatment.CLOSEST), ("c", Treatment.BALANCED), ("a/b", Treatment.CLOSEST)],
        "B": [("a/b", Treatment.MULTICAST), ("a/b", Treatment.CLOSEST)],
    }


def test_to_takes_host_and_port_of_the_first_listener_for_routers(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        """
defaults: {connector: {host: elsewhere, port: 9}}
routers:
  A:
    host: a.example
    listeners:
      - {port: 1}
      - {port: 2, host: 0.0.0.0, role: inter-router}
      - {port: 3, host: 10.0.0.1, role: inter-router}
  B:
    connectors: [{to: A}, {to: A, port: 3}, {to: A, host: proxy}, {to: Q, host: q, port: 4}, {}]
""",
    )
    connectors = load_router(file, "B").connectors
    assert [(connector.to, connector.host, connector.port) for connector in connectors] == [
        ("A", "a.example", 2),
        ("A", "a.example", 3),
        ("A", "proxy", 2),
        ("Q", "q", 4),
        (None, "elsewhere", 9),
    ]


def test_a_file_of_one_router_is_a_mesh_of_one(tmp_path: Path) -> None:
    file = write(tmp_path, "router: {id: A, listeners: [{port: 7}]}")
    mesh = load_mesh(file)
    assert (mesh.name, list(mesh.routers)) == ("A", ["A"])
    assert load_router(file) == load_router(file, "A") == mesh.routers["A"]
    assert mesh.routers["A"].listeners[0].port == 7


@pytest.mark.parametrize(
    ("router_id", "message", "nearest"),
    [
        ("alfa", "no router `alfa`", "alpha"),
        (None, "the file has several routers", None),
        ("zz", "no router `zz`", None),
    ],
)
def test_a_router_that_is_not_in_the_file_is_refused(
    tmp_path: Path, router_id: str | None, message: str, nearest: str | None
) -> None:
    file = write(tmp_path, "routers: {alpha: {}, beta: {}}")
    with pytest.raises(SettingsError) as caught:
        load_router(file, router_id)
    (finding,) = caught.value.findings
    assert (finding.message, finding.nearest, finding.file) == (message, nearest, str(file))
    assert "`alpha`, `beta`" in finding.expected


@pytest.mark.parametrize("text", ["router: {id: alpha}", "routers: {alpha: {}}"])
def test_another_router_than_the_only_one_of_a_file_is_refused_without_a_key(tmp_path: Path, text: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(SettingsError, match=f"{FILE}:1: error: no router `alfa`; expected one of `alpha`"):
        load_router(file, "alfa")


def test_loading_raises_with_everything_that_is_wrong(tmp_path: Path) -> None:
    file = write(tmp_path, "routers: {A: {x: 1, y: 2}}")
    with pytest.raises(SettingsError, match=f"{FILE}:1: error: routers.A.x: unknown key") as caught:
        load_mesh(file)
    assert len(caught.value.findings) == 2


@pytest.mark.parametrize(("name", "content"), [("absent.yaml", None), ("bytes.yaml", b"a: \xff")])
def test_a_file_that_cannot_be_read_is_a_finding(tmp_path: Path, name: str, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(SettingsError, match="cannot be read") as caught:
        load_mesh(tmp_path / name)
    assert caught.value.findings[0].file == str(tmp_path / name)


def test_a_byte_that_is_no_utf_8_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes("routers:\n  A:\n    site: café\n".encode("latin-1"))
    (finding,) = read_document(tmp_path / FILE).findings
    assert (finding.line, finding.message) == (3, "cannot be read: byte 0xe9 is not UTF-8")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(b"routers: {}\n", mtime=0), "it is compressed (gzip); expected the file that is in it"),
        (bz2.compress(b"routers: {}\n"), "it is compressed (bzip2); expected the file that is in it"),
        (lzma.compress(b"routers: {}\n"), "it is compressed (xz); expected the file that is in it"),
        ("routers: {}\n".encode("utf-16"), "it is UTF-16; expected a file saved as UTF-8"),
    ],
    ids=["gzip", "bzip2", "xz", "UTF-16"],
)
def test_a_file_that_is_no_text_is_told_by_what_it_is(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / FILE).write_bytes(content)
    (finding,) = read_document(tmp_path / FILE).findings
    assert str(finding) == f"{tmp_path / FILE}: error: cannot be read: {words}"


LONG = 5000 * "x"


@pytest.mark.parametrize(
    "text",
    [
        f"routers: {{A: {{connectors: [{{to: {LONG}}}]}}}}",
        f"routers: {{A: {{listeners: [{{port: 5672, sasl: {LONG}}}]}}}}",
        f"routers: {{A: {{vhosts: [{{name: v, hostnames: {LONG}, groups: []}}]}}}}",
        f"routers: {{A: {{? {LONG} : 1}}}}",
        f"routers: {{? {LONG} : {{id: B}}}}",
        f"routers: {{? '{LONG} {LONG}' : {{}}}}",
        f"routers: {{A: {{connectors: [{{to: C}}]}}, ? {LONG} : {{}}}}",
    ],
    ids=["router", "mechanism", "list", "key", "id", "blank", "another router"],
)
def test_a_long_text_is_shown_in_part_wherever_it_is_told_of(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text + "\n", encoding="utf-8")
    findings = check_file(tmp_path / FILE)
    assert findings
    for finding in findings:
        assert len(str(finding)) < len(str(tmp_path)) + 800
        assert finding.nearest is None or len(finding.nearest) < 256


def test_a_file_without_end_is_not_read_for_ever() -> None:
    with pytest.raises(SettingsError, match=f"/dev/zero: error: cannot be read: it has more than {MOST_BYTES} bytes"):
        load_mesh("/dev/zero")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_may_end_as_on_any_system(tmp_path: Path, end: str) -> None:
    file = tmp_path / "mesh.yaml"
    file.write_bytes(end.join(("routers:", "  A:", "    x: 1")).encode())
    with pytest.raises(SettingsError, match=r":3: error: routers\.A\.x"):
        load_mesh(file)
