"""Kinds of the values of a model: text, whole numbers, numbers, lists; what programs give is of no checked type."""

from __future__ import annotations

import enum
import functools
import numbers
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

import attrs
import numpy as np

from mesh_config.findings import Finding
from mesh_config.value_rules import AnnotationKind, SettingsClass, base_words, expectation, fields_of, kind_of
from mesh_config.yaml_text import Place

_T = TypeVar("_T")
_SHOWN: Final = 200
"""Characters of a value that is shown."""


def with_plain_values(item: _T) -> _T:
    """Copy of an item with plain Python values: no numbers of numpy, no words of an enumeration.

    A text where a list of names belongs is a list of this one, and not of its letters.

    Args:
        item: an element of a model, or a demand. What has another kind is left as it is, for `kind_findings`.
    """
    changed: dict[str, object] = {}
    any_item: Any = item
    cls: Any = type(item)
    for name, kind, _ in _kinds_of(cls):
        value = getattr(item, name)
        plain = _plain(kind, value)
        if plain is not value:
            changed[name] = plain
    found: _T = attrs.evolve(any_item, **changed) if changed else item
    return found


def kind_findings(item: attrs.AttrsInstance, at: Place) -> Iterator[Finding]:
    """Find the values of an item that are of another kind than their field.

    Args:
        item: an element of a model, or a demand.
        at: place of the item.
    """
    for name, kind, expected in _kinds_of(type(item)):
        value = getattr(item, name)
        if not _is_of(kind, value):
            yield at.finding(shown(value), expected=expected, at=(name,))


def amount_of(value: object) -> float | None:
    """A number as Python has it; None for what is no number, as a text or a truth value."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    try:
        return float(value)
    except OverflowError:  # a whole number beyond any float
        return float("inf")


def names_of(given: object) -> list[str] | None:
    """Names: one text is one of them and not its letters, anything else is read one by one; None: it can't be."""
    if isinstance(given, str):
        return [given]
    if not isinstance(given, Iterable) or isinstance(given, Mapping):
        return None
    found = list(given)
    return found if all(isinstance(each, str) for each in found) else None


def shown(value: object) -> str:
    """A value as it is told to whoever gave it, with its type."""
    text = repr(value)
    text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return f"{text} of type {type(value).__name__}"


@functools.cache
def _kinds_of(cls: SettingsClass) -> tuple[tuple[str, AnnotationKind, str], ...]:
    """Name, kind and what is expected, of each field."""
    return tuple((field.name, kind := kind_of(field.type), _expected(field, kind)) for field in fields_of(cls))


def _expected(field: attrs.Attribute[Any], kind: AnnotationKind) -> str:
    words = f"a list of {base_words(kind.base)}s" if kind.is_list else expectation(field)
    return f"{words}, or None" if kind.is_optional else words


def _plain(kind: AnnotationKind, value: object) -> object:
    if kind.is_list:
        names = names_of(value)
        return value if isinstance(value, tuple) or names is None else tuple(names)
    if isinstance(value, np.integer | np.floating):
        return value.item()
    if isinstance(value, str) and issubclass(kind.base, enum.Enum) and not isinstance(value, enum.Enum):
        return next((member for member in kind.base if member.value == value), value)
    return value


def _is_of(kind: AnnotationKind, value: object) -> bool:
    if kind.is_list:
        return isinstance(value, tuple) and all(isinstance(each, kind.base) for each in value)
    if value is None:
        return kind.is_optional
    if kind.base in (int, float):
        return isinstance(value, (int, kind.base)) and not isinstance(value, bool)
    if issubclass(kind.base, enum.Enum):  # words are equal to members, and written alike
        return value in {member.value for member in kind.base} if isinstance(value, str) else False
    return isinstance(value, kind.base)
