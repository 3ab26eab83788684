"""A router that tells of subscribers of a multicast and does not look after them holds up the others for a time."""

from __future__ import annotations

import pytest
from proton import Link

from router.management.snapshot import PartyRow
from router.runtime import Runtime
from tests.engine.test_circuits import accept, join, refuse, take_circuits
from tests.engine.test_credit_rows import parties
from tests.engine.test_promise_cases import FANOUT, between
from tests.helpers.engine import Bench
from tests.helpers.neighbor import Neighbor
from tests.helpers.peer import PeerReceiver, PeerSender, message

LIMIT_S = 4 * 1.0 + 1.0 + 0.25
"""For a neighbor by which nobody else is reached, with the default of `grace_s`."""
HINT = 1
"""Treatment that a router advertises with a multicast address."""


def careless_line(bench: Bench) -> tuple[list[Runtime], list[PeerReceiver], PeerReceiver, PeerSender]:
    """A line of A, B and C with a subscriber at each; C leaves its own, which stalls, an hour to grant again."""
    for name in ("A", "B"):
        bench.router(name)
    bench.router("C", forwarding={"grace_s": 3600.0})
    a, b, c = bench.mesh(("A", "B"), ("B", "C"))
    well = [bench.client(router).receiver(FANOUT, credit=10_000).accepting() for router in (a, b)]
    stalled = bench.client(c).receiver(FANOUT, credit=5).accepting()
    bench.advance(0.1)
    return [a, b, c], well, stalled, bench.client(a).sender(FANOUT)


def excluded_at(router: Runtime) -> list[PartyRow]:
    """The circuits of a router that do not count for the multicast."""
    return [row for row in parties(router, "M0" + FANOUT) if row.excluded_seconds is not None]


def warnings(capsys: pytest.CaptureFixture[str]) -> list[str]:
    lines = capsys.readouterr()
    return [line for line in (lines.out + lines.err).splitlines() if "neighbor_excluded" in line]


def test_only_the_router_next_to_a_careless_one_excludes_it_and_others_get_all(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    (a, b, _), well, stalled, sender = careless_line(bench)
    total = 50
    sent = [sender.send(message(number)) for number in range(total)]
    bench.advance(LIMIT_S - 0.1)
    assert all(receiver.bodies == list(range(5)) for receiver in well)
    assert warnings(capsys) == []
    bench.advance(0.5)
    assert all(receiver.bodies == list(range(total)) for receiver in well)
    assert {one.outcome for one in sent} == {"accepted"}
    assert stalled.bodies == list(range(5))
    (circuit,) = excluded_at(b)
    assert (circuit.role, circuit.neighbor, circuit.missed_count) == ("circuit out", "C", total - 5)
    assert excluded_at(a) == []
    (line,) = warnings(capsys)
    assert {f"address={FANOUT}", "held_s=5.25", "neighbor=C", "router=B"} <= set(line.split())
    entry = b.fib.find(FANOUT)
    assert entry is not None
    assert entry.dropped == total - 5


def test_who_was_excluded_gets_whole_messages_again_once_it_grants(bench: Bench) -> None:
    (_, b, _), well, stalled, sender = careless_line(bench)
    for number in range(10):
        sender.send(message(number), settled=True)
    bench.advance(LIMIT_S + 0.5)
    stalled.flow(3)
    bench.advance(0.5)
    assert excluded_at(b) == []
    for number in range(10, 20):
        sender.send(message(number), settled=True)
    bench.advance(0.5)
    assert stalled.bodies == [0, 1, 2, 3, 4, 10, 11, 12]
    assert stalled.credit == 0
    assert all(receiver.bodies == list(range(13)) for receiver in well), "it counts again, and is waited for"
    bench.advance(LIMIT_S)
    assert all(receiver.bodies == list(range(20)) for receiver in well)
    assert stalled.bodies == [0, 1, 2, 3, 4, 10, 11, 12]
    (circuit,) = excluded_at(b)
    entry = b.fib.find(FANOUT)
    assert entry is not None
    assert circuit.missed_count == entry.dropped == 20 - 8


def test_relapses_of_a_neighbor_are_not_logged_each_time(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    (a, b, _), well, stalled, sender = careless_line(bench)
    total = 0
    for _ in range(12):
        stalled.flow(1)
        for _ in range(4):
            sender.send(message(total), settled=True)
            total += 1
        bench.advance(11.0)
    assert len(warnings(capsys)) == 1
    assert len(excluded_at(b)) == 1
    assert excluded_at(a) == []
    assert all(receiver.bodies == list(range(total)) for receiver in well)


def test_an_honest_router_whose_subscribers_are_slow_is_never_excluded(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b, c = bench.mesh(("A", "B"), ("B", "C"))
    well = [bench.client(router).receiver(FANOUT, credit=10_000).accepting() for router in (a, b)]
    slow = bench.client(c).receiver(FANOUT, credit=2).accepting()
    sender = bench.client(a).sender(FANOUT)
    for number in range(50):
        sender.send(message(number), settled=True)
    for _ in range(30):
        bench.advance(0.9)
        slow.flow(2)
    assert all(receiver.bodies == list(range(50)) for receiver in (*well, slow))
    assert warnings(capsys) == []


@pytest.mark.parametrize("is_beside", [True, False], ids=["beside an honest one", "alone at its router"])
@pytest.mark.parametrize(("at_once", "stays_s"), [(1, 0.9), (3, 0.9), pytest.param(1, 0.3, marks=pytest.mark.slow)])
def test_a_client_that_attaches_again_and_again_excludes_no_router_from_a_multicast(
    bench: Bench, capsys: pytest.CaptureFixture[str], is_beside: bool, at_once: int, stays_s: float
) -> None:
    a, b = bench.mesh(("A", "B"))
    well = [
        bench.client(router).receiver(FANOUT, credit=100_000).accepting() for router in ((a, b) if is_beside else (a,))
    ]
    restless, sender = bench.client(b), bench.client(a).sender(FANOUT)
    links: list[PeerReceiver] = []
    total = idle = 0
    rounds = 150
    for number in range(rounds):
        if number % round(10 * stays_s / at_once) == 0:
            if len(links) == at_once:
                links.pop(0).detach()
            links.append(restless.receiver(FANOUT, credit=1).accepting())
        before = len(well[0].bodies)
        for _ in range(5):
            sender.send(message(total), settled=True)
            total += 1
        bench.advance(0.1)
        idle += len(well[0].bodies) == before
    assert idle * 0.1 <= 3.0 + 0.1 * 0.1 * rounds
    for link in links:
        link.detach()
    bench.advance(5.0)
    assert all(receiver.bodies == list(range(total)) for receiver in well)
    assert warnings(capsys) == []


def live(bench: Bench, raw: Neighbor, duration_s: float) -> None:
    """Let time pass for a neighbor that says HELLO each second."""
    end = bench.now + duration_s
    while bench.now < end:
        raw.hello()
        bench.advance(min(1.0, end - bench.now))


def never_answer(link: Link) -> None:
    """Leave an attach without any answer."""


@pytest.mark.parametrize("answer", [accept, never_answer])
def test_a_neighbor_that_takes_no_circuit_or_grants_nothing_stops_nobody_for_long(
    bench: Bench, capsys: pytest.CaptureFixture[str], answer: object
) -> None:
    a, b = bench.mesh(("A", "B"))
    well = [bench.client(router).receiver(FANOUT, credit=10_000).accepting() for router in (a, b)]
    sender = bench.client(a).sender(FANOUT)
    raw = join(bench, a)
    take_circuits(raw, answer)  # type: ignore[arg-type]
    raw.subscribe(FANOUT, hint=HINT)
    bench.advance(0.1)
    total = 20
    for number in range(total):
        sender.send(message(number), settled=True)
    live(bench, raw, LIMIT_S - 0.2)
    assert all(receiver.bodies == [] for receiver in well)
    live(bench, raw, 0.5)
    assert all(receiver.bodies == list(range(total)) for receiver in well)
    assert len(warnings(capsys)) == 1
    assert len(excluded_at(a)) == 1
    another = bench.client(a).sender(FANOUT)
    for number in range(total, 2 * total):
        another.send(message(number), settled=True)
    live(bench, raw, 0.5)
    assert all(receiver.bodies == list(range(2 * total)) for receiver in well), "nobody is held up again"


def test_one_that_withdraws_its_address_and_advertises_it_again_is_still_excluded(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    well = bench.client(b).receiver(FANOUT, credit=10_000).accepting()
    bench.client(a).receiver(FANOUT, credit=10_000).accepting()
    sender = bench.client(a).sender(FANOUT)
    raw = join(bench, a)
    take_circuits(raw, accept)
    total = 0
    for _ in range(10):
        raw.subscribe(FANOUT, hint=HINT)
        for _ in range(10):
            sender.send(message(total), settled=True)
            total += 1
        live(bench, raw, 2.0)
        raw.unsubscribe(FANOUT)
        live(bench, raw, 0.1)
    assert well.bodies == list(range(total))
    raw.subscribe(FANOUT, hint=HINT)
    sender.send(message("last"), settled=True)
    live(bench, raw, 0.1)
    assert well.bodies[-1] == "last"
    assert len(excluded_at(a)) == 1


def test_a_neighbor_that_refuses_the_circuit_holds_up_nobody(bench: Bench) -> None:
    a, b = bench.mesh(("A", "B"))
    well = bench.client(b).receiver(FANOUT, credit=10_000).accepting()
    raw = join(bench, a)
    take_circuits(raw, refuse)
    raw.subscribe(FANOUT, hint=HINT)
    bench.advance(0.1)
    sender = bench.client(a).sender(FANOUT)
    for number in range(20):
        sender.send(message(number), settled=True)
    live(bench, raw, 0.5)
    assert well.bodies == list(range(20))
    assert [received.body for received, _ in raw.received] == list(range(20)), "they go as datagrams"


def test_a_connection_that_stands_still_is_not_judged_before_it_is_known_to_be(bench: Bench) -> None:
    (_, b, c), well, stalled, sender = careless_line(bench)
    stalled.flow(10_000)
    bench.advance(0.1)
    for number in range(100):
        sender.send(message(number), settled=True)
    between(bench, b, c).is_still = True
    for number in range(100, 3000):
        sender.send(message(number), settled=True)
    bench.advance(6.0)
    assert all(receiver.bodies == list(range(3000)) for receiver in well)
