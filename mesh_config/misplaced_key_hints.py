"""Places of keys in the settings of a router, in words: for a key that stands at a wrong level."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mesh_config.models import RouterSettings
from mesh_config.value_rules import SettingsClass, fields_of, kind_of

MOST_PLACES: Final = 3
"""A key that may stand at more says little about what is meant."""


def place_of_key(cls: SettingsClass, key: str) -> str:
    """The level at which *key* stands, in words that go on from "it"; empty where there is none, or too many.

    Args:
        cls: class of the settings where it was found, which have no such key.
        key: as it was written.
    """
    below = [
        f"`{field.name}`"
        for field in fields_of(cls)
        if kind_of(field.type).is_settings and key in _names(kind_of(field.type).base)
    ]
    if below:
        return f"below {_either(below)}" if len(below) <= MOST_PLACES else ""
    if cls is RouterSettings:
        return ""
    if key in _names(RouterSettings):
        return "at the router itself"
    places = [f"`{path}`" for path, other in _sections(RouterSettings) if key in _names(other)]
    return f"below {_either(places)} of the router" if 0 < len(places) <= MOST_PLACES else ""


def _names(cls: SettingsClass) -> list[str]:
    return [field.name for field in fields_of(cls)]


def _sections(cls: SettingsClass, above: str = "") -> Iterator[tuple[str, SettingsClass]]:
    """Every group of settings below those of class *cls*, with its path."""
    for field in fields_of(cls):
        kind = kind_of(field.type)
        if kind.is_settings:
            yield f"{above}{field.name}", kind.base
            yield from _sections(kind.base, f"{above}{field.name}.")


def _either(names: list[str]) -> str:
    return " or ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} or {names[-1]}"
