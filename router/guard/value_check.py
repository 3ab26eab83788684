"""AMQP values in a run of bytes: where they end, and whether what they say of themselves can be.

Source: AMQP 1.0 part 1, 1.2 and 1.6.
"""

from __future__ import annotations

from typing import Final

import cython

if not cython.compiled:  # else it comes by the .pxd
    from router.guard.guard_constants import WRONG

MAX_DEPTH: Final = 32
"""Maximum depth of lists within lists, or descriptors of descriptors: more is taken for an attack."""
MAX_EMPTY: Final = 1024
"""Maximum number of elements of an array that take no byte each, such as null."""


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
    """Find the end of a value of which the constructor *code* was read, as in an array. Returns: as `end_of`."""
    kind = code >> 4
    if not is_constructor(code):
        return WRONG
    if kind <= 9:
        size = 0 if kind == 4 else 1 << (kind - 5)
        return at + size if at + size <= stop else WRONG
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


def is_constructor(code: int) -> bool:
    """Whether AMQP has a type of that code."""
    low = code & 15
    kind = code >> 4
    if kind < 10:
        if kind == 9:
            return low == 4 or low == 8
        return kind >= 4 and low <= (5 if kind == 4 else 6 if kind == 5 else 1 if kind == 6 else 4)
    if kind < 12:
        return low <= 3 and low != 2
    return low <= 1 if kind < 14 else low == 0


def are_values(data: bytes | memoryview, at: int, end: int, count: int, depth: int) -> bool:
    """Whether *count* values stand there, or more: clients are known to write such, and engines read what there is."""
    while at < end:
        at = end_of(data, at, end, depth + 1)
        if at == WRONG:
            return False
        count -= 1
    return count <= 0


def is_array(data: bytes | memoryview, at: int, end: int, count: int, depth: int) -> bool:
    """Whether a constructor and *count* elements, and nothing else, stand there."""
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
    """Count the value at *at* and all that it holds, in time proportional to *most* at the longest.

    Elements of an array count one each, or one for each byte when they hold others.

    Returns: the number; *most* + 1 when there are more; WRONG when it goes past the end, or what it holds isn't within
        it.
    """
    count = ValueCount(most)
    end = count.end_of(data, at, len(data), 0)
    if count.left < 0:
        return most + 1
    return most - count.left if end != WRONG else WRONG


class ValueCount:
    """Counts values while it looks where they end.

    Args:
        most: values; it doesn't look any further.
    """

    def __init__(self, most: int) -> None:
        self.left = most
        """Values that there may still be; negative when there were more."""

    def end_of(self, data: bytes | memoryview, at: int, stop: int, depth: int) -> int:
        """Find the end of the value at *at*. Returns: WRONG when there is none, or there are too many values."""
        if at >= stop or depth > MAX_DEPTH or self.left < 1:
            self.left -= self.left < 1
            return WRONG
        self.left -= 1
        code = data[at]
        kind = code >> 4
        if code == 0:
            at = self.end_of(data, at + 1, stop, depth + 1)
            return self.end_of(data, at, stop, depth + 1) if at != WRONG else WRONG
        if kind < 12:
            return end_of_content(data, at + 1, stop, code, depth)
        width = 4 if kind & 1 else 1
        at += 1
        if at + 2 * width > stop:
            return WRONG
        size = number_at(data, at, width)
        end = at + width + size
        if end > stop or size < width:
            return WRONG
        number = number_at(data, at + width, width)
        if kind >= 14:
            return self.end_of_array(data, at, end, number, depth)
        if code in (0xC1, 0xD1) and number & 1:
            return WRONG
        at += 2 * width
        if number > end - at:
            return WRONG
        for _ in range(number):
            at = self.end_of(data, at, end, depth + 1)
            if at == WRONG:
                return WRONG
        return end

    def end_of_array(self, data: bytes | memoryview, at: int, end: int, number: int, depth: int) -> int:
        """Find the end of an array of *number* elements whose size stands at *at* and that ends at *end*."""
        code = data[at - 1]
        first = at + (8 if code & 0x10 else 2)
        if first >= end:
            return WRONG
        self.left -= number if data[first] and data[first] < 0xC0 else max(number, end - first)
        return end_of_content(data, at, end, code, depth) if self.left >= 0 else WRONG


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
