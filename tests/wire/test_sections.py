"""Leading sections are found, and router annotations rewritten, as qdrouterd reads and writes them."""

from __future__ import annotations

import uuid
from typing import Any

import proton
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from router.core.errors import DecodeError
from router.core.ids_and_conditions import Condition
from router.dataplane.annotation_writer import annotate, strip
from router.dataplane.scan_result import InvalidAnnotation, Scan
from router.dataplane.section_scanner import MAX_LEADING_BYTES, scan
from tests.wire import vectors

DATA = vectors.files("data")
MESSAGES = [*DATA, *vectors.files("control")]
SECOND_HOPS = [file for file in DATA if file.endswith("-hop2.bin")]


def whole(data: bytes, **options: bool) -> Scan:
    found = scan(data, True, **options)
    assert found is not None
    return found


def values(found: Scan) -> dict[str, object]:
    return {name: getattr(found, name) for name in Scan.__slots__}


def by_proton(data: bytes) -> Any:
    message = proton.Message()
    message.decode(data)
    return message


def same_message(data: bytes, found: Scan, head: bytes) -> bytes:
    return head + data[found.rest_offset :]


@pytest.mark.parametrize("file", MESSAGES)
def test_a_recorded_message_is_read_as_it_was_decoded(file: str) -> None:
    vector = vectors.load(file)
    found = whole(vector.data)
    if "decoded" not in vector.entry:
        return  # the beginning of a long message: streamed, see below
    annotations = vector.section("message-annotations")
    trace = tuple(router.removeprefix("0/") for router in annotations.get("x-opt-qd.trace", ()))
    assert found.to == vector.section("properties").get("to")
    assert found.to_override == annotations.get("x-opt-qd.to")
    assert found.phase == annotations.get("x-opt-qd.phase", 0)
    assert found.ingress == annotations["x-opt-qd.ingress"].removeprefix("0/")
    assert found.trace == trace
    assert found.priority == vector.section("header").get("priority", 4)
    assert found.ttl_ms == vector.section("header").get("ttl")
    assert found.user_count == sum(not key.startswith("x-opt-qd.") for key in annotations)
    assert found.has_router_annotations


@pytest.mark.parametrize("file", DATA)
def test_stripping_and_annotating_anew_gives_the_recorded_bytes(file: str) -> None:
    data = vectors.load(file).data
    found = whole(data)
    bare = same_message(data, found, strip(data, found))
    stripped = whole(bare)
    assert not stripped.has_router_annotations
    assert (stripped.to, stripped.user_count) == (found.to, found.user_count)
    assert found.ingress is not None
    again = annotate(bare, stripped, to=found.to_override, ingress=found.ingress, trace=found.trace, phase=found.phase)
    assert same_message(bare, stripped, again) == data


def one_hop_more(data: bytes | memoryview, found: Scan, router: str) -> bytes:
    """The leading bytes as *router* passes them on."""
    return annotate(
        data,
        found,
        to=found.to_override,
        ingress=found.ingress or router,
        trace=(*found.trace, router),
        phase=found.phase,
        egress=found.egress,
    )


@pytest.mark.parametrize("file", SECOND_HOPS)
def test_a_hop_more_appends_the_router_to_the_trace(file: str) -> None:
    first, second = vectors.load(file.replace("hop2", "hop1")).data, vectors.load(file).data
    found = whole(first)
    router = whole(second).trace[-1]
    assert same_message(first, found, one_hop_more(first, found, router)) == second
    assert same_message(first, found, one_hop_more(memoryview(first), found, router)) == second


def test_a_message_being_streamed_is_routed_by_its_first_frame() -> None:
    data = vectors.load("data/streaming-first-2000-bytes-hop1.bin").data
    found = scan(data, False)
    assert found is not None
    assert (found.to_override, found.ingress, found.trace) == ("closest/one", "C", ("C",))


@pytest.mark.parametrize("file", MESSAGES)
@pytest.mark.parametrize("stop", [False, True])
def test_every_beginning_of_a_message_is_unfinished_or_right(file: str, stop: bool) -> None:
    data = vectors.load(file).data
    expected = values(whole(data, stop_at_annotations=stop))
    answered = False
    for size in range(min(len(data), 400) + 1):
        found = scan(data[:size], False, stop_at_annotations=stop)
        assert found is None or values(found) == expected
        assert not (answered and found is None), "more bytes, less known"
        answered = found is not None
    assert answered


def test_a_targeted_link_does_not_wait_for_the_properties() -> None:
    data = vectors.load("data/anonymous-unsettled-hop1.bin").data
    found = whole(data)
    beginning = data[: found.properties_start + 4]
    assert scan(beginning, False) is None
    early = scan(beginning, False, stop_at_annotations=True)
    assert early is not None
    assert early.trace == found.trace
    assert early.to is None


# What clients send


def test_a_clients_router_annotations_are_thrown_away_unread() -> None:
    message = proton.Message(body="x", annotations={proton.symbol("x-user"): 1, proton.symbol("x-opt-qd.to"): 7})
    data = message.encode()
    with pytest.raises(InvalidAnnotation):
        scan(data, True)
    found = whole(data, from_client=True)
    assert found.has_router_annotations
    assert (found.to_override, found.user_count) == (None, 1)
    bare = same_message(data, found, strip(data, found))
    assert by_proton(bare).annotations == {"x-user": 1}


def test_without_annotations_a_section_is_made_and_taken_away_again() -> None:
    for message in (
        b"\x00\x53\x75\xa0\x01x",
        b"\x00\x53\x70\x45\x00\x53\x75\xa0\x01x",
        b"\x00\x53\x70\x45\x00\x53\x71\xc1\x01\x00\x00\x53\x75\xa0\x01x",
        b"\x00\x53\x73\x45\x00\x53\x75\xa0\x01x",
        b"\x00\x80\0\0\0\0\0\0\0\x70\xc0\x03\x02\x41\x40\x00\x53\x75\xa0\x01x",
    ):
        found = whole(message)
        assert strip(message, found) == message[: found.rest_offset]
        annotated = same_message(message, found, annotate(message, found, to="a/b", ingress="A", trace=("A",)))
        again = whole(annotated)
        assert (again.to_override, again.ingress, again.trace) == ("a/b", "A", ("A",))
        assert same_message(annotated, again, strip(annotated, again)) == message


@pytest.mark.parametrize("count", [1, 20, 40, 60, 300])
def test_large_annotations_take_the_wide_encodings(count: int) -> None:
    message = proton.Message(body="x", annotations={proton.symbol(f"x-{n}"): "v" * 20 for n in range(count)}).encode()
    found = whole(message)
    trace = tuple(f"router-{n}" for n in range(count))
    data = same_message(message, found, annotate(message, found, to="t" * 300, ingress="i" * 300, trace=trace))
    for grown, expected in (
        (data, trace),
        (same_message(data, whole(data), one_hop_more(data, whole(data), "Z")), None),
    ):
        again = whole(grown)
        assert again.user_count == count
        assert (again.to_override, again.ingress) == ("t" * 300, "i" * 300)
        assert again.trace == (expected or (*trace, "Z"))
        assert by_proton(grown).annotations["x-opt-qd.trace"] == [f"0/{router}" for router in again.trace]
        assert same_message(grown, again, strip(grown, again))[-4:] == message[-4:]


def test_every_width_of_key_and_value_is_understood() -> None:
    def wide(text: bytes, code: bytes) -> bytes:
        return code + len(text).to_bytes(4, "big") + text

    trace = wide(b"0/A", b"\xb1") + b"\xa1\x030/B"
    content = (
        b"\x80\0\0\0\0\0\0\0\x01\x00\xa3\x01d\xc0\x03\x01\xa1\x00"  # an ulong as key, a described list as value
        b"\xa3\x09x-opt-qd.\x40\xa3\x0ex-opt-qd.class\x54\x01"
        + wide(b"x-opt-qd.phase", b"\xb3") + b"\x80\0\0\0\0\0\0\0\x01"
        + wide(b"x-opt-qd.to", b"\xb3") + wide(b"a/b", b"\xb1")
        + b"\xa3\x0fx-opt-qd.stream\x70\0\0\0\x01"
        + wide(b"x-opt-qd.ingress", b"\xb3") + b"\xa1\x030/A"
        + wide(b"x-opt-qd.trace", b"\xb3") + wide((2).to_bytes(4, "big") + trace, b"\xd0")
    )  # fmt: skip
    head = b"\x00\x80\0\0\0\0\0\0\0\x72" + wide((16).to_bytes(4, "big") + content, b"\xd1")
    properties = b"\x00\x53\x73\xd0\0\0\0\x15\0\0\0\x03\x53\x05\xb0\0\0\0\x01u\xb1\0\0\0\x04/x/y"
    data = head + properties + b"\x00\x53\x77\x40"
    found = whole(data)
    assert (found.user_count, found.phase, found.stream) == (1, 1, True)
    assert (found.to_override, found.ingress, found.trace, found.to) == ("a/b", "A", ("A", "B"), "/x/y")
    grown = same_message(data, found, one_hop_more(data, found, "C"))
    again = whole(grown)
    assert (again.phase, again.stream, again.to_override, again.trace) == (1, True, "a/b", ("A", "B", "C"))


# What nobody should send


@pytest.mark.parametrize(
    "entry",
    [
        b"\xa3\x0bx-opt-qd.to\x40",
        b"\xa3\x0bx-opt-qd.to\xa3\x01a",
        b"\xa3\x0bx-opt-qd.to\xa1\x02\xff\xff",
        b"\xa3\x10x-opt-qd.ingress\xa0\x030/A",
        b"\xa3\x0ex-opt-qd.trace\xa1\x030/A",
        b"\xa3\x0ex-opt-qd.trace\xc0\x03\x01\x54\x01",
        b"\xa3\x0ex-opt-qd.trace\xc0\x06\x02\xa1\x030/A",
        b"\xa3\x0ex-opt-qd.trace\xe0\x06\x01\xa1\x030/A",
        b"\xa3\x0ex-opt-qd.phase\xa1\x011",
        b"\xa3\x0ex-opt-qd.phase\x54\xff",
        b"\xa3\x0fx-opt-qd.stream\x41",
        b"\xa3\x0bx-opt-qd.to\xa1\x01a\xa3\x01u\x40",
    ],
)
def test_a_wrong_router_annotation_is_an_invalid_field(entry: bytes) -> None:
    data = (
        b"\x00\x53\x72\xc1"
        + bytes((len(entry) + 1, 4 if entry.endswith(b"u\x40") else 2))
        + entry
        + b"\x00\x53\x77\x40"
    )
    with pytest.raises(InvalidAnnotation) as raised:
        scan(data, True)
    assert raised.value.condition is Condition.INVALID_FIELD
    assert whole(data, from_client=True).has_router_annotations


def test_an_unknown_annotation_with_the_prefix_is_the_users() -> None:
    entry = b"\xa3\x0cx-opt-qd.toy\x40"
    data = b"\x00\x53\x72\xc1" + bytes((len(entry) + 1, 2)) + entry + b"\x00\x53\x77\x40"
    assert whole(data).user_count == 1
    assert not whole(data).has_router_annotations


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"AMQP",
        b"\x00",
        b"\x00\x53\x70",
        b"\x00\x53\x6f\x45",
        b"\x00\x53\x79\x45",
        b"\x00\xa3\x11amqp:header:list\x45",
        b"\x00\x53\x70\xc1\x01\x00",
        b"\x00\x53\x70\xc0\x00\x00",
        b"\x00\x53\x70\xc0\x02\x05\x41",
        b"\x00\x53\x70\xc0\x04\x02\x41\xa1\x00",
        b"\x00\x53\x72\x45",
        b"\x00\x53\x72\xc1\x03\x01\xa3\x00",
        b"\x00\x53\x70\x45\x00\x53\x70\x45",
        b"\x00\x53\x72\xc1\x01\x00\x00\x53\x71\xc1\x01\x00",
        b"\x00\x53\x73\xc0\x07\x03\x40\x40\xa1\x02\xff\xff",
        b"\x00\x80SKPR--RA\x45\x00\x53\x77\x40",
    ],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        scan(data, True)


def test_what_is_wrong_behind_the_properties_is_the_receivers() -> None:
    assert whole(b"\x00\x53\x73\x45\x00").properties_end == 4


def test_leading_sections_have_a_bound() -> None:
    entry = b"\xa3\x01u\xb1" + MAX_LEADING_BYTES.to_bytes(4, "big")
    size = len(entry) + 4 + MAX_LEADING_BYTES
    head = b"\x00\x53\x72\xd1" + size.to_bytes(4, "big") + (2).to_bytes(4, "big") + entry
    with pytest.raises(DecodeError, match="beyond"):
        scan(head, False)
    body = proton.Message(body=b"x" * (2 * MAX_LEADING_BYTES), address="a").encode()
    assert whole(body).to == "a"
    assert whole(memoryview(body)).to == "a"  # type: ignore[arg-type]


@given(st.binary(max_size=60), st.booleans(), st.booleans(), st.booleans())
def test_whatever_bytes_arrive_they_are_read_awaited_or_refused(
    data: bytes, complete: bool, stop: bool, from_client: bool
) -> None:
    for prefix in (
        b"",
        b"\x00\x53\x70",
        b"\x00\x53\x72\xc1",
        b"\x00\x53\x73\xc0",
        b"\x00\x53\x72\xc1\x20\x04\xa3\x0bx-opt-qd.to",
    ):
        try:
            found = scan(prefix + data, complete, stop, from_client)
        except (DecodeError, InvalidAnnotation):
            continue
        assert found is None or found.rest_offset <= len(prefix + data)
        assert found is not None or not complete


@given(st.sampled_from(MESSAGES), st.data())
def test_a_damaged_message_is_read_awaited_or_refused(file: str, draw: st.DataObject) -> None:
    data = bytearray(vectors.load(file).data[:300])
    for _ in range(draw.draw(st.integers(1, 3))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    for complete in (True, False):
        try:
            found = scan(bytes(data), complete)
        except (DecodeError, InvalidAnnotation):
            continue
        if found is not None:
            head = one_hop_more(bytes(data), found, "Z")
            again = scan(head + data[found.rest_offset :], complete)
            assert again is not None
            assert again.trace == (*found.trace, "Z")


# Proton agrees


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
SYMBOLS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | TEXT | st.binary(max_size=300) | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False) | st.uuids() | SYMBOLS.map(proton.symbol) | st.integers(0, 255).map(proton.ubyte)
    | st.integers(0, 2**64 - 1).map(proton.ulong),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)  # fmt: skip
KEYS = SYMBOLS.filter(lambda text: not text.startswith("x-opt-qd.")).map(proton.symbol)
IDS = st.none() | TEXT | st.integers(0, 2**64 - 1) | st.uuids() | st.binary(max_size=300)


@given(
    annotations=st.none() | st.dictionaries(KEYS, VALUES, max_size=6),
    instructions=st.none() | st.dictionaries(KEYS, VALUES, max_size=3),
    address=st.none() | TEXT,
    message_id=IDS,
    user_id=st.binary(max_size=300),
    priority=st.integers(0, 9),
    ttl_ms=st.integers(0, 2**32 - 1),
    body=VALUES,
)
@example(None, None, None, uuid.UUID(int=0), b"", 4, 0, None)
def test_proton_reads_the_same(
    annotations: dict[Any, Any] | None,
    instructions: dict[Any, Any] | None,
    address: str | None,
    message_id: Any,
    user_id: bytes,
    priority: int,
    ttl_ms: int,
    body: Any,
) -> None:
    message = proton.Message(body=body, address=address, id=message_id, priority=priority)
    message.annotations, message.instructions, message.user_id = annotations, instructions, user_id
    message.ttl = ttl_ms / 1000
    data = message.encode()
    read = by_proton(data)
    found = whole(data)
    assert found.to == read.address
    assert found.priority == read.priority
    assert (found.ttl_ms or 0) == round(read.ttl * 1000)
    assert found.user_count == len(annotations or ())

    annotated = same_message(data, found, annotate(data, found, to="t", ingress="A", trace=("A",), phase=1))
    read = by_proton(annotated)
    assert list(read.annotations)[:-4] == list(annotations or ())
    assert dict(list(read.annotations.items())[-4:]) == {
        "x-opt-qd.phase": 1,
        "x-opt-qd.to": "t",
        "x-opt-qd.ingress": "0/A",
        "x-opt-qd.trace": ["0/A"],
    }
    again = whole(annotated)
    assert whole(same_message(annotated, again, strip(annotated, again))).user_count == found.user_count
