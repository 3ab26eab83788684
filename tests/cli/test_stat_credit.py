"""What `stat --credit` makes of what it was told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from rich.console import Console

from router.cli.flooding_clients import FloodingClient, ask_flooding_clients
from router.cli.management_errors import ManagementError
from router.cli.stat_credit import (
    ADDRESSES,
    ADDRESSES_NAMED,
    PARTIES,
    PARTIES_SHOWN,
    ROLES,
    address_order,
    address_state,
    ask_credit,
    credit_parts,
    first_addresses,
    party_order,
    party_state,
    party_text,
    there_is,
)
from router.management.overdue_outcome_texts import HANGS_S
from router.management.schema import TYPES

QUIET: dict[str, Any] = {
    "treatment": "balanced",
    "hasSubscriber": True,
    "isOpen": True,
    "granted": 0,
    "heldByPublishers": 0,
    "heldByCircuits": 0,
    "lowered": 0,
    "subscriberCount": 1,
    "publisherCount": 0,
    "blockedCount": 0,
    "blockedSeconds": 0,
    "waitingCount": 0,
    "departedCount": 0,
    "oldestWaitSeconds": 0,
}
NOBODY: dict[str, Any] = {
    "treatment": "balanced",
    "connectionId": "1",
    "container": "client",
    "user": "anonymous",
    "host": "",
    "neighbor": None,
    "root": None,
    "granted": 0,
    "brokered": 0,
    "held": 0,
    "lowered": 0,
    "weight": 0,
    "waitingCount": 0,
    "oldestWaitSeconds": 0,
    "unsettledCount": 0,
    "lastOutcomeSeconds": None,
    "unsettledSeconds": None,
    "missedCount": 0,
    "zeroCreditSeconds": None,
    "excludedSeconds": None,
    "isDraining": False,
    "isWithdrawn": False,
}
BLOCKED = {"publisherCount": 3, "blockedCount": 2, "blockedSeconds": 42}


def address(text: str, **changed: object) -> dict[str, Any]:
    key = f"M0{text}"
    return checked({"name": key, "identity": key, "key": key, **QUIET, **changed, "type": ADDRESSES})


def party(role: str, identity: int = 1, text: str = "topic", **changed: object) -> dict[str, Any]:
    fields = {"name": "link", "identity": str(identity), "key": f"M0{text}", "role": role, **NOBODY, **changed}
    return checked({**fields, "type": PARTIES})


def circuit(role: str, **changed: object) -> dict[str, Any]:
    return party(role, **{"neighbor": "B", "root": "C", "container": "B", **changed})  # type: ignore[arg-type]


def checked(entity: dict[str, Any]) -> dict[str, Any]:
    assert set(entity) == set(TYPES[entity["type"]].attributes)
    return entity


def drawn(
    rows: Sequence[dict[str, Any]],
    *,
    limit: int | None = None,
    text: str | None = None,
    width: int = 10000,
    floods: Sequence[FloodingClient] = (),
) -> list[str]:
    console = Console(width=width)
    with console.capture() as capture:
        console.print(*credit_parts("R1", rows, limit=limit, text=text, is_verbose=False, floods=floods), sep="\n")
    return [line.rstrip() for line in capture.get().splitlines()]


# Order and words


def test_blocked_publishers_stand_first_then_what_waits_longest_then_names() -> None:
    found = [
        address("quiet-b"),
        address("quiet-a"),
        address("waits-short", waitingCount=1, oldestWaitSeconds=3),
        address("waits-long", waitingCount=1, oldestWaitSeconds=90),
        address("nobody", **{**BLOCKED, "blockedSeconds": 500}, hasSubscriber=False),
        address("blocked-long", **BLOCKED, oldestWaitSeconds=42, waitingCount=1),
        address("blocked-short", **{**BLOCKED, "blockedSeconds": 2}, oldestWaitSeconds=2, waitingCount=1),
        address("just-used-up", publisherCount=1, blockedCount=1),
    ]
    assert [entity["key"][2:] for entity in sorted(found, key=address_order)] == [
        *("blocked-long", "blocked-short", "nobody", "waits-long", "waits-short"),
        *("just-used-up", "quiet-a", "quiet-b"),
    ]


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({}, ""),
        ({"publisherCount": 1, "blockedCount": 1}, ""),
        ({"waitingCount": 1}, "waiting"),
        (BLOCKED, "blocked"),
        ({**BLOCKED, "isOpen": False}, "closed"),
        ({**BLOCKED, "isOpen": False, "hasSubscriber": False}, "no subscriber"),
    ],
)
def test_the_state_of_an_address_is_a_word(changed: dict[str, Any], word: str) -> None:
    assert address_state(address("topic", **changed)) == word


@pytest.mark.parametrize(
    ("found", "word", "text"),
    [
        (party("subscriber"), "no credit", "subscriber client"),
        (party("subscriber", container=""), "no credit", "subscriber -"),
        (party("subscriber", user="ann", host="10.0.0.7:4000"), "no credit", "subscriber ann/client (10.0.0.7:4000)"),
        (party("subscriber", granted=9, brokered=9, unsettledCount=2), "", "subscriber client, 2 unsettled"),
        (party("subscriber", granted=9, brokered=9, unsettledSeconds=HANGS_S - 1), "", "subscriber client"),
        (party("subscriber", granted=9, brokered=9, unsettledSeconds=HANGS_S), "hangs", "subscriber client"),
        (party("subscriber", granted=9, brokered=0), "", "subscriber client, its connection is full"),
        (party("subscriber", granted=9, brokered=4), "", "subscriber client, publishers get 4 of it now"),
        (party("subscriber", isWithdrawn=True), "withdrawn", "subscriber client"),
        (party("subscriber", granted=1, brokered=1, isDraining=True), "draining", "subscriber client"),
        (party("subscriber", excludedSeconds=0, missedCount=7), "excluded", "subscriber client, 7 missed"),
        (circuit("circuit out"), "", "circuit out to B, egress C"),
        (circuit("circuit out", weight=2), "no credit", "circuit out to B, egress C, weight 2"),
        (circuit("circuit out", granted=1, weight=2), "", "circuit out to B, egress C, weight 2"),
        (circuit("circuit out", granted=1, root="B"), "", "circuit out to B"),
        (circuit("circuit out", granted=1, treatment="multicast"), "", "circuit out to B, ingress C"),
        (circuit("circuit in", weight=3), "", "circuit in from B, egress C, weight 3"),
        (circuit("circuit in", held=1, isDraining=True), "draining", "circuit in from B, egress C"),
        (circuit("window", connectionId=None, container=None), "no credit", "window to B, egress C"),
        (party("publisher", held=1), "", "publisher client"),
        (party("publisher", held=2, weight=1, lowered=3), "busy", "publisher client, 3 in quarantine"),
        (party("publisher", zeroCreditSeconds=0, weight=1), "busy", "publisher client"),
        (party("publisher", zeroCreditSeconds=1, weight=1), "blocked", "publisher client"),
    ],
)
def test_each_party_has_a_word_and_a_text(found: dict[str, Any], word: str, text: str) -> None:
    assert party_state(found) == word
    assert party_text(found, is_verbose=False) == text


def test_the_numbers_of_connection_and_link_are_shown_when_asked_for() -> None:
    assert party_text(party("publisher", 7), is_verbose=True) == "publisher client, connection 1, link 7"
    window = circuit("window", connectionId=None, container=None)
    assert party_text(window, is_verbose=True) == "window to B, egress C"


def test_who_grants_stands_before_who_holds_and_who_has_nothing_for_longest_first() -> None:
    found = [
        party("publisher", 10, held=5),
        party("publisher", 9, zeroCreditSeconds=2),
        party("publisher", 8, zeroCreditSeconds=60),
        party("publisher", 2, held=1),
        party("subscriber", 3, granted=4),
        party("subscriber", 4),
        *(circuit(role, identity=20 + number) for number, role in enumerate(reversed(ROLES[1:4]))),
    ]
    ordered = sorted(found, key=party_order)
    assert [each["role"] for each in ordered] == ["subscriber", *ROLES[:4], *["publisher"] * 4]
    assert [each["identity"] for each in ordered if each["role"] in ("subscriber", "publisher")] == [
        *("4", "3"),
        *("8", "9", "2", "10"),
    ]


# The table

SCENE = [
    address("orders", **BLOCKED, waitingCount=2, oldestWaitSeconds=41, lowered=1, departedCount=1),
    circuit("circuit out", text="orders", root="B", weight=2, unsettledCount=3),
    party("publisher", 5, "orders", container="api-1", zeroCreditSeconds=42, waitingCount=1, oldestWaitSeconds=41),
    party("publisher", 6, "orders", container="api-2", held=1),
    address("quiet", granted=10, heldByPublishers=2, heldByCircuits=3, treatment="closest"),
    party("subscriber", 9, "quiet", container="worker", granted=10, brokered=10),
]


def test_an_address_is_followed_by_those_who_grant_and_those_who_hold() -> None:
    text = "orders, balanced, 2 of 3 publishers blocked, 1 message of publishers that left, 1 in quarantine"
    assert drawn(SCENE) == [
        "R1: 2 addresses, 1 with blocked publishers",
        "state      granted  held  waits  for  who",
        f"blocked          0     0      2  42s  {text}",
        "no credit        0                      circuit out to B, weight 2, 3 unsettled",
        "blocked                0      1  42s    publisher api-1",
        "                       1                publisher api-2",
        "-               10     5      0    -  quiet, closest",
        "                10                      subscriber worker",
    ]


def test_a_flood_is_named_above_an_address_that_waits_for_it_or_is_asked_for() -> None:
    flood = FloodingClient(router="C", sentence="client batch (h:1) sends faster", about=("address orders",))
    said = "flood at C: client batch (h:1) sends faster"
    assert drawn(SCENE, floods=[flood])[1] == said
    quiet = attrs.evolve(flood, about=("address quiet",))
    assert said not in drawn(SCENE, floods=[quiet])
    assert drawn(SCENE[-2:], floods=[quiet], text="quiet")[1] == said


def test_a_flood_is_named_at_its_own_router_also_where_nothing_waits() -> None:
    flood = FloodingClient(router="R1", sentence="client batch (h:1) sends faster", about=("address far",))
    said = "flood at R1: client batch (h:1) sends faster"
    assert drawn(SCENE[-2:], floods=[flood])[1] == said
    assert said not in drawn(SCENE[-2:], floods=[flood], text="quiet")


@pytest.mark.parametrize("width", [80, 120])
def test_in_a_narrow_terminal_only_the_last_column_is_folded(width: int) -> None:
    long = "openstack.org/om/rpc/anycast/exchange/" + "topic" * 12
    rows = [address(long, **BLOCKED), party("publisher", 1, long, container="c" * 70, zeroCreditSeconds=42)]
    lines = drawn(rows, width=width)
    assert max(map(len, lines)) <= width
    at = lines[1].index("who")
    assert "".join(line[at:].strip() for line in lines[2:]).replace(" ", "") == (
        f"{long},balanced,2of3publishersblockedpublisher{'c' * 70}"
    )


def test_a_crowd_is_counted_unless_its_address_is_asked_for() -> None:
    rows = [address("topic"), *(party("publisher", number, held=1) for number in range(PARTIES_SHOWN + 3))]
    assert len(drawn(rows)) == 3 + PARTIES_SHOWN + 1
    assert drawn(rows)[-1].strip() == "3 more: publisher"
    assert len(drawn(rows, text="topic")) == 3 + PARTIES_SHOWN + 3


def test_addresses_beyond_the_limit_are_counted() -> None:
    rows = [address(f"b{number}", **BLOCKED) for number in range(3)] + [address(f"q{number}") for number in range(5)]
    lines = drawn(rows, limit=2)
    assert lines[0] == "R1: 8 addresses, 3 with blocked publishers"
    assert lines[-1] == "6 more addresses, 1 with blocked publishers: see --limit and --address"
    assert len(lines) == 5
    assert len(drawn(rows, limit=8)) == len(drawn(rows)) == 2 + 8
    assert [row["key"] for row in first_addresses(rows, 2)] == ["M0b0", "M0b1"]


def test_nobody_is_said_in_words() -> None:
    assert drawn([]) == ["R1: 0 addresses, 0 with blocked publishers"]
    names = [f"v{number}/x" for number in range(ADDRESSES_NAMED + 2)]
    assert there_is(names) == "there is v0/x, v1/x, v2/x, v3/x, v4/x and 2 more"
    assert drawn([], text="x\x1b[2J") == [r"R1: nobody subscribes to x\x1b[2J here, and no publisher's link names it"]


def test_names_of_peers_move_no_cursor_and_are_no_markup() -> None:
    rows = [address("\x1b[2J[red]x"), party("publisher", 1, "\x1b[2J[red]x", container="\a[bold]y", held=1)]
    lines = drawn(rows)
    assert lines[2].endswith(r"\x1b[2J[red]x, balanced")
    assert lines[3].endswith(r"publisher \x07[bold]y")


# Asking


class FakeClient:
    """A router with what it is given; it remembers what it was asked."""

    def __init__(self, *rows: dict[str, Any]) -> None:
        self.rows = rows
        self.asked: list[tuple[str, str | None]] = []

    def query(self, kind: str, *, router: str | None, key: str | None = None) -> list[dict[str, Any]]:
        assert router is None
        self.asked.append((kind, key))
        return [row for row in self.rows if row["type"] == kind and key in (None, row["key"])]


def ask(client: FakeClient, *, text: str | None = None, limit: int | None = None) -> list[str]:
    found = ask_credit(client, "R1", router=None, text=text, limit=limit)  # type: ignore[arg-type]
    return [row["identity"] for row in found]


ROWS = (
    address("a"),
    address("b", **BLOCKED),
    address("c"),
    party("publisher", 1, "c", held=1),
    party("subscriber", 2, "a"),
    party("publisher", 3, "b", zeroCreditSeconds=42),
    party("publisher", 4, "a", held=1),
)


def test_all_is_asked_at_once_and_each_address_followed_by_its_parties() -> None:
    client = FakeClient(*ROWS)
    assert ask(client) == ["M0b", "3", "M0a", "2", "4", "M0c", "1"]
    assert client.asked == [(ADDRESSES, None), (PARTIES, None)]
    assert ask(client, limit=3) == ask(client)


def test_of_many_addresses_only_those_shown_are_asked_for_their_parties() -> None:
    client = FakeClient(*ROWS)
    assert ask(client, limit=1) == ["M0b", "3", "M0a", "M0c"]
    assert client.asked == [(ADDRESSES, None), (PARTIES, "M0b")]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("a", ["M0a"]),
        ("amqp://host/a/", ["M0a"]),
        ("temp.x", ["M0temp.x", "Ltemp.x", "Rtemp.x"]),
        ("R2/temp.x", ["M0R2/temp.x", "LR2/temp.x", "RR2/temp.x"]),
        ("amqp:/_topo/0/R1/temp.x", ["Ltemp.x"]),
        ("_topo/0/R2/temp.x", ["RR2/temp.x"]),
        ("_topo/0/R2", []),
    ],
)
def test_one_address_is_asked_for_as_clients_write_it(text: str, keys: list[str]) -> None:
    client = FakeClient(*ROWS)
    assert ask(client, text=text) == (["M0a", "2", "4"] if keys == ["M0a"] else [])
    assert [key for kind, key in client.asked if kind == ADDRESSES] == keys


# Asking for floods


class FloodedMesh:
    """R1, R2 and R3, of which R3 is silent: at R2 a client floods. It remembers who was asked."""

    sees_all = True

    def __init__(self) -> None:
        self.asked: list[str] = []

    def routers(self) -> list[str]:
        return ["R1", "R2", "R3"]

    def query(self, kind: str, attributes: Sequence[str], *, router: str | None) -> list[dict[str, Any]]:
        assert kind == "amqp-mesh.problem"
        self.asked.append(router or "R1")
        if router == "R3":
            raise ManagementError("R3 is silent")
        flood = {"kind": "publisher-floods", "subject": "batch", "sentence": "batch floods", "closeness": 1}
        return [flood] if router == "R2" else []


@pytest.mark.parametrize(
    ("shown", "silent", "is_waited_for", "asked"),
    [
        (["R1"], [], False, ["R1"]),
        (["R1"], [], True, ["R1", "R2", "R3"]),
        (["R2"], [], False, ["R2", "R1", "R3"]),
        (["R1", "R2"], ["R3"], True, ["R1", "R2"]),
    ],
)
def test_each_router_is_asked_for_floods_once_and_others_only_for_a_cause(
    shown: list[str], silent: list[str], is_waited_for: bool, asked: list[str]
) -> None:
    mesh = FloodedMesh()
    found = ask_flooding_clients(mesh, "R1", shown=shown, silent=silent, is_waited_for=is_waited_for)  # type: ignore[arg-type]
    assert mesh.asked == asked
    assert [each.router for each in found] == (["R2"] if "R2" in asked else [])
