"""Messages as they came, decoded whole or not at all: proton takes what it can't read of one for absent."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

import attrs
from proton import Message, MessageException

DATA: Final = 0x75
SEQUENCE: Final = 0x76
VALUE: Final = 0x77
BODY: Final = (DATA, SEQUENCE, VALUE)
"""Descriptors of the sections that are a body."""
DESCRIBED: Final = 0x00
NULL: Final = 0x40

SMALL_DESCRIPTOR: Final = 0x53
LARGE_DESCRIPTOR: Final = 0x80
SYMBOLS: Final = {b"amqp:data:binary": DATA, b"amqp:amqp-sequence:list": SEQUENCE, b"amqp:amqp-value:*": VALUE}

FIXED_BYTES: Final = {0x4: 0, 0x5: 1, 0x6: 2, 0x7: 4, 0x8: 8, 0x9: 16}
"""Bytes of a value behind its format code, by the upper half of that."""
SIZE_BYTES: Final = {0xA: 1, 0xB: 4, 0xC: 1, 0xD: 4, 0xE: 1, 0xF: 4}
"""Bytes that tell the size of one."""
COUNT_BYTES: Final = {0xC0: 1, 0xC1: 1, 0xD0: 4, 0xD1: 4}
"""Bytes that tell how many elements a list or a map has, behind its size, by its format code."""

BROKEN: Final = "a section of it is broken, or cut off"
SEVERAL: Final = "it has more than one body"


@attrs.frozen
class _Section:
    code: int
    """Code in the descriptor of the section; 0 for one that is not known."""
    start: int
    value: int
    """Index of its value, behind the descriptor."""
    end: int
    """Index behind it."""


def decoded(octets: bytes) -> Message:
    """The message that *octets* are, with a body of all of its sections.

    Raises: MessageException, or an error of proton's decoder, when they are none; none is told for a body that there
        is and which can't be read.
    Source: AMQP 1.0 part 1, 1.2 and part 3, 3.2.
    """
    body = [section for section in _sections(octets) if section.code in BODY]
    found = _decoded(octets)
    # Of several proton keeps the last. A body of data lies in the memory of its message.
    parts = [found] if len(body) == 1 else [_decoded(octets[each.start : each.end]) for each in body]
    values: list[Any] = [part.body for part in parts]
    if any(value is None and octets[each.value] != NULL for each, value in zip(body, values, strict=True)):
        raise MessageException(BROKEN)
    if len(body) > 1:
        codes = {each.code for each in body}
        if codes == {DATA}:
            found.body = b"".join(map(bytes, values))
        elif codes == {SEQUENCE}:
            found.body = list(chain.from_iterable(values))
        else:
            raise MessageException(SEVERAL)
    return found


def _decoded(octets: bytes) -> Message:
    message = Message()
    if octets:  # by one of its assertions, if it has them, proton ends the process otherwise
        message.decode(octets)
    return message


def _sections(octets: bytes) -> Iterator[_Section]:
    """All sections. Raises: MessageException."""
    at = 0
    while at < len(octets):
        if octets[at] != DESCRIBED:
            raise MessageException(BROKEN)
        value = _end(octets, at + 1)
        end = _end(octets, value)
        _check(octets, value, end)
        yield _Section(_descriptor(octets[at + 1 : value]), at, value, end)
        at = end


def _descriptor(octets: bytes) -> int:
    if octets[0] in (SMALL_DESCRIPTOR, LARGE_DESCRIPTOR):
        return int.from_bytes(octets[1:])
    return SYMBOLS.get(octets[2:], 0)


def _value_code(octets: bytes, at: int) -> int:
    """Index of the format code of the value that begins at *at*, behind its descriptors."""
    while at < len(octets) and octets[at] == DESCRIBED:
        at = _end(octets, at + 1)
    return at


def _end(octets: bytes, at: int) -> int:
    """Index behind the value that begins at *at*. Raises: MessageException when it is not all there."""
    missing = 1
    while missing:
        code = octets[at] if at < len(octets) else None
        if code == DESCRIBED:  # a descriptor and a value follow, in place of one value
            at += 1
            missing += 1
            continue
        form = code >> 4 if code is not None else 0
        end = at + 1 + FIXED_BYTES.get(form, 0)
        if form in SIZE_BYTES:
            end += SIZE_BYTES[form]
            end += int.from_bytes(octets[at + 1 : end])
        elif form not in FIXED_BYTES:
            raise MessageException(BROKEN)
        if end > len(octets):
            raise MessageException(BROKEN)
        at = end
        missing -= 1
    return at


def _check(octets: bytes, at: int, end: int) -> None:
    """Find out whether lists and maps have all of their elements. Raises: MessageException.

    Args:
        octets: of the message.
        at: index of a value.
        end: index behind it.
    """
    left = [(at, end)]
    while left:
        at, end = left.pop()
        code = _value_code(octets, at)
        width = COUNT_BYTES.get(octets[code], 0)
        element = code + 1 + 2 * width
        for _ in range(int.from_bytes(octets[element - width : element])):
            behind = _end(octets, element)
            if behind > end:
                raise MessageException(BROKEN)
            if octets[element] in COUNT_BYTES or octets[element] == DESCRIBED:
                left.append((element, behind))
            element = behind
