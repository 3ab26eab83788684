"""Values of control messages: read as proton reads them, written as proton writes them, and nothing else taken."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proton import Data, Described, char, timestamp, ulong

from router.binding.message import int32, symbol
from router.core.errors import DecodeError
from router.core.ids_and_conditions import RouterId
from router.core.linkstate.messages import MobileAddressUpdate
from router.engine import message_codec
from router.engine.control_value_codec import MAX_DEPTH, ControlValueReader, ControlValueWriter, UnsupportedValue

LONG = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(max_size=300).filter(lambda text: "\0" not in text)
SYMBOL = st.text(st.characters(max_codepoint=127, min_codepoint=1), max_size=300).map(symbol)
SCALARS = st.none() | st.booleans() | LONG | st.integers(-(2**31), 2**31 - 1).map(int32) | TEXT | SYMBOL
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT | SYMBOL, inner, max_size=4),
    max_leaves=20,
)


def by_proton(value: object) -> bytes:
    data = Data()
    data.put_object(value)
    return bytes(data.encode())


@given(VALUES)
def test_values_are_written_as_proton_writes_them_and_read_back(value: Any) -> None:
    writer = ControlValueWriter()
    writer.value(value)
    assert bytes(writer.data) == by_proton(value)
    reader = ControlValueReader(bytes(writer.data), 0)
    assert reader.value() == value
    assert reader.at == len(writer.data)


@pytest.mark.parametrize(
    ("encoded", "value"),
    [
        ("43", 0), ("44", 0), ("50ff", 255), ("51ff", -1), ("5207", 7), ("5307", 7), ("54f6", -10), ("55f6", -10),
        ("5601", True), ("5600", False), ("60ffff", 65535), ("61ffff", -1), ("70ffffffff", 2**32 - 1),
        ("71ffffffff", -1), ("80ffffffffffffffff", 2**64 - 1), ("81ffffffffffffffff", -1),
        ("c00401a10178", ["x"]), ("c10602a1017854 07", {"x": 7}), ("a00178", "x"), ("b000000001 78", "x"),
        ("c101 00", {}), ("c0020141", [True]),
    ],
)  # fmt: skip
def test_each_encoding_is_read(encoded: str, value: object) -> None:
    reader = ControlValueReader(bytes.fromhex(encoded) + b"\x41", 0)
    found = reader.value()
    assert (found, type(found)) == (value, type(value))
    assert reader.value() is True, "what follows is where it should be"


@pytest.mark.parametrize(
    "value",
    [1.5, timestamp(1), char("x"), Described(ulong(1), 2), {1: 2}, b"\xff", [[1.5]]],
    ids=["double", "timestamp", "char", "described", "map with numbers for keys", "binary", "within lists"],
)
def test_what_is_not_plain_is_left_to_proton(value: object) -> None:
    with pytest.raises(UnsupportedValue):
        ControlValueReader(by_proton(value), 0).value()


def test_values_within_each_other_have_a_bound() -> None:
    value: object = None
    for _ in range(MAX_DEPTH + 1):
        value = [value]
    with pytest.raises(UnsupportedValue):
        ControlValueReader(by_proton(value), 0).value()


@given(st.binary(max_size=80))
def test_of_any_bytes_something_is_made_or_they_are_refused(data: bytes) -> None:
    try:
        ControlValueReader(data, 0).value()
    except (UnsupportedValue, IndexError):
        pass


@pytest.mark.parametrize("value", [1.5, b"x", (1, 2)])
def test_what_is_not_plain_is_not_written(value: object) -> None:
    with pytest.raises(TypeError):
        ControlValueWriter().value(value)


@given(st.data())
def test_a_damaged_message_is_read_as_proton_reads_it_or_refused_as_well(draw: st.DataObject) -> None:
    update = MobileAddressUpdate(id=RouterId("A"), mobile_seq=5, add=("M0one", "M0two"), hints=(3, 3))
    data = bytearray(message_codec.encode_control("_topo/0/all/qdrouter.ma", update, RouterId("A"), [RouterId("A")]))
    for _ in range(draw.draw(st.integers(1, 3))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    try:
        plain = message_codec._plain_sections(bytes(data))
    except (UnsupportedValue, IndexError):
        return
    try:
        whole = message_codec._sections_by_proton(bytes(data))
    except DecodeError:
        return  # of fields that nobody asks for, such as those of the header, only proton looks at the types
    assert plain[0] == whole[0]
    assert plain[1:] == tuple(message_codec._plain(part) for part in whole[1:])
