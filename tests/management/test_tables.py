"""What `stat` makes of what it was told."""

from __future__ import annotations

import csv
import io
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from click.testing import CliRunner
from proton import Described, symbol, ubyte, ulong
from rich.console import Console
from rich.table import Table
from rich.text import Text

from router.cli import main
from router.cli.stat import WHAT
from router.cli.stat import _kinds as kinds
from router.cli.stat import _table as table
from router.cli.stat import _write_csv as write_csv
from router.cli.stat_columns import GENERAL, VIEWS, aligned, duration, general_value, link_state
from router.management.schema import find_type
from tests.helpers import frames
from tests.management.fakes import sample


def entity(kind: str, number: int = 1, **changed: object) -> dict[str, Any]:
    found = find_type(kind)
    status = {"connectionStatus": "FAILED"} if kind == "connector" else {}
    return {**found.values(sample(found.row, number)), **status, **changed}


def shown(view: str, *entities: dict[str, Any], is_verbose: bool = False) -> list[list[str]]:
    console = Console(width=10000)
    with console.capture() as capture:
        rows = sorted(entities, key=VIEWS[view].order)
        console.print(*table(VIEWS[view], rows, console.width, is_verbose=is_verbose), sep="\n")
    return [line.split() for line in capture.get().splitlines()]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59, "59s"), (60, "1m00s"), (3599, "59m59s"), (3600, "1h00m"), (90061, "1d01h"), (10**7, "115d17h")],
)
def test_durations_are_read_at_a_glance(seconds: int, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("is_verbose", [False, True])
def test_every_column_finds_its_attribute_also_where_it_is_null(view: str, is_verbose: bool) -> None:
    kind = find_type(VIEWS[view].kind)
    empty: dict[str, Any] = {name: None for name, attribute in kind.attributes.items() if attribute.is_optional}
    columns = [column for column in VIEWS[view].columns if is_verbose or not column.is_detail]
    rows = shown(view, entity(VIEWS[view].kind), entity(VIEWS[view].kind, **empty), is_verbose=is_verbose)
    assert len(rows) == 3
    if is_verbose:
        assert " ".join(rows[0]) == " ".join(column.title for column in columns)


def test_columns_that_say_nothing_are_left_out_unless_all_are_asked_for() -> None:
    idle = entity("router.link", deliveriesStuck=0, rate=0, modifiedCount=0, isBlocked=False)
    busy = {**idle, "modifiedCount": 3}
    titles = shown("links", idle, busy)[0]
    assert "mod" in titles
    assert not {"stuck", "msg/s"} & set(titles)
    assert {"stuck", "msg/s"} <= set(shown("links", idle, busy, is_verbose=True)[0])


def test_every_line_of_general_finds_its_attribute() -> None:
    router = entity("router")
    assert {attribute for _, attribute in GENERAL} <= set(router)
    assert general_value("memoryUsage", 3 * 2**20) == "3.0 MiB"


LINK = {
    "isBlocked": False,
    "zeroCreditSeconds": 0,
    "undeliveredCount": 0,
    "deliveriesStuck": 0,
    "droppedPresettledCount": 0,
    "unsettledCount": 0,
    "deliveryCount": 0,
}


def test_links_that_messages_wait_for_stand_first() -> None:
    links = [
        entity("router.link", 1, **LINK),
        entity("router.link", 2, **{**LINK, "deliveryCount": 1000}),
        entity("router.link", 3, **{**LINK, "isBlocked": True, "creditAvailable": 0, "undeliveredCount": 9}),
        entity("router.link", 4, **{**LINK, "isBlocked": True, "creditAvailable": 0, "zeroCreditSeconds": 5}),
        entity("router.link", 5, **{**LINK, "deliveriesStuck": 2}),
        entity("router.link", 6, **{**LINK, "creditAvailable": 0}),
    ]
    found = sorted(links, key=VIEWS["links"].order)
    assert [link["identity"] for link in found] == ["4", "3", "5", "2", "1", "6"]
    assert [link_state(link) for link in found] == ["blocked", "blocked", "stuck", "", "", "no credit"]


def test_addresses_with_publishers_and_no_subscribers_stand_before_those_that_work() -> None:
    fields = {"waitingCount": 0, "droppedCount": 0, "publisherCount": 1}
    addresses = [
        entity("router.address", 1, **fields, isOpen=True, key="M0works"),
        entity("router.address", 2, **fields, isOpen=False, key="M0nobody"),
        entity("router.address", 3, **{**fields, "waitingCount": 1}, isOpen=True, key="M0waits"),
    ]
    rows = shown("addresses", *addresses)[1:]
    assert [" ".join(row).split(" mobile")[0] for row in rows] == ["waiting waits", "no subscriber nobody", "- works"]


def test_routers_that_cannot_be_reached_stand_first() -> None:
    nodes = [
        entity("router.node", number, id=name, isReachable=cost is not None, cost=cost)
        for number, (name, cost) in enumerate([("A", 0), ("B", 2), ("C", None), ("D", 1)])
    ]
    assert [row[0] for row in shown("routers", *nodes)[1:]] == ["C", "A", "D", "B"]


def test_neighbors_that_do_not_answer_stand_before_clients() -> None:
    fields = {"opened": True, "operStatus": "up", "isStandby": False, "reading": "all", "sending": "all"}
    connections = [
        entity("connection", 1, **fields, role="normal"),
        entity("connection", 2, **fields, role="inter-router", neighborState="two-way"),
        entity("connection", 3, **fields, role="inter-router", neighborState="one-way"),
        entity("connection", 4, **{**fields, "isStandby": True}, role="inter-router", neighborState="two-way"),
    ]
    rows = shown("connections", *connections)[1:]
    assert [row[0] for row in rows] == ["3", "2", "4", "1"]
    assert [row[5] for row in rows] == ["one-way", "two-way", "standby", "-"]


def test_names_of_peers_move_no_cursor_and_are_no_markup() -> None:
    rows = shown("connections", entity("connection", container="\x1b[2J\a\u202e[red]x"))
    assert rows[1][1] == r"\x1b[2J\x07\u202e[red]x"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", " =", "\t-", "\uff1d", "\uff20"])
def test_no_cell_of_csv_that_a_peer_chose_begins_a_formula(start: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = start + 'cmd|"/c calc"!A1'
    write_csv(
        ["connection"], [(name, [{"container": name, "linkCount": -5, "rate": -0.5, "list": ["=1"], "none": None}])]
    )
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out, newline=""))
    assert row["router"] == row["container"] == "'" + name
    assert (row["linkCount"], row["rate"], row["list"], row["none"]) == ("-5", "-0.5", '["=1"]', "")


def test_other_cells_of_csv_are_what_peers_chose(capsys: pytest.CaptureFixture[str]) -> None:
    write_csv(["connection"], [("A", [{"container": "a=b-c@d,+\n"}])])
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out, newline=""))
    assert row["container"] == "a=b-c@d,+\n"


@pytest.mark.parametrize("what", WHAT)
def test_csv_without_rows_has_its_heading(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_csv(kinds(what), [("A", [])])
    (heading,) = csv.reader(io.StringIO(capsys.readouterr().out, newline=""))
    assert heading[:2] == ["router", "name"]
    assert len(heading) > 8


def test_what_routers_answer_moves_no_cursor_in_errors() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor() as pool:
        pool.submit(refuse_with, server, "\x1b[2J\u202eno")
        found = CliRunner().invoke(main, ["stat", "--url", f"amqp://127.0.0.1:{server.getsockname()[1]}"])
    assert found.exit_code == 1
    assert r"\x1b[2J\u202eno" in found.output


def refuse_with(server: socket.socket, description: str) -> None:
    """Answer one connection with Open and Close."""
    sock, _ = server.accept()
    condition = Described(ulong(0x1D), [symbol("amqp:not-allowed"), description])
    with sock:
        sock.sendall(
            frames.SASL_HEADER
            + frames.write(0x40, [symbol("ANONYMOUS")], kind=1)
            + frames.write(0x44, [ubyte(0)], kind=1)
            + frames.AMQP_HEADER
            + frames.write(0x10, ["evil"])
            + frames.write(0x18, [condition])
        )
        sock.settimeout(10)
        while sock.recv(65536):
            pass


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["routres"], "'routres' is not one of"),
        (["--router", "A", "--all-routers"], "--router and --all-routers exclude each other"),
        (["--timeout", "0"], "0 is out of range; expected a number above 0 and up to 2592000"),
        (["links", "--credit"], "--credit and links exclude each other"),
        (["links", "--address", "x"], "--address and --limit go with credit"),
        (["--limit", "5"], "--address and --limit go with credit"),
        (["--credit", "--limit", "0"], "0 is out of range; expected a whole number from 1; did you mean `1`?"),
    ],
)
def test_wrong_calls_are_refused_before_anything_is_asked(arguments: list[str], text: str) -> None:
    found = CliRunner().invoke(main, ["stat", *arguments])
    assert found.exit_code == 2
    assert text in found.output


def test_lines_are_those_that_rich_would_draw() -> None:
    rows = [["link", "credit", "who"], ["a", "5", "日本"], ["longer name", "10000", ""], ["", "7", "x"]]
    table = Table(box=None, pad_edge=False, padding=(0, 1))
    for title, justify in zip(rows[0], ("left", "right", "left"), strict=True):
        table.add_column(title, justify=justify)  # type: ignore[arg-type]
    for row in rows[1:]:
        table.add_row(*map(Text, row))
    console = Console(width=1000)
    with console.capture() as capture:
        console.print(table)
    assert aligned(rows, (False, True, False)) == [line.rstrip() for line in capture.get().splitlines()]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"connectionMsg": "Connection refused"}, "Connection refused; lost before that: its process died"),
        ({"connectionMsg": "its process died"}, "its process died"),
        ({"connectionMsg": "", "lastFlapReason": None}, "it tries for the first time"),
        ({"connectionMsg": "", "connectionStatus": "SUCCESS"}, "last flap: its process died"),
        ({"connectionMsg": "", "connectionStatus": "SUCCESS", "lastFlapReason": None}, None),
    ],
)
def test_a_connector_that_is_down_says_why_and_why_it_was_lost(changed: dict[str, Any], words: str | None) -> None:
    down = {"connectionStatus": "CONNECTING", "lastFlapReason": "its process died"}
    (column,) = [each for each in VIEWS["connectors"].columns if each.title == "why"]
    assert column.text(entity("connector", **{**down, **changed})) == words
