"""AMQP's encodings, as far as one must know them to step over a value. Source: AMQP 1.0 part 1, 1.2 and 1.6.

Called for each message: plain ints and bytes, so that Cython can compile it.
"""

from __future__ import annotations

from router.core.errors import DecodeError
from router.dataplane.scan_result import InvalidAnnotation


def fixed_width(kind: int) -> int:
    """Bytes behind a constructor whose upper half is *kind*, 4 to 9: a value of fixed width (AMQP part 1, 1.2)."""
    return 0 if kind == 4 else 1 << (kind - 5)


def unsigned(data: bytes, pos: int, width: int) -> int:
    """The number in the one or four bytes, as *width* says, at *pos*; they are there."""
    number: int = data[pos]  # of 64 bits in C: one of 32 would have a sign
    if width == 1:
        return number
    number = number << 8 | data[pos + 1]
    number = number << 8 | data[pos + 2]
    return number << 8 | data[pos + 3]


def skip(data: bytes, pos: int, end: int) -> int:
    """Offset behind the value at *pos*, which must end by *end*. Its constructor is there then."""
    left: int = 1
    while left:
        if pos >= end:
            raise DecodeError("a value is cut off by the end of its section")
        code: int = data[pos]
        kind: int = code >> 4
        if 4 <= kind <= 9:
            pos += 1 + fixed_width(kind)
            left -= 1
        elif kind >= 10:
            # Even kinds have a size of one byte, odd ones of four, but 0xd (list32, map32) and 0xc change places.
            if kind in (10, 12, 14):
                pos = pos + 2 + data[pos + 1] if pos + 1 < end else end + 1
            else:
                pos = pos + 5 + int.from_bytes(data[pos + 1 : pos + 5], "big") if pos + 5 <= end else end + 1
            left -= 1
        elif code == 0:
            # Described: the descriptor and the value proper follow, both values themselves.
            pos += 1
            left += 1
        else:
            raise DecodeError(f"no value has the constructor {code:#x}")
    if pos > end:
        raise DecodeError("a value ends beyond its section")
    return pos


def text_end(data: bytes, pos: int, end: int) -> int:
    """Offset behind the string at *pos*."""
    stop: int = -1
    if pos + 2 <= end and data[pos] == 0xA1:
        stop = pos + 2 + data[pos + 1]
    elif pos + 5 <= end and data[pos] == 0xB1:
        stop = pos + 5 + int.from_bytes(data[pos + 1 : pos + 5], "big")
    if stop < 0 or stop > end:
        raise InvalidAnnotation("a router annotation is no string")
    return stop


def integer(data: bytes, pos: int, stop: int) -> int:
    """The integer of any width from *pos* to *stop*."""
    code: int = data[pos]
    if code in (0x43, 0x44):
        return 0
    if code in (0x51, 0x54, 0x55, 0x61, 0x71, 0x81):
        return int.from_bytes(data[pos + 1 : stop], "big", signed=True)
    if code in (0x50, 0x52, 0x53, 0x60, 0x70, 0x80):
        return int.from_bytes(data[pos + 1 : stop], "big")
    raise InvalidAnnotation("x-opt-qd.phase and x-opt-qd.stream are integers")
