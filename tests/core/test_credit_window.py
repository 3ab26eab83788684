"""Windows of holders of credit, and when these are slow; and those of senders that name their addresses themselves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from router.core.forwarding.doubling_window import (
    FIRST_WINDOW,
    NO_BOUND,
    DoublingWindow,
    first_window,
    grown,
    is_used,
    shrunk,
)
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


@given(st.integers(1, 1000), st.integers(1, 1000))
def test_a_holder_is_slow_when_it_used_less_than_a_quarter_of_what_it_held(held: int, used: int) -> None:
    window = DoublingWindow(held, look_s=0.1)
    assert window.use(0.0, NO_BOUND, held), "the first use is a look"
    used = min(used, held)
    for at in range(1, used):
        assert not window.use(0.09 * at / used, NO_BOUND, held - at)
    assert window.use(0.1, NO_BOUND, held - used)
    assert window.was_slow == (4 * used < held)


def test_a_slow_holder_is_slow_no_more_once_it_uses_much_or_has_begun_again() -> None:
    window = DoublingWindow(100, look_s=0.1)
    for now in (0.0, 0.2):
        window.use(now, NO_BOUND, 99)
    assert window.is_slow
    for at in range(25):
        window.use(0.21, NO_BOUND, 98 - at)
    assert window.was_slow
    assert not window.is_slow
    window.use(0.4, NO_BOUND, 70)
    window.use(0.6, NO_BOUND, 69)
    assert window.is_slow
    window.rest(1)
    assert not window.is_slow
