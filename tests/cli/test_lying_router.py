"""What the commands say of answers that no router gives: an error, and no traceback."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner
from proton import Message

from router.cli import drain_and_resume, main, management
from router.cli.entity_rows import checked
from router.cli.management_errors import ManagementError
from tests.helpers.fake_management import Answer, fake_management

COMMANDS = (
    "stat", "stat routers", "stat connections", "stat links", "stat problems", "stat credit", "ping", "drain B",
    "resume B", "trace x", "top --looks 1", "manage reload", "manage query --type connection",
)  # fmt: skip
BODY = b"\0\x53\x77"
DEEP = 3000


def deep() -> bytes:
    """A list in a list, and so on."""
    found = b"\x40"
    for _ in range(DEEP):
        found = b"\xd0" + (len(found) + 4).to_bytes(4, "big") + b"\0\0\0\1" + found
    return BODY + found


def of_other_types(request: Message) -> Message:
    """Entities and names that are no text, where text belongs."""
    properties = {"statusCode": 200, "statusDescription": "OK"}
    if request.properties["operation"] == "QUERY":
        names = request.body["attributeNames"] or ["name", "id", "container", "host", "address", "kind", "key"]
        return Message(properties=properties, body={"attributeNames": names, "results": [[b"x"] * len(names)]})
    if request.properties["operation"] == "GET-MGMT-NODES":
        return Message(properties=properties, body=[5, b"x"])
    return Message(properties=properties, body={"id": b"x", "name": 7, "drainState": 1, "version": [1]})


def of_ever_more(request: Message) -> Message:
    """As many entities as are asked for, wherever that is."""
    names = ["name", "identity", "type"]
    rows = [["x", "x", "connection"]] * request.properties["count"]
    return Message(
        properties={"statusCode": 200, "statusDescription": "OK"}, body={"attributeNames": names, "results": rows}
    )


def of_fewer(request: Message) -> Message:
    """Entities that lack all that is asked for."""
    properties = {"statusCode": 200, "statusDescription": "OK"}
    if request.properties["operation"] == "QUERY":
        return Message(properties=properties, body={"attributeNames": ["x"], "results": [[1]]})
    return Message(properties=properties, body={"x": 1})


@pytest.mark.interop
@pytest.mark.parametrize(
    "answer",
    [lambda request: BODY + b"\xa1\x02\xff\xfe", lambda request: deep(), of_other_types, of_fewer],
    ids=["no-utf-8", "deep", "types", "fewer"],
)
def test_a_command_ends_with_an_error_and_no_traceback(answer: Answer) -> None:
    with fake_management(answer) as url:
        said = {words: CliRunner().invoke(main, [*words.split(), "--url", url, "--timeout", "5"]) for words in COMMANDS}
    for words, found in said.items():
        assert found.exception is None or isinstance(found.exception, SystemExit), (words, found.exception)
        assert found.exit_code in (0, 1), (words, found.stderr)
        assert found.exit_code == 0 or found.stderr.startswith("Error: "), (words, found.stderr)


def of_a_name_that_clears_the_screen(request: Message) -> Message:
    """A router without anything, with such a name."""
    properties = {"statusCode": 200, "statusDescription": "OK"}
    if request.properties["operation"] == "QUERY":
        return Message(properties=properties, body={"attributeNames": request.body["attributeNames"], "results": []})
    if request.properties.get("type", "").endswith("router"):
        return Message(properties=properties, body={"id": "A\x1b[2J"})
    return Message(properties={"statusCode": 404, "statusDescription": "there is none"}, body={})


@pytest.mark.interop
def test_a_trace_shows_no_name_that_steers_the_terminal() -> None:
    with fake_management(of_a_name_that_clears_the_screen) as url:
        found = CliRunner().invoke(main, ["trace", "x", "--seconds", "0", "--url", url, "--timeout", "5"])
    assert "A\\x1b[2J" in found.output
    assert "\x1b" not in found.output


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"id": 5}, "R reports a value of another type (int) for `id` of router, which is of type string"),
        ({"id": None}, "R reports nothing for `id` of router, which is of type string"),
        ({"memoryUsage": True}, "R reports a value of another type (bool) for `memoryUsage` of router"),
    ],
)
def test_an_attribute_of_another_type_is_no_entity(row: dict[str, object], said: str) -> None:
    with pytest.raises(ManagementError) as raised:
        checked("router", [row], "R")
    assert str(raised.value).startswith(said)


def test_what_a_router_has_not_told_is_an_error_when_it_is_asked_for() -> None:
    (found,) = checked("router", [{"id": "A", "whatNoneHas": object()}], "R")
    assert found["id"] == "A"
    assert found.get("version") is None
    with pytest.raises(ManagementError, match="R reports no `version`"):
        found["version"]


@pytest.mark.interop
def test_a_router_that_has_ever_more_entities_is_asked_for_no_more_than_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(management, "MOST_ENTITIES", 1000)
    with fake_management(of_ever_more) as url, management.ManagementClient(url) as client:
        with pytest.raises(ManagementError, match="reports more than 1,000 entities of type connection"):
            client.query("connection")
        assert len(client.query("connection", limit=700)) == 700


@pytest.mark.interop
def test_a_router_that_answers_no_more_is_not_taken_for_one_that_has_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain_and_resume, "SPARE_S", 0.1)
    asked: list[str] = []

    def answer(request: Message) -> Message | bytes:
        asked.append(request.properties["operation"])
        if "DRAIN" in asked[:-1]:
            return BODY
        body = {"id": "B", "withinSeconds": 0.1}
        return Message(properties={"statusCode": 200, "statusDescription": "OK"}, body=body)

    with fake_management(answer) as url:
        found = CliRunner().invoke(main, ["drain", "B", "--stop", "--url", url, "--timeout", "0.5"])
    assert found.exit_code == 1
    assert found.stdout == ""
    assert found.stderr == "Error: router B has not stopped yet; its log says more\n"


@pytest.mark.interop
@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "it is not known any more"),
        ([["C", False, None, []]], "it is not known any more"),
        ([["C", False, "lost by its neighbors: B", ["B"]]], "lost by its neighbors: B"),
    ],
)
def test_a_router_to_which_the_way_is_cut_is_not_taken_for_one_that_has_stopped(rows: list[Any], said: str) -> None:
    def answer(request: Message) -> Message:
        body: dict[str, object] = {"id": "A", "withinSeconds": 0.1}
        if request.properties["operation"] == "QUERY":
            body = {"attributeNames": ["id", "isReachable", "reason", "linkState"], "results": rows}
        return Message(properties={"statusCode": 200, "statusDescription": "OK"}, body=body)

    with fake_management(answer) as url:
        found = CliRunner().invoke(main, ["drain", "C", "--stop", "--url", url, "--timeout", "5"])
    assert found.stderr == f"Error: router C is to stop, and can't be reached: {said}\n"
    assert (found.exit_code, found.stdout) == (1, "")


@pytest.mark.interop
@pytest.mark.parametrize("words", ["--watch --looks 1", "--match x", "--where id=1 --sort uptime"])
def test_rows_of_another_version_are_shown_as_far_as_they_are_told(words: str) -> None:
    def answer(request: Message) -> Message:
        body: dict[str, object] = {"id": "B"}
        if request.properties["operation"] == "QUERY":
            body = {"attributeNames": ["identity", "container"], "results": [["1", "x"]]}
        return Message(properties={"statusCode": 200, "statusDescription": "OK"}, body=body)

    with fake_management(answer) as url:
        found = CliRunner().invoke(main, ["stat", "connections", *words.split(), "--url", url])
    assert found.stderr == ""
    assert found.exit_code == 0
    assert "?: not reported by this router; is it another version?" in found.stdout
