"""Values of control messages, straight from their bytes and to them: text, whole numbers, lists and maps.

A mesh says little else, and may say it a hundred thousand times when a router joins. proton makes a tree of the values
first, of which each then costs several calls; this takes a thirtieth of that. What it doesn't read is left to proton,
and what it writes are the bytes that proton would write.

Source: AMQP 1.0 part 1, 1.6 (encodings).
"""

from __future__ import annotations

from typing import Final

from router.binding.message import is_int32, is_symbol

MAX_DEPTH: Final = 16
"""Maximum depth of lists and maps within each other; nothing that this program understands has more than five."""


class UnsupportedValue(Exception):
    """A value of another type, text that is no UTF-8, or a size that can't be."""


class ControlValueReader:
    """Reads values one behind the other.

    Args:
        data: well-formed values, as `router.guard.value_check.count_values` finds them.
        at: where the first one begins, bytes.
    """

    def __init__(self, data: bytes, at: int) -> None:
        self.data = data
        self.at = at
        """Offset of the next value, bytes."""

    def number(self, width: int) -> int:
        """Take an unsigned number of *width* bytes, 8 at most."""
        data = self.data
        number = 0
        for index in range(self.at, self.at + width):
            number = number << 8 | data[index]
        self.at += width
        return number

    def value(self, depth: int = 0) -> object:
        """Take the next value. Text is `str`, whatever it is on the wire, and a number is `int`.

        Args:
            depth: lists and maps around it.
        Raises:
            UnsupportedValue: it is none of those.
            IndexError: it isn't whole.
        """
        code = self.data[self.at]
        self.at += 1
        if code in (0xA1, 0xA3, 0xA0):
            return self.text(1)
        if code in (0xB1, 0xB3, 0xB0):
            return self.text(4)
        if code < 0x90:
            return self.fixed_value(code)
        if code == 0xC0 or code == 0xD0:
            return self.items(1 if code == 0xC0 else 4, depth + 1)
        if code == 0xC1 or code == 0xD1:
            items = self.items(1 if code == 0xC1 else 4, depth + 1)
            return self.pairs(items)
        raise UnsupportedValue

    def text(self, width: int) -> str:
        """Take text whose size has *width* bytes."""
        size = self.number(width)
        try:
            return self.bytes_of(size).decode("utf-8")
        except UnicodeDecodeError as error:
            raise UnsupportedValue from error

    def fixed_value(self, code: int) -> object:
        """Take what follows the constructor *code* of a value of fixed size."""
        match code:
            case 0x40:
                return None
            case 0x41:
                return True
            case 0x42:
                return False
            case 0x43 | 0x44:
                return 0
            case 0x45:
                return []
            case 0x56:
                return self.number(1) == 1
            case 0x50 | 0x52 | 0x53:
                return self.number(1)
            case 0x51 | 0x54 | 0x55:
                return self.signed_number(1)
            case 0x60:
                return self.number(2)
            case 0x61:
                return self.signed_number(2)
            case 0x70:
                return self.number(4)
            case 0x71:
                return self.signed_number(4)
            case 0x80:
                return int.from_bytes(self.bytes_of(8), "big")
            case 0x81:
                return int.from_bytes(self.bytes_of(8), "big", signed=True)
        raise UnsupportedValue

    def signed_number(self, width: int) -> int:
        """Take a signed number of *width* bytes, 4 at most."""
        number = self.number(width)
        half = 0x80 if width == 1 else 0x8000 if width == 2 else 0x80000000
        return number - 2 * half if number >= half else number

    def bytes_of(self, size: int) -> bytes:
        """Take *size* bytes."""
        begin = self.at
        if begin + size > len(self.data):
            raise UnsupportedValue
        self.at = begin + size
        return self.data[begin : self.at]

    def items(self, width: int, depth: int) -> list[object]:
        """Take the items of a list or map whose size and count have *width* bytes each."""
        if depth > MAX_DEPTH:
            raise UnsupportedValue
        size = self.number(width)
        end = self.at + size
        count = self.number(width)
        if end > len(self.data) or count > size:
            raise UnsupportedValue
        items = [self.value(depth) for _ in range(count)]
        if self.at != end:
            raise UnsupportedValue  # proton goes on behind the last item, whatever the size says
        return items

    def pairs(self, items: list[object]) -> dict[str, object]:
        """Make a map of keys and values in turns."""
        if len(items) % 2:
            raise UnsupportedValue
        pairs: dict[str, object] = {}
        for index in range(0, len(items), 2):
            key = items[index]
            if not isinstance(key, str):
                raise UnsupportedValue
            pairs[key] = items[index + 1]
        return pairs


class ControlValueWriter:
    """Writes values one behind the other, to `data`.

    A `str` becomes a string and an `int` a long, what `router.binding.message` has made a symbol or an int of 32 bits
    is written as such.
    """

    def __init__(self) -> None:
        self.data = bytearray()

    def value(self, value: object) -> None:
        """Write one more.

        Raises: TypeError for what is no text, number, list or dict, nor None.
        """
        data = self.data
        if type(value) is str:
            self.text(0xA1, value)
        elif type(value) is int:
            self.number(value, 0x55, 8)
        elif value is None:
            data.append(0x40)
        elif value is True or value is False:
            data.append(0x41 if value else 0x42)
        elif isinstance(value, list):
            if value:
                start = self.begin(0xD0, len(value))
                for item in value:
                    self.value(item)
                self.end(start)
            else:
                data.append(0x45)
        elif isinstance(value, dict):
            start = self.begin(0xD1, 2 * len(value))
            for key, item in value.items():
                self.value(key)
                self.value(item)
            self.end(start)
        elif is_symbol(value):
            self.text(0xA3, value)
        elif is_int32(value):
            self.number(value, 0x54, 4)
        else:
            raise TypeError(f"{type(value).__name__} is no plain value")

    def section(self, code: int, value: object) -> None:
        """Write a section of a message.

        Args:
            code: its descriptor, a small ulong.
            value: its content.
        """
        self.data += bytes((0x00, 0x53, code))
        self.value(value)

    def text(self, code: int, text: str) -> None:
        """Write text, *code* being the constructor of a short one."""
        encoded = text.encode()
        size = len(encoded)
        data = self.data
        if size < 256:
            data.append(code)
            data.append(size)
        else:
            data.append(code + 0x10)
            data += size.to_bytes(4, "big")
        data += encoded

    def number(self, number: int, code: int, width: int) -> None:
        """Write a signed number, *code* being the constructor of one of a byte; others have *width* bytes."""
        data = self.data
        if -128 <= number < 128:
            data.append(code)
            data.append(number & 0xFF)
        else:
            data.append(0x71 if width == 4 else 0x81)
            data += int(number).to_bytes(width, "big", signed=True)

    def begin(self, code: int, count: int) -> int:
        """Begin a list or map of *count* items. Returns: where its size stands."""
        self.data.append(code)
        start = len(self.data)
        self.data += bytes(4)
        self.data += count.to_bytes(4, "big")
        return start

    def end(self, start: int) -> None:
        """End the list or map whose size stands at *start*."""
        self.data[start : start + 4] = (len(self.data) - start - 4).to_bytes(4, "big")
