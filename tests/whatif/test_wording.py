"""Amounts and failures in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.whatif import wording


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0 %"), (0.00012, "0.012 %"), (0.034, "3.4 %"), (0.61, "61 %"), (0.99, "99 %"), (0.9951, "99.51 %"),
        (0.999971, "99.9971 %"), (1, "100 %"), (1.337, "134 %"), (12, "1,200 %"), (7e-13, "7.0e-11 %"),
        (1.2e-6, "0.00012 %"),
    ],
)  # fmt: skip
def test_shares_are_short_and_never_rounded_to_nothing_or_all(share: float, text: str) -> None:
    assert wording.percent(share) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0.5, "50 %"), (0.986, "98.6 %"), (0.99, "99.0 %"), (0.999971, "99.9971 %"), (1, "100 %")]
)
def test_what_is_missing_to_all_of_the_time_has_two_digits(share: float, text: str) -> None:
    assert wording.served(share) == text


@given(st.floats(0, 1))
def test_only_all_is_100_percent_and_only_nothing_0(share: float) -> None:
    if 0 < share < 1:
        assert 0 < float(wording.percent(share).removesuffix(" %")) < 100
        assert float(wording.served(share).removesuffix(" %")) < 100


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.00123, "0.00123"), (0.5, "0.5"), (12.34, "12.3"), (1234.5, "1,234"), (1e-9, "1.00e-09")],
)
def test_amounts_have_three_digits(value: float, text: str) -> None:
    assert wording.amount(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(1e-9, "0.0315 s"), (1e-6, "31.5 s"), (1e-4, "52 min 33 s"), (1e-3, "8 h 45 min"), (0.1, "36 d 12 h")],
)
def test_a_share_of_a_year_is_a_time(share: float, text: str) -> None:
    assert wording.per_year(share) == text


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (([], [], None, "none"), "nothing"),
        ((["A--B"], [], None, "links:1"), "link A--B"),
        ((["A--B", "C--D"], ["E"], None, ""), "router E and links A--B and C--D"),
        ((["a", "b", "c", "d", "e", "f"], [], None, ""), "links a, b, c, d and 2 more"),
        ((["a", "b", "c", "d", "e"], [], None, ""), "links a, b, c, d and e"),
        ((["A--B"], ["C"], "duct", "srlg"), "group duct: router C and link A--B"),
        ((["A--B"], [], "window", "maintenance"), "maintenance of window: link A--B"),
    ],
)
def test_failures_are_named(row: tuple[list[str], list[str], str | None, str], text: str) -> None:
    assert wording.failure(*row) == text


@pytest.mark.parametrize(
    ("words", "values", "texts"),
    [
        (wording.percent, (0.4504, 0.45), ["45.04 %", "45 %"]),
        (wording.percent, (0.45, 0.45), ["45 %", "45 %"]),
        (wording.percent, (1.004, 1.0), ["100.4 %", "100 %"]),
        (wording.served, (0.85996, 0.8601, 0.86), ["85.996 %", "86.010 %", "86.000 %"]),
        (wording.rate, (100.4, 100.0), ["100.4 msg/s", "100 msg/s"]),
        (wording.amount, (1234567.25, 1234567.0), ["1,234,567.2", "1,234,567"]),
        (wording.milliseconds, (1e-9, 1.0001e-9), ["1.0000e-09 ms", "1.0001e-09 ms"]),
    ],
)
def test_numbers_that_differ_are_told_apart(
    words: wording.NumberWriter, values: tuple[float, ...], texts: list[str]
) -> None:
    assert wording.told_apart(words, *values) == texts


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_texts_of_two_numbers_are_the_same_only_if_the_numbers_are(one: float, other: float) -> None:
    first, second = wording.told_apart(wording.amount, one, other)
    assert (first == second) == (one == other)


@pytest.mark.parametrize(
    ("value", "text"), [(0.8594558, "0.8594558"), (0.8, "0.8"), (3, "3"), (1234.5678, "1,234.5678"), (0, "0")]
)
def test_a_number_that_was_given_is_not_rounded(value: float, text: str) -> None:
    assert wording.exact(value) == text


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (1, "link", "1 link"),
        (2, "address", "2 addresses"),
        (2, "mesh", "2 meshes"),
        (3, "sky", "3 skies"),
        (4, "day", "4 days"),
        (0, "pair", "0 pairs"),
    ],
)
def test_nouns_have_their_number(count: int, noun: str, text: str) -> None:
    assert wording.counted(count, noun) == text
