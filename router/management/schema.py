"""The entity types of management: read from the rows, with the names and operations of Qpid Dispatch."""

from __future__ import annotations

import difflib
import enum
import functools
import json
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from router.engine.message_codec import EncodedMap
from router.management.config_log_and_memory_rows import (
    AddressConfigRow,
    AllocatorRow,
    AutoLinkRow,
    BindingRow,
    ExchangeRow,
    LinkRouteRow,
    PolicyRow,
    RouterLogRow,
    RouterLogStatsRow,
    VhostConfigRow,
)
from router.management.snapshot import (
    AddressRow,
    ConnectionRow,
    ConnectorRow,
    CreditRow,
    LinkRow,
    ListenerRow,
    ManagementRow,
    MeshLinkRow,
    NodeRow,
    PartyRow,
    ProblemRow,
    RouterRow,
    Row,
    Value,
    VhostRow,
)

PREFIX: Final = "org.apache.qpid.dispatch."
"""Prefix that may be left out of the name of a type."""
OWN_PREFIX: Final = "amqp-mesh."
"""Prefix of the types that Qpid Dispatch does not have."""
MANAGEMENT: Final = "org.amqp.management"

GENERAL_OPERATIONS: Final = (
    "QUERY",
    "GET-TYPES",
    "GET-ATTRIBUTES",
    "GET-OPERATIONS",
    "GET-ANNOTATIONS",
    "GET-MGMT-NODES",
    "GET-SCHEMA",
    "GET-JSON-SCHEMA",
    "GET-LOG",
)
"""Operations of the management node itself that change nothing."""
CHANGING_OPERATIONS: Final = ("RELOAD", "DRAIN", "RESUME")
"""Operations of the management node itself that change something; the others are those of one entity."""
NODE_OPERATIONS: Final = (*GENERAL_OPERATIONS, *CHANGING_OPERATIONS)


class Kind(enum.StrEnum):
    """Type of an attribute's value."""

    TEXT = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    LIST = "list"
    MAP = "map"


@attrs.frozen(kw_only=True)
class Attribute:
    """One attribute of an entity type."""

    name: str
    """Name of the attribute on the wire, in camel case."""
    kind: Kind
    is_optional: bool
    """Whether it may be null."""
    doc: str
    field: str
    """Field of the row; empty for `type`."""


@attrs.frozen(kw_only=True)
class EntityType:
    """One type of entities."""

    name: str
    """Full name of the type, with the prefix."""
    row: type[Row]
    doc: str
    attributes: Mapping[str, Attribute]
    """Attributes of the type by name, in the order in which they are shown."""
    operations: Sequence[str] = ("READ",)
    is_singleton: bool = False
    """Whether READ needs neither name nor identity."""
    is_of_address: bool = False
    """Whether a QUERY may ask for those of one address."""

    @property
    def short_name(self) -> str:
        """Name of the type without the prefix."""
        return self.name.removeprefix(PREFIX)

    def value(self, row: Row, attribute: str) -> Value:
        """An attribute of one entity; None when the type has no such attribute."""
        found = self.attributes.get(attribute)
        if found is None:
            return None
        value: Value = getattr(row, found.field) if found.field else self.name
        return value

    def values(self, row: Row) -> dict[str, Value]:
        """All attributes of one entity."""
        return {name: self.value(row, name) for name in self.attributes}


class UnknownNameError(LookupError):
    """A name that nothing has; the message says the nearest one that there is."""

    def __init__(self, what: str, word: str, known: Iterable[str]) -> None:
        choices = list(known)
        near = nearest(word, choices)
        hint = f"; the nearest is {near}" if near else f"; there are {', '.join(choices)}" if len(choices) < 20 else ""
        super().__init__(f"no {what} `{word[:200]}`{hint}")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known name most like *word*, None when none is like it."""
    by_fold = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word[:200].lower(), by_fold, n=1, cutoff=0.5)
    return by_fold[found[0]] if found else None


def find_type(name: str) -> EntityType:
    """The entity type of that name, in full or short.

    Raises: UnknownNameError.
    """
    found = TYPES.get(name) or TYPES.get(PREFIX + name)
    if found is None:
        raise UnknownNameError("entity type", name.removeprefix(PREFIX), [each.short_name for each in TYPES.values()])
    return found


GROUP_ATTRIBUTES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("users", "remoteHosts", "sources", "targets", "sourcePattern", "targetPattern"), "string"),
    **dict.fromkeys(
        (
            "maxConnectionsPerUser",
            "maxConnectionsPerHost",
            "maxSessions",
            "maxSessionWindow",
            "maxSenders",
            "maxReceivers",
            "maxFrameSize",
            "maxMessageSize",
        ),
        "integer",
    ),
    **dict.fromkeys(
        (
            "allowDynamicSource",
            "allowAnonymousSender",
            "allowUserIdProxy",
            "allowWaypointLinks",
            "allowDynamicLinkRoutes",
            "allowAdminStatusUpdate",
            "allowFallbackLinks",
        ),
        "boolean",
    ),
}
"""Attributes of a group of a virtual host, with their types."""


@functools.cache
def encoded_schema() -> EncodedMap:
    """The schema as it is given in answers: to make it for each takes 2 ms."""
    return EncodedMap(json_schema())


@functools.cache
def schema_text() -> str:
    """The schema as JSON."""
    return json.dumps(json_schema())


def json_schema() -> dict[str, object]:
    """The schema as Qpid Dispatch writes it: attributes and operations of each type, by its short name."""
    return {
        "prefix": PREFIX.rstrip("."),
        "annotations": {},
        "entityTypes": {
            **{kind.short_name: _type_schema(kind) for kind in TYPES.values()},
            # No type of entities, but the maps in the attribute `groups` of `vhost`: qdstat looks for it.
            "vhostUserGroupSettings": {
                "fullyQualifiedType": f"{PREFIX}vhostUserGroupSettings",
                "description": "A group of a virtual host.",
                "operations": [],
                "attributes": {
                    name: {"type": kind, "description": "", "required": False}
                    for name, kind in GROUP_ATTRIBUTES.items()
                },
            },
        },
    }


def _type_schema(kind: EntityType) -> dict[str, object]:
    attributes = {
        each.name: {"type": each.kind.value, "description": each.doc, "required": False}
        | ({"unique": True} if each.name in ("name", "identity") else {})
        for each in kind.attributes.values()
    }
    return {
        "fullyQualifiedType": kind.name,
        "description": kind.doc,
        "operations": list(kind.operations),
        "singleton": kind.is_singleton,
        "attributes": attributes,
    }


def _wire_name(field: str) -> str:
    head, *rest = field.split("_")
    return head + "".join(word.capitalize() for word in rest)


def _kind(hint: Any) -> tuple[Kind, bool]:
    """Type of a field's values, and whether null is one."""
    if isinstance(hint, types.UnionType):
        inner = [each for each in typing.get_args(hint) if each is not type(None)]
        return _kind(inner[0])[0], True
    plain = {str: Kind.TEXT, bool: Kind.BOOLEAN, int: Kind.INTEGER, float: Kind.NUMBER}
    if hint in plain:
        return plain[hint], False
    return (Kind.MAP if typing.get_origin(hint) is Mapping or "Mapping" in str(hint) else Kind.LIST), False


def _attributes(row: type[Row]) -> dict[str, Attribute]:
    hints = typing.get_type_hints(row)
    found = {}
    for field in attrs.fields(row):
        kind, is_optional = _kind(hints[field.name])
        name = field.metadata["name"] or _wire_name(field.name)
        found[name] = Attribute(
            name=name, kind=kind, is_optional=is_optional, doc=field.metadata["doc"], field=field.name
        )
    found["type"] = Attribute(name="type", kind=Kind.TEXT, is_optional=False, doc="Name of the entity type.", field="")
    return found


def _entity_type(
    name: str,
    row: type[Row],
    *,
    is_singleton: bool = False,
    is_of_address: bool = False,
    operations: Sequence[str] = (),
) -> EntityType:
    doc = " ".join((row.__doc__ or "").split())
    return EntityType(
        name=name,
        row=row,
        doc=doc,
        attributes=_attributes(row),
        operations=("READ", *operations),
        is_singleton=is_singleton,
        is_of_address=is_of_address,
    )


TYPES: Final[Mapping[str, EntityType]] = {
    each.name: each
    for each in (
        _entity_type(f"{PREFIX}router", RouterRow, is_singleton=True),
        _entity_type(f"{PREFIX}connection", ConnectionRow, operations=("UPDATE",)),
        _entity_type(f"{PREFIX}router.link", LinkRow),
        _entity_type(f"{PREFIX}router.address", AddressRow),
        _entity_type(f"{PREFIX}router.node", NodeRow),
        _entity_type(f"{OWN_PREFIX}mesh.link", MeshLinkRow),
        _entity_type(f"{OWN_PREFIX}problem", ProblemRow),
        _entity_type(f"{OWN_PREFIX}credit", CreditRow, is_of_address=True),
        _entity_type(f"{OWN_PREFIX}credit.party", PartyRow, is_of_address=True),
        _entity_type(f"{PREFIX}listener", ListenerRow, operations=("CREATE", "DELETE")),
        _entity_type(f"{PREFIX}connector", ConnectorRow, operations=("CREATE", "DELETE")),
        _entity_type(f"{PREFIX}router.config.address", AddressConfigRow, operations=("CREATE", "DELETE")),
        _entity_type(f"{PREFIX}router.config.linkRoute", LinkRouteRow),
        _entity_type(f"{PREFIX}router.config.autoLink", AutoLinkRow),
        _entity_type(f"{PREFIX}router.config.exchange", ExchangeRow),
        _entity_type(f"{PREFIX}router.config.binding", BindingRow),
        _entity_type(f"{PREFIX}log", RouterLogRow, operations=("UPDATE",)),
        _entity_type(f"{PREFIX}logStats", RouterLogStatsRow),
        _entity_type(f"{PREFIX}allocator", AllocatorRow),
        _entity_type(f"{PREFIX}policy", PolicyRow),
        _entity_type(f"{PREFIX}vhost", VhostConfigRow),
        _entity_type(f"{PREFIX}vhostStats", VhostRow),
        _entity_type(f"{PREFIX}management", ManagementRow, is_singleton=True, operations=NODE_OPERATIONS),
        _entity_type(MANAGEMENT, ManagementRow, is_singleton=True, operations=NODE_OPERATIONS),
    )
}
"""Every entity type by its full name."""
