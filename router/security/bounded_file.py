"""A file that an operator keeps for the router: a regular one, read whole unless it is absurdly large.

What is no regular file is refused and not waited for: a FIFO that nobody writes would never end.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import BinaryIO, Final

from router.core.errors import LocalError

MOST_BYTES: Final = 64 * 1024 * 1024
_KINDS: Final[tuple[tuple[Callable[[int], bool], str], ...]] = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
)


def open_bounded(path: str) -> BinaryIO:
    """Open a regular file for reading.

    Raises:
        LocalError: it cannot be opened, is no regular file, or is larger than MOST_BYTES.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise LocalError(f"{path}: cannot be read: {error.strerror}") from None
    fault = _fault(os.fstat(handle))
    if fault is not None:
        os.close(handle)
        raise LocalError(f"{path}: {fault}")
    return os.fdopen(handle, "rb")


def check_bounded(path: str) -> None:
    """Look at a file that a library is to open by its name.

    Raises:
        LocalError: as `open_bounded`.
    """
    open_bounded(path).close()


def read_bounded(path: str) -> bytes:
    """Content of a file.

    Raises:
        LocalError: it cannot be read, is no regular file, or is larger than MOST_BYTES.
    """
    try:
        with open_bounded(path) as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise LocalError(f"{path}: cannot be read: {error.strerror}") from None
    if len(raw) > MOST_BYTES:
        raise LocalError(f"{path}: larger than {MOST_BYTES} bytes")
    return raw


def _fault(found: os.stat_result) -> str | None:
    """Reason not to read it; None when there is none."""
    if not stat.S_ISREG(found.st_mode):
        kind = next((words for is_one, words in _KINDS if is_one(found.st_mode)), "a device")
        return f"cannot be read: it is {kind} and no regular file"
    return f"larger than {MOST_BYTES} bytes" if found.st_size > MOST_BYTES else None
