"""Wait for sockets of an epoll instance, in numbers: interpreted; compiled modules have the same in C (`epoll.pxd`)."""

from __future__ import annotations

import select
from array import array
from typing import Final

MOST_READY: Final = 64
"""Maximum number of sockets that one call tells of."""


def wait_ready(poll: select.epoll, fd: int, ready: array[int], timeout_ms: int) -> int:
    """Wait until something is ready, or a signal came.

    Args:
        poll: the instance.
        fd: its descriptor.
        ready: takes what is ready, `MOST_READY` at most: the events, and above 32 bits the descriptor.
        timeout_ms: time to wait, milliseconds; -1 for ever.
    Returns: how many.
    """
    found = poll.poll(None if timeout_ms < 0 else timeout_ms / 1000, MOST_READY)
    for at, (number, events) in enumerate(found):
        ready[at] = number << 32 | events
    return len(found)
