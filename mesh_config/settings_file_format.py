"""The shape of a settings file, from which the loader, the JSON Schema and the reference are made.

Two shapes: `router:` with everything of one router; `mesh:`, `defaults:`, `addresses:` and `routers:` of a whole mesh.
"""

from __future__ import annotations

import attrs

from mesh_config.models import ConnectorSettings, ListenerSettings, Role, RouterSettings
from mesh_config.value_rules import SettingsClass, fields_of

ROUTER_FILE_KEYS = ("router",)
MESH_FILE_KEYS = ("mesh", "defaults", "addresses", "routers")
MESH_KEYS = ("name",)

FILE_KEY_DOCS = {
    "router": "Everything of one router; a file that has it describes nothing else.",
    "mesh": "What concerns the mesh as a whole.",
    "defaults": "Settings of every router, listener or connector that does not say otherwise.",
    "addresses": "Treatments at every router; a router's own treatment of the same prefix or pattern overrides it.",
    "routers": "The routers by id.",
}


@attrs.frozen(kw_only=True)
class DefaultsKey:
    """One key below `defaults`: settings of a class that hold where an instance does not write them."""

    cls: SettingsClass
    doc: str
    without: frozenset[str]
    """Settings that belong to one instance only."""
    list_key: str | None = None
    """Setting of a router whose items these are defaults of; None for the router itself."""
    role: Role | None = None
    """Only for items of this role; goes before the section without a role."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Settings that the section may have."""
        return tuple(field.name for field in fields_of(self.cls) if field.name not in self.without)


def _sections() -> dict[str, DefaultsKey]:
    sections = {
        "router": DefaultsKey(
            cls=RouterSettings,
            doc="Of every router.",
            without=frozenset({"id", "mesh", "listeners", "connectors", "addresses"}),
        )
    }
    items: tuple[tuple[str, SettingsClass, frozenset[str]], ...] = (
        ("listener", ListenerSettings, frozenset({"name"})),
        ("connector", ConnectorSettings, frozenset({"name", "to"})),
    )
    for word, cls, without in items:
        sections[word] = DefaultsKey(cls=cls, doc=f"Of every {word}.", without=without, list_key=f"{word}s")
        for role in Role if cls is ListenerSettings else (Role.INTER_ROUTER,):  # connectors to clients are refused
            sections[f"{role.value.replace('-', '_')}_{word}"] = DefaultsKey(
                cls=cls,
                doc=f"Of every {word} with the role `{role.value}`; overrides `{word}`.",
                without=without | {"role"},
                list_key=f"{word}s",
                role=role,
            )
    return sections


DEFAULTS_SECTIONS = _sections()
