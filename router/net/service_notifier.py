"""Word to the service manager: that the router serves, that it stops, and again and again that its loop runs.

Source: sd_notify(3) and sd_watchdog_enabled(3) of systemd: datagrams to the socket that `NOTIFY_SOCKET` names.
"""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Mapping
from typing import Final

import trio

READY: Final = b"READY=1"
STOPPING: Final = b"STOPPING=1\nEXTEND_TIMEOUT_USEC=%d"
ALIVE: Final = b"WATCHDOG=1"
WORDS_A_PERIOD: Final = 3
"""Number of times that ALIVE is sent in the time after which the service manager takes the process for stuck."""


class ServiceNotifier:
    """Tells a service manager, if there is one, how the router is. Nothing here waits or raises.

    Args:
        path: of the manager's socket, with `@` before one without a file; empty for no manager.
        watchdog_s: seconds of silence after which the manager ends the process; infinity for never.
    """

    def __init__(self, path: str, watchdog_s: float = math.inf) -> None:
        self._path = f"\0{path[1:]}" if path.startswith("@") else path
        self.watchdog_s = watchdog_s if path else math.inf
        self._sock: socket.socket | None = None
        if path:
            self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
            self._sock.setblocking(False)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> ServiceNotifier:
        """The manager that has started this process. A time for another process's watchdog is not ours."""
        period_us, pid = environment.get("WATCHDOG_USEC", ""), environment.get("WATCHDOG_PID", "")
        is_ours = period_us.isdecimal() and int(period_us) > 0 and pid in ("", str(os.getpid()))
        return cls(environment.get("NOTIFY_SOCKET", ""), int(period_us) / 1e6 if is_ours else math.inf)

    def ready(self) -> None:
        """Tell that all listeners are bound."""
        self._tell(READY)

    def stopping(self, within_s: float) -> None:
        """Tell that it was told to stop, and may take *within_s* seconds: a manager whose own time is shorter waits."""
        self._tell(STOPPING % math.ceil(within_s * 1e6))

    async def keep_telling(self) -> None:
        """Tell again and again that the event loop runs, until cancelled: a loop that is stuck is silent."""
        while self.watchdog_s < math.inf:
            self._tell(ALIVE)
            await trio.sleep(self.watchdog_s / WORDS_A_PERIOD)

    def close(self) -> None:
        """Tell nothing any more."""
        if self._sock is not None:
            self._sock.close()
            self._sock = None

    def _tell(self, word: bytes) -> None:
        if self._sock is None:
            return
        try:
            self._sock.sendto(word, self._path)
        except OSError:
            pass  # a manager that is gone, or doesn't read, must not stop messages
