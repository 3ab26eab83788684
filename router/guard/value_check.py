"""AMQP values in a run of bytes: where they end, and whether what they say of themselves can be.

Source: AMQP 1.0 part 1, 1.2 and 1.6.
"""

from __future__ import annotations

from typing import Final

import cython

if not cython.compiled:  # else it comes by the .pxd
    from router.guard.guard_constants import WRONG

MAX_DEPTH: Final = 32
"""Lists within lists, or descriptors of descriptors, before a value is taken for an attack."""
MAX_EMPTY: Final = 1024
"""Elements of an array that take no byte each, such as null."""


def number_at(data: bytes | memoryview, at: int, width: int) -> int:
    """An unsigned number of *width* bytes, the first one first."""
    value = 0
    for index in range(width):
        value = value << 8 | data[at + index]
    return value


def end_of(data: bytes | memoryview, at: int, stop: int, depth: int = 0) -> int:
    """Find the end of the value at *at*. Returns: WRONG when it goes past *stop*, or what it holds isn't within it."""
    if at >= stop or depth > MAX_DEPTH:
        return WRONG
    code = data[at]
    at += 1
    if code == 0:
        at = end_of(data, at, stop, depth + 1)
        return end_of(data, at, stop, depth + 1) if at != WRONG else WRONG
    return end_of_content(data, at, stop, code, depth)


def end_of_content(data: bytes | memoryview, at: int, stop: int, code: int, depth: int) -> int:
    """The same for a value whose constructor is *code* and was read, as in an array."""
    kind = code >> 4
    if 4 <= kind <= 9:
        size = 0 if kind == 4 else 1 << (kind - 5)
        return at + size if at + size <= stop else WRONG
    if kind < 10:
        return WRONG
    width = 4 if kind & 1 else 1
    if at + width > stop:
        return WRONG
    size = number_at(data, at, width)
    at += width
    if at + size > stop:
        return WRONG
    end = at + size
    if kind < 12:
        return end
    if size < width:
        return WRONG
    count = number_at(data, at, width)
    at += width
    if kind >= 14:
        return end if is_array(data, at, end, count, depth) else WRONG
    if code in (0xC1, 0xD1) and count & 1:
        return WRONG
    return end if are_values(data, at, end, count, depth) else WRONG


def are_values(data: bytes | memoryview, at: int, end: int, count: int, depth: int) -> bool:
    """Whether so many values stand there. More of them do harm to nobody, and clients are known to write them."""
    if count > end - at:
        return False
    for _ in range(count):
        at = end_of(data, at, end, depth + 1)
        if at == WRONG:
            return False
    return True


def is_array(data: bytes | memoryview, at: int, end: int, count: int, depth: int) -> bool:
    """Whether a constructor and so many elements, and nothing else, stand there."""
    if at < end and data[at] == 0:
        at = end_of(data, at + 1, end, depth + 1)
        if at == WRONG:
            return False
    if at >= end:
        return False
    code = data[at]
    at += 1
    if count > max(end - at, MAX_EMPTY):
        return False
    for _ in range(count):
        at = end_of_content(data, at, end, code, depth + 1)
        if at == WRONG:
            return False
    return at == end


def count_values(data: bytes, at: int, most: int) -> int:
    """Count the value at *at* and all that it holds, until there are more than *most*.

    Elements of an array count one each, or one for each byte when they hold others.

    Returns: the number; WRONG when it goes past the end, or what it holds isn't within it.
    """
    end = end_of(data, at, len(data))
    return count_within(data, at, end, most) if end != WRONG else WRONG


def count_within(data: bytes | memoryview, at: int, stop: int, most: int) -> int:
    """The same for one value, which is well formed."""
    code = data[at]
    at += 1
    if code == 0:
        end = end_of(data, at, stop)
        count = 1 + count_within(data, at, end, most)
        return count + count_within(data, end, stop, most - count) if count <= most else count
    kind = code >> 4
    if kind < 12:
        return 1
    width = 4 if kind & 1 else 1
    left = number_at(data, at + width, width)
    at += 2 * width
    if kind >= 14:
        return 1 + (left if data[at] and data[at] < 0xC0 else max(left, stop - at))
    total = 1
    while left > 0 and total <= most:
        end = end_of(data, at, stop)
        total += count_within(data, at, end, most - total)
        at = end
        left -= 1
    return total


def nul_of_address(data: bytes | memoryview, at: int, stop: int) -> int:
    """Find the first NUL in the address of the terminus at *at*, its first field. Returns: WRONG when there is none."""
    if at >= stop or data[at]:
        return WRONG
    at = end_of(data, at + 1, stop)  # of its descriptor
    if at == WRONG or at >= stop or data[at] not in (0xC0, 0xD0):
        return WRONG
    at += 3 if data[at] == 0xC0 else 9
    end = end_of(data, at, stop)
    if end == WRONG or data[at] not in (0xA1, 0xB1):
        return WRONG
    for place in range(at + (2 if data[at] == 0xA1 else 5), end):
        if not data[place]:
            return place
    return WRONG
