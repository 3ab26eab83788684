"""Helpers of interpreted modules for what compiled ones do in C: time, sockets, signals, numbers.

`load_connection.pxd` has the C.
"""

from __future__ import annotations

import os
import time

from router.binding.proton_functions import Handle, memory_at, pn_link_send, receive

WOULD_BLOCK = -1
"""Result of `read_socket` and `write_socket` when nothing can be read or written now."""
BROKEN = -2
"""Result of `read_socket` and `write_socket` when nothing will ever be read or written again."""

now_ns = time.monotonic_ns


def look_for_signals() -> None:
    """Run what waits of signals' handlers. Interpreted, Python does that by itself."""


def read_socket(fd: int, address: int, size: int) -> int:
    """Read up to *size* bytes into memory at *address*. Returns: their number, 0 at the end, or a negative constant."""
    try:
        return os.readv(fd, [memory_at(address, size)])
    except BlockingIOError:
        return WOULD_BLOCK
    except OSError:
        return BROKEN


def write_socket(fd: int, address: int, size: int) -> int:
    """Write up to *size* bytes that stand at *address*. Returns: their number, or a negative constant."""
    try:
        return os.write(fd, memory_at(address, size))
    except BlockingIOError:
        return WOULD_BLOCK
    except OSError:
        return BROKEN


def send_number(link: Handle, number: int) -> None:
    """Append eight bytes, the least significant one first, to the link's current delivery."""
    pn_link_send(link, number.to_bytes(8, "little"), 8)


def receive_number(link: Handle, size: int, before: int) -> int:
    """Read *size* bytes of the link's current delivery and forget them.

    Args:
        link: a receiver.
        size: bytes that have arrived.
        before: what an earlier call returned for the same delivery, 0 for the first.
    Returns: the number that the last eight bytes are, as `send_number` writes it.
    """
    data = receive(link, size)
    count = len(data)
    if count >= 8:
        return int.from_bytes(data[-8:], "little")
    return (before >> (8 * count)) | (int.from_bytes(data, "little") << (8 * (8 - count)))
