"""Automaton of patterns of words: which of many patterns fits a row of words, in time that no pattern makes long.

A pattern with several `#` can fit a row in more ways than anybody could try. So all places that may have been reached
in the patterns are kept at once, each a bit of a whole number, and a word moves them all by one shift.

Source: Baeza-Yates and Gonnet, A New Approach to Text Searching, 1992 (Shift-And); a `#` is a place that keeps its bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import attrs

ANY_WORD: Final = "*"
"""Kind of a token that stands for exactly one word, whichever."""
ANY_WORDS: Final = "#"
"""Kind of a token that stands for any number of words, none included."""
EXACT: Final = "="
"""Kind of a token that stands for the word in its text."""
BEGINNING: Final = "^"
"""Kind of a token that stands for a word that begins with its text."""

Token = tuple[str, str]
"""Kind of word, and the text that it is or begins with."""

PART_BITS: Final = 1024
"""Places of one part: of all patterns in one number, each word would have a mask as long as all of them."""


def split_words(text: str) -> list[str]:
    """The words of an address or a pattern, which `/` and `.` separate alike."""
    return text.replace(".", "/").split("/")


@attrs.define(eq=False)
class _Part:
    """Group of the patterns, one behind the other: a bit for the beginning of each, and one for each word of it."""

    bits: int = 0
    begins: int = 0
    ends: int = 0
    loops: int = 0
    """Places that stay reached, since a `#` follows."""
    any_word: int = 0
    """Places that any word leads to, a bit each."""
    exact: dict[str, int] = attrs.field(factory=dict)
    """Places that one word alone leads to, a bit each, by that word."""
    beginnings: dict[str, int] = attrs.field(factory=dict)
    """Places that every word with the same beginning leads to, a bit each, by that beginning."""
    lengths: set[int] = attrs.field(factory=set)
    """Lengths of the prefixes, characters."""
    numbers: dict[int, int] = attrs.field(factory=dict)
    """Number of the pattern, by its last place."""

    def add(self, number: int, tokens: Sequence[Token]) -> None:
        place = 1 << self.bits
        self.begins |= place
        for kind, text in tokens:
            if kind == ANY_WORDS:
                self.loops |= place
                continue
            place <<= 1
            if kind == ANY_WORD:
                self.any_word |= place
            elif kind == EXACT:
                self.exact[text] = self.exact.get(text, 0) | place
            else:
                self.beginnings[text] = self.beginnings.get(text, 0) | place
                self.lengths.add(len(text))
        self.ends |= place
        self.numbers[place] = number
        self.bits = place.bit_length()

    def first(self, words: Sequence[str]) -> int | None:
        exact, any_word, loops = self.exact, self.any_word, self.loops
        reached = self.begins
        for word in words:
            led_to = exact.get(word, 0) | any_word
            for length in self.lengths:
                led_to |= self.beginnings.get(word[:length], 0)
            # The first place of a pattern is led to by no word, so the last one of the pattern before it ends there.
            reached = (reached << 1) & led_to | reached & loops
            if not reached:
                return None
        found = reached & self.ends
        return self.numbers[found & -found] if found else None


class MultiPatternMatcher:
    """Patterns, unchangeable, each a row of tokens; the time of a look-up goes by their words and those of the text."""

    def __init__(self, patterns: Iterable[Sequence[Token]]) -> None:
        """*patterns*: the earlier goes before the later."""
        self._parts: list[_Part] = []
        for number, tokens in enumerate(patterns):
            if not self._parts or self._parts[-1].bits + len(tokens) >= PART_BITS:
                self._parts.append(_Part())
            self._parts[-1].add(number, tokens)

    def first(self, words: Sequence[str]) -> int | None:
        """Number of the first pattern that fits all of *words*, from 0; None when none does."""
        for part in self._parts:
            number = part.first(words)
            if number is not None:
                return number
        return None
