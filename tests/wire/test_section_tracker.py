"""Sections in their order, each as large as what it holds: whatever the pieces in which a message comes."""

from __future__ import annotations

import struct
from typing import Any

import proton
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.core.errors import DecodeError
from router.dataplane.section_tracker import MAX_DEPTH, SectionTracker
from router.dataplane.value_skipping import unsigned
from tests.helpers.peer import message
from tests.helpers.sections import NULL, binary, section
from tests.wire import vectors
from tests.wire.test_sections import IDS, KEYS, TEXT, VALUES


def follow(data: bytes, step: int) -> str:
    """What is wrong with a message that comes in pieces of so many bytes; empty when nothing is."""
    order = SectionTracker()
    order.begin()
    try:
        for at in range(0, len(data), step):
            order.follow(data[at : at + step], at + step >= len(data))
    except DecodeError as error:
        return str(error)
    return ""


def fault(data: bytes) -> str:
    """The same in pieces of several sizes, which make no difference."""
    found = {follow(data, step) for step in (1, 2, 7, len(data))}
    assert len(found) == 1
    return found.pop()


ALICE = section(0x73, NULL, binary(b"alice"))
BOB = section(0x73, NULL, binary(b"bob"))
DATA = b"\0\x53\x75" + binary(b"x")
APPLICATION = section(0x74, b"\xa1\x01a", b"\xa1\x01b", form=0xC1)
FOOTER = section(0x78, form=0xC1)
SEQUENCE = section(0x76, NULL)
VALUE = b"\0\x53\x77\x40"


@given(
    annotations=st.none() | st.dictionaries(KEYS, VALUES, max_size=6),
    instructions=st.none() | st.dictionaries(KEYS, VALUES, max_size=3),
    properties=st.none() | st.dictionaries(TEXT, st.none() | TEXT | st.booleans(), max_size=3),
    message_id=IDS,
    user_id=st.binary(max_size=300),
    body=VALUES,
    step=st.integers(1, 300),
)
def test_what_proton_writes_is_in_order(
    annotations: dict[Any, Any] | None,
    instructions: dict[Any, Any] | None,
    properties: dict[Any, Any] | None,
    message_id: Any,
    user_id: bytes,
    body: Any,
    step: int,
) -> None:
    made = proton.Message(body=body, id=message_id, address="q", reply_to="r", properties=properties)
    made.annotations, made.instructions, made.user_id = annotations, instructions, user_id
    assert follow(bytes(made.encode()), step) == ""


@pytest.mark.parametrize("file", vectors.files("data"))
def test_recorded_messages_are_in_order(file: str) -> None:
    vector = vectors.load(file)
    if "decoded" in vector.entry:  # else the beginning of a long one
        assert fault(vector.data) == ""


def described(*values: object) -> proton.Array:
    return proton.Array(proton.symbol("d"), proton.Data.INT, *(proton.int32(value) for value in values))


@pytest.mark.parametrize(
    "body",
    [
        proton.Array(proton.UNDESCRIBED, proton.Data.INT),
        proton.Array(proton.UNDESCRIBED, proton.Data.STRING, "a", "b" * 300),
        proton.Array(proton.UNDESCRIBED, proton.Data.NULL, None, None),
        described(),
        described(1, 2, 3),
        proton.Described(proton.symbol("d"), [1, {"a": [described(4)]}]),
        proton.Described(proton.Described("a", "b"), None),
        [[[[], {}], ["x" * 300] * 300]],
    ],
)
def test_bodies_of_all_kinds_are_in_order(body: object) -> None:
    assert fault(message(body)) == ""


def test_arrays_of_lists_are_in_order() -> None:
    lists = bytes((0xE0, 8, 2, 0xC0)) + bytes((2, 1, 0x40)) + bytes((2, 1, 0x41))
    assert fault(b"\0\x53\x77" + lists) == ""
    assert "more bytes than values" in fault(b"\0\x53\x77" + lists.replace(b"\x02\x01\x41", b"\x02\0\x41"))


@pytest.mark.parametrize(
    "data",
    [
        DATA + DATA + FOOTER,
        SEQUENCE + SEQUENCE,
        section(0x70) + section(0x71, form=0xC1) + section(0x72, form=0xC1) + ALICE + APPLICATION + VALUE + FOOTER,
        b"\0\x80\0\0\0\0\0\0\0\x73\x45" + DATA,
        ALICE,
        section(0x73, NULL, binary(b"alice"), wide=True),
    ],
)
def test_the_order_of_the_standard_is_followed(data: bytes) -> None:
    assert fault(data) == ""


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (ALICE + BOB + DATA, "no section 0x73 can follow section 0x73"),
        (DATA + BOB, "no section 0x73 can follow section 0x75"),
        (ALICE + DATA + BOB, "no section 0x73 can follow section 0x75"),
        (APPLICATION + BOB + DATA, "no section 0x73 can follow section 0x74"),
        (DATA + FOOTER + BOB, "no section 0x73 can follow section 0x78"),
        (VALUE + VALUE, "no section 0x77 can follow section 0x77"),
        (VALUE + DATA, "no section 0x75 can follow section 0x77"),
        (DATA + SEQUENCE, "no section 0x76 can follow section 0x75"),
        (FOOTER + FOOTER, "no section 0x78 can follow section 0x78"),
        (section(0x73, NULL, binary(b"alice"), more=BOB) + DATA, "section 0x73 holds more bytes than values"),
        (section(0x73, NULL, binary(b"alice"), more=BOB, wide=True), "section 0x73 holds more bytes than values"),
        (section(0x74, more=BOB, form=0xC1) + DATA, "section 0x74 holds more bytes than values"),
        (section(0x76, more=b"\x40"), "section 0x76 holds more bytes than values"),
        (b"\0\x53\x77\xe0\x02\x01\x50\x01" + BOB, "ends beyond what holds it"),
        (b"\0\x53\x77\xe0\x04\x01\x50\x01\x01", "section 0x77 holds more bytes than values"),
        (b"\0\x53\x77\xe0\x03\x01\0\x53\x70\x40", "ends beyond what holds it"),
        (b"\0\x53\x77\xe0\x05\x01\0\0\x40\x40", "the descriptor of an array is described itself"),
        (section(0x73, b"\xa0\x09ab"), "a value in section 0x73 ends beyond what holds it"),
        (section(0x76, b"\xc0\x09\x01"), "a value in section 0x76 ends beyond what holds it"),
        (section(0x73, b"\xc0\x01\0"), "a field of the properties is no plain value"),
        (section(0x73, b"\0\x53\x70\0\x53\x70\x45", binary(b"a")), "a field of the properties is no plain value"),
        (b"\0\x53\x73\xc0\0\0", "a value in section 0x73 ends beyond what holds it"),
        (section(0x74, b"\xa1\x01a", form=0xC1), "a map in section 0x74 has a key without a value"),
        (section(0x73, b"\x3f"), "no value has the constructor 0x3f"),
        (section(0x73, form=0xC1), "section 0x73 has the constructor 0xc1"),
        (b"\0\x53\x75\xa1\0", "section 0x75 has the constructor 0xa1"),
        (b"\0\x53\x73\0\x53\x73\x45", "section 0x73 has the constructor 0x0"),
        (b"\0\x53\x79\x45", "no section has the descriptor 0x79"),
        (b"\0\x80\x01\0\0\0\0\0\0\x73\x45", "no section has a descriptor as large as that"),
        (b"\0\xa3\x01a\x45", "a section's descriptor has the constructor 0xa3"),
        (b"\x40", "a section begins with 0x40 and not with a descriptor"),
        (b"\0\x53\x77" + b"\xc0\xff\x01" * (MAX_DEPTH + 1), "ends beyond what holds it"),
        (ALICE[:-1], "the message ends within a section"),
        (ALICE + DATA[:3], "the message ends within a section"),
        (ALICE + b"\0", "the message ends within a section"),
    ],
)
def test_receivers_can_not_be_told_another_story(data: bytes, expected: str) -> None:
    assert expected in fault(data)


def test_depth_is_bounded() -> None:
    def nested(depth: int) -> bytes:
        value = b"\x40"
        for _ in range(depth):
            value = b"\xd0" + struct.pack(">II", len(value) + 4, 1) + value
        return b"\0\x53\x77" + value

    assert fault(nested(MAX_DEPTH)) == ""
    assert "within each other" in fault(nested(MAX_DEPTH + 1))


def test_an_empty_message_has_no_section() -> None:
    with pytest.raises(DecodeError, match="ends within a section"):
        SectionTracker().follow(b"", True)


def test_one_follows_messages_one_after_the_other() -> None:
    order = SectionTracker()
    for data in (ALICE + DATA, BOB, ALICE):
        order.begin()
        order.follow(data[:5], False)
        order.follow(data[5:], True)
    order.begin()
    order.follow(DATA[:4], False)  # its sender gave it up
    order.begin()
    order.follow(ALICE, True)


@pytest.mark.parametrize("size", [0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF])
def test_a_size_of_32_bits_is_never_below_zero(size: int) -> None:
    data = b"\0\x53\x75\xb0" + struct.pack(">I", size) + b"x"
    assert fault(data) == "the message ends within a section"
    assert unsigned(struct.pack(">I", size), 0, 4) == size
    assert fault(b"\0\x53\x74\xd1" + struct.pack(">II", size, 2) + b"x") == "the message ends within a section"
