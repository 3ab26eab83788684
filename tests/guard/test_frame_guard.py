"""The guard alone: which frames end a connection, with which condition, wherever the bytes are split."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proton import UNDESCRIBED, Array, Data, Described, char, symbol, ubyte, ulong, ushort

from router.guard.endpoint_guard import MAX_NAME_BYTES
from router.guard.endpoints import MOST_ALIKE, PeerLink, ReceiversByName, Table, default_outcome_of
from router.guard.flow_answers import flow_without_credit
from router.guard.frame_guard import FrameGuard
from tests.helpers import frames
from tests.helpers.frames import AMQP_HEADER, SASL_HEADER, encoded, source, target, write

OPEN = write(0x10, ["peer"])
BEGIN = write(0x11, [None, 7, 100, 100])
CLOSE = write(0x18, [])
NO_SESSION = "amqp:not-allowed"
FRAMING = "amqp:connection:framing-error"
DECODE = "amqp:decode-error"
INVALID = "amqp:invalid-field"
HANDLE = "amqp:session:unattached-handle"


def raw(body: bytes) -> bytes:
    return (len(body) + 8).to_bytes(4, "big") + b"\x02\x00\x00\x00" + body


def begin(remote: int | None = None, *, channel: int = 0) -> bytes:
    return write(0x11, [None if remote is None else ushort(remote), 7, 100, 100], channel=channel)


def attach(
    handle: int, *, is_receiver: bool, name: Any = "link", channel: int = 0, modes: tuple[Any, Any] = (None, None)
) -> bytes:
    return write(0x12, [name, handle, is_receiver, *modes, source("a"), target("a"), None, None, 0], channel=channel)


def tagged(size: int, *, number: int = 0) -> bytes:
    return write(0x14, [0, number, b"t" * size, 0], payload=b"payload")


def stated(state: list[Any]) -> bytes:
    """A transfer with a state of its sender."""
    return write(0x14, [0, 0, b"t" * 32, 0, False, False, None, Described(ulong(0x24), state)])


def flow(handle: Any = None, **fields: Any) -> bytes:
    return write(0x13, [0, 100, 0, 100, handle, fields.get("count"), fields.get("credit"), None, False, True])


def sasl(code: int) -> bytes:
    return write(code, ["ANONYMOUS"], kind=1)


def counted(frame: bytes, count: int) -> bytes:
    """The same frame with another number of fields in its performative."""
    assert frame[11] == 0xD0, "sizes have four bytes"
    return frame[:16] + count.to_bytes(4, "big") + frame[20:]


def settling(value: bytes) -> bytes:
    """A receiver's disposition with *value* in place of `settled`, and a rejected behind it."""
    fields = b"\x41\x43\x52\x01" + value + b"\x00\x53\x25\x45"
    return raw(b"\x00\x53\x15\xc0" + bytes((1 + len(fields), 5)) + fields)


SUSPECTS = bytes.fromhex("00 30 40 45 57 73 a1 a3 b1 c0 c1 d0 d1 e0 f0 ff")
"""Bytes that change what follows when they are taken for a constructor."""
RECEIVER = attach(0, is_receiver=True)
SENDER = attach(0, is_receiver=False)
OTHER = attach(1, is_receiver=True, name="other")
TRANSFER = write(0x14, [0, 0, b"t", 0], payload=b"payload")
SETTLED = write(0x15, [True, 0, None, True])

GOOD = [
    [OPEN, BEGIN, SENDER, TRANSFER, TRANSFER, write(0x16, [0, True]), write(0x17, []), CLOSE],
    [OPEN, BEGIN, RECEIVER, flow(0, count=0, credit=10), write(0x15, [True, 0, 3, True]), CLOSE],
    [OPEN, BEGIN, flow(), write(0x17, []), BEGIN, RECEIVER],
    [OPEN, begin(channel=9), attach(0x7FFFFFFF, is_receiver=False, channel=9)],
    [OPEN, BEGIN, SENDER, write(0x16, [0, False]), RECEIVER],
    [OPEN, b"\x00\x00\x00\x08\x02\x00\x00\x00", BEGIN],
    [OPEN, BEGIN, attach(0, is_receiver=False, modes=(ubyte(2), ubyte(1))), tagged(32), tagged(32, number=1 << 31)],
    [OPEN, BEGIN, attach(0, is_receiver=False, modes=(0, 9))],  # no ubytes: an engine takes them for none
    [OPEN, BEGIN, SENDER, raw(b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x14\xc0\x02\x01\x43")],
    [OPEN, BEGIN, write(0x15, [False, 0xFFFFFFFF, 0, True])],
    [OPEN, BEGIN, SENDER, TRANSFER, counted(TRANSFER, 0)],
    [OPEN, BEGIN, SENDER, stated([])],
    [OPEN, BEGIN, settling(b"\x40"), settling(b"\x56\x01")],
]
BAD = [
    ([BEGIN], FRAMING),
    ([OPEN, OPEN], FRAMING),
    ([CLOSE], FRAMING),
    ([OPEN, CLOSE, BEGIN], FRAMING),
    ([OPEN, BEGIN, SENDER, CLOSE, TRANSFER], FRAMING),
    ([OPEN, b"\x00\x00\x00\x07\x02\x00\x00\x00"], FRAMING),
    ([OPEN, b"\x00\x00\x02\x01\x02\x00\x00\x00"], FRAMING),
    ([OPEN, b"\x00\x00\x00\x08\x01\x00\x00\x00"], FRAMING),
    ([OPEN, b"\x00\x00\x00\x08\x03\x00\x00\x00"], FRAMING),
    ([OPEN, sasl(0x41)], FRAMING),
    ([OPEN, begin(channel=10)], FRAMING),
    ([OPEN, BEGIN, attach(0x80000000, is_receiver=True)], FRAMING),
    ([write(0x10, ["a\0b"])], INVALID),
    ([write(0x10, ["peer", "host\0"])], INVALID),
    ([write(0x10, ["a" * 300 + "\0"])], INVALID),
    ([OPEN, BEGIN, attach(0, is_receiver=True, name="\0")], INVALID),
    ([OPEN, BEGIN, attach(0, is_receiver=False, name="n" * 300 + "\0")], INVALID),
    ([OPEN, BEGIN, attach(0, is_receiver=False, modes=(ubyte(3), None))], INVALID),
    ([OPEN, BEGIN, attach(0, is_receiver=True, modes=(ubyte(0), ubyte(2)))], INVALID),
    ([OPEN, BEGIN, SENDER, tagged(33)], INVALID),
    ([OPEN, BEGIN, SENDER, TRANSFER, tagged(33)], INVALID),
    ([OPEN, BEGIN, SENDER, TRANSFER, tagged(300, number=1 << 31)], INVALID),
    ([OPEN, BEGIN, SENDER, TRANSFER, raw(b"\x00\x53\x14\xc0\x26\x03\x43\x40\xa0\x21" + bytes(33))], INVALID),
    ([OPEN, BEGIN, SENDER, TRANSFER, counted(tagged(33), 1)], INVALID),
    ([OPEN, BEGIN, SENDER, stated(["x" * 250])], INVALID),
    ([OPEN, BEGIN, SENDER, TRANSFER, stated(["x" * 250])], INVALID),
    # states that end no delivery, which an engine would keep
    ([OPEN, BEGIN, write(0x15, [True, 0, 1, False, Described(ulong(0x10), ["x" * 60])])], INVALID),
    ([OPEN, BEGIN, write(0x15, [True, 0, 1, False, Described(symbol("x"), ["x" * 60])])], INVALID),
    ([OPEN, BEGIN, write(0x15, [False, 0, 1, False, Described(ulong(0x25), ["x" * 60])])], INVALID),
    # what the number of fields leaves out is there nevertheless
    ([OPEN, BEGIN, counted(attach(0, is_receiver=True, modes=(ubyte(0), ubyte(2))), 3)], INVALID),
    ([OPEN, counted(write(0x11, [None, 7, 100, 100, 0]), 4), SENDER, OTHER], "amqp:not-allowed"),
    ([OPEN, BEGIN, counted(write(0x12, ["link", 0, True])[:-1] + b"\x50", 2)], DECODE),
    ([OPEN, BEGIN, attach(0, is_receiver=True, name="n").replace(b"\xa1\x01n", b"\xa1\x01\xff")], INVALID),
    ([OPEN, BEGIN, settling(b"\x56\x02")], DECODE),
    ([OPEN, BEGIN, settling(b"\x50\x01")], DECODE),
    ([OPEN, BEGIN, SETTLED, settling(b"\x45")], DECODE),
    ([OPEN, BEGIN, SENDER, raw(b"\x00\x53\x14\xc0\x2e\x03\x43\x85" + bytes(8) + b"\xa0\x21" + bytes(33))], DECODE),
    ([OPEN, write(0x19, [])], DECODE),
    ([OPEN, write(0x11, [ubyte(0), 0, 0, 0])], DECODE),
    ([OPEN, write(0x11, [None, 0, None, 0])], DECODE),
    ([OPEN, BEGIN, write(0x12, [None, 0, True])], DECODE),
    ([OPEN, BEGIN, write(0x12, ["name", ubyte(0), True])], DECODE),
    ([OPEN, BEGIN, write(0x12, ["name", 0, None])], DECODE),
    ([OPEN, BEGIN, SENDER, write(0x14, [ubyte(0), 0])], DECODE),
    ([OPEN, BEGIN, SENDER, write(0x14, [])], DECODE),
    ([OPEN, BEGIN, write(0x15, [None, 0])], DECODE),
    ([OPEN, BEGIN, write(0x15, [True])], DECODE),
    ([OPEN, BEGIN, write(0x13, [0, 1])], DECODE),
    ([OPEN, BEGIN, write(0x16, [])], DECODE),
    # a list that says more fields than it has bytes, one that goes past its frame, one that ends within a field
    ([OPEN, BEGIN, raw(b"\x00\x53\x16\xc0\x03\x09\x43\x41")], DECODE),
    ([OPEN, BEGIN, raw(b"\x00\x53\x16\xc0\x09\x02\x43\x41")], DECODE),
    ([OPEN, BEGIN, raw(b"\x00\x53\x13\xc0\x06\x04\x43\x43\x43\x43\x52")], DECODE),
    ([OPEN, BEGIN, raw(b"\x00\x53\x17")], DECODE),
    ([OPEN, BEGIN, raw(b"\x53\x17\x45\x00")], DECODE),
    ([OPEN, BEGIN, raw(b"\x00\xa3\x0damqp:end:list\x45")], DECODE),
    ([OPEN, BEGIN, BEGIN], "amqp:not-allowed"),
    ([OPEN, begin(0)], "amqp:not-allowed"),
    ([OPEN, BEGIN, begin(0, channel=1)], "amqp:not-allowed"),
    ([OPEN, TRANSFER], NO_SESSION),
    ([OPEN, BEGIN, write(0x17, []), SENDER], NO_SESSION),
    ([OPEN, BEGIN, write(0x17, []), write(0x17, [])], NO_SESSION),
    ([OPEN, BEGIN, RECEIVER, TRANSFER], "amqp:not-allowed"),
    ([OPEN, BEGIN, write(0x15, [True, 3, 2, True])], "amqp:not-allowed"),
    # behind transfers that are right
    ([OPEN, BEGIN, SENDER, TRANSFER, OTHER, TRANSFER, write(0x14, [1, 0, b"t"])], "amqp:not-allowed"),
    ([OPEN, BEGIN, SENDER, TRANSFER, TRANSFER, write(0x14, [1, 0, b"t"])], HANDLE),
    ([OPEN, BEGIN, SENDER, TRANSFER, TRANSFER, write(0x16, [0, True]), TRANSFER], HANDLE),
    ([OPEN, BEGIN, SENDER, TRANSFER, write(0x16, [0, True]), RECEIVER, TRANSFER], "amqp:not-allowed"),
    ([OPEN, BEGIN, SENDER, TRANSFER, write(0x17, []), TRANSFER], NO_SESSION),
    ([OPEN, BEGIN, SENDER, TRANSFER, write(0x17, []), BEGIN, TRANSFER], HANDLE),
    ([OPEN, BEGIN, SENDER, TRANSFER, CLOSE, TRANSFER], FRAMING),
    ([OPEN, BEGIN, begin(channel=1), SENDER, TRANSFER, write(0x14, [0, 0, b"t", 0], channel=1)], HANDLE),
    ([OPEN, BEGIN, SETTLED, SETTLED, write(0x17, []), SETTLED], NO_SESSION),
    ([OPEN, BEGIN, SETTLED, CLOSE, SETTLED], FRAMING),
    ([OPEN, BEGIN, SENDER, TRANSFER, raw(b"\x00\x53\x14\xc0\xff\x01\x43" + bytes(9))], DECODE),
    ([OPEN, BEGIN, SENDER, TRANSFER, raw(b"\x00\x53\x14\xc0\x03\x01\x50\x00" + bytes(9))], DECODE),
    ([OPEN, BEGIN, SENDER, attach(0, is_receiver=True, name="other")], "amqp:session:handle-in-use"),
    ([OPEN, BEGIN, TRANSFER], HANDLE),
    ([OPEN, BEGIN, SENDER, write(0x14, [1, 0, b"t"])], HANDLE),
    ([OPEN, BEGIN, SENDER, write(0x16, [0, True]), TRANSFER], HANDLE),
    ([OPEN, BEGIN, SENDER, write(0x16, [0, True]), write(0x16, [0, True])], HANDLE),
    ([OPEN, BEGIN, flow(3, count=0, credit=1)], HANDLE),
    # more links than the peer lets this side have handles to answer them
    ([OPEN, write(0x11, [None, 7, 100, 100, 0]), SENDER, OTHER], "amqp:not-allowed"),
    ([OPEN, write(0x11, [None, 7, 100, 100, 1]), SENDER, OTHER, attach(2, is_receiver=True, name="c")], NO_SESSION),
]


def guard(*, is_server: bool = True) -> FrameGuard:
    return FrameGuard(is_server=is_server, max_frame_bytes=512, channel_max=9)


def feed(tested: FrameGuard, data: bytes, sizes: random.Random | None = None) -> int:
    """Feed *data*, whole or in pieces of chance. Returns: how many bytes were handed on."""
    at = passed = 0
    while at < len(data) and not tested.is_broken:
        size = len(data) - at if sizes is None else sizes.randint(1, 20)
        piece = data[at - tested.kept : at + size]
        kept = tested.kept
        passed = at - kept + tested.check(piece)
        at = min(at + size, passed)  # what is much work is handed on in parts
    return passed


@pytest.mark.parametrize("frames", GOOD)
def test_what_the_protocol_allows_is_handed_on(frames: list[bytes]) -> None:
    data = AMQP_HEADER + b"".join(frames)
    for seed in (None, *range(10)):
        tested = guard()
        assert feed(tested, data, random.Random(seed) if seed is not None else None) == len(data)
        assert not tested.is_broken, tested.description
        assert tested.kept == 0


@pytest.mark.parametrize(
    ("work", "most"),
    [
        ([RECEIVER, write(0x16, [0, True])], 2),
        ([write(0x11, [None, 0, 100, 100], channel=1), write(0x17, [], channel=1)], 10),
        ([write(0x15, [True, 100 * number, 100 * number + 99, True]) for number in range(1000)], 11),
        ([write(0x15, [True, 0, 2**31 - 1])], 1),
        ([write(0x15, [True, number]) for number in range(1000)], 1000),
        ([write(0x15, [True, 1000 - number]) for number in range(1000)], 1000),
        ([flow()], 1000),
    ],
)
def test_no_more_is_handed_on_at_once_than_others_should_wait_for(work: list[bytes], most: int) -> None:
    tested = guard()
    feed(tested, AMQP_HEADER + OPEN + BEGIN)
    frames = [work[at % len(work)] for at in range(1000)]
    left = b"".join(frames)
    while frames:
        passed = tested.check(left)
        assert not tested.is_broken, tested.description
        assert passed == len(b"".join(frames[:most])), "whole frames, and as many as are the work of one time"
        assert tested.kept == 0
        left = left[passed:]
        del frames[:most]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([5], [0, 9]),
        ([0, 9], [5]),
        ([0, 9], [9, 20]),
        ([5], [5, None, True]),
        ([2**32 - 3, 2], [0]),
        ([1], [2**32 - 3, 2]),
    ],
)
def test_outcomes_of_one_delivery_are_handed_on_one_after_the_other(first: list[Any], second: list[Any]) -> None:
    tested = guard()
    feed(tested, AMQP_HEADER + OPEN + BEGIN)
    one, other, beside = (write(0x15, [True, *fields]) for fields in (first, second, [100]))
    assert tested.check(one + beside + other + other) == len(one + beside)
    assert tested.check(other + other) == len(other)
    assert tested.check(other) == len(other)
    assert not tested.is_broken, tested.description


def disposed(role: bool, channel: int, *, is_plain: bool) -> bytes:
    """A disposition of ten deliveries; one that isn't plain has an outcome with fields."""
    outcome = Described(ulong(0x24), []) if is_plain else Described(ulong(0x27), [True])
    return write(0x15, [role, 0, 9, True, outcome], channel=channel)


@pytest.mark.parametrize("is_plain", [True, False])
@pytest.mark.parametrize("role", [True, False])
def test_outcomes_of_other_sessions_and_directions_are_handed_on_together(role: bool, is_plain: bool) -> None:
    """Each session, and each direction in it, numbers its own deliveries (2.6.12)."""
    tested = guard()
    feed(tested, AMQP_HEADER + OPEN + b"".join(begin(channel=channel) for channel in range(4)))
    places = [(role, 0), (role, 3), (not role, 3), (role, 1), (not role, 0)]
    frames = [disposed(*place, is_plain=is_plain) for place in places]
    assert tested.check(b"".join(frames)) == len(b"".join(frames))
    for again in frames:
        whole = b"".join(frames)
        assert tested.check(whole + again) == len(whole), "its own session and direction has them"
    assert not tested.is_broken, tested.description


def test_a_begin_beside_very_many_sessions_is_handed_on_alone() -> None:
    tested = FrameGuard(is_server=True, max_frame_bytes=512, channel_max=32767)
    feed(tested, AMQP_HEADER + OPEN + b"".join(begin(channel=channel) for channel in range(16_000)))
    left = b"".join(begin(channel=channel) for channel in range(16_000, 16_010))
    assert tested.check(left) == len(begin(channel=16_000)), "an engine looks for a channel among all of them"
    assert not tested.is_broken


UINTS = [
    b"\x43",
    b"\x52\x07",
    b"\x52\xff",
    b"\x70\0\0\0\x05",
    b"\x70\0\0\x07\xd0",
    b"\x70\xff\xff\xff\xff",
    b"\x40",
    b"\x42",
]
"""As they stand in frames; the last two are none."""


@pytest.mark.parametrize("role", [b"\x41", b"\x42", b"\x56\1", b"\x40", b"\x43"])
@pytest.mark.parametrize("first", UINTS)
@pytest.mark.parametrize("last", UINTS)
def test_a_disposition_is_judged_alike_by_the_short_and_by_the_long_way(role: bytes, first: bytes, last: bytes) -> None:
    fields = role + first + last + b"\x41\0\x53\x24\x45"
    found = []
    for more in (0, 1, 200):
        body = b"\0\x53\x15\xc0" + bytes((len(fields) + 1, 5 + more)) + fields
        frame = (len(body) + 8).to_bytes(4, "big") + b"\2\0\0\0" + body
        for before in (b"", write(0x15, [True, 0])):  # which shows the session where the next one is expected
            tested = guard()
            feed(tested, AMQP_HEADER + OPEN + BEGIN + before)
            passed = tested.check(frame + frame)
            found.append((passed, tested.is_broken, tested.condition, tested.description))
    assert found[0::2] == found[1::2]


def judged(frame: bytes) -> list[Any]:
    """What comes of a frame of channel 0 with links at the handles 0, 5, 7 and 2000: by itself, and in the state."""
    tested = guard()
    links = [attach(0, is_receiver=False), attach(5, is_receiver=True, name="five")]
    links += [attach(7, is_receiver=False, name="seven"), attach(2000, is_receiver=True, name="far")]
    feed(tested, AMQP_HEADER + OPEN + BEGIN + b"".join(links))
    tested.own.show(AMQP_HEADER + OPEN + begin(remote=0))
    assert not tested.is_broken, tested.description
    found = [tested.check(2 * frame) / len(frame), tested.is_broken, tested.condition, tested.description]
    found += [[right for _, right in tested.corrections], tested.has_questions]
    session = tested.peer_sessions.get(0)
    found += [session.next_incoming, session.stated_next, session.stated_window]
    found += [session.stated_outgoing, session.stated_outgoing_window]
    return found + [(link.count, link.credit, link.drains) for link in session.links.values()]


def extended(frame: bytes) -> bytes:
    """The same frame with a word of extended header, which always takes the long way."""
    return (len(frame) + 4).to_bytes(4, "big") + bytes((3,)) + frame[5:8] + bytes(4) + frame[8:]


@pytest.mark.parametrize("is_wide", [False, True])
@pytest.mark.parametrize("tag", [b"\x40", b"\xa0\0", b"\xa0\x20" + b"t" * 32, b"\xa0\x21" + b"t" * 33, b"\x43"])
@pytest.mark.parametrize("handle", UINTS)
def test_a_transfer_is_judged_alike_by_the_short_and_by_the_long_way(handle: bytes, tag: bytes, is_wide: bool) -> None:
    fields = handle + b"\x52\x09" + tag + b"\x43\x42"
    size, count = (4, b"\0\0\0\x05") if is_wide else (1, b"\x05")
    head = bytes((0, 0x53, 0x14, 0xD0 if is_wide else 0xC0)) + (len(count) + len(fields)).to_bytes(size, "big")
    frame = raw(head + count + fields + b"payload")
    assert judged(frame) == judged(extended(frame))


RIGHT_UINTS = st.sampled_from(UINTS[:6])
ANY_UINTS = st.one_of(RIGHT_UINTS, RIGHT_UINTS, st.sampled_from(UINTS))
FLAGS = st.sampled_from([b"\x41", b"\x42", b"\x42", b"\x42", b"\x40", b"\x56\x01", b"\x43"])


@given(uints=st.lists(ANY_UINTS, min_size=8, max_size=8), flags=st.lists(FLAGS, max_size=3))
def test_a_flow_is_judged_alike_by_the_short_and_by_the_long_way(uints: list[bytes], flags: list[bytes]) -> None:
    fields = b"".join(uints + flags)
    frame = raw(b"\0\x53\x13\xc0" + bytes((1 + len(fields), len(uints) + len(flags))) + fields)
    assert judged(frame) == judged(extended(frame))


@pytest.mark.parametrize(("last", "size", "is_right"), [(4500, 800, True), (4500, 1000, False), (9999, 100, True)])
def test_a_long_outcome_is_for_few_deliveries(last: int, size: int, is_right: bool) -> None:
    """Who reads it gives a copy to each."""
    tested = FrameGuard(is_server=True, max_frame_bytes=32768, channel_max=9)
    feed(tested, AMQP_HEADER + OPEN + BEGIN)
    tested.check(write(0x15, [True, 0, last, True, "x" * size]))
    assert tested.is_broken is not is_right
    assert is_right or tested.condition == "amqp:not-allowed"


@pytest.mark.parametrize(("frames", "condition"), BAD)
def test_a_violation_is_found_at_its_frame_and_not_handed_on(frames: list[bytes], condition: str) -> None:
    data = AMQP_HEADER + b"".join(frames)
    for seed in (None, *range(10)):
        tested = guard()
        passed = feed(tested, data + OPEN, random.Random(seed) if seed is not None else None)
        assert tested.condition == condition, tested.description
        assert passed == len(data) - len(frames[-1])
        assert tested.check(OPEN) == 0


def test_a_link_with_a_name_that_is_too_long_is_a_violation() -> None:
    tested = FrameGuard(is_server=True, max_frame_bytes=65536, channel_max=9)
    feed(tested, AMQP_HEADER + OPEN + BEGIN + attach(0, is_receiver=True, name="n" * MAX_NAME_BYTES))
    assert not tested.is_broken
    feed(tested, attach(1, is_receiver=True, name="n" * (MAX_NAME_BYTES + 1)))
    assert tested.condition == "amqp:resource-limit-exceeded"


@pytest.mark.parametrize(
    "data",
    [
        b"\x16",
        b"GET / HTTP",
        b"AMQP\x00\x00\x09\x01",
        b"AMQP\x02\x01\x00\x00",
        SASL_HEADER + SASL_HEADER,
        SASL_HEADER + AMQP_HEADER,
    ],
)
def test_a_header_that_is_not_served_is_told_apart(data: bytes) -> None:
    tested = guard()
    feed(tested, data)
    assert tested.is_header_wrong
    assert tested.condition == FRAMING


@pytest.mark.parametrize(
    ("is_server", "frames", "is_right"),
    [
        (True, [sasl(0x41), AMQP_HEADER, OPEN], True),
        (True, [sasl(0x41), sasl(0x43), AMQP_HEADER], True),
        (True, [sasl(0x43)], False),
        (True, [sasl(0x41), sasl(0x41)], False),
        (True, [sasl(0x40)], False),
        (True, [OPEN], False),
        (True, [BEGIN], False),
        (False, [sasl(0x40), sasl(0x44), AMQP_HEADER, OPEN], True),
        (False, [sasl(0x40), sasl(0x42), sasl(0x44), AMQP_HEADER], True),
        (False, [sasl(0x44)], False),
        (False, [sasl(0x40), AMQP_HEADER], False),
        (False, [sasl(0x40), sasl(0x44), sasl(0x44)], False),
        (False, [sasl(0x41)], False),
    ],
)
def test_sasl_frames_come_when_they_are_due(is_server: bool, frames: list[bytes], is_right: bool) -> None:
    for seed in (None, *range(5)):
        tested = guard(is_server=is_server)
        feed(tested, SASL_HEADER + b"".join(frames), random.Random(seed) if seed is not None else None)
        assert tested.is_broken is not is_right, tested.description


def test_a_begin_is_answered_once_while_its_session_is_there() -> None:
    tested = guard()
    feed(tested, AMQP_HEADER + OPEN)
    tested.own.show(AMQP_HEADER + OPEN + begin(channel=3))
    assert tested.check(begin(3))
    assert not tested.is_broken
    tested.check(begin(3, channel=1))
    assert tested.condition == "amqp:not-allowed"
    tested = guard()
    feed(tested, AMQP_HEADER + OPEN)
    tested.own.show(AMQP_HEADER + OPEN + begin(channel=3) + write(0x17, [], channel=3))
    tested.check(begin(3))
    assert tested.condition == "amqp:not-allowed"


def test_a_session_that_the_peer_began_takes_no_answer() -> None:
    tested = guard()
    feed(tested, AMQP_HEADER + OPEN + begin(channel=5))
    tested.own.show(AMQP_HEADER + OPEN + begin(5, channel=0))
    tested.check(begin(0, channel=1))
    assert tested.condition == "amqp:not-allowed"


def test_handles_of_any_size_take_memory_by_their_number() -> None:
    tested = guard()
    feed(tested, AMQP_HEADER + OPEN + BEGIN)
    for number in range(200):
        data = attach(number * 10_000_019 % 0x7FFFFFFF, is_receiver=False, name=f"n{number}")
        assert tested.check(data) == len(data)
    assert len(tested.peer_sessions.get(0).links.dense) <= 1000


OWN = (
    AMQP_HEADER
    + write(0x10, ["me"])
    + write(0x11, [ushort(0), 5, 50, 60], channel=2)
    + attach(8, is_receiver=False, channel=2)
    + write(0x14, [8, 0, b"t", 0, None, True], channel=2, payload=bytes(400))
    + write(0x14, [8, 0, None, None, None, False], channel=2, payload=bytes(400))
    + write(0x14, [8, 1, b"u", 0], channel=2, payload=bytes(3))
)


@pytest.mark.parametrize("seed", [None, *range(10)])
def test_an_answer_states_what_was_written_however_it_was_split(seed: int | None) -> None:
    tested = guard()
    feed(tested, AMQP_HEADER + OPEN + BEGIN + RECEIVER + flow(0, count=0, credit=10))
    chance = random.Random(seed)
    at = 0
    while at < len(OWN):
        size = len(OWN) if seed is None else chance.randint(1, 200)
        tested.own.show(OWN[at : at + size])
        at += size
    assert tested.has_questions
    ((channel, body),) = tested.answers()
    assert channel == 2
    expected = write(0x13, [7, 50, 8, 60, 8, 2, 8, None, False])[8:]
    assert decoded(body) == decoded(expected)
    assert not tested.has_questions


def test_transfers_of_several_links_and_sessions_are_counted_each() -> None:
    tested = guard()
    names = {0: "n", 1: 130 * "m", 200: 400 * "o"}  # their Attaches are kept in part, one way or another
    attaches = [attach(handle, is_receiver=True, name=names[handle], channel=5) for handle in (0, 1, 200)]
    feed(tested, AMQP_HEADER + OPEN + begin(channel=5) + begin(channel=6) + b"".join(attaches))
    own = [attach(handle, is_receiver=False, name=names[handle], channel=1) for handle in (0, 1, 200)]
    written = [AMQP_HEADER, OPEN, begin(5, channel=1), begin(6, channel=2), *own]
    written.append(attach(0, is_receiver=False, name="elsewhere", channel=2))
    chance = random.Random(1)
    counts = {0: 0, 1: 0, 200: 0}
    frames_written = 7  # the first transfer-id
    for number in range(300):
        handle = chance.choice((0, 1, 200))
        more = chance.random() < 0.3
        counts[handle] += not more
        frames_written += 1
        fields = [handle, number * 1000, bytes(chance.randrange(32)), 0, chance.choice((None, False, True)), more]
        written.append(write(0x14, fields, channel=1, payload=bytes(chance.randrange(300))))
        if chance.random() < 0.3:
            written.append(write(0x14, [0, number, b"tag", 0, True], channel=2))
    data = b"".join(written)
    at = 0
    while at < len(data):
        size = chance.choice((3, 50, 1000))
        tested.own.show(data[at : at + size])
        at += size
    for handle in counts:
        tested.check(write(0x13, [0, 100, 0, 100, handle, 0, 999, None, False, True], channel=5))
    told = [decoded(body) for _, body in tested.answers()]
    assert {int(fields[4]): int(fields[5]) for fields in told} == counts
    assert {int(fields[2]) for fields in told} == {frames_written}


def test_a_question_that_is_asked_again_before_it_is_answered_has_one_answer() -> None:
    tested = guard()
    feed(tested, AMQP_HEADER + OPEN + BEGIN + RECEIVER + 3 * flow(0, count=0, credit=10) + 2 * flow())
    tested.own.show(OWN)
    assert [len(decoded(body)) for _, body in tested.answers()] == [9, 4]


STATE = [7, 50, 8, 60]
"""Of the session that `OWN` begins, after it."""


@pytest.mark.parametrize(
    ("behind", "answers"),
    [
        (write(0x13, [*STATE, 8, 2, 8, None, False], channel=2), []),  # it says the state of the session too
        (write(0x13, STATE, channel=2), [9]),
        (write(0x13, [*STATE, 8, 2, 7, None, False], channel=2), [9]),
        (write(0x13, [*STATE, 8, 2, 8, None, True], channel=2), [9]),
        (write(0x13, [7, 50, 7, 60, 8, 2, 8, None, False], channel=2), [9, 4]),
        (write(0x13, [*STATE, 8, 2, 8], channel=2) + write(0x14, [8, 2, b"v", 0], channel=2), [9, 4]),
        (write(0x13, [*STATE, 8, 2, 8], channel=2) + write(0x16, [8, True], channel=2), [4, 4]),
    ],
)
def test_what_a_flow_has_said_and_is_so_still_is_not_answered_again(behind: bytes, answers: list[int]) -> None:
    tested = guard()
    feed(tested, AMQP_HEADER + OPEN + BEGIN + RECEIVER + flow(0, count=0, credit=10) + flow())
    tested.own.show(OWN + behind)
    assert [len(decoded(body)) for _, body in tested.answers()] == answers
    feed(tested, flow(0, count=0, credit=10))
    assert len(tested.answers()) == 1  # nothing was said since


@pytest.mark.parametrize("count", [0, 200, 70_000])
@pytest.mark.parametrize("credit", [0, 200, 2**32 - 1])
@pytest.mark.parametrize("piece", [1, 7, 30, 1000])
def test_a_flow_of_a_link_that_is_gone_is_written_as_one_of_its_session(piece: int, credit: int, count: int) -> None:
    tested = guard()
    gone = write(0x13, [*STATE, 2**32 - 2, count, credit, None, False], channel=2)
    wanted = write(0x13, [*STATE, 8, 2, 8, None, False], channel=2)
    own = OWN + gone + wanted + gone + wanted
    pending = bytearray()
    written = b""
    for at in range(0, len(own), piece):
        seen = len(pending)
        pending += own[at : at + piece]
        tested.own.show(bytes(pending[seen:]))
        for start, right in tested.own.corrections:
            pending[seen + start : seen + start + len(right)] = right
        tested.own.corrections.clear()
        ready = len(pending) - tested.own.unfinished()
        written += pending[:ready]
        del pending[:ready]
    assert len(written) == len(own)
    assert written.startswith(OWN)
    flows = list(frames.read(written[len(OWN) :]))
    assert [(frame.name, frame.flow("handle")) for frame in flows] == [("flow", None), ("flow", 8)] * 2
    assert [[frame.field(index) for index in range(4)] for frame in flows] == [STATE] * 4


def decoded(body: bytes) -> list[Any]:
    reader = Data()
    reader.decode(body)
    reader.rewind()
    reader.next()
    found: list[Any] = reader.get_object().value
    return found


@pytest.mark.parametrize("address", ["\0", "a\0b", "a" * 300 + "\0\0", "plain", "", None])
@pytest.mark.parametrize("place", [5, 6])
@pytest.mark.parametrize("descriptor", [ulong(0x28), ulong(2**40), symbol("amqp:source:list")])
def test_a_nul_in_an_address_is_made_a_byte_of_no_text(address: str | None, place: int, descriptor: Any) -> None:
    guard = FrameGuard(is_server=True, max_frame_bytes=32768, channel_max=9)
    fields: list[Any] = ["link", 0, True, None, None, None, None, {symbol("a"): b"\0"}, None, 0]
    fields[place] = Described(descriptor, [address, 0, symbol("never"), 0, False, None])
    frame = write(0x12, fields)
    data = AMQP_HEADER + OPEN + BEGIN + frame
    assert guard.check(data) == len(data)
    assert not guard.is_broken
    found = bytearray(data)
    text = (address or "").encode()
    assert len(guard.corrections) == (0 in text)
    for at, right in guard.corrections:
        assert (found[at], right) == (0, b"\xff")
        found[at] = 0xFF
    assert text.replace(b"\0", b"\xff", 1) in found
    guard.check(write(0x16, [0, True]))
    assert not guard.corrections


@pytest.mark.parametrize(
    "value", [None, "text", 5, [], [["a\0"]], [b"a\0"], {"a": "\0"}, Described(ulong(0x28), "a\0")]
)
def test_what_is_no_terminus_with_an_address_has_no_nul(value: Any) -> None:
    guard = FrameGuard(is_server=True, max_frame_bytes=32768, channel_max=9)
    data = AMQP_HEADER + OPEN + BEGIN + write(0x12, ["link", 0, True, None, None, value, value, None, None, 0])
    assert guard.check(data) == len(data)
    assert (guard.is_broken, guard.corrections) == (False, [])


def sent_by_default(outcome: Any) -> Any:
    tested = guard()
    source_of_it = Described(symbol("amqp:source:list"), ["a", *[None] * 7, outcome, None, None])
    feed(tested, AMQP_HEADER + OPEN + BEGIN + write(0x12, ["link", 0, True, None, None, source_of_it, target("a")]))
    assert not tested.is_broken
    return tested.peer_sessions.get(0).links.get(0).default_outcome


@pytest.mark.parametrize(
    ("code", "name"), [(0x24, "amqp:accepted:list"), (0x25, "amqp:rejected:list"), (0x26, "amqp:released:list")]
)
def test_a_default_outcome_is_noted(code: int, name: str) -> None:
    assert sent_by_default(Described(ulong(code), [])) == (code, False, False)
    assert sent_by_default(Described(symbol(name), [None])) == (code, False, False)


def test_a_default_outcome_has_its_flags() -> None:
    assert sent_by_default(Described(ulong(0x27), [])) == (0x27, False, False)
    assert sent_by_default(Described(symbol("amqp:modified:list"), [True])) == (0x27, True, False)
    assert sent_by_default(Described(ulong(0x27), [None, True, {symbol("a"): 1}])) == (0x27, False, True)


@pytest.mark.parametrize("value", [None, 5, "text", [], Described(ulong(0x23), []), Described(ulong(0x24), "x")])
def test_what_is_no_outcome_is_no_default(value: Any) -> None:
    assert sent_by_default(value) == ((0x24, False, False) if isinstance(value, Described) and value.value else None)


STATES = {
    "amqp:received:list": (0x23, [3, ulong(70)]),
    "amqp:accepted:list": (0x24, []),
    "amqp:rejected:list": (0x25, [Described(symbol("amqp:error:list"), [symbol("my:no"), "why", {symbol("n"): 1}])]),
    "amqp:released:list": (0x26, []),
    "amqp:modified:list": (0x27, [True, False, {symbol("x-opt-why"): "v" * 240}]),
}


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize("is_long", [False, True])
@pytest.mark.parametrize("settled", [True, None])
def test_an_outcome_with_a_symbol_is_given_its_code_in_as_many_bytes(
    name: str, is_long: bool, settled: bool | None
) -> None:
    code, fields = STATES[name]
    frame = write(0x15, [True, 0, 1, settled, Described(symbol(name), fields), False])
    if is_long:  # sizes of four bytes
        frame = frame.replace(b"\xa3\x12amqp", b"\xb3\0\0\0\x12amqp")
        frame = (len(frame)).to_bytes(4, "big") + frame[4:11] + wide(frame[11], frame[12:], 3)
    tested = FrameGuard(is_server=True, max_frame_bytes=32768, channel_max=9)
    data = AMQP_HEADER + OPEN + BEGIN + frame
    assert tested.check(data) == len(data)
    assert not tested.is_broken, tested.description
    ((at, right),) = tested.corrections
    found = Data()
    found.decode(right)
    found.rewind()
    found.next()
    value = found.get_object()
    assert value.descriptor == code
    assert value.value[: len(fields)] == fields
    assert value.value[len(fields) :] == [None] * (len(value.value) - len(fields))
    assert data[at : at + 1] == b"\0"
    assert data[at + len(right) :] == b"\x42", "the field behind it stays where it is"


@pytest.mark.parametrize("count", [0, 3, 4])
def test_an_outcome_behind_the_number_of_fields_is_made_readable_too(count: int) -> None:
    error = Described(ulong(0x1D), [symbol("my:no"), "why"])
    frame = write(0x15, [True, 0, 1, True, Described(ulong(0x25), [error])]).replace(b"why", b"\xff\xfe\xfd")
    right, wrong = guard(), guard()
    for tested, one in ((right, frame), (wrong, counted(frame, count))):
        data = AMQP_HEADER + OPEN + BEGIN + one
        assert tested.check(data) == len(data), tested.description
    assert len(right.corrections) == 1
    assert wrong.corrections == right.corrections


def test_an_address_behind_the_number_of_fields_is_looked_at_too() -> None:
    tested = guard()
    data = AMQP_HEADER + OPEN + BEGIN + counted(attach(0, is_receiver=True).replace(b"\xa1\x01a", b"\xa1\x01\0"), 3)
    assert tested.check(data) == len(data), tested.description
    assert len(tested.corrections) == 2


def test_values_behind_the_number_of_a_list_are_not_nested_without_end() -> None:
    nested = 40 * b"\0" + b"\x53\x01\x40"
    assert not sent_by_guard(b"\x40" + nested), "an engine would follow it"
    assert sent_by_guard(b"\x40\x40")


def sent_by_guard(values: bytes) -> bool:
    """Whether an attach passes whose source says that it has one field, and has *values*."""
    tested = guard()
    wrong = b"\0\x53\x28\xc0" + bytes((len(values) + 1, 1)) + values
    frame = attach(0, is_receiver=True).replace(encoded(source("a")), wrong)
    frame = len(frame).to_bytes(4, "big") + frame[4:12] + (len(frame) - 16).to_bytes(4, "big") + frame[16:]
    data = AMQP_HEADER + OPEN + BEGIN + frame
    return tested.check(data) == len(data)


def test_fields_beyond_their_number_are_none() -> None:
    for error in (b"\0\x53\x1d\xc0\x09\0\xa1\5my:no\0", b"\0\x53\x1d\xc0\1\0"):
        for count in (0, 1):
            tested = guard()
            state = b"\0\x53\x25\xc0" + bytes((len(error) + 1, count)) + error
            fields = b"\x41\x43\x40\x41" + state
            body = b"\0\x53\x15\xc0" + bytes((len(fields) + 1, 5)) + fields
            data = AMQP_HEADER + OPEN + BEGIN + (len(body) + 8).to_bytes(4, "big") + b"\2\0\0\0" + body
            assert tested.check(data) == len(data)
            assert not tested.is_broken
            if count == 1 and len(error) == 6:  # nothing beyond
                assert tested.corrections == []
                continue
            ((_, right),) = tested.corrections
            assert right[:5] == b"\0\x53\x25\xc0" + state[4:5]
            assert set(right[6:]) == {0x40}


def wide(kind: int, rest: bytes, more: int) -> bytes:
    """A list whose content has grown by so many bytes."""
    if kind == 0xD0:
        return b"\xd0" + (int.from_bytes(rest[:4], "big") + more).to_bytes(4, "big") + rest[4:]
    return bytes((0xC0, rest[0] + more)) + rest[1:]


@pytest.mark.parametrize("condition", ["my:no", b"my:no", symbol("my:no"), "m\xfc:no", None, 5])
@pytest.mark.parametrize("outcome", [ulong(0x25), ulong(0x25 + 2**32), symbol("amqp:rejected:list")], ids=str)
def test_a_condition_that_is_text_becomes_a_symbol(condition: Any, outcome: Any) -> None:
    tested = guard()
    error = Described(ulong(0x1D), [condition, "why"])
    data = AMQP_HEADER + OPEN + BEGIN + write(0x15, [True, 0, 1, True, Described(outcome, [error])])
    tested.check(data)
    corrected = bytearray(data)
    for at, right in tested.corrections:
        corrected[at : at + len(right)] = right
    assert len(corrected) == len(data)
    is_text = isinstance(condition, str | bytes) and int(outcome != ulong(0x25 + 2**32))
    assert (b"\xa3\x05my:no" in corrected or b"\xa3\x06m??:no" in corrected) == bool(
        is_text or (isinstance(condition, symbol))
    )
    assert b"\xa1\x03why" in corrected


@pytest.mark.parametrize(
    "state",
    [
        None,
        5,
        "amqp:accepted:list",
        Described(symbol("amqp:declared:list"), [b"i"]),
        Described(ulong(0x24), []),
        Described(ulong(2**64 - 1), []),
        Described(ulong(0x25), []),
        Described(ulong(0x25), [None]),
        Described(ulong(0x25), [Described(ulong(0x1D), [])]),
        Described(ulong(0x25), [Described(ulong(0x1D), "text")]),
    ],
)
def test_what_is_no_outcome_with_a_symbol_stays_as_it_is(state: Any) -> None:
    tested = guard()
    data = AMQP_HEADER + OPEN + BEGIN + write(0x15, [True, 0, 1, True, state])
    assert tested.check(data) == len(data)
    assert (tested.is_broken, tested.corrections) == (False, [])


UNREADABLE = {
    "a list that is longer than its frame": b"\xc0\xff\x01\x40",
    "a map with an odd count": b"\xc1\x02\x01\x40",
    "a map with half an element": b"\xc1\x03\x02\xa1\x00",
    "a code of no type": b"\x30\x40",
    "another code of no type": b"\x57\x40",
    "a descriptor of nothing": b"\x00" * 10,
    "a key that is a list": b"\xc1\x04\x02\x45\x40",
    "a key that is binary": b"\xc1\x05\x02\xa0\x01k\x40",
    "a key that is described": b"\xc1\x06\x02\x00\x53\x05\x40\x40",
    "bytes behind the last value of a map": b"\xc1\x05\x02\x43\x43\xa1\xff",
    "a value behind the last one of a list": b"\xc0\x04\x02\x43\x43\x43",
    "a key that is a map in a list": b"\xc0\x08\x01\xc1\x05\x02\xc1\x01\x00\x40",
    "an array of codes of no type": b"\xe0\x04\x02\x30\x40\x40",
}
ILLEGIBLE = {
    "a string that is no UTF-8": (b"\xa1\x08ok\xff\xfe\xc3(no", "ok???(no"),
    "a symbol that is no ASCII": (b"\xa3\x08\xc3\xbcber.no", "??ber.no"),
    "a char beyond Unicode": (b"\x73\x00\x11\x00\x00", "\ufffd"),
    "a char that is half a pair": (b"\x73\x00\x00\xd8\x00", "\ufffd"),
    "an array of strings": (b"\xe0\x06\x02\xa1\x01a\x01\xff", ["a", "?"]),
}


def hole(value: bytes) -> bytes:
    """A binary that takes as many bytes."""
    return b"#" * (len(value) - 2)


def settled_with(state: Any, value: bytes) -> tuple[Any, FrameGuard]:
    """Have an outcome looked at in which *value* stands in its hole. Returns: as an engine reads it, and the guard."""
    tested = guard()
    frame = write(0x15, [True, 0, 1, True, state, False])
    before, found, after = frame.partition(b"\xa0" + bytes((len(value) - 2,)) + hole(value))
    assert found
    data = AMQP_HEADER + OPEN + BEGIN + before + value + after
    tested.check(data)
    corrected = bytearray(data)
    for at, right in tested.corrections:
        corrected[at : at + len(right)] = right
    assert len(corrected) == len(data)
    return fields_of(bytes(corrected[-len(frame) :]))[4], tested


def fields_of(frame: bytes) -> list[Any]:
    found = Data()
    assert found.decode(frame[8:]) == len(frame) - 8
    found.rewind()
    found.next()
    fields = found.get_object().value
    assert isinstance(fields, list)
    return fields


@pytest.mark.parametrize("value", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("descriptor", [ulong(0x27), symbol("amqp:modified:list")])
def test_a_field_of_an_outcome_that_nobody_can_read_is_left_out(value: bytes, descriptor: Any) -> None:
    state, tested = settled_with(Described(descriptor, [True, True, {symbol("x-opt"): hole(value)}]), value)
    assert not tested.is_broken
    assert (state.descriptor, state.value[:2]) == (0x27, [True, True])
    assert set(state.value[2:]) <= {None}


@pytest.mark.parametrize("value", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("place", ["info", "description", "condition"])
def test_an_error_that_nobody_can_read_is_left_out(value: bytes, place: str) -> None:
    error = {"condition": symbol("my:no"), "description": "why", "info": {symbol("n"): 1}}
    error[place] = {symbol("n"): hole(value)} if place == "info" else hole(value)
    state, tested = settled_with(Described(ulong(0x25), [Described(ulong(0x1D), list(error.values()))]), value)
    assert not tested.is_broken
    assert state.descriptor == 0x25
    assert set(state.value) <= {None}


@pytest.mark.parametrize(("value", "legible"), ILLEGIBLE.values(), ids=ILLEGIBLE)
def test_text_of_an_outcome_that_nobody_can_read_becomes_what_everybody_can(value: bytes, legible: Any) -> None:
    state, tested = settled_with(Described(ulong(0x27), [True, None, {symbol("x-opt"): [hole(value)]}]), value)
    assert not tested.is_broken
    (found,) = state.value[2][symbol("x-opt")]
    assert (list(found.elements) if isinstance(legible, list) else found) == legible
    info = {symbol("x"): hole(value)}
    state, _ = settled_with(Described(ulong(0x25), [Described(ulong(0x1D), [symbol("a:b"), "c", info])]), value)
    condition, description, (found,) = *state.value[0].value[:2], state.value[0].value[2].values()
    assert (condition, description) == ("a:b", "c")
    assert (list(found.elements) if isinstance(legible, list) else found) == legible


@pytest.mark.parametrize("code", [0x25, 0x27])
@pytest.mark.parametrize("size", [7, 0xFF])
def test_an_outcome_that_is_longer_than_its_disposition_ends_the_connection(code: int, size: int) -> None:
    tested = guard()
    frame = write(0x15, [True, 0, 1, True, Described(ulong(code), [None, None])])
    right = bytes((0x53, code, 0xD0, 0, 0, 0))
    wrong = frame.replace(right + b"\6", right + bytes((size,)))
    assert wrong != frame
    tested.check(AMQP_HEADER + OPEN + BEGIN + wrong)
    assert tested.is_broken
    assert tested.condition == DECODE
    assert tested.description == "channel 0: an outcome whose end is not within its disposition"


FULL_STATES = [
    Described(
        ulong(0x25), [Described(ulong(0x1D), [symbol("a:b"), "why \xfc", {symbol("n"): [1, {2: "x"}, char("y")]}])]
    ),
    Described(symbol("amqp:rejected:list"), [Described(symbol("amqp:error:list"), ["a:b", "why", {"n": None}])]),
    Described(ulong(0x27), [True, False, {symbol("x"): Array(UNDESCRIBED, Data.SYMBOL, "a", "b"), ulong(7): [[], {}]}]),
    Described(symbol("amqp:modified:list"), [None, True, {symbol("x"): Described(symbol("y"), [b"z", 1.5])}]),
]


@given(
    state=st.sampled_from(FULL_STATES),
    damage=st.lists(st.tuples(st.integers(0, 199), st.integers(0, 255) | st.sampled_from(SUSPECTS)), max_size=3),
)
def test_however_an_outcome_is_damaged_python_can_read_what_goes_on(state: Any, damage: list[tuple[int, int]]) -> None:
    frame = bytearray(write(0x15, [True, 0, 1, True, state]))
    at = len(frame) - len(encoded(state))
    for place, value in damage:
        frame[at + place % (len(frame) - at)] = value
    tested = guard()
    data = bytearray(AMQP_HEADER + OPEN + BEGIN + frame)
    tested.check(bytes(data))
    if tested.is_broken:
        assert tested.condition in (DECODE, INVALID)
        return
    for place, right in tested.corrections:
        data[place : place + len(right)] = right
    outcome = bytes(data[len(data) - len(frame) + at :])
    if outcome[:3] in (b"\0\x53\x25", b"\0\x53\x27"):  # else it is none
        found = Data()
        found.decode(outcome)
        found.rewind()
        found.next()
        assert isinstance(repr(found.get_object()), str)


# Links by name


class WalkedTable(Table):
    """A table that counts how often all that is in it is looked at."""

    def __init__(self, whole: Table) -> None:
        super().__init__()
        self.dense, self.far, self.count = whole.dense, whole.far, whole.count
        self.walks = 0

    def values(self) -> list[Any]:
        self.walks += 1
        return super().values()


def test_a_link_is_found_by_its_name_without_a_look_at_other_links_or_sessions() -> None:
    tested = guard()
    feed(tested, AMQP_HEADER + OPEN + BEGIN + begin(channel=1))
    default = Described(symbol("amqp:source:list"), ["a", *[None] * 7, Described(ulong(0x26), []), None, None])
    for handle in range(100):
        feed(tested, attach(handle, is_receiver=True, name=f"link{handle}"))
    feed(tested, write(0x12, ["mine", 3, True, None, None, default, target("a")], channel=1))
    feed(tested, write(0x13, [9, 100, 7, 50, 3, 20, 10, None, False, False], channel=1))
    sessions = tested.peer_sessions = WalkedTable(tested.peer_sessions)
    links = [WalkedTable(session.links) for session in sessions.dense]
    for session, walked in zip(sessions.dense, links, strict=True):
        session.links = walked
    (found,) = frames.read(flow_without_credit(sessions, tested.receivers, b"mine", 5) or b"")
    assert (found.channel, found.field(4), found.field(5), found.field(6)) == (1, 3, 35, 0)
    assert default_outcome_of(tested.receivers, b"mine") == (0x26, False, False)
    assert sessions.walks == sum(walked.walks for walked in links) == 0


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 3)), max_size=40))
def test_links_are_found_by_name_whatever_was_attached_and_ended(steps: list[tuple[int, int, int]]) -> None:
    tested = guard()
    feed(tested, AMQP_HEADER + OPEN + b"".join(begin(channel=channel) for channel in range(3)))
    for channel, handle, kind in steps:
        session = tested.peer_sessions.get(channel)
        if session is None:
            feed(tested, begin(channel=channel))
        elif kind == 3:
            feed(tested, write(0x17, [], channel=channel))
        elif session.links.get(handle) is not None:
            feed(tested, write(0x16, [handle, True], channel=channel))
        else:
            name = f"link{(channel + handle) % 2}"
            feed(tested, attach(handle, is_receiver=kind > 0, name=name, channel=channel))
    assert not tested.is_broken
    links = [link for session in tested.peer_sessions.values() for link in session.links.values()]
    for name in (b"link0", b"link1"):
        named = [link for link in links if link.is_receiver and link.name == name]
        found = tested.receivers.named(name)
        assert {id(link) for link in found} == {id(link) for link in named}
        assert len(found) == len(named)
        if len(named) < 2:
            frame = flow_without_credit(tested.peer_sessions, tested.receivers, name, 5)
            assert (frame is None) == (not named)


@pytest.mark.parametrize(("number", "outcome"), [(MOST_ALIKE, (0x26, False, False)), (MOST_ALIKE + 1, None)])
def test_of_very_many_links_of_one_name_none_has_a_default_outcome(number: int, outcome: Any) -> None:
    receivers = ReceiversByName()
    for channel in range(number):
        link = PeerLink(b"link", True, channel, 0, 0)
        link.default_outcome = (0x26, False, False)
        receivers.add(link)
    assert default_outcome_of(receivers, b"link") == outcome
