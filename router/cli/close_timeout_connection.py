"""A blocking connection of proton that ends in time, also where the other end says nothing any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from proton import Timeout
from proton.utils import BlockingConnection

CLOSE_S: Final = 1.0
"""Maximum time to wait for the peer's Close, seconds: by then the caller has all else that it wanted, or has waited for
it."""


class CloseTimeoutConnection(BlockingConnection):
    """A connection that is cut when the peer doesn't close it too: proton goes on until it does."""

    def wait(
        self, condition: Callable[[], bool], timeout: Literal[False] | float | None = False, msg: str | None = None
    ) -> None:
        """Let events pass until *condition* holds.

        Args:
            condition: to be waited for.
            timeout: seconds; False for those of the connection, None for no bound.
            msg: what is waited for, in the error.
        Raises: Timeout, unless the connection is being closed; ProtonException.
        """
        if not self.closing:
            super().wait(condition, timeout, msg)
            return
        try:
            super().wait(condition, min(self.timeout, CLOSE_S), msg)
        except Timeout:
            if self.conn is not None and self.conn.transport is not None:
                self.conn.transport.close_head()
