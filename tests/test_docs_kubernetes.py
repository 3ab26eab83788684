"""The manifest for Kubernetes: what it names of the settings, of the image and of the program is there."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import attrs
import pytest
import yaml

from mesh_config.loader import load_mesh
from mesh_config.models import MeshSettings, Role
from router.cli import main
from router.cli.run import run
from tests.helpers.processes import LOOPBACK, MeshProcesses, ReservedPort

ROOT = Path(__file__).parent.parent
IMAGE = (ROOT / "deployment" / "Containerfile").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "how_to" / "kubernetes.md").read_text(encoding="utf-8")
PARTS: dict[tuple[str, str], dict[str, Any]] = {
    (part["kind"], part["metadata"]["name"]): part
    for part in yaml.safe_load_all((ROOT / "examples" / "kubernetes.yaml").read_text(encoding="utf-8"))
}
PODS = PARTS["StatefulSet", "amqp-mesh"]["spec"]
POD = PODS["template"]["spec"]
(CONTAINER,) = POD["containers"]
VOLUMES = {volume["name"]: volume for volume in POD["volumes"]}
PORTS = {port["name"]: port["containerPort"] for port in CONTAINER["ports"]}
PROBES = ("livenessProbe", "readinessProbe")
WAIT_S = 60
CHARACTER_BYTES = 6
"""Most that a recording takes for what memory has a byte for: a character beyond ASCII, as JSON writes it."""


@pytest.fixture
def settings(tmp_path: Path) -> MeshSettings:
    """The file that pods get, which has no error."""
    file = tmp_path / "mesh.yaml"
    file.write_text(PARTS["ConfigMap", "amqp-mesh"]["data"][file.name], encoding="utf-8")
    return load_mesh(file)


def test_each_pod_is_a_router_of_the_file_and_has_its_ports(settings: MeshSettings) -> None:
    pods = [f"amqp-mesh-{number}" for number in range(PODS["replicas"])]
    assert sorted(settings.routers) == pods
    for router in settings.routers.values():
        roles = {listener.role: listener for listener in router.listeners}
        assert {listener.host for listener in router.listeners} | {router.http.host} == {"0.0.0.0"}
        ports = {"clients": roles[Role.NORMAL].port, "routers": roles[Role.INTER_ROUTER].port}
        assert {**ports, "http": router.http.port} == PORTS


def test_connectors_dial_names_that_the_headless_service_gives(settings: MeshSettings) -> None:
    service = PARTS["Service", PODS["serviceName"]]
    assert service["spec"]["clusterIP"] == "None"
    dialled = [connector for router in settings.routers.values() for connector in router.connectors]
    assert len(dialled) == 3
    for connector in dialled:
        assert connector.host == f"{connector.to}.{service['metadata']['name']}"
        assert connector.port in [port["port"] for port in service["spec"]["ports"]]


def test_services_choose_the_pods_and_their_ports() -> None:
    labels = PODS["template"]["metadata"]["labels"]
    services = [part["spec"] for (kind, _), part in PARTS.items() if kind == "Service"]
    assert len(services) == 2
    assert [spec["selector"] for spec in (*services, {"selector": PODS["selector"]["matchLabels"]})] == [labels] * 3
    for port in (port for spec in services for port in spec["ports"]):
        assert PORTS[port["targetPort"]] == port["port"]


def test_a_pod_runs_the_image_as_that_wants_it() -> None:
    (entry,) = re.findall(r'^ENTRYPOINT \["amqp-mesh", "run", "(.*)"\]$', IMAGE, re.MULTILINE)
    mounts = {mount["name"]: mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
    assert mounts.keys() == VOLUMES.keys()
    settings = PARTS["ConfigMap", VOLUMES["settings"]["configMap"]["name"]]
    file = f"{mounts['settings']}/{next(iter(settings['data']))}"
    assert file == entry
    variables = {each["name"]: each["valueFrom"]["fieldRef"]["fieldPath"] for each in CONTAINER["env"]}
    words = [variables.get(word.removeprefix("$(").removesuffix(")"), word) for word in CONTAINER["args"]]
    assert run.make_context("run", [entry, *words], **main.context_settings).params["router_id"] == "metadata.name"
    user = POD["securityContext"]
    assert f"USER {user['runAsUser']}:{user['runAsGroup']}" in IMAGE
    (memory,) = re.findall(r"--memory=(\d+)g", IMAGE)
    assert CONTAINER["resources"]["limits"]["memory"] == f"{memory}Gi"


def test_a_pod_has_room_for_the_recordings_that_a_router_writes(settings: MeshSettings) -> None:
    assert CONTAINER["securityContext"]["readOnlyRootFilesystem"]
    (place,) = [mount for mount in CONTAINER["volumeMounts"] if mount["name"] == "recordings"]
    assert place == {"name": "recordings", "mountPath": "/tmp"}
    # Nothing says otherwise: see `tempfile.gettempdir`.
    assert not {"TMPDIR", "TEMP", "TMP"} & {each["name"] for each in CONTAINER["env"]}
    assert "TMPDIR" not in IMAGE
    most_mib = int(VOLUMES["recordings"]["emptyDir"]["sizeLimit"].removesuffix("Mi"))
    for router in settings.routers.values():
        assert router.recorder.directory is None
        assert most_mib * 2**20 > CHARACTER_BYTES * router.recorder.max_bytes * router.recorder.max_files
    assert f"{most_mib} MiB is more than six times `max_bytes` (8 MiB)" in PAGE
    assert "--read-only --tmpfs /tmp " in IMAGE


def test_no_router_waits_for_another_one_and_one_goes_at_a_time() -> None:
    assert PODS["podManagementPolicy"] == "Parallel"
    labels = {"matchLabels": PODS["template"]["metadata"]["labels"]}
    budget = PARTS["PodDisruptionBudget", "amqp-mesh"]["spec"]
    assert budget == {"maxUnavailable": 1, "selector": labels}
    (spread,) = POD["topologySpreadConstraints"]
    assert spread["labelSelector"] == labels
    assert spread["whenUnsatisfiable"] == "ScheduleAnyway"
    said = ("`podManagementPolicy: Parallel`", "`maxUnavailable: 1`", "`topologySpreadConstraints`", "`ScheduleAnyway`")
    assert [words for words in said if words not in PAGE] == []


def test_each_part_has_its_row() -> None:
    rows = re.findall(r"^\| (\w+) `([\w-]+)` \|", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(PARTS)


def test_a_pod_has_the_time_that_a_stop_takes(settings: MeshSettings) -> None:
    grace_s = POD["terminationGracePeriodSeconds"]
    assert all(router.shutdown_s + 1 < grace_s for router in settings.routers.values())
    most = re.search(r"(\d+) is enough for a `shutdown_s` up to (\d+)", PAGE)
    assert most is not None
    assert [int(number) for number in most.groups()] == [grace_s, grace_s - 2]


def test_the_page_has_the_path_of_each_probe() -> None:
    told = dict(re.findall(r"^\| `(\w+Probe)` \| `(/\w+)` \|", PAGE, re.MULTILINE))
    assert told == {name: CONTAINER[name]["httpGet"]["path"] for name in PROBES}


@pytest.fixture
def mesh(settings: MeshSettings, tmp_path: Path) -> Iterator[tuple[MeshProcesses, dict[str, int]]]:
    """The routers as processes, and the port of HTTP of each."""
    ports = {key: ReservedPort() for key in settings.routers}
    routers = {
        key: attrs.evolve(router, host=None, http=attrs.evolve(router.http, host=LOOPBACK, port=ports[key].number))
        for key, router in settings.routers.items()
    }
    with MeshProcesses(attrs.evolve(settings, routers=routers), tmp_path / "mesh") as processes:
        yield processes, {key: port.number for key, port in ports.items()}
    for port in ports.values():
        port.close()


@pytest.mark.interop
def test_each_probe_is_answered_as_the_kubelet_asks(mesh: tuple[MeshProcesses, dict[str, int]]) -> None:
    processes, ports = mesh
    processes.start()
    processes.wait_converged()
    for number in ports.values():
        for name in PROBES:
            asked = CONTAINER[name]["httpGet"]
            assert asked["port"] == "http"
            url = f"http://{LOOPBACK}:{number}{asked['path']}"
            with urlopen(Request(url, headers={"Host": f"10.1.2.3:{PORTS['http']}"}), timeout=WAIT_S) as answer:
                assert answer.status == 200


@pytest.mark.interop
def test_a_recording_is_fetched_by_the_name_that_its_router_gives_it(
    mesh: tuple[MeshProcesses, dict[str, int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "how_to" / "send-a-recording.md").read_text(encoding="utf-8")
    (name,) = re.findall(r"kubectl exec amqp-mesh-0 -- cat /tmp/(\S+-)\d{8}T\d{6}Z-\d+\.recording ", page)
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # in the place of the container's /tmp
    processes, _ = mesh
    processes.start("amqp-mesh-0")
    processes["amqp-mesh-0"].send_signal(signal.SIGUSR1)
    path = Path(processes["amqp-mesh-0"].wait_log("recording_written").fields["path"])
    assert path.parent == tmp_path
    assert re.fullmatch(rf"{name}\d{{8}}T\d{{6}}Z-\d+\.recording", path.name)
