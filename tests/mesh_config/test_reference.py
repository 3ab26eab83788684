"""What is generated from the models: the schema, the reference; and the examples that show them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given, settings

from mesh_config import models, yaml_text
from mesh_config.check import check_file
from mesh_config.generators import KINDS, generate
from mesh_config.graph import costs, topology
from mesh_config.loader import load_mesh, load_router
from mesh_config.models import MeshSettings, RouterSettings, Treatment
from mesh_config.reference import reference_text
from mesh_config.render import render_mesh, render_router
from mesh_config.schema import DIALECT, SECTIONS, mesh_schema, schema_text
from mesh_config.values import SettingsClass, fields_of, kind_of
from tests.mesh_config.strategies import ROUTERS

jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "meshes"


def in_files(text: str) -> Any:
    node = yaml_text.read(text, None)[0]
    assert node is not None
    return yaml_text.plain(node)


def is_valid(text: str) -> bool:
    return bool(jsonschema.Draft202012Validator(mesh_schema()).is_valid(in_files(text)))


@pytest.mark.parametrize(("file", "text"), [("settings.md", reference_text), ("mesh.schema.json", schema_text)])
def test_the_generated_files_are_up_to_date(file: str, text: Any) -> None:
    committed = (ROOT / "docs" / "reference" / file).read_text(encoding="utf-8")
    assert committed == text(), f"write docs/reference/{file} anew: amqp-mesh config reference, or schema"


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
        assert low <= field.default <= high
        assert field.name in ("port", "cost") or field.metadata["unit"]
    if cls in SECTIONS:
        assert f"| `{field.name}` |" in reference_text()


def test_the_schema_is_one() -> None:
    schema = mesh_schema()
    assert schema["$schema"] == DIALECT
    jsonschema.Draft202012Validator.check_schema(schema)
    assert json.loads(schema_text()) == schema
    port = schema["$defs"]["ListenerSettings"]["properties"]["port"]
    assert (port["type"], port["minimum"], port["maximum"], port["default"]) == ("integer", 0, 65535, 5672)
    assert all(definition["additionalProperties"] is False for definition in schema["$defs"].values())


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(ROUTERS)
def test_the_schema_takes_what_the_loader_takes(router: RouterSettings) -> None:
    fit = attrs.evolve(
        router,
        addresses=tuple(
            address for address in router.addresses if (address.prefix is None) != (address.pattern is None)
        ),
    )
    assert is_valid(render_router(fit))
    mesh = MeshSettings(name="m", routers={fit.id: fit})
    assert is_valid(render_mesh(mesh, with_defaults=True))


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_takes_generated_meshes(kind: str) -> None:
    assert is_valid(render_mesh(generate(kind, 5)))


@pytest.mark.parametrize(
    "text",
    [
        "router: {}", "router: {id: A, x: 1}", "router: {id: A B}", "routers: {}", "routers: {A B: {}}", "mesh: {}",
        "router: {id: A}\nrouters: {A: {}}", "router: {id: A, listeners: [{port: 65536}]}",
        "routers: {A: {listeners: [{role: x}]}}", "routers: {A: {addresses: [{prefix: a, pattern: b}]}}",
        "routers: {A: {}}\ndefaults: {router: {id: A}}", "routers: {A: {}}\ndefaults: {normal_listener: {role: normal}}",
    ],
)  # fmt: skip
def test_the_schema_refuses_what_the_loader_refuses(text: str) -> None:
    assert not is_valid(text)


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.name)
def test_examples_are_without_findings(file: Path) -> None:
    assert check_file(file) == ()
    assert is_valid(file.read_text(encoding="utf-8"))


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
