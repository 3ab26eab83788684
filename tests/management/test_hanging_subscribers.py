"""A subscriber that has messages and gives no outcome is a problem, whatever credit it has left."""

from __future__ import annotations

import attrs
import pytest

from router.management.overdue_outcome_texts import HANGS_S, overdue
from router.management.snapshot import PartyRow
from router.views.credit import PartyRows
from router.views.hanging_subscribers import hanging_subscribers
from router.views.problem_inputs import AddressTrouble, HangingSubscriber, Problem, ProblemInputs
from router.views.runtime import RuntimeView
from tests.helpers.engine import Bench
from tests.helpers.peer import PeerReceiver, PeerSender, message
from tests.management.test_problems import NOW, credit, exhaust, party


class Jobs:
    """A router with a publisher, and a subscriber that has much credit."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.router = self.bench.router("A")
        self.view = RuntimeView(self.router, [], [])
        self.subscriber: PeerReceiver = self.bench.client(self.router, container="worker").receiver("jobs", credit=50)
        self.bench.run()
        self.publisher: PeerSender = self.bench.client(self.router).sender("jobs")
        self.bench.run()

    def send(self, count: int, *, settled: bool = False) -> None:
        for _ in range(count):
            self.publisher.send(message("x"), settled=settled)
        self.bench.run()

    def pass_time(self, seconds: int) -> None:
        for _ in range(seconds):
            exhaust(self.view.look())
            self.bench.advance(1.0)

    def found(self) -> list[Problem]:
        return self.view.problem_scan.problems()

    def row(self) -> PartyRow:
        (link,) = (each for each in self.router.data_plane.links if each.name == self.subscriber.name)
        return PartyRows(self.router.connections, self.router.clock(), self.view.rates).row(link)


def test_a_subscriber_that_gives_no_outcome_is_a_problem_though_it_has_credit() -> None:
    jobs = Jobs()
    jobs.send(5)
    begun = jobs.router.clock()
    jobs.pass_time(HANGS_S - 5)
    assert jobs.found() == []
    jobs.pass_time(7)
    (found,) = jobs.found()
    assert (found.kind, found.subject) == ("subscriber-hangs", "jobs")
    assert "worker" in found.sentence
    assert "has 5 messages without outcome, none settled for 6" in found.sentence
    assert "credit for 45 more" in found.sentence
    assert found.since is not None
    assert found.since - jobs.view._offset() <= begun + 1
    for each in jobs.subscriber.messages[:1]:
        each.settle()
    jobs.bench.run()
    jobs.pass_time(2)
    assert jobs.found() == []


def test_a_subscriber_that_settles_slowly_is_no_problem() -> None:
    jobs = Jobs()
    jobs.send(5)
    for _ in range(4):
        jobs.pass_time(HANGS_S - 5)
        assert jobs.found() == []
        jobs.subscriber.messages.pop(0).settle()
        jobs.bench.run()


def test_a_subscriber_that_had_nothing_to_do_does_not_hang_with_its_next_message() -> None:
    jobs = Jobs()
    jobs.send(1)
    jobs.pass_time(2)
    jobs.subscriber.messages.pop(0).settle()
    jobs.bench.run()
    jobs.pass_time(2 * HANGS_S)
    assert jobs.row().unsettled_seconds is None
    jobs.send(1)
    jobs.pass_time(20)
    assert jobs.found() == []
    assert jobs.row().unsettled_seconds in (19, 20)
    jobs.pass_time(HANGS_S)
    (found,) = jobs.found()
    assert "has 1 message without outcome, not settled for" in found.sentence


def test_messages_that_need_no_outcome_are_no_problem() -> None:
    jobs = Jobs()
    jobs.send(5, settled=True)
    jobs.pass_time(2 * HANGS_S)
    assert jobs.found() == []


def hanging(text: str, number: int, *, granted: int) -> HangingSubscriber:
    one = party("subscriber", container=f"w{number}", granted=granted, unsettled_count=2, unsettled_seconds=70 - number)
    return HangingSubscriber(text=text, party=attrs.evolve(one, last_outcome_seconds=None), since=NOW - 70 + number)


def test_subscribers_of_one_address_are_one_problem() -> None:
    all_of_them = [hanging("jobs", number, granted=0) for number in range(5)]
    (found,) = hanging_subscribers(ProblemInputs(router="A", now=NOW, hanging=all_of_them))
    assert found.sentence == (
        "messages of jobs get no outcome:"
        " subscriber ann/w0 (h:9) has 2 messages without outcome, none settled for 70 s, and no credit left;"
        " subscriber ann/w1 (h:9) has 2 messages without outcome, none settled for 69 s, and no credit left;"
        " subscriber ann/w2 (h:9) has 2 messages without outcome, none settled for 68 s, and no credit left;"
        " and 2 more like this: they hang, or take longer than that for a message"
    )
    assert found.since == NOW - 70


def test_what_blocked_publishers_are_told_with_is_not_told_again() -> None:
    trouble = AddressTrouble(text="jobs", credit=credit(), grantors=[])
    taken = ProblemInputs(router="A", now=NOW, hanging=[hanging("jobs", 0, granted=0)], addresses=[trouble])
    assert list(hanging_subscribers(taken)) == []
    able = attrs.evolve(taken, hanging=[hanging("jobs", 0, granted=3)])
    assert [each.subject for each in hanging_subscribers(able)] == ["jobs"]


@pytest.mark.parametrize(
    ("count", "unsettled_s", "last_outcome_s", "said"),
    [
        (5, 40, None, "5 messages without outcome, none settled for 40 s"),
        (1, 40, None, "1 message without outcome, not settled for 40 s"),
        (5, 40, 40, "5 messages without outcome, the last outcome 40 s ago"),
        (5, 0, 0, "5 messages without outcome, the last outcome 0 s ago"),
        (5, 4, 3600, "5 messages without outcome, none settled for 4 s"),
        (5, 0, 3600, "5 messages without outcome"),
        (5, None, 7, "5 messages without outcome, the last outcome 7 s ago"),
        (5, None, None, "5 messages without outcome"),
    ],
)
def test_it_is_said_for_how_long_there_was_no_outcome(
    count: int, unsettled_s: int | None, last_outcome_s: int | None, said: str
) -> None:
    assert overdue(count, unsettled_s, last_outcome_s) == said
