"""What is wrong is said in sentences: a function of a snapshot, and the scan that takes it from a real router."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import pytest

from router.core.ids_and_conditions import RouterId
from router.management.snapshot import (
    ConnectorRow,
    CreditRow,
    LinkRow,
    MeshLinkRow,
    NodeRow,
    PartyRow,
    ProblemRow,
    RouterRow,
    Row,
)
from router.mesh_presence import ExpectedMesh
from router.security.certificate_expiry import CertificateExpiry, UnusableFile
from router.views.file_problems import DAY_S
from router.views.mesh_rows import AT_ONCE, mesh_link_rows, node_rows
from router.views.problem_inputs import (
    AddressTrouble,
    DroppedMessages,
    FullListener,
    HeldConnection,
    Problem,
    ProblemInputs,
    RouterRefusal,
    WrongRole,
)
from router.views.problem_snapshots import PATIENCE_S, RECENT_S, WAIT_S, ProblemScanner
from router.views.problems import UNHEARD_S, problems
from router.views.runtime import RuntimeView
from tests.helpers.engine import Bench
from tests.helpers.peer import message
from tests.helpers.work import instructions
from tests.management.fakes import sample

NOW = 1_800_000_000.0


def row(kind: type[Row], **changed: object) -> Any:
    healthy = {"reason": None, "recent_flaps": 0, "is_draining": False}
    fields = {field.name for field in attrs.fields(kind)}
    return attrs.evolve(sample(kind, 1), **{key: value for key, value in (healthy | changed).items() if key in fields})


def said(**parts: Any) -> list[tuple[str, str, str]]:
    found = problems(ProblemInputs(router="R1", now=NOW, **parts))
    assert all(each.command for each in found)
    return [(each.kind, each.subject, each.sentence) for each in found]


def exhaust(work: Iterator[None]) -> int:
    """Do it all. Returns: pauses that it made."""
    return sum(1 for _ in work)


def credit(**changed: object) -> CreditRow:
    found: CreditRow = row(
        CreditRow, blocked_count=2, publisher_count=3, waiting_count=2, blocked_seconds=9, has_subscriber=True
    )
    return attrs.evolve(found, **changed)  # type: ignore[arg-type]


def party(role: str, **changed: object) -> PartyRow:
    found: PartyRow = row(PartyRow, role=role, user="ann", host="h:9", granted=0, unsettled_count=0)
    return attrs.evolve(found, **changed)  # type: ignore[arg-type]


def test_a_healthy_router_has_no_problem() -> None:
    healthy = row(NodeRow, is_reachable=True)
    assert said(nodes=[healthy], links=[row(MeshLinkRow, state="up")]) == []


def test_many_that_no_file_names_are_one_problem_beside_those_that_it_names() -> None:
    made_up = [
        row(NodeRow, id=f"X{number}", is_reachable=False, is_configured=False, since=NOW - 60 - number, last_flap=1)
        for number in range(4)
    ]
    named = row(NodeRow, id="R3", is_reachable=False, is_configured=True, reason="lost", since=NOW - 90, last_flap=1)
    found = said(nodes=[*made_up, named])
    assert ("router-absent", "R3", "router R3 is absent: lost") in found
    words = "4 routers that no mesh file names are absent, last of all X0, X1, X2"
    assert sorted(sentence for _, _, sentence in found) == [words, "router R3 is absent: lost"]
    assert len(said(nodes=[*made_up[:3], named])) == 4
    assert len(said(nodes=made_up)) == 4, "there is no mesh file"
    failing = row(ConnectorRow, router="X0", connection_status="FAILED", connection_msg="refused")
    assert len(said(nodes=[*made_up, named], connectors=[failing])) == 5, "of X0 it is said why it can't be reached"


def test_without_a_file_hundreds_are_one_problem() -> None:
    lost = [
        row(NodeRow, id=f"X{number}", is_reachable=False, is_configured=False, since=NOW - 60, last_flap=1)
        for number in range(101)
    ]
    assert len(said(nodes=lost[:100])) == 100
    assert len(said(nodes=lost)) == 1


def test_twice_as_many_lost_routers_cost_twice_as_much() -> None:
    def cost(count: int) -> int:
        nodes = [
            row(NodeRow, id=f"X{number}", is_reachable=False, is_configured=True, since=NOW - 60, last_flap=1)
            for number in range(count)
        ]
        links = [
            row(MeshLinkRow, one="B", other=f"X{number}", state="absent", since=NOW - 60, last_flap=1)
            for number in range(count)
        ]
        return instructions(lambda: said(nodes=nodes, links=links))

    assert cost(400) < 2.5 * cost(200)


@pytest.mark.parametrize(
    ("age", "dialled", "is_missed"), [(1.0, (), False), (UNHEARD_S, (), True), (1.0, ("R2", "R3"), True)]
)
def test_what_was_never_seen_is_missed_some_seconds_after_the_start(
    age: float, dialled: Sequence[str], is_missed: bool
) -> None:
    unseen = {"since": 100.0, "last_flap": None}
    node = row(NodeRow, id="R3", is_reachable=False, reason="never seen since this router started", **unseen)
    link = row(
        MeshLinkRow, one="R1", other="R2", state="absent", reason="its ends have never seen each other", **unseen
    )
    failing = [row(ConnectorRow, router=each, connection_status="FAILED", connection_msg="no") for each in dialled]
    found = ProblemInputs(router="R1", now=100.0 + age, nodes=[node], links=[link], connectors=failing)
    assert [each.kind for each in problems(found)] == (["router-absent", "link-absent"] if is_missed else [])


@pytest.mark.parametrize(
    ("parts", "kind", "subject", "sentence"),
    [
        (
            {"nodes": [row(NodeRow, id="R3", is_reachable=True, is_draining=True)]},
            "router-drained",
            "R3",
            "router R3 is drained, or being drained: clients and paths go elsewhere until it serves again",
        ),
        (
            {"nodes": [row(NodeRow, id="R3", is_reachable=False, reason="lost by its neighbors: R2")]},
            "router-absent",
            "R3",
            "router R3 is absent: lost by its neighbors: R2",
        ),
        (
            {
                "nodes": [
                    row(
                        NodeRow,
                        id="R3",
                        is_reachable=True,
                        recent_flaps=3,
                        flap_count=7,
                        last_flap=5,
                        last_flap_reason="its connection ended: timed out",
                    )
                ]
            },
            "flapping",
            "router R3",
            (
                "router R3 comes and goes: lost 3 times in five minutes, 7 times in all;"
                " the last time: its connection ended: timed out"
            ),
        ),
        (
            {
                "nodes": [
                    row(
                        NodeRow,
                        id="R3",
                        is_reachable=True,
                        recent_flaps=1,
                        since=8,
                        last_flap=5,
                        last_flap_reason="its connection ended: timed out",
                    )
                ],
                "links": [row(MeshLinkRow, name="R1 - R3", one="R1", other="R3", state="up", recent_flaps=1)],
            },
            "lost-for-a-while",
            "router R3",
            "router R3 was lost for 3 s, and is back; the reason: its connection ended: timed out",
        ),
        (
            {"connectors": [row(ConnectorRow, name="c", host="h", port="1", router="R2", connection_msg="timed out")]},
            "connector-failed",
            "c",
            "the connector h:1 to router R2 finds no neighbor: timed out",
        ),
        (
            {"wrong_roles": [WrongRole(container="W", host="h", reason="this listener is for clients", since=NOW)]},
            "wrong-role",
            "W",
            "W connects from h to the wrong listener: this listener is for clients",
        ),
        (
            {"refusals": [RouterRefusal(container="", host="h", reason="SASL: user B: no such user", since=NOW)]},
            "router-refused",
            "h",
            "whoever connects as a router from h is refused: SASL: user B: no such user",
        ),
        (
            {"refusals": [RouterRefusal(container="R2", host="h", reason="router R2 is of mesh two", since=NOW)]},
            "router-refused",
            "R2",
            "router R2 from h is refused: router R2 is of mesh two",
        ),
        (
            {"duplicate_ids": ["X"]},
            "duplicate-router-id",
            "X",
            (
                "two routers call themselves X: each overrules what the other says of its links and addresses; stop one"
                " of them, or give it another id"
            ),
        ),
        (
            {"held": [HeldConnection(identity="1", container="c", host="h", charged_bytes=2**21, is_read=False)]},
            "memory",
            "c",
            "client c (h) sends more than is taken: 2.0 MiB of it are held, and no message more is read",
        ),
        (
            {"full_listeners": [FullListener(name="l", count=40, most=64, is_short_of_files=True)]},
            "listener-full",
            "l",
            (
                "listener l has 40 connections, and the process may have no more files open than 64 (LimitNOFILE of its"
                " unit, ulimit -n): new ones are closed"
            ),
        ),
        (
            {"full_listeners": [FullListener(name="l", count=3, most=3)]},
            "listener-full",
            "l",
            "listener l has 3 connections, as many as max_connections allows: new ones are closed",
        ),
        (
            {"unusable": [UnusableFile(subject="TLS profile t", reason="f.pem: no certificate")]},
            "unusable-file",
            "TLS profile t",
            "f.pem: no certificate; what was read before counts still, and after a restart nothing will",
        ),
        (
            {"dropped": [DroppedMessages(text="a", count=4, last=NOW)]},
            "dropped",
            "a",
            "pre-settled messages or copies of a are dropped, 4 in all, the last within a minute",
        ),
        (
            {"certificates": [CertificateExpiry(file="f.pem", subject="R1", ends=NOW + 3.5 * DAY_S)]},
            "certificate",
            "f.pem",
            "the certificate of R1 in f.pem ends on 2027-01-18, in 3 days",
        ),
        (
            {"certificates": [CertificateExpiry(file="f.pem", subject="R1", ends=NOW + 1.5 * DAY_S)]},
            "certificate",
            "f.pem",
            "the certificate of R1 in f.pem ends on 2027-01-16, in a day",
        ),
        (
            {"certificates": [CertificateExpiry(file="f.pem", subject="R1", ends=NOW + 0.4 * DAY_S)]},
            "certificate",
            "f.pem",
            "the certificate of R1 in f.pem ends on 2027-01-15, within a day",
        ),
    ],
)
def test_each_trouble_has_its_sentence(parts: dict[str, Any], kind: str, subject: str, sentence: str) -> None:
    assert said(**parts) == [(kind, subject, sentence)]


def test_blocked_publishers_are_told_whose_credit_they_wait_for() -> None:
    local = party("subscriber", container="worker-7", unsettled_count=5)
    far = party("circuit out", root="R3")
    trouble = AddressTrouble(text="jobs", credit=credit(), grantors=[local, far])
    assert said(addresses=[trouble]) == [
        (
            "publishers-blocked",
            "jobs",
            (
                "2 of 3 publishers of jobs can't send, 2 messages wait at router R1: subscriber ann/worker-7 (h:9)"
                " grants no credit and has 5 messages without outcome, the last outcome 1 s ago;"
                " its subscribers at router R3 grant none: ask there"
            ),
        )
    ]
    nobody = attrs.evolve(trouble, credit=credit(has_subscriber=False, waiting_count=0), grantors=[])
    assert said(addresses=[nobody]) == [
        ("no-subscriber", "jobs", "2 of 3 publishers of jobs can't send: nobody subscribes")
    ]


def test_a_subscriber_that_has_granted_credit_just_now_is_not_said_to_grant_none() -> None:
    idle = party("subscriber", container="worker-7", granted=3)
    busy = party("subscriber", container="worker-8", granted=2, unsettled_count=1)
    waits = AddressTrouble(text="jobs", credit=credit(blocked_count=0), grantors=[idle, busy])
    ((_, _, sentence),) = said(addresses=[waits])
    assert sentence.endswith(
        ": subscriber ann/worker-8 (h:9) has 1 message without outcome, the last outcome 1 s ago:"
        " more come than it takes"
        "; subscriber ann/worker-7 (h:9) has credit for 3 more"
    )


def test_a_slow_subscriber_is_told_of_where_it_is_attached() -> None:
    local = party("subscriber", container="worker-7", unsettled_count=1)
    trouble = AddressTrouble(text="jobs", credit=credit(blocked_count=0), grantors=[local], behind=2, since=NOW - 7)
    (found,) = problems(ProblemInputs(router="R1", now=NOW, addresses=[trouble]))
    assert (found.kind, found.since) == ("subscriber-slow", NOW - 7)
    assert found.sentence.startswith("2 publishers of jobs at other routers can't send: subscriber ann/worker-7 (h:9) ")


def test_links_of_an_absent_router_are_no_problem_of_their_own() -> None:
    link = row(MeshLinkRow, name="R1 - R3", one="R1", other="R3", state="absent", reason="R3 is absent")
    absent = row(NodeRow, id="R3", is_reachable=False)
    assert [kind for kind, *_ in said(nodes=[absent], links=[link])] == ["router-absent"]
    assert [kind for kind, *_ in said(links=[link])] == ["link-absent"]


def test_commands_can_be_pasted_into_a_shell_whatever_names_peers_chose() -> None:
    name = "B;touch${IFS}x"
    found = problems(
        ProblemInputs(
            router=name,
            now=NOW,
            nodes=[row(NodeRow, id=name, state="up", is_reachable=True, is_draining=True)],
            addresses=[AddressTrouble(text="y$(touch x) *", credit=credit(), grantors=[])],
            certificates=[
                CertificateExpiry(file="/etc/my mesh/a$b.pem", subject="me", ends=NOW),
                CertificateExpiry(file="late list", subject="ca", ends=NOW + 9, is_list=True, warned_s=10),
                CertificateExpiry(file="new list", subject="ca", ends=NOW + 11, is_list=True, warned_s=10),
            ],
            dropped=[DroppedMessages(text="z", count=1, last=NOW)],
        )
    )
    assert {each.command for each in found} == {
        f"amqp-mesh stat credit --router '{name}' --address 'y$(touch x) *'",
        f"amqp-mesh stat addresses --router '{name}'",
        "openssl x509 -in '/etc/my mesh/a$b.pem' -noout -enddate",
        "openssl crl -in 'late list' -noout -nextupdate",
        f"amqp-mesh resume '{name}'",
    }


def test_the_command_is_for_the_router_that_knows_most_and_a_cause_stands_once() -> None:
    absent = row(NodeRow, id="R3", is_reachable=False, recent_flaps=1)
    refused = row(ConnectorRow, name="c", router="R3", connection_status="FAILED", connection_msg="refused")

    def found(*, own_link: bool, connectors: Sequence[ConnectorRow]) -> Problem:
        one = "R1" if own_link else "R2"
        link = row(MeshLinkRow, name=f"{one} - R3", one=one, other="R3", state="absent", recent_flaps=1)
        snapshot = ProblemInputs(router="R1", now=NOW, nodes=[absent], links=[link], connectors=connectors)
        (only,) = problems(snapshot)
        return only

    tries, beside, hears = (
        found(own_link=True, connectors=[refused]),
        found(own_link=True, connectors=[]),
        found(own_link=False, connectors=[]),
    )
    assert [each.closeness for each in (tries, beside, hears)] == [2, 1, 0]
    assert tries.command == "amqp-mesh stat connectors --router R1"
    assert beside.command == "amqp-mesh stat routers --router R1"


def test_who_is_refused_unnamed_belongs_to_the_absence_that_it_explains() -> None:
    reason = "TLS: the certificate of the peer was revoked"
    told = f"never seen since this router started; a router from h was refused here, which may be it: {reason}"
    gone = row(NodeRow, id="R2", is_reachable=False, is_configured=True, reason=told, since=NOW - 60)
    refusal = RouterRefusal(container="", host="h", reason=reason, since=NOW - 60)
    absent, refused = problems(ProblemInputs(router="R1", now=NOW, nodes=[gone], refusals=[refusal]))
    assert (absent.kind, refused.kind) == ("router-absent", "router-refused")
    assert set(absent.explains) & set(refused.about)


def test_a_link_that_was_lost_is_looked_at_where_it_ends() -> None:
    def told(one: str, state: str, recent: int, **more: Any) -> list[Problem]:
        link = row(MeshLinkRow, name="x", one=one, other="R3", state=state, recent_flaps=recent, since=8, last_flap=5)
        return problems(ProblemInputs(router="R1", now=NOW, links=[link], **more))

    seen = [
        each
        for one, flapping in (("R1", 2), ("R2", 3))
        for state in (("absent", 1), ("up", flapping - 1), ("up", flapping))
        for each in told(one, *state)
    ]
    assert [(each.kind, each.closeness, each.command[-2:]) for each in seen] == [
        ("link-absent", 1, "R1"),
        ("lost-for-a-while", 1, "R1"),
        ("flapping", 1, "R1"),
        ("link-absent", 0, "R2"),
        ("flapping", 0, "R2"),
    ]
    refused = row(ConnectorRow, name="c", router="R3", connection_status="FAILED", connection_msg="refused")
    (dialled,) = told("R1", "absent", 1, connectors=[refused])
    assert (dialled.closeness, dialled.command) == (2, "amqp-mesh stat connectors --router R1")


def test_links_that_were_lost_with_a_router_are_not_told_of() -> None:
    back = row(NodeRow, id="R3", is_reachable=True, recent_flaps=1, since=8, last_flap=5)
    link = row(MeshLinkRow, name="x", one="R1", other="R3", state="up", recent_flaps=1, since=8, last_flap=5)
    assert [subject for _, subject, _ in said(nodes=[back], links=[link])] == ["router R3"]
    assert said(nodes=[back]) == [], "who is no neighbor doesn't tell"
    again = attrs.evolve(link, recent_flaps=2)
    assert [kind for kind, *_ in said(nodes=[back], links=[again])] == ["flapping", "lost-for-a-while"]


def test_what_a_peer_chose_is_escaped() -> None:
    wrong = WrongRole(container="W\x1b[2J", host="h", reason="r\nr", since=NOW)
    (found,) = said(wrong_roles=[wrong])
    assert all(text.isprintable() for text in found)


def test_a_subscriber_that_stops_granting_is_found_at_both_ends() -> None:
    bench = Bench()
    a, b = bench.mesh(("A", "B"))
    scans = {router.me: ProblemScanner(router, [], []) for router in (a, b)}
    publisher, subscriber = bench.client(a), bench.client(b)
    receiver = subscriber.receiver("jobs", credit=2)
    bench.run()
    sender = publisher.sender("jobs")
    bench.run()
    for _ in range(3):
        if sender.credit > 0:
            sender.send(message("x"))
            bench.run()
    assert receiver.credit == 0
    for _ in range(2):
        for scan in scans.values():
            exhaust(scan.look())
        bench.advance(PATIENCE_S + 1)
    (at_ingress,), (at_egress,) = (scans[each].problems() for each in (a.me, b.me))
    assert (at_ingress.closeness, at_egress.closeness) == (0, 1)
    assert (at_ingress.kind, at_egress.kind) == ("publishers-blocked", "subscriber-slow")
    assert "router B grant none" in at_ingress.sentence
    assert "grants no credit and has 2 messages without outcome" in at_egress.sentence
    (shown,) = scans[b.me].rows()
    assert isinstance(shown, ProblemRow)
    receiver.flow(5)
    bench.run()
    assert not scans[a.me].problems() + scans[b.me].problems()


@pytest.mark.parametrize("is_blocked_before", [False, True])
def test_the_router_that_the_last_subscribers_were_lost_with_is_remembered(is_blocked_before: bool) -> None:
    bench = Bench()
    a, b = bench.router("A"), bench.router("B")
    wire = bench.join(a, b)
    scan = ProblemScanner(a, [], [])
    bench.client(b).receiver("jobs", credit=0 if is_blocked_before else 1)
    bench.run()
    bench.client(a).sender("jobs")
    bench.run()
    exhaust(scan.look())
    wire.cut()
    bench.run()
    exhaust(scan.look())
    # By then link state and addresses of B are forgotten.
    bench.advance(2 * a.settings.link_state.remote_ls_max_age_s)
    (found,) = [each for each in scan.problems() if each.kind == "no-subscriber"]
    assert found.sentence == ("1 of 1 publisher of jobs can't send: its subscribers were at router B, which is absent")
    assert found.about == ["address jobs", "router B"]
    bench.join(a, b)
    bench.advance(1.0)
    assert not [each for each in scan.problems() if each.kind == "no-subscriber"]


def test_a_slow_subscriber_says_when_it_last_settled_and_stays_one_problem() -> None:
    bench = Bench()
    a = bench.router("A")
    view = RuntimeView(a, [], [])
    subscriber = bench.client(a).receiver("jobs", credit=1)
    bench.run()
    sender = bench.client(a).sender("jobs")
    bench.run()

    def pass_time(seconds: int) -> None:
        for _ in range(seconds):
            exhaust(view.look())
            bench.advance(1.0)

    def work() -> None:
        """Send what may be sent, settle it, and grant one more."""
        while sender.credit > 0:
            sender.send(message("x"))
            bench.run()
        subscriber.messages.pop().settle()
        subscriber.flow(1)
        bench.run()

    pass_time(2)
    begun = a.clock()
    for _ in range(4):
        work()
        while sender.credit > 0:
            sender.send(message("x"))
            bench.run()
        pass_time(4)
        (found,) = view.problem_scan.problems()
        assert re.search(r"1 message without outcome, the last outcome [34] s ago", found.sentence)
        assert found.since - view._offset() <= begun + 2, "that of the first time"
    work()
    assert not view.problem_scan.problems()
    pass_time(int(RECENT_S))
    later = a.clock()
    while sender.credit > 0:
        sender.send(message("x"))
        bench.run()
    pass_time(4)
    (found,) = view.problem_scan.problems()
    assert found.since - view._offset() >= later - 1, "another one"


def test_that_nobody_subscribes_begins_when_the_last_subscriber_goes() -> None:
    bench = Bench()
    a = bench.router("A")
    view = RuntimeView(a, [], [])
    bench.client(a).sender("jobs")
    slow = bench.client(a).receiver("jobs", credit=0)
    bench.run()

    def found_after(seconds: int) -> tuple[str, float]:
        """The one problem, and the time of the router's clock since which it is there."""
        for _ in range(seconds):
            exhaust(view.look())
            bench.advance(1.0)
        (found,) = view.problem_scan.problems()
        assert found.since is not None
        return found.kind, found.since - view._offset()

    began = a.clock()
    assert found_after(20) == ("publishers-blocked", pytest.approx(began, abs=2))
    slow.close()
    bench.run()
    gone = a.clock()
    assert found_after(20) == ("no-subscriber", pytest.approx(gone, abs=2))
    slow = bench.client(a).receiver("jobs", credit=0)
    bench.run()
    assert found_after(3) == ("publishers-blocked", pytest.approx(began, abs=2)), "it has waited all the time"
    slow.close()
    bench.run()
    assert found_after(3) == ("no-subscriber", pytest.approx(gone, abs=2)), "one that comes and goes is one problem"


def test_only_what_can_be_a_problem_has_a_row_and_the_mesh_is_looked_at_in_pieces() -> None:
    bench = Bench()
    a, b = bench.mesh(("A", "B"))
    scan = ProblemScanner(a, [], [])
    taken = scan.snapshot()
    assert (taken.nodes, taken.links) == ([], [])  # a sound mesh
    absent = [RouterId(f"R{number:03}") for number in range(200)]
    links = {(RouterId("A"), router): 1 for router in absent} | {(RouterId("A"), RouterId("B")): 1}
    expected = ExpectedMesh(name="mesh", routers=dict.fromkeys([a.me, b.me, *absent]), links=links)
    a.mesh_presence.expect(expected, a.clock())
    bench.advance(UNHEARD_S)
    taken = scan.snapshot()
    everything = attrs.evolve(taken, nodes=list(node_rows(a, 0)), links=list(mesh_link_rows(a, 0)))
    assert len(everything.nodes) == 202
    assert len(taken.nodes) == 200
    assert [(each.kind, each.subject) for each in scan.problems()] == [
        (each.kind, each.subject) for each in problems(everything)
    ]
    assert sum(1 for _ in scan.find_problems()) >= (202 + 201) // AT_ONCE - 1


def test_many_addresses_and_links_are_looked_at_a_few_at_a_time() -> None:
    bench = Bench()
    a = bench.router("A")
    client = bench.client(a)
    session = client.session()
    for number in range(1200):
        client.receiver(f"x/{number}", credit=1, session=session)
    bench.run()
    view = RuntimeView(a, [], [])
    assert exhaust(view.look()) >= 2 * (1200 // 250)
    assert exhaust(view.prepare(ProblemRow)) >= 1200 // 250
    assert list(view.rows(ProblemRow)) == []


def test_messages_on_no_publishers_account_are_told_of_where_they_wait() -> None:
    bench = Bench()
    a, b = bench.mesh(("A", "B"))
    scans = {router.me: ProblemScanner(router, [], []) for router in (a, b)}
    bench.client(b).receiver("jobs", credit=2)
    bench.run()
    sender = bench.client(a).sender(None)
    bench.run()
    for _ in range(5):
        sender.send(message("x", address="jobs"))
        bench.run()
    for _ in range(2):
        for scan in scans.values():
            exhaust(scan.look())
        assert not scans[a.me].problems() + scans[b.me].problems()
        bench.advance(WAIT_S / 2)
    exhaust(scans[b.me].look())
    (found,) = scans[b.me].problems()
    assert (found.kind, found.subject) == ("subscriber-slow", "jobs")
    assert found.sentence.startswith(
        "3 messages of jobs wait at router B, the oldest for 5 s, most of them from router A: "
    )
    assert found.sentence.endswith("grants no credit and has 2 messages without outcome")
    assert not scans[a.me].problems()


def test_a_publisher_that_sends_faster_than_its_messages_are_taken_is_named() -> None:
    bench = Bench()
    a, b = bench.mesh(("A", "B"))
    views = {router.me: RuntimeView(router, [], []) for router in (a, b)}
    receiver = bench.client(b, container="worker").receiver("jobs", credit=2)
    bench.run()
    calm, greedy = (bench.client(a, container=name).sender(None) for name in ("calm", "greedy"))
    bench.run()
    calm.send(message("x", address="jobs"))
    while len(greedy.sent) < 245:  # it sends on with each outcome: at most looks it has some credit left
        greedy.send(message("x", address="jobs"))
        bench.run()
    problems_of = {me: view.problem_scan.problems for me, view in views.items()}
    exhaust(views[a.me].look())
    assert not problems_of[a.me](), "a burst"
    bench.advance(1.0)
    exhaust(views[a.me].look())
    (found,) = problems_of[a.me]()
    assert (found.kind, found.subject) == ("publisher-floods", "greedy")
    sent = len(greedy.sent)
    assert found.sentence == (
        f"client greedy sends faster than its messages are taken: {sent} are under way of 250 that it may have,"
        " most of them to jobs"
    )
    bench.advance(WAIT_S)
    exhaust(views[b.me].look())
    (slow,) = problems_of[b.me]()
    assert slow.sentence.startswith(
        f"{sent - 1} messages of jobs wait at router B, the oldest for 6 s, most of them from router A"
    )
    receiver.accepting().flow(1000)
    bench.run()
    exhaust(views[a.me].look())
    assert not problems_of[a.me]()


def test_settled_messages_to_nobody_are_told_of_and_counted() -> None:
    bench = Bench()
    (a,) = bench.mesh(("A", "B"))[:1]
    scan = ProblemScanner(a, [], [])
    view = RuntimeView(a, [], [])
    assert not scan.problems()
    sender = bench.client(a).sender(None)
    bench.run()
    for _ in range(3):
        sender.send(message("x", address="nobody"), settled=True)
        bench.run()
    (found,) = scan.problems()
    assert (found.kind, found.subject) == ("dropped", "A")
    assert "3 in all" in found.sentence
    sender.send(message("x"), settled=True)
    bench.run()
    (found,) = scan.problems()
    assert "or that were refused (no address, not allowed, malformed), are dropped, 4 in all" in found.sentence
    (row,) = view.rows(RouterRow)
    assert isinstance(row, RouterRow)
    assert row.dropped_presettled_deliveries == 4
    bench.advance(RECENT_S + 1)
    assert not scan.problems()


def test_a_subscriber_that_settles_steadily_is_said_to_get_more_than_it_takes() -> None:
    steady = party("subscriber", container="search-1", granted=9, unsettled_count=1)
    late = credit(blocked_count=0, waiting_count=250, oldest_wait_seconds=6)
    ((_, _, sentence),) = said(addresses=[AddressTrouble(text="search", credit=late, grantors=[steady])])
    assert sentence.endswith(
        ": subscriber ann/search-1 (h:9) has 1 message without outcome, the last outcome 1 s ago:"
        " more come than it takes"
    )


def test_a_subscriber_with_credit_that_settles_nothing_is_named() -> None:
    frozen = party("subscriber", container="fl4", granted=957, unsettled_count=43, unsettled_seconds=12)
    frozen = attrs.evolve(frozen, last_outcome_seconds=12)
    late = credit(blocked_count=0, waiting_count=11, oldest_wait_seconds=14)
    ((kind, _, sentence),) = said(addresses=[AddressTrouble(text="jobs", credit=late, grantors=[frozen])])
    assert kind == "subscriber-slow"
    assert sentence == (
        "11 messages of jobs wait at router R1, the oldest for 14 s:"
        " subscriber ann/fl4 (h:9) has credit for 957 more, but 43 messages without outcome, the last outcome 12 s ago"
    )
    ((kind, _, sentence),) = said(addresses=[AddressTrouble(text="jobs", credit=credit(), grantors=[frozen])])
    assert kind == "publishers-blocked"
    assert sentence.endswith(
        ": subscriber ann/fl4 (h:9) has credit for 957 more, but 43 messages without outcome, the last outcome 12 s ago"
    )


def test_the_link_of_a_blocked_publisher_says_since_when() -> None:
    bench = Bench()
    (a,) = bench.mesh(("A", "B"))[:1]
    bench.client(a).receiver("jobs", credit=1)
    bench.run()
    sender = bench.client(a).sender("jobs")
    bench.run()
    view = RuntimeView(a, [], [])

    def waited() -> list[int]:
        return [
            row.zero_credit_seconds
            for row in view.rows(LinkRow)
            if isinstance(row, LinkRow) and row.link_dir == "in" and row.owning_addr
        ]

    assert waited() == [0]
    while sender.credit > 0:
        sender.send(message("x"))
        bench.run()
    bench.advance(12)
    assert waited() == [12]


@pytest.mark.parametrize("where", ["A", "B"])
def test_who_keeps_a_link_to_the_reply_address_of_one_that_is_gone_is_no_problem(where: str) -> None:
    """A server of oslo.messaging does so for ten minutes."""
    bench = Bench()
    routers = {name: bench.router(name) for name in ("A", "B")}
    bench.join(routers["A"], routers["B"])
    bench.advance(5.0)
    views = [RuntimeView(router, [], []) for router in routers.values()]
    caller = bench.client(routers["A"])
    replies = caller.receiver(None, dynamic=True, credit=0)
    bench.run()
    server = bench.client(routers[where]).sender(replies.address)
    bench.run()

    def found_after(seconds: int) -> list[str]:
        for _ in range(seconds):
            for view in views:
                exhaust(view.look())
            bench.advance(1.0)
        return [found.kind for view in views for found in view.problem_scan.problems()]

    if where == "A":
        assert found_after(20) == ["publishers-blocked"], "while its owner is there it is one"
    replies.close()
    bench.run()
    assert found_after(20) == []
    assert server.closed is None
