"""`trace`, `top` and `stat --watch`, as an operator calls them, on a line of three real routers with a slow server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import attrs
import click
import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from mesh_config.generators import generate
from router.cli import main
from router.cli.entity_rows import EntityRow
from router.cli.management import ManagementClient
from router.cli.message_links import Client
from router.cli.router_access import RouterAccess
from router.cli.row_choice import RowChoice
from router.cli.stat_columns import LINKS, MESH, ROUTERS
from router.cli.table_fitting import fitted
from tests.cli.test_messages import call, command
from tests.helpers.processes import MeshProcesses, wait_until, without_idle_timeout
from tests.helpers.terminal import written_to

WAIT_S = 20


@attrs.frozen
class Stage:
    """R1 - R2 - R3: at R3 a server that took two requests and answers none, at R1 a publisher of three."""

    mesh: MeshProcesses
    slow: Client


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with MeshProcesses(without_idle_timeout(generate("line", 3)), tmp_path_factory.mktemp("mesh")) as mesh:
        mesh.start()
        mesh.wait_converged()
        with Client(RouterAccess(mesh.url("R3"))) as slow:
            server = slow.receiver("jobs")
            server.link.flow(2)
            words = ("send", "jobs", "x", "--count", "9", "--timeout", "600")
            publisher = subprocess.Popen(command(mesh, "R1", words), stdout=subprocess.DEVNULL)
            try:
                assert slow.wait(lambda: len(server.incoming) == 2, WAIT_S)
                wait_until(lambda: is_told_to_wait(mesh), "the publisher waits", WAIT_S)
                yield Stage(mesh, slow)
            finally:
                publisher.kill()
                publisher.wait()


def is_told_to_wait(mesh: MeshProcesses) -> bool:
    with ManagementClient(mesh.url("R1"), timeout_s=WAIT_S) as client:
        return any(row["zeroCreditSeconds"] for row in client.query("router.link"))


def as_json(stage: Stage, *words: str) -> Any:
    done = call(stage.mesh, *words)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


@pytest.mark.interop
def test_trace_names_each_hop_with_cost_and_credit_and_the_slow_server(stage: Stage) -> None:
    found = as_json(stage, "trace", "jobs", "--json", "--seconds", "0.2")
    assert (found["start"], found["treatment"]) == ("R1", "balanced")
    assert [row["role"] for row in found["publishers"]] == ["publisher"]
    (path,) = found["paths"]
    assert (path["egress"], path["cost"], path["error"]) == ("R3", 2, None)
    assert [(hop["router"], hop["to"], hop["cost"], hop["granted"]) for hop in path["hops"]] == [
        ("R1", "R2", 1, 0),
        ("R2", "R3", 1, 0),
    ]
    assert [hop["unsettled"] for hop in path["hops"]] == [2, 2]
    assert all(hop["rate"] is not None and hop["round_trip_ms"] is not None for hop in path["hops"])
    assert [(row["granted"], row["unsettledCount"]) for row in path["subscribers"]] == [(0, 2)]


@pytest.mark.interop
def test_trace_says_it_in_lines_and_ends_with_1_when_no_path_is_free(stage: Stage) -> None:
    done = call(stage.mesh, "trace", "jobs", "--seconds", "0")
    assert done.returncode == 1
    assert "R1 -> R2 -> R3, cost 2" in done.stdout
    assert "FLOOD" not in done.stdout
    assert "NO CREDIT" in done.stdout


@pytest.mark.interop
def test_trace_begins_at_any_router(stage: Stage) -> None:
    found = as_json(stage, "trace", "jobs", "--json", "--seconds", "0", "--router", "R3")
    assert [(path["egress"], path["cost"], path["hops"]) for path in found["paths"]] == [("R3", 0, [])]


@pytest.mark.interop
def test_trace_says_that_nobody_subscribes(stage: Stage) -> None:
    done = call(stage.mesh, "trace", "nobody", "--seconds", "0")
    assert done.returncode == 1
    assert done.stdout == "R1: nobody subscribes to nobody or publishes to it, as far as it reaches\n"


@pytest.mark.interop
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("trace jbos --seconds 0", "R1: nobody subscribes to jbos or publishes to it, as far as it reaches."),
        (
            "trace jbos --seconds 0 --router R2",
            "R2: nobody subscribes to jbos or publishes to it, as far as it reaches.",
        ),
        ("stat credit --address Jobs", "R1: nobody subscribes to Jobs here, and no publisher's link names it."),
    ],
)
def test_an_address_that_nobody_has_is_answered_with_the_nearest_one(stage: Stage, words: str, said: str) -> None:
    assert call(stage.mesh, *words.split()).stdout == f"{said} Did you mean 'jobs'?\n"


@pytest.mark.interop
def test_an_address_that_others_have_is_no_wrong_one(stage: Stage) -> None:
    assert "Did you mean" not in call(stage.mesh, "stat", "credit", "--address", "jobs", "--router", "R2").stdout


@pytest.mark.interop
def test_rows_that_were_chosen_are_counted_among_all(stage: Stage) -> None:
    count = len(as_json(stage, "stat", "links", "--json"))
    none = call(stage.mesh, "stat", "links", "--where", "deliv>1000000").stdout
    assert re.fullmatch(rf"R1: 0 of {count} links\n", none)
    assert call(stage.mesh, "stat", "links", "--sort", "deliv").stdout.startswith(f"R1: {count} links\n")
    one = call(stage.mesh, "stat", "addresses", "--match", "jobs").stdout.splitlines()[0]
    assert re.fullmatch(r"R1: 1 of \d+ addresses", one)


@pytest.mark.interop
@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("_topo/0/R7/x", "_topo/0/R7/x is an address of router R7 only: see amqp-mesh stat addresses --router R7"),
        ("amqp:/_topo/0/all/x", "is an address of every router, not of subscribers"),
        ("_edge/E/x", "_edge/E/x is an address of edge router E"),
        ("/", "/ names nothing; expected an address that clients receive from"),
    ],
)
def test_a_trace_of_what_nobody_subscribes_to_anywhere_says_why(stage: Stage, address: str, said: str) -> None:
    found = call(stage.mesh, "trace", address)
    assert found.returncode == 1
    assert said in found.stderr


def test_top_puts_the_slow_subscriber_before_who_waits_for_it_at_another_router(stage: Stage) -> None:
    rows = as_json(stage, "top", "--json", "--looks", "1")["rows"]
    assert [(row["router"], row["address"], row["is_slow"], row["is_blocked"]) for row in rows] == [
        ("R3", "jobs", True, False),
        ("R1", "jobs", False, True),
    ]
    assert all(row["host"].startswith("127.0.0.1:") for row in rows)
    (row,) = as_json(stage, "top", "--json", "--looks", "1", "--by", "addresses")["rows"]
    assert (row["router"], row["address"], row["links"]) == ("*", "jobs", 2)


@pytest.mark.interop
def test_watch_of_a_whole_router_has_rates_beside_counters_from_the_second_look(stage: Stage) -> None:
    many = ("--count", "100000")
    sending = subprocess.Popen(command(stage.mesh, "R1", ("send", "rated", "x", *many)))
    url = stage.mesh.url("R3")
    taking = subprocess.Popen(command(stage.mesh, "R3", ("receive", "rated", *many)), stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: left(stage) > 0, "messages pass", WAIT_S)
        done = CliRunner().invoke(main, ["stat", "--watch", "--looks", "2", "--interval", "0.5", "--url", url])
    finally:
        for process in (sending, taking):
            process.kill()
            process.wait()
    first, second = done.output.split("\n-- ")
    assert "/s" not in first
    row = next(line.split() for line in second.splitlines() if line.startswith("left the mesh here"))
    assert int(row[-1].removesuffix("/s")) > 0
    assert not next(line for line in second.splitlines() if line.startswith("uptime")).endswith("/s")


def left(stage: Stage) -> int:
    """Messages that have left the mesh at R3."""
    with ManagementClient(stage.mesh.url("R3"), timeout_s=WAIT_S) as client:
        return int(sum(row["deliveriesEgress"] for row in client.query("router.address") if row["key"] == "M0rated"))


@pytest.mark.interop
def test_top_writes_a_table_for_each_look(stage: Stage) -> None:
    lines = call(stage.mesh, "top", "--looks", "2", "--interval", "0.2").stdout.splitlines()
    assert [line[:2] for line in lines].count("--") == 2
    told = [line.split()[:2] for line in lines]
    assert told.count(["SLOW", "R3"]) == 2, lines
    assert told.count(["BLOCKED", "R1"]) == 2, lines


@pytest.mark.interop
def test_what_was_seen_last_is_left_on_a_terminal(stage: Stage) -> None:
    written = on_terminal("top", "--looks", "1", "--url", stage.mesh.url("R1"), columns=140)
    _, shown, left = re.split(SCREEN, written)
    assert "SLOW" in shown
    assert "SLOW" in left


SCREEN = re.compile(r"\x1b\[\?1049[hl]")
"""With what a program goes to a screen of its own, and leaves it."""


def on_terminal(*words: str, columns: int) -> str:
    """All that a command writes to a terminal of so many columns."""
    ours, terminal = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": str(columns), "LINES": "30"}
    done = subprocess.Popen([sys.executable, "-m", "router", *words], stdout=terminal, env=environment)
    os.close(terminal)
    written = written_to(ours)
    os.close(ours)
    done.wait(WAIT_S)
    return written.decode()


@pytest.mark.interop
@pytest.mark.parametrize("words", [("top", "--looks", "1"), ("trace", "jobs", "--seconds", "0")], ids=" ".join)
def test_a_narrow_terminal_is_told_which_columns_it_has_no_room_for(stage: Stage, words: tuple[str, ...]) -> None:
    written = SCREEN.split(on_terminal(*words, "--url", stage.mesh.url("R1"), columns=50))[-1]
    lines = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", written).splitlines()
    assert max(map(len, lines)) <= 50
    assert " ".join(" ".join(lines).split()).count("widen the terminal, or --json") >= 1, lines
    assert any("no room for" in line for line in lines)


@pytest.mark.interop
def test_a_watched_table_has_rates_and_is_written_again(stage: Stage) -> None:
    words = ("stat", "addresses", "--watch", "--looks", "2", "--interval", "0.2", "--wide")
    titles = [line for line in call(stage.mesh, *words).stdout.splitlines() if line.startswith("state")]
    assert len(titles) == 2
    assert all(title in titles[1].split() for title in ("in/s", "out/s", "thru/s"))


@pytest.mark.interop
def test_who_asks_is_not_in_the_tables(stage: Stage) -> None:
    shown = as_json(stage, "stat", "connections", "--json")
    assert [row["role"] for row in shown] == ["inter-router", "normal"]  # the neighbor, and the publisher
    links = as_json(stage, "stat", "links", "--json", "--where", "type=endpoint")
    assert [row["owningAddr"] for row in links] == ["M0jobs"]


# Rows


def row(**given: object) -> dict[str, Any]:
    usual = dict.fromkeys(
        ("isBlocked", "deliveriesStuck", "creditAvailable", "zeroCreditSeconds", "deliveryCount", "rate"), 0
    )
    return {**usual, "container": "c", "owningAddr": "M0x", "linkDir": "in", **given}


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("deliv=7", ["a"]),
        ("deliv>5", ["a", "b"]),
        ("deliv > 7", ["b"]),
        ("deliveryCount<=7", ["a", "c"]),
        ("container!=a", ["b", "c"]),
        ("address~BILL", ["b"]),
        ("address=-", ["c"]),
    ],
)
def test_a_condition_keeps_the_rows_for_which_it_holds(where: str, kept: list[str]) -> None:
    rows = [
        row(container="a", deliveryCount=7),
        row(container="b", deliveryCount=30, owningAddr="M0billing"),
        row(container="c", deliveryCount=0, owningAddr=None),
    ]
    assert [each["container"] for each in RowChoice(where=[where]).apply(LINKS, rows)] == kept


def test_the_largest_numbers_come_first_and_words_by_alphabet() -> None:
    rows = [row(container=name, rate=rate) for name, rate in (("b", 9), ("a", 100), ("c", 20))]
    assert [each["container"] for each in RowChoice(sort="msg/s").apply(LINKS, rows)] == ["a", "c", "b"]
    assert [each["container"] for each in RowChoice(sort="container").apply(LINKS, rows)] == ["a", "b", "c"]
    assert [each["rate"] for each in RowChoice(sort="rate", is_reversed=True).apply(LINKS, rows)] == [9, 20, 100]


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("waits>5", ["b", "c", "d"]),
        ("waits>=3m", ["c", "d"]),
        ("waits<3m10s", ["a", "b"]),
        ("waits=12s", ["b"]),
        ("waits=190", ["c"]),
        ("waits!=12d03h", ["a", "b", "c"]),
        ("waits~m", ["c"]),
    ],
)
def test_a_duration_is_compared_by_its_seconds(where: str, kept: list[str]) -> None:
    rows = [
        row(container=name, zeroCreditSeconds=seconds)
        for name, seconds in (("a", 0), ("b", 12), ("c", 190), ("d", 12 * 86400 + 3 * 3600 + 1))
    ]
    assert [each["container"] for each in RowChoice(where=[where]).apply(LINKS, rows)] == kept


def test_durations_and_times_are_sorted_by_seconds() -> None:
    rows = [row(container=name, zeroCreditSeconds=waits) for name, waits in (("a", 42), ("b", 190), ("c", 12 * 86400))]
    assert [each["container"] for each in RowChoice(sort="waits").apply(LINKS, rows)] == ["c", "b", "a"]
    now = int(time.time())
    ends = [{"one": name, "since": now - ago, "cost": 1, "configuredCost": cost, "state": "up"} for name, ago, cost in
            (("yesterday", 86400, 20), ("now", 0, 3), ("never", now, 100))]  # fmt: skip
    assert [each["one"] for each in RowChoice(sort="since").apply(MESH, ends)] == ["now", "yesterday", "never"]
    costs = [{**each, "cost": cost} for each, cost in zip(ends, (3, 20, 100), strict=True)]
    assert [each["one"] for each in RowChoice(where=["cost>5"], sort="cost").apply(MESH, costs)] == ["never", "now"]


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("since>12:00", ["noon", "late"]),
        ("since<12:00:30", ["long ago", "noon"]),
        ("since>=2021-03-04 05:06:07", ["long ago", "noon", "late"]),
        ("since>2021-03-04 05:06:07", ["noon", "late"]),
        ("since<2021-03-04", []),
        ("since<=2021-03-04 05:07", ["long ago"]),
        ("since~2021", ["long ago"]),
    ],
)
def test_a_time_is_compared_by_when_it_was(where: str, kept: list[str]) -> None:
    noon = datetime.now().astimezone().replace(hour=12, minute=0, second=1)
    rows = [
        {"one": name, "since": int(when.timestamp()), "cost": 1, "configuredCost": 1, "state": "up"}
        for name, when in (
            ("long ago", datetime(2021, 3, 4, 5, 6, 7).astimezone()),
            ("noon", noon),
            ("late", noon.replace(hour=23)),
        )
    ]
    assert [each["one"] for each in RowChoice(where=[where]).apply(MESH, rows)] == kept


@pytest.mark.parametrize("word", ["5", "noon", "25:00", "1764500000"])
def test_what_is_no_time_is_not_compared_with_one(word: str) -> None:
    said = rf"--where since>{word}: `since` is a time: one such as 14:00 or 2026-11-30 14:00 is expected after `>`"
    with pytest.raises(click.UsageError, match=said):
        RowChoice(where=[f"since>{word}"]).apply(MESH, ())


def test_words_are_not_compared_with_a_number() -> None:
    with pytest.raises(click.UsageError, match="--where container>5: `container` is no number; a word is expected"):
        RowChoice(where=["container>5"]).apply(LINKS, [row()])
    duration = "--where waits>long: `waits` is a duration: seconds, or such as 3m10s, are expected after `>`"
    with pytest.raises(click.UsageError, match=duration):
        RowChoice(where=["waits>long"]).apply(LINKS, ())
    with pytest.raises(click.UsageError, match="--where cost>3m: `cost` is a number; one is expected after `>`"):
        RowChoice(where=["cost>3m"]).apply(MESH, ())
    assert RowChoice(where=["container>5"]).apply(LINKS, [row(container="7"), row(container="x")]) == [
        row(container="7")
    ]


def test_rows_that_lack_an_attribute_are_chosen_by_the_others() -> None:
    rows = [
        EntityRow({key: value for key, value in row(container=name).items() if key != "rate"}, "B") for name in "ab"
    ]
    assert [each["container"] for each in RowChoice(match="B").apply(LINKS, rows)] == ["b"]
    assert [each["container"] for each in RowChoice(where=["container=a"], sort="msg/s").apply(LINKS, rows)] == ["a"]
    assert RowChoice(where=["rate>5"]).apply(LINKS, rows) == []


def test_a_wrong_column_is_answered_with_the_nearest_right_one() -> None:
    with pytest.raises(click.UsageError, match=r"no column `delv` in links\. Did you mean 'deliv'\?"):
        RowChoice(sort="delv").apply(LINKS, ())
    with pytest.raises(click.UsageError, match=r"no column `speed` in links\. Did you mean 'msg/s'\?"):
        RowChoice(sort="speed").apply(LINKS, ())
    with pytest.raises(click.UsageError, match="--where deliv: NAME=VALUE is expected"):
        RowChoice(where=["deliv"]).apply(LINKS, ())
    with pytest.raises(click.UsageError, match="--where deliv>abc: `deliv` is a number; one is expected after `>`"):
        RowChoice(where=["deliv>abc"]).apply(LINKS, [row(deliveryCount=7)])
    assert RowChoice(where=["container>a"]).apply(LINKS, [row(container="b")])
    said = CliRunner().invoke(main, ["stat", "links", "--sort", "containr"])
    assert said.exit_code == 2
    assert "Did you mean 'container'?" in said.output


@pytest.mark.parametrize("width", [80, 60, 40])
def test_a_table_fits_the_width_of_a_terminal(width: int) -> None:
    titles = [column.title for column in ROUTERS.columns]
    cells = [["name-of-a-router-" * 3, "up", *["x" * 30] * (len(titles) - 2)]] * 2
    columns, shown, left_out = fitted(ROUTERS.columns, cells, width)
    assert [*(column.title for column in columns), *left_out] == titles
    assert all(sum(map(cell_len, line)) + 2 * (len(line) - 1) <= width for line in shown)
    assert shown[0][0].startswith("name-of-a-r")
