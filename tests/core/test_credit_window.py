"""The windows of senders that name their addresses themselves: small at first, doubled by use, halved by failure."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from router.core.forwarding.doubling_window import FIRST_WINDOW, first_window, grown, is_used, shrunk
from router.core.forwarding.fixed_publisher_link_window import change

SETTINGS = st.integers(1, 1_000_000)


def test_a_window_doubles_when_half_of_it_was_used_up_to_the_setting() -> None:
    window, used, seen = first_window(250), 0, []
    for _ in range(500):
        used += 1
        if is_used(window, used):
            window, used = grown(window, 250), 0
        if not seen or seen[-1] != window:
            seen.append(window)
    assert seen == [4, 8, 16, 32, 64, 128, 250]


@given(SETTINGS, st.lists(st.booleans(), max_size=200))
def test_a_window_stays_between_its_first_and_the_setting(most: int, outcomes: list[bool]) -> None:
    window = first_window(most)
    assert window == min(FIRST_WINDOW, most)
    for is_served in outcomes:
        before = window
        window = grown(window, most) if is_served else shrunk(window)
        assert first_window(most) <= window <= most
        assert window in (2 * before, before // 2, most, first_window(most))


@given(SETTINGS, st.integers(0, 1000))
def test_a_sender_whose_messages_have_outcomes_is_never_without_credit(most: int, in_flight: int) -> None:
    window = max(first_window(most), in_flight + 1)
    assert change(True, window, 0, in_flight) == window - in_flight > 0
