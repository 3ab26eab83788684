"""Messages decoded whole or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from proton import Described, Message, MessageException, symbol, ulong

from router.cli.message_decoding import decoded

VALUE, DATA, SEQUENCE = b"\0\x53\x77", b"\0\x53\x75", b"\0\x53\x76"
FIELDS: dict[str, Any] = {"address": "x", "correlation_id": "7", "properties": {"a": "b"}, "subject": "s" * 300}


@pytest.mark.parametrize(
    "body",
    [None, "text", "t" * 1000, b"bytes", [1, [2]], {"a": [1, {"b": None}]}, 5, 2**40, 1.5, True, symbol("s"), ulong(3)],
    ids=lambda body: f"{type(body).__name__}-{str(body)[:5]}",
)
def test_what_proton_writes_is_read_as_it_is(body: Any) -> None:
    octets = bytes(Message(body=body, inferred=isinstance(body, bytes), **FIELDS).encode())
    message, plain = decoded(octets), Message()
    plain.decode(octets)
    assert (message.body, message.properties, message.subject) == (plain.body, plain.properties, plain.subject)
    if body is not None:  # else it has no such section
        for cut in range(1, len(octets)):
            if len(octets) - cut not in ends(octets):
                with pytest.raises(MessageException):
                    decoded(octets[:-cut])


def ends(octets: bytes) -> set[int]:
    """Where a section of a message with `FIELDS` may end."""
    return {octets.index(mark) for mark in (b"\0\x53\x73", b"\0\x53\x74")} | {
        at for mark in (VALUE, DATA, SEQUENCE) if (at := octets.rfind(mark)) > 0
    }


@pytest.mark.parametrize(
    "octets",
    [
        b"garbage",
        VALUE,
        VALUE + b"\xa1\x05ab",
        VALUE + b"\x3f",
        DATA + b"\xb0\xff\xff\xff\xffab",
        VALUE + b"\xc0\x03\x01\xa1\x05",
        VALUE + b"\xc0\x02\x05\x41",
        b"\0\x53\x74\xc1\x03\x02\xa1\x05" + VALUE + b"\xa1\x01a",
        VALUE + b"\xa1\x01a\xff\xff",
        VALUE + b"\xa1\x01a" + VALUE + b"\xa1\x01b",
        DATA + b"\xa0\x01a" + VALUE + b"\xa1\x01b",
    ],
    ids=[
        "garbage",
        "nothing",
        "cut off",
        "unknown",
        "too large",
        "broken within",
        "fewer",
        "properties",
        "more",
        "two values",
        "two kinds",
    ],
)
def test_what_is_broken_is_not_taken_for_empty(octets: bytes) -> None:
    with pytest.raises(MessageException):
        decoded(octets)


@pytest.mark.parametrize(
    ("octets", "body"),
    [
        (b"", None),
        (VALUE + b"\x40", None),
        (DATA + b"\xa0\x01a" + DATA + b"\xb0\0\0\0\x02bc" + DATA + b"\xa0\0", b"abc"),
        (SEQUENCE + b"\xc0\x02\x01\x41" + SEQUENCE + b"\x45" + SEQUENCE + b"\xc0\x02\x01\x42", [True, False]),
        (b"\0\x80\0\0\0\0\0\0\0\x77\xa1\x01a", "a"),
        (VALUE + b"\0\x53\x01\xa1\x01a", Described(ulong(1), "a")),
        (b"\0\xa3\x11amqp:amqp-value:*\x40", None),
    ],
    ids=["empty", "null", "data", "sequences", "wide", "described", "symbol"],
)
def test_a_body_of_several_sections_is_one(octets: bytes, body: object) -> None:
    assert decoded(octets).body == body


@pytest.mark.parametrize("octets", [bytes(100_000), bytes(100_000) + b"\x40", b"\x00\x53\x77" + bytes(100_000)])
def test_descriptors_of_descriptors_are_no_depth(octets: bytes) -> None:
    with pytest.raises(MessageException):
        decoded(octets)
