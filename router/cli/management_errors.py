"""Why a router could not be asked, for the commands that ask one."""

from __future__ import annotations


class ManagementError(Exception):
    """The router cannot be asked, or refused; the message is for the operator."""


class RefusedError(ManagementError):
    """The router answered with an error."""

    def __init__(self, status: int, description: str) -> None:
        super().__init__(f"{description} ({status})")
        self.status = status


class ForeignRouterError(ManagementError):
    """The router answers, but is none of amqp-mesh."""
