"""Which numbers have been seen: against a set that remembers everything."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from router.core.forwarding.sequence_window import WINDOW, SequenceWindow


@given(st.lists(st.integers(1, 3 * WINDOW), max_size=60))
def test_a_number_is_new_once_and_never_when_it_is_older_than_the_window(numbers: list[int]) -> None:
    window = SequenceWindow()
    seen: set[int] = set()
    for number in numbers:
        is_old = number <= max(seen, default=0) - WINDOW
        assert window.see(number) == (number not in seen and not is_old)
        seen.add(number)


def test_numbers_that_begin_anew_far_above_are_new() -> None:
    window = SequenceWindow()
    assert window.see(5)
    assert window.see((1 << 40) + 1)
    assert not window.see((1 << 40) + 1)
    assert window.see(1 << 40), "what was overtaken by the first one is no repeat"
