"""The management node: every entity and attribute by tables, and an answer to whatever is asked."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import proton
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.binding.message import IncrementalList
from router.engine.message_codec import Message, decode_message, encode_message, symbol
from router.management.node import DEFAULT_COUNT, MAX_COUNT, MAX_RESULT_VALUES, ManagementNode
from router.management.schema import GENERAL_OPERATIONS, MANAGEMENT, PREFIX, TYPES, EntityType, json_schema
from tests.management.fakes import PYTHON_TYPES, FakeView, answer, ask, status, types
from tests.wire.vectors import FOLDER, files

TO_NODE = {"type": MANAGEMENT, "name": "self"}
by_type = pytest.mark.parametrize("kind", types(), ids=lambda kind: kind.short_name)


def query(kind: str, names: list[str] | None = None, **properties: object) -> Message:
    body = None if names is None else {"attributeNames": names}
    return ask({"operation": "QUERY", "entityType": kind, **TO_NODE, **properties}, body)


def over_the_wire(message: Message) -> Message:
    return decode_message(encode_message(message))


# Every entity and attribute


@by_type
def test_query_gives_every_attribute_with_its_type(kind: EntityType) -> None:
    reply = over_the_wire(query(kind.name))
    assert status(reply) == (200, "OK")
    assert isinstance(reply.body, dict)
    assert reply.body["attributeNames"] == list(kind.attributes)
    assert len(reply.body["results"]) == (1 if kind.is_singleton else 3)
    for values in reply.body["results"]:
        for name, value in zip(reply.body["attributeNames"], values, strict=True):
            assert isinstance(value, PYTHON_TYPES[kind.attributes[name].kind]), name


@by_type
def test_read_gives_the_same_as_query(kind: EntityType) -> None:
    queried = over_the_wire(query(kind.name)).body
    assert isinstance(queried, dict)
    expected = dict(zip(queried["attributeNames"], queried["results"][-1], strict=True))
    for key in ("name", "identity"):
        reply = over_the_wire(ask({"operation": "READ", "type": kind.name, key: expected[key]}))
        assert status(reply) == (200, "OK")
        assert reply.body == expected


@by_type
def test_types_may_be_named_without_their_prefix(kind: EntityType) -> None:
    assert status(query(kind.short_name))[0] == 200
    assert query(kind.short_name).body == query(kind.name).body


@by_type
def test_only_one_of_a_kind_is_read_without_a_name(kind: EntityType) -> None:
    reply = ask({"operation": "READ", "type": kind.name})
    assert status(reply)[0] == (200 if kind.is_singleton else 400)


@by_type
@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
def test_only_what_the_schema_says_can_be_changed(kind: EntityType, operation: str) -> None:
    code, text = status(ask({"operation": operation, "type": kind.name, "name": "name-1"}, {"name": "name-1"}))
    assert code == 501
    if operation in kind.operations:
        assert text == "nothing can be changed here"  # by a node that was made so
    else:
        assert text.startswith(f"{operation} of {kind.short_name} is not possible; there is READ")


@pytest.mark.parametrize("properties", [{"identity": "2"}, {"name": "name-2"}, {"identity": "2", "name": "name-2"}])
def test_an_entity_is_read_by_identity_or_name_without_a_type(properties: dict[str, str]) -> None:
    reply = ask({"operation": "READ", **properties})
    assert status(reply) == (200, "OK")
    assert isinstance(reply.body, dict)
    assert (reply.body["identity"], reply.body["name"]) == ("2", "name-2")


def test_an_identity_that_nothing_has_is_not_found() -> None:
    assert status(ask({"operation": "READ", "identity": "nothing"}))[0] == 404


@pytest.mark.parametrize(("limit", "count"), [(None, 3), (2, 2), ("2", 2), (0, 0)])
def test_the_log_is_told_as_lists_of_six(limit: object, count: int) -> None:
    properties = {"operation": "get-log"} | ({"limit": limit} if limit is not None else {})
    body = ask(properties).body
    assert body == [["ROUTER", "info", f"line {number}", None, 0, 1_800_000_000] for number in range(count)]


def test_the_schema_has_each_type_with_its_attributes_and_operations() -> None:
    body = over_the_wire(ask({"operation": "GET-SCHEMA"})).body
    assert isinstance(body, dict)
    for kind in types():
        told = body["entityTypes"][kind.short_name]
        assert told["operations"] == list(kind.operations)
        assert set(told["attributes"]) == set(kind.attributes)
    assert json.loads(str(ask({"operation": "GET-JSON-SCHEMA"}).body)) == json_schema()


@by_type
def test_the_get_operations_tell_of_one_type_or_of_all(kind: EntityType) -> None:
    tables = {"GET-ATTRIBUTES": list(kind.attributes), "GET-OPERATIONS": list(kind.operations), "GET-TYPES": []}
    for operation, expected in tables.items():
        one = ask({"operation": operation, "entityType": kind.name, **TO_NODE})
        assert (status(one), one.body) == ((200, "OK"), {kind.name: expected})
        everything = ask({"operation": operation, **TO_NODE}).body
        assert isinstance(everything, dict)
        assert list(everything) == list(TYPES)
        assert everything[kind.name] == expected


def test_the_management_nodes_of_the_mesh_are_named() -> None:
    reply = ask({"operation": "GET-MGMT-NODES", **TO_NODE})
    assert reply.body == [f"amqp:/_topo/0/{router}/$management" for router in "ABC"]


def test_a_query_without_a_type_gives_everything() -> None:
    body = ask({"operation": "QUERY", **TO_NODE}, {"attributeNames": ["type", "name", "cost"]}).body
    assert isinstance(body, dict)
    assert {row[0] for row in body["results"]} == set(TYPES)
    assert [row[2] for row in body["results"] if row[0].endswith(".router")] == [None]


def test_attributes_come_in_the_order_asked_for_and_once() -> None:
    body = query("router.node", ["cost", "id", "cost"]).body
    assert isinstance(body, dict)
    assert body["attributeNames"] == ["cost", "id"]


# Paging


@pytest.mark.parametrize(
    ("offset", "count", "expected", "text"),
    [
        (0, 2, [0, 1], "OK: 0 to 1 of 5"),
        (2, 2, [2, 3], "OK: 2 to 3 of 5"),
        (4, 2, [4], "OK"),
        (5, 2, [], "OK"),
        (9, 2, [], "OK"),
        (1, 0, [], "OK"),
        (0, 5, [0, 1, 2, 3, 4], "OK"),
        (None, None, [0, 1, 2, 3, 4], "OK"),
    ],
)
def test_a_query_is_paged(offset: int | None, count: int | None, expected: list[int], text: str) -> None:
    properties = {"operation": "QUERY", "entityType": "router.link", "offset": offset, "count": count, **TO_NODE}
    reply = ask(properties, {"attributeNames": ["identity"]}, node=ManagementNode(FakeView(5)))
    assert status(reply) == (200, text)
    assert isinstance(reply.body, dict)
    assert reply.body["results"] == [[str(number)] for number in expected]


@pytest.mark.parametrize(("count", "expected"), [(None, DEFAULT_COUNT), (10**6, MAX_COUNT)])
def test_a_reply_has_a_bound(count: int | None, expected: int) -> None:
    properties = {"operation": "QUERY", "entityType": "router.link", "count": count, **TO_NODE}
    reply = ask(properties, {"attributeNames": ["name"]}, node=ManagementNode(FakeView(2000)))
    assert isinstance(reply.body, dict)
    assert len(reply.body["results"]) == expected
    assert status(reply)[1] == f"OK: 0 to {expected - 1} of 2000"


def test_a_reply_holds_no_more_values_than_a_client_of_proton_decodes() -> None:
    neighbors = {f"r{number:03}": 1 for number in range(220)}
    results = IncrementalList()
    while results.values <= MAX_RESULT_VALUES:
        results.append(["name", neighbors, list(neighbors)])
    read = proton.Message()
    read.decode(encode_message(Message(body={"attributeNames": ["name", "costs", "neighbors"], "results": results})))
    assert read.body["results"] == [["name", neighbors, list(neighbors)]] * len(results)
    assert len(results) < 100, "a row counts by what it holds"


def test_pages_go_on_across_types() -> None:
    node = ManagementNode(FakeView(4))
    whole = ask({"operation": "QUERY", **TO_NODE}, {"attributeNames": ["type", "name"]}, node=node).body
    assert isinstance(whole, dict)
    pages: list[Any] = []
    while True:
        paged = {"operation": "QUERY", "offset": len(pages), "count": 3, **TO_NODE}
        body = ask(paged, {"attributeNames": ["type", "name"]}, node=node).body
        assert isinstance(body, dict)
        if not body["results"]:
            break
        pages += body["results"]
    assert pages == whole["results"]


@pytest.mark.parametrize("kind", [kind for kind in types() if kind.is_of_address], ids=lambda kind: kind.short_name)
def test_a_query_may_be_for_one_address(kind: EntityType) -> None:
    reply = query(kind.name, ["type", "key"], key="M0topic")
    assert status(reply) == (200, "OK")
    assert isinstance(reply.body, dict)
    assert reply.body["results"] == [[kind.name, "M0topic"]]


# What is refused


@pytest.mark.parametrize(
    ("properties", "body", "code", "text"),
    [
        ({}, None, 400, "a request needs the application property `operation`"),
        ({"operation": 5}, None, 400, "`operation` is a string"),
        ({"operation": "QERY"}, None, 501, "no operation `QERY`; the nearest is QUERY"),
        ({"operation": "get-mgmt-node"}, None, 501, "no operation `GET-MGMT-NODE`; the nearest is GET-MGMT-NODES"),
        ({"operation": "READ"}, None, 400, "READ needs the `type` of the entity"),
        (
            {"operation": "READ", "type": "router.lnk"},
            None,
            400,
            "no entity type `router.lnk`; the nearest is router.link",
        ),
        (
            {"operation": "READ", "type": f"{PREFIX}conection"},
            None,
            400,
            "no entity type `conection`; the nearest is connection",
        ),
        (
            {"operation": "READ", "type": "connection", "name": "name-9"},
            None,
            404,
            "no connection `name-9`; the nearest is name-2",
        ),
        (
            {"operation": "READ", "type": "connection", "identity": "99"},
            None,
            404,
            "no connection `99`",
        ),
        (
            {"operation": "READ", "type": "connection", "identity": "1", "name": "name-2"},
            None,
            404,
            "no connection has name `name-2` and identity `1`",
        ),
        (
            {"operation": "READ", "type": "connection"},
            None,
            400,
            "which connection? No `name` or `identity` is given",
        ),
        (
            {"operation": "QUERY", "entityType": "router.link"},
            {"attributeNames": ["linkname"]},
            400,
            "no attribute of router.link `linkname`; the nearest is linkName",
        ),
        ({"operation": "QUERY"}, {"attributeNames": "linkName"}, 400, "`attributeNames` is a list of strings"),
        ({"operation": "QUERY"}, {"attributeNames": [1]}, 400, "`attributeNames` is a list of strings"),
        ({"operation": "QUERY"}, [1], 400, "the body of a QUERY is a map with `attributeNames`"),
        (
            {"operation": "QUERY", "entityType": "router.address", "key": "M0x"},
            None,
            400,
            "`key` goes with a QUERY of amqp-mesh.credit, amqp-mesh.credit.party",
        ),
        ({"operation": "QUERY", "key": "M0x"}, None, 400, "`key` goes with a QUERY of amqp-mesh.credit"),
        ({"operation": "QUERY", "entityType": "amqp-mesh.credit", "key": 1}, None, 400, "`key` is a string"),
        ({"operation": "QUERY", "offset": -1}, None, 400, "`offset` is a number from 0 on"),
        ({"operation": "QUERY", "count": "5"}, None, 400, "`count` is a number from 0 on"),
        ({"operation": "QUERY", "count": True}, None, 400, "`count` is a number from 0 on"),
    ],
)
def test_a_refusal_says_what_is_wrong_and_what_is_near(
    properties: dict[str, object], body: object, code: int, text: str
) -> None:
    found = status(ask(properties, body))
    assert found[0] == code
    assert found[1].startswith(text)


# Replies


@pytest.mark.parametrize("wanted", ["7", 7, b"\x07", UUID(int=7)])
def test_a_reply_carries_the_correlation_id_or_else_the_message_id(wanted: Any) -> None:
    request = {"operation": "GET-MGMT-NODES"}
    assert over_the_wire(ask(request, correlation_id=wanted, message_id="other")).correlation_id == wanted
    assert over_the_wire(ask(request, message_id=wanted)).correlation_id == wanted
    assert ask(request).correlation_id is None


@pytest.mark.parametrize(
    "to", [None, "", "amqp:/_topo/0/B/qdrouter", "_topo/0/all/qdrouter.ma", "amqp:/_local/qdhello"]
)
def test_nothing_is_sent_to_nobody_or_to_the_addresses_of_routers(to: str | None) -> None:
    request = Message(reply_to=to, application_properties={"operation": "GET-MGMT-NODES"})
    assert answer(ManagementNode(FakeView()), request) is None


@pytest.mark.parametrize("file", [file for file in files("mgmt") if file.endswith("-req.bin")])
def test_recorded_requests_of_qdstat_and_qdmanage_are_answered(file: str) -> None:
    request = decode_message((FOLDER / file).read_bytes())
    reply = answer(ManagementNode(FakeView()), request)
    assert reply is not None
    assert reply.to == request.reply_to
    assert reply.correlation_id == request.correlation_id
    assert over_the_wire(reply).body == reply.body
    wanted = request.application_properties
    known = str(wanted.get("entityType", "")).removeprefix(PREFIX) in {kind.short_name for kind in types()}
    if wanted["operation"] == "QUERY" and known:
        assert status(reply) == (200, "OK")


# Whatever is asked

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
words = st.sampled_from(
    [*GENERAL_OPERATIONS, "READ", "UPDATE", *TYPES, *(kind.short_name for kind in types()), "name-1", "self"]
)
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), texts, words, words.map(symbol), st.binary(max_size=4)
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
keys = st.sampled_from(["operation", "type", "entityType", "name", "identity", "key", "offset", "count"])
names = st.lists(st.sampled_from(list(TYPES[f"{PREFIX}router.link"].attributes)) | texts, max_size=4)
ids = st.none() | texts | st.integers(0, 2**64 - 1) | st.binary(max_size=4) | st.uuids()
messages = st.builds(
    Message,
    reply_to=st.none() | texts | st.sampled_from(["amqp:/_topo/0/A/temp.1", "amqp:/_local/qdhello"]),
    message_id=ids,
    correlation_id=ids,
    application_properties=st.dictionaries(keys | keys.map(symbol) | texts, scalars, max_size=6),
    body=values | st.builds(lambda given: {"attributeNames": given}, names | values),
)


@given(messages)
def test_any_request_has_one_reply_that_can_be_written_or_none(request: Message) -> None:
    reply = answer(ManagementNode(FakeView()), request)
    if reply is None:
        assert not request.reply_to or "qd" in request.reply_to
        return
    assert reply.to == request.reply_to
    code, _ = status(over_the_wire(reply))
    assert code in (200, 400, 404, 501)
