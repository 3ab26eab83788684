"""Bounds that policy sets to what a client sends, or a neighbor, as far as the data plane asks for them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from router.core.ids_and_conditions import ConnectionId


class SenderAddressRights(Protocol):
    """Rights to name addresses in messages: of a client (`router.core.policy`), of a neighbor with bounds."""

    prefix: str
    """Word before each of its addresses in the mesh; empty for none."""

    def message_target(self, address: str, connection: ConnectionId | None = None) -> str:
        """The address that a message names, as the mesh knows it. Raises: PeerProtocolError when it may not."""

    def asks_other_router(self, address: str) -> bool:
        """Whether requests to an address ask another router, which doesn't know what their sender may do."""

    def denied_user_id(self, error: Exception, connection: ConnectionId) -> None:
        """Count a message whose `user-id` was not its sender's."""


class ReadingRate(Protocol):
    """Bound of the messages that are read of a connection."""

    def wait(self, now: float) -> float:
        """Time until the next message may be begun, seconds; 0 when it may be now."""

    def bottleneck(self, now: float) -> Hashable:
        """Find the bound, shared with other connections or not, that the next message waits for; *now* is seconds."""

    def take(self) -> None:
        """Count a message."""
