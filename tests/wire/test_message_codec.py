"""Control and management messages are written as qdrouterd writes them, and read as tolerantly as it reads them."""

from __future__ import annotations

import json
from typing import Any

import proton
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.binding.message import encode_message as encode_by_proton
from router.core.errors import DecodeError, LocalError
from router.core.ids_and_conditions import RouterId
from router.core.linkstate.messages import (
    KINDS,
    MAX_WEIGHT,
    CircuitStates,
    Hello,
    LinkStateUpdate,
    MobileAddressUpdate,
    RouterAdvertisement,
    UnknownMessage,
)
from router.dataplane.section_scanner import scan
from router.engine.message_codec import (
    ControlEnvelope,
    Message,
    decode_control,
    decode_message,
    encode_control,
    encode_message,
    int32,
    is_symbol,
    symbol,
    timestamp,
    uint,
    ulong,
)
from tests.wire import vectors

A, B = RouterId("A"), RouterId("B")
ARRAY: Any = proton.Array
CONTROL = vectors.files("control")


def encode(control: ControlEnvelope) -> bytes:
    assert control.ingress is not None
    return encode_control(control.to, control.message, control.ingress, control.trace)


def without_annotations(data: bytes) -> bytes:
    found = scan(data, True)
    assert found is not None
    return data[: found.annotations_start] + data[found.rest_offset :]


@pytest.mark.parametrize("file", CONTROL)
def test_a_recorded_control_message_is_read_as_it_was_decoded(file: str) -> None:
    vector = vectors.load(file)
    control = decode_control(vector.data)
    annotations = vector.section("message-annotations")
    assert control.to == vector.section("properties")["to"]
    assert control.message.opcode == vector.entry["opcode"]
    assert control.message.to_body() == vector.section("amqp-value")
    assert control.ingress == annotations["x-opt-qd.ingress"].removeprefix("0/")
    assert control.trace == tuple(router.removeprefix("0/") for router in annotations["x-opt-qd.trace"])


@pytest.mark.parametrize("file", CONTROL)
def test_a_control_message_is_written_in_the_recorded_form(file: str) -> None:
    data = vectors.load(file).data
    control = decode_control(data)
    written = encode(control)
    assert decode_control(written) == control
    # The two differences that `encode_control` names.
    expected = without_annotations(data)
    if control.message.opcode == "MAU":
        expected = expected.replace(b"\xd0\0\0\0\x04\0\0\0\0", b"\x45")
        assert_same_but_sizes(without_annotations(written), expected)
    else:
        assert without_annotations(written) == expected


def assert_same_but_sizes(one: bytes, other: bytes) -> None:
    """Equal but for the four bytes of the body's size, which an empty list's encoding changes."""
    start = other.rindex(b"\x00\x53\x77\xd1") + 4
    assert len(one) == len(other)
    assert (one[:start], one[start + 4 :]) == (other[:start], other[start + 4 :])


def control_bytes(opcode: object, body: object, **fields: Any) -> bytes:
    fields = {"to": "amqp:/_local/qdhello", "application_properties": {"opcode": opcode}, **fields}
    return encode_by_proton(Message(body=body, **fields))


@pytest.mark.parametrize("number", [int32, ulong, uint, proton.ubyte, proton.short, int])
@pytest.mark.parametrize("text", [str, symbol, str.encode])
def test_any_integer_and_any_text_will_do(number: Any, text: Any) -> None:
    body = {"id": text("A"), symbol("pv"): number(1), "area": text("0"), "instance": number(7), "seen": [text("B")]}
    control = decode_control(control_bytes(text("HELLO"), body))
    assert control == ControlEnvelope(
        to="amqp:/_local/qdhello", message=Hello(id=A, instance=7, seen=(B,)), ingress=None, trace=()
    )
    assert type(control.message.id) is str
    assert isinstance(control.message, Hello)
    assert {type(control.message.instance), type(control.message.pv)} == {int}


def test_binary_keys_are_text() -> None:
    body = {b"id": "A", b"pv": 1, b"area": "0", b"instance": 7, b"seen": []}
    assert decode_control(control_bytes("HELLO", body)).message == Hello(id=A, instance=7, seen=())


@pytest.mark.parametrize(
    "change",
    [
        {"seen": ARRAY(proton.UNDESCRIBED, proton.Data.STRING, "B")},
        {"seen": "B"},
        {"instance": 7.0},
        {"instance": proton.Described(symbol("d"), 7)},
        {"instance": True},
        {"id": None},
        {"id": b"\xff"},
        {"id": 5},
    ],
)
def test_a_control_message_with_a_malformed_key_is_dropped(change: dict[str, object]) -> None:
    body: dict[str, object] = {"id": "A", "pv": 1, "area": "0", "instance": 7, "seen": ["B"]}
    with pytest.raises(DecodeError):
        decode_control(control_bytes("HELLO", body | change))


@pytest.mark.parametrize(
    "fields",
    [
        {"to": None},
        {"application_properties": {}},
        {"application_properties": {"opcode": 5}},
        {"annotations": {"x-opt-qd.trace": "0/A"}},
        {"annotations": {"x-opt-qd.trace": [5]}},
        {"annotations": {"x-opt-qd.ingress": 5}},
        {"body": [1]},
    ],
)
def test_a_control_message_with_a_malformed_envelope_is_dropped(fields: dict[str, Any]) -> None:
    body = {"id": "A", "pv": 1, "area": "0", "instance": 7, "seen": []}
    with pytest.raises(DecodeError):
        decode_control(control_bytes("HELLO", **{"body": body, **fields}))


def test_numbers_beyond_an_int_are_written_as_long() -> None:
    message = RouterAdvertisement(id=A, instance=2**40, ls_seq=2**31, mobile_seq=5)
    data = encode_control("amqp:/_topo/0/all/qdrouter", message, A, (A,))
    assert decode_control(data).message == message
    update = LinkStateUpdate(id=A, instance=1, ls_seq=2**33, peers={B: 65535})
    assert decode_control(encode_control("amqp:/_topo/0/B/qdrouter", update, A, (A,))).message == update


def test_many_addresses_fit_one_message() -> None:
    keys = tuple(f"M0address/{n}" for n in range(5000))
    message = MobileAddressUpdate(id=A, mobile_seq=9, exist=keys, hints=(1,) * len(keys))
    assert decode_control(encode_control("amqp:/_topo/0/B/qdrouter.ma", message, A, (A, B))).message == message


CIRCUITS_TO = "amqp:/_local/amqp-mesh.circuits"


@given(
    st.dictionaries(st.text(max_size=20), st.integers(0, MAX_WEIGHT), max_size=20),
    st.lists(st.text(max_size=20), max_size=20),
)
def test_the_word_on_circuits_is_read_as_it_was_written(weights: dict[str, int], closed: list[str]) -> None:
    message = CircuitStates(id=A, weights=weights, closed=tuple(closed))
    control = decode_control(encode_control(CIRCUITS_TO, message, A, (A,)))
    assert control == ControlEnvelope(to=CIRCUITS_TO, message=message, ingress=A, trace=(A,))
    assert isinstance(control.message, CircuitStates)
    assert {type(weight) for weight in control.message.weights.values()} <= {int}


def test_a_thousand_circuits_fit_one_message() -> None:
    names = [f"circuit.{n:015}" for n in range(1000)]
    message = CircuitStates(id=A, weights=dict.fromkeys(names, MAX_WEIGHT), closed=tuple(names))
    data = encode_control(CIRCUITS_TO, message, A, (A,))
    assert decode_control(data).message == message
    assert len(data) < 70_000


@pytest.mark.parametrize(
    "change",
    [
        {"weights": None},
        {"weights": []},
        {"weights": "x"},
        {"weights": {"x": -1}},
        {"weights": {"x": 2**31}},
        {"weights": {"x": 1.0}},
        {"weights": {"x": True}},
        {"weights": {"x": "1"}},
        {"weights": {"x": None}},
        {"weights": {5: 1}},
        {"weights": {b"\xff": 1}},
        {"closed": None},
        {"closed": "x"},
        {"closed": {"x": 1}},
        {"closed": ["x", 5]},
        {"closed": [["x"]]},
        {"closed": [None]},
        {"closed": ARRAY(proton.UNDESCRIBED, proton.Data.STRING, "x")},
        {"id": None},
        {"id": "a b"},
        {"pv": "1"},
    ],
)
def test_a_malformed_word_on_circuits_is_dropped(change: dict[str, object]) -> None:
    body: dict[str, object] = {"id": "A", "pv": 1, "area": "0", "weights": {"x": 1}, "closed": ["y"]}
    assert isinstance(decode_control(control_bytes("CIRCUITS", body)).message, CircuitStates)
    with pytest.raises(DecodeError):
        decode_control(control_bytes("CIRCUITS", body | change))


def test_a_newer_word_on_circuits_is_foreign() -> None:
    message = decode_control(control_bytes("CIRCUITS", {"id": "A", "pv": 2})).message
    assert message == UnknownMessage(id=A, pv=2, name="CIRCUITS")


def test_what_this_router_does_not_speak_is_read_and_not_written() -> None:
    data = control_bytes("XYZ", {"id": "A", "pv": 3})
    message = decode_control(data).message
    assert message == UnknownMessage(id=A, pv=3, name="XYZ")
    with pytest.raises(LocalError):
        encode_control("x", message, A, (A,))
    assert message.opcode not in KINDS


@given(st.binary(max_size=120))
def test_whatever_bytes_arrive_they_are_read_or_refused(data: bytes) -> None:
    for prefix in (b"", b"\x00\x53\x73\xc0", b"\x00\x53\x77", b"\x00\x53\x74\xc1", b"\x00\x53\x77\xd1\0\0"):
        for decode in (decode_message, decode_control):
            try:
                decode(prefix + data)
            except DecodeError:
                pass


@given(st.sampled_from(CONTROL), st.data())
def test_a_damaged_control_message_is_read_or_refused(file: str, draw: st.DataObject) -> None:
    data = bytearray(vectors.load(file).data)
    for _ in range(draw.draw(st.integers(1, 3))):
        data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(st.integers(0, 255))
    try:
        decode_control(bytes(data))
    except DecodeError:
        pass


@pytest.mark.parametrize("code", [0xD800, 0xDFFF])
@pytest.mark.parametrize("field", ["name", "trace", "body"])
def test_a_char_that_nobody_can_write_is_refused(code: int, field: str) -> None:
    half = proton.char(chr(code))
    body = {"id": "A", "pv": 1, "area": "0", **({"area": half} if field == "body" else {})}
    annotations = {"x-opt-qd.ingress": "0/A", "x-opt-qd.trace": [half if field == "trace" else "0/A"]}
    properties = {"opcode": "LSR", **({"name": half} if field == "name" else {})}
    message = Message(to="x", annotations=annotations, application_properties=properties, body=body)
    data = encode_by_proton(message)
    for decode in (decode_message, decode_control):
        with pytest.raises(DecodeError, match="a char that Unicode does not have"):
            decode(data)


@pytest.mark.parametrize("code", [b"\xff\xff\xff\xff", b"\x00\x11\x00\x00"])
def test_a_char_beyond_unicode_is_refused_in_words_of_amqp(code: bytes) -> None:
    with pytest.raises(DecodeError, match="a char that Unicode does not have"):
        decode_message(b"\x00\x53\x77\x73" + code)


@pytest.mark.parametrize("depth", [100, 20000])
def test_deep_nesting_is_refused(depth: int) -> None:
    body = b"\x45"
    for _ in range(depth):
        body = b"\xd0" + (len(body) + 4).to_bytes(4, "big") + b"\0\0\0\x01" + body
    with pytest.raises(DecodeError):
        decode_message(b"\x00\x53\x77" + body)
    with pytest.raises(DecodeError):
        decode_message(b"\x00\x53\x77" + b"\x00\x40" * depth + b"\x40")


# Management


def plain(value: Any) -> Any:
    """Values as the index has them: sizes and classes gone, what JSON cannot hold as text."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("file", vectors.files("mgmt", ".json"))
def test_recorded_management_messages_are_read_as_they_were_decoded(file: str) -> None:
    for exchange in json.loads((vectors.FOLDER / file).read_text())["exchanges"]:
        for part in ("request", "response"):
            entry = exchange.get(part)
            if not entry or "decoded" not in entry:
                continue
            sections = dict(entry["decoded"])
            message = decode_message((vectors.FOLDER / entry["file"]).read_bytes())
            properties = sections.get("properties", {})
            assert message.to == properties.get("to")
            assert message.reply_to == properties.get("reply-to")
            assert message.correlation_id == properties.get("correlation-id")
            assert plain(message.application_properties) == sections.get("application-properties", {})
            assert plain(message.body) == sections["amqp-value"]
            assert decode_message(encode_message(message)) == message


def test_what_is_written_is_read_back_with_its_types() -> None:
    message = Message(
        durable=True,
        priority=7,
        ttl_ms=1500,
        delivery_count=2,
        annotations={"x-a": 1},
        message_id=5,
        user_id=b"me",
        to="a",
        subject="s",
        reply_to="r",
        correlation_id=b"\x01\xff",
        application_properties={"operation": "QUERY", symbol("sym"): int32(3)},
        body={"when": timestamp(5), "symbol": symbol("x"), "bytes": b"\xff", "list": [1, [], {}]},
    )
    data = encode_message(message)
    read = decode_message(data)
    assert read == message
    assert isinstance(read.body, dict)
    assert is_symbol(read.body["symbol"])
    assert not is_symbol("x")
    assert isinstance(read.body["when"], proton.timestamp)
    by_proton = proton.Message()
    by_proton.decode(data)
    assert (by_proton.id, by_proton.ttl, by_proton.priority, by_proton.subject) == (5, 1.5, 7, "s")
    assert encode_message(read) == data


def test_every_kind_of_body_is_read() -> None:
    assert decode_message(b"\x00\x53\x75\xa0\x01a\x00\x53\x75\xa0\x01b").body == b"ab"
    assert decode_message(b"\x00\x53\x76\x45\x00\x53\x76\xc0\x02\x01\x43").body == [0]
    assert decode_message(b"\x00\x53\x73\x45").body is None
    assert decode_message(b"\x00\x53\x77\x40\x00\x53\x78\xc1\x01\x00").body is None
    with pytest.raises(DecodeError):
        decode_message(b"\x00\x53\x75\xa1\x01a")
    with pytest.raises(DecodeError):
        decode_message(b"")
    with pytest.raises(DecodeError):
        decode_message(b"\x00\x53\x73\xc0\x04\x03\x40\x40\x43")
