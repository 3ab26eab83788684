"""The ledger notices what must never be, and nothing else."""

from __future__ import annotations

import pytest

from tests.measure.chaos.ends import decode, encode
from tests.measure.chaos.ledger import ACCEPTED, MODIFIED, NONE, REJECTED, RELEASED, Ledger, Sink, Source


def scene(*, is_multicast: bool = False, sinks: int = 1) -> tuple[Ledger, Source, list[Sink]]:
    """One publisher and its subscribers, in calm."""
    ledger = Ledger()
    source = ledger.new_source("a", is_multicast=is_multicast)
    found = [ledger.new_sink("a") for _ in range(sinks)]
    ledger.calm()
    return ledger, source, found


@pytest.mark.parametrize(
    ("outcome", "arrivals", "said", "violation"),
    [
        (ACCEPTED, 1, ACCEPTED, None),
        (ACCEPTED, 0, NONE, "accepted by nobody"),
        (ACCEPTED, 1, NONE, "accepted by nobody"),
        (ACCEPTED, 1, RELEASED, "accepted by nobody"),
        (RELEASED, 0, NONE, None),
        (RELEASED, 1, RELEASED, None),
        (RELEASED, 1, NONE, "released, yet received"),
        (RELEASED, 1, ACCEPTED, "released, yet received"),
        (REJECTED, 1, REJECTED, None),
        (REJECTED, 1, ACCEPTED, "released, yet received"),
        (MODIFIED, 0, NONE, None),
        (MODIFIED, 1, ACCEPTED, None),
        (NONE, 1, ACCEPTED, "no outcome"),
        (ACCEPTED, 2, ACCEPTED, "arrived twice"),
        (MODIFIED, 2, NONE, "arrived twice"),
    ],
)
def test_an_outcome_says_what_a_subscriber_said_and_what_arrived(
    outcome: int, arrivals: int, said: int, violation: str | None
) -> None:
    ledger, source, [sink] = scene()
    number = ledger.sent(source)
    for _ in range(arrivals):
        ledger.arrived(sink, source.key, number)
    ledger.said(source.key, number, said)
    if outcome != NONE:
        ledger.answered(source, number, outcome)
    ledger.settle()
    assert dict(ledger.violations) == ({violation: 1} if violation else {})


def test_a_second_outcome_is_a_violation() -> None:
    ledger, source, _ = scene()
    number = ledger.sent(source)
    ledger.answered(source, number, RELEASED)
    ledger.answered(source, number, RELEASED)
    assert ledger.violations == {"two outcomes": 1}


def test_a_publisher_that_is_gone_is_owed_no_outcome() -> None:
    ledger, source, _ = scene()
    ledger.sent(source)
    assert ledger.unanswered == 1
    ledger.left(source)
    assert ledger.unanswered == 0
    ledger.settle()
    assert not ledger.violations


@pytest.mark.parametrize("is_calm", [True, False])
def test_a_later_message_overtakes_only_while_paths_change(is_calm: bool) -> None:
    ledger, source, [sink] = scene()
    numbers = [ledger.sent(source) for _ in range(2)]
    if not is_calm:
        ledger.storm()
    for number in reversed(numbers):
        ledger.arrived(sink, source.key, number)
    assert dict(ledger.violations) == ({"reordered": 1} if is_calm else {})


def test_what_was_sent_before_the_calm_may_come_late() -> None:
    ledger, source, [sink] = scene()
    early = ledger.sent(source)
    ledger.calm()
    ledger.arrived(sink, source.key, ledger.sent(source))
    ledger.arrived(sink, source.key, early)
    assert not ledger.violations


@pytest.mark.parametrize(("outcome", "missing"), [(ACCEPTED, 1), (RELEASED, 0)])
def test_an_accepted_multicast_reaches_every_subscriber_that_was_there(outcome: int, missing: int) -> None:
    ledger, source, [first, _] = scene(is_multicast=True, sinks=2)
    number = ledger.sent(source)
    ledger.arrived(first, source.key, number)
    ledger.answered(source, number, outcome)
    if outcome != ACCEPTED:
        return
    assert ledger.missing_copies() == missing
    ledger.settle()
    assert ledger.violations["copy missing"] == missing


def test_one_copy_for_each_subscriber_is_not_a_second_arrival() -> None:
    ledger, source, sinks = scene(is_multicast=True, sinks=2)
    number = ledger.sent(source)
    for sink in sinks:
        ledger.arrived(sink, source.key, number)
    assert not ledger.violations
    ledger.arrived(sinks[0], source.key, number)
    assert ledger.violations == {"arrived twice": 1}


def test_a_subscriber_that_left_or_a_storm_ends_what_is_owed() -> None:
    ledger, source, [first, second] = scene(is_multicast=True, sinks=2)
    ledger.answered(source, ledger.sent(source), ACCEPTED)
    ledger.left(first)
    assert ledger.missing_copies() == 1
    ledger.storm()
    assert ledger.missing_copies() == 0
    assert second.since == {}


def test_a_message_of_a_forgotten_publisher_is_counted_and_no_violation() -> None:
    ledger, source, [sink] = scene()
    number = ledger.sent(source)
    ledger.left(source)
    ledger.settle()
    ledger.settle()
    assert source.key not in ledger.sources
    ledger.arrived(sink, source.key, number)
    assert ledger.totals["of forgotten publishers"] == 1
    assert not ledger.violations


def test_a_message_says_which_one_it_is() -> None:
    message = encode(3, 1000, 500)
    assert decode(message) == (3, 1000)
    for damaged in (message[:-1], message + b"x", message[:-1] + b"\x00", b"", message[1:]):
        with pytest.raises(ValueError, match=r"bytes|filler"):
            decode(damaged)
