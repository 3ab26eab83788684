"""Messages as bytes: a body whose last eight bytes are the time of sending, and what a responder makes of a request.

A message is written in parts, with numbers between them (`send_number`): the engine puts them together.

Source: AMQP 1.0 part 1, 1.6; part 3, 3.2.4 (properties) and 3.2.6 (data).
"""

from __future__ import annotations

from typing import Final

NUMBER_BYTES: Final = 8
MAX_REPLY_TO_BYTES: Final = 200
"""Maximum size of a reply-to, bytes: the properties are written as a list with one byte for its size."""

_NULL: Final = b"\x40"
_DATA: Final = b"\x00\x53\x75"
_PROPERTIES: Final = b"\x00\x53\x73"
_ID_TYPE: Final = b"\xa0\x08"
"""Constructor of an id, a binary of eight bytes, with its size."""


def body(size: int) -> bytes:
    """The data section but for the number at its end.

    Args:
        size: of the body with the number, bytes, from 8.
    """
    head = b"\xa0" + bytes([size]) if size < 256 else b"\xb0" + size.to_bytes(4, "big")
    return _DATA + head + b"x" * (size - NUMBER_BYTES)


def request(reply_to: str, size: int) -> tuple[bytes, bytes]:
    """The parts of a request: one before the number that is its message-id, one between it and the number at the end.

    Args:
        reply_to: address of at most `MAX_REPLY_TO_BYTES`.
        size: of the body with the number, bytes, from 8.
    """
    address = reply_to.encode()
    assert len(address) <= MAX_REPLY_TO_BYTES
    rest = _NULL * 3 + b"\xa1" + bytes([len(address)]) + address  # user-id, to, subject, reply-to
    fields = len(_ID_TYPE) + NUMBER_BYTES + len(rest)
    return _PROPERTIES + b"\xc0" + bytes([fields + 1, 5]) + _ID_TYPE, rest + body(size)


def reply_head(reply_to: bytes) -> bytes:
    """The part of a reply before the number that is its correlation-id."""
    rest = _NULL * 2 + b"\xa1" + bytes([len(reply_to)]) + reply_to + _NULL * 2 + _ID_TYPE  # ids, to, subject, reply-to
    return _PROPERTIES + b"\xc0" + bytes([len(rest) + NUMBER_BYTES + 1, 6]) + rest
