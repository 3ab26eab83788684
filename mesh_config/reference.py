"""The reference of all settings in Markdown, made from the models."""

from __future__ import annotations

import enum
from typing import Any

import attrs

from mesh_config.models import (
    DEFAULT_ADDRESSES,
    AddressSettings,
    ConnectorSettings,
    ForwardingSettings,
    GroupSettings,
    HttpSettings,
    LinkStateSettings,
    ListenerSettings,
    LogSettings,
    NeighborSettings,
    RecorderSettings,
    RouterSettings,
    TlsSettings,
    VhostSettings,
)
from mesh_config.schema import SECTIONS
from mesh_config.settings_file_format import DEFAULTS_SECTIONS, FILE_KEY_DOCS, MESH_FILE_KEYS
from mesh_config.structuring import default_of
from mesh_config.value_rules import SettingsClass, fields_of, kind_of

_CONNECTORS = """\
Each item of a router's `connectors`. With `to`, host and port are taken from the first listener of that router that has
the role `inter-router`; where it binds to all addresses, the host is the router's `host`. A `host` or `port` of the
connector itself overrides these, one in `defaults` does not."""

_TITLES: dict[SettingsClass, tuple[str, str]] = {
    RouterSettings: ("A router", "Below `router`, or below each id in `routers`, where the key is the id."),
    ListenerSettings: ("Listeners", "Each item of a router's `listeners`."),
    ConnectorSettings: ("Connectors", _CONNECTORS),
    TlsSettings: ("TLS profiles", "Each item of a router's `tls`. [How to use them](../how_to/secure-a-mesh.md)."),
    NeighborSettings: ("Neighbors", "Each item of a router's `neighbors`."),
    AddressSettings: (
        "Addresses",
        "Each item of `addresses`, of a router or of the whole mesh: either a prefix or a pattern.",
    ),
    VhostSettings: (
        "Virtual hosts",
        "Each item of `vhosts` of a router, or of `defaults.router`: it should be the same at all routers of a mesh.",
    ),
    GroupSettings: ("User groups", "Each item of `groups` of a virtual host."),
    LinkStateSettings: ("Link state", "Below `link_state` of a router."),
    ForwardingSettings: ("Forwarding", "Below `forwarding` of a router."),
    LogSettings: ("Log", "Below `log` of a router."),
    RecorderSettings: ("Recorder", "Below `recorder` of a router."),
    HttpSettings: ("HTTP", "Below `http` of a router; needs the extra `http` of the package."),
}

_INTRO = """\
# Settings

<!-- Made from mesh_config/models/ by `amqp-mesh config reference`; changes belong there. -->

A settings file is YAML. It describes either one router:

```yaml
router:
  id: A
  listeners:
    - port: 5672
```

or a whole mesh; each router takes its part of it:

```yaml
mesh:
  name: example
defaults:
  connector: {reconnect_max_s: 1.0}
routers:
  A:
    listeners:
      - {port: 5672}
      - {port: 5772, role: inter-router}
  B:
    listeners:
      - {port: 5673}
    connectors:
      - {to: A}
```

Text, numbers and `true` or `false` are as in YAML 1.2. Unknown keys, keys given twice and aliases (`*name`) are
refused.
`amqp-mesh config check FILE` lists what is wrong with a file, with lines. It first lists faults of single values.
Faults between settings of a router come once the values of that router are right, faults between routers once all are.
`amqp-mesh config render FILE --router A` shows all settings of one router, defaults filled in.
For editors there is a JSON Schema, [mesh.schema.json](mesh.schema.json).
"""


def reference_text() -> str:
    """Text of `docs/reference/settings.md`: every setting with type, default, range, unit and meaning."""
    parts = [_INTRO, _file_keys(), _defaults(), *(_section(cls) for cls in SECTIONS), _built_in()]
    return "\n".join(parts)


def _file_keys() -> str:
    rows = [f"| `{key}` | {_cell(FILE_KEY_DOCS[key])} |" for key in MESH_FILE_KEYS]
    return "\n".join(["## The file of a mesh", "", "| Key | Meaning |", "| --- | --- |", *rows, ""])


def _defaults() -> str:
    head = [
        "## Defaults",
        "",
        "Below `defaults` of a mesh file. Settings of the router itself override these, those of a role override those",
        "without one, and all of them what the tables below call default. Mappings are merged, lists are not.",
        "",
        "| Key | Meaning | All settings except |",
        "| --- | --- | --- |",
    ]
    rows = [
        f"| `{word}` | {section.doc} | {', '.join(f'`{key}`' for key in sorted(section.without))} |"
        for word, section in DEFAULTS_SECTIONS.items()
    ]
    return "\n".join([*head, *rows, ""])


def _section(cls: SettingsClass) -> str:
    title, where = _TITLES[cls]
    head = [
        f"## {title}",
        "",
        where,
        "",
        "| Setting | Type | Default | Range | Unit | Meaning |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    return "\n".join([*head, *(_row(field) for field in fields_of(cls)), ""])


def _row(field: attrs.Attribute[Any]) -> str:
    cells = (
        f"`{field.name}`",
        _type(field),
        _default(field),
        _range(field),
        str(field.metadata.get("unit") or ""),
        str(field.metadata["doc"]),
    )
    return f"| {' | '.join(_cell(cell) for cell in cells)} |"


def _type(field: attrs.Attribute[Any]) -> str:
    kind = kind_of(field.type)
    if kind.is_settings:
        title = _TITLES[kind.base][0]
        name = f"[{title}](#{title.lower().replace(' ', '-')})"
    elif issubclass(kind.base, enum.Enum):
        name = ", ".join(f"`{member.value}`" for member in kind.base)
    else:
        name = {str: "text", bool: "`true`, `false`", int: "whole number", float: "number"}[kind.base]
    return f"list of {name}" if kind.is_list else name


def _default(field: attrs.Attribute[Any]) -> str:
    value = default_of(field)
    if value is attrs.NOTHING:
        return "required"
    if value is None or value == ():
        return "none"
    if isinstance(value, tuple):
        return ", ".join(f"`{item}`" for item in value)
    if attrs.has(type(value)):
        return "see there"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _range(field: attrs.Attribute[Any]) -> str:
    low, high = field.metadata.get("low"), field.metadata.get("high")
    if low is None and high is None:
        return ""
    return f"{'' if low is None else low} to {'' if high is None else high}".strip()


def _built_in() -> str:
    head = [
        "## Built-in addresses",
        "",
        "Treatments that need not be written; `addresses` override them, and any other address has the router's",
        "`default_treatment`.",
        "",
        "| Prefix | Treatment |",
        "| --- | --- |",
    ]
    rows = [f"| `{address.prefix}` | `{address.treatment}` |" for address in DEFAULT_ADDRESSES]
    return "\n".join([*head, *rows, ""])


def _cell(text: str) -> str:
    """Text for a cell of a table, where a bar would end it."""
    return text.replace("|", "\\|").replace("\n", " ")
