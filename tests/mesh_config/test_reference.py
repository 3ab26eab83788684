"""What is generated from the models: the reference and the schema's file; and the examples that show the settings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from mesh_config import models
from mesh_config.check import check_file
from mesh_config.check_router import ATTACH_BYTES
from mesh_config.graph import costs, topology
from mesh_config.loader import load_mesh, load_router
from mesh_config.models import Treatment
from mesh_config.reference import reference_text
from mesh_config.schema import SECTIONS, schema_text
from mesh_config.value_rules import SettingsClass, fields_of, kind_of

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "meshes"


@pytest.mark.parametrize(("file", "text"), [("settings.md", reference_text), ("mesh.schema.json", schema_text)])
def test_the_generated_files_are_up_to_date(file: str, text: Any) -> None:
    committed = (ROOT / "docs" / "reference" / file).read_text(encoding="utf-8")
    assert committed == text(), f"write docs/reference/{file} anew: amqp-mesh config reference, or schema"


def test_the_reference_names_the_least_frame_between_routers_that_is_checked() -> None:
    (added, least) = re.findall(
        r"must be (\d+) larger than `forwarding.address_bytes` at least \((\d+)", reference_text()
    )[0]
    assert int(added) == ATTACH_BYTES
    assert int(least) == models.ForwardingSettings().address_bytes + ATTACH_BYTES


def all_settings() -> Iterator[tuple[SettingsClass, attrs.Attribute[Any]]]:
    for value in vars(models).values():
        if isinstance(value, type) and attrs.has(value):
            yield from ((value, field) for field in fields_of(value))


@pytest.mark.parametrize(
    ("cls", "field"), [pytest.param(*it, id=f"{it[0].__name__}.{it[1].name}") for it in all_settings()]
)
def test_every_setting_has_a_sentence_and_every_number_a_range(cls: SettingsClass, field: attrs.Attribute[Any]) -> None:
    assert str(field.metadata["doc"]).endswith(".")
    if kind_of(field.type).base in (int, float):
        low, high = field.metadata["low"], field.metadata["high"]
        assert low <= high
        assert field.default is None or low <= field.default <= high
        assert field.name in ("port", "cost") or field.metadata["unit"]
    if cls in SECTIONS:
        assert f"| `{field.name}` |" in reference_text()


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.name)
def test_examples_are_without_findings(file: Path) -> None:
    assert check_file(file) == ()


def test_the_blueprint_is_four_routers_fully_connected() -> None:
    mesh = load_mesh(EXAMPLES / "blueprint.yaml")
    pairs = [(one, other) for one, other, _ in costs(topology(mesh))]
    assert pairs == [("A", "B"), ("A", "C"), ("A", "D"), ("B", "C"), ("B", "D"), ("C", "D")]
    assert [router.listeners[0].port for router in mesh.routers.values()] == [5672, 5673, 5674, 5675]


def test_the_line_has_its_cost_and_its_multicast() -> None:
    mesh = load_mesh(EXAMPLES / "line.yaml")
    assert costs(topology(mesh)) == [("A", "B", 1), ("B", "C", 5)]
    assert {router.addresses[0].treatment for router in mesh.routers.values()} == {Treatment.MULTICAST}


def test_the_single_router_serves_clients() -> None:
    assert [listener.port for listener in load_router(EXAMPLES / "single.yaml").listeners] == [5672]
