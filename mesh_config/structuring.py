"""Nodes of a file to settings, by cattrs, with every fault put at its line. The one file that knows cattrs."""

from __future__ import annotations

import enum
import json
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

import attrs
import cattrs
from cattrs.errors import ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn, override

from mesh_config import qpid_dispatch_names, yaml_text
from mesh_config.findings import Finding, nearest
from mesh_config.misplaced_key_hints import place_of_key
from mesh_config.range_wording import without_unit
from mesh_config.value_rules import (
    Fault,
    SettingsClass,
    base_words,
    expectation,
    fault_of,
    fields_of,
    found_words,
    kind_of,
)

S = TypeVar("S", bound=attrs.AttrsInstance)

_TRUTH = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
_OTHER_WORDS = ("true", "false", "null", *_TRUTH)
_PLAIN_TEXT = r"[A-Za-z_][\w.-]*"
"""Texts that YAML takes for such without quotes, but for other words."""
MOST_DIGITS: Final = 100
"""Maximum digits of a text that is suggested as a number."""
MOST_SUGGESTED: Final = 3
"""Settings of a mapping that is suggested as the item of a list."""
_PORTS: Final = {"amqp": "5672", "amqps": "5671"}
"""Ports that have names, which Qpid Dispatch takes. Source: IANA."""


class _UnfitError(ValueError):
    """A value that cannot be the setting's; `fault` says why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


def structure(node: yaml_text.Node, cls: type[S]) -> tuple[S | None, tuple[Finding, ...]]:
    """Settings of class *cls* from *node*.

    Returns: the settings, or None when anything is wrong with them; all that is wrong.
    """
    try:
        return _CONVERTER.structure(yaml_text.plain(node), cls), ()
    except (ValueError, cattrs.BaseValidationError) as error:
        return None, tuple(_findings(error, node, cls))


def unstructure(settings: attrs.AttrsInstance, *, with_defaults: bool) -> dict[str, Any]:
    """Plain mappings, lists and scalars, in the order of the models.

    Args:
        settings: an object of one of the models.
        with_defaults: also what has the default value.
    """
    plain: dict[str, Any] = {}
    for field in fields_of(type(settings)):
        value = getattr(settings, field.name)
        if with_defaults or value != default_of(field):
            plain[field.name] = plain_value(value, with_defaults=with_defaults)
    return plain


def default_of(field: attrs.Attribute[Any]) -> Any:
    """Default value of a setting; `attrs.NOTHING` when it must be written."""
    default: Any = field.default
    return default.factory() if hasattr(default, "factory") else default


def plain_value(value: Any, *, with_defaults: bool) -> Any:
    """Turn any value of a setting into plain values, like `unstructure`."""
    if attrs.has(type(value)):
        return unstructure(value, with_defaults=with_defaults)
    if isinstance(value, tuple):
        return [plain_value(item, with_defaults=with_defaults) for item in value]
    return value.value if isinstance(value, enum.Enum) else value


def _converter() -> cattrs.Converter:
    converter = cattrs.Converter(detailed_validation=True, forbid_extra_keys=True)
    for base in (str, int, float, bool):
        converter.register_structure_hook(base, _scalar)
    converter.register_structure_hook_factory(attrs.has, lambda cls: _settings_hook(converter, cls))
    return converter


def _scalar(value: Any, base: type) -> Any:
    """A scalar of exactly its type, for `"5672"` or `true` as a port is a slip; a whole number may be a float."""
    if type(value) is base:
        return value
    if base is float and type(value) is int and abs(value) <= sys.float_info.max:
        return float(value)
    near = _TRUTH.get(value.lower()) if base is bool and isinstance(value, str) else None
    if base is str and isinstance(value, (bool, int, float)):
        near = f'"{yaml_text.write(value).split()[0]}"'
    if base in (int, float) and isinstance(value, str) and value.strip().isdecimal():
        near = "".join(str(unicodedata.decimal(digit)) for digit in value.strip())
    raise _UnfitError(Fault(message=found_words(value), expected=base_words(base), nearest=near))


def _as_list(converter: cattrs.Converter, value: Any, base: type) -> str | None:
    """The list of what stands alone, a text or the settings of one item; None where that would be wrong too."""
    if attrs.has(base):
        return _as_item(converter, value, base)
    if isinstance(value, str) and issubclass(base, enum.Enum):
        value = _near_member(value, base)
    elif base is not str:
        return None
    if not isinstance(value, str):
        return None
    return f"[{_flow(value)}]"


def _as_item(converter: cattrs.Converter, value: Any, cls: SettingsClass) -> str | None:
    if not isinstance(value, dict) or not 0 < len(value) <= MOST_SUGGESTED:
        return None
    if not all(isinstance(each, str | int | float) for each in value.values()):
        return None
    try:
        converter.structure(value, cls)
    except (ValueError, cattrs.BaseValidationError):
        return None
    return f"[{{{', '.join(f'{key}: {_flow(each)}' for key, each in value.items())}}}]"


def _flow(value: str | float) -> str:
    """A scalar as YAML has it among others in one line."""
    if not isinstance(value, str):
        return str(value).lower()
    is_plain = re.fullmatch(_PLAIN_TEXT, value) and value.lower() not in _OTHER_WORDS
    return value if is_plain else json.dumps(value, ensure_ascii=False)


def _enum_member(value: Any, cls: type[enum.Enum]) -> enum.Enum:
    members = {str(member.value): member for member in cls}
    if isinstance(value, str) and value in members:
        return members[value]
    word = value[0] if isinstance(value, list) and len(value) == 1 else value  # as another setting has a list of them
    near = _near_member(word, cls) if isinstance(word, str) else None
    raise _UnfitError(Fault(message=found_words(value), expected=base_words(cls), nearest=near))


def _near_member(value: str, cls: type[enum.Enum]) -> str | None:
    return nearest(value, [str(member.value) for member in cls])


def _as_mapping(value: Any, cls: SettingsClass) -> str | None:
    """The settings of a port, or of one word, alone; None where it can't be one, or they need more."""
    fields = {field.name: field for field in fields_of(cls)}
    if isinstance(value, str):
        return _of_word(value, fields)
    port = fields.pop("port", None)
    if port is None or type(value) is not int or any(field.default is attrs.NOTHING for field in fields.values()):
        return None
    return f"{{port: {value}}}" if fault_of(port, value) is None else None


def _of_word(word: str, fields: dict[str, attrs.Attribute[Any]]) -> str | None:
    """The settings that have *word* alone, if it is one of the words of just one of them."""
    if any(field.default is attrs.NOTHING for field in fields.values()):
        return None
    kinds = {name: kind_of(field.type) for name, field in fields.items()}
    names = [
        name
        for name, kind in kinds.items()
        if issubclass(kind.base, enum.Enum) and not kind.is_list and word in [member.value for member in kind.base]
    ]
    return f"{{{names[0]}: {word}}}" if len(names) == 1 else None


def _settings_hook(converter: cattrs.Converter, cls: SettingsClass) -> Callable[[Any, Any], Any]:
    overrides: dict[str, Any] = {
        field.name: override(struct_hook=_field_hook(converter, field)) for field in fields_of(cls)
    }
    from_dict = make_dict_structure_fn(cls, converter, **overrides)

    for field in fields_of(cls):
        base = kind_of(field.type).base
        if issubclass(base, enum.Enum) and converter.get_structure_hook(base) is not _enum_member:
            # One by one: by its class alone an enum of text would fall to the hook of text. Only once, for each
            # registration makes the converter forget the functions that it has generated.
            converter.register_structure_hook(base, _enum_member)

    def hook(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise _UnfitError(Fault(message=found_words(value), expected="a mapping", nearest=_as_mapping(value, cls)))
        return from_dict(value, cls)

    return hook


def _field_hook(converter: cattrs.Converter, field: attrs.Attribute[Any]) -> Callable[[Any, Any], Any]:
    kind = kind_of(field.type)

    def hook(value: Any, _: Any) -> Any:
        if kind.is_optional and value is None:
            return None
        if kind.is_list:
            if not isinstance(value, list):
                raise _UnfitError(
                    Fault(message=found_words(value), expected="a list", nearest=_as_list(converter, value, kind.base))
                )
            return converter.structure(value, tuple[kind.base, ...])  # type: ignore[name-defined]
        try:
            result: Any = converter.structure(value, kind.base)
        except _UnfitError as unfit:
            # The field knows the range too, which the base type does not, and the unit.
            near = unfit.fault.nearest
            if near is None and isinstance(value, str) and kind.base in (int, float):
                near = without_unit(value, field.metadata.get("unit") or "")
                if field.name == "port":
                    near = _PORTS.get(value.lower())
            raise _UnfitError(
                attrs.evolve(unfit.fault, expected=expectation(field), nearest=_right(field, near))
            ) from None
        fault = fault_of(field, result)
        if fault is not None:
            raise _UnfitError(fault)
        return result

    return hook


def _right(field: attrs.Attribute[Any], near: str | None) -> str | None:
    """The suggestion *near*, if it can stand at the setting; else what is nearest to it there."""
    base = kind_of(field.type).base
    if near is None or base not in (str, int, float):
        return near
    if base is not str and len(near) > MOST_DIGITS:
        return None
    try:
        fault = fault_of(field, near.strip('"') if base is str else base(near))
    except ValueError:  # a part of a byte
        return None
    return near if fault is None else fault.nearest


def _findings(error: BaseException, node: yaml_text.Node, cls: SettingsClass) -> Iterator[Finding]:
    """Findings of one error tree; each level of it says by a note which attribute or item it is about."""
    if isinstance(error, cattrs.BaseValidationError):
        for inner in error.exceptions:
            step = _step(inner)
            if isinstance(inner, KeyError) and isinstance(step, str):
                yield node.place.finding(f"`{step}` is missing", expected=_expected(cls, step), at=(step,))
            else:
                yield from _findings(inner, _below(node, step), _class_below(cls, step))
    elif isinstance(error, ForbiddenExtraKeysError):
        for key in sorted(error.extra_fields):
            yield unknown_key(
                node, key, tuple(field.name for field in fields_of(cls)), elsewhere=place_of_key(cls, key)
            )
    elif isinstance(error, _UnfitError):
        yield node.place.finding(error.fault.message, expected=error.fault.expected, nearest=error.fault.nearest)
    else:
        raise error


def unknown_key(node: yaml_text.Node, key: str, known: tuple[str, ...], *, elsewhere: str = "") -> Finding:
    """The finding that *key* of *node* is none of the *known* ones.

    Args:
        node: that has it.
        key: the unknown one.
        known: what may stand there.
        elsewhere: the place where such a key stands, in words; empty where there is none.
    """
    place = node.key_places[key] if isinstance(node, yaml_text.MapNode) and key in node.key_places else node.place
    message = f"unknown key `{key}`"
    if elsewhere and key not in known:
        return place.finding(message, expected=f"it {elsewhere}")
    near = qpid_dispatch_names.own_name(key, known) or nearest(key, known)
    if qpid_dispatch_names.is_without_counterpart(key):
        return place.finding(f"{message}: this setting of Qpid Dispatch has no counterpart", expected="nothing like it")
    return place.finding(message, expected=f"one of {', '.join(known)}" if near is None else "", nearest=near)


def _step(error: BaseException) -> str | int | None:
    for note in getattr(error, "__notes__", ()):
        if isinstance(note, cattrs.AttributeValidationNote):
            return note.name
        if isinstance(note, cattrs.IterableValidationNote):
            return int(note.index)
    return None


def _below(node: yaml_text.Node, step: str | int | None) -> yaml_text.Node:
    if isinstance(node, yaml_text.MapNode) and isinstance(step, str):
        return node.items.get(step, node)
    if isinstance(node, yaml_text.ListNode) and isinstance(step, int):
        return node.items[step]
    return node


def _class_below(cls: SettingsClass, step: str | int | None) -> SettingsClass:
    for field in fields_of(cls):
        if field.name == step and kind_of(field.type).is_settings:
            below: SettingsClass = kind_of(field.type).base
            return below
    return cls


def _expected(cls: SettingsClass, name: str) -> str:
    return next((expectation(field) for field in fields_of(cls) if field.name == name), "")


_CONVERTER = _converter()
