"""JSON Schema of settings files, made from the models, so that editors complete and check them while one types."""

from __future__ import annotations

import enum
import json
from typing import Any

import attrs

from mesh_config.models import (
    AddressSettings,
    ConnectorSettings,
    ForwardingSettings,
    GroupSettings,
    HttpSettings,
    LinkStateSettings,
    ListenerSettings,
    LogSettings,
    MeshSettings,
    NeighborSettings,
    RecorderSettings,
    RouterSettings,
    TlsSettings,
    VhostSettings,
)
from mesh_config.settings_file_format import DEFAULTS_SECTIONS, FILE_KEY_DOCS
from mesh_config.structuring import default_of, plain_value
from mesh_config.value_rules import SettingsClass, field_of, fields_of, kind_of

DIALECT = "https://json-schema.org/draft/2020-12/schema"

SECTIONS: tuple[SettingsClass, ...] = (
    RouterSettings,
    ListenerSettings,
    ConnectorSettings,
    TlsSettings,
    NeighborSettings,
    AddressSettings,
    VhostSettings,
    GroupSettings,
    LinkStateSettings,
    ForwardingSettings,
    LogSettings,
    RecorderSettings,
    HttpSettings,
)
"""Classes whose settings stand in a file, in the order of the reference."""

_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number"}
_MESH_ROUTER = "MeshRouter"


def mesh_schema() -> dict[str, Any]:
    """The schema, draft 2020-12, of both shapes of a file.

    What no schema can say (other routers' ports, timers that belong together) is left to `mesh_config.check`.
    """
    definitions = {cls.__name__: _settings_schema(cls) for cls in SECTIONS}
    # In a mesh file the key is the id.
    whole = definitions[RouterSettings.__name__]
    definitions[_MESH_ROUTER] = {key: value for key, value in whole.items() if key != "required"}
    return {
        "$schema": DIALECT,
        "title": "Settings of an amqp-mesh router, or of a whole mesh",
        "type": "object",
        "oneOf": [_router_file(), _mesh_file()],
        "$defs": definitions,
    }


def schema_text() -> str:
    """The schema as the text of a JSON file."""
    return json.dumps(mesh_schema(), indent=2, ensure_ascii=False) + "\n"


def _router_file() -> dict[str, Any]:
    return _object({"router": {"$ref": _ref(RouterSettings)}}, "One router.", required=["router"])


def _mesh_file() -> dict[str, Any]:
    id_field = field_of(RouterSettings, "id")
    name_field = field_of(MeshSettings, "name")
    sections = {
        word: _object(_properties(section.cls, only=frozenset(section.keys)), section.doc)
        for word, section in DEFAULTS_SECTIONS.items()
    }
    properties: dict[str, Any] = {
        "mesh": _object({"name": _field_schema(name_field)}, FILE_KEY_DOCS["mesh"]),
        "defaults": _object(sections, FILE_KEY_DOCS["defaults"]),
        "addresses": {"type": "array", "items": {"$ref": _ref(AddressSettings)}},
        "routers": {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": f"^{id_field.metadata['pattern']}$"},
            "additionalProperties": {"$ref": f"#/$defs/{_MESH_ROUTER}"},
        },
    }
    for key in ("addresses", "routers"):
        properties[key] = {"description": FILE_KEY_DOCS[key], **properties[key]}
    return _object(properties, "A whole mesh.", required=["routers"])


def _settings_schema(cls: SettingsClass) -> dict[str, Any]:
    required = [field.name for field in fields_of(cls) if field.default is attrs.NOTHING]
    schema = _object(_properties(cls), (cls.__doc__ or "").strip().partition("\n")[0], required=required)
    if cls is AddressSettings:
        # The one rule of the checks that an editor can hold: a prefix or a pattern, not both.
        schema["oneOf"] = [
            {"properties": {key: {"type": "string"}}, "required": [key]} for key in ("prefix", "pattern")
        ]
    return schema


def _properties(cls: SettingsClass, *, only: frozenset[str] | None = None) -> dict[str, Any]:
    return {field.name: _field_schema(field) for field in fields_of(cls) if only is None or field.name in only}


def _object(properties: dict[str, Any], description: str, *, required: list[str] | None = None) -> dict[str, Any]:
    schema: dict[str, Any] = {"description": description, "type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return {**schema, "additionalProperties": False}


def _field_schema(field: attrs.Attribute[Any]) -> dict[str, Any]:
    kind = kind_of(field.type)
    unit = f" Unit: {field.metadata['unit']}." if field.metadata.get("unit") else ""
    schema: dict[str, Any] = {"description": f"{field.metadata['doc']}{unit}"}
    if kind.is_list:
        schema |= {"type": "array", "items": _base_schema(kind.base)}
    else:
        schema |= _base_schema(kind.base)
        if kind.is_optional:
            schema["type"] = [schema["type"], "null"]
            if "enum" in schema:
                schema["enum"] = [*schema["enum"], None]
    for key, word in (("low", "minimum"), ("high", "maximum")):
        if field.metadata.get(key) is not None:
            schema[word] = field.metadata[key]
    if field.metadata.get("pattern"):
        schema["pattern"] = f"^{field.metadata['pattern']}$"
    default = default_of(field)
    if default is not attrs.NOTHING and not attrs.has(type(default)):
        schema["default"] = plain_value(default, with_defaults=True)
    return schema


def _base_schema(base: type) -> dict[str, Any]:
    if attrs.has(base):
        return {"$ref": _ref(base)}
    if issubclass(base, enum.Enum):
        return {"type": "string", "enum": [member.value for member in base]}
    return {"type": _TYPES[base]}


def _ref(cls: type) -> str:
    return f"#/$defs/{cls.__name__}"
