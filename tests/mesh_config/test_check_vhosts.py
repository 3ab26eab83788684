"""Findings about virtual hosts, whose every value is right by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from mesh_config.check import check_file
from mesh_config.findings import has_errors
from tests.mesh_config.cases import FILE, Case, assert_only, row, warning

ROOT = Path(__file__).parents[2]
HEAD = "router:\n  id: A\n"
VHOST = "  vhosts:\n  - "
A = "{name: a, groups: [{name: x, users: [u]}]}"
ANON = "{name: a, groups: [{name: x, users: [anonymous]}]}"
GROUPS = f"{HEAD}{VHOST}name: a\n    groups:\n    - {{name: x, users: [u]}}\n"
GROUP = "    - {name: all, users: ['*']"


def case(rule: str, group: str, key: str, found: str, expected: str = "", nearest: str | None = None) -> Case:
    """One group of one virtual host, in whose only line the fault is."""
    text = f"{HEAD}  vhosts:\n  - name: shop\n    groups:\n{GROUP}{group}}}  # here"
    return row(rule, text, f"router.vhosts[0].groups[0].{key}", found, expected, nearest)


CASES = (
    case("one alone", ", sources: jobs", "sources", 'the text "jobs"', "a list", "[jobs]"),
    case("one with signs", ", sources: 'jobs/#'", "sources", 'the text "jobs/#"', "a list", '["jobs/#"]'),
    case("a word of YAML", ", sources: 'null'", "sources", 'the text "null"', "a list", '["null"]'),
    case("a pattern", ", sources: ['a#']", "sources[0]", "`#` within the word `a#`", "a word of its own", "a/#"),
    case("another's", ", targets: ['x.${user}*']", "targets[0]", "called `al`", nearest="x.${user}/#"),
    case("a variable", ", targets: ['${User}']", "targets[0]", "nothing stands for `${User}`", nearest="${user}"),
    case("management", ", targets: [$management]", "targets[0]", "no matter of", nearest="management: read"),
    case("a right", ", management: reed", "management", "reed", "one of `none`, `own`", "read"),
    case("a network", ", hosts: [10.0.0.1/8]", "hosts[0]", "within a network", nearest="10.0.0.0/8"),
    case("a host's name", ", hosts: [somewhere.example]", "hosts[0]", "is no address", "names are not looked up"),
    case("frames", ", max_frame_bytes: 100", "max_frame_bytes", "less than any peer may send", nearest="512"),
    case("a key", ", anonymous_sender: true", "anonymous_sender", "unknown key", nearest="anonymous_senders"),
    row(
        "one name for two virtual hosts",
        f"{HEAD}  vhosts:\n  - {{name: a, groups: [{{name: x, users: [u]}}]}}\n"
        "  - {name: b, hostnames: [A], groups: [{name: x, users: [u]}]}  # here",
        "router.vhosts[1].hostnames[0]",
        "`A` already means virtual host `a`",
    ),
    row(
        "a host name",
        f"{HEAD}  vhosts:\n  - {{name: a, hostnames: ['*x.org'], groups: [{{name: x, users: [u]}}]}}  # here",
        "router.vhosts[0].hostnames[0]",
        "`*x.org` is no host name",
        nearest="*.x.org",
    ),
    row(
        "a name that would be a scheme",
        f"{HEAD}  vhosts:\n  - {{name: 'amqp:', groups: [{{name: x, users: [u]}}]}}  # here",
        "router.vhosts[0].name",
        'the text "amqp:" has `:`, which it may not have',
        "no `$` or `_` first",
    ),
    row(
        "a user in two groups",
        f"{GROUPS}    - {{name: y, users: [u]}}  # here",
        "router.vhosts[0].groups[1].users[0]",
        "user `u` is in group `x` already",
    ),
    row(
        "two groups of a name",
        f"{GROUPS}    - {{name: x, users: [v]}}  # here",
        "router.vhosts[0].groups[1].name",
        "two groups are called `x`",
    ),
    row(
        "a listener's virtual host",
        f"{HEAD}  listeners: [{{vhost: aa}}]  # here\n{VHOST}{A}",
        "router.listeners[0].vhost",
        "no virtual host `aa`",
        "one of `a`",
        "a",
    ),
    row(
        "a virtual host of routers",
        f"{HEAD}  listeners: [{{vhost: shop, role: inter-router}}]  # here\n"
        "  vhosts:\n  - {name: shop, groups: [{name: x, users: [u]}]}",
        "router.listeners[0].vhost",
        "routers are in no virtual host",
    ),
    row(
        "a prefix beside virtual hosts",
        f"{HEAD}  listeners: [{{vhost_prefix: true}}]  # here\n{VHOST}{A}".replace("[u]", "[anonymous]"),
        "router.listeners[0].vhost_prefix",
        "has no effect",
        nearest="false",
    ),
    warning(
        "one word",
        f"{HEAD}  vhosts:\n  - {{name: a, groups: [{{name: x, users: [u], sources: ['*']}}]}}  # here",
        "router.vhosts[0].groups[0].sources[0]",
        "any one word",
        nearest="#",
    ),
    warning(
        "outside",
        f"{HEAD}  vhosts:\n  - {{name: a, groups: [{{name: x, users: [u], sources: ['_local/#']}}]}}  # here",
        "router.vhosts[0].groups[0].sources[0]",
        "outside every isolated virtual host",
    ),
    warning("nobody", f"{HEAD}  vhosts:\n  - name: a  # here", "router.vhosts[0].name", "nobody may connect"),
    warning(
        "a name that SASL writes in another form",
        f"{HEAD}  listeners: [{{sasl: [SCRAM-SHA-256], users_file: users}}]\n"
        "  vhosts:\n  - {name: a, groups: [{name: x, users: [bob, Jose\u0301, anonymous]}]}  # here",
        "router.vhosts[0].groups[0].users[1]",
        "SASL writes that name in another form",
        nearest="Jos\u00e9",
    ),
    warning(
        "no users",
        f"{HEAD}  vhosts:\n  - {{name: a, groups: [{{name: x}}]}}  # here",
        "router.vhosts[0].groups[0].name",
        "nobody is in group `x`",
    ),
    warning(
        "users without SASL",
        f"{HEAD}  listeners: [{{}}]\n{VHOST}{A}  # here",
        "router.vhosts[0].groups[0].users",
        "nobody can be in group `x`: no listener of router `A` for clients of virtual host `a`",
        "`sasl` with SCRAM-SHA-256",
    ),
    warning(
        "everybody without SASL",
        f"{HEAD}  listeners: [{{}}]\n{VHOST}{A}  # here".replace("[u]", "['*']"),
        "router.vhosts[0].groups[0].users",
        "nobody can be in group `x`",
        "or the user `anonymous`",
    ),
    warning(
        "management for everybody",
        f"{HEAD}  listeners: [{{}}]\n  vhosts:\n  - {{name: a, groups: [{{name: x, users: [anonymous],"
        " management: write}]}  # here",
        "router.vhosts[0].groups[0].management",
        "whoever reaches 127.0.0.1:5672 may change this router by management, and close connections, as `anonymous`",
        "`none`, `own`, or a group of users who say who they are",
    ),
    warning(
        "a look at everything for everybody",
        f"{HEAD}  listeners: [{{vhost: a}}, {{port: 1, vhost: b}}]\n  vhosts:\n  - {{name: b, groups: [{{name: y,"
        " users: [anonymous]}]}\n  - {name: a, groups: [{name: x, users: [u, anonymous], hosts: [10.0.0.1],"
        " management: read}]}  # here",
        "router.vhosts[1].groups[0].management",
        "whoever reaches 127.0.0.1:5672 from 10.0.0.1 may see clients, users and addresses of all by management",
    ),
    warning(
        "a router without virtual hosts",
        f"routers:\n  A: {{vhosts: [{ANON}], listeners: [{{port: 1, role: inter-router}}, {{port: 2}}]}}\n"
        "  B: {listeners: [{port: 3}], connectors: [{to: A}]}  # here",
        "routers.B",
        "router `B` has no `vhosts`, and router `A` has",
        "below `defaults.router`",
    ),
    warning(
        "other virtual hosts",
        f"routers:\n  A: {{vhosts: [{ANON}], listeners: [{{port: 1, role: inter-router}}, {{port: 2}}]}}\n"
        f"  B: {{vhosts: [{ANON.replace('a,', 'b,')}], listeners: [{{port: 3}}], connectors: [{{to: A}}]}}  # here",
        "routers.B.vhosts",
        "the `vhosts` of router `B` are not those of router `A`",
        "below `defaults.router`",
    ),
    warning(
        "no hosts",
        f"{HEAD}  vhosts:\n  - {{name: a, groups: [{{name: x, users: [u], hosts: []}}]}}  # here",
        "router.vhosts[0].groups[0].hosts",
        "from any host",
        nearest="*",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_what_is_wrong_is_told_with_its_line_and_what_would_be_right(case: Case, tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_text(case.text, encoding="utf-8")
    assert_only(check_file(path), case)


def test_an_outside_address_is_one_where_the_virtual_host_is_not_isolated(tmp_path: Path) -> None:
    path = tmp_path / FILE
    group = "{name: x, users: [u], sources: ['_local/#']}"
    path.write_text(f"{HEAD}  vhosts:\n  - {{name: a, isolated: false, groups: [{group}]}}", encoding="utf-8")
    assert not check_file(path)


SOUND = {
    "users and a listener that asks for them": f"{HEAD}  listeners: [{{}}, {{port: 1, sasl: [SCRAM-SHA-256],"
    f" users_file: users}}]\n{VHOST}{A}",
    "management for who says who it is": f"{HEAD}  listeners: [{{}}, {{port: 1, sasl: [SCRAM-SHA-256], vhost: a,"
    " users_file: users}]\n  vhosts:\n  - {name: a, groups: [{name: x, users: ['*'], management: write}]}",
    "a listener where nobody is anonymous": f"{HEAD}  listeners: [{{sasl: [SCRAM-SHA-256], users_file: users}}]\n"
    "  vhosts:\n  - {name: a, groups: [{name: x, users: [anonymous], management: write}]}",
    "a certificate's name in a form that SASL does not write": f"{HEAD}  tls: [{{name: t, certificate: c, ca: d}}]\n"
    "  listeners: [{sasl: [EXTERNAL], tls: t, client_certificates: required}]\n"
    "  vhosts:\n  - {name: a, groups: [{name: x, users: [Jose\u0301]}]}",
    "a router without clients": f"routers:\n  A: {{vhosts: [{ANON}], listeners: [{{port: 1, role: inter-router}},"
    " {port: 2}]}\n  B: {connectors: [{to: A}]}",
    "a listener on the network that lets nobody in without a name": f"{HEAD}  listeners: [{{host: '::',"
    f" sasl: [ANONYMOUS, SCRAM-SHA-256], users_file: users}}]\n{VHOST}{A}",
}


@pytest.mark.parametrize("text", SOUND.values(), ids=SOUND)
def test_virtual_hosts_that_are_right_are_not_complained_about(text: str, tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_text(text, encoding="utf-8")
    assert not check_file(path)


def test_the_defaults_of_a_mesh_may_have_virtual_hosts_for_all_its_routers(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_text(
        "defaults:\n  router:\n    vhosts:\n    - {name: a, groups: [{name: x, users: [u], sources: ['b#']}]}\n"
        "routers: {A: {}, B: {}}\n",
        encoding="utf-8",
    )
    (finding,) = [each for each in check_file(path) if "within the word" in each.message]
    assert finding.key == "defaults.router.vhosts[0].groups[0].sources[0]"
    assert has_errors([finding])


@pytest.mark.parametrize(
    ("key", "bad", "named"),
    [("vhosts", "{name: a, groups: [{name: g, usrs: [u]}]}", "vhost: a"), ("tls", "{name: a, ce: x}", "tls: a")],
)
def test_a_bad_default_is_told_and_not_that_each_listener_names_nothing(
    tmp_path: Path, key: str, bad: str, named: str
) -> None:
    path = tmp_path / FILE
    path.write_text(
        f"defaults: {{router: {{{key}: [{bad}]}}}}\nrouters:\n  A: {{listeners: [{{{named}}}]}}\n"
        f"  B: {{listeners: [{{{named}}}]}}\n",
        encoding="utf-8",
    )
    (finding,) = check_file(path)
    assert finding.key.startswith(f"defaults.router.{key}[0]")


def test_the_example_is_right_and_is_the_one_of_the_documentation() -> None:
    example = ROOT / "examples" / "policy.yaml"
    page = (ROOT / "docs" / "how_to" / "policy.md").read_text(encoding="utf-8")
    assert example.read_text(encoding="utf-8").partition("\n")[2] in page
    assert not check_file(example)
