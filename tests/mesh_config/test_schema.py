"""The JSON Schema, compared with what the loader does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings

from mesh_config import yaml_text
from mesh_config.generators import KINDS, generate
from mesh_config.models import MeshSettings, RouterSettings
from mesh_config.render import render_mesh, render_router
from mesh_config.schema import DIALECT, mesh_schema, schema_text
from tests.helpers.examples import examples
from tests.mesh_config.strategies import ROUTERS

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "meshes"


def in_files(text: str) -> Any:
    node = yaml_text.read(text, None)[0]
    assert node is not None
    return yaml_text.plain(node)


def is_valid(text: str) -> bool:
    return bool(jsonschema.Draft202012Validator(mesh_schema()).is_valid(in_files(text)))


def test_the_schema_is_one() -> None:
    schema = mesh_schema()
    assert schema["$schema"] == DIALECT
    jsonschema.Draft202012Validator.check_schema(schema)
    assert json.loads(schema_text()) == schema
    port = schema["$defs"]["ListenerSettings"]["properties"]["port"]
    assert (port["type"], port["minimum"], port["maximum"], port["default"]) == ("integer", 0, 65535, 5672)
    assert all(definition["additionalProperties"] is False for definition in schema["$defs"].values())


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])
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
        "routers: {A: {listeners: [{role: x}]}}", "router: {id: A, listeners: [{tls: {}}]}",
        "routers: {A: {addresses: [{prefix: a, pattern: b}]}}",
        "routers: {A: {}}\ndefaults: {router: {id: A}}",
        "router: {id: all}", "router: {id: ''}", 'router: {id: "a\\u202eb"}', "router: {id: A, site: ' x'}",
        "routers: {A: {}}\nmesh: {name: 'x '}",
        "routers: {A: {}}\ndefaults: {normal_listener: {role: normal}}",
    ],
)  # fmt: skip
def test_the_schema_refuses_what_the_loader_refuses(text: str) -> None:
    assert not is_valid(text)


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.name)
def test_the_schema_takes_the_examples(file: Path) -> None:
    assert is_valid(file.read_text(encoding="utf-8"))
