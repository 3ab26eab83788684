"""The one small tree of errors. Each knows the AMQP condition to write and the side at fault."""

from __future__ import annotations

from router.core.ids_and_conditions import Condition


class RouterError(Exception):
    """Root of this program's own errors."""

    condition = Condition.INTERNAL_ERROR


class PeerProtocolError(RouterError):
    """The peer broke AMQP or the router protocol; its link or connection is closed with `condition`."""

    condition = Condition.NOT_ALLOWED

    def __init__(self, message: str, *, condition: Condition | None = None) -> None:
        super().__init__(message)
        if condition is not None:
            self.condition = condition


class DecodeError(PeerProtocolError):
    """Bytes that are no valid AMQP, or a message without what its kind requires."""

    condition = Condition.DECODE_ERROR


class LocalError(RouterError):
    """This program or its operator is at fault: a wrong call, a setting that cannot work."""
