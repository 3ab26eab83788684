"""Settings of every kind, for properties."""

from __future__ import annotations

import enum
from typing import Any

import attrs
from hypothesis import strategies as st

from mesh_config.models import (
    ENVIRONMENT_PATTERN,
    HOST_PATTERN,
    ID_PATTERN,
    NAME_PATTERN,
    PRINCIPAL_PATTERN,
    TEXT_PATTERN,
    VHOST_PATTERN,
    ConnectorSettings,
    MeshSettings,
    RouterSettings,
)
from mesh_config.usable_hosts import host_fault
from mesh_config.value_rules import SettingsClass, fields_of, kind_of

_WORDS = {
    ENVIRONMENT_PATTERN: "aZ_",
    PRINCIPAL_PATTERN: "aZ09._-",
    ID_PATTERN: "AbZ09.-_é\"'#:{",
    HOST_PATTERN: "az09-",
    NAME_PATTERN: "az09/.-_é:#'\"",
    TEXT_PATTERN: "az09/.-_é :#'\"",
    VHOST_PATTERN: "az09.-",
}
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def values(field: attrs.Attribute[Any]) -> st.SearchStrategy[Any]:
    """What a setting may be, within its range and pattern."""
    kind = kind_of(field.type)
    low, high, pattern = (field.metadata.get(key) for key in ("low", "high", "pattern"))
    found: st.SearchStrategy[Any]
    if attrs.has(kind.base):
        found = settings(kind.base)
    elif issubclass(kind.base, enum.Enum):
        found = st.sampled_from(list(kind.base))
    elif kind.base is bool:
        found = st.booleans()
    elif kind.base is int:
        found = st.integers(low, high)
    elif kind.base is float:
        found = st.floats(low, high)
    else:
        found = st.text(_WORDS[pattern], min_size=1, max_size=8) if pattern else _TEXT
        found = found.filter(lambda text: host_fault(text) is None) if pattern == HOST_PATTERN else found
    if kind.is_list:
        return st.lists(found, max_size=2).map(tuple)
    return st.none() | found if kind.is_optional else found


def settings(cls: SettingsClass, **fixed: Any) -> st.SearchStrategy[Any]:
    """Settings of a class, most of them other than the default."""
    return st.builds(cls, **{field.name: values(field) for field in fields_of(cls)} | fixed)


ROUTERS = settings(RouterSettings)


@st.composite
def meshes(draw: st.DrawFn) -> MeshSettings:
    """Meshes of a few routers, whose connectors name each other or anybody."""
    ids = draw(st.lists(values(fields_of(RouterSettings)[0]), min_size=1, max_size=3, unique=True))
    targets = st.none() | st.sampled_from(ids) | st.sampled_from(["elsewhere"])
    connectors = st.lists(settings(ConnectorSettings, to=targets), max_size=2).map(tuple)
    routers = {key: draw(settings(RouterSettings, id=st.just(key), connectors=connectors)) for key in ids}
    return MeshSettings(name=draw(values(fields_of(MeshSettings)[0])), routers=routers)
