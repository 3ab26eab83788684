"""Connections that this router makes and keeps up: back-off with jitter, for ever."""

from __future__ import annotations

import math
import os
import random
import socket
from collections.abc import Awaitable, Callable
from typing import Final

import attrs
import trio

from mesh_config.models import ConnectorSettings
from mesh_config.usable_hosts import encoded, failure_words

CONNECT_TIMEOUT_S: Final = 10.0
STABLE_S: Final = 5.0
"""Lifetime of a connection from which on the back-off starts from the beginning, seconds."""

Serve = Callable[[socket.socket, "Connector"], Awaitable[str]]
"""Function that serves a connection. Returns: why the connection was of no use, empty when it was."""


class Connector:
    """One connection to make, again and again."""

    def __init__(self, settings: ConnectorSettings, rng: random.Random) -> None:
        self.settings = attrs.evolve(settings)
        """Settings, an object of its own: by it connections find their connector, also where another one is equal."""
        self._rng = rng
        self.status = "connecting"
        """Status, `connecting`, `connected` or `failed`."""
        self.message = ""
        """Reason of the last failure."""
        self._told = ""
        """Reason that was told last since the connector was of use."""
        self.blocking_calls = trio.CapacityLimiter(1)
        """Limiter of calls that may hang at this side: one that was given up has it until it ends."""
        self._is_stopped = False
        self._not_serving = trio.CancelScope()

    @property
    def name(self) -> str:
        """Name for logs and management."""
        return self.settings.effective_name

    async def run(self, serve: Serve, failed: Callable[[Connector], None]) -> None:
        """Connect and serve until `stop`.

        *failed* hears of the first failure after each success, and of each with another reason than the one before.
        """
        pause = self.settings.reconnect_initial_s
        while not self._is_stopped:
            began = trio.current_time()
            sock = None
            with self.until_stopped():
                sock = await self._dial(failed)
            if sock is not None:
                self.status = "connected"  # what failed last is so until this one is of use
                reason = await serve(sock, self)
                if not reason:
                    self.status, self.message, self._told = "connecting", "", ""
                elif not self._is_stopped:
                    self._fail(reason, failed)
                if trio.current_time() - began >= STABLE_S:
                    pause = self.settings.reconnect_initial_s
            with self.until_stopped() as pausing:
                # jitter, so that routers that lost the same neighbor do not all come back in one instant
                pausing.deadline = trio.current_time() + pause * self._rng.uniform(0.5, 1.0)
                await trio.sleep_forever()
            pause = min(2 * pause, self.settings.reconnect_max_s)

    def until_stopped(self) -> trio.CancelScope:
        """Make a scope that `stop` cancels, for what is not yet a connection."""
        self._not_serving = trio.CancelScope()
        if self._is_stopped:
            self._not_serving.cancel()
        return self._not_serving

    def repace(self, settings: ConnectorSettings) -> None:
        """Take other pauses from *settings*, which are as before otherwise; a longer one that runs is cut short."""
        self.settings = attrs.evolve(settings)
        pausing = self._not_serving
        if pausing.deadline < math.inf:
            pausing.deadline = min(pausing.deadline, trio.current_time() + settings.reconnect_max_s)

    def stop(self) -> None:
        """Connect no more; a connection that is there goes on."""
        self._is_stopped = True
        self._not_serving.cancel()

    async def _dial(self, failed: Callable[[Connector], None]) -> socket.socket | None:
        try:
            with trio.fail_after(CONNECT_TIMEOUT_S):
                return await self._connect()
        except (OSError, trio.TooSlowError) as error:
            self._fail(_reason(error, self.settings.host), failed)
            return None

    def _fail(self, reason: str, failed: Callable[[Connector], None]) -> None:
        self.status, self.message = "failed", reason
        if reason != self._told:
            self._told = reason
            failed(self)

    async def _connect(self) -> socket.socket:
        stream = await trio.open_tcp_stream(encoded(self.settings.host), self.settings.port)
        try:
            sock = socket.socket(fileno=os.dup(stream.socket.fileno()))
        finally:
            await stream.aclose()
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock


def _reason(error: OSError | trio.TooSlowError, host: str) -> str:
    """Reason why the last attempt failed: what the system says, where trio says only that every address was tried."""
    cause: BaseException | None = error.__cause__
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[-1]
    found = cause or error
    if isinstance(found, trio.TooSlowError):
        return "timed out"
    if isinstance(found, OSError) and found.errno is not None and found.errno > 0:
        return os.strerror(found.errno)  # trio repeats the address, which whoever reads it knows
    said = failure_words(found, host) if isinstance(found, OSError) else str(found)
    return said or type(found).__name__
