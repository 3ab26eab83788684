"""A file that an operator keeps for the router, read whole unless it is absurdly large."""

from __future__ import annotations

from typing import Final

from router.core.errors import LocalError

MOST_BYTES: Final = 64 * 1024 * 1024


def read_bounded(path: str) -> bytes:
    """Content of a file.

    Raises:
        LocalError: it cannot be read, or is larger than MOST_BYTES.
    """
    try:
        with open(path, "rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise LocalError(f"{path}: cannot be read: {error.strerror}") from None
    if len(raw) > MOST_BYTES:
        raise LocalError(f"{path}: larger than {MOST_BYTES} bytes")
    return raw
