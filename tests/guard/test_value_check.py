"""Values of a stranger are counted before anybody makes anything of them, and no further than there may be."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proton import UNDESCRIBED, Array, Data, Described, ulong

from router.guard.guard_constants import WRONG
from router.guard.value_check import count_values
from tests.helpers.frames import encoded

SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.binary(max_size=300)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.integers(0, 99), inner, max_size=3)
        | inner.map(lambda value: Described(ulong(1), value))
        | st.integers(0, 300).map(lambda count: Array(UNDESCRIBED, Data.BYTE, *[7] * count))
    ),
    max_leaves=20,
)


def number_of(value: object) -> int:
    if isinstance(value, Described):
        return 2 + number_of(value.value)
    if isinstance(value, Array):
        return 1 + len(value.elements)
    if isinstance(value, dict):
        return 1 + len(value) + sum(map(number_of, value.values()))
    return 1 + sum(map(number_of, value)) if isinstance(value, list) else 1


@given(VALUES)
def test_all_values_are_counted(value: Any) -> None:
    data, number = encoded(value), number_of(value)
    assert count_values(data, 0, number) == number
    assert count_values(b"xx" + data + b"\xff", 2, 10**6) == number
    for most in range(number):
        assert count_values(data, 0, most) == most + 1


@given(VALUES, st.data())
def test_what_is_cut_off_is_wrong(value: Any, draw: st.DataObject) -> None:
    data = encoded(value)
    assert count_values(data[: draw.draw(st.integers(0, len(data) - 1))], 0, 10**6) == WRONG


def test_codes_of_no_type_are_wrong() -> None:
    codes = (
        "40 41 42 43 44 45 50 51 52 53 54 55 56 60 61 70 71 72 73 74 80 81 82 83 84 94 98 a0 a1 a3 b0 b1 b3 c0 c1 d0 d1"
    )
    for code in {*range(1, 0xE0)} - set(bytes.fromhex(codes)):
        assert count_values(bytes((code,)) + bytes(20), 0, 10) == WRONG, hex(code)
    for code in bytes.fromhex(codes):
        size = {0xC: 1, 0xD: 4}.get(code >> 4, 0)
        assert count_values(bytes((code, *bytes(size and size - 1), size)) + bytes(20), 0, 10) == 1, hex(code)


@pytest.mark.parametrize("most", [0, 1, 100])
def test_nothing_is_looked_at_behind_as_many_as_there_may_be(most: int) -> None:
    many = 1_000_000
    content = b"\x40" * most + b"\x01" * (many - most)  # there is no such constructor
    data = b"\xd0" + struct.pack(">II", 4 + many, many) + content
    assert count_values(data, 0, most) == most + 1
    assert count_values(data, 0, most + 2) == WRONG


def test_elements_of_an_array_without_bytes_count() -> None:
    assert count_values(b"\xe0\x03\xff\x40", 0, 1000) == WRONG, "it is shorter than it says"
    data = b"\xf0" + struct.pack(">II", 5, 1000) + b"\x40"
    assert count_values(data, 0, 2000) == 1001
    assert count_values(data, 0, 1000) == 1001, "more than may be"
    assert count_values(data, 0, 500) == 501


def test_lists_within_lists_have_a_bound() -> None:
    data = b"\x40"
    for _ in range(40):
        data = b"\xd0" + struct.pack(">II", 4 + len(data), 1) + data
    assert count_values(data, 0, 1000) == WRONG
