"""`amqp-mesh stat` at a router with virtual hosts: operators see everything, tenants their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import attrs
import pytest
from click.testing import CliRunner, Result
from proton.utils import BlockingConnection, LinkDetached

from mesh_config.models import (
    GroupSettings,
    ListenerSettings,
    ManagementRight,
    MeshSettings,
    RouterSettings,
    VhostSettings,
)
from router.cli import main
from tests.helpers.processes import MeshProcesses


def vhost(name: str, right: ManagementRight) -> VhostSettings:
    group = GroupSettings(
        name="all", users=("anonymous",), sources=("jobs",), targets=("jobs", "jbos"), management=right
    )
    return VhostSettings(name=name, groups=(group,))


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Result]]:
    """Calls a command with the given words at a router where a client of `blue` and one of `green` are connected."""
    vhosts = (
        vhost("blue", ManagementRight.OWN),
        vhost("green", ManagementRight.NONE),
        vhost("operators", ManagementRight.READ),
        attrs.evolve(vhost("watch", ManagementRight.READ), isolated=False),
    )
    router = RouterSettings(id="A", listeners=(ListenerSettings(),), vhosts=vhosts)
    with MeshProcesses(MeshSettings(routers={"A": router}), tmp_path_factory.mktemp("stat")) as mesh:
        mesh.start()
        url = mesh.url("A")
        blue, green = (BlockingConnection(url, virtual_host=name) for name in ("blue", "green"))
        for client in (blue, green):
            client.create_receiver("jobs")
        with pytest.raises(LinkDetached):
            green.create_receiver("others")

        def call(*words: str) -> Result:
            return CliRunner().invoke(main, [words[0], "--url", url, *words[1:]], catch_exceptions=False)

        yield call


@pytest.fixture(scope="module")
def stat(call: Callable[..., Result]) -> Callable[..., Result]:
    """Calls `stat` there."""
    return partial(call, "stat")


def rows(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.output)
    return found


def test_operators_see_every_virtual_host_and_what_was_denied(stat: Callable[..., Result]) -> None:
    found = {row["id"]: row for row in rows(stat("vhosts", "--vhost", "operators", "--json"))}
    assert list(found) == ["blue", "green", "operators", "watch", "(none)"]
    assert found["green"]["receiverDenied"] == 1
    assert found["blue"]["connectionsCurrent"] == 1
    table = stat("vhosts", "--vhost", "operators").output
    assert table.startswith("A: 5 virtual hosts\n")


def test_a_tenant_sees_its_own(stat: Callable[..., Result]) -> None:
    for what, count in (("connections", 1), ("vhosts", 1), ("addresses", 2)):
        result = stat(what, "--vhost", "blue", "--json")
        assert len(rows(result)) == count
        assert "green" not in result.output
    assert "M0blue/jobs" in {row["key"] for row in rows(stat("addresses", "--vhost", "blue", "--json"))}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("general", "--vhost", "blue"), "is of the whole router, and not of a virtual host (403)"),
        (("connections", "--vhost", "green"), "may not use the management of this router in virtual host `green`"),
        (("problems", "--vhost", "blue"), "problems: not shown to users who may see only one virtual host"),
        (("listeners", "--vhost", "blue"), "listeners: not shown to users who may see only one virtual host"),
        (("routers", "--vhost", "blue"), "needs `management: read`"),
        (("general", "--router", "B", "--vhost", "blue"), "this user may not ask router B: its group has no"),
        (("general", "--url", "amqp://bob:secret@127.0.0.1:1"), "no router answers at amqp://bob:***@127.0.0.1:1"),
        (("general", "--url", "ws://bob:secret@a"), "ws://bob:***@a is no address"),
        (("connections", "--vhost", "nobody"), "there is no virtual host `nobody`"),
    ],
)
def test_who_may_not_is_told_why(stat: Callable[..., Result], words: tuple[str, ...], said: str) -> None:
    result = stat(*words)
    assert result.exit_code in (1, 2)
    assert "secret" not in result.output
    assert "cannot be reached" not in result.output
    assert said in result.output + (result.stderr or "")


def test_ping_and_query_say_that_a_tenant_sees_its_own_alone(call: Callable[..., Result]) -> None:
    pinged = call("ping", "--vhost", "blue")
    assert (pinged.exit_code, pinged.stdout) == (1, "")
    assert "ping: not shown to users who may see only one virtual host; needs `management: read`" in pinged.stderr
    listeners = call("manage", "query", "--type", "listener", "--vhost", "blue")
    assert (listeners.stdout, listeners.stderr) == (
        "[]\n",
        "Only shown: what belongs to virtual host blue (`management: own`)\n",
    )
    assert call("manage", "query", "--type", "listener", "--vhost", "operators").stderr == ""


def test_who_finds_nobody_is_told_in_which_virtual_host_was_looked(call: Callable[..., Result]) -> None:
    sent = call("send", "jobs", "x", "--vhost", "operators", "--timeout", "1")
    assert "Nobody subscribes to it (in virtual host operators: operators/jobs for the mesh)" in sent.output
    near = call("send", "jbos", "x", "--vhost", "blue", "--timeout", "1").output
    assert "(in virtual host blue: blue/jbos for the mesh), as far as A reaches. Did you mean 'jobs'? More: " in near
    traced = call("trace", "jobs", "--vhost", "operators", "--seconds", "0").output.splitlines()
    assert traced[:3] == [
        "A: nobody subscribes to jobs or publishes to it, as far as it reaches",
        "  outside virtual host operators, that is: its clients mean operators/jobs; trace that",
        "  there is blue/jobs, green/jobs: trace that",
    ]


def test_who_may_not_ask_why_there_is_no_credit_is_told_so_and_denied_once(
    call: Callable[..., Result], stat: Callable[..., Result]
) -> None:
    def denied() -> int:
        found = json.loads(stat("vhosts", "--vhost", "operators", "--json").output)
        return int(next(row["senderDenied"] for row in found if row["name"] == "green"))

    before = denied()
    sent = call("send", "jobs", "x", "--vhost", "green", "--timeout", "0.5")
    assert " gave no credit for jobs within 0.5 s. This user may not ask the router why: its group needs" in sent.stderr
    assert denied() == before + 1


def test_an_operator_outside_all_virtual_hosts_is_told_of_their_addresses(call: Callable[..., Result]) -> None:
    traced = call("trace", "jobs", "--vhost", "watch", "--seconds", "0").output.splitlines()
    assert traced == [
        "A: nobody subscribes to jobs or publishes to it, as far as it reaches",
        "  there is blue/jobs, green/jobs: trace that",
    ]
    shown = call("stat", "credit", "--address", "jobs", "--vhost", "watch").output
    nobody = "A: nobody subscribes to jobs here, and no publisher's link names it"
    assert shown == f"{nobody}; there is blue/jobs, green/jobs\n"
    for words in (("stat", "credit", "--address", "others"), ("trace", "others", "--seconds", "0")):
        assert "there is" not in call(*words, "--vhost", "watch").output
    assert "blue/jobs" in call("trace", "blue/jobs", "--vhost", "watch", "--seconds", "0").output.splitlines()[0]


def test_a_client_reads_its_own_connection_as_self(call: Callable[..., Result]) -> None:
    read = call("manage", "read", "--type", "connection", "--name", "self", "--vhost", "operators")
    assert json.loads(read.output)["addressPrefix"] == "operators"
