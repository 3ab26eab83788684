"""Denials: what policy did not let a client do."""

from __future__ import annotations

import enum

from router.core.errors import PeerProtocolError
from router.core.ids_and_conditions import Condition, ConnectionId


class DenialKind(enum.StrEnum):
    """Kind of a denial, by what was denied."""

    CONNECTION = "connection"
    SENDER = "sender"
    RECEIVER = "receiver"
    MESSAGE = "message"
    USER_ID = "user-id"


class Denied(PeerProtocolError):
    """Policy does not let a client do what it asked for."""

    condition = Condition.UNAUTHORIZED_ACCESS

    def __init__(
        self,
        kind: DenialKind,
        message: str,
        *,
        condition: Condition | None = None,
        connection: ConnectionId | None = None,
    ) -> None:
        super().__init__(message, condition=condition)
        self.kind = kind
        self.connection = connection
        """Connection of the client whose message was denied; None where its rights alone tell who asked."""
