"""Which numbers have been seen: against a set that remembers everything."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from router.core.forwarding.sequence_window import MOST_BEHIND, MOST_OVERTAKEN, WINDOW, SequenceWindow


@given(st.lists(st.integers(1, 3 * WINDOW), max_size=60))
def test_a_number_is_new_once_and_never_when_it_is_older_than_the_window(numbers: list[int]) -> None:
    window = SequenceWindow()
    seen: set[int] = set()
    for number in numbers:
        is_old = number <= max(seen, default=0) - WINDOW
        assert window.see(number, is_first=False) == (number not in seen and not is_old)
        seen.add(number)


def test_numbers_that_begin_anew_far_above_are_new() -> None:
    window = SequenceWindow()
    assert window.see(5)
    assert window.see((1 << 40) + 1)
    assert not window.see((1 << 40) + 1)
    assert window.see(1 << 40), "what was overtaken by the first one is no repeat"


def test_a_number_that_was_made_up_silences_nobody_for_good() -> None:
    window = SequenceWindow()
    assert window.see(1)
    assert window.see(2**64 - 1)
    seen = [window.see(number) for number in range(2, 30)]
    assert seen == [False] * (MOST_BEHIND - 1) + [True] * (28 - MOST_BEHIND + 1)
    assert not window.see(29)


def test_what_a_link_held_back_while_it_came_by_another_one_is_seen() -> None:
    window = SequenceWindow()
    assert all(window.see(number) for number in range(1, 6000))
    assert not any(window.see(number) for number in range(1000, 6000))
    assert window.see(6000)


def test_many_numbers_that_were_made_up_silence_nobody_for_good() -> None:
    window = SequenceWindow()
    assert all(window.see(2**63 + number) for number in range(100))
    seen = [window.see(number) for number in range(1, MOST_OVERTAKEN + 10)]
    assert seen.index(True) == MOST_OVERTAKEN - 1
    assert all(seen[MOST_OVERTAKEN - 1 :])


def test_what_is_sent_again_from_before_the_window_begins_no_new_one() -> None:
    window = SequenceWindow()
    assert window.see(10_000)
    assert not any(window.see(number, is_first=False) for number in range(1, 100))
    assert not any(window.see(number) for number in range(100, 1, -1)), "they don't rise"
    assert window.highest == 10_000
