"""Sections of messages, byte by byte: also such as no client's library writes."""

from __future__ import annotations

import struct

NULL = b"\x40"
"""The value null, encoded."""


def binary(text: bytes) -> bytes:
    """Encode up to 255 bytes."""
    return bytes((0xA0, len(text))) + text


def string(text: str) -> bytes:
    """Encode a text of up to 255 bytes."""
    return bytes((0xA1, len(text.encode()))) + text.encode()


def section(code: int, *values: bytes, form: int = 0xC0, more: bytes = b"", wide: bool = False) -> bytes:
    """A section that is a list (or what *form* says) of encoded values, with *more* behind them within its size."""
    body = b"".join(values) + more
    if wide:
        return bytes((0, 0x53, code, form | 0x10)) + struct.pack(">II", len(body) + 4, len(values)) + body
    return bytes((0, 0x53, code, form, len(body) + 1, len(values))) + body
