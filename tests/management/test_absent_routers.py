"""A router that died, or never came, stands in every table, with the reason: real processes, asked over management."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import pytest

from mesh_config.generators import generate
from mesh_config.models import ConnectorSettings, ListenerSettings, Role, RouterSettings
from mesh_config.render import render_router
from router.cli.management import ManagementClient
from tests.helpers.processes import LOOPBACK, MeshProcesses, ReservedPort, RouterProcess, wait_until

pytestmark = pytest.mark.interop
WAIT_S = 60.0


@attrs.frozen
class Mesh:
    """The line R1 - R2 - R3 - R4, and W, whose connector leads to the listener for clients of R1."""

    line: MeshProcesses
    astray: RouterProcess


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesh]:
    """R1 and R2 run, R3 has died, R4 never came, W leads astray."""
    folder = tmp_path_factory.mktemp("mesh")
    with MeshProcesses(generate("line", 4), folder) as line:
        for router in ("R1", "R2", "R3"):
            line.start(router)
        wait_until(lambda: line.reachable("R1") == {"R2", "R3"}, "all are reached", WAIT_S)
        line.kill("R3")
        client = next(each for each in line["R1"].settings.listeners if each.role is Role.NORMAL)
        with free_port() as port:
            settings = RouterSettings(
                id="W",
                listeners=(ListenerSettings(host=LOOPBACK, port=port),),
                connectors=(ConnectorSettings(name="astray", host=client.host, port=client.port),),
            )
            (folder / "W.yaml").write_text(render_router(settings), encoding="utf-8")
            astray = RouterProcess(settings, folder / "W.yaml", folder / "W.log")
            astray.start()
            try:
                wait_until(lambda: bool(line["R1"].log_lines("router_unreachable")), "R1 tells of the loss", WAIT_S)
                wait_until(lambda: bool(astray.log_lines("connect_failed")), "W tells why", WAIT_S)
                yield Mesh(line, astray)
            finally:
                astray.kill()


@contextmanager
def free_port() -> Iterator[int]:
    port = ReservedPort()
    try:
        yield port.number
    finally:
        port.close()


def rows(router: RouterProcess, kind: str, key: str) -> dict[str, dict[str, Any]]:
    with ManagementClient(router.url(), timeout_s=WAIT_S) as client:
        return {row[key]: row for row in client.query(kind)}


def test_routers_that_died_or_never_came_are_shown_with_the_reason(mesh: Mesh) -> None:
    found = rows(mesh.line["R1"], "router.node", "id")
    died, never, there = found["R3"], found["R4"], found["R2"]
    assert (died["isReachable"], died["flapCount"], died["reason"]) == (False, 1, "lost by its neighbors: R2")
    assert died["since"] == died["lastFlap"]
    assert (never["isReachable"], never["flapCount"]) == (False, 0)
    assert never["reason"] == "never seen since this router started"
    assert (there["isReachable"], there["reason"], there["flapCount"]) == (True, None, 0)
    assert all(row["isConfigured"] for row in found.values())


def test_links_of_the_file_are_shown_though_they_are_gone(mesh: Mesh) -> None:
    found = rows(mesh.line["R1"], "amqp-mesh.mesh.link", "name")
    assert found["R1 - R2"]["state"] == "up"
    assert (found["R2 - R3"]["state"], found["R2 - R3"]["reason"]) == ("absent", "R3 was lost")


def test_a_connector_says_why_it_has_no_neighbor(mesh: Mesh) -> None:
    (astray,) = rows(mesh.astray, "connector", "name").values()
    assert astray["connectionStatus"] != "SUCCESS"
    assert "this listener is for clients, not for routers" in astray["connectionMsg"]
    assert (astray["flapCount"], astray["lastFlap"]) == (0, None)
    (there,) = rows(mesh.line["R2"], "connector", "name").values()
    assert (there["connectionStatus"], there["connectionMsg"], there["router"]) == ("SUCCESS", "", "R1")


def test_a_wrong_role_is_said_once_at_both_ends(mesh: Mesh) -> None:
    reason = "this listener is for clients, not for routers"

    def connections() -> int:
        """Number of the last connection to R1, which each attempt counts on."""
        with ManagementClient(mesh.line["R1"].url(), timeout_s=WAIT_S) as client:
            return max(int(row["identity"]) for row in client.query("connection"))

    before = connections()
    wait_until(lambda: connections() >= before + 8, "it tries again", WAIT_S)
    for event in ("connection_opened", "connection_closed"):
        assert sum(line.fields["container"] == "W" for line in mesh.line["R1"].log_lines(event)) == 1
        assert sum(line.fields["container"] == "R1" for line in mesh.astray.log_lines(event)) == 1
    assert [line.fields["reason"] for line in mesh.line["R1"].log_lines("attach_refused")] == [reason]
    (failed,) = mesh.astray.log_lines("connect_failed")
    assert failed.fields["reason"].endswith(reason)


def test_losses_are_warnings(mesh: Mesh) -> None:
    (lost,) = mesh.line["R1"].log_lines("router_unreachable")
    assert (lost.level, lost.fields["remote"]) == ("warning", "R3")
    (down,) = mesh.line["R2"].log_lines("neighbor_down")
    assert (down.level, down.fields["neighbor"]) == ("warning", "R3")
