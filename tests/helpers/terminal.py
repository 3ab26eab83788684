"""Terminals of tests: what a program writes to one."""

from __future__ import annotations

import os


def written_to(terminal: int) -> bytes:
    """All that is written to the other end of a pseudo terminal, until that is closed everywhere."""
    written = b""
    try:
        while more := os.read(terminal, 65536):
            written += more
    except OSError:  # Linux, when the other end is closed
        pass
    return written
