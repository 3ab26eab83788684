"""Questions to the management of a live mesh, and readings of its answers, for snapshots and watches alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from router.core.addressing.address import is_volatile_reply
from router.whatif.formats.management_rows import Row


class ManagementQueries(Protocol):
    """A client of management."""

    def query(self, kind: str, attributes: Sequence[str], *, router: str | None) -> Iterable[Row]:
        """All entities of a type. Raises whatever its caller is to see."""

    def attached_to(self) -> str:
        """Id of the router that it is connected to."""


def mobile_address(key: str) -> str | None:
    """The address of a key of `router.address`; None for those of routers, and of replies, which each client has."""
    text = key[2:] if key.startswith("M") else ""
    return text if text and not is_volatile_reply(text) else None


def order_of_choice(*, cost: int, is_standby: bool, is_accepted: bool, identity: str) -> tuple[int, bool, bool, str]:
    """Sort key of parallel connections, as the end with the smaller id tells of them; the one in use is the first.

    Args:
        cost: of the connection.
        is_standby: whether another one is in use instead of it.
        is_accepted: whether the other end has dialled.
        identity: of the connection, usually a whole number.
    """
    return cost, is_standby, is_accepted, identity.zfill(20)
