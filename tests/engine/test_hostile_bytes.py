"""Bytes that are cheap to send and dear to read: what a router does with them takes no longer than they are long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from proton import char, symbol

from router.binding.message import MAX_SECTIONS
from router.core.addressing.address import normalise
from router.core.errors import DecodeError
from router.core.linkstate.control_message_sender import target_of
from router.engine.message_codec import decode_control, decode_message
from router.runtime import Runtime
from router.views.management_service import serve_management
from tests.helpers import frames
from tests.helpers.engine import Bench
from tests.helpers.peer import Peer, PeerReceiver, decode, message

EMPTY_DATA = b"\x00\x53\x75\xa0\x00"
QUERY = {"operation": "QUERY", "entityType": "org.apache.qpid.dispatch.router", "type": "org.amqp.management"}


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """*seconds* of processor time: many times what is needed, a small part of what a square would take."""
    began = time.process_time()
    yield
    assert time.process_time() - began < seconds


def managed(bench: Bench) -> tuple[Runtime, Peer, PeerReceiver]:
    """A router with a management node, a client, and where it takes replies."""
    router = bench.router("A")
    serve_management(router)
    client = bench.client(router)
    return router, client, client.receiver(None, dynamic=True, credit=10).accepting()


# Decoders


@pytest.mark.parametrize("section", [EMPTY_DATA, b"\x00\x53\x76\x45"], ids=["data", "sequence"])
def test_a_message_of_nothing_but_empty_sections_is_refused_at_once(section: bytes) -> None:
    data = section * (1024 * 1024 // len(section))
    for decode_any in (decode_message, decode_control):
        with at_most(0.5), pytest.raises(DecodeError, match=f"more than {MAX_SECTIONS} sections"):
            decode_any(data)


def test_as_many_sections_as_may_be_are_read() -> None:
    assert decode_message(b"\x00\x53\x75\xa0\x01a" * MAX_SECTIONS).body == b"a" * MAX_SECTIONS


def test_values_are_counted_wherever_they_stand() -> None:
    nulls = b"\xd0" + (4 + 5000).to_bytes(4, "big") + (5000).to_bytes(4, "big") + b"\x40" * 5000
    assert decode_message(b"\x00\x53\x77" + nulls).body == [None] * 5000
    with pytest.raises(DecodeError, match="more than 1000 values"):
        decode_message(b"\x00\x53\x77" + nulls, max_values=1000)


@pytest.mark.parametrize("piece", ["amqp:/", "amqp://h/", "/", "amqps:/", "./"])
def test_an_address_of_nothing_but_schemes_is_read_in_linear_time(piece: str) -> None:
    with at_most(1.5):
        assert normalise(piece * (2**20 // len(piece)) + "x").lstrip("./") == "x"


def test_targets_of_control_messages_are_not_remembered_at_any_length() -> None:
    assert target_of("amqp:/_topo/0/B/qdrouter") == "B"
    assert target_of("amqp:/_topo/0/B/" + "q" * 100_000) is None


# The data plane


@pytest.mark.parametrize("part", [1, 7])
def test_leading_sections_in_tiny_parts_are_not_read_again_with_each_part(bench: Bench, part: int) -> None:
    router = bench.router("A")
    receiver = bench.client(router).receiver("topic", credit=10).accepting()
    annotations = {symbol(f"x-{number}"): number for number in range(2000)}
    data = message("whole", address="topic", annotations=annotations, subject="s" * 3000 * part)
    begin = data.index(b"\x00Ss")
    sender = bench.client(router).sender(None)
    sent = sender.begin(data[:begin])
    bench.run()
    with at_most(4.0):
        for at in range(begin, begin + 2500 * part, part):
            sent.part(data[at : at + part])
            bench.wires[-1].move()
    sent.end(data[begin + 2500 * part :])
    bench.run()
    assert receiver.bodies == ["whole"]


# Management


@pytest.mark.parametrize("to", ["$management", None], ids=["attached", "anonymous"])
def test_a_request_that_is_too_large_is_rejected_with_the_bound(bench: Bench, to: str | None) -> None:
    _, client, replies = managed(bench)
    sender = client.sender(to)
    leading = message(None, address="$management", reply_to=replies.address, properties=QUERY)
    with at_most(2.0):
        sent = sender.send(leading + EMPTY_DATA * (1024 * 1024 // 5))
        bench.run()
    assert sent.outcome == "rejected"
    assert sent.condition is not None
    assert sent.condition.name == "amqp:link:message-size-exceeded"
    assert "65536 bytes" in sent.condition.description
    assert not replies.messages


def test_a_request_of_several_frames_is_taken_where_clients_messages_are_not_held(bench: Bench) -> None:
    router = bench.router("A", forwarding={"held_message_bytes": 0})
    serve_management(router)
    client = bench.client(router)
    replies = client.receiver(None, dynamic=True, credit=10).accepting()
    names = {"attributeNames": ["id"], "ignored": "x" * 50_000}
    client.sender("$management").send(message(names, reply_to=replies.address, properties=QUERY))
    bench.run()
    assert decode(replies.messages[0].data).properties["statusCode"] == 200


def test_a_request_of_too_many_sections_is_answered_400(bench: Bench) -> None:
    _, client, replies = managed(bench)
    leading = message(None, reply_to=replies.address, correlation_id="q", properties=QUERY)
    client.sender("$management").send(leading.removesuffix(b"\x00\x53\x77\x40") + MAX_SECTIONS * EMPTY_DATA)
    bench.run()
    answer = decode(replies.messages[0].data)
    assert answer.properties["statusCode"] == 400
    assert "sections" in answer.properties["statusDescription"]


@pytest.mark.parametrize("constructor", [b"\x40", b"\x43", b"\x45"], ids=["null", "uint0", "list0"])
def test_a_request_with_an_array_of_nothing_is_answered_400(bench: Bench, constructor: bytes) -> None:
    _, client, replies = managed(bench)
    array = b"\x00\x53\x77\xf0" + (5).to_bytes(4, "big") + (2**31 - 1).to_bytes(4, "big") + constructor
    leading = message(None, reply_to=replies.address, correlation_id="q", properties=QUERY)
    client.sender("$management").send(leading.removesuffix(b"\x00\x53\x77\x40") + array)
    bench.run()
    answer = decode(replies.messages[0].data)
    assert answer.properties["statusCode"] == 400
    assert answer.correlation_id == "q"


def test_a_request_of_too_many_values_is_answered_400(bench: Bench) -> None:
    _, client, replies = managed(bench)
    nulls = b"\x00\x53\x77\xd0" + (4 + 20_000).to_bytes(4, "big") + (20_000).to_bytes(4, "big") + b"\x40" * 20_000
    leading = message(None, reply_to=replies.address, correlation_id="q", properties=QUERY)
    client.sender("$management").send(leading + nulls)
    bench.run()
    answer = decode(replies.messages[0].data)
    assert answer.properties["statusCode"] == 400
    assert answer.correlation_id == "q"
    assert "values" in answer.properties["statusDescription"]


def test_an_open_with_a_char_that_nobody_can_write_spoils_no_reply(bench: Bench) -> None:
    router, client, replies = managed(bench)
    raw = bench.raw(router)
    properties = {symbol("product"): char("\ud800")}
    raw.write(frames.AMQP_HEADER + frames.write(0x10, ["RAW", *[None] * 8, properties]))
    query = {**QUERY, "entityType": "org.apache.qpid.dispatch.connection"}
    client.sender("$management").send(message({}, reply_to=replies.address, properties=query))
    bench.run()
    assert decode(replies.messages[0].data).properties["statusCode"] == 200


def test_a_request_with_a_char_that_nobody_can_write_is_answered_400(bench: Bench) -> None:
    _, client, replies = managed(bench)
    asked = {**QUERY, "entityType": char("\ud800")}
    client.sender("$management").send(message({}, reply_to=replies.address, properties=asked))
    bench.run()
    assert decode(replies.messages[0].data).properties["statusCode"] == 400
