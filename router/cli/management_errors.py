"""Why a router could not be asked, for the commands that ask one."""

from __future__ import annotations

from router.cli.errors import CommandError


class ManagementError(CommandError):
    """The router cannot be asked, or refused; a command that does not catch it ends with it."""


class RefusedError(ManagementError):
    """The router answered with an error."""

    def __init__(self, status: int, description: str) -> None:
        super().__init__(f"{description} ({status})")
        self.status = status


class UnauthorizedError(ManagementError):
    """The user may ask that router nothing."""


class ForeignRouterError(ManagementError):
    """The router answers, but is none of amqp-mesh."""
