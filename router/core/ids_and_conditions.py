"""The words of the core as types: ids that cannot be mixed up, and the AMQP conditions in use."""

from __future__ import annotations

import enum
from typing import Final, NewType

RouterId = NewType("RouterId", str)
"""Name of a router, unique in the mesh; also its AMQP container id."""

ConnectionId = NewType("ConnectionId", int)
"""Number of a connection in this process, from 1, never used twice."""

LinkId = NewType("LinkId", int)
"""Number of a link in this process, from 1, never used twice."""

AREA: Final = "0"
"""The one area of the routing protocol (docs/reference/inter-router-protocol.md#addresses)."""


class Condition(enum.StrEnum):
    """Conditions of AMQP 1.0 (part 2, 2.8.14 to 2.8.18) and of Qpid Dispatch that this router writes."""

    INTERNAL_ERROR = "amqp:internal-error"
    NOT_FOUND = "amqp:not-found"
    UNAUTHORIZED_ACCESS = "amqp:unauthorized-access"
    DECODE_ERROR = "amqp:decode-error"
    FRAME_SIZE_TOO_SMALL = "amqp:frame-size-too-small"
    RESOURCE_LIMIT_EXCEEDED = "amqp:resource-limit-exceeded"
    NOT_ALLOWED = "amqp:not-allowed"
    INVALID_FIELD = "amqp:invalid-field"
    NOT_IMPLEMENTED = "amqp:not-implemented"
    PRECONDITION_FAILED = "amqp:precondition-failed"
    CONNECTION_FORCED = "amqp:connection:forced"
    FRAMING_ERROR = "amqp:connection:framing-error"
    UNATTACHED_HANDLE = "amqp:session:unattached-handle"
    HANDLE_IN_USE = "amqp:session:handle-in-use"
    DETACH_FORCED = "amqp:link:detach-forced"
    MESSAGE_SIZE_EXCEEDED = "amqp:link:message-size-exceeded"
    TRANSFER_LIMIT_EXCEEDED = "amqp:link:transfer-limit-exceeded"
    LINK_STOLEN = "amqp:link:stolen"
    QD_FORBIDDEN = "qd:forbidden"
    QD_CONNECTION_ROLE = "qd:connection-role"
    QD_NO_ROUTE = "qd:no-route-to-dest"
