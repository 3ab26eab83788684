"""Requests to the management node, many and large: messages pass between the pieces of their answers."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from proton import Data, Described, char, symbol, ulong
from structlog.testing import capture_logs

from router import logs
from router.engine import message_codec
from router.management.node import MAX_COUNT, MAX_LOG_LINES
from router.management.schema import encoded_schema, json_schema
from router.management.snapshot import ConnectionRow
from router.runtime import Runtime
from router.views.management_service import MAX_WAITING, TURN_S, TURNS_SHARE, serve_management
from router.views.runtime import SHOWN_CHARS, SHOWN_PROPERTIES, RuntimeView
from tests.helpers.engine import Bench
from tests.helpers.peer import Peer, PeerReceiver, PeerSender, decode, message

ROWS_A_TURN = 25
ROW_S = TURN_S / ROWS_A_TURN
TURN_AND_REST_S = 1.05 * TURN_S / TURNS_SHARE
TO_NODE = {"type": "org.amqp.management", "name": "self"}


def asker(bench: Bench, router: Runtime) -> tuple[PeerSender, PeerReceiver]:
    """A client's sender of requests, and where it takes replies."""
    client = bench.client(router)
    return client.sender("$management"), client.receiver(None, dynamic=True, credit=1000).accepting()


def query(replies: PeerReceiver, kind: str, number: int = 0, **properties: Any) -> bytes:
    asked = {"operation": "QUERY", "entityType": kind, **TO_NODE, **properties}
    return message({"attributeNames": []}, reply_to=replies.address, correlation_id=number, properties=asked)


def served(bench: Bench, links: int) -> tuple[Runtime, Peer]:
    """A router with a management node that needs `ROW_S` for a row, and a client of so many links."""
    router = bench.router("A")
    serve_management(router, measure=itertools.count(step=ROW_S).__next__)
    client = bench.client(router)
    for number in range(links):
        client.receiver(f"topic/{number}", credit=1, run=False)
    bench.run()
    return router, client


def numbers(replies: PeerReceiver) -> list[Any]:
    return [decode(one.data).correlation_id for one in replies.messages]


def test_messages_pass_between_the_pieces_of_an_answer(bench: Bench) -> None:
    router, client = served(bench, 10 * ROWS_A_TURN)
    sender, replies = asker(bench, router)
    other = bench.client(router).sender("other")
    received = client.receiver("other", credit=1000).accepting()
    sender.send(query(replies, "router.link"))
    bench.run()
    assert not replies.messages
    pieces = 0
    while not replies.messages:
        other.send(message(pieces))
        bench.run()
        assert len(received.messages) == pieces + 1
        bench.advance(TURN_AND_REST_S)
        pieces += 1
    assert 10 <= pieces < 20
    assert len(decode(replies.messages[0].data).body["results"]) == 10 * ROWS_A_TURN + 4


def test_the_log_is_told_in_pieces(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    router, _ = served(bench, 0)
    recent = logs.RecentLines()
    recent.lines.extend((float(number), "info", f"line {number}") for number in range(2 * MAX_LOG_LINES))
    monkeypatch.setattr(logs, "recent", recent)
    sender, replies = asker(bench, router)
    asked = {"operation": "GET-LOG", "limit": 100_000, **TO_NODE}
    sender.send(message(None, reply_to=replies.address, correlation_id=1, properties=asked))
    bench.run()
    turns = 1
    while not replies.messages:
        bench.advance(TURN_AND_REST_S)
        turns += 1
    assert turns >= len(recent.lines) / ROWS_A_TURN
    lines = [line[2] for line in decode(replies.messages[0].data).body]
    assert lines == [text for _, _, text in recent.lines][-MAX_LOG_LINES:]


def test_the_schema_is_encoded_once(bench: Bench) -> None:
    router, _ = served(bench, 0)
    sender, replies = asker(bench, router)
    for number in range(2):
        asked = {"operation": "GET-SCHEMA", **TO_NODE}
        sender.send(message(None, reply_to=replies.address, correlation_id=number, properties=asked))
        bench.advance(TURN_AND_REST_S)
    assert [decode(reply.data).body for reply in replies.messages] == [json_schema()] * 2
    assert encoded_schema().encoded() is encoded_schema().encoded()


def test_a_small_answer_is_there_in_the_turn_of_its_request(bench: Bench) -> None:
    router, _ = served(bench, 5)
    sender, replies = asker(bench, router)
    sender.send(query(replies, "router.link"))
    bench.run()
    assert len(replies.messages) == 1


def test_requests_of_several_clients_are_answered_by_turns(bench: Bench) -> None:
    router, _ = served(bench, 4 * ROWS_A_TURN)
    busy, busy_replies = asker(bench, router)
    for number in range(20):
        busy.send(query(busy_replies, "router.link", number))
    bench.run()
    calm, calm_replies = asker(bench, router)
    calm.send(query(calm_replies, "router"))
    bench.run()
    bench.advance(2 * TURN_AND_REST_S)
    assert len(calm_replies.messages) == 1
    bench.advance(1)
    assert numbers(busy_replies) == list(range(20))


def test_more_requests_of_a_connection_than_may_wait_are_rejected(bench: Bench) -> None:
    router, _ = served(bench, 2 * ROWS_A_TURN)
    sender, replies = asker(bench, router)
    sent = [sender.send(query(replies, "router.link", number)) for number in range(MAX_WAITING + 30)]
    bench.run()
    rejected = [one for one in sent if one.outcome == "rejected"]
    assert 25 <= len(rejected) <= 30
    assert rejected[0].condition is not None
    assert rejected[0].condition.name == "amqp:resource-limit-exceeded"
    other, other_replies = asker(bench, router)
    assert other.send(query(other_replies, "router")) is not None
    bench.advance(1)
    assert len(replies.messages) == len(sent) - len(rejected)
    assert len(other_replies.messages) == 1


def test_links_that_go_while_an_answer_is_made_are_left_out(bench: Bench) -> None:
    router, client = served(bench, 4 * ROWS_A_TURN)
    for kind in ("router.link", "amqp-mesh.credit.party", "connection", "router.address"):
        sender, replies = asker(bench, router)
        leaving = bench.client(router)
        for number in range(2 * ROWS_A_TURN):
            leaving.receiver(f"leaving/{number}", credit=1, run=False)
        bench.run()
        sender.send(query(replies, kind))
        bench.run()
        leaving.wire.cut()
        bench.run()
        bench.advance(0.5)
        assert decode(replies.messages[0].data).properties["statusCode"] == 200
    assert not client.wire.is_cut


def test_clients_that_say_much_of_themselves_do_not_hide_the_others(bench: Bench) -> None:
    router, _ = served(bench, 0)
    long = {symbol(f"{number}-" + "k" * 300): "é" * 300 for number in range(25)}
    for _ in range(8):
        bench.client(router, properties={**long, symbol("list"): list(range(200))}, container="c" * 3000)
    sender, replies = asker(bench, router)
    sender.send(query(replies, "connection"))
    bench.advance(0.5)
    assert len(decode(replies.messages[0].data).body["results"]) == 10
    for row in RuntimeView(router, (), ()).rows(ConnectionRow):
        assert isinstance(row, ConnectionRow)
        assert len(row.properties) <= SHOWN_PROPERTIES
        assert all(len(str(text)) <= SHOWN_CHARS for item in row.properties.items() for text in item)
        assert len(row.container) <= SHOWN_CHARS


def test_pages_are_cut_by_bytes_and_go_on_where_they_ended(bench: Bench) -> None:
    router = bench.router("A", forwarding={"address_bytes": 16384})
    serve_management(router)
    client = bench.client(router)
    for number in range(250):
        client.receiver(f"{number:03}/" + "x" * 8000, credit=1, run=False)
    bench.run()
    sender, replies = asker(bench, router)
    found: list[Any] = []
    while True:
        sender.send(query(replies, "router.address", offset=len(found), count=MAX_COUNT))
        bench.advance(0.5)
        reply = decode(replies.messages[-1].data)
        found += reply.body["results"]
        if " of " not in reply.properties["statusDescription"]:
            break
        assert len(replies.messages[-1].data) < 1_200_000
    assert len(replies.messages) > 2
    assert len({row[0] for row in found}) == len(found) == 252


@pytest.mark.parametrize("operation", ["QUERY", "FOO"])
@pytest.mark.parametrize("reply_to", ["$management", "amqp:/_topo/0/B/$management"])
@pytest.mark.parametrize("to", ["$management", "amqp:/_topo/0/A/$management", "amqp:/_topo/0/B/$management"])
def test_an_answer_that_goes_to_a_management_node_harms_nobody(
    bench: Bench, to: str, reply_to: str, operation: str
) -> None:
    routers = bench.mesh(("A", "B"))
    for router in routers:
        serve_management(router)
    client = bench.client(routers[0])
    sender = client.sender(to)
    bench.run()
    asked = {"operation": operation, "entityType": "router", **TO_NODE}
    for number in range(3):
        sender.send(message({"attributeNames": []}, reply_to=reply_to, correlation_id=number, properties=asked))
    bench.run()
    bench.advance(2)
    assert client.closed is None
    assert all(len(router.fib.routes) == 1 for router in routers)
    sender, replies = asker(bench, routers[0])
    sender.send(query(replies, "router"))
    bench.run()
    assert len(replies.messages) == 1


def properties_section(*fields: Any) -> bytes:
    """A message's properties section, each field of the very type that it is given as."""
    data = Data()
    data.put_object(Described(ulong(0x73), list(fields)))
    return bytes(data.encode())


@pytest.mark.parametrize("kind", [symbol, char, ulong])
def test_a_reply_to_that_is_no_string_is_told_of_and_hurts_nobody(bench: Bench, kind: Any) -> None:
    """A symbol is text to Python, and compiled code takes it for none."""
    router, _ = served(bench, 0)
    sender, replies = asker(bench, router)
    bad = properties_section(None, None, "$management", None, kind(1) if kind is ulong else kind("x"), "id")
    with capture_logs() as lines:
        sent = sender.send(bad + query(replies, "router"))
        bench.run()
    assert sent.outcome == "accepted"
    (line,) = lines
    assert (line["event"], line["reason"]) == (
        "management_request_malformed",
        f"reply-to is no string: {kind.__name__}",
    )
    sender.send(query(replies, "router"))
    bench.run()
    assert len(replies.messages) == 1


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        (0, [1], "a message id is list"),
        (1, "me", "user-id is no binary: str"),
        (2, symbol("$management"), "to is no string: symbol"),
        (3, ulong(5), "subject is no string: ulong"),
        (5, {}, "a message id is dict"),
    ],
)
def test_whoever_names_where_to_reply_is_told_what_is_wrong(bench: Bench, at: int, value: object, reason: str) -> None:
    router, _ = served(bench, 0)
    sender, replies = asker(bench, router)
    fields: list[object] = [None, None, "$management", None, replies.address, "id"]
    fields[at] = value
    sender.send(properties_section(*fields))
    bench.run()
    (reply,) = (decode(one.data) for one in replies.messages)
    assert reply.properties["statusCode"] == 400
    assert reply.properties["statusDescription"] == f"the request is not read: {reason}"


@pytest.mark.parametrize("at", [0, 5])
def test_a_number_that_no_message_id_can_be_is_not_written_back(bench: Bench, at: int) -> None:
    router, _ = served(bench, 0)
    sender, replies = asker(bench, router)
    fields: list[object] = [None, None, "$management", None, replies.address, None]
    fields[at] = -1
    sender.send(properties_section(*fields))
    bench.run()
    (reply,) = (decode(one.data) for one in replies.messages)
    assert (reply.properties["statusCode"], reply.correlation_id) == (400, None)


def test_a_fault_of_ours_with_one_answer_keeps_nobody_else_from_theirs(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    router, _ = served(bench, 0)
    sender, replies = asker(bench, router)
    other, other_replies = asker(bench, router)
    with monkeypatch.context() as patch, capture_logs() as lines:
        patch.setattr(message_codec, "encode_message", lambda _: 1 / 0)
        sender.send(query(replies, "router", 1))
        bench.advance(1)
    assert [line["event"] for line in lines] == ["management_fault"] * 2
    for one, to in ((sender, replies), (other, other_replies)):
        one.send(query(to, "router", 2))
    bench.advance(1)
    assert (numbers(replies), numbers(other_replies)) == ([2], [2])
