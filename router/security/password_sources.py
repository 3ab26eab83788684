"""Passwords, from a file or a variable of the environment; never from the settings."""

from __future__ import annotations

import os
from typing import Final

from router.core.errors import LocalError
from router.security.bounded_file import open_bounded

MOST_BYTES: Final = 65536


def read_secret(file: str | None, variable: str | None, what: str) -> str | None:
    """A secret; None when neither is named.

    Args:
        file: its path; a line end at the end is none of the secret.
        variable: of the environment.
        what: it is for, to say in errors.
    Raises:
        LocalError: it isn't there, empty or no UTF-8; says nothing of what it is.
    """
    if file is not None:
        try:
            with open_bounded(file) as opened:
                raw = opened.read(MOST_BYTES + 1)
        except OSError as error:
            raise LocalError(f"the file of the password of {what}, {file}, cannot be read: {error.strerror}") from None
        except LocalError as error:
            raise LocalError(f"the file of the password of {what}, {error}") from None
        if len(raw) > MOST_BYTES:
            raise LocalError(f"the file of the password of {what}, {file}, is larger than {MOST_BYTES} bytes")
        try:
            secret = raw.decode().removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError:
            secret = ""
        if not secret:
            raise LocalError(f"the file of the password of {what}, {file}, is empty or no UTF-8")
        return secret
    if variable is not None:
        secret = os.environ.get(variable, "")
        if not secret:
            # Its name isn't said: it may be the password, written at the wrong place.
            raise LocalError(f"the variable of the environment with the password of {what} is not set")
        return secret
    return None
