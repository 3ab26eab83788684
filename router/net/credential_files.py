"""Files of TLS and of users, read again when they are others: in a thread, so that no message waits for a disk.

What was read before counts until then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import trio

from mesh_config.models import HttpSettings, ListenerSettings
from router.security.credential_store import CredentialStore, Socket
from router.security.users import Users
from router.security.value_from_files import ValueFromFiles

READING_S: Final = 2.0
"""Maximum wait of a connection for files that are being read, seconds; then it is judged by what they were before."""


class CredentialFiles:
    """Keeps what was made of the files of one router as they are."""

    def __init__(self, credentials: CredentialStore, told: Callable[[Exception], None]) -> None:
        """*told* takes faults of ours."""
        self._credentials = credentials
        self._told = told
        self._readings: dict[ValueFromFiles[Any], trio.Event] = {}
        """Files that a thread reads, one at a time each, with the event that is set when it has."""

    async def context(self, socket: Socket) -> Any:
        """Context of TLS for a new connection of a listener or connector with a profile."""
        profile = self._credentials.profile(socket)
        await self._await_reading(profile)
        return profile.content

    async def users_of(self, listener: ListenerSettings | HttpSettings) -> Users | None:
        """Users of a listener's file, as it is now."""
        users = self._credentials.users_of(listener)
        if users is not None:
            await self._await_reading(users.file)
        return users

    async def refresh(self) -> None:
        """Read all files that have changed."""
        for each in self._credentials.files():
            await self._await_reading(each)

    async def _await_reading(self, content: ValueFromFiles[Any]) -> None:
        reading = self._readings.get(content)
        if reading is None:
            if not content.is_changed():
                return
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
