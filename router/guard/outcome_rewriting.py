"""Outcomes in the form that an engine reads: a code as descriptor, a symbol as the condition of an error.

A peer may write the descriptor of any described value as a symbol in place of its code, and some write a string where a
condition has to stand. An engine that knows only the one form takes the outcome for none. What is written here takes as
many bytes as it has taken before, so that it can be put in its place.

Source: AMQP 1.0 part 1, 1.5 (descriptors); part 2, 2.8.14 (errors); part 3, 3.4 (delivery states).
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
"""Of delivery states by their symbols."""
ABOVE_ASCII: Final = bytes(range(128)) + b"?" * 128
"""Table for `bytes.translate`: a symbol is ASCII."""
DEFAULT_OUTCOME: Final = 8
"""Fields of a source before it."""
NULL: Final = b"\x40"


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
    """Write a delivery state, which is one well formed value, with a code and a symbol in as many bytes.

    Returns: None when it is written so, or is nothing that is known.
    """
    if state[0]:
        return None
    stop = end_of(state, 1, len(state))
    code = code_of(state, stop)
    right = with_code(state, stop, code) if state[1] in (0xA3, 0xB3) and code != WRONG else state
    if code == REJECTED:
        right = with_symbol(right)
    return None if right is state else right


def with_code(state: bytes, at: int, code: int) -> bytes:
    """The same for one with a symbol as descriptor and its list at *at*: fields that are null fill what is left."""
    first, stop, count = fields_of(state, at)
    if first == WRONG:
        return state
    fields = state[first:stop]
    filling = len(state) - 6 - len(fields)
    if len(fields) + filling < 255 and count + filling < 256:
        head = bytes((0, 0x53, code, 0xC0, len(fields) + filling + 1, count + filling))
    else:
        filling -= 6
        size = len(fields) + filling + 4
        head = bytes((0, 0x53, code, 0xD0)) + size.to_bytes(4, "big") + (count + filling).to_bytes(4, "big")
    return head + fields + NULL * filling


def with_symbol(state: bytes) -> bytes:
    """The same for a rejected whose error has a string or binary as condition, or a symbol that is none."""
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


def fields_of(state: bytes, at: int) -> tuple[int, int, int]:
    """Find begin, end and number of the fields of the well formed list at *at*; WRONG when it isn't one."""
    kind = state[at] if at < len(state) else 0
    if kind == 0x45:
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
