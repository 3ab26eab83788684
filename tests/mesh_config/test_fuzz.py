"""Whatever stands in a file, the loader and the checks give settings or findings, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mesh_config import yaml_text
from mesh_config.check import check_file, check_mesh, check_router, has_errors
from mesh_config.findings import SettingsError
from mesh_config.graph import dot, topology
from mesh_config.loader import parse_document, read_document
from mesh_config.models import MeshSettings
from mesh_config.picture import svg
from mesh_config.schema import SECTIONS
from mesh_config.settings_file_format import DEFAULTS_SECTIONS, MESH_FILE_KEYS
from mesh_config.value_rules import fields_of
from tests.helpers.examples import examples
from tests.mesh_config.cases import FILE
from tests.mesh_config.strategies import meshes

SETTINGS = sorted({field.name for cls in SECTIONS for field in fields_of(cls)})
IDS = ("A", "B", "C")
KEYS = st.sampled_from([*SETTINGS, *MESH_FILE_KEYS, *DEFAULTS_SECTIONS, *IDS, "router", "name", "zz"])
NUMBERS = st.integers(-1, 70000) | st.floats()
VALUES = st.none() | st.booleans() | NUMBERS | st.sampled_from([*IDS, "0.0.0.0", "a b", ""])
CONNECTORS = st.fixed_dictionaries({"to": st.sampled_from(IDS)}, optional={"port": VALUES})
TREES: st.SearchStrategy[Any] = st.recursive(
    VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=20
)
FRAMES = st.fixed_dictionaries(
    {},
    optional={
        "routers": st.dictionaries(
            st.sampled_from(IDS),
            st.fixed_dictionaries(
                {},
                optional={
                    "id": TREES,
                    "host": TREES,
                    "listeners": st.lists(TREES | st.dictionaries(st.sampled_from(SETTINGS), VALUES), max_size=3),
                    "connectors": st.lists(TREES | CONNECTORS, max_size=3),
                    "addresses": st.lists(st.dictionaries(st.sampled_from(["prefix", "pattern"]), VALUES), max_size=3),
                },
            )
            | TREES,
        ),
        "defaults": st.dictionaries(st.sampled_from(sorted(DEFAULTS_SECTIONS)), TREES),
        "addresses": TREES,
        "mesh": TREES,
    },
)

often = settings(
    max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)


@often
@given(TREES | FRAMES)
def test_any_file_gives_settings_or_findings(tmp_path: Path, tree: Any) -> None:
    text = yaml_text.write(tree)
    document = parse_document(text, FILE)
    assert document.findings or document.mesh.routers
    for finding in document.findings:
        assert finding.file == FILE
        assert finding.line is not None
        assert 1 <= finding.line <= text.count("\n") + 1
    file = tmp_path / FILE
    file.write_text(text, encoding="utf-8")
    assert has_errors(check_file(file)) >= bool(document.findings)


@often
@given(TREES | FRAMES)
def test_any_router_of_any_file_can_run_or_has_errors(tmp_path: Path, tree: Any) -> None:
    file = tmp_path / FILE
    file.write_text(yaml_text.write(tree), encoding="utf-8")
    document = read_document(file)
    for router_id in ("zz", *document.nodes):
        try:
            router, findings = check_router(file, router_id)
        except SettingsError as error:
            refused = error.findings
        else:
            refused = ()
        if refused:
            assert has_errors(refused)
            continue
        assert router == document.mesh.routers[router_id]
        assert findings == check_file(file)
        targets = {connector.to for connector in router.connectors} & document.nodes.keys()
        assert targets <= document.mesh.routers.keys(), "an address that nobody knows"


@pytest.mark.slow
@settings(often, max_examples=examples(50))
@given(meshes())
def test_any_mesh_can_be_checked_and_drawn(mesh: MeshSettings) -> None:
    assert all(finding.line is None for finding in check_mesh(mesh))
    graph = topology(mesh)
    assert list(graph) == list(mesh.routers)
    assert svg(graph)
    assert dot(graph)
