"""Pace of `send --rate`."""

from __future__ import annotations

import pytest

from router.cli.send import LATE_S, SendPace


def sent_at(pace: SendPace, times: list[float]) -> list[float]:
    """Times at which messages are sent by someone who looks at *times* only, and has a message each time."""
    sent = []
    for now in times:
        while now >= pace.due and len(sent) < 10_000:
            pace.note_sent(now)
            sent.append(now)
            if pace.rate is None:
                break
    return sent


def test_what_was_missed_for_want_of_credit_is_not_made_up_for() -> None:
    waited_s = 4.0
    sent = sent_at(SendPace(10.0), [waited_s + each / 1000 for each in range(1001)])
    assert len(sent) == pytest.approx(11, abs=1)
    assert sent[:2] == pytest.approx([waited_s, waited_s + 0.1], abs=0.001)


@pytest.mark.parametrize("rate", [10.0, 20.0, 100.0])
def test_the_first_message_does_not_count_as_late(rate: float) -> None:
    began = 1000.0
    first, second = sent_at(SendPace(rate), [began + each / 10_000 for each in range(1002)])[:2]
    assert (first, second) == pytest.approx((began, began + 1 / rate), abs=0.0002)


@pytest.mark.parametrize("rate", [1.0, 7.0, 100.0, 1000.0])
def test_the_rate_is_kept_by_a_machine_that_wakes_late(rate: float) -> None:
    sent = sent_at(SendPace(rate), [each * LATE_S / 2 for each in range(401)])
    assert len(sent) == pytest.approx(rate * 10, abs=rate * LATE_S + 1)


def test_without_a_rate_a_message_is_always_due() -> None:
    assert sent_at(SendPace(None), [0.0, 0.0, 1.0]) == [0.0, 0.0, 1.0]
