"""Errors with which the forwarder rejects a message: what its sender is told, and the AMQP condition."""

from __future__ import annotations

from router.core.errors import PeerProtocolError
from router.core.ids_and_conditions import Condition


class MulticastTooLarge(PeerProtocolError):
    """A multicast above the size that a router holds."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"message is larger than the {limit} bytes that a multicast may have")


class SenderOverMark(PeerProtocolError):
    """A message that had to be held until it is whole, from a connection above its mark."""

    def __init__(self) -> None:
        super().__init__("too much is held for this connection", condition=Condition.RESOURCE_LIMIT_EXCEEDED)


class AddressStreamBudgetSpent(PeerProtocolError):
    """A message above the size that is held, after others to its address have kept publishers waiting."""

    condition = Condition.RESOURCE_LIMIT_EXCEEDED

    def __init__(self) -> None:
        super().__init__("others wait, and large messages to this address came too slowly before: send it later")


class RequestTooLarge(PeerProtocolError):
    """A request above the size that a service of this router takes."""

    condition = Condition.MESSAGE_SIZE_EXCEEDED

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"request is larger than the {limit} bytes that this router reads: {size} bytes or more")


class ForeignUserId(PeerProtocolError):
    """A message whose `user-id` is not the user that sends it."""

    condition = Condition.UNAUTHORIZED_ACCESS

    def __init__(self) -> None:
        super().__init__("the user-id of the message is not that of its sender")


class TooManyRequests(PeerProtocolError):
    """A service of this router has no room for one more request of the same connection."""

    condition = Condition.RESOURCE_LIMIT_EXCEEDED
