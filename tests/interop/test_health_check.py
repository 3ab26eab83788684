"""The health check of the image: what it needs to come in, what it says of a drained router, what to ask instead."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from mesh_config.loader import load_mesh
from mesh_config.models import HttpSettings, ListenerSettings, MeshSettings, RouterSettings
from router.security.users import new_keys, write_users
from tests.helpers.processes import MeshProcesses, ReservedPort
from tests.helpers.secured_mesh import ITERATIONS, PASSWORD

pytestmark = pytest.mark.interop
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how_to" / "run-in-a-container.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## The image's health check\n")[2].partition("\n## ")[0]
WAIT_S = 60


def is_healthy(**variables: str) -> bool:
    """What the image's own health check says, with these variables of the environment."""
    file = (ROOT / "deployment" / "Containerfile").read_text(encoding="utf-8")
    (found,) = re.findall(r"^HEALTHCHECK .*CMD (\[.*\])$", file, re.MULTILINE)
    program, *words = json.loads(found)
    assert program == "amqp-mesh"
    command = [sys.executable, "-m", "router", *words]
    return not subprocess.run(command, env={**os.environ, **variables}, capture_output=True, timeout=WAIT_S).returncode


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[MeshProcesses]:
    """The router of the page, with users and virtual hosts."""
    users = str(tmp_path / "users")
    write_users(users, {"health": new_keys(PASSWORD, ITERATIONS)})
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
    (tmp_path / "page.yaml").write_text(block.replace("/etc/amqp-mesh/users", users), encoding="utf-8")
    with MeshProcesses(load_mesh(tmp_path / "page.yaml"), tmp_path / "mesh") as mesh:
        mesh.start()
        yield mesh


def test_the_health_check_comes_in_by_the_variables_of_the_page(guarded: MeshProcesses, tmp_path: Path) -> None:
    variables = dict(re.findall(r"-e (AMQP_MESH_\w+)=(\S+)", SECTION))
    assert sorted(variables) == ["AMQP_MESH_PASSWORD_FILE", "AMQP_MESH_USER", "AMQP_MESH_VHOST"]
    (tmp_path / "password").write_text(PASSWORD)
    variables |= {"AMQP_MESH_PASSWORD_FILE": str(tmp_path / "password"), "AMQP_MESH_URL": guarded.url("A")}
    assert is_healthy(**variables)
    assert not is_healthy(AMQP_MESH_URL=guarded.url("A"))
    del variables["AMQP_MESH_VHOST"]
    assert not is_healthy(**variables)


def test_a_drained_router_is_unhealthy_for_the_image_and_alive_for_healthz(tmp_path: Path) -> None:
    port = ReservedPort()
    settings = RouterSettings(id="A", listeners=(ListenerSettings(),), http=HttpSettings(port=port.number))
    (check,) = re.findall(r'--health-cmd "(.*)" \\$', SECTION, re.MULTILINE)
    check = check.replace('\\"', '"').replace("9672", str(port.number)).replace("python", sys.executable, 1)

    def is_alive() -> bool:
        return not subprocess.run(["sh", "-c", check], capture_output=True, timeout=WAIT_S).returncode

    with MeshProcesses(MeshSettings(routers={"A": settings}), tmp_path / "mesh") as mesh:
        assert not is_alive()
        mesh.start()
        assert is_healthy(AMQP_MESH_URL=mesh.url("A"))
        assert is_alive()
        subprocess.run(
            [sys.executable, "-m", "router", "drain", "A", "--url", mesh.url("A")], check=True, timeout=WAIT_S
        )
        assert not is_healthy(AMQP_MESH_URL=mesh.url("A"))
        assert is_alive()
        with pytest.raises(HTTPError, match="503"):
            urlopen(f"http://127.0.0.1:{port.number}/readyz", timeout=WAIT_S)
    port.close()
