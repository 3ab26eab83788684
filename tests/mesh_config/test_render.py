"""Settings to files and back."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mesh_config.generators import KINDS, generate
from mesh_config.loader import parse_document
from mesh_config.models import MeshSettings, RouterSettings
from mesh_config.render import render_mesh, render_router
from tests.helpers.examples import examples
from tests.mesh_config.cases import FILE
from tests.mesh_config.strategies import ROUTERS, meshes

few = settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])


def loaded(text: str) -> MeshSettings:
    document = parse_document(text, FILE)
    assert document.findings == ()
    return document.mesh


@few
@given(ROUTERS, st.booleans())
def test_a_rendered_router_loads_back_equal(router: RouterSettings, with_defaults: bool) -> None:
    assert loaded(render_router(router, with_defaults=with_defaults)).routers == {router.id: router}


@pytest.mark.slow
@few
@given(meshes(), st.booleans())
def test_a_rendered_mesh_loads_back_equal(mesh: MeshSettings, with_defaults: bool) -> None:
    assert loaded(render_mesh(mesh, with_defaults=with_defaults)) == mesh


@pytest.mark.parametrize("with_defaults", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_generated_mesh_is_written_with_connectors_by_name(kind: str, with_defaults: bool) -> None:
    mesh = generate(kind, 5)
    text = render_mesh(mesh, with_defaults=with_defaults)
    assert loaded(text) == mesh
    assert text.count("to: R") == sum(len(router.connectors) for router in mesh.routers.values())
    listeners = sum(len(router.listeners) for router in mesh.routers.values())
    assert text.count("port: ") - text.count("      port: null") == listeners


def test_a_router_of_a_mesh_can_be_written_as_a_file_of_its_own() -> None:
    router = generate("line", 3).routers["R2"]
    text = render_router(router)
    assert "to: R1\n" in text
    assert loaded(text).routers["R2"] == router


def test_every_setting_is_written_on_demand() -> None:
    text = render_router(RouterSettings(id="A"))
    for word in ("host: null", "hello_interval_s: 1.0", "max_links: 65536", "shutdown_s: 5.0", "listeners: []"):
        assert word in text
    assert render_router(RouterSettings(id="A"), with_defaults=False) == "router:\n  id: A\n"
