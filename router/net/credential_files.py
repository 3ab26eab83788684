"""Files of TLS and of users, read again when they are others: in threads, so that no message waits for a disk.

Even the look whether a file is another one is a thread's. What was read before counts until a thread has read it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import trio

from mesh_config.models import HttpSettings, ListenerSettings
from router.core.errors import LocalError
from router.net.handshake_socket import HandshakeFailed
from router.security.credential_store import CredentialStore
from router.security.credential_table import EndpointSettings
from router.security.users import Users
from router.security.value_from_files import ValueFromFiles

READING_S: Final = 2.0
"""Maximum wait of a connection for files that are looked at and read, seconds; then it is judged by what they were."""


class CredentialFiles:
    """Keeps what was made of the files of one router as they are."""

    def __init__(self, credentials: CredentialStore, told: Callable[[Exception], None]) -> None:
        """*told* takes faults of ours."""
        self._credentials = credentials
        self._told = told
        self._readings: dict[ValueFromFiles[Any], trio.Event] = {}
        """Files that a thread looks at, one for each at a time, with the event that is set when it has."""

    async def context(self, endpoint: EndpointSettings) -> Any:
        """Context of TLS for a new connection of a listener or connector with a profile.

        Raises:
            HandshakeFailed: its settings have changed since the connection began, and it has none any more.
        """
        try:
            profile = self._credentials.profile(endpoint)
        except LocalError as error:
            raise HandshakeFailed(str(error)) from None
        await self._await_reading(profile)
        return profile.content

    async def users_of(self, listener: ListenerSettings | HttpSettings) -> Users | None:
        """Users of a listener's file, as it is now.

        Raises:
            HandshakeFailed: its settings have changed since the connection began, and nothing names the file any more.
        """
        try:
            users = self._credentials.users_of(listener)
        except LocalError as error:
            raise HandshakeFailed(str(error)) from None
        if users is not None:
            await self._await_reading(users.file)
        return users

    async def refresh(self) -> None:
        """Read all files that have changed; one that hangs holds up none of the others."""
        async with trio.open_nursery() as nursery:
            for each in self._credentials.files():
                nursery.start_soon(self._await_reading, each)

    async def _await_reading(self, content: ValueFromFiles[Any]) -> None:
        reading = self._readings.get(content)
        if reading is None:
            reading = self._readings[content] = trio.Event()
            # Others may wait for it too: it doesn't end with the task that was the first.
            trio.lowlevel.spawn_system_task(self._read, content, reading)
        with trio.move_on_after(READING_S):
            await reading.wait()

    async def _read(self, content: ValueFromFiles[Any], is_read: trio.Event) -> None:
        try:
            limiter = trio.CapacityLimiter(1)  # a file that hangs holds up no other one
            problem = await trio.to_thread.run_sync(content.refresh, abandon_on_cancel=True, limiter=limiter)
            self._credentials.tell(content, problem)
        except Exception as error:  # a fault of ours must not end the router
            self._told(error)
        finally:
            del self._readings[content]
            is_read.set()
