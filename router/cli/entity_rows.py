"""Rows that a router has answered with, as the commands rely on them: each attribute of its type, or an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from router.cli.management_errors import ManagementError
from router.management.schema import Kind, UnknownNameError, find_type

CLASSES: Final[Mapping[Kind, type | tuple[type, ...]]] = {
    Kind.TEXT: str,
    Kind.INTEGER: int,
    Kind.NUMBER: (int, float),
    Kind.BOOLEAN: bool,
    Kind.LIST: (list, tuple),
    Kind.MAP: dict,
}
"""Classes of the decoded values of each kind."""


class UntoldError(ManagementError):
    """A router has not told an attribute, as one of another version does not."""


class EntityRow(dict[str, Any]):
    """One entity, as *whom* has told of it. What it has not told of raises UntoldError when it is asked for."""

    def __init__(self, values: Mapping[str, Any], whom: str) -> None:
        super().__init__(values)
        self._whom = whom

    def __missing__(self, name: str) -> Any:
        raise UntoldError(
            f"{self._whom} reports no `{name}` of the entities that it was asked for: is it another version?"
        )


Found = TypeVar("Found")


def told(function: Callable[[Mapping[str, Any]], Found], row: Mapping[str, Any], otherwise: Found) -> Found:
    """Result of *function* for a row; *otherwise* where it looks at an attribute that the router has not told."""
    try:
        return function(row)
    except UntoldError:
        return otherwise


def checked(kind: str, rows: Sequence[Mapping[str, Any]], whom: str) -> list[dict[str, Any]]:
    """Entities whose attributes have the types that the schema gives them.

    Args:
        kind: entity type; of one that the schema doesn't have nothing is known.
        rows: values of each by the names of the attributes.
        whom: the router that was asked, for errors.
    Raises:
        ManagementError: one has another type.
    """
    try:
        known = find_type(kind).attributes
    except UnknownNameError:
        known = {}
    for row in rows:
        for name, value in row.items():
            attribute = known.get(name)
            if attribute is None or (value is None and attribute.is_optional):
                continue
            is_number = isinstance(value, bool) and attribute.kind is Kind.INTEGER
            if is_number or not isinstance(value, CLASSES[attribute.kind]):
                said = "nothing" if value is None else f"a value of another type ({type(value).__name__})"
                raise ManagementError(
                    f"{whom} reports {said} for `{name}` of {kind}, which is of type {attribute.kind}"
                )
    return [EntityRow(row, whom) for row in rows]
