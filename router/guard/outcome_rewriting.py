"""Outcomes in the form that an engine reads: a code as descriptor, a symbol as the condition of an error.

A peer may write the descriptor of any described value as a symbol in place of its code, and some write a string where a
condition has to stand. An engine that knows only the one form takes the outcome for none. And an outcome goes on to the
publisher, who may be far away, with all that it says: what no reader can make sense of must not get there. What is
written here takes as many bytes as it has taken before, so that it can be put in its place.

Source: AMQP 1.0 part 1, 1.5 (descriptors) and 1.6 (values); part 2, 2.8.14 (errors); part 3, 3.4 (delivery states).
"""

from __future__ import annotations

from typing import Final

import cython

if not cython.compiled:  # else they come by the .pxd
    from router.guard.guard_constants import ACCEPTED, MODIFIED, REJECTED, RELEASED, WRONG
    from router.guard.value_check import end_of, number_at

CODES: Final = {
    b"amqp:received:list": 0x23,
    b"amqp:accepted:list": ACCEPTED,
    b"amqp:rejected:list": REJECTED,
    b"amqp:released:list": RELEASED,
    b"amqp:modified:list": MODIFIED,
}
"""Codes of delivery states by their symbols."""
ABOVE_ASCII: Final = bytes(range(128)) + b"?" * 128
"""Table for `bytes.translate`: ASCII is UTF-8 too."""
DEFAULT_OUTCOME: Final = 8
"""Number of fields of a source before its default-outcome."""
NULL: Final = b"\x40"
EMPTY_LIST: Final = 0x45
NO_KEYS: Final = bytes((0, EMPTY_LIST, 0xA0, 0xB0))
"""Constructors that Python has no key of a dict for: described values, lists, binaries; and all from 0xC0 on."""
CHAR: Final = 0x73
REPLACEMENT: Final = b"\0\0\xff\xfd"
"""Char for what is none: U+FFFD."""


def code_of(state: bytes, stop: int) -> int:
    """The code of a delivery state, whose well formed descriptor ends at *stop*. Returns: WRONG when it is unknown."""
    kind = state[1]
    if kind == 0x53:
        return state[2]
    if kind == 0x80:
        return WRONG if any(state[2:9]) else state[9]
    if kind in (0xA3, 0xB3):
        return CODES.get(state[3 if kind == 0xA3 else 6 : stop], WRONG)
    return WRONG


def usual_form(state: bytes) -> bytes | None:
    """Write a delivery state, which is one well formed value, as others can read it, in as many bytes.

    Returns: None when it is written so, or is nothing that is known.
    """
    if state[0]:
        return None
    stop = end_of(state, 1, len(state))
    code = code_of(state, stop)
    right = with_code(state, stop, code) if state[1] in (0xA3, 0xB3) and code != WRONG else state
    if code == REJECTED:
        right = with_symbol(right)
    if code in (REJECTED, MODIFIED):
        found = unreadable(right, 0)
        right = with_text(right, found) if is_all_text(found) else readable_part(right) or right
    return None if right is state else right


def readable_part(state: bytes) -> bytes | None:
    """Write a delivery state with a field that nobody can read without that field and those behind it.

    Args:
        state: begins with the state, and may go on behind it.
    Returns: as many bytes as the state had; None when its end can't be found, or it is nothing that is known.
    """
    at = end_of(state, 1, len(state))
    code = code_of(state, at) if at != WRONG else WRONG
    kind = state[at] if code != WRONG and at < len(state) else 0
    width = 1 if kind == 0xC0 else 4
    first = at + 1 + 2 * width
    if kind not in (0xC0, 0xD0) or first > len(state):
        return None
    stop = at + 1 + width + number_at(state, at + 1, width)
    if not first <= stop <= len(state):
        return None
    end = first
    count = 0
    for _ in range(number_at(state, at + 1 + width, width)):
        after = end_of(state, end, stop)
        if after == WRONG or not is_all_text(unreadable(state, end)):
            break
        count += 1
        end = after
    right = written(code, state[first:end], count, stop)
    if code == REJECTED:
        right = with_symbol(right)
    return with_text(right, unreadable(right, 0))


def with_code(state: bytes, at: int, code: int) -> bytes:
    """Write a delivery state that has a symbol as descriptor, and its list at *at*, with *code* as descriptor."""
    first, stop, count = fields_of(state, at)
    if first == WRONG:
        return state
    return written(code, state[first:stop], count, len(state))


def written(code: int, fields: bytes, count: int, size: int) -> bytes:
    """Write a delivery state with *count* fields in *size* bytes: fields that are null fill what is left."""
    filling = size - 6 - len(fields)
    if len(fields) + filling < 255 and count + filling < 256:
        head = bytes((0, 0x53, code, 0xC0, len(fields) + filling + 1, count + filling))
    else:
        filling -= 6
        length = len(fields) + filling + 4
        head = bytes((0, 0x53, code, 0xD0)) + length.to_bytes(4, "big") + (count + filling).to_bytes(4, "big")
    return head + fields + NULL * filling


def with_symbol(state: bytes) -> bytes:
    """Write a rejected state with a symbol as its error's condition, where that is a string, a binary, or not ASCII."""
    at, _, count = fields_of(state, end_of(state, 1, len(state)))
    if not count or state[at]:
        return state
    at, _, count = fields_of(state, end_of(state, at + 1, len(state)))
    if not count or state[at] not in (0xA0, 0xA1, 0xA3, 0xB0, 0xB1, 0xB3):
        return state
    first = at + (2 if state[at] < 0xB0 else 5)
    stop = end_of(state, at, len(state))
    name = state[first:stop].translate(ABOVE_ASCII)
    kind = state[at] | 3
    if kind == state[at] and name == state[first:stop]:
        return state
    return state[:at] + bytes((kind,)) + state[at + 1 : first] + name + state[stop:]


def with_text(state: bytes, found: list[tuple[int, int, int]]) -> bytes:
    """Write a delivery state with all its strings in UTF-8, its symbols in ASCII and its chars in Unicode.

    Args:
        state: the delivery state.
        found: those of them, as `unreadable` tells.
    """
    if not found:
        return state
    text = bytearray(state)
    for at, end, code in found:
        text[at:end] = REPLACEMENT if code == CHAR else state[at:end].translate(ABOVE_ASCII)
    return bytes(text)


def is_all_text(found: list[tuple[int, int, int]]) -> bool:
    """Whether all that is unreadable is text: no key that is no plain value, no bytes behind the end of a list."""
    return WRONG not in [code for _, _, code in found]


def unreadable(data: bytes, at: int) -> list[tuple[int, int, int]]:
    """Find what there is within the well formed value at *at* that not every client can read.

    Returns: of text, begin and end of what stands behind its constructor, and the code of that; of values, WRONG in
        place of a code.
    """
    found: list[tuple[int, int, int]] = []
    look_at_value(data, at, found)
    return found


def look_at_value(data: bytes, at: int, found: list[tuple[int, int, int]]) -> int:
    """Find the end of the well formed value at *at*, and add to *found* what can't be read."""
    code = data[at]
    if code == 0:
        return look_at_value(data, look_at_value(data, at + 1, found), found)
    return look_at_content(data, at + 1, code, found)


def look_at_content(data: bytes, at: int, code: int, found: list[tuple[int, int, int]]) -> int:
    """Find the end of a value of which the constructor *code* was read, as in an array, and add what can't be read."""
    kind = code >> 4
    if kind < 10:
        end = at + (0 if kind == 4 else 1 << (kind - 5))
        if code == CHAR and not is_unicode(number_at(data, at, 4)):
            found.append((at, end, code))
        return end
    width = 4 if kind & 1 else 1
    end = at + width + number_at(data, at, width)
    if kind < 12:
        if code & 15 and not is_text(data[at + width : end], code):
            found.append((at + width, end, code))
        return end
    count = number_at(data, at + width, width)
    at += 2 * width
    if kind >= 14:
        if not data[at]:
            at = look_at_value(data, at + 1, found)
        code = data[at]
        at += 1
        for _ in range(count if code >> 4 != 4 else 0):
            at = look_at_content(data, at, code, found)
    else:
        is_map = code & 15 == 1
        for index in range(count):
            if is_map and not index & 1 and (data[at] in NO_KEYS or data[at] >= 0xC0):
                found.append((at, at, WRONG))
            at = look_at_value(data, at, found)
        if at != end:
            found.append((at, end, WRONG))
    return end


def is_unicode(number: int) -> bool:
    """Whether a char is one of Unicode, and no half of a pair of UTF-16."""
    return number < 0xD800 or 0xE000 <= number < 0x110000


def is_text(text: bytes, code: int) -> bool:
    """Whether a string is UTF-8, or a symbol is ASCII, by the *code* of its constructor."""
    if text.isascii():
        return True
    if code in (0xA3, 0xB3):
        return False
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def fields_of(state: bytes, at: int) -> tuple[int, int, int]:
    """Find begin, end and number of the fields of the well formed list at *at*; WRONG when it isn't one."""
    kind = state[at] if at < len(state) else 0
    if kind == EMPTY_LIST:
        return at + 1, at + 1, 0
    if kind not in (0xC0, 0xD0):
        return WRONG, WRONG, 0
    width = 1 if kind == 0xC0 else 4
    count = number_at(state, at + 1 + width, width)
    first = stop = at + 1 + 2 * width
    for _ in range(count):
        stop = end_of(state, stop, len(state))
    return first, stop, count


def default_outcome(source: bytes) -> tuple[int, bool, bool] | None:
    """The outcome that a source has for what is settled without one. Only its begin has to be *source*, well formed.

    Returns: its code, and delivery-failed and undeliverable-here of a modified; None when there is none.
    """
    if source[0]:
        return None
    at, _, count = fields_of(source, end_of(source, 1, len(source)))
    if count <= DEFAULT_OUTCOME:
        return None
    for _ in range(DEFAULT_OUTCOME):
        at = end_of(source, at, len(source))
    if source[at]:
        return None
    outcome = source[at : end_of(source, at, len(source))]
    stop = end_of(outcome, 1, len(outcome))
    code = code_of(outcome, stop)
    if code not in (ACCEPTED, REJECTED, RELEASED, MODIFIED):
        return None
    at, _, count = fields_of(outcome, stop)
    flags = [False, False]
    for index in range(min(count, 2) if code == MODIFIED else 0):
        flags[index] = outcome[at] == 0x41 or outcome[at : at + 2] == b"\x56\1"
        at = end_of(outcome, at, len(outcome))
    return code, flags[0], flags[1]
