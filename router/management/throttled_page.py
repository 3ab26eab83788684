"""A page that is made in pieces between events, and so rarely that making it takes a bounded part of the time."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Generator
from typing import Final

import trio

LEAST_S: Final = 0.25
"""Seconds that a page is given again, however little it costs."""


class ThrottledPage:
    """The page as last made, and when it may be made anew.

    Args:
        make: begins to make it; each step does a little, and the last returns the page.
        share: part of the time that it may take, 0 to 1.
        before: awaited before it is made.
    """

    def __init__(
        self,
        make: Callable[[], Generator[None, None, bytes]],
        share: float,
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._make = make
        self._before = before
        self._share = share
        self._content = b""
        self._stale_at = 0.0
        self._turn = trio.Lock()
        self.cost_s = 0.0
        """Processor time that it took last, seconds."""

    async def get(self) -> bytes:
        """The page, made anew if it is old enough: to its end, though who asks may be gone before."""
        async with self._turn:  # who asks while it is made gets the same
            if trio.current_time() >= self._stale_at:
                with trio.CancelScope(shield=True):  # else its time would be spent, and not counted
                    if self._before is not None:
                        await self._before()
                    self._content = await self._made()
            return self._content

    async def _made(self) -> bytes:
        work = self._make()
        cost_s = 0.0
        while True:
            begin = time.thread_time()
            try:
                next(work)
                content = None
            except StopIteration as done:
                content = done.value
            cost_s += time.thread_time() - begin  # what others on the machine take is not its own
            if content is not None:
                break
            await trio.lowlevel.checkpoint()
        self.cost_s = cost_s
        self._stale_at = trio.current_time() + max(LEAST_S, cost_s / self._share)
        return bytes(content)
