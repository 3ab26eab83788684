"""Changes of a router that management can order."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from http import HTTPStatus
from typing import Protocol

from router.core.ids_and_conditions import ConnectionId
from router.management.snapshot import Row


class ChangeError(Exception):
    """A change that cannot be made; the message says what was expected, for whoever asked."""

    def __init__(self, description: str, *, status: int = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(description)
        self.status = status


class Changes(Protocol):
    """A router that can be changed. Each method raises `ChangeError`, and has changed nothing then."""

    def create(self, kind: type[Row], attributes: Mapping[str, object]) -> Generator[None, None, str]:
        """Make an entity; pauses while a name is looked up.

        Args:
            kind: class of its row.
            attributes: by their names on the wire, all known to the schema.
        Returns: its identity.
        """

    def update(self, row: Row, attributes: Mapping[str, object]) -> Row:
        """Change an entity.

        Args:
            row: the entity as it is.
            attributes: those that are to be others, by their names on the wire.
        Returns: the entity as it is then, should it be gone before it is looked for again.
        """

    def delete(self, row: Row) -> None:
        """Take an entity away."""

    def reload(self) -> Generator[None, None, dict[str, list[str]]]:
        """Read the settings file again, and change what can be changed; pauses while it is read.

        Returns: `applied`, what was changed, in words; `needsRestart`, what has changed in the file only.
        """

    def drain(self, kept: ConnectionId | None, *, is_to_stop: bool) -> dict[str, object]:
        """Begin to send clients and paths elsewhere.

        Args:
            kept: connection of the requester, which is not closed; None for one elsewhere.
            is_to_stop: stop the router afterwards.
        Returns: `state`, and `withinSeconds`, the time until that is over.
        """

    def resume(self) -> dict[str, object]:
        """Serve clients and paths again, after a drain. Returns: `state`."""


class NoChanges:
    """A router of which nothing can be changed."""

    def create(self, kind: type[Row], attributes: Mapping[str, object]) -> Generator[None, None, str]:
        """Refuse it."""
        raise ChangeError("nothing can be changed here", status=501)

    def update(self, row: Row, attributes: Mapping[str, object]) -> Row:
        """Refuse it."""
        raise ChangeError("nothing can be changed here", status=501)

    def delete(self, row: Row) -> None:
        """Refuse it."""
        raise ChangeError("nothing can be changed here", status=501)

    def reload(self) -> Generator[None, None, dict[str, list[str]]]:
        """Refuse it."""
        raise ChangeError("nothing can be changed here", status=501)

    def drain(self, kept: ConnectionId | None, *, is_to_stop: bool) -> dict[str, object]:
        """Refuse it."""
        raise ChangeError("nothing can be changed here", status=501)

    def resume(self) -> dict[str, object]:
        """Refuse it."""
        raise ChangeError("nothing can be changed here", status=501)
