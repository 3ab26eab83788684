"""Reads the fields of a performative one after the other, without making anything of what is not asked for.

Source: AMQP 1.0 part 1, 1.6; part 2, 2.7.
"""

from __future__ import annotations

import cython

if not cython.compiled:  # else they come by the .pxd
    from router.guard.guard_constants import ABSENT, WRONG
    from router.guard.value_check import end_of


class PerformativeReader:
    """A place within a performative. *data* is the same in all calls from `begin_list` on.

    A performative has the fields that its bytes hold, however many it says there are: engines read it so.
    """

    def __init__(self) -> None:
        self.at = 0
        """Offset at which the next field begins."""
        self.stop = 0
        """Offset at which the last field ends."""
        self.uints = [0, 0, 0, 0, 0, 0, 0, 0]
        """Fields of a flow that are read at once."""

    def begin_list(self, data: bytes | memoryview, at: int, end: int) -> int:
        """Go to the first field of the performative at *at*. Returns: its code; WRONG when there is none.

        Afterwards `stop` is where its fields end.
        """
        if end - at >= 4 and data[at] == 0 and data[at + 1] == 0x53:
            code = data[at + 2]
            at += 3
        elif end - at >= 11 and data[at] == 0 and data[at + 1] == 0x80 and not size_at(data, at + 2):
            code = size_at(data, at + 6)
            at += 10
        else:
            return WRONG
        kind = data[at]
        if kind == 0xC0 and end - at >= 3:
            self.stop = at + 2 + data[at + 1]
            count = data[at + 2]
            self.at = at + 3
        elif kind == 0xD0 and end - at >= 9:
            self.stop = at + 5 + size_at(data, at + 1)
            count = size_at(data, at + 5)
            self.at = at + 9
        elif kind == 0x45:
            self.stop = self.at = at + 1
            count = 0
        else:
            return WRONG
        if self.at > self.stop or self.stop > end or count > self.stop - self.at:
            return WRONG
        return code

    def read_uint(self, data: bytes | memoryview) -> int:
        """The next field. Returns: ABSENT when it is null or left out; WRONG when it is something else."""
        at = self.at
        space = self.stop - at
        if space < 1:
            return ABSENT
        code = data[at]
        if code == 0x52 and space >= 2:
            self.at = at + 2
            return data[at + 1]
        if code == 0x43:
            self.at = at + 1
            return 0
        if code == 0x70 and space >= 5:
            self.at = at + 5
            return size_at(data, at + 1)
        if code == 0x40:
            self.at = at + 1
            return ABSENT
        return WRONG

    def read_bool(self, data: bytes | memoryview) -> int:
        """The next field, a boolean.

        Returns: 0 or 1; ABSENT when it is null or left out; WRONG when it is something else.
        """
        at = self.at
        space = self.stop - at
        if space < 1:
            return ABSENT
        code = data[at]
        self.at = at + 1
        if code == 0x41:
            return 1
        if code == 0x42:
            return 0
        if code == 0x40:
            return ABSENT
        if code == 0x56 and space >= 2 and data[at + 1] < 2:
            self.at = at + 2
            return data[at + 1]
        return WRONG

    def pass_field(self, data: bytes | memoryview) -> bool:
        """Leave the next field out. Returns: whether its size can be."""
        at = self.at
        if at >= self.stop:
            return True
        kind = data[at] >> 4
        if kind == 4:
            self.at = at + 1
        elif kind == 5:
            self.at = at + 2
        elif kind == 7:
            self.at = at + 5
        elif kind == 10 and at + 1 < self.stop:
            self.at = at + 2 + data[at + 1]
        else:
            self.at = end_of(data, at, self.stop)
        if self.at == WRONG or self.at > self.stop:
            self.at = self.stop
            return False
        return True

    def read_ushort(self, data: bytes | memoryview) -> int:
        """The next field, a ushort. Returns: ABSENT when it is null or left out; WRONG when it is something else."""
        at = self.at
        if at >= self.stop:
            return ABSENT
        if at + 3 <= self.stop and data[at] == 0x60:
            self.at = at + 3
            return data[at + 1] << 8 | data[at + 2]
        if data[at] == 0x40:
            self.at = at + 1
            return ABSENT
        return WRONG

    def read_ubyte(self, data: bytes | memoryview) -> int:
        """The next field, a ubyte.

        Returns: ABSENT when it is null or left out; WRONG when it is something else, and passed.
        """
        at = self.at
        if at >= self.stop:
            return ABSENT
        self.pass_field(data)
        if data[at] == 0x40:
            return ABSENT
        if data[at] == 0x50 and self.at == at + 2:
            return data[at + 1]
        return WRONG  # apart, since a conditional expression would be an unsigned char

    def size_of_binary(self, data: bytes | memoryview) -> int:
        """Pass the next field. Returns: its bytes; 0 for what is no binary."""
        at = self.at
        if at >= self.stop or data[at] not in (0xA0, 0xB0) or not self.pass_field(data):
            return 0
        return self.at - at - (2 if data[at] == 0xA0 else 5)

    def read_name(self, data: bytes | memoryview) -> bytes | None:
        """A string, None when it is something else."""
        at = self.at
        if at >= self.stop or data[at] not in (0xA1, 0xB1) or not self.pass_field(data):
            return None
        return bytes(data[at + (2 if data[at] == 0xA1 else 5) : self.at])

    def has_nul(self, data: bytes | memoryview) -> bool:
        """Pass the next field. Returns: whether it is a string with a NUL."""
        name = self.read_name(data)
        if name is None:
            self.pass_field(data)
            return False
        return 0 in name

    def is_list_over(self, data: bytes | memoryview) -> bool:
        """Pass what is left of the fields. Returns: whether they end where the list does."""
        while self.at < self.stop:
            if not self.pass_field(data):
                return False
        return True


if not cython.compiled:  # in C they are inline: see the .pxd

    def size_at(data: bytes | memoryview, at: int) -> int:
        """The size with which a frame begins, or another number of four bytes."""
        return int.from_bytes(data[at : at + 4], "big")

    def width_of_uint(data: bytes | memoryview, at: int) -> int:
        """Bytes that a uint takes, or null."""
        if data[at] == 0x52:
            return 2
        return 5 if data[at] == 0x70 else 1

    def read_uints(data: bytes | memoryview, at: int, stop: int, count: int, values: list[int]) -> int:
        """Read *count* uints from *at* to *stop* at most into *values*, ABSENT for null.

        Returns: where they end; WRONG when one of them is something else, or left out.
        """
        for index in range(count):
            if at >= stop:
                return WRONG
            code = data[at]
            if code == 0x70 and at + 5 <= stop:
                values[index] = size_at(data, at + 1)
                at += 5
            elif code == 0x52 and at + 2 <= stop:
                values[index] = data[at + 1]
                at += 2
            elif code in (0x40, 0x43):
                values[index] = 0 if code == 0x43 else ABSENT
                at += 1
            else:
                return WRONG
        return at
