"""Frozen records that register themselves by name and turn into plain dicts and back, as they stand in recordings."""

from __future__ import annotations

import enum
import types
import typing
from collections.abc import Mapping
from typing import ClassVar, Self

import attrs

from router.core.errors import DecodeError, LocalError
from router.core.linkstate.messages import ControlMessage, from_body


class ReplayableRecord:
    """Base of events and actions. A subclass is an attrs class whose fields are of the types that `_restored` knows."""

    __slots__ = ()

    _kinds: ClassVar[dict[str, type[ReplayableRecord]]] = {}
    _field_types: ClassVar[dict[type[ReplayableRecord], dict[str, object]]] = {}

    def __init_subclass__(cls) -> None:
        # attrs makes each class twice (the second has slots); the later one takes the name.
        super().__init_subclass__()
        ReplayableRecord._kinds[cls.__name__] = cls

    def to_dict(self) -> dict[str, object]:
        """Kind and fields: text, numbers, None, lists and dicts only, so it can be written as JSON."""
        plain: dict[str, object] = {"kind": type(self).__name__}
        for name in _types_of(type(self)):
            plain[name] = _plain(getattr(self, name))
        return plain

    @classmethod
    def from_dict(cls, plain: Mapping[str, object]) -> Self:
        """The record that `to_dict` turned into *plain*.

        Raises: LocalError when it is no record of this class: unknown kind, missing, unknown or malformed field.
        """
        kind = ReplayableRecord._kinds.get(str(plain.get("kind")))
        if kind is None or not issubclass(kind, cls):
            raise LocalError(f"no {cls.__name__}: {plain.get('kind')!r}")
        try:
            # A missing or unknown field is a TypeError of the constructor.
            fields = {key: _restored(value, _types_of(kind).get(key)) for key, value in plain.items() if key != "kind"}
            return kind(**fields)
        except (KeyError, TypeError, ValueError, DecodeError) as error:
            raise LocalError(f"malformed {kind.__name__}: {error}") from error


def _types_of(kind: type[ReplayableRecord]) -> dict[str, object]:
    known = ReplayableRecord._field_types.get(kind)
    if known is None:
        hints = typing.get_type_hints(kind)
        fields = attrs.fields(typing.cast("type[attrs.AttrsInstance]", kind))
        known = ReplayableRecord._field_types[kind] = {field.name: hints[field.name] for field in fields}
    return known


def _plain(value: object) -> object:
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, ControlMessage):
        return {"opcode": value.opcode, "body": value.to_body()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _restored(value: object, wanted: object) -> object:
    """*value* as the type *wanted*: a NewType, text, a number, an enum, a message, a tuple or one of these or None."""
    if wanted is None:
        raise KeyError("unknown field")
    origin = typing.get_origin(wanted)
    if origin is types.UnionType or origin is typing.Union:
        (inner,) = (kind for kind in typing.get_args(wanted) if kind is not types.NoneType)
        return None if value is None else _restored(value, inner)
    if origin is tuple:
        return _restored_tuple(value, typing.get_args(wanted))
    while isinstance(wanted, typing.NewType):
        wanted = wanted.__supertype__
    if wanted is ControlMessage and isinstance(value, Mapping):
        return from_body(value["opcode"], value["body"])
    if isinstance(wanted, type) and issubclass(wanted, enum.Enum):
        return wanted(value)
    if isinstance(wanted, type) and isinstance(value, wanted) and isinstance(value, bool) == (wanted is bool):
        return value
    raise TypeError(f"{value!r} is not of type {wanted}")


def _restored_tuple(value: object, items: tuple[object, ...]) -> tuple[object, ...]:
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{value!r} is not a list")
    if len(items) == 2 and items[1] is Ellipsis:
        return tuple(_restored(item, items[0]) for item in value)
    return tuple(_restored(item, wanted) for item, wanted in zip(value, items, strict=True))
