"""Attributes that routers must tell of themselves for a model to be made of them: which attributes, and of which types.

A reply comes from outside: another version or another program may leave out what is needed, or mean something else.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from mesh_config.findings import Finding, SettingsError, Severity
from mesh_config.value_rules import found_words

Row = Mapping[str, Any]
"""An entity of management, or some of its attributes."""
MAX_FAULTS: Final = 20
"""Faults of one router that are told."""
MAX_NUMBER: Final = 2**63 - 1


class Kind(enum.Enum):
    """Type of an attribute; its value says what was expected."""

    TEXT = "text"
    FLAG = "`true` or `false`"
    COUNT = f"a whole number up to {MAX_NUMBER}"
    COSTS = "a mapping of router ids to whole numbers"

    def takes(self, value: object) -> bool:
        """Whether *value* is of that type."""
        if self is Kind.COUNT:
            return _is_count(value)
        if self is Kind.COSTS:
            return isinstance(value, Mapping) and all(
                isinstance(key, str) and _is_count(cost) for key, cost in value.items()
            )
        return isinstance(value, str if self is Kind.TEXT else bool)


@attrs.frozen
class Attribute:
    """Attribute that is asked for."""

    name: str
    kind: Kind
    is_optional: bool = False
    """Whether a router may say nothing of it."""


def checked_rows(rows: Iterable[Row], attributes: Sequence[Attribute], *, entity: str, router: str) -> tuple[Row, ...]:
    """Check attributes of entities as reported by a router; what it leaves out is None.

    Args:
        rows: as they came, by attribute.
        attributes: that are needed, with their types.
        entity: what they are.
        router: who told.
    Raises: SettingsError when what is needed is missing, or of another type.
    """
    found: list[Row] = []
    faults: list[Finding] = []
    for number, row in enumerate(rows):
        for it in attributes:
            value = row.get(it.name)
            if not it.kind.takes(value) and not (value is None and it.is_optional):
                faults.append(
                    Finding(
                        severity=Severity.ERROR,
                        key=f"{entity}[{number}].{it.name}",
                        message=f"router `{router}` reports {found_words(value)}",
                        expected=it.kind.value,
                    )
                )
        found.append({it.name: row.get(it.name) for it in attributes})
        if len(faults) >= MAX_FAULTS:
            break
    if faults:
        raise SettingsError(faults[:MAX_FAULTS])
    return tuple(found)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_NUMBER
