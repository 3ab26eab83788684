"""The automaton finds the first pattern that fits, however many ways there are to fit."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st

from mesh_config.multi_pattern_matcher import (
    ANY_WORD,
    ANY_WORDS,
    BEGINNING,
    EXACT,
    PART_BITS,
    MultiPatternMatcher,
    Token,
)

TOKENS = st.sampled_from(
    [(ANY_WORD, ""), (ANY_WORDS, ""), (EXACT, "a"), (EXACT, "ab"), (BEGINNING, "a"), (BEGINNING, "")]
)
PATTERNS = st.lists(st.lists(TOKENS, max_size=6), max_size=5)
WORDS = st.lists(st.sampled_from(["a", "ab", "b", ""]), max_size=6)


def expected(patterns: list[list[Token]], words: list[str]) -> int | None:
    """By regular expressions, one after the other."""
    text = "".join(f"{word}/" for word in words)
    parts = {ANY_WORD: "[^/]*/", ANY_WORDS: "(?:[^/]*/)*", EXACT: "/", BEGINNING: "[^/]*/"}
    for number, tokens in enumerate(patterns):
        if re.fullmatch("".join(re.escape(word) + parts[kind] for kind, word in tokens), text):
            return number
    return None


@given(PATTERNS, WORDS, st.booleans())
@example([[(ANY_WORDS, "")]], [], False)
@example([[], [(EXACT, "a"), (ANY_WORDS, "")]], ["a"], True)
def test_the_first_pattern_that_fits_is_found(patterns: list[list[Token]], words: list[str], is_apart: bool) -> None:
    if is_apart:  # in parts of their own
        patterns = [each for tokens in patterns for each in (tokens, [(EXACT, "x")] * (PART_BITS - 1))]
    assert MultiPatternMatcher(patterns).first(words) == expected(patterns, words)


def test_a_pattern_of_any_length_is_found() -> None:
    words = [str(number) for number in range(3 * PART_BITS)]
    automaton = MultiPatternMatcher([[(EXACT, word) for word in words], [(EXACT, "a")]])
    assert (automaton.first(words), automaton.first(["a"]), automaton.first(words[1:])) == (0, 1, None)


def test_a_look_up_ends_whatever_the_combinations_of_words() -> None:
    patterns = [[*[(ANY_WORDS, ""), (EXACT, "a")] * 200, (EXACT, "z")], [*[(ANY_WORDS, ""), (ANY_WORD, "")] * 100]]
    assert MultiPatternMatcher(patterns).first(["a"] * 512) == 1  # one after the other would take years
