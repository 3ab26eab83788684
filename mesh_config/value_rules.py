"""Rules of the models about single values: kind, range, pattern; and the words in which operators are told so."""

from __future__ import annotations

import enum
import functools
import inspect
import json
import math
import re
import types
import typing
import unicodedata
from typing import Any, Final

import attrs

from mesh_config.models import (
    ENVIRONMENT_PATTERN,
    HOST_PATTERN,
    ID_PATTERN,
    NAME_PATTERN,
    PRINCIPAL_PATTERN,
    TEXT_PATTERN,
    VHOST_PATTERN,
)
from mesh_config.range_wording import range_words
from mesh_config.usable_hosts import EXPECTED as HOST_EXPECTED
from mesh_config.usable_hosts import host_fault

SettingsClass = type[attrs.AttrsInstance]

EVERY_ROUTER: Final = "all"
"""Stands for every router in addresses."""
MOST_ID_CHARACTERS: Final = 255

_UNSEEN_BEYOND: Final = re.compile("[\U000e0000-\U000e0fff\ud800-\udfff]")
"""Further characters of no width; a pattern of ECMA 262 and Python alike can't name them."""
_PATTERN_WORDS = {
    ID_PATTERN: "a word of 1 to 255 visible characters, without blanks and `/`, and not `all`",
    NAME_PATTERN: "a name of visible characters, without a blank at its ends",
    HOST_PATTERN: HOST_EXPECTED,
    VHOST_PATTERN: "a word of 1 to 255 visible characters, without blanks, `/` and `:`, and no `$` or `_` first",
    ENVIRONMENT_PATTERN: "the name of a variable of the environment",
    PRINCIPAL_PATTERN: "a word without blanks, `/` and `@`",
    TEXT_PATTERN: "text, not empty and without control characters",
}


@attrs.frozen(kw_only=True)
class AnnotationKind:
    """Kind of value that a setting's type annotation comes down to."""

    base: type
    """Type of one value: str, int, float, bool, an enum or a class of settings."""
    is_list: bool = False
    is_map: bool = False
    is_optional: bool = False

    @property
    def is_settings(self) -> bool:
        """Whether the value, or each value of the list or mapping, has settings of its own."""
        return attrs.has(self.base)


@attrs.frozen(kw_only=True)
class Fault:
    """Reason why a value cannot be a setting's."""

    message: str
    expected: str
    nearest: str | None = None


def fields_of(cls: SettingsClass) -> tuple[attrs.Attribute[Any], ...]:
    """Settings of a class with types resolved: its own in the order of definition, then the inherited ones."""
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(attrs.resolve_types(cls))
    own = inspect.get_annotations(cls)
    return tuple(sorted(fields, key=lambda field: field.name not in own))


def field_of(cls: SettingsClass, name: str) -> attrs.Attribute[Any]:
    """One setting of a class. Raises: StopIteration when it has none of that name."""
    return next(field for field in fields_of(cls) if field.name == name)


def kind_of(annotation: Any) -> AnnotationKind:
    """The kind of values that a resolved annotation stands for.

    Raises:
        TypeError: an annotation that settings do not use.
    """
    return _kind_of(annotation)


@functools.cache
def _kind_of(annotation: Any) -> AnnotationKind:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is tuple:
        return AnnotationKind(base=arguments[0], is_list=True)
    if origin is not None and isinstance(origin, type) and issubclass(origin, typing.Mapping):
        return AnnotationKind(base=arguments[1], is_map=True)
    if origin in (types.UnionType, typing.Union):
        (inner,) = (argument for argument in arguments if argument is not types.NoneType)
        return attrs.evolve(_kind_of(inner), is_optional=True)
    if isinstance(annotation, type):
        return AnnotationKind(base=annotation)
    raise TypeError(f"no setting may have the type {annotation!r}")


def expectation(field: attrs.Attribute[Any]) -> str:
    """Describe in words what may stand at a setting."""
    kind = kind_of(field.type)
    if kind.is_list:
        return "a list"
    if kind.is_map or kind.is_settings:
        return "a mapping"
    if kind.base in (int, float):
        unit = f" ({field.metadata['unit']})" if field.metadata.get("unit") else ""
        return f"{base_words(kind.base)}{range_words(field.metadata.get('low'), field.metadata.get('high'))}{unit}"
    pattern = field.metadata.get("pattern")
    if names := field.metadata.get("names"):
        return f"the name of {names}"
    return _PATTERN_WORDS.get(pattern, f"text that fits {pattern}") if pattern else base_words(kind.base)


def base_words(base: type) -> str:
    """Name of the values of a kind."""
    if issubclass(base, enum.Enum):
        return f"one of {', '.join(f'`{member.value}`' for member in base)}"
    if attrs.has(base):
        return "a mapping"
    return {str: "text", bool: "`true` or `false`", int: "a whole number", float: "a number"}[base]


def found_words(value: object) -> str:
    """Describe what was found, for the operator."""
    match value:
        case None:
            return "nothing"
        case bool():
            return f"`{str(value).lower()}`"
        case int() | float():
            return f"the number `{_short(str(value))}`"
        case str():
            # In quotes, or "5" where a number belongs would look right.
            return f"the text {_quoted(value if len(value) <= 60 else value[:57] + '...')}"
        case dict():
            return "a mapping"
        case _:
            return "a list"


def fault_of(field: attrs.Attribute[Any], value: object) -> Fault | None:
    """Fault of *value*, of the right type already, when it is out of the setting's range or pattern; else None.

    Source: the field's metadata (`mesh_config.models.setting_field.setting`).
    """
    low, high, pattern = (field.metadata.get(key) for key in ("low", "high", "pattern"))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        # Written so that NaN, which compares with nothing, is refused.
        if (low is None or value >= low) and (high is None or value <= high):
            return None
        limit = low if low is not None and not value >= low else high
        is_nan = isinstance(value, float) and math.isnan(value)  # there are whole numbers beyond any float
        nearest = None if limit is None or is_nan else str(limit)
        return Fault(message=f"{_short(str(value))} is out of range", expected=expectation(field), nearest=nearest)
    if isinstance(value, str) and pattern and not _fits(pattern, value):
        # Who writes a password where the name of its variable belongs must not find it in an error.
        is_secret = pattern == ENVIRONMENT_PATTERN
        found = "the name" if is_secret else found_words(value)
        misfit = "has characters that it may not have" if is_secret else _misfit(value, pattern)
        return Fault(message=f"{found} {misfit}", expected=expectation(field))
    if isinstance(value, str) and pattern == HOST_PATTERN and (host := _host_before_port(value)) is not None:
        expected = "only the host: the port has a setting of its own"
        return Fault(message=f"{found_words(value)} is a host and a port", expected=expected, nearest=host)
    if isinstance(value, str) and pattern == HOST_PATTERN and (said := host_fault(value)) is not None:
        return Fault(message=f"{found_words(value)} {said}", expected=expectation(field))
    return None


def _host_before_port(value: str) -> str | None:
    """The host of `HOST:PORT`; None for what is no such thing, as an address of IPv6."""
    host, colon, port = value.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    is_both = colon and port.isdecimal() and host_fault(value) is not None
    return host if is_both and host and host_fault(host) is None else None


def _fits(pattern: str, value: str) -> bool:
    is_name = pattern in (ID_PATTERN, NAME_PATTERN, VHOST_PATTERN)
    return re.fullmatch(pattern, value) is not None and not (is_name and _UNSEEN_BEYOND.search(value))


def _misfit(value: str, pattern: str) -> str:
    """Why a text does not fit a pattern of names, in words that go on from it."""
    if not value:
        return "is empty"
    if pattern == ID_PATTERN and value == EVERY_ROUTER:
        return "means every router, so none can have it for an id"
    for character in value:
        if not _fits(pattern, f"x{character}x"):
            return f"has {_character_words(character)}, which it may not have"
    if value[0].isspace() or value[-1].isspace():
        return "begins or ends with a blank"
    if len(value) > MOST_ID_CHARACTERS and not re.fullmatch(pattern, "x" * len(value)):
        return f"has {len(value)} characters"
    return f"begins with `{value[0]}`" if not re.fullmatch(pattern, value[0]) else "does not fit"


def _character_words(character: str) -> str:
    if character == " ":
        return "a blank"
    if character.isprintable():
        return f"`{character}`"
    name = unicodedata.name(character, "a control character").lower()
    return f"the character U+{ord(character):04X} ({name})"


def _quoted(text: str) -> str:
    """*text* in quotes, with escapes for what could not be seen."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in json.dumps(text, ensure_ascii=False)
    )


def _short(number: str) -> str:
    """The number, as far as anybody would read it."""
    return number if len(number) <= 40 else f"{number[:20]}..."
