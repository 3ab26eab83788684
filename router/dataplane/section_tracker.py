"""Follows the sections of a message as its bytes come, where receivers must read the same in it as the router does.

The router looks at one `user-id` and one `to`, those of the properties in their place (`section_scanner.py`). Receivers
differ in what they make of a second properties section, of one that comes late, or of one that hides behind the values
of a list whose size is larger than they are. Where policy binds `user-id` or `to`, such messages are refused: each
section at most once and in its order, each list, map and array exactly as large as what it holds, and nothing but plain
values as fields of the properties.

On the path of messages: plain ints, so that Cython can compile it. Nothing is kept of a message but its last few bytes
and where its open lists end.

Source: AMQP 1.0 part 1, 1.2 and 1.6; part 3, 3.2.
"""

from __future__ import annotations

from typing import Final

import cython

from router.core.errors import DecodeError
from router.dataplane.value_skipping import fixed_width, unsigned

if not cython.compiled:  # else they come by the .pxd
    from router.dataplane.section_codes import (
        DATA,
        DESCRIBED,
        FOOTER,
        HEADER,
        PLAIN,
        PROPERTIES,
        SEQUENCE,
        UNREAD,
        VALUE,
    )

MAX_DEPTH: Final = 64
"""Maximum depth of lists, maps and arrays within each other."""
_HEADER_BYTES: Final = 10
"""Length of the longest descriptor of a section, bytes: its first byte, a constructor and eight bytes."""


class SectionTracker:
    """Follows one message after the other; `begin` starts each."""

    __slots__ = ("_constructor", "_end", "_left", "_outer", "_pos", "_rest", "_section", "_skip")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Expect the first byte of the next message."""
        self._section = 0
        """Descriptor of the section that was begun last; 0 before the first."""
        self._pos = 0
        """Number of bytes of the message that were read."""
        self._skip = 0
        """Number of bytes of the value begun last that are to come and not looked at."""
        self._rest = b""
        """Last bytes, of which nothing can be said before more come."""
        self._left = 0
        """Number of values to come in the section, or in the innermost list, map or array; 0 between two sections."""
        self._end = -1
        """Offset at which the innermost list, map or array ends; -1 in the section itself."""
        self._constructor = PLAIN
        """Constructor of the elements of the innermost array; else PLAIN, UNREAD or DESCRIBED."""
        self._outer: list[tuple[int, int, int]] = []
        """Values of `_left`, `_end` and `_constructor` of what is around it, outermost first."""

    def follow(self, data: bytes, is_last: bool) -> None:
        """Read the next bytes of the message.

        Raises:
            DecodeError: a section comes twice or out of its order, or isn't what it says of itself.
        """
        data = self._rest + data if self._rest else data
        size: int = len(data)
        at: int = 0
        while True:
            if self._skip:
                step: int = min(self._skip, size - at)
                self._skip -= step
                at += step
                self._pos += step
                if self._skip:
                    break
            self._close()
            if at == size:
                break
            used: int = self._read_value(data, at, size) if self._left else self._begin_section(data, at, size)
            if not used:
                break
            at += used
            self._pos += used
        self._rest = data[at:] if at < size else b""
        if is_last and (self._left or self._skip or self._rest or not self._section):
            raise DecodeError("the message ends within a section")

    def _begin_section(self, data: bytes, at: int, size: int) -> int:
        """Read a section's descriptor. Returns its bytes; 0 when more must come first."""
        if data[at]:
            raise DecodeError(f"a section begins with {data[at]:#x} and not with a descriptor")
        if at + 3 > size:
            return 0
        length: int = 3
        if data[at + 1] == 0x80:
            length = _HEADER_BYTES
            if at + length > size:
                return 0
            if data[at + 2 : at + 9] != b"\0\0\0\0\0\0\0":
                raise DecodeError("no section has a descriptor as large as that")
        elif data[at + 1] != 0x53:
            raise DecodeError(f"a section's descriptor has the constructor {data[at + 1]:#x}")
        code: int = data[at + length - 1]
        if code < HEADER or code > FOOTER:
            raise DecodeError(f"no section has the descriptor {code:#x}")
        last = self._section
        is_repeated = code == last and code in (DATA, SEQUENCE)
        if not is_repeated and (code <= last or (code < FOOTER and last >= DATA)):
            raise DecodeError(f"no section {code:#x} can follow section {last:#x}")
        self._section = code
        self._left = 1
        return length

    def _close(self) -> None:
        """Leave the lists that have all their values."""
        while not self._left and self._end >= 0:
            if self._pos != self._end:
                raise DecodeError(f"section {self._section:#x} holds more bytes than values")
            self._end, self._left, self._constructor = self._outer.pop()

    def _read_value(self, data: bytes, at: int, size: int) -> int:
        """Read what the next value is, or an array's constructor. Returns its bytes; 0 when more must come first."""
        constructor: int = self._constructor
        start: int = at if constructor >= 0 else at + 1
        code: int = constructor if constructor >= 0 else data[at]
        kind: int = code >> 4
        width: int = 4 if kind & 1 else 1
        used: int = start - at + (0 if kind < 10 or constructor == UNREAD else width if kind < 12 else 2 * width)
        if at + used > size:
            return 0
        if self._end < 0:
            self._check_form(code)
        elif self._section == PROPERTIES and (not code or kind >= 12):
            raise DecodeError("a field of the properties is no plain value")
        if not code:
            self._describe()
        elif kind < 4:
            raise DecodeError(f"no value has the constructor {code:#x}")
        elif constructor == UNREAD:
            self._left -= 1
            self._constructor = code
            if kind < 10:  # their elements are of one width
                self._skip = self._left * fixed_width(kind)
                self._left = 0
        else:
            if constructor == DESCRIBED:
                self._constructor = UNREAD
            self._left -= 1
            if kind < 10:
                self._skip = fixed_width(kind)
            else:
                self._skip = unsigned(data, start, width)
                if kind >= 12:
                    self._open(code, used, unsigned(data, start + width, width))
        if self._end >= 0 and self._pos + used + self._skip > self._end:
            raise DecodeError(f"a value in section {self._section:#x} ends beyond what holds it")
        return used

    def _check_form(self, code: int) -> None:
        if not _may_have(self._section, code):
            raise DecodeError(f"section {self._section:#x} has the constructor {code:#x}")

    def _describe(self) -> None:
        """A descriptor follows, a value of its own, and then what it describes."""
        if self._constructor == DESCRIBED:
            raise DecodeError("the descriptor of an array is described itself")
        self._left += 1
        if self._constructor == UNREAD:
            self._constructor = DESCRIBED

    def _open(self, code: int, used: int, count: int) -> None:
        """Go into a list, map or array of *count* values, whose size `_skip` has, its count included."""
        end: int = self._pos + used + self._skip - (4 if code & 0x10 else 1)
        self._skip = 0
        is_array: bool = code >= 0xE0
        if end < self._pos + used or (0 <= self._end < end):
            raise DecodeError(f"a value in section {self._section:#x} ends beyond what holds it")
        if code in (0xC1, 0xD1) and count & 1:
            raise DecodeError(f"a map in section {self._section:#x} has a key without a value")
        if len(self._outer) == MAX_DEPTH:
            raise DecodeError(f"more than {MAX_DEPTH} lists, maps or arrays within each other")
        self._outer.append((self._end, self._left, self._constructor))
        self._end = end
        self._left = count + 1 if is_array else count  # its elements' constructor counts as one
        self._constructor = UNREAD if is_array else PLAIN


def _may_have(section: int, code: int) -> bool:
    """Whether the value of a section may have the constructor *code*."""
    if section == DATA:
        return code in (0xA0, 0xB0)
    if section in (HEADER, PROPERTIES, SEQUENCE):
        return code in (0x45, 0xC0, 0xD0)
    return section == VALUE or code in (0xC1, 0xD1)
