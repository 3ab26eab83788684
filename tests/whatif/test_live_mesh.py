"""The what-if half against eight real router processes, started from the file of which the model was made."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from router.cli.management import ManagementClient
from router.cli.whatif.mesh_client import MeshClient
from router.whatif.formats.live_snapshot import checked_model, collect
from router.whatif.formats.model_folder import read_model
from router.whatif.model.mesh_model import Model
from tests.whatif.live import LINKS, ROUTERS, Arc, LiveMesh, Prediction
from tests.whatif.live_clients import Clients, Place, is_closest, places
from tests.whatif.naive import Naive, TreeRule, mesh_rule, rule_by_greatest_id, rule_by_id_alone

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(sys.platform != "linux", reason="127.0.0.1 is the only address of loopback"),
]

BRIDGE = "R10--R3"
"""All that joins R10 to the others."""


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveMesh]:
    with LiveMesh(tmp_path_factory.mktemp("live")) as mesh:
        # On a busy machine eight at once may take longer than each may.
        mesh.start(*ROUTERS[:4])
        mesh.start(*ROUTERS[4:])
        yield mesh
        for router in mesh.routers.values():
            assert [line for line in router.log_lines() if line.level in ("error", "critical")] == []


@pytest.fixture(scope="module")
def prediction(live: LiveMesh) -> Prediction:
    return Prediction(live.model())


@pytest.fixture
def mesh(live: LiveMesh, prediction: Prediction) -> Iterator[LiveMesh]:
    """The mesh when it is whole, as every test leaves it behind."""
    live.wait_for(prediction.of())
    yield live
    live.repair()


def command(*words: str) -> str:
    """What `amqp-mesh` writes."""
    line = [sys.executable, "-m", "router", *words]
    return subprocess.run(line, capture_output=True, text=True, timeout=60, check=True).stdout


# Next hops


@pytest.mark.parametrize("rule", [rule_by_greatest_id, rule_by_id_alone])
def test_another_choice_between_equal_paths_would_be_seen(prediction: Prediction, rule: TreeRule) -> None:
    right, wrong = (Naive(prediction.model, each).base.next_hop for each in (mesh_rule, rule))
    routes = prediction.of().routes
    assert right == {(src, dst): hop for src, reached in routes.items() for dst, (_, hop) in reached.items()}
    assert sum(right[pair] != wrong[pair] for pair in right) >= 4


def test_no_next_hop_differs(mesh: LiveMesh, prediction: Prediction) -> None:
    state = prediction.of()
    assert mesh.state() == state
    rows = json.loads(command("stat", "routers", "--all-routers", "--json", "--url", mesh.url("R10")))
    shown = {(row["router"], row["id"]): (row["cost"], row["nextHop"]) for row in rows if row["router"] != row["id"]}
    assert shown == {(src, dst): route for src, routes in state.routes.items() for dst, route in routes.items()}
    assert len(shown) == 56


# Loads


def counted() -> dict[Place, int]:
    """A number of messages for every publisher, 1 to 8."""
    return {place: 1 + 5 * number % 8 for number, place in enumerate(places())}


@pytest.mark.parametrize("cut", [(), ("R1--R5",), ("R3--R5", "R1--R6")], ids=["whole", "parallel", "two-links"])
def test_every_link_carries_exactly_the_predicted_messages(
    mesh: LiveMesh, prediction: Prediction, cut: tuple[str, ...]
) -> None:
    for link in cut:
        mesh.cut(link)
    mesh.wait_for(prediction.of(links=cut))
    nearest = {place: prediction.nearest(*place, links=cut) for place in places() if is_closest(place)}
    assert {len(sites) for sites in nearest.values()} >= {1, 2}
    with Clients(mesh) as clients:
        before = mesh.counters()
        published = clients.publish(counted(), nearest)
        expected = {arc: count for arc, count in prediction.loads(published, links=cut).items() if count}
        assert len(set(expected.values())) > 12

        def carried() -> list[dict[Arc, int]]:
            return [
                {arc: count - was[arc] for arc, count in now.items() if count != was[arc]}
                for was, now in zip(before, mesh.counters(), strict=True)
            ]

        # As the end that sends counts, and the one that receives.
        clients.wait_until(lambda: carried() == [expected, expected], lambda: f"{carried()} is twice {expected}")


# Failures


@pytest.mark.parametrize("link", LINKS)
def test_a_cut_link_loses_exactly_the_predicted_pairs(mesh: LiveMesh, prediction: Prediction, link: str) -> None:
    expected = prediction.of(links=[link])
    mesh.cut(link)
    mesh.wait_for(expected)
    alone = {("R10", router) for router in ROUTERS if router != "R10"} if link == BRIDGE else set()
    assert mesh.state().lost == expected.lost == alone | {pair[::-1] for pair in alone}


@pytest.mark.parametrize("router", ROUTERS)
def test_a_killed_router_loses_exactly_the_predicted_pairs(mesh: LiveMesh, prediction: Prediction, router: str) -> None:
    expected = prediction.of(routers=[router])
    mesh.kill(router)
    mesh.wait_for(expected)
    rest = [other for other in ROUTERS if other != router]
    lost = {(other, router) for other in rest}
    if router == "R3":  # the other end of the bridge
        lost |= {pair for other in rest if other != "R10" for pair in (("R10", other), (other, "R10"))}
    assert mesh.state().lost == expected.lost == lost


# Snapshots


def comparable(model: Model) -> Model:
    """What a file and a live mesh both know."""
    links = [attrs.evolve(link, delay_ms=None) for link in model.links]
    return attrs.evolve(model, name="mesh", links=links, counters=())


def test_a_snapshot_from_any_router_is_the_model_of_the_file(
    mesh: LiveMesh, prediction: Prediction, tmp_path: Path
) -> None:
    expected = comparable(prediction.model)
    with Clients(mesh) as clients:
        for router in ROUTERS:
            with ManagementClient(mesh.url(router)) as asking:
                client = MeshClient(asking)

                def snapshot() -> Model:
                    model, warnings = checked_model(collect(client), mesh.url(router))  # noqa: B023
                    assert warnings == ()
                    return comparable(model)

                clients.wait_until(lambda: snapshot() == expected, lambda: f"{snapshot()} is {expected}")
        folder = tmp_path / "model"
        command("whatif", "snapshot", mesh.url("R10"), "-o", str(folder))
        model = read_model(folder)
        assert comparable(model) == expected
        assert {(it.link, it.src) for it in model.counters} == {
            (it.id, end) for it in model.links for end in (it.a, it.b)
        }
        assert Prediction(model).of() == mesh.state()
